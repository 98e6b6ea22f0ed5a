#include "files/nifti_file.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "base/text.h"
#include "files/image_output.h"
#include "io/fixtures.h"
#include "support/temporary_folder.h"

namespace jigsaw {
namespace nifti_file_test {

struct Image {
  std::vector<std::int64_t> extents = {5, 4, 3};  ///< i, j, k: along the file's axes
  float slope = 0, intercept = 0;
  int sform = 0, qform = 0;
  std::array<float, 12> rows = {};       ///< of the sform
  std::array<float, 3> quaternion = {};  ///< of the qform
  float handedness = 1;
  bool swapped = false;
  char units = 2;  ///< millimetres
};

/// What stands at a place of the file.
std::int16_t stored(std::int64_t i, std::int64_t j, std::int64_t k, std::int64_t t = 0) {
  return static_cast<std::int16_t>(1000 * t + 100 * k + 10 * j + i - 150);
}

/// A NIfTI-1 file of int16, put together byte by byte after nifti1.h.
std::string bytes_of(const Image& image) {
  std::string bytes(352, '\0');
  const auto append = [&](auto value) {
    std::array<char, sizeof value> raw{};
    std::memcpy(raw.data(), &value, sizeof value);
    if (image.swapped) std::reverse(raw.begin(), raw.end());
    return std::string(raw.begin(), raw.end());
  };
  const auto put = [&](std::size_t offset, auto value) {
    bytes.replace(offset, sizeof value, append(value));
  };
  put(0, std::int32_t{348});
  put(40, static_cast<std::int16_t>(image.extents.size()));
  for (std::size_t d = 0; d < image.extents.size(); ++d)
    put(42 + 2 * d, static_cast<std::int16_t>(image.extents[d]));
  put(70, std::int16_t{4});
  put(72, std::int16_t{16});
  put(76, image.handedness);
  for (std::size_t d = 0; d < 3; ++d) put(80 + 4 * d, static_cast<float>(0.5 + static_cast<double>(d)));
  put(108, 352.0F);
  put(112, image.slope);
  put(116, image.intercept);
  bytes[123] = image.units;
  bytes.replace(148, 9, "a phantom");
  put(252, static_cast<std::int16_t>(image.qform));
  put(254, static_cast<std::int16_t>(image.sform));
  for (std::size_t q = 0; q < 3; ++q) put(256 + 4 * q, image.quaternion[q]);
  for (std::size_t r = 0; r < 12; ++r) put(280 + 4 * r, image.rows[r]);
  bytes.replace(344, 4, std::string("n+1\0", 4));
  const std::int64_t times = image.extents.size() > 3 ? image.extents[3] : 1;
  const std::int64_t layers = image.extents.size() > 2 ? image.extents[2] : 1;
  for (std::int64_t t = 0; t < times; ++t) {
    for (std::int64_t k = 0; k < layers; ++k) {
      for (std::int64_t j = 0; j < image.extents[1]; ++j) {
        for (std::int64_t i = 0; i < image.extents[0]; ++i) bytes += append(stored(i, j, k, t));
      }
    }
  }
  return bytes;
}

class NiftiFileTest : public ::testing::Test {
 protected:
  std::string write(const std::string& bytes, const std::string& name = "image.nii") const {
    testing::put_text(folder_.path() + "/" + name, bytes);
    return folder_.path() + "/" + name;
  }
  std::string write_gzip(const std::string& bytes) const {
    const std::string path = folder_.path() + "/image.nii.gz";
    const gzFile file = gzopen(path.c_str(), "wb");
    EXPECT_EQ(gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size())),
              static_cast<int>(bytes.size()));
    gzclose(file);
    return path;
  }
  static std::vector<double> read(VariableFile& file, const Box& box) {
    std::vector<double> values(static_cast<std::size_t>(box.extent.count()));
    file.read<double>(file.variables()[0], box, values);
    return values;
  }
  /// Compares the box of [z, y, x] with what a function says of a place.
  template <typename F>
  static void expect_box(VariableFile& file, const Box& box, const F& wanted) {
    const std::vector<double> values = read(file, box);
    std::size_t n = 0;
    for (std::int64_t z = box.begin[0]; z < box.end(0); ++z) {
      for (std::int64_t y = box.begin[1]; y < box.end(1); ++y) {
        for (std::int64_t x = box.begin[2]; x < box.end(2); ++x, ++n) {
          ASSERT_EQ(values[n], wanted(z, y, x)) << z << " " << y << " " << x;
        }
      }
    }
  }

