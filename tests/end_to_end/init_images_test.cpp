// jigsaw-train init of images.
#include <cmath>

#include "config/json.h"
#include "end_to_end/init_test.h"
#include "files/image_output.h"
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

/// Writes an image in NIfTI, [4, 8, 9] points.
void write_volume(const std::string& path, bool labels, double thickness, double phase) {
  OutputImage image{"image", OutputImage::Type::kFloat, {"depth", "height", "width"}, {4, 8, 9}, {}, {}};
  if (labels) image.type = OutputImage::Type::kByte;
  image.numbers["spacing"] = {thickness, 0.75, 0.5};
  std::vector<float> values;
  for (int i = 0; i < 4 * 8 * 9; ++i) {
    const double wave = std::sin(0.3 * i + phase);
    values.push_back(labels ? (wave > 0 ? 1.0F : 0.0F) : static_cast<float>(wave));
  }
  const auto file = create_image_output(ImageFormat::kNifti, path, {image}, {});
  file->write(0, Box::whole(image.shape), values);
  file->finish();
}

/// Channels in files of their own, as nnU-Net has them; thick slices are told.
TEST_F(InitTest, TakesFilesOfChannelsTogether) {
  for (const char* folder : {"imagesTr", "labelsTr"}) fs::create_directory(folder_ / folder);
  for (const char* name : {"a1", "a2", "a3", "a4", "a5"}) {
    const std::string image = folder_ / ("imagesTr/"s + name);
    write_volume(image + "_0000.nii", false, 2.5, name[1]);
    write_volume(image + "_0001.nii", false, 2.5, name[1] + 1);
    write_volume(folder_ / ("labelsTr/"s + name + ".nii"), true, 2.5, name[1]);
  }
  const std::string data = "--data " + quoted(folder_ / "imagesTr/*.nii"),
                    segment = "--task segment --targets " + quoted(folder_ / "labelsTr/*.nii") + " ";
  expect_runs(segment + data, "1");
  expect_text({R"("files": ["imagesTr/*_0000.nii"])",
               R"({"name": "channel_0", "data_set": "image"}, {"name": "channel_1", "data_set": "image", )"
               R"("files": ["imagesTr/*_0001.nii"]})",
               R"("classes": 2)", R"("train": {"sample": [0, 3]})", R"("levels": 2)",
               R"("strides": [1, [1, 2, 2]])"});
  expect_warnings({"are 2.5, 0.75, 0.5 mm apart; data.spacing"});
  // Named from the working folder, which stands beside theirs, they have the pattern, too.
  const std::string beside = "../" + fs::path(folder_.path()).filename().string();
  expect_ok(init(segment + "--data " + quoted(beside + "/imagesTr/*.nii")));
  expect_text({R"("files": ["imagesTr/*_0000.nii"])", R"("files": ["imagesTr/*_0001.nii"])"});
  fs::remove(folder_ / "imagesTr/a3_0001.nii");
  expect_error(init(segment + data), 3, "imagesTr/a3*.nii has no file of the channel 0001");
  // Numbers of images are no channels.
  fs::remove_all(folder_ / "imagesTr");
  fs::create_directory(folder_ / "imagesTr");
  for (const char* name : {"s_0000", "s_0001", "s_0002", "s_0003", "s_0004"})
    write_volume(folder_ / ("imagesTr/"s + name + ".nii"), false, 0.5, name[5]);
  expect_ok(init(segment + data));
  expect_text({R"("files": ["imagesTr/*.nii"])", R"("variables": ["image"])"});
  EXPECT_EQ(warnings_.find("data.spacing"), std::string::npos) << warnings_;
}

/// A plan of nnU-Net for them, whose first two axes are turned, and which takes over what it does not say
/// itself.
Json nnunet_plans() {
  const Json full = {
      {"batch_size", 2},
      {"patch_size", {8, 4, 8}},
      {"spacing", {0.75, 2.5, 0.5}},
      {"normalization_schemes", {"ZScoreNormalization", "ZScoreNormalization"}},
      {"batch_dice", true},
      {"architecture",
       {{"network_class_name", "dynamic_network_architectures.architectures.unet.ResidualEncoderUNet"},
        {"arch_kwargs",
         {{"n_stages", 4},
          {"features_per_stage", {2, 3, 4, 4}},
          {"kernel_sizes", {{3, 1, 3}, {3, 3, 3}, {3, 3, 3}, {3, 3, 3}}},
          {"strides", {{1, 1, 1}, {2, 1, 2}, {2, 2, 2}, {1, 2, 1}}},
          {"n_blocks_per_stage", {1, 2, 1, 1}},
          {"n_conv_per_stage_decoder", {1, 2, 1}},
          {"conv_bias", true},
          {"norm_op", "torch.nn.modules.instancenorm.InstanceNorm3d"},
          {"nonlin", "torch.nn.LeakyReLU"}}}}}};
  return {{"plans_name", "nnUNetPlans"},
          {"transpose_forward", {1, 0, 2}},
          {"configurations",
           {{"3d_fullres", full}, {"more", {{"inherits_from", "3d_fullres"}, {"batch_size", 3}}}}}};
}

TEST_F(InitTest, FollowsPlansOfNnunet) {
  for (const char* folder : {"imagesTr", "labelsTr"}) fs::create_directory(folder_ / folder);
  for (const char* name : {"a", "b", "c", "d", "e"}) {
    const std::string image = folder_ / ("imagesTr/"s + name);
    write_volume(image + "_0000.nii", false, 2.5, name[0]);
    write_volume(image + "_0001.nii", false, 2.5, name[0] + 1);
    write_volume(folder_ / ("labelsTr/"s + name + ".nii"), true, 2.5, name[0]);
  }
  const auto plan = [&](const Json& plans, const std::string& more = "") {
    std::ofstream(folder_ / "plans.json") << plans.dump();
    return init("--task segment --targets " + quoted(folder_ / "labelsTr/*.nii") + " --data " +
                quoted(folder_ / "imagesTr/*.nii") + " --plans " + quoted(folder_ / "plans.json") + more);
  };
  expect_ok(plan(nnunet_plans()));
  expect_text({R"("crop": [4, 8, 8])", R"("spacing": [2.5, 0.75, 0.5])", R"("intensity": "zscore")",
               R"("flips": ["depth", "height", "width"])", R"("widths": [2, 3, 4, 4])",
               R"("strides": [1, [1, 2, 2], 2, [2, 1, 1]])", R"("kernels": [[1, 3, 3], 3, 3, 3])",
               R"("blocks": [1, 2, 1, 1])", R"("decoder_convolutions": [1, 2, 1])",
               R"("norm_groups": "channels")", R"("activation": "leaky_relu")", R"("deep_supervision": true)",
               R"("nesterov": true)", R"({"type": "poly"})", R"("batch_size": 2)", R"("batch": true})",
               R"("augment": {"foreground": 0.5, "rotation": [30, 30, 30], "scale": [0.7, 1.4])"});
  EXPECT_EQ(warnings_.find("data.spacing"), std::string::npos) << warnings_;
  const std::string config = "--config " + quoted(folder_ / "first.json");
  expect_ok(
      run(2, config + " --set train.steps=2 --set validation.every=2 --set checkpoint.every=0 --set output=" +
                 quoted(folder_ / "run")));
  expect_ok(plan(nnunet_plans(), " --plans-configuration more"));
  expect_text({R"("batch_size": 3)", R"("crop": [4, 8, 8])"});

  Json ct = nnunet_plans();
  ct["configurations"]["3d_fullres"]["normalization_schemes"] = {"CTNormalization", "ZScoreNormalization"};
  expect_error(plan(ct), 2, "has no foreground_intensity_properties_per_channel");
  ct["foreground_intensity_properties_per_channel"] = {
      {"0", {{"mean", 0.25}, {"std", 0.5}, {"percentile_00_5", -0.75}, {"percentile_99_5", 0.875}}}};
  expect_ok(plan(ct));
  expect_text({R"("intensity": "zscore")",
               R"("intensities": {"channel_0": {"clip": [-0.75, 0.875], "mean": 0.25, "deviation": 0.5}})"});
  expect_ok(run(2, "check " + config));
  ct["configurations"]["3d_fullres"]["use_mask_for_norm"] = {false, true};
  expect_ok(plan(ct));
  expect_text({R"("intensity": "zscore_nonzero")", R"("intensities": {"channel_0": )"});
  ct["configurations"]["3d_fullres"]["normalization_schemes"] = {"NoNormalization", "Own"};
  expect_ok(plan(ct));
  expect_text({R"("intensities": {"channel_0": {"mean": 0, "deviation": 1}})"});
  expect_warnings({"normalises by Own"});

  const auto refuses = [&](const Json& plans, const std::string& says, const std::string& more = "") {
    SCOPED_TRACE(says);
    expect_error(plan(plans, more), 2, says);
  };
  refuses(nnunet_plans(), "--plans says the model", " --from vit");
  refuses(nnunet_plans(), "has no configuration 2d; --plans-configuration may be 3d_fullres, more",
          " --plans-configuration 2d");
  const auto changed = [](const std::string& pointer, const Json& value) {
    Json plans = nnunet_plans();
    plans[Json::json_pointer("/configurations/3d_fullres/" + pointer)] = value;
    return plans;
  };
  refuses(changed("patch_size", {8, 8}), "plans 3d_fullres for 2 dims, and the images have 3");
  refuses(changed("spacing", "far"), "has the string \"far\" as spacing");
  refuses(changed("architecture/network_class_name", "a.Primus"), "has the network \"a.Primus\"");
  refuses(changed("architecture/arch_kwargs/norm_op", "torch.nn.BatchNorm3d"), "has BatchNorm3d as norm_op");
  refuses(changed("architecture/arch_kwargs/strides", {{1, 1, 1}}), "has 1 entries of strides for 4 levels");
  refuses(changed("architecture/arch_kwargs/strides/1", Json::array()),
          "has a list of 0 numbers for images of 2 or 3 axes");
  refuses(changed("architecture/arch_kwargs/n_stages", -1), "has a network of -1 levels (n_stages)");
  refuses(changed("architecture/arch_kwargs/n_stages", 4e9), "levels (n_stages); it must have 1 to 30");
  refuses(changed("architecture", nullptr), "has no network_class_name; it must be nnUNetPlans.json");
  expect_error(
      init("--data " + quoted(folder_ / "imagesTr/*.nii") + " --plans " + quoted(folder_ / "plans.json")), 2,
      "--plans counts only with --task segment");
}

/// Channels stand before space, and labels have none.
TEST_F(InitTest, TakesChannelsBeforeSpace) {
  const Shape space{4, 8, 9};
  for (const char* name : {"a", "b", "c", "d", "e"}) {
    const OutputImage image{
        "scan", OutputImage::Type::kFloat, {"channel", "depth", "height", "width"}, {2, 4, 8, 9}, {}, {}},
        mask{"mask", OutputImage::Type::kByte, {"depth", "height", "width"}, space, {}, {}};
    std::vector<float> points, labels;
    for (std::int64_t i = 0; i < 2 * space.count(); ++i) {
      points.push_back(std::sin(0.3F * static_cast<float>(i + name[0])));
      if (i < space.count()) labels.push_back(points.back() > 0 ? 1.0F : 0.0F);
    }
    const auto file = create_image_output(ImageFormat::kHdf5, folder_ / (name + ".h5"s), {image, mask}, {});
    file->write(0, Box::whole(image.shape), points);
    file->write(1, Box::whole(space), labels);
    file->finish();
  }
  expect_runs("--task segment --data " + quoted(folder_ / "*.h5"), "1");
  expect_text({R"("dims": ["channel", "depth", "height", "width"])", R"("targets": ["mask"])"});
}

/// Dims by the names of dimensions, where all have names that say it.
TEST_F(InitTest, KnowsDimsByTheirNames) {
  const auto write = [&](const std::string& name, const std::vector<std::string>& names,
                         const std::vector<std::size_t>& extents) {
    testing::NetcdfWriter file(folder_ / name);
    std::vector<int> dimensions;
    std::size_t points = 1;
    for (std::size_t d = 0; d < names.size(); ++d) {
      dimensions.push_back(file.dimension(names[d], extents[d]));
      points *= extents[d];
    }
    std::vector<double> values;
    for (std::size_t i = 0; i < points; ++i) values.push_back(std::sin(0.3 * static_cast<double>(i)));
    file.put(file.variable("picture", NC_FLOAT, dimensions), values);
    return "--data " + quoted(folder_ / name);
  };
  expect_ok(init(write("pictures.nc", {"image", "y", "x"}, {6, 16, 16})));
  expect_text({R"("dims": ["sample", "height", "width"])", "its dimensions' names say",
               R"("train": {"sample": [0, 3]})"});
  expect_ok(init(write("frames.nc", {"T", "C", "Y", "X"}, {6, 2, 16, 16})));
  expect_text({R"("dims": ["sample", "channel", "height", "width"])"});
  expect_ok(init(write("volume.nc", {"z", "y", "x"}, {10, 16, 16})));
  expect_text({R"("dims": ["depth", "height", "width"])"});
  expect_ok(init(write("last.nc", {"y", "x", "time"}, {16, 16, 6})));
  expect_text({"is assumed from their number"});
  expect_ok(init(write("odd.nc", {"a", "y", "x"}, {10, 16, 16})));
  expect_text({R"("dims": ["depth", "height", "width"])", "is assumed from their number"});
}

/// The axes of OME-NGFF 0.4, which stand at the group, and of which an array of Zarr's format 2 knows
/// nothing.
TEST_F(InitTest, KnowsTheAxesOfNgff) {
  const std::string store = folder_ / "image.zarr";
  fs::create_directories(store + "/0");
  std::ofstream(store + "/.zgroup") << R"({"zarr_format": 2})";
  std::ofstream(store + "/.zattrs")
      << R"({"multiscales": [{"version": "0.4", "axes": [{"name": "t", "type": "time"}, {"name": "c", "type": "channel"},
             {"name": "y", "type": "space"}, {"name": "x", "type": "space"}], "datasets": [{"path": "0"}]}]})";
  std::ofstream(store + "/0/.zarray")
      << R"({"zarr_format": 2, "shape": [5, 2, 16, 16], "chunks": [5, 2, 16, 16],
      "dtype": "<f4", "compressor": null, "fill_value": 0, "order": "C", "filters": null})";
  std::string bytes;
  for (int i = 0; i < 5 * 2 * 16 * 16; ++i) {
    const float value = std::sin(0.3F * static_cast<float>(i));
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  std::ofstream(store + "/0/0.0.0.0", std::ios::binary) << bytes;
  expect_ok(init("--data " + quoted(store)));
  expect_text({R"("dims": ["sample", "channel", "height", "width"])", R"("variables": ["0"])"});
}

/// What inspect says of NIfTI.
TEST_F(InitTest, InspectsNifti) {
  write_volume(folder_ / "labels.nii", true, 2.5, 0);
  write_volume(folder_ / "image.nii", false, 2.5, 0);
  std::int64_t ones = 0;
  for (int i = 0; i < 4 * 8 * 9; ++i) ones += std::sin(0.3 * i) > 0 ? 1 : 0;
  const Outcome labels = run(1, "inspect " + quoted(folder_ / "labels.nii")),
                image = run(1, "inspect " + quoted(folder_ / "image.nii"));
  expect_ok(labels);
  expect_ok(image);
  for (const std::string& part :
       {"uint8"s, "9 x 8 x 4 points, 0.5 x 0.75 x 2.5 mm apart, running to RAS"s, "[[0.5, 0, 0, 0],"s,
        "points by value  0: " + std::to_string(288 - ones) + ", 1: " + std::to_string(ones) + "\n"})
    EXPECT_NE(labels.out.find(part), std::string::npos) << part << " in\n" << labels.out;
  EXPECT_NE(image.out.find("float32"), std::string::npos) << image.out;
  EXPECT_EQ(image.out.find("by value"), std::string::npos) << image.out;
}

}  // namespace
}  // namespace jigsaw::e2e
