// Scores of images as they are told: of how many images each mean is.
#include "evaluate/image_report.h"

#include <gtest/gtest.h>
#include <netcdf.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "support/temporary_folder.h"

namespace jigsaw {
namespace image_report_test {

/// HD95 of three images, of which the second has none, and accuracy, which all have.
ImageReport report() {
  return {"a title",
          "a source",
          {"one", "two", "three"},
          {},
          {{"mask", "hd95", 1, "mm", {4.0, std::nan(""), 1.0}},
           {"mask", "hd95", 2, "mm", {std::nan(""), std::nan(""), std::nan("")}},
           {"mask", "accuracy", {}, "", {0.5, 0.75, 1.0}}}};
}

TEST(ImageReport, TellsOfHowManyImagesAMeanIs) {
  const ImageReport scores = report();
  const std::vector<std::string> table = table_of(scores);
  ASSERT_EQ(table.size(), 8U);
  EXPECT_NE(table[0].find("images       mean"), std::string::npos) << table[0];
  const auto fields = [](const std::string& line) {
    std::vector<std::string> found;
    std::string word;
    for (const char letter : line + " ") {
      if (letter != ' ') {
        word += letter;
      } else if (!word.empty()) {
        found.push_back(std::exchange(word, ""));
      }
    }
    return found;
  };
  using Fields = std::vector<std::string>;
  EXPECT_EQ(fields(table[1]),
            (Fields{"mask", "hd95", "of", "1", "[mm]", "2", "2.5", "1.5", "1", "4", "4", "-", "1"}));
  EXPECT_EQ(fields(table[2]),
            (Fields{"mask", "hd95", "of", "2", "[mm]", "0", "-", "-", "-", "-", "-", "-", "-"}));
  EXPECT_EQ(fields(table[3])[2], "3");
  EXPECT_NE(table[4].find("those of 3 that have the score"), std::string::npos) << table[4];
  // The columns of numbers stand below their titles.
  EXPECT_EQ(table[0].find("images") + 6, table[1].find(" 2 ") + 2) << table[0] << "\n" << table[1];

  const Json json = json_of(scores)["scores"]["mask"];
  EXPECT_EQ(json["hd95"]["1"]["count"], 2);
  EXPECT_EQ(json["hd95"]["1"]["mean"], 2.5);
  EXPECT_EQ(json["hd95"]["2"]["count"], 0);
  EXPECT_EQ(json["accuracy"]["count"], 3);

  const testing::TemporaryFolder folder;
  write_netcdf(scores, folder.path() + "/scores.nc");
  int file = -1;
  ASSERT_EQ(nc_open((folder.path() + "/scores.nc").c_str(), NC_NOWRITE, &file), NC_NOERR);
  const auto count = [&](const char* variable) {
    int number = -1, found = -1;
    EXPECT_EQ(nc_inq_varid(file, variable, &number), NC_NOERR) << variable;
    EXPECT_EQ(nc_get_att_int(file, number, "count", &found), NC_NOERR) << variable;
    return found;
  };
  EXPECT_EQ(count("mask_hd95_1"), 2);
  EXPECT_EQ(count("mask_hd95_2"), 0);
  EXPECT_EQ(count("mask_accuracy"), 3);
  EXPECT_EQ(nc_close(file), NC_NOERR);
}

TEST(ImageReport, SaysNothingOfImagesWhereAllHaveTheirScores) {
  ImageReport scores = report();
  scores.measures.erase(scores.measures.begin(), scores.measures.begin() + 2);
  const std::vector<std::string> table = table_of(scores);
  ASSERT_EQ(table.size(), 5U);
  EXPECT_EQ(table.back(), concat("image 2: ", scores.images[2]));
}

}  // namespace image_report_test
}  // namespace jigsaw
