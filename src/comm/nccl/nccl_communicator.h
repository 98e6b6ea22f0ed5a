#pragma once
#include <memory>

#include "comm/communicator.h"

namespace jigsaw::inline nccl {

/// The NCCL of this program.
struct NcclLibrary {
  bool built = false;
  int version = 0;  ///< as NCCL counts it: 22809 is 2.28.9; 0 where it is not built
};
NcclLibrary nccl_library();

struct NcclOptions {
  /// Sums by NCCL's own reductions, whose order, and so whose bits, are NCCL's.
  bool fast_reduction = false;
  /// Groups of one rank call NCCL, too: for tests on machines with one GPU.
  bool groups_of_one = false;
  /// How often a thread asks for what went wrong while the rank waits for its device.
  double poll_seconds = 0.1;
};

/// The ranks of `control`, with collectives that NCCL carries between their GPUs. Arrays stay on the device:
/// calls are put into its stream for communication, behind what was put into the context's, and wait() makes
/// the context's stream wait, not the host. The log of calls says which of them the device has done. Where
/// pieces are even, all_gather is NCCL's; what is uneven goes by its messages. Sums come by messages and one
/// kernel that adds them in the order of comm/levels.h, so that they have the bits of all other
/// communicators. Each rank sends to all others directly, as much as it would by levels, except that an
/// all_reduce of at most kSmallReduceBytes is gathered whole: (n − 1)·whole. Control values, and the names by
/// which groups find each other, go by `control`.
///
/// Calls in the background (Urgency) go into a stream of their own by a communicator of their own, so that
/// others, whose stream goes before, do not queue behind them; where NCCL is older than 2.26, which knows no
/// order of launches (launches_in_order()), all go into one stream.
///
/// NCCL's communicators are made at the first call of a group, without blocking, and a failure of one aborts
/// all of this rank: its calls throw CommError. The calls of a rank come from one thread.
///
/// @param control  over the same ranks, with a context on a CUDA device.
/// @throws ConfigError  when the program was built without NCCL.
std::unique_ptr<Communicator> make_nccl_communicator(std::unique_ptr<Communicator> control,
                                                     const NcclOptions& options = {});

}  // namespace jigsaw::inline nccl
