#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "autograd/variable.h"
#include "kernels/loss.h"
#include "samples/cell_weights.h"
#include "task/ensemble.h"

namespace jigsaw::inline task {

/// A summand of a loss between numbers.
struct ErrorTerm {
  ErrorMeasure measure;
  double weight = 1.0;
};

/// A loss between numbers: the squared error of all variables alike unless told otherwise.
struct FieldLossOptions {
  std::vector<ErrorTerm> terms = {{}};
  bool area_weighted = true;
  std::map<std::string, double> variable_weights = {};  ///< by name of the target; 1 for the others
  bool by_pressure = false;  ///< levels count by their pressure, as field_loss_options() weighs them
  Members members = {};      ///< predictions of each sample
};

/// Numerator and denominator of a mean.
struct WeightedMean {
  double sum = 0, weight = 0;
  double empty = 0;  ///< samples of which nothing has weight
  /// NaN where nothing has weight.
  double value() const { return sum / weight; }
  void add(const WeightedMean& other) {
    sum += other.sum;
    weight += other.weight;
    empty += other.empty;
  }
};

/// A WeightedMean where the context's arrays stand, so that the host waits for nothing until it reads it.
struct MeanArray {
  Array parts;  ///< f64 [3], as MeanParts has them

  /// Of nothing.
  static MeanArray none(Context& context);
  /// Adds what has `share` of its weight.
  void add(Context& context, const MeanArray& other, double share = 1);
  /// Counts no sample as empty.
  void forget_empty(Context& context);
  /// The same of all samples; `axes` as SampleGroup has them. Collective over the mesh.
  MeanArray over(const Rank& rank, AxisSet other_samples) const;
  /// Waits for the device.
  WeightedMean read(const Context& context) const;
};

/// What training minimises: a function of a prediction and a target that is the same on every mesh. It is a
/// weighted mean over what has a valid point, of all samples, leads and parts of a batch together: who adds
/// up its sums divides by the weight of all.
class Loss {
 public:
  virtual ~Loss() = default;

  /// Where targets lie for predictions in this layout: [B, space…, channels of the target].
  virtual Layout target_layout(const Mesh& mesh, const Layout& prediction) const = 0;
  /// The sum and weight of these samples; d(scale · sum)/d prediction is added to the prediction's slot.
  /// Collective over the mesh, and equal on every rank. The host waits for nothing that a device computes.
  ///
  /// @param target  this rank's piece in target_layout().
  virtual MeanArray backward(const Rank& rank, const Variable& prediction, const Array& target,
                             double scale) const = 0;
  /// The weight of so many samples of which no point is missing.
  virtual double full_weight(std::int64_t samples) const = 0;
  /// The same loss on a grid of so many rows that count alike, for outputs that a model makes on coarser
  /// grids (deep supervision). @throws ConfigError  unless it is one of labels.
  virtual std::unique_ptr<Loss> coarser(std::int64_t rows) const;
};

/// Weights of the points of a box of [B, space…, C], f64 [points]: those of its rows, `row_weights` by global
/// row. For kernels to read.
Array point_weights(const Rank& rank, const Box& box, const std::vector<double>& row_weights);
/// The same of cells. Those of points of their own go up to a device once. @throws DataError  where they
/// cannot be read.
Array point_weights(const Rank& rank, const Box& box, const CellWeights& cells);

/// Which samples of a layout [B, …] stand on this rank and on those it shares them with.
struct SampleGroup {
  std::int64_t first = 0, samples = 0;  ///< global samples [first, first + samples)
  AxisSet other_samples = 0;            ///< axes along which ranks hold other samples
  AxisSet other_points = 0;             ///< axes along which they hold other parts of the same ones

  SampleGroup() = default;
  SampleGroup(const Mesh& mesh, const Layout& layout, const Box& box);
};

/// The sums of every element of a f64 array of the rank's context over the ranks along `axes`; the array
/// itself where there is one rank. Collective over the mesh.
Array sum_over(const Rank& rank, AxisSet axes, const Array& values);
/// The same in place of values of the host, which waits for them.
void sum_over(const Rank& rank, AxisSet axes, std::vector<double>& values);

/// Sums over all points of the grid, per variable and per sample of the group; equal on every rank of it. No
/// rank holds those of all samples: what is wanted of all goes over `data` as a few numbers. On the host.
struct SampleSums {
  SampleGroup group;
  std::int64_t samples = 0, variables = 0;
  std::vector<double> numerator, denominator;  ///< [samples × variables]

