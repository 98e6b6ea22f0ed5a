// What is to be said of how numbers of images are unpacked.
#include "base/printable.h"
#include "base/text.h"
#include "images/image_files.h"

namespace jigsaw::inline images {

namespace {

/// By which numbers of a data set are unpacked; "" where they stay as they are.
std::string unpacked_by(const FileVariable& variable) {
  const auto number = [&](const char* attribute, double otherwise) {
    const auto found = variable.numbers.find(attribute);
    return found == variable.numbers.end() ? otherwise : found->second.at(0);
  };
  const double scale = number("scale_factor", 1), offset = number("add_offset", 0);
  return scale == 1 && offset == 0 ? "" : concat("scale_factor ", scale, ", add_offset ", offset);
}

}  // namespace

std::vector<std::string> ImageFiles::packing_remarks() const {
  std::vector<std::string> remarks;
  for (const auto& [name, variable] : variables_) {
    std::string first, where, others;
    for (const Image& image : variable.images) {
      if (image.sample > 0 || image.time > 0) continue;
      const VariableFile& file = *files_[static_cast<std::size_t>(image.file)];
      const FileVariable& stored = find(image.file, variable.data_set, image.group);
      if (file.format() != "HDF5" || !is_floating(stored.type)) continue;
      const std::string by = unpacked_by(stored);
      if (where.empty() && !by.empty()) {
        first = by;
        where = concat(printable(stored.name), " in ", file.path());
      } else if (others.empty() && !where.empty() && by != first) {
        others = concat(", and in ", file.path(), by.empty() ? " not at all" : concat(" by ", by));
      }
    }
    if (where.empty()) continue;
    remarks.push_back(
        concat(where, " holds floating-point numbers and is unpacked by its attributes ", first, others,
               "; if they say something else, as a cosmological scale factor, rename them in the files"));
  }
  return remarks;
}

}  // namespace jigsaw::inline images
