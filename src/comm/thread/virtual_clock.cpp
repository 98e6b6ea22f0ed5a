#include "comm/thread/virtual_clock.h"

#include <algorithm>

#include "base/text.h"

namespace jigsaw::inline comm {

std::string VirtualClock::Call::to_string() const {
  return concat(name, ": ", bytes, " bytes, started at ", started * 1e3, " ms, waited for from ",
                waited * 1e3, " ms, after ", computed * 1e3, " ms of kernels, until ",
                std::max(waited, arrived) * 1e3, " ms");
}

double VirtualClock::seconds() const {
  double last = 0;
  for (const RankTime& time : times_) last = std::max(last, time.now);
  return last;
}

std::string VirtualClock::longest_waits(std::size_t count) const {
  std::vector<std::pair<const Call*, std::size_t>> calls;
  for (std::size_t rank = 0; rank < times_.size(); ++rank) {
    for (const Call& call : times_[rank].calls) calls.emplace_back(&call, rank);
  }
  std::stable_sort(calls.begin(), calls.end(),
                   [](const auto& a, const auto& b) { return a.first->stalled() > b.first->stalled(); });
  calls.resize(std::min(count, calls.size()));
  std::string text;
  for (const auto& [call, rank] : calls) text += concat("rank ", rank, ": ", call->to_string(), "\n");
  return text;
}

double VirtualClock::compute(int rank, const Tally& tally) {
  const auto r = static_cast<std::size_t>(rank);
  const double seconds = (tally.flops - counted_[r].flops) / rates_.flops_per_second +
                         (tally.bytes - counted_[r].bytes) / rates_.memory_bytes_per_second;
  counted_[r] = tally;
  times_[r].computed += seconds;
  return times_[r].now += seconds;
}

std::size_t VirtualClock::start(int rank, std::string name, double bytes, double link_seconds,
                                Purpose purpose) {
  RankTime& time = times_[static_cast<std::size_t>(rank)];
  time.link += link_seconds;
  time.calls.push_back({.name = std::move(name),
                        .bytes = bytes,
                        .purpose = purpose,
                        .started = time.now,
                        .computed = time.computed});
  return time.calls.size() - 1;
}

void VirtualClock::wait(int rank, std::size_t number, double arrived) {
  RankTime& time = times_[static_cast<std::size_t>(rank)];
  Call& call = time.calls[number];
  call.waited = time.now;
  call.arrived = arrived;
  call.computed = time.computed - call.computed;
  call.finished = true;
  time.stalled += call.stalled();
  time.now = std::max(time.now, arrived);
}

}  // namespace jigsaw::inline comm
