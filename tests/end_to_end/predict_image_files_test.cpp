// Files that predict writes of images: slices of a volume in one, and what damaged inputs leave of the
// others.
#include <algorithm>

#include "end_to_end/image_predictions.h"

namespace jigsaw::e2e {
namespace predict_image_files_test {

using namespace image_predictions;

using ImageFilesOfPredict = ImagePredictions;

/// Places of the ones of a picture with a neighbour that is none, or beyond it.
std::vector<std::pair<double, double>> border_of_ones(const double* labels, const Shape& shape) {
  const auto is = [&](std::int64_t row, std::int64_t column) {
    return row >= 0 && row < shape[0] && column >= 0 && column < shape[1] &&
           labels[row * shape[1] + column] == 1;
  };
  std::vector<std::pair<double, double>> border;
  for (std::int64_t row = 0; row < shape[0]; ++row) {
    for (std::int64_t column = 0; column < shape[1]; ++column) {
      if (!is(row, column)) continue;
      if (is(row - 1, column) && is(row + 1, column) && is(row, column - 1) && is(row, column + 1)) continue;
      border.emplace_back(row, column);
    }
  }
  return border;
}

/// By all pairs, with numpy.percentile's 95.
double hausdorff95_of_ones(const double* a, const double* b, const Shape& shape, double height,
                           double width) {
  double greatest = 0;
  for (const auto& [from, to] : {std::pair{a, b}, std::pair{b, a}}) {
    std::vector<double> distances;
    for (const auto& [row, column] : border_of_ones(from, shape)) {
      double least = HUGE_VAL;
      for (const auto& [other_row, other_column] : border_of_ones(to, shape))
        least = std::min(least, std::hypot(height * (row - other_row), width * (column - other_column)));
      distances.push_back(least);
    }
    if (distances.empty()) return NAN;
    std::sort(distances.begin(), distances.end());
    const double place = 0.95 * static_cast<double>(distances.size() - 1), below = std::floor(place);
    const auto at = static_cast<std::size_t>(below);
    const double above = distances[std::min(at + 1, distances.size() - 1)];
    greatest = std::max(greatest, distances[at] + (place - below) * (above - distances[at]));
  }
  return greatest;
}

/// A volume in NIfTI whose slices are the samples: they are stacked again, and their surfaces lie millimetres
/// apart.
TEST_F(ImageFilesOfPredict, OfSlicesAreTheVolume) {
  const Shape shape{5, 9, 10};
  OutputImage image{"image", OutputImage::Type::kFloat, {"depth", "height", "width"}, shape, {}, {}};
  image.numbers["affine"] = {-1.5, 0, 0, 7, 0, 0.5, 0, 3, 0, 0, 4, 11};
  const std::vector<double> pictures = values(fixture("pictures.h5"), "images");
  std::vector<double> scan, mask;
  for (std::size_t i = 0; i < 450; ++i) scan.push_back(pictures[3 * i]);
  for (const double value : values(fixture("pictures.h5"), "masks")) mask.push_back(value);
  for (const char* name : {"a", "b"}) {
    write_image(folder_ / (std::string("image_") + name + ".nii"), ImageFormat::kNifti, {image}, {scan});
    write_image(folder_ / (std::string("mask_") + name + ".nii"), ImageFormat::kNifti, {image}, {mask});
  }
  const Json data = {
      {"task", "map"},
      {"files", {folder_ / "image_*.nii"}},
      {"dims", {"sample", "height", "width"}},
      {"variables", {"image"}},
      {"targets", {{{"name", "mask"}, {"data_set", "image"}, {"files", {folder_ / "mask_*.nii"}}}}},
      {"classes", 2},
      {"train", {{"sample", {0, 7}}}},
      {"valid", {{"sample", {8, 9}}}}};
  Json json = config(data, {3, 2});
  json["loss"] = {{"type", "cross_entropy"}};
  json["train"]["steps"] = json["validation"]["every"] = json["checkpoint"]["every"] = 60;
  train("slices", json);
  predict(2, "slices", "out/", "--set 'mesh={\"domain\":[1,2]}'");
  predict(1, "slices", "shares/", "--classes probabilities");
  predict(1, "slices", "one.h5", "--input " + (folder_ / "image_a.nii"));
  Shape found;
  const std::vector<double> labels = values(folder_ / "out/image_a.nii", "image", &found);
  EXPECT_EQ(found, shape);
  EXPECT_EQ(labels, values(folder_ / "out/image_b.nii", "image"));
  EXPECT_EQ(labels, values(folder_ / "one.h5", "mask", &found));
  EXPECT_EQ(found, shape);
  EXPECT_TRUE(std::ranges::count(labels, 1) > 0 && std::ranges::count(labels, 0) > 0);
  const std::vector<double> shares = values(folder_ / "shares/image_a.nii", "image", &found);
  ASSERT_EQ(found, (Shape{2, 5, 9, 10}));
  for (std::size_t i = 0; i < labels.size(); ++i) {
    EXPECT_EQ(labels[i], shares[450 + i] > shares[i] ? 1 : 0) << i;
    EXPECT_NEAR(shares[450 + i] + shares[i], 1, 1e-6);
  }
  const auto in = open_variables(folder_ / "image_a.nii", Dimensions::kByNumber);
  for (const char* name : {"out/image_a.nii", "one.h5"}) {
    const auto out = open_variables(folder_ / name, Dimensions::kByNumber);
    const FileVariable& written = out->variables().front();
    EXPECT_EQ(written.numbers.at("affine"), in->variables().front().numbers.at("affine")) << name;
    EXPECT_EQ(written.numbers.at("spacing"), (std::vector<double>{4, 0.5, 1.5})) << name;
  }
  // The last two slices of the second file are those of validation.
  const Json scored = scores(1, "slices")["scores"]["mask"]["hd95"]["1"];
  EXPECT_EQ(scored["units"], "mm");
  const std::vector<double> truth = values(folder_ / "mask_b.nii", "image");
  for (const std::size_t slice : {3U, 4U}) {
    const double expected = hausdorff95_of_ones(&labels[slice * 90], &truth[slice * 90], {9, 10}, 0.5, 1.5);
    std::printf("HD95 of slice %zu: %.6f mm\n", slice, expected);
    ASSERT_TRUE(std::isfinite(expected)) << "a slice without the class says nothing here";
    EXPECT_NEAR(scored["images"][slice - 3].get<double>(), expected, 1e-9);
  }
}

/// What another picture's file is damaged of is told when the good ones are written.
TEST_F(ImageFilesOfPredict, OfGoodFilesAreWrittenBesideDamagedOnes) {
  const Shape shape{8, 40, 40};
  const OutputImage image{"image", OutputImage::Type::kFloat, {"depth", "height", "width"}, shape, {}, {}};
  for (const char* name : {"a", "b", "c", "d"}) {
    std::vector<double> points;
    for (std::int64_t i = 0; i < shape.count(); ++i)
      points.push_back(std::sin(static_cast<double>(i * i % 1009) + name[0]));
    write_image(folder_ / (std::string("scan_") + name + ".nii.gz"), ImageFormat::kNiftiGz, {image},
                {points});
  }
  Json data = denoising();
  data["files"] = {folder_ / "scan_*.nii.gz"};
  data["variables"] = {"image"};
  data["crop"] = {4, 20, 20};
  data["train"] = {{"sample", {0, 2}}};
  data["valid"] = {{"sample", {3, 3}}};
  train("scans", config(data, {2, 10, 10}));
  predict(1, "scans", "whole/");
  const auto damage = [&](const std::string& name, bool header) {
    std::fstream file(folder_ / name, std::ios::in | std::ios::out | std::ios::binary);
    const auto size = static_cast<std::streamoff>(std::filesystem::file_size(folder_ / name));
    file.seekp(header ? 0 : size / 2);
    file << std::string(header ? 16 : static_cast<std::size_t>(size / 2), '\x5a');
  };
  for (const bool header : {false, true}) {
    const std::string good = folder_ / "scan_b.nii.gz", kept = folder_ / "kept";
    std::filesystem::copy_file(good, kept);
    damage("scan_b.nii.gz", header);
    for (const int ranks : {1, 2}) {
      std::filesystem::remove_all(folder_ / "out");
      const Outcome outcome = command(ranks, "predict", "scans", "--output " + (folder_ / "out/"));
      EXPECT_EQ(outcome.exit_code, 3) << outcome.err;
      ASSERT_EQ(outcome.errors().size(), 1U) << outcome.err;
      EXPECT_NE(outcome.errors()[0].find("scan_b.nii.gz"), std::string::npos) << outcome.err;
      EXPECT_NE(outcome.errors()[0].find("the other inputs were predicted"), std::string::npos)
          << outcome.err;
      EXPECT_FALSE(std::filesystem::exists(folder_ / "out/scan_b.nii.gz"));
      EXPECT_FALSE(std::filesystem::exists(folder_ / "out/scan_b.nii.gz.tmp"));
      for (const std::string name : {"scan_a.nii.gz", "scan_c.nii.gz", "scan_d.nii.gz"})
        EXPECT_EQ(values(folder_ / ("out/" + name), "image"), values(folder_ / ("whole/" + name), "image"))
            << name << " on " << ranks;
    }
    std::filesystem::rename(kept, good);
  }
  // Mended, it alone is left to do.
  const auto written = std::filesystem::last_write_time(folder_ / "out/scan_a.nii.gz");
  EXPECT_EQ(command(1, "predict", "scans", "--output " + (folder_ / "out/")).exit_code, 2);
  const Outcome outcome = command(2, "predict", "scans", "--skip-existing --output " + (folder_ / "out/"));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("left alone 3 inputs whose outputs are there"), std::string::npos)
      << outcome.out;
  EXPECT_NE(outcome.out.find("wrote 1 image "), std::string::npos) << outcome.out;
  EXPECT_EQ(std::filesystem::last_write_time(folder_ / "out/scan_a.nii.gz"), written);
  EXPECT_EQ(values(folder_ / "out/scan_b.nii.gz", "image"), values(folder_ / "whole/scan_b.nii.gz", "image"));
  EXPECT_EQ(command(1, "predict", "scans", "--skip-existing --output " + (folder_ / "out/")).exit_code, 0);
}

}  // namespace predict_image_files_test
}  // namespace jigsaw::e2e
