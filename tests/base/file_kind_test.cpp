#include "base/file_kind.h"

#include "support/temporary_folder.h"

namespace jigsaw {
namespace {

using namespace std::string_literals;

class FileKindTest : public ::testing::Test {
 protected:
  std::string in(const std::string& name) const { return folder_.path() + "/" + name; }
  FileKind kind(const std::string& name, const std::string& bytes) {
    testing::put_text(in(name), bytes);
    return kind_of_file(in(name)).value_or(FileKind{"unknown", ""});
  }

  testing::TemporaryFolder folder_;
};

TEST_F(FileKindTest, IsToldByContent) {
  EXPECT_EQ(kind("a", "CDF\x02"s + std::string(30, '\0')).name, "a NetCDF file");
  EXPECT_EQ(kind("a", "CDF\x07"s + std::string(30, '\0')).name, "unknown");
  EXPECT_EQ(kind("a", "\x89HDF\r\n\x1a\n"s).name, "an HDF5 or NetCDF-4 file");
  EXPECT_EQ(kind("a", std::string(128, '\0') + "DICM").name, "a DICOM file");
  EXPECT_EQ(kind("a", "\x5c\x01"s + std::string(342, '\0') + "n+1\0"s).name, "a NIfTI file");
  EXPECT_EQ(kind("a", "\x08\0\0\0\0\0\0\0{\"a\": 1}"s).name, "a safetensors file");
  EXPECT_EQ(kind("a", "latitude,longitude\n").name, "a text file");
  EXPECT_EQ(kind("a", "").name, "unknown");
  EXPECT_FALSE(kind_of_file(in("nowhere")));
  EXPECT_FALSE(kind_of_file("/dev/null"));
  EXPECT_EQ(kind_of_file(folder_.path())->name, "a folder");
}

TEST_F(FileKindTest, ConversionsAreCommandsForAShell) {
  EXPECT_EQ(kind("a.grib", "GRIB").conversion, "cdo -f nc4 copy " + in("a.grib") + " " + in("a.nc"));
  EXPECT_EQ(kind("it's.tif", "MM\0*"s).conversion,
            "gdal_translate -of netCDF '" + in("it'\\''s.tif") + "' '" + in("it'\\''s") + "'.nc");
  for (const auto& [name, bytes] : {std::pair{"a.hdr", "\x5c\x01"s + std::string(342, '\0') + "ni1\0"s},
                                    std::pair{"b.nii", "\x1c\x02\0\0n+2\0\r\n\x1a\n"s},
                                    std::pair{"c.mat", "MATLAB 5.0 MAT-file, Platform: GLNXA64"s},
                                    std::pair{"e.nrrd", "NRRD0004\ntype: short\n"s},
                                    std::pair{"d.mhd", "ObjectType = Image\nNDims = 3\n"s}}) {
    const FileKind found = kind(name, bytes);
    EXPECT_NE(found.conversion.find(" " + in(name) + " "), std::string::npos) << name << ": " << found.name;
  }
  testing::put_text(in("a.img"), std::string(400, '\0'));
  EXPECT_EQ(kind_of_file(in("a.img"))->name, "the values of a NIfTI pair, whose header is " + in("a.hdr"));
  EXPECT_NE(kind_of_file(in("a.img"))->conversion.find(" " + in("a.img") + " " + in("a.nii")),
            std::string::npos);
  testing::put_text(in("alone.img"), std::string(400, '\0'));
  EXPECT_FALSE(kind_of_file(in("alone.img")));
  EXPECT_NE(kind_of_content("\x1c\x02\0\0n+2\0\r\n\x1a\n"s, "b.nii.gz")->conversion.find(" b.nii.gz b_1.nii"),
            std::string::npos);
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("a b"), "'a b'");
  std::filesystem::create_directory(in("x.zarr"));
  testing::put_text(in("x.zarr/.zmetadata"), "{}");
  const std::string command = kind_of_file(in("x.zarr/"))->conversion;
  EXPECT_EQ(command.substr(command.size() - in("x.nc").size()), in("x.nc"));
}

}  // namespace
}  // namespace jigsaw
