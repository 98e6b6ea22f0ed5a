#include "files/file_variable.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace jigsaw::inline files {

namespace {

/// Elements of a variable: a header that claims more is damaged, or made to overflow.
constexpr std::uint64_t kMostElements = std::uint64_t{1} << 56;

}  // namespace

std::string FileVariable::text(const std::string& attribute) const {
  const auto found = texts.find(attribute);
  return found == texts.end() ? "" : found->second;
}

bool FileVariable::holds_flags() const {
  for (const char* attribute : {"flag_values", "flag_masks", "flag_meanings"})
    if (numbers.contains(attribute) || texts.contains(attribute)) return true;
  const std::string standard_name = text("standard_name");
  return standard_name.ends_with("status_flag") || standard_name.ends_with("quality_flag");
}

std::string without_groups(const std::string& name) {
  return name.substr(name.rfind('/') + 1);
}

void FileVariable::refuse(const std::string& why) {
  if (fault.empty()) fault = why;
  bytes = 0;
}

void FileVariable::set_extents(std::span<const std::uint64_t> extents) {
  if (std::cmp_greater(extents.size(), Shape::kMaxRank)) {
    return refuse(concat("it has ", extents.size(), " dimensions; at most ", Shape::kMaxRank, " are read"));
  }
  std::uint64_t count = 1;
  for (const std::uint64_t extent : extents) {
    if (extent > kMostElements / count) {
      return refuse(
          concat("its header claims ", join(extents, " x "), " elements, more than any file holds"));
    }
    count *= std::max<std::uint64_t>(extent, 1);
  }
  for (const std::uint64_t extent : extents) shape.append(static_cast<std::int64_t>(extent));
}

}  // namespace jigsaw::inline files
