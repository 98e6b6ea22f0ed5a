// jigsaw-train init of images.
#include <cmath>

#include "end_to_end/init_test.h"
#include "io/netcdf_writer.h"

namespace jigsaw::e2e {
namespace {

namespace fs = std::filesystem;
using namespace std::string_literals;

/// Images of three groups, of which one is larger.
TEST_F(InitTest, SaysWhichOfSeveralImagesItTakes) {
  {
    testing::NetcdfWriter file(folder_ / "groups.h5");
    for (const char* name : {"left", "middle", "right"}) {
      const int group = file.group(name);
      const std::size_t depth = name == "middle"s ? 12 : 10;
      const int z = file.dimension("z", depth, group), y = file.dimension("y", 9, group),
                x = file.dimension("x", 10, group),
                image = file.variable("image", NC_FLOAT, {z, y, x}, group);
      std::vector<double> values;
      for (std::size_t i = 0; i < depth * 90; ++i) values.push_back(std::sin(0.3 * static_cast<double>(i)));
      file.put(image, values, group);
    }
  }
  const Outcome outcome =
      run(1, "init --output " + quoted(folder_ / "first.json") + " --data " + quoted(folder_ / "groups.h5"));
  expect_ok(outcome);
  EXPECT_NE(
      outcome.err.find("warning: data.variables takes middle/image, the largest of 3 images in " +
                       folder_ / "groups.h5" +
                       "; name another there (left/image, right/image), or \"*/image\" for that of each "
                       "group\n"),
      std::string::npos)
      << outcome.err;
  expect_text({R"("variables": ["middle/image"])"});
}

/// Flags beside an image are not taken for it, by their attributes or, of 8 bits, by their name.
TEST_F(InitTest, TakesTheImageNotItsFlags) {
  for (const bool named : {true, false}) {
    const std::string path = folder_ / (named ? "named.nc" : "said.nc");
    {
      testing::NetcdfWriter file(path);
      const int z = file.dimension("z", 10), y = file.dimension("y", 9), x = file.dimension("x", 10);
      const int flags =
          named ? file.variable("DQF", NC_BYTE, {z, y, x}) : file.variable("A", NC_SHORT, {z, y, x});
      if (!named) file.text(flags, "flag_meanings", "good bad");
      const int image = file.variable("Rad", NC_FLOAT, {z, y, x});
      std::vector<double> values;
      for (int i = 0; i < 900; ++i) values.push_back(std::sin(0.3 * i));
      file.put(image, values);
      file.put(flags, std::vector<double>(900, 0));
    }
    fs::remove(folder_ / "first.json");
    const Outcome outcome =
        run(1, "init --output " + quoted(folder_ / "first.json") + " --data " + quoted(path));
    expect_ok(outcome);
    EXPECT_NE(outcome.err.find("data.variables takes Rad, one of 2 images in " + path), std::string::npos)
        << outcome.err;
    expect_text({R"("variables": ["Rad"])"});
  }
}

TEST_F(InitTest, WritesImagesThatRun) {
  const std::string fixtures = testing::source_dir() + "/tests/io/fixtures/images/";
  expect_runs("--data " + quoted(fixtures + "volume.h5"), "1");
  expect_text(
      {R"("task": "denoise")", R"("dims": ["depth", "height", "width"])", R"("train": {"depth": [0, 7]})"});
  expect_runs("--task segment --data " + quoted(fixtures + "pictures.h5"), "1");
  expect_text({R"("task": "map")", R"("dims": ["sample", "height", "width", "channel"])",
               R"("targets": ["masks"])", R"("classes": 2)", "dice_cross_entropy",
               R"("valid": {"sample": [4, 4]})"});
}

TEST_F(InitTest, WritesManyFilesOfOneImageThatRun) {
  const std::string volume = testing::source_dir() + "/tests/io/fixtures/images/volume.nii";
  for (const char* folder : {"images", "targets"}) {
    fs::create_directory(folder_ / folder);
    for (const char* name : {"a", "b", "c", "d", "e"})
      fs::copy_file(volume, folder_ / folder + "/"s + name + ".nii");
  }
  const std::string images = "--data " + quoted(folder_ / "images/*.nii"),
                    targets = " --targets " + quoted(folder_ / "targets/*.nii");
  expect_runs(images, "1");
  expect_text({R"("train": {"sample": [0, 3]})", R"("valid": {"sample": [4, 4]})"});
  expect_runs("--task map " + images + targets, "1");
  expect_text({R"("targets": [{"name": "target", "data_set": "image", "files": ["targets/*.nii"]}])",
               R"("type": "mse")"});
  fs::remove(folder_ / "first.json");
  const std::string init = "init --output " + quoted(folder_ / "first.json") + " ";
  expect_error(run(1, init + "--task segment " + images + targets), 3, "other numbers than labels");
  expect_error(run(1, init + images + targets), 2, "--targets counts only");
  fs::remove(folder_ / "targets/b.nii");
  expect_error(run(1, init + "--task map " + images + targets), 3, "5 files and --targets 4");
}

}  // namespace
}  // namespace jigsaw::e2e
