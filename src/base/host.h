#pragma once
#include <string>

namespace jigsaw::inline base {

/// This machine's name as the network knows it; "?" where it has none.
std::string host_name();

}  // namespace jigsaw::inline base
