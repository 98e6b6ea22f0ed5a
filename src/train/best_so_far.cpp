#include "train/best_so_far.h"

#include <algorithm>

#include "task/metric.h"

namespace jigsaw::inline train {

std::optional<std::int64_t> not_improved_in(const Json& line, const std::string& best) {
  const auto counts = line.find(kNotImproved);
  if (counts == line.end() || !counts->is_object()) return std::nullopt;
  const Json count = counts->value(best, Json());
  return count.is_number_unsigned() ? std::optional(count.get<std::int64_t>()) : std::nullopt;
}

std::optional<double> best_in(const Json& line, const std::string& best) {
  if (!line.is_object() || not_improved_in(line, best) != 0) return std::nullopt;
  return number_in(line, best);
}

bool judges_as_before(const Json& configuration, const CheckpointOptions& now) {
  const Json checkpoint = configuration.is_object() ? configuration.value("checkpoint", Json()) : Json();
  const Json before = checkpoint.is_object() ? checkpoint.value("best_is", Json()) : Json();
  return std::ranges::all_of(best_is_choices(), [&](const auto& choice) {
    return before != choice.name || best_of(now.best, choice.value) == best_of(now.best, now.best_is);
  });
}

}  // namespace jigsaw::inline train
