#include "files/variable_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <fstream>
#include <limits>
#include <string_view>
#include <system_error>

#include "base/error.h"
#include "base/text.h"
#include "files/hdf5_file.h"
#include "files/netcdf_file.h"

namespace jigsaw::inline files {

namespace {

constexpr std::string_view kHdf5Signature = "\x89HDF\r\n\x1a\n";

bool begins_with(std::span<const char> begin, std::string_view signature) {
  return std::string_view(begin.data(), begin.size()).starts_with(signature);
}

template <typename File>
std::unique_ptr<VariableFile> open_as(const std::string& path) {
  return std::make_unique<File>(path);
}

constexpr std::int64_t kLongestCoordinate = std::int64_t{1} << 24;

/// From stored numbers to physical ones.
class Unpacking {
 public:
  explicit Unpacking(const FileVariable& variable) {
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
    } else if (variable.default_fill) {
      missing_.push_back(*variable.default_fill);
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

  void add_missing(const FileVariable& variable, const char* attribute) {
    const auto found = variable.numbers.find(attribute);
    if (found == variable.numbers.end()) return;
    for (const double value : found->second) {
      // A double attribute of a float variable is meant as the float nearest to it.
      missing_.push_back(variable.single_precision ? static_cast<double>(static_cast<float>(value)) : value);
    }
  }

  double scale_ = 1, offset_ = 0, low_ = 0, high_ = 0;
  std::vector<double> missing_;
};

}  // namespace

std::string FileVariable::text(const std::string& attribute) const {
  const auto found = texts.find(attribute);
  return found == texts.end() ? "" : found->second;
}

const std::vector<std::string>& VariableFile::attributes() {
  static const std::vector<std::string> names = {
      "units",      "calendar",      "standard_name", "long_name",  "axis",      "positive",  "scale_factor",
      "add_offset", "missing_value", "valid_range",   "_FillValue", "valid_min", "valid_max", "_Unsigned"};
  return names;
}

const FileVariable* VariableFile::find(const std::string& name) const {
  const auto found = std::find_if(variables_.begin(), variables_.end(),
                                  [&](const FileVariable& variable) { return variable.name == name; });
  return found == variables_.end() ? nullptr : &*found;
}

template <typename T>
void VariableFile::read(const FileVariable& variable, const Box& box, std::span<T> out) {
  require(std::ssize(out) == box.extent.count(), "a hyperslab does not fit where it is read to");
  if (!variable.numeric()) throw DataError(concat(variable.name, " in ", path_, " does not hold numbers"));
  if (!variable.text("_Unsigned").empty()) {
    throw DataError(concat(variable.name, " in ", path_,
                           " has the attribute _Unsigned, which is not understood; store an unsigned type"));
  }
  if (box.empty()) return;
  std::vector<double> stored(out.size());
  read_stored(variable, box, stored);
  bytes_read_ += std::ssize(out) * variable.bytes;
  const Unpacking unpack(variable);
  std::transform(stored.begin(), stored.end(), out.begin(),
                 [&](double value) { return static_cast<T>(unpack(value)); });
}

template void VariableFile::read<float>(const FileVariable&, const Box&, std::span<float>);
template void VariableFile::read<double>(const FileVariable&, const Box&, std::span<double>);

std::vector<double> VariableFile::read_all(const FileVariable& variable) {
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

const std::vector<FileFormat>& file_formats() {
  static const std::vector<FileFormat> formats = {
      {"HDF5", false, [](std::span<const char> begin) { return begins_with(begin, kHdf5Signature); },
       open_as<Hdf5File>},
      {"NetCDF", true,
       [](std::span<const char> begin) {
         return begins_with(begin, "CDF") || begins_with(begin, kHdf5Signature);
       },
       open_as<NetcdfFile>},
  };
  return formats;
}

std::unique_ptr<VariableFile> open_variables(const std::string& path, Dimensions dimensions) {
  std::array<char, 8> begin{};
  std::ifstream file(path, std::ios::binary);
  if (!file) throw DataError(concat("cannot read ", path, ": ", std::generic_category().message(errno)));
  file.read(begin.data(), begin.size());
  std::vector<std::string> names;
  for (const FileFormat& format : file_formats()) {
    if (dimensions == Dimensions::kByName && !format.names_dimensions) continue;
    if (format.recognises(std::span(begin).first(static_cast<std::size_t>(file.gcount()))))
      return format.open(path);
    names.push_back(format.name);
  }
  throw DataError(concat("cannot read ", path, ": it is no ", join(names, " or "), " file"));
}

}  // namespace jigsaw::inline files
