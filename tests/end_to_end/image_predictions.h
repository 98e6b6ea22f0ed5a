#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "end_to_end/command.h"
#include "files/image_output.h"
#include "files/variable_file.h"

namespace jigsaw::e2e {

/// What tests of predictions of images share.
namespace image_predictions {

inline std::string fixture(const std::string& name) {
  return source_dir() + "/tests/io/fixtures/images/" + name;
}

struct MeshCase {
  const char* json;
  int ranks;
};

/// A data set of a file, whole.
inline std::vector<double> values(const std::string& path, const std::string& name, Shape* shape = nullptr) {
  const auto file = open_variables(path, Dimensions::kByNumber);
  const FileVariable* variable = file->find(name);
  if (variable == nullptr) {
    ADD_FAILURE() << "no " << name << " in " << path;
    return {};
  }
  if (shape != nullptr) *shape = variable->shape;
  std::vector<double> all(static_cast<std::size_t>(variable->shape.count()));
  file->read<double>(*variable, Box::whole(variable->shape), all);
  return all;
}

inline double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  EXPECT_EQ(a.size(), b.size());
  double worst = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    EXPECT_EQ(std::isnan(a[i]), std::isnan(b[i]));
    if (!std::isnan(a[i])) worst = std::max(worst, std::abs(a[i] - b[i]));
  }
  return worst;
}

/// A mixer that learns nothing much: what is looked at is what becomes of its predictions.
inline Json config(const Json& data, const std::vector<int>& patch) {
  return {{"data", data},
          {"model",
           {{"type", "weathermixer"},
            {"patch", patch},
            {"embed_dim", 12},
            {"depth", 1},
            {"positions", true},
            {"final_norm", true},
            {"output_map", false}}},
          {"loss", {{"type", "mse"}}},
          {"optimizer", {{"learning_rate", 5e-3}}},
          {"train", {{"steps", 12}, {"batch_size", 4}, {"precision", "fp64"}}},
          {"validation", {{"every", 12}}},
          {"checkpoint", {{"every", 12}}}};
}

inline Json denoising() {
  return {{"task", "denoise"},
          {"files", {fixture("volume.h5")}},
          {"dims", {"depth", "height", "width"}},
          {"variables", {"scan/density"}},
          {"crop", {6, 4, 5}},
          {"noise_sigma", 0.25},
          {"train", {{"depth", {0, 7}}}},
          {"valid", {{"depth", {6, 10}}}}};
}

inline Json segmenting() {
  return {{"task", "map"},
          {"files", {fixture("pictures.h5")}},
          {"dims", {"sample", "height", "width", "channel"}},
          {"variables", {"images"}},
          {"targets", {"masks"}},
          {"classes", 2},
          {"train", {{"sample", {0, 3}}}},
          {"valid", {{"sample", {4, 4}}}}};
}

class ImagePredictions : public ::testing::Test {
 protected:
  void train(const std::string& name, const Json& json) {
    folder_.write(name + ".json", json.dump());
    const Outcome outcome =
        run(1, "--config " + (folder_ / (name + ".json")) + " --set output=" + (folder_ / name));
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  }
  Outcome command(int ranks, const std::string& what, const std::string& name, const std::string& more) {
    return run(ranks, what + " --config " + (folder_ / (name + ".json")) + " --checkpoint " +
                          (folder_ / name) + " " + more);
  }
  void predict(int ranks, const std::string& name, const std::string& output, const std::string& more = "") {
    const Outcome outcome =
        command(ranks, "predict", name, "--overwrite --output " + (folder_ / output) + " " + more);
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_NE(outcome.out.find("windows a second"), std::string::npos) << outcome.out;
  }
  Json scores(int ranks, const std::string& name, const std::string& more = "") {
    const Outcome outcome =
        command(ranks, "evaluate", name, "--overwrite --json " + (folder_ / "scores.json") + " " + more);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return Json::parse(std::ifstream(folder_ / "scores.json"));
  }
  Json validated(const std::string& name) { return metrics(folder_ / name, "valid").back().at("metrics"); }

  TemporaryFolder folder_;
};

inline void write_image(const std::string& path, ImageFormat format, const std::vector<OutputImage>& images,
                        const std::vector<std::vector<double>>& values) {
  const auto file = create_image_output(format, path, images, {});
  for (std::size_t i = 0; i < images.size(); ++i) {
    const std::vector<float> stored(values[i].begin(), values[i].end());
    file->write(i, Box::whole(images[i].shape), stored);
  }
  file->finish();
}

/// Takes sform and qform from a NIfTI file.
inline void drop_place(const std::string& path) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(252);  // qform_code, sform_code
  file.write("\0\0\0\0", 4);
}

inline OutputImage spaced(const std::string& name, const Shape& shape, const std::vector<double>& spacing) {
  OutputImage image{name, OutputImage::Type::kFloat, {"height", "width"}, shape, {}, {}};
  if (shape.rank() == 3) image.dimensions.insert(image.dimensions.begin(), "depth");
  image.numbers["spacing"] = spacing;
  return image;
}

}  // namespace image_predictions
}  // namespace jigsaw::e2e
