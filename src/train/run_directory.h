#pragma once
#include <optional>
#include <string>

#include "base/file.h"
#include "base/log.h"
#include "comm/communicator.h"
#include "config/json.h"

namespace jigsaw::inline train {

/// The folder of one run (`output`), held by a lock that dies with its process: no second run can write
/// there. Rank 0 touches the disk; all ranks fail alike.
class RunDirectory {
 public:
  /// Creates the folder where it is missing and locks it. Collective. Where the file system knows no locks,
  /// a warning says so and the run goes on without.
  /// @throws AgreedError  of code 2, naming `output`: when the folder cannot be created or written, when
  /// another run
  ///                      holds it, or when it is no run's: it has a config.json that no run wrote, or lies
  ///                      above the working folder; of code 4: of its disk (base/disk.h).
  RunDirectory(std::string path, Communicator& communicator, Log& log);

  /// Whether such a folder could be made and written, as far as can be said without making it, and is in no
  /// other run's use; by one rank. @throws ConfigError  naming `output`; DiskError.
  static void check(const std::string& path);

  /// Who has, or had, a run directory's lock, as its file says it.
  struct Holder {
    bool lives = false;  ///< it holds the lock
    std::string name;    ///< "process 4711 on node12, job 815"; "": there is none
  };
  static Holder holder(const std::string& path);

  /// Whether the run cannot go on in it, for somebody moved, removed or replaced it meanwhile, and one
  /// sentence about that, with where its files are now; "": it is where it was made. Where its lock alone was
  /// removed, and is still missing at the next look, it is locked anew, with a warning. Rank 0 looks;
  /// elsewhere "".
  std::string gone(Log& log);

  const std::string& path() const { return path_; }
  std::string config_path() const { return path_ + "/config.json"; }
  std::string metrics_path() const { return path_ + "/metrics.jsonl"; }
  std::string summary_path() const { return path_ + "/summary.json"; }
  std::string machine_path() const { return path_ + "/machine.json"; }
  std::string log_path() const { return path_ + "/log.txt"; }
  std::string checkpoints_path() const { return path_ + "/checkpoints"; }

  /// Writes config.json, atomically: the resolved configuration, then "versions" and "command_line".
  /// Collective.
  /// @throws AgreedError  of code 2, naming `output`, when it cannot be written; of code 4, of its disk.
  void write_config(const Json& config, const Json& versions, const std::string& command_line);

 private:
  void create();
  void take_lock(Log& log);

  std::string path_;
  Communicator* communicator_;
  bool is_locked_there() const;

  bool lock_missing_ = false;          ///< at the last look
  std::optional<File> lock_, folder_;  ///< rank 0's
};

}  // namespace jigsaw::inline train
