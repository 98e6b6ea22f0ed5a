#include <vector>

#include "array/raw_memory.h"
#include "kernels/cuda/column_sums.cuh"
#include "kernels/cuda/constants.h"
#include "kernels/front/loss_kernels.h"

namespace jigsaw::inline kernels::cuda {

namespace {

/// ErrorMeasure's functions, for kernels.
struct Measure {
  ErrorNorm norm;
  double delta;
  __device__ double value(double e) const {
    const double size = e < 0.0 ? -e : e;
    switch (norm) {
      case ErrorNorm::kSquared:
        return e * e;
      case ErrorNorm::kSigned:
        return e;
      case ErrorNorm::kHuber:
        return size <= delta ? 0.5 * e * e : delta * (size - 0.5 * delta);
      case ErrorNorm::kLogCosh:
        return size + log1p(exp(-2.0 * size)) - 0.69314718055994530942;
      case ErrorNorm::kAbsolute:
      case ErrorNorm::kCrps:
        break;
    }
    return size;
  }
  __device__ double slope(double e) const {
    const double sign = e > 0.0 ? 1.0 : e < 0.0 ? -1.0 : 0.0;
    switch (norm) {
      case ErrorNorm::kSquared:
        return 2.0 * e;
      case ErrorNorm::kSigned:
        return 1.0;
      case ErrorNorm::kHuber:
        return e <= delta && e >= -delta ? e : delta * sign;
      case ErrorNorm::kLogCosh:
        return tanh(e);
      case ErrorNorm::kAbsolute:
      case ErrorNorm::kCrps:
        break;
    }
    return sign;
  }
};

/// Predictions of members, [b · members, points, c], and targets, [b, points, c].
template <typename T>
struct Errors {
  std::int64_t points, channels, members;
  const Element<T>* prediction;
  AnyElements target;
  const double* weight;
  Measure measure;
  double share, of_pair;  ///< of each member's measure, and of what a pair of them differs by

  __device__ std::int64_t size() const { return points * channels; }
  /// What a member of the sample predicts of element `within` of it.
  __device__ double member(std::int64_t sample, std::int64_t j, std::int64_t within) const {
    return load<double>(prediction[(sample * members + j) * size() + within]);
  }
};

template <typename T>
Errors<T> errors_of(const ErrorMeasure& measure, const Array& prediction, const Array& target,
                    const Array& weight) {
  const std::int64_t members = target.count() == 0 ? 1 : prediction.shape()[0] / target.shape()[0];
  return {target.shape().count(1, target.rank() - 1),
          target.shape().back(),
          members,
          elements<T>(prediction),
          any_elements(target),
          weight.data<double>(),
          {measure.norm, measure.delta},
          1.0 / static_cast<double>(members),
          measure.pair_weight(members)};
}

/// @tparam kSeveral  whether there is more than one member.
template <typename T, bool kSeveral>
struct ErrorTerms {
  Errors<T> errors;

