#pragma once
#include <cmath>
#include <numbers>
#include <span>

#include "array/array.h"

namespace jigsaw::inline kernels {

/// What is summed of the error e: e², |e|, e itself (a bias), Huber's ½e² up to |e| = δ and δ(|e| − ½δ)
/// beyond (torch.nn.functional.huber_loss), ln cosh e (smooth, ½e² of small errors and |e| − ln 2 of large
/// ones), or |e| less what members of an ensemble differ by: the continuous ranked probability score.
enum class ErrorNorm : std::uint8_t { kSquared, kAbsolute, kSigned, kHuber, kLogCosh, kCrps };

/// A norm with its parameter.
struct ErrorMeasure {
  ErrorNorm norm = ErrorNorm::kSquared;
  double delta = 1.0;  ///< δ of kHuber, above 0
  double alpha = 1.0;  ///< of kCrps, in [0, 1]: how fair the score is

  // A norm that needs no parameter is a measure.
  ErrorMeasure(ErrorNorm which = ErrorNorm::kSquared, double huber_delta = 1.0)  // NOLINT
      : norm(which), delta(huber_delta) {}
  /// The almost fair score of Lang et al. 2024 (AIFS-CRPS, arXiv 2412.15832): with alpha 1 the fair
  /// one, which no number of members biases; with 0 that of the members as if they were all there are.
  static ErrorMeasure crps(double alpha) {
    ErrorMeasure measure(ErrorNorm::kCrps);
    measure.alpha = alpha;
    return measure;
  }
  /// Factor of Σ |x_j − x_k| over pairs j < k of so many members, which is taken from the mean of |e|.
  double pair_weight(std::int64_t members) const {
    if (norm != ErrorNorm::kCrps || members < 2) return 0.0;
    const auto m = static_cast<double>(members);
    return (1.0 - (1.0 - alpha) / m) / (m * (m - 1.0));
  }
  /// Of one error.
  double value(double e) const {
    const double size = e < 0.0 ? -e : e;
    if (norm == ErrorNorm::kLogCosh) return size + std::log1p(std::exp(-2.0 * size)) - std::numbers::ln2;
    const double huber = size <= delta ? 0.5 * e * e : delta * (size - 0.5 * delta);
    return norm == ErrorNorm::kSquared  ? e * e
           : norm == ErrorNorm::kSigned ? e
           : norm == ErrorNorm::kHuber  ? huber
                                        : size;
  }
  /// Its derivative; 0 at e = 0 where there is none.
  double slope(double e) const {
    if (norm == ErrorNorm::kLogCosh) return std::tanh(e);
    const double sign = e > 0.0 ? 1.0 : e < 0.0 ? -1.0 : 0.0;
    const double huber = e <= delta && e >= -delta ? e : delta * sign;
    return norm == ErrorNorm::kSquared  ? 2.0 * e
           : norm == ErrorNorm::kSigned ? 1.0
           : norm == ErrorNorm::kHuber  ? huber
                                        : sign;
  }
};

/// Weighted sums per sample and channel over the points held here, in float64.
struct LossSums {
  Array numerator;    ///< [b, c]: Σ weight · measure over valid points
  Array denominator;  ///< [b, c]: Σ weight over valid points
};
template <typename F>
void for_each_array(LossSums& all, const F& f) {
  f(all.numerator);
  f(all.denominator);
}

/// Several predictions of a target are members of an ensemble. A point's measure is the mean over members x_j
/// of measure(x_j − target), less pair_weight() · Σ |x_j − x_k| over pairs.
///
/// @param prediction  [b·m, points…, c], f32, f64 or bf16: m members of the first sample, then of the second.
/// @param target      [b, points…, c], f32 or f64; NaN marks a point that does not count.
/// @param weight      [points], f64: weight of each point (zero in padding).
LossSums loss_sums(Context& context, const ErrorMeasure& measure, const Array& prediction,
                   const Array& target, const Array& weight);

/// d loss / d prediction = factor[b, c] · weight · d measure/d x_j at valid points, else 0; of prediction's
/// shape and type.
/// @param factor  [b, c], f64.
Array loss_gradient(Context& context, const ErrorMeasure& measure, const Array& prediction,
                    const Array& target, const Array& weight, const Array& factor);

/// What a weighted mean is made of, as kernels give it: f64 [3].
struct MeanParts {
  static constexpr int kKinds = 3;
  enum Kind : std::uint8_t {
    kSum,     ///< Σ weight · value
    kWeight,  ///< Σ weight
    kEmpty    ///< samples of which nothing has weight
  };
};

/// Of the weighted means of each sample and channel their weighted mean over channels and samples, in
/// MeanParts: Σ weight[c] · numerator/denominator and Σ weight[c] over those whose denominator is above 0;
/// samples of which that adds up to nothing are empty.
/// @param sums    over all points, [b, c].
/// @param weight  [c], f64: of each channel.
Array loss_mean(Context& context, const LossSums& sums, const Array& weight);

/// d(scale · kSum)/d numerator, f64 [b, c]: scale · weight[c]/denominator where that is above 0, else 0.
/// @param denominator, weight  as loss_mean() takes them.
Array loss_factors(Context& context, const Array& denominator, const Array& weight, double scale);

/// What softmax probabilities p and labels say of each class, summed over the points held here, in float64.
/// Every loss and score of a segmentation is a function of these numbers.
struct ClassSums {
  static constexpr int kKinds = 6;
  /// [6, b, k], each a weighted sum over valid points; q is the class that a point's label names:
  Array all;

