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
#include "report/score_file.h"

namespace jigsaw::inline report {

bool is_there(const std::string& path) {
  try {
    return is_file(path);
  } catch (const FileError& error) {
    throw DataError(error.what());
  }
}

Json read_json(const std::string& path) {
  constexpr std::int64_t kMostRunText = std::int64_t{1} << 28;
  if (!is_there(path)) return nullptr;
  Json json;
  try {
    naming_malformed(path, [&] { json = Json::parse(read_text(path, kMostRunText)); });
  } catch (const FileError& error) {
    throw DataError(error.what());
  }
  return json;
}

namespace {

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
  if (is_there(run.scores_path)) run.scores = read_scores(run.scores_path);
  return run;
}

}  // namespace jigsaw::inline report
