#include <string>

#include "array/raw_memory.h"
#include "base/text.h"
#include "kernels/cuda/attention_by_cudnn.h"
#include "kernels/cuda/attention_tiles.cuh"
#include "kernels/cuda/cudnn_attention.h"
#include "kernels/cuda_context.h"
#include "kernels/remarks.h"

namespace jigsaw::inline kernels::cuda {

namespace {

using Places = CudnnAttentionProblem::Places;

/// Heads of [batches, tokens, heads, d], dense, to where results lie, from `batch`, `token` and `head` on.
struct GiveHeads {
  HeadPlaces dense;
  AnyElements from;
  HeadResults to;
  std::int64_t batch, token, head;
  __device__ void operator()(std::int64_t i) const {
    const std::int64_t c = i % dense.d, h = i / dense.d % dense.heads,
                       t = i / dense.d / dense.heads % dense.tokens,
                       b = i / dense.d / dense.heads / dense.tokens;
    to.put(batch + b, token + t, head + h, c, from.get<float>(i));
  }
};
struct AddTo {
  float* sums;
  const float* more;
  __device__ void operator()(std::int64_t i) const { sums[i] += more[i]; }
};
/// A log-sum-exp's rows, dense.
struct TakeRows {
  const float* from;
  std::int64_t batch, head, heads, queries;  ///< elements between batches and heads there; how many here
  float* to;
  __device__ void operator()(std::int64_t i) const {
    to[i] = from[i / queries / heads * batch + i / queries % heads * head + i % queries];
  }
};

bool aligned(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address) % 16 == 0;
}

/// Memory that cuDNN reads or writes: where heads lie in it, and its first.
struct Operand {
  std::byte* first = nullptr;
  Places places;
  std::int64_t size = 0, head_size = 0;  ///< size: bytes of an element

  std::byte* at(std::int64_t batch, std::int64_t token, std::int64_t head) const {
    return first + (batch * places.batch + token * places.token + head * head_size) * size;
  }
};
Operand operand_of(const HeadRows& rows) {
  const std::int64_t size = size_of(rows.array.dtype());
  return {const_cast<std::byte*>(rows.array.raw()) + rows.at(0, 0, 0) * size, Places::of(rows), size,
          rows.head_size()};
}
/// [B, tokens, heads, d].
Operand operand_of(const Array& y) {
  const Shape& s = y.shape();
  return operand_of(HeadRows{y.reshaped({s[0], s[1], 1, s[2], s[3]}), 0});
}

bool is_bf16(const Array& array) {
  return array.dtype() == DType::kBfloat16;
}
/// What cuDNN solves as it stands.
bool suits(const HeadRows& q, const HeadRows& k, const HeadRows& v, const AttentionOptions& options) {
  return CudnnAttentionProblem::suits(q, k, options) && aligned(operand_of(q).first) &&
         aligned(operand_of(k).first) && aligned(operand_of(v).first);
}

const CudnnAttentionPlan* plan_for(Context& context, const CudnnAttentionProblem& problem) {
  std::string why;
  const CudnnAttentionPlan* const plan = cudnn_attention_plan(context, problem, why);
  if (plan == nullptr && cudnn_attention_built()) {
    context.state<Remarks>().add(concat("cuDNN has no plan for ", problem.text(), " (", why,
                                        "): a far slower kernel of this program does it"));
  }
  return plan;
}

/// The same where another problem will do.
const CudnnAttentionPlan* plan_if_any(Context& context, const CudnnAttentionProblem& problem) {
  std::string why;
  return cudnn_attention_plan(context, problem, why);
}

/// The gradients, part by part.
class Backward {
 public:
  Backward(Context& context, const HeadRows& q, const HeadRows& k, const HeadRows& v, const Array& y,
           const Array& dy, const Array& log_sum_exp, double scale, const HeadRows& dq, const HeadRows& dk,
           const HeadRows& dv)
      : context_(context),
        q_(operand_of(q)),
        k_(operand_of(k)),
        v_(operand_of(v)),
        y_(operand_of(y)),
        dy_(operand_of(dy)),
        log_sum_exp_(log_sum_exp),
        dq_(dq),
        dk_(dk),
        dv_(dv),
        whole_(CudnnAttentionProblem::forward(q, k, v, y, scale)) {
    whole_.backward = true;
    whole_.dy = dy_.places;
    whole_.deterministic = context.deterministic();
  }

