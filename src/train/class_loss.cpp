#include "train/class_loss.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/text.h"
#include "parallel/redistribute.h"

namespace jigsaw {

GlobalClassSums GlobalClassSums::merged() const {
  GlobalClassSums result{1, classes,
                         std::vector<double>(static_cast<std::size_t>(ClassSums::kKinds * classes))};
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto index = static_cast<std::int64_t>(i);
    result.all[static_cast<std::size_t>(index / (samples * classes) * classes + index % classes)] += all[i];
  }
  return result;
}

void GlobalClassSums::add(const GlobalClassSums& other) {
  require(other.all.size() == all.size(), "sums of other classes cannot be added");
  std::transform(all.begin(), all.end(), other.all.begin(), all.begin(), std::plus<>());
}

double GlobalClassSums::accuracy() const {
  double hits = 0, labelled = 0;
  for (std::int64_t b = 0; b < samples; ++b) {
    for (std::int64_t k = 0; k < classes; ++k) {
      hits += of(ClassSums::kHits, b, k);
      labelled += of(ClassSums::kLabelled, b, k);
    }
  }
  return labelled > 0 ? hits / labelled : 0.0;
}

double GlobalClassSums::dice(std::int64_t k) const {
  double hits = 0, both = 0;
  for (std::int64_t b = 0; b < samples; ++b) {
    hits += of(ClassSums::kHits, b, k);
    both += of(ClassSums::kLabelled, b, k) + of(ClassSums::kChosen, b, k);
  }
  return both > 0 ? 2 * hits / both : 1.0;
}

ClassLoss::ClassLoss(const LossOptions& options, std::int64_t classes, const std::vector<double>& row_weights)
    : cross_entropy_(options.type != LossType::kDice),
      dice_(options.type != LossType::kCrossEntropy),
      smoothing_(options.smoothing),
      class_weights_(options.class_weights),
      row_weights_(row_weights) {
  if (!options.of_classes()) {
    throw ConfigError(
        "loss.type compares numbers, but data.classes says that targets are labels; set it to "
        "\"cross_entropy\", "
        "\"dice\" or \"dice_cross_entropy\"");
  }
  if (!options.area_weighted) row_weights_.assign(row_weights.size(), 1.0);
  if (class_weights_.empty()) class_weights_.assign(static_cast<std::size_t>(classes), 1.0);
  if (std::ssize(class_weights_) != classes) {
    throw ConfigError(concat("loss.class_weights must have one entry for each of the ", classes,
                             " classes of data.classes, not ", class_weights_.size()));
  }
  if (std::accumulate(class_weights_.begin(), class_weights_.end(), 0.0) <= 0) {
    throw ConfigError("loss.class_weights must hold a number above 0");
  }
}

Layout ClassLoss::logits_layout(const Mesh& mesh, const Layout& prediction) const {
  Layout layout = prediction;
  const int channel = prediction.global.rank() - 1;
  for (int axis = 0; axis < mesh.shape().axes; ++axis) {
    Placement& placement = layout.placements[axis];
    if (!placement.is_shard() || placement.dim != channel) continue;
    const Placement& rows = layout.placements[mesh.domain(0)];
    placement = Placement::shard(1, rows.is_shard() && rows.dim == 1 ? rows.unit : 1);
  }
  return layout;
}

Layout ClassLoss::target_layout(const Mesh& mesh, const Layout& prediction) const {
  Layout layout = logits_layout(mesh, prediction);
  layout.global[layout.global.rank() - 1] = 1;
  return layout;
}

double ClassLoss::backward(const Rank& rank, const Variable& prediction, const Array& target,
                           double scale) const {
  const ShardedTensor x = prediction.value();
  const ShardedTensor logits = redistribute(rank, x, logits_layout(rank.mesh, x.layout));
  const GlobalClassSums global = sums_of_pieces(rank, logits, target);
  const Box box = rank.box(logits.layout);
  Array gradient = logits.piece;
  if (!box.empty()) {
    gradient = class_gradient(rank.context, logits.piece, target, point_weights(rank, box, row_weights_),
                              factors(rank, global, scale, box));
  }
  prediction.slot()->add(rank, {gradient, logits.layout});
  return value(global);
}

