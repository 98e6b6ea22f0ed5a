// What inputs of images are normalised by, against plain loops, on several ranks.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "array/host_view.h"
#include "base/error.h"
#include "base/text.h"
#include "comm/thread/run_ranks.h"
#include "images/image_data.h"
#include "io/fixtures.h"

namespace jigsaw {
namespace image_intensity_test {

/// A volume of [11, 9, 10] points, of which some are missing, and its labels: one crop.
DataOptions whole_volume() {
  DataOptions options;
  options.task = Task::kMap;
  options.files = {"volume.h5"};
  options.variables = {{"scan/density", {}}};
  options.targets = {{"labels", {}}};
  options.dims = {ImageDim::kDepth, ImageDim::kHeight, ImageDim::kWidth};
  options.train = {SliceRanges{}};
  options.crop = {11, 9, 10};
  options.classes = 3;
  options.ignore_index = 255;
  return options;
}

SampleRequest whole_request() {
  SampleRequest request;
  request.samples = {0};
  request.position = {4, 8, 0};
  request.input = request.target = Box::whole({1, 11, 9, 10, 1});
  request.dtype = DType::kFloat64;
  return request;
}

TEST(ImageIntensity, IsThatOfEachImage) {
  DataOptions options = whole_volume();
  const Context context = Context::make_host(Backend::kReference, 1);
  for (const ImageIntensity intensity : {ImageIntensity::kZScore, ImageIntensity::kPercentiles}) {
    options.intensity = intensity;
    options.percentiles = {10, 95};
    for (const int ranks : {1, 3}) {
      run_ranks(ranks, [&](Communicator& world) {
        ImageData data(options, fixture("images/"), 1, {}, world);
        std::vector<double> values(990);
        data.files().read(data.channels().inputs[0].field, 0, Box::whole({11, 9, 10}), values);
        const Batch batch = data.open_reader()->read(whole_request(), context);
        std::vector<double> known = values;
        std::erase_if(known, [](double value) { return std::isnan(value); });
        std::sort(known.begin(), known.end());
        double mean = 0, squares = 0;
        for (const double value : known) mean += value / static_cast<double>(known.size());
        for (const double value : known)
          squares += (value - mean) * (value - mean) / static_cast<double>(known.size());
        const double low = known[static_cast<std::size_t>(0.1 * static_cast<double>(known.size()))],
                     high = known[static_cast<std::size_t>(0.95 * static_cast<double>(known.size()))];
        for (std::size_t i = 0; i < values.size(); ++i) {
          const double found = HostView<double>(batch.input)[i];
          if (std::isnan(values[i])) {
            EXPECT_EQ(found, 0);
          } else if (intensity == ImageIntensity::kZScore) {
            EXPECT_NEAR(found, (values[i] - mean) / std::sqrt(squares), 1e-12);
          } else {
            const double share = (std::clamp(values[i], low, high) - low) / (high - low);
            EXPECT_NEAR(found, 2 * share - 1, 0.02);  // percentiles of a thousand points, in bins
            EXPECT_LE(std::abs(found), 1 + 1e-12);
          }
        }
      });
    }
  }
}

/// data.intensities before and in place of data.intensity: clipped values, their statistics and given ones.
TEST(ImageIntensity, IsClippedAndGiven) {
  const DataOptions shared = whole_volume();
  const std::string name = shared.variables[0].name;
  const Context context = Context::make_host(Backend::kReference, 1);
  const auto inputs = [&](Communicator& world, const DataOptions& options, std::vector<double>& values,
                          Statistics& statistics) {
    ImageData data(options, fixture("images/"), 1, {}, world);
    statistics = data.statistics();
    values.resize(990);
    data.files().read(data.channels().inputs[0].field, 0, Box::whole({11, 9, 10}), values);
    const Batch batch = data.open_reader()->read(whole_request(), context);
    const HostView<double> found(batch.input);
    return std::vector<double>(found.begin(), found.end());
  };
  run_ranks(2, [&](Communicator& world) {
    DataOptions options = shared;  // of this rank, which is a thread
    std::vector<double> values, known;
    Statistics statistics;
    inputs(world, options, values, statistics);
    for (const double value : values)
      if (!std::isnan(value)) known.push_back(value);
    std::sort(known.begin(), known.end());
    const double low = known[known.size() / 5], high = known[known.size() * 3 / 4];
    for (double& value : known) value = std::clamp(value, low, high);
    double mean = 0, squares = 0;
    for (const double value : known) mean += value / static_cast<double>(known.size());
    for (const double value : known)
      squares += (value - mean) * (value - mean) / static_cast<double>(known.size());
    // In the first two the mean of what is clipped; of all training parts, which are the one image, or its
    // own.
    for (const ImageIntensity intensity :
         {ImageIntensity::kDataSet, ImageIntensity::kZScore, ImageIntensity::kPercentiles}) {
      options.intensity = intensity;
      options.percentiles = {0, 100};
      options.intensities = {{name, {{low, high}}}};
      const std::vector<double> found = inputs(world, options, values, statistics);
      const bool ends = intensity == ImageIntensity::kPercentiles;
      const double shift = ends ? (low + high) / 2 : mean,
                   scale = ends ? 2 / (high - low) : 1 / std::sqrt(squares);
      for (std::size_t i = 0; i < values.size(); ++i) {
        const double wanted = std::isnan(values[i]) ? 0 : (std::clamp(values[i], low, high) - shift) * scale;
        ASSERT_NEAR(found[i], wanted, 1e-12) << i;
      }
      EXPECT_NEAR(statistics.fields.at(name).mean, mean, 1e-12);
      options.intensities = {{name, {{low, std::numeric_limits<double>::infinity()}, 0.5, 4.0}}};
      const std::vector<double> others = inputs(world, options, values, statistics);
      for (std::size_t i = 0; i < values.size(); ++i)
        ASSERT_NEAR(others[i], std::isnan(values[i]) ? 0 : (std::max(values[i], low) - 0.5) / 4, 1e-12) << i;
      EXPECT_EQ(statistics.fields.at(name).mean, 0.5);
      EXPECT_EQ(statistics.fields.at(name).deviation, 4);
    }
    options.intensities = {{"other", {{low, high}}}};
    try {
      inputs(world, options, values, statistics);
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.what(), concat("data.intensities names other, which is no input; known: ", name));
    }
    options.intensities = {{name, {{low, high}}}};
    options.targets = options.variables;
    options.classes = 0;
    options.ignore_index.reset();
    try {
      inputs(world, options, values, statistics);
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("which is a target, too"), std::string::npos) << error.what();
    }
  });
}

