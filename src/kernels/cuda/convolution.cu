#include <algorithm>

#include "array/raw_memory.h"
#include "base/text.h"
#include "kernels/cuda/conversion.h"
#include "kernels/cuda/convolution_slabs.h"
#include "kernels/cuda/field.cuh"
#include "kernels/cuda/tiled_product.cuh"
#include "kernels/cuda_context.h"
#include "kernels/front/convolution_kernels.h"
#include "kernels/remarks.h"

namespace jigsaw::inline kernels::cuda {

namespace {

/// The convolution as products of matrices that never stand in memory: rows and columns of x are found where
/// they are read.
struct Geometry {
  FieldPlaces x, y;
  WindowPlaces window;
  std::int64_t in, out;  ///< channels of a group

  /// Element of x that the tap reads at a place of y (sample and place as one number), or −1.
  __device__ std::int64_t x_at(std::int64_t group, std::int64_t place_number, std::int64_t tap,
                               std::int64_t channel) const {
    std::int64_t place[3], point[3];
    const std::int64_t sample = y.split(place_number, place);
    window.read(place, tap, point);
    if (!x.inside(point)) return -1;
    return x.point(sample, point) * x.channels + group * in + channel;
  }
  /// Element of y whose place reads a point of x by the tap, or −1.
  __device__ std::int64_t y_at(std::int64_t group, std::int64_t point_number, std::int64_t tap,
                               std::int64_t channel) const {
    std::int64_t place[3], point[3];
    const std::int64_t sample = x.split(point_number, point);
    if (!window.place_of(point, tap, place) || !y.inside(place)) return -1;
    return y.point(sample, place) * y.channels + group * out + channel;
  }
  __device__ std::int64_t weight_at(std::int64_t group, std::int64_t o, std::int64_t c,
                                    std::int64_t tap) const {
    return ((group * out + o) * in + c) * window.taps + tap;
  }
};

Geometry geometry_of(const Convolution& convolution, const Shape& x, const Shape& y) {
  return {field_places(x), field_places(y), window_places(convolution.window, convolution.low),
          x.back() / convolution.groups, y.back() / convolution.groups};
}

/// y[place, o] = Σ over taps and channels of x · w.
template <typename T>
struct ForwardProduct {
  using R = Accumulator<T>;
  Geometry g;
  const Element<T>*x, *weight;
  const R* bias;
  AnyElements y;

  __device__ R a(std::int64_t group, std::int64_t place, std::int64_t k) const {
    const std::int64_t at = g.x_at(group, place, k / g.in, k % g.in);
    return at < 0 ? R(0) : load<R>(x[at]);
  }
  __device__ R b(std::int64_t group, std::int64_t k, std::int64_t o) const {
    return load<R>(weight[g.weight_at(group, o, k % g.in, k / g.in)]);
  }
  __device__ void store(std::int64_t group, std::int64_t, std::int64_t place, std::int64_t o, R sum) const {
    const std::int64_t channel = group * g.out + o;
    y.put(place * g.y.channels + channel, bias != nullptr ? sum + bias[channel] : sum);
  }
};

/// dx[point, c] = Σ over taps and channels of dy · w.
template <typename T>
struct DataProduct {
  using R = Accumulator<T>;
  Geometry g;
  const Element<T>*dy, *weight;
  AnyElements dx;

  __device__ R a(std::int64_t group, std::int64_t point, std::int64_t k) const {
    const std::int64_t at = g.y_at(group, point, k / g.out, k % g.out);
    return at < 0 ? R(0) : load<R>(dy[at]);
  }
  __device__ R b(std::int64_t group, std::int64_t k, std::int64_t c) const {
    return load<R>(weight[g.weight_at(group, k % g.out, c, k / g.out)]);
  }
  __device__ void store(std::int64_t group, std::int64_t, std::int64_t point, std::int64_t c, R sum) const {
    dx.put(point * g.x.channels + group * g.in + c, sum);
  }
};

/// dw[o, tap and channel] = Σ over a slab of places of dy · x.
template <typename T>
struct WeightProduct {
  using R = Accumulator<T>;
  Geometry g;
  const Element<T>*dy, *x;
  std::int64_t count;  ///< of weights
  R* partial;

