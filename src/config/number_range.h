#pragma once
#include <optional>
#include <string>

#include "config/json.h"

namespace jigsaw::inline config {

/// The numbers a key allows.
struct NumberRange {
  struct Bound {
    double value;
    bool inclusive;
  };
  std::optional<Bound> low;
  std::optional<Bound> high;

  bool contains(double value) const;
  /// Takes over the bounds that `other` has.
  void update(const NumberRange& other);
  /// "at least 0 and below 1", "between 0 and 1", or "".
  std::string text() const;
  /// The same after a noun: " of at least 0", " between 0 and 1", or "".
  std::string after_noun() const;
  /// The same for a number of things: "2", "one or more", "between 2 and 3", or "".
  std::string count_text() const;
  /// minimum, exclusiveMinimum, maximum, exclusiveMaximum.
  void write_schema(Json& schema) const;
};

}  // namespace jigsaw::inline config
