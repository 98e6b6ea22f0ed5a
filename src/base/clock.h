#pragma once
#include <string>

namespace jigsaw::inline base {

/// Seconds on a clock that only goes forward.
double monotonic_seconds();

/// Now in UTC, "2026-03-01T12:00:00.123Z" or, without milliseconds, "2026-03-01T12:00:00Z".
std::string utc_stamp(bool with_milliseconds = false);

}  // namespace jigsaw::inline base
