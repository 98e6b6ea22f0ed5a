#pragma once
#include <cstdint>

namespace jigsaw::testing {

/// Messages of this process so far that MPI read from the memory of a simulated device, or wrote there.
std::int64_t messages_of_devices();
/// Receives that this process has posted so far.
std::int64_t receives_posted();

}  // namespace jigsaw::testing
