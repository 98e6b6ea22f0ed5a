#include "predict/first_not_finite.h"

#include <array>
#include <limits>
#include <tuple>

namespace jigsaw::inline predict {

namespace {

auto order_of_found(const FirstNotFinite::Found& found) {
  return std::tuple(found.step, found.start, found.channel);
}

}  // namespace

void FirstNotFinite::add(int step, std::int64_t start, std::int64_t channel, std::span<const double> counts) {
  for (std::size_t c = 0; c < counts.size(); ++c) {
    if (counts[c] == 0) continue;
    const Found here{0, step, start, channel + static_cast<std::int64_t>(c)};
    if (count_ == 0 || order_of_found(here) < order_of_found(first_)) first_ = here;
    count_ += counts[c];
  }
}

std::optional<FirstNotFinite::Found> FirstNotFinite::find(Communicator& world) const {
  const double count = world.all_reduce(std::array{count_}, ReduceOp::kSum)[0];
  if (count == 0) return std::nullopt;
  // The least of each number among the ranks that have the least of those before it.
  constexpr double kNone = std::numeric_limits<double>::infinity();
  const std::array<double, 3> own = {static_cast<double>(first_.step), static_cast<double>(first_.start),
                                     static_cast<double>(first_.channel)};
  std::array<double, 3> least{};
  bool mine = count_ > 0;
  for (std::size_t i = 0; i < own.size(); ++i) {
    least[i] = world.all_reduce(std::array{mine ? own[i] : kNone}, ReduceOp::kMin)[0];
    mine = mine && own[i] == least[i];
  }
  return Found{static_cast<std::int64_t>(count), static_cast<int>(least[0]),
               static_cast<std::int64_t>(least[1]), static_cast<std::int64_t>(least[2])};
}

}  // namespace jigsaw::inline predict
