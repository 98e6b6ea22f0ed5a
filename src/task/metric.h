#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/best_is.h"
#include "config/keys.h"
#include "fields/data_options.h"

namespace jigsaw::inline task {

struct Configuration;

// The numbers of a validation, as checkpoint.best, validation.patience and sweeps name them: "loss"; of the
// first lead "t2m.rmse", of classes "mask.dice.1"; of the later lead that metrics.jsonl calls "24"
// "leads.24.t2m.rmse".

/// Which values of a number are better, by the measure in its name: of errors and losses the lowest, of Dice,
/// accuracy and the like the highest, of biases those nearest 0.
BestIs best_of(const std::string& metric);
/// The same where a configuration may choose.
inline BestIs best_of(const std::string& metric, BestIs chosen) {
  return chosen == BestIs::kAuto ? best_of(metric) : chosen;
}
/// The values of a key that chooses.
const std::vector<ChoiceForm<BestIs>::Entry>& best_is_choices();
/// A sentence on a choice that takes what the metric calls worse; "" where it does not.
/// @param key  that chooses, such as "checkpoint.best_is".
std::string choice_remark(const std::string& key, const std::string& metric, BestIs chosen);

/// The number of this name in the line of a validation in metrics.jsonl, NaN where it is not finite; nothing
/// where the line has none.
std::optional<double> number_in(const Json& line, const std::string& name);

/// What metrics.jsonl calls a lead, 0 the first: its hours, of sequences its steps.
std::string lead_name(const DataOptions& data, std::size_t lead);

/// @param key      that names the number, such as "checkpoint.best".
/// @param targets  names of the target channels.
/// @throws ConfigError  when validations give no number of this name.
void require_number(const std::string& key, const std::string& name, const Configuration& configuration,
                    const std::vector<std::string>& targets);

}  // namespace jigsaw::inline task
