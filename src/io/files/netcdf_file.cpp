#include "files/netcdf_file.h"

#include <netcdf.h>

#include <array>
#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "files/classic_header.h"
#include "files/hdf5_file.h"
#include "files/hdf5_walk.h"
#include "files/io_lock.h"

namespace jigsaw::inline files {

namespace {

constexpr int kDeepestGroup = 16;

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
    read_group({id_, 0, "", {}});
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
  if (status == NC_ENOTNC4 || groups == 0 || group.depth == kDeepestGroup) return;
  check(status, "the groups");
  ids.resize(static_cast<std::size_t>(groups));
  check(nc_inq_grps(group.id, &groups, ids.data()), "the groups");
  for (const int id : ids) {
    char name[NC_MAX_NAME + 1] = {};
    check(nc_inq_grpname(id, name), "a group");
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
  return variable;
}

void NetcdfFile::read_attribute(int group, FileVariable& variable, const std::string& attribute) {
  int type = 0;
  std::size_t length = 0;
  const int status = nc_inq_att(group, variable.id, attribute.c_str(), &type, &length);
  if (status == NC_ENOTATT) return;
  const std::string what = concat("the attribute ", attribute, " of ", variable.name);
  check(status, what);
  if (length == 0) return;
  if (length > kLongestAttribute) throw DataError(concat(what, " in ", path(), " is too long"));
  if (type == NC_CHAR) {
    std::string text(length, '\0');
    check(nc_get_att_text(group, variable.id, attribute.c_str(), text.data()), what);
    variable.texts[attribute] = text.substr(0, text.find('\0'));
  } else if (type == NC_STRING && length == 1) {
    char* text = nullptr;
    check(nc_get_att_string(group, variable.id, attribute.c_str(), &text), what);
    if (text != nullptr) variable.texts[attribute] = std::string(text).substr(0, kLongestAttribute);
    nc_free_string(1, &text);
  } else if (bytes_of(type) > 0) {
    std::vector<double> numbers(length);
    check(nc_get_att_double(group, variable.id, attribute.c_str(), numbers.data()), what);
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
  check(nc_get_vara_double(group_of(variable), variable.id, start.data(), extent.data(), out.data()),
        variable.name);
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
    const auto lock = lock_io();
    open();
    int type = 0;
    check(nc_inq_vartype(group_of(variable), variable.id, &type), variable.name);
    if (type != NC_STRING) return {};
  }
  close();
  Hdf5File file(path());
  const FileVariable* data_set = file.find(variable.name);
  if (data_set == nullptr) return {};
  return file.read_texts(*data_set);
}

}  // namespace jigsaw::inline files
