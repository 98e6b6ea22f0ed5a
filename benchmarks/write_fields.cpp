// Writes made-up fields with the variables, levels and statics of a forecast configuration on its data.shape:
// smooth waves and noise, six-hourly from 2020-01-01 on, a time at a time. CDF-5, float32.
//
//   write_fields CONFIG FILE TIMES
#include <netcdf.h>

#include <cmath>
#include <iostream>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "config/config.h"
#include "task/configuration.h"

namespace {

using namespace jigsaw;

void check(int status) {
  if (status != NC_NOERR) throw FileError(nc_strerror(status));
}

class Fields {
 public:
  Fields(const DataOptions& data, const std::string& path)
      : rows_(static_cast<std::size_t>(data.shape.at(0))),
        columns_(static_cast<std::size_t>(data.shape.at(1))) {
    check(nc_create(path.c_str(), NC_CLOBBER | NC_64BIT_DATA, &file_));
    check(nc_def_dim(file_, "time", NC_UNLIMITED, &time_));
    check(nc_def_dim(file_, "latitude", rows_, &latitude_));
    check(nc_def_dim(file_, "longitude", columns_, &longitude_));
    coordinate("time", time_, "hours since 2020-01-01 00:00:00");
    coordinate("latitude", latitude_, "degrees_north");
    coordinate("longitude", longitude_, "degrees_east");
    for (const auto& group : {data.variables, data.diagnostic}) {
      for (const VariableOptions& variable : group) add(variable, true);
    }
    for (const VariableOptions& variable : data.constants) add(variable, false);
    check(nc_set_fill(file_, NC_NOFILL, nullptr));
    check(nc_enddef(file_));
    write_axes();
  }
  ~Fields() { nc_close(file_); }
  Fields(const Fields&) = delete;
  Fields& operator=(const Fields&) = delete;

  void write(std::size_t times) {
    for (std::size_t t = 0; t < times; ++t) {
      const double hours = 6.0 * static_cast<double>(t);
      int id = 0;
      check(nc_inq_varid(file_, "time", &id));
      check(nc_put_var1_double(file_, id, &t, &hours));
      for (const Variable& variable : variables_) {
        if (variable.has_time || t == 0) write(variable, t);
      }
    }
  }

 private:
  struct Variable {
    int id;
    std::size_t levels;
    bool has_time;
  };

  void coordinate(const char* name, int dim, const char* units) {
    int id = 0;
    check(nc_def_var(file_, name, NC_DOUBLE, 1, &dim, &id));
    check(nc_put_att_text(file_, id, "units", std::char_traits<char>::length(units), units));
  }

  void add(const VariableOptions& variable, bool has_time) {
    std::vector<int> dims;
    if (has_time) dims.push_back(time_);
    if (!variable.levels.empty()) {
      if (level_ < 0) {
        levels_ = variable.levels;
        check(nc_def_dim(file_, "level", levels_.size(), &level_));
        coordinate("level", level_, "hPa");
      }
      if (variable.levels != levels_) throw FileError("all variables on levels should have the same");
      dims.push_back(level_);
    }
    dims.insert(dims.end(), {latitude_, longitude_});
    int id = 0;
    check(
        nc_def_var(file_, variable.name.c_str(), NC_FLOAT, static_cast<int>(dims.size()), dims.data(), &id));
    variables_.push_back({id, std::max<std::size_t>(1, variable.levels.size()), has_time});
  }

  void write_axes() {
    std::vector<double> rows(rows_), columns(columns_);
    for (std::size_t i = 0; i < rows_; ++i)
      rows[i] = 90 - 180.0 * static_cast<double>(i) / static_cast<double>(rows_ - 1);
    for (std::size_t j = 0; j < columns_; ++j)
      columns[j] = 360.0 * static_cast<double>(j) / static_cast<double>(columns_);
    int id = 0;
    check(nc_inq_varid(file_, "latitude", &id));
    check(nc_put_var_double(file_, id, rows.data()));
    check(nc_inq_varid(file_, "longitude", &id));
    check(nc_put_var_double(file_, id, columns.data()));
    if (level_ < 0) return;
    check(nc_inq_varid(file_, "level", &id));
    check(nc_put_var_double(file_, id, levels_.data()));
  }

  void write(const Variable& variable, std::size_t time) {
    std::vector<float> values(rows_ * columns_);
    for (std::size_t level = 0; level < variable.levels; ++level) {
      const auto phase = static_cast<float>(0.7 * variable.id + 0.3 * static_cast<double>(level + time));
      std::uint32_t noise =
          static_cast<std::uint32_t>(variable.id * 977 + static_cast<int>(level * 31 + time));
      for (std::size_t i = 0; i < values.size(); ++i) {
        noise = noise * 1664525U + 1013904223U;
        const auto row = static_cast<float>(i / columns_), column = static_cast<float>(i % columns_);
        values[i] = std::sin(0.02F * row + phase) + std::cos(0.01F * column - phase) +
                    0.1F * static_cast<float>(noise >> 8) / static_cast<float>(1U << 24);
      }
      std::vector<std::size_t> begin, count;
      if (variable.has_time) begin.push_back(time);
      if (variable.levels > 1) begin.push_back(level);
      count.assign(begin.size(), 1);
      begin.insert(begin.end(), {0, 0});
      count.insert(count.end(), {rows_, columns_});
      check(nc_put_vara_float(file_, variable.id, begin.data(), count.data(), values.data()));
    }
  }

  std::size_t rows_, columns_;
  int file_ = -1, time_ = -1, latitude_ = -1, longitude_ = -1, level_ = -1;
  std::vector<double> levels_;
  std::vector<Variable> variables_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "write_fields CONFIG FILE TIMES\n";
    return 2;
  }
  try {
    const auto configuration = parse<Configuration>(load_config(argv[1]));
    Fields(configuration.data, argv[2]).write(static_cast<std::size_t>(std::stoul(argv[3])));
  } catch (const Error& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
  return 0;
}
