// Images and volumes through the executable: one loss curve on every mesh, tasks, scores, and wrong input.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <fstream>

#include "end_to_end/command.h"
#include "files/image_output.h"

namespace jigsaw::e2e {
namespace images_test {

std::string fixture(const std::string& name) {
  return source_dir() + "/tests/io/fixtures/images/" + name;
}

/// Denoising a small volume (11 × 9 × 10) with a mixer on patches of it.
Json denoise_config() {
  return {{"data",
           {{"task", "denoise"},
            {"files", {fixture("volume.h5")}},
            {"dims", {"depth", "height", "width"}},
            {"variables", {"scan/density"}},
            {"crop", {7, 6, 5}},
            {"flips", {"height", "width"}},
            {"noise_sigma", 0.25},
            {"train", {{"depth", {0, 7}}}},
            {"valid", {{"depth", {8, 10}}}}}},
          {"model",
           {{"type", "weathermixer"},
            {"patch", {2, 3, 2}},
            {"embed_dim", 16},
            {"depth", 2},
            {"positions", true},
            {"final_norm", true},
            {"output_map", false}}},
          {"loss", {{"type", "huber"}, {"delta", 2.0}}},
          {"optimizer", {{"learning_rate", 2e-3}}},
          {"schedule", {{"warmup_steps", 5}}},
          {"train", {{"steps", 30}, {"batch_size", 4}}},
          {"validation", {{"every", 30}, {"overlap", {2, 2, 1}}}},
          {"checkpoint", {{"every", 0}}}};
}

/// Labels of pictures of three channels.
Json segment_config() {
  Json config = denoise_config();
  config["data"] = {{"task", "map"},
                    {"files", {fixture("pictures.h5")}},
                    {"dims", {"sample", "height", "width", "channel"}},
                    {"variables", {"images"}},
                    {"targets", {"masks"}},
                    {"classes", 2},
                    {"flips", {"width"}},
                    {"train", {{"sample", {0, 3}}}},
                    {"valid", {{"sample", {4, 4}}}}};
  config["model"]["patch"] = {2, 3};
  config["loss"] = {{"type", "dice_cross_entropy"}, {"class_weights", {1.0, 2.0}}};
  config["validation"].erase("overlap");
  return config;
}

/// Classes of small crops of a volume, of which many hold nothing but points that do not count.
Json sparse_config() {
  Json config = denoise_config();
  config["data"] = {{"task", "map"},
                    {"files", {fixture("volume.h5")}},
                    {"dims", {"depth", "height", "width"}},
                    {"variables", {"scan/density"}},
                    {"targets", {"labels"}},
                    {"classes", 3},
                    {"ignore_index", 2},
                    {"crop", {2, 3, 2}},
                    {"train", {{"depth", {1, 7}}}},
                    {"valid", {{"depth", {8, 10}}}}};
  config["model"]["patch"] = {1, 3, 2};
  config["loss"] = {{"type", "cross_entropy"}};
  config["train"] = {{"steps", 12}, {"batch_size", 8}, {"precision", "fp64"}};
  config["validation"] = {{"every", 0}};
  return config;
}

/// Writes `count` pictures of 6 × 9 points with labels of two classes, photo_N.h5; one label of picture `bad`
/// is another.
void write_labelled(const TemporaryFolder& folder, int count, int bad, float label = 7) {
  const Shape shape{6, 9};
  const OutputImage image{"image", OutputImage::Type::kFloat, {"height", "width"}, shape, {}, {}},
      mask{"mask", OutputImage::Type::kByte, {"height", "width"}, shape, {}, {}};
  for (int number = 0; number < count; ++number) {
    std::vector<float> points, labels;
    for (std::int64_t i = 0; i < shape.count(); ++i) {
      points.push_back(std::sin(0.3F * static_cast<float>(i + 7 * number)));
      labels.push_back(points.back() > 0 ? 1.0F : 0.0F);
    }
    if (number == bad) labels[20] = label;
    const std::string path = folder / ("photo_" + std::to_string(number) + ".h5");
    const auto file = create_image_output(ImageFormat::kHdf5, path, {image, mask}, {});
    file->write(0, Box::whole(shape), points);
    file->write(1, Box::whole(shape), labels);
    file->finish();
  }
}

/// Two pictures to train on and four to validate with, each of which is a batch.
Json labelled_config(const TemporaryFolder& folder) {
  Json config = denoise_config();
  config["data"] = {{"task", "map"},
                    {"files", {folder / "photo_*.h5"}},
                    {"dims", {"height", "width"}},
                    {"variables", {"image"}},
                    {"targets", {"mask"}},
                    {"classes", 2},
                    {"train", {{"sample", {0, 1}}}},
                    {"valid", {{"sample", {2, 5}}}}};
  config["model"]["patch"] = {2, 3};
  config["loss"] = {{"type", "cross_entropy"}};
  config["train"] = {{"steps", 3}, {"batch_size", 1}};
  config["validation"] = {{"every", 3}};
  config["checkpoint"] = {{"every", 3}};
  return config;
}

struct MeshCase {
  const char* json;
  int ranks;
};

class Images : public ::testing::Test {
 protected:
  std::string train(const Json& config, const std::string& name, int ranks, const std::string& more) {
    folder_.write("config.json", config.dump());
    const std::string output = folder_ / name;
    const Outcome outcome = run(ranks, "--config " + (folder_ / "config.json") + " --set output=" + output +
                                           " --resume never " + more);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return output;
  }

