#include "images/image_data.h"

#include <mutex>
#include <set>
#include <thread>

#include "array/host_view.h"
#include "base/error.h"
#include "comm/agreement.h"
#include "comm/thread/run_ranks.h"
#include "files/hdf5_file.h"
#include "files/image_output.h"
#include "images/label_scan.h"
#include "io/fixtures.h"
#include "support/temporary_folder.h"

namespace jigsaw {
namespace image_data_test {

const Shape kVolume{11, 9, 10};

std::string image_file(const std::string& name) {
  return fixture("images/" + name);
}

std::vector<double> image_values(const std::string& name) {
  static const Json json = Json::parse(std::ifstream(image_file("expected.json")));
  std::vector<double> values;
  for (const Json& value : json[name]) {
    values.push_back(value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>());
  }
  return values;
}

Json image_numbers(const std::string& name) {
  return Json::parse(std::ifstream(image_file("expected.json")))[name];
}

SliceRanges slices(ImageDim dim, std::int64_t first, std::int64_t last) {
  return {{{dim, {first, last}}}};
}

DataOptions volume_options() {
  DataOptions options;
  options.task = Task::kDenoise;
  options.files = {"volume.h5"};
  options.variables = {{"scan/density", {}}};
  options.dims = {ImageDim::kDepth, ImageDim::kHeight, ImageDim::kWidth};
  options.train = {slices(ImageDim::kDepth, 0, 6)};
  options.valid = {slices(ImageDim::kDepth, 7, 8)};
  options.crop = {5, 4, 6};
  options.noise_sigma = 0.25;
  return options;
}

DataOptions picture_options() {
  DataOptions options;
  options.task = Task::kMap;
  options.files = {"pictures.h5"};
  options.variables = {{"images", {}}};
  options.targets = {{"masks", {}}};
  options.dims = {ImageDim::kSample, ImageDim::kHeight, ImageDim::kWidth, ImageDim::kChannel};
  options.train = {slices(ImageDim::kSample, 0, 3)};
  options.valid = {slices(ImageDim::kSample, 4, 4)};
  options.classes = 2;
  return options;
}

/// Opened by one rank.
std::unique_ptr<ImageData> open(const DataOptions& options, const std::vector<std::int64_t>& overlap = {},
                                std::uint64_t seed = 1) {
  std::unique_ptr<ImageData> data;
  run_ranks(1, [&](Communicator& world) {
    data = std::make_unique<ImageData>(options, image_file(""), seed, overlap, world);
  });
  return data;
}

std::string refusal(const DataOptions& options, ExitCode code) {
  std::string message;
  run_ranks(2, [&](Communicator& world) {
    try {
      ImageData(options, image_file(""), 1, {}, world);
      ADD_FAILURE() << "nothing was thrown";
    } catch (const AgreedError& error) {
      EXPECT_EQ(error.code(), code);
      if (world.rank() == 0) message = error.what();
    }
  });
  return message;
}

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

/// Reading batches.
class ImageReaderTest : public ::testing::Test {
 protected:
  Batch read(ImageData& data, const SampleRequest& request) {
    return data.open_reader()->read(request, context_);
  }

