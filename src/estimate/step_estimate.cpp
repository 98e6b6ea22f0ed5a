#include "estimate/step_estimate.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "samples/prefetch.h"
#include "train/training_batches.h"

namespace jigsaw::inline estimate {

double RankEstimate::total_sent_bytes() const {
  return std::accumulate(sent_bytes.begin(), sent_bytes.end(), 0.0);
}

namespace {

/// Of a part of a batch: the states of each field that the rank's channels need, each once; what does not
/// change is read once for all. Stored as 4 bytes a value.
double file_bytes(const OpenedRun& run, int leads) {
  constexpr double kStored = 4;
  const Configuration& config = run.configuration();
  const PlacedModel& placed = run.placed();
  const Box input = placed.input_box(placed.samples()),
            target = placed.target_box(run.loss(), placed.samples());
  std::set<std::pair<Field, Time>> of_input, of_target;
  const auto covers = [](const Box& box, std::size_t channel) {
    const int last = box.extent.rank() - 1;
    return static_cast<std::int64_t>(channel) >= box.begin[last] &&
           static_cast<std::int64_t>(channel) < box.end(last);
  };
  const Channels& channels = run.data().channels();
  for (std::size_t c = 0; c < channels.inputs.size(); ++c) {
    const Channel& channel = channels.inputs[c];
    const bool changes = channel.role == Role::kPrognostic || channel.role == Role::kDiagnostic;
    if (changes && covers(input, c)) of_input.emplace(channel.field, channel.offset);
    for (int r = 0; r < leads && channel.role == Role::kPrescribed && covers(input, c); ++r)
      of_input.emplace(channel.field, channel.offset + r * config.data.lead());
  }
  const bool of_images = config.data.of_images();
  for (std::size_t c = 0; c < channels.targets.size(); ++c) {
    const Channel& channel = channels.targets[c];
    if (!covers(target, of_images && config.data.classes > 0 ? 0 : c)) continue;
    const bool increment = !of_images && config.data.predict == Predict::kIncrement;
    if (of_images || (increment && channel.role == Role::kPrognostic)) of_target.emplace(channel.field, 0);
    for (int r = 1; r <= leads && !of_images; ++r) of_target.emplace(channel.field, r * config.data.lead());
  }
  const auto points = [](const Box& box) {
    return static_cast<double>(box.extent.count(0, box.extent.rank() - 1));
  };
  // What both need of the same points is read once.
  const auto same = [&](const Shape& a, const Shape& b) {
    return std::equal(a.begin(), a.begin() + a.rank() - 1, b.begin());
  };
  if (same(input.begin, target.begin) && same(input.extent, target.extent)) {
    of_input.merge(of_target);
    of_target.clear();
  }
  return kStored * (points(input) * static_cast<double>(of_input.size()) +
                    points(target) * static_cast<double>(of_target.size()));
}

Json coordinates_of(const Mesh& mesh) {
  Json coordinates = Json::object();
  for (int axis = 0; axis < mesh.shape().axes; ++axis)
    coordinates[mesh.axis_name(axis)] = mesh.coordinate(axis);
  return coordinates;
}

}  // namespace

RankEstimate estimate_rank(const EstimatedRun& estimated, int rank, const KnownPlans& known,
                           KnownPlans* plans) {
  const Configuration& config = estimated.configuration;
  const int leads = config.train.rollout.most();
  Context context = Context::make_meta();
  StepClock clock;
  const auto world = make_record_communicator(context, rank, estimated.ranks, &clock);
  OpenedRun run(config, described_objective(config, estimated.data), *world,
                estimated.machine.costs(config.train), known == nullptr ? std::vector<BlockPlan>() : *known);
  PlacedModel& placed = run.placed();
  Optimizer optimizer(placed.rank(), placed.model().parameters(), config.optimizer);
  const Machine machine = estimated.machine.on(placed.mesh().shape(), config.train);
  // As runs do, whose reference kernels stream by the constants of plans.
  if (estimated.ranks > 1 && config.train.precision != Precision::kFloat64)
    placed.plans().set_machine(std::make_shared<const Machine>(machine));
  const Traffic before = world->traffic();
  clock.begin(placed.rank().mesh, machine, context);
  RankEstimate result;
  static_cast<StepCount&>(result) = count_step(run, optimizer);
  clock.end();

  result.rank = rank;
  result.coordinates = coordinates_of(placed.mesh());
  if (estimated.machine.device == Device::kCuda) {
    hold_on_gpu(config.train, result);
  } else {
    const std::int64_t batch = bytes_of(batch_of_shapes(placed, run.loss(), leads));
    const ReadAhead reading = ReadAhead::within_budget(batch, config.data.workers);
    const auto ahead = static_cast<std::int64_t>(reading.depth) * batch;
    result.memory_bytes += ahead;
    result.input_bytes += ahead;
  }
  for (std::size_t kind = 0; kind < result.sent_bytes.size(); ++kind)
    result.sent_bytes[kind] = world->traffic().sent_bytes[kind] - before.sent_bytes[kind];
  result.traffic = clock.traffic();
  result.file_bytes = static_cast<double>(config.train.accumulate) * file_bytes(run, leads);
  result.samples_read =
      static_cast<double>(config.train.accumulate * placed.input_box(placed.samples()).extent[0]);
  result.compute_seconds = clock.computed();
  result.stalled_seconds = clock.stalled();
  if (estimated.machine.read_bytes_per_second > 0)
    result.read_seconds = result.file_bytes / estimated.machine.read_bytes_per_second;
  result.seconds = std::max(clock.seconds(), result.read_seconds);
  if (plans != nullptr) *plans = std::make_shared<const std::vector<BlockPlan>>(placed.block_plans());
  return result;
}

}  // namespace jigsaw::inline estimate
