// What the fake CUDA runtime finds of what goes up to a device: uploads, page-locked memory, constants.
#include <gtest/gtest.h>

#include <cmath>
#include <span>
#include <vector>

#include "array/raw_memory.h"
#include "array/recorded_position.h"
#include "array/transfer.h"
#include "cuda_runtime.h"
#include "kernels/backend.h"
#include "kernels/cuda/constants.h"
#include "kernels/cuda/error.h"
#include "kernels/cuda/pinned_ring.h"
#include "kernels/fake_cuda_finds.h"
#include "kernels/pointwise.h"
#include "support/arrays.h"
#include "support/backends.h"
#include "support/error_of.h"
#include "support/fake_cuda/devices.h"
#include "support/fake_cuda/fake_cuda.h"

namespace jigsaw {
namespace fake_uploads_test {

namespace fake_cuda = testing::fake_cuda;
using testing::error_of;
using testing::FakeCudaFinds;
using testing::values_of;

/// What goes up waits for nobody, in more blocks than one, and is what it was when it was given.
TEST_F(FakeCudaFinds, NoWaitForAnUpload) {
  constexpr std::int64_t kCount = cuda::PinnedRing::kBlockBytes / sizeof(float) * 5 / 2;
  Context host = Context::make_host(Backend::kReference, 1);
  Array given = filled(host, {kCount}, DType::kFloat32, 1.0, Purpose::kWorkspace), up[2];
  const Array x = numbers(3);
  context_.runtime()->synchronise(Stream::kCompute);
  const Array sum = add(context_, x, x);
  const std::int64_t run = fake_cuda::kernels_run();
  for (int i = 0; i < 2; ++i) {
    up[i] = upload(context_, given);
    write_values(host, given, std::vector<double>(kCount, i + 2.0));
  }
  EXPECT_EQ(fake_cuda::kernels_run(), run);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(values_of(up[i]), std::vector<double>(kCount, i + 1.0));
  EXPECT_EQ(values_of(sum), (std::vector<double>{0, 2, 4}));
}

/// Several threads of the host copy, each a part, of which the last may be no whole line.
TEST_F(FakeCudaFinds, WhatGoesUpByThreads) {
  constexpr std::int64_t kCount = cuda::PinnedRing::kBlockBytes / sizeof(float) * 3 / 2 + 37;
  Context host = Context::make_host(Backend::kReference, 1);
  std::vector<double> numbers(kCount);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<double>(i % (1 << 24));
  const Array given = constant(host, {kCount}, DType::kFloat32, numbers);
  for (const int threads : {1, 2, 5, 64}) {
    context_.set_host_threads(threads);
    EXPECT_EQ(values_of(upload(context_, given)), numbers) << threads;
  }
}

/// Blocks that were read are taken again; where the host gives no more the oldest is waited for.
TEST_F(FakeCudaFinds, PinnedMemoryThatIsTakenTooEarly) {
  constexpr std::int64_t kBlock = cuda::PinnedRing::kBlockBytes / sizeof(float);
  Context host = Context::make_host(Backend::kReference, 1);
  Array given = filled(host, {kBlock}, DType::kFloat32, 0.0, Purpose::kWorkspace);
  const auto upload_some = [&](int count) {
    std::vector<Array> up;
    for (int i = 0; i < count; ++i) {
      write_values(host, given, std::vector<double>(kBlock, i));
      up.push_back(upload(context_, given));
    }
    for (int i = 0; i < count; ++i) EXPECT_EQ(values_of(up[i]), std::vector<double>(kBlock, i)) << i;
  };
  upload_some(2);
  const std::size_t two = fake_cuda::pinned_bytes();
  for (int i = 0; i < 3; ++i) upload_some(2);
  EXPECT_LE(fake_cuda::pinned_bytes(), two + cuda::PinnedRing::kBlockBytes);
  fake_cuda::machine().pinned = two + cuda::PinnedRing::kBlockBytes;
  upload_some(8);
}

/// Pinned memory: of two copies without an order, and of a host that does not wait for one.
TEST_F(FakeCudaFinds, PinnedMemoryThatIsUsedTooEarly) {
  void* memory = nullptr;
  ASSERT_EQ(cudaHostAlloc(&memory, 3 * sizeof(float), cudaHostAllocMapped), cudaSuccess);
  auto* const pinned = static_cast<float*>(memory);
  Array x = numbers(3), y(context_, {3}, DType::kFloat32);
  context_.runtime()->synchronise(Stream::kCompute);
  const auto stream = [&](Stream which) {
    context_.set_stream(which);
    return cuda::stream_of(context_);
  };
  const auto down = [&](Stream which) {
    cuda::check(cudaMemcpyAsync(pinned, x.raw(), 12, cudaMemcpyDeviceToHost, stream(which)), "copy");
  };
  const auto up = [&](Stream which) {
    cuda::check(cudaMemcpyAsync(y.raw(), pinned, 12, cudaMemcpyHostToDevice, stream(which)), "copy");
  };
  const auto both_done = [&] {
    return error_of([&] {
      context_.runtime()->synchronise(Stream::kUpload);
      context_.runtime()->synchronise(Stream::kCompute);
    });
  };
  down(Stream::kCompute);
  EXPECT_TRUE(std::isnan(pinned[1]));
  EXPECT_EQ(both_done(), "");
  EXPECT_EQ(pinned[1], 1);

  up(Stream::kUpload);
  pinned[1] = 5;
  EXPECT_NE(both_done().find("the host changes pinned memory before a copy of 12 bytes to the device"),
            std::string::npos);
  fake_cuda::fail_next(cudaSuccess);

  down(Stream::kCompute);
  up(Stream::kUpload);
  EXPECT_NE(both_done().find("neither waits for the other"), std::string::npos);
  context_.set_stream(Stream::kCompute);
  cudaFreeHost(memory);
}

/// Of one launch all are there, however large; what is no longer asked for goes.
TEST_F(FakeCudaFinds, ConstantsThatAreFreedTooEarly) {
  constexpr std::size_t kCount = cuda::Constants::kMostBytes / sizeof(std::int64_t) * 2 / 3;
  const auto taken = [&](std::int64_t number, std::size_t count) {
    return cuda::constants(context_, std::span<const std::int64_t>(std::vector(count, number)));
  };
  for (const auto& [number, at] : {std::pair{1, taken(1, kCount)}, {2, taken(2, kCount)}}) {
    std::int64_t found = 0;
    context_.runtime()->download(Stream::kCompute, reinterpret_cast<const std::byte*>(at),
                                 std::as_writable_bytes(std::span(&found, 1)));
    EXPECT_EQ(found, number);
  }
  EXPECT_EQ(taken(1, kCount), taken(1, kCount));
  for (std::int64_t i = 0; i < cuda::Constants::kKept; ++i) taken(i, 1);
  taken(3, kCount);
  EXPECT_LT(context_.arena().current_bytes(Purpose::kWorkspace),
            static_cast<std::int64_t>(cuda::Constants::kMostBytes * 3 / 2));
}

/// Recorded work reads them again whenever it is replayed.
TEST_F(FakeCudaFinds, ConstantsOfRecordedWorkThatAreFreed) {
  constexpr std::size_t kCount = cuda::Constants::kMostBytes / sizeof(std::int64_t) * 2 / 3;
  const auto taken = [&](std::int64_t number, std::size_t count) {
    return cuda::constants(context_, std::span<const std::int64_t>(std::vector(count, number)));
  };
  RecordedPosition& position = context_.state<RecordedPosition>();
  position.steps_later = numbers(1);
  const std::int64_t* const recorded = taken(1, kCount);
  position.steps_later = Array();
  const auto others = [&] {
    for (std::int64_t i = 0; i <= cuda::Constants::kKept; ++i) taken(100 + i, 1);
    taken(2, kCount);
  };
  others();
  EXPECT_EQ(taken(1, kCount), recorded);
  ++position.era;  // it was forgotten
  others();
  const std::int64_t before = context_.runtime()->host_steps().uploads;
  taken(1, kCount);
  EXPECT_EQ(context_.runtime()->host_steps().uploads, before + 1);
  context_.runtime()->synchronise(Stream::kCompute);
}

}  // namespace fake_uploads_test
}  // namespace jigsaw
