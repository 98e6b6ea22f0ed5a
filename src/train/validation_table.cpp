#include "train/validation_table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>

#include "base/text.h"

namespace jigsaw::inline train {

namespace {

constexpr std::size_t kMostRows = 24, kEnds = 5;
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

/// By which a model is judged.
struct Measure {
  const char* key;
  const char* title;
  bool more_is_better;
};
constexpr std::array kMeasures = {Measure{"psnr", "PSNR dB", true}, Measure{"mean_dice", "mean Dice", true},
                                  Measure{"rmse", "RMSE", false}};

/// Scores of what is no prediction, over the same points.
constexpr std::array kReferences = {"persistence_rmse", "climatology_rmse", "input_psnr"};

double number(const Json& scores, const std::string& key) {
  const auto found = scores.find(key);
  return found != scores.end() && found->is_number() ? found->get<double>() : kNone;
}

struct Row {
  std::string variable;
  std::size_t lead = 0;
  Json scores;
  double value = kNone, before = kNone;
  double skill = kNone;  ///< forecasts only
};

template <typename... Numbers>
std::string formatted(const char* format, Numbers... numbers) {
  std::array<char, 96> text{};
  std::snprintf(text.data(), text.size(), format, numbers...);
  return text.data();
}

/// A number that takes `width` columns, "-" for none.
std::string cell(double value, int width, const char* format = "%*.4g") {
  return std::isnan(value) ? formatted("%*s", width, "-") : formatted(format, width, value);
}

std::string padded(const std::string& text, std::size_t width) {
  return text + std::string(width - std::min(width, static_cast<std::size_t>(columns_of(text))), ' ');
}

class Table {
 public:
  Table(const ValidationResult& now, const ValidationResult* before, const ValidationTable& options)
      : options_(options) {
    for (const Measure& measure : kMeasures) {
      if (!now.leads.empty() && !now.leads[0].empty() && now.leads[0].begin()->contains(measure.key)) {
        measure_ = measure;
        break;
      }
    }
    for (std::size_t lead = 0; lead < now.leads.size(); ++lead) {
      for (const auto& [variable, scores] : now.leads[lead].items()) add(variable, lead, scores, before);
    }
    for (const Row& row : rows_)
      width_ = std::max(width_, static_cast<std::size_t>(columns_of(name_of(row))));
  }

  std::vector<std::string> lines() const {
    std::vector<std::string> lines = {title(options_.lead_time > 0)};
    if (rows_.size() <= kMostRows) {
      append(lines, rows_);
      return lines;
    }
    lines[0] = title(false);
    append_groups(lines);
    if (const auto count = std::ranges::count_if(rows_, not_finite); count > 0)
      lines.push_back(
          concat("  the predictions of ", count, count == 1 ? " row are" : " rows are", " not finite"));
    std::vector<Row> sorted = rows_;
    std::erase_if(sorted, [&](const Row& row) { return std::isnan(rank_of(row)); });
    std::ranges::stable_sort(sorted, {}, [&](const Row& row) { return rank_of(row); });
    const auto ends = static_cast<std::ptrdiff_t>(std::min(kEnds, sorted.size()));
    lines.push_back(title(options_.lead_time > 0, "worst"));
    append(lines, {sorted.begin(), sorted.begin() + ends});
    lines.push_back(title(options_.lead_time > 0, "best"));
    append(lines, {sorted.end() - ends, sorted.end()});
    lines.push_back(concat("  all ", rows_.size(), " rows stand in metrics.jsonl"));
    return lines;
  }

