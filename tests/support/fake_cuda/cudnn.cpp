#include <atomic>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

#include "base/error.h"
#include "cuda_bf16.h"
#include "kernels/cuda/cudnn_attention_plan.h"
#include "kernels/cuda/cudnn_plan.h"
#include "kernels/cuda_context.h"
#include "support/fake_cuda/fake_cuda.h"
#include "support/fake_cuda/state.h"

// A cuDNN that solves all that it is asked for but what the machine says that it refuses, by the definition
// and in float64, where the machine has it.

struct FakeCudnn : jigsaw::testing::fake_cuda::LibraryHandle {
  cudaStream_t stream = nullptr;
};

namespace {

using jigsaw::DType;
using jigsaw::Shape;
using jigsaw::cuda::CudnnAttentionOperands;
using jigsaw::cuda::CudnnAttentionProblem;
using jigsaw::cuda::CudnnOperands;
using jigsaw::cuda::CudnnProblem;
using jigsaw::testing::fake_cuda::touched;

std::atomic<std::int64_t> runs = 0;

double read(const void* from, DType type, std::int64_t i) {
  if (type == DType::kFloat32) return static_cast<double>(static_cast<const float*>(from)[i]);
  return static_cast<double>(__bfloat162float(static_cast<const __nv_bfloat16*>(from)[i]));
}
void write(void* to, DType type, std::int64_t i, double value) {
  if (type == DType::kFloat32) {
    static_cast<float*>(to)[i] = static_cast<float>(value);
  } else {
    static_cast<__nv_bfloat16*>(to)[i] = __float2bfloat16(static_cast<float>(value));
  }
}

/// Numbers along each dim, of a place in row-major order.
std::vector<std::int64_t> place_of(const Shape& shape, std::int64_t i) {
  std::vector<std::int64_t> place(static_cast<std::size_t>(shape.rank()));
  for (int dim = shape.rank(); dim-- > 0; i /= shape[dim])
    place[static_cast<std::size_t>(dim)] = i % shape[dim];
  return place;
}

/// Calls f(element of x, of [O, kernel…, C/groups], of y) for all products.
template <typename F>
void for_products(const CudnnProblem& problem, const F& f) {
  const Shape &x = problem.x, &y = problem.y, &kernel = problem.convolution.window.extent;
  const std::int64_t in = x.back() / problem.convolution.groups, out = y.back() / problem.convolution.groups;
  for (std::int64_t k = 0; k < y.count(); ++k) {
    const std::vector<std::int64_t> place = place_of(y, k);
    for (std::int64_t tap = 0; tap < kernel.count(); ++tap) {
      const std::vector<std::int64_t> at = place_of(kernel, tap);
      std::int64_t point = place[0];
      bool inside = true;
      for (int dim = 0; dim < kernel.rank(); ++dim) {
        const std::int64_t low = problem.convolution.low.rank() == 0 ? 0 : problem.convolution.low[dim];
        const std::int64_t index =
            place[static_cast<std::size_t>(dim) + 1] * problem.convolution.window.stride[dim] +
            at[static_cast<std::size_t>(dim)] * problem.convolution.window.dilation[dim] - low;
        inside = inside && index >= 0 && index < x[dim + 1];
        point = point * x[dim + 1] + index;
      }
      if (!inside) continue;
      const std::int64_t o = place.back();
      for (std::int64_t c = 0; c < in; ++c)
        f(point * x.back() + o / out * in + c, (o * kernel.count() + tap) * in + c, k);
    }
  }
}

void solve(const CudnnProblem& problem, const CudnnOperands& operands) {
  const DType type = problem.type;
  const std::int64_t weights = problem.y.back() * problem.convolution.window.extent.count() *
                               (problem.x.back() / problem.convolution.groups);
  const auto touch = [&](const void* address, std::int64_t count, CudnnProblem::Pass made) {
    touched(address, static_cast<std::size_t>(count * size_of(type)), made == problem.pass);
  };
  touch(operands.x, problem.x.count(), CudnnProblem::Pass::kData);
  touch(operands.weight, weights, CudnnProblem::Pass::kWeight);
  touch(operands.y, problem.y.count(), CudnnProblem::Pass::kForward);
  if (problem.bias) touched(operands.bias, static_cast<std::size_t>(problem.y.back() * size_of(type)), false);
  std::vector<double> sums;
  const auto give = [&](const void* to) {
    for (std::size_t i = 0; i < sums.size(); ++i)
      write(const_cast<void*>(to), type, static_cast<std::int64_t>(i), sums[i]);
  };
  const auto add = [&](std::int64_t i, double value) { sums[static_cast<std::size_t>(i)] += value; };
  switch (problem.pass) {
    case CudnnProblem::Pass::kForward:
      sums.assign(static_cast<std::size_t>(problem.y.count()), 0);
      for_products(problem, [&](auto i, auto j, auto k) {
        add(k, read(operands.x, type, i) * read(operands.weight, type, j));
      });
      for (std::int64_t k = 0; problem.bias && k < problem.y.count(); ++k)
        add(k, read(operands.bias, type, k % problem.y.back()));
      return give(operands.y);
    case CudnnProblem::Pass::kData:
      sums.assign(static_cast<std::size_t>(problem.x.count()), 0);
      for_products(problem, [&](auto i, auto j, auto k) {
        add(i, read(operands.y, type, k) * read(operands.weight, type, j));
      });
      return give(operands.x);
    case CudnnProblem::Pass::kWeight:
      sums.assign(static_cast<std::size_t>(weights), 0);
      for_products(problem, [&](auto i, auto j, auto k) {
        add(j, read(operands.y, type, k) * read(operands.x, type, i));
      });
      return give(operands.weight);
  }
}

/// Heads of one batch.
class Heads {
 public:
  Heads(const CudnnAttentionProblem& problem, const void* first, const CudnnAttentionProblem::Places& places,
        std::int64_t tokens, DType type, bool made)
      : first_(first), places_(places), size_(problem.head_size), type_(type) {
    const auto bytes = static_cast<std::size_t>(problem.heads * size_ * size_of(type));
    for (std::int64_t b = 0; b < problem.batches; ++b) {
      for (std::int64_t t = 0; t < tokens; ++t)
        touched(static_cast<const std::byte*>(first) + at(b, t, 0, 0) * size_of(type), bytes, made);
    }
  }
  double get(std::int64_t b, std::int64_t t, std::int64_t h, std::int64_t c) const {
    return read(first_, type_, at(b, t, h, c));
  }
  void put(std::int64_t b, std::int64_t t, std::int64_t h, std::int64_t c, double value) const {
    write(const_cast<void*>(first_), type_, at(b, t, h, c), value);
  }

