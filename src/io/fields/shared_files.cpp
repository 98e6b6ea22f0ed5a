#include "fields/shared_files.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "base/heartbeat.h"
#include "comm/agreement.h"
#include "comm/from_first.h"
#include "config/json.h"
#include "fields/file_index.h"
#include "fields/new_files.h"
#include "files/chunk_cache.h"
#include "files/glob.h"

namespace jigsaw::inline fields {

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
    FileDescription known = FileDescription::from_bytes(descriptions.at(path));
    // Another run may have described it under another name, as from another folder.
    if (known.stands_for.starts_with(known.path))
      known.stands_for = path + known.stands_for.substr(known.path.size());
    known.path = path;
    return open_described(known, external);
  }
};

/// Files that are looked at together: their numbers among all, and who looks.
struct Share {
  std::vector<std::size_t> numbers;
  std::size_t rank, ranks;
};

/// This rank's share of some files: {number, description}, up to the first file that fails: {number, exit
/// code, sentence}.
Json describe_share(const std::vector<std::string>& paths, const Share& share, const FileOpener& open,
                    Shared& shared) {
  Json found = Json::array();
  for (std::size_t i = share.rank; i < share.numbers.size(); i += share.ranks) {
    const std::size_t number = share.numbers[i];
    try {
      std::unique_ptr<VariableFile> file = open(paths[number]);
      found.push_back({number, file->describe().to_bytes()});
      file->close();  // until it is read: file handles are few
      shared.opened[paths[number]] = std::move(file);
      beat();
    } catch (const Error& error) {
      found.push_back({number, static_cast<int>(error.code()), error.what()});
      return found;
    } catch (const std::exception& error) {
      found.push_back({number, static_cast<int>(ExitCode::kInternal), error.what()});
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
    result.push_back(std::move(one));
  }
  return result;
}

/// What the headers of these files say, {number, description} in their order, each read by one rank.
/// Collective. @throws AgreedError  that of the first file that fails
Json describe_together(const std::vector<std::string>& paths, std::vector<std::size_t> numbers,
                       const FileOpener& open, Shared& shared, Communicator& communicator) {
  if (numbers.empty()) return Json::array();
  const Share share{std::move(numbers), static_cast<std::size_t>(communicator.rank()),
                    static_cast<std::size_t>(communicator.size())};
  const std::vector<std::string> parts =
      communicator.gather_text(to_bytes(describe_share(paths, share, open, shared)));
  Json found = Json::from_cbor(from_first(communicator, [&] { return to_bytes(merged(parts)); }));
  if (found.is_object())
    throw AgreedError(static_cast<ExitCode>(found.at("code").get<int>()), 0, found.at("failure"));
  return found;
}

/// Chunks of files that are opened from now on are not taken for those of what was opened before. Collective.
void begin_data(Communicator& communicator) {
  ChunkCache& cache = ChunkCache::shared();
  const std::string number = from_first(communicator, [&] { return std::to_string(cache.new_data()); });
  cache.new_data(std::stoull(number));
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
  begin_data(communicator);
  probe_new_files(paths, dimensions, external, cache, communicator);
  FileOpener open = opener(dimensions, external);
  if (communicator.size() == 1 && cache.empty()) return open;
  const auto shared = std::make_shared<Shared>(Shared{external, {}, {}});
  // Of rank 0; those of the others know nothing.
  FileIndex index(communicator.rank() == 0 ? cache : "", paths, dimensions, external);
  for (std::size_t first = 0; first < paths.size(); first += kFilesOfAMessage) {
    const std::size_t end = std::min(first + kFilesOfAMessage, paths.size());
    Json known = Json::from_cbor(from_first(communicator, [&] {
      Json descriptions = Json::array();
      for (std::size_t i = first; i < end; ++i) descriptions.push_back(index.description(paths[i]));
      return to_bytes(descriptions);
    }));
    std::vector<std::size_t> unknown;
    for (std::size_t i = first; i < end; ++i) {
      auto& description = known[i - first].get_ref<std::string&>();
      if (description.empty()) unknown.push_back(i);
      shared->descriptions[paths[i]] = std::move(description);
    }
    for (Json& one : describe_together(paths, std::move(unknown), open, *shared, communicator)) {
      const std::string& path = paths[one[0].get<std::size_t>()];
      shared->descriptions[path] = std::move(one[1].get_ref<std::string&>());
      index.add(path, shared->descriptions[path]);
    }
  }
  index.keep();
  return [shared](const std::string& path) { return shared->open(path); };
}

}  // namespace jigsaw::inline fields
