// What trained models say of images: files beside the input's geometry, the same on every mesh; scores that
// those files have, too; one sentence where it cannot be done.
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

TEST_F(ImagePredictions, LieWhereTheInputLies) {
  // A grid that is turned about the first axis, with points of other distances along each.
  for (const char* name : {"a.nii", "b.nii"}) {
    const std::vector<double> density = values(fixture("volume.h5"), "turned");
    OutputImage image{"image", OutputImage::Type::kFloat, {"depth", "height", "width"}, {9, 10, 11}, {}, {}};
    image.numbers["affine"] = {1.5, 0, 0, -7, 0, 0.5, 0.25, 3, 0, -0.1, 2, 11};
    const auto file = create_image_output(ImageFormat::kNifti, folder_ / name, {image}, {});
    std::vector<float> stored(density.begin(), density.end());
    file->write(0, Box::whole(image.shape), stored);
    file->finish();
  }
  Json data = denoising();
  data["files"] = {folder_ / "a.nii"};
  data["variables"] = {"image"};
  data["crop"] = {4, 5, 6};
  data["valid"] = {{"depth", {4, 8}}};
  train("nifti", config(data, {2, 5, 2}));
  predict(1, "nifti", "out.h5");
  predict(2, "nifti", "out.nii.gz", "--set 'mesh={\"domain\":[1,1,2]}'");
  EXPECT_LE(largest_difference(values(folder_ / "out.h5", "image"), values(folder_ / "out.nii.gz", "image")),
            2.4e-7);
  const auto in = open_variables(folder_ / "a.nii", Dimensions::kByNumber),
             out = open_variables(folder_ / "out.nii.gz", Dimensions::kByNumber),
             also = open_variables(folder_ / "out.h5", Dimensions::kByNumber);
  for (const auto* file : {&out, &also}) {
    const FileVariable &image = *(*file)->find("image"), &input = *in->find("image");
    EXPECT_EQ(image.shape, input.shape);
    EXPECT_EQ(image.numbers.at("affine"), input.numbers.at("affine"));
    EXPECT_EQ(image.numbers.at("spacing"), input.numbers.at("spacing"));
  }
  // Of two inputs each has an output of its own, in the folder that is named.
  std::filesystem::create_directory(folder_ / "both");
  predict(1, "nifti", "both", "--input " + (folder_ / "a.nii") + " " + (folder_ / "b.nii"));
  const std::vector<double> a = values(folder_ / "both/a.nii", "image");
  EXPECT_EQ(largest_difference(a, values(folder_ / "both/b.nii", "image")), 0);
  EXPECT_LE(largest_difference(a, values(folder_ / "out.h5", "image")), 2.4e-7);
}

