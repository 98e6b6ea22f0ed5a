#include "sweep/run_list.h"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <set>

#include "base/disk.h"
#include "base/file.h"
#include "base/text.h"
#include "sweep/run_name.h"

namespace jigsaw::inline sweep {
namespace {

constexpr std::int64_t kLongestFile = std::int64_t{256} << 20;
constexpr int kFormat = 1;
constexpr const char *kListName = "sweep.json", *kLockName = "sweep.lock";

std::vector<std::string> all_keys(const std::vector<SweepRun>& runs, const std::vector<Assignment>& wanted) {
  std::set<std::string> keys;
  for (const SweepRun& run : runs) {
    for (const auto& [key, value] : run.set) keys.insert(key);
  }
  for (const Assignment& run : wanted) {
    for (const auto& [key, value] : run) keys.insert(key);
  }
  return {keys.begin(), keys.end()};
}

/// A name out of the list must not lead elsewhere.
bool is_folder_name(const std::string& name) {
  return !name.empty() && name.front() != '.' && name.find('/') == std::string::npos;
}

}  // namespace

bool is_sweep_file(const std::filesystem::path& path) {
  std::error_code unreadable;
  return (path.filename() == kListName || path.filename() == kLockName) &&
         std::filesystem::is_regular_file(path, unreadable);
}

std::filesystem::path RunList::file() const {
  return folder_ / kListName;
}

void RunList::read() {
  std::error_code unreadable;
  if (!std::filesystem::exists(std::filesystem::symlink_status(file(), unreadable))) return;
  const Json json = parse_json(read_text(file().string(), kLongestFile), file().string());
  try {
    if (json.at("format").get<int>() != kFormat)
      throw ConfigError(concat(quote(file().string()), " is of another version of jigsaw-train"));
    for (const Json& entry : json.at("runs")) {
      SweepRun run{entry.at("name").get<std::string>(), entry.at("set").get<Assignment>()};
      if (!is_folder_name(run.name))
        throw ConfigError(concat(quote(file().string()), " names a run ", quote(run.name),
                                 ", which is no folder of the sweep"));
      runs_.push_back(std::move(run));
    }
  } catch (const Json::exception&) {
    throw ConfigError(concat(quote(file().string()),
                             " is not the list of runs that a sweep writes; move it away to begin anew"));
  }
}

bool RunList::add(const std::vector<Assignment>& wanted, const Check& check) {
  const std::size_t before = runs_.size();
  const std::vector<std::string> keys = all_keys(runs_, wanted);
  std::set<std::string> known;
  for (const SweepRun& run : runs_) known.insert(Json(run.set).dump());
  for (const Assignment& run : wanted) {
    if (!known.insert(Json(run).dump()).second) continue;
    if (check) check(run);
    runs_.push_back({run_name(run, keys), run});
  }
  return runs_.size() > before;
}

RunList RunList::preview(const std::filesystem::path& folder, const std::vector<Assignment>& wanted,
                         const Check& check) {
  RunList list(folder);
  try {
    list.read();
  } catch (const FileError& error) {
    throw ConfigError(error.what());
  }
  list.add(wanted, check);
  return list;
}

RunList RunList::update(const std::filesystem::path& folder, const std::vector<Assignment>& wanted,
                        const Check& check) {
  RunList list(folder);
  try {
    std::error_code failed;
    // A sweep that is refused leaves no folder.
    const bool is_new = !std::filesystem::exists(folder, failed);
    for (std::size_t i = 0; is_new && i < wanted.size(); ++i) check(wanted[i]);
    std::filesystem::create_directories(folder, failed);
    if (failed)
      refuse_output<ConfigError>(failed, concat("output: cannot create the sweep's folder ",
                                                quote(folder.string()), ": ", failed.message()));
    // Where the file system knows no locks, runs that were added at the same moment may be added twice, never
    // lost: the file is replaced whole.
    const File lock((folder / kLockName).string(), O_RDWR | O_CREAT | O_NOFOLLOW);
    ::flock(lock.descriptor(), LOCK_EX);
    list.read();
    if (!list.add(wanted, is_new ? [](const Assignment&) {} : check)) return list;
    Json json = {{"format", kFormat}, {"runs", Json::array()}};
    for (const SweepRun& run : list.runs_) json["runs"].push_back({{"name", run.name}, {"set", run.set}});
    write_text_atomically(list.file().string(), json.dump(1) + "\n");
  } catch (const FileError& error) {
    refuse_output<ConfigError>(error, error.what());
  }
  return list;
}

}  // namespace jigsaw::inline sweep
