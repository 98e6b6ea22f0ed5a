// What is read of nnUNetPlans.json, by hand. (init writes and trains it in
// tests/end_to_end/init_images_test.cpp.)
#include "init/nnunet_plans.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "config/json.h"
#include "support/error_of.h"
#include "support/temporary_folder.h"

namespace jigsaw {
namespace {

/// Anisotropic along nnU-Net's first axis.
Json flat_plans() {
  const Json planned = {{"batch_size", 2},
                        {"patch_size", {4, 16, 24}},
                        {"spacing", {4.0, 1.0, 1.5}},
                        {"normalization_schemes", {"ZScoreNormalization"}},
                        {"architecture",
                         {{"network_class_name", "a.PlainConvUNet"},
                          {"arch_kwargs",
                           {{"n_stages", 2},
                            {"features_per_stage", {2, 4}},
                            {"kernel_sizes", {{1, 3, 3}, {3, 3, 3}}},
                            {"strides", {{1, 1, 1}, {1, 2, 4}}},
                            {"n_conv_per_stage", {1, 1}},
                            {"n_conv_per_stage_decoder", {1}},
                            {"norm_op", "torch.nn.InstanceNorm3d"},
                            {"nonlin", "torch.nn.LeakyReLU"}}}}}};
  return {{"transpose_forward", {0, 1, 2}},
          {"image_reader_writer", "SimpleITKIO"},
          {"configurations", {{"3d_fullres", planned}}}};
}

NnunetPlan read(const Json& plans, const PlannedImages& images = {}) {
  const testing::TemporaryFolder folder;
  testing::put_text(folder.path() + "/plans.json", plans.dump());
  return read_nnunet_plan(folder.path() + "/plans.json", "3d_fullres", images);
}

/// SimpleITK's arrays have the file's axes, the last one first, and the plan's are turned once more by
/// transpose_forward: entry i is of axis 2 − transpose_forward[i] of the file.
TEST(NnunetPlans, AreAlongTheAxesOfTheImages) {
  const NnunetPlan axial = read(flat_plans());
  EXPECT_EQ(axial.patch, (std::vector<std::int64_t>{4, 16, 24}));
  EXPECT_EQ(axial.spacing, (std::vector<double>{4, 1, 1.5}));
  EXPECT_EQ(
      axial.augment,
      R"({"foreground": 0.5, "rotation": [180, 0, 0], "brightness": [0.75, 1.25], "gamma": [0.7, 1.5], )"
      R"("noise": 0.1, "blur": 1, "probabilities": {"rotation": 0.2, "brightness": 0.15, "gamma": 0.3, )"
      R"("noise": 0.1, "blur": 0.2}})");
  // Sagittal: i runs from back to front, j from below to above, k from left to right, which is nnU-Net's
  // first.
  PlannedImages sagittal;
  sagittal.file_axes = {1, 0, 2};
  const NnunetPlan turned = read(flat_plans(), sagittal);
  EXPECT_EQ(turned.patch, (std::vector<std::int64_t>{16, 24, 4}));
  EXPECT_EQ(turned.spacing, (std::vector<double>{1, 1.5, 4}));
  EXPECT_NE(turned.training.model.find(R"("strides": [1, [2, 4, 1]])"), std::string::npos)
      << turned.training.model;
  EXPECT_NE(turned.training.model.find(R"("kernels": [[3, 3, 1], 3])"), std::string::npos);
  EXPECT_NE(turned.augment.find(R"("rotation": [0, 0, 180])"), std::string::npos);
  Json plans = flat_plans();
  plans["image_reader_writer"] = "NibabelIOWithReorient";
  EXPECT_EQ(read(plans, sagittal).patch, axial.patch) << "turned by nnU-Net's reader";
  plans = flat_plans();
  plans["transpose_forward"] = {2, 0, 1};  // the patch is of width, depth and height of axial files
  EXPECT_EQ(read(plans).patch, (std::vector<std::int64_t>{16, 24, 4}));
}

TEST(NnunetPlans, RefusesWhatIsOfOtherImages) {
  const auto error = [](const Json& plans, const PlannedImages& images = {}) {
    return testing::error_of<ConfigError>([&] { read(plans, images); });
  };
  PlannedImages two;
  two.channels = 2;
  EXPECT_NE(error(flat_plans(), two).find("is for images of 1 channel, and these have 2"), std::string::npos);
  for (const Json& axes : {Json{0, 0, 1}, Json{1, 2, 3}, Json{0, 1, 2, 3}, Json{1, 0}, Json::array()}) {
    Json plans = flat_plans();
    plans["transpose_forward"] = axes;
    EXPECT_NE(error(plans).find("as transpose_forward, which is no order of axes"), std::string::npos)
        << axes;
  }
  Json plans = flat_plans();
  plans["configurations"]["3d_fullres"]["architecture"]["arch_kwargs"]["strides"][1] = {2, 2, 2, 2};
  EXPECT_NE(error(plans).find("has a list of 4 numbers"), std::string::npos);
  plans = flat_plans();
  plans["configurations"]["3d_fullres"]["patch_size"][0] = -4;
  EXPECT_NE(error(plans).find("has the patch_size [-4, 16, 24]"), std::string::npos);
  plans = flat_plans();
  plans["configurations"]["3d_fullres"]["batch_size"] = 0;
  EXPECT_NE(error(plans).find("has the batch_size 0"), std::string::npos);
  plans = flat_plans();
  plans["configurations"]["3d_fullres"]["previous_stage"] = "3d_lowres";
  EXPECT_NE(error(plans).find("second stage of a cascade"), std::string::npos);
  plans = flat_plans();
  plans["configurations"]["3d_fullres"]["normalization_schemes"] = {"CTNormalization"};
  plans["foreground_intensity_properties_per_channel"] = {
      {"0", {{"mean", 1}, {"std", 0}, {"percentile_00_5", 2}, {"percentile_99_5", 1}}}};
  EXPECT_NE(error(plans).find("has a percentile_00_5 of channel 0, 2, that is not below"), std::string::npos);
  plans["foreground_intensity_properties_per_channel"]["0"]["percentile_99_5"] = 3;
  EXPECT_EQ(read(plans).intensities.at(0), R"({"clip": [2.0, 3.0], "mean": 1.0, "deviation": 1e-08})");
}

}  // namespace
}  // namespace jigsaw
