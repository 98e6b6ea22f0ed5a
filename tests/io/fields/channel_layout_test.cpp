// Files that say too little of what they hold: channels without names, and ensembles.
#include "fields/channel_layout.h"

#include <hdf5.h>

#include <array>
#include <filesystem>
#include <memory>

#include "array/host_view.h"
#include "base/error.h"
#include "base/text.h"
#include "comm/agreement.h"
#include "comm/thread/run_ranks.h"
#include "fields/file_set.h"
#include "io/fixtures.h"
#include "io/netcdf_writer.h"
#include "samples/dataset.h"
#include "support/temporary_folder.h"

namespace jigsaw {
namespace channel_layout_test {

/// 2019.h5 and 2020.h5 in `folder`: fields without names, of the value year·1000 + 100·time + 10·channel +
/// row.
void write_bare_channels(const std::string& folder) {
  for (const int year : {2019, 2020}) {
    const std::string path = concat(folder, "/", year, ".h5");
    const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    const hsize_t extents[] = {4, 3, 3, 4};
    std::vector<float> values;
    for (int i = 0; i < 4 * 3 * 3 * 4; ++i)
      values.push_back(static_cast<float>(year * 1000 + 100 * (i / 36) + 10 * (i / 12 % 3) + i / 4 % 3));
    const hid_t space = H5Screate_simple(4, extents, nullptr);
    const hid_t set =
        H5Dcreate2(file, "fields", H5T_IEEE_F32LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Dwrite(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
    H5Dclose(set);
    H5Sclose(space);
    H5Fclose(file);
  }
}

TEST(ChannelLayout, MakaniWithoutItsAnnotation) {
  const testing::TemporaryFolder folder;
  write_bare_channels(folder.path());
  testing::put_text(folder.path() + "/data.json",
                    R"({"h5_path": "fields", "dhours": 12, "coords": {"grid_type": "equiangular",
    "lat": [60, 0, -60], "lon": [10, 100, 190, 280], "channel": ["u10m", "t2m", "t850"]}})");
  MakaniOptions by_metadata, by_keys;
  by_metadata.metadata = "data.json";
  by_keys.channels = {"u10m", "t2m", "t850"};
  for (const MakaniOptions& options : {by_metadata, by_keys}) {
    FileSelection selection;
    selection.channels = ChannelLayout(options, makani_metadata(options, folder.path()));
    const bool named = !options.metadata.empty();
    FileSet files({folder.path() + "/2019.h5", folder.path() + "/2020.h5"}, selection);
    const Field t2m{"t2m", {}}, t850{"t", 850};
    files.select(t2m, true);
    files.select(t850, true);
    EXPECT_EQ(files.grid().axes[0].coordinates,
              named ? (std::vector<double>{60, 0, -60}) : (std::vector<double>{90, 0, -90}));
    EXPECT_EQ(files.grid().axes[1].coordinates[1], named ? 100 : 90);
    ASSERT_EQ(files.times(t2m).size(), 8U);
    EXPECT_EQ(files.times(t2m)[1], at(named ? "2019-01-01T12:00" : "2019-01-01T06:00"));
    EXPECT_EQ(files.times(t2m)[4], at("2020-01-01"));
    std::vector<double> row(4);
    files.read(t850, files.times(t2m)[6], {{2, 0}, {1, 4}}, row);
    EXPECT_EQ(row, std::vector<double>(4, 2020000 + 200 + 20 + 2));
    EXPECT_EQ(files.describe(t2m).rows.name, "latitude");
  }
  {
    MakaniOptions of_levels;
    of_levels.channels = {"t850", "t2m", "t500"};
    FileSelection levels;
    levels.channels = ChannelLayout(of_levels, "");
    FileSet channels({folder.path() + "/2019.h5"}, levels);
    for (const Field& field : {Field{"t", 850}, Field{"t2m", {}}, Field{"t", 500}})
      channels.select(field, true);
    for (const double level : {500, 850}) {
      const FieldDescription description = channels.describe({"t", level});
      ASSERT_TRUE(description.level);
      EXPECT_EQ(description.level->values, (std::vector<double>{500, 850}));
      EXPECT_EQ(description.level_position, level == 500 ? 0 : 1);
    }
    EXPECT_FALSE(channels.describe({"t2m", {}}).level);
  }
  const auto refusal = [&](const MakaniOptions& options, const std::string& file) {
    return message_of<DataError>([&] {
      FileSelection selection;
      selection.channels = ChannelLayout(options, makani_metadata(options, folder.path()));
      FileSet files({folder.path() + "/" + file}, selection);
    });
  };
  by_keys.channels.pop_back();
  EXPECT_NE(refusal(by_keys, "2019.h5").find("with 2 channels"), std::string::npos);
  std::filesystem::copy_file(folder.path() + "/2019.h5", folder.path() + "/train.h5");
  EXPECT_NE(refusal(by_metadata, "train.h5").find("must begin with its year"), std::string::npos);
  testing::put_text(folder.path() + "/data.json", R"({"coords": {"channel": [1]}})");
  EXPECT_NE(refusal(by_metadata, "2019.h5").find("coords.channel"), std::string::npos);
}

/// t2m of three members, 10·member + time, and orography without any.
void write_ensemble(const std::string& path, const std::vector<double>& members = {0, 4, 9}) {
  testing::NetcdfWriter file(path);
  const int number = file.dimension("number", 3), time = file.dimension("time", 2),
            lat = file.dimension("latitude", 2), lon = file.dimension("longitude", 2);
  const int numbers = file.variable("number", NC_INT, {number}),
            times = file.variable("time", NC_DOUBLE, {time}),
            lats = file.variable("latitude", NC_DOUBLE, {lat}),
            lons = file.variable("longitude", NC_DOUBLE, {lon}),
            t2m = file.variable("t2m", NC_DOUBLE, {number, time, lat, lon}),
            orography = file.variable("z", NC_DOUBLE, {lat, lon});
  file.text(numbers, "standard_name", "realization");
  file.text(times, "units", "hours since 2020-01-01");
  file.text(lats, "units", "degrees_north");
  file.text(lons, "units", "degrees_east");
  file.end();
  file.put(numbers, members);
  file.put(times, {0, 6});
  file.put(lats, {10, 20});
  file.put(lons, {0, 5});
  std::vector<double> values;
  for (const double member : members) {
    for (const double i : {0, 1}) values.insert(values.end(), 4, 10 * member + i);
  }
  file.put(t2m, values);
  file.put(orography, {1, 2, 3, 4});
}

TEST(Ensemble, OneMemberIsTaken) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path() + "/ensemble.nc";
  write_ensemble(path);
  const Field t2m{"t2m", {}}, z{"z", {}};
  for (const double member : {0, 4, 9}) {
    FileSelection selection;
    selection.member.number = member;
    FileSet files({path}, selection);
    files.select(t2m, true);
    files.select(z, false);
    std::vector<double> plane(4);
    files.read(t2m, at("2020-01-01T06:00"), {{0, 0}, {2, 2}}, plane);
    EXPECT_EQ(plane, std::vector<double>(4, 10 * member + 1));
    files.read(z, 0, {{0, 0}, {2, 2}}, plane);
    EXPECT_EQ(plane, (std::vector<double>{1, 2, 3, 4}));
  }
  const auto refusal = [&](std::optional<double> member) {
    return message_of<DataError>([&] {
      FileSelection selection;
      selection.member.number = member;
      FileSet files({path}, selection);
      files.select(t2m, true);
    });
  };
  EXPECT_NE(refusal({}).find("has 3 members, 0, 4, 9; data.member (of init: --member) says which"),
            std::string::npos)
      << refusal({});
  EXPECT_NE(refusal(2).find("has the members 0, 4, 9"), std::string::npos) << refusal(2);
}

TEST(Ensemble, AllMembersAreSamples) {
  const testing::TemporaryFolder folder;
  write_ensemble(folder.path() + "/ensemble.nc");
  DataOptions options;
  options.files = {"ensemble.nc"};
  options.variables = {{"t2m", {}}};
  options.constants = {{"z", {}}};
  options.member.all = true;
  options.predict = Predict::kState;
  options.train = {period("2020-01-01", "2020-01-01")};
  options.lead_time = 6 * kHour;
  std::unique_ptr<Dataset> data;
  for (const int ranks : {1, 2}) {
    run_ranks(ranks, [&](Communicator& communicator) {
      auto own = std::make_unique<Dataset>(options, folder.path(), 1, communicator);
      if (communicator.rank() == 0) data = std::move(own);
    });
    EXPECT_EQ(data->files().members(), 3);
    EXPECT_EQ(data->files().members_of({"z", {}}), 1);
    ASSERT_EQ(data->count(Split::kTrain), 3);
    // Of 0, 1, 40, 41, 90 and 91.
    EXPECT_DOUBLE_EQ(data->statistics().of({"t2m", {}}).mean, 263.0 / 6);
    EXPECT_NEAR(data->statistics().of({"t2m", {}}).deviation, 36.8213, 1e-3);
  }
  const double mean = 263.0 / 6, deviation = data->statistics().of({"t2m", {}}).deviation;
  const Context context = Context::make_host(Backend::kReference, 1);
  SampleRequest request{
      .samples = {2, 0, 1}, .input = Box::whole({3, 2, 2, 2}), .target = Box::whole({3, 2, 2, 1})};
  request.dtype = DType::kFloat64;
  request.baseline = true;
  const Batch batch = data->open_reader()->read(request, context);
  const HostView<double> input(batch.input), target(batch.targets[0]), baseline(batch.baseline);
  const std::array<double, 3> members = {90, 0, 40};
  for (std::int64_t b = 0; b < 3; ++b) {
    const double member = members[static_cast<std::size_t>(b)];
    EXPECT_NEAR(input[b * 8], (member - mean) / deviation, 1e-12) << b;
    EXPECT_NEAR(target[b * 4], (member + 1 - mean) / deviation, 1e-12) << b;
    EXPECT_NEAR(baseline[b * 4], (member - mean) / deviation, 1e-12) << b;
    EXPECT_EQ(input[b * 8 + 1], input[1]) << "z is the same for all";
  }
  // Another file has not the same members.
  write_ensemble(folder.path() + "/other.nc", {0, 4, 7});
  FileSelection all;
  all.member.all = true;
  FileSet files({folder.path() + "/ensemble.nc", folder.path() + "/other.nc"}, all);
  const std::string refusal = message_of<DataError>([&] { files.select({"t2m", {}}, true); });
  EXPECT_NE(refusal.find("has the members 0, 4, 7, and "), std::string::npos) << refusal;
}

/// t2m and sst of members 0, 4 and 9 every six hours, 100·member + time and −100·member − time.
void write_long_ensemble(const std::string& path, bool numbered) {
  testing::NetcdfWriter file(path);
  const int number = file.dimension("number", 3), time = file.dimension("time", 5),
            lat = file.dimension("latitude", 2), lon = file.dimension("longitude", 2);
  const int numbers = numbered ? file.variable("number", NC_INT, {number}) : -1,
            times = file.variable("time", NC_DOUBLE, {time}),
            lats = file.variable("latitude", NC_DOUBLE, {lat}),
            lons = file.variable("longitude", NC_DOUBLE, {lon}),
            t2m = file.variable("t2m", NC_DOUBLE, {time, number, lat, lon}),
            sst = file.variable("sst", NC_DOUBLE, {number, time, lat, lon});
  file.text(times, "units", "hours since 2020-01-01");
  file.text(lats, "units", "degrees_north");
  file.text(lons, "units", "degrees_east");
  file.end();
  if (numbered) file.put(numbers, {0, 4, 9});
  file.put(times, {0, 6, 12, 18, 24});
  file.put(lats, {10, 20});
  file.put(lons, {0, 5});
  std::vector<double> of_times, of_members;
  for (const double i : {0, 1, 2, 3, 4})
    for (const double member : {0, 4, 9}) of_times.insert(of_times.end(), 4, 100 * member + i);
  for (const double member : {0, 4, 9})
    for (const double i : {0, 1, 2, 3, 4}) of_members.insert(of_members.end(), 4, -100 * member - i);
  file.put(t2m, of_times);
  file.put(sst, of_members);
}

DataOptions of_all_members(const std::string& file) {
  DataOptions options;
  options.files = {file};
  options.variables = {{"t2m", {}}};
  options.member.all = true;
  options.predict = Predict::kState;
  options.train = {period("2020-01-01", "2020-01-02")};
  options.lead_time = 6 * kHour;
  return options;
}

TEST(Ensemble, RolloutsStayWithTheirMember) {
  const testing::TemporaryFolder folder;
  write_long_ensemble(folder.path() + "/ensemble.nc", true);
  DataOptions options = of_all_members("ensemble.nc");
  options.forcing_variables = {{"sst", {}}};
  run_ranks(1, [&](Communicator& communicator) {
    constexpr int kLeads = 3;
    Dataset data(options, folder.path(), kLeads, communicator);
    ASSERT_EQ(data.count(Split::kTrain), 6) << "two times 0, each of three members";
    const Channels& channels = data.channels();
    ASSERT_EQ(channels.inputs.size(), 3U) << "t2m, and sst at time 0 and at the lead";
    const FieldStatistics &t2m = data.statistics().of({"t2m", {}}), &sst = data.statistics().of({"sst", {}});
    SampleRequest request{.samples = {5, 1, 3},
                          .input = Box::whole({3, 2, 2, 3}),
                          .target = Box::whole({3, 2, 2, 1}),
                          .rollout = kLeads};
    request.dtype = DType::kFloat64;
    request.origin = true;
    const Batch batch = data.open_reader()->read(request, Context::make_host(Backend::kReference, 1));
    const std::array<double, 3> members = {900, 400, 0}, times = {1, 0, 1};
    const HostView<double> input(batch.input), origin(batch.origin);
    for (std::int64_t b = 0; b < 3; ++b) {
      const double member = members[static_cast<std::size_t>(b)], time = times[static_cast<std::size_t>(b)];
      EXPECT_NEAR(input[b * 12], (member + time - t2m.mean) / t2m.deviation, 1e-12);
      EXPECT_NEAR(input[b * 12 + 1], (-member - time - sst.mean) / sst.deviation, 1e-12);
      EXPECT_NEAR(input[b * 12 + 2], (-member - time - 1 - sst.mean) / sst.deviation, 1e-12);
      EXPECT_EQ(origin[b * 4], member + time);
      for (int lead = 1; lead <= kLeads; ++lead) {
        const HostView<double> target(batch.targets[static_cast<std::size_t>(lead - 1)]);
        EXPECT_NEAR(target[b * 4], (member + time + lead - t2m.mean) / t2m.deviation, 1e-12) << b << lead;
        if (lead == kLeads) continue;
        const HostView<double> given(batch.forcings[static_cast<std::size_t>(lead - 1)]);
        EXPECT_NEAR(given[b * 12 + 1], (-member - time - lead - sst.mean) / sst.deviation, 1e-12)
            << b << lead;
        EXPECT_NEAR(given[b * 12 + 2], (-member - time - lead - 1 - sst.mean) / sst.deviation, 1e-12);
      }
    }
  });
}

TEST(Ensemble, WithoutACoordinateMembersAreCountedAndWithoutADimensionThereAreNone) {
  const testing::TemporaryFolder folder;
  write_long_ensemble(folder.path() + "/counted.nc", false);
  run_ranks(1, [&](Communicator& communicator) {
    const Dataset data(of_all_members("counted.nc"), folder.path(), 1, communicator);
    EXPECT_EQ(data.files().member_numbers(), (std::vector<double>{0, 1, 2}));
    FileSelection selection;
    selection.member.number = 2;
    FileSet files({folder.path() + "/counted.nc"}, selection);
    files.select({"t2m", {}}, true);
    std::vector<double> plane(4);
    files.read({"t2m", {}}, at("2020-01-01T12:00"), {{0, 0}, {2, 2}}, plane);
    EXPECT_EQ(plane, std::vector<double>(4, 902));
    for (const MemberChoice& choice : {MemberChoice{.all = true}, MemberChoice{.number = 3}}) {
      DataOptions options = of_all_members(fixture("packed.nc"));
      options.member = choice;
      const std::string refusal =
          message_of<Error>([&] { Dataset plain(options, folder.path(), 1, communicator); });
      EXPECT_NE(refusal.find(concat("data.member is ", choice.all ? "\"all\"" : "3",
                                    ", and none of the variables has a dimension of members")),
                std::string::npos)
          << refusal;
    }
  });
}

/// co2 at two times, without places, and sst on two rows and columns.
void write_seldom(const std::string& path) {
  testing::NetcdfWriter file(path);
  const int time = file.dimension("time", 2), lat = file.dimension("latitude", 2),
            lon = file.dimension("longitude", 2);
  const int times = file.variable("time", NC_DOUBLE, {time}),
            lats = file.variable("latitude", NC_DOUBLE, {lat}),
            lons = file.variable("longitude", NC_DOUBLE, {lon}),
            co2 = file.variable("co2", NC_DOUBLE, {time}),
            sst = file.variable("sst", NC_DOUBLE, {time, lat, lon});
  file.text(times, "units", "days since 2020-01-01");
  file.text(lats, "units", "degrees_north");
  file.text(lons, "units", "degrees_east");
  file.end();
  file.put(times, {0, 10});
  file.put(lats, {10, 20});
  file.put(lons, {0, 5});
  file.put(co2, {400, 410});
  file.put(sst, {280, 281, 282, 283, 290, 291, 292, 313});
}

TEST(Prescribed, IsGivenBetweenItsTimesAndEverywhere) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path() + "/seldom.nc", states = folder.path() + "/states.nc";
  write_seldom(path);
  write_ensemble(states);
  const Field co2{"co2", {}}, sst{"sst", {}};
  const auto read = [&](Between between, const Field& field, const std::string& time) {
    FileSelection selection;
    selection.member.number = 0;
    FileSet files({states, path}, selection);
    files.select({"t2m", {}}, true);
    files.select_prescribed(field, between);
    std::vector<double> plane(4, -1);
    EXPECT_EQ(files.has(field, at(time)), true) << time;
    files.read(field, at(time), {{0, 0}, {2, 2}}, plane);
    return plane;
  };
  using Plane = std::vector<double>;
  EXPECT_EQ(read(Between::kLinear, co2, "2020-01-03T12:00"), Plane(4, 402.5));
  EXPECT_EQ(read(Between::kLatest, co2, "2020-01-10T23:00"), Plane(4, 400));
  EXPECT_EQ(read(Between::kLinear, co2, "2020-01-11"), Plane(4, 410));
  EXPECT_EQ(read(Between::kLinear, sst, "2020-01-06"), (Plane{285, 286, 287, 298}));
  EXPECT_EQ(read(Between::kLatest, sst, "2020-01-06"), (Plane{280, 281, 282, 283}));
  EXPECT_EQ(read(Between::kNothing, sst, "2020-01-11"), (Plane{290, 291, 292, 313}));
  FileSet files({path});
  files.select_prescribed(sst, Between::kLinear);
  EXPECT_FALSE(files.has(sst, at("2019-12-31")));
  EXPECT_FALSE(files.has(sst, at("2020-01-12")));
  EXPECT_THROW(files.select(co2, true), DataError) << "a state has places";
}

