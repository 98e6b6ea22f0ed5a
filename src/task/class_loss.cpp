#include "task/class_loss.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "array/transfer.h"
#include "base/error.h"
#include "base/text.h"
#include "kernels/contraction.h"
#include "kernels/copy.h"
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
    : regions_(options.regions ? classes : 1),
      of_regions_(options.regions),
      of_batch_(options.batch),
      terms_(options.terms),
      class_weights_(options.class_weights),
      row_weights_(row_weights) {
  if (!options.area_weighted) row_weights_.assign(row_weights.size(), 1.0);
  if (of_regions_) {
    class_weights_ = {1, 1};
    for (ClassTerm& term : terms_) term.background = false;  // Dice is that of the inside
    return;
  }
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

std::unique_ptr<Loss> ClassLoss::coarser(std::int64_t rows) const {
  auto result = std::make_unique<ClassLoss>(*this);
  result->row_weights_.assign(static_cast<std::size_t>(rows), 1.0);
  return result;
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
  if (!of_regions_) layout.global[layout.global.rank() - 1] = 1;
  return layout;
}

MeanArray ClassLoss::backward(const Rank& rank, const Variable& prediction, const Array& target,
                              double scale) const {
  const ShardedTensor x = prediction.value();
  const ShardedTensor logits = redistribute(rank, x, logits_layout(rank.mesh, x.layout));
  const LabelSums own = sums_of_pieces(rank, logits, target);
  const ClassSums sums = of_batch_ ? of_batch(rank, own) : own.sums;
  // So many samples' losses depend on what one of them adds to the sums.
  const std::int64_t shared = of_batch_ ? logits.layout.global[0] : 1;
  const Box box = rank.box(logits.layout);
  Array gradient = logits.piece;
  if (!box.empty()) {
    const Array factors = class_factors(rank.context, of_losses(sums), terms_, class_weights(rank.context),
                                        scale * static_cast<double>(shared) / static_cast<double>(regions_));
    gradient = logits_gradient(
        rank.context,
        class_gradient(rank.context, class_logits(rank.context, logits.piece),
                       class_labels(rank.context, target), point_weights(rank, box, row_weights_), factors),
        logits.piece.shape());
  }
  prediction.slot()->add(rank, {gradient, logits.layout});
  return mean(rank.context, sums).over(rank, own.group.other_samples);
}

ClassSums ClassLoss::of_batch(const Rank& rank, const LabelSums& own) {
  static const ContractionSpec kAdded = ContractionSpec::parse("zbk,b->zk"),
                               kSpread = ContractionSpec::parse("zk,b->zbk");
  Context& context = rank.context;
  const Array ones = filled(context, {own.group.samples}, DType::kFloat64, 1.0, Purpose::kWorkspace);
  const Array added =
      sum_over(rank, own.group.other_samples, contract(context, kAdded, own.sums.all, ones, DType::kFloat64));
  return {contract(context, kSpread, added, ones, DType::kFloat64)};
}

LabelSums ClassLoss::sums(const Rank& rank, const ShardedTensor& prediction, const Array& target) const {
  return sums_of_pieces(rank, redistribute(rank, prediction, logits_layout(rank.mesh, prediction.layout)),
                        target);
}

LabelSums ClassLoss::sums_of_pieces(const Rank& rank, const ShardedTensor& logits,
                                    const Array& target) const {
  const Box box = rank.box(logits.layout);
  const SampleGroup group(rank.mesh, logits.layout, box);
  const Shape shape{ClassSums::kKinds, group.samples, logits.layout.global.back() * (of_regions_ ? 2 : 1)};
  const Array local =
      box.empty() ? filled(rank.context, shape, DType::kFloat64, 0.0, Purpose::kWorkspace)
                  : class_sums(rank.context, class_logits(rank.context, logits.piece),
                               class_labels(rank.context, target), point_weights(rank, box, row_weights_))
                        .all.reshaped(shape);
  return {group, {sum_over(rank, group.other_points, local)}};
}

namespace {

/// [b, points…, c] as [b · c, points, 1].
Array channels_as_samples(Context& context, const Array& x) {
  const Shape& shape = x.shape();
  const std::int64_t samples = shape[0], channels = shape.back(), points = shape.count(1, shape.rank() - 1);
  return permute(context, x.reshaped({samples, points, channels}), std::array{0, 2, 1})
      .reshaped({samples * channels, points, 1});
}

/// The last of two channels.
Box inside_of(const Shape& pairs) {
  Box box = Box::whole(pairs);
  box.begin[2] = 1;
  box.extent[2] = 1;
  return box;
}

}  // namespace

Array ClassLoss::class_logits(Context& context, const Array& logits) const {
  if (!of_regions_) return logits;
  const Array inside = channels_as_samples(context, logits);
  const Shape pairs{inside.shape()[0], inside.shape()[1], 2};
  Array both = filled(context, pairs, logits.dtype(), 0.0, Purpose::kWorkspace);
  copy_box(context, inside, Box::whole(inside.shape()), both, inside_of(pairs));
  return both;
}

Array ClassLoss::class_labels(Context& context, const Array& target) const {
  return of_regions_ ? channels_as_samples(context, target) : target;
}

Array ClassLoss::logits_gradient(Context& context, const Array& gradient, const Shape& logits) const {
  if (!of_regions_) return gradient;
  const Shape& pairs = gradient.shape();
  const Array inside = extract_box(context, gradient, inside_of(pairs), Purpose::kWorkspace);
  return permute(context, inside.reshaped({logits[0], logits.back(), pairs[1]}), std::array{0, 2, 1})
      .reshaped(logits);
}

ClassSums ClassLoss::of_losses(const ClassSums& sums) const {
  if (!of_regions_) return sums;
  return {sums.all.reshaped({ClassSums::kKinds, sums.all.shape()[1] * regions_, 2})};
}

Array ClassLoss::class_weights(Context& context) const {
  return kept_constant(context, {std::ssize(class_weights_)}, DType::kFloat64, class_weights_);
}

MeanArray ClassLoss::mean(Context& context, const ClassSums& sums) const {
  MeanArray result{class_mean(context, of_losses(sums), terms_, class_weights(context))};
  if (regions_ > 1) scale(context, result.parts, 1.0 / static_cast<double>(regions_));
  return result;
}

WeightedMean ClassLoss::mean(const SampleClassSums& sums) const {
  Context host = Context::make_host(Backend::kReference, 1);
  const Shape shape{ClassSums::kKinds, sums.samples, sums.classes};
  return mean(host, ClassSums{constant(host, shape, DType::kFloat64, sums.all)}).read(host);
}

}  // namespace jigsaw::inline task
