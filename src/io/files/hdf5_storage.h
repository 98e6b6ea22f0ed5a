#pragma once
#include <hdf5.h>

#include <optional>
#include <string>
#include <vector>

#include "files/chunk_filters.h"
#include "files/hyperslab.h"
#include "files/unpacking.h"

namespace jigsaw::inline files {

/// How the numbers of an HDF5 data set stand in its file, as far as they can be read without the library: it
/// has neither other types than StoredType has, nor other filters than ChunkFilter, nor values in other
/// files.
struct Hdf5Storage {
  Shape extents;
  /// As the bytes have it; where they cannot be read, as the library shall give them.
  StoredNumbers numbers;
  std::optional<PlainArray> piece;  ///< it stands in one piece
  Shape chunks;                     ///< extents of its chunks; of rank 0 where it has none
  bool decodable = false;           ///< its chunks can be decoded here
  bool compressed = false;          ///< it has some filter
  std::vector<ChunkFilter> filters;

  bool by_bytes() const { return piece.has_value() || decodable; }
};

/// Of an open data set of numbers, under lock_io(). @param file_bytes  the length of its file.
Hdf5Storage storage_of(hid_t data_set, std::int64_t file_bytes);

/// Of the filters that the chunks of a data set went through the first that the library lacks, by its
/// registered number and its name: "32015 (Zstandard)"; "" where it lacks none. Under lock_io().
std::string missing_filter(hid_t data_set);
/// Whether its values stand in other files: a virtual data set, or external storage.
bool refers_to_files(hid_t data_set);

/// The type in memory of numbers that the library converts to.
hid_t native_type(StoredType type);

}  // namespace jigsaw::inline files
