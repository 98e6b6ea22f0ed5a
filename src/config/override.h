#pragma once
#include <string_view>

#include "config/json.h"

namespace jigsaw::inline config {

/// @throws ConfigError  naming `what` when the text, such as a file's name, is none that JSON can hold.
void require_utf8(std::string_view text, std::string_view what);

/// Sets one key of a configuration: `data.lead_hours=24`, `optimizer.groups.0.learning_rate=1e-4`.
///
/// The value is JSON, or a list whose texts stand without quotes, [a.nc, b.nc], or else a bare string.
/// Missing objects on the way are made, a scalar on the way (as in `"mesh": "auto"` for `mesh.tensor=2`)
/// gives way to an object. Entries of lists are chosen by an index from 0.
/// @throws ConfigError  when it is not KEY=VALUE, the value is broken JSON, or an index is out of range.
void apply_override(Json& config, std::string_view assignment);

}  // namespace jigsaw::inline config
