// Sequences whose values are transformed: statistics and batches against plain loops over what was written,
// on several ranks.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "array/host_view.h"
#include "base/error.h"
#include "base/text.h"
#include "comm/thread/run_ranks.h"
#include "files/image_output.h"
#include "images/sequence_data.h"
#include "io/fixtures.h"
#include "support/temporary_folder.h"

namespace jigsaw {
namespace sequence_transform_test {

using testing::TemporaryFolder;

constexpr std::int64_t kSamples = 2, kSteps = 5, kHeight = 4, kWidth = 6, kPoints = kHeight * kWidth;
constexpr double kEpsilon = 1e-5;

/// Densities over six decades, one of them missing and some below 0; "u" of both signs.
double value(std::int64_t sample, std::int64_t step, std::int64_t point, char field) {
  if (field == 'u') return static_cast<float>(std::sin(static_cast<double>(point + 2 * step + sample)));
  if (sample == 0 && step == 2 && point == 7) return std::nan("");
  if (step == 3 && point % 10 == 4) return static_cast<float>(-2.5e-6);
  const auto decade = static_cast<double>((point * 5 + step * 3 + sample) % 13);
  return static_cast<float>(std::pow(10, 0.5 * decade - 4) * (1 + 0.1 * static_cast<double>(step)));
}
/// Constant in time.
double constant(std::int64_t sample, std::int64_t point) {
  return static_cast<float>((point % 7) * (sample + 1));
}
double log_of(double x) {
  return std::isnan(x) ? x : std::log(std::max(x, 0.0) + kEpsilon);
}
/// Of a number of a state, as the model is given it.
double transformed(std::int64_t state, std::int64_t point, char field) {
  const double x = value(state / kSteps, state % kSteps, point, field);
  return field == 'u' ? x : log_of(x);
}

class SequenceTransforms : public ::testing::Test {
 protected:
  void SetUp() override {
    const Shape in_time{kSamples, kSteps, kHeight, kWidth}, of_samples{kSamples, kHeight, kWidth};
    const auto image = [](const char* name, std::vector<std::string> dims, const Shape& shape) {
      return OutputImage{name, OutputImage::Type::kFloat, std::move(dims), shape, {}, {}};
    };
    const auto out = create_image_output(
        ImageFormat::kHdf5, folder_.path() + "/run.h5",
        {image("rho", {"s", "t", "y", "x"}, in_time), image("u", {"s", "t", "y", "x"}, in_time),
         image("m", {"s", "y", "x"}, of_samples)},
        {});
    std::vector<float> rho, u, m;
    for (std::int64_t s = 0; s < kSamples; ++s) {
      for (std::int64_t t = 0; t < kSteps; ++t)
        for (std::int64_t i = 0; i < kPoints; ++i) {
          rho.push_back(static_cast<float>(value(s, t, i, 'r')));
          u.push_back(static_cast<float>(value(s, t, i, 'u')));
        }
      for (std::int64_t i = 0; i < kPoints; ++i) m.push_back(static_cast<float>(constant(s, i)));
    }
    out->write(0, Box::whole(in_time), rho);
    out->write(1, Box::whole(in_time), u);
    out->write(2, Box::whole(of_samples), m);
    out->finish();
  }

  static DataOptions options(Predict predict) {
    DataOptions options;
    options.files = {"run.h5"};
    options.variables = {{"rho", {}}, {"u", {}}};
    options.constants = {{"m", {}}};
    options.dims = {ImageDim::kSample, ImageDim::kTime, ImageDim::kHeight, ImageDim::kWidth};
    options.predict = predict;
    options.train = {SliceRanges{}};
    options.transforms = {{"rho", {TransformKind::kLog, kEpsilon}}, {"m", {TransformKind::kSqrt}}};
    options.clamp = {{"rho", {0, std::numeric_limits<double>::infinity()}}};
    return options;
  }
  std::string path() const { return folder_.path(); }

