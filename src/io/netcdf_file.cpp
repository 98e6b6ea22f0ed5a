#include "io/netcdf_file.h"

#include <netcdf.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/text.h"
#include "io/classic_header.h"
#include "io/io_lock.h"

namespace jigsaw {

namespace {

constexpr std::int64_t kLongestCoordinate = std::int64_t{1} << 24;
constexpr std::size_t kLongestAttribute = 4096;
constexpr std::array kAttributes = {
    "units",      "calendar",      "standard_name", "long_name",  "axis",      "positive",  "scale_factor",
    "add_offset", "missing_value", "valid_range",   "_FillValue", "valid_min", "valid_max", "_Unsigned"};

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

/// From stored numbers to physical ones.
class Unpacking {
 public:
  explicit Unpacking(const NetcdfVariable& variable) {
    const auto first = [&](const char* attribute, double otherwise) {
      const auto found = variable.numbers.find(attribute);
      return found == variable.numbers.end() ? otherwise : found->second[0];
    };
    scale_ = first("scale_factor", 1.0);
    offset_ = first("add_offset", 0.0);
    low_ = first("valid_min", -std::numeric_limits<double>::infinity());
    high_ = first("valid_max", std::numeric_limits<double>::infinity());
    if (const auto range = variable.numbers.find("valid_range");
        range != variable.numbers.end() && range->second.size() == 2) {
      low_ = range->second[0];
      high_ = range->second[1];
    }
    add_missing(variable, "missing_value");
    if (variable.numbers.contains("_FillValue")) {
      add_missing(variable, "_FillValue");
    } else if (const auto fill = default_fill(variable.type)) {
      missing_.push_back(*fill);
    }
  }

  double operator()(double stored) const {
    for (const double missing : missing_) {
      if (stored == missing) return kNaN;
    }
    if (!(stored >= low_ && stored <= high_)) return kNaN;
    const double value = stored * scale_ + offset_;
    return std::isfinite(value) ? value : kNaN;
  }

 private:
  static constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

  void add_missing(const NetcdfVariable& variable, const char* attribute) {
    const auto found = variable.numbers.find(attribute);
    if (found == variable.numbers.end()) return;
    for (const double value : found->second) {
      // A double attribute of a float variable is meant as the float nearest to it.
      missing_.push_back(variable.type == NC_FLOAT ? static_cast<double>(static_cast<float>(value)) : value);
    }
  }

  double scale_ = 1, offset_ = 0, low_ = 0, high_ = 0;
  std::vector<double> missing_;
};

}  // namespace

std::string NetcdfVariable::text(const std::string& attribute) const {
  const auto found = texts.find(attribute);
  return found == texts.end() ? "" : found->second;
}

NetcdfFile::NetcdfFile(std::string path) : path_(std::move(path)) {
  check_classic_file(path_);
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
  int id = -1;
  check(nc_open(path_.c_str(), NC_NOWRITE, &id), "");
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
      concat("cannot read ", what.empty() ? "" : what + " of ", path_, ": ", nc_strerror(status)));
}

void NetcdfFile::read_header() {
  int variables = 0;
  check(nc_inq_nvars(id_, &variables), "the variables");
  for (int id = 0; id < variables; ++id) variables_.push_back(read_variable(id));
}

NetcdfVariable NetcdfFile::read_variable(int id) {
  NetcdfVariable variable;
  variable.id = id;
  char name[NC_MAX_NAME + 1] = {};
  int rank = 0;
  check(nc_inq_var(id_, id, name, &variable.type, &rank, nullptr, nullptr), "a variable");
  variable.name = name;
  // A variable of more dimensions than any field has stays in the list, as one that cannot be read.
  if (rank > Shape::kMaxRank) return variable;
  variable.bytes = bytes_of(variable.type);
  std::array<int, Shape::kMaxRank> dimensions{};
  check(nc_inq_vardimid(id_, id, dimensions.data()), variable.name);
  for (int d = 0; d < rank; ++d) {
    std::size_t length = 0;
    check(nc_inq_dim(id_, dimensions[static_cast<std::size_t>(d)], name, &length), variable.name);
    variable.dimensions.emplace_back(name);
    variable.shape.append(static_cast<std::int64_t>(length));
  }
  for (const char* attribute : kAttributes) read_attribute(variable, attribute);
  return variable;
}

void NetcdfFile::read_attribute(NetcdfVariable& variable, const std::string& attribute) {
  int type = 0;
  std::size_t length = 0;
  const int status = nc_inq_att(id_, variable.id, attribute.c_str(), &type, &length);
  if (status == NC_ENOTATT) return;
  const std::string what = concat("the attribute ", attribute, " of ", variable.name);
  check(status, what);
  if (length == 0) return;
  if (length > kLongestAttribute) throw DataError(concat(what, " in ", path_, " is too long"));
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
  }
}

const NetcdfVariable* NetcdfFile::find(const std::string& name) const {
  const auto found = std::find_if(variables_.begin(), variables_.end(),
                                  [&](const NetcdfVariable& variable) { return variable.name == name; });
  return found == variables_.end() ? nullptr : &*found;
}

template <typename T>
void NetcdfFile::read(const NetcdfVariable& variable, const Box& box, std::span<T> out) {
  require(std::ssize(out) == box.extent.count(), "a hyperslab does not fit where it is read to");
  if (!variable.numeric()) throw DataError(concat(variable.name, " in ", path_, " does not hold numbers"));
  if (!variable.text("_Unsigned").empty()) {
    throw DataError(concat(variable.name, " in ", path_,
                           " has the attribute _Unsigned, which is not understood; store an unsigned type"));
  }
  if (box.empty()) return;
  std::array<std::size_t, Shape::kMaxRank> start{}, extent{};
  for (int d = 0; d < box.extent.rank(); ++d) {
    start[static_cast<std::size_t>(d)] = static_cast<std::size_t>(box.begin[d]);
    extent[static_cast<std::size_t>(d)] = static_cast<std::size_t>(box.extent[d]);
  }
  std::vector<double> stored(out.size());
  {
    const auto lock = lock_io();
    open();
    check(nc_get_vara_double(id_, variable.id, start.data(), extent.data(), stored.data()), variable.name);
  }
  bytes_read_ += std::ssize(out) * variable.bytes;
  const Unpacking unpack(variable);
  std::transform(stored.begin(), stored.end(), out.begin(),
                 [&](double value) { return static_cast<T>(unpack(value)); });
}

template void NetcdfFile::read<float>(const NetcdfVariable&, const Box&, std::span<float>);
template void NetcdfFile::read<double>(const NetcdfVariable&, const Box&, std::span<double>);

std::vector<double> NetcdfFile::read_all(const NetcdfVariable& variable) {
  for (const std::int64_t extent : variable.shape) {
    if (extent > kLongestCoordinate || variable.shape.count() > kLongestCoordinate) {
      throw DataError(concat("the coordinate ", variable.name, " of ", path_, " has ", extent,
                             " values; at most ", kLongestCoordinate, " are sensible"));
    }
  }
  std::vector<double> values(static_cast<std::size_t>(variable.shape.count()));
  read<double>(variable, Box::whole(variable.shape), values);
  return values;
}

}  // namespace jigsaw
