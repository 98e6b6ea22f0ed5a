#include "files/hdf5_values.h"

#include <array>

#include "base/error.h"
#include "base/heartbeat.h"
#include "base/text.h"
#include "files/chunk_cache.h"
#include "files/hdf5_walk.h"
#include "files/io_lock.h"

namespace jigsaw::inline files {

namespace {

/// What a thread decodes with, from chunk to chunk.
struct Scratch {
  ByteBuffer packed, chunk;
  ChunkDecoder decoder;
};
Scratch& scratch() {
  static thread_local Scratch own;
  return own;
}

constexpr std::size_t kLibraryCacheSlots = 1009;

std::array<hsize_t, Shape::kMaxRank> extents_of(const Shape& shape) {
  std::array<hsize_t, Shape::kMaxRank> extents{};
  for (int d = 0; d < shape.rank(); ++d)
    extents[static_cast<std::size_t>(d)] = static_cast<hsize_t>(shape[d]);
  return extents;
}

/// Deflate makes nothing smaller than by this.
constexpr std::size_t kMostDeflated = 1032, kFraming = 64;

std::array<hsize_t, Shape::kMaxRank> offset_of(const Shape& index, const Shape& chunks) {
  std::array<hsize_t, Shape::kMaxRank> offset{};
  for (int d = 0; d < index.rank(); ++d)
    offset[static_cast<std::size_t>(d)] = static_cast<hsize_t>(index[d] * chunks[d]);
  return offset;
}

}  // namespace

/// A data set that is being read.
struct Hdf5Values::Chunks {
  const std::string& name;
  hid_t id;
  std::int64_t key;
  const Hdf5Storage& storage;
  std::int64_t fetched = 0;
};

Hdf5Values::Hdf5Values(std::string path, External external, std::uint64_t key)
    : path_(std::move(path)), external_(external), key_(key), runs_(path_) {}

Hdf5Values::~Hdf5Values() {
  const auto lock = lock_io();
  close();
}

hid_t Hdf5Values::file() {
  if (file_ >= 0) return file_;
  file_ = H5Fopen(path_.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  if (file_ < 0) throw DataError(concat("cannot read ", path_, ": ", why_not_opened(path_)));
  try {
    file_bytes_ = file_state(path_).bytes;
  } catch (const FileError& error) {
    throw DataError(error.what());
  }
  return file_;
}

void Hdf5Values::close() {
  for (const auto& [name, data_set] : data_sets_) H5Dclose(data_set.id);
  data_sets_.clear();
  if (file_ >= 0) H5Fclose(file_);
  file_ = H5I_INVALID_HID;
  runs_.close();
  ChunkCache::shared().drop(key_);
}

hid_t Hdf5Values::open_data_set(const std::string& name, std::size_t cache_bytes) {
  const Hdf5Id access(H5Pcreate(H5P_DATASET_ACCESS), H5Pclose);
  guard_links(access.get(), external_);
  H5Pset_chunk_cache(access.get(), kLibraryCacheSlots, cache_bytes, H5D_CHUNK_CACHE_W0_DEFAULT);
  const hid_t id = H5Dopen2(file(), name.c_str(), access.get());
  if (id < 0) throw DataError(concat("cannot open ", name, " of ", path_));
  return id;
}

Hdf5Values::DataSet& Hdf5Values::opened(const std::string& name) {
  const auto known = data_sets_.find(name);
  if (known != data_sets_.end()) return known->second;
  hid_t id = open_data_set(name);
  const auto storage = std::make_shared<const Hdf5Storage>(storage_of(id, file_bytes_));
  if (storage->decodable &&
      storage->filters.empty()) {  // read_plain_chunk() wants no copy in the library's cache
    H5Dclose(id);
    id = open_data_set(name, 0);
  }
  return data_sets_[name] = {id, static_cast<std::int64_t>(stable_hash(name)), storage, std::nullopt};
}

std::shared_ptr<const Hdf5Storage> Hdf5Values::storage(const std::string& name) {
  const auto lock = lock_io();
  return opened(name).storage;
}

StoredNumbers Hdf5Values::read(const std::string& name, const Box& box, ByteBuffer& out,
                               std::int64_t& fetched) {
  DataSet set;
  {
    const auto lock = lock_io();
    set = opened(name);
  }
  const Hdf5Storage& storage = *set.storage;
  if (!(intersect(Box::whole(storage.extents), box) == box)) {
    throw DataError(concat("cannot read ", name, " of ", path_, " at ", box, ": it has ", storage.extents));
  }
  const std::int64_t bytes = box.extent.count() * size_of(storage.numbers.type);
  const std::span<std::byte> to = out.take(static_cast<std::size_t>(bytes));
  if (storage.piece) {
    fetched += runs_.read(*storage.piece, box, to);
  } else if (storage.decodable) {
    Chunks chunks{name, set.id, set.key, storage};
    fetched += read_chunks(chunks, box, to);
  } else {
    read_by_library(name, box, storage.numbers.type, to);
    fetched += bytes;
  }
  return storage.numbers;
}

std::optional<PlainNumbers> Hdf5Values::plain_numbers(const std::string& name) {
  const std::shared_ptr<const Hdf5Storage> stands = storage(name);
  if (!stands->piece) return {};
  return PlainNumbers{runs_.file_of_streams(), *stands->piece, stands->numbers};
}

void Hdf5Values::read_by_library(const std::string& name, const Box& box, std::optional<StoredType> as,
                                 std::span<std::byte> out) {
  const auto start = extents_of(box.begin), extent = extents_of(box.extent);
  const int rank = box.extent.rank();
  const auto lock = lock_io();
  const hid_t source = opened(name).id;
  const Hdf5Id file_space(H5Dget_space(source), H5Sclose);
  const Hdf5Id memory_space(H5Screate_simple(rank, extent.data(), nullptr), H5Sclose);
  const Hdf5Id stored(H5Dget_type(source), H5Tclose);
  const hid_t type = as ? native_type(*as) : stored.get();
  const bool selected = rank == 0 || H5Sselect_hyperslab(file_space.get(), H5S_SELECT_SET, start.data(),
                                                         nullptr, extent.data(), nullptr) >= 0;
  if (selected && H5Dread(source, type, memory_space.get(), file_space.get(), H5P_DEFAULT, out.data()) >= 0)
    return beat();
  const std::string filter = missing_filter(source);
  if (refers_to_files(source)) {
    throw DataError(concat("cannot read ", name, " of ", path_, " at ", box,
                           ": it or a file that it refers to is damaged or missing, or HDF5 lacks a filter"));
  }
  throw DataError(concat("cannot read ", name, " of ", path_, " at ", box,
                         filter.empty()
                             ? ": the file is damaged"
                             : concat(": it is compressed by the filter ", filter,
                                      ", which HDF5 lacks here; name the folder of the filter's plugin in "
                                      "HDF5_PLUGIN_PATH, or write the file anew with deflate")));
}

std::int64_t Hdf5Values::read_chunks(Chunks& from, const Box& box, std::span<std::byte> out) {
  if (box.empty()) return 0;
  const Hdf5Storage& storage = from.storage;
  const std::int64_t size = size_of(storage.numbers.type);
  const auto bytes = static_cast<std::size_t>(storage.chunks.count() * size);
  const std::size_t at_once = bytes * static_cast<std::size_t>(chunks_of(box, storage.chunks).extent.count());
  ChunkCache& cache = ChunkCache::shared();
  for_each_chunk(storage.extents, storage.chunks, box, [&](const WantedChunk& chunk) {
    const ChunkKey key{key_, from.key, chunk.number};
    if (const auto known = chunk.whole ? nullptr : cache.find(key, bytes))
      return copy_shared(*known, chunk.box, out, box, size);
    const std::size_t packed = packed_bytes(from, chunk.index);
    if (packed == 0) {
      const Box here = intersect(chunk.box, box);
      const std::span<std::byte> part =
          scratch().chunk.take(static_cast<std::size_t>(here.extent.count() * size));
      read_by_library(from.name, here, std::nullopt, part);
      return copy_shared(part, here, out, box, size);
    }
    const auto make = [&](std::span<std::byte> decoded) { fetch_chunk(from, chunk.index, packed, decoded); };
    if (!chunk.whole) return copy_shared(*cache.get(key, bytes, at_once, make), chunk.box, out, box, size);
    const std::span<std::byte> decoded = scratch().chunk.take(bytes);
    make(decoded);
    copy_shared(decoded, chunk.box, out, box, size);
  });
  return from.fetched;
}

bool Hdf5Values::has_all_chunks(DataSet& set) const {
  if (!set.has_all_chunks) {
    const Hdf5Storage& storage = *set.storage;
    const Hdf5Id space(H5Dget_space(set.id), H5Sclose);
    hsize_t written = 0;
    const bool counted = space.valid() && H5Dget_num_chunks(set.id, space.get(), &written) >= 0;
    const std::int64_t all = chunks_of(Box::whole(storage.extents), storage.chunks).extent.count();
    set.has_all_chunks = !counted || written >= static_cast<hsize_t>(all);
  }
  return *set.has_all_chunks;
}

std::size_t Hdf5Values::packed_bytes(const Chunks& from, const Shape& index) {
  const auto offset = offset_of(index, from.storage.chunks);
  const Hdf5Storage& storage = from.storage;
  const auto whole = static_cast<std::size_t>(storage.chunks.count() * size_of(storage.numbers.type));
  hsize_t bytes = 0;
  {
    const auto lock = lock_io();
    // HDF5 1.10 calls it an error that a chunk was never written, or that its index does not lead to it.
    if (H5Dget_chunk_storage_size(from.id, offset.data(), &bytes) < 0) {
      if (has_all_chunks(opened(from.name)))
        throw DataError(concat("the index of chunks of ", from.name, " in ", path_, " is damaged"));
      return 0;
    }
  }
  // What a damaged file claims is not allocated.
  const bool good =
      bytes <= static_cast<hsize_t>(file_bytes_) && (bytes == 0 || whole <= bytes * kMostDeflated + kFraming);
  if (!good) throw DataError(concat("a chunk of ", from.name, " in ", path_, " is cut off or damaged"));
  return bytes;
}

/// HDF5 1.10 fills the buffer of H5Dread_chunk with as many bytes as the file's index says the chunk has, and
/// tells, of data sets without filters, how many there should be. H5Dread goes by the latter.
void Hdf5Values::read_plain_chunk(Chunks& from, const Shape& index, std::span<std::byte> out) {
  const Hdf5Storage& storage = from.storage;
  const std::int64_t size = size_of(storage.numbers.type);
  Box chunk{index, storage.chunks};
  for (int d = 0; d < index.rank(); ++d) chunk.begin[d] *= storage.chunks[d];
  const Box here = intersect(chunk, Box::whole(storage.extents));
  const auto bytes = static_cast<std::size_t>(here.extent.count() * size);
  const std::span<std::byte> part = here == chunk ? out : scratch().packed.take(bytes);
  read_by_library(from.name, here, std::nullopt, part);
  from.fetched += std::ssize(part);
  if (here == chunk) return;
  std::ranges::fill(out, std::byte{0});
  copy_shared(part, here, out, chunk, size);
}

void Hdf5Values::fetch_chunk(Chunks& from, const Shape& index, std::size_t packed_bytes,
                             std::span<std::byte> out) {
  const Hdf5Storage& storage = from.storage;
  const auto offset = offset_of(index, storage.chunks);
  const auto what = [&] { return concat("a chunk of ", from.name, " in ", path_); };
  if (storage.filters.empty()) return read_plain_chunk(from, index, out);
  const std::span<std::byte> packed = scratch().packed.take(packed_bytes);
  std::uint32_t skipped = 0;
  {
    const auto lock = lock_io();
    if (H5Dread_chunk(from.id, H5P_DEFAULT, offset.data(), &skipped, packed.data()) < 0)
      throw DataError(concat(what(), " is cut off or damaged"));
  }
  from.fetched += std::ssize(packed);
  beat();
  const auto element = static_cast<std::size_t>(size_of(storage.numbers.type));
  scratch().decoder.decode(storage.filters, skipped, element, packed, out, what());
}

}  // namespace jigsaw::inline files
