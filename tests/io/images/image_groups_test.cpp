// One image in each group of a file.
#include "base/error.h"
#include "base/text.h"
#include "images/image_axes.h"
#include "images/image_files.h"
#include "images/image_pairs.h"
#include "io/fixtures.h"
#include "io/netcdf_writer.h"
#include "support/temporary_folder.h"

namespace jigsaw {
namespace image_groups_test {

/// What a data set of a case holds at a point.
double value(int number, bool label, std::int64_t y, std::int64_t x) {
  return number * 100 + (label ? 50 : 0) + static_cast<double>(y * 5 + x);
}

/// NetCDF-4, which is HDF5, with a group for each case; case 2 without a label if asked for.
std::string write(const testing::TemporaryFolder& folder, bool whole) {
  const std::string path = folder.path() + "/cases.h5";
  testing::NetcdfWriter file(path);
  const int y = file.dimension("y", 4), x = file.dimension("x", 5);
  for (const int number : {2, 1, 3}) {
    const int group = file.group(concat("case_", number).c_str());
    for (const bool label : {false, true}) {
      if (!whole && label && number == 2) continue;
      const int variable = file.variable(label ? "label" : "image", NC_FLOAT, {y, x}, group);
      file.text(variable, "units", label ? "1" : "HU", group);
      std::vector<double> values;
      for (std::int64_t i = 0; i < 20; ++i) values.push_back(value(number, label, i / 5, i % 5));
      file.put(variable, values, group);
    }
  }
  return path;
}

TEST(ImageGroups, EachHoldsAnImage) {
  const testing::TemporaryFolder folder;
  const std::string path = write(folder, true);
  ImageFiles files({path}, {ImageDim::kHeight, ImageDim::kWidth});
  const Field image = files.select({"*/image", {}})[0], label = files.select({"*/label", {}})[0];
  ASSERT_EQ(files.count(), 3);
  EXPECT_EQ(files.units(image), "HU");
  EXPECT_EQ(files.case_of(2), "case_3");
  std::vector<double> found(4);
  for (int number = 1; number <= 3; ++number) {
    for (const bool of_label : {false, true}) {
      files.read(of_label ? label : image, number - 1, {{1, 3}, {2, 2}}, found);
      EXPECT_EQ(found, (std::vector{value(number, of_label, 1, 3), value(number, of_label, 1, 4),
                                    value(number, of_label, 2, 3), value(number, of_label, 2, 4)}));
    }
  }
}

TEST(ImageGroups, WithoutOneOfTheVariablesAreRefused) {
  const testing::TemporaryFolder folder;
  const std::string path = write(folder, false);
  ImageFiles files({path}, {ImageDim::kHeight, ImageDim::kWidth});
  files.select({"*/image", {}});
  EXPECT_EQ(message_of<DataError>([&] {
              files.select({"*/label", {}});
            }),
            path + " holds no case_2/label beside case_2/image");
  EXPECT_NE(message_of<DataError>([&] {
              files.select({"*/mask", {}});
            }).find("no data set */mask"),
            std::string::npos);
  EXPECT_NE(message_of<DataError>([&] {
              files.select({"*/*", {}});
            }).find("more than one *"),
            std::string::npos);
}

/// A file with one image of 4 × 5.
std::string write_one(const testing::TemporaryFolder& folder, const std::string& name, int number) {
  const std::string path = folder.path() + "/" + name;
  testing::NetcdfWriter file(path);
  const int y = file.dimension("y", 4), x = file.dimension("x", 5);
  const int variable = file.variable("image", NC_FLOAT, {y, x});
  std::vector<double> values;
  for (std::int64_t i = 0; i < 20; ++i) values.push_back(value(number, false, i / 5, i % 5));
  file.put(variable, values);
  return path;
}

TEST(ImageFiles, OfAVariableMayBeItsOwn) {
  const testing::TemporaryFolder folder;
  std::vector<std::string> first, second;
  for (const int number : {1, 2, 3}) {
    first.push_back(write_one(folder, concat("t1_", number, ".nc"), number));
    second.push_back(write_one(folder, concat("label_", number, ".nc"), 10 + number));
  }
  ImageFiles files(first, {ImageDim::kHeight, ImageDim::kWidth});
  const VariableOptions t1{"t1", {}, "image", {}}, label{"label", {}, "image", {"label_*.nc"}};
  const Field image = files.select(t1)[0];
  EXPECT_EQ(own_files(label, folder.path()), second);
  const Field target = files.select(label, second)[0];
  ASSERT_EQ(files.count(), 3);
  std::vector<double> found(2);
  for (int number = 1; number <= 3; ++number) {
    files.read(image, number - 1, {{3, 1}, {1, 2}}, found);
    EXPECT_EQ(found, (std::vector{value(number, false, 3, 1), value(number, false, 3, 2)}));
    files.read(target, number - 1, {{3, 1}, {1, 2}}, found);
    EXPECT_EQ(found, (std::vector{value(10 + number, false, 3, 1), value(10 + number, false, 3, 2)}));
    EXPECT_EQ(files.source("label", number - 1).path, second[static_cast<std::size_t>(number - 1)]);
  }
  EXPECT_EQ(files.select(t1)[0], image) << "the same once more";
  EXPECT_NE(message_of<DataError>([&] {
              files.select({"t1", {}, "image", {}}, second);
            }).find("two variables are called t1"),
            std::string::npos);
  const std::string fewer = message_of<DataError>([&] {
    files.select({"mask", {}, "image", {}}, {second[0]});
  });
  EXPECT_EQ(
      fewer,
      "mask has 1 image and t1 3, and their files have no case in common: label_1 there and 1, 2, 3 here; "
      "name them so that what * stands for is alike");
}

/// Notations of one unit are one; another unit, or none beside one, is refused with both files.
TEST(ImageFiles, OfAVariableHaveOneUnit) {
  const testing::TemporaryFolder folder;
  const auto written = [&](const std::string& name, const std::string& units) {
    const std::string path = folder.path() + "/" + name;
    testing::NetcdfWriter file(path);
    const int y = file.dimension("y", 2), x = file.dimension("x", 3);
    file.text(file.variable("rad", NC_FLOAT, {y, x}), "units", units);
    return path;
  };
  const std::string a = written("a.nc", "W m-2"), b = written("b.nc", "W m**-2"),
                    c = written("c.nc", "mW m-2"), d = written("d.nc", "");
  const std::vector<ImageDim> dims = {ImageDim::kHeight, ImageDim::kWidth};
  EXPECT_EQ(ImageFiles({a, b}, dims).select({"rad", {}}).size(), 1U);
  const auto refusal = [&](const std::vector<std::string>& paths) {
    return message_of<DataError>([&] { ImageFiles(paths, dims).select({"rad", {}}); });
  };
  EXPECT_NE(refusal({a, b, c}).find("rad is in \"W m-2\" in " + a + " and in \"mW m-2\" in " + c),
            std::string::npos)
      << refusal({a, b, c});
  // One that says none has that of the others, which must have one.
  EXPECT_EQ(ImageFiles({d, a}, dims).select({"rad", {}}).size(), 1U);
  EXPECT_NE(refusal({d, a, c}), "");
}

/// Images of 2 × 3 × 3 points at these times and latitudes, longitudes 0 to 2.
std::string write_placed(const testing::TemporaryFolder& folder, const std::string& name,
                         const std::vector<double>& days, const std::vector<double>& latitudes,
                         bool turned = false) {
  const std::string path = folder.path() + "/" + name;
  testing::NetcdfWriter file(path);
  const int time = file.dimension("time", 2), y = file.dimension("lat", 3), x = file.dimension("lon", 3);
  const int at = file.variable("time", NC_DOUBLE, {time}), north = file.variable("lat", NC_DOUBLE, {y}),
            east = file.variable("lon", NC_DOUBLE, {x});
  file.text(at, "units", "days since 2001-01-01");
  file.text(north, "units", "degrees_north");
  file.text(east, "units", "degrees_east");
  file.variable("image", NC_FLOAT, {time, turned ? x : y, turned ? y : x});
  file.end();
  file.put(at, days);
  file.put(north, latitudes);
  file.put(east, std::vector<double>{0, 1, 2});
  return path;
}

/// Latitudes that run the other way, other times and dims in another order; rounded ones are the same.
TEST(ImagePairs, WhoseCoordinatesContradictAreSaid) {
  const testing::TemporaryFolder folder;
  const std::string low = write_placed(folder, "low.nc", {0, 1}, {40, 41, 42});
  const auto warning_with = [&](const std::string& other) {
    ImageFiles files({low}, {ImageDim::kSample, ImageDim::kHeight, ImageDim::kWidth});
    files.select({"low", {}, "image", {}});
    files.select({"high", {}, "image", {}}, {other});
    const std::vector<std::string> warnings = pairing_warnings(files, {"low", "high"});
    EXPECT_LE(warnings.size(), 1U);
    return warnings.empty() ? "" : warnings[0];
  };
  const std::string same = write_placed(folder, "same.nc", {0.2, 1.2}, {40.0000001, 41, 42}),
                    down = write_placed(folder, "down.nc", {0, 1}, {42, 41, 40}),
                    later = write_placed(folder, "later.nc", {0, 5}, {40, 41, 42}),
                    turned = write_placed(folder, "turned.nc", {0, 1}, {40, 41, 42}, true);
  const std::string start = "images and their points are paired in the order of the files, but ";
  EXPECT_EQ(warning_with(same), "");
  EXPECT_EQ(warning_with(down),
            start + "lat of image in " + low + " is 40 to 42 and lat of image in " + down + " 42 to 40");
  EXPECT_EQ(warning_with(later), start + "time of image in " + low +
                                     " is 2001-01-02T00:00 and time of image in " + later +
                                     " 2001-01-06T00:00 where they are paired");
  EXPECT_EQ(warning_with(turned), start + "the dims of image in " + low +
                                      " are time, lat, lon and those of image in " + turned +
                                      " time, lon, lat");
}

/// Chosen entries of a dim, in any order, of coordinates that lie along it and along others.
TEST(ImageAxes, MayBeOfSomeEntries) {
  ImageAxes axes{{"band", "y"},
                 {3, 2},
                 {{"band", {"band"}, {3}, {3.9, 6.2, 10.8}, {}},
                  {"place", {"y", "band"}, {2, 3}, {1, 2, 3, 4, 5, 6}, {}},
                  {"y", {"y"}, {2}, {7, 8}, {}}},
                 {},
                 {},
                 {}};
  const ImageAxes some = chosen_along(axes, 0, {2, 0});
  EXPECT_EQ(some.coordinates[0].values, (std::vector{10.8, 3.9}));
  EXPECT_EQ(some.extents, (std::vector<std::int64_t>{2, 2}));
  EXPECT_EQ(some.coordinates[1].values, (std::vector<double>{3, 1, 6, 4}));
  EXPECT_EQ(some.coordinates[1].shape, (Shape{2, 2}));
  EXPECT_EQ(some.coordinates[2].values, (std::vector<double>{7, 8}));
  const ImageAxes rest = without_dimension(axes, 0);
  EXPECT_EQ(rest.names, std::vector<std::string>{"y"});
  EXPECT_EQ(rest.extents, std::vector<std::int64_t>{2});
  ASSERT_EQ(rest.coordinates.size(), 1U);
  EXPECT_EQ(rest.coordinates[0].name, "y");
}

TEST(ImageFiles, AreBroughtToACommonSpacing) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path() + "/spaced.nc";
  const auto at = [](double y, double x) { return 3 * y - 2 * x; };
  {
    testing::NetcdfWriter file(path);
    const int y = file.dimension("y", 7), x = file.dimension("x", 6);
    const int image = file.variable("image", NC_DOUBLE, {y, x}),
              label = file.variable("label", NC_BYTE, {y, x});
    for (const int variable : {image, label}) {
      const std::vector<double> spacing = {1.0, 2.0};
      file.numbers(variable, "spacing", spacing);
    }
    std::vector<double> values, labels;
    for (int i = 0; i < 42; ++i) {
      values.push_back(at(i / 6, 2.0 * (i % 6)));
      labels.push_back(i % 6);
    }
    file.put(image, values);
    file.put(label, labels);
  }
  ImageFiles files({path}, {ImageDim::kHeight, ImageDim::kWidth}, opener(Dimensions::kByNumber), {1.5, 1.25},
                   {"label"});
  const Field image = files.select({"image", {}})[0], label = files.select({"label", {}})[0];
  ASSERT_EQ(files.extents(0), (Shape{5, 9}));           // up to 6 mm by 1.5, up to 10 mm by 1.25
  const ImageSource source = files.source("image", 0);  // where it stands in the file
  EXPECT_EQ(source.spacing, (std::vector{1.0, 2.0}));
  EXPECT_EQ(source.extents, (Shape{7, 6}));
  EXPECT_EQ(source.step, (std::vector{1.5, 0.625}));
  std::vector<double> own(6);
  files.read_own(image, 0, {{3, 2}, {2, 3}}, own);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(own[static_cast<std::size_t>(i)], at(3 + i / 3, 2.0 * (2 + i % 3)));
  const Box box{{1, 2}, {4, 7}};
  std::vector<double> found(28);
  files.read(image, 0, box, found);
  for (int i = 0; i < 28; ++i)
    EXPECT_NEAR(found[static_cast<std::size_t>(i)], at(1.5 * (1 + i / 7), 1.25 * (2 + i % 7)), 1e-12) << i;
  files.read(label, 0, box, found);
  for (int i = 0; i < 28; ++i)
    EXPECT_EQ(found[static_cast<std::size_t>(i)], std::floor(1.25 * (2 + i % 7) / 2 + 0.5)) << i;
  EXPECT_NE(message_of<DataError>([&] {
              ImageFiles plain({write_one(folder, "plain.nc", 1)}, {ImageDim::kHeight, ImageDim::kWidth},
                               opener(Dimensions::kByNumber), {1, 1});
              plain.select({"image", {}});
            }).find("has no attribute spacing"),
            std::string::npos);
}

/// Spacings that are off by rounding: no point is lost, and a label has the points of its image.
TEST(ImageFiles, OfARoundedSpacingKeepTheirLastPoints) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path() + "/rounded.nc";
  {
    testing::NetcdfWriter file(path);
    const int y = file.dimension("y", 101), x = file.dimension("x", 7);
    const int image = file.variable("image", NC_DOUBLE, {y, x}),
              label = file.variable("label", NC_DOUBLE, {y, x});
    file.numbers(image, "spacing", {0.99999, 0.9983334});  // along x a hundredth of a step before 6 mm
    file.numbers(label, "spacing", {0.99999, 0.9983332});
    std::vector<double> values;
    for (int i = 0; i < 707; ++i) values.push_back(i);
    file.put(image, values);
    file.put(label, values);
  }
  ImageFiles files({path}, {ImageDim::kHeight, ImageDim::kWidth}, opener(Dimensions::kByNumber), {1, 1});
  const Field image = files.select({"image", {}})[0], label = files.select({"label", {}})[0];
  ASSERT_EQ(files.extents(0), (Shape{101, 7}));
  std::vector<double> one(707), other(707);
  files.read(image, 0, Box::whole({101, 7}), one);
  files.read(label, 0, Box::whole({101, 7}), other);
  EXPECT_EQ(one, other);
  EXPECT_NEAR(one[100 * 7 + 6], 706, 1e-12) << "the last point, although it lies before that of the spacing";
  EXPECT_NEAR(one[50 * 7], 350 + 7 * 50 * (1 / 0.99999 - 1), 1e-9);
  ImageFiles alone({path}, {ImageDim::kHeight, ImageDim::kWidth}, opener(Dimensions::kByNumber), {1, 1});
  alone.select({"label", {}});
  EXPECT_EQ(alone.extents(0), (Shape{101, 6}));
}

}  // namespace image_groups_test
}  // namespace jigsaw
