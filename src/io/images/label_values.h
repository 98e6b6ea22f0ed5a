#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "fields/data_options.h"

namespace jigsaw::inline images {

/// Which numbers of label files are which class: as data.labels lists them, else each class is its number.
class LabelValues {
 public:
  explicit LabelValues(const DataOptions& options);

  /// The class of a number in a file; nothing where it is none.
  std::optional<double> class_of(double value) const;
  /// What a class is written as: the first of its numbers.
  std::int64_t value_of(std::int64_t label) const {
    return written_.empty() ? label : written_[static_cast<std::size_t>(label)];
  }
  /// The largest number that is written.
  std::int64_t largest() const;

  /// Of data.regions: whether a class belongs to one.
  bool in_region(std::int64_t label, std::int64_t region) const {
    return inside_[static_cast<std::size_t>(region * count_ + label)];
  }
  /// The class that the numbers of a point say, one for each class or region: the likeliest, the first of
  /// equals; of regions class_in() those with more than `even`.
  /// @param number  (class or region) of the point. @param even  what is as likely as not: 0 of logits, ½ of
  /// probabilities.
  template <typename F>
  std::int64_t chosen(const F& number, double even) const {
    if (!first_.empty()) return class_in([&](std::int64_t region) { return number(region) > even; });
    std::int64_t likeliest = 0;
    for (std::int64_t k = 1; k < count_; ++k)
      if (number(likeliest) < number(k)) likeliest = k;
    return likeliest;
  }
  /// The class of a point: the first of the last region that it is in, 0 where it is in none.
  /// @param is_in  (number of a region) whether the point is in it.
  template <typename F>
  std::int64_t class_in(const F& is_in) const {
    for (std::int64_t region = std::ssize(first_); region-- > 0;)
      if (is_in(region)) return first_[static_cast<std::size_t>(region)];
    return 0;
  }

 private:
  std::int64_t count_;
  std::vector<std::int64_t> classes_;  ///< by number in a file, -1: none; empty: itself
  std::vector<std::int64_t> written_;  ///< by class; empty: itself
  std::vector<std::int64_t> first_;    ///< classes of the regions
  std::vector<bool> inside_;           ///< [regions, classes]
};

}  // namespace jigsaw::inline images