  /// Training and validation agree with one rank's within 1e-9.
  void compare(const Json& config, const std::string& variable, const std::string& score,
               const std::vector<MeshCase>& meshes) {
    const std::string fp64 = "--set train.precision=fp64 ";
    const std::string one = train(config, "one", 1, fp64);
    const auto losses = series(metrics(one, "train"), "loss");
    ASSERT_EQ(losses.size(), 30U);
    EXPECT_LT(losses.back(), losses.front());
    const Json valid = metrics(one, "valid").back();
    for (const MeshCase& mesh : meshes) {
      ASSERT_GT(mesh.ranks, 1);
      const std::string many = train(config, "many", mesh.ranks, fp64 + "--set 'mesh=" + mesh.json + "'");
      const auto others = series(metrics(many, "train"), "loss");
      ASSERT_EQ(others.size(), losses.size());
      double worst = 0;
      for (std::size_t i = 0; i < losses.size(); ++i)
        worst = std::max(worst, std::abs(others[i] / losses[i] - 1));
      const Json other = metrics(many, "valid").back();
      const double loss = other.at("loss").get<double>() / valid.at("loss").get<double>();
      const auto value = [&](const Json& line) {
        return line.at("metrics").at(variable).at(score).get<double>();
      };
      std::printf("%-30s %d ranks: worst relative difference of losses %.1e, %s %.6f and %.6f\n", mesh.json,
                  mesh.ranks, worst, score.c_str(), value(valid), value(other));
      EXPECT_LE(worst, 1e-9) << mesh.json;
      EXPECT_NEAR(loss, 1, 1e-9) << mesh.json;
      EXPECT_NEAR(value(other) / value(valid), 1, 1e-9) << mesh.json;
    }
  }

