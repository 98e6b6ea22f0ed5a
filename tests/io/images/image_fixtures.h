#pragma once
#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "comm/agreement.h"
#include "comm/thread/run_ranks.h"
#include "images/image_data.h"
#include "io/fixtures.h"

/// The volumes and pictures of make_image_fixtures.py, and data that are opened of them.
namespace jigsaw::testing::image_fixtures {

inline const Shape kVolume{11, 9, 10};

inline std::string image_file(const std::string& name) {
  return fixture("images/" + name);
}

inline std::vector<double> image_values(const std::string& name) {
  static const Json json = Json::parse(std::ifstream(image_file("expected.json")));
  std::vector<double> values;
  for (const Json& value : json[name]) {
    values.push_back(value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>());
  }
  return values;
}

inline Json image_numbers(const std::string& name) {
  return Json::parse(std::ifstream(image_file("expected.json")))[name];
}

inline SliceRanges slices(ImageDim dim, std::int64_t first, std::int64_t last) {
  return {{{dim, {first, last}}}};
}

inline DataOptions volume_options() {
  DataOptions options;
  options.task = Task::kDenoise;
  options.files = {"volume.h5"};
  options.variables = {{"scan/density", {}}};
  options.dims = {ImageDim::kDepth, ImageDim::kHeight, ImageDim::kWidth};
  options.train = {slices(ImageDim::kDepth, 0, 6)};
  options.valid = {slices(ImageDim::kDepth, 7, 8)};
  options.crop = {5, 4, 6};
  options.noise_sigma = 0.25;
  return options;
}

inline DataOptions picture_options() {
  DataOptions options;
  options.task = Task::kMap;
  options.files = {"pictures.h5"};
  options.variables = {{"images", {}}};
  options.targets = {{"masks", {}}};
  options.dims = {ImageDim::kSample, ImageDim::kHeight, ImageDim::kWidth, ImageDim::kChannel};
  options.train = {slices(ImageDim::kSample, 0, 3)};
  options.valid = {slices(ImageDim::kSample, 4, 4)};
  options.classes = 2;
  return options;
}

/// Opened by one rank.
inline std::unique_ptr<ImageData> open(const DataOptions& options,
                                       const std::vector<std::int64_t>& overlap = {},
                                       std::uint64_t seed = 1) {
  std::unique_ptr<ImageData> data;
  run_ranks(1, [&](Communicator& world) {
    data = std::make_unique<ImageData>(options, image_file(""), seed, overlap, world);
  });
  return data;
}

inline std::string refusal(const DataOptions& options, ExitCode code) {
  std::string message;
  run_ranks(2, [&](Communicator& world) {
    try {
      ImageData(options, image_file(""), 1, {}, world);
      ADD_FAILURE() << "nothing was thrown";
    } catch (const AgreedError& error) {
      EXPECT_EQ(error.code(), code);
      if (world.rank() == 0) message = error.what();
    }
  });
  return message;
}

}  // namespace jigsaw::testing::image_fixtures
