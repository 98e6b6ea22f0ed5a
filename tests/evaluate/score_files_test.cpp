#include "evaluate/score_files.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "support/temporary_folder.h"

namespace jigsaw {
namespace score_files_test {

/// Scores as JSON and as NetCDF: both or neither.
TEST(ScoreFiles, StayTogetherOrNotAtAll) {
  const testing::TemporaryFolder folder;
  const std::string json = folder.path() + "/scores.json", netcdf = folder.path() + "/scores.nc";
  const auto number = [] { return Json{{"rmse", 1.5}}; };
  const auto whole = [](const std::string& path) { testing::put_text(path, "scores"); };
  EXPECT_THROW(ScoreFiles(json, folder.path() + "/./scores.json", false), ConfigError);
  {
    ScoreFiles files(json, netcdf, false);
    EXPECT_THROW(files.write(number, [](const std::string&) { throw DataError("the disk is full"); }),
                 DataError);
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  {
    ScoreFiles files(json, netcdf, false);
    std::filesystem::create_directories(netcdf + "/in the way");
    EXPECT_THROW(files.write(number, whole), ConfigError);
  }
  EXPECT_FALSE(std::filesystem::exists(json));
  std::filesystem::remove_all(netcdf);
  ScoreFiles(json, netcdf, false).write(number, whole);
  EXPECT_EQ(testing::text_of(json), "{\n \"rmse\": 1.5\n}\n");
  EXPECT_EQ(testing::text_of(netcdf), "scores");
  ScoreFiles("", netcdf, true).write(number, [](const std::string& path) { testing::put_text(path, "new"); });
  EXPECT_EQ(testing::text_of(netcdf), "new");
  const std::string maps = folder.path() + "/maps.nc";
  EXPECT_THROW(ScoreFiles("", maps, false, {}, {maps, ""}), ConfigError);
  EXPECT_THROW(ScoreFiles("", "", false, {}, {maps, maps}), ConfigError);
  {
    ScoreFiles files(json, "", true, {}, {maps, ""});
    testing::put_text(files.climate_maps(), "maps");
    EXPECT_THROW(files.write([]() -> Json { throw DataError("the disk is full"); }, whole), DataError);
  }
  EXPECT_FALSE(std::filesystem::exists(maps));
  ScoreFiles files(json, "", true, {}, {maps, ""});
  testing::put_text(files.climate_maps(), "maps");
  EXPECT_FALSE(std::filesystem::exists(maps)) << "before all are whole";
  files.write(number, whole);
  EXPECT_EQ(testing::text_of(maps), "maps");
}

}  // namespace score_files_test
}  // namespace jigsaw
