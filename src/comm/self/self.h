#pragma once
#include <memory>

#include "comm/communicator.h"

namespace jigsaw::inline comm {

/// The only rank of a job of one. abort() ends the process.
std::unique_ptr<Communicator> make_self_communicator(Context& context);

}  // namespace jigsaw::inline comm
