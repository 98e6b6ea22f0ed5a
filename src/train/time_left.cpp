#include "train/time_left.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/text.h"

namespace jigsaw::inline train {

TimeLeft::TimeLeft(std::int64_t steps, std::int64_t validate_every, std::int64_t save_every)
    : steps_(steps), validate_every_(validate_every), save_every_(save_every) {}

void TimeLeft::step(double seconds) {
  if (!std::exchange(begun_, true)) return;
  if (first_.size() < kEnough) first_.push_back(seconds);
  if (seen_++ % each_ == 0) sums_.push_back(0);
  sums_.back() += seconds;
  if (sums_.size() < kSums || seen_ % each_ != 0) return;
  for (std::size_t i = 0; i < kSums / 2; ++i) sums_[i] = sums_[2 * i] + sums_[2 * i + 1];
  sums_.resize(kSums / 2);
  each_ *= 2;
}

double TimeLeft::step_seconds() const {
  if (first_.size() >= kEnough) {
    const std::int64_t wanted = std::max(seen_ / 2, kFewest);
    double sum = 0;
    std::int64_t steps = 0;
    for (std::size_t i = sums_.size(); i-- > 0 && steps < wanted;) {
      sum += sums_[i];
      steps += i + 1 == sums_.size() ? (seen_ - 1) % each_ + 1 : each_;
    }
    return sum / static_cast<double>(steps);
  }
  std::vector<double> sorted = first_;
  const auto middle = sorted.begin() + std::ssize(sorted) / 2;
  std::nth_element(sorted.begin(), middle, sorted.end());
  return std::accumulate(first_.begin(), first_.end(), 0.0,
                         [&](double sum, double seconds) { return sum + std::min(seconds, 2 * *middle); }) /
         static_cast<double>(first_.size());
}

std::int64_t TimeLeft::times(std::int64_t every, std::int64_t from) const {
  if (every == 0 || from > steps_) return 0;
  const std::int64_t last = steps_ % every == 0 ? 0 : 1;
  return steps_ / every - (from - 1) / every + last;
}

std::optional<double> TimeLeft::after(std::int64_t step, bool with_its_own) const {
  if (first_.empty()) return std::nullopt;
  const std::int64_t from = with_its_own ? step : step + 1;
  return static_cast<double>(steps_ - step) * step_seconds() +
         static_cast<double>(times(validate_every_, from)) * validation_.seconds() +
         static_cast<double>(times(save_every_, from)) * save_.seconds();
}

std::optional<std::string> TimeLeft::expectation(std::int64_t step) const {
  if (seen_ != kEnoughToExpect || step >= steps_) return std::nullopt;
  return concat("expected time: ", human_seconds(*after(step, false)), " for the ", steps_ - step,
                steps_ - step == 1 ? " step" : " steps", " to come, with their validations and saves");
}

}  // namespace jigsaw::inline train
