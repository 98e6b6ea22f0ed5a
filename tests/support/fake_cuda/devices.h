#pragma once
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

#include "support/fake_cuda/fake_cuda.h"

/// For work that takes several devices of the fake CUDA runtime (tests/support/fake_nccl).
namespace jigsaw::testing::fake_cuda {

/// All work, and all that is put into streams, happens under one lock.
std::recursive_mutex& mutex();
/// Of the calling thread.
int current_device();
bool is_device_memory(const void* address);

/// Work that reaches the memory of all devices. Where it says false it cannot run yet, and is tried again:
/// when more was put in somewhere, and when told.
/// @param number  set to its place in the stream, unless null.
cudaError_t put_when_ready(cudaStream_t stream, const std::string& name, std::function<bool()> work,
                           std::int64_t* number = nullptr);
void work_may_go_on();
/// Runs the stream's work in order, up to that place; false where some cannot run yet.
bool run(FakeStream& stream, std::int64_t until);

}  // namespace jigsaw::testing::fake_cuda
