#pragma once
#include "comm/levels.h"
#include "comm/mpi/mpi_state.h"

namespace jigsaw::inline comm {

/// Control messages carry this tag: one for all, for control calls are waited for one after the other.
inline constexpr int kControlTag = 32767;

/// A control call over `comm`, whose levels for this rank are given. It waits with non-blocking calls, so
/// that transfers under way progress meanwhile.
/// @return  the call with the result in its values or texts. @param sent  gets what was sent.
Call run_control(Call call, MPI_Comm comm, MpiSession::State& state, const std::vector<Level>& levels,
                 Sent& sent);

}  // namespace jigsaw::inline comm