  testing::TemporaryFolder folder_;
};

// From right to left in the file, scaled by 0.5 and −10 (make_image_fixtures.py).
TEST_F(NiftiFileTest, ReadsWhatNibabelWrites) {
  for (const char* name : {"images/volume.nii", "images/volume.nii.gz"}) {
    NiftiFile file(fixture(name));
    EXPECT_EQ(file.variables()[0].numbers.at("spacing"), (std::vector{2.5, 1.5, 0.5}));
    const auto wanted = [](std::int64_t z, std::int64_t y, std::int64_t x) {
      return 0.5 * static_cast<double>(100 * z + 10 * y + 4 - x) - 10;
    };
    expect_box(file, Box::whole({3, 4, 5}), wanted);
    expect_box(file, {{1, 2, 3}, {2, 1, 2}}, wanted);
  }
}

// 5.5 MB, so two slabs.
TEST_F(NiftiFileTest, DecompressesForCropsOfOneImageOnce) {
  const std::string path = write_gzip(bytes_of({.extents = {100, 110, 250}}));
  const auto wanted = [](std::int64_t z, std::int64_t y, std::int64_t x) { return stored(x, y, z); };
  NiftiFile file(path);
  const std::int64_t plane = std::int64_t{100} * 110 * 2, first_slab = (std::int64_t{4} << 20) / 200 * 200;
  expect_box(file, {{240, 100, 0}, {10, 10, 100}}, wanted);
  EXPECT_EQ(file.bytes_fetched(), 250 * plane);
  expect_box(file, {{0, 7, 90}, {2, 3, 10}}, wanted);
  expect_box(file, {{185, 50, 3}, {20, 11, 70}}, wanted);
  EXPECT_EQ(file.bytes_fetched(), 250 * plane);
  file.close();
  expect_box(file, {{3, 0, 0}, {1, 110, 100}}, wanted);
  EXPECT_EQ(file.bytes_fetched(), 250 * plane + first_slab);
  expect_box(file, {{249, 0, 0}, {1, 110, 100}}, wanted);
  EXPECT_EQ(file.bytes_fetched(), 2 * 250 * plane);
}

TEST_F(NiftiFileTest, ReadsPlainCompressedAndSwapped) {
  const auto wanted = [](std::int64_t z, std::int64_t y, std::int64_t x) { return stored(x, y, z); };
  for (const std::string& path :
       {write(bytes_of({})), write_gzip(bytes_of({})), write(bytes_of({.swapped = true}))}) {
    const auto file = open_variables(path, Dimensions::kByNumber);
    ASSERT_NE(dynamic_cast<NiftiFile*>(file.get()), nullptr);
    const FileVariable& image = file->variables()[0];
    EXPECT_EQ(image.name, "image");
    EXPECT_EQ(image.shape, (Shape{3, 4, 5}));
    EXPECT_EQ(image.text("long_name"), "a phantom");
    EXPECT_EQ(image.numbers.at("spacing"), (std::vector{2.5, 1.5, 0.5}));
    expect_box(*file, Box::whole({3, 4, 5}), wanted);
    expect_box(*file, {{1, 2, 1}, {2, 1, 3}}, wanted);
    file->close();
    expect_box(*file, {{0, 0, 4}, {1, 4, 1}}, wanted);
    EXPECT_EQ(file->bytes_read(), 2 * (60 + 6 + 4));
    EXPECT_THROW(read(*file, {{0, 0, 3}, {1, 1, 3}}), DataError);
  }
}

