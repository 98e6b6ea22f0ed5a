#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "array/shape.h"
#include "files/stored_type.h"

namespace jigsaw::inline files {

/// The name of a variable or a dimension without its groups: "c" of "a/b/c".
std::string without_groups(const std::string& name);

/// A variable (a data set) as a file's header describes it.
struct FileVariable {
  std::string name;        ///< in HDF5 with its groups, "scans/volume"
  int id = 0;              ///< the format's own
  std::int64_t bytes = 0;  ///< of one element on disk; 0 when it cannot be read as numbers
  std::string fault;       ///< why it cannot, where that is not its type: "its values stand in another file"
  bool single_precision = false;
  StoredType type = StoredType::kF64;  ///< as which its numbers are read
  Shape chunks;                        ///< extents of its chunks on disk; of rank 0 where it has none
  bool compressed = false;
  /// What stands where nothing was written and the file does not say otherwise.
  std::optional<double> default_fill;
  std::vector<std::string> dimensions;  ///< their names; none in HDF5
  Shape shape;
  /// The attributes that say what the numbers mean: units, scale_factor, standard_name, …
  std::map<std::string, std::string> texts;
  std::map<std::string, std::vector<double>> numbers;
  std::set<std::string> floating;  ///< names of those whose numbers are of a floating-point type
  std::set<std::string> single;    ///< and of those of them in single precision

  bool numeric() const { return bytes > 0; }
  /// Notes that the variable cannot be read. @param why  "it has …"
  void refuse(const std::string& why);
  /// Takes over extents, unless there are more than any field has, or they make too many elements.
  void set_extents(std::span<const std::uint64_t> extents);
  /// The attribute, or "".
  std::string text(const std::string& attribute) const;
  /// Whether its numbers stand for words, or for bits with a meaning each (CF, section 3.5), and are no
  /// quantity.
  bool holds_flags() const;
};

}  // namespace jigsaw::inline files
