#include "images/image_data.h"

#include <mutex>
#include <set>
#include <thread>

#include "files/hdf5_file.h"
#include "files/image_output.h"
#include "images/label_scan.h"
#include "io/images/image_fixtures.h"
#include "support/temporary_folder.h"

namespace jigsaw {
namespace image_data_test {

using namespace testing::image_fixtures;

TEST(Hdf5File, ReadsDataSetsOfGroupsInPhysicalUnits) {
  Hdf5File file(image_file("volume.h5"));
  std::set<std::string> names;
  for (const FileVariable& variable : file.variables()) names.insert(variable.name);
  EXPECT_EQ(names, (std::set<std::string>{"comment", "labels", "scan/density", "turned"}));
  EXPECT_FALSE(file.find("comment")->numeric());
  const FileVariable& density = *file.find("scan/density");
  EXPECT_EQ(density.text("units"), "g/cm3");
  EXPECT_EQ(density.shape, kVolume);
  std::vector<double> values(990);
  file.read<double>(density, Box::whole(kVolume), values);
  expect_close(values, image_values("density"), 1e-15);
  EXPECT_EQ(file.bytes_read(), 990 * 2);
  file.close();
  std::vector<double> part(8);
  file.read<double>(density, {{2, 3, 3}, {2, 2, 2}}, part);
  EXPECT_TRUE(std::isnan(part[1]));
  EXPECT_EQ(part[7], values[(3 * 9 + 4) * 10 + 4]);
  EXPECT_EQ(file.bytes_read(), 990 * 2 + 8 * 2);
}

TEST(Hdf5File, DamagedFilesAreDataErrors) {
  EXPECT_THROW(open_variables(image_file("nowhere.h5"), Dimensions::kByNumber), DataError);
  std::ifstream in(image_file("volume.h5"), std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(in), {}};
  const testing::TemporaryFolder folder;
  const std::string path = folder.path() + "/truncated.h5";
  for (const std::size_t size : {9UL, 100UL, whole.size() / 2}) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << whole.substr(0, size);
    EXPECT_THROW(open_variables(path, Dimensions::kByNumber), DataError) << size;
  }
  std::filesystem::remove(path);
}

TEST(ImageFiles, ReadAnyOrderOfDims) {
  ImageFiles files({image_file("volume.h5")}, {ImageDim::kWidth, ImageDim::kDepth, ImageDim::kHeight});
  const Field turned = files.select({"turned", {}}).at(0);
  EXPECT_EQ(files.extents(0), kVolume);
  std::vector<double> whole(990), part(12);
  files.read(turned, 0, Box::whole(kVolume), whole);
  expect_close(whole, image_values("turned"), 0);
  files.read(turned, 0, {{3, 4, 5}, {2, 3, 2}}, part);
  for (std::size_t i = 0; i < 12; ++i) {
    EXPECT_EQ(part[i], whole[((3 + i / 6) * 9 + 4 + i / 2 % 3) * 10 + 5 + i % 2]);
  }
  EXPECT_EQ(files.bytes_read(), (990 + 12) * 4);
}

TEST(ImageFiles, HoldSamplesOfSeveralFilesAndChannels) {
  ImageFiles files({image_file("pictures.h5"), image_file("pictures.h5")},
                   {ImageDim::kSample, ImageDim::kHeight, ImageDim::kWidth, ImageDim::kChannel});
  const std::vector<Field> fields = files.select({"images", {2, 0}});
  ASSERT_EQ(fields.size(), 2U);
  EXPECT_EQ(fields[0].name(), "images_2");
  const Field mask = files.select({"masks", {}}).at(0);
  EXPECT_EQ(files.count(), 10);
  const std::vector<double> images = image_values("images"), masks = image_values("masks");
  std::vector<double> one(90);
  files.read(fields[0], 7, Box::whole({9, 10}), one);
  for (std::size_t i = 0; i < 90; ++i) EXPECT_EQ(one[i], images[(2 * 90 + i) * 3 + 2]);
  files.read(mask, 4, Box::whole({9, 10}), one);
  for (std::size_t i = 0; i < 90; ++i) EXPECT_EQ(one[i], masks[4 * 90 + i]);
}

TEST(ImageFiles, ReadNetcdfWithConfiguredDims) {
  ImageFiles files({fixture("packed.nc")}, {ImageDim::kSample, ImageDim::kHeight, ImageDim::kWidth});
  const Field t2m = files.select({"t2m", {}}).at(0);
  EXPECT_EQ(files.count(), 12);
  EXPECT_EQ(files.units(t2m), "K");
  std::vector<double> all, one(56);
  for (std::int64_t image = 0; image < 12; ++image) {
    files.read(t2m, image, Box::whole({7, 8}), one);
    all.insert(all.end(), one.begin(), one.end());
  }
  expect_close(all, expected_values("t2m"), 1e-15);
}

TEST(ImageData, StatisticsAndPeaksAreEqualInEveryBitOnAnyNumberOfRanks) {
  const auto alone = open(volume_options());
  std::vector<double> valid(static_cast<std::size_t>(2 * 9 * 10));  // depth 7 and 8
  alone->files().read(alone->channels().targets[0].field, 0, {{7, 0, 0}, {2, 9, 10}}, valid);
  std::erase_if(valid, [](double value) { return std::isnan(value); });
  const auto [least, most] = std::ranges::minmax(valid);
  EXPECT_LT(most - least, image_numbers("largest").get<double>()) << "other than the largest of all";
  for (const int ranks : {2, 3, 11}) {
    std::mutex mutex;
    int seen = 0;
    run_ranks(ranks, [&](Communicator& world) {
      const ImageData data(volume_options(), image_file(""), 1, {}, world);
      const std::vector<std::pair<double, double>> ranges = data.target_ranges(world);
      const std::lock_guard lock(mutex);
      EXPECT_TRUE(data.statistics() == alone->statistics());
      ASSERT_EQ(ranges.size(), 1U);
      EXPECT_EQ(ranges[0].first, least);
      EXPECT_EQ(ranges[0].second, most);
      ++seen;
    });
    EXPECT_EQ(seen, ranks);
  }
}

TEST(ImageData, StatisticsMayComeFromAFile) {
  const auto computed = open(volume_options());
  const testing::TemporaryFolder folder;
  const std::string path = folder.path() + "/statistics.json";
  Statistics statistics = computed->statistics();
  statistics.save(path);
  DataOptions options = volume_options();
  options.normalization = path;
  options.train = {slices(ImageDim::kDepth, 0, 4)};
  EXPECT_TRUE(open(options)->statistics() == statistics);
  statistics.fields["scan/density"].units = "HU";
  statistics.save(path);
  EXPECT_NE(refusal(options, ExitCode::kData).find("in \"HU\", the files in \"g/cm3\""), std::string::npos);
  statistics.fields.clear();
  statistics.save(path);
  EXPECT_EQ(
      refusal(options, ExitCode::kData),
      "data.normalization, " + path +
          ": there are no statistics of scan/density; jigsaw-train stats writes all that a configuration "
          "needs");
  std::filesystem::remove(path);
}

/// Which variable stands in which files decides, not the list of all files.
TEST(ImageData, KeptStatisticsAreOfTheVariablesOwnFiles) {
  const testing::TemporaryFolder folder;
  const auto write = [&](const std::string& name, float first) {
    const Shape shape{2, 3};
    const OutputImage image{"image", OutputImage::Type::kFloat, {"height", "width"}, shape, {}, {}};
    const auto file = create_image_output(ImageFormat::kHdf5, folder.path() + name, {image}, {});
    std::vector<float> values;
    for (int i = 0; i < 6; ++i) values.push_back(first + static_cast<float>(i));
    file->write(0, Box::whole(shape), values);
    file->finish();
  };
  write("/ct.h5", 1000);
  write("/mr.h5", 5);
  const auto means = [&](bool inputs_are_mr) {
    DataOptions options;
    options.task = Task::kMap;
    options.files = {folder.path() + "/ct.h5"};
    options.dims = {ImageDim::kHeight, ImageDim::kWidth};
    options.variables = {{"x", {}, "image"}};
    options.targets = {{"y", {}, "image"}};
    (inputs_are_mr ? options.variables : options.targets).front().files = {folder.path() + "/mr.h5"};
    options.train = {slices(ImageDim::kSample, 0, 0)};
    std::pair<double, double> found;
    run_ranks(1, [&](Communicator& world) {
      DataUse use;
      use.pass.cache = folder.path() + "/cache";
      const ImageData data(options, folder.path(), 1, {}, world, use);
      found = {data.statistics().fields.at("x").mean, data.statistics().fields.at("y").mean};
    });
    return found;
  };
  for (int again = 0; again < 2; ++again) {
    EXPECT_EQ(means(false), std::pair(1002.5, 7.5));
    EXPECT_EQ(means(true), std::pair(7.5, 1002.5));
  }
}

TEST(ImageData, WhatDoesNotFitIsOneClearError) {
  const auto changed = [](const auto& change) {
    DataOptions options = volume_options();
    change(options);
    return options;
  };
  const auto expect = [](const std::string& message, const std::string& part) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  expect(refusal(changed([](DataOptions& o) {
                   o.variables = {{"scan/densty", {}}};
                 }),
                 ExitCode::kData),
         "did you mean \"scan/density\"");
  expect(refusal(changed([](DataOptions& o) {
                   o.variables = {{"comment", {}}};
                 }),
                 ExitCode::kData),
         "comment");
  expect(refusal(changed([](DataOptions& o) {
                   o.dims.erase(o.dims.begin());
                   o.crop = {4, 4};
                 }),
                 ExitCode::kData),
         "has 3 dimensions");
  expect(refusal(changed([](DataOptions& o) {
                   o.crop = {8, 4, 4};
                 }),
                 ExitCode::kConfig),
         "depth can be at most 7");
  expect(refusal(changed([](DataOptions& o) { o.train = {slices(ImageDim::kDepth, 0, 11)}; }),
                 ExitCode::kConfig),
         "data.train takes depth 0 to 11");
  expect(refusal(changed([](DataOptions& o) { o.train = {slices(ImageDim::kSample, 0, 1)}; }),
                 ExitCode::kConfig),
         "data.train takes sample 0 to 1");
  expect(refusal(changed([](DataOptions& o) { o.shape = {11, 9, 9}; }), ExitCode::kConfig), "data.shape");
  expect(refusal(changed([](DataOptions& o) {
                   o.variables = {{"scan/density", {0}}};
                 }),
                 ExitCode::kData),
         "no channel 0");
  expect(refusal(changed([](DataOptions& o) { o.files = {"nowhere.h5"}; }), ExitCode::kData), "nowhere.h5");
  expect(refusal(changed([](DataOptions& o) {
                   o.files = {"volume.nii"};
                   o.variables = {{"image", {}}};
                   o.dims = {ImageDim::kWidth, ImageDim::kHeight, ImageDim::kDepth};
                 }),
                 ExitCode::kData),
         "is NIfTI, whose axes are brought to the order depth, height, width");
  DataOptions mixed = volume_options();
  mixed.task = Task::kMap;
  mixed.targets = {{"turned", {}}};
  expect(refusal(mixed, ExitCode::kData), "turned");
}

/// Masks of pictures.h5 are labels of two classes; its images are none.
TEST(LabelScan, FindsALabelThatIsNoneOnAnyRank) {
  for (const int ranks : {1, 3}) {
    DataOptions options = picture_options();
    run_ranks(ranks, [&](Communicator& world) {
      const ImageData data(options, image_file(""), 1, {}, world);
      LabelScan scan(data, world);
      while (!scan.poll()) std::this_thread::yield();
      EXPECT_TRUE(scan.poll());
      LabelScan waited_for(data, world);
      double done = 0;
      waited_for.wait([&](double part) {
        EXPECT_TRUE(part >= done && part <= 1) << part << " after " << done;
        done = part;
      });
      EXPECT_TRUE(waited_for.poll());
      EXPECT_EQ(waited_for.remark(), "");
    });
    // Of four classes two are nowhere.
    options.classes = 4;
    run_ranks(ranks, [&](Communicator& world) {
      const ImageData data(options, image_file(""), 1, {}, world);
      LabelScan scan(data, world);
      scan.wait([](double) {});
      EXPECT_EQ(scan.remark(),
                "no label of data.train is 2, 3, of data.classes 4: such a class cannot be learned");
    });
    DataOptions numbered = options;
    numbered.labels = {{0}, {1}, {7, 8}, {9}};
    run_ranks(ranks, [&](Communicator& world) {
      const ImageData data(numbered, image_file(""), 1, {}, world);
      LabelScan scan(data, world);
      scan.wait([](double) {});
      EXPECT_EQ(
          scan.remark(),
          "no label of data.train is 7 or 8 (class 2), 9 (class 3), of data.labels: such a class cannot "
          "be learned");
    });
    options.targets = {{"images", {0}}};
    run_ranks(ranks, [&](Communicator& world) {
      const ImageData data(options, image_file(""), 1, {}, world);
      LabelScan scan(data, world);
      const std::string message = message_of<AgreedError>([&] { scan.wait([](double) {}); });
      EXPECT_NE(message.find("holds the label"), std::string::npos) << message;
    });
  }
}

}  // namespace image_data_test
}  // namespace jigsaw
