#include "parallel/machine.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>

#include "array/transfer.h"
#include "kernels/contraction.h"
#include "kernels/pointwise.h"

namespace jigsaw::inline parallel {

CostModel Machine::along(const MeshShape& mesh, AxisSet axes, const CostModel& model) const {
  CostModel result = model;
  result.flops_per_second = flops_per_second;
  result.memory_bytes_per_second = memory_bytes_per_second;
  result.network = {std::numeric_limits<double>::infinity(), 0};
  for (int axis = 0; axis < mesh.axes; ++axis) {
    const auto a = static_cast<std::size_t>(axis);
    if (!contains(axes, axis) || mesh.size[a] == 1) continue;
    result.network.bytes_per_second = std::min(result.network.bytes_per_second, links[a].bytes_per_second);
    result.network.latency_seconds = std::max(result.network.latency_seconds, links[a].latency_seconds);
  }
  result.node = ranks_per_node > 1 ? node : result.network;
  result.ranks_per_node = ranks_per_node;
  result.two_levels_from = two_levels_from;
  return result;
}

double seconds_of(const Rank& rank, int tries, const std::function<void()>& work) {
  using Clock = std::chrono::steady_clock;
  double fastest = std::numeric_limits<double>::infinity();
  for (int i = 0; i < tries; ++i) {
    rank.mesh.world().barrier();
    const auto begin = Clock::now();
    work();
    if (DeviceRuntime* const device = rank.context.runtime()) device->synchronise(rank.context.stream());
    fastest = std::min(fastest, std::chrono::duration<double>(Clock::now() - begin).count());
  }
  return rank.mesh.world().all_reduce(std::array{fastest}, ReduceOp::kMax)[0];
}

namespace {

/// How much work is measured.
std::int64_t enough(const Rank& rank, std::int64_t least, std::int64_t most,
                    const std::function<double(std::int64_t)>& seconds) {
  constexpr double kLongEnough = 2e-3;
  std::int64_t amount = least;
  if (rank.context.runtime() == nullptr) return amount;
  while (amount < most && seconds(amount) < kLongEnough) amount *= 2;
  return amount;
}

/// Of tries in rounds, until one is hardly faster than those before: on a machine that does other things,
/// too, the threads of a rank may begin on one core, where each waits for the other's share of time to end.
double steady_seconds_of(const Rank& rank, const std::function<void()>& work) {
  constexpr int kTries = 5, kMostRounds = 40;
  constexpr double kLongEnough = 1e-2, kHardly = 0.9;
  double fastest = std::numeric_limits<double>::infinity(), spent = 0;
  for (int round = 0; round < kMostRounds; ++round) {
    const double seconds = seconds_of(rank, kTries, work);
    const bool steady = seconds > kHardly * fastest;
    fastest = std::min(fastest, seconds);
    spent += kTries * seconds;
    if (steady && spent > kLongEnough) break;
  }
  return fastest;
}

/// Per second of what a piece of work adds to a part of the tally; of the slowest rank, where these have
/// different numbers of threads.
double rate(const Rank& rank, double Tally::*part, const std::function<void()>& work) {
  const double before = rank.context.tally().*part;
  work();
  const double once = rank.context.tally().*part - before;
  const double own = once / steady_seconds_of(rank, work);
  return rank.mesh.world().all_reduce(std::array{own}, ReduceOp::kMin)[0];
}

Array some(const Rank& rank, const Shape& shape, DType type = DType::kFloat32) {
  return filled(rank.context, shape, type, 1.0, Purpose::kWorkspace);
}

/// Of numbers of both signs: a GPU is faster where all are alike, for it takes less power.
Array mixed_square(const Rank& rank, std::int64_t side, DType type) {
  constexpr std::int64_t kPeriod = 251;
  std::vector<double> values(static_cast<std::size_t>(side));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<double>(static_cast<std::int64_t>(i) * 97 % kPeriod) / kPeriod - 0.5;
  const Array edge = constant(rank.context, {side}, type, values);
  return contract(rank.context, ContractionSpec::parse("m,n->mn"), edge, edge, type);
}

/// A product of squares for each thread.
std::function<void()> products(const Rank& rank, DType type, std::int64_t side) {
  return [&rank, type, spec = ContractionSpec::parse("mk,nk->mn"), a = mixed_square(rank, side, type),
          b = mixed_square(rank, side, type)] {
    for (int i = 0; i < rank.context.threads(); ++i) contract(rank.context, spec, a, b, type);
  };
}

/// A sum of two arrays into the first.
std::function<void()> sums(const Rank& rank, std::int64_t count) {
  return [&rank, into = some(rank, {count}), from = some(rank, {count})]() mutable {
    accumulate(rank.context, into, from);
  };
}

/// All ranks send to the next along an axis, and receive from the one before.
Link link_along(const Rank& rank, int axis) {
  constexpr int kShortTries = 10, kLongTries = 4;
  constexpr std::int64_t kLong = std::int64_t{1} << 19, kLongest = std::int64_t{1} << 24;
  Communicator& group = rank.mesh.communicator(axis_bit(axis));
  const int next = (group.rank() + 1) % group.size(),
            before = (group.rank() + group.size() - 1) % group.size();
  const auto seconds = [&](std::int64_t count, int tries) {
    const Array send = some(rank, {count});
    const Message to{next, 0, count}, from{before, 0, count};
    return seconds_of(rank, tries, [&] { group.exchange(send, {&to, 1}, {&from, 1}, count); });
  };
  const std::int64_t count = enough(rank, kLong, kLongest, [&](std::int64_t n) { return seconds(n, 2); });
  const double latency = seconds(1, kShortTries), whole = seconds(count, kLongTries);
  return {4.0 * static_cast<double>(count) / std::max(whole - latency, 1e-3 * whole), latency};
}

}  // namespace

double products_per_second(const Rank& rank, DType type, std::int64_t side) {
  constexpr std::int64_t kMostSide = 8192;
  side = enough(rank, side, kMostSide,
                [&](std::int64_t n) { return seconds_of(rank, 2, products(rank, type, n)); });
  return rate(rank, &Tally::flops, products(rank, type, side));
}

Machine measure_machine(const Rank& rank, DType products) {
  constexpr std::int64_t kSide = 256, kSummed = std::int64_t{1} << 21, kMostSummed = std::int64_t{1} << 27;
  Machine machine;
  machine.flops_per_second = products_per_second(rank, products, kSide);
  const std::int64_t summed =
      enough(rank, kSummed, kMostSummed, [&](std::int64_t n) { return seconds_of(rank, 2, sums(rank, n)); });
  machine.memory_bytes_per_second = rate(rank, &Tally::bytes, sums(rank, summed));
  for (int axis = 0; axis < rank.mesh.shape().axes; ++axis) {
    if (rank.mesh.size(axis) > 1) machine.links[static_cast<std::size_t>(axis)] = link_along(rank, axis);
  }
  return machine;
}

}  // namespace jigsaw::inline parallel