  TemporaryFolder folder_;
};

/// Population mean and deviation of what is no NaN.
std::pair<double, double> moments_of(std::vector<double> values) {
  std::erase_if(values, [](double v) { return std::isnan(v); });
  const auto count = static_cast<double>(values.size());
  double mean = 0, squares = 0;
  for (const double v : values) mean += v / count;
  for (const double v : values) squares += (v - mean) * (v - mean) / count;
  return {mean, std::sqrt(squares)};
}

TEST_F(SequenceTransforms, StatisticsAreOfTransformedValuesOnAnyNumberOfRanks) {
  std::vector<double> states, changes, roots;
  for (std::int64_t state = 0; state < kSamples * kSteps; ++state)
    for (std::int64_t i = 0; i < kPoints; ++i) {
      states.push_back(transformed(state, i, 'r'));
      if (state % kSteps < kSteps - 1)
        changes.push_back(transformed(state + 1, i, 'r') - transformed(state, i, 'r'));
    }
  for (std::int64_t s = 0; s < kSamples; ++s)
    for (std::int64_t i = 0; i < kPoints; ++i) roots.push_back(std::sqrt(constant(s, i)));
  for (const int ranks : {1, 3}) {
    run_ranks(ranks, [&](Communicator& world) {
      const SequenceData data(options(Predict::kIncrement), path(), 1, world);
      const FieldStatistics &rho = data.statistics().fields.at("rho"), &m = data.statistics().fields.at("m");
      EXPECT_NEAR(rho.mean, moments_of(states).first, 1e-12);
      EXPECT_NEAR(rho.deviation, moments_of(states).second, 1e-12);
      EXPECT_NEAR(rho.increment_deviation, moments_of(changes).second, 1e-12);
      EXPECT_NEAR(m.mean, moments_of(roots).first, 1e-12);
      EXPECT_NEAR(m.deviation, moments_of(roots).second, 1e-12);
      EXPECT_EQ(rho.transform, "log(x + 1e-05)");
      EXPECT_EQ(m.transform, "sqrt(x)");
      EXPECT_EQ(data.statistics().fields.at("u").transform, "");
      EXPECT_EQ(data.statistics().seen.at("rho").below, 0) << "roundings beside the largest value";
    });
  }
}

/// Each rank reads some of the rows.
TEST_F(SequenceTransforms, BatchesAreNormalisedTransformedValuesAndStatesAreThoseOfTheFiles) {
  for (const int ranks : {1, 2}) {
    for (const Predict predict : {Predict::kIncrement, Predict::kState}) {
      run_ranks(ranks, [&](Communicator& world) {
        SequenceData data(options(predict), path(), 2, world);
        EXPECT_EQ(data.channels().targets[0].range.low, 0);
        const std::int64_t rows = kHeight / world.size(), first = rows * world.rank();
        SampleRequest request;
        request.samples = {2, 3};  // states 2, where a point is missing, and 5
        request.input = {{0, first, 0, 0}, {2, rows, kWidth, 3}};
        request.target = {{0, first, 0, 0}, {2, rows, kWidth, 2}};
        request.rollout = 2;
        request.baseline = request.origin = true;
        request.dtype = DType::kFloat64;
        const Batch batch = data.open_reader()->read(request, world.context());
        const auto& fields = data.statistics().fields;
        const auto same = [](double found, double wanted) {
          ASSERT_EQ(std::isnan(found), std::isnan(wanted));
          if (!std::isnan(wanted)) {
            EXPECT_NEAR(found, wanted, 1e-12);
          }
        };
        std::size_t in = 0, out = 0;
        for (const std::int64_t start : {2, 5})
          for (std::int64_t i = first * kWidth; i < (first + rows) * kWidth; ++i) {
            for (const char field : {'r', 'u'}) {
              const FieldStatistics& s = fields.at(field == 'r' ? "rho" : "u");
              const double now = transformed(start, i, field),
                           x = value(start / kSteps, start % kSteps, i, field);
              same(HostView<const double>(batch.input)[in++],
                   std::isnan(now) ? 0 : (now - s.mean) / s.deviation);
              same(HostView<const double>(batch.origin)[out], x);
              same(HostView<const double>(batch.baseline)[out], std::isnan(x) ? x
                                                                : predict == Predict::kIncrement
                                                                    ? 0
                                                                    : (now - s.mean) / s.deviation);
              for (int lead = 0; lead < 2; ++lead) {
                const std::int64_t at = start + lead + 1;
                const double then = transformed(at, i, field), y = value(at / kSteps, at % kSteps, i, field);
                const bool increment = predict == Predict::kIncrement;
                same(HostView<const double>(batch.target(lead))[out],
                     increment ? (then - now) / s.increment_deviation : (then - s.mean) / s.deviation);
                same(HostView<const double>(batch.state(lead))[out], increment && std::isnan(x) ? x : y);
              }
              ++out;
            }
            const FieldStatistics& s = fields.at("m");
            same(HostView<const double>(batch.input)[in++],
                 (std::sqrt(constant(start / kSteps, i)) - s.mean) / s.deviation);
          }
      });
    }
  }
}

TEST_F(SequenceTransforms, AreRefusedWhereTheyMeanNothing) {
  run_ranks(2, [&](Communicator& world) {
    const auto says = [&](const DataOptions& of, const DataUse& use = {}) {
      try {
        SequenceData(of, path(), 1, world, use);
      } catch (const Error& error) {
        return std::string(error.what());
      }
      return std::string();
    };
    DataOptions of = options(Predict::kState);
    EXPECT_EQ(says(of), "");
    of.transforms["temperature"] = {TransformKind::kSqrt};
    EXPECT_EQ(says(of),
              "data.transforms names temperature, which is no variable or channel; known: rho, u, m");
    of = options(Predict::kState);
    of.clamp = {{"m", {0, 1}}};
    EXPECT_EQ(says(of).find("data.clamp names m, which is no target"), 0U) << says(of);
    DataUse use;
    use.statistics = SequenceData(options(Predict::kState), path(), 1, world).statistics();
    of = options(Predict::kState);
    EXPECT_EQ(says(of, use), "");
    of.transforms.erase("rho");
    EXPECT_EQ(says(of, use),
              "the statistics of rho are of the transform log(x + 1e-05), and data.transforms says standard");
    // Needs no values.
    of.transforms["rho"] = {TransformKind::kNone};
    const FieldStatistics none = SequenceData(of, path(), 1, world).statistics().fields.at("rho");
    EXPECT_EQ(none.mean, 0);
    EXPECT_EQ(none.deviation, 1);
    EXPECT_EQ(none.increment_deviation, 1);
  });
}

}  // namespace sequence_transform_test
}  // namespace jigsaw
