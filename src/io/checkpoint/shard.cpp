#include "checkpoint/shard.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>

#include "array/host_view.h"
#include "base/file.h"
#include "base/text.h"
#include "files/digest.h"
#include "files/hdf5_image.h"

namespace jigsaw::inline checkpoint {
namespace {

std::span<const std::byte> bytes_of(const Array& array) {
  return HostView<const std::byte>(array);
}

/// Creates the data set of a piece; its offset in the file.
std::int64_t place_piece(hid_t file, hid_t creation, hid_t links, const PieceRecord& piece,
                         const std::string& data_set) {
  const std::string where = concat("the data set \"", data_set, "\"");
  const Hdf5Handle space(hdf5_space(piece.box.extent), H5Sclose, "describe", where);
  const Hdf5Handle set(
      H5Dcreate2(file, data_set.c_str(), hdf5_type(piece.dtype), space.id(), links, creation, H5P_DEFAULT),
      H5Dclose, "create", where);
  write_attribute(set.id(), "begin", std::span(piece.box.begin.begin(), piece.box.begin.end()), where);
  write_attribute(set.id(), "shape", std::span(piece.shape.begin(), piece.shape.end()), where);
  write_attribute(set.id(), "xxh64", piece.digest, where);
  const haddr_t offset = H5Dget_offset(set.id());
  if (offset == HADDR_UNDEF) throw CheckpointError(concat("HDF5 cannot place ", where));
  return static_cast<std::int64_t>(offset);
}

/// Lets HDF5 lay out a file with a data set for every piece, whose space is allocated and not filled; notes
/// where each stands.
void lay_out(hid_t file, std::vector<PieceRecord>& pieces, const std::string& path) {
  const Hdf5Handle creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose, "set up", path);
  const Hdf5Handle links(H5Pcreate(H5P_LINK_CREATE), H5Pclose, "set up", path);
  if (H5Pset_layout(creation.id(), H5D_CONTIGUOUS) < 0 ||
      H5Pset_alloc_time(creation.id(), H5D_ALLOC_TIME_EARLY) < 0 ||
      H5Pset_fill_time(creation.id(), H5D_FILL_TIME_NEVER) < 0 ||
      H5Pset_create_intermediate_group(links.id(), 1) < 0) {
    throw CheckpointError(concat("HDF5 cannot set up ", path));
  }
  std::map<std::string, std::size_t> count;
  for (PieceRecord& piece : pieces) {
    piece.offset = place_piece(file, creation.id(), links.id(), piece,
                               data_set_name(piece.tensor, count[piece.tensor]++));
  }
}

/// A new file that is written from its begin to its end, hashed on the way.
class HashedFile {
 public:
  HashedFile(const std::string& path, std::int64_t bytes) : file_(path, O_RDWR | O_CREAT | O_EXCL) {
    file_.reserve(bytes);
  }
  std::int64_t at() const { return at_; }
  void append(std::span<const std::byte> bytes) {
    digest_.add(bytes);
    write(bytes);
  }
  /// Bytes whose digest is known and stands for them.
  void append(std::span<const std::byte> bytes, const std::string& digest) {
    digest_.add(std::as_bytes(std::span(digest)));
    write(bytes);
  }
  FileRecord finish(const std::string& name) {
    file_.sync();
    return {name, at_, digest_.text()};
  }

 private:
  void write(std::span<const std::byte> bytes) {
    file_.write(bytes, at_);
    at_ += std::ssize(bytes);
  }

  File file_;
  Digest digest_;
  std::int64_t at_ = 0;
};

/// Bytes of the description up to `end`, and zeros where it has none.
void append_description(HashedFile& file, std::span<const std::byte> description, std::int64_t end) {
  const auto at = static_cast<std::size_t>(file.at()), to = static_cast<std::size_t>(end);
  if (at < description.size()) file.append(description.subspan(at, std::min(to, description.size()) - at));
  static constexpr std::array<std::byte, 4096> kZeros{};
  while (file.at() < end) {
    file.append(std::span(kZeros).first(std::min(kZeros.size(), static_cast<std::size_t>(end - file.at()))));
  }
}

}  // namespace

std::string shard_name(std::size_t index) {
  char text[32];
  std::snprintf(text, sizeof text, "rank_%04zu.h5", index);
  return text;
}

std::string data_set_name(const std::string& tensor, std::size_t number) {
  return concat(tensor, "#", number);
}

std::int64_t shard_description_bytes(std::size_t pieces) {
  return (32 << 10) + (2 << 10) * static_cast<std::int64_t>(pieces);
}

ShardRecord write_shard(const std::string& folder, const std::string& name,
                        const std::vector<CheckpointPiece>& pieces, const std::function<void()>& half_way) {
  const std::string path = concat(folder, "/", name);
  ShardRecord shard;
  std::vector<std::span<const std::byte>> data;
  for (const CheckpointPiece& piece : pieces) {
    if (piece.box.empty()) continue;
    data.push_back(bytes_of(piece.array));
    shard.pieces.push_back(
        {piece.tensor, piece.array.dtype(), piece.shape, piece.box, 0, digest_of(data.back())});
  }
  const Hdf5Image image(path, shard_description_bytes(data.size()),
                        [&](hid_t file) { lay_out(file, shard.pieces, path); });
  std::vector<std::size_t> order(data.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::sort(order, {}, [&](std::size_t i) { return shard.pieces[i].offset; });

  HashedFile file(path, image.file_bytes());
  bool told = !half_way;
  for (const std::size_t i : order) {
    if (!told && file.at() >= image.file_bytes() / 2) {
      half_way();
      told = true;
    }
    append_description(file, image.bytes(), shard.pieces[i].offset);
    file.append(data[i], shard.pieces[i].digest);
  }
  append_description(file, image.bytes(), image.file_bytes());
  if (!told) half_way();
  shard.file = file.finish(name);
  return shard;
}

FileRecord write_file(const std::string& folder, const std::string& name, std::span<const std::byte> bytes) {
  HashedFile file(concat(folder, "/", name), static_cast<std::int64_t>(bytes.size()));
  file.append(bytes);
  return file.finish(name);
}

}  // namespace jigsaw::inline checkpoint
