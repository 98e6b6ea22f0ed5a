#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "support/fake_cuda/fake_cuda.h"

/// For work that other libraries put into streams of the fake CUDA runtime (tests/support/fake_nccl).
namespace jigsaw::testing::fake_cuda {

/// All work, and all that is put into streams, happens under one lock.
std::recursive_mutex& mutex();
/// Of the calling thread.
int current_device();
bool is_device_memory(const void* address);
/// Sets it to what JIGSAW_FAKE_CUDA says of the key, where it says something.
void read_number(const std::string& key, int& into);

/// Work that reaches the memory of all devices, in a stream that does not capture. Where it says false it
/// cannot run yet, and is tried again: when more was put in somewhere, and when told.
/// @param number  set to its place in the stream, unless null.
cudaError_t put_when_ready(cudaStream_t stream, const std::string& name, std::function<bool()> work,
                           std::int64_t* number = nullptr);
void work_may_go_on();
/// For whoever calls run() with it when the program may have destroyed it, or the graph whose launches it is
/// for.
std::shared_ptr<FakeStream> share(cudaStream_t stream);
/// Runs the stream's work in order, up to that place; false where some cannot run yet.
bool run(FakeStream& stream, std::int64_t until);

/// Whether the stream captures: what is put into it is recorded, also where a mistake has spoilt the capture.
/// put() does so by itself.
bool capturing(cudaStream_t stream);
/// Records work in a stream that captures. Each launch of the graph calls `put_again`, under mutex(), in the
/// order in which all of it was recorded, with the stream that stands for this one in that launch; it puts in
/// new work.
/// @param name  of the work, where it is said that nothing waits for it.
/// @return cudaErrorStreamCaptureInvalidated where a mistake has spoilt the capture.
cudaError_t record(cudaStream_t stream, std::string name, std::function<void(cudaStream_t)> put_again,
                   bool of_nccl = false);

}  // namespace jigsaw::testing::fake_cuda
