#pragma once
#include <optional>
#include <span>
#include <vector>

#include "images/window_reader.h"
#include "predict/trained_model.h"
#include "predict/window_blend.h"
#include "task/physical_states.h"

namespace jigsaw::inline predict {

/// How models see images.
struct WindowOptions {
  double overlap = 0.25;  ///< of neighbouring windows, as a part of their extent
  /// Bit d: along spatial dim d windows are mirrored, too, in every combination of these dims, and the
  /// predictions, mirrored back, averaged: nnU-Net's test-time augmentation.
  unsigned mirror = 0;
};

enum class LabelNumbers { kLogits, kProbabilities };
/// Of data with labels, from numbers [points, classes or regions]: the likeliest class, the first of equals;
/// of regions the class in those that are more likely than not, [points].
std::vector<double> chosen_labels(const ImageData& data, std::span<const double> numbers, LabelNumbers are);

/// Trained models run over parts of images by overlapping windows of their grid. Numbers in physical units,
/// those with a transform before its inverse, and logits are averaged over models and mirrored windows as
/// over windows that overlap, by WindowBlend. A rank holds its parts of all models, and runs one after the
/// other.
class ImageRun {
 public:
  using Rows = WindowBlend::Rows;

  /// @param models  of one configuration, at least one; each is given images as its own statistics say.
  /// @param noisy   whether images get the noise of validation (task denoise). @param halo  columns that
  /// ranks hold beyond their own. @throws CheckpointError  of targets in other units.
  ImageRun(TrainedModels& models, std::vector<ImageRegion> regions, const WindowOptions& windows, bool noisy,
           std::int64_t halo);

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
  /// chosen_labels() of what the models say, [box].
  std::vector<double> labels(const Rows& rows) const {
    return chosen_labels(data_, rows.values, LabelNumbers::kLogits);
  }

 private:
  Batch read(std::int64_t number) const;
  std::int64_t windows_of(std::int64_t batch) const;
  ModelSum model_sum() const;

  TrainedModels& models_;
  OpenedRun& run_;         ///< of the first model
  const ImageData& data_;  ///< in whose units predictions are averaged
  std::vector<ImageRegion> regions_;
  std::vector<ImageWindow> windows_;
  bool noisy_;
  std::int64_t halo_;
  std::vector<std::int64_t> unread_;
  std::optional<PhysicalStates> physical_;  ///< of the first model, unless its targets are labels
};

}  // namespace jigsaw::inline predict
