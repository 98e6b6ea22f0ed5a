#include "train/class_loss.h"

#include <algorithm>
#include <numeric>

#include "array/transfer.h"
#include "base/error.h"
#include "base/text.h"
#include "kernels/pointwise.h"
#include "parallel/redistribute.h"

namespace jigsaw::inline train {

SampleClassSums SampleClassSums::merged(const Rank& rank) const {
  SampleClassSums result{
      {}, 1, classes, std::vector<double>(static_cast<std::size_t>(ClassSums::kKinds * classes))};
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto index = static_cast<std::int64_t>(i);
    result.all[static_cast<std::size_t>(index / (samples * classes) * classes + index % classes)] += all[i];
  }
  sum_over(rank, group.other_samples, result.all);
  return result;
}

void SampleClassSums::add(const SampleClassSums& other) {
  require(other.all.size() == all.size(), "sums of other classes cannot be added");
  std::transform(all.begin(), all.end(), other.all.begin(), all.begin(), std::plus<>());
}

double SampleClassSums::accuracy() const {
  double hits = 0, labelled = 0;
  for (std::int64_t b = 0; b < samples; ++b) {
    for (std::int64_t k = 0; k < classes; ++k) {
      hits += of(ClassSums::kHits, b, k);
      labelled += of(ClassSums::kLabelled, b, k);
    }
  }
  return labelled > 0 ? hits / labelled : 0.0;
}

double SampleClassSums::dice(std::int64_t k) const {
  double hits = 0, both = 0;
  for (std::int64_t b = 0; b < samples; ++b) {
    hits += of(ClassSums::kHits, b, k);
    both += of(ClassSums::kLabelled, b, k) + of(ClassSums::kChosen, b, k);
  }
  return both > 0 ? 2 * hits / both : 1.0;
}

std::vector<double> class_weights_of(const std::vector<double>& counts) {
  const double total = std::accumulate(counts.begin(), counts.end(), 0.0);
  std::vector<double> weights;
  for (const double count : counts)
    weights.push_back(count > 0 ? total / (static_cast<double>(counts.size()) * count) : 0.0);
  return weights;
}

ClassLoss::ClassLoss(const ClassLossOptions& options, std::int64_t classes,
                     const std::vector<double>& row_weights)
    : terms_(options.terms), class_weights_(options.class_weights), row_weights_(row_weights) {
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

WeightedMean ClassLoss::backward(const Rank& rank, const Variable& prediction, const Array& target,
                                 double scale) const {
  const ShardedTensor x = prediction.value();
  const ShardedTensor logits = redistribute(rank, x, logits_layout(rank.mesh, x.layout));
  const SampleClassSums own = sums_of_pieces(rank, logits, target);
  const Box box = rank.box(logits.layout);
  Array gradient = logits.piece;
  if (!box.empty()) {
    gradient = class_gradient(rank.context, logits.piece, target, point_weights(rank, box, row_weights_),
                              factors(rank, own, scale));
  }
  prediction.slot()->add(rank, {gradient, logits.layout});
  return mean(own).over(rank, own.group.other_samples);
}

SampleClassSums ClassLoss::sums(const Rank& rank, const ShardedTensor& prediction,
                                const Array& target) const {
  return sums_of_pieces(rank, redistribute(rank, prediction, logits_layout(rank.mesh, prediction.layout)),
                        target);
}

SampleClassSums ClassLoss::sums_of_pieces(const Rank& rank, const ShardedTensor& logits,
                                          const Array& target) const {
  const Box box = rank.box(logits.layout);
  const SampleGroup group(rank.mesh, logits.layout, box);
  SampleClassSums result{group, group.samples, logits.layout.global.back(), {}};
  const Shape shape{ClassSums::kKinds, result.samples, result.classes};
  const Array local =
      box.empty()
          ? filled(rank.context, shape, DType::kFloat64, 0.0, Purpose::kWorkspace)
          : class_sums(rank.context, logits.piece, target, point_weights(rank, box, row_weights_)).all;
  result.all = sum_over(rank, group.other_points, local);
  return result;
}

double ClassLoss::labelled_weight(const SampleClassSums& sums, std::int64_t sample) const {
  double weight = 0;
  for (std::int64_t k = 0; k < sums.classes; ++k) {
    weight += class_weights_[static_cast<std::size_t>(k)] * sums.of(ClassSums::kLabelled, sample, k);
  }
  return weight;
}

namespace {

/// What soft Dice of a class is made of: 1 − overlap/both.
struct Overlap {
  Overlap(const SampleClassSums& sums, const ClassTerm& term, std::int64_t sample, std::int64_t k)
      : overlap(2 * sums.of(ClassSums::kIntersection, sample, k) + term.smoothing),
        both(sums.of(ClassSums::kPredicted, sample, k) + sums.of(ClassSums::kLabelled, sample, k) +
             term.smoothing) {}
  double overlap, both;
};

}  // namespace

WeightedMean ClassLoss::mean(const SampleClassSums& sums) const {
  const double total = std::accumulate(class_weights_.begin(), class_weights_.end(), 0.0);
  WeightedMean loss;
  for (std::int64_t b = 0; b < sums.samples; ++b) {
    const double labelled = labelled_weight(sums, b);
    if (!(labelled > 0)) {
      loss.empty += 1;
      continue;
    }
    loss.weight += 1;
    for (const ClassTerm& term : terms_) {
      for (std::int64_t k = 0; k < sums.classes; ++k) {
        const double weight = term.weight * class_weights_[static_cast<std::size_t>(k)];
        if (term.kind == ClassTerm::Kind::kCrossEntropy) {
          loss.sum += weight * sums.of(ClassSums::kSurprise, b, k) / labelled;
        } else {
          const Overlap dice(sums, term, b, k);
          loss.sum += weight / total * (1 - dice.overlap / dice.both);
        }
      }
    }
  }
  return loss;
}

Array ClassLoss::factors(const Rank& rank, const SampleClassSums& sums, double scale) const {
  const double total = std::accumulate(class_weights_.begin(), class_weights_.end(), 0.0);
  const std::int64_t each = sums.samples * sums.classes;
  std::vector<double> result(static_cast<std::size_t>(3 * each), 0.0);
  for (std::int64_t i = 0; i < each; ++i) {
    const std::int64_t b = i / sums.classes, k = i % sums.classes;
    const double labelled = labelled_weight(sums, b);
    if (!(labelled > 0)) continue;
    double* const to = result.data() + i;
    for (const ClassTerm& term : terms_) {
      const double weight = scale * term.weight * class_weights_[static_cast<std::size_t>(k)];
      if (term.kind == ClassTerm::Kind::kCrossEntropy) {
        to[0] += weight / labelled;
      } else {
        const Overlap dice(sums, term, b, k);
        to[each] -= 2 * weight / (total * dice.both);
        to[2 * each] += weight * dice.overlap / (total * dice.both * dice.both);
      }
    }
  }
  return constant(rank.context, {3, sums.samples, sums.classes}, DType::kFloat64, result);
}

}  // namespace jigsaw::inline train
