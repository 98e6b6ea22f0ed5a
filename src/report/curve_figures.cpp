#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>
#include <string_view>

#include "base/text.h"
#include "fields/data_forms.h"
#include "report/figures.h"
#include "report/lead_axis.h"
#include "report/svg.h"
#include "train/validation_table.h"

namespace jigsaw::inline report {

namespace {

constexpr std::size_t kMostLines = 8;

/// "name" where there is one run, else "run: name".
std::string label_of(const std::vector<RunRecord>& runs, const RunRecord& run, const std::string& name) {
  return runs.size() == 1 ? name : concat(run.name, ": ", name);
}

/// Plot::far. One run of several is not to hide the others.
double far_of(const std::vector<RunRecord>& runs) {
  return runs.size() == 1 ? 1000 : 10;
}

bool any_steps(const std::vector<RunRecord>& runs) {
  return std::ranges::any_of(runs, [](const RunRecord& run) { return !run.step.empty(); });
}

void add_loss(const std::vector<RunRecord>& runs, Figures& figures) {
  Plot plot{"Loss", "step", "loss", {}};
  bool positive = true;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const RunRecord& run = runs[i];
    plot.series.push_back(
        {label_of(runs, run, "training"), run.step, run.loss, runs.size() == 1 ? 0 : i, false});
    Series valid{label_of(runs, run, "validation"), {}, {}, runs.size() == 1 ? 1 : i, runs.size() > 1};
    for (const Json& line : run.valid) {
      valid.x.push_back(number_at(line, "step"));
      valid.y.push_back(number_at(line, "loss"));
    }
    if (!valid.x.empty()) plot.series.push_back(valid);
  }
  for (const Series& series : plot.series) {
    for (const double value : series.y) positive = positive && !(value <= 0);
  }
  plot.log_y = positive;
  plot.far = far_of(runs);
  figures.push_back({"fig-loss", svg_of(plot),
                     "Loss of training steps and validations. Of many steps means of neighbours are drawn." +
                         beyond_axis(plot)});
}

void add_rate(const std::vector<RunRecord>& runs, Figures& figures) {
  Plot rate{"Learning rate", "step", "learning rate", {}},
      norm{"Gradient norm", "step", "norm before clipping", {}};
  rate.from_zero = true;
  norm.log_y = true;
  norm.far = far_of(runs);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const RunRecord& run = runs[i];
    rate.series.push_back({label_of_only(runs, run, "learning rate"), run.step, run.learning_rate, i, false});
    norm.series.push_back({label_of_only(runs, run, "gradient norm"), run.step, run.norm, i, false});
  }
  figures.push_back({"fig-learning-rate", svg_of(rate), "The schedule's learning rate."});
  figures.push_back({"fig-norm", svg_of(norm), "Norm of the gradient, before clipping." + beyond_axis(norm)});
}

/// The measure by which images are judged, or "".
std::string measure_of_images(const Json& scores) {
  for (const char* key : {"mean_dice", "psnr"}) {
    if (scores.contains(key)) return key;
  }
  return "";
}

double skill_of(const Json& scores) {
  const double reference =
      std::fmin(number_at(scores, "persistence_rmse"), number_at(scores, "climatology_rmse"));
  return 1 - number_at(scores, "rmse") / reference;
}

/// The variables of the last validation, of many levels one each.
ShownVariables shown_variables(const Json& metrics) {
  std::vector<std::string> names;
  for (const auto& [name, scores] : metrics.items()) names.push_back(name);
  return shown_of(names, kMostLines);
}

/// As examples or evaluate's scores of some run name them; "" where none does.
std::string units_of(const std::vector<RunRecord>& runs, const std::string& variable) {
  for (const RunRecord& run : runs) {
    if (run.examples) {
      for (const ExamplePlane& plane : run.examples->planes) {
        if (without_level(plane.name) == without_level(variable) && !plane.units.empty()) return plane.units;
      }
    }
    const Json scores = run.scores.is_object() ? run.scores.value("scores", Json()) : Json();
    const auto found = scores.find(variable);
    if (found == scores.end() || !found->is_object()) continue;
    if (const auto units = found->find("units"); units != found->end() && units->is_string())
      return units->get<std::string>();
  }
  return "";
}

