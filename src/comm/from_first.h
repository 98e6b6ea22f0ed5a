#pragma once
#include <functional>
#include <string>

#include "comm/communicator.h"

namespace jigsaw::inline comm {

/// What rank 0 reads or finds out, on all ranks, and so is its error (comm/agreement.h). Collective.
std::string from_first(Communicator& world, const std::function<std::string()>& find);

}  // namespace jigsaw::inline comm
