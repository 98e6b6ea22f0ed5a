// How much of a step's transfers hides behind its products, in seconds: mixer blocks on two ranks. Prints one
// JSON line per mesh and network: seconds of a step without transfers, seconds of the transfers alone, and of
// a step with both, as a ratio to the larger of the two. Seconds are those of the fastest step: others
// measure what else the machine does. (What order alone decides, tests/layers/overlap_test.cpp judges on a
// virtual clock.)
//
//   overlap                   ranks that are threads, with a simulated network of several speeds
//   mpirun -n 2 overlap --mpi over MPI as it is; without transfers: a communicator that moves nothing;
//   transfers
//                             alone: by the bandwidth and latency of messages. Each once with transfers that
//                             progress only when a rank waits, and once as in a run, in turn; before that the
//                             same of single messages behind one product
#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <functional>
#include <iostream>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "benchmark_model.h"
#include "comm/mpi/mpi_session.h"
#include "comm/record/record.h"
#include "comm/thread/run_ranks.h"
#include "kernels/contraction.h"
#include "kernels/flush_to_zero.h"
#include "layers/weathermixer.h"

namespace {

using namespace jigsaw;

struct MeshSizes {
  std::string name;
  std::vector<int> domain;
  int tensor;
};
std::vector<MeshSizes> meshes() {
  return {{"domain [2,1]", {2, 1}, 1}, {"tensor 2", {1, 1}, 2}};
}

struct Network {
  double bytes_per_second = 0;  ///< 0: transfers take no time
  double latency_seconds = 0;

