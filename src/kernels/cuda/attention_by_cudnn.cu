#include <optional>
#include <string>
#include <vector>

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
struct GiveElements {
  AnyElements from, to;
  __device__ void operator()(std::int64_t i) const { to.put(i, from.get<float>(i)); }
};
/// The sum of the first parts and another one, or that one alone where it is the first.
struct AddPart {
  float* sums;
  AnyElements more;
  bool first;
  __device__ void operator()(std::int64_t i) const {
    const float value = more.get<float>(i);
    sums[i] = first ? value : sums[i] + value;
  }
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
    const auto bytes_of = [&](const AttentionParts::Part& part) -> std::optional<std::int64_t> {
      CudnnAttentionProblem problem = whole_;
      problem.batches = part.batches;
      problem.heads = part.heads;
      problem.queries = part.queries;
      std::string why;
      const CudnnAttentionPlan* const plan = cudnn_attention_plan(context_, placed(problem, 0), why);
      return plan == nullptr ? std::nullopt : std::optional(cudnn_attention_workspace(*plan));
    };
    const AttentionParts::Part part = context_.state<AttentionParts>().largest(whole_, bytes_of);
    for (std::int64_t batch = 0; batch < whole_.batches; batch += part.batches) {
      for (std::int64_t head = 0; head < whole_.heads; head += part.heads) {
        CudnnAttentionProblem problem = whole_;
        problem.batches = std::min(part.batches, whole_.batches - batch);
        problem.heads = std::min(part.heads, whole_.heads - head);
        problem.queries = part.queries;
        if (!solve(problem, batch, head)) return false;
      }
    }
    return true;
  }

 private:
  /// Whether cuDNN writes a result where it is to be.
  static bool in_place(const HeadRows& rows) {
    return is_bf16(rows.array) && aligned(operand_of(rows).first);
  }
  /// dk and dv that are added up come to memory of their own.
  bool keys_in_place(const HeadRows& rows, const CudnnAttentionProblem& part) const {
    return part.queries == whole_.queries && in_place(rows);
  }
  /// A part with the places of its results, and of its rows of the log-sum-exp.
  /// @param first  element of the log-sum-exp.
  CudnnAttentionProblem placed(CudnnAttentionProblem part, std::int64_t first) const {
    const auto dense = [&](std::int64_t tokens) {
      const std::int64_t token = part.heads * part.head_size;
      return Places{tokens * token, token};
    };
    part.dq = in_place(dq_) ? Places::of(dq_) : dense(part.queries);
    part.dk = keys_in_place(dk_, part) ? Places::of(dk_) : dense(part.keys);
    part.dv = keys_in_place(dv_, part) ? Places::of(dv_) : dense(part.keys);
    if (!aligned(log_sum_exp_.data<float>() + first)) {
      part.lse_head = part.queries;
      part.lse_batch = part.heads * part.queries;
    }
    return part;
  }

  /// Where cuDNN writes a result.
  struct Result {
    HeadRows rows;  ///< what it is for
    std::int64_t batch, token, head;
    Array scratch;    ///< [batches, tokens, 1, heads, d], where it does not write there
    Operand operand;  ///< of the part
  };
  Result result_of(const HeadRows& rows, const CudnnAttentionProblem& problem, std::int64_t batch,
                   std::int64_t token, std::int64_t tokens, std::int64_t head, bool there) {
    Result result{rows, batch, token, head, {}, operand_of(rows)};
    if (there) {
      result.operand.first = result.operand.at(batch, token, head);
      return result;
    }
    result.scratch = dense(problem, tokens, DType::kBfloat16);
    result.operand = operand_of(HeadRows{result.scratch, 0});
    return result;
  }
  Array dense(const CudnnAttentionProblem& problem, std::int64_t tokens, DType type) {
    return {
        context_, {problem.batches, tokens, 1, problem.heads, problem.head_size}, type, Purpose::kWorkspace};
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

  /// Parts of dk and dv are added up in f32, in the order of the queries.
  bool solve(CudnnAttentionProblem part, std::int64_t batch, std::int64_t head) {
    const std::int64_t most = part.queries;
    const auto keys_result = [&](const HeadRows& rows) {
      return result_of(rows, part, batch, 0, part.keys, head, keys_in_place(rows, part));
    };
    Result dk = keys_result(dk_), dv = keys_result(dv_);
    Array sums_k, sums_v;
    if (most < whole_.queries) {
      sums_k = dense(part, part.keys, DType::kFloat32);
      sums_v = dense(part, part.keys, DType::kFloat32);
    }
    for (std::int64_t query = 0; query < whole_.queries; query += most) {
      CudnnAttentionProblem problem = part;
      problem.queries = std::min(most, whole_.queries - query);
      const std::int64_t first = batch * whole_.lse_batch + head * whole_.lse_head + query;
      problem = placed(problem, first);
      const CudnnAttentionPlan* const plan = plan_for(context_, problem);
      if (plan == nullptr) return false;
      Result dq = result_of(dq_, problem, batch, query, problem.queries, head, in_place(dq_));
      const Array sums = rows_of_sums(problem, first);
      cudnn_attention_run(
          context_, *plan,
          {q_.at(batch, query, head), k_.at(batch, 0, head), v_.at(batch, 0, head), y_.at(batch, query, head),
           sums.raw(), dy_.at(batch, query, head), dq.operand.first, dk.operand.first, dv.operand.first});
      give(dq);
      if (most == whole_.queries) continue;
      add(sums_k, dk.scratch, query == 0);
      add(sums_v, dv.scratch, query == 0);
    }
    if (most < whole_.queries) {
      dk.scratch = sums_k;
      dv.scratch = sums_v;
    }
    give(dk);
    give(dv);
    return true;
  }
  void add(Array& sums, const Array& more, bool first) {
    for_elements(context_, sums.count(), AddPart{sums.data<float>(), any_elements(more), first});
  }

  /// A part's rows of the log-sum-exp: itself, or dense, where they do not begin at 16 bytes.
  Array rows_of_sums(const CudnnAttentionProblem& part, std::int64_t first) {
    const float* const from = log_sum_exp_.data<float>() + first;
    if (aligned(from)) return log_sum_exp_.slice(first, {1});
    Array rows(context_, {part.batches, part.heads, part.queries}, DType::kFloat32, Purpose::kWorkspace);
    for_elements(
        context_, rows.count(),
        TakeRows{from, whole_.lse_batch, whole_.lse_head, part.heads, part.queries, rows.data<float>()});
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
  if (!suits(q, k, v, options) || result.output.dtype() == DType::kFloat64 ||
      !aligned(result.log_sum_exp.raw()))
    return false;
  const bool in_place = is_bf16(result.output) && aligned(result.output.raw());
  const Array y =
      in_place ? result.output : Array(context, result.output.shape(), DType::kBfloat16, Purpose::kWorkspace);
  const CudnnAttentionProblem problem = CudnnAttentionProblem::forward(q, k, v, y, options.scale);
  const CudnnAttentionPlan* const plan = plan_for(context, problem);
  if (plan == nullptr) return false;
  cudnn_attention_run(context, *plan,
                      {operand_of(q).first, operand_of(k).first, operand_of(v).first, operand_of(y).first,
                       result.log_sum_exp.raw()});
  if (!in_place) {
    for_elements(context, y.count(), GiveElements{any_elements(y), any_elements(result.output)});
  }
  return true;
}

bool attention_backward_by_cudnn(Context& context, const HeadRows& q, const HeadRows& k, const HeadRows& v,
                                 const Array& y, const Array& dy, const Array& log_sum_exp,
                                 const AttentionOptions& options, HeadRows& dq, HeadRows& dk, HeadRows& dv) {
  if (!suits(q, k, v, options) || !is_bf16(y) || !aligned(y.raw()) || !aligned(dy.raw())) return false;
  return Backward(context, q, k, v, y, dy, log_sum_exp, options.scale, dq, dk, dv).run();
}

}  // namespace jigsaw::inline kernels::cuda
