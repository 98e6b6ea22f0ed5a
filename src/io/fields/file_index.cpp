#include "fields/file_index.h"

#include <cstdlib>
#include <ctime>

#include "base/file.h"
#include "base/text.h"
#include "config/json.h"
#include "fields/file_mark.h"
#include "files/digest.h"
#include "files/grib.h"

namespace jigsaw::inline fields {

namespace {

constexpr std::int64_t kMostBytes = std::int64_t{1} << 28;
/// Of a larger description most is coordinates that every file of a folder repeats; to open the file costs
/// less than to keep it.
constexpr std::int64_t kMostOfAFile = std::int64_t{1} << 15;
/// Changes when descriptions do.
constexpr int kVersion = 11;
constexpr std::size_t kDigits = 16;  ///< of a digest

/// Whether a file was changed so lately that it may change once more within the same tick of the disk's
/// clock.
bool still_warm(const std::string& path) {
  constexpr std::int64_t kSeconds = 2;
  try {
    return std::time(nullptr) - file_state(path).seconds <= kSeconds;
  } catch (const FileError&) {
    return true;
  }
}

}  // namespace

FileIndex::FileIndex(const std::filesystem::path& cache, const std::vector<std::string>& paths,
                     Dimensions dimensions, External external)
    : cache_(cache) {
  // Of what other files say of it, no state of this file tells.
  if (cache.empty() || external == External::kFollowed) return;
  for (const std::string& path : paths) {
    const std::string mark = file_mark(path, dimensions, external);
    if (mark.empty() || still_warm(path)) continue;
    const std::string folder = std::filesystem::absolute(path).lexically_normal().parent_path().string();
    places_[path] = {folder, mark};
    if (!before_.contains(folder)) before_[folder] = kept(folder);
  }
}

/// Of what this build reads, and how it does.
std::filesystem::path FileIndex::file_of(const std::string& folder) const {
  const char* const definitions = std::getenv("ECCODES_DEFINITION_PATH");
  std::string what = concat(kVersion, " ", eccodes_version(), " ", definitions != nullptr ? definitions : "");
  for (const FileFormat& format : file_formats()) what += " " + format.name;
  return cache_ / concat("headers_", digest_of_text(concat(what, " ", folder)));
}

/// A digest, and CBOR behind it: names in descriptions may be no UTF-8.
FileIndex::Descriptions FileIndex::kept(const std::string& folder) const {
  Descriptions found;
  try {
    const std::string text = read_text(file_of(folder).string(), kMostBytes);
    const std::string body = text.substr(std::min(kDigits, text.size()));
    if (digest_of_text(body) != text.substr(0, kDigits)) return {};
    for (Json& entry : Json::from_cbor(body)) found[entry.at(0)] = entry.at(1);
  } catch (const std::exception&) {
    return {};
  }
  return found;
}

std::string FileIndex::description(const std::string& path) const {
  const auto place = places_.find(path);
  if (place == places_.end()) return "";
  const Descriptions& known = before_.at(place->second.folder);
  const auto entry = known.find(place->second.mark);
  return entry == known.end() ? "" : entry->second;
}

void FileIndex::add(const std::string& path, std::string description) {
  const auto place = places_.find(path);
  if (place == places_.end() || std::ssize(description) > kMostOfAFile) return;
  added_[place->second.folder][place->second.mark] = std::move(description);
}

void FileIndex::keep() const {
  for (const auto& [folder, descriptions] : added_) {
    Json all = Json::array();
    std::int64_t bytes = 0;
    const auto take = [&](const Descriptions& some) {
      for (const auto& [mark, description] : some) {
        bytes += std::ssize(mark) + std::ssize(description);
        if (bytes < kMostBytes / 2) all.push_back({mark, description});
      }
    };
    // Of files that this run uses first, those that are kept before those that are new; then what another run
    // may have added since, or what is gone.
    Descriptions others = kept(folder);
    for (const auto& [mark, description] : descriptions) others.erase(mark);
    Descriptions used;
    for (const auto& [path, place] : places_) {
      if (auto own = others.extract(place.mark)) used.insert(std::move(own));
    }
    take(used);
    const std::size_t known = all.size();
    take(descriptions);
    if (all.size() == known) continue;  // there is no room
    take(others);
    const std::vector<std::uint8_t> cbor = Json::to_cbor(all);
    const std::string body(cbor.begin(), cbor.end());
    try {
      std::filesystem::create_directories(cache_);
      write_text_atomically(file_of(folder).string(), digest_of_text(body) + body);
    } catch (const std::exception&) {
      // The next run reads them once more.
    }
  }
}

}  // namespace jigsaw::inline fields
