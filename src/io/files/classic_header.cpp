#include "files/classic_header.h"

#include <array>
#include <cstdint>
#include <fstream>
#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace jigsaw::inline files {

namespace {

/// Lists of the header: their tags, and what errors call them.
enum class List : std::uint64_t { kAbsent = 0, kDimensions = 10, kVariables = 11, kAttributes = 12 };

/// What the library reads into memory of each attribute when it opens a file.
constexpr std::uint64_t kMostAttributeBytes = std::uint64_t{64} << 20;

class HeaderChecker {
 public:
  explicit HeaderChecker(const std::string& path) : path_(path), file_(path, std::ios::binary) {
    file_.seekg(0, std::ios::end);
    length_ = static_cast<std::uint64_t>(file_.tellg());
    file_.seekg(0);
  }

  std::optional<std::vector<ClassicVariable>> check() {
    std::array<char, 4> magic{};
    file_.read(magic.data(), 4);
    const bool classic = file_ && magic[0] == 'C' && magic[1] == 'D' && magic[2] == 'F';
    if (!classic || (magic[3] != 1 && magic[3] != 2 && magic[3] != 5)) return std::nullopt;
    version_ = magic[3];
    records_ = count();
    read_dimensions();
    skip_attributes();
    read_variables();
    check_extents();
    return variables();
  }

 private:
  /// A variable's place in the file; `bytes` is one record of a record variable, else the whole.
  struct Extent {
    std::string name;
    std::uint64_t begin, bytes;
    bool record;
    std::uint64_t type = 0;
    std::vector<std::uint64_t> shape = {};
  };

  [[noreturn]] void bad(const std::string& what) const {
    throw DataError(concat(path_, " is not a whole NetCDF file: ", what));
  }

  std::uint64_t number(int bytes) {
    std::uint64_t value = 0;
    for (int i = 0; i < bytes; ++i) {
      const int byte = file_.get();
      if (byte == std::char_traits<char>::eof()) bad("its header ends early");
      value = value << 8 | static_cast<std::uint64_t>(byte);
    }
    return value;
  }
  std::uint64_t word() { return number(4); }
  /// NON_NEG of the specification: 64 bits in CDF-5.
  std::uint64_t count() { return number(version_ == 5 ? 8 : 4); }

  void skip(std::uint64_t bytes) {
    if (bytes > length_) bad("its header claims more than the file holds");
    file_.seekg(static_cast<std::streamoff>(bytes), std::ios::cur);
    if (!file_ || static_cast<std::uint64_t>(file_.tellg()) > length_) bad("its header ends early");
  }

  /// Entries of a list, each of at least `smallest` bytes.
  std::uint64_t list(List expected, std::uint64_t smallest) {
    const std::uint64_t tag = word(), entries = count();
    if (tag == 0 && entries == 0) return 0;
    if (tag != static_cast<std::uint64_t>(expected)) bad("its header is damaged");
    if (entries > length_ / smallest) bad("its header claims more than the file holds");
    return entries;
  }

  std::string text() {
    const std::uint64_t bytes = count();
    if (bytes > 4096) bad("its header holds a name of more than 4096 characters");
    std::string name(bytes, '\0');
    file_.read(name.data(), static_cast<std::streamsize>(bytes));
    if (!file_) bad("its header ends early");
    skip((4 - bytes % 4) % 4);
    return name;
  }

  std::uint64_t type_size(std::uint64_t type) const {
    static constexpr std::array<std::uint64_t, 12> kSizes = {0, 1, 1, 2, 4, 4, 8, 1, 2, 4, 8, 8};
    if (type == 0 || type > (version_ == 5 ? 11U : 6U)) bad("its header names an unknown type");
    return kSizes[type];
  }

  std::uint64_t product(std::uint64_t a, std::uint64_t b) const {
    std::uint64_t result = 0;
    if (__builtin_mul_overflow(a, b, &result)) bad("its header claims more than the file holds");
    return result;
  }

  void read_dimensions() {
    const std::uint64_t entries = list(List::kDimensions, 8);
    for (std::uint64_t i = 0; i < entries; ++i) {
      text();
      dimensions_.push_back(count());
    }
  }

