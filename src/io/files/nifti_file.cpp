#include "files/nifti_file.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/heartbeat.h"
#include "base/text.h"

namespace jigsaw::inline files {

namespace {

/// Deflate makes nothing smaller than by this.
constexpr std::int64_t kMostGzipped = 1032;

gzFile handle(void* file) {
  return static_cast<gzFile>(file);
}

/// Of a slab of whole rows, one at least.
constexpr std::int64_t kSlabBytes = std::int64_t{4} << 20;

/// A part of one axis of the file, and the way in the result of a step along it.
struct FileRange {
  std::int64_t begin = 0, count = 1, stride = 0;
};

}  // namespace

NiftiFile::NiftiFile(const std::string& path, External /*external*/)
    : VariableFile(path), key_(chunk_key()), header_(read_header()) {
  try {
    check_length();
  } catch (...) {
    close();  // what is not made whole has no destructor
    throw;
  }
  FileVariable image;
  image.name = "image";
  image.bytes = size_of(header_.type);
  image.type = header_.type;
  image.single_precision = header_.type == StoredType::kF32;
  image.texts["long_name"] = header_.description;
  if (header_.scale != 1 || header_.offset != 0) {
    image.numbers["scale_factor"] = {header_.scale};
    image.numbers["add_offset"] = {header_.offset};
  }
  variables_.push_back(std::move(image));
  describe_image();
}

NiftiFile::NiftiFile(const FileDescription& known, External /*external*/)
    : VariableFile(known), key_(chunk_key()), begin_(known.own), header_(begin_, path()) {}

NiftiFile::~NiftiFile() {
  close();
}

/// Extents, spacing and place of the image, by how its axes run.
void NiftiFile::describe_image() {
  FileVariable& image = variables_.front();
  image.shape = Shape();
  image.numbers["spacing"].clear();
  image.numbers["affine"].clear();
  for (std::size_t d = header_.extents.size(); d > 3; --d) image.shape.append(header_.extents[d - 1]);
  for (std::size_t w = 3; w > 0; --w) {
    const auto axis = static_cast<std::size_t>(header_.world[w - 1].axis);
    image.shape.append(header_.extents[axis]);
    image.numbers["spacing"].push_back(header_.spacing[axis]);
  }
  for (const auto& row : header_.affine) {
    double origin = row[3];
    for (const NiftiAxis& world : header_.world) {
      const auto axis = static_cast<std::size_t>(world.axis);
      image.numbers["affine"].push_back(world.reversed ? -row[axis] : row[axis]);
      if (world.reversed) origin += row[axis] * static_cast<double>(header_.extents[axis] - 1);
    }
    image.numbers["affine"].push_back(origin);
  }
}

void NiftiFile::turn(const std::array<NiftiAxis, 3>& world) {
  header_.world = world;
  describe_image();
}

bool NiftiFile::is_turned() const {
  return header_.world != NiftiHeader(begin_, path()).world;
}

void NiftiFile::open() {
  if (file_ != nullptr) return;
  file_ = gzopen(path().c_str(), "rb");
  if (file_ == nullptr) throw DataError(concat("cannot read ", path()));
}

void NiftiFile::close() {
  if (file_ != nullptr) gzclose(handle(file_));
  file_ = nullptr;
  next_slab_ = 0;
  ChunkCache::shared().drop(key_);
}

NiftiHeader NiftiFile::read_header() {
  open();
  begin_.resize(NiftiHeader::kBytes);
  try {
    read_bytes(0, begin_);
    return {begin_, path()};
  } catch (...) {
    close();
    throw;
  }
}

/// Also keeps what a damaged header claims from being allocated.
void NiftiFile::check_length() const {
  const std::int64_t length = opened_bytes();
  const std::int64_t needed = header_.data_begin + image_bytes();
  const bool plain = gzdirect(handle(file_)) == 1;
  if (plain ? length >= needed : length >= needed / kMostGzipped) return;
  throw DataError(concat(path(), " is cut off: it has ", length, " bytes, and its header promises ", needed,
                         plain ? "" : " decompressed"));
}

std::int64_t NiftiFile::image_bytes() const {
  std::int64_t elements = 1;
  for (const std::int64_t extent : header_.extents) elements *= extent;
  return elements * size_of(header_.type);
}

void NiftiFile::read_bytes(std::int64_t begin, std::span<char> bytes) {
  constexpr std::size_t kMostAtOnce = std::size_t{1} << 30;
  bool whole = gzseek(handle(file_), static_cast<z_off_t>(begin), SEEK_SET) == begin;
  while (whole && !bytes.empty()) {
    const std::size_t part = std::min(bytes.size(), kMostAtOnce);
    whole = gzread(handle(file_), bytes.data(), static_cast<unsigned>(part)) == static_cast<int>(part);
    bytes = bytes.subspan(part);
  }
  if (!whole) throw DataError(concat("cannot read ", path(), ": it is cut off or damaged"));
}

std::shared_ptr<const ChunkCache::Chunk> NiftiFile::slab(std::int64_t number, std::int64_t slab_bytes,
                                                         std::int64_t& fetched) {
  ChunkCache& cache = ChunkCache::shared();
  const auto bytes_of = [&](std::int64_t slab) {
    return static_cast<std::size_t>(std::min(slab_bytes, image_bytes() - slab * slab_bytes));
  };
  std::shared_ptr<const ChunkCache::Chunk> found = cache.find({key_, 0, number}, bytes_of(number));
  if (found) return found;
  // Those before it have to be decompressed to come to it, and are kept, too. Other processes that do so are
  // not waited for: each would only begin where one before it has stopped.
  if (next_slab_ > number) next_slab_ = 0;
  for (std::int64_t i = next_slab_; i <= number; ++i) {
    const auto decompress = [&](std::span<std::byte> out) {
      read_bytes(header_.data_begin + i * slab_bytes, {reinterpret_cast<char*>(out.data()), out.size()});
      fetched += std::ssize(out);
      next_slab_ = i + 1;
      beat();
    };
    // There is room for whole images, of which the next crops take other parts.
    found = cache.get({key_, 0, i}, bytes_of(i), static_cast<std::size_t>(image_bytes()), decompress,
                      ChunkCache::Others::kNotAwaited);
  }
  return found;
}

StoredNumbers NiftiFile::read_stored(const FileVariable& variable, const Box& box, ByteBuffer& out,
                                     std::int64_t& fetched) {
  if (!(intersect(Box::whole(variable.shape), box) == box)) {
    throw DataError(
        concat("cannot read ", variable.name, " of ", path(), " at ", box, ": it has ", variable.shape));
  }
  const int rank = variable.shape.rank();
  const Shape strides = box.extent.strides();
  std::vector<FileRange> ranges(static_cast<std::size_t>(rank));  // by the file's axes
  for (int d = 0; d + 3 < rank; ++d) {
    ranges[static_cast<std::size_t>(rank - 1 - d)] = {box.begin[d], box.extent[d], strides[d]};
  }
  std::int64_t first = 0;
  for (int w = 0; w < 3; ++w) {
    const NiftiAxis& world = header_.world[static_cast<std::size_t>(w)];
    const int d = rank - 1 - w;
    FileRange& range = ranges[static_cast<std::size_t>(world.axis)];
    range = {box.begin[d], box.extent[d], strides[d]};
    if (!world.reversed) continue;
    range = {variable.shape[d] - box.end(d), box.extent[d], -strides[d]};
    first += (box.extent[d] - 1) * strides[d];
  }
  const std::int64_t size = size_of(header_.type);
  const std::span<std::byte> values = out.take(static_cast<std::size_t>(box.extent.count() * size));
  std::vector<char> row(static_cast<std::size_t>(ranges[0].count * size));
  std::vector<std::int64_t> at(ranges.size(), 0);
  const std::lock_guard lock(mutex_);
  open();
  const bool plain = gzdirect(handle(file_)) == 1;
  const std::int64_t line = header_.extents[0] * size;
  const std::int64_t slab_bytes = std::max<std::int64_t>(kSlabBytes / line, 1) * line;
  std::shared_ptr<const ChunkCache::Chunk> kept;
  std::int64_t number = -1;  // of that slab
  while (true) {
    std::int64_t from = ranges[0].begin, to = first, points = header_.extents[0];
    for (std::size_t a = 1; a < ranges.size(); ++a) {
      from += (ranges[a].begin + at[a]) * points;
      to += at[a] * ranges[a].stride;
      points *= header_.extents[a];
    }
    const char* points_of_row = row.data();
    if (plain) {
      read_bytes(header_.data_begin + from * size, row);
    } else {
      if (std::exchange(number, from * size / slab_bytes) != from * size / slab_bytes)
        kept = slab(number, slab_bytes, fetched);
      points_of_row = reinterpret_cast<const char*>(kept->data()) + from * size % slab_bytes;
    }
    for (std::int64_t i = 0; i < ranges[0].count; ++i) {
      std::memcpy(values.data() + (to + i * ranges[0].stride) * size, points_of_row + i * size,
                  static_cast<std::size_t>(size));
    }
    std::size_t axis = 1;
    while (axis < ranges.size() && ++at[axis] == ranges[axis].count) at[axis++] = 0;
    if (axis == ranges.size()) break;
  }
  if (plain) fetched += std::ssize(values);
  return {header_.type, header_.swapped};
}

}  // namespace jigsaw::inline files
