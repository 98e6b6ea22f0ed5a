#include "predict/own_points.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/error.h"
#include "parallel/layout.h"

namespace jigsaw::inline predict {

namespace {

/// How many of the first `count` numbers have a property that no other has.
template <typename F>
std::int64_t first_of(std::int64_t count, const F& has) {
  std::int64_t least = 0;
  while (least < count) {
    const std::int64_t middle = least + (count - least) / 2;
    if (has(middle)) {
      least = middle + 1;
    } else {
      count = middle;
    }
  }
  return least;
}

}  // namespace

OwnPoints::OwnPoints(const Shape& common, const Shape& own, std::vector<double> step)
    : common_(common), own_(own), step_(std::move(step)), between_(Box::whole(common), false) {
  require(common.rank() == own.rank() && std::ssize(step_) == own.rank() && own.rank() <= 3,
          "an image has two or three dims");
}

double OwnPoints::place(int dim, std::int64_t own) const {
  return static_cast<double>(own) / step_[static_cast<std::size_t>(dim)];
}

std::int64_t OwnPoints::points_below(int dim, std::int64_t common) const {
  return first_of(own_[dim],
                  [&](std::int64_t i) { return between_.neighbours(place(dim, i), dim).below < common; });
}

std::int64_t OwnPoints::points_whole(int dim, std::int64_t common) const {
  return first_of(own_[dim],
                  [&](std::int64_t i) { return between_.neighbours(place(dim, i), dim).above < common; });
}

Box OwnPoints::box(const Box& rows, int ranks, int rank) const {
  const Range columns = cut_range(common_[1], ranks, rank);
  Box box = Box::whole(own_);
  box.begin[0] = points_whole(0, rows.begin[0]);
  box.extent[0] = points_whole(0, rows.end(0)) - box.begin[0];
  box.begin[1] = points_below(1, columns.begin);
  box.extent[1] = points_below(1, columns.end) - box.begin[1];
  return box;
}

std::vector<double> OwnPoints::take(const Box& rows, const std::vector<double>& values, std::int64_t numbers,
                                    int ranks, int rank) {
  const Box box = this->box(rows, ranks, rank);
  if (rows.empty()) return {};
  if (values_.empty()) held_ = rows;
  held_.extent[0] = rows.end(0) - held_.begin[0];
  values_.insert(values_.end(), values.begin(), values.end());
  require(std::ssize(values_) == held_.extent.count() * numbers, "common rows come one after the other");
  std::vector<double> result(static_cast<std::size_t>(box.extent.count() * numbers));
  Shape at = box.begin;
  for (std::size_t i = 0; i < result.size(); i += static_cast<std::size_t>(numbers)) {
    Warp::Point point{};
    for (int d = 0; d < at.rank(); ++d) point[static_cast<std::size_t>(d)] = place(d, at[d]);
    between_.of_those_there(point, held_, values_,
                            std::span(result).subspan(i, static_cast<std::size_t>(numbers)));
    for (int d = at.rank() - 1; d >= 0; --d) {
      if (++at[d] < box.end(d)) break;
      at[d] = box.begin[d];
    }
  }
  if (box.end(0) == own_[0]) return result;
  // The next point of the file lies behind the last row: of those before it none is needed any more.
  const std::int64_t past = held_.extent[0] - 1;
  values_.erase(values_.begin(), values_.begin() + static_cast<std::ptrdiff_t>(
                                                       past * held_.extent.count(1, at.rank()) * numbers));
  held_.begin[0] += past;
  held_.extent[0] = 1;
  return result;
}

}  // namespace jigsaw::inline predict
