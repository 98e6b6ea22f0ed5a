// Images of a map whose values are transformed: statistics, batches and what stands beside other
// normalisations, against plain loops over what was written, on several ranks.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "array/host_view.h"
#include "base/error.h"
#include "base/text.h"
#include "comm/thread/run_ranks.h"
#include "files/image_output.h"
#include "images/image_data.h"
#include "images/window_reader.h"
#include "io/fixtures.h"
#include "support/temporary_folder.h"

namespace jigsaw {
namespace image_transform_test {

using testing::TemporaryFolder;

constexpr std::int64_t kSamples = 3, kHeight = 6, kWidth = 8, kPoints = kHeight * kWidth;
constexpr double kEpsilon = 1e-4, kOffset = 0.01, kLambda = 0.3;

/// Six decades, as float32 has them; some points of "x" are 0, one is missing, and one of "y" is negative.
double value(std::int64_t sample, std::int64_t point, char field) {
  if (field == 'x' && point % 11 == 3) return 0;
  if (field == 'x' && sample == 1 && point == 20) return std::nan("");
  if (field == 'y' && sample != 1 && point == 9) return -50;
  const auto step = static_cast<double>((point * 7 + sample * 3 + (field == 'x' ? 0 : 5)) % 13);
  return static_cast<float>(std::pow(10, 0.5 * step - 3) * (1 + 0.01 * static_cast<double>(point)));
}
double log_of(double x) {
  return std::isnan(x) ? x : std::log(std::max(x, 0.0) + kEpsilon);
}
double power_of(double y) {
  return (std::pow(std::max(y, 0.0) + kOffset, kLambda) - 1) / kLambda;
}

class ImageTransforms : public ::testing::Test {
 protected:
  void SetUp() override {
    const Shape shape{kSamples, kHeight, kWidth};
    const auto image = [&](const char* name) {
      return OutputImage{name, OutputImage::Type::kFloat, {"s", "y", "x"}, shape, {{"units", "kg m-3"}}, {}};
    };
    const auto out =
        create_image_output(ImageFormat::kHdf5, folder_.path() + "/images.h5", {image("x"), image("y")}, {});
    for (const std::size_t which : {0U, 1U}) {
      std::vector<float> values;
      for (std::int64_t s = 0; s < kSamples; ++s)
        for (std::int64_t i = 0; i < kPoints; ++i)
          values.push_back(static_cast<float>(value(s, i, which == 0 ? 'x' : 'y')));
      out->write(which, Box::whole(shape), values);
    }
    out->finish();
  }

  static DataOptions options() {
    DataOptions options;
    options.task = Task::kMap;
    options.files = {"images.h5"};
    options.variables = {{"x", {}}};
    options.targets = {{"y", {}}};
    options.dims = {ImageDim::kSample, ImageDim::kHeight, ImageDim::kWidth};
    options.train = {SliceRanges{{{ImageDim::kSample, {0, 1}}}}};
    options.valid = {SliceRanges{{{ImageDim::kSample, {2, 2}}}}};
    options.transforms = {{"x", {TransformKind::kLog, kEpsilon}},
                          {"y", {TransformKind::kBoxCox, kOffset, kLambda}}};
    options.clamp = {{"y", {1e-3, 500}}};
    return options;
  }
  /// Rows of a sample that this rank has, of two.
  static SampleRequest rows_of(Communicator& world, Split split, std::int64_t sample) {
    SampleRequest request;
    request.split = split;
    request.samples = {sample};
    const std::int64_t rows = kHeight / world.size();
    request.input = request.target = {{0, rows * world.rank(), 0, 0}, {1, rows, kWidth, 1}};
    request.dtype = DType::kFloat64;
    return request;
  }
  std::string path() const { return folder_.path(); }

