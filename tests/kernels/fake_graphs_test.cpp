// Captures and graphs of the fake CUDA runtime: what a replay does, and each mistake that CUDA knows, made
// once.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "array/raw_memory.h"
#include "array/transfer.h"
#include "cuda.h"
#include "cuda_runtime.h"
#include "kernels/backend.h"
#include "kernels/contraction.h"
#include "kernels/convolution.h"
#include "kernels/cuda/error.h"
#include "support/arrays.h"
#include "support/backends.h"
#include "support/error_of.h"
#include "support/fake_cuda/fake_cuda.h"

namespace jigsaw {
namespace {

namespace fake_cuda = testing::fake_cuda;
using testing::values_of;

constexpr unsigned kCount = 64;
constexpr std::size_t kBytes = kCount * sizeof(float);

/// Says itself what it touches, for this file is compiled without the calls that do.
__global__ void add_to(float* sum, const float* summand) {
  fake_cuda::touched(summand + threadIdx.x, sizeof(float), false);
  fake_cuda::touched(sum + threadIdx.x, sizeof(float), true);
  sum[threadIdx.x] += summand[threadIdx.x];
}

class FakeCudaGraphs : public ::testing::Test {
 protected:
  FakeCudaGraphs() {
    for (cudaStream_t* stream : {&a_, &b_, &c_}) cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking);
    for (cudaEvent_t* event : {&first_, &second_, &third_})
      cudaEventCreateWithFlags(event, cudaEventDisableTiming);
    cudaHostAlloc(reinterpret_cast<void**>(&pinned_), 2 * kBytes, cudaHostAllocDefault);
  }
  ~FakeCudaGraphs() override {
    cudaGraphExecDestroy(exec_);
    cudaFreeHost(pinned_);
    for (cudaEvent_t event : {first_, second_, third_}) cudaEventDestroy(event);
    for (cudaStream_t stream : {a_, b_, c_}) {
      if (stream != nullptr) cudaStreamDestroy(stream);
    }
    fake_cuda::fail_next(cudaSuccess);
  }

  /// They are there.
  Array numbers(double value) {
    const std::vector<double> values(kCount, value);
    Array x = testing::array_of(context_, {kCount}, DType::kFloat32, values);
    context_.runtime()->synchronise(Stream::kCompute);
    return x;
  }
  static void add(cudaStream_t stream, Array& sum, const Array& summand) {
    cudaLaunchConfig_t configuration{};
    configuration.blockDim = dim3(kCount);
    configuration.stream = stream;
    cudaLaunchKernelEx(&configuration, add_to, sum.data<float>(), summand.data<float>());
  }
  static void clear(cudaStream_t stream, Array& x) { cudaMemsetAsync(x.raw(), 0, kBytes, stream); }
  /// `later` waits for what stands in `earlier` by now.
  static cudaError_t order(cudaStream_t earlier, cudaEvent_t event, cudaStream_t later) {
    cudaEventRecord(event, earlier);
    return cudaStreamWaitEvent(later, event, 0);
  }
  static cudaStreamCaptureStatus status_of(cudaStream_t stream) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    cudaStreamIsCapturing(stream, &status);
    return status;
  }
  /// What a captures while `work` is called.
  cudaError_t capture(const std::function<void()>& work) {
    EXPECT_EQ(cudaStreamBeginCapture(a_, cudaStreamCaptureModeRelaxed), cudaSuccess);
    work();
    return end(a_);
  }
  cudaError_t end(cudaStream_t stream) {
    cudaGraph_t graph = nullptr;
    const cudaError_t status = cudaStreamEndCapture(stream, &graph);
    EXPECT_EQ(graph != nullptr, status == cudaSuccess);
    if (status == cudaSuccess) {
      cudaGraphExecDestroy(exec_);
      EXPECT_EQ(cudaGraphInstantiate(&exec_, graph, cudaGraphInstantiateFlagUseNodePriority), cudaSuccess);
      cudaGraphDestroy(graph);
    }
    return status;
  }
  void launch(cudaStream_t stream) { EXPECT_EQ(cudaGraphLaunch(exec_, stream), cudaSuccess); }
  static void expect_all(const Array& x, double value) {
    EXPECT_EQ(values_of(x), std::vector<double>(kCount, value));
  }

