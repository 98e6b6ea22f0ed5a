#include "train/time_left.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/text.h"

namespace jigsaw::inline train {

TimeLeft::TimeLeft(std::int64_t steps, Happens validates, Happens saves)
    : steps_(steps), validates_(std::move(validates)), saves_(std::move(saves)) {}

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

std::optional<double> TimeLeft::after(std::int64_t step, bool with_its_own) const {
  if (first_.empty()) return std::nullopt;
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

std::optional<std::string> TimeLeft::expectation(std::int64_t step) const {
  if (seen_ != kEnoughToExpect || step >= steps_) return std::nullopt;
  return concat("expected time: ", human_seconds(*after(step, false)), " for the ", steps_ - step,
                steps_ - step == 1 ? " step" : " steps", " to come, with their validations and saves");
}

}  // namespace jigsaw::inline train
