// Cases: what files are called, how they are paired, and parts of the data that name them.
#include <set>

#include "array/host_view.h"
#include "base/error.h"
#include "base/text.h"
#include "comm/agreement.h"
#include "comm/thread/run_ranks.h"
#include "files/glob.h"
#include "files/image_output.h"
#include "images/case_choice.h"
#include "images/case_names.h"
#include "images/image_data.h"
#include "images/image_pairs.h"
#include "io/fixtures.h"
#include "support/temporary_folder.h"

namespace jigsaw {
namespace image_cases_test {

using Names = std::vector<std::string>;

const std::vector<ImageDim> kVolumes = {ImageDim::kDepth, ImageDim::kHeight, ImageDim::kWidth};
/// From left to right, back to front and below to above in mm, by width, height and depth.
const std::vector<double> kPlace = {1, 0, 0, -10, 0, 2, 0, 20, 0, 0, 3, 0};

/// A file of one data set "image", whose values count up from `first`.
std::string write_image(const testing::TemporaryFolder& folder, const std::string& name, const Shape& shape,
                        float first = 0, const std::vector<double>& affine = {}) {
  const std::string path = folder.path() + "/" + name;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  Names dims = {"depth", "height", "width"};
  dims.erase(dims.begin(), dims.begin() + (3 - shape.rank()));
  OutputImage image{"image", OutputImage::Type::kFloat, dims, shape, {}, {}};
  if (!affine.empty()) image.numbers["affine"] = affine;
  const auto file = create_image_output(*image_format(path), path, {image}, {});
  std::vector<float> values;
  for (std::int64_t i = 0; i < shape.count(); ++i) values.push_back(first + static_cast<float>(i));
  file->write(0, Box::whole(shape), values);
  file->finish();
  return path;
}

/// As with a spacing in metres in place of mm.
TEST(ImageSpacing, ThatMakesTooManyTilesIsRefused) {
  const testing::TemporaryFolder folder;
  write_image(folder, "a.nii", {30, 40, 50}, 0, kPlace);
  DataOptions options;
  options.task = Task::kMap;
  options.dims = kVolumes;
  options.files = {folder.path() + "/a.nii"};
  options.variables = options.targets = {VariableOptions{"image"}};
  options.crop = {4, 4, 4};
  options.train = options.valid = {SliceRanges{}};
  options.spacing = {0.01, 0.01, 0.01};
  run_ranks(2, [&](Communicator& world) {
    try {
      const ImageData data(options, "", 1, {}, world);
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("makes more than 4194304 tiles of data.valid"),
                std::string::npos)
          << error.what();
    }
  });
}

/// Stores as DataLad's keep what is alike once, to which links of several cases lead.
TEST(CaseNames, LinksAreFilesOfTheirOwnButToWhatIsNamedToo) {
  const testing::TemporaryFolder folder;
  const auto at = [&](const char* name) { return folder.path() + "/" + name; };
  for (const char* name : {"store", "plain.nii"}) testing::put_text(at(name), "x");
  for (const char* name : {"a.nii", "b.nii"}) std::filesystem::create_symlink("store", at(name));
  std::filesystem::create_symlink("plain.nii", at("latest.nii"));
  std::filesystem::create_symlink("a.nii", at("link_to_a.nii"));
  std::filesystem::create_directory(at("fold"));
  std::filesystem::create_symlink("../store", at("fold/a.nii"));
  EXPECT_EQ(expand_patterns({"*.nii", "a.nii", "fold/*", at("plain.nii")}, folder.path()),
            (Names{at("a.nii"), at("b.nii"), at("plain.nii")}));
}

TEST(CaseNames, AFolderNamesThePatternOfItsFiles) {
  const testing::TemporaryFolder folder;
  const auto says = [&](const std::string& name) {
    return message_of<DataError>([&] { expand_patterns({folder.path() + "/" + name}, ""); });
  };
  const auto put = [&](const std::string& name, const std::string& bytes) {
    std::filesystem::create_directories(std::filesystem::path(folder.path() + "/" + name).parent_path());
    testing::put_text(folder.path() + "/" + name, bytes);
  };
  for (const char* name : {"i/a.nii.gz", "i/b.nii.gz", "i/c.nii", "i/notes.txt", "e/x.txt"}) put(name, "x");
  put("d/IM0001", std::string(128, '\0') + "DICM");
  const std::string i = folder.path() + "/i", d = folder.path() + "/d", e = folder.path() + "/e";
  EXPECT_EQ(says("i"), i + " is a folder, not a file; name the files in it, as \"" + i + "/*.nii.gz\"");
  EXPECT_EQ(says("i/"), i + "/ is a folder, not a file; name the files in it, as \"" + i + "/*.nii.gz\"");
  EXPECT_EQ(says("e"), e + " is a folder, not a file; name the files in it, as \"" + e + "/*.nc\"");
  EXPECT_EQ(says("d"), d + " is a folder of DICOM files; convert them with: mkdir " + d +
                           "_nifti && dcm2niix -z y -o " + d + "_nifti " + d);
}

TEST(CaseNames, AreWhatWildcardsStandFor) {
  const auto names = [](const Names& paths, const std::string& pattern) {
    return case_names(paths, {pattern});
  };
  EXPECT_EQ(names({"/d/imagesTr/case_000_0001.nii.gz", "/d/imagesTr/case_007_0001.nii.gz"},
                  "imagesTr/*_0001.nii.gz"),
            (Names{"case_000", "case_007"}));
  // A channel's number that all end with, or not, or more than a channel's.
  EXPECT_EQ(names({"i/case_0_0000.nii", "i/case_1_0000.nii"}, "i/*.nii"), (Names{"case_0", "case_1"}));
  EXPECT_EQ(names({"i/case_0000.nii", "i/case_0001.nii"}, "i/*.nii"), (Names{"case_0000", "case_0001"}));
  EXPECT_EQ(names({"i/a_2019.nii", "i/b_2019.nii"}, "i/*.nii"), (Names{"a_2019", "b_2019"}));
  // Several, equal ones once, neighbours as one.
  EXPECT_EQ(names({"/x/s1/a/s1_t1.nii", "/x/s2/b/s2_t1.nii"}, "*/?/*_t1.nii"), (Names{"s1_a", "s2_b"}));
  EXPECT_EQ(names({"a12.nii", "a34.nii"}, "a??.nii"), (Names{"12", "34"}));
  EXPECT_EQ(names({"d/a_b_seg.nii", "d/c_seg_seg.nii"}, "d/*_seg.nii"), (Names{"a_b", "c_seg"}));
  EXPECT_EQ(names({"d/a.nii.gz", "d/b.nii.gz"}, "d/*"), (Names{"a", "b"})) << "without their format";
  EXPECT_EQ(names({"d/ct_000_0000.nii.gz", "d/ct_001_0000.nii.gz"}, "d/*.nii*"), (Names{"ct_000", "ct_001"}));
  EXPECT_EQ(names({"d/a.nii.gz", "d/b.nii"}, "d/*.n*"), (Names{"a", "b"}));
  EXPECT_EQ(names({"d/a.hdf5", "d/b.h5"}, "d/*.h*5"), (Names{"a", "b"}));
  EXPECT_EQ(names({"d/a.v2.nii", "d/b.v2.nii"}, "d/*.*"), (Names{"a_v2", "b_v2"}));
}

TEST(CaseNames, OfListedFilesAreWhatDiffers) {
  const auto names = [](const Names& paths) { return case_names(paths, paths); };
  EXPECT_EQ(names({"a/scan_009_t1.nii", "a/scan_010_t1.nii"}), (Names{"009", "010"})) << "digits stay whole";
  EXPECT_EQ(names({"a/scan.nii", "a/scan2.nii"}), (Names{"scan", "scan2"}));
  EXPECT_EQ(names({"/d/left/t1.nii", "/d/right/t1.nii"}), (Names{"left", "right"}));
  EXPECT_EQ(names({"/d/volume.nii.gz"}), (Names{"volume"}));
  // Two of a pattern that would have one name.
  EXPECT_EQ(case_names({"p/1.nii", "q/1.nii"}, {"p/*.nii", "q/*.nii"}), (Names{"p", "q"}));
}

class PairedImages : public ::testing::Test {
 protected:
  /// Opens images of these patterns and selects labels of those.
  std::unique_ptr<ImageFiles> opened(const std::string& images, const std::string& labels,
                                     std::optional<double> alignment = 0.1) {
    const VariableOptions label{"label", {}, "image", {labels}};
    auto files = std::make_unique<ImageFiles>(expand_patterns({images}, folder_.path()), dims_,
                                              opener(Dimensions::kByNumber), std::vector<double>{}, Names{},
                                              ImagePairing{{images}, alignment});
    files->select({"ct", {}, "image"});
    files->select(label, own_files(label, folder_.path()));
    return files;
  }
  std::string refusal(const std::string& images, const std::string& labels) {
    return message_of<DataError>([&] { opened(images, labels); });
  }
  std::string at(const std::string& name) const { return folder_.path() + "/" + name; }

