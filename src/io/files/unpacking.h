#pragma once
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "files/stored_type.h"

namespace jigsaw::inline files {

struct FileVariable;

/// How the numbers stand that a format gives.
struct StoredNumbers {
  StoredType type = StoredType::kF64;
  bool swapped = false;  ///< in the byte order that is not this machine's
};

/// From stored numbers to physical ones: stored · scale_factor + add_offset; NaN for _FillValue,
/// missing_value, what is outside valid_range (or valid_min, valid_max) and what is not finite.
///
/// These limits are of stored numbers, but those of floating-point types beside packed integers, which are of
/// physical ones (NetCDF User's Guide, Attribute Conventions: a type wider than the stored one).
///
/// Signed integers with _Unsigned "true" stand for the unsigned ones of the same bits, in these attributes,
/// too (NetCDF User's Guide, for classic files, which have no unsigned types).
///
/// Arithmetic is in double and rounded once, unless a variable is exact in float (exact_in_float), where
/// float gives the same bits.
class Unpacking {
 public:
  explicit Unpacking(const FileVariable& variable);

  /// Whether every number of the variable, unpacked, is a float: it has neither scale_factor nor add_offset,
  /// and is stored as float or as an integer of at most 16 bits.
  static bool exact_in_float(const FileVariable& variable);

  /// Fills `out`, float or double, from as many numbers of `stored`.
  /// @return  how many are not finite though nothing says that they are missing.
  template <typename T>
  std::int64_t unpack(StoredNumbers numbers, std::span<const std::byte> stored, std::span<T> out) const;
  /// How many of these unpack() counts for they are infinite.
  std::int64_t infinite(StoredNumbers numbers, std::span<const std::byte> stored) const;

 private:
  void add_missing(const FileVariable& variable, const char* attribute);

  double stored_number(const FileVariable& variable, const char* attribute, double value) const;
  void limit(const FileVariable& variable, const char* attribute, std::size_t entry, bool upper);
  double stored_limit(double value, bool upper) const;

  static constexpr double kInfinity = std::numeric_limits<double>::infinity();
  double scale_ = 1, offset_ = 0, low_ = -kInfinity, high_ = kInfinity;
  std::vector<double> missing_;  ///< each once
  bool nan_is_missing_ = false;
  bool unsigned_ = false;
};

}  // namespace jigsaw::inline files
