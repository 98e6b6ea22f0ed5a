#include "images/label_values.h"

#include <algorithm>
#include <cmath>

namespace jigsaw::inline images {

LabelValues::LabelValues(const DataOptions& options) : count_(options.classes) {
  for (const std::vector<std::int64_t>& numbers : options.labels) {
    for (const std::int64_t number : numbers) {
      const auto at = static_cast<std::size_t>(number);
      if (at >= classes_.size()) classes_.resize(at + 1, -1);
      classes_[at] = std::ssize(written_);
    }
    written_.push_back(numbers.front());
  }
  for (const std::vector<std::int64_t>& region : options.regions) {
    first_.push_back(region.front());
    for (std::int64_t k = 0; k < count_; ++k) inside_.push_back(std::ranges::find(region, k) != region.end());
  }
}

std::optional<double> LabelValues::class_of(double value) const {
  const std::int64_t end = classes_.empty() ? count_ : std::ssize(classes_);
  if (!(value >= 0 && value < static_cast<double>(end)) || value != std::floor(value)) return {};
  if (classes_.empty()) return value;
  const std::int64_t found = classes_[static_cast<std::size_t>(value)];
  return found < 0 ? std::nullopt : std::optional(static_cast<double>(found));
}

std::int64_t LabelValues::largest() const {
  return written_.empty() ? count_ - 1 : *std::max_element(written_.begin(), written_.end());
}

}  // namespace jigsaw::inline images