  bool run() {
    const AttentionParts::Part part = context_.state<AttentionParts>().largest(whole_);
    for (std::int64_t batch = 0; batch < whole_.batches; batch += part.batches) {
      for (std::int64_t head = 0; head < whole_.heads; head += part.heads) {
        CudnnAttentionProblem problem = whole_;
        problem.batches = std::min(part.batches, whole_.batches - batch);
        problem.heads = std::min(part.heads, whole_.heads - head);
        if (!solve(problem, batch, head, part.queries)) return false;
      }
    }
    return true;
  }

 private:
  /// Where cuDNN writes a result.
  struct Result {
    HeadRows rows;  ///< what it is for
    std::int64_t batch, token, head;
    Array scratch;    ///< [batches, tokens, 1, heads, d], where it cannot write there
    Operand operand;  ///< of the part
  };
  Result result_of(const HeadRows& rows, const CudnnAttentionProblem& problem, std::int64_t batch,
                   std::int64_t token, std::int64_t tokens, std::int64_t head, DType type, bool in_place) {
    Result result{rows, batch, token, head, {}, operand_of(rows)};
    if (in_place && rows.array.dtype() == type && aligned(result.operand.first)) {
      result.operand.first = result.operand.at(batch, token, head);
      return result;
    }
    result.scratch = Array(context_, {problem.batches, tokens, 1, problem.heads, problem.head_size}, type,
                           Purpose::kWorkspace);
    result.operand = operand_of(HeadRows{result.scratch, 0});
    return result;
  }
  void give(Result& result) {
    if (!result.scratch.defined()) return;
    const HeadPlaces places = places_of({result.scratch, 0}), there = places_of(result.rows);
    for_elements(context_, result.scratch.count(),
                 GiveHeads{places,
                           any_elements(result.scratch),
                           {there, any_elements(result.rows.array)},
                           result.batch,
                           result.token,
                           result.head});
  }

  /// cuDNN 9.19 has no plan on B200 for sums that repeat and come in f32: where they are not to be added up
  /// they then are rounded to bf16, as dq is, for our kernel is several times slower.
  bool solve(const CudnnAttentionProblem& problem, std::int64_t batch, std::int64_t head, std::int64_t most) {
    const bool alone = most >= whole_.queries;
    if (alone && is_bf16(dk_.array) && is_bf16(dv_.array))
      return solve_in(DType::kBfloat16, problem, batch, head, most, plan_for);
    if (!alone) return solve_in(DType::kFloat32, problem, batch, head, most, plan_for);
    return solve_in(DType::kFloat32, problem, batch, head, most, plan_if_any) ||
           solve_in(DType::kBfloat16, problem, batch, head, most, plan_for);
  }

