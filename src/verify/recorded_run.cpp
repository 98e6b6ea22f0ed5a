#include "verify/recorded_run.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>

#include "array/transfer.h"
#include "base/error.h"
#include "base/text.h"
#include "comm/agreement.h"
#include "train/training_batches.h"
#include "train/training_step.h"
#include "verify/perturbation.h"

namespace jigsaw::inline verify {

namespace {

double rounding_of(DType type) {
  switch (type) {
    case DType::kBfloat16:
      return 0x1p-8;
    case DType::kFloat64:
      return std::numeric_limits<double>::epsilon();
    default:
      return std::numeric_limits<float>::epsilon();
  }
}

std::string bytes_of(const std::vector<double>& values, DType type) {
  std::string bytes;
  const auto append = [&](auto value) {
    char raw[sizeof value];
    std::memcpy(raw, &value, sizeof value);
    bytes.append(raw, sizeof value);
  };
  for (const double value : values) {
    if (type == DType::kFloat64) {
      append(value);
    } else {
      append(static_cast<float>(value));
    }
  }
  return bytes;
}

class Recorder {
 public:
  Recorder(const Configuration& configuration, const std::filesystem::path& folder, Communicator& ranks,
           const RecordOptions& options)
      : options_(options), run_(configuration, folder, ranks), placed_(run_.placed()) {
    if (options_.prepare) options_.prepare(run_);
    together(ranks, [&] {
      optimizer_.emplace(placed_.rank(), placed_.model().parameters(), configuration.optimizer);
      batches_.emplace(run_.configuration(), run_.objective(), placed_);
      step_.emplace(run_, *optimizer_, run_.total_steps());
    });
    if (options_.perturbation == 0) return;
    perturbation_.emplace(options_.perturbation);
    perturb_parameters();
  }

  RecordedRun record() {
    RecordedRun recorded;
    describe(recorded);
    for (int step = 1; step <= options_.steps; ++step) {
      std::optional<OutputPrints> prints;
      if (step == options_.watched) prints.emplace(placed_.rank());
      recorded.steps.push_back(make_step(step));
      if (prints) recorded.prints = prints->collect();
    }
    return recorded;
  }

 private:
  /// Of this rank among those along the axes from `first` on: ranks along `data` hold copies of parameters.
  std::uint64_t place(int first) const {
    const Mesh& mesh = placed_.mesh();
    std::uint64_t place = 0;
    for (int axis = first; axis <= mesh.tensor(); ++axis)
      place = place * static_cast<std::uint64_t>(mesh.size(axis)) +
              static_cast<std::uint64_t>(mesh.coordinate(axis));
    return place;
  }

  void perturb_parameters() {
    for (ParameterBlock* block : placed_.model().parameters()) {
      for (const auto& group : block->groups())
        perturbation_->move(placed_.rank().context, group->stored(), rounding_of(placed_.types().compute),
                            place(1));
    }
    optimizer_->restart();
  }

  /// Targets too, unless they are labels: sums that cancel, as of a bias behind zero weights, move with
  /// nothing else.
  void perturb_batch(const Batch& batch) {
    const Context& host = placed_.rank().context.host();
    const double rounding = rounding_of(placed_.types().compute);
    perturbation_->move(host, batch.input, rounding, place(0));
    if (run_.configuration().data.classes > 0) return;
    for (const Array& target : batch.targets) perturbation_->move(host, target, rounding, place(0));
  }

  /// Calls use(name, segment) for each part of a parameter that this rank owns and tells.
  void for_each_segment(const std::function<void(const ParameterGroup&, const Segment&)>& use) {
    const Mesh& mesh = placed_.mesh();
    for (ParameterBlock* block : placed_.model().parameters()) {
      for (const auto& group : block->groups()) {
        bool tells = true;  // along the other axes copies are equal
        for (int axis = 0; axis < mesh.shape().axes; ++axis)
          tells = tells && (contains(group->owning_axes(), axis) || mesh.coordinate(axis) == 0);
        if (!tells) continue;
        for (const Segment& segment : group->owned_segments()) use(*group, segment);
      }
    }
  }

  std::vector<double> values_of(const Array& owned, const Segment& segment) const {
    return download_values(placed_.rank().context, owned.slice(segment.at, {segment.count}));
  }

  RecordedStep make_step(int step) {
    RecordedStep recorded;
    std::vector<std::vector<double>> before;
    for_each_segment([&](const ParameterGroup& group, const Segment& segment) {
      before.push_back(values_of(group.owned(), segment));
    });
    const StepResult result = step_->run(step, [&] {
      Batch batch = batches_->read(next_part_++, placed_.rank().context.host());
      if (perturbation_) perturb_batch(batch);
      return batch;
    });
    if (!result.finite) {
      throw AgreedError(ExitCode::kNonFinite, 0,
                        concat("loss or gradient of step ", step, " is not finite: loss ", result.loss,
                               ", gradient norm ", result.norm, "; nothing can be compared"));
    }
    if (options_.made_step) options_.made_step();
    recorded.loss = result.loss;
    std::size_t number = 0;
    const DType type = placed_.types().master;
    for_each_segment([&](const ParameterGroup& group, const Segment& segment) {
      std::vector<double> update = values_of(group.owned(), segment);
      const std::vector<double>& old = before[number++];
      const std::string& name = segment.parameter->name();
      double& squares = recorded.squares[name];
      for (std::size_t i = 0; i < update.size(); ++i) {
        squares += update[i] * update[i];
        update[i] -= old[i];
      }
      recorded.gradients[name].push_back({segment.box, segment.first, segment.count,
                                          bytes_of(values_of(group.owned_gradient(), segment), type)});
      recorded.updates[name].push_back({segment.box, segment.first, segment.count, bytes_of(update, type)});
    });
    return recorded;
  }

  void describe(RecordedRun& recorded) {
    std::map<std::string, double> terms;
    for (const BlockPlan& block : placed_.block_plans()) {
      const Trace& trace = block.entry.trace;
      recorded.operations += static_cast<int>(trace.nodes.size());
      for (const Trace::Node& node : trace.nodes) {
        const double flops = node.signature.forward_flops;
        double results = 0;
        for (const Shape& output : node.signature.outputs) results += static_cast<double>(output.count());
        recorded.longest_sum = std::max(recorded.longest_sum, flops / (2 * std::max(results, 1.0)));
        for (const int v : node.inputs) {
          const Trace::Value& value = trace.values[static_cast<std::size_t>(v)];
          if (value.role != Trace::Role::kParameter) continue;
          const double count = std::max(static_cast<double>(value.shape.count()), 1.0);
          double& most = terms[value.name];
          most = std::max({most, results / count, flops / (2 * count)});
        }
      }
    }
    for (ParameterBlock* block : placed_.model().parameters()) {
      for (const auto& parameter : block->parameters())
        recorded.parameters.push_back(
            {parameter->name(), parameter->shape(), std::max(1.0, terms[parameter->name()])});
    }
  }

  const RecordOptions& options_;
  OpenedRun run_;
  PlacedModel& placed_;
  std::optional<Perturbation> perturbation_;
  std::optional<Optimizer> optimizer_;
  std::optional<TrainingBatches> batches_;
  std::optional<TrainingStep> step_;
  std::int64_t next_part_ = 0;
};

}  // namespace

RecordedRun record_run(const Configuration& configuration, const std::filesystem::path& folder,
                       Communicator& ranks, const RecordOptions& options) {
  return Recorder(configuration, folder, ranks, options).record();
}

}  // namespace jigsaw::inline verify
