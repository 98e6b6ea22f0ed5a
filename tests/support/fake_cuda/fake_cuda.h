#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "cuda_runtime_api.h"

/// CUDA on machines without a GPU: what stands in src/kernels/cuda is compiled for the host against the
/// headers of this folder and linked with their functions.
///
/// - Memory of a device cannot be read or written by the program: it has rights only while work of the device
///   runs. New memory holds NaN.
/// - Work runs as late as it can: when somebody waits for its stream, and only that stream's, and what its
///   events name.
/// - Blocks run one after the other. The threads of a block run one after the other between two barriers, in
/// an
///   order that differs each time, so that what lacks a barrier gives something else.
namespace jigsaw::testing::fake_cuda {

/// What the machine pretends to have. JIGSAW_FAKE_CUDA, "devices=2,driver=12080,major=9", overrides.
struct Machine {
  int devices = 1;
  int driver = 13000, runtime = 13000;        ///< versions as CUDA counts them: 13000 is 13.0; driver 0: none
  int major = 9, minor = 0;                   ///< compute capability
  std::size_t memory = std::size_t{4} << 30;  ///< bytes of a device
};
Machine& machine();

/// The order of threads and blocks; the next run of the program has the same.
enum class Order : std::uint8_t { kForward, kBackward, kShuffled };
void set_order(Order order);

/// Kernels that have run so far.
std::int64_t kernels_run();
/// Products of bf16 matrices so far whose rows, or the matrices, do not begin at multiples of 16 bytes.
std::int64_t misaligned_products();
/// The next piece of work of a device ends with this error.
void fail_next(cudaError_t error);

/// Puts a kernel's launch into its stream; `thread` is called for each thread.
cudaError_t launch(const cudaLaunchConfig_t& configuration, std::function<void()> thread);
/// Puts other work into a stream.
cudaError_t put(cudaStream_t stream, std::function<void()> work);

/// Runs a kernel's threads in blocks (blocks.cpp).
void run_blocks(dim3 blocks, dim3 threads, const std::function<void()>& thread, Order order,
                std::uint64_t& seed);

}  // namespace jigsaw::testing::fake_cuda
