#include "parallel/machine.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>
#include <vector>

#include "base/error.h"
#include "kernels/contraction.h"
#include "kernels/pointwise.h"

namespace jigsaw::inline parallel {

CostModel Machine::along(const MeshShape& mesh, AxisSet axes, const CostModel& model) const {
  CostModel result = model;
  result.flops_per_second = flops_per_second;
  result.memory_bytes_per_second = memory_bytes_per_second;
  result.network_bytes_per_second = std::numeric_limits<double>::infinity();
  result.latency_seconds = 0;
  for (int axis = 0; axis < mesh.axes; ++axis) {
    const auto a = static_cast<std::size_t>(axis);
    if (!contains(axes, axis) || mesh.size[a] == 1) continue;
    result.network_bytes_per_second = std::min(result.network_bytes_per_second, links[a].bytes_per_second);
    result.latency_seconds = std::max(result.latency_seconds, links[a].latency_seconds);
  }
  return result;
}

namespace {

/// Seconds of the fastest of several tries, on the rank where that is slowest.
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

/// Per second of what a piece of work adds to a part of the tally.
double rate(const Rank& rank, double Tally::*part, const std::function<void()>& work) {
  constexpr int kTries = 5;
  const double before = rank.context.tally().*part;
  work();
  const double once = rank.context.tally().*part - before;
  return once / seconds_of(rank, kTries, work);
}

Array some(const Rank& rank, const Shape& shape) {
  return filled(rank.context, shape, DType::kFloat32, 1.0, Purpose::kWorkspace);
}

/// All ranks send to the next along an axis, and receive from the one before.
Machine::Link link_along(const Rank& rank, int axis) {
  constexpr int kShortTries = 10, kLongTries = 4;
  constexpr std::int64_t kLong = std::int64_t{1} << 19;
  Communicator& group = rank.mesh.communicator(axis_bit(axis));
  const int next = (group.rank() + 1) % group.size(),
            before = (group.rank() + group.size() - 1) % group.size();
  const auto seconds = [&](std::int64_t count, int tries) {
    const Array send = some(rank, {count});
    const Message to{next, 0, count}, from{before, 0, count};
    return seconds_of(rank, tries, [&] { group.exchange(send, {&to, 1}, {&from, 1}, count); });
  };
  const double latency = seconds(1, kShortTries), whole = seconds(kLong, kLongTries);
  return {4.0 * kLong / std::max(whole - latency, 1e-3 * whole), latency};
}

}  // namespace

Machine measure_machine(const Rank& rank) {
  constexpr std::int64_t kSide = 256, kCopied = std::int64_t{1} << 21;
  Machine machine;
  {
    const ContractionSpec spec = ContractionSpec::parse("mk,nk->mn");
    const Array a = some(rank, {kSide, kSide}), b = some(rank, {kSide, kSide});
    machine.flops_per_second = rate(rank, &Tally::flops, [&] {
      for (int i = 0; i < rank.context.threads(); ++i) contract(rank.context, spec, a, b, DType::kFloat32);
    });
  }
  {
    const Array from = some(rank, {kCopied});
    Array into = some(rank, {kCopied});
    machine.memory_bytes_per_second =
        rate(rank, &Tally::bytes, [&] { accumulate(rank.context, into, from); });
  }
  for (int axis = 0; axis < rank.mesh.shape().axes; ++axis) {
    if (rank.mesh.size(axis) > 1) machine.links[static_cast<std::size_t>(axis)] = link_along(rank, axis);
  }
  return machine;
}

}  // namespace jigsaw::inline parallel
