#pragma once
#include <gtest/gtest.h>
#include <netcdf.h>

#include <string>
#include <vector>

namespace jigsaw::testing {

/// A NetCDF file written through NetCDF-C, for tests. Groups and variables are named by their numbers.
class NetcdfWriter {
 public:
  explicit NetcdfWriter(const std::string& path, int mode = NC_NETCDF4) {
    check(nc_create(path.c_str(), NC_CLOBBER | mode, &file_));
  }
  ~NetcdfWriter() { check(nc_close(file_)); }
  NetcdfWriter(const NetcdfWriter&) = delete;
  NetcdfWriter& operator=(const NetcdfWriter&) = delete;

  int root() const { return file_; }
  int group(const char* name) {
    int id = 0;
    check(nc_def_grp(file_, name, &id));
    return id;
  }
  int dimension(const std::string& name, std::size_t length, int group = -1) {
    int id = 0;
    check(nc_def_dim(in(group), name.c_str(), length, &id));
    return id;
  }
  int variable(const std::string& name, nc_type type, const std::vector<int>& dimensions, int group = -1) {
    int id = 0;
    check(nc_def_var(in(group), name.c_str(), type, static_cast<int>(dimensions.size()), dimensions.data(),
                     &id));
    return id;
  }
  void text(int variable, const char* name, const std::string& value, int group = -1) {
    if (!value.empty()) check(nc_put_att_text(in(group), variable, name, value.size(), value.c_str()));
  }
  void number(int variable, const char* name, nc_type type, double value) {
    check(nc_put_att_double(file_, variable, name, type, 1, &value));
  }
  void numbers(int variable, const char* name, const std::vector<double>& values) {
    check(nc_put_att_double(file_, variable, name, NC_DOUBLE, values.size(), values.data()));
  }
  /// Ends definitions, which the classic formats need.
  void end() { check(nc_enddef(file_)); }
  void put(int variable, const std::vector<double>& values, int group = -1) {
    check(nc_put_var_double(in(group), variable, values.data()));
  }
  /// The first `extents` of an unlimited variable.
  void put(int variable, const std::vector<std::size_t>& extents, const std::vector<double>& values) {
    const std::vector<std::size_t> start(extents.size(), 0);
    check(nc_put_vara_double(file_, variable, start.data(), extents.data(), values.data()));
  }
  void put(int variable, const std::vector<std::string>& texts) {
    std::vector<const char*> pointers;
    for (const std::string& text : texts) pointers.push_back(text.c_str());
    check(nc_put_var_string(file_, variable, pointers.data()));
  }
  static void check(int status) { ASSERT_EQ(status, NC_NOERR) << nc_strerror(status); }

 private:
  int in(int group) const { return group < 0 ? file_ : group; }

  int file_ = -1;
};

}  // namespace jigsaw::testing
