#pragma once
#include "comm/communicator.h"

namespace jigsaw::inline samples {

/// The processes of a job that are on one machine keep decompressed chunks of files together from now on, as
/// far as they can (files/chunk_cache.h). Once in a job, before files are opened. Collective.
void share_chunks(Communicator& world);

}  // namespace jigsaw::inline samples