  testing::TemporaryFolder folder_;
  std::vector<ImageDim> dims_ = {ImageDim::kHeight, ImageDim::kWidth};
};

/// In the order of their names aB_seg stands before a_seg.
TEST_F(PairedImages, GoesByCases) {
  write_image(folder_, "i/a.h5", {2, 3}, 100);
  write_image(folder_, "i/aB.h5", {2, 3}, 200);
  write_image(folder_, "l/a_seg.h5", {2, 3}, 10);
  write_image(folder_, "l/aB_seg.h5", {2, 3}, 20);
  const auto opened_files = opened("i/*.h5", "l/*_seg.h5");
  ImageFiles& files = *opened_files;
  ASSERT_EQ(files.count(), 2);
  for (std::int64_t image = 0; image < 2; ++image) {
    double one = 0, other = 0;
    files.read({"ct", {}}, image, {{0, 0}, {1, 1}}, {&one, 1});
    files.read({"label", {}}, image, {{0, 0}, {1, 1}}, {&other, 1});
    EXPECT_EQ(one, 10 * other);
  }
  EXPECT_EQ(files.case_of(0), "a");
  EXPECT_EQ(files.case_of(1), "aB");
  EXPECT_FALSE(files.paired_by_order("label"));
  EXPECT_EQ(files.unordered_pairs().size(), 3U);
}

TEST_F(PairedImages, NamesCasesWithoutAPartner) {
  for (const char* name : {"i/c1.h5", "i/c2.h5", "i/c4.h5", "l/c1.h5", "l/c2.h5", "l/c3.h5"})
    write_image(folder_, name, {2, 3});
  EXPECT_EQ(refusal("i/*.h5", "l/*.h5"),
            "the files of ct and label are not of the same cases: label in " + at("l") +
                " lacks c4, and ct in " + at("i") +
                " lacks c3; leave out the files without a partner, or name them so that what * stands for is "
                "alike");
  for (const char* name : {"i/c5.h5", "i/c6.h5", "i/c7.h5", "i/c8.h5"}) write_image(folder_, name, {2, 3});
  EXPECT_NE(refusal("i/*.h5", "l/*.h5").find("label in " + at("l") + " lacks c4, c5, c6 and 2 more, and ct"),
            std::string::npos)
      << refusal("i/*.h5", "l/*.h5");
}

/// Of one label alone, too, and whatever the pattern says of the format.
TEST_F(PairedImages, NamesTheCaseThatLacksItsLabel) {
  dims_ = kVolumes;
  for (const char* name : {"i/c1_0000.nii", "i/c2_0000.nii", "l/c2.nii"})
    write_image(folder_, name, {2, 3, 4});
  for (const char* labels : {"l/*.nii", "l/*.nii*", "l/*"})
    EXPECT_NE(refusal("i/*.nii*", labels).find("label in " + at("l") + " lacks c1; leave out"),
              std::string::npos)
        << refusal("i/*.nii*", labels);
}

TEST_F(PairedImages, OfNoCommonCaseGoesByOrderAndIsSaid) {
  for (const char* name : {"i/a.h5", "i/b.h5", "l/c.h5", "l/d.h5"}) write_image(folder_, name, {2, 3});
  const auto opened_files = opened("i/*.h5", "l/*.h5");
  const ImageFiles& files = *opened_files;
  EXPECT_TRUE(files.paired_by_order("label"));
  EXPECT_TRUE(files.unordered_pairs().empty());
  const Names warnings = pairing_warnings(files, {"ct", "label"});
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_NE(warnings[0].find("the first pair is " + at("l/c.h5") + " and " + at("i/a.h5")), std::string::npos)
      << warnings[0];
  write_image(folder_, "l/e.h5", {2, 3});
  EXPECT_EQ(
      refusal("i/*.h5", "l/*.h5"),
      "label has 3 images and ct 2, and their files have no case in common: c, d, e there and a, b here; "
      "name them so that what * stands for is alike");
}

TEST_F(PairedImages, NamesTheCaseOfOtherExtents) {
  for (const char* name : {"i/a.h5", "i/b.h5", "i/c.h5", "l/a.h5", "l/c.h5"})
    write_image(folder_, name, {2, 3});
  write_image(folder_, "l/b.h5", {3, 3});
  EXPECT_EQ(refusal("i/*.h5", "l/*.h5"), "label in " + at("l/b.h5") + " is [3, 3], and ct in " +
                                             at("i/b.h5") +
                                             " [2, 3]; images of one case must have the same extents");
}

/// In voxels of 1 mm along width, 2 along height and 3 along depth.
TEST_F(PairedImages, RefusesImagesElsewhereInTheWorld) {
  dims_ = kVolumes;
  write_image(folder_, "i/a.nii", {3, 4, 5}, 0, kPlace);
  write_image(folder_, "i/b.nii", {3, 4, 5}, 0, kPlace);
  write_image(folder_, "l/a.nii", {3, 4, 5}, 0, kPlace);
  const auto label = [&](std::size_t number, double value) {
    std::vector<double> place = kPlace;
    place[number] = value;
    write_image(folder_, "l/b.nii", {3, 4, 5}, 0, place);
  };
  label(3, -10 + 0.09);  // along the shortest edge, 1 mm
  EXPECT_NO_THROW(opened("i/*.nii", "l/*.nii"));
  label(3, -10 + 2.5);
  EXPECT_EQ(refusal("i/*.nii", "l/*.nii"),
            "label in " + at("l/b.nii") + " and ct in " + at("i/b.nii") +
                " do not lie over each other: in the world their corners are up to 2.5 mm apart, 2.5 voxels; "
                "data.alignment allows 0.1, and null pairs points by their indices in the files, whatever "
                "places these say");
  EXPECT_NO_THROW(opened("i/*.nii", "l/*.nii", 2.6));
  EXPECT_NO_THROW(opened("i/*.nii", "l/*.nii", std::nullopt));
  label(10, 6);  // spacing along depth
  EXPECT_NE(refusal("i/*.nii", "l/*.nii").find("up to 6 mm apart"), std::string::npos);
  label(0, -1);  // the other way along width
  EXPECT_NE(refusal("i/*.nii", "l/*.nii").find("do not lie over each other"), std::string::npos);
  // One that says no place: neither qform nor sform.
  std::string bytes = testing::text_of(at("l/b.nii"));
  std::fill_n(bytes.begin() + 252, 4, '\0');
  testing::put_text(at("l/b.nii"), bytes);
  EXPECT_NO_THROW(opened("i/*.nii", "l/*.nii"));
}

/// Six volumes of 3 × 4 × 5 with labels, by case.
class ImageCases : public ::testing::Test {
 protected:
  void SetUp() override {
    for (int i = 0; i < 6; ++i) {
      write_image(folder_, concat("i/case_", i, "_0000.nii"), {3, 4, 5}, static_cast<float>(100 * i), kPlace);
      write_image(folder_, concat("l/case_", i, ".nii"), {3, 4, 5}, static_cast<float>(100 * i), kPlace);
    }
    options_.task = Task::kMap;
    options_.files = {"i/*_0000.nii"};
    options_.variables = {{"x", {}, "image"}};
    options_.targets = {{"y", {}, "image", {"l/*.nii"}}};
    options_.dims = kVolumes;
    options_.crop = {2, 2, 2};
  }
  static DataPart cases(const Names& names) {
    SliceRanges part;
    part.cases = names;
    return part;
  }
  std::unique_ptr<ImageData> open(int ranks = 1) {
    std::unique_ptr<ImageData> data;
    run_ranks(ranks, [&](Communicator& world) {
      auto mine =
          std::make_unique<ImageData>(options_, folder_.path(), 1, std::vector<std::int64_t>{}, world);
      if (world.rank() == world.size() - 1) data = std::move(mine);
    });
    return data;
  }
  /// Images of the parts.
  static std::set<std::int64_t> images(const ImageData& data, bool of_training) {
    std::set<std::int64_t> found;
    if (!of_training)
      for (const ImageRegion& region : data.validation_parts()) found.insert(region.image);
    for (std::int64_t n = 0; of_training && n < data.count(Split::kTrain); ++n)
      found.insert(data.sample(Split::kTrain, n, {}).image);
    return found;
  }
  std::string refusal(ExitCode code) {
    std::string message;
    run_ranks(2, [&](Communicator& world) {
      try {
        ImageData(options_, folder_.path(), 1, {}, world);
        ADD_FAILURE() << "nothing was thrown";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), code);
        if (world.rank() == 1) message = error.what();
      }
    });
    return message;
  }

  testing::TemporaryFolder folder_;
  DataOptions options_;
};

