#pragma once
#include <hdf5.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "array/dtype.h"
#include "array/shape.h"

namespace jigsaw::inline files {

/// An HDF5 identifier, closed with the value. Made, used and closed under lock_io().
class Hdf5Handle {
 public:
  /// @throws CheckpointError  "HDF5 cannot <what> <where>" when `id` is none.
  Hdf5Handle(hid_t id, herr_t (*closer)(hid_t), const char* what, const std::string& where);
  Hdf5Handle(const Hdf5Handle&) = delete;
  Hdf5Handle& operator=(const Hdf5Handle&) = delete;
  ~Hdf5Handle();

  hid_t id() const { return id_; }
  /// Closes now; false when that failed.
  bool close();

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

/// The bytes of a new HDF5 file in memory. HDF5 never touches the disk, for a file that it failed to write
/// would take the process down at its end; and space of data sets that it only allocates takes no memory.
class Hdf5Image {
 public:
  /// Of file_bytes(): HDF5 takes so much at once.
  static constexpr std::int64_t kLeastBytes = 64 << 10;

  /// Calls `fill` with the open file, under lock_io(), and closes the file.
  /// @param path            of the file this becomes, for errors.
  /// @param metadata_bytes  room for all that describes data sets, at the begin of the file: were it to stand
  ///                        behind them, their space would take memory, too.
  /// @throws CheckpointError
  Hdf5Image(const std::string& path, std::int64_t metadata_bytes,
            const std::function<void(hid_t file)>& fill);
  Hdf5Image(const Hdf5Image&) = delete;
  Hdf5Image& operator=(const Hdf5Image&) = delete;

  /// The file from its begin on, as far as HDF5 wrote anything.
  std::span<const std::byte> bytes() const { return bytes_; }
  /// Its whole length, data sets included.
  std::int64_t file_bytes() const { return file_bytes_; }

 private:
  static void* reallocate(void* memory, std::size_t size, H5FD_file_image_op_t op, void* self);
  static void* allocate(std::size_t size, H5FD_file_image_op_t op, void* self);

  std::vector<std::byte> bytes_;
  std::int64_t file_bytes_ = 0;
};

/// How elements of a type stand in a file: little-endian IEEE. fp32 and fp64 only.
hid_t hdf5_type(DType dtype);
/// A data space of this shape, H5S_SCALAR for rank 0.
hid_t hdf5_space(const Shape& shape);

/// Attributes of an open object: a text, and a list of whole numbers. @throws CheckpointError
void write_attribute(hid_t object, const char* name, const std::string& value, const std::string& where);
void write_attribute(hid_t object, const char* name, std::span<const std::int64_t> values,
                     const std::string& where);

}  // namespace jigsaw::inline files