 private:
  std::int64_t at(std::int64_t b, std::int64_t t, std::int64_t h, std::int64_t c) const {
    return b * places_.batch + t * places_.token + h * size_ + c;
  }
  const void* first_;
  CudnnAttentionProblem::Places places_;
  std::int64_t size_;
  DType type_;
};

double dot(const Heads& x, std::int64_t i, const Heads& y, std::int64_t j, std::int64_t b, std::int64_t h,
           std::int64_t size) {
  double sum = 0;
  for (std::int64_t c = 0; c < size; ++c) sum += x.get(b, i, h, c) * y.get(b, j, h, c);
  return sum;
}

void solve(const CudnnAttentionProblem& p, const CudnnAttentionOperands& operands) {
  constexpr DType kBf16 = DType::kBfloat16;
  const Heads q(p, operands.q, p.q, p.queries, kBf16, false), k(p, operands.k, p.k, p.keys, kBf16, false),
      v(p, operands.v, p.v, p.keys, kBf16, false), y(p, operands.y, p.y, p.queries, kBf16, !p.backward);
  auto* const sums = static_cast<float*>(const_cast<void*>(operands.log_sum_exp));
  std::vector<double> scores(static_cast<std::size_t>(p.keys));
  const auto for_rows = [&](const auto& f) {
    for (std::int64_t b = 0; b < p.batches; ++b) {
      for (std::int64_t h = 0; h < p.heads; ++h) {
        float* const row = sums + b * p.lse_batch + h * p.lse_head;
        touched(row, static_cast<std::size_t>(p.queries) * sizeof(float), !p.backward);
        for (std::int64_t i = 0; i < p.queries; ++i) {
          for (std::int64_t j = 0; j < p.keys; ++j)
            scores[static_cast<std::size_t>(j)] = p.scale * dot(q, i, k, j, b, h, p.head_size);
          f(b, h, i, row[i]);
        }
      }
    }
  };
  if (!p.backward) {
    return for_rows([&](auto b, auto h, auto i, float& log_sum_exp) {
      double sum = 0;
      for (const double score : scores) sum += std::exp(score);
      log_sum_exp = static_cast<float>(std::log(sum));
      for (std::int64_t c = 0; c < p.head_size; ++c) {
        double value = 0;
        for (std::int64_t j = 0; j < p.keys; ++j)
          value += std::exp(scores[static_cast<std::size_t>(j)]) / sum * v.get(b, j, h, c);
        y.put(b, i, h, c, value);
      }
    });
  }
  const Heads dy(p, operands.dy, p.dy, p.queries, kBf16, false),
      dq(p, operands.dq, p.dq, p.queries, kBf16, true), dk(p, operands.dk, p.dk, p.keys, kBf16, true),
      dv(p, operands.dv, p.dv, p.keys, kBf16, true);
  const auto count = static_cast<std::size_t>(p.batches * p.heads * p.keys * p.head_size);
  std::vector<double> of_k(count, 0), of_v(count, 0);
  const auto place = [&](auto b, auto h, auto j, auto c) {
    return static_cast<std::size_t>(((b * p.heads + h) * p.keys + j) * p.head_size + c);
  };
  for_rows([&](auto b, auto h, auto i, float log_sum_exp) {
    const double row_sum = dot(y, i, dy, i, b, h, p.head_size);
    std::vector<double> of_q(static_cast<std::size_t>(p.head_size), 0);
    for (std::int64_t j = 0; j < p.keys; ++j) {
      const double weight = std::exp(scores[static_cast<std::size_t>(j)] - static_cast<double>(log_sum_exp));
      const double slope = p.scale * weight * (dot(dy, i, v, j, b, h, p.head_size) - row_sum);
      for (std::int64_t c = 0; c < p.head_size; ++c) {
        of_q[static_cast<std::size_t>(c)] += slope * k.get(b, j, h, c);
        of_k[place(b, h, j, c)] += slope * q.get(b, i, h, c);
        of_v[place(b, h, j, c)] += weight * dy.get(b, i, h, c);
      }
    }
    for (std::int64_t c = 0; c < p.head_size; ++c) dq.put(b, i, h, c, of_q[static_cast<std::size_t>(c)]);
  });
  for (std::int64_t b = 0; b < p.batches; ++b) {
    for (std::int64_t h = 0; h < p.heads; ++h) {
      for (std::int64_t j = 0; j < p.keys; ++j) {
        for (std::int64_t c = 0; c < p.head_size; ++c) {
          dk.put(b, j, h, c, of_k[place(b, h, j, c)]);
          dv.put(b, j, h, c, of_v[place(b, h, j, c)]);
        }
      }
    }
  }
}

}  // namespace