  struct Part {
    double weight, measure;
    bool counts;
  };
  __device__ Part read(std::int64_t sample, std::int64_t point, std::int64_t channel) const {
    const std::int64_t within = point * errors.channels + channel;
    const auto wanted = errors.target.template get<double>(sample * errors.size() + within);
    if constexpr (kSeveral) {
      double sum = 0, apart = 0;
      for (std::int64_t j = 0; j < errors.members; ++j) {
        const double own = errors.member(sample, j, within);
        sum += errors.measure.value(own - wanted);
        for (std::int64_t k = j + 1; errors.of_pair != 0 && k < errors.members; ++k) {
          const double difference = own - errors.member(sample, k, within);
          apart += difference < 0 ? -difference : difference;
        }
      }
      return {errors.weight[point], errors.share * sum - errors.of_pair * apart, wanted == wanted};
    } else {
      const double measure = errors.measure.value(errors.member(sample, 0, within) - wanted);
      return {errors.weight[point], measure, wanted == wanted};
    }
  }
  __device__ void add(const Part& part, double (&sums)[2]) const {
    if (!part.counts) return;
    sums[0] += part.weight * part.measure;
    sums[1] += part.weight;
  }
};

struct StoreErrors {
  double *numerator, *denominator;
  __device__ void operator()(std::int64_t i, const double (&sums)[2]) const {
    numerator[i] = sums[0];
    denominator[i] = sums[1];
  }
};

template <typename T>
struct ErrorGradient {
  Errors<T> errors;
  const double* factor;
  Element<T>* gradient;
  __device__ void operator()(std::int64_t i) const {
    const std::int64_t within = i % errors.size(), sample = i / errors.size() / errors.members;
    const std::int64_t channel = within % errors.channels, point = within / errors.channels;
    const auto wanted = errors.target.template get<double>(sample * errors.size() + within);
    const auto own = load<double>(errors.prediction[i]);
    double above = 0;  // members below less those above
    for (std::int64_t k = 0; errors.of_pair != 0 && k < errors.members; ++k) {
      const double other = errors.member(sample, k, within);
      above += own > other ? 1.0 : own < other ? -1.0 : 0.0;
    }
    const double slope = errors.share * errors.measure.slope(own - wanted) - errors.of_pair * above;
    const double of_point = factor[sample * errors.channels + channel] * errors.weight[point];
    gradient[i] = stored<Element<T>>(wanted == wanted ? of_point * slope : 0.0);
  }
};

/// Logits [b, points, k] and labels [b, points].
template <typename T>
struct Labelled {
  std::int64_t points, classes;
  const Element<T>* logits;
  AnyElements labels;
  const double* weight;

  __device__ double logit(std::int64_t point, std::int64_t k) const {
    return load<double>(logits[point * classes + k]);
  }
};

template <typename T>
Labelled<T> labelled_of(const Array& logits, const Array& labels, const Array& weight) {
  return {logits.shape().count(1, logits.rank() - 1), logits.shape().back(), elements<T>(logits),
          any_elements(labels), weight.data<double>()};
}

/// A point's softmax: largest logit, which (the first of equals), and Σ exp(logit − largest).
struct Softmax {
  double largest = 0, sum = 0, likeliest = 0;
};

template <typename T>
struct SoftmaxOfPoint {
  Labelled<T> all;
  Softmax* softmax;
  __device__ void operator()(std::int64_t point) const {
    Softmax found;
    found.largest = all.logit(point, 0);
    for (std::int64_t k = 1; k < all.classes; ++k) {
      const double value = all.logit(point, k);
      if (value > found.largest) {
        found.largest = value;
        found.likeliest = static_cast<double>(k);
      }
    }
    for (std::int64_t k = 0; k < all.classes; ++k) found.sum += exp(all.logit(point, k) - found.largest);
    softmax[point] = found;
  }
};

template <typename T>
struct ClassTerms {
  Labelled<T> all;
  const Softmax* softmax;

  struct Part {
    double weight, off, sum;
    bool counts, named, chosen;
  };
  __device__ Part read(std::int64_t sample, std::int64_t point, std::int64_t k) const {
    const std::int64_t at = sample * all.points + point;
    const auto label = all.labels.template get<double>(at), number = static_cast<double>(k);
    const Softmax& known = softmax[at];
    return {all.weight[point], all.logit(at, k) - known.largest, known.sum, label == label,
            label == number,   known.likeliest == number};
  }
  __device__ void add(const Part& part, double (&sums)[ClassSums::kKinds]) const {
    if (!part.counts) return;
    const double weight = part.weight, p = exp(part.off) / part.sum;
    if (part.named) {
      sums[ClassSums::kSurprise] += weight * (log(part.sum) - part.off);
      sums[ClassSums::kLabelled] += weight;
      sums[ClassSums::kIntersection] += weight * p;
    }
    sums[ClassSums::kPredicted] += weight * p;
    if (part.named && part.chosen) sums[ClassSums::kHits] += weight;
    if (part.chosen) sums[ClassSums::kChosen] += weight;
  }
};

struct StoreClasses {
  std::int64_t each;
  double* to;
  __device__ void operator()(std::int64_t i, const double (&sums)[ClassSums::kKinds]) const {
    for (int kind = 0; kind < ClassSums::kKinds; ++kind) to[kind * each + i] = sums[kind];
  }
};

template <typename T>
struct ClassGradient {
  Labelled<T> all;
  const Softmax* softmax;
  std::int64_t each;
  const double* factors;
  Element<T>* gradient;

