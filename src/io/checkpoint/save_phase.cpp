#include "checkpoint/save_phase.h"

namespace jigsaw {

void reached(SavePhase, int) {}

}  // namespace jigsaw
