#pragma once
#include <string>
#include <string_view>
#include <utility>

#include "config/json.h"

namespace jigsaw::inline config {

/// A place in the configuration, and the way to say what is wrong there. Every error is a ConfigError
/// of one sentence that begins with the dotted path: "model.layers[2].times must be ...".
class Place {
 public:
  /// The configuration as a whole, or what else this name is of.
  explicit Place(std::string whole = "the configuration") : whole_(std::move(whole)) {}

  /// The places below. @throws ConfigError beyond kMaxJsonDepth.
  Place key(std::string_view name) const;
  Place item(std::size_t index) const;

  /// "" for the whole configuration.
  const std::string& path() const { return path_; }

  /// "<path> <sentence>".
  [[noreturn]] void error(std::string_view sentence) const;
  /// The same for a key below this place.
  [[noreturn]] void error(std::string_view key, std::string_view sentence) const;
  /// "<path> must be <expected>, not <found>".
  [[noreturn]] void wrong(std::string_view expected, const Json& found) const;

 private:
  Place(std::string path, int depth, std::string whole);

  std::string whole_;  ///< what the root is called
  std::string path_;
  int depth_ = 0;
};

}  // namespace jigsaw::inline config
