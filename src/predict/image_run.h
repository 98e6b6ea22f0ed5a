#pragma once
#include <span>
#include <vector>

#include "images/window_reader.h"
#include "predict/window_blend.h"
#include "task/opened_run.h"

namespace jigsaw::inline predict {

/// A trained model run over parts of images by overlapping windows of its grid, blended by WindowBlend.
class ImageRun {
 public:
  using Rows = WindowBlend::Rows;

  /// @param overlap  of neighbouring windows, as a part of their extent. @param noisy  whether images get the
  /// noise of validation (task denoise). @param halo  columns that ranks hold beyond their own.
  ImageRun(OpenedRun& run, std::vector<ImageRegion> regions, double overlap, bool noisy, std::int64_t halo);

  const ImageData& data() const { return data_; }
  const std::vector<ImageRegion>& regions() const { return regions_; }
  std::int64_t windows() const { return std::ssize(windows_); }
  /// Calls `use` for the rows of every region in order. Collective over the job, as `use` may be.
  /// @throws AgreedError  of a batch that cannot be read, whose images unread() then gives
  void run(const WindowBlend::Use& use);
  const std::vector<std::int64_t>& unread() const { return unread_; }
  /// What a rank holds of these rows, with its halo, and without.
  Box box_of(const Rows& rows, int rank) const;
  Box own_box_of(const Rows& rows, int rank) const;

  /// The targets in physical units, [box, targets]; NaN where what is denoised is missing. @throws DataError
  std::vector<double> numbers(const Rows& rows) const;
  /// Of classes softmax, of regions sigmoids, [box, classes or regions].
  std::vector<double> probabilities(const Rows& rows) const;
  /// Of logits or of probabilities the likeliest class, the first of equals; of regions the class in those
  /// that are more likely than not, [box].
  std::vector<double> labels(const Rows& rows) const { return labels_above(rows.values, 0); }
  std::vector<double> labels(std::span<const double> probabilities) const {
    return labels_above(probabilities, 0.5);
  }

 private:
  std::vector<double> labels_above(std::span<const double> values, double even) const;
  Batch read(std::int64_t batch) const;
  std::int64_t windows_of(std::int64_t batch) const;

  OpenedRun& run_;
  const ImageData& data_;
  std::vector<ImageRegion> regions_;
  std::vector<ImageWindow> windows_;
  WindowReader reader_;
  std::int64_t halo_;
  std::vector<std::int64_t> unread_;
};

}  // namespace jigsaw::inline predict