  Context context_ = testing::kernel_context(Backend::kCuda, 1);
  cudaStream_t a_ = nullptr, b_ = nullptr, c_ = nullptr;
  cudaEvent_t first_ = nullptr, second_ = nullptr, third_ = nullptr;
  float* pinned_ = nullptr;
  cudaGraphExec_t exec_ = nullptr;
};

TEST_F(FakeCudaGraphs, NothingRunsBeforeALaunchIsWaitedFor) {
  Array x = numbers(1), y = numbers(2);
  const std::int64_t before = fake_cuda::kernels_run();
  EXPECT_EQ(capture([&] {
              add(a_, y, x);
              EXPECT_EQ(status_of(a_), cudaStreamCaptureStatusActive);
              EXPECT_EQ(status_of(b_), cudaStreamCaptureStatusNone);
            }),
            cudaSuccess);
  EXPECT_EQ(status_of(a_), cudaStreamCaptureStatusNone);
  EXPECT_EQ(cudaStreamSynchronize(a_), cudaSuccess);
  expect_all(y, 2);
  for (int i = 0; i < 3; ++i) {
    launch(a_);
    EXPECT_EQ(fake_cuda::kernels_run(), before + i);
    cudaStreamSynchronize(a_);
    EXPECT_EQ(fake_cuda::kernels_run(), before + i + 1);
    expect_all(y, 3.0 + i);
  }
}

/// Addresses are recorded, not what is there. Each launch makes NaN of what its copies write to the host.
TEST_F(FakeCudaGraphs, ReplaysReadNewInput) {
  Array x = numbers(-1), y = numbers(-1);
  float* const result = pinned_ + kCount;
  std::fill_n(pinned_, 2 * kCount, -1.0F);
  EXPECT_EQ(capture([&] {
              cudaMemcpyAsync(x.raw(), pinned_, kBytes, cudaMemcpyHostToDevice, a_);
              clear(a_, y);
              add(a_, y, x);
              add(a_, y, x);
              cudaMemcpyAsync(result, y.raw(), kBytes, cudaMemcpyDeviceToHost, a_);
            }),
            cudaSuccess);
  EXPECT_EQ(result[1], -1.0F);
  for (int i = 0; i < 3; ++i) {
    std::fill_n(pinned_, kCount, static_cast<float>(i));
    launch(a_);
    EXPECT_TRUE(std::isnan(result[1])) << i;
    cudaStreamSynchronize(a_);
    EXPECT_EQ(result[1], 2.0F * static_cast<float>(i));
  }
  launch(a_);
  pinned_[0] = 7;
  EXPECT_EQ(cudaStreamSynchronize(a_), cudaErrorOfTheFake) << "the host changes what has not been read";
}

/// b forks c and joins it before it is joined itself; each replay comes behind what stood before, also where
/// it goes into another stream.
TEST_F(FakeCudaGraphs, ForksAndJoinsHoldOnReplay) {
  Array x = numbers(1), y = numbers(0), z = numbers(0);
  EXPECT_EQ(capture([&] {
              add(a_, x, x);
              order(a_, first_, b_);
              add(b_, y, x);
              order(b_, second_, c_);
              EXPECT_EQ(status_of(c_), cudaStreamCaptureStatusActive);
              add(c_, z, y);
              order(c_, third_, b_);
              add(b_, y, z);
              order(b_, second_, a_);
              add(a_, y, x);
            }),
            cudaSuccess);
  EXPECT_EQ(status_of(c_), cudaStreamCaptureStatusNone);
  double x_now = 1, y_now = 0, z_now = 0;
  for (int i = 0; i < 4; ++i) {
    cudaStream_t stream = i % 2 == 0 ? a_ : b_;
    if (i == 0) clear(a_, y), clear(a_, z);
    launch(stream);
    if (i == 3) add(stream, x, y);
    x_now += x_now, y_now += x_now, z_now += y_now, y_now += z_now + x_now;
  }
  cudaStreamSynchronize(b_);
  expect_all(y, y_now);
  expect_all(z, z_now);
  expect_all(x, x_now + y_now);
  EXPECT_EQ(fake_cuda::conflict(), "");
}

