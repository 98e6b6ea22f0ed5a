// Where what trained models say of images lies: coordinates, axes and spacings of results are those of the
// input.
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "end_to_end/image_predictions.h"
#include "io/netcdf_writer.h"

namespace jigsaw::e2e {
namespace predict_image_places_test {

using namespace image_predictions;
using namespace std::string_literals;

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

/// A second input without a place, stored as the first one, which runs to the left and the back, is paired
/// with it point by point in training and in predict.
TEST_F(ImagePredictions, OfInputsWithoutAPlaceAreThoseOfTheirPartners) {
  const Shape shape{4, 8, 10};
  OutputImage image{"image", OutputImage::Type::kFloat, {"depth", "height", "width"}, shape, {}, {}};
  image.numbers["affine"] = {-1, 0, 0, 9, 0, -1, 0, 7, 0, 0, 2, 0};
  const auto write = [&](const std::string& name, double phase) {
    std::vector<double> points;
    for (std::int64_t i = 0; i < shape.count(); ++i)
      points.push_back(std::sin(0.3 * static_cast<double>(i) + phase));
    write_image(folder_ / name, ImageFormat::kNifti, {image}, {points});
  };
  for (const std::string& folder : {"a"s, "b"s, "c"s}) {
    std::filesystem::create_directory(folder_ / folder);
    for (const std::string& name : {"0.nii"s, "1.nii"s})
      write(folder + "/" + name, static_cast<double>(folder[0] - 'a') + 0.5 * (name[0] - '0'));
  }
  const auto in_files = [&](const std::string& name) {
    return Json{{"name", name}, {"data_set", "image"}, {"files", {folder_ / (name + "/*.nii")}}};
  };
  const Json data = {{"task", "map"},
                     {"files", {folder_ / "a/*.nii"}},
                     {"dims", {"depth", "height", "width"}},
                     {"variables", {{{"name", "a"}, {"data_set", "image"}}, in_files("b")}},
                     {"targets", Json::array({in_files("c")})},
                     {"crop", {4, 4, 5}},
                     {"train", {{"case", "0"}}},
                     {"valid", {{"case", "1"}}}};
  train("placed", config(data, {2, 2, 5}));
  predict(1, "placed", "one/");
  for (const char* name : {"b/0.nii", "b/1.nii", "c/0.nii", "c/1.nii"}) drop_place(folder_ / name);
  predict(2, "placed", "other/", "--set 'mesh={\"domain\":[1,2,1]}'");
  train("unplaced", config(data, {2, 2, 5}));
  predict(1, "unplaced", "again/");
  for (const char* name : {"/0.nii", "/1.nii"}) {
    const std::string one = folder_ / ("one" + std::string(name));
    EXPECT_LE(
        largest_difference(values(folder_ / ("other" + std::string(name)), "image"), values(one, "image")),
        2.4e-7);
    EXPECT_EQ(values(folder_ / ("again" + std::string(name)), "image"), values(one, "image"))
        << "of the same training";
    const auto in = open_variables(folder_ / ("a" + std::string(name)), Dimensions::kByNumber),
               out = open_variables(one, Dimensions::kByNumber);
    EXPECT_EQ(out->find("image")->numbers.at("affine"), in->find("image")->numbers.at("affine"));
  }
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

}  // namespace predict_image_places_test
}  // namespace jigsaw::e2e