  double seconds(double bytes, double calls) const {
    return bytes / bytes_per_second + calls * latency_seconds;
  }
};

struct Measured {
  double seconds = std::numeric_limits<double>::infinity();  ///< of the fastest step
  double sent_bytes = 0;                                     ///< of a step, by the busiest rank
  double calls = 0;
};

/// What a core of a usual machine does.
CostModel costs() {
  return {.flops_per_second = 1e11, .memory_bytes_per_second = 1e10, .network = {2e9, 5e-5}};
}

Measured run_rank(Communicator& world, const MeshSizes& sizes, const CostModel& cost) {
  constexpr std::size_t kWarmUp = 2, kSteps = 5;
  Mesh mesh(world, 1, sizes.domain, sizes.tensor);
  const Rank rank{world.context(), mesh};
  set_flush_to_zero(1);
  const WeatherMixerOptions mixer{.patch = {4, 4},
                                  .embed_dim = 256,
                                  .depth = 8,
                                  .token_hidden_ratio = 2.0,
                                  .channel_hidden_ratio = 4.0,
                                  .positions = true,
                                  .output_map = false};
  const auto append = [&](Model& into) { append_weathermixer(into, mixer); };
  BenchmarkModel model(rank, {{96, 128}, 16, 16}, append, false, cost);
  std::array<double, kSteps + 2> values{};  // by step the slowest rank's seconds, then bytes and calls
  for (std::size_t step = 0; step < kWarmUp + kSteps; ++step) {
    world.barrier();
    const Traffic before = world.traffic();
    const double seconds = model.step();
    if (step >= kWarmUp) values[step - kWarmUp] = seconds;
    values[kSteps] = world.traffic().total_bytes() - before.total_bytes();
    values[kSteps + 1] = 0;
    for (std::size_t kind = 0; kind < kCollectives; ++kind)
      values[kSteps + 1] += static_cast<double>(world.traffic().calls[kind] - before.calls[kind]);
  }
  const std::vector<double> largest = world.all_reduce(values, ReduceOp::kMax);
  return {*std::min_element(largest.begin(), largest.begin() + kSteps), largest[kSteps], largest[kSteps + 1]};
}

void report(const std::string& network, const MeshSizes& sizes, double compute, double transfer,
            const Measured& both) {
  std::cout << nlohmann::ordered_json{{"benchmark", "overlap"},
                                      {"network", network},
                                      {"mesh", sizes.name},
                                      {"compute_seconds", compute},
                                      {"transfer_seconds", transfer},
                                      {"sent_bytes", both.sent_bytes},
                                      {"calls", both.calls},
                                      {"step_seconds", both.seconds},
                                      {"ratio", both.seconds / std::max(compute, transfer)}}
                   .dump()
            << std::endl;
}

Measured measure_threads(const MeshSizes& sizes, const Network& network, const CostModel& cost) {
  ThreadOptions options;
  options.latency_seconds = network.latency_seconds;
  options.bytes_per_second = network.bytes_per_second;
  Measured measured;
  run_ranks(
      2, options, [](int) { return Context::make_host(Backend::kCpu, 1); },
      [&](Communicator& world) {
        const Measured mine = run_rank(world, sizes, cost);
        if (world.rank() == 0) measured = mine;
      });
  return measured;
}

/// On a network on which transfers take this share of the time of the products.
void run_threads(const MeshSizes& sizes, double share) {
  constexpr double kLatency = 5e-5;
  CostModel cost = costs();
  const Measured alone = measure_threads(sizes, {}, cost);
  const Network network{alone.sent_bytes / (share * alone.seconds), kLatency};
  cost.network.bytes_per_second = network.bytes_per_second;
  const Measured compute = measure_threads(sizes, {}, cost), both = measure_threads(sizes, network, cost);
  report("simulated", sizes, compute.seconds, network.seconds(both.sent_bytes, both.calls), both);
}

double seconds_of(Communicator& world, int times, const std::function<void()>& work) {
  double fastest = std::numeric_limits<double>::infinity();
  for (int i = 0; i < times; ++i) {
    world.barrier();
    const auto start = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    fastest = std::min(fastest, world.all_reduce(std::array{seconds.count()}, ReduceOp::kMax)[0]);
  }
  return fastest;
}

/// Two ranks send each other messages at once.
double exchange_seconds(Communicator& world, std::int64_t count) {
  const Array send = Array::zeros(world.context(), {count}, DType::kFloat32, Purpose::kWorkspace);
  const std::vector<Message> messages = {{(world.rank() + 1) % world.size(), 0, count}};
  return seconds_of(world, 20, [&] { world.exchange(send, messages, messages, count); });
}

/// A message to each other behind one product that lasts about twice as long: the share of the message's time
/// that is not seen.
void report_message(Communicator& world, std::int64_t count, bool progresses) {
  constexpr std::int64_t kSide = 512;
  const ContractionSpec spec = ContractionSpec::parse("mk,nk->mn");
  Context& context = world.context();
  const Array b = Array::zeros(context, {kSide, kSide}, DType::kFloat32);
  const auto product = [&](std::int64_t rows) {
    const Array a = Array::zeros(context, {rows, kSide}, DType::kFloat32);
    return [&context, spec, a, b] { contract(context, spec, a, b, DType::kFloat32); };
  };
  const double transfer = exchange_seconds(world, count), unit = seconds_of(world, 20, product(kSide));
  const auto work = product(static_cast<std::int64_t>(kSide * std::max(1.0, 2 * transfer / unit)));
  const double compute = seconds_of(world, 20, work);
  const Array send = Array::zeros(context, {count}, DType::kFloat32, Purpose::kWorkspace);
  const std::vector<Message> messages = {{(world.rank() + 1) % world.size(), 0, count}};
  const double both = seconds_of(world, 20, [&] {
    Pending pending = world.start_exchange(send, messages, messages, count);
    work();
    pending.wait();
  });
  if (world.rank() > 0) return;
  std::cout << nlohmann::ordered_json{{"benchmark", "message behind a product"},
                                      {"progresses", progresses},
                                      {"bytes", 4 * count},
                                      {"transfer_seconds", transfer},
                                      {"compute_seconds", compute},
                                      {"both_seconds", both},
                                      {"hidden", 1 - (both - compute) / transfer}}
                   .dump()
            << std::endl;
}

int run_mpi() {
  MpiSession session;
  if (session.size() != 2) {
    if (session.rank() == 0)
      std::cerr << "overlap --mpi takes 2 ranks: mpirun -n 2 overlap --mpi" << std::endl;
    return 2;
  }
  Context context = Context::make_host(Backend::kCpu, 1);
  const std::unique_ptr<Communicator> world = session.world(context);
  const auto each_way = [&](const std::function<void(bool progresses)>& measure) {
    for (const bool progresses : {false, true}) {
      session.set_progress(progresses ? MpiOptions{}.progress_seconds : 0);
      measure(progresses);
    }
  };
  for (const int megabytes : {1, 4, 16})
    each_way([&](bool progresses) { report_message(*world, std::int64_t{megabytes} << 18, progresses); });
  constexpr std::int64_t kLarge = std::int64_t{4} << 20;
  Network network;
  network.latency_seconds = exchange_seconds(*world, 1);
  network.bytes_per_second = 4.0 * kLarge / exchange_seconds(*world, kLarge);
  CostModel cost = costs();
  cost.network = {network.bytes_per_second, network.latency_seconds};
  for (const MeshSizes& sizes : meshes()) {
    const auto nobody = make_record_communicator(context, session.rank(), session.size());
    world->barrier();
    const Measured compute = run_rank(*nobody, sizes, cost);
    const double slowest = world->all_reduce(std::array{compute.seconds}, ReduceOp::kMax)[0];
    each_way([&](bool progresses) {
      const Measured both = run_rank(*world, sizes, cost);
      if (session.rank() == 0)
        report(progresses ? "MPI" : "MPI, progress in waits only", sizes, slowest,
               network.seconds(both.sent_bytes, both.calls), both);
    });
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "--mpi") == 0) return run_mpi();
  for (const MeshSizes& sizes : meshes()) {
    for (const double share : {0.25, 0.5, 1.0}) run_threads(sizes, share);
  }
  return 0;
}
