// Files that are changed while they are read, or made to be read wrongly or without end.
#include <fcntl.h>
#include <hdf5.h>
#include <netcdf.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <numeric>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "files/hdf5_file.h"
#include "files/hdf5_walk.h"
#include "files/netcdf_file.h"
#include "files/netcdf_output.h"
#include "io/fixtures.h"
#include "io/netcdf_writer.h"
#include "support/temporary_folder.h"

namespace jigsaw {
namespace untrusted_file_test {

namespace fs = std::filesystem;
using testing::put_text;
using testing::TemporaryFolder;
using testing::text_of;

class UntrustedFile : public ::testing::Test {
 protected:
  std::string in(const std::string& name) const { return concat(folder_.path(), "/", name); }
  /// A copy of a fixture that was last written an hour ago.
  std::string copy(const std::string& name) const {
    const std::string path = in(fs::path(name).filename());
    fs::copy_file(fixture(name), path, fs::copy_options::overwrite_existing);
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(1));
    return path;
  }
  std::string pipe(const std::string& name) const {
    EXPECT_EQ(::mkfifo(in(name).c_str(), 0600), 0);
    return in(name);
  }

  TemporaryFolder folder_;
};

std::vector<double> read_whole(VariableFile& file, const std::string& name) {
  const FileVariable* variable = file.find(name);
  if (variable == nullptr) throw DataError(concat("no variable ", name));
  std::vector<double> values(static_cast<std::size_t>(variable->shape.count()));
  file.read<double>(*variable, Box::whole(variable->shape), values);
  return values;
}

/// A stream of a variable of which half is read; nothing where it cannot be streamed.
std::optional<HyperslabStream> half_read(VariableFile& file, const std::string& name) {
  const FileVariable& variable = *file.find(name);
  std::optional<HyperslabStream> stream = file.stream(variable, Box::whole(variable.shape));
  std::vector<double> values(static_cast<std::size_t>(variable.shape.count() / 2));
  if (stream) stream->read<double>(values);
  return stream;
}

void read_rest(HyperslabStream& stream) {
  const std::int64_t points = stream.variable().shape.count();
  std::vector<double> values(static_cast<std::size_t>(points - points / 2));
  stream.read<double>(values);
}

/// Part of what an action says when it throws a DataError.
void expect_refused(const std::function<void()>& action, const std::string& says) {
  const std::string message = message_of<DataError>(action);
  EXPECT_NE(message.find(says), std::string::npos) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
}

TEST_F(UntrustedFile, OneThatEndsTooEarlyIsSaidToBeTruncated) {
  for (const bool newest : {false, true}) {
    const std::string path = in(newest ? "new.h5" : "old.h5");
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    if (newest) H5Pset_libver_bounds(access, H5F_LIBVER_V18, H5F_LIBVER_V18);
    const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access);
    ASSERT_GE(file, 0);
    for (const char* group : {"a", "b", "c"})
      H5Gclose(H5Gcreate2(file, group, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    H5Fclose(file);
    H5Pclose(access);
    const auto whole = fs::file_size(path);
    EXPECT_EQ(why_not_opened(path), "HDF5 cannot open it");
    fs::resize_file(path, whole - 100);
    const std::string says = concat("it is truncated: ", whole - 100, " of ", whole, " bytes are there");
    EXPECT_EQ(why_not_opened(path).rfind(says, 0), 0U) << why_not_opened(path);
    expect_refused([&] { NetcdfFile opened(path); }, says);
    fs::resize_file(path, 9);
    EXPECT_EQ(why_not_opened(path), "HDF5 cannot open it");
  }
  EXPECT_EQ(why_not_opened(in("absent.h5")), "HDF5 cannot open it");
}

/// By the lock of who writes it, or by the mark of HDF5 since 1.10.
TEST_F(UntrustedFile, OneThatIsBeingWrittenIsSaidToBe) {
  const std::string path = copy("levels_1.nc");
  {
    const File writer(path, O_RDWR);
    if (::flock(writer.descriptor(), LOCK_EX | LOCK_NB) != 0) GTEST_SKIP() << "no locks of files here";
    EXPECT_EQ(why_not_opened(path), "it is being written by another program; wait until that has closed it");
    if (std::getenv("HDF5_USE_FILE_LOCKING") == nullptr)
      expect_refused([&] { NetcdfFile opened(path); }, "levels_1.nc: it is being written by another program");
  }
  EXPECT_NO_THROW(NetcdfFile{path});

  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_libver_bounds(access, H5F_LIBVER_V110, H5F_LIBVER_V110);
  const hid_t file = H5Fcreate(in("open.h5").c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access);
  ASSERT_GE(file, 0);
  H5Fflush(file, H5F_SCOPE_GLOBAL);
  put_text(in("left.h5"), text_of(in("open.h5")));
  H5Fclose(file);
  H5Pclose(access);
  expect_refused([&] { NetcdfFile opened(in("left.h5")); },
                 "left.h5: it is marked as being written by another program");
  EXPECT_EQ(why_not_opened(in("open.h5")), "HDF5 cannot open it");
}

TEST_F(UntrustedFile, AChangeWhileItIsReadIsADataError) {
  const std::tuple<const char*, const char*, Dimensions> files[] = {
      {"packed.nc", "t2m", Dimensions::kByName},
      {"records.nc", "tp", Dimensions::kByName},
      {"levels_1.nc", "t", Dimensions::kByName},
      {"images/volume.h5", "", Dimensions::kByNumber}};
  const std::pair<std::function<void(const std::string&)>, const char*> changes[] = {
      {[](const std::string& path) { fs::resize_file(path, fs::file_size(path) / 2); }, "bytes, and had"},
      {[](const std::string& path) {
         std::fstream(path, std::ios::in | std::ios::out | std::ios::binary).seekp(1500).write("x", 1);
       },
       "it was written to"},
      {[](const std::string& path) {
         put_text(path + ".new", text_of(path));
         fs::rename(path + ".new", path);
       },
       "another file has taken its place"},
      {[](const std::string& path) { fs::remove(path); }, "it was there when the run opened it"}};
  int streamed = 0;
  for (const auto& [name, variable, dimensions] : files) {
    for (const auto& [change, says] : changes) {
      for (const bool closed : {false, true}) {
        const std::string path = copy(name);
        const auto file = open_variables(path, dimensions);
        const auto& variables = file->variables();
        const auto number = std::find_if(variables.begin(), variables.end(),
                                         [](const FileVariable& v) { return v.numeric(); });
        const std::string first = file->find(variable) != nullptr ? variable : number->name;
        read_whole(*file, first);
        if (closed) file->close();
        std::optional<HyperslabStream> stream = half_read(*file, first);
        change(path);
        if (stream) expect_refused([&] { read_rest(*stream); }, says);
        streamed += stream ? 1 : 0;
        expect_refused([&] { read_whole(*file, first); }, says);
      }
    }
  }
  EXPECT_GE(streamed, 2 * 8);  // classic files at least
}

TEST_F(UntrustedFile, PipesAndDevicesAreRefusedAndNotWaitedFor) {
  for (const Dimensions dimensions : {Dimensions::kByNumber, Dimensions::kByName}) {
    expect_refused([&] { open_variables(pipe(concat("pipe", static_cast<int>(dimensions))), dimensions); },
                   "not a regular file");
    expect_refused([&] { open_variables("/dev/zero", dimensions); }, "it is a device, not a regular file");
  }
}

TEST_F(UntrustedFile, RecordsWhoseNumberWasNeverWrittenAreRefused) {
  std::string bytes = text_of(fixture("records.nc"));
  ASSERT_EQ(bytes.substr(0, 3), "CDF");
  const std::size_t digits = bytes[3] == 5 ? 8 : 4;
  bytes.replace(4, digits, std::string(digits, '\xff'));
  put_text(in("stream.nc"), bytes);
  expect_refused([&] { NetcdfFile file(in("stream.nc")); }, "the number of its records was never written");
}

/// Identifiers of HDF5, each closed with the value.
using Id = Hdf5Id;

Id new_file(const std::string& path, hsize_t user_block = 0) {
  const Id creation(H5Pcreate(H5P_FILE_CREATE), H5Pclose);
  H5Pset_userblock(creation.get(), user_block);
  return {H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation.get(), H5P_DEFAULT), H5Fclose};
}

Id new_data_set(hid_t group, const char* name, const std::vector<hsize_t>& extents,
                hid_t creation = H5P_DEFAULT) {
  const Id space(H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr), H5Sclose);
  return {H5Dcreate2(group, name, H5T_IEEE_F64LE, space.get(), H5P_DEFAULT, creation, H5P_DEFAULT), H5Dclose};
}

