#pragma once
#include <cstdint>

namespace jigsaw::testing {

/// Messages of this process so far that MPI read from the memory of a simulated device, or wrote there.
std::int64_t messages_of_devices();

}  // namespace jigsaw::testing
