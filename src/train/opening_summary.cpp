#include "train/opening_summary.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "array/host_view.h"
#include "base/text.h"
#include "base/trace.h"
#include "comm/agreement.h"
#include "optim/owned_parameters.h"
#include "optim/registry.h"
#include "samples/dataset.h"
#include "samples/read_layout.h"
#include "task/metric.h"
#include "train/data_report.h"
#include "train/step_count.h"

namespace jigsaw::inline train {

namespace {

/// A paragraph of the summary in lines of 80 columns, wherever it is read.
void tell(Log& log, const std::string& line) {
  for (const std::string& part : wrapped(line, 80, 2)) log.info(part);
}

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

/// Over ranks, each number by itself; `most` is that of the sums of a rank's three.
struct MemoryRange {
  std::array<double, 3> least{}, greatest{};  ///< parameters with gradients, optimizer, activations
  double most = 0;
  double peak = 0;  ///< of what stands at one moment
  int fullest = 0;  ///< the first of the ranks that hold the most
  double flops = 0;
};

std::array<double, 3> numbers_of(const StepCount& memory) {
  return {static_cast<double>(memory.parameter_bytes + memory.gradient_bytes),
          static_cast<double>(memory.optimizer_bytes), static_cast<double>(memory.activation_bytes)};
}

/// Of the ranks that are there. Collective.
MemoryRange range_over(Communicator& world, const StepCount& own) {
  const std::array<double, 3> numbers = numbers_of(own);
  const double all = numbers[0] + numbers[1] + numbers[2];
  const auto greatest = world.all_reduce(
      std::array{numbers[0], numbers[1], numbers[2], all, own.flops, static_cast<double>(own.memory_bytes)},
      ReduceOp::kMax);
  const auto least = world.all_reduce(
      std::array{numbers[0], numbers[1], numbers[2],
                 all == greatest[3] ? static_cast<double>(world.rank()) : static_cast<double>(world.size())},
      ReduceOp::kMin);
  return {{least[0], least[1], least[2]},
          {greatest[0], greatest[1], greatest[2]},
          greatest[3],
          greatest[5],
          static_cast<int>(least[3]),
          greatest[4]};
}

/// Of ranks that are only planned for.
MemoryRange range_of(const std::vector<std::pair<int, StepCount>>& ranks) {
  MemoryRange range;
  for (const auto& [rank, memory] : ranks) {
    const std::array<double, 3> numbers = numbers_of(memory);
    const double all = numbers[0] + numbers[1] + numbers[2];
    if (all > range.most) range.fullest = rank;
    range.most = std::max(range.most, all);
    range.peak = std::max(range.peak, static_cast<double>(memory.memory_bytes));
    range.flops = std::max(range.flops, memory.flops);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      range.least[i] = &memory == &ranks.front().second ? numbers[i] : std::min(range.least[i], numbers[i]);
      range.greatest[i] = std::max(range.greatest[i], numbers[i]);
    }
  }
  return range;
}

MemoryRange memory_of(OpenedRun& run, int ranks) {
  Communicator& world = run.world();
  const Configuration& configuration = run.configuration();
  const SampleSource& data = run.data();
  const TracePause untraced;  // what follows is planned, not done
  CostModel costs = run.placed().plans().model();
  costs.measured = nullptr;  // for the same is said at each start
  std::vector<std::pair<int, StepCount>> planned;
  together(world, [&] {
    const bool here = ranks == world.size();
    for (const int rank : here ? std::vector{world.rank()} : std::vector{0, ranks - 1}) {
      StepCount count = count_step(configuration, {data.grid().shape(), data.channels()}, rank, ranks, costs);
      if (world.context().device() == Device::kCuda) hold_on_gpu(configuration.train, count);
      planned.emplace_back(rank, count);
    }
  });
  return ranks == world.size() ? range_over(world, planned.front().second) : range_of(planned);
}

std::string range_text(double least, double greatest) {
  const std::string low = human_bytes(static_cast<std::int64_t>(least)),
                    high = human_bytes(static_cast<std::int64_t>(greatest));
  return low == high ? high : concat(low, " to ", high);
}

void tell_memory(Log& log, const MemoryRange& range, int ranks) {
  char work[64];
  std::snprintf(work, sizeof work, "%.3g TFLOP", range.flops * 1e-12);
  tell(log, concat(ranks == 1 ? std::string("memory: ") : concat("memory of each of ", ranks, " ranks: "),
                   range_text(range.least[0], range.greatest[0]), " for parameters and gradients, ",
                   range_text(range.least[1], range.greatest[1]), " for the optimizer, about ",
                   range_text(range.least[2], range.greatest[2]), " for activations; ",
                   ranks == 1 ? std::string()
                              : concat("the most, ", human_bytes(static_cast<std::int64_t>(range.most)),
                                       " together, on rank ", range.fullest, "; "),
                   "a step takes ", ranks == 1 ? "" : "a rank up to ", work));
}

/// What optimizer.groups make of the parameters, where there are any.
void tell_groups(Log& log, OpenedRun& run) {
  const OptimizerOptions& options = common_options(run.configuration().optimizer);
  if (options.groups.empty()) return;
  std::int64_t trained = 0, frozen = 0, statistics = 0;
  std::vector<std::string> groups;
  for (const GroupShare& share : group_shares(run.placed().model().parameters(), options)) {
    (share.frozen ? frozen : trained) += share.parameters;
    (share.frozen ? frozen : statistics) += share.statistics;
    if (share.tensors == 0) continue;
    groups.push_back(concat(
        share.match.empty() ? "all others" : concat("\"", share.match, "\""), ": ",
        counted(share.tensors, "tensor"), " of ", share.parameters + share.statistics,
        share.frozen ? ", frozen"
                     : concat(", learning rate ", share.learning_rate, ", decay ", share.weight_decay)));
  }
  tell(log, concat("optimizer: ", trained, " parameters are trained, ", frozen, " are frozen",
                   statistics > 0 ? concat(", ", statistics, " are running statistics") : "", "; ",
                   join(groups, "; ")));
}

void tell_model(Log& log, OpenedRun& run, int ranks) {
  const Configuration& configuration = run.configuration();
  const Mesh& mesh = run.placed().mesh();
  tell(log, concat("model: ", configuration.model.type(), ", ", count_parameters(run.placed().model()),
                   " parameters"));
  tell_groups(log, run);
  if (const EnsembleOptions& ensemble = configuration.ensemble; ensemble.noise_channels() > 0) {
    tell(log, concat("ensemble: ", counted(ensemble.members, "member"), " of each sample; noise in ",
                     counted(ensemble.local_noise, "channel"), " of points and ",
                     counted(ensemble.global_noise, "channel"), " of whole fields"));
  }
  tell(log, concat("mesh: ", counted(ranks, "rank"), ", ", axes_of(mesh), "; ",
                   run.placed().description().dump()));
}

/// What this mesh makes rank 0 fetch beside what it needs.
void tell_reading(Log& log, OpenedRun& run) {
  const auto* data = dynamic_cast<const Dataset*>(&run.data());
  if (data == nullptr) return;
  constexpr double kTooMuch = 1.5;
  constexpr std::int64_t kWorthAWord = std::int64_t{1} << 20;
  const Box input = run.placed().input_box(1);
  const Box plane{{input.begin[1], input.begin[2]}, {input.extent[1], input.extent[2]}};
  const ReadCost cost = cost_of_reading(data->files().storage(), plane);
  if (cost.wanted == 0) return;
  char ratio[32];
  std::snprintf(ratio, sizeof ratio, "%.3g", cost.amplification());
  const std::string line = concat("reading: of a state rank 0 needs ", human_bytes(cost.wanted),
                                  " and fetches ", human_bytes(cost.fetched), ", ", ratio, " times as much");
  if (cost.amplification() < kTooMuch || cost.fetched - cost.wanted < kWorthAWord) return tell(log, line);
  const Mesh& mesh = run.placed().mesh();
  const Shape pieces{mesh.size(mesh.domain(0)), mesh.size(mesh.domain(1))};
  const Shape suits = chunks_for(data->grid().shape(), pieces, sizeof(float));
  log.warn(
      concat(line, ": ", cost.worst, " in ", cost.path,
             cost.chunks.rank() == 0 ? std::string(" stands in one piece")
                                     : concat(" stands in chunks of ", cost.chunks),
             cost.format == "NetCDF" ? "; `jigsaw-train rechunk` writes it in" : "; this mesh would do with",
             " chunks of ", suits[0], " rows and ", suits[1], " columns of one time"));
}

/// What is to begin behind the last step.
void tell_never_reached(Log& log, const RolloutOptions& rollout, const Schedule& schedule,
                        std::int64_t steps) {
  std::vector<std::string> leads, falls;
  for (std::size_t i = 0; i < rollout.from.size(); ++i) {
    if (rollout.from[i] > steps)
      leads.push_back(concat(counted(rollout.leads[i], "lead"), " from step ", rollout.from[i]));
  }
  for (const std::int64_t done : schedule.milestones()) {
    if (done >= steps) falls.push_back(concat(done));
  }
  const std::string ends = concat(" what the training does not reach, which ends with step ", steps, ": ");
  if (!leads.empty()) log.warn(concat("train.rollout has", ends, join(leads, ", ")));
  if (!falls.empty()) log.warn(concat("schedule.at has", ends, join(falls, ", ")));
}

void tell_steps(Log& log, const OpenedRun& run) {
  const TrainOptions& train = run.configuration().train;
  const auto samples = static_cast<double>(run.seen().in(run.total_steps(), train.batch_size));
  char epochs[32];
  std::snprintf(epochs, sizeof epochs, "%.4g",
                samples / static_cast<double>(run.data().count(Split::kTrain)));
  tell(log, concat("training: ", counted(run.total_steps(), "step"), " with ",
                   counted(train.batch_size, "sample"), " each, ", epochs, " epochs"));
  const std::int64_t steps = run.total_steps();
  const double rate = common_options(run.configuration().optimizer).learning_rate;
  const auto schedule = make_schedule(run.configuration().schedule, rate);
  const double last = schedule->factor(steps, steps);
  tell_never_reached(log, train.rollout, *schedule, steps);
  constexpr double kRoundings = 1e-9;
  if (last > 1 + kRoundings) {
    log.warn(
        concat("schedule.final_learning_rate is above optimizer.learning_rate: the learning rate rises to ",
               last, " times of that"));
  }
  if (last >= 1 || schedule->factor(steps + 1, steps + 1) <= last) return;  // it does not rise in the end
  char part[32];
  std::snprintf(part, sizeof part, "%.3g", 100 * last);
  log.warn(concat("schedule.warmup_steps is more than all steps of the training: its last one has ", part,
                  " % of the learning rate"));
}

void tell_best(Log& log, const CheckpointOptions& options) {
  if (options.best.empty()) return;
  const std::string remark = choice_remark("checkpoint.best_is", options.best, options.best_is);
  if (!remark.empty()) log.warn(remark);
}

}  // namespace

