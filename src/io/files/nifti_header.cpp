#include "files/nifti_header.h"

#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace jigsaw::inline files {

namespace {

using Matrix = std::array<std::array<double, 3>, 3>;

constexpr std::int32_t kHeaderBytes = 348;
// Where fields stand ("nifti1.h", R. W. Cox, 2003).
constexpr std::size_t kDim = 40, kDataType = 70, kPixDim = 76, kVoxOffset = 108, kSlope = 112,
                      kIntercept = 116, kUnits = 123, kDescription = 148, kQformCode = 252, kSformCode = 254,
                      kQuaternion = 256, kOffset = 268, kSform = 280, kMagic = 344;
constexpr std::size_t kDescriptionBytes = 80;
constexpr double kSameStep = 1e-3;  ///< what rounding leaves between the sform and pixdim is less
constexpr std::int64_t kMostVoxels = std::int64_t{1} << 40;

/// Numbers of a header in either byte order.
class Fields {
 public:
  Fields(std::span<const char> bytes, bool swapped) : bytes_(bytes), swapped_(swapped) {}

  template <typename T>
  T at(std::size_t offset) const {
    std::array<char, sizeof(T)> raw{};
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), raw.size(), raw.begin());
    if (swapped_) std::reverse(raw.begin(), raw.end());
    return std::bit_cast<T>(raw);
  }
  double real(std::size_t offset, std::size_t index = 0) const {
    return static_cast<double>(at<float>(offset + 4 * index));
  }

 private:
  std::span<const char> bytes_;
  bool swapped_;
};

std::optional<StoredType> type_of(int code) {
  static constexpr std::array<std::pair<int, StoredType>, 10> kTypes = {{{2, StoredType::kU8},
                                                                         {4, StoredType::kI16},
                                                                         {8, StoredType::kI32},
                                                                         {16, StoredType::kF32},
                                                                         {64, StoredType::kF64},
                                                                         {256, StoredType::kI8},
                                                                         {512, StoredType::kU16},
                                                                         {768, StoredType::kU32},
                                                                         {1024, StoredType::kI64},
                                                                         {1280, StoredType::kU64}}};
  for (const auto& [known, type] : kTypes) {
    if (known == code) return type;
  }
  return std::nullopt;
}

/// The rotation of a unit quaternion, whose third column changes sign with `third`.
Matrix rotation(double b, double c, double d, double third) {
  const double a = std::sqrt(std::max(0.0, 1 - b * b - c * c - d * d));
  return {{{a * a + b * b - c * c - d * d, 2 * (b * c - a * d), 2 * (b * d + a * c) * third},
           {2 * (b * c + a * d), a * a + c * c - b * b - d * d, 2 * (c * d - a * b) * third},
           {2 * (b * d - a * c), 2 * (c * d + a * b), (a * a + d * d - b * b - c * c) * third}}};
}

int sform_code(const Fields& fields) {
  return fields.at<std::int16_t>(kSformCode);
}

int qform_code(const Fields& fields) {
  return fields.at<std::int16_t>(kQformCode);
}

Matrix directions_of_sform(const Fields& fields) {
  Matrix matrix{};
  for (std::size_t row = 0; row < 3; ++row)
    for (std::size_t column = 0; column < 3; ++column)
      matrix[row][column] = fields.real(kSform + 16 * row, column);
  return matrix;
}

Matrix directions_of_qform(const Fields& fields) {
  return rotation(fields.real(kQuaternion), fields.real(kQuaternion, 1), fields.real(kQuaternion, 2),
                  fields.real(kPixDim) < 0 ? -1.0 : 1.0);
}

/// Row r, column a: how far axis a of the file goes along x, y, z of the world.
Matrix directions(const Fields& fields) {
  if (sform_code(fields) > 0) return directions_of_sform(fields);
  if (qform_code(fields) > 0) return directions_of_qform(fields);
  return {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
}

/// Of the sform, or where there is none the qform, which says where points lie: its name where it holds a
/// number that is not finite; "" where none does.
std::string form_not_finite(const Fields& fields) {
  const auto finite = [&](std::size_t offset, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i)
      if (!std::isfinite(fields.real(offset, i))) return false;
    return true;
  };
  if (sform_code(fields) > 0) return finite(kSform, 12) ? "" : "sform";
  const bool is_finite = finite(kPixDim, 4) && finite(kQuaternion, 3) && finite(kOffset, 3);
  return qform_code(fields) > 0 && !is_finite ? "qform" : "";
}

