#include "array/parallel.h"
#include "array/raw_memory.h"
#include "kernels/cpu/attention_backward.h"
#include "kernels/cpu/attention_forward.h"
#include "kernels/cpu/lane_sum.h"
#include "kernels/cpu/thread_sums.h"
#include "kernels/cpu/vectorize.h"
#include "kernels/front/attention_kernels.h"

namespace jigsaw::inline kernels::cpu {

namespace {

HeadRows as_rows(const Array& y) {
  const Shape& s = y.shape();
  return {y.reshaped({s[0], s[1], 1, s[2], s[3]}), 0};
}

void fill_zero(HeadRows& rows) {
  const WritableRows to(rows);
  const std::vector<float> zeros(static_cast<std::size_t>(rows.head_size()), 0.0F);
  for (std::int64_t row = 0; row < rows.batches() * rows.heads() * rows.tokens(); ++row) {
    const std::int64_t head = row / rows.tokens();
    to.store(head / rows.heads(), head % rows.heads(), row % rows.tokens(), 1, 1.0F, zeros.data(),
             rows.head_size());
  }
}

class Attention : public AttentionKernels {
 public:
  void forward(Context& context, const HeadRows& q, const HeadRows& k, const HeadRows& v,
               const AttentionOptions& options, AttentionResult& result) const override {
    const AttentionProblem p(q, k, v, options);
    const std::int64_t heads = p.batches * p.heads;
    if (heads == 0 || p.queries == 0) return;
    const int threads = threads_for(context, heads * p.query_blocks(), kQueries * p.keys * p.size);
    Workspace workspace(context, threads, AttentionForward<16>::scratch_floats(p));
    HeadQueues queues(heads, p.query_blocks(), threads, HeadQueues::Threads::kHelp);
    run_on_threads(threads, [&](int thread) {
      vectorized_lanes([&, thread](auto lanes) {
        AttentionForward<lanes.value> own(p, result, workspace.of(thread));
        for (HeadQueues::Item item; queues.take(thread, item);) own.run(item);
      });
    });
  }

  void combine(Context& context, AttentionResult& into, const AttentionResult& more) const override {
    const Shape& shape = into.output.shape();
    const std::int64_t heads = shape[2], queries = shape[1], size = shape[3], rows = shape.count(0, 3);
    float *const output = into.output.data<float>(), *const sums = into.log_sum_exp.data<float>();
    const float *const added = more.output.data<float>(), *const more_sums = more.log_sum_exp.data<float>();
    for_ranges(threads_for(context, rows, size), rows, heads, [&](std::int64_t begin, std::int64_t end, int) {
      vectorized([=] {
        for (std::int64_t row = begin; row < end; ++row) {
          const std::int64_t head = row % heads, token = row / heads;
          const std::int64_t at = (token / queries * heads + head) * queries + token % queries;
          const float here = sums[at], there = more_sums[at];
          if (here == kHidden && there == kHidden) continue;
          const float largest = std::max(here, there);  // a NaN of either shows in the sum
          const float sum = std::exp(here - largest) + std::exp(there - largest);
          const float keep = std::exp(here - largest) / sum, add = std::exp(there - largest) / sum;
          for (std::int64_t i = row * size; i < (row + 1) * size; ++i)
            output[i] = keep * output[i] + add * added[i];
          sums[at] = largest + std::log(sum);
        }
      });
    });
  }

  void row_sums(Context& context, const Array& y, const Array& dy, Array& sums) const override {
    const Shape& shape = y.shape();
    const std::int64_t heads = shape[2], queries = shape[1], size = shape[3], rows = shape.count(0, 3);
    float* const to = sums.data<float>();
    visit_fast(y.dtype(), [&](auto zero) {
      using T = decltype(zero);
      const T *const a = y.data<T>(), *const b = dy.data<T>();
      for_ranges(threads_for(context, rows, size), rows, 1, [&](std::int64_t begin, std::int64_t end, int) {
        vectorized([=] {
          for (std::int64_t row = begin; row < end; ++row) {
            const std::int64_t head = row % heads, token = row / heads;
            to[(token / queries * heads + head) * queries + token % queries] =
                lane_sum<float>(size, [x = a + row * size, y = b + row * size](std::int64_t i) {
                  return static_cast<float>(x[i]) * static_cast<float>(y[i]);
                });
          }
        });
      });
    });
  }

