#include "config/place.h"

#include "base/error.h"
#include "base/text.h"

namespace jigsaw::inline config {

Place::Place(std::string path, int depth, std::string whole)
    : whole_(std::move(whole)), path_(std::move(path)), depth_(depth) {
  if (depth_ > kMaxJsonDepth) {
    throw ConfigError(concat(whole_, " is nested deeper than ", kMaxJsonDepth, " levels, at ",
                             std::string_view(path_).substr(0, 60), "..."));
  }
}

Place Place::key(std::string_view name) const {
  const std::string escaped = quote(name);
  const std::string shown = escaped.substr(1, escaped.size() - 2);
  return {path_.empty() ? shown : path_ + "." + shown, depth_ + 1, whole_};
}

Place Place::item(std::size_t index) const {
  return {path_ + "[" + std::to_string(index) + "]", depth_ + 1, whole_};
}

void Place::error(std::string_view sentence) const {
  throw ConfigError(concat(path_.empty() ? whole_ : path_, " ", sentence));
}

void Place::error(std::string_view key_below, std::string_view sentence) const {
  throw ConfigError(concat(path_, path_.empty() ? "" : ".", key_below, " ", sentence));
}

void Place::wrong(std::string_view expected, const Json& found) const {
  error(concat("must be ", expected, ", not ", describe(found)));
}

}  // namespace jigsaw::inline config