  Context context_ = Context::make_host(Backend::kReference, 1);
};

SampleRequest whole_request(const ImageData& data, Split split, std::vector<std::int64_t> samples) {
  SampleRequest request;
  request.split = split;
  Shape input{std::ssize(samples)}, target = input;
  for (const std::int64_t extent : data.grid().shape()) {
    input.append(extent);
    target.append(extent);
  }
  input.append(std::ssize(data.channels().inputs));
  target.append(std::ssize(data.channels().targets));
  request.samples = std::move(samples);
  request.position = {5, 2, 0};
  request.input = Box::whole(input);
  request.target = Box::whole(target);
  request.baseline = true;
  request.dtype = DType::kFloat64;
  return request;
}

TEST_F(ImageReaderTest, TakesNormalisedCropsOfTheTrainingPartsAndAddsNoise) {
  DataOptions options = volume_options();
  options.predict = Predict::kState;
  const auto data = open(options);
  const std::vector<double> density = image_values("density");
  const Json wanted = image_numbers("statistics")["density"];
  const FieldStatistics& statistics = data->statistics().fields.at("scan/density");
  EXPECT_NEAR(statistics.mean, wanted["mean"].get<double>(), 1e-13);
  EXPECT_NEAR(statistics.deviation, wanted["deviation"].get<double>(), 1e-13);
  EXPECT_EQ(data->count(Split::kTrain), 5);  // 7 · 9 · 10 points in crops of 5 · 4 · 6
  SampleRequest request = whole_request(*data, Split::kTrain, {0, 3, 1, 4});
  const Batch batch = read(*data, request);
  double sum = 0, squares = 0, count = 0;
  std::set<std::string> places;
  for (std::int64_t b = 0; b < 4; ++b) {
    RandomPosition position = request.position;
    position.sample += static_cast<std::uint64_t>(b);
    const ImageSample sample =
        data->sample(Split::kTrain, request.samples[static_cast<std::size_t>(b)], position);
    EXPECT_LE(sample.box.end(0), 7);
    EXPECT_EQ(sample.box.extent, (Shape{5, 4, 6}));
    places.insert(sample.box.to_string());
    for (std::int64_t i = 0; i < 120; ++i) {
      const std::int64_t z = sample.box.begin[0] + i / 24, y = sample.box.begin[1] + i / 6 % 4,
                         x = sample.box.begin[2] + i % 6;
      const double clean = density[static_cast<std::size_t>((z * 9 + y) * 10 + x)];
      const double target = HostView<double>(batch.targets[0])[b * 120 + i],
                   input = HostView<double>(batch.input)[b * 120 + i];
      if (std::isnan(clean)) {
        EXPECT_TRUE(std::isnan(target));
        EXPECT_EQ(input, 0);
        continue;
      }
      EXPECT_NEAR(target, (clean - statistics.mean) / statistics.deviation, 1e-12);
      EXPECT_EQ(HostView<double>(batch.baseline)[b * 120 + i], input);
      const double noise = (input - target) * statistics.deviation / 0.25;
      sum += noise;
      squares += noise * noise;
      count += 1;
    }
  }
  EXPECT_EQ(places.size(), 4U);
  EXPECT_NEAR(sum / count, 0, 4 / std::sqrt(count));
  EXPECT_NEAR(squares / count, 1, 6 / std::sqrt(count));
  // Another step has other places and noise, the same one the same.
  const Batch again = read(*data, request);
  EXPECT_EQ(HostView<double>(again.input)[17], HostView<double>(batch.input)[17]);
  request.position.step = 6;
  EXPECT_NE(HostView<double>(read(*data, request).input)[17], HostView<double>(batch.input)[17]);
}

TEST_F(ImageReaderTest, TheIncrementTakesTheNoiseAway) {
  const auto data = open(volume_options());
  const Batch batch = read(*data, whole_request(*data, Split::kTrain, {0, 1}));
  DataOptions options = volume_options();
  options.predict = Predict::kState;
  const auto states = open(options);
  const Batch state = read(*states, whole_request(*states, Split::kTrain, {0, 1}));
  const double deviation = data->statistics().fields.at("scan/density").deviation;
  for (std::int64_t i = 0; i < 240; ++i) {
    EXPECT_EQ(HostView<double>(batch.input)[i], HostView<double>(state.input)[i]);
    const double clean = HostView<double>(state.targets[0])[i],
                 increment = HostView<double>(batch.targets[0])[i];
    if (std::isnan(clean)) continue;
    EXPECT_NEAR(HostView<double>(batch.input)[i] + increment * 0.25 / deviation, clean, 1e-12);
    EXPECT_EQ(HostView<double>(batch.baseline)[i], 0);
  }
}

double element(const Array& array, const Shape& at) {
  const Shape strides = array.shape().strides();
  std::int64_t index = 0;
  for (int d = 0; d < at.rank(); ++d) index += at[d] * strides[d];
  return HostView<double>(array)[index];
}

TEST_F(ImageReaderTest, MirrorsImageNoiseAndTargetAlike) {
  DataOptions options = volume_options();
  const auto plain = open(options);
  options.flips = {ImageDim::kDepth, ImageDim::kWidth};
  const auto data = open(options);
  const SampleRequest request = whole_request(*data, Split::kTrain, {0, 1, 2, 3, 4, 0, 1, 2});
  const Batch mirrored = read(*data, request), straight = read(*plain, request);
  std::set<std::string> seen;
  for (std::int64_t b = 0; b < 8; ++b) {
    const ImageSample sample = data->sample(Split::kTrain, b % 5, {5, 2 + static_cast<std::uint64_t>(b), 0});
    EXPECT_FALSE(sample.mirrored[1]);
    seen.insert(concat(sample.mirrored[0], sample.mirrored[2]));
    for (std::int64_t i = 0; i < 120; ++i) {
      const std::int64_t z = i / 24, y = i / 6 % 4, x = i % 6;
      const Shape there{b, sample.mirrored[0] ? 4 - z : z, y, sample.mirrored[2] ? 5 - x : x, 0};
      EXPECT_EQ(element(mirrored.input, {b, z, y, x, 0}), element(straight.input, there));
      const double target = element(mirrored.targets[0], {b, z, y, x, 0}),
                   wanted = element(straight.targets[0], there);
      EXPECT_TRUE(target == wanted || (std::isnan(target) && std::isnan(wanted)));
    }
  }
  EXPECT_GE(seen.size(), 3U);
}

TEST_F(ImageReaderTest, PiecesAreCutsOfTheWholeAndReadTheirPartOnly) {
  DataOptions options = volume_options();
  options.flips = {ImageDim::kDepth, ImageDim::kHeight, ImageDim::kWidth};
  const auto data = open(options);
  const Batch all = read(*data, whole_request(*data, Split::kTrain, {0, 1, 2, 3}));
  for (const Box& piece : std::vector<Box>{{{0, 0, 0, 0, 0}, {4, 3, 4, 6, 1}},
                                           {{0, 3, 0, 0, 0}, {4, 2, 4, 6, 1}},
                                           {{2, 1, 2, 3, 0}, {2, 3, 2, 3, 1}},
                                           {{1, 0, 0, 5, 0}, {1, 5, 4, 1, 1}}}) {
    SampleRequest request = whole_request(*data, Split::kTrain, {0, 1, 2, 3});
    request.input = request.target = piece;
    const std::int64_t before = data->bytes_read();
    const Batch part = read(*data, request);
    EXPECT_EQ(data->bytes_read() - before, piece.extent.count() * 2);
    for (std::int64_t i = 0; i < piece.extent.count(); ++i) {
      Shape at = piece.begin;
      std::int64_t rest = i;
      for (int d = 4; d >= 0; --d) {
        at[d] += rest % piece.extent[d];
        rest /= piece.extent[d];
      }
      EXPECT_EQ(HostView<double>(part.input)[i], element(all.input, at));
    }
  }
}

TEST_F(ImageReaderTest, TilesScoreTheValidationPartWithOneNoise) {
  DataOptions options = volume_options();
  options.valid = {slices(ImageDim::kDepth, 4, 8)};
  const auto data = open(options, {2, 2, 2});
  std::vector<std::int64_t> all(static_cast<std::size_t>(data->count(Split::kValid)));
  EXPECT_EQ(all.size(), 1U * 4 * 2);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int64_t>(i);
  const Batch batch = read(*data, whole_request(*data, Split::kValid, all));
  std::map<std::int64_t, double> inputs, targets;
  for (std::size_t t = 0; t < all.size(); ++t) {
    const ImageTile& tile = data->tiles()[t];
    for (std::int64_t i = 0; i < 120; ++i) {
      const std::int64_t point =
          ((tile.box.begin[0] + i / 24) * 9 + tile.box.begin[1] + i / 6 % 4) * 10 + tile.box.begin[2] + i % 6;
      const auto at = static_cast<std::int64_t>(t) * 120 + i;
      const double input = HostView<double>(batch.input)[at], target = HostView<double>(batch.targets[0])[at];
      if (inputs.contains(point)) {
        EXPECT_EQ(inputs[point], input);
      }
      inputs[point] = input;
      if (std::isnan(target)) continue;
      EXPECT_FALSE(targets.contains(point));
      targets[point] = target;
    }
  }
  EXPECT_EQ(targets.size(), 5U * 9 * 10);
}

TEST_F(ImageReaderTest, ReadsLabelsAndChannels) {
  const auto data = open(picture_options());
  EXPECT_EQ(data->channels().inputs.size(), 3U);
  const SampleRequest request = whole_request(*data, Split::kTrain, {2});
  const Batch batch = read(*data, request);
  const std::vector<double> masks = image_values("masks"), images = image_values("images");
  const FieldStatistics& statistics = data->statistics().fields.at("images_1");
  EXPECT_NEAR(statistics.mean, image_numbers("statistics")["images_1"]["mean"].get<double>(), 1e-13);
  for (std::size_t i = 0; i < 90; ++i) {
    EXPECT_EQ(HostView<double>(batch.targets[0])[i], masks[2 * 90 + i]);
    EXPECT_NEAR(HostView<double>(batch.input)[i * 3 + 1],
                (images[(2 * 90 + i) * 3 + 1] - statistics.mean) / statistics.deviation, 1e-12);
  }
  EXPECT_FALSE(batch.baseline.defined());
}

TEST_F(ImageReaderTest, LabelsOutOfRangeAreErrorsOrIgnored) {
  DataOptions options = volume_options();
  options.task = Task::kMap;
  options.noise_sigma.reset();
  options.targets = {{"labels", {}}};
  options.classes = 3;
  options.crop.clear();
  const auto strict = open(options);
  const std::string message =
      message_of<DataError>([&] { read(*strict, whole_request(*strict, Split::kTrain, {0})); });
  EXPECT_NE(message.find("labels in "), std::string::npos) << message;
  EXPECT_NE(message.find("the label 255"), std::string::npos) << message;
  options.ignore_index = 255;
  const auto data = open(options);
  const Batch batch = read(*data, whole_request(*data, Split::kTrain, {0}));
  EXPECT_TRUE(std::isnan(HostView<double>(batch.targets[0])[2]));
  EXPECT_FALSE(std::isnan(HostView<double>(batch.targets[0])[3]));
}

/// Numbers of files that are merged, and numbered anew: by everything that looks at labels.
TEST_F(ImageReaderTest, LabelsAreWhatTheConfigurationMakesOfNumbers) {
  DataOptions options = volume_options();
  options.task = Task::kMap;
  options.noise_sigma.reset();
  options.targets = {{"labels", {}}};
  options.classes = 3;
  options.ignore_index = 255;
  options.crop.clear();
  const auto plain = open(options);
  options.classes = 2;
  options.labels = {{2}, {1, 0}};
  const auto data = open(options);
  const auto labels_of = [&](ImageData& of) {
    const Batch batch = read(of, whole_request(of, Split::kTrain, {0}));
    const HostView<double> view(batch.targets[0]);
    return std::vector<double>(view.begin(), view.end());
  };
  const std::vector<double> before = labels_of(*plain), after = labels_of(*data);
  std::vector<double> counts(2, 0.0), old_counts(3, 0.0);
  ASSERT_EQ(after.size(), before.size());
  for (std::size_t i = 0; i < before.size(); ++i) {
    ASSERT_EQ(std::isnan(after[i]), std::isnan(before[i]));
    if (std::isnan(before[i])) continue;
    ASSERT_EQ(after[i], before[i] == 2 ? 0 : 1);
    counts[before[i] == 2 ? 0 : 1] += 1;
    old_counts[static_cast<std::size_t>(before[i])] += 1;
  }
  for (const double count : old_counts) EXPECT_GT(count, 0);
  run_ranks(2, [&](Communicator& world) {
    EXPECT_EQ(ImageData(options, image_file(""), 1, {}, world).label_counts(world), counts);
  });
  EXPECT_EQ(data->labels().value_of(0), 2);
  EXPECT_EQ(data->labels().value_of(1), 1);
  EXPECT_EQ(data->labels().largest(), 2);
  EXPECT_EQ(plain->labels().value_of(2), 2);
  EXPECT_EQ(plain->labels().largest(), 2);

  // Of a region each point is 1 or 0.
  options.classes = 3;
  options.labels = {};
  options.regions = {{1, 2}, {2}};
  const auto regions = open(options);
  SampleRequest request = whole_request(*regions, Split::kTrain, {0});
  request.target.extent[request.target.extent.rank() - 1] = 2;
  const std::vector<double> inside = [&] {
    const Batch batch = read(*regions, request);
    const HostView<double> view(batch.targets[0]);
    return std::vector<double>(view.begin(), view.end());
  }();
  ASSERT_EQ(inside.size(), 2 * before.size());
  for (std::size_t i = 0; i < before.size(); ++i) {
    ASSERT_EQ(std::isnan(inside[2 * i]), std::isnan(before[i]));
    ASSERT_EQ(std::isnan(inside[2 * i + 1]), std::isnan(before[i]));
    if (std::isnan(before[i])) continue;
    EXPECT_EQ(inside[2 * i], before[i] >= 1 ? 1 : 0);
    EXPECT_EQ(inside[2 * i + 1], before[i] == 2 ? 1 : 0);
  }
  const auto class_of = [&](bool first, bool second) {
    return regions->labels().class_in([&](std::int64_t region) { return region == 0 ? first : second; });
  };
  EXPECT_EQ(class_of(false, false), 0);
  EXPECT_EQ(class_of(true, false), 1);
  EXPECT_EQ(class_of(true, true), 2);
  EXPECT_EQ(class_of(false, true), 2);
  options.regions = {};
  options.classes = 2;

  options.labels = {{0}, {2}};
  const auto lacking = open(options);
  const std::string message = message_of<DataError>([&] { labels_of(*lacking); });
  EXPECT_NE(message.find("volume.h5 holds the label 1, which data.labels does not name"), std::string::npos)
      << message;
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
