#include "evaluate/score_comparison.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "evaluate/score_measures.h"
#include "evaluate/score_table.h"
#include "fields/units.h"
#include "files/variable_file.h"
#include "times/time_axis.h"

namespace jigsaw::inline evaluate {

namespace {

/// A file of scores by start.
class ScoresByStart {
 public:
  explicit ScoresByStart(const std::string& path) : file_(open_variables(path, Dimensions::kByName)) {
    const FileVariable& time = coordinate("time");
    if (time.text("standard_name") != "forecast_reference_time") refuse();
    const std::string what = concat("the times of ", path);
    calendar_ = calendar_of_times(time.text("units"), time.text("calendar"), what);
    starts_ = decode_times(file_->read_all(time), time.text("units"), time.text("calendar"), what);
    const FileVariable& lead = coordinate("lead_time");
    leads_ = file_->read_all(lead);
    lead_units_ = lead.text("units");
    const FileVariable& region = coordinate("region");
    const std::vector<std::string> names = split(region.text("flag_meanings"), ' ');
    for (const double number : file_->read_all(region)) {  // which may be some of those that were written
      if (!(number >= 0 && number < static_cast<double>(names.size()))) refuse();
      regions_.push_back(names[static_cast<std::size_t>(number)]);
    }
    for (const char* limit : {"region_south", "region_north", "region_west", "region_east"})
      limits_.push_back(file_->read_all(coordinate(limit)));
    if (std::set<Time>(starts_.begin(), starts_.end()).size() != starts_.size()) refuse();
  }

  const std::string& path() const { return file_->path(); }
  const std::vector<Time>& starts() const { return starts_; }
  const std::vector<double>& leads() const { return leads_; }
  const std::string& lead_units() const { return lead_units_; }
  const std::vector<std::string>& regions() const { return regions_; }
  Calendar calendar() const { return calendar_; }
  /// The names of what has this score, in the order of the file.
  std::vector<std::string> variables(const std::string& score) const {
    std::vector<std::string> names;
    const std::string ending = "_" + score;
    for (const FileVariable& variable : file_->variables()) {
      if (variable.shape != shape() || !variable.numeric() || !variable.name.ends_with(ending)) continue;
      names.push_back(variable.name.substr(0, variable.name.size() - ending.size()));
      // "t_persistence_rmse" is no rmse of "t_persistence".
      if (std::ranges::any_of(kMeasures, [&](const Measure& measure) {
            return measure.name != score && variable.name.ends_with(concat("_", measure.name)) &&
                   std::string(measure.name).ends_with(ending);
          }))
        names.pop_back();
    }
    return names;
  }
  bool has(const std::string& name) const {
    const FileVariable* const found = file_->find(name);
    return found != nullptr && found->shape == shape() && found->numeric();
  }
  /// [starts, regions, leads].
  std::vector<double> values(const std::string& name) const { return file_->read_all(*file_->find(name)); }
  /// The limits of a region.
  std::vector<double> limits(std::size_t region) const {
    std::vector<double> all;
    for (const std::vector<double>& limit : limits_) all.push_back(limit.at(region));
    return all;
  }
  std::string units(const std::string& name) const { return file_->find(name)->text("units"); }
  std::size_t index(std::size_t start, std::size_t region, std::size_t lead) const {
    return (start * regions_.size() + region) * leads_.size() + lead;
  }

 private:
  Shape shape() const { return {std::ssize(starts_), std::ssize(regions_), std::ssize(leads_)}; }
  [[noreturn]] void refuse() const {
    throw DataError(concat(file_->path(), " holds no scores by start, as evaluate --by-start writes them"));
  }
  const FileVariable& coordinate(const char* name) const {
    const FileVariable* const found = file_->find(name);
    if (found == nullptr || found->shape.rank() != 1) refuse();
    return *found;
  }

  std::unique_ptr<VariableFile> file_;
  Calendar calendar_ = Calendar::kStandard;
  std::vector<Time> starts_;
  std::vector<double> leads_;
  std::string lead_units_;
  std::vector<std::string> regions_;
  std::vector<std::vector<double>> limits_;  // of each side those of all regions
};

/// Where something stands in both.
template <typename T>
std::vector<std::pair<std::size_t, std::size_t>> common(const std::vector<T>& first,
                                                        const std::vector<T>& second) {
  std::vector<std::pair<std::size_t, std::size_t>> places;
  for (std::size_t i = 0; i < first.size(); ++i) {
    const auto found = std::ranges::find(second, first[i]);
    if (found != second.end()) places.emplace_back(i, static_cast<std::size_t>(found - second.begin()));
  }
  return places;
}

/// Two series of one score, by start; of roots their squares.
struct Pairs {
  std::vector<double> first, second;
  std::vector<Time> starts;

