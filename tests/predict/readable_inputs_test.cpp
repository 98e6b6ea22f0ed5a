// Inputs that are left out of many for what is damaged of them, on one rank and on several.
#include "predict/readable_inputs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>

#include "files/image_output.h"
#include "support/temporary_folder.h"
#include "support/test_ranks.h"

namespace jigsaw {
namespace readable_inputs_test {

void write(const std::string& path) {
  const Shape shape{8, 40, 40};
  std::vector<float> values;
  for (std::int64_t i = 0; i < shape.count(); ++i)
    values.push_back(std::sin(static_cast<float>(i * i % 1009)));
  const OutputImage image{"image", OutputImage::Type::kFloat, {"depth", "height", "width"}, shape, {}, {}};
  const auto file = create_image_output(ImageFormat::kNiftiGz, path, {image}, {});
  file->write(0, Box::whole(shape), values);
  file->finish();
}

/// Keeps the header of a file, or nothing of it.
void damage(const std::string& path, bool header) {
  const auto size = std::filesystem::file_size(path);
  if (header) {
    std::ofstream(path) << "no image";
  } else {
    std::filesystem::resize_file(path, size - size / 4);
  }
}

TEST(ReadableInputs, LeaveOutWholeImagesOfWhichAFileIsDamaged) {
  const testing::TemporaryFolder folder;
  for (const char* name : {"a", "b", "c", "d"})
    for (const char* channel : {"_0000.nii.gz", "_0001.nii.gz"}) write(folder.path() + "/" + name + channel);
  DataOptions data;
  data.files = {"*_0000.nii.gz"};
  data.variables = {{"one", {}}, {"two", {}}};
  for (VariableOptions& variable : data.variables) variable.data_set = "image";
  data.variables[1].files = {"*_0001.nii.gz"};
  const auto left_by = [&](int ranks) {
    std::vector<std::string> failures;
    DataOptions left;
    testing::run_test_ranks(ranks, [&](Communicator& world) {
      DataOptions own = data;
      const std::vector<std::string> found = leave_out_unreadable(own, folder.path(), world);
      if (world.rank() + 1 != world.size()) return;
      failures = found;
      left = own;
    });
    return std::pair(failures, left);
  };
  EXPECT_TRUE(left_by(1).first.empty());
  EXPECT_EQ(left_by(2).second.files, data.files) << "nothing is damaged";
  damage(folder.path() + "/b_0000.nii.gz", false);
  damage(folder.path() + "/c_0001.nii.gz", true);
  for (const int ranks : {1, 3}) {
    const auto [failures, left] = left_by(ranks);
    ASSERT_EQ(failures.size(), 2U);
    EXPECT_NE(failures[0].find("b_0000.nii.gz"), std::string::npos) << failures[0];
    EXPECT_NE(failures[1].find("c_0001.nii.gz"), std::string::npos) << failures[1];
    const auto names = [](const std::vector<std::string>& paths) {
      std::string all;
      for (const std::string& path : paths) all += std::filesystem::path(path).filename().string() + " ";
      return all;
    };
    EXPECT_EQ(names(left.files), "a_0000.nii.gz d_0000.nii.gz ");
    EXPECT_EQ(names(left.variables[1].files), "a_0001.nii.gz d_0001.nii.gz ");
  }
  // Of what no variable names nothing is read.
  for (VariableOptions& variable : data.variables) variable.data_set = "other";
  EXPECT_EQ(left_by(1).first.size(), 1U);
}

}  // namespace readable_inputs_test
}  // namespace jigsaw