/// In units of the file.
NiftiHeader::Contradiction contradiction_of(const Fields& fields) {
  constexpr double kSameWay = 0.5;  // cosine
  NiftiHeader::Contradiction found;
  if (sform_code(fields) <= 0 || qform_code(fields) <= 0) return found;
  const Matrix one = directions_of_sform(fields), other = directions_of_qform(fields);
  std::array<double, 3> apart{};
  for (std::size_t a = 0; a < 3; ++a) {
    const double length = std::hypot(one[0][a], one[1][a], one[2][a]);
    const double along = one[0][a] * other[0][a] + one[1][a] * other[1][a] + one[2][a] * other[2][a];
    found.in_direction = found.in_direction || along < kSameWay * length;
    apart[a] = fields.real(kSform + 16 * a, 3) - fields.real(kOffset, a);
  }
  found.origins = std::hypot(apart[0], apart[1], apart[2]);
  return found;
}

/// Where points lie in units of the file, and what that refers to.
std::pair<std::array<std::array<double, 4>, 3>, int> places(const Fields& fields) {
  const int sform = sform_code(fields), qform = qform_code(fields);
  const Matrix towards = directions(fields);
  std::array<std::array<double, 4>, 3> affine{};
  for (std::size_t row = 0; row < 3; ++row) {
    for (std::size_t column = 0; column < 3; ++column) {
      const double step = sform > 0 ? 1.0 : std::abs(fields.real(kPixDim, column + 1));
      affine[row][column] = towards[row][column] * step;
    }
    if (sform > 0) {
      affine[row][3] = fields.real(kSform + 16 * row, 3);
    } else if (qform > 0) {
      affine[row][3] = fields.real(kOffset, row);
    }
  }
  return {affine, sform > 0 ? sform : std::max(qform, 0)};
}

/// The axes of the file nearest to those of the world, each once.
std::array<NiftiAxis, 3> nearest_axes(Matrix matrix) {
  for (std::size_t column = 0; column < 3; ++column) {
    double length = 0;
    for (const auto& row : matrix) length += row[column] * row[column];
    for (auto& row : matrix) row[column] = length > 0 ? row[column] / std::sqrt(length) : 0;
  }
  std::array<std::size_t, 3> order = {0, 1, 2}, best = order;
  double most = -1;
  do {
    double sum = 0;
    for (std::size_t row = 0; row < 3; ++row) sum += std::abs(matrix[row][order[row]]);
    if (sum > most + 1e-9) {
      most = sum;
      best = order;
    }
  } while (std::next_permutation(order.begin(), order.end()));
  std::array<NiftiAxis, 3> axes;
  for (std::size_t row = 0; row < 3; ++row)
    axes[row] = {static_cast<int>(best[row]), matrix[row][best[row]] < 0};
  return axes;
}

/// The bits of xyzt_units that say the unit of space; 0 of an unknown one.
constexpr int kUnitOfSpace = 7;

double millimetres(int units) {
  switch (units & kUnitOfSpace) {
    case 1:
      return 1000;  // metres
    case 3:
      return 1e-3;  // micrometres
    default:
      return 1;
  }
}

/// The first bytes that a gzip stream holds, as far as they come from these.
std::array<char, NiftiHeader::kBytes> inflated(std::span<const char> begin) {
  std::array<char, NiftiHeader::kBytes> bytes{};
  std::string input(begin.begin(), begin.end());
  z_stream stream{};
  constexpr int kGzip = 16 + MAX_WBITS;
  if (inflateInit2(&stream, kGzip) != Z_OK) return bytes;
  stream.next_in = reinterpret_cast<Bytef*>(input.data());
  stream.avail_in = static_cast<uInt>(input.size());
  stream.next_out = reinterpret_cast<Bytef*>(bytes.data());
  stream.avail_out = static_cast<uInt>(bytes.size());
  inflate(&stream, Z_SYNC_FLUSH);
  inflateEnd(&stream);
  return bytes;
}

bool has_magic(std::span<const char> begin) {
  return begin.size() >= kMagic + 4 && std::memcmp(begin.data() + kMagic, "n+1", 4) == 0;
}

