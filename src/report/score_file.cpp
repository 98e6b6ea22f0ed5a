#include "report/score_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "files/variable_file.h"
#include "report/run_record.h"
#include "report/svg.h"

namespace jigsaw::inline report {

namespace {

std::vector<double> values_of(VariableFile& file, const FileVariable& variable) {
  std::vector<double> all(static_cast<std::size_t>(variable.shape.count()));
  file.read<double>(variable, Box::whole(variable.shape), all);
  return all;
}

/// Of a list by rows a list of lists.
Json rows_of(const std::vector<double>& values, std::int64_t rows) {
  Json result = Json::array();
  const auto columns = static_cast<std::ptrdiff_t>(std::ssize(values) / std::max<std::int64_t>(rows, 1));
  for (std::ptrdiff_t row = 0; row < rows; ++row)
    result.push_back(
        std::vector<double>(values.begin() + row * columns, values.begin() + (row + 1) * columns));
  return result;
}

/// What stands in front of an ending; "" where the name has another.
std::string before(const std::string& name, const std::string& ending) {
  return name.ends_with(ending) ? name.substr(0, name.size() - ending.size()) : "";
}

/// "tp_csi" (tp_threshold, region, lead_time), and with one more dimension "tp_fss" and
/// "tp_observed_frequency".
void add_threshold_scores(VariableFile& file, const FileVariable& variable, Json& json) {
  for (const char* measure : {"csi", "fss", "observed_frequency"}) {
    const std::string name = before(variable.name, concat("_", measure));
    const FileVariable* thresholds = name.empty() ? nullptr : file.find(name + "_threshold");
    const bool of_lists = measure != std::string_view("csi");
    if (thresholds == nullptr || variable.shape.rank() != (of_lists ? 4 : 3)) continue;
    if (thresholds->shape.count() != variable.shape[0] || variable.shape[1] == 0) continue;
    const std::int64_t leads = variable.shape[2], each = of_lists ? variable.shape[3] : 1;
    std::vector<double> scales;
    if (measure == std::string_view("fss")) {
      const FileVariable* scale = file.find("fss_scale");
      if (scale == nullptr || scale->shape.count() != each) continue;
      scales = file.read_all(*scale);
    }
    const std::vector<double> all = values_of(file, variable);
    auto from = all.begin();
    for (const double threshold : file.read_all(*thresholds)) {
      // The first region is the whole grid.
      const std::vector<double> grid(from, from + leads * each);
      from += variable.shape[1] * leads * each;
      Json& to = json["thresholds"][name][Json(threshold).dump()]["all"];
      if (scales.empty()) to[measure] = of_lists ? rows_of(grid, leads) : Json(grid);
      for (std::size_t s = 0; s < scales.size(); ++s) {
        Json& list = to[concat("fss_", std::llround(scales[s]))];
        for (std::int64_t lead = 0; lead < leads; ++lead)
          list.push_back(grid[static_cast<std::size_t>(lead * each) + s]);
      }
    }
  }
}

Json scores_of_fields(VariableFile& file, const std::string& path) {
  const FileVariable *leads = file.find("lead_time"), *regions = file.find("region");
  if (leads == nullptr || regions == nullptr)
    throw DataError(concat(path, " was not written by evaluate: it has no lead_time and region"));
  const std::vector<double> read = file.read_all(*leads);
  std::vector<double> hours = read;
  const std::string units = leads->text("units");
  const Time unit = units == "1" ? kMonth : units == "minutes" ? 60 : units == "seconds" ? 1 : kHour;
  for (double& lead : hours) lead *= in_hours(unit);
  Json json = {{"lead_hours", hours}, {"scores", Json::object()}, {"spectra", Json::object()}};
  if (unit == kMonth) json["lead_months"] = read;
  for (const FileVariable& variable : file.variables()) {
    if (std::ranges::find(variable.dimensions, "climate_group") != variable.dimensions.end()) continue;
    if (const std::string name = before(variable.name, "_rank_histogram");
        !name.empty() && variable.shape.rank() == 3 && variable.shape[0] > 0) {
      const Json by_lead = rows_of(values_of(file, variable), variable.shape[0] * variable.shape[1]);
      json["rank_histograms"][name]["all"] = Json(by_lead.begin(), by_lead.begin() + variable.shape[1]);
    }
    add_threshold_scores(file, variable, json);
    const bool by_region = variable.shape.rank() == 2 && variable.shape[0] > 0;
    const auto columns = static_cast<std::ptrdiff_t>(by_region ? variable.shape[1] : 0);
    for (const char* measure : {"persistence_rmse", "climatology_rmse", "rmse", "acc", "crps", "spread",
                                "spread_skill", "crps_skill", "forecast_mean", "truth_mean"}) {
      const std::string name = before(variable.name, concat("_", measure));
      if (name.empty() || columns == 0) continue;
      const std::vector<double> all = values_of(file, variable);
      // The first region is the whole grid.
      json["scores"][name]["all"][measure] = std::vector<double>(all.begin(), all.begin() + columns);
      if (measure == std::string_view("rmse")) json["scores"][name]["units"] = variable.text("units");
      break;
    }
    for (const auto& [ending, kind] : {std::pair{"_power_truth", "truth"}, std::pair{"_power", "forecast"}}) {
      const std::string name = before(variable.name, ending);
      if (name.empty() || columns == 0) continue;
      json["spectra"][name][kind] = rows_of(values_of(file, variable), variable.shape[0]);
      break;
    }
  }
  return json;
}

/// "p_rmse" [lead_steps], "p_spectral_mse" [lead_steps, band].
Json scores_of_sequences(VariableFile& file) {
  Json json = {{"lead_steps", file.read_all(*file.find("lead_steps"))}, {"variables", Json::object()}};
  for (const FileVariable& variable : file.variables()) {
    for (const char* measure : {"spectral_mse", "spectral_nmse"}) {
      const std::string name = before(variable.name, concat("_", measure));
      if (!name.empty() && variable.shape.rank() == 2)
        json["variables"][name][measure] = rows_of(values_of(file, variable), variable.shape[0]);
    }
    for (const char* measure : {"persistence_rmse", "rmse", "mae", "bias", "vrmse"}) {
      const std::string name = before(variable.name, concat("_", measure));
      if (name.empty() || variable.shape.rank() != 1) continue;
      json["variables"][name][measure] = values_of(file, variable);
      if (measure == std::string_view("rmse")) json["variables"][name]["units"] = variable.text("units");
      break;
    }
  }
  return json;
}

constexpr const char* kImages = "image";  // the dimension of their scores

/// "labels_hd95" [image] or "labels_dice_1". Their names are none of a variable.
Json scores_of_images(VariableFile& file) {
  Json json = {{"images", Json::array()}, {"scores", Json::object()}};
  for (const FileVariable& variable : file.variables()) {
    if (variable.dimensions != std::vector<std::string>{kImages}) continue;
    for (std::int64_t image = std::ssize(json["images"]); image < variable.shape[0]; ++image)
      json["images"].push_back(concat("image ", image));
    const std::size_t last = variable.name.find_last_not_of("0123456789");
    const bool labelled = last + 1 < variable.name.size() && variable.name[last] == '_';
    const std::string name = labelled ? variable.name.substr(0, last) : variable.name;
    for (const char* measure : {"input_psnr", "input_ssim", "mean_dice", "foreground_dice", "psnr", "ssim",
                                "dice", "hd95", "accuracy", "rmse", "mae", "bias"}) {
      const std::string target = before(name, concat("_", measure));
      if (target.empty()) continue;
      Json& place = json["scores"][target][measure];
      Json& entry = labelled ? place[variable.name.substr(last + 1)] : place;
      entry = {{"images", values_of(file, variable)}};
      if (const std::string units = variable.text("units"); units != "1") entry["units"] = units;
      break;
    }
  }
  return json;
}

/// By the names that evaluate's JSON has.
Json scores_of_netcdf(const std::string& path) {
  const auto file = open_variables(path, Dimensions::kByName);
  if (file->find("lead_steps") != nullptr) return scores_of_sequences(*file);
  for (const FileVariable& variable : file->variables())
    if (std::ranges::find(variable.dimensions, kImages) != variable.dimensions.end())
      return scores_of_images(*file);
  return scores_of_fields(*file, path);
}

}  // namespace

ScoreKind kind_of_scores(const Json& scores) {
  if (scores.contains("images")) return ScoreKind::kImages;
  return scores.contains("lead_steps") ? ScoreKind::kSequences : ScoreKind::kFields;
}

std::string what_scored(const Json& scores) {
  const auto text_at = [](const Json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_string() ? found->get<std::string>() : "";
  };
  const auto list = scores.find("periods"), covered = scores.find("coverage");
  std::vector<std::string> periods;
  if (list != scores.end() && list->is_array()) {
    for (const Json& period : *list)
      if (period.is_string()) periods.push_back(period.get<std::string>());
  }
  const Json coverage = covered != scores.end() && covered->is_object() ? *covered : Json::object();
  const double scored = number_at(coverage, "scored", number_at(scores, "forecasts")),
               windows = number_at(coverage, "windows"), members = number_at(scores, "members", 1);
  std::vector<std::string> parts;
  if (std::isfinite(scored) || !periods.empty()) {
    std::string text = std::isfinite(scored) ? counted(std::llround(scored), "forecast") : "forecasts";
    if (members > 1) text += concat(" of ", short_number(members), " members");
    if (!periods.empty()) text += " of " + join(periods, ", ");
    if (windows > scored)
      text += concat(" (of ", counted(std::llround(windows), "window"), "; starts from ",
                     text_at(coverage, "first_start"), " to ", text_at(coverage, "last_start"), ")");
    parts.push_back(text);
  }
  std::string source = text_at(scores, "source");
  const std::string program = "jigsaw-train, ";
  if (source.starts_with(program)) source.erase(0, program.size());
  if (!source.empty()) parts.push_back(source);
  return parts.empty() ? "" : concat(" Scored: ", join(parts, ", "), ".");
}

Json read_scores(const std::string& path) {
  if (!is_there(path)) throw DataError(concat(path, " is not there"));
  std::ifstream file(path);
  char first = 0;
  file >> first;
  Json scores = first == '{' ? read_json(path) : scores_of_netcdf(path);
  const ScoreKind kind = kind_of_scores(scores);
  const char* const list = kind == ScoreKind::kSequences ? "variables" : "scores";
  if (!scores.contains(list) || (kind == ScoreKind::kFields && !scores.contains("lead_hours")))
    throw DataError(concat(path, " was not written by evaluate: it has no scores and lead_hours"));
  return scores;
}

}  // namespace jigsaw::inline report
