#include "task/loss.h"

#include <algorithm>
#include <numeric>

#include "array/transfer.h"
#include "base/error.h"
#include "base/text.h"
#include "kernels/copy.h"
#include "kernels/pointwise.h"
#include "parallel/redistribute.h"

namespace jigsaw::inline task {

Array point_weights(const Rank& rank, const Box& box, const std::vector<double>& row_weights) {
  const auto of_rows =
      std::span(row_weights)
          .subspan(static_cast<std::size_t>(box.begin[1]), static_cast<std::size_t>(box.extent[1]));
  return kept_constant(rank.context, {box.extent.count(1, box.extent.rank() - 1)}, DType::kFloat64, of_rows);
}

namespace {

/// What point_weights() took up to a device, by the weights themselves.
struct KeptCellWeights {
  std::map<CellWeights::Values, Array> known;
};

}  // namespace

Array point_weights(const Rank& rank, const Box& box, const CellWeights& cells) {
  if (cells.by_rows()) return point_weights(rank, box, cells.rows());
  const Shape shape{box.extent[1] * box.extent[2]};
  if (rank.context.device() == Device::kMeta)
    return Array(rank.context, shape, DType::kFloat64, Purpose::kWorkspace);
  const CellWeights::Values values = cells.of({{box.begin[1], box.begin[2]}, {box.extent[1], box.extent[2]}});
  const auto make = [&] { return constant(rank.context, shape, DType::kFloat64, *values); };
  if (rank.context.runtime() == nullptr) return make();
  constexpr std::size_t kMost = 8;  // boxes: those of training, and of validation in another batch
  auto& known = rank.context.state<KeptCellWeights>().known;
  if (!known.contains(values) && known.size() >= kMost) known.clear();
  Array& kept = known[values];
  if (!kept.defined()) kept = make();
  return kept;
}

std::unique_ptr<Loss> Loss::coarser(std::int64_t /*rows*/) const {
  throw ConfigError(
      "model.deep_supervision is for targets that are labels (data.task \"map\" with data.classes)");
}

FieldLoss::FieldLoss(const FieldLossOptions& options, const CellWeights& cells,
                     std::vector<std::string> variables)
    : terms_(options.terms), members_(options.members), cells_(cells) {
  if (!options.area_weighted) cells_ = cells.alike();
  for (const std::string& variable : variables) {
    const auto weight = options.variable_weights.find(variable);
    weights_.push_back(weight == options.variable_weights.end() ? 1.0 : weight->second);
  }
  for (const auto& [name, weight] : options.variable_weights) {
    if (std::find(variables.begin(), variables.end(), name) == variables.end()) {
      throw ConfigError(concat("loss.variable_weights.", name, " names no target variable",
                               did_you_mean(name, variables), "; they are ", join(variables, ", ")));
    }
  }
  if (!(full_weight(1) > 0))
    throw ConfigError("loss.variable_weights must leave a target variable a weight above 0");
}

SampleGroup::SampleGroup(const Mesh& mesh, const Layout& layout, const Box& box)
    : first(box.begin[0]), samples(box.extent[0]) {
  for (const int axis : layout.cutting(mesh.shape(), 0)) other_samples |= axis_bit(axis);
  other_points = mesh.all_axes() & ~other_samples;
}

Array sum_over(const Rank& rank, AxisSet axes, const Array& values) {
  Communicator& group = rank.mesh.communicator(axes);
  return group.size() == 1 ? values : group.all_reduce(values);
}

void sum_over(const Rank& rank, AxisSet axes, std::vector<double>& values) {
  if (rank.mesh.communicator(axes).size() == 1) return;
  const Array own = constant(rank.context, {std::ssize(values)}, DType::kFloat64, values);
  values = download_values(rank.context, sum_over(rank, axes, own));
}

MeanArray MeanArray::none(Context& context) {
  return {filled(context, {MeanParts::kKinds}, DType::kFloat64, 0.0, Purpose::kWorkspace)};
}

void MeanArray::add(Context& context, const MeanArray& other, double share) {
  if (share == 1) return accumulate(context, parts, other.parts);
  const Array shared =
      extract_box(context, other.parts, Box::whole(other.parts.shape()), Purpose::kWorkspace);
  static_assert(MeanParts::kSum == 0 && MeanParts::kWeight == 1, "what is shared out stands in front");
  Array front = shared.slice(0, {2});
  scale(context, front, share);
  accumulate(context, parts, shared);
}

void MeanArray::forget_empty(Context& context) {
  Array empty = parts.slice(MeanParts::kEmpty, {1});
  scale(context, empty, 0);
}

MeanArray MeanArray::over(const Rank& rank, AxisSet other_samples) const {
  return {sum_over(rank, other_samples, parts)};
}

WeightedMean MeanArray::read(const Context& context) const {
  const std::vector<double> values = download_values(context, parts);
  return {values[MeanParts::kSum], values[MeanParts::kWeight], values[MeanParts::kEmpty]};
}

SampleSums SampleSums::merged(const Rank& rank) const {
  const auto width = static_cast<std::size_t>(variables);
  std::vector<double> all(2 * width);
  for (std::size_t i = 0; i < numerator.size(); ++i) {
    all[i % width] += numerator[i];
    all[width + i % width] += denominator[i];
  }
  sum_over(rank, group.other_samples, all);
  const auto middle = all.begin() + static_cast<std::ptrdiff_t>(width);
  return {{}, 1, variables, {all.begin(), middle}, {middle, all.end()}};
}

void SampleSums::add(const SampleSums& other) {
  require(other.numerator.size() == numerator.size(), "sums of other variables cannot be added");
  for (std::size_t i = 0; i < numerator.size(); ++i) {
    numerator[i] += other.numerator[i];
    denominator[i] += other.denominator[i];
  }
}

LossSums FieldSums::parts() const {
  const Shape shape{all.shape()[1], all.shape()[2]};
  return {all.slice(0, shape), all.slice(shape.count(), shape)};
}

SampleSums FieldSums::read(const Context& context) const {
  const std::vector<double> values = download_values(context, all);
  const auto middle = values.begin() + std::ssize(values) / 2;
  return {group, all.shape()[1], all.shape()[2], {values.begin(), middle}, {middle, values.end()}};
}

FieldSums field_sums(const Rank& rank, std::span<const ErrorTerm> terms, const Array& prediction,
                     const Array& target, const Layout& layout, const Array& weights) {
  const Box box = rank.box(layout);
  const SampleGroup group(rank.mesh, layout, box);
  const std::int64_t variables = layout.global.back(), count = group.samples * variables;
  Array sums = filled(rank.context, {2, group.samples, variables}, DType::kFloat64, 0.0, Purpose::kWorkspace);
  Array numerator = sums.slice(0, {count}), denominator = sums.slice(count, {count});
  // A piece holds some of the variables of each of its samples.
  const std::int64_t channels = box.extent.back(), first = box.begin[box.begin.rank() - 1];
  const auto place = [&](const Array& of_piece, Array& to) {
    for (std::int64_t b = 0; b < box.extent[0]; ++b)
      copy_elements(rank.context, of_piece, b * channels, to, b * variables + first, channels);
  };
  for (const ErrorTerm& term : terms) {
    if (box.empty()) break;
    LossSums local = loss_sums(rank.context, term.measure, prediction, target, weights);
    if (term.weight != 1) scale(rank.context, local.numerator, term.weight);
    place(local.denominator, denominator);
    if (terms.size() == 1) {
      place(local.numerator, numerator);
      continue;
    }
    Array of_term = filled(rank.context, {count}, DType::kFloat64, 0.0, Purpose::kWorkspace);
    place(local.numerator, of_term);
    accumulate(rank.context, numerator, of_term);
  }
  return {group, sum_over(rank, group.other_points, sums)};
}

Layout FieldLoss::target_layout(const Mesh& mesh, const Layout& prediction) const {
  return of_samples(members_together(mesh, prediction, members_), members_.count);
}

MeanArray FieldLoss::backward(const Rank& rank, const Variable& prediction, const Array& target,
                              double scale) const {
  const ShardedTensor given = prediction.value();
  const ShardedTensor x = redistribute(rank, given, members_together(rank.mesh, given.layout, members_));
  const FieldSums own = sums(rank, x.piece, target, x.layout);
  prediction.slot()->add(rank, {gradient(rank, own, scale, x.piece, target, x.layout), x.layout});
  return global_mean(rank, own);
}

double FieldLoss::full_weight(std::int64_t samples) const {
  return static_cast<double>(samples) * std::accumulate(weights_.begin(), weights_.end(), 0.0);
}

FieldSums FieldLoss::sums(const Rank& rank, const ErrorMeasure& measure, const Array& prediction,
                          const Array& target, const Layout& layout) const {
  const ErrorTerm term{measure};
  return sums_of(rank, std::span(&term, 1), prediction, target, layout);
}

FieldSums FieldLoss::sums(const Rank& rank, const Array& prediction, const Array& target,
                          const Layout& layout) const {
  return sums_of(rank, terms_, prediction, target, layout);
}

FieldSums FieldLoss::sums_of(const Rank& rank, std::span<const ErrorTerm> terms, const Array& prediction,
                             const Array& target, const Layout& layout) const {
  const Layout samples = of_samples(layout, members_.count);
  const Box box = rank.box(samples);
  const Array weights = box.empty() ? Array() : point_weights(rank, box, cells_);
  return field_sums(rank, terms, prediction, target, samples, weights);
}

Array FieldLoss::weights(Context& context) const {
  return kept_constant(context, {std::ssize(weights_)}, DType::kFloat64, weights_);
}

MeanArray FieldLoss::mean(Context& context, const LossSums& sums) const {
  return {loss_mean(context, sums, weights(context))};
}

WeightedMean FieldLoss::mean(const SampleSums& sums) const {
  Context host = Context::make_host(Backend::kReference, 1);
  const auto array = [&](const std::vector<double>& values) {
    return constant(host, {sums.samples, sums.variables}, DType::kFloat64, values);
  };
  return mean(host, {array(sums.numerator), array(sums.denominator)}).read(host);
}

MeanArray FieldLoss::global_mean(const Rank& rank, const FieldSums& sums) const {
  return mean(rank.context, sums.parts()).over(rank, sums.group.other_samples);
}

Array FieldLoss::gradient(const Rank& rank, const FieldSums& sums, double scale, const Array& prediction,
                          const Array& target, const Layout& layout) const {
  const Box box = rank.box(of_samples(layout, members_.count));
  if (box.empty()) return prediction;
  const int last = box.begin.rank() - 1;
  const Array factors = loss_factors(rank.context, sums.parts().denominator, weights(rank.context), scale);
  const Box here{{0, box.begin[last]}, {box.extent[0], box.extent[last]}};
  const Array of_points = point_weights(rank, box, cells_);
  Array gradient;
  for (const ErrorTerm& term : terms_) {
    Array factor = extract_box(rank.context, factors, here, Purpose::kWorkspace);
    if (term.weight != 1) jigsaw::scale(rank.context, factor, term.weight);
    const Array each = loss_gradient(rank.context, term.measure, prediction, target, of_points, factor);
    gradient = gradient.defined() ? add(rank.context, gradient, each) : each;
  }
  return gradient;
}

}  // namespace jigsaw::inline task
