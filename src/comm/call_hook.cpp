#include "comm/call_hook.h"

namespace jigsaw::inline comm {

void call_begins(Communicator&, std::int64_t) {}

}  // namespace jigsaw::inline comm
