#include "files/rechunk.h"

#include "base/error.h"
#include "files/io_lock.h"
#include "files/netcdf_file.h"
#include "io/fixtures.h"
#include "support/small_disk.h"
#include "support/temporary_folder.h"

namespace jigsaw {
namespace rechunk_test {

/// Before any file is open, whichever test comes first.
[[maybe_unused]] const bool kLeftAlone = (leave_failed_files_alone(), true);

namespace fs = std::filesystem;
using testing::SmallDisk;
using testing::TemporaryFolder;

std::vector<double> values_of(VariableFile& file, const FileVariable& variable) {
  std::vector<double> values(static_cast<std::size_t>(variable.shape.count()));
  file.read<double>(variable, Box::whole(variable.shape), values);
  return values;
}

/// All that is in a file, and nothing else, is in its copy.
void expect_copy(const std::string& from, const std::string& to) {
  NetcdfFile source(from), copy(to);
  ASSERT_EQ(source.variables().size(), copy.variables().size());
  for (const FileVariable& variable : source.variables()) {
    const FileVariable* found = copy.find(variable.name);
    ASSERT_NE(found, nullptr) << variable.name;
    EXPECT_EQ(found->shape, variable.shape);
    EXPECT_EQ(found->dimensions, variable.dimensions);
    EXPECT_EQ(found->texts, variable.texts);
    EXPECT_EQ(found->type, variable.type);
    if (variable.numeric()) expect_close(values_of(copy, *found), values_of(source, variable), 0);
  }
}

TEST(Rechunk, CopiesAreEqualInOtherChunks) {
  const TemporaryFolder folder;
  for (const char* name :
       {"storage/netcdf4.nc", "storage/cdf5.nc", "packed.nc", "levels_1.nc", "records.nc"}) {
    const std::string to = folder.path() + "/copy.nc";
    std::int64_t written = 0;
    rechunk({fixture(name), to, {{"y", 3}, {"x", 5}, {"lat", 4}, {"lon", 3}, {"latitude", 4}}},
            [&](std::int64_t bytes) { written += bytes; });
    EXPECT_GT(written, 0);
    expect_copy(fixture(name), to);
    EXPECT_FALSE(fs::exists(private_name(to)));
  }
  NetcdfFile copy(folder.path() + "/copy.nc");
  const FileVariable& tp = *copy.find("tp");
  EXPECT_TRUE(tp.compressed);
  EXPECT_EQ(tp.chunks.count(), 4 * 3) << tp.chunks;
  const std::vector<double> wanted = expected_values("tp");
  expect_close(values_of(copy, tp), wanted, 1e-15);
}

TEST(Rechunk, AFullDiskIsAnErrorOfItsOwnAndLeavesNothing) {
  const TemporaryFolder folder;
  const std::string to = folder.path() + "/copy.nc";
  {
    const SmallDisk small(2048);
    EXPECT_THROW(rechunk({fixture("storage/cdf5.nc"), to, {{"y", 3}, {"x", 5}}}), DiskError);
  }
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(Rechunk, NothingButARegularFileIsReplacedAndNoLinkFollowed) {
  const TemporaryFolder folder;
  const std::string to = folder.path() + "/copy.nc", precious = folder.path() + "/precious",
                    from = fixture("storage/cdf5.nc");
  testing::put_text(precious, "kept");
  fs::create_symlink("precious", private_name(to));
  rechunk({from, to, {{"y", 3}, {"x", 5}}});
  expect_copy(from, to);
  EXPECT_FALSE(fs::is_symlink(to));
  EXPECT_EQ(testing::text_of(precious), "kept");
  EXPECT_NE(message_of<DataError>([&] {
              rechunk({from, "/dev/full", {}});
            }).find("it is a device"),
            std::string::npos);
}

}  // namespace rechunk_test
}  // namespace jigsaw
