#include "train/metrics_log.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <span>
#include <utility>

#include "base/disk.h"
#include "base/next_line.h"
#include "base/text.h"

namespace jigsaw::inline train {
namespace {

constexpr std::int64_t kWrittenAtOnce = 1 << 20;

/// A line as write() leaves it, of a step no later than `step`; else null.
Json belonging(const std::string& line, std::int64_t step) {
  Json json = Json::parse(line, nullptr, false);
  if (!json.is_object()) return nullptr;
  const auto found = json.find("step");
  const bool belongs =
      found != json.end() && found->is_number_integer() && found->get<std::int64_t>() <= step;
  return belongs ? json : Json(nullptr);
}

/// The last whole line's; 0 where there is none.
std::int64_t last_step(const std::string& path) {
  constexpr std::int64_t kTail = 1 << 20;
  std::ifstream in(path, std::ios::binary);
  in.seekg(0, std::ios::end);
  const std::int64_t bytes = in.tellg();
  in.seekg(std::max<std::int64_t>(0, bytes - kTail));
  std::int64_t step = 0;
  for (std::string line; next_line(in, line) && !in.eof();) {
    const Json json = belonging(line, std::numeric_limits<std::int64_t>::max());
    if (!json.is_null()) step = json.at("step").get<std::int64_t>();
  }
  return step;
}

}  // namespace

MetricsLog::MetricsLog(std::string path, Log& log, std::function<double()> clock)
    : path_(std::move(path)), log_(&log), clock_(std::move(clock)) {}

void MetricsLog::resume_at(std::int64_t step) {
  if (!log_->speaks()) return;
  try {
    if (is_file(path_)) keep_lines_until(step);
  } catch (const FileError& error) {
    warn_once(error.what());
  }
}

std::string MetricsLog::set_aside(std::int64_t least, bool some_stay) {
  if (!log_->speaks()) return "";
  try {
    if (!is_file(path_) || last_step(path_) < least) return "";
    const std::string stem = path_.substr(0, path_.rfind('.'));
    int number = 1;
    const auto aside = [&] { return concat(stem, ".old-", number, path_.substr(stem.size())); };
    std::error_code error;
    while (std::filesystem::exists(std::filesystem::symlink_status(aside(), error))) ++number;
    if (some_stay) {
      std::filesystem::copy_file(path_, aside(), error);
      if (error) throw FileError(concat("cannot write ", aside(), ": ", error.message()));
    } else {
      rename_path(path_, aside());
    }
    return aside();
  } catch (const FileError& error) {
    refuse_output<ConfigError>(error, concat("output: ", error.what()));
  }
}

const Json& MetricsLog::last(const std::string& kind) const {
  static const Json kNone;
  const auto found = last_.find(kind);
  return found == last_.end() ? kNone : found->second;
}

void MetricsLog::keep_lines_until(std::int64_t step) {
  Replacement replacement(path_);
  std::ifstream old(path_, std::ios::binary);
  std::string line, kept;
  std::int64_t written = 0;
  const auto write_kept = [&] {
    replacement.file().write(std::as_bytes(std::span(kept)), written);
    written += std::ssize(kept);
    kept.clear();
  };
  // A line that ends with the file, not with a line break, is torn: eof() is set with it.
  while (next_line(old, line) && !old.eof()) {
    Json json = belonging(line, step);
    if (json.is_null()) continue;
    kept += line + "\n";
    if (std::ssize(kept) >= kWrittenAtOnce) write_kept();
    if (const Json kind = json.value("kind", Json()); kind.is_string()) last_[kind] = std::move(json);
  }
  write_kept();
  if (const Json& valid = last("valid"); !valid.is_null()) validated_ = valid.at("step").get<std::int64_t>();
  if (old.bad()) throw FileError(concat("cannot read ", path_));
  try {
    replacement.commit();
  } catch (const FileError& error) {
    throw FileError(concat(error.what(), "; it is left as it was"));
  }
}

void MetricsLog::write(const Json& line) {
  if (!log_->speaks()) return;
  try {
    if (!file_) file_.emplace(path_, clock_);
    const bool renewed = file_->append(line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
    if (renewed && !std::exchange(renewed_, true)) log_->warn(path_ + kWrittenAnew);
  } catch (const FileError& error) {
    warn_once(error.what());
  }
}

void MetricsLog::warn_once(const std::string& reason) {
  if (warned_) return;
  warned_ = true;
  log_->warn(concat(reason, "; the run goes on, and lines are missing there"));
}

}  // namespace jigsaw::inline train
