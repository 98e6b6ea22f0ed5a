#include "files/hdf5_image.h"

#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "files/io_lock.h"

namespace jigsaw::inline files {
namespace {

constexpr std::size_t kIncrement = Hdf5Image::kLeastBytes;

void* copy(void* to, const void* from, std::size_t size, H5FD_file_image_op_t, void*) {
  return std::memcpy(to, from, size);
}
/// The image keeps its bytes when HDF5 frees them on closing the file.
herr_t release(void*, H5FD_file_image_op_t, void*) {
  return 0;
}
void* same(void* self) {
  return self;
}
herr_t forget(void*) {
  return 0;
}

}  // namespace

Hdf5Handle::Hdf5Handle(hid_t id, herr_t (*closer)(hid_t), const char* what, const std::string& where)
    : id_(id), close_(closer) {
  if (id_ < 0) throw CheckpointError(concat("HDF5 cannot ", what, " ", where));
}

Hdf5Handle::~Hdf5Handle() {
  if (id_ >= 0) close_(id_);
}

bool Hdf5Handle::close() {
  return close_(std::exchange(id_, -1)) >= 0;
}

Hdf5Image::Hdf5Image(const std::string& path, std::int64_t metadata_bytes,
                     const std::function<void(hid_t)>& fill) {
  const auto lock = lock_io();
  const Hdf5Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, "set up", path);
  H5FD_file_image_callbacks_t callbacks{allocate, copy, reallocate, release, same, forget, this};
  if (H5Pset_fapl_core(access.id(), kIncrement, false) < 0 ||
      H5Pset_file_image_callbacks(access.id(), &callbacks) < 0 ||
      H5Pset_meta_block_size(access.id(), static_cast<hsize_t>(metadata_bytes)) < 0) {
    throw CheckpointError(concat("HDF5 cannot set up ", path));
  }
  Hdf5Handle file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.id()), H5Fclose, "create", path);
  fill(file.id());
  hsize_t bytes = 0;
  if (H5Fget_filesize(file.id(), &bytes) < 0 || !file.close()) {
    throw CheckpointError(concat("HDF5 cannot lay out ", path));
  }
  file_bytes_ = static_cast<std::int64_t>(bytes);
  if (std::cmp_greater(bytes_.size(), file_bytes_)) bytes_.resize(static_cast<std::size_t>(file_bytes_));
}

void* Hdf5Image::reallocate(void*, std::size_t size, H5FD_file_image_op_t, void* self) {
  auto& bytes = static_cast<Hdf5Image*>(self)->bytes_;
  try {
    bytes.resize(size);
    return bytes.data();
  } catch (const std::exception&) {
    return nullptr;  // no exception may pass through HDF5
  }
}

void* Hdf5Image::allocate(std::size_t size, H5FD_file_image_op_t op, void* self) {
  return reallocate(nullptr, size, op, self);
}

hid_t hdf5_type(DType dtype) {
  if (dtype == DType::kFloat32) return H5T_IEEE_F32LE;
  if (dtype == DType::kFloat64) return H5T_IEEE_F64LE;
  fail("checkpoints hold fp32 and fp64 tensors only");
}

hid_t hdf5_space(const Shape& shape) {
  if (shape.rank() == 0) return H5Screate(H5S_SCALAR);
  const std::vector<hsize_t> extents(shape.begin(), shape.end());
  return H5Screate_simple(shape.rank(), extents.data(), nullptr);
}

void write_attribute(hid_t object, const char* name, const std::string& value, const std::string& where) {
  const Hdf5Handle type(H5Tcopy(H5T_C_S1), H5Tclose, "describe", where);
  const Hdf5Handle space(H5Screate(H5S_SCALAR), H5Sclose, "describe", where);
  if (H5Tset_size(type.id(), value.size() + 1) < 0)
    throw CheckpointError(concat("HDF5 cannot describe ", where));
  const Hdf5Handle attribute(H5Acreate2(object, name, type.id(), space.id(), H5P_DEFAULT, H5P_DEFAULT),
                             H5Aclose, "describe", where);
  if (H5Awrite(attribute.id(), type.id(), value.c_str()) < 0) {
    throw CheckpointError(concat("HDF5 cannot describe ", where));
  }
}

void write_attribute(hid_t object, const char* name, std::span<const std::int64_t> values,
                     const std::string& where) {
  const auto count = static_cast<hsize_t>(values.size());
  const Hdf5Handle space(H5Screate_simple(1, &count, nullptr), H5Sclose, "describe", where);
  const Hdf5Handle attribute(H5Acreate2(object, name, H5T_STD_I64LE, space.id(), H5P_DEFAULT, H5P_DEFAULT),
                             H5Aclose, "describe", where);
  if (count > 0 && H5Awrite(attribute.id(), H5T_NATIVE_INT64, values.data()) < 0) {
    throw CheckpointError(concat("HDF5 cannot describe ", where));
  }
}

}  // namespace jigsaw::inline files
