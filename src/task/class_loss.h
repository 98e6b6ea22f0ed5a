#pragma once
#include "task/loss.h"

namespace jigsaw::inline task {

/// A loss between probabilities of classes and labels.
struct ClassLossOptions {
  std::vector<ClassTerm> terms = {};
  bool area_weighted = true;
  std::vector<double> class_weights = {};  ///< empty: all alike
  /// The weights are to be those of class_weights_of(), which need the data.
  bool by_frequency = false;
  /// Whether each channel is a region of its own, behind a sigmoid, in place of a class.
  bool regions = false;
  /// Whether sums are over all samples of a batch together, in place of each alone.
  bool batch = false;
};

/// ClassSums over all points, per class and per sample of the group; equal on every rank of it. On the host.
struct SampleClassSums {
  SampleGroup group;
  std::int64_t samples = 0, classes = 0;
  std::vector<double> all;  ///< [6 × samples × classes]

  double of(ClassSums::Kind kind, std::int64_t sample, std::int64_t k) const {
    return all[static_cast<std::size_t>((kind * samples + sample) * classes + k)];
  }
  /// Those of all samples together, as of one sample; equal on every rank. Collective over the mesh.
  SampleClassSums merged(const Rank& rank) const;
  /// Adds sums of as many samples.
  void add(const SampleClassSums& other);

  /// The part of the labelled points whose likeliest class is their label.
  double accuracy() const;
  /// 2·hits/(labelled + chosen) over all samples; NaN where the class is neither labelled nor chosen.
  double dice(std::int64_t k) const;
};

/// The same where the context's arrays stand.
struct LabelSums {
  SampleGroup group;
  ClassSums sums;  ///< [6, samples, classes]; of regions [6, samples, 2 · regions]: outside and inside each

  /// Waits for the device.
  SampleClassSums read(const Context& context) const;
};

/// N/(K·n_k) for classes of n_k points of N; 0 for those without any.
std::vector<double> class_weights_of(const std::vector<double>& counts);

/// Distance between the softmax of predictions (logits) and labels: per sample terms of
/// cross-entropy and soft Dice from sums over all ranks that hold a part of it, then the mean over samples.
/// Class weights are those of torch.nn.functional.cross_entropy; for Dice the classes' weighted mean is
/// taken. With `batch` all samples that a step computes at once are as one (monai.losses.DiceLoss with batch
/// True); validations score each alone.
///
/// Softmax needs all classes of a point: where `tensor` cuts the channels, logits are first cut along the
/// first spatial dim instead (an all-to-all), and labels are read so.
///
/// Each of several regions, of which a point may be in any, is a matter of two classes, outside with logit 0
/// and inside with that of its channel, whose softmax is the sigmoid: cross-entropy is then
/// torch.nn.functional.binary_cross_entropy_with_logits, and Dice that of the inside. The loss is the mean
/// over samples and regions.
class ClassLoss : public Loss {
 public:
  /// @throws ConfigError when class_weights are not one per class, or all 0.
  ClassLoss(const ClassLossOptions& options, std::int64_t classes, const std::vector<double>& row_weights);

  Layout target_layout(const Mesh& mesh, const Layout& prediction) const override;
  MeanArray backward(const Rank& rank, const Variable& prediction, const Array& target,
                     double scale) const override;
  double full_weight(std::int64_t samples) const override { return static_cast<double>(samples); }
  std::unique_ptr<Loss> coarser(std::int64_t rows) const override;

  /// Collective. @param target  this rank's labels in target_layout(), or for each region 1 inside and 0
  /// outside; NaN where none counts.
  LabelSums sums(const Rank& rank, const ShardedTensor& prediction, const Array& target) const;
  /// The mean over these samples alone, of those of which a point counts.
  MeanArray mean(Context& context, const ClassSums& sums) const;
  WeightedMean mean(const SampleClassSums& sums) const;

 private:
  Layout logits_layout(const Mesh& mesh, const Layout& prediction) const;
  /// class_weights_ for kernels, f64 [classes].
  Array class_weights(Context& context) const;
  /// In place of each sample's sums those of all. Collective over the mesh.
  static ClassSums of_batch(const Rank& rank, const LabelSums& own);
  LabelSums sums_of_pieces(const Rank& rank, const ShardedTensor& logits, const Array& target) const;
  /// What the kernels take: logits and labels of classes as they are; of regions [b · regions, points, 2] and
  /// [b · regions, points, 1]; and the gradient back.
  Array class_logits(Context& context, const Array& logits) const;
  Array class_labels(Context& context, const Array& target) const;
  Array logits_gradient(Context& context, const Array& gradient, const Shape& logits) const;
  /// The same of sums: each region of a sample is one.
  ClassSums of_losses(const ClassSums& sums) const;

  std::int64_t regions_ = 1;  ///< 1: none, but classes
  bool of_regions_ = false, of_batch_ = false;
  std::vector<ClassTerm> terms_;
  std::vector<double> class_weights_, row_weights_;
};

}  // namespace jigsaw::inline task
