// What trained models say of images: the same on every mesh; scores that their files have, too; one sentence
// where it cannot be done.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <fstream>

#include "end_to_end/image_predictions.h"
#include "io/netcdf_writer.h"

namespace jigsaw::e2e {
namespace predict_images_test {

using namespace image_predictions;

TEST_F(ImagePredictions, OfADenoisedVolumeAreOneOnEveryMesh) {
  train("denoise", config(denoising(), {2, 2, 5}));
  predict(1, "denoise", "one.h5");
  Shape shape;
  const std::vector<double> one = values(folder_ / "one.h5", "scan/density", &shape),
                            input = values(fixture("volume.h5"), "scan/density");
  EXPECT_EQ(shape, (Shape{11, 9, 10}));
  EXPECT_TRUE(std::isnan(one[(2 * 9 + 3) * 10 + 4])) << "what is missing in the input stays missing";
  EXPECT_GT(largest_difference(one, input), 1e-4);
  const Json alone = scores(1, "denoise");
  for (const MeshCase& mesh : std::vector<MeshCase>{
           {R"({"domain":[2,1,1]})", 2}, {R"({"domain":[1,2,1],"tensor":2})", 4}, {R"({"data":3})", 3}}) {
    const std::string on_mesh = " --set 'mesh=" + std::string(mesh.json) + "'";
    predict(mesh.ranks, "denoise", "many.h5", on_mesh);
    const double worst = largest_difference(one, values(folder_ / "many.h5", "scan/density"));
    const Json many = scores(mesh.ranks, "denoise", on_mesh);
    std::printf("%-30s %d ranks: the volume differs by %.1e\n", mesh.json, mesh.ranks, worst);
    EXPECT_LE(worst, 2.4e-7) << mesh.json;  // the last bit of float32 at 3
    for (const char* score : {"rmse", "mae", "psnr", "input_psnr"}) {
      const auto mean = [&](const Json& of) {
        return of["scores"]["scan/density"][score]["mean"].get<double>();
      };
      EXPECT_NEAR(mean(many) / mean(alone), 1, 1e-9) << score;
    }
  }
  // Windows that overlap more blend more of them, and other numbers come out.
  predict(1, "denoise", "more.h5", "--overlap 0.5");
  EXPECT_GT(largest_difference(one, values(folder_ / "more.h5", "scan/density")), 1e-6);
  // NetCDF holds the same.
  predict(2, "denoise", "one.nc", "--set 'mesh={\"domain\":[1,2,1]}'");
  EXPECT_LE(largest_difference(one, values(folder_ / "one.nc", "scan_density")), 2.4e-7);
}

TEST_F(ImagePredictions, OfPicturesHaveTheScoresThatValidationAndEvaluationSay) {
  Json json = config(segmenting(), {3, 2});
  json["loss"] = {{"type", "dice_cross_entropy"}};
  train("segment", json);
  predict(2, "segment", "labels.h5", "--set 'mesh={\"tensor\":2}'");
  predict(1, "segment", "shares.h5", "--classes probabilities");
  Shape shape;
  const std::vector<double> labels = values(folder_ / "labels.h5", "masks", &shape),
                            truth = values(fixture("pictures.h5"), "masks");
  EXPECT_EQ(shape, (Shape{5, 9, 10}));
  const std::vector<double> shares = values(folder_ / "shares.h5", "masks", &shape);
  EXPECT_EQ(shape, (Shape{5, 9, 10, 2}));
  double hits = 0, chosen = 0, labelled = 0, right = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    EXPECT_NEAR(shares[2 * i] + shares[2 * i + 1], 1, 1e-6);
    EXPECT_EQ(labels[i], shares[2 * i + 1] > shares[2 * i] ? 1 : 0);
    if (i < 4 * 90) continue;  // the last picture is that of validation
    hits += labels[i] == 1 && truth[i] == 1 ? 1 : 0;
    chosen += labels[i];
    labelled += truth[i];
    right += labels[i] == truth[i] ? 1 : 0;
  }
  predict(1, "segment", "labels.nc");
  EXPECT_EQ(values(folder_ / "labels.nc", "masks"), labels);
  EXPECT_EQ(open_variables(folder_ / "labels.nc", Dimensions::kByNumber)->find("masks")->type,
            StoredType::kU8);
  const Json found = scores(2, "segment", "--set 'mesh={\"domain\":[1,2]}'")["scores"]["masks"],
             valid = validated("segment")["masks"];
  std::printf("Dice %.6f of the file, %.6f by evaluate, %.6f by validation\n", 2 * hits / (chosen + labelled),
              found["dice"]["1"]["mean"].get<double>(), valid["dice"][1].get<double>());
  EXPECT_NEAR(found["dice"]["1"]["mean"].get<double>(), 2 * hits / (chosen + labelled), 1e-12);
  EXPECT_NEAR(found["dice"]["1"]["mean"].get<double>(), valid["dice"][1].get<double>(), 1e-12);
  EXPECT_NEAR(found["mean_dice"]["mean"].get<double>(), valid["mean_dice"].get<double>(), 1e-12);
  EXPECT_NEAR(found["accuracy"]["mean"].get<double>(), right / 90, 1e-12);
  EXPECT_TRUE(found["hd95"]["1"]["mean"].is_number()) << found.dump();
  EXPECT_EQ(found["hd95"]["1"]["units"], "points");
}

/// Label files with the numbers 0, 4, 9 and 200, of which 4 and 9 are one class and 200 is none.
TEST_F(ImagePredictions, OfMergedLabelsAreNumbersOfTheFiles) {
  const Shape shape{6, 9};
  const OutputImage image{"image", OutputImage::Type::kFloat, {"height", "width"}, shape, {}, {}},
      mask{"mask", OutputImage::Type::kByte, {"height", "width"}, shape, {}, {}};
  std::vector<double> truth;
  for (int number = 0; number < 3; ++number) {
    std::vector<double> points, labels;
    for (std::int64_t i = 0; i < shape.count(); ++i) {
      points.push_back(std::sin(0.3 * static_cast<double>(i + 7 * number)));
      labels.push_back(points.back() < 0 ? 9 : points.back() < 0.5 ? 0 : i % 11 == 0 ? 200 : 4);
    }
    write_image(folder_ / ("photo_" + std::to_string(number) + ".h5"), ImageFormat::kHdf5, {image, mask},
                {points, labels});
    if (number == 2) truth = labels;
  }
  const Json data = {{"task", "map"},
                     {"files", {folder_ / "photo_*.h5"}},
                     {"dims", {"height", "width"}},
                     {"variables", {"image"}},
                     {"targets", {"mask"}},
                     {"classes", 2},
                     {"labels", {{9, 4}, 0}},
                     {"ignore_index", 200},
                     {"train", {{"sample", {0, 1}}}},
                     {"valid", {{"sample", {2, 2}}}}};
  Json json = config(data, {3, 3});
  json["model"] = {{"type", "unet"},         {"base_width", 4},           {"levels", 2},
                   {"strides", {1, {1, 2}}}, {"norm_groups", "channels"}, {"activation", "leaky_relu"}};
  json["loss"] = {{"type", "dice_cross_entropy"}};
  json["optimizer"]["learning_rate"] = 0.02;
  train("merged", json);
  predict(2, "merged", "labels.h5", "--set 'mesh={\"domain\":[1,2]}' --input " + (folder_ / "photo_2.h5"));
  const std::vector<double> labels = values(folder_ / "labels.h5", "mask");
  ASSERT_EQ(labels.size(), truth.size());
  double hits = 0, chosen = 0, labelled = 0, right = 0, counted = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    EXPECT_TRUE(labels[i] == 0 || labels[i] == 9) << labels[i];
    if (truth[i] == 200) continue;
    const bool is = truth[i] == 0, said = labels[i] == 0;
    hits += is && said ? 1 : 0;
    chosen += said ? 1 : 0;
    labelled += is ? 1 : 0;
    right += is == said ? 1 : 0;
    counted += 1;
  }
  EXPECT_LT(counted, static_cast<double>(truth.size()));
  EXPECT_TRUE(chosen > 0 && chosen < counted) << chosen;
  const Json found = scores(2, "merged", "--set 'mesh={\"domain\":[2,1]}'")["scores"]["mask"];
  EXPECT_NEAR(found["dice"]["1"]["mean"].get<double>(), 2 * hits / (chosen + labelled), 1e-12);
  EXPECT_NEAR(found["accuracy"]["mean"].get<double>(), right / counted, 1e-12);
  EXPECT_NEAR(validated("merged")["mask"]["accuracy"].get<double>(), right / counted, 1e-12);
}