GlobalClassSums ClassLoss::sums(const Rank& rank, const ShardedTensor& prediction,
                                const Array& target) const {
  return sums_of_pieces(rank, redistribute(rank, prediction, logits_layout(rank.mesh, prediction.layout)),
                        target);
}

GlobalClassSums ClassLoss::sums_of_pieces(const Rank& rank, const ShardedTensor& logits,
                                          const Array& target) const {
  const Box box = rank.box(logits.layout);
  GlobalClassSums global{logits.layout.global[0], logits.layout.global.back(), {}};
  const std::int64_t count = global.samples * global.classes;
  global.all.assign(static_cast<std::size_t>(ClassSums::kKinds * count), 0.0);
  if (!box.empty()) {
    const ClassSums local =
        class_sums(rank.context, logits.piece, target, point_weights(rank, box, row_weights_));
    const std::int64_t own = box.extent[0] * global.classes, first = box.begin[0] * global.classes;
    for (std::int64_t kind = 0; kind < ClassSums::kKinds; ++kind) {
      std::copy_n(local.all.data<double>() + kind * own, own, global.all.begin() + kind * count + first);
    }
  }
  global.all = rank.mesh.world().all_reduce(global.all, ReduceOp::kSum);
  return global;
}

double ClassLoss::labelled_weight(const GlobalClassSums& sums, std::int64_t sample) const {
  double weight = 0;
  for (std::int64_t k = 0; k < sums.classes; ++k) {
    weight += class_weights_[static_cast<std::size_t>(k)] * sums.of(ClassSums::kLabelled, sample, k);
  }
  return weight;
}

/// Samples of which a point counts; those of others are no part of the mean.
std::int64_t ClassLoss::labelled_samples(const GlobalClassSums& sums) const {
  std::int64_t count = 0;
  for (std::int64_t b = 0; b < sums.samples; ++b) count += labelled_weight(sums, b) > 0 ? 1 : 0;
  return count;
}

double ClassLoss::value(const GlobalClassSums& sums) const {
  const double total = std::accumulate(class_weights_.begin(), class_weights_.end(), 0.0);
  double loss = 0;
  for (std::int64_t b = 0; b < sums.samples; ++b) {
    const double labelled = labelled_weight(sums, b);
    if (!(labelled > 0)) continue;
    for (std::int64_t k = 0; k < sums.classes; ++k) {
      const double weight = class_weights_[static_cast<std::size_t>(k)];
      const double overlap = 2 * sums.of(ClassSums::kIntersection, b, k) + smoothing_;
      const double both =
          sums.of(ClassSums::kPredicted, b, k) + sums.of(ClassSums::kLabelled, b, k) + smoothing_;
      if (cross_entropy_) loss += weight * sums.of(ClassSums::kSurprise, b, k) / labelled;
      if (dice_) loss += weight / total * (1 - overlap / both);
    }
  }
  const std::int64_t samples = labelled_samples(sums);
  return samples > 0 ? loss / static_cast<double>(samples) : 0.0;
}

Array ClassLoss::factors(const Rank& rank, const GlobalClassSums& sums, double scale, const Box& box) const {
  const double total = std::accumulate(class_weights_.begin(), class_weights_.end(), 0.0);
  const std::int64_t each = box.extent[0] * sums.classes;
  Array result(rank.context, {3, box.extent[0], sums.classes}, DType::kFloat64, Purpose::kWorkspace);
  std::ranges::fill(result.span<double>(), 0.0);
  const double share = scale / static_cast<double>(std::max<std::int64_t>(1, labelled_samples(sums)));
  for (std::int64_t i = 0; i < each; ++i) {
    const std::int64_t b = box.begin[0] + i / sums.classes, k = i % sums.classes;
    const double labelled = labelled_weight(sums, b), weight = class_weights_[static_cast<std::size_t>(k)];
    if (!(labelled > 0)) continue;
    const double overlap = 2 * sums.of(ClassSums::kIntersection, b, k) + smoothing_;
    const double both =
        sums.of(ClassSums::kPredicted, b, k) + sums.of(ClassSums::kLabelled, b, k) + smoothing_;
    double* const to = result.data<double>() + i;
    if (cross_entropy_) to[0] = share * weight / labelled;
    if (dice_) {
      to[each] = -2 * share * weight / (total * both);
      to[2 * each] = share * weight * overlap / (total * both * both);
    }
  }
  return result;
}

}  // namespace jigsaw