  /// Of one point: dL/dp_k, and its mean over k with weights p_k, is the backward of softmax.
  __device__ void operator()(std::int64_t at) const {
    const auto label = all.labels.template get<double>(at);
    const std::int64_t sample = at / all.points;
    const double weight = all.weight[at % all.points];
    const double* const surprise = factors + sample * all.classes;
    const Softmax known = softmax[at];
    double mean = 0;
    for (std::int64_t k = 0; k < all.classes; ++k)
      mean += slope(surprise, label, k) * exp(all.logit(at, k) - known.largest) / known.sum;
    for (std::int64_t k = 0; k < all.classes; ++k) {
      const double p = exp(all.logit(at, k) - known.largest) / known.sum;
      const bool named = label == static_cast<double>(k);
      double of_surprise = 0;
      if (label == label)
        of_surprise = surprise[static_cast<std::int64_t>(label)] * (p - (named ? 1.0 : 0.0));
      const double whole = weight * (of_surprise + p * (slope(surprise, label, k) - mean));
      gradient[at * all.classes + k] = stored<Element<T>>(label == label ? whole : 0.0);
    }
  }
  __device__ double slope(const double* surprise, double label, std::int64_t k) const {
    return surprise[2 * each + k] + (label == static_cast<double>(k) ? surprise[each + k] : 0.0);
  }
};

/// Adds up, over all samples, what f(sample, parts) adds to the parts of a mean. One block.
template <typename F>
__global__ void add_parts(std::int64_t samples, F f, double* mean) {
  double own[MeanParts::kKinds] = {};
  for (std::int64_t sample = threadIdx.x; sample < samples; sample += kThreads) f(sample, own);
  for (int part = 0; part < MeanParts::kKinds; ++part) {
    const double sum = block_sum(own[part]);
    if (threadIdx.x == 0) mean[part] = sum;
  }
}

struct FieldMean {
  std::int64_t channels;
  const double *numerator, *denominator, *weight;
  __device__ void operator()(std::int64_t sample, double (&parts)[MeanParts::kKinds]) const {
    double sum = 0, of_sample = 0;
    for (std::int64_t c = 0; c < channels; ++c) {
      const double under = denominator[sample * channels + c];
      if (!(under > 0)) continue;
      sum += weight[c] * (numerator[sample * channels + c] / under);
      of_sample += weight[c];
    }
    parts[MeanParts::kSum] += sum;
    parts[MeanParts::kWeight] += of_sample;
    if (!(of_sample > 0)) parts[MeanParts::kEmpty] += 1;
  }
};

struct FieldFactors {
  std::int64_t channels;
  const double *denominator, *weight;
  double scale;
  double* factors;
  __device__ void operator()(std::int64_t i) const {
    factors[i] = denominator[i] > 0 ? scale * weight[i % channels] / denominator[i] : 0.0;
  }
};

/// A ClassTerm without bytes that nobody set, for constants are found again by their bytes.
struct Term {
  std::int64_t dice, first;
  double weight, smoothing;
};

/// Sums [6, b, k] of classes, what each class weighs, and the terms of a loss of them.
struct WeightedClasses {
  std::int64_t samples, classes, terms;
  const double *all, *weight;
  const Term* term;