/// Regions as of BraTS: the whole is classes 1 and 2, the core class 2, whose number in files is 4.
TEST_F(ImagePredictions, OfRegionsAreClassesInThem) {
  const Shape shape{6, 9};
  const OutputImage image{"image", OutputImage::Type::kFloat, {"height", "width"}, shape, {}, {}},
      mask{"mask", OutputImage::Type::kByte, {"height", "width"}, shape, {}, {}};
  std::vector<double> truth;
  for (int number = 0; number < 3; ++number) {
    std::vector<double> points;
    truth.clear();
    for (std::int64_t i = 0; i < shape.count(); ++i) {
      points.push_back(std::sin(0.3 * static_cast<double>(i + 7 * number)));
      truth.push_back(points.back() < -0.3 ? 0 : points.back() < 0.6 ? 1 : 4);
    }
    write_image(folder_ / ("photo_" + std::to_string(number) + ".h5"), ImageFormat::kHdf5, {image, mask},
                {points, truth});
  }
  Json json = config({{"task", "map"},
                      {"files", {folder_ / "photo_*.h5"}},
                      {"dims", {"height", "width"}},
                      {"variables", {"image"}},
                      {"targets", {"mask"}},
                      {"classes", 3},
                      {"labels", {0, 1, 4}},
                      {"regions", {{1, 2}, 2}},
                      {"train", {{"sample", {0, 1}}}},
                      {"valid", {{"sample", {2, 2}}}}},
                     {3, 3});
  json["model"] = {{"type", "unet"}, {"widths", {4, 4}}, {"norm_groups", "channels"}};
  json["loss"] = {{"type", "dice_cross_entropy"}};
  json["optimizer"]["learning_rate"] = 0.02;
  train("regions", json);
  const std::string input = " --input " + (folder_ / "photo_2.h5");
  predict(2, "regions", "labels.h5", "--set 'mesh={\"domain\":[1,2]}'" + input);
  predict(2, "regions", "shares.h5", "--classes probabilities --set 'mesh={\"tensor\":2}'" + input);
  Shape found_shape;
  const std::vector<double> labels = values(folder_ / "labels.h5", "mask"),
                            shares = values(folder_ / "shares.h5", "mask", &found_shape);
  ASSERT_EQ(found_shape.count(), 2 * shape.count());
  const bool last = found_shape.back() == 2;
  std::array<double, 2> hits{}, chosen{}, labelled{}, sure_hits{}, sure{};
  double right = 0, largest = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const double whole = shares[last ? 2 * i : i], core = shares[last ? 2 * i + 1 : labels.size() + i];
    largest = std::max(largest, whole + core);
    EXPECT_EQ(labels[i], core > 0.5 ? 4 : whole > 0.5 ? 1 : 0) << i;
    right += labels[i] == truth[i] ? 1 : 0;
    for (const std::size_t r : {0U, 1U}) {
      const auto inside = [&](double label) { return r == 0 ? label > 0 : label == 4; };
      const bool is = inside(truth[i]), said = inside(labels[i]), share = (r == 0 ? whole : core) > 0.5;
      hits[r] += is && said ? 1 : 0;
      chosen[r] += said ? 1 : 0;
      labelled[r] += is ? 1 : 0;
      sure_hits[r] += is && share ? 1 : 0;
      sure[r] += share ? 1 : 0;
    }
  }
  EXPECT_GT(largest, 1.05) << "regions overlap: their probabilities are not shares of one";
  const Json scored = scores(2, "regions", "--set 'mesh={\"domain\":[2,1]}'")["scores"]["mask"],
             valid = validated("regions")["mask"];
  for (const std::size_t r : {0U, 1U}) {
    EXPECT_GT(chosen[r], 0);
    const std::string name = std::to_string(r);
    EXPECT_NEAR(scored["dice"][name]["mean"].get<double>(), 2 * hits[r] / (chosen[r] + labelled[r]), 1e-12);
    EXPECT_NEAR(valid["dice"][r].get<double>(), 2 * sure_hits[r] / (sure[r] + labelled[r]), 1e-12);
    EXPECT_TRUE(scored["hd95"][name]["mean"].is_number()) << scored.dump();
  }
  EXPECT_NEAR(scored["accuracy"]["mean"].get<double>(), right / 54, 1e-12);
  EXPECT_FALSE(scored.contains("foreground_dice"));
}

