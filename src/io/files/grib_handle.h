#pragma once
#include <eccodes.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/printable.h"
#include "base/text.h"
#include "files/grib_file.h"

namespace jigsaw::inline files {

/// Points along a dim; a grid of more is damaged, or made to overflow.
inline constexpr std::int64_t kMostPoints = std::int64_t{1} << 24;
/// Circles of latitude of a Gaussian grid; finding them takes the square of their number.
inline constexpr std::int64_t kMostCircles = std::int64_t{1} << 15;

/// How a file on another grid becomes one that is read: "convert it with: …", a command where one does it.
/// @param to_and_fro  whether every other row runs the other way, which cdo does not turn.
std::string conversion(const std::string& grid_type, bool to_and_fro, const std::string& path);

/// A message that ecCodes has taken apart. Under lock_io().
class GribFile::Handle {
 public:
  /// @param bytes  outlive it. @param what  is read, for errors.
  Handle(const std::string& bytes, std::string what)
      : what_(std::move(what)), handle_(codes_handle_new_from_message(nullptr, bytes.data(), bytes.size())) {
    if (handle_ == nullptr) throw DataError(concat("cannot read ", what_, ": ecCodes cannot decode it"));
  }
  ~Handle() { codes_handle_delete(handle_); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  codes_handle* get() const { return handle_; }
  void check(int status, const char* key) const {
    if (status == CODES_SUCCESS) return;
    throw DataError(concat("cannot read ", what_, ": ecCodes says of ", key, ": ",
                           printable(codes_get_error_message(status))));
  }
  std::string text(const char* key) const {
    std::string value(kLongestText, '\0');
    std::size_t length = value.size();
    check(codes_get_string(handle_, key, value.data(), &length), key);
    return printable(value.c_str());
  }
  std::int64_t integer(const char* key) const {
    long value = 0;
    check(codes_get_long(handle_, key, &value), key);
    return value;
  }
  std::vector<long> integers(const char* key) const {
    std::size_t count = 0;
    check(codes_get_size(handle_, key, &count), key);
    std::vector<long> values(std::min(count, static_cast<std::size_t>(kMostCircles)));
    count = values.size();
    check(codes_get_long_array(handle_, key, values.data(), &count), key);
    return values;
  }
  double real(const char* key) const {
    double value = 0;
    check(codes_get_double(handle_, key, &value), key);
    return value;
  }
  /// Nothing where the message has no such key.
  std::optional<std::int64_t> find(const char* key) const {
    long value = 0;
    if (codes_get_long(handle_, key, &value) != CODES_SUCCESS) return std::nullopt;
    return value;
  }
  /// "" where the message has no such key.
  std::string find_text(const char* key) const {
    std::string value(kLongestText, '\0');
    std::size_t length = value.size();
    if (codes_get_string(handle_, key, value.data(), &length) != CODES_SUCCESS) return "";
    return printable(value.c_str());
  }

 private:
  static constexpr std::size_t kLongestText = 1024;

  std::string what_;
  codes_handle* handle_;
};

}  // namespace jigsaw::inline files
