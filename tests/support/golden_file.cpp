#include "support/golden_file.h"

#include <hdf5.h>

#include "base/error.h"
#include "base/text.h"
#include "support/source_dir.h"

namespace jigsaw::testing {

namespace {

/// Closes an HDF5 object at the end of its scope.
class Handle {
 public:
  Handle(hid_t id, herr_t (*close)(hid_t), const std::string& what) : id_(id), close_(close) {
    if (id < 0) fail(concat("golden file: cannot open ", what));
  }
  ~Handle() { close_(id_); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  operator hid_t() const { return id_; }

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

std::string path_of(const std::string& name) {
  return concat(source_dir(), "/tests/goldens/", name);
}

Shape shape_of(hid_t space) {
  std::vector<hsize_t> extents(static_cast<std::size_t>(H5Sget_simple_extent_ndims(space)));
  H5Sget_simple_extent_dims(space, extents.data(), nullptr);
  Shape shape;
  for (const hsize_t extent : extents) shape.append(static_cast<std::int64_t>(extent));
  return shape;
}

}  // namespace

struct GoldenFile::State {
  explicit State(const std::string& path)
      : file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose, path) {}
  Handle file;
};

GoldenFile::GoldenFile(const std::string& name) : state_(std::make_unique<State>(path_of(name))) {}
GoldenFile::~GoldenFile() = default;

GoldenFile::Tensor GoldenFile::read(const std::string& path) const {
  const Handle set(H5Dopen2(state_->file, path.c_str(), H5P_DEFAULT), H5Dclose, path);
  const Handle space(H5Dget_space(set), H5Sclose, path);
  Tensor tensor{shape_of(space), {}};
  tensor.values.resize(static_cast<std::size_t>(tensor.shape.count()));
  if (H5Dread(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, tensor.values.data()) < 0) {
    fail(concat("golden file: cannot read ", path));
  }
  return tensor;
}

std::vector<double> GoldenFile::row(const std::string& path, int index) const {
  const Tensor all = read(path);
  const auto length = static_cast<std::ptrdiff_t>(all.shape.count(1, all.shape.rank()));
  const auto first = all.values.begin() + index * length;
  return {first, first + length};
}

std::vector<std::string> GoldenFile::names(const std::string& group) const {
  const Handle open(H5Gopen2(state_->file, group.c_str(), H5P_DEFAULT), H5Gclose, group);
  std::vector<std::string> names;
  const auto add = [](hid_t, const char* name, const H5L_info_t*, void* into) -> herr_t {
    static_cast<std::vector<std::string>*>(into)->emplace_back(name);
    return 0;
  };
  if (H5Literate(open, H5_INDEX_NAME, H5_ITER_INC, nullptr, add, &names) < 0) {
    fail(concat("golden file: cannot list ", group));
  }
  return names;
}

std::vector<double> GoldenFile::attribute(const std::string& path, const std::string& name) const {
  const std::string what = concat(path, " attribute ", name);
  const Handle open(H5Aopen_by_name(state_->file, path.c_str(), name.c_str(), H5P_DEFAULT, H5P_DEFAULT),
                    H5Aclose, what);
  const Handle space(H5Aget_space(open), H5Sclose, what);
  std::vector<double> values(static_cast<std::size_t>(H5Sget_simple_extent_npoints(space)));
  if (H5Aread(open, H5T_NATIVE_DOUBLE, values.data()) < 0) fail(concat("golden file: cannot read ", what));
  return values;
}

}  // namespace jigsaw::testing
