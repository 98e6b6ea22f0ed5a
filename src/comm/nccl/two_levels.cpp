#include "nccl/two_levels.h"

namespace jigsaw::inline nccl {

std::vector<TwoLevels::Run> TwoLevels::runs(const std::vector<std::int64_t>& counts) const {
  const std::vector<std::int64_t> first = offsets(counts);
  std::vector<Run> all;
  std::int64_t place = 0;
  for (int node = 0; node < grid_.nodes; ++node) {
    const std::int64_t count = count_of(counts, node, number_);
    const std::int64_t at = first[static_cast<std::size_t>(rank_at(node, number_))];
    if (count == 0) continue;
    Run* const last = !all.empty() && all.back().count == count ? &all.back() : nullptr;
    if (last != nullptr && last->pieces == 1) last->stride = at - last->first;
    if (last != nullptr && at == last->first + last->pieces * last->stride) {
      ++last->pieces;
    } else {
      all.push_back({1, count, at, 0, place});
    }
    place += count;
  }
  return all;
}

std::int64_t TwoLevels::elements(const std::vector<std::int64_t>& counts) const {
  std::int64_t sum = 0;
  for (int node = 0; node < grid_.nodes; ++node) sum += count_of(counts, node, number_);
  return sum;
}

std::int64_t TwoLevels::own_place(const std::vector<std::int64_t>& counts) const {
  std::int64_t sum = 0;
  for (int node = 0; node < node_; ++node) sum += count_of(counts, node, number_);
  return sum;
}

TwoLevels::Round TwoLevels::sums_within(const std::vector<std::int64_t>& counts) const {
  const std::vector<std::int64_t> first = offsets(counts);
  const std::vector<Run> all = runs(counts);
  Round round;
  int others = 0;
  for (int number = 0; number < grid_.local; ++number) {
    if (number == number_) continue;
    const int peer = rank_at(node_, number);
    for (int node = 0; node < grid_.nodes; ++node) {
      round.sends.push_back(
          {peer, first[static_cast<std::size_t>(rank_at(node, number))], count_of(counts, node, number)});
    }
    for (const Run& run : all) {
      std::int64_t to = (grid_.local - 1) * run.place + others * run.elements();
      for (int piece = 0; piece < run.pieces; ++piece, to += run.count)
        round.receives.push_back({peer, to, run.count});
    }
    ++others;
  }
  return round;
}

TwoLevels::Round TwoLevels::sums_between(const std::vector<std::int64_t>& counts) const {
  Round round;
  const std::int64_t own = count_of(counts, node_, number_);
  std::int64_t place = 0, to = 0;
  for (int node = 0; node < grid_.nodes; ++node) {
    const std::int64_t count = count_of(counts, node, number_);
    if (node != node_) {
      round.sends.push_back({rank_at(node, number_), place, count});
      round.receives.push_back({rank_at(node, number_), to, own});
      to += own;
    }
    place += count;
  }
  return round;
}

TwoLevels::Round TwoLevels::pieces_between(const std::vector<std::int64_t>& counts) const {
  const std::vector<std::int64_t> first = offsets(counts);
  Round round;
  for (int node = 0; node < grid_.nodes; ++node) {
    const int peer = rank_at(node, number_);
    round.sends.push_back({peer, 0, count_of(counts, node_, number_)});
    round.receives.push_back({peer, first[static_cast<std::size_t>(peer)], count_of(counts, node, number_)});
  }
  return round;
}

TwoLevels::Round TwoLevels::pieces_within(const std::vector<std::int64_t>& counts) const {
  const std::vector<std::int64_t> first = offsets(counts);
  Round round;
  for (int number = 0; number < grid_.local; ++number) {
    if (number == number_) continue;
    const int peer = rank_at(node_, number);
    for (int node = 0; node < grid_.nodes; ++node) {
      const auto from = static_cast<std::size_t>(rank_at(node, number_)),
                 to = static_cast<std::size_t>(rank_at(node, number));
      round.sends.push_back({peer, first[from], counts[from]});
      round.receives.push_back({peer, first[to], counts[to]});
    }
  }
  return round;
}

}  // namespace jigsaw::inline nccl
