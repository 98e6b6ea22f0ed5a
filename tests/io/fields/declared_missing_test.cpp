// Numbers that stand for missing values by data.missing, not by what files say.
#include <cmath>
#include <limits>

#include "fields/file_set.h"
#include "io/fixtures.h"
#include "io/netcdf_writer.h"
#include "support/temporary_folder.h"

namespace jigsaw {
namespace declared_missing_test {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

/// One state of `plain` (float32), and of `packed` (int16, 0.01 x + 5), where 0 and 1.5 stand on two points
/// each.
std::string write(const testing::TemporaryFolder& folder) {
  const std::string path = folder.path() + "/a.nc";
  testing::NetcdfWriter file(path);
  const int time = file.dimension("time", 1), lat = file.dimension("latitude", 2),
            lon = file.dimension("longitude", 3);
  const int times = file.variable("time", NC_DOUBLE, {time}),
            lats = file.variable("latitude", NC_DOUBLE, {lat}),
            lons = file.variable("longitude", NC_DOUBLE, {lon}),
            plain = file.variable("plain", NC_FLOAT, {time, lat, lon}),
            packed = file.variable("packed", NC_SHORT, {time, lat, lon});
  file.text(times, "units", "hours since 2020-01-01");
  file.text(lats, "units", "degrees_north");
  file.text(lons, "units", "degrees_east");
  file.number(packed, "scale_factor", NC_DOUBLE, 0.01);
  file.number(packed, "add_offset", NC_DOUBLE, 5);
  file.number(packed, "missing_value", NC_SHORT, -9);
  file.end();
  file.put(times, std::vector<double>{0});
  file.put(lats, std::vector<double>{10, 20});
  file.put(lons, std::vector<double>{0, 5, 10});
  file.put(plain, std::vector<double>{0, 1.5, 2, 0, 1.5, -999.9});
  file.put(packed, std::vector<double>{-500, -350, -90, -500, -350, -9});
  return path;
}

void expect(const std::string& path, const std::map<std::string, double>& missing, const char* name,
            const std::vector<double>& expected) {
  FileSelection selection;
  selection.missing = missing;
  FileSet files({path}, selection);
  const Field field{name, {}};
  files.select(field, true);
  std::vector<double> values(expected.size());
  files.read(field, files.times(field).front(), Box::whole({2, 3}), std::span(values));
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(std::isnan(values[i]), std::isnan(expected[i])) << name << " at " << i;
    if (std::isnan(expected[i])) continue;
    EXPECT_NEAR(values[i], expected[i], 1e-4) << name << " at " << i;
  }
}

TEST(DeclaredMissing, StandsBesideWhatFilesSay) {
  const testing::TemporaryFolder folder;
  const std::string path = write(folder);
  expect(path, {}, "plain", {0, 1.5, 2, 0, 1.5, -999.9});
  expect(path, {{"packed", 0}}, "plain", {0, 1.5, 2, 0, 1.5, -999.9});
  expect(path, {{"plain", 0}}, "plain", {kNone, 1.5, 2, kNone, 1.5, -999.9});
  expect(path, {{"plain", -999.9}}, "plain", {0, 1.5, 2, 0, 1.5, kNone});
  expect(path, {}, "packed", {0, 1.5, 4.1, 0, 1.5, kNone});
  expect(path, {{"packed", 0}}, "packed", {kNone, 1.5, 4.1, kNone, 1.5, kNone});
  expect(path, {{"packed", 1.505001}}, "packed", {0, 1.5, 4.1, 0, 1.5, kNone});
  expect(path, {{"packed", 1.5}}, "packed", {0, kNone, 4.1, 0, kNone, kNone});
  expect(path, {{"packed", 4.1}}, "packed",
         {0, 1.5, kNone, 0, 1.5, kNone});  // −90.00000000000003 as it is computed
}

}  // namespace declared_missing_test
}  // namespace jigsaw
