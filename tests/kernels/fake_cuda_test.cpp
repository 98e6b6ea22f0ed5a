// What the fake CUDA runtime finds: each kind of mistake is made here once. Only in the program that has it.
#include "support/fake_cuda/fake_cuda.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <vector>

#include "array/raw_memory.h"
#include "base/error.h"
#include "cublasLt.h"
#include "cuda_runtime.h"
#include "kernels/contraction.h"
#include "kernels/copy.h"
#include "kernels/cuda/error.h"
#include "kernels/pointwise.h"
#include "support/arrays.h"
#include "support/backends.h"
#include "support/tolerance.h"

namespace jigsaw {
namespace {

namespace fake_cuda = testing::fake_cuda;
using testing::values_of;

constexpr unsigned kThreads = 64;

/// Turns each block's numbers round by way of shared memory; with `waits` false as it must not be done.
__global__ void turn_round(float* x, bool waits) {
  __shared__ float shared[kThreads];
  float* const block = x + static_cast<std::int64_t>(blockIdx.x) * kThreads;
  shared[threadIdx.x] = block[threadIdx.x];
  if (waits) __syncthreads();
  block[threadIdx.x] = shared[kThreads - 1 - threadIdx.x];
}

/// Some threads leave before a barrier that the others come to.
__global__ void leave_others_waiting() {
  if (threadIdx.x % 2 == 0) __syncthreads();
}

class FakeCudaFinds : public ::testing::Test {
 protected:
  void TearDown() override { fake_cuda::fail_next(cudaSuccess); }

  Array numbers(std::int64_t count) {
    std::vector<double> values(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i);
    return testing::array_of(context_, {count}, DType::kFloat32, values);
  }
  template <typename... Parameters, typename... Arguments>
  void start(unsigned blocks, void (*kernel)(Parameters...), Arguments... arguments) {
    cudaLaunchConfig_t configuration{};
    configuration.gridDim = dim3(blocks);
    configuration.blockDim = dim3(kThreads);
    configuration.stream = cuda::stream_of(context_);
    cuda::check(cudaLaunchKernelEx(&configuration, kernel, arguments...), "start a kernel");
  }

  Context context_ = testing::kernel_context(Backend::kCuda, 1);
};

TEST_F(FakeCudaFinds, AMissingBarrier) {
  constexpr unsigned kBlocks = 3;
  std::vector<double> wanted(kBlocks * kThreads);
  for (std::size_t i = 0; i < wanted.size(); ++i)
    wanted[i] = static_cast<double>(i / kThreads * kThreads + kThreads - 1 - i % kThreads);
  for (const fake_cuda::Order order :
       {fake_cuda::Order::kForward, fake_cuda::Order::kBackward, fake_cuda::Order::kShuffled}) {
    fake_cuda::set_order(order);
    for (const bool waits : {true, false}) {
      Array x = numbers(kBlocks * kThreads);
      start(kBlocks, turn_round, x.data<float>(), waits);
      EXPECT_EQ(values_of(x) == wanted, waits);
    }
  }
}

TEST_F(FakeCudaFinds, ABarrierThatSomeThreadsMiss) {
  start(1, leave_others_waiting);
  EXPECT_THROW(context_.runtime()->synchronise(Stream::kCompute), Error);
}

TEST_F(FakeCudaFinds, AccessFromTheHost) {
  Array x = numbers(3);
  context_.runtime()->synchronise(Stream::kCompute);
  EXPECT_DEATH({ EXPECT_EQ(x.data<float>()[0], 1); }, "");
  EXPECT_DEATH({ x.data<float>()[0] = 1; }, "");
}

/// Numbers that are made in one stream and used in another.
TEST_F(FakeCudaFinds, AMissingWait) {
  for (const bool waits : {false, true}) {
    Array sent(context_, {3}, DType::kFloat32);
    const Array x = add(context_, numbers(3), numbers(3));
    const DeviceRuntime::Ticket there = context_.runtime()->ticket(Stream::kCompute);
    if (waits) context_.runtime()->wait(Stream::kCommunication, there);
    context_.set_stream(Stream::kCommunication);
    copy_elements(context_, x, 0, sent, 0, 3);
    context_.runtime()->synchronise(Stream::kCommunication);
    const std::vector<double> found = values_of(sent);
    context_.set_stream(Stream::kCompute);
    EXPECT_EQ(found == (std::vector<double>{0, 2, 4}), waits);
    context_.runtime()->synchronise(Stream::kCompute);
  }
}

TEST_F(FakeCudaFinds, WorkThatFails) {
  const Array x = add(context_, numbers(3), numbers(3));
  fake_cuda::fail_next(cudaErrorIllegalAddress);
  try {
    values_of(x);
    FAIL() << "an error of the device was not seen";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("an illegal memory access was encountered"), std::string::npos);
  }
}

TEST_F(FakeCudaFinds, AFullDevice) {
  const Array small = numbers(3);
  try {
    const Array large(context_, {std::int64_t{1} << 40}, DType::kFloat32);
    FAIL() << "4 TiB were found on a device of 4 GiB";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kInternal);
    const std::string said = error.what();
    EXPECT_NE(said.find("out of memory on CUDA device 0: 4.0 TiB more than the "), std::string::npos) << said;
    EXPECT_NE(said.find("(for activations; arrays hold 12 B activations): a smaller"), std::string::npos)
        << said;
  }
}

/// Large products of bf16 whose rows are no multiples of 16 bytes go through padded copies; small ones do
/// not.
TEST_F(FakeCudaFinds, MisalignedRows) {
  const auto spec = ContractionSpec::parse("bmk,bnk->bmn");
  for (const std::int64_t extent : {33, 259}) {
    const Shape a = {2, extent, extent}, b = {2, extent, extent};
    Context host = Context::make_host(Backend::kReference, 1);
    const auto made = [&](Context& context, unsigned seed) {
      return testing::random_array(context, seed == 1 ? a : b, DType::kBfloat16, seed);
    };
    for (const DType out : {DType::kBfloat16, DType::kFloat32}) {
      const std::int64_t before = fake_cuda::misaligned_products();
      const Array c = contract(context_, spec, made(context_, 1), made(context_, 2), out);
      const std::vector<double> found = values_of(c);
      EXPECT_EQ(fake_cuda::misaligned_products() > before, extent < 256);
      const std::vector<double> wanted = values_of(contract(host, spec, made(host, 1), made(host, 2), out));
      testing::expect_near(found, wanted, testing::tolerance(out, extent, 32));
    }
  }
}

}  // namespace
}  // namespace jigsaw
