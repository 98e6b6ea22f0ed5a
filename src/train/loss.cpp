#include "train/loss.h"

#include <algorithm>
#include <numeric>

#include "array/transfer.h"
#include "base/error.h"
#include "base/text.h"
#include "kernels/pointwise.h"

namespace jigsaw::inline train {

Array point_weights(const Rank& rank, const Box& box, const std::vector<double>& row_weights) {
  const std::int64_t rows = box.extent[1], points = box.extent.count(2, box.extent.rank() - 1);
  std::vector<double> weights;
  weights.reserve(static_cast<std::size_t>(rows * points));
  for (std::int64_t row = 0; row < rows; ++row) {
    weights.insert(weights.end(), static_cast<std::size_t>(points),
                   row_weights[static_cast<std::size_t>(box.begin[1] + row)]);
  }
  return constant(rank.context, {rows * points}, DType::kFloat64, weights);
}

FieldLoss::FieldLoss(const FieldLossOptions& options, const std::vector<double>& row_weights,
                     std::vector<std::string> variables)
    : terms_(options.terms), row_weights_(row_weights) {
  if (!options.area_weighted) row_weights_.assign(row_weights.size(), 1.0);
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

std::vector<double> sum_over(const Rank& rank, AxisSet axes, const Array& values) {
  Communicator& group = rank.mesh.communicator(axes);
  return download_values(rank.context, group.size() == 1 ? values : group.all_reduce(values));
}

void sum_over(const Rank& rank, AxisSet axes, std::vector<double>& values) {
  if (rank.mesh.communicator(axes).size() == 1) return;
  values = sum_over(rank, axes, constant(rank.context, {std::ssize(values)}, DType::kFloat64, values));
}

WeightedMean WeightedMean::over(const Rank& rank, AxisSet other_samples) const {
  std::vector<double> all = {sum, weight, empty};
  sum_over(rank, other_samples, all);
  return {all[0], all[1], all[2]};
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

Layout FieldLoss::target_layout(const Mesh&, const Layout& prediction) const {
  return prediction;
}

WeightedMean FieldLoss::backward(const Rank& rank, const Variable& prediction, const Array& target,
                                 double scale) const {
  const ShardedTensor x = prediction.value();
  const SampleSums own = sums(rank, x.piece, target, x.layout);
  const WeightedMean of_sum{0, 1};
  prediction.slot()->add(rank, {gradient(rank, own, of_sum, scale, x.piece, target, x.layout), x.layout});
  return global_mean(rank, own);
}

double FieldLoss::full_weight(std::int64_t samples) const {
  return static_cast<double>(samples) * std::accumulate(weights_.begin(), weights_.end(), 0.0);
}

SampleSums FieldLoss::sums(const Rank& rank, const ErrorMeasure& measure, const Array& prediction,
                           const Array& target, const Layout& layout) const {
  const ErrorTerm term{measure};
  return sums_of(rank, std::span(&term, 1), prediction, target, layout);
}

SampleSums FieldLoss::sums(const Rank& rank, const Array& prediction, const Array& target,
                           const Layout& layout) const {
  return sums_of(rank, terms_, prediction, target, layout);
}

SampleSums FieldLoss::sums_of(const Rank& rank, std::span<const ErrorTerm> terms, const Array& prediction,
                              const Array& target, const Layout& layout) const {
  const Box box = rank.box(layout);
  const SampleGroup group(rank.mesh, layout, box);
  SampleSums result{group, group.samples, layout.global.back(), {}, {}};
  const std::int64_t count = result.samples * result.variables;
  Array sums = filled(rank.context, {2 * count}, DType::kFloat64, 0.0, Purpose::kWorkspace);
  Array numerator = sums.slice(0, {count}), denominator = sums.slice(count, {count});
  // A piece holds some of the variables of each of its samples.
  const std::int64_t channels = box.extent.back(), first = box.begin[box.begin.rank() - 1];
  const auto place = [&](const Array& of_piece, Array& to) {
    for (std::int64_t b = 0; b < box.extent[0]; ++b)
      copy_elements(rank.context, of_piece, b * channels, to, b * result.variables + first, channels);
  };
  for (const ErrorTerm& term : terms) {
    if (box.empty()) break;
    LossSums local =
        loss_sums(rank.context, term.measure, prediction, target, point_weights(rank, box, row_weights_));
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
  const std::vector<double> all = sum_over(rank, group.other_points, sums);
  const auto middle = all.begin() + static_cast<std::ptrdiff_t>(count);
  result.numerator.assign(all.begin(), middle);
  result.denominator.assign(middle, all.end());
  return result;
}

WeightedMean FieldLoss::mean(const SampleSums& sums) const {
  WeightedMean result;
  for (std::int64_t b = 0; b < sums.samples; ++b) {
    WeightedMean sample;
    for (std::int64_t c = 0; c < sums.variables; ++c) {
      if (!sums.has_points(b, c)) continue;
      const double weight = weights_[static_cast<std::size_t>(c)];
      sample.sum += weight * sums.mean(b, c);
      sample.weight += weight;
    }
    sample.empty = sample.weight > 0 ? 0 : 1;
    result.add(sample);
  }
  return result;
}

WeightedMean FieldLoss::global_mean(const Rank& rank, const SampleSums& sums) const {
  return mean(sums).over(rank, sums.group.other_samples);
}

Array FieldLoss::gradient(const Rank& rank, const SampleSums& sums, const WeightedMean& global, double scale,
                          const Array& prediction, const Array& target, const Layout& layout) const {
  const Box box = rank.box(layout);
  if (box.empty()) return prediction;
  const std::int64_t channels = box.extent.back(), first_channel = box.begin[box.begin.rank() - 1];
  std::vector<double> factor;
  for (std::int64_t b = 0; b < box.extent[0]; ++b) {
    for (std::int64_t c = 0; c < channels; ++c) {
      const std::int64_t variable = first_channel + c;
      const double denominator = sums.denominator[sums.index(b, variable)];
      factor.push_back(global.weight > 0 && denominator > 0
                           ? scale * weights_[static_cast<std::size_t>(variable)] /
                                 (global.weight * denominator)
                           : 0.0);
    }
  }
  Array gradient;
  for (const ErrorTerm& term : terms_) {
    std::vector<double> of_term(factor.size());
    std::transform(factor.begin(), factor.end(), of_term.begin(), [&](double f) { return term.weight * f; });
    const Array each =
        loss_gradient(rank.context, term.measure, prediction, target, point_weights(rank, box, row_weights_),
                      constant(rank.context, {box.extent[0], channels}, DType::kFloat64, of_term));
    gradient = gradient.defined() ? add(rank.context, gradient, each) : each;
  }
  return gradient;
}

}  // namespace jigsaw::inline train
