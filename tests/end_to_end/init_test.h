#pragma once
#include <gtest/gtest.h>
#include <netcdf.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "end_to_end/command.h"
#include "io/netcdf_writer.h"

namespace jigsaw::e2e {

/// What `init` writes, and what it says meanwhile.
class InitTest : public ::testing::Test {
 protected:
  void expect_ok(const Outcome& outcome) { ASSERT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err; }
  void expect_error(const Outcome& outcome, int code, const std::string& says) {
    EXPECT_EQ(outcome.exit_code, code) << outcome.err;
    ASSERT_EQ(outcome.errors().size(), 1U) << outcome.err;
    EXPECT_NE(outcome.errors()[0].find(says), std::string::npos) << outcome.err;
  }
  std::string text() const {
    std::ifstream file(folder_ / "first.json");
    std::stringstream all;
    all << file.rdbuf();
    return all.str();
  }
  void expect_text(const std::vector<std::string>& parts) const {
    for (const std::string& part : parts)
      EXPECT_NE(text().find(part), std::string::npos) << part << " in\n" << text();
  }
  /// Writes it anew.
  Outcome init(const std::string& arguments) {
    std::filesystem::remove(folder_ / "first.json");
    const Outcome outcome = run(1, "init --output " + quoted(folder_ / "first.json") + " " + arguments);
    warnings_ = outcome.err;
    return outcome;
  }
  /// Of the last init().
  void expect_warnings(const std::vector<std::string>& parts) const {
    for (const std::string& part : parts)
      EXPECT_NE(warnings_.find(part), std::string::npos) << part << " in\n" << warnings_;
  }
  void expect_no_warnings(const std::vector<std::string>& parts) const {
    for (const std::string& part : parts)
      EXPECT_EQ(warnings_.find(part), std::string::npos) << part << " in\n" << warnings_;
  }
  /// Writes it, opens all that it names, and trains for a moment.
  void expect_runs(const std::string& arguments, const std::string& steps) {
    expect_ok(init(arguments));
    const std::string config = "--config " + quoted(folder_ / "first.json");
    expect_ok(run(2, "check " + config));
    std::filesystem::remove_all(folder_ / "run");
    const Outcome trained = run(
        2, config + " --set train.epochs=" + steps +
               " --set validation.every=0 --set checkpoint.every=0 --set output=" + quoted(folder_ / "run"));
    expect_ok(trained);
    EXPECT_TRUE(std::filesystem::exists(folder_ / "run/summary.json"));
  }

  TemporaryFolder folder_;
  std::string warnings_;
};

/// A file of fields by time, row and column.
class FieldFile {
 public:
  using Value = std::function<double(std::size_t time, std::size_t row, std::size_t column)>;

  FieldFile(const std::string& path, const std::vector<double>& hours, std::size_t rows = 8,
            std::size_t columns = 12)
      : file_(path), times_(hours.size()), rows_(rows), columns_(columns) {
    if (!hours.empty()) coordinate("time", hours, "hours since 2020-01-01");
    coordinate("latitude", steps(rows, 60, -0.5), "degrees_north");
    coordinate("longitude", steps(columns, 0, 0.5), "degrees_east");
  }
  testing::NetcdfWriter& file() { return file_; }
  int dimension(const std::string& name) const { return dimensions_.at(name); }
  int coordinate(const std::string& name, const std::vector<double>& values, const std::string& units) {
    const int dimension = dimensions_[name] = file_.dimension(name, values.size());
    const int id = file_.variable(name, NC_DOUBLE, {dimension});
    file_.text(id, "units", units);
    file_.put(id, values);
    return dimension;
  }
  /// @param levels  names a dimension of so many entries, each with these values, unless it is "".
  int field(const std::string& name, const Value& value, const std::string& levels = "",
            std::size_t count = 1) {
    std::vector<int> dimensions = {dimension("time"), dimension("latitude"), dimension("longitude")};
    if (!levels.empty()) dimensions.insert(dimensions.begin() + 1, dimension(levels));
    return put(name, dimensions, times_, count, value);
  }
  int constant(const std::string& name, const Value& value) {
    return put(name, {dimension("latitude"), dimension("longitude")}, 1, 1, value);
  }
  static std::vector<double> steps(std::size_t count, double first, double step) {
    std::vector<double> values;
    for (std::size_t i = 0; i < count; ++i) values.push_back(first + static_cast<double>(i) * step);
    return values;
  }

 private:
  int put(const std::string& name, const std::vector<int>& dimensions, std::size_t times, std::size_t levels,
          const Value& value) {
    const int id = file_.variable(name, NC_FLOAT, dimensions);
    std::vector<double> values;
    for (std::size_t t = 0; t < times * levels; ++t)
      for (std::size_t i = 0; i < rows_; ++i)
        for (std::size_t j = 0; j < columns_; ++j) values.push_back(value(t, i, j));
    file_.put(id, values);
    return id;
  }

  testing::NetcdfWriter file_;
  std::size_t times_, rows_, columns_;
  std::map<std::string, int> dimensions_;
};

/// Values of fields that change everywhere.
inline double wave(std::size_t time, std::size_t row, std::size_t column) {
  return std::sin(0.9 * static_cast<double>(time) + 0.5 * static_cast<double>(row) +
                  0.3 * static_cast<double>(column));
}

}  // namespace jigsaw::e2e
