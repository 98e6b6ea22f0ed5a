// One image in each group of a file.
#include "base/error.h"
#include "base/text.h"
#include "io/fixtures.h"
#include "io/netcdf_writer.h"
#include "samples/image_files.h"
#include "support/temporary_folder.h"

namespace jigsaw {
namespace {

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
  EXPECT_NE(message_of<DataError>([&] {
              files.select({"*/label", {}});
            }).find("differ in number, groups or extents"),
            std::string::npos);
  EXPECT_NE(message_of<DataError>([&] {
              files.select({"*/mask", {}});
            }).find("no data set */mask"),
            std::string::npos);
  EXPECT_NE(message_of<DataError>([&] {
              files.select({"*/*", {}});
            }).find("more than one *"),
            std::string::npos);
}

}  // namespace
}  // namespace jigsaw
