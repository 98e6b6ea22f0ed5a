#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "nccl.h"

/// NCCL on machines without GPUs, over the fake CUDA runtime (tests/support/fake_cuda): what stands in
/// src/comm/nccl is compiled against the header of this folder. Ranks are threads, each with a device of its
/// own; for ranks that are processes see between_processes.cpp.
///
/// - Communicators do not block: they are there when all ranks have asked for them, and what a group issues
///   comes into its stream when the rank asks ncclCommGetAsyncError. As NCCL's own thread does, that, or an
///   abort, stores a new one once more where the rank wanted it, also where it has failed.
/// - Of one device work begins in the order in which it was issued, in whatever stream and communicator.
/// - Work runs when its stream comes to it on all ranks that it takes. What is sent is read when its rank's
///   stream comes there; what is received is NaN from then on, and arrives when this rank waits for it.
/// - What is issued in a stream that captures is recorded when the rank asks ncclCommGetAsyncError. Each
///   launch of the graph issues it anew, among the other calls of its rank. Where the capture is spoilt by
///   then the communicator has failed.
/// - These are mistakes: messages whose counts or types differ; messages that nobody has expected, or sent,
///   when a rank finalises; an order of calls on two communicators that is not a peer's; memory that is
///   written while it is sent, or while something is received there; two ranks on one device; a communicator
///   that is destroyed with work under way or while a graph calls it, or used before it is there, or after
///   its abort; one that a thread with another device ends or aborts; a capture that ends before what was
///   issued in it is recorded.
namespace jigsaw::testing::fake_nccl {

/// Forgets all communicators, mistakes and what was to go wrong.
void start_anew();

/// What was wrong so far, since the last call.
std::vector<std::string> take_mistakes();

/// Calls and messages that have run since the last call, over all ranks.
struct Work {
  std::int64_t launches = 0, messages = 0, collectives = 0;
  /// Of messages, by the device that sends and the one that receives. NCCL's own collectives have none.
  std::map<std::pair<int, int>, std::int64_t> bytes;

  /// That leave each node of so many devices, the first node's first; none that nothing left.
  std::map<int, std::int64_t> out_of_nodes(int devices) const;
};
Work take_work();

/// The next communicator that this rank of a group joins cannot be made: there is no way to others, or no
/// memory.
void fail_next_init(int rank, bool for_memory = false);
/// Its communicator fails when its stream next comes to work of it, as when a network breaks.
void fail_next_work(int rank);
/// A number that this rank receives becomes another, after so many calls that bring it any.
void spoil(int rank, int after);
/// What this rank issues from now on never runs, as on a GPU that hangs.
void stop(int rank);
/// Communicators of ranks that have asked for them and not heard yet how that ended.
int connecting();

/// When an abort comes back: at once; when all communicators of the device are being aborted, which kernels
/// of others may keep; or never, nor does the end of a communicator, as where a graph knows it. start_anew()
/// and kAtOnce let go of those that wait.
enum class Aborts : std::uint8_t { kAtOnce, kTogether, kNever };
void set_aborts(Aborts aborts);

}  // namespace jigsaw::testing::fake_nccl
