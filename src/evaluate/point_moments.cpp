#include "evaluate/point_moments.h"

#include <algorithm>
#include <span>

#include "array/transfer.h"
#include "base/error.h"
#include "kernels/pointwise.h"

namespace jigsaw::inline evaluate {

namespace {

/// Elements that are combined at a time.
constexpr std::int64_t kCombined = std::int64_t{1} << 20;

/// The same part of all of them.
TimeMoments part_of_moments(TimeMoments moments, std::int64_t first, const Shape& shape) {
  for_each_array(moments, [&](Array& array) { array = array.slice(first, shape); });
  return moments;
}

}  // namespace

PointMoments::PointMoments(Context& context, std::size_t groups, const Box& piece)
    : groups_(groups), piece_{piece.extent[1], piece.extent[2], piece.extent[3]} {
  const Shape all{static_cast<std::int64_t>(groups), piece_[0], piece_[1], piece_[2]};
  for_each_array(moments_, [&](Array& array) {
    array = filled(context, all, DType::kFloat64, 0.0, Purpose::kWorkspace);
  });
}

void PointMoments::add(const Rank& rank, std::size_t group, const Layout& layout, const Array& members,
                       const Array& truth, std::int64_t sample) {
  const Box box = rank.box(layout);
  const Shape one{1, piece_[0], piece_[1], piece_[2]};
  require(Shape({1, box.extent[1], box.extent[2], box.extent[3]}) == one, "a rank's points change");
  const std::int64_t size = one.count(), each = members.shape()[0] / box.extent[0];
  TimeMoments of_group = part_of_moments(moments_, static_cast<std::int64_t>(group) * size, one);
  add_moments(rank.context, members.slice(sample * each * size, {each, piece_[0], piece_[1], piece_[2]}),
              truth.slice(sample * size, one), of_group);
}

/// Joins the moments of ranks that hold other samples, as Chan, Golub and LeVeque (1983) do, of all ranks at
/// once: n = Σ n_r, mean = Σ n_r mean_r/n, squares = Σ (squares_r + n_r (mean_r − mean)²).
void PointMoments::combine(const Rank& rank) {
  if (!any()) return;
  const AxisSet others = SampleGroup(rank.mesh, layout_, rank.box(layout_)).other_samples;
  if (rank.mesh.communicator(others).size() == 1) return;
  const std::int64_t all = moments_.count.count();
  for (std::int64_t first = 0; first < all; first += kCombined) {
    TimeMoments slab = part_of_moments(moments_, first, {std::min(kCombined, all - first)});
    std::vector<std::vector<double>> own;  // as for_each_array() gives them
    for_each_array(slab, [&](const Array& array) { own.push_back(download_values(rank.context, array)); });
    const auto n = own[0].size();
    const auto weighted = [](double count, double value) { return count > 0 ? count * value : 0.0; };
    std::vector<double> means = own[0];
    for (const std::size_t mean : {1, 3}) {
      for (std::size_t i = 0; i < n; ++i) means.push_back(weighted(own[0][i], own[mean][i]));
    }
    sum_over(rank, others, means);
    for (std::size_t i = 0; i < 2 * n; ++i) {
      const double count = means[i % n];
      means[n + i] = count > 0 ? means[n + i] / count : 0.0;
    }
    std::vector<double> squares;
    for (const std::size_t mean : {1, 3}) {
      for (std::size_t i = 0; i < n; ++i) {
        const double apart = own[mean][i] - means[(mean + 1) / 2 * n + i];
        squares.push_back(own[mean + 1][i] + weighted(own[0][i], apart * apart));
      }
    }
    sum_over(rank, others, squares);
    const auto part = [n](const std::vector<double>& from, std::size_t which) {
      return std::span(from).subspan(which * n, n);
    };
    write_values(rank.context, slab.count, part(means, 0));
    write_values(rank.context, slab.forecast_mean, part(means, 1));
    write_values(rank.context, slab.truth_mean, part(means, 2));
    write_values(rank.context, slab.forecast_squares, part(squares, 0));
    write_values(rank.context, slab.truth_squares, part(squares, 1));
  }
}

Layout PointMoments::map_layout(int maps) const {
  Layout layout = layout_;
  layout.global[0] = maps;
  return layout;
}

TimeMoments PointMoments::on_host(const Context& context, std::size_t group) const {
  return on_host(context, group, 0, piece_[0] * piece_[1]);
}

TimeMoments PointMoments::on_host(const Context& context, std::size_t group, std::int64_t first,
                                  std::int64_t points) const {
  const std::int64_t from = (static_cast<std::int64_t>(group) * piece_[0] * piece_[1] + first) * piece_[2];
  TimeMoments moments = part_of_moments(moments_, from, {points, piece_[2]});
  for_each_array(moments, [&](Array& array) { array = download(context, array); });
  return moments;
}

}  // namespace jigsaw::inline evaluate
