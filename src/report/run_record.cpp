#include "report/run_record.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/next_line.h"
#include "base/text.h"
#include "files/variable_file.h"

namespace jigsaw::inline report {

namespace {

constexpr std::int64_t kMostRunText = std::int64_t{1} << 28;

/// is_file() as a DataError: nothing else is opened, which might be waited for.
bool is_there(const std::string& path) {
  try {
    return is_file(path);
  } catch (const FileError& error) {
    throw DataError(error.what());
  }
}

Json read_json(const std::string& path) {
  if (!is_there(path)) return nullptr;
  Json json;
  try {
    naming_malformed(path, [&] { json = Json::parse(read_text(path, kMostRunText)); });
  } catch (const FileError& error) {
    throw DataError(error.what());
  }
  return json;
}

void add_line(RunRecord& run, const Json& line) {
  const Json kind = line.value("kind", Json());
  const auto leads = line.find("leads");
  if (kind == "valid" && line.contains("metrics") && line.at("metrics").is_object() &&
      (leads == line.end() || leads->is_object()))
    run.valid.push_back(line);
  if (kind == "train") {
    run.step.push_back(number_at(line, "step"));
    run.loss.push_back(number_at(line, "loss"));
    run.learning_rate.push_back(number_at(line, "learning_rate"));
    run.norm.push_back(number_at(line, "grad_norm"));
    run.step_seconds.push_back(number_at(line, "step_seconds"));
    run.data_wait.push_back(number_at(line, "data_wait_seconds"));
    run.communication.push_back(number_at(line, "communication_seconds"));
    run.rate.push_back(number_at(line, "samples_per_second"));
    run.peak_share.push_back(number_at(line, "peak_share"));
  }
  if (const auto time = line.find("time"); time != line.end() && time->is_string()) {
    run.last_time = time->get<std::string>();
    if (run.first_time.empty()) run.first_time = run.last_time;
  }
}

constexpr const char* kStopped = "stopped early ";

/// "step  20/600  loss …".
bool is_progress(const std::string& line) {
  const std::string begin = "step ";
  const std::size_t number = line.find_first_not_of(' ', begin.size());
  if (!line.starts_with(begin) || number == std::string::npos) return false;
  const std::size_t end = line.find_first_not_of("0123456789", number);
  return end != number && end != std::string::npos && line[end] == '/';
}

/// What the end of a log.txt says, lines less their times.
struct LogEnd {
  /// The last line, less those of the report that a run writes behind its end; of a run that was stopped the
  /// one that says so.
  std::string word;
  std::string progress;  ///< the last line on a step that was made
};

/// @param most  bytes that are read.
LogEnd log_end(const std::string& path, std::streamoff most) {
  std::ifstream file(path, std::ios::ate);
  const auto size = static_cast<std::streamoff>(file.tellg());
  file.seekg(std::max<std::streamoff>(0, size - most));
  std::string last, stopped, progress;
  for (std::string line; std::getline(file, line);) {
    const std::size_t blank = line.find(' ');
    if (blank == std::string::npos) continue;
    line.erase(0, blank + 1);
    if (line.starts_with("report: ") || line.starts_with("warning: report.html ")) continue;
    last = line;
    if (is_progress(line)) progress = line;
    if (line.starts_with(kStopped)) stopped = line;
    if (line.starts_with("resumed from ")) stopped.clear();
  }
  // Validation may have written much behind the last step.
  constexpr std::streamoff kMost = 1 << 25;
  if (progress.empty() && most < size && most < kMost) return log_end(path, most * 16);
  // A start that was refused leaves a run that was stopped as it is.
  return {stopped.empty() ? last : stopped, progress};
}

void take_end(RunRecord& run, const std::string& log) {
  constexpr std::streamoff kUsual = 1 << 16;
  const auto [last, progress] = is_there(log) ? log_end(log, kUsual) : LogEnd{};
  run.progress = progress;
  if (run.over()) return;  // the rest is of a start that was refused
  const std::string mark = "error: ";
  if (last.starts_with(mark)) run.error = last.substr(mark.size());
  if (last.starts_with(kStopped)) run.stopped = last;
}

/// The scores of evaluate's NetCDF by the names that its JSON has.
Json scores_of_netcdf(const std::string& path) {
  const auto file = open_variables(path, Dimensions::kByName);
  const FileVariable *leads = file->find("lead_time"), *regions = file->find("region");
  if (file->find("lead_steps") != nullptr) return {{"lead_steps", Json::array()}};
  if (leads == nullptr || regions == nullptr)
    throw DataError(concat(path, " was not written by evaluate: it has no lead_time and region"));
  const std::vector<double> read = file->read_all(*leads);
  std::vector<double> hours = read;
  const std::string units = leads->text("units");
  const Time unit = units == "1" ? kMonth : units == "minutes" ? 60 : units == "seconds" ? 1 : kHour;
  for (double& lead : hours) lead *= in_hours(unit);
  Json json = {{"lead_hours", hours}, {"scores", Json::object()}, {"spectra", Json::object()}};
  if (unit == kMonth) json["lead_months"] = read;
  for (const FileVariable& variable : file->variables()) {
    if (std::ranges::find(variable.dimensions, "climate_group") != variable.dimensions.end()) continue;
    const auto values = [&] {
      std::vector<double> all(static_cast<std::size_t>(variable.shape.count()));
      file->read<double>(variable, Box::whole(variable.shape), all);
      return all;
    };
    if (const std::string ending = "_rank_histogram";
        variable.name.ends_with(ending) && variable.shape.rank() == 3) {
      const std::vector<double> all = values();
      Json& histograms =
          json["rank_histograms"][variable.name.substr(0, variable.name.size() - ending.size())]["all"];
      const std::ptrdiff_t ranks = variable.shape[2];
      for (std::ptrdiff_t lead = 0; lead < variable.shape[1]; ++lead)
        histograms.push_back(
            std::vector<double>(all.begin() + lead * ranks, all.begin() + (lead + 1) * ranks));
    }
    if (const std::string ending = "_csi"; variable.name.ends_with(ending) && variable.shape.rank() == 3) {
      const std::string name = variable.name.substr(0, variable.name.size() - ending.size());
      const FileVariable* thresholds = file->find(name + "_threshold");
      if (thresholds == nullptr) continue;
      const std::vector<double> all = values();
      auto from = all.begin();
      for (const double threshold : file->read_all(*thresholds)) {
        json["thresholds"][name][Json(threshold).dump()]["all"]["csi"] =
            std::vector<double>(from, from + variable.shape[2]);
        from += variable.shape[1] * variable.shape[2];
      }
    }
    const auto columns = static_cast<std::ptrdiff_t>(variable.shape.rank() == 2 ? variable.shape[1] : 0);
    for (const char* measure :
         {"persistence_rmse", "rmse", "acc", "crps", "spread", "spread_skill", "crps_skill"}) {
      const std::string ending = concat("_", measure);
      if (!variable.name.ends_with(ending) || columns == 0) continue;
      const std::string name = variable.name.substr(0, variable.name.size() - ending.size());
      const std::vector<double> all = values();
      // The first region is the whole grid.
      json["scores"][name]["all"][measure] = std::vector<double>(all.begin(), all.begin() + columns);
      if (ending == "_rmse") json["scores"][name]["units"] = variable.text("units");
      break;
    }
    for (const auto& [ending, kind] : {std::pair{"_power_truth", "truth"}, std::pair{"_power", "forecast"}}) {
      if (!variable.name.ends_with(ending) || columns == 0) continue;
      const std::string name = variable.name.substr(0, variable.name.size() - std::string(ending).size());
      const std::vector<double> all = values();
      for (std::ptrdiff_t lead = 0; lead < variable.shape[0]; ++lead)
        json["spectra"][name][kind].push_back(
            std::vector<double>(all.begin() + lead * columns, all.begin() + (lead + 1) * columns));
      break;
    }
  }
  return json;
}

}  // namespace

std::int64_t RunRecord::first_step() const {
  return std::llround(number_at(summary, "first_step", 1));
}

void naming_malformed(const std::string& path, const std::function<void()>& work) {
  const auto refuse = [&](const std::string& why) { throw DataError(concat(path, " is malformed: ", why)); };
  try {
    work();
  } catch (const Json::exception& error) {
    refuse(sentence_of(error));
  } catch (const std::out_of_range&) {
    refuse("a list in it is too short");
  }
}

double number_at(const Json& object, const std::string& key, double otherwise) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>() : otherwise;
}

