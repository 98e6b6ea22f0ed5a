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

/// In lines of validations: of how many samples they are.
inline constexpr const char* kValidationSamples = "validation_samples";

/// By what it shows that two validations are of other data: the number of samples, or the error of what is no
/// model's (persistence, the noisy input), which depends on every value that is validated on:
/// "t2m.persistence_rmse is 2.31, and was 2.08"; "" where nothing does. Of labels the number alone is known.
/// @param before, now  lines "valid"; what they do not say is not compared.
std::string other_validation_data(const Json& before, const Json& now);

/// Whether a run that goes on holds the same values of checkpoint.best for better as it did before, so that
/// what was counted then counts on.
/// @param configuration  of its checkpoint.
bool judges_as_before(const Json& configuration, const CheckpointOptions& now);

}  // namespace jigsaw::inline train