  __device__ R a(std::int64_t group, std::int64_t o, std::int64_t place) const {
    return load<R>(dy[place * g.y.channels + group * g.out + o]);
  }
  __device__ R b(std::int64_t group, std::int64_t place, std::int64_t n) const {
    const std::int64_t at = g.x_at(group, place, n / g.in, n % g.in);
    return at < 0 ? R(0) : load<R>(x[at]);
  }
  __device__ void store(std::int64_t group, std::int64_t slab, std::int64_t o, std::int64_t n, R sum) const {
    partial[slab * count + g.weight_at(group, o, n % g.in, n / g.in)] = sum;
  }
};

/// The slabs together, in order and in float64.
template <typename R>
struct WeightTotals {
  std::int64_t count, slabs;
  const R* partial;
  AnyElements dw;
  bool add;
  __device__ void operator()(std::int64_t i) const {
    double sum = add ? dw.get<double>(i) : 0.0;
    for (std::int64_t slab = 0; slab < slabs; ++slab) sum += static_cast<double>(partial[slab * count + i]);
    dw.put(i, sum);
  }
};

/// How many sums a weight's gradient is formed in: long sums are cut, as far as the partial ones stay small.
std::int64_t weight_slabs(std::int64_t places, std::int64_t weights) {
  constexpr std::int64_t kSlab = 4096, kMost = 64, kMostNumbers = std::int64_t{1} << 24;
  return std::clamp<std::int64_t>(places / kSlab, 1,
                                  std::clamp<std::int64_t>(kMostNumbers / weights, 1, kMost));
}

/// Weights [O, C, taps] as cuDNN wants them, [O, taps, C], in another type or the same.
struct ChannelsLast {
  std::int64_t channels, taps;
  AnyElements from, to;
  __device__ void operator()(std::int64_t i) const {
    const std::int64_t o = i / (taps * channels), tap = i / channels % taps, c = i % channels;
    to.put(i, from.get<float>((o * channels + c) * taps + tap));
  }
};

/// And back, for their gradient.
struct ChannelsFirst {
  std::int64_t channels, taps;
  const float* from;
  AnyElements to;
  bool add;
  __device__ void operator()(std::int64_t i) const {
    const std::int64_t o = i / (taps * channels), c = i / taps % channels, tap = i % taps;
    const auto value = static_cast<double>(from[(o * taps + tap) * channels + c]);
    to.put(i, add ? to.get<double>(i) + value : value);
  }
};

struct Added {
  const float* part;
  float* sums;
  __device__ void operator()(std::int64_t i) const { sums[i] += part[i]; }
};

/// What cuDNN solves: fields of f32 and bf16. Kernels of ours do the others. Results in f32 of bf16 are
/// formed of TensorFloat-32 products of f32 copies, in which bf16 is exact: parts of sums over ranks, and
/// gradients of weights, keep what many small parts add. (cuDNN makes no result in f32 out of bf16.) Copies
/// are made, and fields of very many numbers solved, slab by slab.
class ByCudnn {
 public:
  static bool forward(Context& context, const Convolution& convolution, const Array& x, const Array& weight,
                      const Array& bias, Array& y) {
    const auto problem = [&](const ConvolutionSlab& slab) {
      return CudnnProblem::forward(slab.convolution, slab.x, bias.defined(), slab.y);
    };
    const DType type = y.dtype();
    const std::vector<Work> work =
        work_of(context, Pass::kForward, convolution, x, y, {copied(x, type), 0}, problem);
    if (work.empty()) return false;
    const Array ordered = channels_last(context, weight, type),
                added = bias.defined() ? operand(context, bias, type) : bias;
    for (const Work& each : work) {
      const Array in = operand(context, each.slab.x, type);
      cudnn_run(context, *each.plan,
                {in.raw(), ordered.raw(), added.defined() ? added.raw() : nullptr, each.slab.y.raw()});
    }
    return true;
  }