  /// Parts of dk and dv are added up in f32, in the order of the queries.
  /// @param type  of dk and dv by cuDNN.
  template <typename FindPlan>
  bool solve_in(DType type, CudnnAttentionProblem problem, std::int64_t batch, std::int64_t head,
                std::int64_t most, const FindPlan& find_plan) {
    const bool alone = most >= whole_.queries;
    problem.result = type;
    const auto keys_result = [&](const HeadRows& rows) {
      return result_of(rows, problem, batch, 0, problem.keys, head, problem.result, alone);
    };
    Result dk = keys_result(dk_), dv = keys_result(dv_);
    for (std::int64_t query = 0; query < whole_.queries; query += most) {
      problem.queries = std::min(most, whole_.queries - query);
      Result dq = result_of(dq_, problem, batch, query, problem.queries, head, DType::kBfloat16, true);
      const Result more_k = query == 0 ? dk : keys_result(dk_), more_v = query == 0 ? dv : keys_result(dv_);
      problem.dq = dq.operand.places;
      problem.dk = more_k.operand.places;
      problem.dv = more_v.operand.places;
      const Array sums = rows_of_sums(problem, batch, head, query);
      const CudnnAttentionPlan* const plan = find_plan(context_, problem);
      if (plan == nullptr) return false;
      cudnn_attention_run(context_, *plan,
                          {q_.at(batch, query, head), k_.at(batch, 0, head), v_.at(batch, 0, head),
                           y_.at(batch, query, head), sums.raw(), dy_.at(batch, query, head),
                           dq.operand.first, more_k.operand.first, more_v.operand.first});
      give(dq);
      if (query == 0) continue;
      add(dk.scratch, more_k.scratch);
      add(dv.scratch, more_v.scratch);
    }
    give(dk);
    give(dv);
    return true;
  }
  void add(Array& sums, const Array& more) {
    for_elements(context_, sums.count(), AddTo{sums.data<float>(), more.data<float>()});
  }

  /// The part's rows of the log-sum-exp: itself, or dense, where they do not begin at 16 bytes.
  Array rows_of_sums(CudnnAttentionProblem& problem, std::int64_t batch, std::int64_t head,
                     std::int64_t query) {
    const std::int64_t first = batch * whole_.lse_batch + head * whole_.lse_head + query;
    const float* const from = log_sum_exp_.data<float>() + first;
    if (aligned(from)) return log_sum_exp_.slice(first, {1});
    problem.lse_head = problem.queries;
    problem.lse_batch = problem.heads * problem.queries;
    Array rows(context_, {problem.batches, problem.heads, problem.queries}, DType::kFloat32,
               Purpose::kWorkspace);
    for_elements(context_, rows.count(),
                 TakeRows{from, whole_.lse_batch, whole_.lse_head, problem.heads, problem.queries,
                          rows.data<float>()});
    return rows;
  }

  Context& context_;
  Operand q_, k_, v_, y_, dy_;
  Array log_sum_exp_;
  HeadRows dq_, dk_, dv_;
  CudnnAttentionProblem whole_;
};

}  // namespace

bool attention_forward_by_cudnn(Context& context, const HeadRows& q, const HeadRows& k, const HeadRows& v,
                                const AttentionOptions& options, AttentionResult& result) {
  const Operand y = operand_of(result.output);
  if (!suits(q, k, v, options) || result.output.dtype() == DType::kFloat64 || !aligned(y.first) ||
      !aligned(result.log_sum_exp.raw()))
    return false;
  const CudnnAttentionProblem problem = CudnnAttentionProblem::forward(q, k, v, result.output, options.scale);
  const CudnnAttentionPlan* const plan = plan_for(context, problem);
  if (plan == nullptr) return false;
  cudnn_attention_run(
      context, *plan,
      {operand_of(q).first, operand_of(k).first, operand_of(v).first, y.first, result.log_sum_exp.raw()});
  return true;
}

bool attention_backward_by_cudnn(Context& context, const HeadRows& q, const HeadRows& k, const HeadRows& v,
                                 const Array& y, const Array& dy, const Array& log_sum_exp,
                                 const AttentionOptions& options, HeadRows& dq, HeadRows& dk, HeadRows& dv) {
  if (!suits(q, k, v, options) || !is_bf16(y) || !aligned(y.raw()) || !aligned(dy.raw())) return false;
  return Backward(context, q, k, v, y, dy, log_sum_exp, options.scale, dq, dk, dv).run();
}

}  // namespace jigsaw::inline kernels::cuda
