#include "kernels/cuda/cudnn_attention_plan.h"

#include <cudnn_frontend.h>

#include <unordered_map>
#include <utility>
#include <vector>

#include "base/text.h"

namespace jigsaw::inline kernels::cuda {

namespace {

namespace fe = cudnn_frontend;
using Tensor = std::shared_ptr<fe::graph::Tensor_attributes>;

/// Operands of a run.
enum Id : std::int64_t { kQ = 1, kK, kV, kY, kLogSumExp, kDy, kDq, kDk, kDv };

/// Whether a call of the frontend did what it should; `why` gets its words otherwise, unless it has some that
/// are of_installation().
bool done(fe::error_t status, std::string& why) {
  if (status.is_good()) return true;
  if (of_installation(why)) return false;
  why = status.get_message();
  while (!why.empty() && (why.back() == '\n' || why.back() == ' ')) why.pop_back();
  return false;
}

/// There is none, for that reason.
std::optional<CudnnAttentionPlan> no_plan(const CudnnAttentionProblem& problem, const std::string& why) {
  require_whole_installation("plan " + problem.text(), of_installation(why) ? why : "");
  return std::nullopt;
}

/// The first that can be built. The frontend's own build_plans() keeps to itself why none could.
bool build_plan(fe::graph::Graph& graph, std::string& why) {
  for (std::int64_t plan = 0; plan < graph.get_execution_plan_count(); ++plan) {
    if (done(graph.build_plan_at_index(plan), why)) return true;
  }
  return false;
}

}  // namespace

struct CudnnAttentionPlan::Graph {
  Graph(const CudnnAttentionProblem& problem_, cudnnHandle_t handle_) : problem(problem_), handle(handle_) {
    graph.set_io_data_type(fe::DataType_t::BFLOAT16)
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT);
    const auto q = given(kQ, problem.queries, problem.q), k = given(kK, problem.keys, problem.k),
               v = given(kV, problem.keys, problem.v);
    if (problem.backward) {
      const auto y = given(kY, problem.queries, problem.y), dy = given(kDy, problem.queries, problem.dy),
                 lse = graph.tensor(log_sum_exp(fe::graph::Tensor_attributes()));
      const auto [dq, dk, dv] = graph.sdpa_backward(q, k, v, y, dy, lse,
                                                    fe::graph::SDPA_backward_attributes()
                                                        .set_name("attention_backward")
                                                        .set_attn_scale(static_cast<float>(problem.scale))
                                                        .set_deterministic_algorithm(problem.deterministic));
      made(dq, kDq, problem.queries, problem.dq);
      made(dk, kDk, problem.keys, problem.dk);
      made(dv, kDv, problem.keys, problem.dv);
      return;
    }
    const auto [y, lse] = graph.sdpa(q, k, v,
                                     fe::graph::SDPA_attributes()
                                         .set_name("attention")
                                         .set_generate_stats(true)
                                         .set_attn_scale(static_cast<float>(problem.scale)));
    made(y, kY, problem.queries, problem.y);
    log_sum_exp(*lse).set_output(true);
  }

  std::vector<std::int64_t> extents(std::int64_t tokens) const {
    return {problem.batches, problem.heads, tokens, problem.head_size};
  }
  std::vector<std::int64_t> strides(const CudnnAttentionProblem::Places& places) const {
    return {places.batch, problem.head_size, places.token, 1};
  }
  Tensor given(Id id, std::int64_t tokens, const CudnnAttentionProblem::Places& places) {
    return graph.tensor(
        fe::graph::Tensor_attributes().set_uid(id).set_dim(extents(tokens)).set_stride(strides(places)));
  }
  void made(const Tensor& tensor, Id id, std::int64_t tokens, const CudnnAttentionProblem::Places& places) {
    tensor->set_output(true)
        .set_uid(id)
        .set_dim(extents(tokens))
        .set_stride(strides(places))
        .set_data_type(fe::DataType_t::BFLOAT16);
  }
  template <typename T>
  T&& log_sum_exp(T&& tensor) const {
    tensor.set_uid(kLogSumExp)
        .set_dim({problem.batches, problem.heads, problem.queries, 1})
        .set_stride({problem.lse_batch, problem.lse_head, 1, 1})
        .set_data_type(fe::DataType_t::FLOAT);
    return std::forward<T>(tensor);
  }

