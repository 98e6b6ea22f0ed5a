#include "fields/field.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace jigsaw::inline fields {

std::string format_level(double level) {
  return concat(level);
}

bool same_level(double a, double b) {
  return std::abs(a - b) <= 1e-5 * std::max(std::abs(a), std::abs(b));
}

std::string Field::name() const {
  return level ? concat(variable, "_", format_level(*level)) : variable;
}

}  // namespace jigsaw::inline fields