TEST_F(ImagePredictions, OfNumbersHaveTheErrorsThatValidationSays) {
  Json data = segmenting();
  data["variables"] = {{{"name", "images"}, {"levels", {0, 1}}}};
  data["targets"] = {{{"name", "images"}, {"levels", {2}}}};
  data.erase("classes");
  Json json = config(data, {3, 2});
  json["validation"]["peak"] = 2.5;
  train("map", json);
  predict(2, "map", "mapped.h5", "--set 'mesh={\"domain\":[2,1]}'");
  Shape shape;
  const std::vector<double> mapped = values(folder_ / "mapped.h5", "images", &shape),
                            truth = values(fixture("pictures.h5"), "images");
  EXPECT_EQ(shape, (Shape{5, 9, 10, 1}));
  double squares = 0;
  for (std::size_t i = 4 * 90; i < 5 * 90; ++i) squares += std::pow(mapped[i] - truth[3 * i + 2], 2) / 90;
  const Json all = scores(1, "map"), found = all["scores"]["images_2"], valid = validated("map")["images_2"];
  std::printf("RMSE %.6f of the file, %.6f by evaluate, %.6f by validation\n", std::sqrt(squares),
              found["rmse"]["mean"].get<double>(), valid["rmse"].get<double>());
  EXPECT_NEAR(found["rmse"]["mean"].get<double>() / std::sqrt(squares), 1, 1e-6);
  EXPECT_EQ(found["rmse"]["count"], 1);
  EXPECT_EQ(found["ssim"]["count"], 0) << "a picture of 9 x 10 has no window of 11 x 11";
  for (const char* score : {"rmse", "bias", "psnr"})
    EXPECT_NEAR(found[score]["mean"].get<double>(), valid[score].get<double>(), 1e-9) << score;
  EXPECT_EQ(all["data_range"]["images_2"], 2.5);
  // Without a peak both take the range of the validation parts.
  json["validation"].erase("peak");
  train("range", json);
  const Json own = scores(1, "range"), by_training = validated("range")["images_2"];
  EXPECT_NEAR(own["scores"]["images_2"]["psnr"]["mean"].get<double>(), by_training["psnr"].get<double>(),
              1e-9);
  std::vector<double> last;
  for (std::size_t i = 4 * 90; i < 5 * 90; ++i) last.push_back(truth[3 * i + 2]);
  const auto [least, most] = std::ranges::minmax(last);
  EXPECT_NEAR(own["data_range"]["images_2"].get<double>(), most - least, 1e-6);
  EXPECT_TRUE(found["ssim"]["mean"].is_null()) << "a picture of 9 x 10 has no window of 11 x 11";
}

