#include "predict/readable_inputs.h"

#include <algorithm>

#include "base/error.h"
#include "base/heartbeat.h"
#include "comm/from_first.h"
#include "config/json.h"
#include "files/glob.h"
#include "files/probe.h"
#include "files/variable_file.h"
#include "images/case_names.h"

namespace jigsaw::inline predict {

namespace {

using Names = std::vector<std::string>;

/// Whether a data set is that of a variable, in whose name one * stands for any characters.
bool is_of(const VariableOptions& variable, const std::string& data_set) {
  const std::string& name = variable.data_set.empty() ? variable.name : variable.data_set;
  const std::size_t star = name.find('*');
  if (star == std::string::npos) return name == data_set;
  return data_set.size() + 1 >= name.size() && data_set.starts_with(name.substr(0, star)) &&
         data_set.ends_with(name.substr(star + 1));
}

/// Reads all that the variables may have of a file: of what is normalised image by image, opening needs that.
void read_through(VariableFile& file, const DataOptions& data) {
  std::vector<double> values;
  for (const FileVariable& found : file.variables()) {
    const auto is_it = [&](const VariableOptions& variable) { return is_of(variable, found.name); };
    if (!found.numeric() || found.shape.rank() == 0 || std::ranges::none_of(data.variables, is_it)) continue;
    Box slice = Box::whole(found.shape);
    slice.extent[0] = 1;
    for (; slice.begin[0] < found.shape[0]; ++slice.begin[0]) {
      values.resize(static_cast<std::size_t>(slice.extent.count()));
      file.read<double>(found, slice, values);
      beat();
    }
  }
}

/// Why a file cannot be opened or read, or "". A header that ends a process ends one of its own.
std::string why_unreadable(const std::string& path, const DataOptions& data) {
  try {
    probe_files({path}, Dimensions::kByNumber, data.external());
    const auto file = open_variables(path, Dimensions::kByNumber, data.external());
    read_through(*file, data);
    file->close();
    return "";
  } catch (const DataError& error) {
    return error.what();
  }
}

/// The patterns of all files of the images, column by column: those of data.files, then of each variable with
/// its own.
std::vector<Names> patterns_of_inputs(const DataOptions& data) {
  std::vector<Names> patterns = {data.files};
  for (const VariableOptions& variable : data.variables)
    if (!variable.files.empty()) patterns.push_back(variable.files);
  return patterns;
}

/// Puts the files of each column in the order of the first one's cases, where all have these.
void order_by_case(std::vector<Names>& columns, const std::vector<Names>& patterns) {
  const std::vector<std::string> cases = case_names(columns[0], patterns[0]);
  for (std::size_t c = 1; c < columns.size(); ++c) {
    const std::vector<std::string> own = case_names(columns[c], patterns[c]);
    if (!std::ranges::is_permutation(own, cases)) continue;
    Names ordered;
    for (const std::string& name : cases)
      ordered.push_back(columns[c][static_cast<std::size_t>(std::ranges::find(own, name) - own.begin())]);
    columns[c] = ordered;
  }
}

/// {"failures": […], "columns": [[…], …]}: why images are left out, and the files that are left.
Json readable(const DataOptions& data, const std::filesystem::path& folder) {
  const std::vector<Names> patterns = patterns_of_inputs(data);
  std::vector<Names> columns;
  for (const Names& of_column : patterns) columns.push_back(expand_patterns(of_column, folder));
  const std::size_t images = columns[0].size();
  Names failures;
  if (images < 2 || std::ranges::any_of(columns, [&](const Names& names) { return names.size() != images; }))
    return {{"failures", Json::array()}};
  order_by_case(columns, patterns);
  std::vector<Names> left(columns.size());
  for (std::size_t i = 0; i < images; ++i) {
    std::string why;
    for (std::size_t c = 0; c < columns.size() && why.empty(); ++c) why = why_unreadable(columns[c][i], data);
    if (!why.empty()) failures.push_back(why);
    for (std::size_t c = 0; c < columns.size() && why.empty(); ++c) left[c].push_back(columns[c][i]);
  }
  if (left[0].empty()) failures.clear();
  return {{"failures", failures}, {"columns", left}};
}

}  // namespace

std::vector<std::string> leave_out_unreadable(DataOptions& data, const std::filesystem::path& folder,
                                              Communicator& world) {
  const std::string text = from_first(world, [&] {
    const std::vector<std::uint8_t> bytes = Json::to_cbor(readable(data, folder));
    return std::string(bytes.begin(), bytes.end());
  });
  const Json found = Json::from_cbor(text);
  auto failures = found.at("failures").get<Names>();
  if (failures.empty()) return {};
  std::size_t column = 0;
  data.files = found.at("columns").at(column++).get<Names>();
  for (VariableOptions& variable : data.variables)
    if (!variable.files.empty()) variable.files = found.at("columns").at(column++).get<Names>();
  return failures;
}

}  // namespace jigsaw::inline predict