/// Times, an axis that runs down, an axis that is missing, and latitudes of points.
TEST_F(ImagePredictions, OfNetcdfKeepItsDimsAndCoordinates) {
  const std::vector<double> rows = {80, 60, 40, 20, 0, -20, -40, -60, -80}, times = {0, 6, 12, 18, 24};
  std::vector<double> values_of_points(5 * 9 * 10), north(90);
  for (std::size_t i = 0; i < values_of_points.size(); ++i)
    values_of_points[i] = std::sin(0.1 * static_cast<double>(i));
  for (std::size_t i = 0; i < north.size(); ++i) north[i] = rows[i / 10] + 0.1 * static_cast<double>(i % 10);
  {
    testing::NetcdfWriter file(folder_ / "in.nc");
    const int time = file.dimension("time", 5), y = file.dimension("lat", 9), x = file.dimension("x", 10);
    const int times_at = file.variable("time", NC_INT, {time}), rows_at = file.variable("lat", NC_FLOAT, {y}),
              north_at = file.variable("north", NC_DOUBLE, {y, x});
    file.text(times_at, "units", "hours since 2020-01-01");
    file.text(times_at, "calendar", "noleap");
    file.text(rows_at, "units", "degrees_north");
    file.text(north_at, "units", "degrees_north");
    const std::vector<int> in = {file.variable("t", NC_FLOAT, {time, y, x}),
                                 file.variable("wanted", NC_FLOAT, {time, y, x})};
    file.end();
    file.put(times_at, times);
    file.put(rows_at, rows);
    file.put(north_at, north);
    for (const int variable : in) file.put(variable, values_of_points);
  }
  Json data = segmenting();
  data["files"] = {folder_ / "in.nc"};
  data["dims"] = {"sample", "height", "width"};
  data["variables"] = {"t"};
  data["targets"] = {"wanted"};
  data.erase("classes");
  train("netcdf", config(data, {3, 2}));
  predict(2, "netcdf", "out.nc", "--set 'mesh={\"domain\":[1,2]}'");
  const auto out = open_variables(folder_ / "out.nc", Dimensions::kByName);
  const auto of = [&](const char* name) { return out->read_all(*out->find(name)); };
  EXPECT_EQ(out->find("wanted")->dimensions, (std::vector<std::string>{"time", "lat", "x"}));
  EXPECT_EQ(of("time"), times);
  EXPECT_EQ(out->find("time")->text("units"), "hours since 2020-01-01");
  EXPECT_EQ(out->find("time")->text("calendar"), "noleap");
  EXPECT_EQ(of("lat"), rows);
  EXPECT_EQ(out->find("lat")->text("units"), "degrees_north");
  EXPECT_EQ(of("north"), north);
  EXPECT_EQ(out->find("north")->dimensions, (std::vector<std::string>{"lat", "x"}));
  EXPECT_EQ(out->find("x"), nullptr);
  EXPECT_EQ(out->variables().size(), 4U);
}

/// Files of one image in a group, with a scalar time, packed coordinates and a projection; two of three
/// bands.
TEST_F(ImagePredictions, OfGroupsKeepTimesBandsAndAttributes) {
  for (int number = 0; number < 3; ++number) {
    testing::NetcdfWriter file(folder_ / ("scan_" + std::to_string(number) + ".nc"));
    const int group = file.group("Grid"), band = file.dimension("band", 3, group),
              y = file.dimension("lat", 9, group), x = file.dimension("lon", 10, group);
    const int time = file.variable("t", NC_DOUBLE, {}), mapping = file.variable("projection", NC_INT, {}),
              bands = file.variable("band", NC_DOUBLE, {band}, group),
              rows = file.variable("lat", NC_DOUBLE, {y}, group),
              image = file.variable("bt", NC_FLOAT, {band, y, x}, group);
    file.text(time, "units", "seconds since 2000-01-01 12:00:00");
    file.text(mapping, "grid_mapping_name", "geostationary");
    file.number(mapping, "semi_major_axis", NC_DOUBLE, 6378137);
    file.text(bands, "units", "um", group);
    file.text(rows, "units", "degrees_north", group);
    file.text(image, "units", "K", group);
    file.text(image, "long_name", "brightness temperature", group);
    file.text(image, "grid_mapping", "projection", group);
    file.end();
    file.put(time, std::vector<double>{600.0 * number});
    file.put(bands, {3.9, 6.2, 10.8}, group);
    file.put(rows, {4, 3, 2, 1, 0, -1, -2, -3, -4}, group);
    std::vector<double> points;
    for (int i = 0; i < 270; ++i) points.push_back(280 + 5 * std::sin(0.3 * i + number));
    file.put(image, points, group);
  }
  Json data = denoising();
  data["files"] = {folder_ / "scan_*.nc"};
  data["dims"] = {"channel", "height", "width"};
  data["variables"] = {{{"name", "Grid/bt"}, {"levels", {2, 0}}}};
  data.erase("crop");
  data["train"] = {{"sample", {0, 1}}};
  data["valid"] = {{"sample", {2, 2}}};
  train("scans", config(data, {3, 2}));
  // One image, where data.train names two.
  predict(1, "scans", "out.nc", "--input " + (folder_ / "scan_2.nc"));
  const auto out = open_variables(folder_ / "out.nc", Dimensions::kByName);
  const FileVariable* image = out->find("Grid_bt");
  ASSERT_NE(image, nullptr);
  EXPECT_EQ(image->dimensions, (std::vector<std::string>{"band", "lat", "lon"}));
  EXPECT_EQ(image->shape, (Shape{2, 9, 10}));
  EXPECT_EQ(image->text("long_name"), "brightness temperature");
  EXPECT_EQ(image->text("units"), "K");
  EXPECT_EQ(image->text("grid_mapping"), "projection");
  for (const char* name : {"band", "lat", "t", "projection"}) ASSERT_NE(out->find(name), nullptr) << name;
  EXPECT_EQ(out->find("projection")->text("grid_mapping_name"), "geostationary");
  EXPECT_EQ(out->read_all(*out->find("band")), (std::vector{10.8, 3.9}));
  EXPECT_EQ(out->find("band")->text("units"), "um");
  EXPECT_EQ(out->read_all(*out->find("lat")).front(), 4);
  EXPECT_EQ(out->read_all(*out->find("t")), (std::vector{1200.0}));
  EXPECT_EQ(out->find("t")->shape.rank(), 0);
}

