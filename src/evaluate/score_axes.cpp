#include "evaluate/score_axes.h"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <string>
#include <tuple>

#include "base/text.h"
#include "predict/forecast_file.h"

namespace jigsaw::inline evaluate {

int ScoreAxes::add(NetcdfOutput& file, const char* name, const std::vector<int>& values) {
  const int dimension = file.add_dimension(name, values.size());
  values_.emplace_back(file.add_variable(name, NetcdfOutput::Type::kInt, {dimension}), values);
  return dimension;
}

ScoreAxes::ScoreAxes(NetcdfOutput& file, const ScoredLeads& scored, const std::vector<Region>& regions) {
  const LeadUnit unit = lead_unit(scored.lead_time, scored.of_months);
  std::vector<int> leads;
  for (int lead = 1; lead <= scored.count; ++lead)
    leads.push_back(static_cast<int>(lead * scored.lead_time / unit.seconds));
  lead_ = add(file, "lead_time", leads);
  add_lead_attributes(file, values_.back().first, unit);
  std::vector<int> numbers(regions.size());
  std::iota(numbers.begin(), numbers.end(), 0);
  region_ = add(file, "region", numbers);
  std::vector<std::string> names, words;  // CF wants a word for each
  for (const Region& region : regions) {
    names.push_back(region.name);
    words.push_back(region.name);
    const auto is_odd = [](unsigned char c) {
      return c < 128 && std::isalnum(c) == 0 && c != '-' && c != '.';
    };
    std::ranges::replace_if(words.back(), is_odd, '_');
  }
  file.add_text(values_.back().first, "long_name", "region, by number: " + join(names, ", "));
  file.add_numbers(values_.back().first, "flag_values", numbers);
  file.add_text(values_.back().first, "flag_meanings", join(words, " "));
  for (const auto& [name, limit, units] : {std::tuple{"region_south", &Region::south, "degrees_north"},
                                           {"region_north", &Region::north, "degrees_north"},
                                           {"region_west", &Region::west, "degrees_east"},
                                           {"region_east", &Region::east, "degrees_east"}}) {
    const int variable = file.add_variable(name, NetcdfOutput::Type::kDouble, {region_});
    file.add_text(variable, "long_name",
                  concat("limit of the ", std::string(name).replace(6, 1, " in the ")));
    file.add_text(variable, "units", units);
    std::vector<double> limits;
    for (const Region& region : regions) limits.push_back(region.*limit);
    limits_.emplace_back(variable, limits);
  }
}

void ScoreAxes::write(NetcdfOutput& file) const {
  for (const auto& [variable, values] : values_) file.write(variable, values);
  for (const auto& [variable, limits] : limits_) file.write(variable, limits);
}

}  // namespace jigsaw::inline evaluate
