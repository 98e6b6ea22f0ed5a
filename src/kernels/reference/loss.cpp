#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "array/raw_memory.h"
#include "kernels/front/loss_kernels.h"

namespace jigsaw::inline kernels::reference {

namespace {

/// The members' predictions at one valid point of a channel, in float64.
struct Members {
  std::int64_t point;
  std::int64_t sample_channel;      ///< number of the sums that it counts in
  std::int64_t first, apart;        ///< element of the first member, and how far those of members stand apart
  double wanted;                    ///< the target
  std::vector<double> predictions;  ///< of each member

  double measure(const ErrorMeasure& of) const {
    double sum = 0, pairs = 0;
    for (std::size_t j = 0; j < predictions.size(); ++j) {
      sum += of.value(predictions[j] - wanted);
      for (std::size_t k = j + 1; k < predictions.size(); ++k)
        pairs += std::abs(predictions[j] - predictions[k]);
    }
    const auto members = static_cast<double>(predictions.size());
    return sum / members - of.pair_weight(std::ssize(predictions)) * pairs;
  }
  /// d measure/d x_j.
  double slope(const ErrorMeasure& of, std::size_t j) const {
    double above = 0;  // members below x_j less those above it
    for (const double other : predictions)
      above += predictions[j] > other ? 1.0 : predictions[j] < other ? -1.0 : 0.0;
    const auto members = static_cast<double>(predictions.size());
    return of.slope(predictions[j] - wanted) / members - of.pair_weight(std::ssize(predictions)) * above;
  }
};

/// Calls f(members) for every valid point of a channel.
template <typename F>
void for_each_valid(const Array& prediction, const Array& target, F&& f) {
  if (target.count() == 0) return;
  const std::int64_t channels = target.shape().back();
  const std::int64_t points = target.shape().count(1, target.rank() - 1), size = points * channels;
  Members at;
  at.apart = size;
  at.predictions.resize(static_cast<std::size_t>(prediction.shape()[0] / target.shape()[0]));
  visit(prediction.dtype(), [&](auto p_zero) {
    visit(target.dtype(), [&](auto t_zero) {
      for (std::int64_t i = 0; i < target.count(); ++i) {
        at.wanted = static_cast<double>(target.data<decltype(t_zero)>()[i]);
        if (std::isnan(at.wanted)) continue;
        const std::int64_t sample = i / size;
        at.point = i / channels % points;
        at.sample_channel = sample * channels + i % channels;
        at.first = sample * std::ssize(at.predictions) * size + i % size;
        for (std::size_t j = 0; j < at.predictions.size(); ++j) {
          const std::int64_t element = at.first + static_cast<std::int64_t>(j) * size;
          at.predictions[j] = static_cast<double>(prediction.data<decltype(p_zero)>()[element]);
        }
        f(at);
      }
    });
  });
}

/// One valid point of a segmentation, in float64.
struct LabelledPoint {
  std::int64_t first;  ///< its first logit
  double weight;
  std::int64_t sample, label;
  double surprise;  ///< −log p_label
  std::vector<double> p;
};

/// Calls f(point) for every valid one.
template <typename F>
void for_each_label(const Array& logits, const Array& labels, const Array& weight, F&& f) {
  const std::int64_t classes = logits.shape().back();
  const std::int64_t points = logits.shape().count(1, logits.rank() - 1);
  LabelledPoint point;
  std::vector<double>& p = point.p;
  p.resize(static_cast<std::size_t>(classes));
  visit(logits.dtype(), [&](auto x_zero) {
    visit(labels.dtype(), [&](auto label_zero) {
      for (std::int64_t i = 0; i < labels.count(); ++i) {
        const auto label = static_cast<double>(labels.data<decltype(label_zero)>()[i]);
        if (std::isnan(label)) continue;
        const auto* const x = logits.data<decltype(x_zero)>() + i * classes;
        std::transform(x, x + classes, p.begin(), [](auto value) { return static_cast<double>(value); });
        point.first = i * classes;
        point.weight = weight.data<double>()[i % points];
        point.sample = i / points;
        point.label = static_cast<std::int64_t>(label);
        const double largest = *std::max_element(p.begin(), p.end());
        point.surprise = largest - p[static_cast<std::size_t>(point.label)];
        double sum = 0;
        for (double& each : p) sum += each = std::exp(each - largest);
        for (double& each : p) each /= sum;
        point.surprise += std::log(sum);
        f(point);
      }
    });
  });
}

/// Sums [6, b, k] of classes, and what each class weighs.
struct WeightedClasses {
  WeightedClasses(const ClassSums& sums, const Array& weights)
      : samples(sums.all.shape()[1]),
        classes(sums.all.shape()[2]),
        all(sums.all.data<double>()),
        weight(weights.data<double>()) {}