  TemporaryFolder folder_;
};

TEST_F(Images, DenoisingAVolumeIsOneFunctionOnEveryMesh) {
  compare(denoise_config(), "scan/density", "psnr",
          {{R"({"domain":[2,1,1]})", 2},
           {R"({"domain":[2,2,1]})", 4},
           {R"({"domain":[1,1,3]})", 3},
           {R"({"tensor":2})", 2},
           {R"({"data":2,"domain":[1,2,1]})", 4}});
}

TEST_F(Images, SegmentationIsOneFunctionOnEveryMesh) {
  compare(segment_config(), "masks", "mean_dice",
          {{R"({"domain":[2,1]})", 2},
           {R"({"tensor":2})", 2},
           {R"({"domain":[1,2],"tensor":2})", 4},
           {R"({"data":2})", 2}});
}

/// Two regions, one inside the other.
TEST_F(Images, RegionsAreOneFunctionOnEveryMesh) {
  Json config = segment_config();
  config["data"]["files"] = {fixture("volume.h5")};
  config["data"]["dims"] = {"depth", "height", "width"};
  config["data"]["variables"] = {"scan/density"};
  config["data"]["targets"] = {"labels"};
  config["data"]["classes"] = 3;
  config["data"]["regions"] = {{1, 2}, 2};
  config["data"]["ignore_index"] = 255;
  config["data"]["crop"] = {4, 6, 4};
  config["data"]["train"] = {{"depth", {0, 7}}};
  config["data"]["valid"] = {{"depth", {7, 10}}};
  config["model"]["patch"] = {1, 3, 2};
  config["loss"] = {{"type", "dice_cross_entropy"}};
  compare(config, "labels", "mean_dice", {{R"({"domain":[1,2,1],"tensor":2})", 4}, {R"({"data":2})", 2}});
}

/// Turned, scaled, deformed, blurred and noisy samples, of which half hold foreground; weights by frequency.
TEST_F(Images, ChangedSamplesAreTheSameOnEveryMesh) {
  Json config = denoise_config();
  config["data"] = {{"task", "map"},
                    {"files", {fixture("volume.h5")}},
                    {"dims", {"depth", "height", "width"}},
                    {"variables", {"scan/density"}},
                    {"targets", {"labels"}},
                    {"classes", 3},
                    {"ignore_index", 255},
                    {"intensity", "percentiles"},
                    {"percentiles", {2, 98}},
                    {"intensities", {{"scan/density", {{"clip", {-0.5, 0.75}}}}}},
                    {"crop", {4, 6, 4}},
                    {"flips", {"width"}},
                    {"augment",
                     {{"foreground", 0.5},
                      {"rotation", {20, 5, 5}},
                      {"scale", {0.8, 1.25}},
                      {"elastic", 1},
                      {"elastic_spacing", 3},
                      {"brightness", {0.75, 1.25}},
                      {"shift", 0.1},
                      {"gamma", {0.7, 1.5}},
                      {"noise", 0.1},
                      {"blur", 0.8},
                      {"probability", 0.6}}},
                    {"train", {{"depth", {0, 7}}}},
                    {"valid", {{"depth", {7, 10}}}}};
  config["loss"] = {{"type", "dice_cross_entropy"}, {"class_weights", "frequency"}};
  config["validation"].erase("overlap");
  compare(config, "labels", "mean_dice",
          {{R"({"domain":[2,1,1]})", 2}, {R"({"domain":[1,2,1],"tensor":2})", 4}, {R"({"data":2})", 2}});
}

/// The shipped 3-D U-Net on the real volume, shorter and with less of it at a time, in float32.
TEST_F(Images, TheShippedUNetIsOneFunctionOnEveryMesh) {
  if (real_ct().empty()) GTEST_SKIP() << "the CT volume is not there (JIGSAW_REAL_DATA)";
  std::ifstream in(source_dir() + "/configs/ct_denoise_unet3d.json");
  Json config = Json::parse(in, nullptr, true, true);
  config["data"]["files"] = {real_ct()};
  config["data"]["crop"] = {19, 16, 21};
  config["train"]["steps"] = 12;
  config["validation"] = {{"every", 12}, {"overlap", {4, 4, 4}}};
  config["checkpoint"]["every"] = 0;
  const std::string one = train(config, "one", 1, "");
  const auto losses = series(metrics(one, "train"), "loss");
  const auto psnr = [&](const std::string& run) {
    return metrics(run, "valid").back().at("metrics").at("volume").at("psnr").get<double>();
  };
  for (const MeshCase& mesh :
       std::vector<MeshCase>{{R"({"domain":[2,1,1]})", 2}, {R"({"domain":[2,2,1]})", 4}}) {
    const std::string many = train(config, "many", mesh.ranks, "--set 'mesh=" + std::string(mesh.json) + "'");
    const auto others = series(metrics(many, "train"), "loss");
    ASSERT_EQ(others.size(), losses.size());
    std::printf("%-20s %d ranks: loss of step 1 %.1e, of step 12 %.1e; PSNR %.3f and %.3f\n", mesh.json,
                mesh.ranks, std::abs(others[0] / losses[0] - 1), std::abs(others[11] / losses[11] - 1),
                psnr(one), psnr(many));
    EXPECT_NEAR(others[0] / losses[0], 1, 1e-5);
    EXPECT_NEAR(others[11] / losses[11], 1, 1e-2);
    EXPECT_NEAR(psnr(many), psnr(one), 0.05);
  }
}

TEST_F(Images, AccumulatedPartsSeeTheSameSamples) {
  Json config = denoise_config();
  const auto losses = series(metrics(train(config, "one", 1, "--set train.precision=fp64"), "train"), "loss");
  const auto parts = series(
      metrics(train(config, "parts", 1, "--set train.precision=fp64 --set train.accumulate=2"), "train"),
      "loss");
  for (std::size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(parts[i] / losses[i], 1, 1e-9);
}

TEST_F(Images, EachRankReadsItsShare) {
  const auto bytes = [&](int ranks, const std::string& mesh) {
    const std::string output = train(denoise_config(), "share", ranks, "--set 'mesh=" + mesh + "'");
    std::ifstream in(output + "/summary.json");
    std::vector<double> read;
    const Json summary = Json::parse(in);
    for (const Json& rank : summary.at("ranks")) read.push_back(rank.at("file_bytes_read").get<double>());
    return read;
  };
  const double whole = bytes(1, "{}").at(0);
  const std::vector<double> halves = bytes(2, R"({"domain":[2,1,1]})");
  for (const double half : halves) EXPECT_LE(half, 0.62 * whole);  // 4 of 7 slices are two patches of 2
  EXPECT_NEAR(halves.at(0) + halves.at(1), whole, 0.01 * whole);
}

TEST_F(Images, MapsImagesToOthersInEveryPrecision) {
  Json config = segment_config();
  config["data"]["variables"] = {{{"name", "images"}, {"levels", {0, 1}}}};
  config["data"]["targets"] = {{{"name", "images"}, {"levels", {2}}}};
  config["data"].erase("classes");
  config["loss"] = {{"type", "l1"}};
  config["train"]["steps"] = 100;
  for (const char* precision : {"fp32", "bf16"}) {
    const std::string output = train(
        config, "map", 2, "--set train.precision=" + std::string(precision) + " --set 'mesh={\"tensor\":2}'");
    const Json scores = metrics(output, "valid").back().at("metrics").at("images_2");
    const auto losses = series(metrics(output, "train"), "loss");
    std::printf("map, %s: loss %.3f to %.3f, PSNR %.2f dB\n", precision, losses.front(), losses.back(),
                scores.at("psnr").get<double>());
    EXPECT_LT(losses.back(), 0.5 * losses.front());
    EXPECT_FALSE(scores.contains("input_psnr"));
  }
}

/// Images and labels in files of their own: by case, of which folds say what is trained on. Another fold is
/// another training.
TEST_F(Images, PairsAndPartsGoByCase) {
  write_labelled(folder_, 6, -1);
  for (int number = 0; number < 6; ++number)
    std::filesystem::copy_file(folder_ / ("photo_" + std::to_string(number) + ".h5"),
                               folder_ / ("label_" + std::to_string(number) + ".h5"));
  Json config = labelled_config(folder_);
  config["data"]["targets"] = {{{"name", "mask"}, {"files", {folder_ / "label_*.h5"}}}};
  config["data"]["train"] = {{"file", "splits.json"}, {"fold", 0}};
  config["data"]["valid"] = {{"file", "splits.json"}, {"fold", 0}};
  folder_.write("config.json", config.dump());
  folder_.write("splits.json", R"([{"train": ["0", "3"], "val": ["1"]}])");
  const std::string train = (folder_ / "config.json") + " --set output=" + (folder_ / "run") + " ";
  const Outcome first = run(1, train);
  ASSERT_EQ(first.exit_code, 0) << first.err;
  const Outcome evaluated = run(2, "evaluate --config " + (folder_ / "config.json") + " --checkpoint " +
                                       (folder_ / "run") + " --period train");
  ASSERT_EQ(evaluated.exit_code, 0) << evaluated.err;
  EXPECT_NE(evaluated.out.find("scored 2 parts"), std::string::npos) << evaluated.out;
  folder_.write("splits.json", R"([{"train": ["0", "4"], "val": ["1"]}])");
  const Outcome changed = run(2, train + "--set train.steps=6");
  EXPECT_EQ(changed.exit_code, 2);
  EXPECT_NE(changed.err.find("of the training data differ from those of the run that is to be resumed"),
            std::string::npos)
      << changed.err;
  for (const int ranks : {1, 2}) {
    const Outcome unknown =
        run(ranks, "check " + (folder_ / "config.json") + " --set 'data.train={\"case\":[\"0\",\"33\"]}'");
    EXPECT_EQ(unknown.exit_code, 2);
    ASSERT_EQ(unknown.errors().size(), 1U) << unknown.err;
    EXPECT_NE(unknown.errors()[0].find("data.train takes the case 33"), std::string::npos) << unknown.err;
  }
  std::filesystem::remove(folder_ / "label_2.h5");
  std::filesystem::remove(folder_ / "photo_5.h5");
  for (const int ranks : {1, 2}) {
    const Outcome outcome = run(ranks, "check " + (folder_ / "config.json"));
    EXPECT_EQ(outcome.exit_code, 3);
    ASSERT_EQ(outcome.errors().size(), 1U) << outcome.err;
    EXPECT_NE(outcome.errors()[0].find(" lacks 2, and image in "), std::string::npos) << outcome.err;
    EXPECT_NE(outcome.errors()[0].find(" lacks 5; leave out"), std::string::npos) << outcome.err;
  }
}

struct WrongInput {
  const char* arguments;
  int exit_code;
  const char* says;
};

/// 255 marks points without a label; labels that no point has are told.
TEST_F(Images, InitKnowsWhatLabelsThereAre) {
  const auto init = [&](float label) {
    write_labelled(folder_, 6, 3, label);
    std::filesystem::remove(folder_ / "first.json");
    return run(
        1, "init --task segment --data '" + folder_ / "photo_*.h5" + "' --output " + folder_ / "first.json");
  };
  const Outcome marked = init(255);
  ASSERT_EQ(marked.exit_code, 0) << marked.err;
  EXPECT_NE(marked.out.find("\"classes\": 2"), std::string::npos) << marked.out;
  EXPECT_NE(marked.out.find("\"ignore_index\": 255"), std::string::npos) << marked.out;
  EXPECT_EQ(run(1, "check --config " + folder_ / "first.json").exit_code, 0);
  const Outcome gaps = init(7);
  EXPECT_NE(gaps.out.find("\"classes\": 3"), std::string::npos) << gaps.out;
  EXPECT_NE(gaps.out.find("\"labels\": [0, 1, 7]"), std::string::npos) << gaps.out;
  EXPECT_EQ(run(1, "check --config " + folder_ / "first.json").exit_code, 0);
  EXPECT_NE(gaps.err.find("5 of the labels 0 to 7 occur nowhere"), std::string::npos) << gaps.err;
}

/// Also where a crop says the extents: how many channels a variable has stands in the files alone.
TEST_F(Images, PlanCountsTheChannelsInTheFiles) {
  Json config = segment_config();
  config["data"]["targets"] = {"images"};
  config["data"]["crop"] = {4, 6};
  config["data"].erase("classes");
  config["loss"] = {{"type", "mse"}};
  config["model"] = {{"type", "sequential"}, {"layers", {{{"type", "linear"}, {"features", 3}}}}};
  folder_.write("config.json", config.dump());
  const std::string plan = "plan " + (folder_ / "config.json") + " --ranks 2";
  const Outcome outcome = run(1, plan);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const Outcome missing = run(1, plan + " --set 'data.files=[\"none.h5\"]'");
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_NE(missing.err.find(
                "data.dims: how many channels a variable has stands in its levels, or in the files, but "),
            std::string::npos)
      << missing.err;
}

/// Of the training's pictures, 0 and 1 of six.
TEST_F(Images, StatisticsAreWritten) {
  write_labelled(folder_, 6, -1);
  folder_.write("labelled.json", labelled_config(folder_).dump());
  for (const int ranks : {1, 2}) {
    const std::string file = folder_ / ("statistics_" + std::to_string(ranks) + ".json");
    const std::string mesh = ranks == 2 ? " --set 'mesh={\"domain\":[2,1]}'" : "";
    const Outcome outcome =
        run(ranks, "stats --config " + folder_ / "labelled.json" + " --output " + file + mesh);
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    double sum = 0, squares = 0;
    for (int number = 0; number < 2; ++number) {
      for (int i = 0; i < 54; ++i) {
        const double value = std::sin(0.3F * static_cast<float>(i + 7 * number));
        sum += value;
        squares += value * value;
      }
    }
    const Json found = Json::parse(std::ifstream(file)).at("fields").at("image");
    EXPECT_NEAR(found.at("mean").get<double>(), sum / 108, 1e-7);
    EXPECT_NEAR(found.at("deviation").get<double>(), std::sqrt(squares / 108 - sum * sum / 108 / 108), 1e-7);
  }
}

/// A picture that is smaller than the window lies in its middle; what is read is never replaced.
TEST_F(Images, SmallPicturesArePredictedAndInputsStay) {
  write_labelled(folder_, 6, -1);
  Json config = labelled_config(folder_);
  config["output"] = folder_ / "labelled";
  config["data"]["crop"] = {6, 9};
  folder_.write("labelled.json", config.dump());
  ASSERT_EQ(run(1, folder_ / "labelled.json").exit_code, 0);
  const Shape shape{2, 5};
  const OutputImage image{"image", OutputImage::Type::kFloat, {"height", "width"}, shape, {}, {}};
  const auto file = create_image_output(ImageFormat::kHdf5, folder_ / "small.h5", {image}, {});
  file->write(0, Box::whole(shape), std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  file->finish();
  const std::string predict = "predict --config " + folder_ / "labelled.json" + " --checkpoint " +
                              folder_ / "labelled" + " --input " + folder_ / "small.h5" + " --output ";
  const Outcome outcome = run(2, predict + folder_ / "out.h5" + " --set 'mesh={\"domain\":[2,1]}'");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(run(1, "inspect " + folder_ / "out.h5").out.find("[2, 5]"), std::string::npos)
      << run(1, "inspect " + folder_ / "out.h5").out;
  const Outcome refused = run(1, predict + folder_ / "small.h5" + " --overwrite");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("is read, and is not replaced"), std::string::npos) << refused.err;
}

TEST_F(Images, WrongInputIsOneSentenceAndTheDocumentedExitCode) {
  folder_.write("config.json", denoise_config().dump());
  folder_.write("segment.json", segment_config().dump());
  const std::string denoise =
      "--config " + (folder_ / "config.json") + " --set output=" + (folder_ / "wrong") + " ";
  const std::string segment =
      "--config " + (folder_ / "segment.json") + " --set output=" + (folder_ / "wrong") + " ";
  const std::vector<std::pair<std::string, WrongInput>> cases = {
      {denoise, {"--set 'data.variables=[\"scan/densty\"]'", 3, "did you mean \"scan/density\""}},
      {denoise,
       {"--set 'data.dims=[\"height\",\"width\"]' --set 'data.crop=[4,4]' --set "
        "'data.train={\"height\":[0,5]}' "
        "--set data.valid=[] --set validation.overlap=[]",
        3, "data.dims names 2"}},
      {denoise, {"--set 'data.dims=[\"z\",\"height\",\"width\"]'", 2, "data.dims[0]"}},
      {denoise, {"--set 'data.crop=[9,4,4]'", 2, "data.crop"}},
      {denoise, {"--set 'data.crop=[4,4]'", 2, "data.crop"}},
      {denoise, {"--set 'data.train={\"depth\":[0,99]}'", 2, "data.train"}},
      {denoise, {"--set 'data.train=[\"2019-03-01\",\"2019-03-02\"]'", 2, "data.train"}},
      {denoise, {"--set data.noise_sigma=null", 2, "data.noise_sigma"}},
      {denoise, {"--set 'loss={\"type\":\"dice\"}'", 2, "loss.type"}},
      {denoise, {"--set 'validation.overlap=[7,0,0]'", 2, "validation.overlap"}},
      {denoise, {"--set train.rollout=2", 2, "train.rollout"}},
      {denoise, {"--set 'mesh={\"domain\":[1,1]}'", 2, "mesh.domain"}},
      {segment, {"--set data.classes=3 --set 'loss.class_weights=[1,2]'", 2, "loss.class_weights"}},
      {segment, {"--set 'loss={\"type\":\"mse\"}'", 2, "loss.type"}},
      {segment, {"--set 'data.targets=[{\"name\":\"images\",\"levels\":[0]}]'", 3, "holds the label"}}};
  int ranks = 1;
  for (const auto& [command, wrong] : cases) {
    ranks = 3 - ranks;  // by turns alone and under mpirun
    const Outcome outcome = run(ranks, command + wrong.arguments);
    EXPECT_EQ(outcome.exit_code, wrong.exit_code) << wrong.arguments << "\n" << outcome.err;
    ASSERT_EQ(outcome.errors().size(), 1U) << wrong.arguments << "\n" << outcome.err;
    EXPECT_NE(outcome.errors()[0].find(wrong.says), std::string::npos) << outcome.err;
  }
}

/// Of a file of others: to the terminal they would be commands, and lines of their own.
TEST_F(Images, NamesOfOddBytesStandInOneLine) {
  std::string bytes = read(fixture("volume.h5"));
  const std::string name = "density", odd = "den\x1b[\n\xff";
  ASSERT_NE(bytes.find(name), std::string::npos);
  for (std::size_t at = bytes.find(name); at != std::string::npos; at = bytes.find(name, at))
    bytes.replace(at, name.size(), odd);
  folder_.write("odd.h5", bytes);
  folder_.write("odd.json", denoise_config().dump());
  for (const int ranks : {1, 2}) {
    const Outcome outcome =
        run(ranks, "check " + (folder_ / "odd.json") + " --set 'data.files=[" + (folder_ / "odd.h5") + "]'");
    EXPECT_EQ(outcome.exit_code, 3) << outcome.err;
    ASSERT_EQ(outcome.errors().size(), 1U) << outcome.err;
    EXPECT_NE(outcome.errors()[0].find("scan/den\\x1b[\\x0a\\xff"), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.err.find('\x1b'), std::string::npos) << outcome.err;
  }
}

/// The first and the last batch of the validation run before the first step.
TEST_F(Images, ABadLabelInTheLastValidationBatchShowsBeforeTheFirstStep) {
  write_labelled(folder_, 6, 5);
  folder_.write("config.json", labelled_config(folder_).dump());
  for (const int ranks : {1, 2}) {
    const std::string output = folder_ / ("run" + std::to_string(ranks));
    const Outcome outcome = run(ranks, "--config " + (folder_ / "config.json") + " --set output=" + output);
    EXPECT_EQ(outcome.exit_code, 3) << outcome.err;
    ASSERT_EQ(outcome.errors().size(), 1U) << outcome.err;
    EXPECT_NE(outcome.errors()[0].find("photo_5.h5 holds the label 7"), std::string::npos) << outcome.err;
    EXPECT_EQ(read(output + "/metrics.jsonl"), "");
  }
}

/// What neither training nor these batches read is looked at beside the first steps, at the latest before the
/// last one is saved.
TEST_F(Images, ABadLabelElsewhereShowsBeforeTheFirstValidation) {
  write_labelled(folder_, 6, 3);
  folder_.write("config.json", labelled_config(folder_).dump());
  for (const int ranks : {1, 2}) {
    const std::string output = folder_ / ("run" + std::to_string(ranks));
    const Outcome outcome = run(ranks, "--config " + (folder_ / "config.json") + " --set output=" + output);
    EXPECT_EQ(outcome.exit_code, 3) << outcome.err;
    ASSERT_EQ(outcome.errors().size(), 1U) << outcome.err;
    EXPECT_NE(outcome.errors()[0].find("photo_3.h5 holds the label 7"), std::string::npos) << outcome.err;
    EXPECT_FALSE(metrics(output, "train").empty());
    EXPECT_EQ(read(output + "/checkpoints/latest"), "")
        << "the validation of the last step comes behind its save";
  }
}

TEST_F(Images, PartsOfABatchAreOneMeanAlthoughSomeHaveNoLabel) {
  const std::string whole = train(sparse_config(), "whole", 1, "");
  const std::string parts = train(sparse_config(), "parts", 1, "--set train.accumulate=8");
  for (const char* key : {"loss", "grad_norm"}) {
    const auto expected = series(metrics(whole, "train"), key), found = series(metrics(parts, "train"), key);
    ASSERT_EQ(found.size(), 12U);
    for (std::size_t i = 0; i < found.size(); ++i)
      EXPECT_NEAR(found[i] / expected[i], 1, 1e-9) << key << " of step " << i + 1;
  }
}

}  // namespace images_test
}  // namespace jigsaw::e2e
