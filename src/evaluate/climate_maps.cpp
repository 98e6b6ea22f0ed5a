#include "evaluate/climate_maps.h"

#include <algorithm>
#include <memory>
#include <numeric>

#include "base/text.h"
#include "comm/agreement.h"
#include "evaluate/climate_report.h"
#include "predict/background_writer.h"
#include "predict/packed_piece.h"

namespace jigsaw::inline evaluate {

namespace {

/// What a map's variable is called and says.
struct MapVariable {
  const char *ending, *long_name;
  bool same_quantity;  ///< as the field: it keeps its standard name
  const char* cell_method;
};
/// In the order of ClimateMap.
constexpr std::array<MapVariable, kClimateMaps> kMapVariables = {
    {{"_mean", "time mean of forecasts", true, "mean"},
     {"_mean_truth", "time mean of the truth", true, "mean"},
     {"_bias", "time mean of forecasts less that of the truth", false, "mean"},
     {"_std", "standard deviation in time of forecasts", true, "standard_deviation"},
     {"_std_truth", "standard deviation in time of the truth", true, "standard_deviation"},
     {"_count", "number of forecasts and leads that count", false, ""}}};

/// Whether the levels of each variable stand in one unit, so that an axis has them all.
bool have_one_unit(FileSet& files, const std::vector<Field>& fields) {
  std::map<std::string, std::string> units;  // by variable
  return std::ranges::all_of(fields, [&](const Field& field) {
    const FieldDescription described = files.describe(field);
    if (!described.level) return true;
    const auto found = described.level->texts.find("units");
    const std::string unit = found == described.level->texts.end() ? "" : found->second;
    return units.insert({field.variable, unit}).first->second == unit;
  });
}

WrittenFields::Definition definition_of(const MapVariable& map, const std::string& name,
                                        const FieldDescription& field, int group) {
  WrittenFields::Definition definition{name + map.ending, {group}, field.texts, field.numbers};
  std::map<std::string, std::string>& texts = definition.texts;
  const std::string what = texts["long_name"].empty() ? name : texts["long_name"];
  texts["long_name"] = concat(map.long_name, ": ", what);
  if (!map.same_quantity) texts.erase("standard_name");
  if (*map.cell_method == '\0') {
    definition.numbers.clear();
    texts = {{"long_name", texts["long_name"]}, {"units", "1"}};
    return definition;
  }
  std::string& methods = texts["cell_methods"];
  methods += concat(methods.empty() ? "" : " ", "time: ", map.cell_method);
  return definition;
}

}  // namespace

ClimateMapsFile::ClimateMapsFile(FileSet& files, const std::vector<Channel>& targets,
                                 const ClimateOptions& options,
                                 const std::map<std::string, std::string>& attributes,
                                 const std::string& path)
    : file_(path, NetcdfOutput::Format::kNetcdf4), fields_(file_) {
  const std::vector<std::string> groups = names_of(options.groups);
  const int group = file_.add_dimension("climate_group", groups.size());
  const int numbers = file_.add_variable("climate_group", NetcdfOutput::Type::kInt, {group});
  add_group_attributes(file_, numbers, groups);
  std::vector<Field> fields;
  for (const Channel& target : targets) fields.push_back(target.field);
  fields_.define_grid(files, fields, !have_one_unit(files, fields));
  for (std::size_t variable = 0; variable < fields_.variables(); ++variable) {
    variables_.emplace_back();
    for (std::size_t map = 0; map < kMapVariables.size(); ++map) {
      variables_.back()[map] = fields_.define(
          variable,
          definition_of(kMapVariables[map], fields_.name(variable), fields_.description(variable), group));
    }
  }
  file_.add_text(NetcdfOutput::kFile, "Conventions", "CF-1.10");
  for (const auto& [name, text] : attributes) file_.add_text(NetcdfOutput::kFile, name.c_str(), text);
  file_.add_numbers(NetcdfOutput::kFile, "spin_up", std::vector{options.spin_up});
  file_.end_definitions();
  std::vector<int> places(groups.size());
  std::iota(places.begin(), places.end(), 0);
  file_.write(numbers, places);
  fields_.write_coordinates(files);
}

void ClimateMapsFile::write(ClimateMap map, std::size_t channel, std::size_t group, const Box& box,
                            std::span<float> values) {
  fields_.write(variables_[fields_.variable_of(channel)][static_cast<std::size_t>(map)], channel,
                {static_cast<std::int64_t>(group)}, box, values);
}

void write_maps(const Rank& rank, Communicator& world, const ClimateScores& scores, std::size_t channels,
                ClimateMapsFile* file) {
  const Layout layout = scores.map_layout();
  std::unique_ptr<BackgroundWriter> writer;
  if (file != nullptr) writer = std::make_unique<BackgroundWriter>();
  for (std::size_t group = 0; group < scores.groups().size(); ++group) {
    const TimeMoments moments = scores.moments(rank.context, group);
    for (std::size_t channel = 0; channel < channels; ++channel) {
      const std::vector<int> one = {static_cast<int>(channel)};
      const auto own = std::make_shared<PackedPiece<float>>(piece_of<float>(rank, layout, one, world.rank()));
      own->values = ClimateScores::maps(moments, own->box, one[0]);
      for (int from = 0; from < world.size(); ++from) {
        const auto piece =
            from > 0 ? std::make_shared<PackedPiece<float>>(bring(rank, world, layout, one, *own, from))
                     : own;
        if (!writer || piece->count() == 0) continue;
        writer->push([file, piece, channel, group] {
          const Box& box = piece->box;
          const auto size = static_cast<std::size_t>(piece->plane());
          for (std::int64_t map = 0; map < box.extent[0]; ++map) {
            file->write(static_cast<ClimateMap>(box.begin[0] + map), channel, group,
                        {{box.begin[1], box.begin[2]}, {box.extent[1], box.extent[2]}},
                        std::span(piece->values).subspan(static_cast<std::size_t>(map) * size, size));
          }
        });
      }
    }
    together(world, [&] {
      if (writer) writer->check();
    });
  }
  together(world, [&] {
    if (!writer) return;
    writer->finish();
    file->close();
  });
}

}  // namespace jigsaw::inline evaluate