  double of(ClassSums::Kind kind, std::int64_t sample, std::int64_t k) const {
    return all[(kind * samples + sample) * classes + k];
  }
  /// What the labelled points of a sample weigh.
  double labelled(std::int64_t sample) const {
    double sum = 0;
    for (std::int64_t k = 0; k < classes; ++k) sum += weight[k] * of(ClassSums::kLabelled, sample, k);
    return sum;
  }

  /// What the classes of a term weigh together.
  double total(const ClassTerm& term) const {
    return std::accumulate(weight + term.first(), weight + classes, 0.0);
  }

  std::int64_t samples, classes;
  const double *all, *weight;
};

/// What soft Dice of a class is made of: 1 − overlap/both.
struct Overlap {
  Overlap(const WeightedClasses& sums, const ClassTerm& term, std::int64_t sample, std::int64_t k)
      : overlap(2 * sums.of(ClassSums::kIntersection, sample, k) + term.smoothing),
        both(sums.of(ClassSums::kPredicted, sample, k) + sums.of(ClassSums::kLabelled, sample, k) +
             term.smoothing) {}
  double overlap, both;
};

class Loss : public LossKernels {
 public:
  void sums(Context&, const ErrorMeasure& measure, const Array& prediction, const Array& target,
            const Array& weight, LossSums& sums) const override {
    std::ranges::fill(sums.numerator.span<double>(), 0.0);
    std::ranges::fill(sums.denominator.span<double>(), 0.0);
    for_each_valid(prediction, target, [&](const Members& at) {
      const double w = weight.data<double>()[at.point];
      sums.numerator.data<double>()[at.sample_channel] += w * at.measure(measure);
      sums.denominator.data<double>()[at.sample_channel] += w;
    });
  }

  void gradient(Context&, const ErrorMeasure& measure, const Array& prediction, const Array& target,
                const Array& weight, const Array& factor, Array& gradient) const override {
    visit(gradient.dtype(), [&](auto zero) {
      using T = decltype(zero);
      std::ranges::fill(gradient.span<T>(), T(0.0F));
      for_each_valid(prediction, target, [&](const Members& at) {
        const double of_point = factor.data<double>()[at.sample_channel] * weight.data<double>()[at.point];
        for (std::size_t j = 0; j < at.predictions.size(); ++j) {
          gradient.data<T>()[at.first + static_cast<std::int64_t>(j) * at.apart] =
              static_cast<T>(of_point * at.slope(measure, j));
        }
      });
    });
  }

  void mean(Context&, const LossSums& sums, const Array& weight, Array& mean) const override {
    const std::int64_t channels = weight.count();
    const double* const weights = weight.data<double>();
    double* const to = mean.data<double>();
    std::ranges::fill(mean.span<double>(), 0.0);
    for (std::int64_t b = 0; b < sums.numerator.shape()[0]; ++b) {
      const double *const numerator = sums.numerator.data<double>() + b * channels,
                          *const denominator = sums.denominator.data<double>() + b * channels;
      double sum = 0, of_sample = 0;
      for (std::int64_t c = 0; c < channels; ++c) {
        if (!(denominator[c] > 0)) continue;
        sum += weights[c] * (numerator[c] / denominator[c]);
        of_sample += weights[c];
      }
      to[MeanParts::kSum] += sum;
      to[MeanParts::kWeight] += of_sample;
      to[MeanParts::kEmpty] += of_sample > 0 ? 0 : 1;
    }
  }

  void factors(Context&, const Array& denominator, const Array& weight, double scale,
               Array& factors) const override {
    const double *const under = denominator.data<double>(), *const weights = weight.data<double>();
    double* const to = factors.data<double>();
    for (std::int64_t i = 0; i < factors.count(); ++i)
      to[i] = under[i] > 0 ? scale * weights[i % weight.count()] / under[i] : 0.0;
  }

