#include "files/coordinate_values.h"

#include <cmath>

namespace jigsaw::inline files {

namespace {

bool has_packing(const FileVariable& variable) {
  return variable.numbers.contains("scale_factor") || variable.numbers.contains("add_offset");
}

bool unpacks_to_single(const FileVariable& variable) {
  const bool has_offset = variable.numbers.contains("add_offset");
  const bool wide = variable.type == StoredType::kI32 || variable.type == StoredType::kU32;
  if (!variable.single.contains("scale_factor")) return false;
  return !has_offset || (variable.single.contains("add_offset") && !wide);
}

/// The numbers as they are stored.
FileVariable without_packing(FileVariable variable) {
  for (const char* attribute : {"scale_factor", "add_offset", "valid_range", "valid_min", "valid_max"})
    variable.numbers.erase(attribute);
  return variable;
}

}  // namespace

CoordinateValues read_coordinate(VariableFile& file, const FileVariable& variable) {
  CoordinateValues result{file.read_all(variable), variable.single_precision};
  if (!has_packing(variable)) return result;
  result.single_precision = unpacks_to_single(variable);
  if (!result.single_precision) return result;
  const std::vector<double> stored = file.read_all(without_packing(variable));
  const double scale = variable.numbers.at("scale_factor")[0];
  const auto offset = variable.numbers.find("add_offset");
  for (std::size_t i = 0; i < stored.size(); ++i) {
    if (std::isnan(result.values[i])) continue;
    // Of two floats, double holds the product, and their sum well enough to be rounded once more.
    const auto single = static_cast<float>(static_cast<float>(stored[i]) * scale);
    result.values[i] =
        offset == variable.numbers.end() ? single : static_cast<float>(single + offset->second[0]);
  }
  return result;
}

}  // namespace jigsaw::inline files
