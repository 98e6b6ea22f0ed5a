#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "files/stored_type.h"

namespace jigsaw::inline files {

/// How one axis of the world, from left to right, from back to front or from below to above, runs through a
/// file.
struct NiftiAxis {
  int axis = 0;  ///< 0 for the one along which the file's points are adjacent, then 1 and 2
  bool reversed = false;

  bool operator==(const NiftiAxis&) const = default;
};

/// The header of a NIfTI-1 file as far as it is used.
struct NiftiHeader {
  static constexpr std::size_t kBytes = 352;  ///< with the four of the extension flag

  /// @param bytes  the file's first kBytes. @throws DataError  that begins with `path`, when they are none.
  NiftiHeader(std::span<const char> bytes, const std::string& path);

  bool swapped = false;  ///< of the other byte order
  std::vector<std::int64_t>
      extents;   ///< along the file's axes, at least three, those beyond as the file has them
  int rank = 3;  ///< so many of them the file names: of a picture two, and the third has one point
  StoredType type = StoredType::kF32;
  std::int64_t data_begin = 0;         ///< in bytes
  double scale = 1, offset = 0;        ///< physical = stored · scale + offset
  std::array<double, 3> spacing = {};  ///< in mm, along the file's axes
  /// From left to right (x), from back to front (y), from below to above (z): by the sform, else the qform,
  /// else as the file's axes are.
  std::array<NiftiAxis, 3> world;
  /// Where the point with these indices along the file's axes lies in mm, from left to right, from back to
  /// front, from below to above: row · (i, j, k, 1).
  std::array<std::array<double, 4>, 3> affine = {};
  /// What these places refer to, as sform_code or qform_code has it (1: the scanner, 2: another image, 3, 4:
  /// an atlas); 0 where the file says nothing and `affine` is its spacing alone.
  int place_code = 0;
  /// A rotation beside the sform, as nifti1.h has it, of which the latter is no copy: code (0: there is
  /// none), the quaternion's b, c, d, the place of point (0, 0, 0) in mm, and the sign of the third axis.
  /// None where pixdim, by which it steps, is not `spacing`.
  struct Qform {
    int code = 0;
    std::array<double, 3> quaternion = {}, origin = {};
    double third = 1;
  };
  Qform qform;
  /// Of a file with an sform and a qform how far they contradict each other.
  struct Contradiction {
    bool in_direction = false;  ///< by them an axis of the file runs more than 60° apart
    double origins = 0;         ///< so far apart they have point (0, 0, 0), in mm
  };
  Contradiction contradiction;
  bool units_known = true;  ///< false: of a file that says none millimetres are taken
  std::string description;
};

/// The first NiftiHeader::kBytes of a file that begins like this, decompressed where it is by gzip, as far as
/// they are there; the rest are 0.
std::array<char, NiftiHeader::kBytes> decompressed_begin(std::span<const char> begin);

/// Whether a file that begins like this, compressed by gzip or not, is NIfTI-1 in one file.
bool is_nifti(std::span<const char> begin);

}  // namespace jigsaw::inline files
