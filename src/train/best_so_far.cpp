#include "train/best_so_far.h"

#include <cmath>
#include <exception>

#include "task/scores.h"

namespace jigsaw::inline train {

std::optional<std::int64_t> not_improved_in(const Json& line, const std::string& best) {
  const auto counts = line.find(kNotImproved);
  if (counts == line.end() || !counts->is_object()) return std::nullopt;
  const Json count = counts->value(best, Json());
  return count.is_number_unsigned() ? std::optional(count.get<std::int64_t>()) : std::nullopt;
}

std::optional<double> best_in(const Json& line, const std::string& best) {
  if (!line.is_object() || not_improved_in(line, best) != 0) return std::nullopt;
  try {
    const Json& loss = line.at("loss");  // null where it is not finite
    return number_in(loss.is_number() ? loss.get<double>() : std::nan(""), line.at("metrics"), best);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

}  // namespace jigsaw::inline train
