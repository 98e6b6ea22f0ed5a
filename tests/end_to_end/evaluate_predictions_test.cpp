// Scores of predictions that stand in files, at the points of these, whoever wrote them.
#include <algorithm>
#include <array>

#include "end_to_end/image_predictions.h"

namespace jigsaw::e2e {
namespace evaluate_predictions_test {

using namespace image_predictions;

struct Volume {
  Shape shape;
  std::array<double, 3> spacing;  ///< mm along depth, height, width
  std::vector<double> image, truth, predicted;
};

/// Two balls a little apart from each other, in a volume of its own spacing.
Volume volume_of(int number) {
  const double shift = number;
  Volume volume{{6 + number, 9, 8 + number}, {2.0 + number, 1, 1.5}, {}, {}, {}};
  for (std::int64_t z = 0; z < volume.shape[0]; ++z)
    for (std::int64_t y = 0; y < volume.shape[1]; ++y)
      for (std::int64_t x = 0; x < volume.shape[2]; ++x) {
        const auto is_in = [&](double cz, double cy, double cx, double radius) {
          return std::hypot(static_cast<double>(z) - cz, static_cast<double>(y) - cy,
                            static_cast<double>(x) - cx) < radius
                     ? 1.0
                     : 0.0;
        };
        volume.truth.push_back(is_in(2.5, 4, 3.5, 2.6));
        volume.predicted.push_back(is_in(3, 4 + 0.5 * shift, 4, 2.2));
        volume.image.push_back(volume.truth.back() + 0.1 * std::sin(static_cast<double>(x * y + z)));
      }
  return volume;
}

/// From left to right, back to front and below to above in mm, by width, height and depth.
std::vector<double> affine_of(const Volume& volume) {
  const auto& [depth, height, width] = volume.spacing;
  return {width, 0, 0, -5, 0, height, 0, 3, 0, 0, depth, 11};
}

std::string case_of(int number) {
  return "case_00" + std::to_string(number);
}

class WrittenPredictionsOfImages : public ImagePredictions {
 protected:
  static constexpr int kCases = 4;

  void SetUp() override {
    for (const char* folder : {"imagesTr", "labelsTr", "out", "shares"})
      std::filesystem::create_directory(folder_ / folder);
    for (int number = 0; number < kCases; ++number) {
      const Volume volume = volume_of(number);
      write("imagesTr/" + case_of(number) + "_0000.nii.gz", volume, volume.image);
      write("labelsTr/" + case_of(number) + ".nii.gz", volume, volume.truth);
      if (number >= 2) write("out/" + case_of(number) + ".nii.gz", volume, volume.predicted);
    }
    folder_.write("out/dataset.json", "{}");
    folder_.write("ct.json", config_of_cases().dump());
  }

  void write(const std::string& name, const Volume& volume, const std::vector<double>& points,
             double apart = 0) const {
    OutputImage image{"image", OutputImage::Type::kFloat, {"depth", "height", "width"}, volume.shape, {}, {}};
    image.numbers["affine"] = affine_of(volume);
    image.numbers["affine"][3] += apart;
    write_image(folder_ / name, *image_format(name), {image}, {points});
  }

  Json config_of_cases() const {
    Json json =
        config({{"task", "map"},
                {"files", {folder_ / "imagesTr/*_0000.nii.gz"}},
                {"dims", {"depth", "height", "width"}},
                {"variables", {{{"name", "ct"}, {"data_set", "image"}}}},
                {"targets",
                 {{{"name", "organ"}, {"data_set", "image"}, {"files", {folder_ / "labelsTr/*.nii.gz"}}}}},
                {"classes", 2},
                {"spacing", {2, 1.5, 1.5}},
                {"crop", {4, 5, 6}},
                {"train", {{"case", {"case_000", "case_001"}}}},
                {"valid", {{"case", {"case_002", "case_003"}}}}},
               {2, 5, 2});
    json["loss"] = {{"type", "cross_entropy"}};
    return json;
  }

