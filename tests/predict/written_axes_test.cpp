// Names of dims and coordinates of groups in one file without groups.
#include "predict/written_axes.h"

#include <gtest/gtest.h>

namespace jigsaw {
namespace written_axes_test {

/// A data set of a group on two axes, with a time.
ImageAxes of_group(const std::string& group, const std::vector<double>& rows, double time) {
  ImageAxes axes;
  axes.names = {group + "/y", group + "/x"};
  axes.extents = {2, 3};
  axes.coordinates = {{group + "/y", {group + "/y"}, {2}, rows, {}}, {group + "/t", {}, {}, {time}, {}}};
  return axes;
}

using Names = std::vector<std::string>;

TEST(WrittenAxes, ShareNamesWhereTheirValuesAreTheSame) {
  WrittenAxes written;
  const ImageAxes a = written.add(of_group("a", {1, 2}, 5)), b = written.add(of_group("b", {1, 2}, 6)),
                  c = written.add(of_group("c", {2, 1}, 5));
  EXPECT_EQ(a.names, (Names{"y", "x"}));
  EXPECT_EQ(b.names, (Names{"y", "x"}));
  EXPECT_EQ(c.names, (Names{"c_y", "x"}));
  EXPECT_EQ(a.coordinates[1].name, "t");
  EXPECT_EQ(b.coordinates[1].name, "b_t");
  EXPECT_EQ(c.coordinates[0].name, "c_y");
  EXPECT_EQ(c.coordinates[0].dimensions, Names{"c_y"});
  EXPECT_EQ(c.coordinates[1].name, "t");
  ASSERT_EQ(written.all().size(), 4U);
  // Of one data set no two dims have one name, nor do other entries along one dim.
  ImageAxes square;
  square.names = {"a/y", "d/y"};
  square.extents = {2, 2};
  square.coordinates = {{"a/y", {"a/y"}, {2}, {1, 2}, {}}, {"d/y", {"d/y"}, {2}, {1, 2}, {}}};
  EXPECT_EQ(written.add(square).names, (Names{"y", "d_y"}));
  ImageAxes band;
  band.names = {"band"};
  band.extents = {1};
  band.coordinates = {{"band", {"band"}, {1}, {3.9}, {}}};
  EXPECT_EQ(written.add(band).names, Names{"band"});
  band.coordinates[0].values = {6.2};
  EXPECT_EQ(written.add(band).names, Names{"band_2"});
  // Without coordinates extents tell dims apart.
  ImageAxes longer;
  longer.names = {"e/x"};
  longer.extents = {4};
  EXPECT_EQ(written.add(longer).names, Names{"e_x"});
}

}  // namespace written_axes_test
}  // namespace jigsaw
