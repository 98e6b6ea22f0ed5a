// What the shipped configurations promise: forecasts that beat persistence, images without noise.
#include <gtest/gtest.h>

#include <cstdio>

#include "end_to_end/command.h"

namespace jigsaw::e2e {
namespace {

double ratio(const Json& line, const std::string& variable) {
  const Json& score = line.at("metrics").at(variable);
  return score.at("rmse").get<double>() / score.at("persistence_rmse").get<double>();
}

/// Trains a shipped configuration; its 6-hour error over that of persistence on the last week is at most
/// `limit`, and where it is an ensemble its CRPS, in K, at most `most_crps`.
void check_united_kingdom(const std::string& name, double limit, double most_crps = 0) {
  if (real_era5().empty()) GTEST_SKIP() << "the ERA5 file is not there (JIGSAW_REAL_DATA)";
  const TemporaryFolder folder;
  const Outcome outcome =
      run(1,
          "--config " + quoted(source_dir() + "/configs/" + name) + " --set " +
              quoted("data.files=[\"" + real_era5() + "\"]") + " --set output=" + (folder / "run"),
          2);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto lines = metrics(folder / "run", "valid");
  ASSERT_FALSE(lines.empty());
  std::printf("%s: 6 h RMSE over persistence on the last week: %.3f\n", name.c_str(),
              ratio(lines.back(), "t2m"));
  EXPECT_NEAR(lines.back().at("metrics").at("t2m").at("persistence_rmse").get<double>(), 2.720, 0.001);
  EXPECT_LE(ratio(lines.back(), "t2m"), limit);
  if (most_crps == 0) return;
  const double crps = lines.back().at("metrics").at("t2m").at("crps").get<double>();
  std::printf("%s: CRPS %.3f K\n", name.c_str(), crps);
  EXPECT_LE(crps, most_crps);
}

TEST(Skill, MixerAroundTheUnitedKingdom) {
  check_united_kingdom("era5_uk_mixer.json", 0.68);
}

TEST(Skill, VitAroundTheUnitedKingdom) {
  check_united_kingdom("era5_uk_vit.json", 0.65);
}

TEST(Skill, UNetAroundTheUnitedKingdom) {
  check_united_kingdom("era5_uk_unet.json", 0.67);
}

/// RMSE is that of the mean of four members; their CRPS is below the mean absolute error of the UNet's one
/// forecast, 1.15 K.
TEST(Skill, EnsembleAroundTheUnitedKingdom) {
  check_united_kingdom("era5_uk_ensemble.json", 0.76, 1.02);
}

TEST(Skill, ThreeDimensionalDenoisingOfAHead) {
  if (real_ct().empty()) GTEST_SKIP() << "the CT volume is not there (JIGSAW_REAL_DATA)";
  const TemporaryFolder folder;
  const Outcome outcome =
      run(1,
          "--config " + quoted(source_dir() + "/configs/ct_denoise_unet3d.json") + " --set " +
              quoted("data.files=[\"" + real_ct() + "\"]") + " --set output=" + (folder / "run"),
          2);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto lines = metrics(folder / "run", "valid");
  ASSERT_FALSE(lines.empty());
  const Json& scores = lines.back().at("metrics").at("volume");
  std::printf("CT, slices 75 to 92: PSNR %.2f dB, of the noisy input %.2f dB\n",
              scores.at("psnr").get<double>(), scores.at("input_psnr").get<double>());
  EXPECT_NEAR(scores.at("input_psnr").get<double>(), 22.69, 0.05);
  EXPECT_GE(scores.at("psnr").get<double>(), 30.3);
}

TEST(Skill, TheDemonstrationBeatsPersistenceClearly) {
  const TemporaryFolder folder;
  ASSERT_EQ(run(1, "sample-data --output " + (folder / "data")).exit_code, 0);
  const Outcome outcome =
      run(2,
          "--config " + quoted(source_dir() + "/configs/demo.json") + " --set 'data.files=[\"" +
              (folder / "data/*.nc") + "\"]' --set output=" + (folder / "run"),
          1);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto lines = metrics(folder / "run", "valid");
  ASSERT_FALSE(lines.empty());
  for (const auto& item : lines.back().at("metrics").items()) {
    std::printf("sample data, %s: RMSE over persistence %.3f\n", item.key().c_str(),
                ratio(lines.back(), item.key()));
    EXPECT_LE(ratio(lines.back(), item.key()), 0.5) << item.key();
  }
}

}  // namespace
}  // namespace jigsaw::e2e
