#include "samples/shared_files.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <span>

#include "base/heartbeat.h"
#include "base/text.h"
#include "comm/agreement.h"
#include "comm/from_first.h"
#include "config/json.h"
#include "files/glob.h"
#include "samples/new_files.h"

namespace jigsaw::inline samples {

namespace {

/// Any texts, also such as are no UTF-8.
std::string to_bytes(const Json& json) {
  const std::vector<std::uint8_t> bytes = Json::to_cbor(json);
  return {bytes.begin(), bytes.end()};
}

/// The order decides which failure speaks.
void keep_first_of_each(std::vector<std::string>& paths) {
  std::set<std::string> seen;
  std::erase_if(paths, [&](const std::string& path) { return !seen.insert(path).second; });
}

/// Descriptions that travel together, so that their bytes are bounded.
constexpr std::size_t kFilesOfAMessage = 64;

struct Shared {
  External external;
  std::map<std::string, std::unique_ptr<VariableFile>> opened;  ///< by this rank, until they are asked for
  std::map<std::string, std::string> descriptions;              ///< of all

  std::unique_ptr<VariableFile> open(const std::string& path) {
    if (auto own = opened.extract(path)) return std::move(own.mapped());
    return open_described(FileDescription::from_bytes(descriptions.at(path)), external);
  }
};

/// This rank's share of some files: {number, description}, up to the first file that fails: {number, exit
/// code, sentence}.
Json describe_share(std::span<const std::string> paths, const FileOpener& open, int rank, int ranks,
                    Shared& shared) {
  Json found = Json::array();
  for (std::size_t i = static_cast<std::size_t>(rank); i < paths.size();
       i += static_cast<std::size_t>(ranks)) {
    try {
      std::unique_ptr<VariableFile> file = open(paths[i]);
      found.push_back({i, file->describe().to_bytes()});
      file->close();  // until it is read: file handles are few
      shared.opened[paths[i]] = std::move(file);
      beat();
    } catch (const Error& error) {
      found.push_back({i, static_cast<int>(error.code()), error.what()});
      return found;
    } catch (const std::exception& error) {
      found.push_back({i, static_cast<int>(ExitCode::kInternal), error.what()});
      return found;
    }
  }
  return found;
}

/// All descriptions in the order of files, or the failure of the first file that has one.
Json merged(const std::vector<std::string>& parts) {
  std::map<std::size_t, Json> all;
  for (const std::string& part : parts) {
    for (Json& one : Json::from_cbor(part)) {
      const auto number = one.at(0).get<std::size_t>();
      all[number] = std::move(one);
    }
  }
  Json result = Json::array();
  for (auto& [number, one] : all) {
    if (one.size() > 2) return {{"code", one[1]}, {"failure", one[2]}};
    result.push_back(std::move(one[1]));
  }
  return result;
}

}  // namespace

std::vector<std::string> expand_together(const std::vector<std::string>& patterns,
                                         const std::filesystem::path& folder, Communicator& communicator) {
  const std::string names =
      from_first(communicator, [&] { return to_bytes(expand_patterns(patterns, folder)); });
  return Json::from_cbor(names).get<std::vector<std::string>>();
}

FileOpener share_files(std::vector<std::string> paths, Dimensions dimensions, External external,
                       const std::filesystem::path& cache, Communicator& communicator) {
  keep_first_of_each(paths);
  probe_new_files(paths, dimensions, external, cache, communicator);
  FileOpener open = opener(dimensions, external);
  if (communicator.size() == 1) return open;
  const auto shared = std::make_shared<Shared>(Shared{external, {}, {}});
  for (std::size_t first = 0; first < paths.size(); first += kFilesOfAMessage) {
    const std::span<const std::string> some =
        std::span(paths).subspan(first, std::min(kFilesOfAMessage, paths.size() - first));
    const std::vector<std::string> parts = communicator.gather_text(
        to_bytes(describe_share(some, open, communicator.rank(), communicator.size(), *shared)));
    Json known = Json::from_cbor(from_first(communicator, [&] { return to_bytes(merged(parts)); }));
    if (known.is_object())
      throw AgreedError(static_cast<ExitCode>(known.at("code").get<int>()), 0, known.at("failure"));
    for (std::size_t i = 0; i < some.size(); ++i)
      shared->descriptions[some[i]] = std::move(known[i].get_ref<std::string&>());
  }
  return [shared](const std::string& path) { return shared->open(path); };
}

}  // namespace jigsaw::inline samples