TEST_F(FakeCudaGraphs, AMissingJoin) {
  Array x = numbers(1), y = numbers(2);
  EXPECT_EQ(capture([&] {
              order(a_, first_, b_);
              add(b_, y, x);
              order(b_, second_, a_);
              clear(b_, y);
            }),
            cudaErrorStreamCaptureUnjoined);
  EXPECT_EQ(fake_cuda::capture_fault().find("clearing 256 bytes in a forked stream is behind the last place"),
            0U)
      << fake_cuda::capture_fault();
  for (cudaStream_t stream : {a_, b_}) EXPECT_EQ(status_of(stream), cudaStreamCaptureStatusNone);
  add(b_, y, x);
  cudaStreamSynchronize(b_);
  expect_all(y, 3);
}

/// The fork comes too early, by a piece of work. Both pieces are named, in each order in which they run.
TEST_F(FakeCudaGraphs, AMissingWait) {
  for (const bool forks_early : {false, true}) {
    Array x = numbers(1), y = numbers(2), z = numbers(3);
    EXPECT_EQ(capture([&] {
                add(a_, z, y);
                if (forks_early) order(a_, first_, b_);
                add(a_, x, z);
                if (!forks_early) order(a_, first_, b_);
                cudaMemcpyAsync(y.raw(), x.raw(), kBytes, cudaMemcpyDeviceToDevice, b_);
                order(b_, second_, a_);
              }),
              cudaSuccess);
    EXPECT_EQ(fake_cuda::conflict(), "");
    launch(a_);
    EXPECT_EQ(cudaStreamSynchronize(a_), forks_early ? cudaErrorOfTheFake : cudaSuccess);
    const std::string& found = fake_cuda::conflict();
    if (!forks_early) {
      EXPECT_EQ(found, "");
      continue;
    }
    EXPECT_EQ(found.find("kernel void (float*, float const*) in stream "), 0U) << found;
    EXPECT_NE(found.find(" writes what a copy of 256 bytes within the device in stream "), std::string::npos)
        << found;
    EXPECT_NE(found.find(" reads, and neither waits for the other"), std::string::npos) << found;
  }
}

/// No order comes from the streams that captured: a replay may run beside what stands there now.
TEST_F(FakeCudaGraphs, AReplayKnowsNothingOfTheForkedStream) {
  Array x = numbers(1), y = numbers(2);
  EXPECT_EQ(capture([&] {
              order(a_, first_, b_);
              add(b_, y, x);
              order(b_, second_, a_);
            }),
            cudaSuccess);
  clear(b_, x);
  launch(a_);
  cudaStreamSynchronize(a_);
  EXPECT_EQ(cudaStreamSynchronize(b_), cudaErrorOfTheFake);
  EXPECT_EQ(fake_cuda::conflict().find("clearing 256 bytes in stream "), 0U) << fake_cuda::conflict();
}

TEST_F(FakeCudaGraphs, AnEventOfOutside) {
  Array x = numbers(1);
  for (cudaStream_t stream : {a_, b_}) {
    cudaEventRecord(first_, stream);
    EXPECT_EQ(capture([&] {
                EXPECT_EQ(cudaStreamWaitEvent(a_, second_, 0), cudaSuccess) << "never recorded";
                clear(a_, x);
                EXPECT_EQ(cudaStreamWaitEvent(a_, first_, 0), cudaErrorStreamCaptureIsolation);
                EXPECT_EQ(status_of(a_), cudaStreamCaptureStatusInvalidated);
              }),
              cudaErrorStreamCaptureInvalidated);
  }
  EXPECT_EQ(capture([&] {
              EXPECT_EQ(cudaEventQuery(third_), cudaSuccess);
              EXPECT_EQ(cudaStreamSynchronize(b_), cudaSuccess);
            }),
            cudaSuccess)
      << "others may be waited for by the host";
}