  __device__ double of(ClassSums::Kind kind, std::int64_t sample, std::int64_t k) const {
    return all[(kind * samples + sample) * classes + k];
  }
  /// What the labelled points of a sample weigh.
  __device__ double labelled(std::int64_t sample) const {
    double sum = 0;
    for (std::int64_t k = 0; k < classes; ++k) sum += weight[k] * of(ClassSums::kLabelled, sample, k);
    return sum;
  }
  /// What the classes of a term weigh together.
  __device__ double total(const Term& of_term) const {
    double sum = 0;
    for (std::int64_t k = of_term.first; k < classes; ++k) sum += weight[k];
    return sum;
  }
  /// What soft Dice of a class is made of: 1 − overlap/both.
  __device__ double overlap(const Term& dice, std::int64_t sample, std::int64_t k) const {
    return 2 * of(ClassSums::kIntersection, sample, k) + dice.smoothing;
  }
  __device__ double both(const Term& dice, std::int64_t sample, std::int64_t k) const {
    return of(ClassSums::kPredicted, sample, k) + of(ClassSums::kLabelled, sample, k) + dice.smoothing;
  }
};

WeightedClasses weighted_classes(Context& context, const ClassSums& sums, std::span<const ClassTerm> terms,
                                 const Array& weight) {
  std::vector<Term> table;
  for (const ClassTerm& term : terms)
    table.push_back({term.kind == ClassTerm::Kind::kDice, term.first(), term.weight, term.smoothing});
  return {sums.all.shape()[1],     sums.all.shape()[2],   std::ssize(terms),
          sums.all.data<double>(), weight.data<double>(), constants(context, std::span<const Term>(table))};
}

struct ClassMean {
  WeightedClasses all;
  __device__ void operator()(std::int64_t sample, double (&parts)[MeanParts::kKinds]) const {
    const double labelled = all.labelled(sample);
    if (!(labelled > 0)) {
      parts[MeanParts::kEmpty] += 1;
      return;
    }
    parts[MeanParts::kWeight] += 1;
    for (std::int64_t t = 0; t < all.terms; ++t) {
      const Term term = all.term[t];
      const double total = all.total(term);
      for (std::int64_t k = term.first; k < all.classes; ++k) {
        const double of_class = term.weight * all.weight[k];
        if (term.dice == 0) {
          parts[MeanParts::kSum] += of_class * all.of(ClassSums::kSurprise, sample, k) / labelled;
        } else {
          parts[MeanParts::kSum] +=
              of_class / total * (1 - all.overlap(term, sample, k) / all.both(term, sample, k));
        }
      }
    }
  }
};

struct ClassFactors {
  WeightedClasses all;
  double scale;
  double* factors;
  __device__ void operator()(std::int64_t i) const {
    const std::int64_t sample = i / all.classes, k = i % all.classes, each = all.samples * all.classes;
    const double labelled = all.labelled(sample);
    double surprise = 0, intersection = 0, predicted = 0;
    for (std::int64_t t = 0; labelled > 0 && t < all.terms; ++t) {
      const Term term = all.term[t];
      if (k < term.first) continue;
      const double of_class = scale * term.weight * all.weight[k];
      if (term.dice == 0) {
        surprise += of_class / labelled;
      } else {
        const double both = all.both(term, sample, k), total = all.total(term);
        intersection -= 2 * of_class / (total * both);
        predicted += of_class * all.overlap(term, sample, k) / (total * both * both);
      }
    }
    factors[i] = surprise;
    factors[each + i] = intersection;
    factors[2 * each + i] = predicted;
  }
};

class Loss : public LossKernels {
 public:
  void sums(Context& context, const ErrorMeasure& measure, const Array& prediction, const Array& target,
            const Array& weight, LossSums& sums) const override {
    visit(prediction.dtype(), [&](auto zero) {
      using T = decltype(zero);
      const Errors<T> errors = errors_of<T>(measure, prediction, target, weight);
      const StoreErrors store{sums.numerator.data<double>(), sums.denominator.data<double>()};
      const std::int64_t samples = target.shape()[0];
      if (errors.members == 1) {
        column_sums<2>(context, samples, errors.points, errors.channels, ErrorTerms<T, false>{errors}, store);
      } else {
        column_sums<2>(context, samples, errors.points, errors.channels, ErrorTerms<T, true>{errors}, store);
      }
    });
  }

