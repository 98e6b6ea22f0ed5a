// What is said of a device that fails, or has no room.
#include <chrono>
#include <cstdlib>
#include <future>
#include <thread>
#include <utility>

#include "array/current_work.h"
#include "base/error.h"
#include "base/text.h"
#include "kernels/attention.h"
#include "kernels/contraction.h"
#include "kernels/convolution.h"
#include "kernels/cuda/library.h"
#include "kernels/fake_cuda_finds.h"
#include "kernels/pointwise.h"
#include "support/error_of.h"

namespace jigsaw {
namespace {

namespace fake_cuda = testing::fake_cuda;
using testing::error_of;
using testing::FakeCudaFinds;
using testing::values_of;

/// Errors come to light when the host waits. What is said is the operation that the device was at, not the
/// one that the host has come to; with JIGSAW_CUDA_SYNC=1 the launch itself.
TEST_F(FakeCudaFinds, WorkThatFails) {
  for (const bool waits : {false, true}) {
    setenv("JIGSAW_CUDA_SYNC", waits ? "1" : "0", 1);
    Context context = testing::kernel_context(Backend::kCuda, 1);
    unsetenv("JIGSAW_CUDA_SYNC");
    CurrentWork& work = current_work(context);
    const auto begin = [&](const std::string& operation, std::int64_t step) {
      work.operation = operation;
      work.step = step;
      ++work.changes;
    };
    const Array x = testing::array_of(context, {3}, DType::kFloat32, {1, 2, 3});
    begin("add of encoder.0", 6);
    const Array y = add(context, x, x);
    context.runtime()->synchronise(Stream::kCompute);
    begin("add of decoder", 7);
    fake_cuda::fail_next(cudaErrorIllegalAddress);
    const std::string said = error_of([&] {
      const Array z = add(context, y, y);
      begin("loss", 7);
      const Array w = add(context, z, z);
      values_of(w);
    });
    EXPECT_NE(said.find("operation add of decoder of step 7"), std::string::npos) << said;
    EXPECT_NE(said.find("an illegal memory access was encountered"), std::string::npos) << said;
    EXPECT_EQ(said.find("in the launch of void (*)(long, ") != std::string::npos ||
                  said.find("in the launch of void (long, ") != std::string::npos,
              waits)
        << said;
    EXPECT_EQ(said.find("JIGSAW_CUDA_SYNC=1") == std::string::npos, waits) << said;
    fake_cuda::fail_next(cudaSuccess);
  }
}

/// Libraries have CUDA runtimes of their own, which meet an error before the program's does: it is told as
/// the device's all the same, of the operation that the device was at.
TEST_F(FakeCudaFinds, ErrorsThatCublasMeets) {
  const auto spec = ContractionSpec::parse("mk,kn->mn");
  const Array a = numbers(6).reshaped({2, 3}), b = numbers(6).reshaped({3, 2});
  contract(context_, spec, a, b, DType::kFloat32);
  context_.runtime()->synchronise(Stream::kCompute);
  CurrentWork& work = current_work(context_);
  work.operation = "add of decoder";
  ++work.changes;
  fake_cuda::fail_next(cudaErrorECCUncorrectable);
  const Array c = add(context_, a, a);
  cudaStreamQuery(cuda::stream_of(context_));  // the device has come to it
  work.operation = "contract of head";
  ++work.changes;
  const std::string said = error_of([&] { contract(context_, spec, a, b, DType::kFloat32); });
  EXPECT_EQ(said.rfind("the GPU fake, ", 0), 0U) << said;
  EXPECT_NE(said.find(" failed in operation add of decoder, "), std::string::npos) << said;
  EXPECT_NE(said.find("uncorrectable ECC error"), std::string::npos) << said;
}

/// Also in the first calls of a library, which make its handle, and those that make a plan.
TEST_F(FakeCudaFinds, ErrorsThatTheFirstCallsOfLibrariesMeet) {
  const int cudnn = std::exchange(fake_cuda::machine().cudnn, 91900);
  const auto spec = ContractionSpec::parse("mk,kn->mn");
  const Convolution convolution{{{3, 3}, {1, 1}, {1, 1}}, 1, {1, 1}, {1, 1}};
  for (const bool first : {true, false}) {
    for (const char* library : {"cuBLASLt", "cuDNN's convolutions", "cuDNN's attention"}) {
      SCOPED_TRACE(concat(library, first ? ", the first call" : ", a plan"));
      Context context = testing::kernel_context(Backend::kCuda, 1);
      const auto call = [&](std::int64_t size) {
        const Array x = Array(context, {size, size}, DType::kFloat32), field = x.reshaped({1, size, size, 1}),
                    weight = Array(context, {1, 1, 3, 3}, DType::kFloat32),
                    qkv = Array(context, {1, size, 3, 2, 8}, DType::kBfloat16);
        const std::string name = library;
        if (name == "cuBLASLt") {
          contract(context, spec, x, x, DType::kFloat32);
        } else if (name == "cuDNN's convolutions") {
          convolution_forward(context, convolution, field, weight, {}, DType::kFloat32);
        } else {
          attention_forward(context, {qkv, 0}, {qkv, 1}, {qkv, 2}, {.scale = 0.3}, DType::kBfloat16);
        }
      };
      const Array x = testing::array_of(context, {3}, DType::kFloat32, {1, 2, 3});
      if (!first) call(8);
      const std::int64_t handles = fake_cuda::library_handles();
      context.runtime()->synchronise(Stream::kCompute);
      CurrentWork& work = current_work(context);
      work.operation = "add of decoder";
      ++work.changes;
      fake_cuda::fail_next(cudaErrorECCUncorrectable);
      const Array y = add(context, x, x);
      cudaStreamQuery(cuda::stream_of(context));  // the device has come to it
      work.operation = "what calls the library";
      ++work.changes;
      const std::string said = error_of([&] { call(9); });
      EXPECT_EQ(said.rfind("the GPU fake, ", 0), 0U) << said;
      EXPECT_NE(said.find(" failed in operation add of decoder, "), std::string::npos) << said;
      EXPECT_NE(said.find("uncorrectable ECC error"), std::string::npos) << said;
      EXPECT_EQ(fake_cuda::library_handles(), handles);
      fake_cuda::fail_next(cudaSuccess);
    }
  }
  fake_cuda::machine().cudnn = cudnn;
}

/// Libraries wait for the device before they end, and CUDA before it frees; one that hangs keeps no context
/// from its end, which leaves what it has.
TEST_F(FakeCudaFinds, ADeviceThatHangsKeepsNoContext) {
  constexpr int kDevice = 1;  // whose memory other tests do not miss
  const int devices = std::exchange(fake_cuda::machine().devices, kDevice + 1),
            cudnn = std::exchange(fake_cuda::machine().cudnn, 91900);
  const std::int64_t before = fake_cuda::library_handles();
  const auto handles_after_a_context = [&](bool hangs) {
    std::promise<void> ended;
    std::thread rank([&] {
      {
        Context context = make_cuda_context(kDevice);
        const Array x(context, {8, 8}, DType::kFloat32), weight(context, {1, 1, 3, 3}, DType::kFloat32);
        contract(context, ContractionSpec::parse("mk,kn->mn"), x, x, DType::kFloat32);
        convolution_forward(context, {{{3, 3}, {1, 1}, {1, 1}}, 1, {1, 1}, {1, 1}}, x.reshaped({1, 8, 8, 1}),
                            weight, {}, DType::kFloat32);
        EXPECT_EQ(fake_cuda::library_handles() - before, 2);
        if (hangs) fake_cuda::stop(kDevice);
      }
      ended.set_value();
    });
    const auto waited = ended.get_future().wait_for(std::chrono::minutes(2));
    EXPECT_EQ(waited, std::future_status::ready) << "it waits for the device";
    fake_cuda::stop(-1);
    rank.join();
    fake_cuda::forget_work();
    return fake_cuda::library_handles() - before;
  };
  EXPECT_EQ(handles_after_a_context(false), 0);
  EXPECT_EQ(handles_after_a_context(true), 2);
  fake_cuda::machine().devices = devices;
  fake_cuda::machine().cudnn = cudnn;
}

/// Where arrays fill the device a library's words are followed by what they hold.
TEST_F(FakeCudaFinds, ALibraryThatFailsOnAFullDevice) {
  const std::size_t before = fake_cuda::machine().memory;
  fake_cuda::machine().memory = std::size_t{16} << 20;
  Context context = testing::kernel_context(Backend::kCuda, 1);
  const auto said = [&] {
    return error_of([&] {
      cuda::library_failed(context, "a product", cuda::LibraryError("cuBLASLt could not run a product"));
    });
  };
  EXPECT_EQ(said(), "cuBLASLt could not run a product");
  std::vector<Array> arrays;
  EXPECT_THROW(for (;;) arrays.emplace_back(context, Shape{1 << 19}, DType::kFloat32, Purpose::kActivations),
               OutOfMemoryError);
  const std::string full = said();
  EXPECT_EQ(
      full.rfind("cuBLASLt could not run a product; 0 B of 16.0 MiB are free on the GPU: arrays hold 1", 0),
      0U)
      << full;
  EXPECT_NE(full.find(" MiB activations; a smaller train.batch_size, "), std::string::npos) << full;
  fake_cuda::machine().memory = before;
}

/// A GPU that is of no more use is named, so that somebody can find it.
TEST_F(FakeCudaFinds, AGpuThatIsLost) {
  current_work(context_).step = 3;
  current_work(context_).checkpoint = "run/checkpoints/step_00000002";
  for (const cudaError_t error : {cudaErrorECCUncorrectable, cudaErrorUnknown, cudaErrorIllegalAddress}) {
    const Array x = add(context_, numbers(3), numbers(3));
    fake_cuda::fail_next(error);
    const std::string said = error_of([&] { values_of(x); });
    const bool lost = error != cudaErrorIllegalAddress;
    EXPECT_EQ(said.find("the GPU fake, UUID GPU-00000000-0000-0000-0000-000000000000 (0000:00:00.0 of ") !=
                  std::string::npos,
              lost)
        << said;
    EXPECT_EQ(
        said.find("nothing is saved from it, the last whole checkpoint is run/checkpoints/step_00000002") !=
            std::string::npos,
        lost)
        << said;
    EXPECT_NE(said.find("step 3"), std::string::npos) << said;
    fake_cuda::fail_next(cudaSuccess);
  }
}

/// If it is an allocation that hears of it.
TEST_F(FakeCudaFinds, AGpuThatIsLostBeforeAnAllocation) {
  current_work(context_).checkpoint = "run/checkpoints/step_00000002";
  const Array x = numbers(3);
  fake_cuda::fail_next(cudaErrorECCUncorrectable);
  error_of([&] { values_of(add(context_, x, x)); });
  const std::string said = error_of([&] { Array(context_, {std::int64_t{64} << 20}, DType::kFloat32); });
  EXPECT_EQ(said.rfind("the GPU fake, UUID GPU-", 0), 0U) << said;
  EXPECT_NE(said.find("the last whole checkpoint is run/checkpoints/step_00000002"), std::string::npos)
      << said;
  fake_cuda::fail_next(cudaSuccess);
}

/// Of 4 GiB 2 are held at first, with 1 GiB before them that was let go.
TEST_F(FakeCudaFinds, AFullDevice) {
  constexpr std::int64_t kGiB = (std::int64_t{1} << 30) / 4;
  {
    const Array before(context_, {kGiB}, DType::kFloat32, Purpose::kWorkspace);
    const Array held(context_, {2 * kGiB}, DType::kFloat32, Purpose::kParameters);
    current_work(context_).operation = "split of encoder.0";
    const auto ask = [&](std::int64_t count) {
      return error_of([&] { Array(context_, {count}, DType::kFloat32); });
    };
    EXPECT_EQ(ask(3 * kGiB / 2).rfind("out of memory on CUDA device 0 in operation split of encoder.0, ", 0),
              0U);
    EXPECT_NE(ask(3 * kGiB / 2).find(" are in use: an array of 1.5 GiB (activations) does not fit, one of "),
              std::string::npos)
        << ask(3 * kGiB / 2);
    EXPECT_NE(ask(3 * kGiB / 2)
                  .find("arrays hold 2.0 GiB parameters, 1.0 GiB workspace; a smaller train.batch_size"),
              std::string::npos)
        << ask(3 * kGiB / 2);
  }
  // All of it is free by now, and more than the device has left: what fits is what it said.
  const std::string said = error_of([&] { Array(context_, {std::int64_t{1} << 40}, DType::kFloat32); });
  EXPECT_NE(said.find("an array of 4.0 TiB (activations) does not fit, one of 4.0 GiB would; arrays hold 0 B "
                      "parameters (at most 2.0 GiB before), 0 B workspace (at most 1.0 GiB before)"),
            std::string::npos)
      << said;
}

}  // namespace
}  // namespace jigsaw
