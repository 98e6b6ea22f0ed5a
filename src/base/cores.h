#pragma once

namespace jigsaw::inline base {

/// The cores that this process may run on, by its affinity; at least 1.
int usable_cores();

}  // namespace jigsaw::inline base