  void skip_attributes() {
    const std::uint64_t entries = list(List::kAttributes, 12);
    for (std::uint64_t i = 0; i < entries; ++i) {
      text();
      const std::uint64_t size = type_size(word());
      const std::uint64_t bytes = product(count(), size);
      if (bytes > length_) bad("its header claims more than the file holds");
      if (bytes > kMostAttributeBytes) bad("its header has an attribute of more than 64 MiB");
      skip((bytes + 3) / 4 * 4);
    }
  }

  void read_variables() {
    const std::uint64_t entries = list(List::kVariables, 16);
    for (std::uint64_t i = 0; i < entries; ++i) {
      Extent extent{text(), 0, 1, false};
      const std::uint64_t rank = count();
      if (rank > dimensions_.size() * 8 + 8) bad("its header is damaged");
      for (std::uint64_t d = 0; d < rank; ++d) {
        const std::uint64_t id = count();
        if (id >= dimensions_.size()) bad("its header names an unknown dimension");
        extent.shape.push_back(dimensions_[id]);
        if (d == 0 && dimensions_[id] == 0) {
          extent.record = true;
        } else {
          extent.bytes = product(extent.bytes, dimensions_[id]);
        }
      }
      skip_attributes();
      extent.type = word();
      extent.bytes = product(extent.bytes, type_size(extent.type));
      count();  // vsize: redundant, and too small for large variables
      extent.begin = number(version_ == 1 ? 4 : 8);
      extents_.push_back(extent);
    }
  }

  void check_extents() {
    std::uint64_t record_variables = 0, sole_bytes = 0;
    for (const Extent& extent : extents_) {
      if (!extent.record) continue;
      if (extent.bytes > length_) bad(concat("the data of ", extent.name, " is cut off"));
      ++record_variables;
      record_bytes_ += (extent.bytes + 3) / 4 * 4;
      // The records of a sole record variable are not padded.
      sole_bytes = extent.bytes;
    }
    if (record_variables == 1) record_bytes_ = sole_bytes;
    const std::uint64_t streaming = version_ == 5 ? ~std::uint64_t{0} : 0xffffffffU;
    for (const Extent& extent : extents_) {
      std::uint64_t size = extent.bytes;
      if (extent.record) {
        if (records_ == streaming) bad("the number of its records was never written");
        if (records_ == 0) continue;
        size += product(records_ - 1, record_bytes_);
      }
      if (extent.begin > length_ || size > length_ - extent.begin) {
        bad(concat("the data of ", extent.name, " is cut off, the file has only ", length_, " bytes"));
      }
    }
  }

  /// After check_extents(): all of it lies in the file.
  std::vector<ClassicVariable> variables() const {
    static constexpr std::array<std::optional<StoredType>, 12> kTypes = {
        std::nullopt,     StoredType::kI8,  std::nullopt,     StoredType::kI16,
        StoredType::kI32, StoredType::kF32, StoredType::kF64, StoredType::kU8,
        StoredType::kU16, StoredType::kU32, StoredType::kI64, StoredType::kU64};
    std::vector<ClassicVariable> result;
    for (const Extent& extent : extents_) {
      ClassicVariable& variable = result.emplace_back();
      const std::optional<StoredType> type = kTypes[extent.type];
      if (!type || extent.shape.size() > static_cast<std::size_t>(Shape::kMaxRank)) continue;
      variable.type = *type;
      Shape shape;
      for (const std::uint64_t length : extent.shape) shape.append(static_cast<std::int64_t>(length));
      if (extent.record) shape[0] = static_cast<std::int64_t>(records_);
      variable.array = PlainArray::contiguous(static_cast<std::int64_t>(extent.begin), shape, size_of(*type));
      if (extent.record) variable.array->strides[0] = static_cast<std::int64_t>(record_bytes_);
    }
    return result;
  }

  std::string path_;
  std::ifstream file_;
  std::uint64_t length_ = 0;
  int version_ = 0;
  std::uint64_t records_ = 0, record_bytes_ = 0;
  std::vector<std::uint64_t> dimensions_;
  std::vector<Extent> extents_;
};

}  // namespace

std::optional<std::vector<ClassicVariable>> read_classic_header(const std::string& path) {
  return HeaderChecker(path).check();
}

}  // namespace jigsaw::inline files
