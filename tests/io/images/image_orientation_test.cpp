// Files that belong together and do not all say how they run through the world.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "array/box.h"
#include "base/error.h"
#include "files/glob.h"
#include "files/image_output.h"
#include "images/image_files.h"
#include "images/image_pairs.h"
#include "io/fixtures.h"
#include "support/temporary_folder.h"

namespace jigsaw {
namespace image_orientation_test {

using Places = std::vector<double>;

/// Three rows of four, as of NiftiFile: of a grid whose axes run to the right, to the front and up; to the
/// left and the back; and of one that is stored from below to above first.
const Places kRas = {1, 0, 0, -10, 0, 2, 0, 20, 0, 0, 3, 0}, kLps = {-1, 0, 0, 9, 0, -2, 0, 9, 0, 0, 3, 0},
             kSagittal = {0, 0, 1, -5, 0, -1, 0, 3, 1, 0, 0, 2};

class OrientedImages : public ::testing::Test {
 protected:
  /// A NIfTI file of 3 × 4 × 5 points whose values count up in the order of the file; without a place where
  /// none is given.
  void write(const std::string& name, const Places& place, const Shape& shape = {3, 4, 5}) const {
    const std::string path = folder_.path() + "/" + name;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    OutputImage image{"image", OutputImage::Type::kFloat, {"depth", "height", "width"}, shape, {}, {}};
    image.numbers["affine"] = place.empty() ? kRas : place;
    const auto file = create_image_output(ImageFormat::kNifti, path, {image}, {});
    std::vector<float> values;
    for (std::int64_t i = 0; i < shape.count(); ++i) values.push_back(static_cast<float>(i));
    file->write(0, Box::whole(shape), values);
    file->finish();
    if (!place.empty()) return;
    std::string bytes = testing::text_of(path);
    std::fill_n(bytes.begin() + 252, 4, '\0');  // qform_code and sform_code
    testing::put_text(path, bytes);
  }
  /// Opens a/*.nii as `a` and selects `b` and `label` of the folders of these names, if they are there.
  std::unique_ptr<ImageFiles> opened(std::optional<double> alignment = 0.1) const {
    auto files = std::make_unique<ImageFiles>(
        expand_patterns({"a/*.nii"}, folder_.path()), dims_, opener(Dimensions::kByNumber), spacing_,
        std::vector<std::string>{}, ImagePairing{{"a/*.nii"}, alignment, {"label"}});
    files->select({"a", {}, "image"});
    for (const char* name : {"b", "label"}) {
      if (!std::filesystem::exists(folder_.path() + "/" + name)) continue;
      const VariableOptions variable{name, {}, "image", {std::string(name) + "/*.nii"}};
      files->select(variable, own_files(variable, folder_.path()));
    }
    return files;
  }
  static std::vector<double> values(ImageFiles& files, const char* variable, std::int64_t image = 0) {
    const Shape extents = files.extents(image);
    std::vector<double> all(static_cast<std::size_t>(extents.count()));
    files.read({variable, {}}, image, Box::whole(extents), all);
    return all;
  }