  TemporaryFolder folder_;
};

struct Of {
  double mean = 0, deviation = 0;
};
Of moments_of(std::vector<double> values) {
  std::erase_if(values, [](double v) { return std::isnan(v); });
  Of of;
  for (const double v : values) of.mean += v / static_cast<double>(values.size());
  for (const double v : values)
    of.deviation += (v - of.mean) * (v - of.mean) / static_cast<double>(values.size());
  of.deviation = std::sqrt(of.deviation);
  return of;
}

TEST_F(ImageTransforms, StatisticsAndBatchesAreOfTransformedValuesOnAnyNumberOfRanks) {
  std::vector<double> xs, ys;
  for (std::int64_t s = 0; s < 2; ++s)
    for (std::int64_t i = 0; i < kPoints; ++i) {
      xs.push_back(log_of(value(s, i, 'x')));
      ys.push_back(power_of(value(s, i, 'y')));
    }
  const Of x = moments_of(xs), y = moments_of(ys);
  for (const int ranks : {1, 2}) {
    run_ranks(ranks, [&](Communicator& world) {
      ImageData data(options(), path(), 1, {}, world);
      const FieldStatistics &of_x = data.statistics().fields.at("x"),
                            &of_y = data.statistics().fields.at("y");
      EXPECT_NEAR(of_x.mean, x.mean, 1e-12);
      EXPECT_NEAR(of_x.deviation, x.deviation, 1e-12);
      EXPECT_NEAR(of_y.mean, y.mean, 1e-12);
      EXPECT_NEAR(of_y.deviation, y.deviation, 1e-12);
      EXPECT_EQ(of_x.transform, "log(x + 0.0001)");
      EXPECT_EQ(of_x.units, "kg m-3");
      const SeenValues& seen = data.statistics().seen.at("y");
      EXPECT_NEAR(seen.below, 1.0 / (2 * kPoints), 1e-15);
      EXPECT_EQ(seen.lowest, -50);
      EXPECT_EQ(data.channels().targets[0].range.high, 500);
      for (const Split split : {Split::kTrain, Split::kValid}) {
        const std::int64_t sample = split == Split::kValid ? 2 : 1;
        SampleRequest request = rows_of(world, split, split == Split::kValid ? 0 : 1);
        const auto reader = data.open_reader();
        EXPECT_TRUE(reader->read(request, world.context()).states.empty());
        request.origin = true;
        const Batch batch = reader->read(request, world.context());
        const std::int64_t first = request.input.begin[1] * kWidth;
        for (std::int64_t i = 0; i < request.input.extent.count(); ++i) {
          const auto at = static_cast<std::size_t>(i);
          const double in = log_of(value(sample, first + i, 'x')), out = value(sample, first + i, 'y');
          EXPECT_NEAR(HostView<const double>(batch.input)[at],
                      std::isnan(in) ? 0 : (in - x.mean) / x.deviation, 1e-12);
          EXPECT_NEAR(HostView<const double>(batch.targets[0])[at], (power_of(out) - y.mean) / y.deviation,
                      1e-12);
          EXPECT_EQ(HostView<const double>(batch.state(0))[at], out) << "as the file holds it";
        }
      }
      // What a trained model sees.
      const ImageWindow window{0, 2, Box::whole({kHeight, kWidth})};
      const SampleRequest request = rows_of(world, Split::kValid, 0);
      const Array seen_by_model =
          WindowReader(data, false)
              .read(std::span(&window, 1), request.input, DType::kFloat64, world.context());
      for (std::int64_t i = 0; i < request.input.extent.count(); ++i)
        EXPECT_NEAR(HostView<const double>(seen_by_model)[static_cast<std::size_t>(i)],
                    (log_of(value(2, request.input.begin[1] * kWidth + i, 'x')) - x.mean) / x.deviation,
                    1e-12);
    });
  }
}

TEST_F(ImageTransforms, ComeBeforeWhatNormalisesImages) {
  const double kLow = 0.01, kHigh = 20;
  run_ranks(2, [&](Communicator& world) {
    const auto expect = [&](const DataOptions& of, const auto& wanted) {
      ImageData data(of, path(), 1, {}, world);
      const SampleRequest request = rows_of(world, Split::kValid, 0);
      const Batch batch = data.open_reader()->read(request, world.context());
      const std::int64_t first = request.input.begin[1] * kWidth;
      for (std::int64_t i = 0; i < request.input.extent.count(); ++i)
        EXPECT_NEAR(HostView<const double>(batch.input)[static_cast<std::size_t>(i)],
                    wanted(value(2, first + i, 'x')), 1e-11)
            << value(2, first + i, 'x');
      return data.statistics().fields.at("x");
    };
    const auto clipped = [&](double x) { return std::isnan(x) ? x : std::clamp(x, kLow, kHigh); };
    std::vector<double> all, others, of_training;
    for (std::int64_t i = 0; i < kPoints; ++i) {
      all.push_back(log_of(value(2, i, 'x')));
      if (value(2, i, 'x') != 0) others.push_back(all.back());
      for (const std::int64_t s : {0, 1}) of_training.push_back(log_of(clipped(value(s, i, 'x'))));
    }
    DataOptions of = options();
    of.intensity = ImageIntensity::kZScore;
    const Of own = moments_of(all);
    expect(of, [&](double x) { return (log_of(x) - own.mean) / own.deviation; });
    // 0 stays 0, and counts in neither mean nor deviation.
    of.intensity = ImageIntensity::kZScoreNonzero;
    const Of nonzero = moments_of(others);
    expect(of, [&](double x) { return x == 0 ? 0 : (log_of(x) - nonzero.mean) / nonzero.deviation; });
    of.intensity = ImageIntensity::kPercentiles;
    of.percentiles = {0, 100};
    const double least = std::ranges::min(all), most = std::ranges::max(all);
    expect(of, [&](double x) { return 2 * (log_of(x) - least) / (most - least) - 1; });
    // The ends of a clip are in the unit of the files, mean and deviation of transformed values.
    of.intensity = ImageIntensity::kDataSet;
    of.intensities = {{"x", {{kLow, kHigh}}}};
    const Of clips = moments_of(of_training);
    const FieldStatistics found =
        expect(of, [&](double x) { return (log_of(clipped(x)) - clips.mean) / clips.deviation; });
    EXPECT_EQ(found.transform, "clip(x, 0.01, 20), log(x + 0.0001)");
    of.intensities = {{"x", {{kLow, kHigh}, -1.0, 2.5}}};
    expect(of, [&](double x) { return (log_of(clipped(x)) + 1) / 2.5; });
    // Normalisations of their own.
    of.intensities.clear();
    of.transforms["x"] = {TransformKind::kMinMax};
    std::vector<double> plain;
    for (std::int64_t i = 0; i < 2 * kPoints; ++i) plain.push_back(value(i / kPoints, i % kPoints, 'x'));
    std::erase_if(plain, [](double v) { return std::isnan(v); });
    const double lowest = std::ranges::min(plain), largest = std::ranges::max(plain);
    expect(of, [&](double x) { return (x - lowest) / (largest - lowest); });
    of.transforms["x"] = {TransformKind::kNone};
    const FieldStatistics none = expect(of, [](double x) { return x; });
    EXPECT_EQ(none.mean, 0);
    EXPECT_EQ(none.deviation, 1);
  });
}

TEST_F(ImageTransforms, AreRefusedWhereTheyMeanNothing) {
  run_ranks(2, [&](Communicator& world) {
    const auto says = [&](const DataOptions& of, const DataUse& use = {}) {
      try {
        ImageData(of, path(), 1, {}, world, use);
      } catch (const Error& error) {
        return std::string(error.what());
      }
      return std::string();
    };
    DataOptions of = options();
    EXPECT_EQ(says(of), "");
    of.transforms["density"] = {TransformKind::kSqrt};
    EXPECT_EQ(says(of), "data.transforms names density, which is no variable or channel; known: x, y");
    of = options();
    of.clamp = {{"x", {0, 1}}};
    EXPECT_EQ(says(of).find("data.clamp names x, which is no target"), 0U) << says(of);
    of = options();
    of.transforms["x"] = {TransformKind::kMinMax};
    of.intensity = ImageIntensity::kZScore;
    EXPECT_EQ(says(of),
              "data.transforms says \"min_max\" of x, which is how it is normalised, and so does "
              "data.intensity; leave one of them out");
    of.intensity = ImageIntensity::kDataSet;
    of.intensities = {{"x", {{}, 1.0, 2.0}}};
    EXPECT_NE(says(of).find("and so does data.intensities"), std::string::npos) << says(of);
    // Statistics of other values.
    DataUse use;
    use.statistics = ImageData(options(), path(), 1, {}, world).statistics();
    EXPECT_EQ(says(options(), use), "");
    of = options();
    of.transforms["y"] = {TransformKind::kSqrt};
    EXPECT_EQ(says(of, use),
              "the statistics of y are of ((x + 0.01)^0.3 - 1)/0.3, and with data.transforms they are of "
              "sqrt(x); data.normalization \"auto\" computes them anew");
  });
}

}  // namespace image_transform_test
}  // namespace jigsaw
