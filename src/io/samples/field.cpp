#include "samples/field.h"

#include "base/text.h"

namespace jigsaw::inline samples {

std::string format_level(double level) {
  return concat(level);
}

std::string Field::name() const {
  return level ? concat(variable, "_", format_level(*level)) : variable;
}

}  // namespace jigsaw::inline samples