  void class_sums(Context&, const Array& logits, const Array& labels, const Array& weight,
                  ClassSums& sums) const override {
    const std::int64_t classes = logits.shape().back(), each = logits.shape()[0] * classes;
    std::ranges::fill(sums.all.span<double>(), 0.0);
    for_each_label(logits, labels, weight, [&](const LabelledPoint& point) {
      double* const to = sums.all.data<double>() + point.sample * classes;
      const auto likeliest = std::max_element(point.p.begin(), point.p.end()) - point.p.begin();
      to[ClassSums::kSurprise * each + point.label] += point.weight * point.surprise;
      to[ClassSums::kLabelled * each + point.label] += point.weight;
      to[ClassSums::kIntersection * each + point.label] +=
          point.weight * point.p[static_cast<std::size_t>(point.label)];
      for (std::int64_t k = 0; k < classes; ++k) {
        to[ClassSums::kPredicted * each + k] += point.weight * point.p[static_cast<std::size_t>(k)];
      }
      if (likeliest == point.label) to[ClassSums::kHits * each + likeliest] += point.weight;
      to[ClassSums::kChosen * each + likeliest] += point.weight;
    });
  }

  void class_gradient(Context&, const Array& logits, const Array& labels, const Array& weight,
                      const Array& factors, Array& gradient) const override {
    const std::int64_t classes = logits.shape().back(), each = logits.shape()[0] * classes;
    visit(gradient.dtype(), [&](auto zero) {
      using T = decltype(zero);
      std::ranges::fill(gradient.span<T>(), T(0.0F));
      for_each_label(logits, labels, weight, [&](const LabelledPoint& point) {
        const double* const surprise = factors.data<double>() + point.sample * classes;
        const double* const overlap = surprise + each;
        const double* const predicted = overlap + each;
        // dL/dp_k, and its mean over k with weights p_k: the backward of softmax.
        const auto slope = [&](std::int64_t k) {
          return predicted[k] + (k == point.label ? overlap[k] : 0.0);
        };
        double mean = 0;
        for (std::int64_t k = 0; k < classes; ++k) mean += slope(k) * point.p[static_cast<std::size_t>(k)];
        for (std::int64_t k = 0; k < classes; ++k) {
          const double p = point.p[static_cast<std::size_t>(k)];
          const double of_surprise = surprise[point.label] * (p - (k == point.label ? 1.0 : 0.0));
          gradient.data<T>()[point.first + k] =
              static_cast<T>(point.weight * (of_surprise + p * (slope(k) - mean)));
        }
      });
    });
  }

  void class_mean(Context&, const ClassSums& sums, std::span<const ClassTerm> terms, const Array& weight,
                  Array& mean) const override {
    const WeightedClasses all(sums, weight);
    double* const to = mean.data<double>();
    std::ranges::fill(mean.span<double>(), 0.0);
    for (std::int64_t b = 0; b < all.samples; ++b) {
      const double labelled = all.labelled(b);
      if (!(labelled > 0)) {
        to[MeanParts::kEmpty] += 1;
        continue;
      }
      to[MeanParts::kWeight] += 1;
      for (const ClassTerm& term : terms) {
        const double total = all.total(term);
        for (std::int64_t k = term.first(); k < all.classes; ++k) {
          const double of_class = term.weight * all.weight[k];
          if (term.kind == ClassTerm::Kind::kCrossEntropy) {
            to[MeanParts::kSum] += of_class * all.of(ClassSums::kSurprise, b, k) / labelled;
          } else {
            const Overlap dice(all, term, b, k);
            to[MeanParts::kSum] += of_class / total * (1 - dice.overlap / dice.both);
          }
        }
      }
    }
  }

  void class_factors(Context&, const ClassSums& sums, std::span<const ClassTerm> terms, const Array& weight,
                     double scale, Array& factors) const override {
    const WeightedClasses all(sums, weight);
    const std::int64_t each = all.samples * all.classes;
    std::ranges::fill(factors.span<double>(), 0.0);
    for (std::int64_t i = 0; i < each; ++i) {
      const std::int64_t b = i / all.classes, k = i % all.classes;
      const double labelled = all.labelled(b);
      if (!(labelled > 0)) continue;
      double* const to = factors.data<double>() + i;
      for (const ClassTerm& term : terms) {
        if (k < term.first()) continue;
        const double of_class = scale * term.weight * all.weight[k];
        if (term.kind == ClassTerm::Kind::kCrossEntropy) {
          to[0] += of_class / labelled;
        } else {
          const Overlap dice(all, term, b, k);
          const double total = all.total(term);
          to[each] -= 2 * of_class / (total * dice.both);
          to[2 * each] += of_class * dice.overlap / (total * dice.both * dice.both);
        }
      }
    }
  }
};

}  // namespace

template <>
const LossKernels& kernels() {
  static const Loss instance;
  return instance;
}

}  // namespace jigsaw::inline kernels::reference
