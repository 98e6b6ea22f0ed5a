#include "checkpoint/inspect_nifti.h"

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace jigsaw::inline checkpoint {

namespace {

/// More values than so are no labels.
constexpr std::size_t kMostLabels = 64;

bool is_whole(StoredType type) {
  return type != StoredType::kF16 && type != StoredType::kF32 && type != StoredType::kF64;
}

/// Where the file's axes run: right or left, to the front (anterior) or back (posterior), up (superior) or
/// down (inferior).
std::string orientation(const NiftiHeader& header) {
  constexpr std::array<std::array<char, 2>, 3> kLetters = {{{'R', 'L'}, {'A', 'P'}, {'S', 'I'}}};
  std::string letters(3, '?');
  for (std::size_t w = 0; w < 3; ++w) {
    const NiftiAxis& axis = header.world[w];
    letters[static_cast<std::size_t>(axis.axis)] = kLetters[w][axis.reversed ? 1 : 0];
  }
  return letters;
}

/// How many points have each value; empty where there are more than kMostLabels.
std::map<double, std::int64_t> counts_by_value(NiftiFile& file) {
  const FileVariable& image = file.variables().front();
  std::map<double, std::int64_t> counts;
  Box slice = Box::whole(image.shape);
  slice.extent[0] = 1;
  std::vector<double> values(static_cast<std::size_t>(slice.extent.count()));
  for (; slice.begin[0] < image.shape[0]; ++slice.begin[0]) {
    file.read<double>(image, slice, values);
    for (std::size_t i = 0; i < values.size();) {
      const std::size_t first = i;
      while (i < values.size() && values[i] == values[first]) ++i;
      counts[values[first]] += static_cast<std::int64_t>(i - first);
      if (counts.size() > kMostLabels) return {};
    }
  }
  return counts;
}

std::string labels_line(NiftiFile& file) {
  try {
    std::vector<std::string> counts;
    for (const auto& [value, count] : counts_by_value(file)) counts.push_back(concat(value, ": ", count));
    return counts.empty() ? "" : concat("        points by value  ", join(counts, ", "), "\n");
  } catch (const DataError& error) {
    return concat("        points by value  ", error.what(), "\n");
  }
}

}  // namespace

std::string describe_nifti(NiftiFile& file) {
  const NiftiHeader& header = file.header();
  const bool scaled = header.scale != 1 || header.offset != 0;
  std::string text = concat("        numbers          ", numpy_name(header.type));
  if (scaled) text += concat(", times the slope ", header.scale, ", plus the intercept ", header.offset);
  text += concat("\n        axes of the file ", header.extents[0], " x ", header.extents[1], " x ",
                 header.extents[2], " points, ", header.spacing[0], " x ", header.spacing[1], " x ",
                 header.spacing[2], " mm apart", header.units_known ? "" : " (no unit: mm are taken)",
                 ", running to ", orientation(header), "\n");
  for (std::size_t row = 0; row < 3; ++row) {
    const auto& line = header.affine[row];
    text += concat(row == 0 ? "        affine           [" : "                          ", "[", line[0], ", ",
                   line[1], ", ", line[2], ", ", line[3], row < 2 ? "],\n" : "]]");
  }
  text +=
      concat("  mm; sform or qform of code ", header.place_code, "; qform_code ", header.qform.code, "\n");
  return is_whole(header.type) && !scaled ? text + labels_line(file) : text;
}

}  // namespace jigsaw::inline checkpoint