/// What validations say of a run in one measure.
Plot plot_of_measure(const std::string& measure) {
  Plot plot{"", "step", "", {}};
  plot.title = measure.empty() ? "Skill at the first lead" : measure == "psnr" ? "PSNR" : "Mean Dice";
  plot.y_label = measure.empty() ? "1 - RMSE / reference" : measure == "psnr" ? "dB" : "Dice";
  plot.marks = measure.empty();
  return plot;
}

std::string meaning_of(const std::string& measure) {
  return measure.empty()
             ? "Skill of validations: 0 is as good as persistence (or climatology, where that is known "
               "and better), 1 is perfect."
             : "Scores of validations.";
}

/// Of one run all variables in one plot, of several runs a plot for each, in which colours tell runs apart.
void add_skill(const std::vector<RunRecord>& runs, Figures& figures) {
  const bool several = runs.size() > 1;
  std::map<std::pair<std::string, std::string>, Plot> plots;  // by measure, and variable of several runs
  std::string remark;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const RunRecord& run = runs[i];
    if (run.valid.empty()) continue;
    const Json& last = run.valid.back().at("metrics");
    if (last.empty()) continue;
    const std::string measure = measure_of_images(*last.begin());
    const ShownVariables shown = shown_variables(last);
    if (remark.empty()) remark = shown.remark("metrics.jsonl");
    for (const std::string& variable : shown.names) {
      Plot& plot =
          plots.try_emplace({measure, several ? variable : ""}, plot_of_measure(measure)).first->second;
      Series series{several ? run.name : variable, {}, {}, several ? i : plot.series.size(), false};
      for (const Json& line : run.valid) {
        const auto scores = line.at("metrics").find(variable);
        if (scores == line.at("metrics").end()) continue;
        series.x.push_back(number_at(line, "step"));
        series.y.push_back(measure.empty() ? skill_of(*scores) : number_at(*scores, measure));
      }
      plot.series.push_back(series);
    }
  }
  for (auto& [key, plot] : plots) {
    const auto& [measure, variable] = key;
    if (several) {
      plot.width = 320;
      plot.height = 240;
      plot.title = title_of(variable, ": " + plot.title, plot);
    }
    plot.far = far_of(runs);
    plot.always = 1;
    figures.push_back({several ? "fig-skill-" + variable : "fig-skill", svg_of(plot),
                       meaning_of(measure) + beyond_axis(plot) + remark});
  }
}

/// Of the first lead, which a validation's "metrics" are of, as the others count: see LeadCount.
double first_lead(const RunRecord& run) {
  const Json config = run.config.is_object() ? run.config : Json::object();
  const Json data = config.value("data", Json::object());
  if (lead_count_of(config) == LeadCount::kSteps) return data.value("lead_steps", 1.0);
  return in_hours(duration_of(data.value("lead_hours", Json())).value_or(kHour));
}

/// Of the last validation of runs that have several; in hours where some count otherwise than others.
LeadAxis leads_of(const std::vector<const RunRecord*>& runs) {
  std::optional<LeadCount> count;
  std::vector<double> leads;
  for (const RunRecord* run : runs) {
    const LeadCount own = lead_count_of(run->config);
    count = !count || *count == own ? own : LeadCount::kHours;
    leads.push_back(first_lead(*run));
    for (const auto& [lead, metrics] : run->valid.back().at("leads").items())
      leads.push_back(std::strtod(lead.c_str(), nullptr));
  }
  return {count.value_or(LeadCount::kHours), leads};
}

bool has_leads(const RunRecord& run) {
  return !run.valid.empty() && run.valid.back().contains("leads");
}

/// Runs with scores by lead; of those that count steps and those that count time only such as the first.
std::vector<const RunRecord*> runs_with_leads(const std::vector<RunRecord>& runs) {
  std::vector<const RunRecord*> with_leads;
  const auto counts_steps = [](const RunRecord& run) {
    return lead_count_of(run.config) == LeadCount::kSteps;
  };
  for (const RunRecord& run : runs) {
    if (!has_leads(run)) continue;
    if (with_leads.empty() || counts_steps(run) == counts_steps(*with_leads.front()))
      with_leads.push_back(&run);
  }
  return with_leads;
}

