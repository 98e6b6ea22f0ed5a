#include "fields/channel_layout.h"

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "config/config.h"
#include "files/glob.h"

namespace jigsaw::inline fields {

namespace {

constexpr std::int64_t kMostNameBytes = 16 << 20;
constexpr char kEndOfName = '\0';

Json parse_metadata(const std::string& text, const std::string& path) {
  try {
    return parse_json(text, path);
  } catch (const Error& error) {
    throw DataError(concat("data.makani.metadata: ", error.what()));
  }
}

std::vector<double> numbers_of(const Json& coords, const char* key, const std::string& path) {
  const auto found = coords.find(key);
  if (found == coords.end()) return {};
  const bool numbers = found->is_array() && std::all_of(found->begin(), found->end(),
                                                        [](const Json& one) { return one.is_number(); });
  if (!numbers)
    throw DataError(concat("data.makani.metadata: coords.", key, " of ", path, " is no list of numbers"));
  return found->get<std::vector<double>>();
}

}  // namespace

void declare(Keys<MakaniOptions>& keys) {
  using O = MakaniOptions;
  keys.add("metadata", &O::metadata)
      .doc(
          "A JSON file as Makani's data.json, with h5_path, dhours and coords (channel, lat, lon), relative "
          "to the configuration's folder, else to the working folder; \"\": the keys beside say it.");
  keys.add("variable", &O::variable)
      .not_empty()
      .counts_where(here("metadata").is(""))
      .doc("The data set of each file.");
  keys.add("channels", &O::channels)
      .counts_where(here("metadata").is(""))
      .doc("Names of the channels in their order, such as [\"u10m\", \"t2m\", \"t850\"].");
  keys.add("hours", &O::hours)
      .range(1, 8760)
      .counts_where(here("metadata").is(""))
      .doc("Hours from each time of a file to the next, the first of which is the beginning of the year.");
}

std::string makani_metadata(const MakaniOptions& options, const std::filesystem::path& folder) {
  if (options.metadata.empty()) return "";
  const std::string path = expand_patterns({options.metadata}, folder).front();
  try {
    return concat(path, std::string(1, kEndOfName), read_text(path, kMostNameBytes));
  } catch (const Error& error) {
    throw DataError(concat("data.makani.metadata: ", error.what()));
  }
}

ChannelLayout::ChannelLayout(const MakaniOptions& options, const std::string& metadata)
    : variable(options.variable), channels(options.channels), hours(options.hours) {
  if (metadata.empty()) return;
  const std::size_t end = metadata.find(kEndOfName);
  const std::string path = metadata.substr(0, end);
  const Json json = parse_metadata(metadata.substr(end + 1), path);
  const auto refuse = [&](const std::string& what) {
    throw DataError(concat("data.makani.metadata: ", path, " has no ", what));
  };
  if (!json.is_object() || !json.contains("coords") || !json["coords"].is_object()) refuse("object coords");
  const Json& coords = json["coords"];
  if (!coords.contains("channel") || !coords["channel"].is_array() || coords["channel"].empty())
    refuse("list coords.channel");
  channels.clear();
  for (const Json& name : coords["channel"]) {
    if (!name.is_string()) refuse("list coords.channel of names");
    channels.push_back(name.get<std::string>());
  }
  if (json.contains("h5_path") && json["h5_path"].is_string()) variable = json["h5_path"].get<std::string>();
  if (json.contains("dhours")) {
    const Json& step = json["dhours"];
    if (!step.is_number_integer() || step.get<std::int64_t>() < 1 || step.get<std::int64_t>() > 8760)
      refuse("whole number dhours from 1 to 8760");
    hours = step.get<int>();
  }
  latitudes = numbers_of(coords, "lat", path);
  longitudes = numbers_of(coords, "lon", path);
}

std::vector<double> equiangular_latitudes(std::int64_t rows) {
  const double step = 180.0 / static_cast<double>(rows % 2 == 1 ? std::max<std::int64_t>(rows - 1, 1) : rows);
  std::vector<double> latitudes;
  for (std::int64_t row = 0; row < rows; ++row) latitudes.push_back(90 - step * static_cast<double>(row));
  return latitudes;
}

std::vector<double> equiangular_longitudes(std::int64_t columns) {
  std::vector<double> longitudes;
  for (std::int64_t column = 0; column < columns; ++column)
    longitudes.push_back(360.0 * static_cast<double>(column) / static_cast<double>(columns));
  return longitudes;
}

}  // namespace jigsaw::inline fields