 private:
  void add(const std::string& variable, std::size_t lead, const Json& scores,
           const ValidationResult* before) {
    Row row{variable, lead, scores, number(scores, measure_.key), kNone, kNone};
    if (before != nullptr && lead < before->leads.size() && before->leads[lead].contains(variable))
      row.before = number(before->leads[lead].at(variable), measure_.key);
    const double persistence = number(scores, "persistence_rmse"),
                 climatology = number(scores, "climatology_rmse");
    const double reference = std::fmin(persistence, climatology);
    if (!measure_.more_is_better) row.skill = 1 - row.value / reference;
    has_climatology_ = has_climatology_ || !std::isnan(climatology);
    has_persistence_ = has_persistence_ || !std::isnan(persistence);
    has_members_ = has_members_ || scores.contains("crps");
    has_input_ = has_input_ || !std::isnan(number(scores, "input_psnr"));
    rows_.push_back(std::move(row));
  }

  /// Greater is better.
  double rank_of(const Row& row) const {
    if (measure_.more_is_better) return row.value;
    return std::isnan(row.skill) ? -row.value : row.skill;
  }

  std::string name_of(const Row& row) const {
    const int widest = has_climatology_ ? 18 : 30;
    const auto unit = options_.units.find(row.variable);
    const bool has_unit = unit != options_.units.end() && !unit->second.empty() && !measure_.more_is_better;
    std::string name = has_unit ? concat(row.variable, " [", unit->second, "]") : row.variable;
    if (columns_of(name) <= widest) return name;
    name = row.variable.substr(0, static_cast<std::size_t>(widest));
    return name.size() < row.variable.size() ? name.substr(0, name.size() - 3) + "..." : name;
  }

  std::string title(bool leads, const std::string& rows = "variable") const {
    std::string line = "  " + padded(rows, width_);
    line += leads ? "   lead" : options_.lead_time > 0 ? "       " : "";
    line += formatted(" %10s %8s", measure_.title, "change");
    if (shows_references()) {
      if (has_persistence_) line += formatted(" %11s", "persistence");
      if (has_climatology_) line += formatted(" %11s", "climatology");
    }
    if (has_input_) line += formatted(" %10s", "input dB");
    if (has_persistence_) line += formatted(" %7s", "skill");
    if (has_members_) line += formatted(" %10s %9s %6s", "CRPS", "spread", "ratio");
    return painted(options_.terminal, Colour::kBold, line);
  }

  /// Beside scores of members there is no room for them: the skill says what they are for.
  bool shows_references() const { return !has_members_; }

  std::string change(double now, double before) const {
    if (std::isnan(now) || std::isnan(before) || before == 0) return formatted("%8s", "");
    const double percent = 100 * (now - before) / std::abs(before);
    const bool same = std::abs(percent) < 0.05;
    const bool better = (percent > 0) == measure_.more_is_better;
    const std::string text = formatted("%+6.1f%%", percent) + (same ? "=" : percent > 0 ? "↑" : "↓");
    return painted(options_.terminal, same ? Colour::kNone : better ? Colour::kGreen : Colour::kRed, text);
  }

  std::string skill(double value) const {
    const Colour colour = std::isnan(value) ? Colour::kNone : value > 0 ? Colour::kGreen : Colour::kRed;
    return painted(options_.terminal, colour, cell(value, 7, "%*.3f"));
  }

  /// Of a row without a value. Where others have scores there are points.
  static bool not_finite(const Row& row) {
    return std::isnan(row.value) && std::ranges::any_of(kReferences, [&](const char* key) {
             return !std::isnan(number(row.scores, key));
           });
  }
  static const char* why_none(const Row& row) {
    if (not_finite(row)) return "  its prediction is not finite";
    const bool compared =
        std::ranges::any_of(kReferences, [&](const char* key) { return row.scores.contains(key); });
    return compared ? "  has no valid point in data.valid"
                    : "  has no valid point in data.valid, or its prediction is not finite";
  }

