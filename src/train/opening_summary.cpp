#include "train/opening_summary.h"

#include <array>
#include <cmath>
#include <cstdio>

#include "array/host_view.h"
#include "base/text.h"
#include "base/trace.h"
#include "train/data_report.h"
#include "train/memory_estimate.h"

namespace jigsaw::inline train {

namespace {

/// "data 1 × domain0 2 × domain1 1 × tensor 2".
std::string axes_of(const Mesh& mesh) {
  std::vector<std::string> axes;
  for (int axis = 0; axis < mesh.shape().axes; ++axis)
    axes.push_back(concat(mesh.axis_name(axis), " ", mesh.size(axis)));
  return join(axes, " × ");
}

std::int64_t count_parameters(const Model& model) {
  std::int64_t count = 0;
  for (const ParameterBlock* block : model.parameters()) {
    for (const auto& parameter : block->parameters()) count += parameter->shape().count();
  }
  return count;
}

void tell_model(Log& log, OpenedRun& run, int ranks) {
  const Configuration& configuration = run.configuration();
  const Mesh& mesh = run.placed().mesh();
  log.info(concat("model: ", configuration.model.type(), ", ", count_parameters(run.placed().model()),
                  " parameters"));
  log.info(concat("mesh: ", ranks, ranks == 1 ? " rank" : " ranks", ", ", axes_of(mesh), "; ",
                  run.placed().description().dump()));
  const TracePause untraced;  // what follows is planned, not done
  const MemoryEstimate memory = estimate_memory(configuration, run.objective(), 0, ranks);
  char work[64];
  std::snprintf(work, sizeof work, "%.3g TFLOP", memory.flops * 1e-12);
  log.info(concat("memory of rank 0: ", human_bytes(memory.parameters), " for parameters and gradients, ",
                  human_bytes(memory.optimizer), " for the optimizer, about ",
                  human_bytes(memory.activations), " for activations; a step takes it ", work));
}

void tell_steps(Log& log, const OpenedRun& run) {
  const TrainOptions& train = run.configuration().train;
  const double samples = static_cast<double>(run.total_steps()) * static_cast<double>(train.batch_size);
  char epochs[32];
  std::snprintf(epochs, sizeof epochs, "%.4g",
                samples / static_cast<double>(run.data().count(Split::kTrain)));
  log.info(concat("training: ", run.total_steps(), " steps with ", train.batch_size, " samples each, ",
                  epochs, " epochs"));
}

}  // namespace

void tell_opening(Log& log, OpenedRun& run, int ranks) {
  if (!log.speaks()) return;
  const DataReport report = report_data(run.configuration(), run.data());
  for (const std::string& line : report.lines) log.info(line);
  for (const std::string& warning : report.warnings) log.warn(warning);
  tell_model(log, run, ranks);
  tell_steps(log, run);
}

void tell_missing(Log& log, const OpenedRun& run, const Batch& batch, Communicator& world) {
  double missing = 0, all = 0;
  for (const Array& target : batch.targets) {
    all += static_cast<double>(target.count());
    visit(target.dtype(), [&](auto zero) {
      using T = decltype(zero);
      for (const T value : HostView<const T>(target))
        missing += std::isnan(static_cast<double>(value)) ? 1 : 0;
    });
  }
  const auto sums = world.all_reduce(std::array{missing, all}, ReduceOp::kSum);
  char part[32];
  std::snprintf(part, sizeof part, "%.3g %%", 100 * sums[0] / std::max(sums[1], 1.0));
  log.info(concat("in the first batch ", part, " of the points of ", run.data().channels().targets.size(),
                  " targets are missing or do not count"));
}

}  // namespace jigsaw::inline train
