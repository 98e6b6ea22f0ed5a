#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "end_to_end/command.h"
#include "files/image_output.h"

namespace jigsaw::e2e {

constexpr std::int64_t kSamples = 3, kSteps = 7, kDepth = 5, kHeight = 4, kWidth = 6, kPoints = 120;

/// Waves that fade to nine tenths each step: float32, as the file has them.
inline float value(std::int64_t sample, std::int64_t step, std::int64_t point, int field) {
  const auto phase = static_cast<double>(point % 17 + 3 * sample + field);
  return static_cast<float>((2 + std::sin(phase)) * std::pow(0.9, static_cast<double>(step)) + field);
}

class SequenceRuns : public ::testing::Test {
 protected:
  void SetUp() override {
    const Shape p{kSamples, kSteps, kDepth, kHeight, kWidth}, v{kSamples, kSteps, kDepth, kHeight, kWidth, 2};
    const OutputImage one{
        "t0_fields/p", OutputImage::Type::kFloat, {"s", "t", "z", "y", "x"}, p, {{"units", "Pa"}}, {}},
        two{"t1_fields/v", OutputImage::Type::kFloat, {"s", "t", "z", "y", "x", "c"}, v, {}, {}};
    const Shape m{kSamples, kDepth, kHeight, kWidth};
    const OutputImage mask{"t0_fields/m", OutputImage::Type::kFloat, {"s", "z", "y", "x"}, m, {}, {}};
    const OutputImage periodic{
        "boundary_conditions/y_periodic/mask", OutputImage::Type::kByte, {"y"}, {kHeight}, {}, {}};
    const auto file =
        create_image_output(ImageFormat::kHdf5, folder_ / "well.hdf5", {one, two, mask, periodic}, {});
    std::vector<float> ps, vs, ms;
    for (std::int64_t i = 0; i < kSamples * kPoints; ++i) ms.push_back(static_cast<float>(i % 7));
    for (std::int64_t s = 0; s < kSamples; ++s)
      for (std::int64_t t = 0; t < kSteps; ++t)
        for (std::int64_t i = 0; i < kPoints; ++i) {
          ps.push_back(value(s, t, i, 0));
          for (int c = 1; c < 3; ++c) vs.push_back(value(s, t, i, c));
        }
    file->write(0, Box::whole(p), ps);
    file->write(1, Box::whole(v), vs);
    file->write(2, Box::whole(m), ms);
    file->write(3, Box::whole({kHeight}), std::vector<float>(static_cast<std::size_t>(kHeight), 1));
    file->finish();
    const Json config = {
        {"data",
         {{"task", "forecast"},
          {"files", {folder_ / "well.hdf5"}},
          {"dims", {"sample", "time", "depth", "height", "width", "channel"}},
          {"variables",
           {{{"name", "p"}, {"data_set", "t0_fields/p"}}, {{"name", "v"}, {"data_set", "t1_fields/v"}}}},
          {"static", {{{"name", "m"}, {"data_set", "t0_fields/m"}}}},
          {"input_steps", {-1, 0}},
          {"train", {{"sample", {0, 1}}}},
          {"valid", {{"sample", {2, 2}}, {"time", {1, 3}}}}}},
        {"model", {{"type", "weathermixer"}, {"patch", {2, 2, 3}}, {"embed_dim", 8}, {"depth", 1}}},
        {"train", {{"steps", 12}, {"batch_size", 2}, {"precision", "fp64"}, {"rollout", 2}}},
        {"validation", {{"every", 12}}},
        {"checkpoint", {{"every", 12}}}};
    folder_.write("config.json", config.dump());
  }

  std::string train(const std::string& name, int ranks, const std::string& mesh) {
    const std::string output = folder_ / name;
    const Outcome outcome = run(ranks, config() + " --set output=" + output + " --set 'mesh=" + mesh + "'");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return output;
  }
  std::string config() const { return "--config " + (folder_ / "config.json"); }

  TemporaryFolder folder_;
};

}  // namespace jigsaw::e2e