/// @param unit  of the file, in mm.
void read_place(const Fields& fields, double unit, NiftiHeader& header) {
  for (std::size_t a = 0; a < 3; ++a) header.spacing[a] = std::abs(fields.real(kPixDim, a + 1)) * unit;
  header.world = nearest_axes(directions(fields));
  std::tie(header.affine, header.place_code) = places(fields);
  for (auto& row : header.affine)
    for (double& step : row) step *= unit;
  header.contradiction = contradiction_of(fields);
  header.contradiction.origins *= unit;
  header.qform.code = std::max(0, qform_code(fields));
  header.qform.third = fields.real(kPixDim) < 0 ? -1 : 1;
  for (std::size_t a = 0; a < 3; ++a) {
    header.qform.quaternion[a] = fields.real(kQuaternion, a);
    header.qform.origin[a] = fields.real(kOffset, a) * unit;
  }
  // The sform has its own steps, and where those of pixdim are others it says where points lie.
  for (std::size_t a = 0; a < 3 && sform_code(fields) > 0; ++a) {
    const double step = std::hypot(header.affine[0][a], header.affine[1][a], header.affine[2][a]);
    if (!(step > 0) || std::abs(step - header.spacing[a]) <= kSameStep * step) continue;
    header.spacing[a] = step;
    header.qform.code = 0;
  }
}

}  // namespace

std::array<char, NiftiHeader::kBytes> decompressed_begin(std::span<const char> begin) {
  if (begin.size() > 2 && begin[0] == '\x1f' && begin[1] == '\x8b') return inflated(begin);
  std::array<char, NiftiHeader::kBytes> bytes{};
  std::copy_n(begin.begin(), std::min(begin.size(), bytes.size()), bytes.begin());
  return bytes;
}

bool is_nifti(std::span<const char> begin) {
  return has_magic(decompressed_begin(begin));
}

NiftiHeader::NiftiHeader(std::span<const char> bytes, const std::string& path) {
  const auto refuse = [&](const std::string& why) {
    throw DataError(concat(path, " cannot be read as NIfTI: ", why));
  };
  if (bytes.size() < kBytes || !has_magic(bytes)) refuse("it has no header of NIfTI-1");
  swapped = Fields(bytes, false).at<std::int32_t>(0) != kHeaderBytes;
  const Fields fields(bytes, swapped);
  if (fields.at<std::int32_t>(0) != kHeaderBytes) refuse("its header is damaged");
  rank = fields.at<std::int16_t>(kDim);
  if (rank < 1 || rank > 7) refuse(concat("its header names ", rank, " dimensions"));
  std::int64_t elements = 1;
  for (int d = 1; d <= rank; ++d) {
    const std::int64_t extent = fields.at<std::int16_t>(kDim + 2 * static_cast<std::size_t>(d));
    if (extent < 1 || elements > kMostVoxels / extent)
      refuse(concat("its dimension ", d, " has ", extent, " points"));
    elements *= extent;
    extents.push_back(extent);
  }
  while (extents.size() > 3 && extents.back() == 1) extents.pop_back();
  extents.resize(std::max<std::size_t>(extents.size(), 3), 1);
  const int code = fields.at<std::int16_t>(kDataType);
  const std::optional<StoredType> known = type_of(code);
  if (!known) refuse(concat("its numbers are of the type ", code, "; integers and real numbers are read"));
  type = *known;
  const double begin = fields.real(kVoxOffset);
  if (!(begin >= static_cast<double>(kBytes) && begin < 1e9))
    refuse("its header does not say where the data begin");
  data_begin = static_cast<std::int64_t>(begin);
  const double slope = fields.real(kSlope), intercept = fields.real(kIntercept);
  // A slope of 0, or one that is no number, means that values are not scaled.
  if (std::isfinite(slope) && slope != 0) {
    if (!std::isfinite(intercept))
      refuse(concat("its header scales values by ", slope, " and adds ", intercept, ", not a finite number"));
    scale = slope;
    offset = intercept;
  }
  if (const std::string form = form_not_finite(fields); !form.empty())
    refuse(concat("its ", form, ", which says where points lie, holds a number that is not finite"));
  const double unit = millimetres(bytes[kUnits]);
  units_known = (bytes[kUnits] & kUnitOfSpace) != 0;
  read_place(fields, unit, *this);
  description.assign(bytes.data() + kDescription, kDescriptionBytes);
  description = description.substr(0, description.find('\0'));
}

}  // namespace jigsaw::inline files