  CudnnAttentionProblem problem;
  cudnnHandle_t handle;  ///< none where the device is only described
  fe::graph::Graph graph;
};

CudnnAttentionPlan::CudnnAttentionPlan(std::unique_ptr<Graph> graph) : graph_(std::move(graph)) {}
CudnnAttentionPlan::CudnnAttentionPlan(CudnnAttentionPlan&&) noexcept = default;
CudnnAttentionPlan::~CudnnAttentionPlan() = default;

const CudnnAttentionProblem& CudnnAttentionPlan::problem() const {
  return graph_->problem;
}

std::optional<CudnnAttentionPlan> CudnnAttentionPlan::make(const CudnnAttentionProblem& problem,
                                                           const CudnnHandle& handle, std::string& why) {
  return make(std::make_unique<Graph>(problem, handle.get()), why);
}

std::optional<CudnnAttentionPlan> CudnnAttentionPlan::make(const CudnnAttentionProblem& problem,
                                                           const std::string& device, std::string& why) {
  auto properties = std::make_shared<fe::DeviceProperties>();
  if (!done(properties->deserialize({device.begin(), device.end()}), why)) return no_plan(problem, why);
  auto graph = std::make_unique<Graph>(problem, nullptr);
  graph->graph.set_device_properties(std::move(properties));
  return make(std::move(graph), why);
}

std::string CudnnAttentionPlan::refusal(const CudnnAttentionProblem& problem) {
  constexpr std::int64_t kTile = 128, kMaskedTile = 64, kWords = 4;
  if (!problem.backward) return "";
  if (problem.keys % kTile == kMaskedTile || problem.queries == 1)
    return "its gradients may not be numbers where 64 keys are left of tiles of 128, or there is one query";
  if (problem.batches * problem.heads * problem.queries % kWords != 0)
    return "4 does not divide the number of queries of all heads";
  return "";
}

std::optional<CudnnAttentionPlan> CudnnAttentionPlan::make(std::unique_ptr<Graph> made, std::string& why) {
  why = refusal(made->problem);
  if (!why.empty()) return std::nullopt;
  fe::graph::Graph& graph = made->graph;
  const cudnnHandle_t handle = made->handle;
  const auto none = [&] { return no_plan(made->problem, why); };
  if (!done(graph.validate(), why) ||
      !done(handle == nullptr ? graph.build_operation_graph() : graph.build_operation_graph(handle), why) ||
      !done(graph.create_execution_plans({fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK}), why))
    return none();
  if (made->problem.deterministic) graph.deselect_numeric_notes({fe::NumericalNote_t::NONDETERMINISTIC});
  if (!done(graph.check_support(), why) || !build_plan(graph, why)) return none();
  std::int64_t bytes = 0;
  if (!done(graph.get_workspace_size(bytes), why)) return none();
  CudnnAttentionPlan plan(std::move(made));
  plan.workspace_bytes_ = bytes;
  return plan;
}

void CudnnAttentionPlan::run(const CudnnHandle& handle, const CudnnAttentionOperands& operands,
                             void* workspace) const {
  const auto at = [](const void* address) { return const_cast<void*>(address); };
  std::unordered_map<std::int64_t, void*> addresses = {{kQ, at(operands.q)},
                                                       {kK, at(operands.k)},
                                                       {kV, at(operands.v)},
                                                       {kY, at(operands.y)},
                                                       {kLogSumExp, at(operands.log_sum_exp)}};
  if (graph_->problem.backward) {
    addresses.insert(
        {{kDy, at(operands.dy)}, {kDq, at(operands.dq)}, {kDk, at(operands.dk)}, {kDv, at(operands.dv)}});
  }
  std::string why;
  if (!done(graph_->graph.execute(handle.get(), addresses, workspace), why))
    throw failure("run " + graph_->problem.text(), why);
}

bool cudnn_attention_built() {
  return true;
}

}  // namespace jigsaw::inline kernels::cuda
