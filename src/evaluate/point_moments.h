#pragma once
#include <vector>

#include "array/host_view.h"
#include "kernels/forecast_scores.h"
#include "task/score_sums.h"

namespace jigsaw::inline evaluate {

/// Moments (TimeMoments) of the points of a rank's piece of [B, H, W, C], of several groups of times: five
/// float64 numbers for each group, point and channel, where the predictions stand. Ranks that hold other
/// samples come together in combine().
class PointMoments {
 public:
  /// Takes the memory. @param piece  of which rows, columns and channels count.
  PointMoments(Context& context, std::size_t groups, const Box& piece);

  /// Adds a sample of a batch to a group.
  /// @param layout   [B, H, W, C] of the truth.
  /// @param members  f64 [b·members, h, w, c]: all of the first sample, then of the second.
  /// @param truth    f64 [b, h, w, c], NaN where nothing counts.
  /// @param sample   of this rank's b.
  void add(const Rank& rank, std::size_t group, const Layout& layout, const Array& members,
           const Array& truth, std::int64_t sample);
  /// A batch of this layout was added, or would have been on a rank with samples.
  void begin(const Layout& layout) { layout_ = layout; }
  /// All that was added, on every rank that holds these points. Collective over the mesh.
  void combine(const Rank& rank);

  /// Whether begin() was called.
  bool any() const { return layout_.global.rank() > 0; }
  std::size_t groups() const { return groups_; }
  /// Rows, columns and channels of this rank.
  const Shape& piece() const { return piece_; }
  const Layout& layout() const { return layout_; }
  /// How `maps` maps of all channels lie, [maps, H, W, C]: ranks that held other samples hold other maps.
  Layout map_layout(int maps) const;
  /// A group's moments of this rank's piece, on the host; or of some of its points only.
  TimeMoments on_host(const Context& context, std::size_t group) const;
  TimeMoments on_host(const Context& context, std::size_t group, std::int64_t first,
                      std::int64_t points) const;

 private:
  std::size_t groups_;
  Shape piece_;
  TimeMoments moments_;  // [groups, rows, columns, channels]
  Layout layout_;        // of what was added; of no rank where nothing was
};

/// Moments that stand on the host.
struct HostMoments {
  explicit HostMoments(const TimeMoments& of)
      : count(of.count),
        forecast(of.forecast_mean),
        forecast_squares(of.forecast_squares),
        truth(of.truth_mean),
        truth_squares(of.truth_squares) {}
  double forecast_variance(std::size_t i) const { return forecast_squares[i] / count[i]; }
  double truth_variance(std::size_t i) const { return truth_squares[i] / count[i]; }

  HostView<const double> count, forecast, forecast_squares, truth, truth_squares;
};

}  // namespace jigsaw::inline evaluate