  Outcome score(int ranks, const std::string& predictions, const std::string& more = "") {
    return run(ranks, "evaluate --overwrite --config " + (folder_ / "ct.json") + " --json " +
                          (folder_ / "scores.json") + " --predictions " + predictions + " " + more);
  }
  Json scored(int ranks, const std::string& predictions, const std::string& more = "") {
    const Outcome outcome = score(ranks, predictions, more);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return outcome.exit_code == 0 ? Json::parse(std::ifstream(folder_ / "scores.json")) : Json();
  }
};

double dice_of_ones(const std::vector<double>& a, const std::vector<double>& b) {
  double both = 0, sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    both += a[i] == 1 && b[i] == 1 ? 1 : 0;
    sum += a[i] + b[i];
  }
  return 2 * both / sum;
}

using Place = std::array<double, 3>;

/// In mm, of the ones with a neighbour that is none, or beyond the volume.
std::vector<Place> surface_of_ones(const std::vector<double>& labels, const Volume& volume) {
  const Shape& n = volume.shape;
  const auto is = [&](std::int64_t z, std::int64_t y, std::int64_t x) {
    return z >= 0 && y >= 0 && x >= 0 && z < n[0] && y < n[1] && x < n[2] &&
           labels[static_cast<std::size_t>((z * n[1] + y) * n[2] + x)] == 1;
  };
  std::vector<Place> places;
  for (std::int64_t z = 0; z < n[0]; ++z)
    for (std::int64_t y = 0; y < n[1]; ++y)
      for (std::int64_t x = 0; x < n[2]; ++x) {
        if (!is(z, y, x) || (is(z - 1, y, x) && is(z + 1, y, x) && is(z, y - 1, x) && is(z, y + 1, x) &&
                             is(z, y, x - 1) && is(z, y, x + 1)))
          continue;
        places.push_back({volume.spacing[0] * static_cast<double>(z),
                          volume.spacing[1] * static_cast<double>(y),
                          volume.spacing[2] * static_cast<double>(x)});
      }
  return places;
}

/// By all pairs, with numpy.percentile's 95.
double hausdorff95_of(const std::vector<Place>& a, const std::vector<Place>& b) {
  double greatest = 0;
  for (const auto& [from, to] : {std::pair{&a, &b}, std::pair{&b, &a}}) {
    std::vector<double> distances;
    for (const Place& p : *from) {
      double least = HUGE_VAL;
      for (const Place& q : *to) least = std::min(least, std::hypot(p[0] - q[0], p[1] - q[1], p[2] - q[2]));
      distances.push_back(least);
    }
    std::sort(distances.begin(), distances.end());
    const double at = 0.95 * static_cast<double>(distances.size() - 1), below = std::floor(at);
    const auto i = static_cast<std::size_t>(below);
    const double above = distances[std::min(i + 1, distances.size() - 1)];
    greatest = std::max(greatest, distances[i] + (at - below) * (above - distances[i]));
  }
  return greatest;
}

/// Whatever data.spacing is, of the cases of data.valid alone.
TEST_F(WrittenPredictionsOfImages, AreScoredAtTheirOwnPoints) {
  for (int number = 2; number < kCases; ++number) {
    Volume volume = volume_of(number);
    OutputImage image{
        "image", OutputImage::Type::kFloat, {"class", "depth", "height", "width"}, volume.shape, {}, {}};
    image.numbers["affine"] = affine_of(volume);
    image.shape = {2, volume.shape[0], volume.shape[1], volume.shape[2]};
    std::vector<double> shares;
    for (const double label : volume.predicted) shares.push_back(0.6 - 0.4 * label);
    for (const double label : volume.predicted) shares.push_back(0.4 + 0.4 * label);
    write_image(folder_ / ("shares/" + case_of(number) + "_shares.nii"), ImageFormat::kNifti, {image},
                {shares});
  }
  const Json one = scored(1, folder_ / "out");
  ASSERT_FALSE(HasFailure());
  const Json& found = one["scores"]["organ"];
  for (int number = 2; number < kCases; ++number) {
    const Volume volume = volume_of(number);
    const auto of = [&](const char* score) {
      return found[score]["1"]["images"][static_cast<std::size_t>(number - 2)].get<double>();
    };
    const double dice = dice_of_ones(volume.predicted, volume.truth),
                 hd95 = hausdorff95_of(surface_of_ones(volume.predicted, volume),
                                       surface_of_ones(volume.truth, volume));
    std::printf("case %d: Dice %.6f, HD95 %.6f mm\n", number, dice, hd95);
    EXPECT_GT(hd95, 0);
    EXPECT_NEAR(of("dice"), dice, 1e-12);
    EXPECT_NEAR(of("hd95"), hd95, 1e-9);
  }
  EXPECT_EQ(found["hd95"]["1"]["units"], "mm");
  EXPECT_EQ(scored(3, folder_ / "out")["scores"], one["scores"]) << "on 3 ranks";
  EXPECT_EQ(scored(2, "'" + (folder_ / "out/*.nii.gz") + "'")["scores"], one["scores"]) << "by pattern";
  EXPECT_EQ(scored(2, "'" + (folder_ / "shares/*_shares.nii") + "'")["scores"], one["scores"])
      << "probabilities, of files called otherwise";
  EXPECT_EQ(scored(1, folder_ / "labelsTr", "--period train")["scores"]["organ"]["mean_dice"]["mean"], 1.0);
}

TEST_F(WrittenPredictionsOfImages, ThatDoNotFitAreOneSentence) {
  const Volume volume = volume_of(3);
  const std::string name = "out/" + case_of(3) + ".nii.gz", out = folder_ / "out";
  const auto refuses = [&](int ranks, int exit_code, const std::string& says, const std::string& more = "") {
    const Outcome outcome = score(ranks, out, more);
    EXPECT_EQ(outcome.exit_code, exit_code) << outcome.err;
    ASSERT_EQ(outcome.errors().size(), 1U) << outcome.err;
    EXPECT_NE(outcome.errors()[0].find(says), std::string::npos) << outcome.err;
  };
  write(name, volume, volume.predicted, 4);
  refuses(2, 3, "do not lie over each other");
  EXPECT_EQ(score(1, out, "--set data.alignment=null").exit_code, 0);
  Volume shorter = volume;
  shorter.shape[0] -= 1;
  write(name, shorter, std::vector<double>(static_cast<std::size_t>(shorter.shape.count()), 1.0));
  refuses(1, 3, "scored at the points of the files");
  write(name, volume, std::vector<double>(volume.truth.size(), 7.0));
  refuses(2, 3, "holds the label 7; labels are 0 to 1");
  write(name, volume, volume.predicted);
  std::filesystem::copy_file(folder_ / name, folder_ / "out/case_003.nii");
  refuses(1, 3, "two files of --predictions are of case_003: ");
  std::filesystem::remove(folder_ / "out/case_003.nii");
  std::filesystem::remove(folder_ / name);
  refuses(2, 3, "--predictions lack case_003 of data.valid, and hold case_002");
  refuses(1, 3, "--predictions lack case_003", "--set 'data.valid={\"case\":\"case_003\"}'");
  refuses(1, 2, "name one of them", "--checkpoint x");
  refuses(1, 2, "name one of them", "--mirror depth");
  refuses(1, 2, "name whole images by case", "--set 'data.valid={\"depth\":[0,3]}'");
  refuses(1, 2, "--period train is needed", "--set data.valid=[]");
  const Outcome neither = run(1, "evaluate --config " + (folder_ / "ct.json"));
  EXPECT_EQ(neither.exit_code, 2);
  EXPECT_NE(neither.err.find("--checkpoint is required, or --predictions"), std::string::npos) << neither.err;
}

/// Images and labels run to the left and the back; predictions that say no place, or one of their own, are
/// stored alike.
TEST_F(WrittenPredictionsOfImages, AreTurnedAsTheirCases) {
  const auto write_as = [&](const std::string& name, const Volume& volume, const std::vector<double>& points,
                            bool backwards) {
    OutputImage image{"image", OutputImage::Type::kFloat, {"depth", "height", "width"}, volume.shape, {}, {}};
    image.numbers["affine"] = affine_of(volume);
    if (backwards)
      for (const std::size_t step : {0U, 5U}) image.numbers["affine"][step] *= -1;
    write_image(folder_ / name, ImageFormat::kNifti, {image}, {points});
  };
  Json json = config_of_cases();
  json["data"]["files"] = {folder_ / "lps/*_0000.nii"};
  json["data"]["targets"][0]["files"] = {folder_ / "truth/*.nii"};
  json["data"].erase("spacing");
  folder_.write("ct.json", json.dump());
  for (const char* folder : {"lps", "truth", "none", "ras"})
    std::filesystem::create_directory(folder_ / folder);
  double dice = 0;
  for (int number = 0; number < kCases; ++number) {
    const Volume volume = volume_of(number);
    write_as("lps/" + case_of(number) + "_0000.nii", volume, volume.image, true);
    write_as("truth/" + case_of(number) + ".nii", volume, volume.truth, true);
    for (const std::string& name : {"none/" + case_of(number) + ".nii", "ras/" + case_of(number) + ".nii"})
      write_as(name, volume, volume.predicted, false);
    drop_place(folder_ / ("none/" + case_of(number) + ".nii"));
    if (number >= 2) dice += dice_of_ones(volume.predicted, volume.truth) / 2;
  }
  const auto found = [&](const std::string& folder, const std::string& more) {
    return scored(2, folder_ / folder, more)["scores"]["organ"]["dice"]["1"]["mean"].get<double>();
  };
  EXPECT_NEAR(found("none", ""), dice, 1e-12);
  EXPECT_NEAR(found("ras", "--set data.alignment=null"), dice, 1e-12);
}

/// As users of nnU-Net have them: predict calls its files as the cases, and evaluate finds them.
TEST_F(WrittenPredictionsOfImages, OfPredictAreCalledAsCases) {
  ASSERT_EQ(run(1, "--config " + (folder_ / "ct.json") + " --set output=" + (folder_ / "ct")).exit_code, 0);
  predict(2, "ct", "results/", "--set 'mesh={\"domain\":[1,2,1]}'");
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "results"))
    names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  EXPECT_EQ(names, (std::vector<std::string>{"case_000.nii.gz", "case_001.nii.gz", "case_002.nii.gz",
                                             "case_003.nii.gz"}));
  const Outcome again = command(1, "predict", "ct", "--skip-existing --output " + (folder_ / "results/"));
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_NE(again.out.find("left alone 4 inputs"), std::string::npos) << again.out;
  predict(1, "ct", "alone/", "--input " + (folder_ / "imagesTr/case_003_0000.nii.gz"));
  EXPECT_EQ(values(folder_ / "alone/case_003.nii.gz", "image"),
            values(folder_ / "results/case_003.nii.gz", "image"));
  const Json found = scored(2, folder_ / "results")["scores"]["organ"]["accuracy"]["images"];
  for (int number = 2; number < kCases; ++number) {
    const std::vector<double> labels = values(folder_ / ("results/" + case_of(number) + ".nii.gz"), "image"),
                              truth = volume_of(number).truth;
    double right = 0;
    for (std::size_t i = 0; i < truth.size(); ++i) right += labels[i] == truth[i] ? 1 : 0;
    EXPECT_NEAR(found[static_cast<std::size_t>(number - 2)].get<double>(),
                right / static_cast<double>(truth.size()), 1e-12);
  }
}

