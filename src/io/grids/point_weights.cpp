#include "grids/point_weights.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "grids/regrid.h"

namespace jigsaw::inline grids {

void PointWeights::add(std::int64_t point, double weight) {
  if (!(weight > 0)) return;
  points_.push_back(point);
  weights_.push_back(weight);
}

void PointWeights::end_target() {
  const std::size_t begin = ends_.empty() ? 0 : ends_.back();
  double sum = 0;
  for (std::size_t t = begin; t < weights_.size(); ++t) sum += weights_[t];
  for (std::size_t t = begin; t < weights_.size() && sum != 1; ++t) weights_[t] /= sum;
  ends_.push_back(weights_.size());
}

void PointWeights::end_beyond() {
  if (!beyond_) beyond_ = ends_.size();
  weights_.resize(ends_.empty() ? 0 : ends_.back());
  points_.resize(weights_.size());
  ends_.push_back(weights_.size());
}

void PointWeights::finish() {
  if (points_.empty()) return;
  places_.reserve(points_.size());
  if (columns_ > 0) {
    find_rectangle();
  } else {
    find_intervals();
  }
  require(read_ <= std::numeric_limits<std::uint32_t>::max(), "more points than a piece of a file has");
  points_ = {};
}

void PointWeights::find_rectangle() {
  std::int64_t top = points_[0] / columns_, bottom = top, left = points_[0] % columns_, right = left;
  for (const std::int64_t point : points_) {
    const std::int64_t row = point / columns_, column = point % columns_;
    top = std::min(top, row);
    bottom = std::max(bottom, row);
    left = std::min(left, column);
    right = std::max(right, column);
  }
  const std::int64_t width = right - left + 1;
  boxes_ = {{{top, left}, {bottom - top + 1, width}}};
  read_ = boxes_[0].extent.count();
  for (const std::int64_t point : points_) {
    places_.push_back(static_cast<std::uint32_t>((point / columns_ - top) * width + point % columns_ - left));
  }
}

/// Points between two that are needed are read where that is faster than another read.
void PointWeights::find_intervals() {
  constexpr std::int64_t kGap = 1024;
  std::vector<std::int64_t> points = points_;
  std::ranges::sort(points);
  struct Interval {
    std::int64_t begin, end, at;
    std::int64_t behind() const { return at + end - begin; }
  };
  std::vector<Interval> intervals;
  for (const std::int64_t point : points) {
    if (intervals.empty() || point > intervals.back().end + kGap)
      intervals.push_back({point, point, intervals.empty() ? 0 : intervals.back().behind()});
    intervals.back().end = point + 1;
  }
  for (const Interval& interval : intervals)
    boxes_.push_back({{0, interval.begin}, {1, interval.end - interval.begin}});
  read_ = intervals.back().behind();
  for (const std::int64_t point : points_) {
    const Interval& interval = *(std::ranges::upper_bound(intervals, point, {}, &Interval::begin) - 1);
    places_.push_back(static_cast<std::uint32_t>(interval.at + point - interval.begin));
  }
}

std::int64_t PointWeights::bytes() const {
  return std::ssize(places_) * static_cast<std::int64_t>(sizeof places_[0] + sizeof weights_[0]) +
         std::ssize(ends_) * static_cast<std::int64_t>(sizeof ends_[0]);
}

std::vector<PointWeights::Term> PointWeights::terms() const {
  require(columns_ > 0, "the points of a list have neither rows nor columns");
  std::vector<Term> terms;
  std::size_t t = 0;
  for (std::size_t target = 0; target < ends_.size(); ++target) {
    for (; t < ends_[target]; ++t) {
      const Box& box = boxes_.front();
      const std::int64_t place = places_[t], width = box.extent[1];
      terms.push_back({static_cast<std::int64_t>(target), box.begin[0] + place / width,
                       box.begin[1] + place % width, weights_[t]});
    }
  }
  return terms;
}

template <typename T>
void PointWeights::apply(std::span<const T> there, std::span<T> out) const {
  require(std::ssize(there) == read_ && out.size() == ends_.size(),
          "points between those of a file have the values around them");
  std::size_t t = 0;
  for (std::size_t target = 0; target < ends_.size(); ++target) {
    double sum = 0, absent = 0;
    const bool placed = t < ends_[target];
    for (; t < ends_[target]; ++t) {
      const auto value = static_cast<double>(there[places_[t]]);
      if (value == value) {
        sum += weights_[t] * value;
      } else {
        absent += weights_[t];
      }
    }
    out[target] = static_cast<T>(placed ? mean_of(sum, absent) : std::nan(""));
  }
}

template void PointWeights::apply<float>(std::span<const float>, std::span<float>) const;
template void PointWeights::apply<double>(std::span<const double>, std::span<double>) const;

}  // namespace jigsaw::inline grids
