// Changed training samples: warps, interpolation and blurring against plain loops; the same pieces on every
// rank; crops with foreground.
#include "images/augmentation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <numbers>

#include "array/host_view.h"
#include "comm/thread/run_ranks.h"
#include "images/image_data.h"
#include "io/fixtures.h"
#include "samples/prefetch.h"

namespace jigsaw {
namespace augmentation_test {

const RandomStream kDisplacements(3, RandomPurpose::kCrop, "elastic");

Warp::Drawn unchanged(int dims) {
  Warp::Drawn drawn;
  drawn.mirrored.assign(static_cast<std::size_t>(dims), false);
  return drawn;
}

void expect_point(const Warp::Point& point, const Warp::Point& wanted) {
  for (std::size_t d = 0; d < 3; ++d) EXPECT_NEAR(point[d], wanted[d], 1e-12) << d;
}

TEST(Warp, TurnsAboutTheMiddleInMillimetres) {
  const Box crop{{10, 20, 30}, {5, 7, 9}};  // its middle is (12, 23, 34)
  Warp::Drawn drawn = unchanged(3);
  const std::vector<double> ones = {1, 1, 1};
  expect_point(Warp(crop, drawn, ones, kDisplacements).source({1, 2, 3}), {11, 22, 33});
  drawn.mirrored = {true, false, true};
  expect_point(Warp(crop, drawn, ones, kDisplacements).source({1, 2, 3}), {13, 22, 35});
  drawn = unchanged(3);
  drawn.angles = {std::numbers::pi / 2, 0, 0};  // about depth: height and width change places
  expect_point(Warp(crop, drawn, ones, kDisplacements).source({2, 4, 4}), {12, 23, 35});
  // A step in height is 3 mm, of which one in width has 1.
  expect_point(Warp(crop, drawn, {1, 3, 1}, kDisplacements).source({2, 4, 4}), {12, 23, 37});
  drawn.angles = {0, 0, std::numbers::pi / 2};  // about width: depth and height
  expect_point(Warp(crop, drawn, ones, kDisplacements).source({3, 3, 6}), {12, 24, 36});
  drawn = unchanged(3);
  drawn.scale = 2;  // what is shown is twice as large: half as far from the middle
  expect_point(Warp(crop, drawn, ones, kDisplacements).source({4, 3, 0}), {13, 23, 32});
}

TEST(Warp, DisplacementsAreCubicSplinesOfRandomNumbersAtFixedPlaces) {
  const Box crop{{0, 0}, {9, 12}};
  Warp::Drawn drawn = unchanged(2);
  drawn.elastic = 1.5;
  drawn.elastic_spacing = 4;
  drawn.position = {7, 3, 0};
  const Warp warp(crop, drawn, {1, 1}, kDisplacements);
  const std::int64_t rows = 3 + 3, columns = 3 + 3;  // ⌈9/4⌉ + 3, 12/4 + 3
  const auto basis = [](double t) {                  // the cubic B-spline around 0
    const double x = std::abs(t);
    return x < 1 ? 2.0 / 3 - x * x + x * x * x / 2 : x < 2 ? (2 - x) * (2 - x) * (2 - x) / 6 : 0.0;
  };
  double worst = 0, largest = 0;
  for (std::int64_t y = 0; y < 9; ++y) {
    for (std::int64_t x = 0; x < 12; ++x) {
      Warp::Point wanted = {static_cast<double>(y), static_cast<double>(x), 0};
      for (std::int64_t i = 0; i < rows; ++i) {
        for (std::int64_t j = 0; j < columns; ++j) {
          const double weight = basis(static_cast<double>(y) / 4 - static_cast<double>(i - 1)) *
                                basis(static_cast<double>(x) / 4 - static_cast<double>(j - 1));
          for (std::uint64_t d = 0; d < 2; ++d) {
            const auto element = static_cast<std::uint64_t>(i * columns + j) * 2 + d;
            wanted[d] += weight * 1.5 * kDisplacements.normal({7, 3, 0}, element);
          }
        }
      }
      const Warp::Point found = warp.source({y, x});
      worst = std::max({worst, std::abs(found[0] - wanted[0]), std::abs(found[1] - wanted[1])});
      largest = std::max(largest, std::abs(found[0] - static_cast<double>(y)));
    }
  }
  std::printf("displacements up to %.2f points, off by %.1e\n", largest, worst);
  EXPECT_LE(worst, 1e-12);
  EXPECT_GT(largest, 0.5);
}

TEST(Interpolation, IsLinearBetweenPointsAndKeepsToTheImage) {
  const Shape image{5, 6};
  const auto value = [](std::int64_t y, std::int64_t x) { return std::sin(1.0 + 2 * y + 0.7 * x); };
  const std::vector<Warp::Point> points = {{1.25, 2.5}, {0, 0}, {4, 5}, {-3, 2.25}, {9.5, 7.5}, {3.999, 4.5}};
  for (const bool nearest : {false, true}) {
    const Interpolation between(Box::whole(image), nearest);
    const Box held = between.needed(points);
    std::vector<double> values;
    for (std::int64_t y = held.begin[0]; y < held.end(0); ++y)
      for (std::int64_t x = held.begin[1]; x < held.end(1); ++x) values.push_back(value(y, x));
    EXPECT_EQ(intersect(held, Box::whole(image)), held);
    const Interpolation within({{1, 2}, {2, 3}}, nearest);
    EXPECT_EQ(within.needed(points), (Box{{1, 2}, {2, 3}}));
    for (const Warp::Point& point : points) {
      const double y = std::clamp(point[0], 0.0, 4.0), x = std::clamp(point[1], 0.0, 5.0);
      const auto top = static_cast<std::int64_t>(std::min(y, 3.0)),
                 left = static_cast<std::int64_t>(std::min(x, 4.0));
      const double v = y - static_cast<double>(top), u = x - static_cast<double>(left);
      const double linear = (1 - v) * ((1 - u) * value(top, left) + u * value(top, left + 1)) +
                            v * ((1 - u) * value(top + 1, left) + u * value(top + 1, left + 1));
      const double wanted =
          nearest ? value(static_cast<std::int64_t>(std::floor(y + 0.5)),
                          std::min<std::int64_t>(5, static_cast<std::int64_t>(std::floor(x + 0.5))))
                  : linear;
      EXPECT_NEAR(between.at(point, held, values), wanted, 1e-14);
    }
  }
}

TEST(Blur, IsTheNormalisedGaussianOfThePlainLoop) {
  const double deviation = 0.8;
  const std::int64_t reach = blur_reach(deviation), rows = 11, columns = 10;
  ASSERT_EQ(reach, 3);
  std::vector<double> values;
  for (int i = 0; i < rows * columns; ++i) values.push_back(std::cos(0.9 * i));
  const std::vector<double> found = blurred(values, {rows, columns}, deviation);
  ASSERT_EQ(std::ssize(found), (rows - 6) * (columns - 6));
  for (std::int64_t y = 0; y < rows - 6; ++y) {
    for (std::int64_t x = 0; x < columns - 6; ++x) {
      double sum = 0, weights = 0;
      for (std::int64_t i = -3; i <= 3; ++i) {
        for (std::int64_t j = -3; j <= 3; ++j) {
          const double weight = std::exp(-0.5 * static_cast<double>(i * i + j * j) / (deviation * deviation));
          sum += weight * values[static_cast<std::size_t>((y + 3 + i) * columns + x + 3 + j)];
          weights += weight;
        }
      }
      EXPECT_NEAR(found[static_cast<std::size_t>(y * (columns - 6) + x)], sum / weights, 1e-14);
    }
  }
  EXPECT_EQ(blurred(values, {rows, columns}, 0.0), values);
}

TEST(Gamma, KeepsTheEndsAndWhatLiesBeyond) {
  EXPECT_DOUBLE_EQ(gamma_of(0, 2), 6 * 0.25 - 3);
  EXPECT_DOUBLE_EQ(gamma_of(1.5, 0.5), 6 * std::sqrt(0.75) - 3);
  for (const double fixed : {-3.0, 3.0, 4.5, -7.0}) EXPECT_EQ(gamma_of(fixed, 1.7), fixed);
}

DataOptions labelled_volume() {
  DataOptions options;
  options.task = Task::kMap;
  options.files = {"volume.h5"};
  options.variables = {{"scan/density", {}}};
  options.targets = {{"labels", {}}};
  options.dims = {ImageDim::kDepth, ImageDim::kHeight, ImageDim::kWidth};
  options.train = {SliceRanges{{{ImageDim::kDepth, {0, 7}}}}};
  options.crop = {5, 4, 6};
  options.classes = 3;
  options.ignore_index = 255;
  options.flips = {ImageDim::kWidth};
  options.augment.rotation = {20};
  options.augment.scale = {0.8, 1.25};
  options.augment.elastic = 1;
  options.augment.elastic_spacing = 3;
  options.augment.gamma = {0.7, 1.5};
  options.augment.noise = 0.2;
  options.augment.blur = 1;
  return options;
}

void with_data(const DataOptions& options, const std::function<void(ImageData&)>& use) {
  run_ranks(1, [&](Communicator& world) {
    ImageData data(options, fixture("images/"), 1, {}, world);
    use(data);
  });
}

SampleRequest request_of(const Box& box) {
  SampleRequest request;
  request.samples = {0, 1, 2, 3};
  request.position = {4, 8, 0};
  request.input = request.target = box;
  request.dtype = DType::kFloat64;
  return request;
}

TEST(AugmentedImages, PiecesAreCutsOfTheWhole) {
  const Context context = Context::make_host(Backend::kReference, 1);
  with_data(labelled_volume(), [&](ImageData& data) {
    const Box whole = Box::whole({4, 5, 4, 6, 1});
    const Batch all = data.open_reader()->read(request_of(whole), context);
    const Shape strides = whole.extent.strides();
    std::int64_t compared = 0, ignored = 0;
    for (const Box& piece : std::vector<Box>{{{0, 0, 0, 0, 0}, {4, 3, 4, 6, 1}},
                                             {{2, 3, 1, 2, 0}, {2, 2, 3, 4, 1}},
                                             {{1, 0, 0, 5, 0}, {3, 5, 4, 1, 1}}}) {
      const Batch part = data.open_reader()->read(request_of(piece), context);
      for (std::int64_t i = 0; i < piece.extent.count(); ++i, ++compared) {
        std::int64_t rest = i, index = 0;
        for (int d = 4; d >= 0; --d) {
          index += (piece.begin[d] + rest % piece.extent[d]) * strides[d];
          rest /= piece.extent[d];
        }
        EXPECT_EQ(HostView<double>(part.input)[static_cast<std::size_t>(i)],
                  HostView<double>(all.input)[static_cast<std::size_t>(index)]);
        const double label = HostView<double>(part.targets[0])[static_cast<std::size_t>(i)],
                     same = HostView<double>(all.targets[0])[static_cast<std::size_t>(index)];
        ignored += std::isnan(label) ? 1 : 0;
        EXPECT_TRUE(label == same || (std::isnan(label) && std::isnan(same)));
        EXPECT_TRUE(std::isnan(label) || label == 0 || label == 1 || label == 2) << label;
      }
    }
    EXPECT_LT(ignored, compared / 2);
  });
}

// As training reads: whichever thread takes a step, and a reader of its own for each.
TEST(AugmentedImages, AreTheSameWithAnyNumberOfWorkers) {
  const Context context = Context::make_host(Backend::kReference, 1);
  DataOptions options = labelled_volume();
  options.augment.foreground = 0.5;
  with_data(options, [&](ImageData& data) {
    constexpr std::int64_t kSteps = 12;
    const auto batches = [&](std::size_t workers) {
      Prefetch prefetch(
          [&](std::int64_t step) {
            SampleRequest request = request_of(Box::whole({4, 5, 4, 6, 1}));
            request.position.step = static_cast<std::uint64_t>(step);
            return data.open_reader()->read(request, context);
          },
          0, kSteps, {workers + 1, workers});
      std::vector<double> values;
      for (std::int64_t step = 0; step < kSteps; ++step) {
        const Batch batch = prefetch.next();
        const HostView<double> input(batch.input);
        for (std::int64_t i = 0; i < batch.input.count(); ++i) values.push_back(input[i]);
      }
      return values;
    };
    const std::vector<double> one = batches(1);
    ASSERT_EQ(one.size(), static_cast<std::size_t>(kSteps * 4 * 5 * 4 * 6));
    EXPECT_NE(std::vector(one.begin(), one.begin() + 480), std::vector(one.begin() + 480, one.begin() + 960));
    EXPECT_EQ(batches(4), one);
  });
}

/// What a warp says of a sample is what the reader gives, as far as nothing else changes it.
TEST(AugmentedImages, HoldWhatStandsAtTheWarpedPlaces) {
  DataOptions options = labelled_volume();
  options.augment.gamma.clear();
  options.augment.noise = options.augment.blur = 0;
  options.augment.probability = 0.7;
  const Context context = Context::make_host(Backend::kReference, 1);
  with_data(options, [&](ImageData& data) {
    const Shape image = data.files().extents(0);
    std::vector<double> density(static_cast<std::size_t>(image.count())), labels(density.size());
    data.files().read(data.channels().inputs[0].field, 0, Box::whole(image), density);
    data.files().read(data.channels().targets[0].field, 0, Box::whole(image), labels);
    const FieldStatistics& statistics = data.statistics().of(data.channels().inputs[0].field);
    const Batch batch = data.open_reader()->read(request_of(Box::whole({4, 5, 4, 6, 1})), context);
    int warped = 0;
    for (std::int64_t b = 0; b < 4; ++b) {
      const ImageSample sample = data.sample(Split::kTrain, b, {4, 8 + static_cast<std::uint64_t>(b), 0});
      if (!sample.warp) continue;
      ++warped;
      EXPECT_EQ(sample.part, (Box{{0, 0, 0}, {8, 9, 10}})) << "slices of validation are not seen";
      for (std::int64_t i = 0; i < 120; ++i) {
        const Warp::Point point = sample.warp->source({i / 24, i / 6 % 4, i % 6});
        const double value = Interpolation(sample.part, false).at(point, Box::whole(image), density),
                     label = Interpolation(sample.part, true).at(point, Box::whole(image), labels);
        const auto at = static_cast<std::size_t>(b * 120 + i);
        EXPECT_EQ(HostView<double>(batch.input)[at],
                  std::isnan(value) ? 0.0 : (value - statistics.mean) * (1 / statistics.deviation));
        const double target = HostView<double>(batch.targets[0])[at];
        EXPECT_TRUE(label == 255 ? std::isnan(target) : target == label);
      }
    }
    EXPECT_GE(warped, 2);
  });
}

/// With data.spacing a sample's points lie as far apart along every dim, whatever the file's do.
TEST(AugmentedImages, TurnInTheCommonSpacing) {
  DataOptions options;
  options.task = Task::kDenoise;
  options.noise_sigma = 1;
  options.files = {"volume.nii"};
  options.variables = {{"image", {}}};
  options.dims = {ImageDim::kDepth, ImageDim::kHeight, ImageDim::kWidth};
  options.train = {SliceRanges{{{ImageDim::kSample, {0, 0}}}}};
  options.spacing = {1, 1, 1};
  options.crop = {3, 3, 3};
  options.augment.rotation = {0, 45, 0};
  options.augment.probability = 1;
  with_data(options, [&](ImageData& data) {
    const std::vector<double> own = data.files().source("image", 0).spacing;
    ASSERT_EQ(own.size(), 3U);
    ASSERT_NE(own[0], own[2]);
    const ImageSample sample = data.sample(Split::kTrain, 0, {4, 8, 0});
    ASSERT_TRUE(sample.warp);
    const Warp::Point from = sample.warp->source({0, 0, 0});
    for (const Shape& next : {Shape{1, 0, 0}, Shape{0, 1, 0}, Shape{0, 0, 1}}) {
      const Warp::Point to = sample.warp->source(next);
      EXPECT_NEAR(std::hypot(to[0] - from[0], to[1] - from[1], to[2] - from[2]), 1, 1e-12);
    }
  });
}

/// MONAI's RandScaleIntensity and RandShiftIntensity: one factor and one summand for a whole sample.
TEST(AugmentedImages, AreBrighterAndShifted) {
  DataOptions plain_options = labelled_volume();
  plain_options.augment = {};
  DataOptions options = plain_options;
  options.augment.brightness = {1.5, 1.5};
  options.augment.shift = 0.5;
  const Context context = Context::make_host(Backend::kReference, 1);
  const auto inputs = [&](ImageData& data, std::uint64_t step) {
    SampleRequest request = request_of(Box::whole({1, 5, 4, 6, 1}));
    request.samples = {0};
    request.position = {step, 0, 0};
    const Batch batch = data.open_reader()->read(request, context);
    const HostView<double> found(batch.input);
    return std::vector<double>(found.begin(), found.end());
  };
  for (const int ranks : {1, 3}) {
    run_ranks(ranks, [&](Communicator& world) {
      ImageData unchanged(plain_options, fixture("images/"), 1, {}, world),
          data(options, fixture("images/"), 1, {}, world);
      const std::vector<double> plain = inputs(unchanged, 3), changed = inputs(data, 3);
      const double shift = data.sample(Split::kTrain, 0, {3, 0, 0}).shift;
      EXPECT_TRUE(shift != 0 && std::abs(shift) <= 0.5) << shift;
      for (std::size_t i = 0; i < plain.size(); ++i) {
        const bool known = plain[i] != 0;
        ASSERT_NEAR(changed[i], known ? 1.5 * plain[i] + shift : 0, 1e-12);
      }
      EXPECT_NE(shift, data.sample(Split::kTrain, 0, {4, 0, 0}).shift);
    });
  }
}

TEST(AugmentedImages, DrawEachChangeWithItsProbability) {
  DataOptions options = labelled_volume();
  options.augment.probability = 0.25;
  options.augment.probabilities = {{"gamma", 0.75}, {"shift", 0}};
  options.augment.brightness = {1.25, 2};
  options.augment.shift = 1;
  with_data(options, [&](ImageData& data) {
    double brightnesses = 0, gammas = 0, noises = 0, blurs = 0, changed = 0;
    constexpr int kSamples = 2000;
    for (std::uint64_t step = 0; step < kSamples; ++step) {
      const ImageSample sample = data.sample(Split::kTrain, 0, {step, 0, 0});
      gammas += sample.gamma != 1 ? 1.0 / kSamples : 0;
      noises += sample.noise > 0 ? 1.0 / kSamples : 0;
      blurs += sample.blur > 0 ? 1.0 / kSamples : 0;
      changed += sample.warp ? 1.0 / kSamples : 0;
      brightnesses += sample.brightness != 1 ? 1.0 / kSamples : 0;
      EXPECT_TRUE(sample.brightness == 1 || (sample.brightness >= 1.25 && sample.brightness <= 2));
      EXPECT_EQ(sample.shift, 0);
      EXPECT_LE(sample.noise, 0.2);
      EXPECT_TRUE(sample.gamma >= 0.7 && sample.gamma <= 1.5);
    }
    for (const double share : {brightnesses, noises, blurs}) EXPECT_NEAR(share, 0.25, 0.05);
    EXPECT_NEAR(gammas, 0.75, 0.05);
    EXPECT_NEAR(changed, 1 - std::pow(0.75, 4), 0.05);  // one of rotation, scale, elastic and blur
  });
}

TEST(AugmentedImages, CropsHoldForegroundInTheShareAskedFor) {
  DataOptions options = labelled_volume();
  options.augment = {};
  options.crop = {1, 1, 1};
  for (const double share : {0.0, 0.5, 1.0}) {
    options.augment.foreground = share;
    for (const int ranks : {1, 3}) {
      run_ranks(ranks, [&](Communicator& world) {
        const ImageData data(options, fixture("images/"), 1, {}, world);
        const Field field = data.channels().targets[0].field;
        double held = 0, first = 0, all = 0, ones = 0, others = 0;
        std::vector<double> label(1);
        constexpr int kSamples = 1000;
        for (std::uint64_t step = 0; step < kSamples; ++step) {
          const ImageSample sample = data.sample(Split::kTrain, 0, {step, 0, 0});
          EXPECT_LE(sample.box.end(0), 8);
          data.files().read(field, 0, sample.box, label);
          held += label[0] == 1 || label[0] == 2 ? 1 : 0;
          first += label[0] == 1 ? 1 : 0;
        }
        held /= kSamples;
        first /= kSamples;
        for (const double count : data.label_counts(world)) {
          all += count;
          (ones == 0 ? ones : others) += count;  // class 0, and the other two
        }
        const double by_chance = others / all, expected = share + (1 - share) * by_chance;
        if (world.rank() == 0)
          std::printf("share %.1f: %.3f of the crops hold foreground, %.3f expected\n", share, held,
                      expected);
        EXPECT_NEAR(held, expected, 0.06);
        if (share == 1) {
          EXPECT_EQ(held, 1.0);
          EXPECT_NEAR(first, 0.5, 0.06) << "each class is as likely";
        }
      });
    }
  }
}

}  // namespace augmentation_test
}  // namespace jigsaw
