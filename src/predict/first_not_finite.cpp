#include "predict/first_not_finite.h"

#include <array>
#include <tuple>

#include "predict/least_of_ranks.h"

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
  std::optional<FindOrder> own;
  if (count_ > 0) {
    own = {static_cast<double>(first_.step), static_cast<double>(first_.start),
           static_cast<double>(first_.channel)};
  }
  const auto [step, start, channel] = least_of_ranks(world, {own})[0].value();
  return Found{static_cast<std::int64_t>(count), static_cast<int>(step), static_cast<std::int64_t>(start),
               static_cast<std::int64_t>(channel)};
}

}  // namespace jigsaw::inline predict
