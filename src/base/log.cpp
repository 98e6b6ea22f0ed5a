#include "base/log.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iostream>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/disk.h"
#include "base/error.h"
#include "base/text.h"

namespace jigsaw::inline base {

void print_to_stderr(std::string line) {
  std::ranges::replace(line, '\n', ' ');
  line += '\n';
  for (std::string_view rest = line; !rest.empty();) {
    const ssize_t written = ::write(STDERR_FILENO, rest.data(), rest.size());
    if (written < 0 && errno != EINTR) return;  // nobody is left to be told
    rest.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(written, 0)));
  }
}

void Log::open(const std::string& path) {
  if (!speaks_) return;
  const std::lock_guard lock(mutex_);
  path_ = path;
  file_.emplace(path);
  try {
    file_->open();
  } catch (const FileError& error) {
    file_.reset();
    refuse_output<ConfigError>(error, concat("output: ", error.what()));
  }
}

void Log::info(const std::string& line) {
  if (!speaks_) return;
  const std::lock_guard lock(mutex_);
  clear_status();
  if (!terminal_.quiet) {
    for (const std::string& part : wrapped(line, terminal_.columns, 2)) std::cout << part << '\n';
    std::cout << std::flush;
  }
  write_file(without_colours(line));
}

void Log::warn(const std::string& line) {
  if (!speaks_) return;
  const std::lock_guard lock(mutex_);
  clear_status();
  print_to_stderr("jigsaw-train: warning: " + line);
  write_file("warning: " + line);
}

void Log::error(const std::string& line) {
  if (!speaks_) return;
  const std::lock_guard lock(mutex_);
  clear_status();
  print_to_stderr("jigsaw-train: error: " + line);
  write_file("error: " + line);
}

void Log::record(const std::string& line) {
  if (!speaks_) return;
  const std::lock_guard lock(mutex_);
  write_file(line);
}

void Log::status(const std::string& line) {
  if (!speaks_ || terminal_.quiet || !terminal_.rewrites) return;
  const std::lock_guard lock(mutex_);
  std::cout << '\r' << line << "\033[K" << std::flush;
  status_open_ = true;
}

void Log::end_status(bool stays) {
  const std::lock_guard lock(mutex_);
  if (!stays) return clear_status();
  if (std::exchange(status_open_, false)) std::cout << std::endl;
}

void Log::clear_status() {
  if (std::exchange(status_open_, false)) std::cout << "\r\033[K" << std::flush;
}

void Log::write_file(const std::string& line) {
  if (!file_) return;
  try {
    const bool renewed = file_->append(concat(utc_stamp(), ' ', line, '\n'));
    if (!renewed || std::exchange(renewed_, true)) return;
    const std::string said = concat(path_, kWrittenAnew);
    print_to_stderr("jigsaw-train: warning: " + said);
    file_->append(concat(utc_stamp(), " warning: ", said, '\n'));
  } catch (const FileError& error) {
    if (std::exchange(warned_, true)) return;
    print_to_stderr(
        concat("jigsaw-train: warning: ", error.what(), "; the run goes on, and lines are missing there"));
  }
}

}  // namespace jigsaw::inline base
