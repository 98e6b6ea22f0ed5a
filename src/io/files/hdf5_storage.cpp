#include "files/hdf5_storage.h"

#include <algorithm>
#include <array>
#include <bit>

#include "base/error.h"
#include "base/printable.h"
#include "base/text.h"
#include "files/hdf5_walk.h"

namespace jigsaw::inline files {

namespace {

struct KnownType {
  StoredType type;
  hid_t little, big;
};

std::vector<KnownType> known_types() {
  return {
      {StoredType::kU8, H5T_STD_U8LE, H5T_STD_U8BE},      {StoredType::kI8, H5T_STD_I8LE, H5T_STD_I8BE},
      {StoredType::kU16, H5T_STD_U16LE, H5T_STD_U16BE},   {StoredType::kI16, H5T_STD_I16LE, H5T_STD_I16BE},
      {StoredType::kU32, H5T_STD_U32LE, H5T_STD_U32BE},   {StoredType::kI32, H5T_STD_I32LE, H5T_STD_I32BE},
      {StoredType::kU64, H5T_STD_U64LE, H5T_STD_U64BE},   {StoredType::kI64, H5T_STD_I64LE, H5T_STD_I64BE},
      {StoredType::kF32, H5T_IEEE_F32LE, H5T_IEEE_F32BE}, {StoredType::kF64, H5T_IEEE_F64LE, H5T_IEEE_F64BE}};
}

/// Of names for numbers, as h5py stores false and true, those of the numbers.
std::optional<StoredNumbers> numbers_of(hid_t type) {
  constexpr bool kLittle = std::endian::native == std::endian::little;
  for (const KnownType& known : known_types()) {
    if (H5Tequal(type, known.little) > 0) return StoredNumbers{known.type, !kLittle};
    if (H5Tequal(type, known.big) > 0) return StoredNumbers{known.type, kLittle};
  }
  if (H5Tget_class(type) != H5T_ENUM) return std::nullopt;
  const Hdf5Id of_names(H5Tget_super(type), H5Tclose);
  return numbers_of(of_names.get());
}

/// Nothing when one of them is not known here.
std::optional<std::vector<ChunkFilter>> filters_of(hid_t creation) {
  std::vector<ChunkFilter> filters;
  const int count = H5Pget_nfilters(creation);
  for (int i = 0; i < count; ++i) {
    unsigned flags = 0;
    std::size_t values = 0;
    switch (
        H5Pget_filter2(creation, static_cast<unsigned>(i), &flags, &values, nullptr, 0, nullptr, nullptr)) {
      case H5Z_FILTER_DEFLATE:
        filters.push_back(ChunkFilter::kDeflate);
        break;
      case H5Z_FILTER_SHUFFLE:
        filters.push_back(ChunkFilter::kShuffle);
        break;
      case H5Z_FILTER_FLETCHER32:
        filters.push_back(ChunkFilter::kFletcher32);
        break;
      default:
        return std::nullopt;
    }
  }
  if (count < 0 || std::count(filters.begin(), filters.end(), ChunkFilter::kDeflate) > 1) return std::nullopt;
  return filters;
}

Shape shape_of(std::span<const hsize_t> extents) {
  Shape shape;
  for (const hsize_t extent : extents) shape.append(static_cast<std::int64_t>(extent));
  return shape;
}

constexpr std::uint64_t kMostChunkBytes = std::uint64_t{1} << 32;

/// A damaged header may claim any extents; HDF5 writes no chunk of 4 GiB.
bool has_sensible_size(const Hdf5Storage& storage) {
  std::uint64_t bytes = static_cast<std::uint64_t>(size_of(storage.numbers.type));
  for (const std::int64_t extent : storage.chunks) {
    if (extent < 1 || static_cast<std::uint64_t>(extent) > kMostChunkBytes / bytes) return false;
    bytes *= static_cast<std::uint64_t>(extent);
  }
  return true;
}

/// Where the chunks of the data set can be decoded here.
void describe_chunks(hid_t creation, Hdf5Storage& storage) {
  std::array<hsize_t, Shape::kMaxRank> extents{};
  const int rank = storage.extents.rank();
  if (H5Pget_chunk(creation, rank, extents.data()) != rank) return;
  storage.chunks = shape_of(std::span(extents).first(static_cast<std::size_t>(rank)));
  storage.compressed = H5Pget_nfilters(creation) > 0;
  if (!has_sensible_size(storage)) return;
  const auto filters = filters_of(creation);
  if (!filters) return;
  storage.filters = *filters;
  storage.decodable = true;
}

struct FilterName {
  H5Z_filter_t filter;
  const char* name;
};

/// Source: The HDF Group, "Registered Filter Plugins".
constexpr FilterName kFilterNames[] = {{H5Z_FILTER_SZIP, "szip"},
                                       {307, "BZIP2"},
                                       {32000, "LZF"},
                                       {32001, "Blosc"},
                                       {32002, "MAFISC"},
                                       {32003, "Snappy"},
                                       {32004, "LZ4"},
                                       {32008, "Bitshuffle"},
                                       {32013, "ZFP"},
                                       {32014, "FPZIP"},
                                       {32015, "Zstandard"},
                                       {32017, "SZ"},
                                       {32022, "BitGroom"},
                                       {32023, "Granular BitRound"},
                                       {32024, "SZ3"},
                                       {32026, "Blosc2"},
                                       {32028, "SPERR"}};

/// Its registered name, or else the one that stands in the file.
std::string name_of_filter(H5Z_filter_t filter, const char* in_file) {
  const auto* const known = std::ranges::find(kFilterNames, filter, &FilterName::filter);
  return known != std::end(kFilterNames) ? known->name : printable(in_file);
}

}  // namespace

bool refers_to_files(hid_t data_set) {
  const Hdf5Id creation(H5Dget_create_plist(data_set), H5Pclose);
  return creation.valid() &&
         (H5Pget_layout(creation.get()) == H5D_VIRTUAL || H5Pget_external_count(creation.get()) > 0);
}

std::string missing_filter(hid_t data_set) {
  const Hdf5Id creation(H5Dget_create_plist(data_set), H5Pclose);
  const int count = creation.valid() ? H5Pget_nfilters(creation.get()) : 0;
  for (int i = 0; i < count; ++i) {
    unsigned flags = 0;
    std::size_t values = 0;
    std::array<char, 64> in_file{};
    const H5Z_filter_t filter = H5Pget_filter2(creation.get(), static_cast<unsigned>(i), &flags, &values,
                                               nullptr, in_file.size(), in_file.data(), nullptr);
    if (filter < 0 || H5Zfilter_avail(filter) > 0) continue;
    in_file.back() = '\0';
    const std::string name = name_of_filter(filter, in_file.data());
    return name.empty() ? concat(filter) : concat(filter, " (", name, ")");
  }
  return "";
}

hid_t native_type(StoredType type) {
  switch (type) {
    case StoredType::kU8:
      return H5T_NATIVE_UINT8;
    case StoredType::kI8:
      return H5T_NATIVE_INT8;
    case StoredType::kU16:
      return H5T_NATIVE_UINT16;
    case StoredType::kI16:
      return H5T_NATIVE_INT16;
    case StoredType::kU32:
      return H5T_NATIVE_UINT32;
    case StoredType::kI32:
      return H5T_NATIVE_INT32;
    case StoredType::kU64:
      return H5T_NATIVE_UINT64;
    case StoredType::kI64:
      return H5T_NATIVE_INT64;
    case StoredType::kF32:
      return H5T_NATIVE_FLOAT;
    case StoredType::kF64:
      return H5T_NATIVE_DOUBLE;
    case StoredType::kF16:
      break;  // storage_of() tells none: the library makes doubles of it
  }
  fail("unknown type of a number in a file");
}

Hdf5Storage storage_of(hid_t data_set, std::int64_t file_bytes) {
  Hdf5Storage storage;
  const Hdf5Id type(H5Dget_type(data_set), H5Tclose), space(H5Dget_space(data_set), H5Sclose);
  const Hdf5Id creation(H5Dget_create_plist(data_set), H5Pclose);
  std::array<hsize_t, H5S_MAX_RANK> extents{};
  const int rank = space.valid() ? H5Sget_simple_extent_ndims(space.get()) : -1;
  if (!type.valid() || !creation.valid() || rank < 0 || rank > Shape::kMaxRank) return storage;
  H5Sget_simple_extent_dims(space.get(), extents.data(), nullptr);
  storage.extents = shape_of(std::span(extents).first(static_cast<std::size_t>(rank)));
  const auto numbers = numbers_of(type.get());
  const H5D_layout_t layout = H5Pget_layout(creation.get());
  if (layout == H5D_CHUNKED && rank > 0) {
    if (numbers) storage.numbers = *numbers;
    describe_chunks(creation.get(), storage);
    storage.decodable = storage.decodable && numbers;
  }
  if (layout == H5D_CONTIGUOUS && numbers && H5Pget_external_count(creation.get()) == 0) {
    const haddr_t begin = H5Dget_offset(data_set);
    const std::int64_t bytes = storage.extents.count() * size_of(numbers->type);
    const bool written = begin != HADDR_UNDEF && static_cast<std::int64_t>(begin) >= 0;
    if (written && bytes <= file_bytes && static_cast<std::int64_t>(begin) <= file_bytes - bytes) {
      storage.piece =
          PlainArray::contiguous(static_cast<std::int64_t>(begin), storage.extents, size_of(numbers->type));
    }
  }
  storage.numbers = numbers.value_or(StoredNumbers{});
  if (!storage.by_bytes()) storage.numbers.swapped = false;
  return storage;
}

}  // namespace jigsaw::inline files
