// Files that one rank described and another has without reading their headers.
#include "files/file_description.h"

#include <filesystem>

#include "base/error.h"
#include "base/text.h"
#include "files/variable_file.h"
#include "io/fixtures.h"
#include "support/temporary_folder.h"

namespace jigsaw {
namespace file_description_test {

std::string bytes_of(VariableFile& file) {
  return file.describe().to_bytes();
}

std::unique_ptr<VariableFile> as_described(VariableFile& file, External external = External::kRefused) {
  return open_described(FileDescription::from_bytes(bytes_of(file)), external);
}

/// The numbers of a whole variable as text, NaN included, or why there are none.
std::string contents(VariableFile& file, const std::string& name) {
  const FileVariable* variable = file.find(name);
  if (variable == nullptr) return "no variable";
  std::vector<double> values(static_cast<std::size_t>(variable->shape.count()));
  try {
    file.read<double>(*variable, Box::whole(variable->shape), values);
  } catch (const DataError& error) {
    return error.what();
  }
  return join(values, " ");
}

void expect_same(const std::string& path, Dimensions dimensions) {
  SCOPED_TRACE(path);
  const auto opened = open_variables(path, dimensions);
  const auto described = as_described(*opened);
  EXPECT_EQ(described->format(), opened->format());
  EXPECT_EQ(bytes_of(*described), bytes_of(*opened));
  ASSERT_FALSE(opened->variables().empty());
  for (const FileVariable& variable : opened->variables())
    EXPECT_EQ(contents(*described, variable.name), contents(*opened, variable.name)) << variable.name;
}

TEST(FileDescription, MakesTheSameFileInEveryFormat) {
  for (const char* name : {"levels_1.nc", "packed.nc", "records.nc", "static.nc", "storage/cdf1.nc",
                           "storage/cdf2.nc", "storage/cdf5.nc", "storage/netcdf4.nc", "storage/sole.nc"})
    expect_same(fixture(name), Dimensions::kByName);
  for (const char* name : {"storage/earliest.h5", "storage/latest.h5", "makani.h5"})
    expect_same(fixture(name), Dimensions::kByNumber);
  for (const char* name : {"zarr2", "zarr3", "xarray.zarr", "anemoi2.zarr", "anemoi3.zarr"})
    expect_same(fixture(name), Dimensions::kByName);
}

TEST(FileDescription, MakesTheSameZarrStore) {
  const testing::TemporaryFolder folder;
  const std::string store = folder.path() + "/a.zarr";
  std::filesystem::create_directories(store + "/x");
  testing::put_text(store + "/.zgroup", "{\"zarr_format\": 2}");
  testing::put_text(store + "/x/.zarray",
                    "{\"zarr_format\": 2, \"shape\": [3], \"chunks\": [2], \"dtype\": \">i2\", "
                    "\"compressor\": null, \"fill_value\": -1, \"filters\": null, \"order\": \"C\"}");
  testing::put_text(store + "/x/.zattrs", "{\"_ARRAY_DIMENSIONS\": [\"x\"], \"units\": \"m\"}");
  testing::put_text(store + "/x/0", std::string("\0\1\0\2", 4));
  expect_same(store, Dimensions::kByName);
  const auto opened = open_variables(store, Dimensions::kByName);
  EXPECT_EQ(contents(*as_described(*opened), "x"), "1 2 nan");
}

/// Variables, coordinates and the rows of places that grids are compared by need no file any more.
TEST(FileDescription, BringsCoordinatesAlong) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path() + "/packed.nc";
  std::filesystem::copy_file(fixture("packed.nc"), path);
  const auto opened = open_variables(path, Dimensions::kByName);
  std::map<std::string, std::vector<double>> wanted;
  for (const FileVariable& variable : opened->variables()) {
    if (variable.dimensions == std::vector{variable.name}) wanted[variable.name] = opened->read_all(variable);
  }
  ASSERT_EQ(wanted.size(), 3U);
  const auto described = as_described(*opened);
  opened->close();
  std::filesystem::remove(path);
  for (const auto& [name, values] : wanted) EXPECT_EQ(described->read_all(*described->find(name)), values);
  EXPECT_FALSE(described->is_open());
  EXPECT_EQ(described->bytes_read(), 0);
  EXPECT_NE(contents(*described, "t2m").find(path), std::string::npos);
  described->forget_described();
  EXPECT_NE(contents(*described, wanted.begin()->first).find(path), std::string::npos);
}

/// Another rank may see the file later than the one that described it, or a copy on a disk of its own.
TEST(FileDescription, IsOfTheFileAsItWas) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path() + "/a.nc";
  std::filesystem::copy_file(fixture("packed.nc"), path);
  const auto opened = open_variables(path, Dimensions::kByName);
  const auto before = as_described(*opened);
  const auto time = std::filesystem::last_write_time(path);
  std::filesystem::copy_file(path, path + ".copy");
  std::filesystem::rename(path + ".copy", path);
  std::filesystem::last_write_time(path, time + std::chrono::hours(1));
  EXPECT_NE(contents(*before, "t2m").find("another file has taken its place"), std::string::npos);
  const auto of_copy = as_described(*opened), later = as_described(*opened);
  EXPECT_EQ(contents(*of_copy, "t2m").find(path), std::string::npos) << contents(*of_copy, "t2m");
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 8);
  EXPECT_NE(contents(*later, "t2m").find("was changed while the run was reading it"), std::string::npos);
  const std::string refused = message_of<DataError>([&] { as_described(*opened); });
  EXPECT_NE(refused.find("all nodes must have the same files"), std::string::npos) << refused;
  std::filesystem::remove(path);
  EXPECT_NE(message_of<DataError>([&] { as_described(*opened); }).find(path), std::string::npos);
}

TEST(FileDescription, OfAFileThatWasWrittenToSinceIsRefused) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path() + "/a.nc";
  std::filesystem::copy_file(fixture("packed.nc"), path);
  const FileDescription told = open_variables(path, Dimensions::kByName)->describe();
  EXPECT_NO_THROW(open_described(told, External::kRefused));
  std::filesystem::last_write_time(path, std::filesystem::last_write_time(path) - std::chrono::hours(1));
  EXPECT_EQ(message_of<DataError>([&] { open_described(told, External::kRefused); }),
            path +
                " was changed while the run was reading it: it was written to; start again when it stays "
                "as it is");
}

}  // namespace file_description_test
}  // namespace jigsaw