/// All stand beside the first variable's images, whichever files the others have.
TEST_F(ImagePredictions, OfVariablesInFilesOfTheirOwnAreAllThere) {
  const auto write = [&](const std::string& name, const char* variable, int first, int count) {
    testing::NetcdfWriter file(folder_ / name);
    const std::vector<int> dims = {file.dimension("n", static_cast<std::size_t>(count)),
                                   file.dimension("y", 9), file.dimension("x", 10)};
    const int at = file.variable(variable, NC_FLOAT, dims);
    file.end();
    std::vector<double> values;
    for (int i = 90 * first; i < 90 * (first + count); ++i) values.push_back(std::sin(0.1 * i));
    file.put(at, values);
  };
  write("a.nc", "a", 0, 3);
  write("all.nc", "b", 4, 3);
  Json several = Json::array();
  for (int image = 0; image < 3; ++image) {
    several.push_back(folder_ / ("b" + std::to_string(image) + ".nc"));
    write("b" + std::to_string(image) + ".nc", "b", 4 + image, 1);
  }
  const auto predicted = [&](const std::string& name, const Json& files_of_b) {
    Json data = denoising();
    data["files"] = {folder_ / "a.nc"};
    data["dims"] = {"sample", "height", "width"};
    data["variables"] = {"a", {{"name", "b"}, {"files", files_of_b}}};
    data["crop"] = {6, 5};
    data["train"] = {{"sample", {0, 1}}};
    data["valid"] = {{"sample", {2, 2}}};
    train(name, config(data, {3, 5}));
    predict(2, name, name + ".nc", "--set 'mesh={\"domain\":[1,2]}'");
    Shape shape;
    const std::vector<double> b = values(folder_ / (name + ".nc"), "b", &shape);
    EXPECT_EQ(shape, (Shape{3, 9, 10}));
    return b;
  };
  const std::vector<double> one = predicted("one", {folder_ / "all.nc"}), own = predicted("own", several);
  EXPECT_LE(largest_difference(one, own), 2.4e-7);
  for (int image = 0; image < 3; ++image) {
    const auto first = own.begin() + 90 * image;
    EXPECT_TRUE(std::any_of(first, first + 90, [](double value) { return std::abs(value) > 1e-3; })) << image;
  }
}