std::int64_t jigsaw::testing::fake_cuda::cudnn_runs() {
  return runs;
}

jigsaw::CudnnLibrary jigsaw::cudnn_library() {
  const testing::fake_cuda::Machine& machine = testing::fake_cuda::machine();
  return {machine.cudnn != 0, 9, machine.cudnn, 13, machine.cudnn_cuda};
}

const char* cudnnGetErrorString(cudnnStatus_t status) {
  switch (status) {
    case CUDNN_STATUS_SUCCESS:
      return "CUDNN_STATUS_SUCCESS";
    case CUDNN_STATUS_NOT_INITIALIZED:
      return "CUDNN_STATUS_NOT_INITIALIZED";
    case CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH:
      return "CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH";
    case CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED:
      return "CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED";
    case CUDNN_STATUS_NOT_SUPPORTED_RUNTIME_PREREQUISITE_MISSING:
      return "CUDNN_STATUS_NOT_SUPPORTED_RUNTIME_PREREQUISITE_MISSING";
    case CUDNN_STATUS_NOT_SUPPORTED_SUBLIBRARY_UNAVAILABLE:
      return "CUDNN_STATUS_NOT_SUPPORTED_SUBLIBRARY_UNAVAILABLE";
    case CUDNN_STATUS_INTERNAL_ERROR:
      return "CUDNN_STATUS_INTERNAL_ERROR";
    case CUDNN_STATUS_EXECUTION_FAILED:
      return "CUDNN_STATUS_EXECUTION_FAILED";
  }
  return "unknown status";
}
void cudnnGetLastErrorString(char* message, std::size_t size) {
  if (size > 0) message[0] = '\0';
}
cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  namespace fake_cuda = jigsaw::testing::fake_cuda;
  if (fake_cuda::has_failed() || fake_cuda::machine().cudnn_lacks == CUDNN_STATUS_NOT_INITIALIZED)
    return CUDNN_STATUS_NOT_INITIALIZED;
  *handle = new FakeCudnn;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  delete handle;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

