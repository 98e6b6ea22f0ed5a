// Scores of images on a simulated device equal the host's bit for bit, and files of them are written there.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "config/config.h"
#include "evaluate/image_evaluation.h"
#include "predict/image_prediction.h"
#include "support/on_device.h"
#include "support/source_dir.h"
#include "support/temporary_folder.h"
#include "train/trainer.h"

namespace jigsaw {
namespace images_on_device_test {

using testing::on_ranks;
using testing::Where;

struct Case {
  const char* name;
  bool classes;
  int ranks;
  const char* mesh;
  const char* precision;
};
const Case kCases[] = {{"denoise", false, 1, "{}", "fp32"},
                       {"denoise_on_domain", false, 2, R"({"domain": [1, 2, 1]})", "bf16"},
                       {"denoise_on_data", false, 2, R"({"data": 2})", "fp64"},
                       {"segment", true, 1, "{}", "fp32"},
                       {"segment_on_domain", true, 2, R"({"domain": [2, 1, 1]})", "fp32"}};

Configuration configuration_of(const Case& one, const std::string& output) {
  Json data = {{"task", one.classes ? "map" : "denoise"},
               {"files", {testing::source_dir() + "/tests/io/fixtures/images/volume.h5"}},
               {"shape", {11, 9, 10}},
               {"dims", {"depth", "height", "width"}},
               {"variables", {"scan/density"}},
               {"crop", {4, 4, 6}},
               {"train", {{"depth", {0, 6}}}},
               {"valid", {{"depth", {5, 10}}}}};
  if (one.classes) {
    data["targets"] = {"labels"};
    data["classes"] = 3;
    data["ignore_index"] = 255;
  } else {
    data["noise_sigma"] = 0.25;
    data["predict"] = "increment";
  }
  const Json json = {{"data", data},
                     {"model", {{"type", "unet"}, {"widths", {4, 6}}, {"norm_groups", 2}}},
                     {"loss", {{"type", one.classes ? "cross_entropy" : "mse"}}},
                     {"train", {{"steps", 2}, {"batch_size", 2}, {"precision", one.precision}}},
                     {"validation", {{"every", 2}}},
                     {"checkpoint", {{"every", 2}}},
                     {"mesh", Json::parse(one.mesh)},
                     // As if they had been measured, for on a fake GPU that takes long.
                     {"machine",
                      {{"flops_per_second", 1e12},
                       {"memory_bytes_per_second", 1e11},
                       {"links", {{{"bytes_per_second", 1e10}, {"latency_seconds", 1e-6}}}}}},
                     {"output", output}};
  return parse<Configuration>(json);
}

/// What is found of images.
struct Found {
  Json scores;       ///< of evaluate_images()
  std::string file;  ///< of write_image_predictions(), all bytes
};

class ImagesOnDevice : public ::testing::Test {
 protected:
  void SetUp() override { ::setenv("XDG_CACHE_HOME", folder_.path().c_str(), 1); }

  std::string output(const Case& one) const { return folder_.path() + "/" + one.name; }

  void train(const Case& one) const {
    on_ranks(one.name, one.ranks, Where::kHost, [&](Communicator& world, Log& log) {
      RunOptions options;
      options.config_folder = folder_.path();
      options.resume = "never";
      Trainer trainer(configuration_of(one, output(one)), options, world, log);
      EXPECT_EQ(trainer.run(), ExitCode::kDone);
    });
  }

  /// Scores and writes what the trained model says there.
  Found find(const Case& one, Where where) const {
    const std::string place = output(one) + "/" + std::to_string(static_cast<int>(where)),
                      json = place + ".json", file = place + ".h5";
    on_ranks(one.name, one.ranks, where, [&](Communicator& world, Log& log) {
      DataUse validation_only;
      validation_only.train = false;
      TrainedModels models = open_models(configuration_of(one, output(one)), folder_.path(), {output(one)},
                                         Weights::kAuto, validation_only, world, log);
      ImageEvaluationOptions scores;
      scores.json = json;
      scores.windows = {0.5, 0b101};
      evaluate_images(models, scores, log);
      ImageOptions images;
      images.output = file;
      images.windows = scores.windows;
      if (one.classes) images.classes = ClassOutput::kProbabilities;
      write_image_predictions(models, images, log);
    });
    if (HasFailure()) return {};
    return {Json::parse(testing::text_of(json)).at("scores"), testing::text_of(file)};
  }

  testing::TemporaryFolder folder_;
};

TEST_F(ImagesOnDevice, AreTheHostsBitForBit) {
  for (const Case& one : kCases) {
    SCOPED_TRACE(one.name);
    train(one);
    const Found host = find(one, Where::kHost), device = find(one, Where::kSimulated);
    if (HasFailure()) return;
    EXPECT_GT(host.scores.size(), 0U);
    EXPECT_EQ(device.scores, host.scores);
    EXPECT_EQ(device.file.size(), host.file.size());
  }
}

}  // namespace images_on_device_test
}  // namespace jigsaw
