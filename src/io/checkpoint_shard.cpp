#include "io/checkpoint_shard.h"

#include <fcntl.h>
#include <hdf5.h>
#include <xxhash.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "io/io_lock.h"

namespace jigsaw {
namespace {

constexpr std::int64_t kDigestBytes = 4 << 20;

/// An HDF5 identifier, closed with the value. Made, used and closed under lock_io().
class Handle {
 public:
  Handle(hid_t id, herr_t (*closer)(hid_t), const char* what, const std::string& where)
      : id_(id), close_(closer) {
    if (id_ < 0) throw CheckpointError(concat("HDF5 cannot ", what, " ", where));
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() {
    if (id_ >= 0) close_(id_);
  }

  hid_t id() const { return id_; }
  /// Closes now; false when that failed.
  bool close() { return close_(std::exchange(id_, -1)) >= 0; }

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

/// Where the bytes of each piece stand in the file; -1 for an empty one.
using Offsets = std::vector<std::int64_t>;

hid_t file_type(DType dtype) {
  if (dtype == DType::kFloat32) return H5T_IEEE_F32LE;
  if (dtype == DType::kFloat64) return H5T_IEEE_F64LE;
  fail("checkpoints hold fp32 and fp64 pieces only");
}

std::string describe(const CheckpointPiece& piece, const std::string& path) {
  return concat("the piece \"", piece.name, "\" in ", path);
}

std::int64_t place_piece(hid_t file, hid_t creation, hid_t links, const CheckpointPiece& piece,
                         const std::string& where) {
  const auto count = static_cast<hsize_t>(piece.array.count());
  const Handle space(H5Screate_simple(1, &count, nullptr), H5Sclose, "describe", where);
  const Handle set(H5Dcreate2(file, piece.name.c_str(), file_type(piece.array.dtype()), space.id(), links,
                              creation, H5P_DEFAULT),
                   H5Dclose, "create", where);
  if (count == 0) return -1;
  const haddr_t offset = H5Dget_offset(set.id());
  if (offset == HADDR_UNDEF) throw CheckpointError(concat("HDF5 cannot place ", where));
  return static_cast<std::int64_t>(offset);
}

/// More than HDF5 needs to describe the pieces and the groups they may be alone in.
std::int64_t generous_metadata_bytes(const std::vector<CheckpointPiece>& pieces) {
  std::int64_t bytes = 32 << 10;
  for (const CheckpointPiece& piece : pieces) bytes += (2 << 10) * (1 + std::ranges::count(piece.name, '/'));
  return bytes;
}

/// A file of HDF5's in memory. It keeps the bytes when HDF5 frees them on closing the file.
class MemoryFile {
 public:
  /// Lets files made with this access list live here. What describes the pieces fits into `bytes` at the
  /// beginning of the file: were it to stand behind them, they would take memory, too.
  void use_in(hid_t access, std::int64_t bytes, const std::string& path) {
    H5FD_file_image_callbacks_t callbacks{allocate, copy, reallocate, release, same, forget, this};
    if (H5Pset_fapl_core(access, kIncrement, false) < 0 ||
        H5Pset_file_image_callbacks(access, &callbacks) < 0 ||
        H5Pset_meta_block_size(access, static_cast<hsize_t>(bytes)) < 0) {
      throw CheckpointError(concat("HDF5 cannot set up ", path));
    }
  }

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  static constexpr std::size_t kIncrement = 64 << 10;

  static void* reallocate(void*, std::size_t size, H5FD_file_image_op_t, void* self) {
    auto& bytes = static_cast<MemoryFile*>(self)->bytes_;
    try {
      bytes.resize(size);
      return bytes.data();
    } catch (const std::exception&) {
      return nullptr;  // no exception may pass through HDF5
    }
  }
  static void* allocate(std::size_t size, H5FD_file_image_op_t op, void* self) {
    return reallocate(nullptr, size, op, self);
  }
  static void* copy(void* to, const void* from, std::size_t size, H5FD_file_image_op_t, void*) {
    return std::memcpy(to, from, size);
  }
  static herr_t release(void*, H5FD_file_image_op_t, void*) { return 0; }
  static void* same(void* self) { return self; }
  static herr_t forget(void*) { return 0; }

  std::vector<std::byte> bytes_;
};

struct Layout {
  MemoryFile description;  ///< the file from its begin on, as far as HDF5 wrote anything
  std::int64_t file_bytes = 0;
  Offsets offsets;
};

/// Lets HDF5 lay out a file with a data set for every piece, whose space is allocated and not filled.
/// @param path  of the file this becomes.
void lay_out(Layout& layout, const std::string& path, const std::vector<CheckpointPiece>& pieces) {
  const auto lock = lock_io();
  const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, "set up", path);
  layout.description.use_in(access.id(), generous_metadata_bytes(pieces), path);
  Handle file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.id()), H5Fclose, "create", path);
  {
    const Handle creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose, "set up", path);
    const Handle links(H5Pcreate(H5P_LINK_CREATE), H5Pclose, "set up", path);
    if (H5Pset_layout(creation.id(), H5D_CONTIGUOUS) < 0 ||
        H5Pset_alloc_time(creation.id(), H5D_ALLOC_TIME_EARLY) < 0 ||
        H5Pset_fill_time(creation.id(), H5D_FILL_TIME_NEVER) < 0 ||
        H5Pset_create_intermediate_group(links.id(), 1) < 0) {
      throw CheckpointError(concat("HDF5 cannot set up ", path));
    }
    for (const CheckpointPiece& piece : pieces) {
      layout.offsets.push_back(
          place_piece(file.id(), creation.id(), links.id(), piece, describe(piece, path)));
    }
  }
  hsize_t bytes = 0;
  if (H5Fget_filesize(file.id(), &bytes) < 0 || !file.close()) {
    throw CheckpointError(concat("HDF5 cannot lay out ", path));
  }
  layout.file_bytes = static_cast<std::int64_t>(bytes);
}

