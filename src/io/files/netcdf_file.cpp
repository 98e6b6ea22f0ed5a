#include "files/netcdf_file.h"

#include <netcdf.h>

#include <array>
#include <bit>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "files/classic_header.h"
#include "files/hdf5_file.h"
#include "files/hdf5_walk.h"
#include "files/io_lock.h"

namespace jigsaw::inline files {

namespace {

/// As they stand in a classic file: big-endian.
StoredNumbers classic_numbers(const FileVariable& variable) {
  return {variable.type, std::endian::native == std::endian::little};
}

std::optional<StoredType> stored_type(int type) {
  switch (type) {
    case NC_BYTE:
      return StoredType::kI8;
    case NC_UBYTE:
      return StoredType::kU8;
    case NC_SHORT:
      return StoredType::kI16;
    case NC_USHORT:
      return StoredType::kU16;
    case NC_INT:
      return StoredType::kI32;
    case NC_UINT:
      return StoredType::kU32;
    case NC_INT64:
      return StoredType::kI64;
    case NC_UINT64:
      return StoredType::kU64;
    case NC_FLOAT:
      return StoredType::kF32;
    case NC_DOUBLE:
      return StoredType::kF64;
    default:
      return std::nullopt;
  }
}

/// 0 of what is no number.
std::int64_t bytes_of(int type) {
  const std::optional<StoredType> stored = stored_type(type);
  return stored ? size_of(*stored) : 0;
}

/// What the library writes where nothing was written; bytes have none.
std::optional<double> default_fill(int type) {
  switch (type) {
    case NC_SHORT:
      return NC_FILL_SHORT;
    case NC_USHORT:
      return NC_FILL_USHORT;
    case NC_INT:
      return NC_FILL_INT;
    case NC_UINT:
      return NC_FILL_UINT;
    case NC_FLOAT:
      return NC_FILL_FLOAT;
    case NC_DOUBLE:
      return NC_FILL_DOUBLE;
    case NC_INT64:
      return static_cast<double>(NC_FILL_INT64);
    case NC_UINT64:
      return static_cast<double>(NC_FILL_UINT64);
    default:
      return std::nullopt;
  }
}

/// What is read of a text that decides nothing, of which the beginning is kept.
constexpr std::size_t kLongestToldText = std::size_t{1} << 20;

/// The beginning of a text, without a part of a character of UTF-8 at its end.
std::string cut(std::string text, std::size_t longest) {
  if (text.size() <= longest) return text;
  while (longest > 0 && (static_cast<unsigned char>(text[longest]) & 0xC0U) == 0x80U) --longest;
  text.resize(longest);
  return text;
}

/// Where the variables of a classic file stand; "" for other formats.
std::string to_text(const std::vector<ClassicVariable>& classic) {
  nlohmann::json result = nlohmann::json::array();
  for (const ClassicVariable& variable : classic) {
    if (!variable.array) {
      result.push_back(nullptr);
      continue;
    }
    const auto& [begin, strides, size] = *variable.array;
    result.push_back({static_cast<int>(variable.type), begin,
                      std::vector<std::int64_t>(strides.begin(), strides.end()), size});
  }
  return result.dump();
}

std::optional<std::vector<ClassicVariable>> classic_of(const std::string& text) {
  if (text.empty()) return std::nullopt;
  std::vector<ClassicVariable> classic;
  for (const nlohmann::json& told : nlohmann::json::parse(text)) {
    ClassicVariable& variable = classic.emplace_back();
    if (told.is_null()) continue;
    variable.type = static_cast<StoredType>(told.at(0).get<int>());
    variable.array = {told.at(1).get<std::int64_t>(), Shape(told.at(2).get<std::vector<std::int64_t>>()),
                      told.at(3).get<std::int64_t>()};
  }
  return classic;
}

}  // namespace

NetcdfFile::NetcdfFile(std::string path, External external)
    : VariableFile(std::move(path)),
      classic_(read_classic_header(this->path())),
      runs_(this->path()),
      values_(this->path(), external, chunk_key()) {
  check_hdf5_for_netcdf(this->path(), external);
  const LibraryCalls calls(*this);
  try {
    read_group({id_, 0, "", {}});
  } catch (...) {
    close_library();
    throw;
  }
}

NetcdfFile::NetcdfFile(const FileDescription& known, External external)
    : VariableFile(known),
      classic_(classic_of(known.own)),
      runs_(this->path()),
      values_(this->path(), external, chunk_key()) {}

std::string NetcdfFile::own_description() const {
  return classic_ ? to_text(*classic_) : "";
}

NetcdfFile::~NetcdfFile() {
  close();
}

void NetcdfFile::open() {
  if (id_ >= 0) return;
  values_.close();
  check_unchanged();
  int id = -1;
  check(nc_open(path().c_str(), NC_NOWRITE, &id), "");
  id_ = id;
}

void NetcdfFile::close() {
  const auto lock = lock_io();
  close_library();
  values_.close();
  runs_.close();
}

void NetcdfFile::close_library() {
  if (id_ >= 0) nc_close(id_);
  id_ = -1;
}

NetcdfFile::LibraryCalls::LibraryCalls(NetcdfFile& file) : file_(file), lock_(lock_io()) {
  file.open();
}

/// NetCDF-C holds all data sets of a file open. HDF5 1.10 has those of texts refer to the one of several
/// handles of a file that came first, also when it has been closed: files with such data sets are not held by
/// the library while others have the lock.
NetcdfFile::LibraryCalls::~LibraryCalls() {
  const bool texts =
      std::ranges::any_of(file_.variables_, [](const FileVariable& variable) { return !variable.numeric(); });
  if (!file_.classic_ && texts) file_.close_library();
}

void NetcdfFile::check(int status, const std::string& what) const {
  if (status == NC_NOERR) return;
  throw DataError(
      concat("cannot read ", what.empty() ? "" : what + " of ", path(), ": ", nc_strerror(status)));
}

void NetcdfFile::read_group(Group group) {
  int variables = 0, dimensions = 0, groups = 0;
  check(nc_inq_dimids(group.id, &dimensions, nullptr, 0), "the dimensions");
  std::vector<int> ids(static_cast<std::size_t>(dimensions));
  check(nc_inq_dimids(group.id, &dimensions, ids.data(), 0), "the dimensions");
  for (const int id : ids) {
    char name[NC_MAX_NAME + 1] = {};
    check(nc_inq_dimname(group.id, id, name), "a dimension");
    group.dimensions[id] = group.prefix + name;
  }
  check(nc_inq_nvars(group.id, &variables), "the variables");
  for (int id = 0; id < variables; ++id) variables_.push_back(read_variable(group, id));
  const int status = nc_inq_grps(group.id, &groups, nullptr);
  if (status == NC_ENOTNC4 || groups == 0) return;
  check(status, "the groups");
  ids.resize(static_cast<std::size_t>(groups));
  check(nc_inq_grps(group.id, &groups, ids.data()), "the groups");
  for (const int id : ids) {
    char name[NC_MAX_NAME + 1] = {};
    check(nc_inq_grpname(id, name), "a group");
    if (group.depth == kDeepestGroup) refuse_deep_group(path(), group.prefix + name);
    read_group({id, group.depth + 1, concat(group.prefix, name, "/"), group.dimensions});
  }
}

FileVariable NetcdfFile::read_variable(const Group& group, int id) {
  FileVariable variable;
  variable.id = id;
  char name[NC_MAX_NAME + 1] = {};
  int rank = 0, type = 0;
  check(nc_inq_var(group.id, id, name, &type, &rank, nullptr, nullptr), "a variable");
  variable.name = group.prefix + name;
  variable.bytes = bytes_of(type);
  add_storage(group, type, variable);
  variable.single_precision = type == NC_FLOAT;
  variable.default_fill = default_fill(type);
  std::vector<int> dimensions(static_cast<std::size_t>(rank));
  check(nc_inq_vardimid(group.id, id, dimensions.data()), variable.name);
  std::vector<std::uint64_t> extents;
  for (const int dimension : dimensions) {
    std::size_t length = 0;
    check(nc_inq_dim(group.id, dimension, name, &length), variable.name);
    const auto known = group.dimensions.find(dimension);
    variable.dimensions.push_back(known == group.dimensions.end() ? name : known->second);
    extents.push_back(length);
  }
  variable.set_extents(extents);
  // One that cannot be read stays in the list, and says so when it is asked for.
  if (!variable.fault.empty()) return variable;
  for (const std::string& attribute : attributes()) read_attribute(group.id, variable, attribute);
  read_other_attributes(group.id, variable);
  return variable;
}

void NetcdfFile::read_other_attributes(int group, FileVariable& variable) {
  int count = 0;
  check(nc_inq_varnatts(group, variable.id, &count), variable.name);
  for (int number = 0; number < count; ++number) {
    char name[NC_MAX_NAME + 1] = {};
    std::size_t length = 0;
    check(nc_inq_attname(group, variable.id, number, name), variable.name);
    if (!is_read(variable, name)) continue;
    check(nc_inq_attlen(group, variable.id, name, &length), variable.name);
    if (length <= kLongestAttribute) read_attribute(group, variable, name);
  }
}

void NetcdfFile::add_storage(const Group& group, int type, FileVariable& variable) {
  if (!variable.numeric()) return;
  variable.type = *stored_type(type);
  int rank = 0, storage = NC_CONTIGUOUS, shuffle = 0, deflate = 0, level = 0;
  check(nc_inq_varndims(group.id, variable.id, &rank), variable.name);
  std::vector<std::size_t> chunks(static_cast<std::size_t>(rank));
  if (classic_ || rank > Shape::kMaxRank) return;
  check(nc_inq_var_chunking(group.id, variable.id, &storage, chunks.data()), variable.name);
  if (storage != NC_CHUNKED) return;
  for (const std::size_t extent : chunks) variable.chunks.append(static_cast<std::int64_t>(extent));
  check(nc_inq_var_deflate(group.id, variable.id, &shuffle, &deflate, &level), variable.name);
  variable.compressed = shuffle != 0 || deflate != 0;
}

void NetcdfFile::read_attribute(int group, FileVariable& variable, const std::string& attribute) {
  int type = 0;
  std::size_t length = 0;
  const int status = nc_inq_att(group, variable.id, attribute.c_str(), &type, &length);
  if (status == NC_ENOTATT) return;
  const std::string what = concat("the attribute ", attribute, " of ", variable.name);
  check(status, what);
  if (length == 0) return add_unknown(variable, attribute);
  const bool only_told = attribute == "long_name" && type == NC_CHAR;
  if (only_told && length > kLongestToldText) return;
  if (!only_told && length > kLongestAttribute) {
    return variable.refuse(concat("its attribute ", attribute, " has ", length, " entries; at most ",
                                  kLongestAttribute, " are read"));
  }
  if (type == NC_CHAR) {
    std::string text(length, '\0');
    check(nc_get_att_text(group, variable.id, attribute.c_str(), text.data()), what);
    variable.texts[attribute] = cut(text.substr(0, text.find('\0')), kLongestAttribute);
  } else if (type == NC_STRING && length == 1) {
    char* text = nullptr;
    check(nc_get_att_string(group, variable.id, attribute.c_str(), &text), what);
    if (text != nullptr) variable.texts[attribute] = std::string(text).substr(0, kLongestAttribute);
    nc_free_string(1, &text);
  } else if (bytes_of(type) > 0) {
    std::vector<double> numbers(length);
    check(nc_get_att_double(group, variable.id, attribute.c_str(), numbers.data()), what);
    variable.numbers[attribute] = std::move(numbers);
    if (type == NC_FLOAT || type == NC_DOUBLE) variable.floating.insert(attribute);
    if (type == NC_FLOAT) variable.single.insert(attribute);
  } else {
    add_unknown(variable, attribute);
  }
}

StoredNumbers NetcdfFile::read_stored(const FileVariable& variable, const Box& box, ByteBuffer& out,
                                      std::int64_t& fetched) {
  if (!(intersect(Box::whole(variable.shape), box) == box)) {
    throw DataError(
        concat("cannot read ", variable.name, " of ", path(), " at ", box, ": it has ", variable.shape));
  }
  const std::int64_t bytes = box.extent.count() * size_of(variable.type);
  if (const PlainArray* array = classic_array(variable)) {
    fetched += runs_.read(*array, box, out.take(static_cast<std::size_t>(bytes)));
    return classic_numbers(variable);
  }
  if (!classic_) {
    const std::shared_lock others(library_);
    const std::string name = in_hdf5(variable);
    if (values_.storage(name)->extents == variable.shape) return values_.read(name, box, out, fetched);
  }
  // Records that other variables have and this one does not are the library's to fill in.
  fetched += bytes;
  return read_by_library(variable, box, out);
}

std::optional<PlainNumbers> NetcdfFile::plain_numbers(const FileVariable& variable) {
  if (const PlainArray* array = classic_array(variable))
    return PlainNumbers{runs_.file_of_streams(), *array, classic_numbers(variable)};
  if (classic_) return {};
  const std::shared_lock others(library_);
  const std::string name = in_hdf5(variable);
  if (!(values_.storage(name)->extents == variable.shape)) return {};
  return values_.plain_numbers(name);
}

const PlainArray* NetcdfFile::classic_array(const FileVariable& variable) const {
  const auto number = static_cast<std::size_t>(variable.id);
  if (!classic_ || number >= classic_->size() || !(*classic_)[number].array) return nullptr;
  return &*(*classic_)[number].array;
}

std::string NetcdfFile::in_hdf5(const FileVariable& variable) {
  const auto lock = lock_io();
  close_library();
  return hdf5_name(variable);
}

StoredNumbers NetcdfFile::read_by_library(const FileVariable& variable, const Box& box, ByteBuffer& out) {
  std::array<std::size_t, Shape::kMaxRank> start{}, extent{};
  for (int d = 0; d < box.extent.rank(); ++d) {
    start[static_cast<std::size_t>(d)] = static_cast<std::size_t>(box.begin[d]);
    extent[static_cast<std::size_t>(d)] = static_cast<std::size_t>(box.extent[d]);
  }
  const std::int64_t bytes = box.extent.count() * size_of(variable.type);
  const std::unique_lock alone(library_);
  const LibraryCalls calls(*this);
  check(nc_get_vara(group_of(variable), variable.id, start.data(), extent.data(),
                    out.take(static_cast<std::size_t>(bytes)).data()),
        variable.name);
  return {variable.type, false};
}

const std::string& NetcdfFile::hdf5_name(const FileVariable& variable) {
  const auto known = hdf5_names_.find(variable.name);
  if (known != hdf5_names_.end()) return known->second;
  const std::size_t last = variable.name.rfind('/') + 1;  // 0 without a group
  const std::string other =
      concat(variable.name.substr(0, last), "_nc4_non_coord_", variable.name.substr(last));
  const bool is_other = H5Lexists(values_.file(), other.c_str(), H5P_DEFAULT) > 0;
  return hdf5_names_[variable.name] = is_other ? other : variable.name;
}

int NetcdfFile::group_of(const FileVariable& variable) const {
  const std::size_t end = variable.name.rfind('/');
  if (end == std::string::npos) return id_;
  int group = -1;
  check(nc_inq_grp_full_ncid(id_, ("/" + variable.name.substr(0, end)).c_str(), &group), variable.name);
  return group;
}

/// NetCDF-C takes the texts of data sets whose texts are all of one length for terminated ones, so HDF5 reads
/// them; it does not open a file that NetCDF-C holds.
std::vector<std::string> NetcdfFile::read_stored_texts(const FileVariable& variable) {
  {
    const LibraryCalls calls(*this);
    int type = 0;
    check(nc_inq_vartype(group_of(variable), variable.id, &type), variable.name);
    if (type == NC_CHAR && variable.shape.rank() == 2) return read_characters(variable);
    if (type != NC_STRING) return {};
  }
  close();
  Hdf5File file(path());
  const FileVariable* data_set = file.find(variable.name);
  if (data_set == nullptr) return {};
  return file.read_texts(*data_set);
}

/// Each row to its end, or its first zero.
std::vector<std::string> NetcdfFile::read_characters(const FileVariable& variable) const {
  const auto length = static_cast<std::size_t>(variable.shape[1]);
  std::string all(static_cast<std::size_t>(variable.shape.count()), '\0');
  check(nc_get_var_text(group_of(variable), variable.id, all.data()), variable.name);
  std::vector<std::string> texts;
  for (std::int64_t row = 0; row < variable.shape[0]; ++row) {
    const std::string text = all.substr(static_cast<std::size_t>(row) * length, length);
    texts.push_back(text.substr(0, text.find('\0')));
  }
  return texts;
}

}  // namespace jigsaw::inline files