/// A model that says 0 of everything: the mean of the logarithms, or the end of a range above it.
TEST_F(ImagePredictions, OfTransformedNumbersAreInTheUnitOfTheFiles) {
  constexpr double kEpsilon = 1e-3;
  const Shape shape{6, 9};
  const OutputImage density{"density", OutputImage::Type::kFloat, {"height", "width"}, shape, {}, {}},
      flux{"flux", OutputImage::Type::kFloat, {"height", "width"}, shape, {}, {}};
  std::vector<double> truth;
  double mean = 0;
  for (int number = 0; number < 3; ++number) {
    std::vector<double> points;
    truth.clear();
    for (std::int64_t i = 0; i < shape.count(); ++i) {
      points.push_back(std::pow(10, 0.5 * static_cast<double>((5 * i + number) % 13) - 3));
      truth.push_back(
          static_cast<float>(std::pow(10, 0.5 * static_cast<double>((7 * i + 2 * number) % 11) - 2)));
      if (number < 2) mean += std::log(truth.back() + kEpsilon) / static_cast<double>(2 * shape.count());
    }
    write_image(folder_ / ("gas_" + std::to_string(number) + ".h5"), ImageFormat::kHdf5, {density, flux},
                {points, truth});
  }
  const Json log = {{"type", "log"}, {"epsilon", kEpsilon}};
  const Json data = {{"task", "map"},
                     {"files", {folder_ / "gas_*.h5"}},
                     {"dims", {"height", "width"}},
                     {"variables", {"density"}},
                     {"targets", {"flux"}},
                     {"crop", {4, 4}},
                     {"transforms", {{"density", log}, {"flux", log}}},
                     {"train", {{"sample", {0, 1}}}},
                     {"valid", {{"sample", {2, 2}}}}};
  Json json = config(data, {});
  json["model"] = {{"type", "sequential"},
                   {"layers", {{{"type", "linear"}, {"features", 1}, {"zero_start", true}}}}};
  json["optimizer"]["learning_rate"] = 1e-30;
  const std::string input = " --input " + (folder_ / "gas_2.h5");
  const double usual = std::exp(mean) - kEpsilon, low = 2 * usual;
  const auto rmse_of = [&](double predicted) {
    double squares = 0;
    for (const double y : truth) squares += (predicted - y) * (predicted - y);
    return std::sqrt(squares / static_cast<double>(truth.size()));
  };
  train("gas", json);
  predict(2, "gas", "usual.h5", "--set 'mesh={\"domain\":[1,2]}'" + input);
  for (const double y : values(folder_ / "usual.h5", "flux")) EXPECT_NEAR(y / usual, 1, 1e-6);
  const Json found = scores(2, "gas", "--set 'mesh={\"domain\":[2,1]}'")["scores"]["flux"];
  EXPECT_NEAR(found["rmse"]["mean"].get<double>() / rmse_of(usual), 1, 1e-9);
  EXPECT_NEAR(validated("gas")["flux"]["rmse"].get<double>() / rmse_of(usual), 1, 1e-9);
  json["data"]["clamp"] = {{"flux", {low, nullptr}}};
  json["train"]["precision"] = "fp32";
  train("bounded", json);
  predict(2, "bounded", "bounded.h5", "--set 'mesh={\"domain\":[1,2]}'" + input);
  for (const double y : values(folder_ / "bounded.h5", "flux")) EXPECT_EQ(y, static_cast<float>(low));
  const Json bounded = scores(1, "bounded")["scores"]["flux"];
  EXPECT_NEAR(bounded["rmse"]["mean"].get<double>() / rmse_of(low), 1, 1e-12);
  EXPECT_NEAR(validated("bounded")["flux"]["rmse"].get<double>() / rmse_of(low), 1, 1e-5);
  // Without them it is another model.
  const Outcome other =
      command(1, "predict", "bounded",
              "--overwrite --output " + (folder_ / "x.h5") + " --set 'data.clamp={}'" + input);
  EXPECT_EQ(other.exit_code, 4);
  ASSERT_EQ(other.errors().size(), 1U) << other.err;
  EXPECT_NE(other.errors()[0].find("data.clamp"), std::string::npos) << other.errors()[0];
}