/// Numbers of points brought from one distance to another, multilinearly: point i of the result lies at
/// i · step of what is given; beyond the last point its own counts, and NaN does where `missing_spreads`,
/// else those neighbours that are there. @param shape, wanted  [space…], two or three of it
std::vector<double> brought(const std::vector<double>& given, const Shape& shape, const Shape& wanted,
                            const std::vector<double>& step, bool missing_spreads) {
  std::vector<double> result;
  const int dims = shape.rank();
  for (std::int64_t i = 0; i < wanted.count(); ++i) {
    double sum = 0, weights = 0;
    for (int corner = 0; corner < 1 << dims; ++corner) {
      double weight = 1;
      std::int64_t index = 0;
      for (int d = 0; d < dims; ++d) {
        const std::int64_t at = i / wanted.strides()[d] % wanted[d];
        const double place = std::min(static_cast<double>(at) * step[static_cast<std::size_t>(d)],
                                      static_cast<double>(shape[d] - 1));
        const bool above = (corner >> d & 1) != 0;
        const double share = place - std::floor(place);
        weight *= above ? share : 1 - share;
        index = index * shape[d] +
                std::min(static_cast<std::int64_t>(std::floor(place)) + (above ? 1 : 0), shape[d] - 1);
      }
      const double value = given[static_cast<std::size_t>(index)];
      if (weight == 0 || (std::isnan(value) && !missing_spreads)) continue;
      sum += weight * value;
      weights += weight;
    }
    result.push_back(sum / weights);
  }
  return result;
}

/// A volume whose points lie apart otherwise than the model's: what is written lies where the input does, and
/// is what the model says of the volume on the common points, brought back.
TEST_F(ImagePredictions, AtACommonSpacingLieOnThePointsOfTheInput) {
  const Shape own{9, 10, 11}, common{11, 6, 13};
  const std::vector<double> spacing = {1.5, 0.8, 1.2};
  OutputImage volume{"image", OutputImage::Type::kFloat, {"depth", "height", "width"}, own, {}, {}};
  volume.numbers["affine"] = {1.5, 0, 0, -7, 0, 0.5, 0.25, 3, 0, -0.1, 2, 11};
  std::vector<double> density = values(fixture("volume.h5"), "turned");
  const std::size_t missing = (4 * 10 + 3) * 11 + 6;
  density[missing] = std::nan("");
  write_image(folder_ / "in.nii", ImageFormat::kNifti, {volume}, {density});
  Json data = denoising();
  data["files"] = {folder_ / "in.nii"};
  data["variables"] = {"image"};
  data["spacing"] = spacing;
  data["crop"] = {4, 3, 6};
  data["train"] = {{"depth", {0, 10}}};
  data["valid"] = {{"depth", {5, 10}}};
  train("spaced", config(data, {2, 3, 2}));
  // The same volume on the common points, in another file.
  const auto in = open_variables(folder_ / "in.nii", Dimensions::kByNumber);
  const std::vector<double> had = in->find("image")->numbers.at("spacing");
  std::vector<double> there, back;
  for (std::size_t d = 0; d < 3; ++d) {
    there.push_back(spacing[d] / had[d]);
    back.push_back(had[d] / spacing[d]);
  }
  write_image(folder_ / "common.h5", ImageFormat::kHdf5, {spaced("image", common, spacing)},
              {brought(density, own, common, there, true)});
  predict(1, "spaced", "on_common.h5", "--input " + (folder_ / "common.h5"));
  Shape shape;
  std::vector<double> wanted = values(folder_ / "on_common.h5", "image", &shape);
  ASSERT_EQ(shape, common);
  wanted = brought(wanted, common, own, back, false);
  wanted[missing] = std::nan("");
  std::vector<double> one;
  for (const MeshCase& mesh :
       std::vector<MeshCase>{{"{}", 1}, {R"({"domain":[1,2,1]})", 2}, {R"({"data":3})", 3}}) {
    predict(mesh.ranks, "spaced", "out.nii", " --set 'mesh=" + std::string(mesh.json) + "'");
    const std::vector<double> found = values(folder_ / "out.nii", "image", &shape);
    ASSERT_EQ(shape, own) << mesh.json;
    if (one.empty()) one = found;
    std::printf("%-30s the volume differs by %.1e from loops, by %.1e from that of one rank\n", mesh.json,
                largest_difference(found, wanted), largest_difference(found, one));
    EXPECT_LE(largest_difference(found, wanted), 1e-5);
    EXPECT_LE(largest_difference(found, one), 2.4e-7);
  }
  const auto out = open_variables(folder_ / "out.nii", Dimensions::kByNumber);
  EXPECT_EQ(out->find("image")->numbers.at("affine"), in->find("image")->numbers.at("affine"));
  EXPECT_EQ(out->find("image")->numbers.at("spacing"), had);
}

