#pragma once
#include <cstddef>
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
/// - Two pieces of work that touch the same memory without an order end the program's next wait with an error
///   that names both (work_order.h). What copies write to pinned memory of the host is NaN until they have
///   run, and the host must not change there what they have not read yet.
/// - So do two threads of a kernel, and shared memory that is read before it is written (thread_order.h).
/// - A kernel that touches memory at no multiple of what its type is aligned to, or beyond an array of fixed
///   size, ends there; the next wait names both.
/// - What is put into streams that capture is recorded (graphs.cpp). Each launch of the graph puts in new
///   work, in the order of its streams and waits alone, so that a wait that was not recorded is found.
///   JIGSAW_FAKE_CUDA_SPOILS="1:40" spoils each capture on device 1 with the fortieth piece of work that is
///   put into it or, where that is NCCL's, the next that is not; "1:nccl" with NCCL's first; "1:0" lets no
///   graph of it be instantiated, "1:upload" finds no memory for one.
/// - Blocks run one after the other. The threads of a block run one after the other between two barriers, in
///   an order that differs each time, so that what lacks a barrier gives something else.
namespace jigsaw::testing::fake_cuda {

/// What the machine pretends to have. JIGSAW_FAKE_CUDA, "devices=2,driver=12080,major=9", overrides; there,
/// "fail_after=100,fail_with=214,fail_device=1" ends the work of a device behind its hundredth kernel or copy
/// with this error.
struct Machine {
  int devices = 1;
  int driver = 13000, runtime = 13000;  ///< versions as CUDA counts them: 13000 is 13.0; driver 0: none
  int major = 9, minor = 0;             ///< compute capability
  int no_code = 209;  ///< the error where kernels are compiled for no compute capability below 8
  std::size_t memory = std::size_t{4} << 30;  ///< bytes of a device
  std::size_t pinned = std::size_t{1} << 40;  ///< bytes of the host that can be pinned at a time
  int vmm = 1;  ///< 0: memory cannot be mapped at addresses of the program's choice, as on virtual GPUs; 2:
                ///< the attribute says that it can, and the driver refuses
  int fail_after = 0, fail_with = 0, fail_device = 0;
  int broken = 0;       ///< the error that devices cannot be counted for
  int unlike = -1;      ///< the device that is another model
  int cudnn = 0;        ///< version of its cuDNN, 91900 for 9.19.0; 0: none
  int cudnn_cuda = 13;  ///< major version of CUDA that this is for
  int cudnn_refuses =
      0;  ///< that has no plan for convolutions to so many channels, or heads of so many numbers
  int cudnn_pairs =
      1;               ///< 0: attention's gradients that repeat take no number for each pair, as 9.19 on B200
  int cudnn_rows = 1;  ///< 2: those in any order take two numbers for each of dq, as 9.19 on A100
  std::int64_t cudnn_most_queries = std::int64_t{1} << 40;  ///< it has no plan for attention of more
  int cudnn_lacks = 0;     ///< the status of an installation that is not whole; 1001: it does not start
  int cublas_refuses = 0;  ///< its cuBLASLt has no algorithm for sums of so many products; -1: for none
  /// Of a kernel's blocks no more than so many run along y and z: those of kernels that stride over what is
  /// beyond their grid must do all the work, as they do of more heads than a grid has blocks.
  unsigned most_blocks_y = 65535, most_blocks_z = 65535;
};
Machine& machine();

/// The order of threads and blocks; the next run of the program has the same.
enum class Order : std::uint8_t { kForward, kBackward, kShuffled };
void set_order(Order order);

/// Kernels that have run so far.
std::int64_t kernels_run();
/// Products of bf16 matrices so far whose rows, or the matrices, do not begin at multiples of 16 bytes.
std::int64_t misaligned_products();
/// Products of float32 matrices so far whose factors may be taken as TensorFloat-32, and those in full.
std::int64_t rounded_products();
std::int64_t full_products();
/// Convolutions and attentions, or parts of them, that cuDNN has done so far.
std::int64_t cudnn_runs();
/// Handles of cuBLASLt and cuDNN that were made and not destroyed.
std::int64_t library_handles();
/// Bytes of the host that are pinned.
std::size_t pinned_bytes();
/// The two pieces of work without an order that were found first; "" for none. Forgotten by
/// fail_next(cudaSuccess).
const std::string& conflict();
/// Whether what kernels touch is seen, and at which addresses: not where the program is compiled with a
/// sanitizer.
bool sees_accesses();
/// What spoilt the last capture that was spoilt: a call that must not be made then, or work that nothing
/// waits for; "" for none so far.
const std::string& capture_fault();
/// Events that were made so far.
std::int64_t events_made();
/// Nothing of this device runs from now on, as on one that hangs; -1: all go on.
void stop(int device);
/// What waits in streams never runs, such as that of a context whose device hung, and which was left.
void forget_work();
/// The next piece of work of a device ends with this error.
void fail_next(cudaError_t error);

/// Puts a kernel's launch into its stream; `thread` is called for each thread.
/// @param type  of the kernel, mangled.
cudaError_t launch(const cudaLaunchConfig_t& configuration, const char* type, std::function<void()> thread);
/// Puts other work into a stream.
cudaError_t put(cudaStream_t stream, const std::string& name, std::function<void()> work);
/// While work runs: it touches memory.
void touched(const void* address, std::size_t bytes, bool writes);
/// While work runs: it does what a GPU's must not. `what` goes on behind its name.
void accuse(const std::string& what);
/// While work runs: this memory was given to it for what it likes. It writes NaN to both ends.
void use_workspace(std::byte* memory, std::size_t bytes);

/// Runs a kernel's threads in blocks (blocks.cpp).
void run_blocks(dim3 blocks, dim3 threads, const std::function<void()>& thread, Order order,
                std::uint64_t& seed);
/// Whether the calling code is a kernel's.
bool in_kernel();
/// Of a kernel's thread: the kernel ends here, unfinished. Does not come back.
void end_kernel();
/// False once the calling thread of the program has ended and destroys what it kept.
bool kernels_can_run();

}  // namespace jigsaw::testing::fake_cuda