/// Two pictures and their masks, each in a file of its own; predict needs no masks.
TEST_F(ImagePredictions, NeedTargetsInOtherFilesForTrainingOnly) {
  const std::vector<double> pictures = values(fixture("pictures.h5"), "images"),
                            masks = values(fixture("pictures.h5"), "masks");
  for (const std::size_t number : {0U, 1U}) {
    for (const bool mask : {false, true}) {
      const OutputImage image{"image", OutputImage::Type::kFloat, {"height", "width"}, {9, 10}, {}, {}};
      const std::string name = (mask ? "mask_" : "photo_") + std::to_string(number) + ".h5";
      const auto file = create_image_output(ImageFormat::kHdf5, folder_ / name, {image}, {});
      std::vector<float> stored;
      for (std::size_t i = number * 90; i < (number + 1) * 90; ++i)
        stored.push_back(static_cast<float>(mask ? masks[i] : pictures[3 * i]));
      file->write(0, Box::whole(image.shape), stored);
      file->finish();
    }
  }
  const Json data = {
      {"task", "map"},
      {"files", {folder_ / "photo_*.h5"}},
      {"dims", {"height", "width"}},
      {"variables", {{{"name", "photo"}, {"data_set", "image"}}}},
      {"targets", {{{"name", "mask"}, {"data_set", "image"}, {"files", {folder_ / "mask_*.h5"}}}}},
      {"classes", 2},
      {"train", {{"sample", {0, 0}}}},
      {"valid", {{"sample", {1, 1}}}}};
  Json json = config(data, {3, 2});
  json["loss"] = {{"type", "cross_entropy"}};
  json["train"]["steps"] = 60;
  json["train"]["batch_size"] = 1;
  json["validation"]["every"] = 60;
  json["checkpoint"]["every"] = 60;
  train("masks", json);
  const double dice = scores(1, "masks")["scores"]["mask"]["dice"]["1"]["mean"].get<double>();
  std::filesystem::remove(folder_ / "mask_0.h5");
  std::filesystem::remove(folder_ / "mask_1.h5");
  std::filesystem::create_directory(folder_ / "found");
  predict(2, "masks", "found", "--set 'mesh={\"domain\":[1,2]}'");
  const std::vector<double> found = values(folder_ / "found/photo_1.h5", "mask");
  ASSERT_EQ(found.size(), 90U);
  double hits = 0, both = 0;
  for (std::size_t i = 0; i < 90; ++i) {
    hits += found[i] * masks[90 + i];
    both += found[i] + masks[90 + i];
  }
  std::printf("Dice of the picture that was not trained on: %.4f, %.4f of the file\n", dice, 2 * hits / both);
  EXPECT_NEAR(dice, 2 * hits / both, 1e-12);
  EXPECT_EQ(command(1, "evaluate", "masks", "").exit_code, 3);
}

