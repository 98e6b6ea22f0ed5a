#include "files/nifti_output.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <utility>

#include "base/disk.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "files/full_disk.h"

namespace jigsaw::inline files {

static_assert(std::endian::native == std::endian::little, "NIfTI files are written as memory has them");

namespace {

constexpr std::size_t kCompressedAtOnce = std::size_t{1} << 20;

std::size_t size_of(OutputImage::Type type) {
  return type == OutputImage::Type::kDouble  ? 8
         : type == OutputImage::Type::kFloat ? 4
         : type == OutputImage::Type::kShort ? 2
                                             : 1;
}

std::int16_t code_of(OutputImage::Type type) {
  return type == OutputImage::Type::kDouble  ? 64
         : type == OutputImage::Type::kFloat ? 16
         : type == OutputImage::Type::kShort ? 4
                                             : 2;
}

void encode(OutputImage::Type type, double value, char* to) {
  if (type == OutputImage::Type::kDouble) {
    std::memcpy(to, &value, sizeof value);
  } else if (type == OutputImage::Type::kFloat) {
    const auto number = static_cast<float>(value);
    std::memcpy(to, &number, sizeof number);
  } else if (type == OutputImage::Type::kShort) {
    const auto number = static_cast<std::int16_t>(std::lround(value));
    std::memcpy(to, &number, sizeof number);
  } else {
    const auto number = static_cast<std::uint8_t>(std::lround(value));
    std::memcpy(to, &number, sizeof number);
  }
}

}  // namespace

NiftiOutput::NiftiOutput(std::string path, bool compressed, const OutputImage& image,
                         const std::string& description, const NiftiHeader* like)
    : path_(std::move(path)),
      raw_(compressed ? path_ + ".raw" : path_),
      compressed_(compressed),
      type_(image.type) {
  shape_ = image.shape;
  if (shape_.rank() < 2 || shape_.rank() > 4)
    refuse(concat("holds images of two or three dims and channels, not ", shape_));
  flat_ = std::find(image.dimensions.begin(), image.dimensions.end(), "depth") == image.dimensions.end();
  Shape whole;  // [channel, depth, height, width]
  const int before = shape_.rank() - (flat_ ? 2 : 3);
  if (before < 0 || before > 1) refuse(concat("holds one image, not ", shape_));
  channels_ = before == 1;
  whole.append(channels_ ? shape_[0] : 1);
  if (flat_) whole.append(1);
  for (int d = before; d < shape_.rank(); ++d) whole.append(shape_[d]);
  shape_ = whole;
  for (const std::int64_t extent : shape_) {
    if (extent > std::numeric_limits<std::int16_t>::max())
      refuse(concat("holds at most 32767 points along a dim, not ", extent));
  }
  place(image, like);
  try {
    const File made = fresh_file(raw_);
  } catch (const FileError& error) {
    refuse_output<DataError>(error, error.what());
  }
  errno = 0;
  file_.open(raw_, std::ios::binary | std::ios::in | std::ios::out);
  const std::string bytes = header(image, description);
  file_.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  const auto end = static_cast<std::streamoff>(NiftiHeader::kBytes) +
                   shape_.count() * static_cast<std::streamoff>(size_of(type_)) - 1;
  file_.seekp(end);
  file_.put('\0');
  if (!file_) refuse_to_write();
}

NiftiOutput::~NiftiOutput() {
  std::error_code ignored;
  if (compressed_) std::filesystem::remove(raw_, ignored);
}

void NiftiOutput::refuse_to_write() const {
  refuse_unwritten(path_, errno != 0 ? std::strerror(errno) : "writing fails");
}

void NiftiOutput::refuse(const std::string& why) const {
  throw DataError(concat(path_, " cannot be written: NIfTI ", why, "; name an output of .h5 or .nc"));
}

/// Where the points stand in the file, and the file's in the world.
void NiftiOutput::place(const OutputImage& image, const NiftiHeader* like) {
  const std::array<std::int64_t, 3> from_left = {shape_[3], shape_[2], shape_[1]};
  for (int w = 0; w < 3; ++w) world_[static_cast<std::size_t>(w)] = {w, false};
  if (like != nullptr) {
    world_ = like->world;
    affine_ = like->affine;
    spacing_ = like->spacing;
    code_ = like->place_code;
    qform_ = like->qform;
    units_known_ = like->units_known;
  } else if (const auto given = image.numbers.find("affine");
             given != image.numbers.end() && given->second.size() == 12) {
    for (std::size_t i = 0; i < 12; ++i) affine_[i / 4][i % 4] = given->second[i];
    code_ = 1;
  } else {
    const auto spacing = image.numbers.find("spacing");
    units_known_ = spacing != image.numbers.end();
    for (std::size_t a = 0; a < 3; ++a) {
      const bool known = spacing != image.numbers.end() && a < spacing->second.size();
      affine_[a][a] = known ? spacing->second[spacing->second.size() - 1 - a] : 1.0;
    }
    code_ = 1;
  }
  for (std::size_t w = 0; w < 3; ++w) {
    const auto axis = static_cast<std::size_t>(world_[w].axis);
    extents_[axis] = from_left[w];
    if (like != nullptr) continue;
    spacing_[axis] = std::hypot(affine_[0][axis], affine_[1][axis], affine_[2][axis]);
  }
  picture_ = like != nullptr && like->rank == 2 && extents_[2] == 1 && !channels_;
}

std::string NiftiOutput::header(const OutputImage& image, const std::string& description) const {
  std::string bytes(NiftiHeader::kBytes, '\0');
  const auto put = [&](std::size_t at, auto value) { std::memcpy(bytes.data() + at, &value, sizeof value); };
  const auto real = [&](std::size_t at, double value) { put(at, static_cast<float>(value)); };
  put(0, std::int32_t{348});
  put(40, static_cast<std::int16_t>(picture_ ? 2 : channels_ ? 4 : 3));
  for (std::size_t d = 1; d <= 7; ++d) put(40 + 2 * d, std::int16_t{1});
  for (std::size_t a = 0; a < 3; ++a) put(42 + 2 * a, static_cast<std::int16_t>(extents_[a]));
  put(48, static_cast<std::int16_t>(shape_[0]));
  put(70, code_of(image.type));
  put(72, static_cast<std::int16_t>(8 * size_of(image.type)));
  real(76, qform_.third);
  for (std::size_t a = 0; a < 3; ++a) real(80 + 4 * a, spacing_[a]);
  for (std::size_t a = 3; a < 7; ++a) real(80 + 4 * a, 1);
  real(108, static_cast<double>(NiftiHeader::kBytes));
  real(112, 1);
  bytes[123] = units_known_ ? 2 : 0;  // millimetres, or unknown
  description.copy(bytes.data() + 148, 79);
  put(252, static_cast<std::int16_t>(qform_.code));
  for (std::size_t a = 0; a < 3; ++a) {
    real(256 + 4 * a, qform_.quaternion[a]);
    real(268 + 4 * a, qform_.origin[a]);
  }
  put(254, static_cast<std::int16_t>(code_));
  for (std::size_t row = 0; row < 3; ++row) {
    for (std::size_t column = 0; column < 4; ++column)
      real(280 + 16 * row + 4 * column, affine_[row][column]);
  }
  std::memcpy(bytes.data() + 344, "n+1", 4);
  return bytes;
}

void NiftiOutput::write(std::size_t, const Box& given, std::span<const double> values) {
  const int rank = given.begin.rank();
  const auto whole = [&](const Shape& part, std::int64_t alone) {
    return Shape{channels_ ? part[0] : alone, flat_ ? alone : part[rank - 3], part[rank - 2], part[rank - 1]};
  };
  const Box box{whole(given.begin, 0), whole(given.extent, 1)};
  require(intersect(box, Box::whole(shape_)) == box && std::ssize(values) == box.extent.count(),
          "the values do not fill a box of the image");
  // Along each axis of the file: which points, and the way in `values` of a step along it.
  struct Axis {
    std::int64_t begin = 0, count = 1, stride = 0;
  };
  const Shape strides = box.extent.strides();
  std::array<Axis, 4> axes;
  std::int64_t first = 0;
  for (std::size_t w = 0; w < 3; ++w) {
    const int d = 3 - static_cast<int>(w);
    Axis& axis = axes[static_cast<std::size_t>(world_[w].axis)];
    axis = {box.begin[d], box.extent[d], strides[d]};
    if (!world_[w].reversed) continue;
    axis = {shape_[d] - box.end(d), box.extent[d], -strides[d]};
    first += (box.extent[d] - 1) * strides[d];
  }
  axes[3] = {box.begin[0], box.extent[0], strides[0]};
  const std::size_t size = size_of(type_);
  std::vector<char> row(static_cast<std::size_t>(axes[0].count) * size);
  for (std::int64_t c = 0; c < axes[3].count; ++c) {
    for (std::int64_t k = 0; k < axes[2].count; ++k) {
      for (std::int64_t j = 0; j < axes[1].count; ++j) {
        const std::int64_t from = first + c * axes[3].stride + k * axes[2].stride + j * axes[1].stride;
        for (std::int64_t i = 0; i < axes[0].count; ++i) {
          encode(type_, values[static_cast<std::size_t>(from + i * axes[0].stride)],
                 row.data() + static_cast<std::size_t>(i) * size);
        }
        const std::int64_t point =
            ((axes[3].begin + c) * extents_[2] + axes[2].begin + k) * extents_[1] + axes[1].begin + j;
        file_.seekp(static_cast<std::streamoff>(NiftiHeader::kBytes) +
                    (point * extents_[0] + axes[0].begin) * static_cast<std::streamoff>(size));
        file_.write(row.data(), static_cast<std::streamsize>(row.size()));
      }
    }
  }
  if (!file_) refuse_to_write();
}

void NiftiOutput::compress() const {
  errno = 0;
  std::ifstream from(raw_, std::ios::binary);
  gzFile to = gzopen(path_.c_str(), "wb6");
  std::vector<char> bytes(kCompressedAtOnce);
  bool whole = to != nullptr && static_cast<bool>(from);
  while (whole && from.peek() != std::ifstream::traits_type::eof()) {
    from.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    const auto count = static_cast<unsigned>(from.gcount());
    whole = gzwrite(to, bytes.data(), count) == static_cast<int>(count);
  }
  if (to != nullptr) whole = gzclose(to) == Z_OK && whole;
  if (!whole) refuse_to_write();
}

void NiftiOutput::finish() {
  file_.close();
  if (!file_) refuse_to_write();
  if (compressed_) compress();
}

}  // namespace jigsaw::inline files
