#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "array/box.h"
#include "files/nifti_header.h"

namespace jigsaw::inline files {

/// A data set of a file of images that is being written.
struct OutputImage {
  enum class Type : std::uint8_t {
    kFloat,
    kDouble,
    kByte,  ///< unsigned, 8 bits
    kShort  ///< signed, 16 bits
  };
  std::string name;  ///< in HDF5 with its groups, "scans/volume"
  Type type = Type::kFloat;
  std::vector<std::string> dimensions;  ///< their names
  Shape shape;
  /// Attributes.
  std::map<std::string, std::string> texts;
  std::map<std::string, std::vector<double>> numbers;
  /// Names of those coordinates of its points that are written with it.
  std::vector<std::string> coordinates = {};
};

/// Numbers along some dims of the data sets, or none, such as latitudes, or times.
struct OutputCoordinate {
  std::string name;
  std::vector<std::string> dimensions;  ///< its own name alone, or some of a data set's dims
  Shape shape;
  std::vector<double> values;                               ///< row-major
  std::map<std::string, std::string> texts;                 ///< attributes
  std::map<std::string, std::vector<double>> numbers = {};  ///< attributes
  bool single_precision = false;                            ///< written as float
};

/// A file of images being written, a box at a time, in any order. For one thread at a time.
///
/// Every failure is a DataError that names the file.
class ImageOutput {
 public:
  virtual ~ImageOutput() = default;
  /// The values of a box of data set `image`, row-major, rounded to its type.
  virtual void write(std::size_t image, const Box& box, std::span<const double> values) = 0;
  void write(std::size_t image, const Box& box, std::span<const float> values) {
    write(image, box, std::vector<double>(values.begin(), values.end()));
  }
  /// Closes the file, which is whole then.
  virtual void finish() = 0;
};

enum class ImageFormat : std::uint8_t { kHdf5, kNetcdf, kNifti, kNiftiGz };
/// By the end of a file's name: .h5, .hdf5, .nc, .nii, .nii.gz; nothing for others.
std::optional<ImageFormat> image_format(const std::string& path);

/// Creates the file.
///
/// HDF5: data sets in their groups, deflated in chunks. NetCDF-4: the same with dims; what stands between
/// slashes becomes a part of the name, a_b, and coordinates beside the data sets, as CF has them; bytes as
/// unsigned ones. NIfTI-1: one data set, whose last dims are height and width, or depth, height and width,
/// from below to above, from back to front, from left to right, with at most one dim before them; its numbers
/// "affine" (as NiftiFile gives them) or "spacing" (in the order of the last dims) say where it lies.
///
/// @param texts  attributes of the file; NIfTI takes "title" alone.
/// @param like   a NIfTI file through which the data set runs as it does through this one, whose place it
/// takes over; may be null.
/// @param coordinates  of dims of the data sets, for NetCDF; those are left out whose dims no data set has.
/// @throws DataError  also for what NIfTI cannot hold.
std::unique_ptr<ImageOutput> create_image_output(ImageFormat format, const std::string& path,
                                                 const std::vector<OutputImage>& images,
                                                 const std::map<std::string, std::string>& texts,
                                                 const NiftiHeader* like = nullptr,
                                                 const std::vector<OutputCoordinate>& coordinates = {});

}  // namespace jigsaw::inline files