  testing::TemporaryFolder folder_;
  std::vector<double> spacing_;  ///< common, if there is one
  std::vector<ImageDim> dims_ = {ImageDim::kDepth, ImageDim::kHeight, ImageDim::kWidth};
};

/// A label without a place has at each point the number of the file that its image has there.
TEST_F(OrientedImages, WhatHasNoPlaceIsTurnedAsTheFirstOfItsCase) {
  write("a/0.nii", kLps);
  write("a/1.nii", kSagittal);
  for (const char* name : {"label/0.nii", "label/1.nii"}) write(name, {});
  const auto files = opened();
  EXPECT_EQ(files->extents(0), (Shape{3, 4, 5}));
  EXPECT_EQ(files->extents(1), (Shape{5, 4, 3})) << "up along the first axis of the file";
  for (const std::int64_t image : {0, 1})
    EXPECT_EQ(values(*files, "label", image), values(*files, "a", image));
  EXPECT_EQ(values(*files, "a")[0], 19) << "the last row and column of the file";
  EXPECT_FALSE(files->place_of("label", 0)) << "that of the image is not its own";
  EXPECT_EQ(files->turned_files().size(), 8U) << "two labels";
}

/// At a common spacing, too, whatever pixdim says of what has no place.
TEST_F(OrientedImages, WhatHasNoPlaceHasTheSpacingOfItsCase) {
  write("a/0.nii", {-0.5, 0, 0, 9, 0, -1.5, 0, 9, 0, 0, 2, 0});
  for (const char* name : {"b/0.nii", "label/0.nii"}) write(name, {});
  spacing_ = {3, 1, 1};
  const auto files = opened();
  EXPECT_EQ(files->extents(0), (Shape{2, 5, 3}));
  EXPECT_EQ(values(*files, "b"), values(*files, "a")) << "selected before the label that is turned";
  EXPECT_EQ(values(*files, "label"), values(*files, "a"));
}

/// So is an input that is selected before the one that says the place.
TEST_F(OrientedImages, ALaterInputSaysHowThoseBeforeItRun) {
  write("a/0.nii", {});
  write("b/0.nii", kSagittal);
  write("label/0.nii", {});
  const auto files = opened();
  EXPECT_EQ(files->extents(0), (Shape{5, 4, 3}));
  EXPECT_EQ(values(*files, "a"), values(*files, "b"));
  EXPECT_EQ(values(*files, "label"), values(*files, "b"));
  EXPECT_TRUE(files->orientation_of_case(0).in_world);
}

/// predict reads no targets, and has to see inputs as training does.
TEST_F(OrientedImages, ATargetDoesNotTurnInputs) {
  write("a/0.nii", {});
  const auto alone = opened();
  const std::vector<double> as_predicted = values(*alone, "a");
  EXPECT_EQ(as_predicted[0], 0);
  write("label/0.nii", kLps);
  const auto files = opened();
  EXPECT_EQ(values(*files, "a"), as_predicted);
  EXPECT_EQ(values(*files, "label"), as_predicted);
  EXPECT_FALSE(files->orientation_of_case(0).in_world);
}

/// As labels that were saved with numpy.eye(4).
TEST_F(OrientedImages, WithoutAlignmentAllAreTurnedAsTheFirst) {
  write("a/0.nii", kLps);
  write("label/0.nii", kRas);
  EXPECT_NE(message_of<DataError>([&] { opened(); }).find("null pairs points by their indices in the files"),
            std::string::npos);
  const auto files = opened(std::nullopt);
  EXPECT_EQ(values(*files, "label"), values(*files, "a"));
  EXPECT_EQ(values(*files, "a")[0], 19) << "as its own place says";
  const auto far = opened(1e6);
  EXPECT_NE(values(*far, "label"), values(*far, "a")) << "each by its own place";
}

TEST_F(OrientedImages, OfOtherExtentsInTheFileAreNotPairedByIndex) {
  write("a/0.nii", kLps);
  write("label/0.nii", {}, {3, 5, 4});
  for (const std::optional<double> alignment : {std::optional(0.1), std::optional<double>()})
    EXPECT_NE(message_of<DataError>([&] { opened(alignment); }).find("must have the same extents"),
              std::string::npos);
}

/// Slices of two volumes in one file.
TEST_F(OrientedImages, OfFilesThatRunDifferentlyNeedAPlace) {
  dims_ = {ImageDim::kSample, ImageDim::kHeight, ImageDim::kWidth};
  for (const char* name : {"a/0.nii", "a/1.nii"}) write(name, name[2] == '0' ? kLps : kRas);
  write("label/0.nii", {}, {6, 4, 5});
  for (const std::optional<double> alignment : {std::optional(0.1), std::optional<double>()})
    EXPECT_NE(
        message_of<DataError>([&] { opened(alignment); }).find("whose axes run otherwise through the world"),
        std::string::npos);
  write("a/1.nii", kLps);
  const auto files = opened();
  for (const std::int64_t slice : {0, 5})
    EXPECT_EQ(values(*files, "label", slice)[0], 20 * static_cast<double>(slice) + 19);
}

/// One warning for all files.
TEST_F(OrientedImages, WhoseFormsContradictEachOtherAreCounted) {
  for (const char* name : {"a/0.nii", "a/1.nii", "label/0.nii", "label/1.nii"}) write(name, kRas);
  EXPECT_FALSE(forms_warning(*opened(), {"a", "label"}, 0.1));
  const auto put_qform = [&](const std::string& name, float offset, float around) {
    const std::string path = folder_.path() + "/" + name;
    std::string bytes = testing::text_of(path);
    bytes[252] = 1;  // qform_code
    for (const auto& [at, value] : {std::pair{264, around}, {268, -10 + offset}, {272, 20.0F}})
      std::memcpy(bytes.data() + at, &value, sizeof value);
    testing::put_text(path, bytes);
  };
  put_qform("a/0.nii", 0.05F, 0);  // of voxels of 1 mm
  EXPECT_FALSE(forms_warning(*opened(), {"a", "label"}, 0.1));
  put_qform("a/1.nii", 0.5F, 0);
  put_qform("label/1.nii", 0, 1);
  EXPECT_EQ(
      forms_warning(*opened(), {"a", "label"}, 0.1).value_or(""),
      "sform and qform contradict each other in 2 files, such as " + folder_.path() +
          "/a/1.nii, whose first point lies elsewhere by the one than by the other; the sform is taken");
  EXPECT_EQ(forms_warning(*opened(), {"a", "label"}, std::nullopt).value_or(""),
            "sform and qform contradict each other in 1 file, such as " + folder_.path() +
                "/label/1.nii, whose axes run another way by the one than by the other; the sform is taken");
}

TEST_F(OrientedImages, OfOneSliceAreSamples) {
  write("a/0.nii", kRas, {1, 4, 5});
  dims_ = {ImageDim::kHeight, ImageDim::kWidth};
  EXPECT_NE(message_of<DataError>([&] { opened(); })
                .find("but data.dims names 2: height, width; slices of NIfTI, of one alone, too, are "
                      "[\"sample\", \"height\", \"width\"]"),
            std::string::npos);
  dims_.insert(dims_.begin(), ImageDim::kSample);
  EXPECT_EQ(opened()->count(), 1);
}

/// Predictions in files of their own, beside images of other ImageFiles.
TEST_F(OrientedImages, MayBeTurnedAsThoseOfOthers) {
  write("a/0.nii", kSagittal);
  write("p/none.nii", {});
  write("p/ras.nii", kRas);
  const auto images = opened();
  const auto is_paired = [&](const char* name, std::optional<double> alignment) {
    ImagePairing pairing;
    pairing.alignment = alignment;
    pairing.beside = {images->orientation_of_case(0)};
    ImageFiles files({folder_.path() + "/p/" + name}, dims_, opener(Dimensions::kByNumber), {}, {}, pairing);
    files.select({"image", {}});
    return values(files, "image") == values(*images, "a");
  };
  EXPECT_TRUE(is_paired("none.nii", 0.1));
  EXPECT_FALSE(is_paired("ras.nii", 0.1));
  EXPECT_TRUE(is_paired("ras.nii", std::nullopt));
}

}  // namespace image_orientation_test
}  // namespace jigsaw