  enum Kind : std::uint8_t {
    kSurprise,      ///< Σ −log p_k where q = k
    kLabelled,      ///< how many have q = k
    kIntersection,  ///< Σ p_k where q = k
    kPredicted,     ///< Σ p_k
    kHits,          ///< how many have q = k and k the likeliest class (the first of equals)
    kChosen         ///< how many have k the likeliest class
  };
};
template <typename F>
void for_each_array(ClassSums& all, const F& f) {
  f(all.all);
}

/// @param logits  [b, points…, k], f32, f64 or bf16; p is their softmax over k.
/// @param labels  [b, points…, 1], f32 or f64: whole numbers in [0, k); NaN marks a point that does not
/// count.
/// @param weight  [points], f64.
ClassSums class_sums(Context& context, const Array& logits, const Array& labels, const Array& weight);

/// d/d logits of Σ over b, k of factors[0]·surprise + factors[1]·intersection + factors[2]·predicted; of the
/// logits' type.
/// @param factors  [3, b, k], f64.
Array class_gradient(Context& context, const Array& logits, const Array& labels, const Array& weight,
                     const Array& factors);

/// A summand of a loss of classes.
struct ClassTerm {
  enum class Kind : std::uint8_t { kCrossEntropy, kDice };
  Kind kind = Kind::kCrossEntropy;
  double weight = 1.0;
  double smoothing = 1.0;  ///< of dice
  bool background = true;  ///< of dice: whether class 0 is among the classes of its mean

  /// The first class of which the term is a mean.
  std::int64_t first() const { return kind == Kind::kDice && !background ? 1 : 0; }
};

/// Of the sums of terms of each sample the mean over samples that have a labelled point, in MeanParts; such a
/// sample weighs 1. Cross-entropy is Σ weight[k] · surprise over Σ weight[k] · labelled, as
/// torch.nn.functional.cross_entropy has it; dice is 1 − (2 · intersection + smoothing)/(predicted + labelled
/// + smoothing), meant over classes by their weight: over all, or all but class 0, whose probabilities are
/// still those of a softmax over all (monai.losses.DiceLoss with include_background False).
/// @param sums    over all points, [6, b, k].
/// @param weight  [k], f64: of each class.
Array class_mean(Context& context, const ClassSums& sums, std::span<const ClassTerm> terms,
                 const Array& weight);

/// d(scale · kSum)/d surprise, intersection and predicted, f64 [3, b, k]; 0 for samples without a labelled
/// point.
/// @param sums, terms, weight  as class_mean() takes them.
Array class_factors(Context& context, const ClassSums& sums, std::span<const ClassTerm> terms,
                    const Array& weight, double scale);

}  // namespace jigsaw::inline kernels