/// What is given between its times is so whichever of them data.time_step takes of the others; and it varies
/// though no time of its own, or one, lies in data.train.
TEST(Prescribed, KeepsItsTimesWhateverTheStepAndThePeriod) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path() + "/seldom.nc";
  write_seldom(path);
  const Field co2{"co2", {}}, sst{"sst", {}};
  FileSelection selection;
  selection.time_step.every = 96 * kHour;  // of the two times it takes the second
  FileSet files({path}, selection);
  files.select(sst, true);
  files.select_prescribed(co2, Between::kLinear);
  EXPECT_EQ(files.times(sst), std::vector{at("2020-01-11")});
  EXPECT_EQ(files.times(co2).size(), 2U);
  std::vector<double> plane(4);
  files.read(co2, at("2020-01-03T12:00"), {{0, 0}, {2, 2}}, plane);
  EXPECT_EQ(plane, std::vector<double>(4, 402.5));
  Channels channels;
  channels.inputs = {{"co2", Role::kPrescribed, co2}};
  run_ranks(2, [&](Communicator& communicator) {
    const auto mean = [&](const char* first, const char* last) {
      FileSet own({path});
      own.select(sst, true);
      own.select_prescribed(co2, Between::kLinear);
      return compute_statistics(own, channels, {{at(first), at(last)}}, 6 * kHour, communicator).of(co2);
    };
    EXPECT_EQ(mean("2020-01-02", "2020-01-04").mean, 405);
    EXPECT_EQ(mean("2020-01-01", "2020-01-04").mean, 405);
    EXPECT_GT(mean("2020-01-04", "2020-01-11").deviation, 1);
  });
}