  void append(std::vector<std::string>& lines, const std::vector<Row>& rows) const {
    for (const Row& row : rows) {
      std::string line = "  " + padded(name_of(row), width_);
      const Time lead = static_cast<Time>(row.lead + 1) * options_.lead_time;
      if (lead > 0)
        line += formatted(" %6s",
                          (options_.in_steps ? concat(lead) : lead_text(lead, options_.of_months)).c_str());
      if (std::isnan(row.value)) {
        lines.push_back(line + why_none(row));
        continue;
      }
      line += cell(row.value, 11) + " " + change(row.value, row.before);
      if (shows_references()) {
        if (has_persistence_) line += cell(number(row.scores, "persistence_rmse"), 12);
        if (has_climatology_) line += cell(number(row.scores, "climatology_rmse"), 12);
      }
      if (has_input_) line += cell(number(row.scores, "input_psnr"), 11);
      if (has_persistence_) line += " " + skill(row.skill);
      if (has_members_) {
        line += cell(number(row.scores, "crps"), 11) + " " + cell(number(row.scores, "spread"), 9, "%*.3g") +
                cell(number(row.scores, "spread_skill"), 7, "%*.3f");
      }
      lines.push_back(line);
      append_classes(lines, row);
    }
  }

  void append_classes(std::vector<std::string>& lines, const Row& row) const {
    const auto dice = row.scores.find("dice");
    if (dice == row.scores.end() || !dice->is_array()) return;
    std::string line = formatted("    accuracy %.4f, Dice of each %s", number(row.scores, "accuracy"),
                                 options_.of_regions ? "region" : "class");
    for (const Json& each : *dice) {
      const double value = each.is_number() ? each.get<double>() : kNone;
      line += std::isnan(value) ? " -" : formatted(" %.4f", value);
    }
    for (const std::string& part : wrapped(line, 80, 6)) lines.push_back(part);
  }

  /// A variable over its levels and leads.
  void append_groups(std::vector<std::string>& lines) const {
    std::vector<std::string> names;
    std::map<std::string, std::vector<const Row*>> groups;
    for (const Row& row : rows_) {
      const std::string name = without_level(row.variable);
      if (!groups.contains(name)) names.push_back(name);
      if (!std::isnan(row.value)) groups[name].push_back(&row);
    }
    lines[0] = painted(options_.terminal, Colour::kBold,
                       "  " + padded("variable", width_) +
                           formatted(" %6s %9s %9s %9s  %s", "rows", "mean", "worst", "best", "change"));
    for (const std::string& name : names) {
      const std::vector<const Row*>& rows = groups[name];
      if (rows.empty()) continue;
      double sum = 0, worst = kNone, best = kNone, now = 0, before = 0;
      for (const Row* row : rows) {
        const double rank = shown(*row);
        sum += rank;
        worst = std::fmin(worst, rank);
        best = std::fmax(best, rank);
        now += std::log(row->value);
        before += std::log(row->before);
      }
      const double count = static_cast<double>(rows.size());
      lines.push_back("  " + padded(name, width_) + formatted(" %6zu", rows.size()) +
                      cell(sum / count, 10, "%*.3f") + cell(worst, 10, "%*.3f") + cell(best, 10, "%*.3f") +
                      "  " + change(std::exp(now / count), std::exp(before / count)));
    }
    lines.push_back(measure_.more_is_better ? concat("  (", measure_.title, ")")
                                            : "  (skill: 1 - RMSE / that of persistence or climatology)");
  }

  double shown(const Row& row) const { return measure_.more_is_better ? row.value : row.skill; }

  const ValidationTable& options_;
  Measure measure_ = kMeasures.back();
  std::vector<Row> rows_;
  std::size_t width_ = 8;
  bool has_persistence_ = false, has_climatology_ = false, has_input_ = false, has_members_ = false;
};

}  // namespace

std::string without_level(const std::string& variable) {
  const std::size_t at = variable.rfind('_');
  const bool level = at != std::string::npos && at > 0 && at + 1 < variable.size() &&
                     variable.find_first_not_of("0123456789.", at + 1) == std::string::npos;
  return level ? variable.substr(0, at) : variable;
}

std::vector<std::string> table_of(const ValidationResult& now, const ValidationResult* before,
                                  const ValidationTable& options) {
  return Table(now, before, options).lines();
}

}  // namespace jigsaw::inline train
