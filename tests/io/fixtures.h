#pragma once
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "config/json.h"
#include "fields/data_options.h"

namespace jigsaw {

inline std::filesystem::path source_folder() {
  const char* folder = std::getenv("JIGSAW_SOURCE_DIR");
  return folder == nullptr ? "." : folder;
}

/// A file written by make_fixtures.py.
inline std::string fixture(const std::string& name) {
  return source_folder() / "tests/io/fixtures" / name;
}

/// What make_fixtures.py says that the files hold.
inline const Json& expected() {
  static const Json json = Json::parse(std::ifstream(fixture("expected.json")));
  return json;
}

inline std::vector<double> expected_values(const std::string& name) {
  std::vector<double> values;
  for (const Json& value : expected()[name]) {
    values.push_back(value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>());
  }
  return values;
}

/// Equal within `tolerance` relative to the larger; NaN equals NaN.
inline void expect_close(const std::vector<double>& found, const std::vector<double>& wanted,
                         double tolerance) {
  ASSERT_EQ(found.size(), wanted.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (std::isnan(wanted[i])) {
      EXPECT_TRUE(std::isnan(found[i])) << "at " << i;
    } else {
      EXPECT_NEAR(found[i], wanted[i], tolerance * std::max(1e-300, std::abs(wanted[i]))) << "at " << i;
    }
  }
}

/// The message of the error that `action` throws.
template <typename E, typename F>
std::string message_of(F&& action) {
  try {
    action();
  } catch (const E& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

inline Time at(const std::string& text) {
  return parse_time(text).value();
}

inline Period period(const std::string& first, const std::string& last) {
  return parse_dates(first, last).value().in(Calendar::kStandard, "the period");
}

/// Six-hourly fields of the fixtures with one of every role.
inline DataOptions fixture_options() {
  DataOptions options;
  options.files = {"*.nc"};
  options.variables = {{"t2m", {}}, {"t", {850, 500}}};
  options.diagnostic = {{"tp", {}}};
  options.constants = {{"lsm", {}}};
  options.forcings = {ForcingKind::kLatitude, ForcingKind::kLongitude, ForcingKind::kTimeOfDay,
                      ForcingKind::kDayOfYear};
  options.input_times = {-6 * kHour, 0};
  options.train = {period("2020-02-27", "2020-02-28")};
  options.valid = {period("2020-02-29", "2020-02-29")};
  return options;
}

}  // namespace jigsaw
