#include "config/number_range.h"

#include <cstdio>

#include "base/text.h"

namespace jigsaw::inline config {
namespace {

std::string number_text(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.15g", value);
  return buffer;
}

/// Whole bounds are written without a point, as people write them.
Json number_json(double value) {
  const auto whole = static_cast<std::int64_t>(value);
  return static_cast<double>(whole) == value ? Json(whole) : Json(value);
}

}  // namespace

bool NumberRange::contains(double value) const {
  if (low && (low->inclusive ? value < low->value : value <= low->value)) return false;
  if (high && (high->inclusive ? value > high->value : value >= high->value)) return false;
  return true;
}

void NumberRange::update(const NumberRange& other) {
  if (other.low) low = other.low;
  if (other.high) high = other.high;
}

std::string NumberRange::text() const {
  if (low && high && low->inclusive && high->inclusive) {
    return concat("between ", number_text(low->value), " and ", number_text(high->value));
  }
  std::string text;
  if (low) text = (low->inclusive ? "at least " : "above ") + number_text(low->value);
  if (low && high) text += " and ";
  if (high) text += (high->inclusive ? "at most " : "below ") + number_text(high->value);
  return text;
}

std::string NumberRange::after_noun() const {
  const std::string words = text();
  if (words.empty()) return "";
  return (words.starts_with("at ") ? " of " : " ") + words;
}

std::string NumberRange::count_text() const {
  if (low && high && low->value == high->value) return number_text(low->value);
  if (low && low->value == 1 && !high) return "one or more";
  return text();
}

void NumberRange::write_schema(Json& schema) const {
  if (low) schema[low->inclusive ? "minimum" : "exclusiveMinimum"] = number_json(low->value);
  if (high) schema[high->inclusive ? "maximum" : "exclusiveMaximum"] = number_json(high->value);
}

}  // namespace jigsaw::inline config
