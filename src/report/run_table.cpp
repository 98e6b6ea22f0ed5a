#include "report/run_table.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <map>

#include "base/text.h"
#include "checkpoint/folder.h"
#include "report/run_record.h"
#include "train/run_directory.h"

namespace jigsaw::inline report {
namespace {

constexpr std::array kWrittenInSteps = {"/metrics.jsonl", "/log.txt"};

std::optional<double> seconds_since_written(const std::string& path) {
  for (const char* name : {kWrittenInSteps[0], kWrittenInSteps[1], "/checkpoints/latest"}) {
    std::error_code absent;
    const auto written = std::filesystem::last_write_time(path + name, absent);
    if (absent) continue;
    const std::chrono::duration<double> age = std::filesystem::file_time_type::clock::now() - written;
    return std::max(0.0, age.count());
  }
  return std::nullopt;
}

/// 600 of "step 20/600  loss …"; 0: there is none.
std::int64_t steps_of(const std::string& progress) {
  std::int64_t steps = 0;
  const std::size_t slash = progress.find('/');
  if (slash != std::string::npos)
    std::from_chars(progress.data() + slash + 1, progress.data() + progress.size(), steps);
  return steps;
}

/// "0:48" of "step 20/600  …  0:48 left".
std::string left_of(const std::string& progress) {
  constexpr std::string_view kEnding = " left";
  if (!progress.ends_with(kEnding)) return "";
  const std::size_t blank = progress.rfind(' ', progress.size() - kEnding.size() - 1);
  return progress.substr(blank + 1, progress.size() - kEnding.size() - blank - 1);
}

/// What a run has trained stands there, and nothing that it wrote while it did: a model, as it is handed on.
bool is_of_model_alone(const std::string& path) {
  return std::ranges::none_of(kWrittenInSteps, [&](const char* name) {
    std::error_code absent;
    return std::filesystem::exists(path + name, absent);
  });
}

/// The step of the newest whole checkpoint; 0: there is none, or it cannot be read.
std::int64_t saved_step(const std::string& path) {
  try {
    const std::vector<CheckpointFolder::Entry> whole = CheckpointFolder(path + "/checkpoints").survey().whole;
    return whole.empty() ? 0 : whole.front().step;
  } catch (const Error&) {
    return 0;
  }
}

std::string dash(const std::string& text) {
  return text.empty() ? "-" : text;
}

}  // namespace

RunStanding standing_of(const std::string& path) {
  RunStanding standing{.run = path};
  const RunDirectory::Holder holder = RunDirectory::holder(path);
  standing.age = seconds_since_written(path);
  RunRecord run;
  try {
    run = read_course(path);
  } catch (const Error& error) {
    standing.state = holder.lives ? "running" : "unreadable";
    standing.about = holder.lives ? holder.name : error.what();
    return standing;
  }
  standing.step = run.step.empty() ? saved_step(path) : std::llround(run.step.back());
  if (!run.loss.empty() && std::isfinite(run.loss.back())) standing.loss = run.loss.back();
  standing.steps = steps_of(run.progress);
  if (holder.lives) {
    standing.state = "running";
    standing.about = holder.name;
    standing.left = left_of(run.progress);
  } else if (run.over()) {
    standing.state = "finished";
  } else if (!run.stopped.empty()) {
    standing.state = "stopped";
    standing.about = run.stopped;
  } else if (!run.error.empty()) {
    standing.state = "failed";
    standing.about = run.error;
  } else if (standing.step > 0 && is_of_model_alone(path)) {
    standing.state = "model";
    standing.about = "a checkpoint, and neither metrics.jsonl nor log.txt of its training";
  } else {
    standing.state = "interrupted";
    standing.about = holder.name.empty() ? "" : "was " + holder.name;
  }
  return standing;
}

std::string standings_text(const std::vector<RunStanding>& runs) {
  constexpr std::size_t kColumns = 7;
  std::vector<std::array<std::string, kColumns>> rows = {
      {"run", "state", "step", "loss", "written", "left", "about"}};
  std::map<std::string, int> counts;
  for (const RunStanding& run : runs) {
    ++counts[run.state];
    rows.push_back({run.run, run.state, concat(run.step, run.steps > 0 ? concat("/", run.steps) : ""),
                    run.loss ? concat(*run.loss) : "-", run.age ? human_seconds(*run.age) + " ago" : "-",
                    dash(run.left), run.about});
  }
  std::array<std::size_t, kColumns> widths{};
  for (const auto& row : rows) {
    for (std::size_t c = 0; c + 1 < kColumns; ++c) widths[c] = std::max(widths[c], row[c].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < kColumns; ++c) {
      line += row[c];
      if (c + 1 < kColumns) line += std::string(widths[c] - row[c].size() + 2, ' ');
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  std::vector<std::string> parts;
  for (const auto& [state, count] : counts) parts.push_back(concat(count, " ", state));
  return text + concat(counted(std::ssize(runs), "run"), ": ", join(parts, ", "), "\n");
}

Json standings_json(const std::vector<RunStanding>& runs) {
  Json json = Json::array();
  for (const RunStanding& run : runs) {
    json.push_back({{"run", run.run},
                    {"state", run.state},
                    {"step", run.step},
                    {"steps", run.steps > 0 ? Json(run.steps) : Json(nullptr)},
                    {"loss", run.loss ? Json(*run.loss) : Json(nullptr)},
                    {"age_seconds", run.age ? Json(*run.age) : Json(nullptr)},
                    {"left", run.left},
                    {"about", run.about}});
  }
  return json;
}

}  // namespace jigsaw::inline report