/// By powers of two beyond float32 nothing changes but the unit.
TEST_F(ImagePredictions, ValuesBeyondSinglePrecisionAreWritten) {
  const Shape shape{3, 9, 10};
  std::vector<double> first;
  for (const int exponent : {0, 146, -132}) {
    const std::string name = "unit_" + std::to_string(exponent);
    const OutputImage a{"a", OutputImage::Type::kDouble, {"s", "y", "x"}, shape, {}, {}},
        b{"b", OutputImage::Type::kDouble, {"s", "y", "x"}, shape, {}, {}};
    std::vector<double> as, bs;
    for (std::int64_t i = 0; i < shape.count(); ++i) {
      as.push_back(std::ldexp(2 + std::sin(0.3 * static_cast<double>(i)), exponent));
      bs.push_back(std::ldexp(3 + std::cos(0.2 * static_cast<double>(i)), exponent));
    }
    const auto file = create_image_output(ImageFormat::kHdf5, folder_ / (name + ".h5"), {a, b}, {});
    file->write(0, Box::whole(shape), as);
    file->write(1, Box::whole(shape), bs);
    file->finish();
    train(name, config({{"task", "map"},
                        {"files", {folder_ / (name + ".h5")}},
                        {"dims", {"sample", "height", "width"}},
                        {"variables", {"a"}},
                        {"targets", {"b"}},
                        {"crop", {6, 4}},
                        {"train", {{"sample", {0, 1}}}},
                        {"valid", {{"sample", {2, 2}}}}},
                       {3, 2}));
    for (const char* ending : {".out.h5", ".out.nc"}) {
      predict(2, name, name + ending, "--set 'mesh={\"domain\":[1,2]}'");
      const std::vector<double> found = values(folder_ / (name + ending), "b");
      ASSERT_EQ(found.size(), bs.size());
      if (first.empty()) first = found;
      for (std::size_t i = 0; i < first.size(); ++i)
        EXPECT_NEAR(std::ldexp(found[i], -exponent), first[i], 1e-6) << name << ending;
    }
  }
}

TEST_F(ImagePredictions, ThatCannotBeAreOneSentence) {
  train("denoise", config(denoising(), {2, 2, 5}));
  predict(1, "denoise", "there.h5");
  struct Wrong {
    std::string command, arguments;
    int exit_code;
    std::string says;
  };
  const std::string output = " --output " + (folder_ / "new.h5");
  const std::vector<Wrong> cases = {
      {"predict", "--output " + (folder_ / "there.h5"), 2, "--overwrite"},
      {"predict", "--output " + (folder_ / "there.png"), 2, "must end in .h5"},
      {"predict", output + " --steps 3", 2, "--steps is for forecasts"},
      {"predict", output + " --start 2019-03-01", 2, "--start is for forecasts"},
      {"predict", output + " --classes labels", 2, "--classes"},
      {"predict", output + " --skip-existing --overwrite", 2, "--skip-existing"},
      {"predict", output + " --input " + quoted(fixture("pictures.h5")), 3, "no data set scan/density"},
      {"predict", "--output " + (folder_ / "two.h5") + " --input " + quoted(fixture("*.h5")), 3,
       "scan/density"},
      {"evaluate", "--leads 2", 2, "--leads is for forecasts"},
      {"evaluate", "--period 2019-01-01 2019-01-02", 2, "train or valid for images"},
      {"evaluate", "--set data.valid=[]", 2, "--period"}};
  int number = 0;
  for (const Wrong& wrong : cases) {
    const int ranks = number++ % 4 == 0 ? 2 : 1;  // every fourth under mpirun
    const Outcome outcome = command(ranks, wrong.command, "denoise", wrong.arguments);
    EXPECT_EQ(outcome.exit_code, wrong.exit_code) << wrong.arguments << "\n" << outcome.err;
    ASSERT_EQ(outcome.errors().size(), 1U) << wrong.arguments << "\n" << outcome.err;
    EXPECT_NE(outcome.errors()[0].find(wrong.says), std::string::npos) << outcome.err;
  }
}

}  // namespace predict_images_test
}  // namespace jigsaw::e2e
