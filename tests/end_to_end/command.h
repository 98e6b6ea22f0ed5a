#pragma once
#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/quoted.h"
#include "support/source_dir.h"

namespace jigsaw::e2e {

using Json = nlohmann::ordered_json;

/// What a finished command left behind.
struct Outcome {
  int exit_code = 0;
  std::string out, err;
  /// What jigsaw-train itself said on stderr, whatever launchers and libraries wrote before or behind it on
  /// the same line: "jigsaw-train: error: …" or "… warning: …" up to the end of the line.
  std::vector<std::string> said() const;
  /// The errors among it.
  std::vector<std::string> errors() const;
};

/// A folder of its own, removed with it.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  const std::filesystem::path& path() const { return path_; }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  void write(const std::string& name, const std::string& text) const;

 private:
  std::filesystem::path path_;
};

using testing::quoted;

/// Runs `jigsaw-train arguments…` on this many ranks (1: without mpirun), in a folder of its own; quoting the
/// arguments is the caller's.
Outcome run(int ranks, const std::string& arguments, int threads = 1);

/// A command that runs, in a session of its own; killed with the value if need be. One at a time: every
/// process that loses its parent meanwhile is taken for one of it.
class Running {
 public:
  Running(int ranks, const std::string& arguments, const std::string& program = JIGSAW_TRAIN);
  ~Running();
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  /// The working folder of its ranks.
  const std::filesystem::path& folder() const { return folder_.path(); }
  /// The processes of jigsaw-train that have started, by rank; each has told its number.
  std::vector<pid_t> ranks() const;
  /// What stands on stdout so far.
  std::string said() const;
  /// Sends a signal to every rank, as srun does.
  void signal(int number) const;
  /// Sends a signal to mpirun, which passes some on to the ranks.
  void signal_launcher(int number) const;
  /// Waits until a condition holds; false when the command has ended before it did.
  bool until(const std::function<bool()>& condition) const;
  /// SIGKILL for every process; returns when all are gone.
  void kill_all();
  /// Waits for its end.
  Outcome collect();

 private:
  TemporaryFolder folder_;
  int count_;
  pid_t child_ = -1;  ///< -1: ended, with this
  int status_ = 0;
};
/// The text of a file; "" when there is none.
std::string read(const std::filesystem::path& path);

/// The real ERA5 file and the real CT volume, or "" where they are not.
std::string real_era5();
std::string real_ct();
using testing::source_dir;

/// The lines of a kind in a metrics.jsonl.
std::vector<Json> metrics(const std::string& run_directory, const std::string& kind);
/// A metrics.jsonl without what differs from run to run: times of the day, durations, rates.
std::string timeless(const std::string& run_directory);
/// One number of each line.
std::vector<double> series(const std::vector<Json>& lines, const std::string& key);

/// A configuration of a small mixer on the real file, or on sample data written to `folder` where that is
/// absent.
Json small_config(const TemporaryFolder& folder);

}  // namespace jigsaw::e2e
