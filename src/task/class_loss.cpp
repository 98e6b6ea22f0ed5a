#include "task/class_loss.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "array/transfer.h"
#include "base/error.h"
#include "base/text.h"
#include "kernels/pointwise.h"
#include "parallel/redistribute.h"

namespace jigsaw::inline task {

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

SampleClassSums LabelSums::read(const Context& context) const {
  return {group, sums.all.shape()[1], sums.all.shape()[2], download_values(context, sums.all)};
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
  return both > 0 ? 2 * hits / both : std::nan("");
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
  for (const ClassTerm& term : terms_) {
    if (std::accumulate(class_weights_.begin() + term.first(), class_weights_.end(), 0.0) > 0) continue;
    throw ConfigError(
        "loss.class_weights must hold a number above 0 for classes 1 and up, for include_background false "
        "leaves class 0 out");
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

MeanArray ClassLoss::backward(const Rank& rank, const Variable& prediction, const Array& target,
                              double scale) const {
  const ShardedTensor x = prediction.value();
  const ShardedTensor logits = redistribute(rank, x, logits_layout(rank.mesh, x.layout));
  const LabelSums own = sums_of_pieces(rank, logits, target);
  const Box box = rank.box(logits.layout);
  Array gradient = logits.piece;
  if (!box.empty()) {
    gradient =
        class_gradient(rank.context, logits.piece, target, point_weights(rank, box, row_weights_),
                       class_factors(rank.context, own.sums, terms_, class_weights(rank.context), scale));
  }
  prediction.slot()->add(rank, {gradient, logits.layout});
  return mean(rank.context, own.sums).over(rank, own.group.other_samples);
}

LabelSums ClassLoss::sums(const Rank& rank, const ShardedTensor& prediction, const Array& target) const {
  return sums_of_pieces(rank, redistribute(rank, prediction, logits_layout(rank.mesh, prediction.layout)),
                        target);
}

LabelSums ClassLoss::sums_of_pieces(const Rank& rank, const ShardedTensor& logits,
                                    const Array& target) const {
  const Box box = rank.box(logits.layout);
  const SampleGroup group(rank.mesh, logits.layout, box);
  const Shape shape{ClassSums::kKinds, group.samples, logits.layout.global.back()};
  const Array local =
      box.empty()
          ? filled(rank.context, shape, DType::kFloat64, 0.0, Purpose::kWorkspace)
          : class_sums(rank.context, logits.piece, target, point_weights(rank, box, row_weights_)).all;
  return {group, {sum_over(rank, group.other_points, local)}};
}

Array ClassLoss::class_weights(Context& context) const {
  return kept_constant(context, {std::ssize(class_weights_)}, DType::kFloat64, class_weights_);
}

MeanArray ClassLoss::mean(Context& context, const ClassSums& sums) const {
  return {class_mean(context, sums, terms_, class_weights(context))};
}

WeightedMean ClassLoss::mean(const SampleClassSums& sums) const {
  Context host = Context::make_host(Backend::kReference, 1);
  const Shape shape{ClassSums::kKinds, sums.samples, sums.classes};
  return mean(host, ClassSums{constant(host, shape, DType::kFloat64, sums.all)}).read(host);
}

}  // namespace jigsaw::inline task
