#pragma once
#include <map>
#include <string>
#include <vector>

#include "autograd/variable.h"
#include "config/keys.h"
#include "kernels/loss.h"

namespace jigsaw {

struct LossOptions {
  ErrorNorm type = ErrorNorm::kSquared;
  bool area_weighted = true;
  std::map<std::string, double> variable_weights;
};
void declare(Keys<LossOptions>& keys);

/// Sums over all points of the grid, per global sample and variable, equal on every rank.
struct GlobalSums {
  std::int64_t samples = 0, variables = 0;
  std::vector<double> numerator, denominator;  ///< [samples × variables]

  /// The weighted mean of one sample's variable; has_points() says whether any point was valid.
  double mean(std::int64_t sample, std::int64_t variable) const {
    return numerator[index(sample, variable)] / denominator[index(sample, variable)];
  }
  bool has_points(std::int64_t sample, std::int64_t variable) const {
    return denominator[index(sample, variable)] > 0;
  }
  std::size_t index(std::int64_t sample, std::int64_t variable) const {
    return static_cast<std::size_t>(sample * variables + variable);
  }
};

/// Distance between prediction and target: per sample and variable the weighted mean over valid points,
/// numerator and denominator each summed over all ranks; then the weighted mean over variables and samples.
/// Never a mean of local means.
class FieldLoss {
 public:
  /// @param row_weights  weight of each row of the grid (mean 1), used when area_weighted.
  /// @param variables    names of the target channels, for variable_weights.
  /// @throws ConfigError when a weight names no variable.
  FieldLoss(const LossOptions& options, const std::vector<double>& row_weights,
            std::vector<std::string> variables);

  ErrorNorm norm() const { return norm_; }
  const std::vector<double>& variable_weights() const { return weights_; }

  /// Collective over the mesh. Prediction and target: pieces in `layout` [B, space…, C]; NaN targets do not
  /// count.
  GlobalSums sums(const Rank& rank, ErrorNorm norm, const Array& prediction, const Array& target,
                  const Layout& layout) const;
  /// The loss of these sums.
  double value(const GlobalSums& sums) const;
  /// d(scale · loss) / d prediction, in the prediction's layout.
  Array gradient(const Rank& rank, const GlobalSums& sums, double scale, const Array& prediction,
                 const Array& target, const Layout& layout) const;

 private:
  Array point_weights(const Rank& rank, const Box& box) const;
  double total_weight(const GlobalSums& sums) const;

  ErrorNorm norm_;
  std::vector<double> row_weights_;
  std::vector<double> weights_;  // per variable
};

}  // namespace jigsaw