std::int64_t find_piece(hid_t file, const CheckpointPiece& piece, const std::string& where) {
  const Handle set(H5Dopen2(file, piece.name.c_str(), H5P_DEFAULT), H5Dclose, "find", where);
  const Handle type(H5Dget_type(set.id()), H5Tclose, "describe", where);
  const Handle space(H5Dget_space(set.id()), H5Sclose, "describe", where);
  if (H5Tequal(type.id(), file_type(piece.array.dtype())) <= 0 ||
      H5Sget_simple_extent_npoints(space.id()) != piece.array.count()) {
    throw CheckpointError(
        concat(where, " does not hold ", piece.array.count(), " numbers of ", name(piece.array.dtype())));
  }
  if (piece.array.count() == 0) return -1;
  const haddr_t offset = H5Dget_offset(set.id());
  if (offset == HADDR_UNDEF) throw CheckpointError(concat(where, " is not stored contiguously"));
  return static_cast<std::int64_t>(offset);
}

Offsets find_pieces(const std::string& path, const std::vector<CheckpointPiece>& pieces) {
  const auto lock = lock_io();
  const Handle file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose, "open", path);
  Offsets offsets;
  for (const CheckpointPiece& piece : pieces) {
    offsets.push_back(find_piece(file.id(), piece, describe(piece, path)));
  }
  return offsets;
}

std::span<std::byte> bytes_of(const Array& array) {
  require(array.device() == Device::kCpu, "checkpoints hold pieces that stand on the host");
  return {array.raw(), static_cast<std::size_t>(array.bytes())};
}

std::string hexadecimal(XXH64_hash_t hash) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

}  // namespace

void write_shard(const std::string& path, const std::vector<CheckpointPiece>& pieces) {
  Layout layout;
  lay_out(layout, path, pieces);
  File file(path, O_RDWR | O_CREAT | O_EXCL);
  file.reserve(layout.file_bytes);
  const auto description = layout.description.bytes();
  file.write(description.first(std::min(description.size(), static_cast<std::size_t>(layout.file_bytes))), 0);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (layout.offsets[i] >= 0) file.write(bytes_of(pieces[i].array), layout.offsets[i]);
  }
  file.sync();
}

void read_shard(const std::string& path, const std::vector<CheckpointPiece>& pieces) {
  const Offsets offsets = find_pieces(path, pieces);
  const File file(path, O_RDONLY);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (offsets[i] >= 0) file.read(bytes_of(pieces[i].array), offsets[i]);
  }
}

std::string digest_of_text(std::string_view text) {
  return hexadecimal(XXH64(text.data(), text.size(), 0));
}

std::string digest_of_file(const std::string& path) {
  const File file(path, O_RDONLY);
  const std::int64_t size = file.size();
  const std::unique_ptr<XXH64_state_t, XXH_errorcode (*)(XXH64_state_t*)> state(XXH64_createState(),
                                                                                XXH64_freeState);
  require(state != nullptr, "no memory for a digest");
  XXH64_reset(state.get(), 0);
  std::vector<std::byte> buffer(static_cast<std::size_t>(std::min(size, kDigestBytes)));
  for (std::int64_t offset = 0; offset < size; offset += kDigestBytes) {
    const std::span part(buffer.data(), static_cast<std::size_t>(std::min(size - offset, kDigestBytes)));
    file.read(part, offset);
    XXH64_update(state.get(), part.data(), part.size());
  }
  return hexadecimal(XXH64_digest(state.get()));
}

}  // namespace jigsaw
