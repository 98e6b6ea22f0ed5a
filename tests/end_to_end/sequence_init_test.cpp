// What init writes for files of sequences.
#include <gtest/gtest.h>
#include <hdf5.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "end_to_end/sequence_runs.h"

namespace jigsaw::e2e {
namespace sequence_init_test {

TEST_F(SequenceRuns, InitWritesThemForFilesOfTheWell) {
  const Outcome made =
      run(1, "init --data " + (folder_ / "well.hdf5") + " --output " + (folder_ / "first.json"));
  ASSERT_EQ(made.exit_code, 0) << made.err;
  std::ifstream file(folder_ / "first.json");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_NE(text.find(R"("dims": ["sample", "time", "depth", "height", "width", "channel"])"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find(R"({"name": "v", "data_set": "t1_fields/v"})"), std::string::npos);
  EXPECT_NE(text.find(R"("static": [{"name": "m", "data_set": "t0_fields/m"}])"), std::string::npos);
  EXPECT_NE(text.find(R"("padding_mode": ["zeros", "circular", "zeros"])"), std::string::npos) << text;
  EXPECT_NE(text.find(R"("train": {"sample": [0, 1]})"), std::string::npos);
  EXPECT_NE(text.find(R"("valid": {"sample": [2, 2]})"), std::string::npos);
  const Outcome checked = run(2, "check --config " + (folder_ / "first.json"));
  EXPECT_EQ(checked.exit_code, 0) << checked.err;
}

/// Groups that say by an attribute alone what goes round, and numbers that may be inputs.
TEST_F(SequenceRuns, InitReadsAttributesOfBoundariesAndNamesNumbers) {
  const hid_t file = H5Fopen((folder_ / "well.hdf5").c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  const hid_t text = H5Tcopy(H5T_C_S1), scalar = H5Screate(H5S_SCALAR);
  H5Tset_size(text, 16);
  for (const auto& [name, type] : {std::pair{"boundary_conditions/x_periodic", "PERIODIC"},
                                   {"boundary_conditions/z_periodic", "WALL"}}) {
    const hid_t group = H5Gcreate2(file, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                attribute = H5Acreate2(group, "bc_type", text, scalar, H5P_DEFAULT, H5P_DEFAULT);
    std::array<char, 16> value{};
    std::string(type).copy(value.data(), value.size() - 1);
    H5Awrite(attribute, text, value.data());
    H5Aclose(attribute);
    H5Gclose(group);
  }
  H5Gclose(H5Gcreate2(file, "scalars", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  const hsize_t samples = kSamples, others = kSamples + 1;
  for (const auto& [name, count] : {std::pair{"scalars/kappa", samples}, {"scalars/others", others}}) {
    const hid_t space = H5Screate_simple(1, &count, nullptr),
                set = H5Dcreate2(file, name, H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    const std::vector<double> values = {0.25, 0.5, 0.125, 1};
    H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
    H5Dclose(set);
    H5Sclose(space);
  }
  H5Tclose(text);
  H5Sclose(scalar);
  H5Fclose(file);
  const Outcome made =
      run(1, "init --data " + (folder_ / "well.hdf5") + " --output " + (folder_ / "first.json"));
  ASSERT_EQ(made.exit_code, 0) << made.err;
  std::string config = read(folder_ / "first.json");
  EXPECT_NE(config.find(R"("padding_mode": ["circular", "circular", "zeros"])"), std::string::npos) << config;
  const std::string kappa = R"({"name": "kappa", "data_set": "scalars/kappa"})";
  EXPECT_NE(
      config.find("// numbers of each sequence that may be inputs, too, in \"static\": [" + kappa + "]\n"),
      std::string::npos)
      << config;
  // As it is proposed.
  const std::string before = R"("static": [)";
  config.insert(config.rfind(before) + before.size(), kappa + ", ");
  folder_.write("with.json", config);
  const Outcome checked = run(2, "check --config " + (folder_ / "with.json"));
  EXPECT_EQ(checked.exit_code, 0) << checked.err;
  EXPECT_NE(checked.out.find("kappa"), std::string::npos) << checked.out;
}

/// Of other layouts: by the names of dimensions, or as they are asked for by their number.
TEST_F(SequenceRuns, InitWritesThemForFilesOfOtherLayouts) {
  const Shape one{kSteps, kHeight, kWidth}, two{kSteps, kHeight, kWidth, 2}, space{kHeight, kWidth};
  const auto write = [&](const std::string& name, ImageFormat format, const std::vector<std::string>& dims) {
    const OutputImage p{"p", OutputImage::Type::kFloat, dims, one, {}, {}},
        bottom{"bottom", OutputImage::Type::kFloat, {dims[1], dims[2]}, space, {}, {}};
    std::vector<std::string> with_channels = dims;
    with_channels.emplace_back("component");
    const OutputImage v{"v", OutputImage::Type::kFloat, with_channels, two, {}, {}};
    const auto file = create_image_output(format, folder_ / name, {p, v, bottom}, {});
    const auto fill = [&](std::size_t number, const Shape& shape) {
      std::vector<float> values;
      for (std::int64_t i = 0; i < shape.count(); ++i)
        values.push_back(value(0, i % kSteps, i, static_cast<int>(number)));
      file->write(number, Box::whole(shape), values);
    };
    fill(0, one);
    fill(1, two);
    fill(2, space);
    file->finish();
  };
  write("named.nc", ImageFormat::kNetcdf, {"time", "y", "x"});
  write("plain.h5", ImageFormat::kHdf5, {"time", "y", "x"});
  for (const auto& [name, options] : {std::pair{"named.nc", ""}, {"plain.h5", " --task forecast"}}) {
    const std::string output = folder_ / (std::string(name) + ".json");
    const Outcome made = run(1, "init --data " + (folder_ / name) + options + " --output " + output);
    ASSERT_EQ(made.exit_code, 0) << made.err;
    const std::string text = read(output);
    for (const char* part :
         {R"("dims": ["time", "height", "width", "channel"])", R"("variables": ["p", "v"])",
          R"("static": ["bottom"])", R"("train": {"time": [0, 4]})", R"("valid": {"time": [5, 6]})"})
      EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
    const Outcome checked = run(1, "check --config " + output);
    EXPECT_EQ(checked.exit_code, 0) << checked.err;
  }
}

/// Names that groups share are whole; sequences in which no window is are refused.
TEST_F(SequenceRuns, InitWritesOnlyWhatCheckTakes) {
  const auto init = [&](const std::string& name, std::int64_t samples, std::int64_t steps) {
    const Shape shape{samples, steps, kHeight, kWidth};
    const OutputImage a{"a/u", OutputImage::Type::kFloat, {"s", "t", "y", "x"}, shape, {}, {}},
        b{"b/u", OutputImage::Type::kFloat, {"s", "t", "y", "x"}, shape, {}, {}};
    const auto file = create_image_output(ImageFormat::kHdf5, folder_ / name, {a, b}, {});
    std::vector<float> values;
    for (std::int64_t i = 0; i < shape.count(); ++i) values.push_back(value(0, i % steps, i, 0));
    for (const std::size_t number : {0, 1}) file->write(number, Box::whole(shape), values);
    file->finish();
    return run(
        1, "init --data " + (folder_ / name) + " --task forecast --output " + (folder_ / (name + ".json")));
  };
  const Outcome made = init("groups.h5", 3, kSteps);
  ASSERT_EQ(made.exit_code, 0) << made.err;
  EXPECT_NE(read(folder_ / "groups.h5.json").find(R"("variables": ["a/u", "b/u"])"), std::string::npos);
  const Outcome checked = run(1, "check --config " + (folder_ / "groups.h5.json"));
  EXPECT_EQ(checked.exit_code, 0) << checked.err;
  const Outcome brief = init("short.h5", 3, 2);
  EXPECT_EQ(brief.exit_code, 3);
  EXPECT_NE(brief.err.find("has 2 states only: too few for a window of 3"), std::string::npos) << brief.err;
}

}  // namespace sequence_init_test
}  // namespace jigsaw::e2e
