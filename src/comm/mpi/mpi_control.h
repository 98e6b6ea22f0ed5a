#pragma once
#include "comm/levels.h"
#include "comm/mpi/mpi_state.h"

namespace jigsaw::inline comm {

/// The tag of a transfer's messages is the number of its call in the group modulo kTags, that of control
/// messages kTags more, so that messages left unread by a failed call are not taken for those of the next.
/// MPI guarantees tags up to 32767.
inline constexpr std::int64_t kTags = 1 << 14;

/// A communicator of MPI, and what is known of it without asking MPI.
struct MpiGroup {
  MPI_Comm comm;
  int rank, size;
  const std::vector<Level>& levels;  ///< of the rank
};

/// A control call over the group. It waits with non-blocking calls, so that transfers under way progress
/// meanwhile.
/// @return  the call with the result in its values or texts. @param sent  gets what was sent.
Call run_control(Call call, const MpiGroup& group, MpiSession::State& state, Sent& sent);

}  // namespace jigsaw::inline comm