TEST(Prescribed, ErrorsNameFileAndKey) {
  const testing::TemporaryFolder folder;
  write_seldom(folder.path() + "/seldom.nc");
  write_long_ensemble(folder.path() + "/states.nc", true);
  run_ranks(1, [&](Communicator& communicator) {
    DataOptions options = of_all_members("states.nc");
    options.files.push_back("seldom.nc");
    options.forcing_variables = {{"co2", {}}};
    const auto message = [&](Between between) {
      options.forcing_times = between;
      return message_of<Error>([&] { const Dataset data(options, folder.path(), 1, communicator); });
    };
    const std::string exact = message(Between::kNothing);
    for (const char* part :
         {"data.train (", "holds no window with all that is prescribed: co2 is in ",
          "seldom.nc at 2 times from 2020-01-01T00:00 to 2020-01-11T00:00, not at 2020-01-0",
          "and data.forcing_times is \"exact\"; \"latest\" or \"linear\""})
      EXPECT_NE(exact.find(part), std::string::npos) << part << " is not in\n" << exact;
    options.forcing_times = Between::kLinear;
    EXPECT_NO_THROW(Dataset(options, folder.path(), 1, communicator)) << "it is there between, too";
  });
}

TEST(Windows, NoneNamesTheVariableOfFewestTimes) {
  const testing::TemporaryFolder folder;
  write_seldom(folder.path() + "/seldom.nc");
  write_long_ensemble(folder.path() + "/states.nc", true);
  DataOptions options = of_all_members("states.nc");
  options.variables.push_back({"sst", {}});
  options.variables.back().files = {"seldom.nc"};
  run_ranks(1, [&](Communicator& communicator) {
    const std::string message =
        message_of<AgreedError>([&] { const Dataset data(options, folder.path(), 1, communicator); });
    EXPECT_NE(message.find("; sst has 2 times from 2020-01-01T00:00 to 2020-01-11T00:00, and t2m 5 times "
                           "from 2020-01-01T00:00 "
                           "to 2020-01-02T00:00"),
              std::string::npos)
        << message;
  });
}