  void add(Time start, double one, double other) {
    if (!std::isfinite(one) || !std::isfinite(other)) return;
    starts.push_back(start);
    first.push_back(one);
    second.push_back(other);
  }
  /// @param step  from each start to the next, where none is missing.
  void compare(bool roots, Time step, ComparedScore& to) const {
    std::vector<double> differences;
    std::vector<char> following;
    double sum = 0, other = 0;
    for (std::size_t i = 0; i < starts.size(); ++i) {
      sum += first[i];
      other += second[i];
      // Ranks add in other orders, and what their roundings make is no difference.
      constexpr double kSumsDiffer = 1e-12;
      const double difference = second[i] - first[i];
      const bool rounded = std::abs(difference) <= kSumsDiffer * (std::abs(first[i]) + std::abs(second[i]));
      differences.push_back(rounded ? 0 : difference);
      // Months are of several lengths.
      const Time apart = i > 0 ? std::abs(starts[i] - starts[i - 1] - step) : step;
      following.push_back(i > 0 && 10 * apart <= step ? 1 : 0);
    }
    to.forecasts = std::ssize(starts);
    const auto n = static_cast<double>(starts.size());
    to.first = roots ? std::sqrt(sum / n) : sum / n;
    to.second = roots ? std::sqrt(other / n) : other / n;
    to.difference = paired_difference(differences, following);
    if (!roots) return;
    // √b − √a = (b − a)/(√b + √a).
    const double by = to.first + to.second;
    if (by == 0) return;
    for (double* const part : {&to.difference.mean, &to.difference.low, &to.difference.high}) *part /= by;
  }
};

/// The most frequent distance of neighbours.
Time usual_distance(const std::vector<Time>& times) {
  std::map<Time, int> counts;
  for (std::size_t i = 1; i < times.size(); ++i) ++counts[times[i] - times[i - 1]];
  const auto most = std::ranges::max_element(counts, {}, &std::map<Time, int>::value_type::second);
  return most == counts.end() ? 0 : most->first;
}

/// Whether a score is the root of what is averaged over forecasts.
bool is_root(const std::string& score) {
  return score.ends_with("rmse") || score == "spread";
}

/// Those that are asked for, or by default there.
std::vector<std::string> chosen_scores(const ScoresByStart& first, const ScoresByStart& second,
                                       const std::vector<std::string>& scores) {
  const auto have = [&](const std::string& score) {
    return !first.variables(score).empty() && !second.variables(score).empty();
  };
  std::vector<std::string> chosen;
  for (const std::string& score : scores.empty() ? std::vector<std::string>{"rmse", "crps"} : scores) {
    if (score == "spread_skill" || score == "crps_skill") {
      throw ConfigError(concat("command line: --score ", score,
                               " is a ratio of means over all forecasts, and of single ones says nothing; "
                               "compare spread, crps or rmse"));
    }
    if (have(score)) {
      chosen.push_back(score);
    } else if (!scores.empty()) {
      throw ConfigError(
          concat("command line: --score ", score, " is not in both ", first.path(), " and ", second.path()));
    }
  }
  return chosen;
}

/// @throws DataError  where the common starts of both have another truth.
void require_same_truth(const ScoresByStart& first, const ScoresByStart& second, const std::string& variable,
                        const std::vector<std::pair<std::size_t, std::size_t>>& starts,
                        const std::pair<std::size_t, std::size_t>& region,
                        const std::pair<std::size_t, std::size_t>& lead) {
  constexpr double kAlike = 1e-5;  // as float32 numbers are, added in other orders
  const std::string name = variable + "_truth_mean", typical = variable + "_persistence_rmse";
  if (!first.has(name) || !second.has(name)) return;
  const std::vector<double> here = first.values(name), there = second.values(name),
                            size =
                                first.has(typical) ? first.values(typical) : std::vector<double>(here.size());
  for (const auto& start : starts) {
    const std::size_t at = first.index(start.first, region.first, lead.first);
    const double one = here[at], other = there[second.index(start.second, region.second, lead.second)];
    const double scale = std::abs(one) + std::abs(other) + (std::isfinite(size[at]) ? size[at] : 0);
    if (!(std::abs(one - other) > kAlike * scale)) continue;
    throw DataError(concat(first.path(), " and ", second.path(), " are of other truths: the mean of ",
                           variable, " behind the start ",
                           format_time(first.starts()[start.first], first.calendar()), " is ", one, " and ",
                           other, "; compare scores on the same data"));
  }
}

}  // namespace

ScoreComparison compare_scores(const std::string& first_path, const std::string& second_path,
                               const std::vector<std::string>& scores) {
  const ScoresByStart first(first_path), second(second_path);
  const auto starts = common(first.starts(), second.starts());
  const auto leads = common(first.leads(), second.leads()),
             regions_there = common(first.regions(), second.regions());
  const std::string both = concat(first.path(), " and ", second.path());
  if (first.calendar() != second.calendar() || starts.empty())
    throw DataError(concat(both, " have no start in common"));
  if (first.lead_units() != second.lead_units() || leads.empty() || regions_there.empty())
    throw DataError(concat(both, " have no lead and region in common"));
  for (const auto& [here, there] : regions_there) {
    if (first.limits(here) != second.limits(there))
      throw DataError(concat("the region ", first.regions()[here], " has other limits in ", first.path(),
                             " than in ", second.path()));
  }
  ScoreComparison result;
  result.paths = {first.path(), second.path()};
  result.lead_units = first.lead_units();
  result.starts = std::ssize(starts);
  result.first_start = format_time(first.starts()[starts.front().first], first.calendar());
  result.last_start = format_time(first.starts()[starts.back().first], first.calendar());
  std::vector<Time> times;
  for (const auto& place : starts) times.push_back(first.starts()[place.first]);
  const Time step = usual_distance(times);
  for (const std::string& score : chosen_scores(first, second, scores)) {
    const bool roots = is_root(score);
    const std::vector<std::string> there = second.variables(score);
    for (const std::string& variable : first.variables(score)) {
      if (std::ranges::find(there, variable) == there.end()) continue;
      const std::string name = concat(variable, "_", score);
      if (!first.units(name).empty() && !second.units(name).empty() &&
          !same_unit(first.units(name), second.units(name))) {
        throw DataError(concat(name, " is in \"", first.units(name), "\" in ", first.path(), " and in \"",
                               second.units(name), "\" in ", second.path()));
      }
      const std::vector<double> of_first = first.values(name), of_second = second.values(name);
      require_same_truth(first, second, variable, starts, regions_there.front(), leads.front());
      for (const auto& region : regions_there) {
        for (const auto& lead : leads) {
          Pairs pairs;
          for (const auto& start : starts) {
            const double one = of_first[first.index(start.first, region.first, lead.first)],
                         other = of_second[second.index(start.second, region.second, lead.second)];
            pairs.add(first.starts()[start.first], roots ? one * one : one, roots ? other * other : other);
          }
          ComparedScore compared;
          compared.variable = variable;
          compared.region = first.regions()[region.first];
          compared.score = score;
          compared.units = first.units(name);
          compared.lead = first.leads()[lead.first];
          pairs.compare(roots, step, compared);
          result.scores.push_back(compared);
        }
      }
    }
  }
  if (result.scores.empty()) throw DataError(concat(both, " have no variable with such a score in common"));
  return result;
}

std::vector<std::string> table_of(const ScoreComparison& comparison, const std::string& region) {
  std::ptrdiff_t left_out = 0;
  std::vector<std::string> lines = {
      concat("first:  ", comparison.paths[0]), concat("second: ", comparison.paths[1]),
      concat(counted(comparison.starts, "forecast"), " of both, from ", comparison.first_start, " to ",
             comparison.last_start, "; difference: second - first, with its 95 % interval")};
  for (auto row = comparison.scores.begin(); row != comparison.scores.end();) {
    const auto same = [&](const ComparedScore& other) {
      return other.variable == row->variable && other.score == row->score && other.region == row->region;
    };
    const auto end = std::find_if_not(row, comparison.scores.end(), same);
    if (region.empty() || row->region == region) {
      lines.push_back(concat(row->variable,
                             row->units.empty() || row->units == "1" ? "" : concat(" [", row->units, "]"),
                             ", ", row->score, ", ", row->region));
      std::string titles = "    lead";
      for (const char* title :
           {"first", "second", "difference", "from", "to", "p", "independent", "forecasts"})
        titles += title_cell(title);
      lines.push_back(titles);
      for (const int lead : shown_leads(static_cast<int>(end - row))) {
        const ComparedScore& score = *(row + lead);
        const PairedDifference& difference = score.difference;
        const std::string name =
            concat(score.lead, " ", comparison.lead_units == "hours" ? "h" : comparison.lead_units);
        std::string line = std::string(name.size() < 8 ? 8 - name.size() : 0, ' ') + name;
        for (const double number :
             {score.first, score.second, difference.mean, difference.low, difference.high, difference.p,
              difference.independent, static_cast<double>(score.forecasts)})
          line += number_cell(number);
        lines.push_back(line);
      }
    }
    left_out = std::max(left_out, (end - row) - std::ssize(shown_leads(static_cast<int>(end - row))));
    row = end;
  }
  if (left_out > 0)
    lines.push_back(concat(left_out, " leads of each are left out here; the file of --json holds all"));
  return lines;
}

Json json_of(const ScoreComparison& comparison) {
  Json json = {{"first", comparison.paths[0]},
               {"second", comparison.paths[1]},
               {"forecasts", comparison.starts},
               {"first_start", comparison.first_start},
               {"last_start", comparison.last_start},
               {"lead_units", comparison.lead_units},
               {"scores", Json::object()}};
  for (const ComparedScore& score : comparison.scores) {
    Json& to = json["scores"][score.variable][score.region][score.score];
    const auto put = [&](const char* name, double value) { to[name].push_back(value); };
    put("lead", score.lead);
    put("first", score.first);
    put("second", score.second);
    put("difference", score.difference.mean);
    put("low", score.difference.low);
    put("high", score.difference.high);
    put("p", score.difference.p);
    put("independent", score.difference.independent);
    to["forecasts"].push_back(score.forecasts);
  }
  return json;
}

}  // namespace jigsaw::inline evaluate
