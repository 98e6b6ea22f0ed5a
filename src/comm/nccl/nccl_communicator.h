#pragma once
#include <memory>

#include "comm/communicator.h"
#include "comm/node_grid.h"

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
  /// That a rank waits at most for NCCL to abort, or to end, its communicators.
  double most_abort_seconds = 5;
  /// So many consecutive ranks of the communicator that is made share a node; 0 or 1: nobody knows. Equal on
  /// all ranks, as what follows is.
  int ranks_per_node = 0;
  /// Pieces travel in two levels where a rank so sends as many bytes less out of its node.
  double two_levels_from = kTwoLevelsFrom;
};

/// The ranks of `control`, with collectives that NCCL carries between their GPUs. Arrays stay on the device:
/// calls are put into its stream for communication, behind what was put into the context's, and wait() makes
/// the context's stream wait, not the host. The log of calls says which of them the device has done. Where
/// pieces are even, all_gather is NCCL's; what is uneven goes by its messages. Sums come by messages and
/// kernels that add them in the order of comm/levels.h. Each rank sends to all others directly, as much as it
/// would by levels, except that an all_reduce of at most kSmallReduceBytes is gathered whole: (n − 1)·whole.
/// Control values, and the names by which groups find each other, go by `control`.
///
/// What leaves a node. A group that lies on N > 1 nodes, with l > 1 ranks on each that follow each other in
/// its order (NodeGrid), reduces and gathers larger pieces in two levels: where the mean
/// piece's bytes times (N − 1)(l − 1), which each rank then sends less out of its node, are two_levels_from
/// or more. Ranks of a node sum what they have for one another's numbers on all nodes, and then send each
/// node's sums on; uneven pieces are gathered the other way round. What a rank sends in all is as much as
/// directly, and out of a node goes the least that is possible.
///
/// The order of sums, and so their bits: on one node, in small calls, and where nodes hold unequal numbers of
/// the group's ranks, those of all other communicators: of an element that rank r of n owns
/// reduce_for(r, …) (comm/reduce.h), of an all_reduce of at most kSmallReduceBytes reduce_for_all(). In two
/// levels, of an element that rank k·l + j owns: of each node reduce_for(j, …) of its l ranks' summands, and
/// reduce_for(k, …) of these N sums. With l and N up to four that is Σ over nodes of (Σ over the node's
/// ranks), each from left to right. It depends on the sizes of the call, the group and ranks_per_node alone.
///
/// Memory that a call takes besides its result, until it is done: of n·c elements in pieces of c, (n − 1)·c
/// for direct sums, n·c for those in two levels (of uneven pieces: those of the rank's number on all nodes,
/// and what it receives of the larger of both rounds).
///
/// Calls in the background (Urgency) go into a stream of their own by a communicator of their own, so that
/// others, whose stream goes before, do not queue behind all of them: NCCL begins calls in their order
/// (launches_in_order()), so an urgent one begins once the last one in the background before it has begun. In
/// recorded steps NCCL 2.26, and later ones where the driver is older than CUDA 12.9, put all into one order,
/// where an urgent one does wait for what was called before. Where NCCL_LAUNCH_ORDER_IMPLICIT forbids the
/// order all go into one stream.
///
/// NCCL's communicators are made at the first call of a group, without blocking, and a failure of one, or an
/// exception that passes one, aborts all of this rank: its calls throw CommError from then on. The calls of a
/// rank come from one thread.
///
/// @param control  over the same ranks, with a context on a CUDA device.
/// @throws ConfigError  when the program was built without NCCL.
std::unique_ptr<Communicator> make_nccl_communicator(std::unique_ptr<Communicator> control,
                                                     const NcclOptions& options = {});

}  // namespace jigsaw::inline nccl
