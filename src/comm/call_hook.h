#pragma once
#include <cstdint>

namespace jigsaw::inline comm {

class Communicator;

/// Called when a call of a rank is in its log and before it is made, on the thread that makes it. Does
/// nothing; programs that test hanging ranks link a definition of their own in its place.
///
/// @param number  of the call over all groups of the rank.
void call_begins(Communicator& group, std::int64_t number);

}  // namespace jigsaw::inline comm
