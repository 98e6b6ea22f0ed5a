#pragma once
#include <gtest/gtest.h>
#include <netcdf.h>

#include <numeric>
#include <string>
#include <vector>

namespace jigsaw::testing {

/// What a NetCDF file holds, through the library alone.
class NetcdfReader {
 public:
  explicit NetcdfReader(const std::string& path) {
    if (nc_open(path.c_str(), NC_NOWRITE, &file_) != NC_NOERR) ADD_FAILURE() << "cannot open " << path;
  }
  ~NetcdfReader() { nc_close(file_); }
  NetcdfReader(const NetcdfReader&) = delete;
  NetcdfReader& operator=(const NetcdfReader&) = delete;

  int variable(const std::string& name) const {
    int id = -1;
    if (nc_inq_varid(file_, name.c_str(), &id) != NC_NOERR) ADD_FAILURE() << "no variable " << name;
    return id;
  }
  bool has(const std::string& name) const {
    int id = -1;
    return nc_inq_varid(file_, name.c_str(), &id) == NC_NOERR;
  }
  std::vector<std::string> dimensions(const std::string& name) const {
    std::vector<std::string> names;
    for (const int dimension : dimension_ids(name)) {
      char text[NC_MAX_NAME + 1] = {};
      nc_inq_dimname(file_, dimension, text);
      names.emplace_back(text);
    }
    return names;
  }
  std::vector<std::size_t> extents(const std::string& name) const {
    std::vector<std::size_t> result;
    for (const int dimension : dimension_ids(name)) {
      std::size_t extent = 0;
      nc_inq_dimlen(file_, dimension, &extent);
      result.push_back(extent);
    }
    return result;
  }
  /// As stored.
  std::vector<double> values(const std::string& name) const {
    const std::vector<std::size_t> shape = extents(name);
    std::vector<double> result(
        std::accumulate(shape.begin(), shape.end(), std::size_t{1}, std::multiplies<>()));
    EXPECT_EQ(nc_get_var_double(file_, variable(name), result.data()), NC_NOERR) << name;
    return result;
  }
  /// stored · scale_factor + add_offset.
  std::vector<double> unpacked(const std::string& name) const {
    double scale = 1, offset = 0;
    nc_get_att_double(file_, variable(name), "scale_factor", &scale);
    nc_get_att_double(file_, variable(name), "add_offset", &offset);
    std::vector<double> result = values(name);
    for (double& value : result) value = value * scale + offset;
    return result;
  }
  double number(const std::string& name, const std::string& attribute) const {
    double value = 0;
    EXPECT_EQ(nc_get_att_double(file_, variable(name), attribute.c_str(), &value), NC_NOERR) << attribute;
    return value;
  }
  std::vector<int> numbers(const std::string& name, const std::string& attribute) const {
    std::size_t length = 0;
    EXPECT_EQ(nc_inq_attlen(file_, variable(name), attribute.c_str(), &length), NC_NOERR) << attribute;
    std::vector<int> result(length);
    nc_get_att_int(file_, variable(name), attribute.c_str(), result.data());
    return result;
  }
  /// "" where there is none; the variable "" is the file.
  std::string text(const std::string& name, const std::string& attribute) const {
    const int id = name.empty() ? NC_GLOBAL : variable(name);
    std::size_t length = 0;
    if (nc_inq_attlen(file_, id, attribute.c_str(), &length) != NC_NOERR) return "";
    std::string result(length, '\0');
    nc_get_att_text(file_, id, attribute.c_str(), result.data());
    return result;
  }
  int id() const { return file_; }

 private:
  std::vector<int> dimension_ids(const std::string& name) const {
    int rank = 0;
    nc_inq_varndims(file_, variable(name), &rank);
    std::vector<int> ids(static_cast<std::size_t>(rank));
    nc_inq_vardimid(file_, variable(name), ids.data());
    return ids;
  }

  int file_ = -1;
};

}  // namespace jigsaw::testing
