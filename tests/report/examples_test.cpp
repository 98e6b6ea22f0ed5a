// Examples of volumes against the file's own numbers, on one rank and on several.
#include "report/examples.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/text.h"
#include "comm/thread/run_ranks.h"
#include "config/config.h"
#include "support/pieces.h"
#include "support/source_dir.h"
#include "train/validation.h"

namespace jigsaw {
namespace examples_test {

constexpr double kSigma = 0.25;
constexpr std::int64_t kRows = 9, kColumns = 10;  // of the volume, which has 11 slices

struct Case {
  const char *task, *predict, *mesh;
  int ranks;
};

/// Of a validation part of one slice, the last, for which a crop of four reaches three slices beyond it.
Configuration configuration_of(const Case& one) {
  Json data = {{"task", one.task},
               {"files", {testing::source_dir() + "/tests/io/fixtures/images/volume.h5"}},
               {"shape", {11, kRows, kColumns}},
               {"dims", {"depth", "height", "width"}},
               {"variables", {"scan/density"}},
               {"crop", {4, 4, 6}},
               {"train", {{"depth", {0, 6}}}},
               {"valid", {{"depth", {10, 10}}}}};
  if (one.task == std::string("map")) {
    data["targets"] = {"labels"};
    data["classes"] = 3;
    data["ignore_index"] = 255;
  } else {
    data["noise_sigma"] = kSigma;
    data["predict"] = one.predict;
  }
  return parse<Configuration>({{"data", data},
                               {"model", {{"type", "unet"}, {"widths", {4, 6}}, {"norm_groups", 2}}},
                               {"loss", {{"type", data.contains("classes") ? "cross_entropy" : "mse"}}},
                               {"train", {{"steps", 2}, {"batch_size", 2}}},
                               {"validation", {{"every", 2}}},
                               {"mesh", Json::parse(one.mesh)},
                               {"machine",
                                {{"flops_per_second", 1e12},
                                 {"memory_bytes_per_second", 1e11},
                                 {"links", {{{"bytes_per_second", 1e10}, {"latency_seconds", 1e-6}}}}}}});
}

/// What a made-up model says of an element of a batch.
double said(std::int64_t index) {
  return std::sin(0.7 * static_cast<double>(index));
}

struct Collected {
  Examples examples;
  std::vector<double> clean;  ///< the slice that is shown, whole
  FieldStatistics statistics;
};

Collected collect(const Case& one) {
  Collected result;
  run_ranks(one.ranks, [&](Communicator& world) {
    OpenedRun run(configuration_of(one), ".", world);
    ExampleCollector collector(run);
    Validation(run).run(
        [] { return false; },
        [&](std::int64_t number, int lead, const ShardedTensor& prediction, const Batch& batch) {
          const Array piece =
              testing::make_piece(run.placed().rank(), prediction.layout, prediction.dtype(), said);
          collector.add(number, lead, {piece, prediction.layout}, batch);
        });
    const Examples found = collector.finish(2);
    if (world.rank() != 0) return;
    const auto& data = dynamic_cast<const ImageData&>(run.data());
    const Field& field = data.channels().targets[0].field;
    result.examples = found;
    result.statistics = one.task == std::string("map") ? FieldStatistics{} : data.statistics().of(field);
    result.clean.resize(kRows * kColumns);
    data.files().read(field, 0, {{10, 0, 0}, {1, kRows, kColumns}}, result.clean);
  });
  return result;
}

/// Of the first tile, four rows of six columns, the first five are scored.
template <typename Check>
void for_each_scored(const Collected& found, const Check& check) {
  int seen = 0;
  for (std::int64_t row = 0; row < 4; ++row) {
    for (std::int64_t column = 0; column < 5; ++column) {
      const double clean = found.clean[static_cast<std::size_t>(row * kColumns + column)];
      // Slice 10 of the volume is the fourth of the tile.
      const std::int64_t index = (3 * 4 + row) * 6 + column;
      const auto at = static_cast<std::size_t>(row * 6 + column);
      if (std::isnan(clean)) continue;
      check(at, clean, index);
      ++seen;
    }
  }
  EXPECT_GT(seen, 10);
}

TEST(ExampleCollector, ShowsImagesInTheirUnitsWhateverTheModelPredicts) {
  for (const Case& one : {Case{"denoise", "increment", "{}", 1},
                          {"denoise", "increment", R"({"domain": [2, 1, 1]})", 2},
                          {"denoise", "state", "{}", 1},
                          {"denoise", "state", R"({"data": 2})", 2}}) {
    SCOPED_TRACE(concat(one.predict, " on ", one.mesh));
    const Collected found = collect(one);
    ASSERT_EQ(found.examples.planes.size(), 1U);
    const ExamplePlane& plane = found.examples.planes[0];
    ASSERT_EQ(plane.truth.size(), 24U);
    ASSERT_EQ(plane.input.size(), 24U);
    const RandomStream random(1, RandomPurpose::kNoise, "valid");
    for_each_scored(found, [&](std::size_t at, double clean, std::int64_t index) {
      const auto point = static_cast<std::uint64_t>(
          (10 * kRows + static_cast<std::int64_t>(at) / 6) * kColumns + static_cast<std::int64_t>(at) % 6);
      const double input = clean + kSigma * random.normal({0, 0, 0}, point);
      EXPECT_NEAR(plane.truth[at], clean, 1e-5) << at;
      EXPECT_NEAR(plane.input[at], input, 1e-5) << at;
      const double predicted = one.predict == std::string("increment")
                                   ? input + kSigma * said(index)
                                   : found.statistics.mean + found.statistics.deviation * said(index);
      EXPECT_NEAR(plane.predicted[at], predicted, 1e-5) << at;
    });
  }
}

/// By its number in the volume: 10, and not 2, the middle of the crop, where no point is scored. Also where a
/// rank holds none of the four rows.
TEST(ExampleCollector, ShowsASliceOfAVolumeThatLiesInTheValidationPart) {
  for (const Case& one : {Case{"denoise", "increment", "{}", 1},
                          {"map", "increment", "{}", 1},
                          {"map", "increment", R"({"domain": [1, 5, 1]})", 5}}) {
    const char* const task = one.task;
    const Collected found = collect(one);
    EXPECT_EQ(found.examples.slice, 10) << task;
    ASSERT_EQ(found.examples.planes.at(0).truth.size(), 24U);
    int labelled = 0;
    for (const float value : found.examples.planes[0].truth) labelled += std::isnan(value) ? 0 : 1;
    EXPECT_GT(labelled, 0) << task;
  }
}

}  // namespace examples_test
}  // namespace jigsaw