  static bool backward_data(Context& context, const Convolution& convolution, const Array& dy,
                            const Array& weight, Array& dx) {
    const auto problem = [](const ConvolutionSlab& slab) {
      return CudnnProblem::backward_data(slab.convolution, slab.y, slab.x);
    };
    const DType type = dx.dtype();
    const std::vector<Work> work =
        work_of(context, Pass::kData, convolution, dx, dy, {0, copied(dy, type)}, problem);
    if (work.empty()) return false;
    const Array ordered = channels_last(context, weight, type);
    for (const Work& each : work) {
      const Array in = operand(context, each.slab.y, type);
      cudnn_run(context, *each.plan, {each.slab.x.raw(), ordered.raw(), nullptr, in.raw()});
    }
    return true;
  }

  static bool backward_weight(Context& context, const Convolution& convolution, const Array& dy,
                              const Array& x, Array& dw, bool add) {
    constexpr DType kType = DType::kFloat32;
    const auto problem = [](const ConvolutionSlab& slab) {
      return CudnnProblem::backward_weight(slab.convolution, slab.y, slab.x);
    };
    const std::vector<Work> work =
        work_of(context, Pass::kWeight, convolution, x, dy, {copied(x, kType), copied(dy, kType)}, problem);
    if (work.empty()) return false;
    Array sums(context, {dw.count()}, kType, Purpose::kWorkspace),
        part = work.size() > 1 ? Array(context, sums.shape(), kType, Purpose::kWorkspace) : Array();
    for (const Work& each : work) {
      const bool more = &each != &work.front();
      const Array wide_x = operand(context, each.slab.x, kType),
                  wide_dy = operand(context, each.slab.y, kType);
      cudnn_run(context, *each.plan, {wide_x.raw(), (more ? part : sums).raw(), nullptr, wide_dy.raw()});
      if (more) for_elements(context, dw.count(), Added{part.data<float>(), sums.data<float>()});
    }
    const std::int64_t channels = dw.shape()[1], taps = dw.count() / (dw.shape()[0] * channels);
    for_elements(context, dw.count(),
                 ChannelsFirst{channels, taps, sums.data<float>(), any_elements(dw), add});
    return true;
  }

 private:
  using Pass = CudnnProblem::Pass;
  struct Work {
    ConvolutionSlab slab;
    const CudnnPlan* plan;
  };

  /// The slabs of x and y with their plans; none where there is nothing for cuDNN, or no plan.
  template <typename F>
  static std::vector<Work> work_of(Context& context, Pass pass, const Convolution& convolution,
                                   const Array& x, const Array& y, const CopiedBytes& bytes,
                                   const F& problem) {
    std::vector<Work> work;
    if (!suits(pass, x, y)) return work;
    const ConvolutionSlabs& most = context.state<ConvolutionSlabs>();
    for (const ConvolutionSlab& slab : convolution_slabs(pass, convolution, x, y, bytes, most)) {
      if (std::max(slab.x.count(), slab.y.count()) > most.most_elements) return {};
      work.push_back({slab, plan_for(context, problem(slab))});
      if (work.back().plan == nullptr) return {};
    }
    return work;
  }

  static bool aligned(const Array& array) { return reinterpret_cast<std::uintptr_t>(array.raw()) % 16 == 0; }
  /// No float64; results of the operands' type or f32.
  static bool suits(Pass pass, const Array& x, const Array& y) {
    if (x.count() == 0 || y.count() == 0) return false;
    if (pass == Pass::kWeight) return x.dtype() != DType::kFloat64;
    const Array &given = pass == Pass::kData ? y : x, &made = pass == Pass::kData ? x : y;
    return given.dtype() != DType::kFloat64 && aligned(made) &&
           (made.dtype() == given.dtype() || made.dtype() == DType::kFloat32);
  }
  static const CudnnPlan* plan_for(Context& context, CudnnProblem problem) {
    if (problem.type == DType::kFloat32 && context.tf32()) problem.rounded = true;
    problem.deterministic = context.deterministic() || problem.pass == Pass::kForward;
    std::string why;
    const CudnnPlan* const plan = cudnn_plan(context, problem, why);
    if (plan == nullptr && cudnn_library().built) {
      if (!why.empty()) why = concat(" (", why, ")");
      context.state<Remarks>().add(concat("cuDNN has no plan for ", problem.text(), why,
                                          ": a far slower kernel of this program does it"));
    }
    return plan;
  }

