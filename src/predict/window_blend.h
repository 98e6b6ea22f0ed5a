#pragma once
#include <functional>
#include <span>
#include <vector>

#include "images/sliding_window.h"
#include "kernels/copy.h"
#include "parallel/sharded_tensor.h"

namespace jigsaw::inline predict {

/// What one of `ranks` ranks holds of a region whose second dim is cut over them, and `halo` points beyond it
/// on each side, as far as the region goes; empty where there are more ranks than points.
Box columns_of(const Box& region, int ranks, int rank, std::int64_t halo);

/// How predictions of several models become one before it is blended: Σ_m factor·y_m + offset, both
/// [models, channels]; empty: there is one model, whose predictions stay as they are.
struct ModelSum {
  std::vector<double> factor, offset;
};

/// Blends what a model says of overlapping windows into values of regions of images: at each point
/// Σ g·y / Σ g over the windows that hold it, with g of gaussian_importance(), in float64 and in the order of
/// the windows, so that the result does not depend on the mesh where the windows' values do not. A window
/// that is mirrored counts where its points lie, beside the same one that is not.
///
/// The second dim of every region is cut over all ranks of the job. A rank holds its columns of those rows
/// (points of the first dim) that windows to come still reach, where predictions stand; the others are given
/// away, on the host.
class WindowBlend {
 public:
  /// Rows of a region that are whole, and what this rank holds of them.
  struct Rows {
    std::size_t region = 0;
    bool last = false;           ///< of the region
    Box box;                     ///< of the image; may be empty along the second dim
    std::vector<double> values;  ///< [box, channels]
  };
  /// Called on all ranks alike, with the same rows of the same region.
  using Use = std::function<void(Rows&)>;

  /// @param windows  those of windows_over() these regions. @param extent  of each window.
  /// @param halo     columns that a rank holds beyond its own on each side, as far as the region goes.
  WindowBlend(const Rank& rank, std::vector<ImageRegion> regions, std::vector<ImageWindow> windows,
              const Shape& extent, std::int64_t channels, std::int64_t halo, Use use,
              const ModelSum& sum = {});

  /// The next windows, as many as the prediction [windows, space…, channels] of each model has samples; all
  /// are laid out alike. Collective over the job, as `use` may be.
  void add(std::span<const ShardedTensor> predictions);
  /// Gives away what is left, once all windows were added. Collective.
  void finish();

 private:
  /// What one rank computed of a window, at the points that one rank holds.
  struct Part {
    std::size_t window = 0;
    Box points;  ///< of the image
    std::int64_t first_channel = 0, channels = 0;
    std::int64_t offset = 0;  ///< in what travels

    std::int64_t count() const { return points.extent.count() * channels; }
  };
  Box held_by(std::size_t region, int rank) const;
  std::vector<Part> parts(const Layout& layout, int from, int to) const;
  Array pack(std::span<const ShardedTensor> predictions, std::vector<Message>& sends) const;
  void move_to(const ImageWindow& window);
  void give_rows(std::int64_t end);
  void add_weights(const ImageWindow& window);
  void add_part(const Part& part, const Array& values);
  Shape sums_shape(std::int64_t rows) const;
  void keep_rows(std::int64_t first, std::int64_t rows);

  const Rank& rank_;
  std::vector<ImageRegion> regions_;
  std::vector<ImageWindow> windows_;
  Shape extent_;
  std::int64_t channels_, halo_;
  Use use_;
  std::vector<double> importance_;
  Array importance_array_;  ///< the same for kernels, f64 [window]
  ChannelChange sum_;       ///< ModelSum for kernels; undefined of one model
  std::size_t next_ = 0;    ///< the window that comes next
  // What is being blended: rows of a region, this rank's columns.
  std::size_t region_ = 0;
  Box held_;
  Array sums_;                   ///< f64 [held, channels], where predictions stand
  std::vector<double> weights_;  ///< [held]
};

}  // namespace jigsaw::inline predict
