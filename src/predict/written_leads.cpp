#include "predict/written_leads.h"

#include <algorithm>

#include "base/text.h"

namespace jigsaw::inline predict {

int WrittenLeads::count_until(int step) const {
  if (!unit.empty()) {
    const auto behind = std::ranges::upper_bound(periods, step, {}, &CalendarMean::last);
    return static_cast<int>(behind - periods.begin());
  }
  return means ? (step - first) / every : step / every - first / every;
}

int WrittenLeads::step_of(int lead) const {
  if (!unit.empty()) return periods[static_cast<std::size_t>(lead)].last;
  return ((means ? 0 : first / every) + lead + 1) * every + (means ? first : 0);
}

int WrittenLeads::first_of(int lead) const {
  if (!unit.empty()) return periods[static_cast<std::size_t>(lead)].first;
  return means ? step_of(lead) - every + 1 : step_of(lead);
}

std::optional<int> WrittenLeads::lead_of(int step) const {
  const int before = count_until(step - 1);
  return count_until(step) > before ? std::optional(before) : std::nullopt;
}

bool WrittenLeads::has(int step) const {
  const int before = count_until(step - 1);
  return before < count() && first_of(before) <= step;
}

std::string WrittenLeads::option() const {
  if (!unit.empty()) return concat("--mean ", unit);
  if (means) return concat("--mean ", every);
  return every > 1 ? concat("--every ", every) : "";
}

}  // namespace jigsaw::inline predict