  /// The weighted mean of the variable of one of these samples; not a number where no point is valid.
  double mean(std::int64_t sample, std::int64_t variable) const {
    return numerator[index(sample, variable)] / denominator[index(sample, variable)];
  }
  /// Those of all samples together, as of one sample; equal on every rank. Collective over the mesh.
  SampleSums merged(const Rank& rank) const;
  /// Adds sums of as many samples.
  void add(const SampleSums& other);
  std::size_t index(std::int64_t sample, std::int64_t variable) const {
    return static_cast<std::size_t>(sample * variables + variable);
  }
};

/// The same where the context's arrays stand.
struct FieldSums {
  SampleGroup group;
  Array all;  ///< f64 [2, samples, variables]: numerators, denominators

  /// Each [samples, variables].
  LossSums parts() const;
  /// Waits for the device.
  SampleSums read(const Context& context) const;
};

/// Sums of terms over all points of the grid, of predictions of each sample's members. Collective over the
/// mesh.
/// @param prediction  as loss_sums() takes it. @param target  a piece in `layout`; NaN does not count.
/// @param layout      of the target, [B, space…, C].
/// @param weights     f64 [points] of the piece; not read where that is empty.
FieldSums field_sums(const Rank& rank, std::span<const ErrorTerm> terms, const Array& prediction,
                     const Array& target, const Layout& layout, const Array& weights);

/// Distance between prediction and target, a sum of terms: per sample and variable the weighted mean over
/// valid points, numerator and denominator each summed over all ranks that hold a part of it; then the
/// weighted mean over variables and samples. Never a mean of local means.
///
/// Where a sample has several members, predictions are [B·members, space…, C], and what takes them and their
/// layout wants them in one of members_together() (task/ensemble.h); targets stand in of_samples() of it.
class FieldLoss : public Loss {
 public:
  /// @param cells      how much points count when area_weighted.
  /// @param variables  names of the target channels, for variable_weights.
  /// @throws ConfigError when a weight names no variable, or all are 0.
  FieldLoss(const FieldLossOptions& options, const CellWeights& cells, std::vector<std::string> variables);
  /// @param row_weights  weight of each row of the grid (mean 1).
  FieldLoss(const FieldLossOptions& options, const std::vector<double>& row_weights,
            std::vector<std::string> variables)
      : FieldLoss(options, CellWeights(row_weights), std::move(variables)) {}

  Layout target_layout(const Mesh& mesh, const Layout& prediction) const override;
  MeanArray backward(const Rank& rank, const Variable& prediction, const Array& target,
                     double scale) const override;
  double full_weight(std::int64_t samples) const final;

  const std::vector<double>& variable_weights() const { return weights_; }

  /// Collective over the mesh. Prediction: a piece in `layout`. Target: NaN does not count.
  FieldSums sums(const Rank& rank, const ErrorMeasure& measure, const Array& prediction, const Array& target,
                 const Layout& layout) const;
  /// The same of this loss: of the sum of its terms.
  FieldSums sums(const Rank& rank, const Array& prediction, const Array& target, const Layout& layout) const;
  /// Of the samples of these sums alone: the weighted sum of the means that the loss is a mean of.
  MeanArray mean(Context& context, const LossSums& sums) const;
  WeightedMean mean(const SampleSums& sums) const;
  /// The same of all samples; its value is the loss. Collective over the mesh.
  MeanArray global_mean(const Rank& rank, const FieldSums& sums) const;
  /// d(scale · sum of global_mean()) / d prediction, in the prediction's layout.
  Array gradient(const Rank& rank, const FieldSums& sums, double scale, const Array& prediction,
                 const Array& target, const Layout& layout) const;

 private:
  /// variable_weights() for kernels, f64 [variables].
  Array weights(Context& context) const;
  FieldSums sums_of(const Rank& rank, std::span<const ErrorTerm> terms, const Array& prediction,
                    const Array& target, const Layout& layout) const;

  std::vector<ErrorTerm> terms_;
  Members members_;
  CellWeights cells_;
  std::vector<double> weights_;  // per variable
};

}  // namespace jigsaw::inline task
