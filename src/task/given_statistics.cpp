#include "task/given_statistics.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "checkpoint/folder.h"
#include "comm/agreement.h"
#include "comm/from_first.h"
#include "config/changed_keys.h"

namespace jigsaw::inline task {
namespace {

namespace fs = std::filesystem;

/// A checkpoint's manifest says these, if it says any.
std::optional<Json> of_manifest(const StoredManifest& stored, const std::string& from) {
  const Json& extra = stored.manifest.extra;
  if (!extra.is_object() || !extra.contains("statistics")) return std::nullopt;
  return Json{{"statistics", extra.at("statistics")}, {"from", from}, {"data", extra.value("data", Json())}};
}

/// @throws DataError
GivenStatistics given_by(const Json& found) {
  const std::string from = found.at("from").get<std::string>();
  return {Statistics::from_text(found.at("statistics").dump(), concat("the checkpoint ", from)), from,
          order_of(found.at("data"))};
}

StoredManifest manifest_of(const std::string& checkpoint) {
  return read_manifest(manifest_text(checkpoint), manifest_path(checkpoint));
}

/// What `find` gives on rank 0, on all ranks.
std::optional<GivenStatistics> shared(Communicator& world, const std::function<std::optional<Json>()>& find) {
  std::string text;
  together(world, [&] {
    if (world.rank() != 0) return;
    as_checkpoint_error([&] {
      const std::optional<Json> found = find();
      if (!found) return;
      given_by(*found);
      text = found->dump(-1, ' ', false, Json::error_handler_t::replace);
    });
  });
  text = world.broadcast_text(text);
  if (text.empty()) return std::nullopt;
  return given_by(Json::parse(text));
}

/// The checkpoint that a run goes on from, as far as it can be told without reading all of it.
std::string resumed(const Configuration& configuration, const std::string& resume) {
  if (resume == "never") return "";
  if (resume != "auto") return checkpoint_at(resume);
  const std::string folder = configuration.output + "/checkpoints";
  const CheckpointFolder::Survey present = CheckpointFolder(folder).survey();
  return present.whole.empty() ? "" : concat(folder, "/", present.whole.front().name);
}

}  // namespace

Json order_json(const Grid& grid) {
  Json order = Json::object();
  if (!grid.corners.empty()) {
    for (const double degrees : grid.corners)
      order["corners"].push_back(std::isnan(degrees) ? Json() : Json(degrees));
  }
  if (!grid.geographic) return order;
  for (const auto& [name, axis] : {std::pair{"rows", 0}, std::pair{"columns", 1}}) {
    const std::vector<double>& all = grid.axes[static_cast<std::size_t>(axis)].coordinates;
    order[name] = {all.front(), all.back()};
  }
  return order;
}

namespace {

/// Four places, of which some may be missing; none where there are no such numbers.
std::vector<double> corners_in(const Json& data) {
  std::vector<double> corners;
  if (!data.is_object() || !data.contains("corners") || !data.at("corners").is_array()) return corners;
  for (const Json& degrees : data.at("corners")) {
    if (!degrees.is_number() && !degrees.is_null()) return {};
    corners.push_back(degrees.is_null() ? std::numeric_limits<double>::quiet_NaN() : degrees.get<double>());
  }
  return corners.size() == 8 ? corners : std::vector<double>();
}

}  // namespace

std::optional<GridOrder> order_of(const Json& data) {
  const auto ends = [&](const char* name) -> std::optional<std::array<double, 2>> {
    if (!data.is_object() || !data.contains(name)) return std::nullopt;
    const Json& both = data.at(name);
    if (!both.is_array() || both.size() != 2 || !both[0].is_number() || !both[1].is_number())
      return std::nullopt;
    return std::array{both[0].get<double>(), both[1].get<double>()};
  };
  if (const std::vector<double> corners = corners_in(data); !corners.empty())
    return GridOrder{{}, {}, corners};
  const auto rows = ends("rows"), columns = ends("columns");
  if (!rows || !columns) return std::nullopt;
  return GridOrder{*rows, *columns};
}

std::optional<GivenStatistics> statistics_of(const StoredManifest& stored, const std::string& checkpoint) {
  const std::optional<Json> found = of_manifest(stored, checkpoint);
  if (!found) return std::nullopt;
  try {
    return given_by(*found);
  } catch (const DataError& error) {
    throw CheckpointError(error.what());
  }
}

std::optional<GivenStatistics> named_statistics(const DataOptions& options, const fs::path& folder,
                                                Communicator& world) {
  const std::string* name = options.statistics_file();
  if (name == nullptr) return std::nullopt;
  return shared(world, [&]() -> std::optional<Json> {
    for (const fs::path& path : {folder / *name, fs::path(*name)}) {
      std::error_code absent;
      if (!fs::is_directory(path, absent) && !is_named_as_pointer(path.string())) continue;
      return with_checkpoint_at(path.string(), [](const std::string& checkpoint) {
        std::optional<Json> found = of_manifest(manifest_of(checkpoint), checkpoint);
        if (!found)
          throw DataError(concat("data.normalization: the checkpoint ", checkpoint, " has no statistics"));
        return found;
      });
    }
    return std::nullopt;
  });
}

namespace {

/// Whether a run may go on with the statistics of a checkpoint: data.normalization does not ask for new ones,
/// and the values that they are of are made and counted as they were.
/// @param before  the configuration that the checkpoint holds.
bool may_keep(const Json& before, const Configuration& now) {
  static constexpr std::array kMadeOtherwise = {"data.transforms",  "data.fill",    "data.intensit",
                                                "data.percentiles", "data.missing", "data.deaccumulate"};
  if (!before.is_object()) return false;
  for (const std::string& key : changed_keys(with_new_keys(before), to_json(now))) {
    if (key == "data.normalization" && now.data.normalization) return false;
    if (std::ranges::any_of(kMadeOtherwise, [&](const char* begin) { return key.starts_with(begin); }))
      return false;
  }
  return true;
}

}  // namespace

std::optional<GivenStatistics> inherited_statistics(const Configuration& configuration,
                                                    const std::string& resume, bool allow_change,
                                                    const std::string& init_from, Communicator& world) {
  if (configuration.data.statistics_file() != nullptr) return std::nullopt;
  return shared(world, [&]() -> std::optional<Json> {
    if (const std::string own = resumed(configuration, resume); !own.empty()) {
      const StoredManifest stored = manifest_of(own);
      const Json& extra = stored.manifest.extra;
      if (!extra.is_object()) return std::nullopt;
      const bool taken = extra.contains("statistics_from");
      if ((!taken && !allow_change) || !may_keep(extra.value("configuration", Json()), configuration))
        return std::nullopt;
      return of_manifest(stored, taken ? extra.at("statistics_from").get<std::string>() : own);
    }
    if (init_from.empty() || configuration.data.normalization) return std::nullopt;
    return with_checkpoint_at(init_from, [](const std::string& checkpoint) {
      return of_manifest(manifest_of(checkpoint), checkpoint);
    });
  });
}

std::optional<GridOrder> inherited_order(const Configuration& configuration, const std::string& resume,
                                         const std::string& init_from, Communicator& world) {
  const std::string data = from_first(world, [&]() -> std::string {
    try {
      const auto data_of = [](const std::string& checkpoint) {
        const StoredManifest stored = manifest_of(checkpoint);
        const Json& extra = stored.manifest.extra;
        const Json found = extra.is_object() ? extra.value("data", Json()) : Json();
        return found.dump(-1, ' ', false, Json::error_handler_t::replace);
      };
      if (const std::string own = resumed(configuration, resume); !own.empty()) return data_of(own);
      return init_from.empty() ? "null" : with_checkpoint_at(init_from, data_of);
    } catch (const Error&) {
      return "null";  // who opens the checkpoint says what is wrong with it
    }
  });
  return order_of(Json::parse(data));
}

void tell_statistics(const std::optional<GivenStatistics>& given, bool named, const Statistics& used,
                     const std::string& init_from, Log& log) {
  if (!given) {
    if (!init_from.empty() && !named) {
      log.info(
          concat("statistics are those of the training data, for the checkpoint ", init_from, " holds none"));
    } else if (!init_from.empty()) {
      log.info(concat("statistics are not those that the parameters of ", init_from,
                      " were trained with, but as data.normalization says; data.normalization \"", init_from,
                      "\" takes them over"));
    }
    return;
  }
  std::size_t taken = 0;
  for (const auto& [name, field] : used.fields) {
    const auto found = given->statistics.fields.find(name);
    if (found != given->statistics.fields.end() && found->second.mean == field.mean &&
        found->second.deviation == field.deviation)
      ++taken;
  }
  const std::size_t computed = used.fields.size() - taken;
  log.info(concat("statistics of ", taken, " variables are those of ", given->from,
                  computed > 0
                      ? concat("; of ", computed,
                               " they are given in the configuration or computed over the training period")
                      : "",
                  "; data.normalization \"auto\" computes all anew"));
}

}  // namespace jigsaw::inline task