  /// Bytes of a copy in another type.
  static std::int64_t copied(const Array& array, DType type) {
    return array.dtype() == type ? 0 : array.count() * size_of(type);
  }
  /// As cuDNN reads it: in that type, at a multiple of 16 bytes.
  static Array operand(Context& context, const Array& array, DType type) {
    if (array.dtype() == type && aligned(array)) return array;
    Array result(context, array.shape(), type, Purpose::kWorkspace);
    convert(context, array, result);
    return result;
  }
  static Array channels_last(Context& context, const Array& weight, DType type) {
    Array ordered(context, weight.shape(), type, Purpose::kWorkspace);
    const std::int64_t channels = weight.shape()[1], taps = weight.count() / (weight.shape()[0] * channels);
    for_elements(context, weight.count(),
                 ChannelsLast{channels, taps, any_elements(weight), any_elements(ordered)});
    return ordered;
  }
};

class ConvolutionOnDevice : public ConvolutionKernels {
 public:
  void forward(Context& context, const Convolution& convolution, const Array& x, const Array& weight,
               const Array& bias, Array& y) const override {
    if (ByCudnn::forward(context, convolution, x, weight, bias, y)) return;
    const Geometry g = geometry_of(convolution, x.shape(), y.shape());
    visit(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      const ForwardProduct<T> product{g, elements<T>(x), elements<T>(weight), bias.data<Accumulator<T>>(),
                                      any_elements(y)};
      tiled_product<Accumulator<T>>(
          context, {convolution.groups, 1, g.y.samples * g.y.points, g.out, g.window.taps * g.in}, product);
    });
  }

  void backward_data(Context& context, const Convolution& convolution, const Array& dy, const Array& weight,
                     Array& dx) const override {
    if (ByCudnn::backward_data(context, convolution, dy, weight, dx)) return;
    const Geometry g = geometry_of(convolution, dx.shape(), dy.shape());
    visit(dy.dtype(), [&](auto zero) {
      using T = decltype(zero);
      const DataProduct<T> product{g, elements<T>(dy), elements<T>(weight), any_elements(dx)};
      tiled_product<Accumulator<T>>(
          context, {convolution.groups, 1, g.x.samples * g.x.points, g.in, g.window.taps * g.out}, product);
    });
  }

  void backward_weight(Context& context, const Convolution& convolution, const Array& dy, const Array& x,
                       Array& dw, bool add) const override {
    if (ByCudnn::backward_weight(context, convolution, dy, x, dw, add)) return;
    const Geometry g = geometry_of(convolution, x.shape(), dy.shape());
    const std::int64_t places = g.y.samples * g.y.points, slabs = weight_slabs(places, dw.count());
    visit(dy.dtype(), [&](auto zero) {
      using T = decltype(zero);
      using R = Accumulator<T>;
      Array partial(context, {slabs, dw.count()}, kDType<R>, Purpose::kWorkspace);
      const WeightProduct<T> product{g, elements<T>(dy), elements<T>(x), dw.count(), partial.data<R>()};
      tiled_product<R>(context, {convolution.groups, slabs, g.out, g.window.taps * g.in, places}, product);
      for_elements(context, dw.count(),
                   WeightTotals<R>{dw.count(), slabs, partial.data<R>(), any_elements(dw), add});
    });
  }
};

}  // namespace

template <>
const ConvolutionKernels& kernels() {
  static const ConvolutionOnDevice instance;
  return instance;
}

}  // namespace jigsaw::inline kernels::cuda
