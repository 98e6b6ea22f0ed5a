#include "files/hdf5_file.h"

#include <hdf5.h>

#include <array>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "files/io_lock.h"

namespace jigsaw::inline files {

namespace {

constexpr int kDeepestGroup = 16;
constexpr std::size_t kMostDataSets = 10000, kLongestName = 1024;
/// Of decompressed chunks, per data set: reading slice by slice then decompresses each chunk once.
constexpr std::size_t kChunkCacheBytes = std::size_t{64} << 20, kChunkCacheSlots = 12421;

/// An HDF5 identifier, closed with the value; negative when there is none. Used under lock_io().
class Id {
 public:
  Id(hid_t id, herr_t (*closer)(hid_t)) : id_(id), close_(closer) {}
  Id(const Id&) = delete;
  Id& operator=(const Id&) = delete;
  ~Id() {
    if (id_ >= 0) close_(id_);
  }
  hid_t get() const { return id_; }
  bool valid() const { return id_ >= 0; }

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

bool is_number(hid_t type) {
  const H5T_class_t kind = H5Tget_class(type);
  return kind == H5T_INTEGER || kind == H5T_FLOAT;
}

std::string read_text(hid_t attribute, hid_t type, std::size_t longest) {
  if (H5Tis_variable_str(type) > 0) {
    char* text = nullptr;
    const Id memory(H5Tcopy(H5T_C_S1), H5Tclose);
    H5Tset_size(memory.get(), H5T_VARIABLE);
    H5Tset_cset(memory.get(), H5Tget_cset(type));
    if (H5Aread(attribute, memory.get(), &text) < 0 || text == nullptr) return "";
    std::string result = std::string(text).substr(0, longest);
    H5free_memory(text);
    return result;
  }
  std::string text(H5Tget_size(type), '\0');
  if (text.size() > longest || H5Aread(attribute, type, text.data()) < 0) return "";
  return text.substr(0, text.find('\0'));
}

/// The attribute, if it is there, as a text or as numbers.
void read_attribute(hid_t data_set, const std::string& name, std::size_t longest, FileVariable& variable) {
  if (H5Aexists(data_set, name.c_str()) <= 0) return;
  const Id attribute(H5Aopen(data_set, name.c_str(), H5P_DEFAULT), H5Aclose);
  const Id type(H5Aget_type(attribute.get()), H5Tclose), space(H5Aget_space(attribute.get()), H5Sclose);
  const hssize_t count = space.valid() ? H5Sget_simple_extent_npoints(space.get()) : 0;
  if (!type.valid() || count < 1 || count > static_cast<hssize_t>(longest)) return;
  if (H5Tget_class(type.get()) == H5T_STRING && count == 1) {
    variable.texts[name] = read_text(attribute.get(), type.get(), longest);
  } else if (is_number(type.get())) {
    std::vector<double> numbers(static_cast<std::size_t>(count));
    if (H5Aread(attribute.get(), H5T_NATIVE_DOUBLE, numbers.data()) >= 0) variable.numbers[name] = numbers;
  }
}

}  // namespace

Hdf5File::Hdf5File(std::string path) : VariableFile(std::move(path)) {
  const auto lock = lock_io();
  open();
  try {
    visit(id_, "", 0);
  } catch (...) {
    H5Fclose(id_);
    throw;
  }
}

Hdf5File::~Hdf5File() {
  close();
}

void Hdf5File::open() {
  if (id_ >= 0) return;
  id_ = H5Fopen(path().c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  if (id_ < 0) throw DataError(concat("cannot read ", path(), ": HDF5 does not open it"));
}

void Hdf5File::close() {
  const auto lock = lock_io();
  for (const auto& [name, data_set] : data_sets_) H5Dclose(data_set);
  data_sets_.clear();
  if (id_ >= 0) H5Fclose(id_);
  id_ = -1;
}

void Hdf5File::visit(std::int64_t group, const std::string& prefix, int depth) {
  H5G_info_t info;
  if (depth > kDeepestGroup || H5Gget_info(group, &info) < 0) return;
  for (hsize_t i = 0; i < info.nlinks && variables_.size() < kMostDataSets; ++i) {
    std::array<char, kLongestName> name{};
    const ssize_t length =
        H5Lget_name_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, i, name.data(), name.size(), H5P_DEFAULT);
    if (length <= 0 || static_cast<std::size_t>(length) >= name.size()) continue;
    const Id object(H5Oopen(group, name.data(), H5P_DEFAULT), H5Oclose);
    if (!object.valid()) continue;  // a link that leads nowhere
    const H5I_type_t kind = H5Iget_type(object.get());
    if (kind == H5I_DATASET) add(object.get(), prefix + name.data());
    if (kind == H5I_GROUP) visit(object.get(), prefix + name.data() + "/", depth + 1);
  }
}

void Hdf5File::add(std::int64_t data_set, const std::string& name) {
  const Id type(H5Dget_type(data_set), H5Tclose), space(H5Dget_space(data_set), H5Sclose);
  if (!type.valid() || !space.valid())
    throw DataError(concat("cannot read the header of ", name, " in ", path()));
  FileVariable variable;
  variable.name = name;
  const int rank = H5Sget_simple_extent_ndims(space.get());
  // A data set of more dimensions than any field has stays in the list, as one that cannot be read.
  if (rank >= 0 && rank <= Shape::kMaxRank) {
    std::array<hsize_t, Shape::kMaxRank> extents{};
    H5Sget_simple_extent_dims(space.get(), extents.data(), nullptr);
    for (int d = 0; d < rank; ++d)
      variable.shape.append(static_cast<std::int64_t>(extents[static_cast<std::size_t>(d)]));
    if (is_number(type.get())) variable.bytes = static_cast<std::int64_t>(H5Tget_size(type.get()));
    variable.single_precision = H5Tget_class(type.get()) == H5T_FLOAT && variable.bytes == 4;
    for (const std::string& attribute : attributes()) {
      read_attribute(data_set, attribute, kLongestAttribute, variable);
    }
  }
  variables_.push_back(std::move(variable));
}

/// The data set, open. Its chunk cache lives as long as it is.
std::int64_t Hdf5File::data_set(const std::string& name) {
  const auto known = data_sets_.find(name);
  if (known != data_sets_.end()) return known->second;
  const Id access(H5Pcreate(H5P_DATASET_ACCESS), H5Pclose);
  H5Pset_chunk_cache(access.get(), kChunkCacheSlots, kChunkCacheBytes, H5D_CHUNK_CACHE_W0_DEFAULT);
  const hid_t id = H5Dopen2(id_, name.c_str(), access.get());
  if (id < 0) throw DataError(concat("cannot open ", name, " of ", path()));
  return data_sets_[name] = id;
}

void Hdf5File::read_stored(const FileVariable& variable, const Box& box, std::span<double> out) {
  std::array<hsize_t, Shape::kMaxRank> start{}, extent{};
  const int rank = box.extent.rank();
  for (int d = 0; d < rank; ++d) {
    start[static_cast<std::size_t>(d)] = static_cast<hsize_t>(box.begin[d]);
    extent[static_cast<std::size_t>(d)] = static_cast<hsize_t>(box.extent[d]);
  }
  const auto lock = lock_io();
  open();
  const hid_t source = data_set(variable.name);
  const Id file_space(H5Dget_space(source), H5Sclose);
  const Id memory_space(H5Screate_simple(rank, extent.data(), nullptr), H5Sclose);
  const bool selected = rank == 0 || H5Sselect_hyperslab(file_space.get(), H5S_SELECT_SET, start.data(),
                                                         nullptr, extent.data(), nullptr) >= 0;
  if (!selected ||
      H5Dread(source, H5T_NATIVE_DOUBLE, memory_space.get(), file_space.get(), H5P_DEFAULT, out.data()) < 0) {
    throw DataError(concat("cannot read ", variable.name, " of ", path(), " at ", box,
                           ": HDF5 says that the file is damaged or lacks a filter"));
  }
}

}  // namespace jigsaw::inline files