void add_leads(const std::vector<RunRecord>& runs, Figures& figures) {
  std::vector<std::string> variables;
  const std::vector<const RunRecord*> with_leads = runs_with_leads(runs);
  for (const RunRecord* run : with_leads) {
    for (const std::string& name : shown_variables(run->valid.back().at("metrics")).names) {
      if (std::ranges::find(variables, name) == variables.end()) variables.push_back(name);
    }
  }
  const LeadAxis axis = leads_of(with_leads);
  for (const std::string& variable : variables) {
    Plot plot{variable, axis.label(), quantity("RMSE", units_of(runs, variable)), {}};
    plot.from_zero = true;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      if (std::ranges::find(with_leads, &runs[i]) == with_leads.end()) continue;
      const Json& line = runs[i].valid.back();
      Series rmse{label_of(runs, runs[i], "forecast"), {}, {}, i, false},
          persistence{label_of(runs, runs[i], "persistence"), {}, {}, runs.size() == 1 ? 1 : i, true};
      const auto add = [&](double lead, const Json& metrics) {
        const auto scores = metrics.find(variable);
        if (scores == metrics.end()) return;
        rmse.x.push_back(axis.place(lead));
        rmse.y.push_back(number_at(*scores, "rmse"));
        persistence.x.push_back(axis.place(lead));
        persistence.y.push_back(number_at(*scores, "persistence_rmse"));
      };
      add(first_lead(runs[i]), line.at("metrics"));
      for (const auto& [lead, metrics] : line.at("leads").items())
        add(std::strtod(lead.c_str(), nullptr), metrics);
      plot.series.push_back(rmse);
      plot.series.push_back(persistence);
    }
    plot.width = 320;
    plot.height = 240;
    plot.far = far_of(runs);
    figures.push_back({"fig-lead-" + variable, svg_of(plot),
                       concat("RMSE of ", variable, " by lead, last validation.", beyond_axis(plot))});
  }
}

/// Skill by level, of each variable that has some, in plots as add_skill() has them.
void add_levels(const std::vector<RunRecord>& runs, Figures& figures) {
  const bool several = runs.size() > 1;
  std::map<std::string, Plot> plots;  // by variable of several runs
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].valid.empty()) continue;
    std::map<std::string, std::vector<std::pair<double, double>>> groups;
    for (const auto& [name, scores] : runs[i].valid.back().at("metrics").items()) {
      const std::string variable = without_level(name);
      if (variable != name)
        groups[variable].emplace_back(std::strtod(name.c_str() + variable.size() + 1, nullptr),
                                      skill_of(scores));
    }
    for (auto& [variable, levels] : groups) {
      if (levels.size() < 2) continue;
      std::ranges::sort(levels);
      Plot& plot = plots[several ? variable : ""];
      Series series{several ? runs[i].name : variable, {}, {}, several ? i : plot.series.size(), false};
      for (const auto& [level, skill] : levels) {
        series.x.push_back(level);
        series.y.push_back(skill);
      }
      plot.series.push_back(series);
    }
  }
  for (auto& [variable, plot] : plots) {
    plot.x_label = "level";
    plot.y_label = "1 - RMSE / reference";
    plot.turned = plot.downwards = true;
    plot.far = far_of(runs);
    plot.always = 1;
    if (several) {
      plot.width = 320;
      plot.height = 240;
    }
    plot.title = several ? title_of(variable, ": skill by level", plot) : "Skill by level";
    figures.push_back({several ? "fig-levels-" + variable : "fig-levels", svg_of(plot),
                       "Skill of the last validation by level, at the first lead." + beyond_axis(plot)});
  }
}

