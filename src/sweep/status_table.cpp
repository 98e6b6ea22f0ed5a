#include "sweep/status_table.h"

#include <algorithm>
#include <iomanip>
#include <set>
#include <sstream>

#include "base/text.h"
#include "sweep/over_seeds.h"

namespace jigsaw::inline sweep {
namespace {

std::map<std::string, int> counts_by_state(const std::vector<SweepRow>& rows) {
  std::map<std::string, int> counts;
  for (const SweepRow& row : rows) ++counts[name(row.status.state)];
  return counts;
}

std::string number_text(const std::optional<double>& number) {
  return number ? Json(*number).dump() : "";
}

Json number_json(const std::optional<double>& number) {
  return number ? Json(*number) : Json();
}

/// Runs are compared at the end of one round alone: steps of another are others.
void score_by_rounds(const SearchSpace& space, const RunList& list, const std::vector<HalvingRound>& rounds,
                     std::vector<SweepRow>& rows) {
  for (std::size_t r = rounds.size(); r-- > 0;) {
    std::map<std::string, double> scores;
    try {
      for (const SweepRun& run : halving_participants(space, list, rounds, r)) {
        const RoundEnd end = round_end(list.folder_of(run), space.metric, rounds[r]);
        if (end.score) scores[run.name] = *end.score;
      }
    } catch (const NotYet&) {
      continue;
    }
    for (SweepRow& row : rows) {
      if (const auto found = scores.find(row.run.name); found != scores.end()) row.score = found->second;
    }
    if (!scores.empty()) return;
  }
}

void write_seeds(const SearchSpace& space, const std::vector<SweepRow>& rows, std::ostream& out) {
  const std::vector<SeedGroup> groups = over_seeds(rows);
  if (groups.empty()) return;
  std::size_t width = 10;
  for (const SeedGroup& group : groups) width = std::max(width, group.name.size());
  constexpr int kCell = 14;
  out << std::left << std::setw(static_cast<int>(width)) << "over seeds" << std::right << std::setw(6)
      << "runs" << std::setw(kCell) << "mean" << std::setw(kCell) << "deviation"
      << "  of " << space.metric << '\n';
  for (const SeedGroup& group : groups) {
    out << std::left << std::setw(static_cast<int>(width)) << group.name << std::right << std::setw(6)
        << group.count << std::setw(kCell) << (group.mean ? concat(*group.mean) : "-") << std::setw(kCell)
        << (group.deviation ? concat(*group.deviation) : "-") << '\n';
  }
}

}  // namespace

std::vector<SweepRow> sweep_rows(const SearchSpace& space, const RunList& list,
                                 const std::vector<HalvingRound>& rounds) {
  std::vector<SweepRow> rows;
  for (const SweepRun& run : list.runs()) {
    SweepRow row{rows.size(), run, run_status(list.folder_of(run), space.metric), {}};
    if (rounds.empty() && row.status.state == RunState::kFinished) row.score = row.status.metric;
    rows.push_back(std::move(row));
  }
  score_by_rounds(space, list, rounds, rows);
  return rows;
}

const SweepRow* best_row(const SearchSpace& space, const std::vector<SweepRow>& rows) {
  const SweepRow* best = nullptr;
  for (const SweepRow& row : rows) {
    if (row.score && (best == nullptr || space.better(*row.score, *best->score))) best = &row;
  }
  return best;
}

std::vector<std::string> row_remarks(const SearchSpace& space, const std::vector<SweepRow>& rows) {
  std::vector<std::string> names;
  for (const SweepRow& row : rows) {
    if (row.status.state == RunState::kFinished && row.status.lacks_metric) names.push_back(row.run.name);
  }
  if (names.empty()) return {};
  const auto more = std::ssize(names) - 1;
  return {concat(first_and_more(names.front(), more, "run"), more == 0 ? " has" : " have", " finished, and ",
                 more == 0 ? "its last validation has" : "their last validations have", " no ",
                 quote(space.metric))};
}

std::string summary_text(const SearchSpace& space, const std::vector<SweepRow>& rows) {
  std::size_t width = 4;
  for (const SweepRow& row : rows) width = std::max(width, row.run.name.size());
  std::ostringstream out;
  out << std::right << std::setw(5) << "index"
      << "  " << std::left << std::setw(static_cast<int>(width)) << "run"
      << "  " << std::setw(11) << "state" << std::right << std::setw(9) << "step"
      << "  " << space.metric << '\n';
  for (const SweepRow& row : rows) {
    const RunStatus& status = row.status;
    out << std::right << std::setw(5) << row.index << "  " << std::left << std::setw(static_cast<int>(width))
        << row.run.name << "  " << std::setw(11) << name(status.state) << std::right << std::setw(9)
        << status.step << "  " << (status.metric ? concat(*status.metric) : "-");
    if (status.state == RunState::kFailed) out << "  (exit code " << *status.exit_code << ")";
    out << '\n';
  }
  std::vector<std::string> parts;
  for (const auto& [state, count] : counts_by_state(rows)) parts.push_back(concat(count, " ", state));
  out << counted(std::ssize(rows), "run") << ": " << join(parts, ", ") << '\n';
  write_seeds(space, rows, out);
  if (const SweepRow* best = best_row(space, rows); best != nullptr)
    out << "best " << space.metric << " " << *best->score
        << (space.method == SearchMethod::kHalving ? " of the last round: " : ": ") << best->run.name << '\n';
  return out.str();
}

Json summary_json(const SearchSpace& space, const std::vector<SweepRow>& rows) {
  const SweepRow* best = best_row(space, rows);
  Json json = {{"metric", space.metric},
               {"counts", counts_by_state(rows)},
               {"best", best != nullptr ? Json(best->run.name) : Json(nullptr)},
               {"runs", Json::array()},
               {"over_seeds", Json::array()}};
  for (const SweepRow& row : rows) {
    const RunStatus& status = row.status;
    json["runs"].push_back({{"index", row.index},
                            {"name", row.run.name},
                            {"set", row.run.set},
                            {"state", name(status.state)},
                            {"exit_code", status.exit_code ? Json(*status.exit_code) : Json(nullptr)},
                            {"step", status.step},
                            {"metric", number_json(status.metric)}});
  }
  for (const SeedGroup& group : over_seeds(rows)) {
    json["over_seeds"].push_back({{"set", group.set},
                                  {"runs", group.count},
                                  {"mean", number_json(group.mean)},
                                  {"deviation", number_json(group.deviation)}});
  }
  return json;
}

std::string summary_csv(const SearchSpace& space, const std::vector<SweepRow>& rows) {
  std::set<std::string> keys;
  for (const SweepRow& row : rows) {
    for (const auto& [key, value] : row.run.set) keys.insert(key);
  }
  std::string text = concat("index,name,state,exit_code,step,", csv_cell(space.metric));
  for (const std::string& key : keys) text += "," + csv_cell(key);
  std::map<std::size_t, const SeedGroup*> group_of;  // by row
  const std::vector<SeedGroup> groups = over_seeds(rows);
  for (const SeedGroup& group : groups) {
    for (const std::size_t row : group.rows) group_of[row] = &group;
  }
  text += groups.empty() ? "\r\n" : ",seeds,mean,deviation\r\n";
  for (const SweepRow& row : rows) {
    const RunStatus& status = row.status;
    text += concat(row.index, ",", csv_cell(row.run.name), ",", name(status.state), ",",
                   status.exit_code ? concat(*status.exit_code) : "", ",", status.step, ",",
                   number_text(status.metric));
    for (const std::string& key : keys) {
      const auto value = row.run.set.find(key);
      const bool set = value != row.run.set.end();
      text += "," + csv_cell(!set                        ? ""
                             : value->second.is_string() ? value->second.get<std::string>()
                                                         : value->second.dump());
    }
    if (!groups.empty()) {
      const SeedGroup& group = *group_of.at(static_cast<std::size_t>(&row - rows.data()));
      text += concat(",", group.count, ",", number_text(group.mean), ",", number_text(group.deviation));
    }
    text += "\r\n";
  }
  return text;
}

}  // namespace jigsaw::inline sweep
