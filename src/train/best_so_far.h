#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "config/json.h"
#include "task/configuration.h"

namespace jigsaw::inline train {

/// In lines of validations where checkpoint.best is given: by its name how many there were since one improved
/// it.
inline constexpr const char* kNotImproved = "validations_since_best";

/// What the line of a validation says so; nothing where it says nothing of this number.
/// @param best  checkpoint.best
std::optional<std::int64_t> not_improved_in(const Json& line, const std::string& best);

/// The number that makes a validation the best so far, by its line; nothing where it does not, or the line is
/// damaged.
std::optional<double> best_in(const Json& line, const std::string& best);

/// Whether a run that goes on holds the same values of checkpoint.best for better as it did before, so that
/// what was counted then counts on.
/// @param configuration  of its checkpoint.
bool judges_as_before(const Json& configuration, const CheckpointOptions& now);

}  // namespace jigsaw::inline train
