#include "sweep/status_table.h"

#include <algorithm>
#include <iomanip>
#include <set>
#include <sstream>

#include "base/text.h"

namespace jigsaw::inline sweep {
namespace {

std::map<std::string, int> counts_by_state(const std::vector<SweepRow>& rows) {
  std::map<std::string, int> counts;
  for (const SweepRow& row : rows) ++counts[name(row.status.state)];
  return counts;
}

std::string metric_text(const RunStatus& status) {
  return status.metric ? Json(*status.metric).dump() : "";
}

}  // namespace

std::vector<SweepRow> sweep_rows(const SearchSpace& space, const RunList& list) {
  std::vector<SweepRow> rows;
  for (const SweepRun& run : list.runs())
    rows.push_back({rows.size(), run, run_status(list.folder_of(run), space.metric)});
  return rows;
}

const SweepRow* best_row(const SearchSpace& space, const std::vector<SweepRow>& rows) {
  const SweepRow* best = nullptr;
  for (const SweepRow& row : rows) {
    if (row.status.state != RunState::kFinished || !row.status.metric) continue;
    if (best == nullptr || space.better(*row.status.metric, *best->status.metric)) best = &row;
  }
  return best;
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
  if (const SweepRow* best = best_row(space, rows); best != nullptr)
    out << "best " << space.metric << " " << *best->status.metric << ": " << best->run.name << '\n';
  return out.str();
}

Json summary_json(const SearchSpace& space, const std::vector<SweepRow>& rows) {
  const SweepRow* best = best_row(space, rows);
  Json json = {{"metric", space.metric},
               {"counts", counts_by_state(rows)},
               {"best", best != nullptr ? Json(best->run.name) : Json(nullptr)},
               {"runs", Json::array()}};
  for (const SweepRow& row : rows) {
    const RunStatus& status = row.status;
    json["runs"].push_back({{"index", row.index},
                            {"name", row.run.name},
                            {"set", row.run.set},
                            {"state", name(status.state)},
                            {"exit_code", status.exit_code ? Json(*status.exit_code) : Json(nullptr)},
                            {"step", status.step},
                            {"metric", status.metric ? Json(*status.metric) : Json(nullptr)}});
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
  text += "\r\n";
  for (const SweepRow& row : rows) {
    const RunStatus& status = row.status;
    text +=
        concat(row.index, ",", csv_cell(row.run.name), ",", name(status.state), ",",
               status.exit_code ? concat(*status.exit_code) : "", ",", status.step, ",", metric_text(status));
    for (const std::string& key : keys) {
      const auto value = row.run.set.find(key);
      const bool set = value != row.run.set.end();
      text += "," + csv_cell(!set                        ? ""
                             : value->second.is_string() ? value->second.get<std::string>()
                                                         : value->second.dump());
    }
    text += "\r\n";
  }
  return text;
}

}  // namespace jigsaw::inline sweep
