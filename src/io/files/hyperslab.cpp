#include "files/hyperslab.h"

#include <fcntl.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "base/heartbeat.h"
#include "base/text.h"

namespace jigsaw::inline files {

namespace {

constexpr std::int64_t kMostAtOnce = std::int64_t{8} << 20, kLargestGap = 4096, kSmallestGap = 64;
constexpr std::size_t kMostParts = 512;  // below IOV_MAX
/// From this length on the kernel's reading ahead gains nothing, and costs what is not wanted.
constexpr std::int64_t kLongRun = 64 << 10;
/// So far apart the system takes what is read for one stream.
constexpr std::int64_t kReadAhead = 64 << 10;

/// Runs of bytes that the system is asked for together.
class Gathered {
 public:
  explicit Gathered(const File& file) : file_(file) {}

  void add(std::int64_t offset, std::byte* to, std::int64_t bytes) {
    while (bytes > 0) {
      const std::int64_t part = std::min(bytes, kMostAtOnce);
      add_part(offset, to, part);
      offset += part;
      to += part;
      bytes -= part;
    }
  }

  void flush() {
    const std::int64_t bytes = end_ - begin_;
    std::int64_t done = 0;
    std::size_t first = 0;
    while (done < bytes) {
      const ssize_t count = ::preadv(file_.descriptor(), parts_.data() + first,
                                     static_cast<int>(parts_.size() - first), begin_ + done);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) {
        throw DataError(
            concat("cannot read ", file_.path(), ": ", count == 0 ? "it is cut off" : std::strerror(errno)));
      }
      done += count;
      first = skip(first, static_cast<std::size_t>(count));
    }
    fetched_ += bytes;
    parts_.clear();
    begin_ = end_ = 0;
    beat();
  }

  std::int64_t fetched() const { return fetched_; }

 private:
  void add_part(std::int64_t offset, std::byte* to, std::int64_t bytes) {
    const std::int64_t gap = offset - end_;
    const bool near = !parts_.empty() && gap >= 0 && gap <= std::clamp(bytes / 8, kSmallestGap, kLargestGap);
    if (!near || parts_.size() + 2 > kMostParts || offset + bytes - begin_ > kMostAtOnce) {
      if (!parts_.empty()) flush();
      begin_ = end_ = offset;
    }
    if (offset > end_) parts_.push_back({unwanted_.data(), static_cast<std::size_t>(offset - end_)});
    parts_.push_back({to, static_cast<std::size_t>(bytes)});
    end_ = offset + bytes;
  }

  /// Passes over what has been read; the first part that is not whole.
  std::size_t skip(std::size_t first, std::size_t bytes) {
    while (bytes > 0) {
      iovec& part = parts_[first];
      const std::size_t here = std::min(bytes, part.iov_len);
      part.iov_base = static_cast<std::byte*>(part.iov_base) + here;
      part.iov_len -= here;
      bytes -= here;
      if (part.iov_len == 0) ++first;
    }
    return first;
  }

  const File& file_;
  std::vector<iovec> parts_;
  std::int64_t begin_ = 0, end_ = 0, fetched_ = 0;
  std::array<std::byte, kLargestGap> unwanted_;
};

/// The runs of bytes that a box of an array consists of.
struct Runs {
  Runs(const PlainArray& from, const Box& wanted) : array(from), box(wanted), outer(wanted.extent.rank()) {
    while (outer > 0 && (array.strides[outer - 1] == points * array.size || box.extent[outer - 1] == 1))
      points *= box.extent[--outer];
  }
  /// Where the run begins that a point, counted row-major, is in.
  Shape place(std::int64_t point) const {
    Shape at = box.begin;
    std::int64_t run = point / points;
    for (int d = outer - 1; d >= 0; --d) {
      at[d] += run % box.extent[d];
      run /= box.extent[d];
    }
    return at;
  }
  std::int64_t offset(const Shape& at) const {
    std::int64_t offset = array.begin;
    for (int d = 0; d < at.rank(); ++d) offset += at[d] * array.strides[d];
    return offset;
  }

  const PlainArray& array;
  const Box& box;
  int outer;                ///< dims along which runs lie apart
  std::int64_t points = 1;  ///< of a run
};

}  // namespace

PlainArray PlainArray::contiguous(std::int64_t begin, const Shape& extents, std::int64_t size) {
  PlainArray array{begin, extents.strides(), size};
  for (int d = 0; d < extents.rank(); ++d) array.strides[d] *= size;
  return array;
}

bool advance(Shape& at, const Box& box, int rank) {
  for (int d = rank - 1; d >= 0; --d) {
    if (++at[d] < box.end(d)) return true;
    at[d] = box.begin[d];
  }
  return false;
}

