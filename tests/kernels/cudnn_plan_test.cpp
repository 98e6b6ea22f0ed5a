// What cuDNN plans for the properties of an H100 (tests/kernels/h100.json), without a GPU; and with one, for
// it.
#include "kernels/cuda/cudnn_plan.h"

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "support/cudnn_without.h"
#include "support/error_of.h"
#include "support/source_dir.h"

namespace jigsaw {
namespace {

using cuda::CudnnPlan;
using cuda::CudnnProblem;
using Pass = CudnnProblem::Pass;

std::string h100() {
  std::ifstream file(testing::source_dir() + "/tests/kernels/h100.json");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// A square window as the layers make them.
Convolution convolution_of(int space, std::int64_t extent, std::int64_t stride, std::int64_t groups,
                           std::int64_t low, std::int64_t high) {
  const auto all = [space](std::int64_t value) { return Shape::filled(space, value); };
  return {{all(extent), all(stride), all(1)}, groups, all(low), all(high)};
}

CudnnProblem problem_of(const Convolution& convolution, const Shape& x, std::int64_t out, Pass pass,
                        DType type, bool rounded, bool bias = false) {
  Shape y{x[0]};
  Shape space;
  for (int dim = 1; dim + 1 < x.rank(); ++dim) space.append(x[dim]);
  for (const std::int64_t places : convolution.places(space)) y.append(places);
  y.append(out);
  return {pass, type, rounded, bias, convolution, x, y};
}

struct Case {
  Convolution convolution;
  Shape x;
  std::int64_t out;
};

/// Convolutions of the shipped U-Nets (2-D and 3-D, whole and as pieces of a domain, whose rims an exchange
/// has put there), of their ends with few channels, patches of a field, depthwise and grouped ones, a line.
std::vector<Case> cases() {
  std::vector<Case> all;
  for (const std::int64_t width : {32, 64, 128, 256}) {
    const std::int64_t side = 8192 / width;
    all.push_back({convolution_of(2, 3, 1, 1, 1, 1), {2, side, side, width}, width});
    all.push_back({convolution_of(2, 2, 2, 1, 0, 0), {2, side, side, width}, 2 * width});
    all.push_back(
        {convolution_of(3, 3, 1, 1, 1, 1), {1, 2048 / width, 2048 / width, 2048 / width, width}, width});
    all.push_back(
        {convolution_of(3, 2, 2, 1, 0, 0), {1, 2048 / width, 2048 / width, 2048 / width, width}, 2 * width});
  }
  for (const std::int64_t channels : {1, 3, 5, 12, 69}) {
    all.push_back({convolution_of(2, 3, 1, 1, 1, 1), {1, 33, 49, channels}, 32});
    all.push_back({convolution_of(2, 1, 1, 1, 0, 0), {1, 33, 49, 32}, channels});
    all.push_back({convolution_of(3, 3, 1, 1, 1, 1), {1, 20, 21, 22, channels}, 16});
  }
  all.push_back({convolution_of(2, 3, 1, 1, 0, 0), {1, 123, 242, 32}, 32});
  all.push_back({convolution_of(2, 3, 1, 1, 0, 1), {1, 121, 241, 32}, 32});
  all.push_back({convolution_of(2, 4, 4, 1, 0, 0), {1, 720, 1440, 69}, 1024});
  all.push_back({convolution_of(2, 7, 1, 96, 3, 3), {1, 90, 180, 96}, 96});
  all.push_back({convolution_of(2, 3, 1, 4, 1, 1), {1, 64, 64, 64}, 128});
  all.push_back({convolution_of(1, 5, 2, 1, 2, 2), {2, 100, 8}, 16});
  return all;
}

TEST(CudnnPlans, AllConvolutionsOfTheModels) {
  const std::string device = h100();
  struct Numbers {
    DType type;
    bool rounded;
  };
  for (const Case& each : cases()) {
    for (const Pass pass : {Pass::kForward, Pass::kData, Pass::kWeight}) {
      for (const Numbers& numbers :
           {Numbers{DType::kFloat32, false}, {DType::kFloat32, true}, {DType::kBfloat16, false}}) {
        if (pass == Pass::kWeight && numbers.type == DType::kBfloat16) continue;  // it is made in f32
        for (const bool bias : {false, true}) {
          if (bias && pass != Pass::kForward) continue;
          const CudnnProblem problem =
              problem_of(each.convolution, each.x, each.out, pass, numbers.type, numbers.rounded, bias);
          const std::optional<CudnnPlan> plan = CudnnPlan::make(problem, device);
          ASSERT_TRUE(plan.has_value()) << problem.text();
          EXPECT_LE(plan->workspace_bytes(), std::int64_t{1} << 29) << problem.text();
        }
      }
    }
  }
}

/// Where sums may come in any order there are more engines to take: some gradients have others.
TEST(CudnnPlans, AnyOrderHasMoreEngines) {
  int others = 0;
  for (const Case& each : cases()) {
    for (const Pass pass : {Pass::kData, Pass::kWeight}) {
      CudnnProblem problem = problem_of(each.convolution, each.x, each.out, pass, DType::kFloat32, true);
      const std::optional<CudnnPlan> in_order = CudnnPlan::make(problem, h100());
      problem.deterministic = false;
      const std::optional<CudnnPlan> in_any = CudnnPlan::make(problem, h100());
      ASSERT_TRUE(in_order && in_any) << problem.text();
      others += in_order->engine() != in_any->engine() ? 1 : 0;
    }
  }
  std::cout << others << " of " << 2 * cases().size() << " gradients have other engines in any order\n";
  EXPECT_GT(others, 0);
}

/// Padding as wide as the window, points left over, gaps in the window, groups in three dims: a plan or none.
TEST(CudnnPlans, OddConvolutionsAreNoErrors) {
  const std::vector<Case> odd = {
      {{{{3, 5}, {2, 3}, {1, 2}}, 1, {0, 4}, {1, 3}}, {2, 8, 9, 16}, 8},
      {{{{3, 3}, {1, 1}, {1, 1}}, 1, {4, 0}, {2, 5}}, {1, 5, 6, 4}, 3},
      {{{{3, 3}, {1, 1}, {1, 1}}, 1, {1, 1}, {1, 1}}, {1, 1, 4, 3}, 2},
      {{{{3, 2}, {2, 3}, {1, 2}}, 1, {0, 0}, {0, 0}}, {1, 12, 13, 4}, 6},
      {{{{2, 3, 2}, {2, 1, 3}, {1, 2, 1}}, 2, {0, 0, 0}, {0, 0, 0}}, {1, 7, 6, 9, 4}, 6},
      {{{{3, 3, 3}, {1, 1, 1}, {1, 1, 1}}, 2, {1, 1, 0}, {1, 0, 1}}, {2, 4, 5, 6, 8}, 8}};
  for (const Case& each : odd) {
    for (const Pass pass : {Pass::kForward, Pass::kData, Pass::kWeight}) {
      for (const DType type : {DType::kFloat32, DType::kBfloat16}) {
        const CudnnProblem problem = problem_of(each.convolution, each.x, each.out, pass, type, false);
        EXPECT_NO_THROW(CudnnPlan::make(problem, h100())) << problem.text();
      }
    }
  }
}

/// What is said of the first of all convolutions; run by the next test, in a process that finds another
/// cuDNN.
TEST(CudnnPlans, DISABLED_AreMade) {
  const Case each = cases().front();
  const CudnnProblem problem =
      problem_of(each.convolution, each.x, each.out, Pass::kForward, DType::kFloat32, false);
  try {
    std::cout << (CudnnPlan::make(problem, h100()) ? "planned" : "not planned") << "\n";
  } catch (const cuda::LibraryError& error) {
    std::cout << error.what() << "; " << error.remedy() << "\n";
  }
}

/// cuDNN itself goes on without the engines of a part that it cannot load.
TEST(CudnnPlans, APartThatIsMissingIsAnError) {
  const auto said_without = [](const std::string& part) {
    return testing::said_with_cudnn_without(part, "CudnnPlans.DISABLED_AreMade",
                                            static_cast<int>(cudnnGetVersion()));
  };
  EXPECT_NE(said_without("").find("\nplanned\n"), std::string::npos) << said_without("");
  for (const char* part : {"heuristic", "engines_precompiled", "engines_runtime_compiled"}) {
    const std::string said = said_without(part);
    EXPECT_NE(said.find("parts of cuDNN, or libraries that it needs, are missing"), std::string::npos)
        << said;
    EXPECT_NE(said.find(concat("libcudnn_", part)), std::string::npos) << said;
  }
}

/// A device's properties, of the GPU that a handle is for or of their JSON, as cuDNN's JSON.
class DeviceProperties {
 public:
  explicit DeviceProperties(cudnnHandle_t handle)
      : DeviceProperties(CUDNN_ATTR_DEVICEPROP_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle) {}
  explicit DeviceProperties(const std::string& json)
      : DeviceProperties(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, std::ssize(json),
                         json.data()) {}
  ~DeviceProperties() { cudnnBackendDestroyDescriptor(descriptor_); }
  DeviceProperties(const DeviceProperties&) = delete;
  DeviceProperties& operator=(const DeviceProperties&) = delete;

  std::string json() const {
    std::int64_t count = 0;
    get(0, &count, nullptr);
    std::string text(static_cast<std::size_t>(count), ' ');
    get(count, &count, text.data());
    return text.substr(0, text.find('\0'));
  }

 private:
  DeviceProperties(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count,
                   const void* values) {
    cuda::check(cudnnBackendCreateDescriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, &descriptor_),
                "make a descriptor");
    cuda::check(cudnnBackendSetAttribute(descriptor_, name, type, count, values), "name a device");
    cuda::check(cudnnBackendFinalize(descriptor_), "read a device's properties");
  }
  void get(std::int64_t asked, std::int64_t* count, void* into) const {
    cuda::check(cudnnBackendGetAttribute(descriptor_, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
                                         CUDNN_TYPE_CHAR, asked, count, into),
                "write a device's properties");
  }

  cudnnBackendDescriptor_t descriptor_ = nullptr;
};

TEST(CudnnPlans, PropertiesAreReadAsTheyWereWritten) {
  using Json = nlohmann::json;
  const Json written = Json::parse(h100()), read = Json::parse(DeviceProperties(h100()).json());
  for (const auto& [key, value] : written.items()) {
    if (key == "cudnnVersion") continue;
    EXPECT_EQ(read.at(key), value) << key;
  }
}

/// The plans that a GPU is given are those that its properties alone give.
TEST(CudnnPlans, OfTheGpuHereAndOfItsProperties) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) GTEST_SKIP() << "no GPU here";
  const cuda::CudnnHandle handle;
  const std::string properties = DeviceProperties(handle.get()).json();
  std::cout << "properties of the GPU here: " << properties << std::endl;
  for (const Case& each : cases()) {
    for (const Pass pass : {Pass::kForward, Pass::kData, Pass::kWeight}) {
      const CudnnProblem problem =
          problem_of(each.convolution, each.x, each.out, pass, DType::kFloat32, true);
      const std::optional<CudnnPlan> here = CudnnPlan::make(problem, handle),
                                     described = CudnnPlan::make(problem, properties);
      ASSERT_TRUE(here && described) << problem.text();
      EXPECT_EQ(here->engine(), described->engine()) << problem.text();
      EXPECT_EQ(here->workspace_bytes(), described->workspace_bytes()) << problem.text();
    }
  }
}

TEST(CudnnPlans, NoneForADeviceWithoutProperties) {
  const CudnnProblem problem =
      problem_of(convolution_of(2, 3, 1, 1, 1, 1), {1, 16, 16, 8}, 8, Pass::kForward, DType::kFloat32, false);
  const std::string said = testing::error_of([&] { CudnnPlan::make(problem, "{}"); });
  EXPECT_NE(said.find("cuDNN could not read a device's properties: CUDNN_STATUS_BAD_PARAM"),
            std::string::npos)
      << said;
}

}  // namespace
}  // namespace jigsaw