TEST_F(NiftiFileTest, ScalesAndHasChannelsBeforeSpace) {
  NiftiFile file(write(bytes_of({.extents = {5, 4, 3, 2}, .slope = 0.5F, .intercept = 10})));
  ASSERT_EQ(file.variables()[0].shape, (Shape{2, 3, 4, 5}));
  const std::vector<double> values = read(file, {{1, 2, 3, 0}, {1, 1, 1, 5}});
  for (std::int64_t i = 0; i < 5; ++i)
    EXPECT_EQ(values[static_cast<std::size_t>(i)], 0.5 * stored(i, 3, 2, 1) + 10);
}

/// As nibabel takes them.
TEST_F(NiftiFileTest, ASlopeWithoutAnInterceptIsRefusedAndNoSlopeIsNoScale) {
  for (const float intercept : {NAN, INFINITY}) {
    const std::string message =
        message_of<DataError>([&] { NiftiFile(write(bytes_of({.slope = 0.5F, .intercept = intercept}))); });
    EXPECT_NE(message.find("its header scales values by 0.5 and adds "), std::string::npos) << message;
  }
  for (const float slope : {0.0F, NAN}) {
    NiftiFile file(write(bytes_of({.slope = slope, .intercept = NAN})));
    expect_box(file, Box::whole({3, 4, 5}),
               [](std::int64_t z, std::int64_t y, std::int64_t x) { return stored(x, y, z); });
  }
}

TEST_F(NiftiFileTest, TurnsAxesToTheWorldByTheSform) {
  // i runs downward, j from right to left, k forward.
  NiftiFile file(write(bytes_of({.sform = 1, .rows = {0, -1.5F, 0.1F, 7, 0, 0, 2.5F, 8, -0.5F, 0, 0, 9}})));
  ASSERT_EQ(file.variables()[0].shape, (Shape{5, 3, 4}));
  EXPECT_EQ(file.variables()[0].numbers.at("spacing"), (std::vector{0.5, 2.5, 1.5}));
  // Where pixdim has other steps, those of the sform count.
  NiftiFile wider(write(bytes_of({.sform = 1, .rows = {0, -3, 0, 7, 0, 0, 5, 8, -1, 0, 0, 9}}), "wider.nii"));
  EXPECT_EQ(wider.variables()[0].numbers.at("spacing"), (std::vector{1.0, 5.0, 3.0}));
  const auto wanted = [](std::int64_t z, std::int64_t y, std::int64_t x) { return stored(4 - z, 3 - x, y); };
  expect_box(file, Box::whole({5, 3, 4}), wanted);
  expect_box(file, {{1, 1, 0}, {3, 2, 2}}, wanted);
  // And as a rank has it to which another described it.
  const FileDescription description = FileDescription::from_bytes(file.describe().to_bytes());
  const auto described = open_described(description, External::kRefused);
  EXPECT_FALSE(described->is_open());
  expect_box(*described, {{1, 1, 0}, {3, 2, 2}}, wanted);
  EXPECT_EQ(dynamic_cast<NiftiFile&>(*described).header().description, file.header().description);
}

TEST_F(NiftiFileTest, TurnsAxesToTheWorldByTheQform) {
  // Half a turn about z: x and y run the other way; a negative pixdim[0] turns z, too.
  NiftiFile file(write(bytes_of({.qform = 1, .quaternion = {0, 0, 1}, .handedness = -1})));
  expect_box(file, Box::whole({3, 4, 5}),
             [](std::int64_t z, std::int64_t y, std::int64_t x) { return stored(4 - x, 3 - y, 2 - z); });
}

