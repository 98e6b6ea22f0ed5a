#include "evaluate/map_file.h"

#include <algorithm>
#include <memory>

#include "base/text.h"
#include "comm/agreement.h"
#include "predict/background_writer.h"
#include "predict/packed_piece.h"

namespace jigsaw::inline evaluate {

namespace {

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
  if (map.number) {
    definition.numbers.clear();
    texts = {{"long_name", texts["long_name"]}, {"units", "1"}};
  }
  if (*map.cell_method == '\0') return definition;
  std::string& methods = texts["cell_methods"];
  methods += concat(methods.empty() ? "" : " ", "time: ", map.cell_method);
  return definition;
}

}  // namespace

MapFile::MapFile(FileSet& files, const std::vector<Channel>& targets, const MapContents& contents,
                 const std::string& path)
    : file_(path, NetcdfOutput::Format::kNetcdf4), fields_(file_) {
  const int group = file_.add_dimension(contents.along.c_str(), contents.places.size());
  const int numbers = file_.add_variable(contents.along.c_str(), NetcdfOutput::Type::kInt, {group});
  contents.describe(file_, numbers);
  std::vector<Field> fields;
  for (const Channel& target : targets) fields.push_back(target.field);
  fields_.define_grid(files, fields, !have_one_unit(files, fields));
  for (std::size_t variable = 0; variable < fields_.variables(); ++variable) {
    variables_.emplace_back();
    for (const MapVariable& map : contents.maps) {
      variables_.back().push_back(fields_.define(
          variable, definition_of(map, fields_.name(variable), fields_.description(variable), group)));
    }
  }
  file_.add_text(NetcdfOutput::kFile, "Conventions", "CF-1.10");
  for (const auto& [name, text] : contents.attributes)
    file_.add_text(NetcdfOutput::kFile, name.c_str(), text);
  file_.end_definitions();
  file_.write(numbers, contents.places);
  fields_.write_coordinates(files);
}

void MapFile::write(std::size_t map, std::size_t channel, std::size_t group, const Box& box,
                    std::span<float> values) {
  fields_.write(variables_[fields_.variable_of(channel)][map], channel, {static_cast<std::int64_t>(group)},
                box, values);
}

void write_maps(const Rank& rank, Communicator& world, const PointMoments& moments, int maps,
                const MapsOfChannel& maps_of, std::size_t channels, MapFile* file) {
  const Layout layout = moments.map_layout(maps);
  std::unique_ptr<BackgroundWriter> writer;
  if (file != nullptr) writer = std::make_unique<BackgroundWriter>();
  for (std::size_t group = 0; group < moments.groups(); ++group) {
    const TimeMoments of_group = moments.on_host(rank.context, group);
    for (std::size_t channel = 0; channel < channels; ++channel) {
      const std::vector<int> one = {static_cast<int>(channel)};
      const auto own = std::make_shared<PackedPiece<float>>(piece_of<float>(rank, layout, one, world.rank()));
      own->values = maps_of(of_group, own->box, one[0]);
      for (int from = 0; from < world.size(); ++from) {
        const auto piece =
            from > 0 ? std::make_shared<PackedPiece<float>>(bring(rank, world, layout, one, *own, from))
                     : own;
        if (!writer || piece->count() == 0) continue;
        writer->push([file, piece, channel, group] {
          const Box& box = piece->box;
          const auto size = static_cast<std::size_t>(piece->plane());
          for (std::int64_t map = 0; map < box.extent[0]; ++map) {
            file->write(static_cast<std::size_t>(box.begin[0] + map), channel, group,
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
