#include "evaluate/image_report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "base/text.h"
#include "files/netcdf_output.h"

namespace jigsaw::inline evaluate {

namespace {

/// So many images have a column each in the table.
constexpr std::size_t kShownImages = 6;

std::string image_cell(double value) {
  std::array<char, 32> text{};
  if (std::isnan(value)) {
    std::snprintf(text.data(), text.size(), " %10s", "-");
  } else {
    std::snprintf(text.data(), text.size(), " %10.5g", value);
  }
  return text.data();
}

std::string count_cell(std::int64_t count) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), " %7lld", static_cast<long long>(count));
  return text.data();
}

std::string title_of(const ImageMeasure& measure) {
  return concat(measure.target, "  ", measure.name, measure.label ? concat(" of ", *measure.label) : "",
                measure.units.empty() ? "" : concat(" [", measure.units, "]"));
}

std::vector<double> known(const ImageMeasure& measure) {
  std::vector<double> values = measure.values;
  std::erase_if(values, [](double value) { return std::isnan(value); });
  return values;
}

double deviation(const ImageMeasure& measure) {
  const double mean = measure.mean();
  const std::vector<double> values = known(measure);
  double squares = 0;
  for (const double value : values)
    squares += (value - mean) * (value - mean) / static_cast<double>(values.size());
  return values.empty() ? std::nan("") : std::sqrt(squares);
}

}  // namespace

std::int64_t ImageMeasure::count() const {
  return std::ssize(known(*this));
}

double ImageMeasure::mean() const {
  const std::vector<double> all = known(*this);
  double sum = 0;
  for (const double value : all) sum += value;
  return all.empty() ? std::nan("") : sum / static_cast<double>(all.size());
}

std::vector<std::string> table_of(const ImageReport& report) {
  std::vector<std::string> lines;
  for (const auto& [target, range] : report.ranges)
    lines.push_back(concat(target, "  data range of PSNR and SSIM ", range));
  std::size_t width = 10;
  for (const ImageMeasure& measure : report.measures) width = std::max(width, title_of(measure).size());
  const bool shown = report.images.size() <= kShownImages;
  std::string head = concat(std::string(width, ' '), "  images       mean  deviation     lowest    highest");
  for (std::size_t i = 0; shown && i < report.images.size(); ++i) {
    const std::string number = concat("image ", i);
    head += std::string(11 - std::min<std::size_t>(number.size(), 11), ' ') + number;
  }
  lines.push_back(head);
  bool incomplete = false;
  for (const ImageMeasure& measure : report.measures) {
    std::string line = title_of(measure);
    line += std::string(width - line.size(), ' ');
    const std::vector<double> values = known(measure);
    line += count_cell(measure.count()) + image_cell(measure.mean()) + image_cell(deviation(measure));
    line += image_cell(values.empty() ? std::nan("") : *std::min_element(values.begin(), values.end()));
    line += image_cell(values.empty() ? std::nan("") : *std::max_element(values.begin(), values.end()));
    for (std::size_t i = 0; shown && i < measure.values.size(); ++i) line += image_cell(measure.values[i]);
    lines.push_back(line);
    incomplete = incomplete || values.size() < report.images.size();
  }
  if (incomplete) {
    lines.push_back(concat("images: those of ", report.images.size(),
                           " that have the score; the others count in none of its numbers"));
  }
  for (std::size_t i = 0; shown && i < report.images.size(); ++i)
    lines.push_back(concat("image ", i, ": ", report.images[i]));
  return lines;
}

Json json_of(const ImageReport& report) {
  Json json = {{"title", report.title},
               {"source", report.source},
               {"images", report.images},
               {"data_range", Json::object()},
               {"scores", Json::object()}};
  for (const auto& [target, range] : report.ranges) json["data_range"][target] = range;
  for (const ImageMeasure& measure : report.measures) {
    Json& place = json["scores"][measure.target][measure.name];
    Json& entry = measure.label ? place[std::to_string(*measure.label)] : place;
    entry = {{"mean", measure.mean()}, {"count", measure.count()}, {"images", measure.values}};
    if (!measure.units.empty()) entry["units"] = measure.units;
  }
  return json;
}

void write_netcdf(const ImageReport& report, const std::string& path) {
  NetcdfOutput file(path, NetcdfOutput::Format::kNetcdf4);
  const int image = file.add_dimension("image", report.images.size());
  std::vector<int> variables;
  for (const ImageMeasure& measure : report.measures) {
    std::string name = concat(measure.target, "_", measure.name);
    if (measure.label) name += concat("_", *measure.label);
    const int variable =
        file.add_variable(file.free_name(std::move(name)).c_str(), NetcdfOutput::Type::kDouble, {image});
    file.add_text(variable, "long_name", title_of(measure));
    file.add_text(variable, "units", measure.units.empty() ? "1" : measure.units);
    file.add_number(variable, "_FillValue", std::nan(""));
    file.add_numbers(variable, "count", std::vector<int>{static_cast<int>(measure.count())});
    variables.push_back(variable);
  }
  file.add_text(NetcdfOutput::kFile, "title", report.title);
  file.add_text(NetcdfOutput::kFile, "source", report.source);
  file.add_text(NetcdfOutput::kFile, "images", join(report.images, "\n"));
  file.end_definitions();
  for (std::size_t i = 0; i < variables.size(); ++i) file.write(variables[i], report.measures[i].values);
  file.close();
}

}  // namespace jigsaw::inline evaluate