TEST_F(ImageCases, MayBeNamedInParts) {
  options_.train = {cases({"case_4", "case_1"}), cases({"case_0"})};
  options_.valid = {cases({"*_2", "case_3"})};
  const auto data = open();
  EXPECT_EQ(images(*data, true), (std::set<std::int64_t>{0, 1, 4}));
  EXPECT_EQ(images(*data, false), (std::set<std::int64_t>{2, 3}));
  const std::vector<std::int64_t> before = data->identity();
  options_.train = {cases({"case_4", "case_2"}), cases({"case_0"})};
  EXPECT_NE(open()->identity(), before);
  options_.train = {cases({"case_1", "cas_2", "case_9", "b"})};
  EXPECT_EQ(
      refusal(ExitCode::kConfig),
      "data.train takes the cases cas_2, case_9, b, which are not among the 6 of the files (did you mean "
      "\"case_2\"?); the first one there is case_0");
}

TEST_F(ImageCases, MayBeThoseOfAFold) {
  testing::put_text(folder_.path() + "/splits.json",
                    R"([{"train": ["case_0"], "val": ["case_1"]},
                        {"train": ["case_5", "case_2"], "val": ["case_3", "case_4"]}])");
  SliceRanges part;
  part.folds = "splits.json";
  part.fold = 1;
  options_.train = {part};
  options_.valid = {part};
  for (const int ranks : {1, 3}) {
    const auto data = open(ranks);
    EXPECT_EQ(images(*data, true), (std::set<std::int64_t>{2, 5}));
    EXPECT_EQ(images(*data, false), (std::set<std::int64_t>{3, 4}));
  }
  part.list = "train";  // as evaluate --period train has it
  options_.valid = {part};
  EXPECT_EQ(images(*open(), false), (std::set<std::int64_t>{2, 5}));
  part.fold = 2;
  options_.train = {part};
  EXPECT_EQ(refusal(ExitCode::kConfig),
            "data.train.fold is 2, and " + folder_.path() + "/splits.json has 2 folds, from 0 on");
  testing::put_text(folder_.path() + "/splits.json", R"({"train": []})");
  EXPECT_NE(refusal(ExitCode::kData).find("must hold a list of folds, not an object"), std::string::npos);
  testing::put_text(folder_.path() + "/splits.json", R"([{"train": 3}, {}, {"val": []}])");
  EXPECT_NE(refusal(ExitCode::kData).find("none under \"train\""), std::string::npos);
  part.folds = "split.json";
  options_.train = {part};
  EXPECT_NE(refusal(ExitCode::kData).find("data.train.file: no file matches \"split.json\""),
            std::string::npos);
}

