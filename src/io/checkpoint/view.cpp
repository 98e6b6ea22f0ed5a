#include "checkpoint/view.h"

#include <algorithm>
#include <limits>
#include <map>

#include "base/text.h"
#include "files/hdf5_image.h"

namespace jigsaw::inline checkpoint {
namespace {

/// A piece and the data set that holds it.
struct Source {
  const PieceRecord* piece;
  std::string file, data_set;
};
struct Whole {
  const PieceRecord* any;  ///< whose tensor it is
  std::vector<Source> sources;
};

/// By name without the group, in the order of names.
std::map<std::string, Whole> gather(const std::vector<ShardRecord>& shards, const std::string& group) {
  std::map<std::string, Whole> tensors;
  for (const ShardRecord& shard : shards) {
    std::map<std::string, std::size_t> count;
    for (const PieceRecord& piece : shard.pieces) {
      const std::size_t number = count[piece.tensor]++;
      if (!piece.tensor.starts_with(group + "/")) continue;
      Whole& whole = tensors[piece.tensor.substr(group.size() + 1)];
      whole.any = &piece;
      whole.sources.push_back({&piece, shard.file.name, data_set_name(piece.tensor, number)});
    }
  }
  return tensors;
}

void add_source(hid_t creation, const Source& source, const std::string& where) {
  const Box& box = source.piece->box;
  const Hdf5Handle from(hdf5_space(box.extent), H5Sclose, "describe", where);
  const Hdf5Handle to(hdf5_space(source.piece->shape), H5Sclose, "describe", where);
  const std::vector<hsize_t> begin(box.begin.begin(), box.begin.end());
  const std::vector<hsize_t> extent(box.extent.begin(), box.extent.end());
  if ((!begin.empty() &&
       H5Sselect_hyperslab(to.id(), H5S_SELECT_SET, begin.data(), nullptr, extent.data(), nullptr) < 0) ||
      H5Pset_virtual(creation, to.id(), source.file.c_str(), source.data_set.c_str(), from.id()) < 0) {
    throw CheckpointError(concat("HDF5 cannot describe ", where));
  }
}

void add_tensor(hid_t file, const std::string& name, const Whole& whole) {
  const std::string where = concat("the virtual data set \"", name, "\"");
  const Hdf5Handle creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose, "set up", where);
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  if (H5Pset_fill_value(creation.id(), H5T_NATIVE_DOUBLE, &kNan) < 0) {
    throw CheckpointError(concat("HDF5 cannot set up ", where));
  }
  for (const Source& source : whole.sources) add_source(creation.id(), source, where);
  const Hdf5Handle space(hdf5_space(whole.any->shape), H5Sclose, "describe", where);
  const Hdf5Handle set(H5Dcreate2(file, name.c_str(), hdf5_type(whole.any->dtype), space.id(), H5P_DEFAULT,
                                  creation.id(), H5P_DEFAULT),
                       H5Dclose, "create", where);
}

}  // namespace

std::int64_t view_description_bytes(std::int64_t tensors, std::int64_t pieces) {
  return (32 << 10) + (2 << 10) * tensors + (1 << 10) * pieces;
}

FileRecord write_view(const std::string& folder, const std::string& name, const std::string& group,
                      const std::vector<ShardRecord>& shards) {
  const std::map<std::string, Whole> tensors = gather(shards, group);
  std::int64_t pieces = 0;
  for (const auto& [tensor, whole] : tensors) pieces += std::ssize(whole.sources);
  const Hdf5Image image(concat(folder, "/", name), view_description_bytes(std::ssize(tensors), pieces),
                        [&](hid_t file) {
                          for (const auto& [tensor, whole] : tensors) add_tensor(file, tensor, whole);
                        });
  return write_file(folder, name, image.bytes());
}

}  // namespace jigsaw::inline checkpoint