Box chunks_of(const Box& box, const Shape& chunks) {
  Box result = box;
  for (int d = 0; d < chunks.rank(); ++d) {
    result.begin[d] = box.begin[d] / chunks[d];
    result.extent[d] = (box.end(d) - 1) / chunks[d] - result.begin[d] + 1;
  }
  return result;
}

void for_each_chunk(const Shape& extents, const Shape& chunks, const Box& box,
                    const std::function<void(const WantedChunk&)>& use) {
  const Box array = Box::whole(extents), wanted = chunks_of(box, chunks);
  Shape grid;
  for (int d = 0; d < extents.rank(); ++d) grid.append((extents[d] + chunks[d] - 1) / chunks[d]);
  const Shape strides = grid.strides();
  Shape index = wanted.begin;
  do {
    WantedChunk chunk{index, {index, chunks}};
    for (int d = 0; d < index.rank(); ++d) {
      chunk.box.begin[d] *= chunks[d];
      chunk.number += index[d] * strides[d];
    }
    chunk.whole = intersect(chunk.box, box) == intersect(chunk.box, array);
    use(chunk);
  } while (advance(index, wanted, index.rank()));
}

void copy_shared(std::span<const std::byte> from, const Box& from_box, std::span<std::byte> to,
                 const Box& to_box, std::int64_t size) {
  const Box shared = intersect(from_box, to_box);
  if (shared.empty()) return;
  const Shape from_strides = from_box.extent.strides(), to_strides = to_box.extent.strides();
  // Dims that both hold whole are one run with what is left of them.
  int outer = shared.extent.rank();
  std::int64_t run = 1;
  while (outer > 0 && from_strides[outer - 1] == run && to_strides[outer - 1] == run)
    run *= shared.extent[--outer];
  Shape at = shared.begin;
  do {
    std::int64_t source = 0, target = 0;
    for (int d = 0; d < at.rank(); ++d) {
      source += (at[d] - from_box.begin[d]) * from_strides[d];
      target += (at[d] - to_box.begin[d]) * to_strides[d];
    }
    std::memcpy(to.data() + target * size, from.data() + source * size, static_cast<std::size_t>(run * size));
  } while (advance(at, shared, outer));
}

std::shared_ptr<const File> RunReader::file() {
  const std::lock_guard lock(mutex_);
  if (!file_) file_ = last_.lock();
  if (file_) return file_;
  try {
    file_ = std::make_shared<const File>(path_, O_RDONLY);
    last_ = file_;
    far_apart_ = false;
  } catch (const FileError& error) {
    throw DataError(error.what());
  }
  return file_;
}

void RunReader::advise(const File& file, bool far_apart) {
  if (far_apart_.exchange(far_apart) == far_apart) return;
  ::posix_fadvise(file.descriptor(), 0, 0, far_apart ? POSIX_FADV_RANDOM : POSIX_FADV_NORMAL);
}

std::int64_t read_points(const File& file, const PlainArray& array, const Box& box, std::int64_t first,
                         std::span<std::byte> out) {
  const Runs runs(array, box);
  Gathered gathered(file);
  std::byte* to = out.data();
  std::int64_t left = std::ssize(out) / array.size, skipped = first % runs.points;
  for (Shape at = runs.place(first); left > 0; advance(at, box, runs.outer)) {
    const std::int64_t points = std::min(left, runs.points - skipped);
    gathered.add(runs.offset(at) + skipped * array.size, to, points * array.size);
    to += points * array.size;
    left -= points;
    skipped = 0;
  }
  gathered.flush();
  return gathered.fetched();
}

void prefetch_points(const File& file, const PlainArray& array, const Box& box, std::int64_t first,
                     std::int64_t count) {
  const Runs runs(array, box);
  std::int64_t begin = 0, end = 0, skipped = first % runs.points;
  const auto advise = [&] {
    if (end > begin) ::posix_fadvise(file.descriptor(), begin, end - begin, POSIX_FADV_WILLNEED);
  };
  for (Shape at = runs.place(first); count > 0; advance(at, box, runs.outer)) {
    const std::int64_t points = std::min(count, runs.points - skipped);
    const std::int64_t offset = runs.offset(at) + skipped * array.size;
    if (offset < end || offset > end + kReadAhead) {
      advise();
      begin = offset;
    }
    end = offset + points * array.size;
    count -= points;
    skipped = 0;
  }
  advise();
}

std::shared_ptr<const File> RunReader::file_of_streams() {
  std::shared_ptr<const File> source = file();
  advise(*source, true);
  return source;
}

std::int64_t RunReader::read(const PlainArray& array, const Box& box, std::span<std::byte> out) {
  if (box.empty()) return 0;
  const std::shared_ptr<const File> source = file();
  advise(*source, Runs(array, box).points * array.size >= kLongRun);
  return read_points(*source, array, box, 0, out);
}

}  // namespace jigsaw::inline files