void write_numbers(hid_t group, const char* name, const std::vector<double>& values) {
  const Id set = new_data_set(group, name, {values.size()});
  EXPECT_GE(H5Dwrite(set.get(), H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
}

std::vector<std::string> names_of(const VariableFile& file) {
  std::vector<std::string> names;
  for (const FileVariable& variable : file.variables()) names.push_back(variable.name);
  return names;
}
using Names = std::vector<std::string>;

TEST_F(UntrustedFile, ABlockOfTheUsersBeforeHdf5IsPassedOver) {
  for (const hsize_t block : {512, 1024, 4096}) {
    const std::string path = in(concat("block", block, ".h5"));
    { write_numbers(new_file(path, block).get(), "x", {1, 2, 3}); }
    std::fstream(path, std::ios::in | std::ios::out | std::ios::binary).write("#!/bin/sh\n", 10);
    for (const Dimensions dimensions : {Dimensions::kByNumber, Dimensions::kByName}) {
      const auto file = open_variables(path, dimensions);
      EXPECT_EQ(read_whole(*file, "x"), (std::vector<double>{1, 2, 3}));
    }
  }
}

TEST_F(UntrustedFile, AGroupThatIsLinkedToItselfIsVisitedOnce) {
  const std::string path = in("loop.h5");
  {
    const Id file = new_file(path);
    const Id group(H5Gcreate2(file.get(), "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), H5Gclose);
    write_numbers(group.get(), "x", {4});
    for (int i = 0; i < 10; ++i) {
      const std::string name = concat("again", i);
      ASSERT_GE(H5Lcreate_hard(file.get(), "g", group.get(), name.c_str(), H5P_DEFAULT, H5P_DEFAULT), 0);
    }
    H5Lcreate_soft("/", group.get(), "up", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_hard(file.get(), "g/x", file.get(), "y", H5P_DEFAULT, H5P_DEFAULT);
  }
  Hdf5File file(path);
  EXPECT_EQ(names_of(file), (Names{"g/x", "y"}));
  EXPECT_EQ(read_whole(file, "y"), std::vector<double>{4});
  expect_refused([&] { NetcdfFile netcdf(path); }, "the group is in the file twice");
}

TEST_F(UntrustedFile, GroupsAreReadAsDeepAsIsSaidAndThenRefusedByName) {
  for (const int depth : {kDeepestGroup, kDeepestGroup + 1}) {
    const std::string hdf5 = in(concat("deep", depth, ".h5")), zarr2 = in(concat("deep", depth, ".zarr")),
                      zarr3 = in(concat("deep", depth, "_3.zarr"));
    std::string name;
    const auto make_group = [&](const std::string& below) {
      for (const std::string& store : {zarr2, zarr3}) fs::create_directories(concat(store, "/", below));
      put_text(concat(zarr2, "/", below, "/.zgroup"), R"({"zarr_format": 2})");
      put_text(concat(zarr3, "/", below, "/zarr.json"), R"({"zarr_format": 3, "node_type": "group"})");
    };
    make_group("");
    {
      const Id file = new_file(hdf5);
      for (int i = 0; i < depth; ++i) {
        name += concat(i == 0 ? "" : "/", "g", i);
        const Id group(H5Gcreate2(file.get(), name.c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), H5Gclose);
        make_group(name);
      }
      write_numbers(file.get(), (name + "/x").c_str(), {0});
    }
    for (const std::string& store : {zarr2, zarr3}) fs::create_directory(concat(store, "/", name, "/x"));
    put_text(concat(zarr2, "/", name, "/x/.zarray"),
             R"({"zarr_format": 2, "shape": [1], "chunks": [1], "dtype": "<f8", "compressor": null,
                 "fill_value": 0, "filters": null, "order": "C"})");
    put_text(concat(zarr3, "/", name, "/x/zarr.json"),
             R"({"zarr_format": 3, "node_type": "array", "shape": [1], "data_type": "float64",
                 "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1]}}, "fill_value": 0,
                 "codecs": [{"name": "bytes"}]})");
    const std::pair<std::string, Dimensions> files[] = {{hdf5, Dimensions::kByNumber},
                                                        {hdf5, Dimensions::kByName},
                                                        {zarr2, Dimensions::kByName},
                                                        {zarr3, Dimensions::kByName}};
    for (const auto& [path, dimensions] : files) {
      if (depth == kDeepestGroup) {
        EXPECT_EQ(read_whole(*open_variables(path, dimensions), name + "/x"), std::vector<double>{0}) << path;
      } else {
        expect_refused(
            [&, &path = path, &dimensions = dimensions] { open_variables(path, dimensions); },
            concat("cannot read ", path, ": the group ", name, " is nested deeper than 16 groups"));
      }
    }
  }
}

TEST_F(UntrustedFile, ExternalLinksAreFollowedOnlyWhereAllowedAndToRegularFiles) {
  { write_numbers(new_file(in("other.h5")).get(), "x", {5, 6}); }
  const std::string pipe_name = fs::path(pipe("pipe")).filename();
  const std::string path = in("links.h5"), to_pipe = in("to_pipe.h5");
  {
    const Id file = new_file(path), second = new_file(to_pipe);
    H5Lcreate_external("other.h5", "/x", file.get(), "a", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_soft("/a", file.get(), "b", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_external(pipe_name.c_str(), "/x", second.get(), "p", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_soft("/p", second.get(), "a", H5P_DEFAULT, H5P_DEFAULT);
    write_numbers(file.get(), "own", {7});
    write_numbers(second.get(), "own", {7});
  }
  Hdf5File refused(path);
  EXPECT_EQ(names_of(refused), (Names{"a", "own"}));
  expect_refused([&] { refused.require_numbers(*refused.find("a")); },
                 "it stands in another file (other.h5); set data.allow_external to true");
  EXPECT_EQ(read_whole(refused, "own"), std::vector<double>{7});
  expect_refused([&] { NetcdfFile netcdf(path); }, "set data.allow_external to true");
  Hdf5File followed(path, External::kFollowed);
  EXPECT_EQ(read_whole(followed, "a"), (std::vector<double>{5, 6}));
  EXPECT_EQ(read_whole(followed, "b"), (std::vector<double>{5, 6}));
  for (const External external : {External::kRefused, External::kFollowed}) {
    Hdf5File file(to_pipe, external);
    EXPECT_EQ(read_whole(file, "own"), std::vector<double>{7});
    expect_refused([&] { read_whole(file, "a"); }, "no variable a");
  }
}

TEST_F(UntrustedFile, ValuesInOtherFilesAreReadOnlyWhereAllowed) {
  const double stored[] = {1.5, 2.5};
  put_text(in("secret"), std::string(reinterpret_cast<const char*>(stored), sizeof stored));
  const std::string storage = in("storage.h5"), view = in("view.h5");
  {
    const Id file = new_file(storage), creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
    H5Pset_external(creation.get(), in("secret").c_str(), 0, sizeof stored);
    ASSERT_TRUE(new_data_set(file.get(), "x", {2}, creation.get()).valid());
  }
  {
    const Id file = new_file(view);
    write_numbers(file.get(), "own", {8, 9});
    const hsize_t two = 2;
    const Id space(H5Screate_simple(1, &two, nullptr), H5Sclose);
    for (const auto& [name, source, data_set] :
         {std::tuple{"x", "source.h5", "x"}, std::tuple{"inner", ".", "own"}}) {
      const Id creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
      H5Pset_virtual(creation.get(), space.get(), source, data_set, space.get());
      ASSERT_TRUE(new_data_set(file.get(), name, {2}, creation.get()).valid());
    }
  }
  { write_numbers(new_file(in("source.h5")).get(), "x", {1.5, 2.5}); }
  for (const std::string& path : {storage, view}) {
    Hdf5File refused(path);
    expect_refused([&] { read_whole(refused, "x"); }, "set data.allow_external to true");
    expect_refused([&] { NetcdfFile netcdf(path); }, "set data.allow_external to true");
    Hdf5File followed(path, External::kFollowed);
    EXPECT_EQ(read_whole(followed, "x"), (std::vector<double>{1.5, 2.5}));
  }
  Hdf5File inner(view);
  EXPECT_EQ(read_whole(inner, "inner"), (std::vector<double>{8, 9}));
  fs::remove(in("source.h5"));
  pipe("source.h5");
  Hdf5File followed(view, External::kFollowed);
  expect_refused([&] { read_whole(followed, "x"); }, "are regular files");
}

TEST_F(UntrustedFile, VirtualDataSetsThatLeadBackToThemselvesAreRefused) {
  const std::string path = in("cycle.h5");
  const hsize_t extent = 4;
  const Id space(H5Screate_simple(1, &extent, nullptr), H5Sclose);
  const auto add = [&](hid_t file, const char* name, const char* source_file, const char* source) {
    const Id creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
    ASSERT_GE(H5Pset_virtual(creation.get(), space.get(), source_file, source, space.get()), 0);
    ASSERT_TRUE(new_data_set(file, name, {extent}, creation.get()).valid());
  };
  {
    const Id file = new_file(path);
    write_numbers(file.get(), "x", {1, 2, 3, 4});
    add(file.get(), "of_x", ".", "x");
    add(file.get(), "of_of_x", ".", "of_x");
    add(file.get(), "self", ".", "self");
    add(file.get(), "ping", ".", "pong");
    add(file.get(), "pong", ".", "ping");
    add(file.get(), "by_name", "cycle.h5", "by_name");
  }
  Hdf5File file(path, External::kFollowed);
  EXPECT_EQ(read_whole(file, "of_of_x"), (std::vector<double>{1, 2, 3, 4}));
  for (const char* const name : {"self", "ping", "pong", "by_name"})
    expect_refused([&] { read_whole(file, name); }, "a virtual data set whose values stand in itself");
}

/// An attribute and a data set whose types have a version that no HDF5 knows, as those of a newer one have
/// for an older one (HDF5 File Format Specification, "Datatype Message": the version is in the upper four
/// bits).
TEST_F(UntrustedFile, WhatANewerHdf5WroteIsRefusedBeforeAllAttributesAreRead) {
  const auto make = [&](const std::string& name) {
    const Id file = new_file(in(name));
    write_numbers(file.get(), "x", {1, 2, 3, 4});
    const Id data_set(H5Dopen2(file.get(), "x", H5P_DEFAULT), H5Dclose),
        space(H5Screate(H5S_SCALAR), H5Sclose);
    const Id attribute(
        H5Acreate2(data_set.get(), "DIMENSION_LIST", H5T_STD_I32LE, space.get(), H5P_DEFAULT, H5P_DEFAULT),
        H5Aclose);
    const int one = 1;
    ASSERT_GE(H5Awrite(attribute.get(), H5T_NATIVE_INT, &one), 0);
  };
  make("new.nc");
  check_hdf5_for_netcdf(in("new.nc"), External::kRefused);
  std::string bytes = text_of(in("new.nc"));
  const std::size_t type = bytes.find(std::string("DIMENSION_LIST\0\0", 16)) + 16;
  ASSERT_EQ(bytes.at(type), '\x10');
  bytes[type] = '\x70';
  put_text(in("new.nc"), bytes);
  expect_refused([&] { NetcdfFile(in("new.nc")); }, "x in " + in("new.nc") + " cannot be used: HDF5 1.");
  expect_refused([&] { NetcdfFile(in("new.nc")); }, " cannot read its attributes, which a newer one wrote; ");
}

/// The B-tree of chunks (HDF5 File Format Specification, version 1 B-trees): each key holds the bytes of a
/// chunk and its place.
TEST_F(UntrustedFile, AnIndexOfChunksIsNotTrusted) {
  const std::string path = in("chunks.h5");
  std::vector<double> values(16);
  std::iota(values.begin(), values.end(), 1);
  {
    const Id file = new_file(path);
    const Id creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
    const hsize_t chunk = 4;
    H5Pset_chunk(creation.get(), 1, &chunk);
    const Id set = new_data_set(file.get(), "x", {values.size()}, creation.get());
    ASSERT_GE(H5Dwrite(set.get(), H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
  }
  const std::string good = text_of(path);
  const std::size_t tree = good.find(std::string("TREE\x01", 5));
  ASSERT_NE(tree, std::string::npos);
  constexpr std::size_t kHeader = 24, kKey = 24, kChild = 8, kPlace = 8;
  std::string longer = good;
  longer.replace(tree + kHeader, 2, "\xff\x3f");  // 16383 bytes in place of 32
  put_text(path, longer);
  const auto read = [&] {
    Hdf5File file(path);
    return read_whole(file, "x");
  };
  EXPECT_EQ(read(), values);
  std::string elsewhere = good;
  elsewhere[tree + kHeader + kKey + kChild + kPlace] = 8;  // the second chunk begins at 8 in place of 4
  put_text(path, elsewhere);
  expect_refused(read, "the index of chunks of x");
}

TEST_F(UntrustedFile, HeadersThatClaimMoreThanThereCanBeAreDataErrors) {
  const std::string path = in("huge.h5");
  {
    const Id file = new_file(path);
    const Id creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
    const hsize_t chunk[] = {16, 16};
    H5Pset_chunk(creation.get(), 2, chunk);
    for (const int bits : {29, 31}) {
      const hsize_t extent = hsize_t{1} << bits;
      ASSERT_TRUE(
          new_data_set(file.get(), concat("x", bits).c_str(), {extent, extent}, creation.get()).valid());
    }
  }
  Hdf5File file(path);
  expect_refused([&] { file.require_numbers(*file.find("x29")); }, "more than any file holds");
  expect_refused([&] { file.require_numbers(*file.find("x31")); }, "more than any file holds");
  expect_refused(
      [] {
        require_memory({1 << 27, 1 << 27}, "x", "F");
      },
      "x in F cannot be used: 134217728 x 134217728 values take 128 PiB");
  EXPECT_NO_THROW(require_memory({1000, 1000}, "x", "F"));
}

class Attributes : public UntrustedFile {
 protected:
  /// A float variable x of three values with what `add` gives it.
  std::string with(const std::function<void(int file, int variable)>& add,
                   const std::vector<float>& values = {1, 2, 3}) {
    const std::string path = in("attributes.nc");
    int file = 0, dimension = 0, variable = 0;
    EXPECT_EQ(nc_create(path.c_str(), NC_CLOBBER, &file), NC_NOERR);
    nc_def_dim(file, "n", values.size(), &dimension);
    nc_def_var(file, "x", NC_FLOAT, 1, &dimension, &variable);
    add(file, variable);
    nc_enddef(file);
    nc_put_var_float(file, variable, values.data());
    EXPECT_EQ(nc_close(file), NC_NOERR);
    return path;
  }
};

TEST_F(Attributes, ThatAreNoNumbersWhereNumbersAreMeantAreRefused) {
  const auto text = [](const char* name) {
    return [name](int file, int variable) { nc_put_att_text(file, variable, name, 3, "two"); };
  };
  const auto numbers = [](const char* name, std::vector<double> values) {
    return [name, values](int file, int variable) {
      nc_put_att_double(file, variable, name, NC_DOUBLE, values.size(), values.data());
    };
  };
  for (const char* name : {"scale_factor", "add_offset", "valid_min", "valid_range", "missing_value"}) {
    NetcdfFile file(with(text(name)));
    expect_refused([&] { read_whole(file, "x"); },
                   concat("x in ", file.path(), " cannot be used: its attribute ", name,
                          " is the text \"two\", not a number"));
  }
  NetcdfFile two(with(numbers("scale_factor", {1, 2})));
  expect_refused([&] { read_whole(two, "x"); }, "must be 1 number, and is 2");
  NetcdfFile one(with(numbers("valid_range", {1})));
  expect_refused([&] { read_whole(one, "x"); }, "must be 2 numbers, and is 1");
  NetcdfFile nan(with(numbers("add_offset", {NAN})));
  expect_refused([&] { read_whole(nan, "x"); }, "not a finite number");
  for (const char* name : {"scale_factor", "add_offset", "valid_range", "missing_value"}) {
    for (const bool of_text : {false, true}) {
      NetcdfFile empty(with([&](int file, int variable) {
        if (of_text) {
          nc_put_att_text(file, variable, name, 0, "");
        } else {
          numbers(name, {})(file, variable);
        }
      }));
      expect_refused([&] { read_whole(empty, "x"); }, concat("its attribute ", name, " is empty"));
    }
  }
  NetcdfFile unnamed(with([](int file, int variable) { nc_put_att_text(file, variable, "units", 0, ""); }));
  EXPECT_EQ(read_whole(unnamed, "x"), (std::vector<double>{1, 2, 3}));
  NetcdfFile good(with(numbers("scale_factor", {2})));
  EXPECT_EQ(read_whole(good, "x"), (std::vector<double>{2, 4, 6}));
}

TEST_F(Attributes, ThatAreTooLongAreRefused) {
  NetcdfFile netcdf(with([](int file, int variable) {
    nc_put_att_text(file, variable, "units", 5000, std::string(5000, 'm').c_str());
  }));
  expect_refused([&] { read_whole(netcdf, "x"); },
                 concat("x in ", netcdf.path(), " cannot be used: its attribute units has 5000 entries"));
  {
    const Id file = new_file(in("long.h5"));
    write_numbers(file.get(), "x", {1, 2, 3});
    const Id set(H5Dopen2(file.get(), "x", H5P_DEFAULT), H5Dclose);
    const hsize_t count = 5000;
    const Id space(H5Screate_simple(1, &count, nullptr), H5Sclose);
    const Id scale(
        H5Acreate2(set.get(), "scale_factor", H5T_IEEE_F64LE, space.get(), H5P_DEFAULT, H5P_DEFAULT),
        H5Aclose);
    EXPECT_GE(H5Awrite(scale.get(), H5T_NATIVE_DOUBLE, std::vector<double>(count, 2).data()), 0);
  }
  Hdf5File file(in("long.h5"));
  expect_refused([&] { read_whole(file, "x"); }, "its attribute scale_factor");
}

/// In NetCDF-4 and in a classic file: the beginning of a long_name is kept, other texts are left out.
TEST_F(Attributes, TextsThatDecideNothingMayBeLong) {
  for (const int mode : {NC_NETCDF4, NC_64BIT_OFFSET}) {
    const std::string path = in("told.nc");
    // The character at the limit has two bytes.
    const std::string text = std::string(4095, 'a') + "é" + std::string(4000, 'b');
    {
      testing::NetcdfWriter file(path, mode);
      const int x = file.dimension("x", 3), y = file.dimension("y", 1);
      const int variable = file.variable("v", NC_DOUBLE, {x, y});
      for (const char* const name : {"long_name", "comment", "history", "description"})
        file.text(variable, name, text);
      file.text(variable, "units", "K");
      const int other = file.variable("w", NC_DOUBLE, {x, y});
      file.text(other, "long_name", std::string(mode == NC_NETCDF4 ? 50'000 : (1 << 20) + 1, 'a'));
      file.end();
      file.put(variable, {1, 2, 3});
      file.put(other, {4, 5, 6});
    }
    NetcdfFile file(path);
    EXPECT_EQ(read_whole(file, "v"), (std::vector<double>{1, 2, 3}));
    EXPECT_EQ(file.find("v")->text("long_name"), std::string(4095, 'a'));
    EXPECT_EQ(file.find("v")->text("comment"), "");
    EXPECT_EQ(file.find("v")->text("units"), "K");
    EXPECT_EQ(read_whole(file, "w"), (std::vector<double>{4, 5, 6}));
    EXPECT_EQ(file.find("w")->text("long_name"), mode == NC_NETCDF4 ? std::string(4096, 'a') : "");
  }
}

/// Of a file with a hole, which has the length that its header speaks of: the library would read it whole.
TEST_F(Attributes, AHeaderWithAnAttributeOfGigabytesIsRefused) {
  const auto number = [](std::uint64_t value, int bytes) {
    std::string text;
    for (int i = bytes - 1; i >= 0; --i) text += static_cast<char>(value >> (8 * i) & 0xffU);
    return text;
  };
  constexpr std::uint64_t kLength = std::uint64_t{1} << 32;
  // CDF-5: no records, no dimensions, one attribute "x" of characters.
  const std::string header = "CDF\x05" + number(0, 8) + number(0, 4) + number(0, 8) + number(12, 4) +
                             number(1, 8) + number(1, 8) + std::string("x\0\0\0", 4) + number(2, 4) +
                             number(kLength, 8);
  put_text(in("hole.nc"), header);
  fs::resize_file(in("hole.nc"), header.size() + kLength + 12);
  expect_refused([&] { NetcdfFile file(in("hole.nc")); }, "its header has an attribute of more than 64 MiB");
}

TEST_F(Attributes, ValuesThatAreNotFiniteAreCountedUnlessAMaskCoversThem) {
  const std::vector<float> values = {1, NAN, INFINITY, -INFINITY, 5};
  using Counts = std::pair<std::int64_t, std::int64_t>;  // and those of them that are infinite
  const auto counted = [&](const std::function<void(int, int)>& add) {
    NetcdfFile file(with(add, values));
    const std::vector<double> read = read_whole(file, "x");
    EXPECT_EQ(std::count_if(read.begin(), read.end(), [](double x) { return std::isnan(x); }), 3);
    const auto found = file.undeclared();
    EXPECT_EQ(found.at("x").of, 5);
    return Counts{found.at("x").count, found.at("x").infinite};
  };
  const auto fill = [](float value) {
    return [value](int file, int variable) {
      nc_put_att_float(file, variable, "_FillValue", NC_FLOAT, 1, &value);
    };
  };
  EXPECT_EQ(counted([](int, int) {}), Counts(3, 2));
  EXPECT_EQ(counted(fill(-999)), Counts(3, 2));
  EXPECT_EQ(counted(fill(NAN)), Counts(2, 2));
  EXPECT_EQ(counted(fill(INFINITY)), Counts(2, 1));
  EXPECT_EQ(counted([&](int file, int variable) {
              const double range[] = {0, 10};
              nc_put_att_double(file, variable, "valid_range", NC_DOUBLE, 2, range);
            }),
            Counts(1, 0));
}

}  // namespace untrusted_file_test
}  // namespace jigsaw
