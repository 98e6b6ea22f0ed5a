// What ecCodes says of a GRIB message: its parameter and kind of product, its level, time and member.
#include <eccodes.h>
#include <fcntl.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <mutex>

#include "files/grib_handle.h"
#include "files/io_lock.h"

namespace jigsaw::inline files {

namespace {

/// ecCodes prints its errors, which its results say, too.
void keep_eccodes_quiet() {
  static std::once_flag once;
  std::call_once(once, [] {
    codes_context_set_logging_proc(codes_context_get_default(),
                                   [](const codes_context*, int, const char*) {});
  });
}

/// Seconds since 1970 of a date and a time of the day as ecCodes gives them, 20200131 and 1830.
std::int64_t seconds_of(std::int64_t date, std::int64_t time) {
  const std::chrono::year_month_day day{std::chrono::year(static_cast<int>(date / 10000)),
                                        std::chrono::month(static_cast<unsigned>(date / 100 % 100)),
                                        std::chrono::day(static_cast<unsigned>(date % 100))};
  constexpr std::int64_t kDay = 86400;
  return std::chrono::sys_days(day).time_since_epoch().count() * kDay + (time / 100) * 3600 + time % 100 * 60;
}

/// Hours of a unit of steps (code table 4.4, and ecCodes' own for edition 1); 0 of months and longer ones,
/// which are of other lengths from time to time, and of what is unknown.
double hours_of_unit(std::int64_t unit) {
  switch (unit) {
    case 0:
      return 1. / 60;
    case 1:
      return 1;
    case 2:
      return 24;
    case 10:
      return 3;
    case 11:
      return 6;
    case 12:
      return 12;
    case 13:
      return 1. / 3600;
    case 14:
      return 0.25;
    case 15:
      return 0.5;
    default:
      return 0;
  }
}

/// How values were made in time (CF, appendix E); "" where CF has no word for it. Edition 1 does not tell
/// minima from maxima.
std::string cell_methods_of(const GribFile::Handle& handle, const std::string& step_type) {
  if (step_type == "instant") return "time: point";
  if (step_type == "accum") return "time: sum";
  if (step_type == "rms") return "time: root_mean_square";
  if (step_type == "sd") return "time: standard_deviation";
  if (step_type.starts_with("avg")) return "time: mean";
  if (handle.integer("edition") == 1) return "";
  if (step_type == "max") return "time: maximum";
  return step_type == "min" ? "time: minimum" : "";
}

/// Hours over which the values of a message are summed, averaged or compared.
double time_range_of(const GribFile::Handle& handle, const std::string& step_type) {
  if (step_type == "instant") return 0;
  const auto begin = handle.find("startStep"), end = handle.find("endStep");
  if (!begin || !end) return 0;
  return static_cast<double>(*end - *begin) * hours_of_unit(handle.find("stepUnits").value_or(1));
}

/// The number of a message's member of an ensemble, of a control run 0; -1 where it is of none. Headers of
/// edition 1 have the number 0 where there is no ensemble, too.
double member_of(const GribFile::Handle& handle) {
  const std::string type = handle.find_text("dataType");
  const std::optional<std::int64_t> number = handle.find("number");
  const bool member = number && (*number != 0 || handle.integer("edition") != 1 || type == "pf" ||
                                 handle.find("totalNumber").value_or(0) > 1);
  if (member) return static_cast<double>(*number);
  return type == "cf" ? 0 : -1;
}

/// Whether a template of edition 2 (code table 4.0) is one of analyses and forecasts, of controls and
/// members, at a time or over some of it: of the atmosphere, of its constituents and aerosols, of
/// reforecasts, of what was processed afterwards, of waves.
bool holds_states(std::int64_t number) {
  constexpr std::array<std::pair<std::int64_t, std::int64_t>, 9> kRanges = {
      {{0, 1}, {8, 8}, {11, 11}, {40, 49}, {57, 58}, {60, 61}, {67, 68}, {70, 85}, {103, 104}}};
  return std::ranges::any_of(
      kRanges, [number](const auto& range) { return number >= range.first && number <= range.second; });
}

/// Of what an ensemble says (code table 4.7).
std::string derived_product(std::int64_t number) {
  constexpr std::array<const char*, 10> kNames = {
      "mean",    "weighted_mean", "cluster_deviation", "normalized_deviation",
      "spread",  "anomaly_index", "cluster_mean",      "interquartile_range",
      "minimum", "maximum"};
  if (number >= 0 && number < std::ssize(kNames)) return kNames[static_cast<std::size_t>(number)];
  return concat("derived_", number);
}

/// Of code table 4.9.
std::string probability_product(const GribFile::Handle& handle, std::int64_t type) {
  const auto limit = [&](const char* key) { return handle.real(key); };
  switch (type) {
    case 0:
    case 4:
      return concat("probability_below_", limit(type == 0 ? "lowerLimit" : "upperLimit"));
    case 1:
    case 3:
      return concat("probability_above_", limit(type == 1 ? "upperLimit" : "lowerLimit"));
    case 2:
      return concat("probability_between_", limit("lowerLimit"), "_and_", limit("upperLimit"));
    default:
      return concat("probability_", type);
  }
}

/// By which messages of one field at one place may differ, as their headers say; what says most comes first.
constexpr std::array kTellApart = {"dataType",
                                   "marsType",
                                   "productDefinitionTemplateNumber",
                                   "typeOfGeneratingProcess",
                                   "experimentVersionNumber",
                                   "class",
                                   "stream",
                                   "typeOfEnsembleForecast",
                                   "derivedForecast",
                                   "probabilityType",
                                   "percentileValue",
                                   "centre",
                                   "subCentre",
                                   "generatingProcessIdentifier",
                                   "backgroundGeneratingProcessIdentifier",
                                   "typeOfProcessedData",
                                   "productionStatusOfProcessedData",
                                   "methodNumber",
                                   "systemNumber",
                                   "stepRange",
                                   "numberOfForecastsInEnsemble",
                                   "topLevel",
                                   "bottomLevel",
                                   "scaledValueOfFirstFixedSurface",
                                   "scaleFactorOfFirstFixedSurface",
                                   "typeOfFirstFixedSurface",
                                   "scaledValueOfSecondFixedSurface",
                                   "typeOfSecondFixedSurface",
                                   "typeOfStatisticalProcessing",
                                   "constituentType",
                                   "aerosolType",
                                   "sourceSinkChemicalPhysicalProcess",
                                   "directionNumber",
                                   "frequencyNumber",
                                   "edition",
                                   "localTablesVersion",
                                   "tablesVersion"};

/// ECMWF's types of what is no state, in either edition.
std::string product_of_type(const std::string& type) {
  if (type == "em") return "mean";
  if (type == "es") return "spread";
  constexpr std::array<std::string_view, 34> kTypes = {
      "ef",  "ea", "cm", "cs",   "fp",  "ed",    "tu",    "efi",     "efic",   "pb",   "ep",   "cd",
      "4i",  "me", "pd", "ci",   "sot", "eme",   "wem",   "wes",     "ses",    "taem", "taes", "sg",
      "icp", "sv", "as", "svar", "cl",  "fcmax", "fcmin", "fcstdev", "hcmean", "cr"};
  return std::ranges::find(kTypes, type) == kTypes.end() ? "" : type;
}

/// What a message holds in place of an analysis or a forecast of its parameter: "spread", "percentile_90"; ""
/// where it holds that.
std::string product_of(const GribFile::Handle& handle) {
  const std::int64_t edition = handle.integer("edition");
  if (edition == 2) {
    if (const auto derived = handle.find("derivedForecast")) return derived_product(*derived);
    if (const auto type = handle.find("probabilityType")) return probability_product(handle, *type);
    if (const auto percent = handle.find("percentileValue")) return concat("percentile_", *percent);
  }
  if (std::string product = product_of_type(handle.find_text("dataType")); !product.empty()) return product;
  if (edition != 2) return "";
  constexpr std::int64_t kErrors = 7, kForecastErrors = 6, kAnalysisErrors = 7;
  const std::int64_t number = handle.integer("productDefinitionTemplateNumber");
  const std::int64_t process = handle.find("typeOfGeneratingProcess").value_or(0);
  if (number == kErrors || process == kForecastErrors || process == kAnalysisErrors) return "error";
  return holds_states(number) ? "" : concat("template_", number);
}

/// A parameter that ecCodes does not know, by its numbers.
std::string numbered_parameter(const GribFile::Handle& handle) {
  std::string name = "parameter";
  for (const char* key :
       {"table2Version", "indicatorOfParameter", "discipline", "parameterCategory", "parameterNumber"}) {
    if (const auto number = handle.find(key)) name += concat("_", *number);
  }
  return name;
}

/// Name, units and standard names of what a message holds.
void name_field(const GribFile::Handle& handle, GribField& field) {
  const auto known = [&](const char* key) {
    const std::string text = handle.text(key);
    return text == "unknown" ? "" : text;
  };
  field.name = handle.text("shortName");
  if (field.name == "unknown" || field.name == "~") field.name = numbered_parameter(handle);
  field.units = known("units");
  field.long_name = known("name");
  field.standard_name = known("cfName");
  const std::string product = product_of(handle);
  if (product.empty()) return;
  field.name += "_" + product;
  field.long_name += concat(field.long_name.empty() ? "" : ", ", product);
  field.standard_name.clear();
  if (product.starts_with("probability")) field.units = "%";
}

}  // namespace

GribField GribFile::describe_message(const GribMessage& message, const std::string& bytes) {
  const auto lock = lock_io();
  keep_eccodes_quiet();
  const Handle handle(bytes, concat("the message at byte ", message.offset, " of ", path()));
  GribField field;
  name_field(handle, field);
  field.level_type = handle.text("typeOfLevel");
  field.step_type = handle.text("stepType");
  field.cell_methods = cell_methods_of(handle, field.step_type);
  field.range = time_range_of(handle, field.step_type);
  field.level = handle.real("level");
  field.number = member_of(handle);
  field.lead = seconds_of(handle.integer("validityDate"), handle.integer("validityTime")) -
               seconds_of(handle.integer("dataDate"), handle.integer("dataTime"));
  const std::string grid_type = message.grid.empty() ? "unknown" : handle.text("gridType");
  // Months and years are of other lengths from time to time.
  constexpr std::int64_t kMonth = 3, kCentury = 7;
  const std::int64_t unit = handle.find("stepUnits").value_or(1);
  const bool reduced = grid_type == "reduced_gg", gaussian = reduced || grid_type == "regular_gg";
  if (grid_type != "regular_ll" && !gaussian) {
    const bool to_and_fro = handle.find("alternativeRowScanning").value_or(0) != 0;
    field.fault = concat("it is on the grid ", grid_type, to_and_fro ? ", whose rows run to and fro" : "",
                         ", and grids of latitudes and longitudes are read; ",
                         conversion(grid_type, to_and_fro, path()));
  } else if (unit >= kMonth && unit <= kCentury && field.lead != 0) {
    field.fault = concat("its steps are months or longer; ", conversion(grid_type, false, path()));
  } else {
    std::vector<double> latitudes;
    if (gaussian) latitudes = gaussian_latitudes(handle, field.fault);
    if (field.fault.empty()) {
      field.grid = reduced ? reduced_grid_of(handle, std::move(latitudes), field.fault)
                           : grid_of(handle, std::move(latitudes));
    }
  }
  return field;
}

std::string GribFile::difference(const Plane& one, const Plane& other) const {
  const File file(path(), O_RDONLY);
  const std::string here = read_message(file, one.offset, one.bytes),
                    there = read_message(file, other.offset, other.bytes);
  const auto lock = lock_io();
  const Handle first(here, path()), second(there, path());
  for (const char* key : kTellApart) {
    const std::string a = first.find_text(key), b = second.find_text(key);
    if (a != b) return concat(key, " ", a.empty() ? "none" : a, " and ", b.empty() ? "none" : b);
  }
  return "";
}

}  // namespace jigsaw::inline files
