#pragma once
#include "comm/levels.h"
#include "comm/mpi/mpi_state.h"

namespace jigsaw::inline comm {

/// Messages of a transfer carry the number of its call in the group, modulo kTags, as their tag, control
/// messages so many more: what a call that failed has left unread is not taken for that of the next one. MPI
/// guarantees tags up to 32767.
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