  void gradient(Context& context, const ErrorMeasure& measure, const Array& prediction, const Array& target,
                const Array& weight, const Array& factor, Array& gradient) const override {
    visit(prediction.dtype(), [&](auto zero) {
      using T = decltype(zero);
      for_elements(context, prediction.count(),
                   ErrorGradient<T>{errors_of<T>(measure, prediction, target, weight), factor.data<double>(),
                                    elements<T>(gradient)});
    });
  }

  void mean(Context& context, const LossSums& sums, const Array& weight, Array& mean) const override {
    start_kernel(context, 1, add_parts<FieldMean>, sums.numerator.shape()[0],
                 FieldMean{weight.count(), sums.numerator.data<double>(), sums.denominator.data<double>(),
                           weight.data<double>()},
                 mean.data<double>());
  }

  void factors(Context& context, const Array& denominator, const Array& weight, double scale,
               Array& factors) const override {
    for_elements(context, factors.count(),
                 FieldFactors{weight.count(), denominator.data<double>(), weight.data<double>(), scale,
                              factors.data<double>()});
  }

  void class_sums(Context& context, const Array& logits, const Array& labels, const Array& weight,
                  ClassSums& sums) const override {
    const std::int64_t samples = logits.shape()[0], classes = logits.shape().back();
    visit(logits.dtype(), [&](auto zero) {
      using T = decltype(zero);
      const Labelled<T> all = labelled_of<T>(logits, labels, weight);
      const Array softmax = softmax_of(context, all, labels.count());
      column_sums<ClassSums::kKinds>(context, samples, all.points, classes,
                                     ClassTerms<T>{all, known(softmax)},
                                     StoreClasses{samples * classes, sums.all.data<double>()});
    });
  }

  void class_gradient(Context& context, const Array& logits, const Array& labels, const Array& weight,
                      const Array& factors, Array& gradient) const override {
    const std::int64_t each = logits.shape()[0] * logits.shape().back();
    visit(logits.dtype(), [&](auto zero) {
      using T = decltype(zero);
      const Labelled<T> all = labelled_of<T>(logits, labels, weight);
      const Array softmax = softmax_of(context, all, labels.count());
      for_elements(
          context, labels.count(),
          ClassGradient<T>{all, known(softmax), each, factors.data<double>(), elements<T>(gradient)});
    });
  }

  void class_mean(Context& context, const ClassSums& sums, std::span<const ClassTerm> terms,
                  const Array& weight, Array& mean) const override {
    start_kernel(context, 1, add_parts<ClassMean>, sums.all.shape()[1],
                 ClassMean{weighted_classes(context, sums, terms, weight)}, mean.data<double>());
  }

  void class_factors(Context& context, const ClassSums& sums, std::span<const ClassTerm> terms,
                     const Array& weight, double scale, Array& factors) const override {
    for_elements(context, sums.all.shape()[1] * sums.all.shape()[2],
                 ClassFactors{weighted_classes(context, sums, terms, weight), scale, factors.data<double>()});
  }

 private:
  static const Softmax* known(const Array& softmax) {
    return reinterpret_cast<const Softmax*>(softmax.raw());
  }
  template <typename T>
  static Array softmax_of(Context& context, const Labelled<T>& all, std::int64_t points) {
    Array softmax(context, {points, sizeof(Softmax) / sizeof(double)}, DType::kFloat64, Purpose::kWorkspace);
    for_elements(context, points, SoftmaxOfPoint<T>{all, reinterpret_cast<Softmax*>(softmax.raw())});
    return softmax;
  }
};

}  // namespace

template <>
const LossKernels& kernels() {
  static const Loss instance;
  return instance;
}

}  // namespace jigsaw::inline kernels::cuda