/// What is read of a file and written as another like it, in pieces, has the file's own bytes in their order.
TEST_F(NiftiFileTest, IsWrittenInTheOrderAndAtThePlaceOfAnother) {
  const std::vector<Image> images = {
      {},
      {.sform = 1, .rows = {0, -1.5F, 0.1F, 7, 0, 0, 2.5F, 8, -0.5F, 0, 0, 9}},
      {.qform = 1, .quaternion = {0, 0, 1}, .handedness = -1},
      {.extents = {5, 4}, .sform = 1, .rows = {-1, 0, 0, 5, 0, -2, 0, 6, 0, 0, 3, 7}},
      {.extents = {5, 4, 3, 2}, .sform = 2, .rows = {-1, 0, 0, 5, 0, 2, 0, 6, 0, 0, 3, 7}}};
  for (const Image& image : images) {
    const std::string bytes = bytes_of(image);
    NiftiFile file(write(bytes));
    const FileVariable& input = file.variables()[0];
    OutputImage output{"image", OutputImage::Type::kShort, {"depth", "height", "width"}, input.shape, {}, {}};
    if (input.shape.rank() == 4) output.dimensions.insert(output.dimensions.begin(), "channel");
    for (const char* name : {"/copy.nii", "/copy.nii.gz"}) {
      const std::string path = folder_.path() + name;
      const auto to = create_image_output(*image_format(path), path, {output}, {}, &file.header());
      const int last = input.shape.rank() - 1;
      for (std::int64_t begin = 0; begin < input.shape[last]; begin += 2) {
        Box box = Box::whole(input.shape);
        box.begin[last] = begin;
        box.extent[last] = std::min<std::int64_t>(2, input.shape[last] - begin);
        const std::vector<double> values = read(file, box);
        to->write(0, box, std::vector<float>(values.begin(), values.end()));
      }
      to->finish();
      NiftiFile copy(path);
      EXPECT_EQ(copy.variables()[0].numbers, input.numbers);
      EXPECT_EQ(read(copy, Box::whole(input.shape)), read(file, Box::whole(input.shape)));
      if (path.ends_with(".nii")) {
        EXPECT_EQ(testing::text_of(path).substr(352), bytes.substr(352));
        EXPECT_EQ(testing::text_of(path).substr(40, 2), bytes.substr(40, 2)) << "as many dims";
      }
    }
  }
  EXPECT_FALSE(std::filesystem::exists(folder_.path() + "/copy.nii.gz.raw"));
}

/// Beside the sform a qform stays what it is, where both have the same steps; pixdim is then that of both.
TEST_F(NiftiFileTest, KeepsTheQformOfAnother) {
  for (const bool same : {true, false}) {
    const float last = same ? -2.5F : -4;
    const Image image{.sform = 2,
                      .qform = 1,
                      .rows = {0.5F, 0, 0, 7, 0, 1.5F, 0, 8, 0, 0, last, 9},
                      .quaternion = {0.5F, -0.25F, 0.125F},
                      .handedness = -1};
    std::string bytes = bytes_of(image);
    for (std::size_t a = 0; a < 3; ++a) {
      const float origin = 3.5F + static_cast<float>(a);
      std::memcpy(bytes.data() + 268 + 4 * a, &origin, sizeof origin);
    }
    NiftiFile file(write(bytes));
    const OutputImage output{
        "image", OutputImage::Type::kShort, {"depth", "height", "width"}, file.variables()[0].shape, {}, {}};
    const std::string path = folder_.path() + "/copy.nii";
    create_image_output(ImageFormat::kNifti, path, {output}, {}, &file.header())->finish();
    const std::string written = testing::text_of(path);
    EXPECT_EQ(written.substr(254, 2), bytes.substr(254, 2)) << "sform_code";
    EXPECT_EQ(written.substr(280, 48), bytes.substr(280, 48)) << "the sform";
    if (same) {
      EXPECT_EQ(written.substr(76, 16), bytes.substr(76, 16)) << "the sign of the third axis, and the steps";
      EXPECT_EQ(written.substr(252, 28), bytes.substr(252, 28)) << "codes, quaternion and origin";
    } else {
      EXPECT_EQ(written.substr(252, 2), std::string(2, '\0'))
          << "pixdim steps as the sform, not as the qform";
    }
  }
}