/// Numbers, in NetCDF, of a part of one volume, with what is missing in it.
TEST_F(WrittenPredictionsOfImages, OfNumbersHaveTheErrorsOfPlainLoops) {
  Shape shape;
  std::vector<double> truth = values(fixture("volume.h5"), "scan/density", &shape), predicted;
  for (std::size_t i = 0; i < truth.size(); ++i)
    predicted.push_back(truth[i] + 0.1 * std::sin(static_cast<double>(i)));
  OutputImage image{"scan/density", OutputImage::Type::kFloat, {"depth", "height", "width"}, shape, {}, {}};
  write_image(folder_ / "denoised.nc", ImageFormat::kNetcdf, {image}, {predicted});
  folder_.write("ct.json", config(denoising(), {2, 2, 5}).dump());
  double count = 0, squares = 0, sizes = 0;
  for (std::size_t i = 6 * 90; i < truth.size(); ++i) {
    const double error = static_cast<double>(static_cast<float>(predicted[i])) - truth[i];
    if (std::isnan(error)) continue;
    count += 1, squares += error * error, sizes += std::abs(error);
  }
  for (const int ranks : {1, 3}) {
    const Json found = scored(ranks, folder_ / "denoised.nc")["scores"]["scan/density"];
    EXPECT_NEAR(found["rmse"]["mean"].get<double>(), std::sqrt(squares / count), 1e-9);
    EXPECT_NEAR(found["mae"]["mean"].get<double>(), sizes / count, 1e-9);
    EXPECT_FALSE(found.contains("input_psnr")) << "there is no noisy image";
  }
}

}  // namespace evaluate_predictions_test
}  // namespace jigsaw::e2e
