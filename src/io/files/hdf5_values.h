#pragma once
#include <hdf5.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "files/byte_buffer.h"
#include "files/hdf5_storage.h"
#include "files/variable_file.h"

namespace jigsaw::inline files {

/// The numbers of an HDF5 file's data sets, for whatever calls them variables. What stands in one piece is
/// read past the library; of chunks the library gives the bytes, which are decoded outside of its lock, in as
/// many threads as read; the rest the library reads.
///
/// Thread-safe but for close().
class Hdf5Values {
 public:
  /// Opens nothing yet. @param key  the file's, in the cache of chunks.
  Hdf5Values(std::string path, External external, std::uint64_t key);
  ~Hdf5Values();
  Hdf5Values(const Hdf5Values&) = delete;
  Hdf5Values& operator=(const Hdf5Values&) = delete;

  /// The file, open until close(). Under lock_io(). @throws DataError
  hid_t file();
  /// Of the library, which serves only what is not decoded here.
  static constexpr std::size_t kLibraryCacheBytes = std::size_t{16} << 20;
  /// A data set of it, which the caller closes; one of texts before it gives the lock back, for HDF5 1.10 has
  /// these refer to the one of several handles of a file that came first, also when it has been closed. Under
  /// lock_io(). @throws DataError
  hid_t open_data_set(const std::string& name, std::size_t cache_bytes = kLibraryCacheBytes);
  bool is_open() const { return file_ >= 0; }
  void close();

  /// How a data set stands in the file. @throws DataError
  std::shared_ptr<const Hdf5Storage> storage(const std::string& name);
  /// The numbers of a box, which lies in the data set, row-major.
  /// @param fetched  gets the bytes that the system was asked for; of what the library reads, those wanted.
  /// @throws DataError
  StoredNumbers read(const std::string& name, const Box& box, ByteBuffer& out, std::int64_t& fetched);
  /// Nothing where a data set does not stand in one piece.
  std::optional<PlainNumbers> plain_numbers(const std::string& name);

 private:
  struct DataSet {
    hid_t id = H5I_INVALID_HID;
    std::int64_t key = 0;  ///< in the cache of chunks
    std::shared_ptr<const Hdf5Storage> storage;
    std::optional<bool> has_all_chunks;  ///< once it was asked
  };
  struct Chunks;

  DataSet& opened(const std::string& name);
  /// @param as  nothing: as they are stored.
  void read_by_library(const std::string& name, const Box& box, std::optional<StoredType> as,
                       std::span<std::byte> out);
  std::int64_t read_chunks(Chunks& from, const Box& box, std::span<std::byte> out);
  /// Bytes of the chunk at an index in the file; 0 where it was never written: the library then
  /// gives the fill value. @throws DataError  when there cannot be so many, they cannot hold a chunk, or the
  /// file's index does not lead to it.
  std::size_t packed_bytes(const Chunks& from, const Shape& index);
  /// Whether as many chunks stand in the file as the data set has, so that one which cannot be found is
  /// damage.
  bool has_all_chunks(DataSet& set) const;
  void read_plain_chunk(Chunks& from, const Shape& index, std::span<std::byte> out);
  /// Decodes it.
  void fetch_chunk(Chunks& from, const Shape& index, std::size_t packed_bytes, std::span<std::byte> out);

  std::string path_;
  External external_;
  std::uint64_t key_;
  hid_t file_ = H5I_INVALID_HID;
  std::int64_t file_bytes_ = 0;
  std::map<std::string, DataSet> data_sets_;
  RunReader runs_;
};

}  // namespace jigsaw::inline files
