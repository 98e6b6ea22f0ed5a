#include <gtest/gtest.h>

#include <set>

#include "array/host_view.h"
#include "images/image_data.h"
#include "io/images/image_fixtures.h"

namespace jigsaw {
namespace image_reader_test {

using namespace testing::image_fixtures;

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

}  // namespace image_reader_test
}  // namespace jigsaw
