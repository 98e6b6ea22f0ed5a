// Every type and layout on disk, against files that h5py and netCDF4 wrote (make_storage_fixtures.py).
#include <hdf5.h>

#include <array>
#include <cmath>
#include <optional>
#include <random>
#include <thread>

#include "base/error.h"
#include "base/text.h"
#include "files/chunk_cache.h"
#include "files/netcdf_file.h"
#include "io/fixtures.h"
#include "support/error_of.h"
#include "support/temporary_folder.h"

namespace jigsaw {
namespace storage_test {

const Shape kShape{3, 8, 9};
constexpr double kFill = 77;

/// The formula of the script; whole numbers, halves for floating point.
double value(const std::string& kind, std::int64_t i, std::int64_t j, std::int64_t k) {
  const auto whole = static_cast<double>((i * 37 + j * 11 + k * 3) % 101);
  return kind[0] == 'u' ? whole : kind[0] == 'i' ? whole - 50 : whole * 0.5 - 25;
}

/// Of an array that lacks the first dim the entry 1 of it.
double value_at(const std::string& kind, const Shape& at) {
  const int r = at.rank();
  return value(kind, r == 3 ? at[0] : 1, at[r - 2], at[r - 1]);
}

template <typename T>
void expect_box(VariableFile& file, const FileVariable& variable, const Box& box,
                const std::function<double(const Shape&)>& wanted) {
  std::vector<T> found(static_cast<std::size_t>(box.extent.count()), T{-1});
  file.read<T>(variable, box, found);
  Shape at = box.begin;
  for (const T each : found) {
    const double right = wanted(at);
    if (std::isnan(right)) {
      ASSERT_TRUE(std::isnan(each)) << variable.name << " at " << at;
    } else {
      ASSERT_EQ(each, static_cast<T>(right)) << variable.name << " at " << at;
    }
    for (int d = at.rank() - 1; d >= 0; --d) {
      if (++at[d] < box.end(d)) break;
      at[d] = box.begin[d];
    }
  }
}

/// What can be streamed gives the same in parts of any length, and counts as much.
template <typename T>
void expect_stream(VariableFile& file, const FileVariable& variable, const Box& box) {
  std::optional<HyperslabStream> stream = file.stream(variable, box);
  if (!stream) return;
  const auto points = static_cast<std::size_t>(box.extent.count());
  std::vector<T> whole(points), parts(points);
  const std::int64_t before = file.bytes_read();
  file.read<T>(variable, box, whole);
  const std::int64_t between = file.bytes_read();
  std::mt19937 random(11);
  for (std::size_t done = 0; done < points;) {
    const std::size_t part = std::min<std::size_t>(points - done, random() % 40);
    stream->read(std::span(parts).subspan(done, part));
    done += part;
  }
  EXPECT_EQ(file.bytes_read() - between, between - before);
  EXPECT_GE(stream->fetched(), box.extent.count() * size_of(variable.type));
  for (std::size_t i = 0; i < points; ++i) {
    ASSERT_TRUE((whole[i] == parts[i] && std::signbit(whole[i]) == std::signbit(parts[i])) ||
                (std::isnan(whole[i]) && std::isnan(parts[i])))
        << variable.name << " at " << i << " of " << box;
  }
  std::array<T, 1> beyond{};
  EXPECT_THROW(stream->template read<T>(beyond), Error);
}

/// The whole, and boxes at random.
void expect_values(VariableFile& file, const std::string& name,
                   const std::function<double(const Shape&)>& wanted) {
  const FileVariable* variable = file.find(name);
  ASSERT_NE(variable, nullptr) << name;
  expect_box<double>(file, *variable, Box::whole(variable->shape), wanted);
  std::mt19937 random(7);
  for (int i = 0; i < 12; ++i) {
    Box box = Box::whole(variable->shape);
    for (int d = 0; d < box.extent.rank(); ++d) {
      box.begin[d] = static_cast<std::int64_t>(random() % static_cast<unsigned>(variable->shape[d]));
      box.extent[d] =
          1 + static_cast<std::int64_t>(random() % static_cast<unsigned>(variable->shape[d] - box.begin[d]));
    }
    expect_box<double>(file, *variable, box, wanted);
    expect_box<float>(file, *variable, box, wanted);
    expect_stream<double>(file, *variable, box);
    expect_stream<float>(file, *variable, box);
  }
}

std::string kind_of(const std::string& name) {
  return name.substr(name.rfind('/') + 1, 2);
}

int expect_all(VariableFile& file, const std::string& marks) {
  int read = 0;
  for (const FileVariable& variable : file.variables()) {
    if (variable.name.find_first_of(marks) == std::string::npos) continue;
    const std::string kind = kind_of(variable.name);
    if (kind.find_first_of("1248") == std::string::npos || variable.name.ends_with("lzf")) continue;
    expect_values(file, variable.name, [&](const Shape& at) { return value_at(kind, at); });
    ++read;
  }
  return read;
}

std::string error_of_reading(VariableFile& file, const std::string& name) {
  const FileVariable& variable = *file.find(name);
  std::vector<float> values(static_cast<std::size_t>(variable.shape.count()));
  return testing::error_of<DataError>(
      [&] { file.read<float>(variable, Box::whole(variable.shape), values); });
}

std::string without_filter(VariableFile& file, const std::string& name, const std::string& filter) {
  return concat("cannot read ", name, " of ", file.path(), " at ", Box::whole(file.find(name)->shape),
                ": it is compressed by the filter ", filter,
                ", which HDF5 lacks here; name the folder of the filter's plugin in HDF5_PLUGIN_PATH, or "
                "write the file anew with deflate");
}

class Storage : public ::testing::TestWithParam<const char*> {};

TEST_P(Storage, OfHdf5IsReadInEveryTypeAndLayout) {
  const auto file = open_variables(fixture(concat("storage/", GetParam())), Dimensions::kByNumber);
  EXPECT_EQ(expect_all(*file, "_"), std::string(GetParam()) == "earliest.h5" ? 6 + 2 * 17 : 6);
  expect_values(*file, "never_written", [](const Shape&) { return kFill; });
  expect_values(*file, "half", [](const Shape& at) { return value_at("f2", at); });
  // Two of its chunks were written, one of them without its filters.
  expect_values(*file, "gaps", [](const Shape& at) {
    return at[0] < 2 && at[1] < 6 && at[2] < 5 ? value_at("f4", at) : kFill;
  });
  // A filter of h5py's own, which the library lacks.
  EXPECT_EQ(error_of_reading(*file, "f4le_lzf"), without_filter(*file, "f4le_lzf", "32000 (LZF)"));
  std::array<double, 1> scalar{};
  file->read<double>(*file->find("scalar"), {}, scalar);
  EXPECT_EQ(scalar[0], kFill);
}
INSTANTIATE_TEST_SUITE_P(Versions, Storage, ::testing::Values("earliest.h5", "latest.h5"));

/// A data set of one chunk, as if behind deflate a filter had made its bytes that the library does not know.
void write_filtered(hid_t file, const char* name, H5Z_filter_t filter) {
  const std::array<hsize_t, 2> extents = {2, 3};
  const std::array<hsize_t, 2> begin{};
  const std::array<float, 6> bytes{};
  const hid_t space = H5Screate_simple(2, extents.data(), nullptr), creation = H5Pcreate(H5P_DATASET_CREATE);
  ASSERT_GE(H5Pset_chunk(creation, 2, extents.data()), 0);
  ASSERT_GE(H5Pset_deflate(creation, 1), 0);
  ASSERT_GE(H5Pset_filter(creation, filter, H5Z_FLAG_OPTIONAL, 0, nullptr), 0);
  const hid_t set = H5Dcreate2(file, name, H5T_IEEE_F32LE, space, H5P_DEFAULT, creation, H5P_DEFAULT);
  ASSERT_GE(H5Dwrite_chunk(set, H5P_DEFAULT, 0, begin.data(), sizeof bytes, bytes.data()), 0);
  H5Dclose(set);
  H5Pclose(creation);
  H5Sclose(space);
}

TEST(Hdf5Storage, AFilterThatTheLibraryLacksIsNamed) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path() + "/filters.nc";
  const hid_t written = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  write_filtered(written, "zstd", 32015);
  write_filtered(written, "of_nobody", 64999);
  H5Fclose(written);
  for (const Dimensions dimensions : {Dimensions::kByNumber, Dimensions::kByName}) {
    const auto file = open_variables(path, dimensions);
    EXPECT_EQ(error_of_reading(*file, "zstd"), without_filter(*file, "zstd", "32015 (Zstandard)"));
    EXPECT_EQ(error_of_reading(*file, "of_nobody"), without_filter(*file, "of_nobody", "64999"));
  }
}

TEST(Hdf5Storage, OfFalseAndTrueIsReadAsNumbers) {
  const auto file = open_variables(fixture("storage/bools.h5"), Dimensions::kByNumber);
  for (const char* const name : {"bool_contiguous", "bool_gzip_shuffle_fletcher"})
    expect_values(*file, name, [](const Shape& at) { return std::fmod(value_at("u1", at), 2); });
}

void write_number(hid_t group, const char* name, double value) {
  const hid_t space = H5Screate(H5S_SCALAR);
  const hid_t attribute = H5Acreate2(group, name, H5T_IEEE_F64LE, space, H5P_DEFAULT, H5P_DEFAULT);
  EXPECT_GE(H5Awrite(attribute, H5T_NATIVE_DOUBLE, &value), 0);
  H5Aclose(attribute);
  H5Sclose(space);
}

/// A scan of ODIM [2, 2] of two quantities, the gain of both beside the scan, the rest beside the second one.
void write_odim(const std::string& path, const std::string& conventions) {
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hid_t text = H5Tcopy(H5T_C_S1), scalar = H5Screate(H5S_SCALAR);
  H5Tset_size(text, conventions.size());
  const hid_t said = H5Acreate2(file, "Conventions", text, scalar, H5P_DEFAULT, H5P_DEFAULT);
  EXPECT_GE(H5Awrite(said, text, conventions.data()), 0);
  H5Aclose(said);
  H5Sclose(scalar);
  H5Tclose(text);
  std::vector<hid_t> groups;
  for (const char* name :
       {"dataset1", "dataset1/what", "dataset1/data1", "dataset1/data2", "dataset1/data2/what"})
    groups.push_back(H5Gcreate2(file, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  write_number(groups[1], "gain", 0.5);
  write_number(groups[1], "offset", -32.5);
  write_number(groups[4], "offset", 1);
  write_number(groups[4], "nodata", 255);
  write_number(groups[4], "undetect", 0);
  const std::array<hsize_t, 2> extents{2, 2};
  const std::array<unsigned char, 4> values{0, 1, 100, 255};
  const hid_t space = H5Screate_simple(2, extents.data(), nullptr);
  for (const char* name : {"dataset1/data1/data", "dataset1/data2/data"}) {
    const hid_t set = H5Dcreate2(file, name, H5T_STD_U8LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    EXPECT_GE(H5Dwrite(set, H5T_NATIVE_UCHAR, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
    H5Dclose(set);
  }
  H5Sclose(space);
  for (const hid_t group : groups) H5Gclose(group);
  H5Fclose(file);
}

TEST(Hdf5Storage, RadarDataOfOdimAreUnpacked) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path() + "/scan.h5";
  const auto values_in = [&](const char* name) {
    const auto file = open_variables(path, Dimensions::kByNumber);
    std::vector<double> values(4);
    file->read<double>(*file->find(name), {{0, 0}, {2, 2}}, values);
    return values;
  };
  write_odim(path, "ODIM_H5/V2_2");
  EXPECT_EQ(values_in("dataset1/data1/data"), (std::vector<double>{-32.5, -32, 17.5, 95}));
  const std::vector<double> second = values_in("dataset1/data2/data");
  EXPECT_EQ(std::vector(second.begin(), second.begin() + 3), (std::vector<double>{1, 1.5, 51}));
  EXPECT_TRUE(std::isnan(second[3]));
  write_odim(path, "something else");
  EXPECT_EQ(values_in("dataset1/data2/data"), (std::vector<double>{0, 1, 100, 255}));
}

class NetcdfStorage : public ::testing::TestWithParam<const char*> {};

TEST_P(NetcdfStorage, IsReadInEveryType) {
  NetcdfFile file(fixture(concat("storage/", GetParam())));
  const std::string name = GetParam();
  const int kinds = name == "cdf1.nc" || name == "cdf2.nc" ? 5 : 10;
  EXPECT_EQ(expect_all(file, "_"), 2 * kinds + (name == "netcdf4.nc" ? 1 : 0));
}
INSTANTIATE_TEST_SUITE_P(Versions, NetcdfStorage,
                         ::testing::Values("cdf1.nc", "cdf2.nc", "cdf5.nc", "netcdf4.nc"));

TEST(NetcdfFile, RecordsThatWereNotWrittenAreMissing) {
  NetcdfFile file(fixture("storage/netcdf4.nc"));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto wanted = [&](const Shape& at) { return at[0] == 0 ? value_at("f4", at) : nan; };
  expect_values(file, "short", wanted);
  // NetCDF-C and HDF5 take turns.
  expect_values(file, "f4_records", [](const Shape& at) { return value_at("f4", at); });
  expect_values(file, "short", wanted);
}

TEST(NetcdfFile, AVariableMayHaveTheNameOfADimensionThatItIsNoCoordinateOf) {
  NetcdfFile file(fixture("storage/netcdf4.nc"));
  expect_values(file, "x", [](const Shape& at) { return value_at("f4", at); });
}

TEST(NetcdfFile, TheRecordsOfASoleRecordVariableAreNotPadded) {
  NetcdfFile file(fixture("storage/sole.nc"));
  expect_values(file, "i1_sole", [](const Shape& at) { return value("i1", at[0], 1, at[1]); });
}

TEST(StoredBytes, SeveralThreadsReadOneFile) {
  NetcdfFile file(fixture("storage/netcdf4.nc"));
  const auto packed = open_variables(fixture("storage/earliest.h5"), Dimensions::kByNumber);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 5; ++i) {
        expect_values(file, t % 2 == 0 ? "f8_records" : "below/f4_records",
                      [](const Shape& at) { return value_at("f4", at); });
        expect_values(file, "short",
                      [](const Shape& at) { return at[0] == 0 ? value_at("f4", at) : std::nan(""); });
        expect_values(*packed, t % 2 == 0 ? "f4le_gzip" : "i2be_gzip_shuffle_fletcher",
                      [&](const Shape& at) { return value_at(t % 2 == 0 ? "f4" : "i2", at); });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(HyperslabStream, IsOfWhatStandsInOnePieceUncompressed) {
  const auto streams = [](VariableFile& file, const std::string& name) {
    const FileVariable& variable = *file.find(name);
    return file.stream(variable, Box::whole(variable.shape)).has_value();
  };
  const auto hdf5 = open_variables(fixture("storage/earliest.h5"), Dimensions::kByNumber);
  EXPECT_TRUE(streams(*hdf5, "f4le_contiguous"));
  EXPECT_FALSE(streams(*hdf5, "f4le_chunked"));
  EXPECT_FALSE(streams(*hdf5, "f4le_gzip"));
  NetcdfFile classic(fixture("storage/cdf1.nc")), netcdf4(fixture("storage/netcdf4.nc"));
  EXPECT_TRUE(streams(classic, "f4_fixed"));
  EXPECT_TRUE(streams(classic, "f4_records"));
  EXPECT_TRUE(streams(netcdf4, "f4_fixed"));
  EXPECT_FALSE(streams(netcdf4, "f4_records"));
  // Beyond the variable: reading says what is wrong.
  EXPECT_FALSE(classic.stream(*classic.find("f4_fixed"), {{0, 0}, {1, 10}}).has_value());
}

/// HDF5 1.10 has data sets of texts refer to that handle of a file which came first, also when it is closed.
TEST(StoredBytes, SeveralThreadsOpenAndCloseOneFileWithTexts) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < 60; ++i) {
        const bool by_name = (i + t) % 3 != 0;
        const auto file =
            open_variables(fixture("levels_1.nc"), by_name ? Dimensions::kByName : Dimensions::kByNumber);
        const std::vector<std::string> texts = file->read_texts(*file->find("expver"));
        ASSERT_FALSE(texts.empty());
        EXPECT_EQ(texts[0], "0001");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(NetcdfFile, TheLibraryDoesNotHoldAFileWithTexts) {
  NetcdfFile file(fixture("levels_1.nc"));
  EXPECT_FALSE(file.is_open());
  file.read_texts(*file.find("expver"));
  EXPECT_FALSE(file.is_open());
  // There is no such group: the library says so.
  FileVariable other = *file.find("expver");
  other.name = "nowhere/expver";
  EXPECT_THROW(file.read_texts(other), DataError);
  EXPECT_FALSE(file.is_open());
}

std::int64_t fetched(VariableFile& file, const std::string& name, const Box& box) {
  std::vector<float> out(static_cast<std::size_t>(box.extent.count()));
  const std::int64_t before = file.bytes_fetched();
  file.read<float>(*file.find(name), box, out);
  return file.bytes_fetched() - before;
}

TEST(StoredBytes, WhatTheSystemIsAskedForFitsTheCut) {
  const auto file = open_variables(fixture("storage/earliest.h5"), Dimensions::kByNumber);
  // Rows and times of a contiguous array: nothing else; single columns: gaps of up to 64 bytes come along.
  EXPECT_EQ(fetched(*file, "f4le_contiguous", {{1, 2, 0}, {2, 3, 9}}), 4 * 2 * 3 * 9);
  EXPECT_EQ(fetched(*file, "f4le_contiguous", {{1, 0, 0}, {1, 8, 5}}), 4 * (7 * 9 + 5));
  EXPECT_EQ(fetched(*file, "f4le_contiguous", {{0, 3, 4}, {3, 1, 1}}), 4 * 3);
  // A chunk without compression of 2 x 3 x 5 numbers.
  EXPECT_EQ(fetched(*file, "f4le_chunked", {{0, 0, 0}, {1, 3, 5}}), 4 * 30);
  // What is left of it is not fetched again.
  EXPECT_EQ(fetched(*file, "f4le_chunked", {{1, 0, 0}, {1, 3, 5}}), 0);
  EXPECT_GT(ChunkCache::shared().bytes(), 0U);
  file->close();
  EXPECT_EQ(ChunkCache::shared().bytes(), 0U);
  EXPECT_EQ(fetched(*file, "f4le_chunked", {{1, 0, 0}, {1, 3, 5}}), 4 * 30);
}

}  // namespace storage_test
}  // namespace jigsaw
