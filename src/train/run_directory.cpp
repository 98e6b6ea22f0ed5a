#include "train/run_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "base/disk.h"
#include "base/file_kind.h"
#include "base/heartbeat.h"
#include "base/host.h"
#include "base/text.h"
#include "comm/agreement.h"
#include "config/config.h"

namespace jigsaw::inline train {
namespace {

/// "process 4711 on node12, job 815", as the lock file names its holder.
std::string this_process() {
  const char* const job = std::getenv("SLURM_JOB_ID");
  return concat("process ", ::getpid(), " on ", host_name(), job != nullptr ? concat(", job ", job) : "");
}

/// What the holder wrote into its lock file, fit to stand in a message.
std::string holder_of(const File& lock) {
  std::string text(static_cast<std::size_t>(std::min<std::int64_t>(lock.size(), 300)), '\0');
  lock.read(std::as_writable_bytes(std::span(text)), 0);
  return split(text, '\n').front();
}

/// The number of a lock's holder, where that is a process of this machine which Ctrl-Z has suspended (state T
/// of proc(5)); nothing elsewhere.
std::optional<pid_t> suspended(const std::string& holder) {
  pid_t process = 0;
  if (std::sscanf(holder.c_str(), "process %d on ", &process) != 1) return std::nullopt;
  if (!concat(holder, ",").starts_with(concat("process ", process, " on ", host_name(), ",")))
    return std::nullopt;
  std::string line;
  std::ifstream state(concat("/proc/", process, "/stat"));
  std::getline(state, line);
  const std::size_t name_end = line.rfind(") ");
  const bool stopped =
      name_end != std::string::npos && name_end + 2 < line.size() && line[name_end + 2] == 'T';
  return stopped ? std::optional(process) : std::nullopt;
}

std::string refusal_of_use(const std::string& path, const std::string& holder) {
  const std::optional<pid_t> asleep = suspended(holder);
  return concat(
      "output: the run directory ", quote(path), " is in use by another run",
      holder.empty() ? "" : concat(" (", holder, ")"),
      asleep ? concat(", which is suspended (Ctrl-Z); let it go on by fg in its terminal or kill -CONT ",
                      *asleep, ", or choose another folder")
             : "; wait for its end or choose another folder");
}

/// Whether an open file or folder still has this name.
bool is_at(const File& file, const std::string& path) {
  struct stat held {
  }, there{};
  return ::fstat(file.descriptor(), &held) == 0 && ::stat(path.c_str(), &there) == 0 &&
         held.st_dev == there.st_dev && held.st_ino == there.st_ino;
}

/// Where an open folder is now, as Linux knows it; "": nowhere, or that is not known.
std::string place_of(const File& folder) {
  std::error_code unreadable;
  const std::string place =
      std::filesystem::read_symlink(concat("/proc/self/fd/", folder.descriptor()), unreadable).string();
  return !unreadable && is_at(folder, place) ? place : "";
}

/// Whether a run wrote the file: its config.json says with which versions.
bool is_of_a_run(const std::string& config) {
  try {
    const Json json = load_config(config);
    return json.is_object() && json.contains("versions");
  } catch (const Error&) {
    return false;
  }
}

/// Whether the working folder lies somewhere below a folder.
bool lies_above_working_folder(const std::filesystem::path& folder) {
  std::error_code unreadable;
  const std::filesystem::path here = std::filesystem::current_path(unreadable),
                              canonical = std::filesystem::canonical(folder, unreadable);
  return !unreadable && canonical != here &&
         std::mismatch(canonical.begin(), canonical.end(), here.begin(), here.end()).first == canonical.end();
}

/// A run does not strew its files over what is no run's. Any other folder that holds files is taken, the
/// working folder, too: its configuration and logs of a batch system may be there first.
void refuse_other_folder(const std::string& path) {
  std::error_code unreadable;
  const auto is_there = [&](const char* name) {
    return std::filesystem::exists(std::filesystem::symlink_status(concat(path, "/", name), unreadable));
  };
  const bool of_a_run = is_there("lock") || is_there("checkpoints") || is_there("metrics.jsonl");
  if (of_a_run || !std::filesystem::is_directory(path, unreadable)) return;
  const auto refuse = [&](const std::string& why) {
    throw ConfigError(concat("output: the folder ", quote(path), " ", why,
                             "; name a folder of the run's own, such as ",
                             quote((std::filesystem::path(path) / "run").string())));
  };
  if (is_there("config.json")) {
    if (is_of_a_run(path + "/config.json")) return;
    refuse("holds a config.json that no run wrote, and a run would replace it");
  }
  if (lies_above_working_folder(path)) refuse("lies above the working folder, and no run is in it");
}

/// Where SLURM has started a job again, processes of the start before may outlive it, on a node that failed
/// or in a system call that hangs: they are waited for. Others wait for no more than a
/// look of `check`.
/// @return  false, with errno, where it is not taken.
bool lock_in_time(int lock, Log& log) {
  const char* const restarts = std::getenv("SLURM_RESTART_COUNT");
  const bool again = restarts != nullptr && std::atoi(restarts) > 0;
  const std::chrono::milliseconds most{again ? 120'000 : 500}, between{again ? 1000 : 100};
  const auto begun = std::chrono::steady_clock::now();
  for (bool told = false; ::flock(lock, LOCK_EX | LOCK_NB) != 0; told = true) {
    if (errno != EWOULDBLOCK || std::chrono::steady_clock::now() - begun > most) return false;
    if (again && !told) log.info("waiting for the start before, which still holds the run directory");
    beat();
    std::this_thread::sleep_for(between);
  }
  return true;
}

/// What rank 0 does on the disk; all ranks throw what became of it.
template <typename Work>
void on_first_rank(Communicator& communicator, Work&& work) {
  together(communicator, [&] {
    if (communicator.rank() == 0) work();
  });
}

/// A file that fails there is told as one of `output`.
template <typename Work>
void of_output(Work&& work) {
  try {
    work();
  } catch (const FileError& error) {
    refuse_output<ConfigError>(error, concat("output: ", error.what()));
  }
}

}  // namespace

RunDirectory::RunDirectory(std::string path, Communicator& communicator, Log& log)
    : path_(std::move(path)), communicator_(&communicator) {
  on_first_rank(communicator, [&] {
    create();
    take_lock(log);
    of_output([&] { folder_.emplace(path_, O_RDONLY | O_DIRECTORY); });
    remove_left(path_);
  });
}

void RunDirectory::create() {
  if (path_ == "~" || path_.starts_with("~/"))
    throw ConfigError(concat("output: ", quote(path_),
                             " would be a folder called ~ in the working folder; write the path in full"));
  refuse_other_folder(path_);
  std::error_code error;
  std::filesystem::create_directories(path_, error);
  if (!error && !std::filesystem::is_directory(path_))
    error = std::make_error_code(std::errc::not_a_directory);
  if (error) {
    refuse_output<ConfigError>(
        error, concat("output: cannot create the run directory ", quote(path_), ": ", error.message()));
  }
}

RunDirectory::Holder RunDirectory::holder(const std::string& path) {
  try {
    const File lock(path + "/lock", O_RDONLY | O_NOFOLLOW);
    const bool held = ::flock(lock.descriptor(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    return {held, holder_of(lock)};
  } catch (const FileError&) {
    return {};  // there is none
  }
}

void RunDirectory::check(const std::string& path) {
  const auto refuse = [&](const std::string& why, int error = 0) {
    refuse_output<ConfigError>(
        error, concat("output: the run directory ", quote(path), " cannot be made or written: ", why));
  };
  if (path == "~" || path.starts_with("~/"))
    refuse("it would be a folder called ~ in the working folder; write the path in full");
  std::filesystem::path nearest = std::filesystem::absolute(path).lexically_normal();
  std::error_code error;
  const auto type = [&] { return std::filesystem::symlink_status(nearest, error).type(); };
  while (type() == std::filesystem::file_type::not_found && nearest.has_relative_path())
    nearest = nearest.parent_path();
  if (type() == std::filesystem::file_type::none) refuse(concat(nearest.string(), ": ", error.message()));
  if (!std::filesystem::is_directory(nearest, error)) refuse(concat(nearest.string(), " is no folder"));
  if (::access(nearest.c_str(), W_OK | X_OK) != 0)
    refuse(concat(nearest.string(), ": ", std::generic_category().message(errno)), errno);
  if (const Holder other = holder(path); other.lives) throw ConfigError(refusal_of_use(path, other.name));
  refuse_other_folder(path);
}

/// Whether the lock that is held is the one in the folder.
bool RunDirectory::is_locked_there() const {
  return !lock_ || is_at(*lock_, path_ + "/lock");
}

std::string RunDirectory::gone(Log& log) {
  if (!folder_ || is_locked_there()) return "";
  if (is_at(*folder_, path_)) {
    std::error_code unreadable;
    const auto type = std::filesystem::symlink_status(path_ + "/lock", unreadable).type();
    if (type == std::filesystem::file_type::not_found) {
      // All of the folder may be going at this moment, and is not to be filled again.
      if (!std::exchange(lock_missing_, true)) return "";
      try {
        take_lock(log);
        lock_missing_ = false;
        log.warn(concat(path_, "/lock was removed during the run; the run directory is locked anew"));
        return "";
      } catch (const DiskError&) {
        return "";  // the lock comes when there is room for it
      } catch (const ConfigError&) {
        // Another run was faster.
      }
    }
    return concat(
        "the lock of the run directory ", path_,
        " was replaced, and another run may write there; this one ends, and its checkpoints are kept "
        "until that one goes on");
  }
  const std::string now = place_of(*folder_);
  if (now.empty())
    return concat("the run directory ", path_,
                  " was removed while the run wrote there; what it held is lost");
  return concat("the run directory ", path_, " was moved while the run wrote there; its files are now in ",
                now, "; move it back, or start again with --set output=", shell_word(now), ", to go on");
}

void RunDirectory::take_lock(Log& log) {
  of_output([&] {
    lock_.emplace(path_ + "/lock", O_RDWR | O_CREAT | O_NOFOLLOW);
    if (lock_in_time(lock_->descriptor(), log)) {
      const std::string line = this_process() + "\n";
      lock_->truncate(0);
      lock_->write(std::as_bytes(std::span(line)), 0);
      return;
    }
    const int error = errno;
    if (error == EWOULDBLOCK) throw ConfigError(refusal_of_use(path_, holder_of(*lock_)));
    log.warn(concat("the run directory ", path_, " cannot be locked (",
                    std::generic_category().message(error), "); see that no other run uses it"));
  });
}

void RunDirectory::write_config(const Json& config, const Json& versions, const std::string& command_line) {
  on_first_rank(*communicator_, [&] {
    Json all = config;
    all["versions"] = versions;
    all["command_line"] = command_line;
    of_output([&] {
      write_text_atomically(config_path(), all.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
    });
  });
}

}  // namespace jigsaw::inline train
