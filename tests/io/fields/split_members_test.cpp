// Members of one ensemble in several files: which states each member has, and what is refused.
#include <array>
#include <map>

#include "base/error.h"
#include "base/text.h"
#include "comm/thread/run_ranks.h"
#include "fields/file_set.h"
#include "io/fixtures.h"
#include "io/netcdf_writer.h"
#include "samples/dataset.h"
#include "support/error_of.h"
#include "support/temporary_folder.h"

namespace jigsaw {
namespace split_members_test {

/// What `name` holds of a member at an hour.
double value_of(double member, double hour) {
  return 100 * member + hour;
}

/// A field of these members, along a dimension, or of one by a scalar coordinate.
std::string write(const testing::TemporaryFolder& folder, const std::string& file_name,
                  const std::string& variable, const std::vector<double>& members,
                  const std::vector<double>& hours, bool scalar = false, const char* number = "number") {
  const std::string path = folder.path() + "/" + file_name;
  testing::NetcdfWriter file(path);
  const int time = file.dimension("time", hours.size()), lat = file.dimension("latitude", 2),
            lon = file.dimension("longitude", 2);
  std::vector<int> dims = {time, lat, lon}, of_numbers;
  if (!scalar) {
    of_numbers = {file.dimension(number, members.size())};
    dims.insert(dims.begin() + 1, of_numbers[0]);
  }
  const int times = file.variable("time", NC_DOUBLE, {time}),
            numbers = file.variable(number, NC_INT, of_numbers),
            lats = file.variable("latitude", NC_DOUBLE, {lat}),
            lons = file.variable("longitude", NC_DOUBLE, {lon}),
            v = file.variable(variable.c_str(), NC_DOUBLE, dims);
  file.text(times, "units", "hours since 2020-01-01");
  file.text(numbers, "standard_name", "realization");
  file.text(lats, "units", "degrees_north");
  file.text(lons, "units", "degrees_east");
  file.end();
  file.put(times, hours);
  file.put(numbers, members);
  file.put(lats, std::vector<double>{10, 20});
  file.put(lons, std::vector<double>{0, 5});
  std::vector<double> values;
  for (const double hour : hours)
    for (const double member : members) values.insert(values.end(), 4, value_of(member, hour));
  file.put(v, values);
  return path;
}

const Box kPlane = Box::whole({2, 2});

/// Every member at every hour.
void expect_all(FileSet& files, const std::string& variable, const std::vector<double>& members,
                const std::vector<double>& hours) {
  const Field field{variable, {}};
  files.select(field, true);
  EXPECT_EQ(files.member_numbers(), members);
  ASSERT_EQ(files.times(field).size(), hours.size());
  for (std::size_t m = 0; m < members.size(); ++m) {
    for (std::size_t t = 0; t < hours.size(); ++t) {
      std::vector<double> plane(4);
      files.read(field, {files.times(field)[t], static_cast<std::int32_t>(m)}, kPlane, plane);
      EXPECT_EQ(plane, std::vector<double>(4, value_of(members[m], hours[t])))
          << members[m] << " " << hours[t];
    }
  }
}

FileSelection all_members() {
  FileSelection selection;
  selection.member.all = true;
  return selection;
}

/// In any order of members and files; times of each, too, may be parted.
TEST(SplitMembers, AreReadFromTheFilesThatHoldThem) {
  const testing::TemporaryFolder folder;
  FileSet files({write(folder, "a.nc", "v", {7, 4}, {0, 6}), write(folder, "b.nc", "v", {0, 2, 1}, {6, 0}),
                 write(folder, "c.nc", "v", {4, 7}, {12}), write(folder, "d.nc", "v", {0, 1, 2}, {12})},
                all_members());
  expect_all(files, "v", {0, 1, 2, 4, 7}, {0, 6, 12});
  EXPECT_EQ(files.members_of({"v", {}}), 5);
}

TEST(SplitMembers, MayStandInFilesOfOneEach) {
  for (const bool scalar : {false, true}) {
    const testing::TemporaryFolder folder;
    FileSet files(
        {write(folder, "a.nc", "v", {3}, {0, 6}, scalar), write(folder, "b.nc", "v", {1}, {0, 6}, scalar)},
        all_members());
    expect_all(files, "v", {1, 3}, {0, 6});
  }
}

/// A control run beside the others, as centres have it, and one of theirs alone at other times.
TEST(SplitMembers, AScalarBesideADimensionIsOneMoreMember) {
  const testing::TemporaryFolder folder;
  const std::string others = write(folder, "a.nc", "v", {1, 2}, {0, 6});
  FileSet control({others, write(folder, "b.nc", "v", {0}, {0, 6}, true)}, all_members());
  expect_all(control, "v", {0, 1, 2}, {0, 6});
  const Time first = control.times({"v", {}})[0];
  EXPECT_EQ(control.path_at({"v", {}}, Moment(first, 0)), folder.path() + "/b.nc");
  EXPECT_EQ(control.path_at({"v", {}}, Moment(first, 1)), others);
  const std::vector<std::string> two = {others, write(folder, "c.nc", "v", {2}, {12}, true)};
  FileSet later(two, all_members());
  EXPECT_NE(message_of<DataError>([&] {
              later.select({"v", {}}, true);
            }).find("has the members 2, and in"),
            std::string::npos);
  for (const double member : {1, 2}) {
    FileSelection selection;
    selection.member.number = member;
    FileSet files(two, selection);
    files.select({"v", {}}, true);
    EXPECT_EQ(files.times({"v", {}}).size(), member == 2 ? 3U : 2U);
  }
}

TEST(SplitMembers, OneOfThemIsTaken) {
  for (const bool scalar : {false, true}) {
    const testing::TemporaryFolder folder;
    const std::vector<std::string> paths = {write(folder, "a.nc", "v", {0}, {0, 6}, scalar),
                                            write(folder, "b.nc", "v", {5}, {0, 6}, scalar)};
    FileSelection selection;
    selection.member.number = 5;
    FileSet files(paths, selection);
    files.select({"v", {}}, true);
    std::vector<double> plane(4);
    files.read({"v", {}}, files.times({"v", {}})[1], kPlane, plane);
    EXPECT_EQ(plane[0], value_of(5, 6));
    EXPECT_EQ(files.member().value().values, std::vector<double>{5});
    selection.member.number = 2;
    FileSet none(paths, selection);
    const std::string said = message_of<DataError>([&] { none.select({"v", {}}, true); });
    EXPECT_EQ(said, concat("data.member is 2, and v in ", paths[0], " and 1 more file has the members 0, 5"));
  }
}

TEST(SplitMembers, GapsAndDuplicatesAreOneSentence) {
  const testing::TemporaryFolder folder;
  const std::string a = write(folder, "a.nc", "v", {0, 1}, {0, 6}),
                    b = write(folder, "b.nc", "v", {2, 3}, {0}),
                    c = write(folder, "c.nc", "v", {1, 2}, {0, 6}),
                    d = write(folder, "d.nc", "w", {0, 1}, {0}),
                    e = write(folder, "e.nc", "v", {2, 3}, {0, 6}),
                    f = write(folder, "f.nc", "v", {4, 4}, {0});
  const auto refusal = [](const std::vector<std::string>& paths, const std::vector<std::string>& variables) {
    return message_of<DataError>([&] {
      FileSet files(paths, all_members());
      for (const std::string& variable : variables) files.select({variable, {}}, true);
    });
  };
  EXPECT_EQ(refusal({a, b}, {"v"}),
            concat("v at 2020-01-01T06:00 is of the members 0, 1 in ", a, ", and in no file of 2, 3 in ", b,
                   "; with data.member \"all\" every time has all members"));
  EXPECT_EQ(refusal({a, c}, {"v"}),
            concat("v in ", c, " has the members 1, 2, and in ", a,
                   " 0, 1; with data.member \"all\" two files have the same members, or none in common"));
  EXPECT_EQ(refusal({a, e, d}, {"v", "w"}),
            concat("w in ", d, " has the members 0, 1, and ", a,
                   " and 1 more file 0, 1, 2, 3; with data.member \"all\" all fields have the same members"));
  EXPECT_EQ(refusal({f}, {"v"}), concat("v in ", f,
                                        " has the members 4, 4, of which one stands twice; number "
                                        "each once"));
}

/// Five members of two windows each, of which statistics are, too.
TEST(SplitMembers, AreSamplesOnAnyNumberOfRanks) {
  const testing::TemporaryFolder folder;
  write(folder, "a.nc", "v", {0, 1, 2}, {0, 6, 12});
  write(folder, "b.nc", "v", {3, 4}, {0, 6, 12});
  DataOptions options;
  options.files = {"*.nc"};
  options.variables = {{"v", {}}};
  options.member.all = true;
  options.predict = Predict::kState;
  options.train = {period("2020-01-01", "2020-01-01")};
  options.lead_time = 6 * kHour;
  for (const int ranks : {1, 2}) {
    run_ranks(ranks, [&](Communicator& world) {
      EXPECT_EQ(world.size(), ranks);
      Dataset data(options, folder.path(), 1, world);
      EXPECT_EQ(data.files().members(), 5);
      EXPECT_EQ(data.count(Split::kTrain), 10);
      EXPECT_NEAR(data.statistics().of({"v", {}}).mean, 206, 1e-9);
    });
  }
}

/// What of a climate model's files says its member by a scalar `realization` is not mixed with others.
TEST(SplitMembers, RealizationsAreNotMixed) {
  const testing::TemporaryFolder folder;
  const auto lone = [&](const std::string& name, const std::string& variable, double member,
                        const std::vector<double>& hours) {
    return write(folder, name, variable, {member}, hours, true, "realization");
  };
  const std::vector<double> hours = {0, 6, 12};
  lone("v1.nc", "v", 1, hours), lone("v2.nc", "v", 2, hours), lone("w1.nc", "w", 1, hours);
  lone("w2.nc", "w", 2, {18, 24}), write(folder, "a.nc", "a", {0}, hours, true);
  const auto opened = [&](const std::vector<std::string>& files, const std::vector<std::string>& variables,
                          const MemberChoice& member) {
    DataOptions options;
    options.files = files;
    for (const std::string& variable : variables) options.variables.push_back({variable, {}});
    options.member = member;
    options.predict = Predict::kState;
    options.train = {period("2020-01-01", "2020-01-02")};
    options.lead_time = 6 * kHour;
    std::string said;
    run_ranks(1, [&](Communicator& world) {
      said = testing::error_of([&] { Dataset(options, folder.path(), 1, world); });
    });
    return said;
  };
  const std::string v1 = folder.path() + "/v1.nc", w1 = folder.path() + "/w1.nc",
                    w2 = folder.path() + "/w2.nc";
  EXPECT_EQ(opened({"v1.nc", "w1.nc"}, {"v", "w"}, {}), "");
  EXPECT_EQ(opened({"v1.nc", "w1.nc"}, {"v", "w"}, {.number = 1}), "") << "which no dimension has";
  EXPECT_EQ(opened({"v1.nc", "a.nc"}, {"v", "a"}, {}), "") << "a number is one of an analysis, too";
  EXPECT_EQ(
      opened({"v2.nc", "w1.nc"}, {"v", "w"}, {}),
      concat("w in ", w1, " is of the member 1 alone (realization), and v in ", folder.path(),
             "/v2.nc of the member 2; data.member says which one is taken, or \"all\": each is a series of "
             "samples"));
  EXPECT_EQ(opened({"w1.nc", "w2.nc"}, {"w"}, {}).rfind(concat("w in ", w2, " is of the member 2 alone"), 0),
            0U)
      << "one behind the other";
  EXPECT_EQ(opened({"v1.nc", "v2.nc", "w1.nc"}, {"v", "w"}, {.all = true}),
            concat("w in ", w1,
                   " is of the member 1 alone (realization), and others have the members 1, 2; "
                   "with data.member \"all\" all fields have the same members"));
  EXPECT_EQ(opened({"v1.nc", "v2.nc", "w1.nc"}, {"v", "w"}, {.number = 1}), "");
  EXPECT_EQ(opened({"v1.nc", "v2.nc", "w1.nc"}, {"v", "w"}, {.number = 2}),
            concat("w in ", w1, " is of the member 1 alone (realization), and data.member is 2"));
}

}  // namespace split_members_test
}  // namespace jigsaw
