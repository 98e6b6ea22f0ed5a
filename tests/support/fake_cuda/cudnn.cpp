#include <atomic>
#include <list>
#include <utility>
#include <vector>

#include "array/raw_memory.h"
#include "cuda_bf16.h"
#include "kernels/cuda/cudnn_convolution.h"
#include "kernels/cuda/error.h"
#include "kernels/cuda_context.h"
#include "support/fake_cuda/fake_cuda.h"

// A cuDNN that solves all that it is asked for but what the machine says that it refuses, by the definition
// and in float64, where the machine has it.

namespace {

using jigsaw::DType;
using jigsaw::Shape;
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

}  // namespace

std::int64_t jigsaw::testing::fake_cuda::cudnn_runs() {
  return runs;
}

jigsaw::CudnnLibrary jigsaw::cudnn_library() {
  const int version = testing::fake_cuda::machine().cudnn;
  return {version != 0, 9, version};
}

namespace jigsaw::inline kernels::cuda {

class CudnnPlan {
 public:
  explicit CudnnPlan(CudnnProblem problem) : problem_(std::move(problem)) {}
  const CudnnProblem& problem() const { return problem_; }

 private:
  CudnnProblem problem_;
};

namespace {
using Plans = std::list<CudnnPlan>;
}

const CudnnPlan* cudnn_plan(Context& context, const CudnnProblem& problem) {
  const testing::fake_cuda::Machine& machine = testing::fake_cuda::machine();
  if (machine.cudnn == 0 || problem.y.back() == machine.cudnn_refuses) return nullptr;
  return &context.state<Plans>().emplace_back(problem);
}

void cudnn_run(Context& context, const CudnnPlan& plan, const CudnnOperands& operands) {
  constexpr std::int64_t kWorkspace = std::int64_t{1} << 16;
  Array workspace(context, {kWorkspace / 4}, DType::kFloat32, Purpose::kWorkspace);
  const auto work = [problem = plan.problem(), operands, room = workspace.raw()] {
    ++runs;
    testing::fake_cuda::use_workspace(room, kWorkspace);
    solve(problem, operands);
  };
  launched(context, testing::fake_cuda::put(stream_of(context), plan.problem().text(), work),
           "a convolution");
}

}  // namespace jigsaw::inline kernels::cuda