/// Of classes probabilities are brought back, and the likeliest is found where the input's points lie.
TEST_F(ImagePredictions, AtACommonSpacingAreLabelsOfThePointsOfTheInput) {
  const Shape own{9, 10}, common{6, 15};
  const std::vector<double> had = {1, 2}, spacing = {1.5, 1.25}, there = {1.5, 0.625}, back = {1 / 1.5, 1.6};
  const std::vector<double> pictures = values(fixture("pictures.h5"), "images"),
                            masks = values(fixture("pictures.h5"), "masks");
  for (const std::size_t number : {0U, 1U}) {
    std::vector<double> picture, mask;
    for (std::size_t i = number * 90; i < (number + 1) * 90; ++i) {
      picture.push_back(pictures[3 * i]);
      mask.push_back(masks[i]);
    }
    write_image(folder_ / ("photo_" + std::to_string(number) + ".h5"), ImageFormat::kHdf5,
                {spaced("image", own, had), spaced("mask", own, had)}, {picture, mask});
    if (number == 1)
      write_image(folder_ / "common.h5", ImageFormat::kHdf5, {spaced("image", common, spacing)},
                  {brought(picture, own, common, there, true)});
  }
  const Json data = {{"task", "map"},
                     {"files", {folder_ / "photo_*.h5"}},
                     {"dims", {"height", "width"}},
                     {"spacing", spacing},
                     {"crop", {6, 5}},
                     {"variables", {"image"}},
                     {"targets", {"mask"}},
                     {"classes", 2},
                     {"train", {{"sample", {0, 0}}}},
                     {"valid", {{"sample", {1, 1}}}}};
  Json json = config(data, {3, 5});
  json["loss"] = {{"type", "cross_entropy"}};
  json["train"]["steps"] = json["validation"]["every"] = json["checkpoint"]["every"] = 15;
  train("masks", json);
  predict(1, "masks", "common_shares.h5", "--classes probabilities --input " + (folder_ / "common.h5"));
  Shape shape;
  const std::vector<double> shares = values(folder_ / "common_shares.h5", "mask", &shape);
  ASSERT_EQ(shape, (Shape{2, 6, 15}));
  const std::vector<double> of_second(shares.begin() + 90, shares.end()),
      second = brought(of_second, common, own, back, true);
  const std::string input = "--input " + (folder_ / "photo_1.h5");
  predict(2, "masks", "shares.h5", "--classes probabilities --set 'mesh={\"domain\":[1,2]}' " + input);
  predict(2, "masks", "labels.h5", "--set 'mesh={\"domain\":[2,1]}' " + input);
  const std::vector<double> found = values(folder_ / "shares.h5", "mask", &shape);
  ASSERT_EQ(shape, (Shape{2, 9, 10}));
  const std::vector<double> labels = values(folder_ / "labels.h5", "mask", &shape);
  ASSERT_EQ(shape, own);
  std::size_t ones = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    EXPECT_NEAR(found[90 + i], second[i], 1e-5) << i;
    EXPECT_NEAR(found[i] + found[90 + i], 1, 1e-6) << i;
    ones += labels[i] == 1 ? 1 : 0;
    if (std::abs(second[i] - 0.5) < 1e-4) continue;
    EXPECT_EQ(labels[i], second[i] > 0.5 ? 1 : 0) << i;
  }
  EXPECT_TRUE(ones > 0 && ones < labels.size()) << ones;
  EXPECT_GT(std::count_if(second.begin(), second.end(), [](double p) { return p > 0.1 && p < 0.9; }), 20)
      << "what is brought back is worth a look where the model is in doubt";
  const auto out = open_variables(folder_ / "labels.h5", Dimensions::kByNumber);
  EXPECT_EQ(out->find("mask")->numbers.at("spacing"), had);
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