/// Slices of volumes: three of each.
TEST_F(ImageCases, HaveAllTheirSlices) {
  options_.dims = {ImageDim::kSample, ImageDim::kHeight, ImageDim::kWidth};
  options_.crop = {2, 2};
  options_.train = {cases({"case_1", "case_3"})};
  options_.valid = {cases({"case_2"})};
  const auto data = open();
  EXPECT_EQ(data->files().count(), 18);
  EXPECT_EQ(images(*data, true), (std::set<std::int64_t>{3, 4, 5, 9, 10, 11}));
  EXPECT_EQ(images(*data, false), (std::set<std::int64_t>{6, 7, 8}));
  EXPECT_FALSE(data->cut_volume());
  options_.train = {SliceRanges{{{ImageDim::kSample, {0, 9}}}}};
  options_.valid = {SliceRanges{{{ImageDim::kSample, {10, 12}}}}};
  EXPECT_EQ(open()->cut_volume(), "case_3 (" + folder_.path() + "/i/case_3_0000.nii)");
  options_.train = {SliceRanges{{{ImageDim::kSample, {0, 8}}}}};
  options_.valid = {SliceRanges{{{ImageDim::kSample, {9, 12}}}}};
  EXPECT_FALSE(open()->cut_volume());
}

/// Statistics that were kept of other pairs are not taken: y is over the partners of the training's images.
TEST_F(ImageCases, KeptStatisticsAreOfTheirPairs) {
  const auto mean = [&](const std::string& second) {
    // Named so that this file stands before or behind that of case_0 in the order of names.
    for (const char* name : {"a", "aB"})
      write_image(folder_, concat("p/", name, ".h5"), {2, 3}, name[1] == 'B' ? 50.0F : 0.0F);
    write_image(folder_, "q/a_seg.h5", {2, 3}, 1);
    write_image(folder_, "q/aB_seg.h5", {2, 3}, 7);
    DataOptions options = options_;
    options.files = {"p/*.h5"};
    options.targets = {{"y", {}, "image", {second}}};
    options.dims = {ImageDim::kHeight, ImageDim::kWidth};
    options.crop.clear();
    options.train = {SliceRanges{{{ImageDim::kSample, {0, 0}}}}};
    double found = 0;
    run_ranks(1, [&](Communicator& world) {
      DataUse use;
      use.pass.cache = folder_.path() + "/cache";
      found = ImageData(options, folder_.path(), 1, {}, world, use).statistics().fields.at("y").mean;
    });
    return found;
  };
  for (int again = 0; again < 2; ++again) {
    EXPECT_EQ(mean("q/*_seg.h5"), 3.5) << "by case";
    EXPECT_EQ(mean("q/*"), 9.5) << "a and aB are not a_seg and aB_seg: by order, aB_seg first";
  }
}