TEST_F(NiftiFileTest, APlaceThatIsNotFiniteIsRefused) {
  constexpr float kInfinite = std::numeric_limits<float>::infinity();
  const auto refused = [&](const Image& image, const char* form) {
    const std::string path = folder_.path() + "/image.nii";
    EXPECT_EQ(message_of<DataError>([&] { NiftiFile(write(bytes_of(image))); }),
              path + " cannot be read as NIfTI: its " + form +
                  ", which says where points lie, holds a number that is not finite");
  };
  refused({.sform = 1, .rows = {1, 0, 0, NAN, 0, 1, 0, 0, 0, 0, 1, 0}}, "sform");
  refused({.sform = 2, .qform = 1, .rows = {1, 0, 0, 0, 0, 1, kInfinite, 0, 0, 0, 1, 0}}, "sform");
  EXPECT_NO_THROW(NiftiFile(write(bytes_of(
      {.sform = 1, .qform = 1, .rows = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0}, .quaternion = {0, NAN, 0}}))))
      << "the sform says where points lie";
  refused({.qform = 1, .handedness = kInfinite}, "qform");
  EXPECT_NO_THROW(NiftiFile(write(bytes_of({.rows = {NAN}, .quaternion = {NAN}})))) << "of no code";
}

TEST_F(NiftiFileTest, KnowsWhereItsFormsContradictEachOther) {
  const auto of = [&](const std::array<float, 12>& rows, const std::array<float, 3>& quaternion, int qform) {
    return NiftiFile(write(bytes_of({.sform = 1, .qform = qform, .rows = rows, .quaternion = quaternion})))
        .header()
        .contradiction;
  };
  const std::array<float, 12> ras = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0},
                              away = {1, 0, 0, 3, 0, 1, 0, -4, 0, 0, 1, 0};
  EXPECT_FALSE(of(ras, {}, 1).in_direction);
  EXPECT_EQ(of(ras, {}, 1).origins, 0);
  EXPECT_EQ(of(away, {}, 1).origins, 5);
  EXPECT_TRUE(of(ras, {0, 0, 1}, 1).in_direction) << "half a turn about z";
  EXPECT_TRUE(of(ras, {0, 0, 0.70710678F}, 1).in_direction) << "a quarter";
  EXPECT_FALSE(of(ras, {0, 0, 0.2F}, 1).in_direction) << "a little";
  EXPECT_FALSE(of(away, {0, 0, 1}, 0).in_direction) << "without a qform";
  EXPECT_EQ(of(away, {}, 0).origins, 0);
}

TEST_F(NiftiFileTest, WhatHasItsTemporaryNameIsNotFollowed) {
  const std::string path = folder_.path() + "/x.nii.gz", precious = folder_.path() + "/precious";
  testing::put_text(precious, "kept");
  std::filesystem::create_symlink(precious, path + ".raw");
  const OutputImage image{"image", OutputImage::Type::kShort, {"depth", "height", "width"}, {1, 2, 2}, {},
                          {}};
  const auto to = create_image_output(*image_format(path), path, {image}, {});
  to->write(0, Box::whole(image.shape), std::vector<float>{1, 2, 3, 4});
  to->finish();
  NiftiFile written(path);
  EXPECT_EQ(read(written, Box::whole(image.shape)), (std::vector<double>{1, 2, 3, 4}));
  EXPECT_EQ(testing::text_of(precious), "kept");
}

TEST_F(NiftiFileTest, SaysWhereItsPointsLie) {
  // i runs downward, j from right to left, k forward: point (0, 0, 0) of what is read is i = 4, j = 3, k = 0.
  NiftiFile file(write(bytes_of({.sform = 1, .rows = {0, -1.5F, 0.25F, 7, 0, 0, 2.5F, 8, -0.5F, 0, 0, 9}})));
  EXPECT_EQ(file.variables()[0].numbers.at("affine"),
            (std::vector<double>{1.5, 0.25, 0, 2.5, 0, 2.5, 0, 8, 0, 0, 0.5, 7}));
  // Of the qform the spacing stands apart.
  NiftiFile turned(write(bytes_of({.qform = 1, .quaternion = {0, 0, 1}})));
  EXPECT_EQ(turned.variables()[0].numbers.at("affine"),
            (std::vector<double>{0.5, 0, 0, -2, 0, 1.5, 0, -4.5, 0, 0, 2.5, 0}));
}

