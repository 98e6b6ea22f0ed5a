// What is said of a step of any model, against the same step made on data by ranks that are threads: memory
// by purpose, what each collective sends along each set of axes and in how many calls, and what is read.
#include <gtest/gtest.h>

#include <map>

#include "base/trace.h"
#include "comm/thread/run_ranks.h"
#include "config/config.h"
#include "estimate/step_estimate.h"
#include "samples/sample_data.h"
#include "support/temporary_folder.h"
#include "train/training_batches.h"
#include "train/training_step.h"

namespace jigsaw {
namespace real_step_test {

/// Calls and bytes of one kind of collective.
struct Sum {
  std::int64_t calls = 0;
  double bytes = 0;
  bool operator==(const Sum&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Sum& sum) {
  return out << sum.calls << " calls of " << sum.bytes << " bytes";
}

struct Seen {
  std::int64_t parameter_bytes = 0, gradient_bytes = 0, optimizer_bytes = 0, activation_bytes = 0;
  std::array<double, kCollectives> sent_bytes{};
  std::map<std::string, Sum> traffic;  ///< by "kind along axes"
  std::int64_t bytes_read = 0;
};

/// What a rank that made its first step has held, sent and read in it.
Seen step_on(Communicator& world, const Configuration& configuration, const MachineModel& model) {
  OpenedRun run(configuration, open_objective(configuration, "", world), world,
                model.costs(configuration.train));
  PlacedModel& placed = run.placed();
  placed.plans().set_machine(
      std::make_shared<const Machine>(model.on(placed.mesh().shape(), configuration.train)));
  const Context& context = placed.rank().context;
  Optimizer optimizer(placed.rank(), placed.model().parameters(), configuration.optimizer);
  TrainingBatches batches(run.configuration(), run.objective(), placed);
  TrainingStep step(run, optimizer, 1);
  const Traffic before = world.traffic();
  const std::int64_t read_before = run.data().bytes_read();
  const auto trace = std::make_shared<EventTrace>();
  const TracesFor traced(trace, "main");
  trace->record(true);
  std::int64_t part = 0;
  const StepResult result = step.run(1, [&] { return batches.read(part++, context.host()); });
  trace->record(false);
  EXPECT_TRUE(result.finite);

  Seen seen{optimizer.parameter_bytes(), context.arena().peak_bytes(Purpose::kGradients),
            optimizer.optimizer_bytes(), context.arena().peak_bytes(Purpose::kActivations)};
  for (std::size_t kind = 0; kind < seen.sent_bytes.size(); ++kind)
    seen.sent_bytes[kind] = world.traffic().sent_bytes[kind] - before.sent_bytes[kind];
  for (const auto& [thread, events] : trace->events()) {
    for (const TraceEvent& event : events) {
      if (event.kind != TraceKind::kStart) continue;
      Sum& sum = seen.traffic[event.name + " along " + event.layer];
      ++sum.calls;
      sum.bytes += event.bytes;
    }
  }
  seen.bytes_read = run.data().bytes_read() - read_before;
  return seen;
}

std::map<std::string, Sum> traffic_of(const RankEstimate& estimate) {
  std::map<std::string, Sum> sums;
  for (const auto& [where, traffic] : estimate.traffic) {
    if (where.second == Collective::kControl) continue;
    sums[std::string(name(where.second)) + " along " + where.first] = {traffic.calls, traffic.bytes};
  }
  return sums;
}

struct Case {
  const char* data;
  const char* model;
  int ranks;
  const char* more;       ///< mesh, choices, and a sample a group: states that samples share are read once
  int gpus_per_node = 0;  ///< by whose constants blocks are planned; 0: by those of processors
};

TEST(RealStep, IsWhatIsSaidOfItToTheByte) {
  const testing::TemporaryFolder folder;
  write_sample_data({.months = 1}, folder.path());
  const char* const fields = R"({
    "variables": ["t2m", "z"], "forcings": ["latitude", "time_of_day"], "input_hours": [-6, 0], "lead_hours": 6,
    "predict": "increment", "train": ["2021-01-02", "2021-01-20"]})";
  const char* const volume = R"({
    "task": "denoise", "dims": ["depth", "height", "width"], "variables": ["t2m"], "crop": [8, 8, 8],
    "noise_sigma": 5, "predict": "increment", "train": {"depth": [0, 99]}})";
  const char* const unet = R"({"type": "unet", "widths": [8, 16], "norm_groups": 4})";
  const char* const vit =
      R"({"type": "vit", "patch": [5, 7], "embed_dim": 16, "depth": 2, "heads": 4, "dropout": 0.1})";
  const char* const mixer = R"({"type": "weathermixer", "patch": [4, 3], "embed_dim": 256, "depth": 1})";
  const char* const swin =
      R"({"type": "swin", "patch": [4, 3], "window": [5, 4], "embed_dim": 16, "depth": 2, "heads": 4})";
  const char* const sfno = R"({"type": "sfno", "embed_dim": 12, "depth": 2, "scale": 2})";
  const std::vector<Case> cases = {
      {fields, unet, 4, R"({"mesh": {"domain": [2, 1], "tensor": 2}, "train": {"batch_size": 1}})"},
      {fields, unet, 2, R"({"mesh": {"data": 2}, "zero": "parameters", "train": {"batch_size": 2}})"},
      {fields, vit, 3, R"({"mesh": {"domain": [1, 3]}, "train": {"batch_size": 1}})"},
      {fields, vit, 2, R"({"mesh": {"tensor": 2}, "train": {"batch_size": 1, "recompute": "block"}})"},
      {fields, swin, 4,
       R"({"mesh": {"data": 2, "domain": [2, 1]}, "zero": "optimizer", "train": {"batch_size": 2}})"},
      {fields, sfno, 4, R"({"mesh": {"domain": [2, 1], "tensor": 2}, "train": {"batch_size": 1}})"},
      {volume, unet, 4, R"({"mesh": {"domain": [2, 1, 2]}, "train": {"batch_size": 1}})"},
      {fields, unet, 4, R"({"mesh": {"domain": [2, 1], "tensor": 2}, "train": {"batch_size": 1}})", 2},
      {fields, mixer, 4, R"({"mesh": {"domain": [2, 1], "tensor": 2}, "train": {"batch_size": 1}})", 2},
      {fields, mixer, 4, R"({"mesh": {"domain": [2, 1], "tensor": 2}, "train": {"batch_size": 1}})", 4}};
  bool other_plan = false;
  for (const Case& each : cases) {
    SCOPED_TRACE(std::string(each.model) + " on " + each.more);
    const MachineModel machine{.device = each.gpus_per_node > 0 ? Device::kCuda : Device::kCpu,
                               .flops_per_second = 2e10,
                               .memory_bytes_per_second = 1e10,
                               .ranks_per_node = std::max(each.gpus_per_node, 1),
                               .links = {{1e9, 1e-5}}};
    Json json = {{"data", Json::parse(each.data)}, {"model", Json::parse(each.model)}};
    json["data"]["files"] = {folder.path() + "/*.nc"};
    json.merge_patch(Json::parse(each.more));
    const auto configuration = parse<Configuration>(json);
    std::vector<Seen> seen(static_cast<std::size_t>(each.ranks));
    run_ranks(
        each.ranks, {.time_limit_seconds = 600}, [](int) { return Context::make_host(Backend::kCpu, 1); },
        [&](Communicator& world) {
          ASSERT_EQ(world.size(), each.ranks);
          seen[static_cast<std::size_t>(world.rank())] = step_on(world, configuration, machine);
        });
    const DataDescription data = describe_data(configuration.data, "");
    for (int rank = 0; rank < each.ranks; ++rank) {
      SCOPED_TRACE(rank);
      const RankEstimate said = estimate_rank({configuration, data, machine, each.ranks}, rank);
      const Seen& real = seen[static_cast<std::size_t>(rank)];
      EXPECT_EQ(said.parameter_bytes, real.parameter_bytes);
      EXPECT_EQ(said.gradient_bytes, real.gradient_bytes);
      EXPECT_EQ(said.optimizer_bytes, real.optimizer_bytes);
      EXPECT_EQ(said.activation_bytes, real.activation_bytes);
      EXPECT_GT(real.activation_bytes, 0);
      EXPECT_EQ(said.sent_bytes, real.sent_bytes);
      EXPECT_EQ(traffic_of(said), real.traffic);
      EXPECT_FALSE(real.traffic.empty());
      // Estimates take 4 bytes a value; the files have 2.
      EXPECT_EQ(said.file_bytes, 2.0 * static_cast<double>(real.bytes_read));
      EXPECT_GT(real.bytes_read, 0);
    }
    if (each.gpus_per_node == 0) continue;
    MachineModel processors = machine;
    processors.device = Device::kCpu;
    other_plan = other_plan || traffic_of(estimate_rank({configuration, data, processors, each.ranks}, 0)) !=
                                   seen[0].traffic;
  }
  EXPECT_TRUE(other_plan) << "plans for processors would send the same, so that none of this shows";
}

}  // namespace real_step_test
}  // namespace jigsaw