namespace jigsaw::inline kernels::cuda {

namespace {

constexpr std::int64_t kWorkspace = std::int64_t{1} << 16;

/// Throws what plans of it do where parts of it are missing. Of a device that has failed it has no plans.
bool has_plans(const std::string& problem) {
  const auto lacks = static_cast<cudnnStatus_t>(testing::fake_cuda::machine().cudnn_lacks);
  if (lacks != CUDNN_STATUS_SUCCESS) throw failure("plan " + problem, words_of(lacks));
  return !testing::fake_cuda::has_failed();
}

/// What plans say of all memory that they are given (cudnn_plan.cpp, and cuDNN's frontend by itself).
void require_aligned(std::initializer_list<const void*> operands) {
  constexpr std::uintptr_t kAlignment = 16;
  for (const void* const each : operands) {
    require(reinterpret_cast<std::uintptr_t>(each) % kAlignment == 0,
            "cuDNN was given memory that begins at no multiple of 16 bytes");
  }
}

template <typename Problem, typename Operands>
void run(const CudnnHandle& handle, const Problem& problem, const Operands& operands, void* workspace,
         std::int64_t workspace_bytes) {
  const auto work = [problem, operands, workspace_bytes, room = static_cast<std::byte*>(workspace)] {
    ++runs;
    testing::fake_cuda::use_workspace(room, workspace_bytes);
    solve(problem, operands);
  };
  if (testing::fake_cuda::put(handle.get()->stream, problem.text(), work) != cudaSuccess)
    throw failure("run " + problem.text(), words_of(CUDNN_STATUS_EXECUTION_FAILED));
}

/// What cuDNN 9.19 takes for attention: backward a bf16 number for each pair of a query and a key, in whole
/// tiles of 128, or in any order, for each query, a head's f32 numbers, as on H100; or as much as on other
/// GPUs.
std::int64_t attention_workspace(const CudnnAttentionProblem& p) {
  constexpr std::int64_t kTile = 128;
  const testing::fake_cuda::Machine& machine = testing::fake_cuda::machine();
  if (!p.backward || (p.deterministic && machine.cudnn_pairs == 0)) return kWorkspace;
  const auto tiles = [](std::int64_t tokens) { return (tokens + kTile - 1) / kTile * kTile; };
  const std::int64_t a_query = p.deterministic ? tiles(p.keys) * size_of(DType::kBfloat16)
                                               : machine.cudnn_rows * p.head_size * size_of(DType::kFloat32);
  return p.batches * p.heads * tiles(p.queries) * a_query;
}

}  // namespace

struct CudnnPlan::Graph {
  CudnnProblem problem;
};

CudnnPlan::CudnnPlan(std::unique_ptr<Graph> graph) : graph_(std::move(graph)) {}
CudnnPlan::CudnnPlan(CudnnPlan&&) noexcept = default;
CudnnPlan::~CudnnPlan() = default;

const CudnnProblem& CudnnPlan::problem() const {
  return graph_->problem;
}

std::optional<CudnnPlan> CudnnPlan::make(const CudnnProblem& problem, const CudnnHandle& /*handle*/,
                                         std::string* why) {
  const testing::fake_cuda::Machine& machine = testing::fake_cuda::machine();
  if (why != nullptr) *why = "it is told to refuse";
  if (machine.cudnn == 0 || problem.y.back() == machine.cudnn_refuses) return std::nullopt;
  if (!has_plans(problem.text())) return std::nullopt;
  CudnnPlan plan(std::make_unique<Graph>(Graph{problem}));
  plan.workspace_bytes_ = kWorkspace;
  return plan;
}

void CudnnPlan::run(const CudnnHandle& handle, const CudnnOperands& operands, void* workspace) const {
  require_aligned({operands.x, operands.weight, operands.bias, operands.y});
  cuda::run(handle, problem(), operands, workspace, workspace_bytes_);
}

struct CudnnAttentionPlan::Graph {
  CudnnAttentionProblem problem;
};

CudnnAttentionPlan::CudnnAttentionPlan(std::unique_ptr<Graph> graph) : graph_(std::move(graph)) {}
CudnnAttentionPlan::CudnnAttentionPlan(CudnnAttentionPlan&&) noexcept = default;
CudnnAttentionPlan::~CudnnAttentionPlan() = default;

const CudnnAttentionProblem& CudnnAttentionPlan::problem() const {
  return graph_->problem;
}

std::optional<CudnnAttentionPlan> CudnnAttentionPlan::make(const CudnnAttentionProblem& problem,
                                                           const CudnnHandle& /*handle*/, std::string& why) {
  const testing::fake_cuda::Machine& machine = testing::fake_cuda::machine();
  why = "it is told to refuse";
  if (machine.cudnn == 0 || problem.head_size == machine.cudnn_refuses) return std::nullopt;
  if (problem.queries > machine.cudnn_most_queries) return std::nullopt;
  if (!has_plans(problem.text())) return std::nullopt;
  CudnnAttentionPlan plan(std::make_unique<Graph>(Graph{problem}));
  plan.workspace_bytes_ = attention_workspace(problem);
  return plan;
}

void CudnnAttentionPlan::run(const CudnnHandle& handle, const CudnnAttentionOperands& operands,
                             void* workspace) const {
  require_aligned({operands.q, operands.k, operands.v, operands.y, operands.log_sum_exp, operands.dy,
                   operands.dq, operands.dk, operands.dv});
  cuda::run(handle, problem(), operands, workspace, workspace_bytes_);
}

bool cudnn_attention_built() {
  return cudnn_library().built;
}

}  // namespace jigsaw::inline kernels::cuda