/// Parts smaller than the crop lie in its middle: inputs are 0 and targets nothing beyond.
TEST_F(ImageCases, MayBeSmallerThanTheCrop) {
  options_.train = {cases({"case_1"})};
  options_.valid = {cases({"case_2"})};
  options_.crop = {6, 2, 5};
  EXPECT_EQ(
      refusal(ExitCode::kConfig),
      "data.crop [6, 2, 5] is larger than a part of data.train: of all its depth can be at most 3, as in " +
          folder_.path() + "/i/case_1_0000.nii; or data.pad true fills up what is smaller");
  options_.pad = true;
  for (const bool turns : {false, true}) {
    if (turns) options_.augment = {.probability = 1, .scale = {1, 1}};
    const auto data = open();
    ASSERT_EQ(data->count(Split::kValid), 2) << "two tiles along height";
    for (const Split split : {Split::kTrain, Split::kValid}) {
      SampleRequest request;
      request.split = split;
      request.samples = {0};
      request.input = request.target = Box::whole({1, 6, 2, 5, 1});
      request.dtype = DType::kFloat64;
      const Batch batch = data->open_reader()->read(request, Context::make_host(Backend::kReference, 1));
      const ImageSample sample = data->sample(split, 0, request.position);
      EXPECT_EQ(sample.box.begin[0], -1);  // (6 - 3) / 2, as predict has it
      const FieldStatistics& x = data->statistics().fields.at("x");
      const double first = split == Split::kTrain ? 100 : 200;
      for (std::int64_t i = 0; i < 60; ++i) {
        const std::int64_t z = i / 10 - 1, y = sample.box.begin[1] + i / 5 % 2, w = i % 5;
        const double input = HostView<double>(batch.input)[i], target = HostView<double>(batch.targets[0])[i];
        if (z < 0 || z > 2) {
          EXPECT_EQ(input, 0) << i;
          EXPECT_TRUE(std::isnan(target)) << i;
        } else {
          const double value = first + static_cast<double>((z * 4 + y) * 5 + w);
          EXPECT_NEAR(input, (value - x.mean) / x.deviation, 1e-9) << i;
          EXPECT_FALSE(std::isnan(target)) << i;
        }
      }
    }
  }
}

}  // namespace image_cases_test
}  // namespace jigsaw
