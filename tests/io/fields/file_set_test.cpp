#include "fields/file_set.h"

#include <unistd.h>

#include <fstream>

#include "base/error.h"
#include "files/glob.h"
#include "io/fixtures.h"
#include "io/netcdf_writer.h"
#include "support/temporary_folder.h"

namespace jigsaw {
namespace file_set_test {

const Field kT2m{"t2m", {}}, kT850{"t", 850}, kTp{"tp", {}}, kLsm{"lsm", {}}, kZ{"z", {}};

std::vector<std::string> all_files() {
  return expand_patterns({"*.nc"}, fixture(""));
}

std::vector<double> read_all(FileSet& files, const Field& field) {
  std::vector<double> all;
  std::vector<double> one(56);
  for (const Time time : files.times(field)) {
    files.read(field, time, Box::whole({7, 8}), one);
    std::vector<double> streamed(one.size());
    if (std::optional<HyperslabStream> stream = files.stream(field, time, Box::whole({7, 8}))) {
      stream->read<double>(streamed);
      for (std::size_t i = 0; i < one.size(); ++i)
        EXPECT_TRUE(streamed[i] == one[i] || (std::isnan(streamed[i]) && std::isnan(one[i])));
    }
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

TEST(Glob, SaysWhatItDidNotFind) {
  EXPECT_EQ(all_files().size(), 5U);
  EXPECT_EQ(expand_patterns({"levels_?.nc", "levels_1.nc"}, fixture("")).size(), 2U);
  // Sorted, whatever the order of patterns: with it would change which of two files a time is taken from.
  const std::vector<std::string> sorted = expand_patterns({"packed.nc", "levels_*.nc"}, fixture(""));
  EXPECT_EQ(sorted, expand_patterns({"levels_2.nc", "packed.nc", "levels_1.nc"}, fixture("")));
  ASSERT_EQ(sorted.size(), 3U);
  EXPECT_TRUE(sorted[0].ends_with("levels_1.nc") && sorted[2].ends_with("packed.nc")) << sorted[0];
  // A name that is there is no pattern.
  const testing::TemporaryFolder odd;
  for (const char* name : {"/ERA5 [1].nc", "/ERA5 1.nc"}) std::ofstream(odd.path() + name) << "x";
  const std::vector<std::string> named = expand_patterns({"ERA5 [1].nc"}, odd.path());
  EXPECT_EQ(named, std::vector<std::string>{odd.path() + "/ERA5 [1].nc"});
  EXPECT_EQ(expand_patterns({odd.path() + "/ERA5 [1].nc"}, ""), named);
  // Brackets are plain in patterns, too.
  EXPECT_EQ(expand_patterns({"ERA5 [1]*"}, odd.path()), named);
  EXPECT_EQ(expand_patterns({odd.path() + "/ERA5 [1]*"}, ""), named);
  std::filesystem::create_directory(odd.path() + "/exp [v1]");
  std::ofstream(odd.path() + "/exp [v1]/a.nc") << "x";
  EXPECT_EQ(expand_patterns({"exp [v1]/*.nc"}, odd.path()),
            std::vector<std::string>{odd.path() + "/exp [v1]/a.nc"});
  const std::string message = message_of<DataError>([] { expand_patterns({"era5_*.nc"}, "/tmp"); });
  EXPECT_NE(message.find("era5_*.nc"), std::string::npos);
  EXPECT_NE(message.find("/tmp"), std::string::npos);
}

/// While it lives, root is a user to whom not everything is permitted, and who owns the folder.
class AsAnotherUser {
 public:
  explicit AsAnotherUser(const std::string& folder) {
    constexpr unsigned kNobody = 65534;
    if (::geteuid() != 0) return;
    EXPECT_EQ(::chown(folder.c_str(), kNobody, kNobody), 0);
    EXPECT_EQ(::seteuid(kNobody), 0);
    changed_ = true;
  }
  ~AsAnotherUser() {
    if (changed_) {
      EXPECT_EQ(::seteuid(0), 0);
    }
  }
  AsAnotherUser(const AsAnotherUser&) = delete;
  AsAnotherUser& operator=(const AsAnotherUser&) = delete;

 private:
  bool changed_ = false;
};

TEST(Glob, FoldersThatDenyPermissionAreNotEmpty) {
  const testing::TemporaryFolder folder;
  const AsAnotherUser user(folder.path());
  const std::filesystem::path data = folder.path() + "/data";
  std::filesystem::create_directory(data);
  std::ofstream(data / "x.nc") << "x";
  for (const auto permitted : {std::filesystem::perms::none, std::filesystem::perms::owner_read}) {
    std::filesystem::permissions(data, permitted);
    for (const char* pattern : {"data/*.nc", "data/x.nc"}) {
      const std::string message = message_of<DataError>([&] { expand_patterns({pattern}, folder.path()); });
      EXPECT_NE(message.find("a folder denies permission"), std::string::npos) << message;
    }
  }
  std::filesystem::permissions(data, std::filesystem::perms::owner_all);
}

TEST(FileSet, JoinsTimesOfSeveralFilesAndChoosesLevels) {
  FileSet files(all_files());
  files.select(kT2m, true);
  files.select(kT850, true);
  EXPECT_EQ(files.times(kT850).size(), 12U);
  EXPECT_EQ(files.times(kT850), files.times(kT2m));
  EXPECT_EQ(format_time(files.times(kT850).front()), "2020-02-27T00:00");
  EXPECT_EQ(format_time(files.times(kT850).back()), "2020-02-29T18:00");
  expect_close(read_all(files, kT850), expected_values("t_850"), 0);
  expect_close(read_all(files, kT2m), expected_values("t2m"), 1e-15);
  EXPECT_EQ(files.units(kT850), "K");
  EXPECT_EQ(files.grid().axes[0].coordinates.front(), 50);
  EXPECT_EQ(files.grid().axes[0].coordinates.back(), 53);
  EXPECT_FALSE(files.grid().periodic);
}

TEST(FileSet, ReadsWindowsOfAnyDimensionOrder) {
  FileSet files(all_files());
  files.select(kZ, false);
  files.select(kLsm, false);
  files.select(kTp, true);
  std::vector<double> z(56), part(6), lsm(56);
  files.read(kZ, 0, Box::whole({7, 8}), z);
  expect_close(z, expected_values("z"), 0);
  files.read(kZ, 0, {{2, 3}, {3, 2}}, part);
  for (std::size_t i = 0; i < 6; ++i) {
    const double wanted = z[(2 + i / 2) * 8 + 3 + i % 2];
    EXPECT_TRUE(part[i] == wanted || (std::isnan(part[i]) && std::isnan(wanted)));
  }
  files.read(kLsm, 0, Box::whole({7, 8}), lsm);
  expect_close(lsm, expected_values("lsm"), 0);
  expect_close(read_all(files, kTp), expected_values("tp"), 1e-15);
  EXPECT_FALSE(files.has(kTp, at("2020-02-27")));
  EXPECT_THROW(files.read(kTp, at("2020-02-27"), Box::whole({7, 8}), lsm), DataError);
}

TEST(FileSet, ListsWhatThereIs) {
  FileSet files(all_files());
  const std::vector<VariableSummary> catalogue = files.catalogue();
  ASSERT_EQ(catalogue.size(), 5U);
  EXPECT_EQ(catalogue[1].name, "t");
  EXPECT_EQ(catalogue[1].levels, (std::vector<double>{500, 850, 1000}));
  EXPECT_EQ(catalogue[1].times.size(), 12U);
}

TEST(FileSet, ErrorsSayWhatIsThere) {
  FileSet files(all_files());
  const auto message = [&](const Field& field) {
    return message_of<DataError>([&] { files.select(field, true); });
  };
  EXPECT_NE(message({"t2n", {}}).find("did you mean \"t2m\"?); fields there: lsm, t, t2m, tp, z"),
            std::string::npos);
  EXPECT_NE(message({"t", 700}).find("no level 700; levels there: 500, 850, 1000"), std::string::npos);
  // A level is one that stands there up to the rounding of float32, and never its neighbour.
  for (const double other : {850.01, 849.99, 840.0, 900.0, 1010.0}) {
    EXPECT_NE(message({"t", other}).find("levels there: 500, 850, 1000"), std::string::npos) << other;
  }
  EXPECT_NO_THROW(files.select({"t", 850 * (1 + 5e-7)}, true));
  EXPECT_NE(message({"t", {}}).find("name those that you want"), std::string::npos);
  EXPECT_NE(message({"t2m", 850}).find("has no levels"), std::string::npos);
  EXPECT_NE(message(kZ).find("data.static"), std::string::npos);
  EXPECT_NE(message({"expver", {}}).find("does not hold numbers"), std::string::npos);
}

/// x at these hours of 2020.
std::string write_hours(const std::string& path, const std::vector<double>& hours) {
  testing::NetcdfWriter file(path);
  const int time = file.dimension("time", hours.size()), lat = file.dimension("lat", 2),
            lon = file.dimension("lon", 3);
  const int times = file.variable("time", NC_DOUBLE, {time}), lats = file.variable("lat", NC_DOUBLE, {lat}),
            lons = file.variable("lon", NC_DOUBLE, {lon});
  file.variable("x", NC_FLOAT, {time, lat, lon});
  file.text(times, "units", "hours since 2020-01-01");
  file.text(lats, "units", "degrees_north");
  file.text(lons, "units", "degrees_east");
  file.end();
  file.put(times, hours);
  file.put(lats, std::vector<double>{0, 10});
  file.put(lons, std::vector<double>{0, 10, 20});
  return path;
}

TEST(FileSet, SaysWhichFileGoesOnAtOtherHours) {
  const testing::TemporaryFolder folder;
  const Field x{"x", {}};
  const std::string noon = write_hours(folder.path() + "/a.nc", {12, 36, 60, 84}),
                    midnight = write_hours(folder.path() + "/b.nc", {96, 120, 144, 168}),
                    later = write_hours(folder.path() + "/c.nc", {204, 228, 252}),
                    one = write_hours(folder.path() + "/d.nc", {100});
  const auto phase = [&](const std::vector<std::string>& paths) {
    FileSet files(paths);
    files.select(x, true);
    return files.other_phase(x);
  };
  const auto changed = phase({noon, midnight});
  ASSERT_TRUE(changed);
  EXPECT_EQ(changed->path, midnight);
  EXPECT_EQ(changed->before, at("2020-01-04T12:00"));
  EXPECT_EQ(changed->time, at("2020-01-05"));
  EXPECT_FALSE(phase({noon, later})) << "a gap of whole days";
  EXPECT_FALSE(phase({noon, one, later})) << "one state is no series";
  FileSet files({noon, midnight, one});
  files.select(x, true);
  EXPECT_EQ(files.path_at(x, at("2020-01-02T12:00")), noon);
  EXPECT_EQ(files.path_at(x, at("2020-01-05")), midnight);
  EXPECT_EQ(files.path_at(x, at("2020-01-02")), "");
  EXPECT_TRUE(files.repeated_times(x).empty());
  FileSet twice({noon, write_hours(folder.path() + "/e.nc", {60, 84, 108, 108})});
  twice.select(x, true);
  EXPECT_EQ(twice.repeated_times(x),
            (std::vector<Time>{at("2020-01-03T12:00"), at("2020-01-04T12:00"), at("2020-01-05T12:00")}));
}

}  // namespace file_set_test
}  // namespace jigsaw
