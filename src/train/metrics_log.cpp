#include "train/metrics_log.h"

#include <fstream>
#include <span>
#include <utility>

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
    const Json json = belonging(line, step);
    if (json.is_null()) continue;
    kept += line + "\n";
    if (std::ssize(kept) >= kWrittenAtOnce) write_kept();
    if (json.value("kind", Json()) == "valid") validated_ = json.at("step").get<std::int64_t>();
  }
  write_kept();
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