/// Nobody said that points of such an image are a millimetre apart.
TEST_F(NiftiFileTest, IsInMillimetresOnlyWhereTheInputSaysHowFarPointsAre) {
  const auto units_of = [&](const std::map<std::string, std::vector<double>>& numbers,
                            const NiftiHeader* like = nullptr) {
    OutputImage image{"image", OutputImage::Type::kShort, {"depth", "height", "width"}, {3, 4, 5}, {}, {}};
    image.numbers.insert(numbers.begin(), numbers.end());
    const std::string path = folder_.path() + "/written.nii";
    create_image_output(ImageFormat::kNifti, path, {image}, {}, like)->finish();
    return static_cast<int>(testing::text_of(path)[123]);
  };
  EXPECT_EQ(units_of({}), 0);
  EXPECT_EQ(units_of({{"spacing", {2.5, 1.5, 0.5}}}), 2);
  EXPECT_EQ(units_of({{"affine", {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0}}}), 2);
  for (const auto& [units, right] : {std::pair{'\2', 2}, {'\3', 2}, {'\0', 0}, {'\10', 0}}) {
    NiftiFile input(write(bytes_of({.units = units})));
    EXPECT_EQ(units_of({}, &input.header()), right) << static_cast<int>(units);
  }
}

TEST_F(NiftiFileTest, OfTheSecondVersionIsNamedWhereItIsCompressedToo) {
  std::string bytes(600, '\0');
  bytes.replace(0, 8, std::string("\x1c\x02\0\0n+2\0", 8));
  const std::string path = write_gzip(bytes);
  EXPECT_NE(message_of<DataError>([&] {
              open_variables(path, Dimensions::kByNumber);
            }).find("but a NIfTI-2 file; convert it with: python3 -c"),
            std::string::npos);
  EXPECT_NE(message_of<DataError>([&] {
              open_variables(write_gzip("plain text"), Dimensions::kByNumber);
            }).find("but compressed by gzip"),
            std::string::npos);
}

TEST_F(NiftiFileTest, DamageIsADataError) {
  const std::string whole = bytes_of({});
  for (std::size_t length = 0; length < whole.size(); length += 7) {
    EXPECT_THROW(open_variables(write(whole.substr(0, length)), Dimensions::kByNumber), DataError) << length;
  }
  for (const auto& [offset, value] : std::vector<std::pair<std::size_t, char>>{
           {40, 9}, {40, 0}, {42, 0}, {43, '\x7f'}, {70, 32}, {70, 77}, {111, '\x7f'}, {0, 1}}) {
    std::string damaged = whole;
    damaged[offset] = value;
    EXPECT_THROW(NiftiFile(write(damaged)), DataError) << offset;
  }
  const std::string packed = testing::text_of(write_gzip(whole));
  EXPECT_THROW(
      {
        NiftiFile file(write(packed.substr(0, packed.size() - 40), "cut.nii.gz"));
        read(file, Box::whole({3, 4, 5}));
      },
      DataError);
}

/// What float32 does not hold, in each format.
TEST(ImageOutput, KeepsNumbersOfDoublePrecision) {
  const testing::TemporaryFolder folder;
  const std::vector<double> numbers = {1e44, -3e-40, 1 + 0x1p-40, 0, std::nan(""), -1e300};
  OutputImage image{"image", OutputImage::Type::kDouble, {"depth", "height", "width"}, {1, 2, 3}, {}, {}};
  for (const char* name : {"x.nii", "x.nii.gz", "x.h5", "x.nc"}) {
    const std::string path = folder.path() + "/" + name;
    const auto to = create_image_output(*image_format(path), path, {image}, {});
    to->write(0, Box::whole(image.shape), numbers);
    to->finish();
    const auto file = open_variables(path, Dimensions::kByNumber);
    const auto& all = file->variables();
    const auto found_variable =
        std::ranges::find_if(all, [](const FileVariable& one) { return one.shape.count() == 6; });
    ASSERT_NE(found_variable, all.end()) << name;
    const FileVariable& variable = *found_variable;
    std::vector<double> found(numbers.size());
    file->read<double>(variable, Box::whole(variable.shape), found);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      if (std::isnan(numbers[i])) {
        EXPECT_TRUE(std::isnan(found[i])) << name;
      } else {
        EXPECT_EQ(found[i], numbers[i]) << name;
      }
    }
  }
}

}  // namespace nifti_file_test
}  // namespace jigsaw