std::vector<double> numbers_of(const Json& list) {
  std::vector<double> numbers;
  for (const Json& each : list) numbers.push_back(each.is_number() ? each.get<double>() : std::nan(""));
  return numbers;
}

namespace {

Json json_of_scores(const std::string& path) {
  std::ifstream file(path);
  char first = 0;
  file >> first;
  return first == '{' ? read_json(path) : scores_of_netcdf(path);
}

/// What it is that scores are of and no figure shows: images or sequences; else "".
std::string without_figures(const Json& scores) {
  if (scores.contains("images") && scores.contains("data_range")) return "images";
  return scores.contains("lead_steps") ? "sequences" : "";
}

Json checked_scores(Json scores, const std::string& path) {
  if (!scores.contains("scores") || !scores.contains("lead_hours"))
    throw DataError(concat(path, " was not written by evaluate: it has no scores and lead_hours"));
  return scores;
}

}  // namespace

Json read_scores(const std::string& path) {
  if (!is_there(path)) throw DataError(concat(path, " is not there"));
  Json scores = json_of_scores(path);
  if (const std::string kind = without_figures(scores); !kind.empty())
    throw DataError(concat(path, " has scores of ", kind, ", which no figure shows"));
  return checked_scores(std::move(scores), path);
}

RunRecord read_course(const std::string& path) {
  namespace fs = std::filesystem;
  RunRecord run;
  run.path = path;
  const std::string metrics = path + "/metrics.jsonl";
  std::error_code ignored;
  if (fs::is_regular_file(path, ignored)) {
    // As of FOLDER/* of a sweep, where sweep.json lies beside the runs.
    throw ConfigError(concat("command line: ", path, " is no run directory but a file; ",
                             (fs::path(path).parent_path() / "*").string(), "/ names folders alone"));
  }
  if (!fs::is_directory(path, ignored) || (!is_there(metrics) && !is_there(path + "/config.json"))) {
    throw ConfigError(
        concat("command line: ", path, " is no run directory: it has neither metrics.jsonl nor config.json"));
  }
  run.config = read_json(path + "/config.json");
  run.summary = read_json(path + "/summary.json");
  run.placement = read_json(path + "/placement.json");
  const fs::path absolute = fs::absolute(path).lexically_normal();
  const fs::path folder = absolute.has_filename() ? absolute.filename() : absolute.parent_path().filename();
  const Json name = run.config.is_object() ? run.config.value("name", Json()) : Json();
  run.name = name.is_string() && name != "run" ? name.get<std::string>() : folder.string();
  std::ifstream lines(metrics);
  for (std::string line; next_line(lines, line) && !lines.eof();) {
    const Json json = Json::parse(line, nullptr, false);
    if (json.is_object()) {
      add_line(run, json);
    } else {
      ++run.foreign_lines;
    }
  }
  // A summary of an earlier start is none of a run that has gone on.
  if (run.over() && !run.step.empty() && number_at(run.summary, "steps", 0) < run.step.back())
    run.summary = nullptr;
  take_end(run, path + "/log.txt");
  return run;
}

RunRecord read_run(const std::string& path) {
  RunRecord run = read_course(path);
  run.examples = read_examples(path);
  run.scores_path = path + "/scores.json";
  if (!is_there(run.scores_path)) return run;
  Json scores = json_of_scores(run.scores_path);
  if (const std::string kind = without_figures(scores); !kind.empty()) {
    run.passed_over = concat("scores.json has scores of ", kind, ", which no figure shows");
  } else {
    run.scores = checked_scores(std::move(scores), run.scores_path);
  }
  return run;
}

}  // namespace jigsaw::inline report