/// The last validation of each run as a table of its own, so that none crowds out those behind it.
void add_table(const std::vector<RunRecord>& runs, Figures& figures) {
  constexpr std::size_t kMostRows = 100;
  std::string body, left_out;
  for (const RunRecord& run : runs) {
    std::vector<std::vector<std::string>> rows = {{"variable", "lead", "measure", "value"}};
    std::size_t more = 0;
    const auto add = [&](const std::string& lead, const Json& metrics) {
      for (const auto& [variable, scores] : metrics.items()) {
        for (const auto& [measure, value] : scores.items()) {
          if (!value.is_number()) continue;
          if (rows.size() > kMostRows) {
            ++more;
          } else {
            rows.push_back({variable, lead, words_of(measure), short_number(value.get<double>())});
          }
        }
      }
    };
    if (run.valid.empty()) continue;
    add("first", run.valid.back().at("metrics"));
    if (has_leads(run)) {
      const LeadAxis axis = leads_of({&run});
      for (const auto& [lead, metrics] : run.valid.back().at("leads").items())
        add(axis.text(std::strtod(lead.c_str(), nullptr)), metrics);
    }
    if (rows.size() == 1) continue;
    body += concat("<details><summary>Numbers", runs.size() == 1 ? "" : " of " + escaped(run.name),
                   "</summary>", table_of(rows), "</details>\n");
    if (more > 0)
      left_out += concat(left_out.empty() ? "; further numbers stand in metrics.jsonl: " : ", ", more,
                         runs.size() == 1 ? "" : " of " + run.name);
  }
  if (body.empty()) return;
  figures.push_back({"fig-table", body, concat("The last validation of each run", left_out, ".")});
}

}  // namespace

Figures curve_figures(const std::vector<RunRecord>& runs) {
  Figures figures;
  if (any_steps(runs)) {
    add_loss(runs, figures);
    add_rate(runs, figures);
  }
  add_skill(runs, figures);
  add_leads(runs, figures);
  add_levels(runs, figures);
  add_table(runs, figures);
  return figures;
}

std::string label_of_only(const std::vector<RunRecord>& runs, const RunRecord& run, const std::string& what) {
  return runs.size() == 1 ? what : run.name;
}

std::string row_of(const std::vector<std::string>& pictures) {
  return concat("<div class=\"row\">", join(pictures, "\n"), "</div>");
}

std::string ShownVariables::remark(const std::string& where) const {
  std::string text;
  if (levels)
    text += concat(" Of a variable on several levels the one nearest to 500 is shown; ", where, " has all.");
  if (more > 0)
    text += concat(" ", where, " has ", counted(static_cast<std::int64_t>(more), "more variable"), ".");
  return text;
}

ShownVariables shown_of(const std::vector<std::string>& names, std::size_t most) {
  ShownVariables shown;
  if (names.size() <= most) {
    shown.names = names;
    return shown;
  }
  const auto distance = [](const std::string& name) {
    const std::string variable = without_level(name);
    return name == variable ? 0 : std::abs(std::strtod(name.c_str() + variable.size() + 1, nullptr) - 500);
  };
  for (const std::string& name : names) {
    const auto known = std::ranges::find(shown.names, without_level(name), without_level);
    if (known == shown.names.end()) {
      shown.names.push_back(name);
    } else {
      shown.levels = true;
      if (distance(name) < distance(*known)) *known = name;
    }
  }
  if (shown.names.size() > most) {
    shown.more = shown.names.size() - most;
    shown.names.resize(most);
  }
  return shown;
}

namespace {

/// Whether a text is a date, with or without a time behind it: "2021-02-01T00:00".
bool is_time(const std::string& text) {
  constexpr std::string_view kDate = "0000-00-00";
  if (text.size() < kDate.size()) return false;
  for (std::size_t i = 0; i < kDate.size(); ++i) {
    const bool digit = std::isdigit(static_cast<unsigned char>(text[i])) != 0;
    if (kDate[i] == '-' ? text[i] != '-' : !digit) return false;
  }
  return text.size() == kDate.size() || text[kDate.size()] == 'T';
}

}  // namespace

std::string table_of(const std::vector<std::vector<std::string>>& rows) {
  std::string html = "<div class=\"wide\"><table>";
  for (std::size_t i = 0; i < rows.size(); ++i) {
    html += "<tr>";
    for (const std::string& cell : rows[i])
      html += concat(i == 0          ? "<th>"
                     : is_time(cell) ? "<td class=\"time\">"
                                     : "<td>",
                     escaped(cell), i == 0 ? "</th>" : "</td>");
    html += "</tr>\n";
  }
  return html + "</table></div>";
}

}  // namespace jigsaw::inline report
