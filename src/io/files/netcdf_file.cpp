#include "files/netcdf_file.h"

#include <netcdf.h>

#include <array>
#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "files/classic_header.h"
#include "files/hdf5_walk.h"
#include "files/io_lock.h"

namespace jigsaw::inline files {

namespace {

std::int64_t bytes_of(int type) {
  switch (type) {
    case NC_BYTE:
    case NC_UBYTE:
      return 1;
    case NC_SHORT:
    case NC_USHORT:
      return 2;
    case NC_INT:
    case NC_UINT:
    case NC_FLOAT:
      return 4;
    case NC_INT64:
    case NC_UINT64:
    case NC_DOUBLE:
      return 8;
    default:
      return 0;
  }
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

}  // namespace

NetcdfFile::NetcdfFile(std::string path, External external) : VariableFile(std::move(path)) {
  check_classic_file(this->path());
  check_hdf5_for_netcdf(this->path(), external);
  const auto lock = lock_io();
  open();
  try {
    read_header();
  } catch (...) {
    nc_close(id_);
    throw;
  }
}

NetcdfFile::~NetcdfFile() {
  close();
}

void NetcdfFile::open() {
  if (is_open()) return;
  check_unchanged();
  int id = -1;
  check(nc_open(path().c_str(), NC_NOWRITE, &id), "");
  id_ = id;
}

void NetcdfFile::close() {
  const auto lock = lock_io();
  if (is_open()) nc_close(id_);
  id_ = -1;
}

void NetcdfFile::check(int status, const std::string& what) const {
  if (status == NC_NOERR) return;
  throw DataError(
      concat("cannot read ", what.empty() ? "" : what + " of ", path(), ": ", nc_strerror(status)));
}

void NetcdfFile::read_header() {
  int variables = 0;
  check(nc_inq_nvars(id_, &variables), "the variables");
  for (int id = 0; id < variables; ++id) variables_.push_back(read_variable(id));
}

FileVariable NetcdfFile::read_variable(int id) {
  FileVariable variable;
  variable.id = id;
  char name[NC_MAX_NAME + 1] = {};
  int rank = 0, type = 0;
  check(nc_inq_var(id_, id, name, &type, &rank, nullptr, nullptr), "a variable");
  variable.name = name;
  variable.bytes = bytes_of(type);
  variable.single_precision = type == NC_FLOAT;
  variable.default_fill = default_fill(type);
  std::vector<int> dimensions(static_cast<std::size_t>(rank));
  check(nc_inq_vardimid(id_, id, dimensions.data()), variable.name);
  std::vector<std::uint64_t> extents;
  for (const int dimension : dimensions) {
    std::size_t length = 0;
    check(nc_inq_dim(id_, dimension, name, &length), variable.name);
    variable.dimensions.emplace_back(name);
    extents.push_back(length);
  }
  variable.set_extents(extents);
  // One that cannot be read stays in the list, and says so when it is asked for.
  if (!variable.fault.empty()) return variable;
  for (const std::string& attribute : attributes()) read_attribute(variable, attribute);
  return variable;
}

void NetcdfFile::read_attribute(FileVariable& variable, const std::string& attribute) {
  int type = 0;
  std::size_t length = 0;
  const int status = nc_inq_att(id_, variable.id, attribute.c_str(), &type, &length);
  if (status == NC_ENOTATT) return;
  const std::string what = concat("the attribute ", attribute, " of ", variable.name);
  check(status, what);
  if (length == 0) return;
  if (length > kLongestAttribute) throw DataError(concat(what, " in ", path(), " is too long"));
  if (type == NC_CHAR) {
    std::string text(length, '\0');
    check(nc_get_att_text(id_, variable.id, attribute.c_str(), text.data()), what);
    variable.texts[attribute] = text.substr(0, text.find('\0'));
  } else if (type == NC_STRING && length == 1) {
    char* text = nullptr;
    check(nc_get_att_string(id_, variable.id, attribute.c_str(), &text), what);
    if (text != nullptr) variable.texts[attribute] = std::string(text).substr(0, kLongestAttribute);
    nc_free_string(1, &text);
  } else if (bytes_of(type) > 0) {
    std::vector<double> numbers(length);
    check(nc_get_att_double(id_, variable.id, attribute.c_str(), numbers.data()), what);
    variable.numbers[attribute] = std::move(numbers);
  } else {
    add_unknown(variable, attribute);
  }
}

void NetcdfFile::read_stored(const FileVariable& variable, const Box& box, std::span<double> out) {
  std::array<std::size_t, Shape::kMaxRank> start{}, extent{};
  for (int d = 0; d < box.extent.rank(); ++d) {
    start[static_cast<std::size_t>(d)] = static_cast<std::size_t>(box.begin[d]);
    extent[static_cast<std::size_t>(d)] = static_cast<std::size_t>(box.extent[d]);
  }
  const auto lock = lock_io();
  open();
  check(nc_get_vara_double(id_, variable.id, start.data(), extent.data(), out.data()), variable.name);
}

}  // namespace jigsaw::inline files