/// As when files of two months overlap and were joined.
TEST(FileSet, ATimeThatStandsTwiceInAFileIsSaidToStandThere) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path() + "/twice.nc";
  {
    testing::NetcdfWriter file(path);
    const int time = file.dimension("time", 3), lat = file.dimension("latitude", 2),
              lon = file.dimension("longitude", 2);
    const int times = file.variable("time", NC_DOUBLE, {time}),
              lats = file.variable("latitude", NC_DOUBLE, {lat}),
              lons = file.variable("longitude", NC_DOUBLE, {lon}),
              t2m = file.variable("t2m", NC_DOUBLE, {time, lat, lon});
    file.text(times, "units", "hours since 2020-01-01");
    file.text(lats, "units", "degrees_north");
    file.text(lons, "units", "degrees_east");
    file.end();
    file.put(times, {0, 6, 6});
    file.put(lats, {10, 20});
    file.put(lons, {0, 5});
    file.put(t2m, {1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3});
  }
  const auto read = [&](Overlap overlap) {
    FileSet files({path}, {.overlap = overlap});
    files.select({"t2m", {}}, true);
    std::vector<double> plane(4);
    files.read({"t2m", {}}, at("2020-01-01T06:00"), {{0, 0}, {2, 2}}, plane);
    return plane;
  };
  EXPECT_EQ(read(Overlap::kFirst), std::vector<double>(4, 2));
  EXPECT_EQ(read(Overlap::kLast), std::vector<double>(4, 3));
  const std::string refusal = message_of<DataError>([&] { read(Overlap::kEqual); });
  for (const char* part : {"t2m at 2020-01-01T06:00 stands twice in ", "twice.nc, at 1 and 2 along time",
                           "say by data.overlap whether the \"first\" or the \"last\" counts"})
    EXPECT_NE(refusal.find(part), std::string::npos) << part << " is not in\n" << refusal;
}

}  // namespace channel_layout_test
}  // namespace jigsaw
