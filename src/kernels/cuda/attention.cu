#include "array/raw_memory.h"
#include "kernels/cuda/attention_by_cudnn.h"
#include "kernels/cuda/attention_passes.h"
#include "kernels/cuda/attention_tiles.cuh"
#include "kernels/cuda/constants.h"
#include "kernels/cuda/packet.cuh"
#include "kernels/front/attention_kernels.h"

namespace jigsaw::inline kernels::cuda {

namespace {

/// Rows are numbered as a log-sum-exp's, [B, heads, queries]; outputs are [B, queries, heads, d].
struct OutputRows {
  std::int64_t queries, heads, d;
  __device__ std::int64_t row_of(std::int64_t element) const { return row_of_head(element / d); }
  /// The row of a head, given the head's place in an output.
  __device__ std::int64_t row_of_head(std::int64_t place) const {
    const std::int64_t token = place / heads % queries, head = place % heads;
    return (place / heads / queries * heads + head) * queries + token;
  }
};
OutputRows rows_of(const Array& output) {
  return {output.shape()[1], output.shape()[2], output.shape()[3]};
}

/// Whether the query sees a key in neither of two parts, told by the log-sum-exps.
template <typename R>
__device__ bool see_nothing(R here, R there) {
  return here == -static_cast<R>(INFINITY) && there == -static_cast<R>(INFINITY);
}

template <typename R>
struct CombineOutputs {
  OutputRows rows;
  R* into;
  const R *more, *into_lse, *more_lse;
  __device__ void operator()(std::int64_t i) const {
    const std::int64_t row = rows.row_of(i);
    const R here = into_lse[row], there = more_lse[row];
    if (see_nothing(here, there)) return;
    const R largest = there > here ? there : here;  // a NaN of either shows in both factors
    const R keep = exp(here - largest), add = exp(there - largest);
    into[i] = (into[i] * keep + more[i] * add) / (keep + add);
  }
};

template <typename R>
struct CombineSums {
  R* into;
  const R* more;
  __device__ void operator()(std::int64_t row) const {
    const R here = into[row], there = more[row];
    if (see_nothing(here, there)) return;
    const R largest = there > here ? there : here;
    into[row] = largest + log(exp(here - largest) + exp(there - largest));
  }
};

/// Heads are taken as they lie, each by a thread.
template <typename T>
struct SumRows {
  using R = Accumulator<T>;
  static constexpr int kCount = kPacket<Element<T>>;
  OutputRows rows;
  const Element<T>*y, *dy;
  R* sums;
  bool in_packets = rows.d % kCount == 0 && begin_packets<kCount>(y, dy);

  __device__ void operator()(std::int64_t head) const {
    const std::int64_t first = head * rows.d;
    sums[rows.row_of_head(head)] = in_packets ? sum<kCount>(first) : sum<1>(first);
  }
  template <int kOnce>
  __device__ R sum(std::int64_t first) const {
    R sum = 0, a[kOnce], b[kOnce];
    for (std::int64_t c = 0; c < rows.d; c += kOnce) {
      read_packet(y, first + c, a);
      read_packet(dy, first + c, b);
      for (int k = 0; k < kOnce; ++k) sum += a[k] * b[k];
    }
    return sum;
  }
};

/// x is [B, tokens, slots, heads, d]; tables are one an axis, [points, pairs].
template <typename T>
struct Rotate {
  Divisor tokens, slots, heads, d, section;  ///< section: numbers of a head that one axis turns
  int axes = 0;
  Divisor extent[Shape::kMaxRank] = {};
  const double *cosine[Shape::kMaxRank] = {}, *sine[Shape::kMaxRank] = {};
  const Element<T>* x = nullptr;
  Element<T>* y = nullptr;

  __device__ void operator()(std::int64_t i) const {
    using R = Accumulator<T>;
    std::int64_t rest = i, axis = take_digit(rest, d);
    take_digit(rest, heads);
    if (take_digit(rest, slots) > 1) {
      y[i] = x[i];
      return;
    }
    const std::int64_t half = section.by / 2, place = take_digit(axis, section);
    std::int64_t point = take_digit(rest, tokens);
    for (int later = axes - 1; later > axis; --later) point = quotient(point, extent[later]);
    point = take_digit(point, extent[axis]);
    const bool first = place < half;
    const std::int64_t at = point * half + (first ? place : place - half);
    const R other = load<R>(x[first ? i + half : i - half]);
    const R turned = static_cast<R>(sine[axis][at]) * other;
    y[i] = stored<Element<T>>(static_cast<R>(cosine[axis][at]) * load<R>(x[i]) + (first ? -turned : turned));
  }
};

class Attention : public AttentionKernels {
 public:
  void forward(Context& context, const HeadRows& q, const HeadRows& k, const HeadRows& v,
               const AttentionOptions& options, AttentionResult& result) const override {
    if (attention_forward_by_cudnn(context, q, k, v, options, result)) return;
    attention_forward_pass(context, q, k, v, options, result);
  }

  void combine(Context& context, AttentionResult& into, const AttentionResult& more) const override {
    visit(into.output.dtype(), [&](auto zero) {
      using R = Accumulator<decltype(zero)>;
      for_elements(context, into.output.count(),
                   CombineOutputs<R>{rows_of(into.output), into.output.data<R>(), more.output.data<R>(),
                                     into.log_sum_exp.data<R>(), more.log_sum_exp.data<R>()});
      for_elements(context, into.log_sum_exp.count(),
                   CombineSums<R>{into.log_sum_exp.data<R>(), more.log_sum_exp.data<R>()});
    });
  }

  void row_sums(Context& context, const Array& y, const Array& dy, Array& sums) const override {
    visit(y.dtype(), [&](auto zero) {
      using T = decltype(zero);
      for_elements(context, sums.count(),
                   SumRows<T>{rows_of(y), elements<T>(y), elements<T>(dy), sums.data<Accumulator<T>>()});
    });
  }

  void backward(Context& context, const HeadRows& q, const HeadRows& k, const HeadRows& v, const Array& y,
                const Array& dy, const Array& log_sum_exp, Array row_sums, bool sums_are_formed,
                const AttentionOptions& options, HeadRows dq, HeadRows dk, HeadRows dv,
                Array dbias) const override {
    if (attention_backward_by_cudnn(context, q, k, v, y, dy, log_sum_exp, options, dq, dk, dv)) return;
    if (!sums_are_formed) this->row_sums(context, y, dy, row_sums);
    attention_backward_pass(context, q, k, v, dy, log_sum_exp, row_sums, options, dq, dk, dv, dbias);
  }

  void rotate(Context& context, const Array& x, const Shape& space, const std::vector<RotationTable>& tables,
              Array& y) const override {
    const Shape& shape = x.shape();
    visit(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      Rotate<T> rotate{divisor(shape[1]),
                       divisor(shape[2]),
                       divisor(shape[3]),
                       divisor(shape[4]),
                       divisor(shape[4] / space.rank()),
                       space.rank()};
      for (int axis = 0; axis < space.rank(); ++axis) {
        const RotationTable& table = tables[static_cast<std::size_t>(axis)];
        rotate.extent[axis] = divisor(space[axis]);
        rotate.cosine[axis] = constants(context, std::span<const double>(table.cosine));
        rotate.sine[axis] = constants(context, std::span<const double>(table.sine));
      }
      rotate.x = elements<T>(x);
      rotate.y = elements<T>(y);
      for_elements(context, x.count(), rotate);
    });
  }
};

}  // namespace

template <>
const AttentionKernels& kernels() {
  static const Attention instance;
  return instance;
}

}  // namespace jigsaw::inline kernels::cuda
