// What outputs of images are called.
#include "predict/output_names.h"

#include <gtest/gtest.h>

namespace jigsaw {
namespace {

using Names = std::vector<std::string>;

TEST(OutputNames, EndWithTheCase) {
  EXPECT_EQ(output_names({"i/case_007_0000.nii.gz", "i/case_008_0000.nii.gz"}, {"case_007", "case_008"}),
            (Names{"case_007", "case_008"}));
  EXPECT_EQ(output_names({"i/case_007_0000.nii.gz", "i/case_010_0000.nii.gz"}, {"007", "010"}),
            (Names{"case_007", "case_010"}))
      << "what stands before a case stays";
  EXPECT_EQ(output_names({"i/photo_1.h5", "i/photo_2.h5"}, {"1", "2"}), (Names{"photo_1", "photo_2"}));
  EXPECT_EQ(output_names({"B_3/B_3_t1.nii", "B_4/B_4_t1.nii"}, {"B_3", "B_4"}), (Names{"B_3", "B_4"}));
  EXPECT_EQ(output_names({"i/t1_1_t1.nii", "i/t1_2_t1.nii"}, {"1", "2"}), (Names{"t1_1", "t1_2"}))
      << "the same follows every case";
  EXPECT_EQ(output_names({"i/scan_0000.nii.gz"}, {"scan"}), (Names{"scan"}));
}

TEST(OutputNames, AreTheCasesWhereFilesAreCalledAlike) {
  EXPECT_EQ(output_names({"p1/image.nii.gz", "p2/image.nii.gz"}, {"p1", "p2"}), (Names{"p1", "p2"}));
  EXPECT_EQ(output_names({"a/p1/x.h5", "b/p1/x.h5"}, {"a/p1", "b/p1"}), (Names{"a_p1", "b_p1"}));
  EXPECT_EQ(output_names({}, {}), Names{});
}

}  // namespace
}  // namespace jigsaw
