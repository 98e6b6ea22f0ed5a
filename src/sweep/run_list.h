#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "sweep/candidates.h"

namespace jigsaw::inline sweep {

/// One run of a sweep; its folder lies in the sweep's.
struct SweepRun {
  std::string name;
  Assignment set;
};

/// Whether a file is one of those that a sweep keeps in its folder beside the runs.
bool is_sweep_file(const std::filesystem::path& path);

/// The runs of a sweep in the order in which they were first seen, kept in `sweep.json` of the sweep's
/// folder, so that number K means the same run when jobs start together, when one is requeued, and when the
/// search grows later: new runs are added at the end, none is ever moved or dropped.
class RunList {
 public:
  /// Looks at what a run sets that is not in the list yet, before it is written; what it throws leaves the
  /// list.
  using Check = std::function<void(const Assignment&)>;

  /// Adds what the list in the folder lacks of `wanted`, under a lock. Makes the folder where it is missing.
  /// @throws ConfigError  when the folder or the list cannot be read or written.
  static RunList update(const std::filesystem::path& folder, const std::vector<Assignment>& wanted,
                        const Check& check = {});
  /// The list as it is, with what it lacks of `wanted` at the end, without writing anything.
  static RunList preview(const std::filesystem::path& folder, const std::vector<Assignment>& wanted,
                         const Check& check = {});

  const std::vector<SweepRun>& runs() const { return runs_; }
  std::filesystem::path folder_of(const SweepRun& run) const { return folder_ / run.name; }

 private:
  explicit RunList(std::filesystem::path folder) : folder_(std::move(folder)) {}
  std::filesystem::path file() const;
  void read();
  bool add(const std::vector<Assignment>& wanted, const Check& check);

  std::filesystem::path folder_;
  std::vector<SweepRun> runs_;
};

}  // namespace jigsaw::inline sweep
