#include "task/metric.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string_view>

#include "base/error.h"
#include "base/text.h"
#include "fields/data_forms.h"
#include "task/configuration.h"
#include "task/scores.h"

namespace jigsaw::inline task {

namespace {

/// Measures of validations and of evaluate. Ratios that are best at 1, such as spread_skill, are no numbers
/// to choose by.
constexpr std::array<std::string_view, 18> kBetterWhenHigh = {
    "accuracy", "dice",        "mean_dice",  "foreground_dice",     "psnr",     "input_psnr",
    "ssim",     "input_ssim",  "acc",        "pattern_correlation", "pod",      "csi",
    "hss",      "brier_skill", "crps_skill", "resolution",          "roc_area", "fss"};

constexpr std::string_view kLeads = "leads.";

bool is_whole_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

/// "dice" of "leads.24.mask.dice.1".
std::string measure_of(const std::string& metric) {
  const std::vector<std::string> parts = split(metric, '.');
  const bool numbered = parts.size() > 1 && is_whole_number(parts.back());
  return numbered ? parts[parts.size() - 2] : parts.back();
}

std::optional<double> number_of(const Json& json) {
  if (json.is_null()) return std::nan("");  // as metrics.jsonl has what is not finite
  return json.is_number() ? std::optional(json.get<double>()) : std::nullopt;
}

/// Of the scores of one lead, by target and measure.
std::optional<double> number_of_lead(const Json& metrics, const std::string& name) {
  if (!metrics.is_object()) return std::nullopt;
  // A target's name may hold dots; a measure's has one before the number of a class at most, dice.1.
  for (const auto& [target, measures] : metrics.items()) {
    if (!name.starts_with(target + ".") || !measures.is_object()) continue;
    const std::string measure = name.substr(target.size() + 1);
    if (measures.contains(measure)) return number_of(measures.at(measure));
    const std::size_t dot = measure.rfind('.');
    if (dot == std::string::npos || !measures.contains(measure.substr(0, dot))) continue;
    const Json& classes = measures.at(measure.substr(0, dot));
    std::size_t at = 0;
    const auto [end, error] = std::from_chars(measure.data() + dot + 1, measure.data() + measure.size(), at);
    if (error == std::errc() && end == measure.data() + measure.size() && classes.is_array() &&
        at < classes.size())
      return number_of(classes.at(at));
  }
  return std::nullopt;
}

const char* word(BestIs best) {
  if (best == BestIs::kNearestZero) return "nearest_zero";
  return best == BestIs::kHighest ? "highest" : "lowest";
}

}  // namespace

BestIs best_of(const std::string& metric) {
  const std::string measure = measure_of(metric);
  if (measure == "bias") return BestIs::kNearestZero;
  const bool high = std::ranges::find(kBetterWhenHigh, measure) != kBetterWhenHigh.end();
  return high ? BestIs::kHighest : BestIs::kLowest;
}

const std::vector<ChoiceForm<BestIs>::Entry>& best_is_choices() {
  static const std::vector<ChoiceForm<BestIs>::Entry> choices = {
      {"auto", BestIs::kAuto,
       "As the measure has it: the highest Dice, accuracy or PSNR, the bias nearest 0, the lowest of all "
       "others."},
      {word(BestIs::kLowest), BestIs::kLowest, "Less is better."},
      {word(BestIs::kHighest), BestIs::kHighest, "More is better."},
      {word(BestIs::kNearestZero), BestIs::kNearestZero, "Nearer 0 is better."}};
  return choices;
}

std::string choice_remark(const std::string& key, const std::string& metric, BestIs chosen) {
  const BestIs right = best_of(metric);
  if (best_of(metric, chosen) == right) return "";
  return concat(key, " is \"", word(chosen), "\", and of ", metric, " \"", word(right),
                "\" is better: the worst is taken for the best; leave it out");
}

std::optional<double> number_in(const Json& line, const std::string& name) {
  if (!line.is_object()) return std::nullopt;
  const auto loss = line.find("loss"), first = line.find("metrics"), leads = line.find("leads");
  if (name == "loss") return loss != line.end() ? number_of(*loss) : std::nullopt;
  if (first != line.end()) {
    if (const auto found = number_of_lead(*first, name)) return found;
  }
  if (leads == line.end() || !leads->is_object() || !name.starts_with(kLeads)) return std::nullopt;
  const std::string rest = name.substr(kLeads.size());
  for (const auto& [lead, metrics] : leads->items()) {
    if (!rest.starts_with(lead + ".")) continue;
    if (const auto found = number_of_lead(metrics, rest.substr(lead.size() + 1))) return found;
  }
  return std::nullopt;
}

std::string lead_name(const DataOptions& data, std::size_t lead) {
  const Time after = static_cast<Time>(lead + 1) * data.lead();
  return (data.of_sequences() ? Json(after) : hours_json(after)).dump();
}

void require_number(const std::string& key, const std::string& name, const Configuration& configuration,
                    const std::vector<std::string>& targets) {
  const DataOptions& data = configuration.data;
  std::vector<std::string> known = {"loss"};
  for (const std::string& measure : score_measures(data, configuration.ensemble.members)) {
    for (const std::string& target : targets) known.push_back(concat(target, ".", measure));
  }
  constexpr std::size_t kMostNamed = 24;
  std::vector<std::string> named(
      known.begin(), known.begin() + static_cast<std::ptrdiff_t>(std::min(known.size(), kMostNamed)));
  if (known.size() > named.size()) named.push_back(concat("and ", known.size() - named.size(), " more"));
  const std::size_t of_first = known.size();
  const int leads = data.of_images() ? 1 : configuration.validation_rollout();
  const std::string first = concat(kLeads, lead_name(data, 0), ".");
  std::vector<std::string> later;
  for (int lead = 1; lead < leads; ++lead) {
    later.push_back(concat(kLeads, lead_name(data, static_cast<std::size_t>(lead))));
    for (std::size_t i = 1; i < of_first; ++i) known.push_back(concat(later.back(), ".", known[i]));
  }
  if (std::ranges::find(known, name) != known.end()) return;
  const auto refuse = [&](const std::string& why) { throw ConfigError(concat(key, ": ", why)); };
  if (name.starts_with(first)) {
    refuse(concat("of the first lead numbers are named without it: ", quote(name.substr(first.size())),
                  " in place of ", quote(name)));
  }
  if (name.starts_with(kLeads) && later.empty())
    refuse(
        concat("validations have one lead, and no ", quote(name), "; validation.rollout gives them several"));
  refuse(
      concat("validation gives no ", quote(name), did_you_mean(name, known), "; it gives ", join(named, ", "),
             later.empty() ? ""
                           : concat(", and of later leads the same behind ",
                                    later.size() == 1 ? later[0] : concat(later[0], " to ", later.back()))));
}

}  // namespace jigsaw::inline task
