#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "array/box.h"
#include "base/file.h"

namespace jigsaw::inline files {

/// An array that stands uncompressed in a file.
struct PlainArray {
  std::int64_t begin = 0;  ///< where element 0 stands, in bytes
  Shape strides;           ///< bytes from one entry of a dim to the next
  std::int64_t size = 0;   ///< bytes of an element

  /// Row-major without gaps.
  static PlainArray contiguous(std::int64_t begin, const Shape& extents, std::int64_t size);
};

/// A box as NetCDF's functions take it.
struct Slab {
  explicit Slab(const Box& box) {
    for (int d = 0; d < box.extent.rank(); ++d) {
      start[static_cast<std::size_t>(d)] = static_cast<std::size_t>(box.begin[d]);
      extent[static_cast<std::size_t>(d)] = static_cast<std::size_t>(box.extent[d]);
    }
  }
  std::array<std::size_t, Shape::kMaxRank> start{}, extent{};
};

/// Copies what two boxes of one index space share, both row-major with elements of `size` bytes.
void copy_shared(std::span<const std::byte> from, const Box& from_box, std::span<std::byte> to,
                 const Box& to_box, std::int64_t size);

/// The next place of a box in row-major order of its first `rank` dims; false behind the last.
bool advance(Shape& at, const Box& box, int rank);

/// First to last chunk of each dim that a box, which is not empty, has points in.
Box chunks_of(const Box& box, const Shape& chunks);

/// A chunk of an array that a hyperslab has points of.
struct WantedChunk {
  Shape index;              ///< along each dim
  Box box;                  ///< its points; the last ones of a dim may lie beyond the array
  std::int64_t number = 0;  ///< among all chunks of the array, row-major
  bool whole = false;       ///< all its points in the array are wanted: nothing is left for later
};
/// Calls `use` for each, row-major. @param box  lies in the array and is not empty.
void for_each_chunk(const Shape& extents, const Shape& chunks, const Box& box,
                    const std::function<void(const WantedChunk&)>& use);

/// Reads points `first`, `first` + 1, … of a box of an array, counted row-major, as many as `out` has room
/// for, by the runs of bytes that they are. The box lies in the array. Runs with a small gap between them (an
/// eighth of a run, at most a page) are read together.
/// @return  bytes that the system was asked for.
/// @throws DataError  also when the file ends before.
std::int64_t read_points(const File& file, const PlainArray& array, const Box& box, std::int64_t first,
                         std::span<std::byte> out);
/// Has the system fetch such points from disk, `count` of them, while the program goes on; with what lies
/// between runs that are no farther apart than it reads ahead anyway.
void prefetch_points(const File& file, const PlainArray& array, const Box& box, std::int64_t first,
                     std::int64_t count);

/// Reads hyperslabs of a file, which is opened when it is needed. Thread-safe but for close().
class RunReader {
 public:
  explicit RunReader(std::string path) : path_(std::move(path)) {}

  /// All of a box, as read_points() does.
  std::int64_t read(const PlainArray& array, const Box& box, std::span<std::byte> out);
  /// The file, for whoever prefetches its points: the system does not read ahead in it. It stays open as long
  /// as anyone has it. @throws DataError
  std::shared_ptr<const File> file_of_streams();
  void close() { file_.reset(); }

 private:
  std::shared_ptr<const File> file();
  void advise(const File& file, bool far_apart);

  std::string path_;
  std::mutex mutex_;  ///< guards what follows
  std::shared_ptr<const File> file_;
  std::weak_ptr<const File> last_;  ///< which a stream may have
  std::atomic<bool> far_apart_ = false;
};

}  // namespace jigsaw::inline files
