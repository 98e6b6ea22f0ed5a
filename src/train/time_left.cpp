#include "train/time_left.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace jigsaw::inline train {

TimeLeft::TimeLeft(std::int64_t steps, Happens validates, Happens saves)
    : steps_(steps), validates_(std::move(validates)), saves_(std::move(saves)) {}

void TimeLeft::step(double seconds) {
  if (!std::exchange(begun_, true)) return;
  if (seconds_.size() < kWindow) {
    seconds_.push_back(seconds);
    return;
  }
  seconds_[next_] = seconds;
  next_ = (next_ + 1) % kWindow;
}

double TimeLeft::step_seconds() const {
  const auto mean = [&](double most) {
    return std::accumulate(seconds_.begin(), seconds_.end(), 0.0,
                           [&](double sum, double seconds) { return sum + std::min(seconds, most); }) /
           static_cast<double>(seconds_.size());
  };
  if (seconds_.size() >= kEnough) return mean(std::numeric_limits<double>::infinity());
  std::vector<double> sorted = seconds_;
  const auto middle = sorted.begin() + std::ssize(sorted) / 2;
  std::nth_element(sorted.begin(), middle, sorted.end());
  return mean(2 * *middle);
}

std::optional<double> TimeLeft::after(std::int64_t step, bool with_its_own) const {
  if (seconds_.empty()) return std::nullopt;
  const std::int64_t first = with_its_own ? step : step + 1;
  // Steps come in order, so that each is looked at once.
  if (counted_from_ < 0 || counted_from_ > first) {
    counted_from_ = first;
    validations_ = saves_left_ = 0;
    for (std::int64_t i = first; i <= steps_; ++i) {
      validations_ += validates_(i);
      saves_left_ += saves_(i);
    }
  }
  for (; counted_from_ < first; ++counted_from_) {
    validations_ -= validates_(counted_from_);
    saves_left_ -= saves_(counted_from_);
  }
  return static_cast<double>(steps_ - step) * step_seconds() +
         static_cast<double>(validations_) * validation_.seconds() +
         static_cast<double>(saves_left_) * save_.seconds();
}

}  // namespace jigsaw::inline train
