#include <array>
#include <cctype>
#include <filesystem>
#include <limits>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "fields/data_forms.h"
#include "files/netcdf_output.h"
#include "files/variable_file.h"
#include "report/examples.h"
#include "report/run_record.h"

namespace jigsaw::inline report {

namespace {

constexpr std::int64_t kMostExampleText = std::int64_t{256} << 20;
constexpr int kFormat = 1;

/// The planes of a kind in the file: "t2m", "t2m_truth", "t2m_input"; where a name is none of NetCDF's, with
/// "_" in place of what is not.
std::string variable_of(const ExamplePlane& plane, const char* kind) {
  std::string name = plane.name;
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '.') c = '_';
  }
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0]))) name = "v_" + name;
  return name + kind;
}

struct Kind {
  const char* suffix;
  const char* long_name;
  std::vector<float> ExamplePlane::*values;
};
const std::array<Kind, 3> kKinds = {{{"", "as predicted", &ExamplePlane::predicted},
                                     {"_truth", "as it was", &ExamplePlane::truth},
                                     {"_input", "as it was given to the model", &ExamplePlane::input}}};

Json json_of(const Examples& examples) {
  Json json = {{"format", kFormat},
               {"step", examples.step},
               {"start", examples.start},
               {"of", examples.of},
               {"classes", examples.classes},
               {"slice", examples.slice},
               {"geographic", examples.grid.geographic},
               {"periodic", examples.grid.periodic},
               {"rows", examples.grid.rows},
               {"columns", examples.grid.columns},
               {"upwards", examples.grid.upwards},
               {"planes", Json::array()},
               {"targets", examples.targets},
               {"rmse_by_row", examples.rmse_by_row}};
  if (examples.in_steps) {
    json["lead_steps"] = examples.lead_time;
  } else {
    json["lead_hours"] = hours_json(examples.lead_time);
  }
  for (const ExamplePlane& plane : examples.planes)
    json["planes"].push_back({{"name", plane.name}, {"units", plane.units}});
  return json;
}

void write_planes(const Examples& examples, const std::string& path) {
  using Type = NetcdfOutput::Type;
  NetcdfOutput file(path, NetcdfOutput::Format::kNetcdf4);
  const PlaneGrid& grid = examples.grid;
  const char *row_name = grid.geographic ? "latitude" : "row",
             *column_name = grid.geographic ? "longitude" : "column";
  const int rows = file.add_dimension(row_name, grid.rows.size()),
            columns = file.add_dimension(column_name, grid.columns.size());
  const int row = file.add_variable(row_name, Type::kDouble, {rows}),
            column = file.add_variable(column_name, Type::kDouble, {columns});
  if (grid.geographic) {
    file.add_text(row, "units", "degrees_north");
    file.add_text(column, "units", "degrees_east");
  }
  std::vector<std::pair<int, const std::vector<float>*>> planes;
  for (const ExamplePlane& plane : examples.planes) {
    for (const Kind& kind : kKinds) {
      const std::vector<float>& values = plane.*kind.values;
      if (values.empty()) continue;
      const int variable =
          file.add_variable(variable_of(plane, kind.suffix).c_str(), Type::kFloat, {rows, columns});
      file.add_text(variable, "long_name", concat(plane.name, " ", kind.long_name));
      if (!plane.units.empty()) file.add_text(variable, "units", plane.units);
      file.add_number(variable, "_FillValue", std::numeric_limits<float>::quiet_NaN());
      planes.emplace_back(variable, &values);
    }
  }
  file.add_text(NetcdfOutput::kFile, "Conventions", "CF-1.10");
  file.add_text(NetcdfOutput::kFile, "title", concat("the first validation sample at step ", examples.step));
  file.end_definitions();
  file.write(row, grid.rows);
  file.write(column, grid.columns);
  for (const auto& [variable, values] : planes) file.write(variable, *values);
  file.close();
}

Examples parsed(const Json& json) {
  Examples examples;
  examples.step = json.at("step").get<std::int64_t>();
  examples.in_steps = json.contains("lead_steps");
  examples.lead_time =
      examples.in_steps ? json.at("lead_steps").get<Time>() : from_hours(json.at("lead_hours").get<double>());
  examples.start = json.at("start").get<std::int64_t>();
  examples.of = json.value("of", "");
  examples.classes = json.at("classes").get<int>();
  examples.slice = json.at("slice").get<std::int64_t>();
  examples.grid = {json.at("geographic").get<bool>(), json.at("periodic").get<bool>(),
                   numbers_of(json.at("rows")), numbers_of(json.at("columns")), json.value("upwards", false)};
  for (const Json& plane : json.at("planes"))
    examples.planes.push_back(
        {plane.at("name").get<std::string>(), plane.at("units").get<std::string>(), {}, {}, {}});
  examples.targets = json.at("targets").get<std::vector<std::string>>();
  for (const Json& rows : json.at("rmse_by_row")) examples.rmse_by_row.push_back(numbers_of(rows));
  return examples;
}

void read_planes(Examples& examples, const std::string& path) {
  const auto file = open_variables(path, Dimensions::kByName);
  const Shape shape{std::ssize(examples.grid.rows), std::ssize(examples.grid.columns)};
  for (ExamplePlane& plane : examples.planes) {
    for (const Kind& kind : kKinds) {
      const FileVariable* variable = file->find(variable_of(plane, kind.suffix));
      if (variable == nullptr) continue;
      if (!(variable->shape == shape)) throw DataError(concat(path, " is not of the grid in examples.json"));
      std::vector<float>& values = plane.*kind.values;
      values.resize(static_cast<std::size_t>(shape.count()));
      file->read<float>(*variable, Box::whole(shape), values);
    }
  }
}

}  // namespace

void write_examples(const Examples& examples, const std::string& folder) {
  const std::string planes = folder + "/examples.nc", text = folder + "/examples.json";
  std::error_code absent;
  std::filesystem::remove(text, absent);  // until both are those of this step
  Replacement replacement(planes);
  write_planes(examples, replacement.file().path());
  replacement.commit();
  write_text_atomically(text, json_of(examples).dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
}

std::optional<Examples> read_examples(const std::string& folder) {
  const std::string planes = folder + "/examples.nc", text = folder + "/examples.json";
  try {
    if (!is_file(text) || !is_file(planes)) return std::nullopt;
    Examples examples = parsed(Json::parse(read_text(text, kMostExampleText)));
    read_planes(examples, planes);
    return examples;
  } catch (const Json::exception& error) {
    throw DataError(concat(text, " is malformed: ", sentence_of(error)));
  } catch (const FileError& error) {
    throw DataError(error.what());
  }
}

}  // namespace jigsaw::inline report
