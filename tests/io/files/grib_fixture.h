// GRIB messages of both editions as ecCodes writes them.
#pragma once
#include <eccodes.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "files/variable_file.h"
#include "io/fixtures.h"
#include "support/temporary_folder.h"

namespace jigsaw {
namespace grib_file_test {

using testing::put_text;
using testing::TemporaryFolder;
using testing::text_of;

inline constexpr double kMissing = -1e30, kNaN = std::numeric_limits<double>::quiet_NaN();
inline constexpr int kBits = 24;

/// A message that is written: a field on 4 rows and 6 columns.
struct Spec {
  int edition = 2;
  std::string name = "t", level_type = "isobaricInhPa";
  long level = 850, date = 20200101, time = 0, step = 0;
  std::string range = {};                 ///< of steps, "0-6", over which it is summed
  std::string type = {}, step_type = {};  ///< of ECMWF, in edition 1; "accum", in edition 2 with a template
  std::optional<long> product = {};       ///< its template in edition 2
  std::optional<long> number = {};
  double north = 60, south = 45, west = 350, east = 375;  ///< degrees
  std::vector<std::pair<std::string, long>> more = {};
  std::vector<std::pair<std::string, double>> degrees = {};
  std::string sample = {};
};
inline constexpr int kRows = 4, kColumns = 6;

inline void check(int status) {
  ASSERT_EQ(status, CODES_SUCCESS) << codes_get_error_message(status);
}

inline void set_text(codes_handle* handle, const char* key, const std::string& text) {
  std::size_t length = text.size();
  check(codes_set_string(handle, key, text.c_str(), &length));
}

/// @param values  as they stand in the file; NaN is left out by the bitmap
inline std::string message(const Spec& spec, std::vector<double> values) {
  const std::string sample = spec.sample.empty() ? concat("regular_ll_pl_grib", spec.edition) : spec.sample;
  codes_handle* const handle = codes_grib_handle_new_from_samples(nullptr, sample.c_str());
  EXPECT_NE(handle, nullptr) << sample;
  if (handle == nullptr) return "";
  if (spec.sample.empty()) {
    check(codes_set_long(handle, "Ni", kColumns));
    check(codes_set_long(handle, "Nj", kRows));
    check(codes_set_double(handle, "latitudeOfFirstGridPointInDegrees", spec.north));
    check(codes_set_double(handle, "latitudeOfLastGridPointInDegrees", spec.south));
    check(codes_set_double(handle, "longitudeOfFirstGridPointInDegrees", std::fmod(spec.west, 360)));
    check(codes_set_double(handle, "longitudeOfLastGridPointInDegrees", std::fmod(spec.east, 360)));
    check(codes_set_double(handle, "iDirectionIncrementInDegrees", 5));
    check(codes_set_double(handle, "jDirectionIncrementInDegrees", 5));
  }
  if (spec.edition == 1 && (spec.number || !spec.type.empty())) {
    check(codes_set_long(handle, "setLocalDefinition", 1));
    check(codes_set_long(handle, "localDefinitionNumber", 1));
    if (!spec.type.empty()) set_text(handle, "type", spec.type);
  }
  if (spec.edition == 2 && (spec.number || spec.product))
    check(codes_set_long(handle, "productDefinitionTemplateNumber", spec.product.value_or(1)));
  if (spec.number) check(codes_set_long(handle, "number", *spec.number));
  set_text(handle, "typeOfLevel", spec.level_type);
  set_text(handle, "shortName", spec.name);
  check(codes_set_long(handle, "level", spec.level));
  check(codes_set_long(handle, "dataDate", spec.date));
  check(codes_set_long(handle, "dataTime", spec.time));
  if (!spec.step_type.empty()) set_text(handle, "stepType", spec.step_type);
  if (spec.range.empty()) check(codes_set_long(handle, "step", spec.step));
  if (!spec.range.empty()) set_text(handle, "stepRange", spec.range);
  for (const auto& [key, value] : spec.more) check(codes_set_long(handle, key.c_str(), value));
  for (const auto& [key, value] : spec.degrees) check(codes_set_double(handle, key.c_str(), value));
  check(codes_set_long(handle, "bitsPerValue", kBits));
  if (!values.empty()) {
    const bool bitmap = std::any_of(values.begin(), values.end(), [](double v) { return std::isnan(v); });
    std::replace_if(
        values.begin(), values.end(), [](double v) { return std::isnan(v); }, kMissing);
    check(codes_set_double(handle, "missingValue", kMissing));
    check(codes_set_long(handle, "bitmapPresent", bitmap ? 1 : 0));
    check(codes_set_double_array(handle, "values", values.data(), values.size()));
  }
  const void* bytes = nullptr;
  std::size_t count = 0;
  check(codes_get_message(handle, &bytes, &count));
  std::string result(static_cast<const char*>(bytes), count);
  codes_handle_delete(handle);
  return result;
}

/// Values of one message lie between 0 and 20 about this, so that packing changes them by less than kNear.
inline double value(const Spec& spec, int point) {
  const double of_name = spec.name == "t" ? 200 : 500;
  return of_name + 0.1 * static_cast<double>(spec.level) + 1e3 * static_cast<double>(spec.date % 100) +
         static_cast<double>(spec.time) + 7 * static_cast<double>(spec.step) +
         100 * static_cast<double>(spec.number.value_or(0)) + 10 + 9 * std::sin(0.8 * point);
}
inline constexpr double kNear = 20.0 / (1 << (kBits - 1)) + 1e-3;  // and of the reference value in float32

inline std::vector<double> field(const Spec& spec, int missing = -1) {
  std::vector<double> values;
  for (int i = 0; i < kRows * kColumns; ++i) values.push_back(i == missing ? kNaN : value(spec, i));
  return values;
}

inline std::vector<double> read(VariableFile& file, const std::string& name, std::optional<Box> box = {}) {
  const FileVariable* variable = file.find(name);
  if (variable == nullptr) {
    ADD_FAILURE() << "no " << name;
    return {};
  }
  const Box wanted = box.value_or(Box::whole(variable->shape));
  std::vector<double> values(static_cast<std::size_t>(wanted.extent.count()));
  file.read<double>(*variable, wanted, values);
  return values;
}

inline void expect_near(const std::vector<double>& found, const std::vector<double>& wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(std::isnan(found[i]), std::isnan(wanted[i])) << i;
    if (std::isnan(wanted[i])) continue;
    EXPECT_NEAR(found[i], wanted[i], kNear) << i;
  }
}

class Grib : public ::testing::TestWithParam<int> {
 protected:
  Spec spec() const {
    Spec result;
    result.edition = GetParam();
    return result;
  }
  std::string in(const std::string& name) const { return folder_.path() + "/" + name; }
  /// t on three levels and 2t at three times, in no order; the bitmap leaves one point of some out.
  std::string analyses() const {
    std::string bytes;
    for (const long time : {600, 0, 1200}) {
      for (const long level : {500, 1000, 850}) {
        Spec t = spec();
        t.time = time;
        t.level = level;
        bytes += message(t, field(t, level == 850 ? 7 : -1));
      }
      Spec t2m = surface();
      t2m.time = time;
      bytes += message(t2m, field(t2m));
    }
    return bytes;
  }
  Spec surface() const {
    Spec result = spec();
    result.name = "2t";
    result.level_type = "heightAboveGround";
    result.level = 2;
    return result;
  }

  TemporaryFolder folder_;
};

inline std::string refusal(const std::function<void()>& action) {
  const std::string said = message_of<DataError>(action);
  EXPECT_EQ(said.find('\n'), std::string::npos) << said;
  return said;
}

/// What ecCodes says of each point of a message.
inline std::vector<double> degrees_of(const std::string& bytes, const char* key) {
  codes_handle* const handle = codes_handle_new_from_message(nullptr, bytes.data(), bytes.size());
  std::size_t count = 0;
  check(codes_get_size(handle, key, &count));
  std::vector<double> values(count);
  check(codes_get_double_array(handle, key, values.data(), &count));
  codes_handle_delete(handle);
  return values;
}

inline std::string with(const std::string& bytes, const char* key, double value) {
  codes_handle* const handle = codes_handle_new_from_message_copy(nullptr, bytes.data(), bytes.size());
  check(codes_set_double(handle, key, value));
  const void* changed = nullptr;
  std::size_t count = 0;
  check(codes_get_message(handle, &changed, &count));
  std::string result(static_cast<const char*>(changed), count);
  codes_handle_delete(handle);
  return result;
}

}  // namespace grib_file_test
}  // namespace jigsaw