/// Such an event is of no use outside, until it is recorded there.
TEST_F(FakeCudaGraphs, AnEventOfACaptureThatHasEnded) {
  EXPECT_EQ(capture([&] { cudaEventRecord(first_, a_); }), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(a_, first_, 0), cudaErrorCapturedEvent);
  EXPECT_EQ(cudaEventQuery(first_), cudaErrorCapturedEvent);
  EXPECT_EQ(cudaEventSynchronize(first_), cudaErrorCapturedEvent);
  EXPECT_EQ(capture([&] { EXPECT_EQ(cudaStreamWaitEvent(a_, first_, 0), cudaErrorStreamCaptureIsolation); }),
            cudaErrorStreamCaptureInvalidated);
  cudaEventRecord(first_, a_);
  EXPECT_EQ(cudaEventSynchronize(first_), cudaSuccess);
  EXPECT_EQ(order(a_, first_, b_), cudaSuccess);
  EXPECT_EQ(status_of(b_), cudaStreamCaptureStatusNone);
}

/// The host cannot wait for what does not run. Nothing is recorded from then on.
TEST_F(FakeCudaGraphs, AWaitOfTheHostInACapture) {
  Array x = numbers(1);
  struct Call {
    const char* name;
    cudaError_t error;
    std::function<cudaError_t()> made;
  };
  const std::vector<Call> calls = {
      {"cudaStreamSynchronize of a captured stream", cudaErrorStreamCaptureUnsupported,
       [&] { return cudaStreamSynchronize(b_); }},
      {"cudaEventSynchronize of a captured event", cudaErrorCapturedEvent,
       [&] { return cudaEventSynchronize(first_); }},
      {"cudaEventQuery of a captured event", cudaErrorCapturedEvent, [&] { return cudaEventQuery(first_); }},
      {"a graph's launch of a captured stream", cudaErrorStreamCaptureUnsupported,
       [&] { return cudaGraphLaunch(exec_, a_); }}};
  EXPECT_EQ(capture([&] { clear(a_, x); }), cudaSuccess);
  for (const Call& call : calls) {
    SCOPED_TRACE(call.name);
    EXPECT_EQ(capture([&] {
                order(a_, first_, b_);
                EXPECT_EQ(call.made(), call.error);
                EXPECT_EQ(fake_cuda::capture_fault(), call.name);
                EXPECT_EQ(cudaMemsetAsync(x.raw(), 0, kBytes, b_), cudaErrorStreamCaptureInvalidated);
                EXPECT_EQ(cuStreamWriteValue32(b_, reinterpret_cast<CUdeviceptr>(pinned_), 1, 0),
                          CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
              }),
              cudaErrorStreamCaptureInvalidated);
    EXPECT_EQ(cudaStreamSynchronize(b_), cudaSuccess);
  }
  expect_all(x, 1);
}

TEST_F(FakeCudaGraphs, ACaptureThatEndsElsewhere) {
  EXPECT_EQ(end(a_), cudaErrorIllegalState);
  EXPECT_EQ(capture([&] {
              EXPECT_EQ(cudaStreamBeginCapture(a_, cudaStreamCaptureModeRelaxed), cudaErrorIllegalState);
              order(a_, first_, b_);
              EXPECT_EQ(end(b_), cudaErrorStreamCaptureUnmatched);
            }),
            cudaSuccess);
  for (const auto mode :
       {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeRelaxed}) {
    cudaStreamBeginCapture(a_, mode);
    const bool anywhere = mode == cudaStreamCaptureModeRelaxed;
    std::thread([&] {
      EXPECT_EQ(end(a_), anywhere ? cudaSuccess : cudaErrorStreamCaptureWrongThread);
    }).join();
    EXPECT_EQ(end(a_), anywhere ? cudaErrorIllegalState : cudaSuccess);
  }
}

TEST_F(FakeCudaGraphs, TwoCapturesThatMeet) {
  EXPECT_EQ(capture([&] {
              cudaStreamBeginCapture(b_, cudaStreamCaptureModeRelaxed);
              EXPECT_EQ(order(b_, first_, a_), cudaErrorStreamCaptureMerge);
              EXPECT_EQ(end(b_), cudaErrorStreamCaptureInvalidated);
            }),
            cudaErrorStreamCaptureInvalidated);
}

/// Streams and graphs go with work under way.
TEST_F(FakeCudaGraphs, WhatIsDestroyedEarly) {
  Array x = numbers(1), y = numbers(2);
  const auto work = [&] {
    order(a_, first_, b_);
    add(b_, y, x);
    order(b_, second_, a_);
  };
  EXPECT_EQ(capture(work), cudaSuccess);
  launch(a_);
  cudaGraphExecDestroy(std::exchange(exec_, nullptr));
  cudaStreamSynchronize(a_);
  expect_all(y, 3);
  EXPECT_EQ(capture(work), cudaSuccess);
  launch(a_);
  cudaStreamDestroy(std::exchange(a_, nullptr));
  launch(b_);
  cudaStreamSynchronize(b_);
  expect_all(x, 1);
  EXPECT_EQ(fake_cuda::conflict(), "");
  cudaStreamBeginCapture(b_, cudaStreamCaptureModeRelaxed);
  order(b_, first_, c_);
  cudaStreamDestroy(std::exchange(b_, nullptr));
  EXPECT_EQ(status_of(c_), cudaStreamCaptureStatusNone);
}

/// Work of the libraries, and numbers that the host counts by.
TEST_F(FakeCudaGraphs, OtherWorkIsRecordedToo) {
  const int cudnn = std::exchange(fake_cuda::machine().cudnn, 91900);
  const Convolution convolution{{{3, 3}, {1, 1}, {1, 1}}, 1, {1, 1}, {1, 1}};
  const ContractionSpec spec = ContractionSpec::parse("mk,nk->mn");
  Array x = numbers(1), weight = testing::random_array(context_, {4, 4, 3, 3}, DType::kFloat32, 2);
  Array square = x.reshaped({8, 8}), field = x.reshaped({1, 4, 4, 4}), product, convolved;
  const auto work = [&] {
    product = contract(context_, spec, square, square, DType::kFloat32);
    convolved = convolution_forward(context_, convolution, field, weight, {}, DType::kFloat32);
  };
  work();  // whose tables and plans are there then
  const std::vector<double> once = values_of(convolved);
  const std::int64_t runs = fake_cuda::cudnn_runs();
  auto* const counter = reinterpret_cast<unsigned*>(pinned_);
  *counter = 0;
  cudaStream_t own = std::exchange(a_, cuda::stream_of(context_));
  EXPECT_EQ(capture([&] {
              work();
              cuStreamWriteValue32(a_, reinterpret_cast<CUdeviceptr>(counter), 7, 0);
            }),
            cudaSuccess);
  context_.runtime()->synchronise(Stream::kCompute);
  EXPECT_EQ(fake_cuda::cudnn_runs(), runs);
  for (int i = 1; i <= 3; ++i) {
    write_values(context_, x, std::vector<double>(kCount, i));
    launch(a_);
    EXPECT_EQ(*counter, 0U);
    context_.runtime()->synchronise(Stream::kCompute);
    EXPECT_EQ(std::exchange(*counter, 0U), 7U);
    EXPECT_EQ(fake_cuda::cudnn_runs(), runs + i);
    EXPECT_EQ(values_of(product), std::vector<double>(kCount, 8.0 * i * i));
    const std::vector<double> found = values_of(convolved);
    for (std::size_t j = 0; j < found.size(); ++j) EXPECT_FLOAT_EQ(found[j], i * once[j]) << j;
  }
  a_ = own;
  fake_cuda::machine().cudnn = cudnn;
}

}  // namespace
}  // namespace jigsaw