/// Statistics are of values with or without a clip; what is given needs none, but some value.
TEST(ImageIntensity, StatisticsKnowTheirClip) {
  const DataOptions options = whole_volume();
  const std::string name = options.variables[0].name;
  run_ranks(2, [&](Communicator& world) {
    DataOptions own = options;
    own.intensities = {{name, {{0, 1}}}};
    const Statistics clipped = ImageData(own, fixture("images/"), 1, {}, world).statistics();
    EXPECT_EQ(clipped.fields.at(name).transform, "clip(x, 0, 1)");
    DataUse use;
    use.statistics = clipped;
    EXPECT_EQ(ImageData(own, fixture("images/"), 1, {}, world, use).statistics(), clipped);
    const auto says = [&] {
      try {
        ImageData(own, fixture("images/"), 1, {}, world, use);
      } catch (const Error& error) {
        return std::string(error.what());
      }
      return std::string();
    };
    own.intensities = {{name, {{0, 2}}}};
    EXPECT_EQ(says(), concat("the statistics of ", name,
                             " are of clip(x, 0, 1), and with data.intensities they are of clip(x, 0, 2); "
                             "data.normalization \"auto\" computes them anew"));
    own.intensities.clear();
    EXPECT_NE(says().find("they are of values as they are"), std::string::npos);
    own.intensities = {{name, {{0, 2}, 1, 2}}};
    EXPECT_EQ(says(), "");
    own.intensities = {{name, {{1e6, 2e6}}}};
    use.statistics.reset();
    EXPECT_NE(says().find("does not vary in data.train with data.intensities, clip(x, "), std::string::npos);
  });
}

/// MONAI's NormalizeIntensity(nonzero=True), by loops: what a clip makes 0 is 0, too.
TEST(ImageIntensity, OfPointsThatAreNotZeroLeavesTheOthersAlone) {
  DataOptions options = whole_volume();
  options.intensity = ImageIntensity::kZScoreNonzero;
  options.intensities = {{options.variables[0].name, {{0, std::numeric_limits<double>::infinity()}}}};
  const Context context = Context::make_host(Backend::kReference, 1);
  run_ranks(3, [&](Communicator& world) {
    ImageData data(options, fixture("images/"), 1, {}, world);
    std::vector<double> values(990), others;
    data.files().read(data.channels().inputs[0].field, 0, Box::whole({11, 9, 10}), values);
    for (double& value : values) {
      if (value < 0) value = 0;
      if (value > 0) others.push_back(value);
    }
    ASSERT_GT(others.size(), 100U);
    ASSERT_GT(std::ranges::count(values, 0.0), 10);
    double mean = 0, squares = 0;
    for (const double value : others) mean += value / static_cast<double>(others.size());
    for (const double value : others)
      squares += (value - mean) * (value - mean) / static_cast<double>(others.size());
    const Batch batch = data.open_reader()->read(whole_request(), context);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double wanted = values[i] > 0 ? (values[i] - mean) / std::sqrt(squares) : 0;
      ASSERT_NEAR(HostView<double>(batch.input)[i], wanted, 1e-12) << i;
    }
    DataOptions changed = options;
    changed.augment.noise = 0.5;
    changed.augment.gamma = {0.5, 0.5};
    ImageData noisy(changed, fixture("images/"), 1, {}, world);
    const Batch other = noisy.open_reader()->read(whole_request(), context);
    for (std::size_t i = 0; i < values.size(); ++i)
      ASSERT_EQ(HostView<double>(other.input)[i] == 0, !(values[i] > 0)) << i;
  });
}

TEST(ImageIntensity, ReadsNoImageWhereThatIsSpared) {
  DataOptions options = whole_volume();
  options.intensity = ImageIntensity::kZScore;
  run_ranks(2, [&](Communicator& world) {
    StatisticsPass pass;
    pass.spared = true;
    const ImageData data(options, fixture("images/"), 1, {}, world, pass);
    EXPECT_EQ(data.bytes_read(), 0);
    EXPECT_EQ(data.scale_of(0, 0).shift, 0);
    EXPECT_EQ(data.scale_of(0, 0).scale, 1);
  });
}

}  // namespace image_intensity_test
}  // namespace jigsaw