  void backward(Context& context, const HeadRows& q, const HeadRows& k, const HeadRows& v, const Array& y,
                const Array& dy, const Array& log_sum_exp, Array row_sums, bool sums_are_formed,
                const AttentionOptions& options, HeadRows dq, HeadRows dk, HeadRows dv,
                Array dbias) const override {
    const AttentionProblem p(q, k, v, options);
    if (!sums_are_formed) this->row_sums(context, y, dy, row_sums);
    if (dbias.defined()) std::fill_n(dbias.data<float>(), dbias.count(), 0.0F);
    if (p.queries == 0 || p.keys == 0) {
      for (HeadRows* rows : {&dq, &dk, &dv}) fill_zero(*rows);
      return;
    }
    const std::int64_t heads = p.batches * p.heads;
    if (heads == 0) return;
    const int threads = threads_for(context, heads * p.key_blocks(), p.queries * kKeys * p.size);
    // The gradient of a bias is a sum over batches, of which each thread has its own.
    const bool biased = dbias.defined();
    ThreadSums bias_sums(context, biased ? threads : 1, biased ? dbias.count() : 1);
    Workspace workspace(context, threads, AttentionBackward<16>::scratch_floats(p));
    HeadQueues queues(heads, p.key_blocks(), threads,
                      biased ? HeadQueues::Threads::kKeep : HeadQueues::Threads::kHelp);
    const bool cut = queues.cut_heads() > 0;
    const Shape parts{queues.parts(), queues.cut_heads(),
                      AttentionBackward<16>::whole_queries(p) * padded_head_size(p.size)};
    Array dq_parts = cut ? Array(context, parts, DType::kFloat32, Purpose::kWorkspace) : Array();
    const AttentionBackwardOperands to{RowsOfHead(as_rows(dy)),
                                       WritableRows(dq),
                                       WritableRows(dk),
                                       WritableRows(dv),
                                       log_sum_exp.data<float>(),
                                       row_sums.data<float>(),
                                       queues,
                                       cut ? dq_parts.data<float>() : nullptr};
    run_on_threads(threads, [&](int thread) {
      float* const own_bias_sums = biased ? bias_sums.of(thread) : nullptr;
      vectorized_lanes([&, thread](auto lanes) {
        AttentionBackward<lanes.value> own(p, to, own_bias_sums, workspace.of(thread));
        for (HeadQueues::Item item; queues.take(thread, item);) {
          own.run(item);
          if (biased) bias_sums.added(thread);
        }
      });
    });
    if (cut) add_parts(threads, p, to);
    if (biased) bias_sums.total(0, dbias.count(), dbias.data<float>());
  }

  void rotate(Context& context, const Array& x, const Shape& space, const std::vector<RotationTable>& tables,
              Array& y) const override {
    const Shape& shape = x.shape();
    const std::int64_t rows = shape[0] * shape[1], width = shape.count(2, 5);
    std::vector<std::vector<float>> cosines, sines;
    for (const RotationTable& table : tables) {
      cosines.emplace_back(table.cosine.begin(), table.cosine.end());
      sines.emplace_back(table.sine.begin(), table.sine.end());
    }
    const std::int64_t pairs = tables.front().pairs, axes = space.rank(), heads = 2 * shape[3], d = shape[4];
    visit_fast(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      for_ranges(threads_for(context, rows, width), rows, 1, [&](std::int64_t begin, std::int64_t end, int) {
        vectorized([&, begin, end] {
          for (std::int64_t row = begin; row < end; ++row) {
            const T* const from = x.data<T>() + row * width;
            T* const to = y.data<T>() + row * width;
            std::int64_t point = row % shape[1];
            for (std::int64_t axis = axes - 1; axis >= 0; --axis) {
              const auto a = static_cast<std::size_t>(axis);
              const std::int64_t extent = space[static_cast<int>(axis)], at = point % extent * pairs;
              point /= extent;
              const float *const cosine = cosines[a].data() + at, *const sine = sines[a].data() + at;
              for (std::int64_t head = 0; head < heads; ++head) {
                const std::int64_t first = head * d + axis * 2 * pairs;
                rotate_section(from + first, cosine, sine, pairs, to + first);
              }
            }
            std::copy(from + heads * d, from + width, to + heads * d);
          }
        });
      });
    });
  }

 private:
  template <typename T>
  static void rotate_section(const T* x, const float* cosine, const float* sine, std::int64_t pairs, T* y) {
    for (std::int64_t i = 0; i < pairs; ++i) {
      const auto a = static_cast<float>(x[i]), b = static_cast<float>(x[pairs + i]);
      y[i] = rounded<T>(a * cosine[i] - b * sine[i]);
      y[pairs + i] = rounded<T>(b * cosine[i] + a * sine[i]);
    }
  }

  class Workspace {
   public:
    Workspace(Context& context, int threads, std::int64_t floats)
        : floats_(Scratch::rounded(floats) + 16 * 16),
          memory_(context, {threads, floats_}, DType::kFloat32, Purpose::kWorkspace) {}
    Scratch of(int thread) { return {memory_.data<float>() + thread * floats_, floats_}; }

   private:
    std::int64_t floats_;
    Array memory_;
  };

  /// dq = scale · the sum over the parts, in their order, of the heads that were cut.
  static void add_parts(int threads, const AttentionProblem& p, const AttentionBackwardOperands& to) {
    const HeadQueues& queues = to.queues;
    const std::int64_t padded = padded_head_size(p.size), whole = AttentionBackward<16>::whole_queries(p),
                       part = queues.cut_heads() * whole * padded;
    for_ranges(threads, queues.cut_heads() * p.queries, 1, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t row = begin; row < end; ++row) {
        const std::int64_t cut_head = row / p.queries, query = row % p.queries;
        float* const sum = to.dq_parts + (cut_head * whole + query) * padded;
        for (std::int64_t other = 1; other < queues.parts(); ++other) {
          for (std::int64_t i = 0; i < padded; ++i) sum[i] += sum[other * part + i];
        }
        const std::int64_t head = queues.head_of_cut(cut_head);
        to.dq.store(head / p.heads, head % p.heads, query, 1, static_cast<float>(p.options.scale), sum,
                    padded);
      }
    });
  }
};

}  // namespace

template <>
const AttentionKernels& kernels() {
  static const Attention instance;
  return instance;
}

}  // namespace jigsaw::inline kernels::cpu
