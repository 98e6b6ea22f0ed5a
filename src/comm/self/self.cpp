#include "comm/self/self.h"

#include "comm/record/record.h"

namespace jigsaw::inline comm {

/// The front answers every call of a group of one by itself, so nothing is left that a record would miss.
std::unique_ptr<Communicator> make_self_communicator(Context& context) {
  return make_record_communicator(context, 0, 1);
}

}  // namespace jigsaw::inline comm
