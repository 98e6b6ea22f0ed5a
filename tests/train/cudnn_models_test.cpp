// What cuDNN plans for the convolutions that training steps of the shipped configurations call, on an H100
// (tests/kernels/h100.json) that is not there. The linker puts the functions of this file before those of
// kernels/convolution.h.
#include <gtest/gtest.h>

#include <set>

#include "kernels/cuda/cudnn_plan.h"
#include "train/shipped_steps.h"

namespace jigsaw {
namespace {

using cuda::CudnnPlan;
using cuda::CudnnProblem;

void pose(CudnnProblem problem, const Array& result) {
  if (result.count() == 0) return;
  for (const bool rounded : {false, true}) {  // as train.tf32 chooses
    problem.rounded = problem.rounded || (rounded && problem.type == DType::kFloat32);
    jigsaw::pose(problem);
  }
}

}  // namespace

JIGSAW_CALL(forward,
            "19convolution_forwardERNS_5array7ContextERKNS0_11ConvolutionERKNS1_5ArrayES9_S9_NS1_5DTypeE",
            (Context & context, const Convolution& convolution, const Array& x, const Array& weight,
             const Array& bias, DType out),
            Array)
Array forward_here(Context& context, const Convolution& convolution, const Array& x, const Array& weight,
                   const Array& bias, DType out) {
  const Array y = forward_there(context, convolution, x, weight, bias, out);
  pose(CudnnProblem::forward(convolution, x, bias.defined(), y), y);
  return y;
}

JIGSAW_CALL(data,
            "25convolution_backward_dataERNS_5array7ContextERKNS0_11ConvolutionERKNS1_5ArrayES9_RKNS1_"
            "5ShapeENS1_5DTypeE",
            (Context & context, const Convolution& convolution, const Array& dy, const Array& weight,
             const Shape& space, DType out),
            Array)
Array data_here(Context& context, const Convolution& convolution, const Array& dy, const Array& weight,
                const Shape& space, DType out) {
  const Array dx = data_there(context, convolution, dy, weight, space, out);
  if (dy.count() > 0) pose(CudnnProblem::backward_data(convolution, dy, dx), dx);
  return dx;
}

JIGSAW_CALL(
    weight,
    "27convolution_backward_weightERNS_5array7ContextERKNS0_11ConvolutionERKNS1_5ArrayES9_NS1_5DTypeE",
    (Context & context, const Convolution& convolution, const Array& dy, const Array& x, DType out), Array)
Array weight_here(Context& context, const Convolution& convolution, const Array& dy, const Array& x,
                  DType out) {
  const Array dw = weight_there(context, convolution, dy, x, out);
  if (dy.count() > 0 && x.count() > 0) pose(CudnnProblem::backward_weight(convolution, dy, x), dw);
  return dw;
}

JIGSAW_CALL(add,
            "31convolution_backward_weight_addERNS_5array7ContextERKNS0_11ConvolutionERKNS1_5ArrayES9_RS7_",
            (Context & context, const Convolution& convolution, const Array& dy, const Array& x, Array& into),
            void)
void add_here(Context& context, const Convolution& convolution, const Array& dy, const Array& x,
              Array& into) {
  add_there(context, convolution, dy, x, into);
  if (dy.count() > 0 && x.count() > 0) pose(CudnnProblem::backward_weight(convolution, dy, x), into);
}

namespace {

TEST(CudnnModels, ConvolutionsOfTheShippedConfigurationsArePlanned) {
  std::set<std::string> convolving;
  for_each_shipped_step({"fp32", "bf16"}, [&](const std::string& name, const std::function<void()>& count) {
    const std::size_t before = problems<CudnnProblem>().size();
    count();
    if (problems<CudnnProblem>().size() > before) convolving.insert(name);
  });
  EXPECT_EQ(convolving, (std::set<std::string>{"era5_uk_ensemble", "era5_uk_unet", "ct_denoise_unet3d"}));
  std::int64_t most = 0;
  for (const auto& [text, problem] : problems<CudnnProblem>()) {
    const std::optional<CudnnPlan> plan = CudnnPlan::make(problem, h100());
    ASSERT_TRUE(plan.has_value()) << text;
    most = std::max(most, plan->workspace_bytes());
  }
  EXPECT_LE(most, std::int64_t{1} << 29);
  std::printf("%zu convolutions, at most %.1f MB of workspace\n", problems<CudnnProblem>().size(),
              static_cast<double>(most) * 1e-6);
}

}  // namespace
}  // namespace jigsaw