void tell_opening(Log& log, OpenedRun& run, int ranks) {
  const MemoryRange memory = memory_of(run, ranks);
  const MemoryRoom room = memory_room(run.placed().mesh().world());
  together(run.world(), [&] {
    if (!log.speaks()) return;
    const DataReport report = report_data(run.configuration(), run.data());
    for (const std::string& line : report.lines) tell(log, line);
    for (const std::string& warning : report.warnings) log.warn(warning);
    tell_model(log, run, ranks);
    tell_memory(log, memory, ranks);
    const std::string beyond = memory_warning(memory.peak, run.configuration(), room);
    if (!beyond.empty()) log.warn(beyond);
    tell_reading(log, run);
    tell_steps(log, run);
    tell_best(log, run.configuration().checkpoint);
  });
}

void tell_missing(Log& log, const Batch& batch, OpenedRun& run) {
  const std::vector<Channel>& targets = run.data().channels().targets;
  const Box box = run.placed().target_box(run.loss(), run.placed().samples());
  const std::int64_t first = box.begin[box.begin.rank() - 1], channels = box.extent.back();
  // Of each target its values, and behind them those that are missing.
  std::vector<double> counts(2 * targets.size());
  for (const Array& target : batch.targets) {
    visit(target.dtype(), [&](auto zero) {
      const HostView<const decltype(zero)> values(target);
      for (std::size_t i = 0; i < values.size(); ++i) {
        // Several regions are of one target.
        const std::size_t channel = std::min(
            static_cast<std::size_t>(first + static_cast<std::int64_t>(i) % channels), targets.size() - 1);
        counts[channel] += 1;
        counts[targets.size() + channel] += std::isnan(static_cast<double>(values[i])) ? 1 : 0;
      }
    });
  }
  const std::vector<double> sums = run.world().all_reduce(counts, ReduceOp::kSum);
  double all = 0, missing = 0;
  std::vector<std::string> absent;
  for (std::size_t channel = 0; channel < targets.size(); ++channel) {
    all += sums[channel];
    missing += sums[targets.size() + channel];
    if (sums[channel] > 0 && sums[targets.size() + channel] == sums[channel])
      absent.push_back(targets[channel].name);
  }
  if (missing == 0) return tell(log, "in the first batch every target value is there");
  char part[32];
  std::snprintf(part, sizeof part, "%.3g %%", 100 * missing / all);
  tell(log, concat("in the first batch ", part, " of the target values are missing or do not count"));
  if (!absent.empty())
    log.warn(concat("what was read of the first batch has no value of the target ", join(absent, ", ")));
}

}  // namespace jigsaw::inline train
