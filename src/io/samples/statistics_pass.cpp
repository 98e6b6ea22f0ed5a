#include "samples/statistics_pass.h"

#include "base/file.h"
#include "base/text.h"
#include "comm/from_first.h"
#include "files/digest.h"
#include "files/glob.h"

namespace jigsaw::inline samples {

namespace {

constexpr std::int64_t kMostKeptBytes = std::int64_t{64} << 20;
/// Changes when statistics are computed in another way.
constexpr int kVersion = 11;

constexpr const char* kDigest = "xxh64";  ///< of all else in the file

/// Name, size and time of change of each file; null where these do not tell of a change, as of a store in a
/// folder, whose chunks may be written anew behind them.
Json files_of(const std::vector<std::string>& paths) {
  Json files = Json::array();
  for (const std::string& path : paths) {
    try {
      files.push_back(file_identity(path));
    } catch (const FileError&) {
      return nullptr;
    }
  }
  return files;
}

/// By field, in the order of SeenValues.
Json json_of(const std::map<std::string, SeenValues>& seen) {
  Json json = Json::object();
  for (const auto& [name, values] : seen)
    json[name] = {values.missing, values.least, values.largest,         values.below,
                  values.lowest,  values.jump,  values.jump_deviations, values.jumped};
  return json;
}

/// With what was seen of the values.
Statistics of_kept(const Json& kept, const std::string& source) {
  Statistics statistics = Statistics::from_text(kept.at("statistics").dump(), source);
  for (const auto& [name, values] : kept.at("seen").items()) {
    statistics.seen[name] = {values.at(0).get<double>(), values.at(1).get<double>(),
                             values.at(2).get<double>(), values.at(3).get<double>(),
                             values.at(4).get<double>(), values.at(5).get<double>(),
                             values.at(6).get<double>(), values.at(7).get<Time>()};
  }
  return statistics;
}

std::string text_of(const Json& kept) {
  return kept.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// The text of the statistics kept in a file, "" when there are none of this data, or not as they were kept.
std::string kept_text(const std::string& path, const Json& of) {
  try {
    Json kept = Json::parse(read_text(path, kMostKeptBytes));
    const Json digest = kept.at(kDigest);
    kept.erase(kDigest);
    if (kept.at("of") != of || digest != digest_of_text(text_of(kept))) return "";
    of_kept(kept, path);
    kept.erase("of");
    return kept.dump();
  } catch (const std::exception&) {
    return "";
  }
}

void keep(const std::filesystem::path& path, const Json& of, const Statistics& statistics) {
  Json kept = {
      {"of", of}, {"statistics", Json::parse(statistics.to_text())}, {"seen", json_of(statistics.seen)}};
  kept[kDigest] = digest_of_text(text_of(kept));
  try {
    std::filesystem::create_directories(path.parent_path());
    write_text_atomically(path.string(), text_of(kept) + "\n");
  } catch (const std::exception&) {
    // The next run computes them again.
  }
}

}  // namespace

Statistics shared_statistics(const std::string& file, const std::filesystem::path& folder,
                             Communicator& communicator) {
  const std::string text = from_first(communicator, [&] {
    try {
      return Statistics::load(expand_patterns({file}, folder).front()).to_text();
    } catch (const DataError& error) {
      throw DataError(
          concat("data.normalization takes a JSON file of statistics, or a checkpoint: ", error.what()));
    }
  });
  return Statistics::from_text(text, file);
}

void naming_statistics(const std::string* file, const std::function<void()>& check) {
  try {
    check();
  } catch (const DataError& error) {
    if (file == nullptr) throw;
    throw DataError(concat("data.normalization, ", *file, ": ", error.what()));
  }
}

Statistics spared_statistics(const StatisticsPass& pass, const std::vector<Channel>& channels, Time lead_time,
                             const Statistics* known) {
  Statistics statistics = neutral_statistics(channels, lead_time);
  std::size_t unknown = 0;
  for (auto& [name, field] : statistics.fields) {
    if (known != nullptr && known->fields.contains(name)) {
      field = known->fields.at(name);
    } else if (field.transform != Transform{TransformKind::kNone}.name()) {
      ++unknown;
    }
  }
  if (unknown > 0 && pass.tell) {
    pass.tell(
        concat("statistics are computed when a run begins; here mean 0 and deviation 1 stand for those of ",
               counted(unknown, "variable")));
  }
  return statistics;
}

Statistics cached_statistics(const StatisticsPass& pass, const std::vector<std::string>& paths, Json of,
                             Communicator& communicator, const std::function<Statistics()>& compute) {
  std::filesystem::path path;
  std::string text;
  if (communicator.rank() == 0 && !pass.cache.empty()) {
    of["version"] = kVersion;
    of["files"] = files_of(paths);
    if (!of["files"].is_null()) {
      const std::string digest = digest_of_text(text_of(of));
      path = pass.cache / concat("statistics_", digest, ".json");
      text = kept_text(path.string(), of);
    }
  }
  text = communicator.broadcast_text(text);
  if (!text.empty()) {
    if (pass.tell) pass.tell(concat("statistics are those that a run before computed, in ", path.string()));
    return of_kept(Json::parse(text), "the statistics kept");
  }
  Statistics statistics = compute();
  if (!path.empty() && !pass.spared) keep(path, of, statistics);
  return statistics;
}

}  // namespace jigsaw::inline samples
