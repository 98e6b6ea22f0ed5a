#include "predict/readable_inputs.h"

#include <algorithm>

#include "base/error.h"
#include "comm/from_first.h"
#include "config/json.h"
#include "files/glob.h"
#include "files/probe.h"
#include "files/variable_file.h"

namespace jigsaw::inline predict {

namespace {

using Names = std::vector<std::string>;

/// Why a file cannot be opened, or "". A header that ends a process ends one of its own.
std::string why_unreadable(const std::string& path, External external) {
  try {
    probe_files({path}, Dimensions::kByNumber, external);
    open_variables(path, Dimensions::kByNumber, external)->close();
    return "";
  } catch (const DataError& error) {
    return error.what();
  }
}

/// All files of the images, column by column: those of data.files, then of each variable with its own.
std::vector<Names> columns_of_inputs(const DataOptions& data, const std::filesystem::path& folder) {
  std::vector<Names> columns = {expand_patterns(data.files, folder)};
  for (const VariableOptions& variable : data.variables)
    if (!variable.files.empty()) columns.push_back(expand_patterns(variable.files, folder));
  return columns;
}

/// {"failures": […], "columns": [[…], …]}: why images are left out, and the files that are left.
Json readable(const DataOptions& data, const std::filesystem::path& folder) {
  std::vector<Names> columns = columns_of_inputs(data, folder);
  const std::size_t images = columns[0].size();
  Names failures;
  if (images < 2 || std::ranges::any_of(columns, [&](const Names& names) { return names.size() != images; }))
    return {{"failures", Json::array()}};
  std::vector<Names> left(columns.size());
  for (std::size_t i = 0; i < images; ++i) {
    std::string why;
    for (std::size_t c = 0; c < columns.size() && why.empty(); ++c)
      why = why_unreadable(columns[c][i], data.external());
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
  const auto failures = found.at("failures").get<Names>();
  if (failures.empty()) return {};
  std::size_t column = 0;
  data.files = found.at("columns").at(column++).get<Names>();
  for (VariableOptions& variable : data.variables)
    if (!variable.files.empty()) variable.files = found.at("columns").at(column++).get<Names>();
  return failures;
}

}  // namespace jigsaw::inline predict
