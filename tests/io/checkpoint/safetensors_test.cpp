#include "checkpoint/safetensors.h"

#include <gtest/gtest.h>
#include <hdf5.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <tuple>

#include "array/host_view.h"
#include "base/text.h"
#include "checkpoint/inspect.h"
#include "comm/self/self.h"
#include "comm/thread/run_ranks.h"
#include "io/checkpoint/checkpoint_cases.h"
#include "support/error_of.h"
#include "support/quoted.h"
#include "support/small_disk.h"
#include "support/source_dir.h"
#include "support/temporary_folder.h"

namespace jigsaw {
namespace {

using testing::case_manifest;
using testing::case_pieces;
using testing::case_tensors;
using testing::case_value;
using testing::Cut;
using testing::put_text;
using testing::TemporaryFolder;
using testing::text_of;

class Safetensors : public ::testing::Test {
 protected:
  FoundCheckpoint saved() {
    run_ranks(3, [&](Communicator& c) {
      save_checkpoint(folder_, case_manifest(5), case_pieces(c, 5, Cut::kRuns), c, {});
    });
    return open_checkpoint(folder_, *self_);
  }
  static std::string file_of(const std::string& header, const std::string& data) {
    const std::uint64_t length = header.size();
    return std::string(reinterpret_cast<const char*>(&length), 8) + header + data;
  }

  /// Of statistics all that is looked at here is whether they are "none".
  Imported import_into(const std::string& folder) {
    return import_safetensors(file_, folder, context_,
                              [](const std::string& text, const std::string& source) {
                                if (text == "\"none\"") throw DataError(source + " holds no statistics");
                              });
  }

  TemporaryFolder temporary_;
  std::string folder_ = temporary_.path() + "/checkpoints";
  std::string file_ = temporary_.path() + "/out.safetensors";
  Context context_ = Context::make_host(Backend::kReference, 1);
  std::unique_ptr<Communicator> self_ = make_self_communicator(context_);
};

/// Reads by the format's description alone.
TEST_F(Safetensors, WholeTensorsAreWritten) {
  const FoundCheckpoint checkpoint = saved();
  EXPECT_EQ(export_safetensors(checkpoint, "parameters", file_, context_), 3);
  EXPECT_FALSE(std::filesystem::exists(private_name(file_)));
  const std::string bytes = text_of(file_);
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  EXPECT_EQ(length % 8, 0u);
  const Json header = Json::parse(bytes.substr(8, length));
  ASSERT_EQ(header.size(), 4u);  // a tensor without elements is in no checkpoint
  std::uint64_t end = 0;
  for (std::size_t t = 0; t < 3; ++t) {
    const TensorRecord& tensor = case_tensors()[t];
    const Json& entry = header.at(tensor.name.substr(11));
    EXPECT_EQ(entry.at("dtype"), "F32");
    EXPECT_EQ(entry.at("shape"), Json(std::vector<std::int64_t>(tensor.shape.begin(), tensor.shape.end())));
    const auto begin = entry.at("data_offsets")[0].get<std::uint64_t>();
    EXPECT_EQ(entry.at("data_offsets")[1].get<std::uint64_t>() - begin,
              4 * static_cast<std::uint64_t>(tensor.shape.count()));
    end = std::max(end, entry.at("data_offsets")[1].get<std::uint64_t>());
    for (std::int64_t i = 0; i < tensor.shape.count(); ++i) {
      float value = 0;
      std::memcpy(&value, bytes.data() + 8 + length + begin + 4 * static_cast<std::uint64_t>(i), 4);
      ASSERT_EQ(value, static_cast<float>(case_value(t, i, 5))) << tensor.name << i;
    }
  }
  EXPECT_EQ(bytes.size(), 8 + length + end) << "holes, or bytes that belong to no tensor";
  EXPECT_EQ(export_safetensors(checkpoint, "adamw.moment1", file_, context_), 2);
  EXPECT_THROW(export_safetensors(checkpoint, "average", file_, context_), CheckpointError);
}

/// What the Python packages h5py and safetensors read, in whichever interpreter has them.
TEST_F(Safetensors, AndWholeParametersAreReadByPython) {
  const FoundCheckpoint checkpoint = saved();
  export_safetensors(checkpoint, "parameters", file_, context_);
  const std::string script = testing::source_dir() + "/tests/io/checkpoint/read_parameters.py";
  const std::string result = temporary_.path() + "/read.json";
  int readers = 0;
  for (const auto& [package, file] :
       {std::pair<std::string, std::string>("h5py", checkpoint.path + "/parameters.h5"),
        {"safetensors", file_}}) {
    bool read = false;
    for (const char* python : {"python3", "/usr/bin/python3"}) {
      const std::string command =
          concat(python, " ", testing::quoted(script), " ", package, " ", testing::quoted(file), " > ",
                 testing::quoted(result), " 2>/dev/null");
      const int code = WEXITSTATUS(std::system(command.c_str()));
      constexpr int kNotThere = 127, kNoPackage = 77;
      if (code == kNotThere || code == kNoPackage) continue;
      ASSERT_EQ(code, 0) << command;
      read = true;
      break;
    }
    if (!read) continue;
    ++readers;
    const Json tensors = Json::parse(text_of(result));
    for (std::size_t t = 0; t < 3; ++t) {
      const TensorRecord& tensor = case_tensors()[t];
      const Json& found = tensors.at(tensor.name.substr(11));
      EXPECT_EQ(found.at("shape"), Json(std::vector<std::int64_t>(tensor.shape.begin(), tensor.shape.end())));
      ASSERT_EQ(found.at("values").size(), static_cast<std::size_t>(tensor.shape.count()));
      for (std::int64_t i = 0; i < tensor.shape.count(); ++i) {
        ASSERT_EQ(found["values"][static_cast<std::size_t>(i)].get<float>(),
                  static_cast<float>(case_value(t, i, 5)))
            << package << tensor.name << i;
      }
    }
  }
  if (readers == 0) GTEST_SKIP() << "neither h5py nor safetensors is installed";
  std::printf("%d of 2 Python readers are installed and agree\n", readers);
}

TEST_F(Safetensors, AreTheCheckpointTheyCameFrom) {
  const FoundCheckpoint checkpoint = saved();
  export_safetensors(checkpoint, "parameters", file_, context_);
  const std::string imported = import_into(temporary_.path() + "/imported").path;
  // Others' checkpoints are not its to replace.
  EXPECT_THROW(import_into(temporary_.path() + "/imported"), CheckpointError);
  EXPECT_THROW(import_into(folder_), CheckpointError);
  for (const char* name : {"checkpoints", "config.json"}) {
    const std::string run = concat(temporary_.path(), "/run_with_", name);
    std::filesystem::create_directories(concat(run, "/", name));
    EXPECT_EQ(
        testing::error_of<CheckpointError>([&] { import_into(run); }),
        concat(quote(run), " is a run directory, with ", name, " in it; import into a folder of its own"));
  }
  EXPECT_NO_THROW(open_checkpoint(folder_, *self_));
  const FoundCheckpoint again = open_checkpoint(imported, *self_);
  ASSERT_EQ(again.stored.tensors.size(), 3u);
  auto pieces = case_pieces(*self_, 5, Cut::kLastDim);
  std::erase_if(pieces, [](const auto& piece) { return !piece.tensor.starts_with("parameters/"); });
  auto loaded = pieces;
  for (auto& piece : loaded) piece.array = Array::zeros(context_, piece.array.shape(), piece.array.dtype());
  read_pieces(again, loaded, *self_);
  for (std::size_t i = 0; i < pieces.size(); ++i)
    EXPECT_EQ(testing::values_of(loaded[i].array), testing::values_of(pieces[i].array));
}

TEST_F(Safetensors, HalfPrecisionBecomesSingle) {
  // 1, −2.5, the largest, the smallest and a subnormal half, −0, infinity, NaN
  const std::uint16_t halves[] = {0x3c00, 0xc100, 0x7bff, 0x0400, 0x0001, 0x8000, 0x7c00, 0x7e00};
  const float expected[] = {1.0F, -2.5F, 65504.0F, 0x1p-14F, 0x1p-24F, -0.0F, INFINITY, NAN};
  const std::uint16_t brains[] = {0x3f80, 0xc020};
  put_text(file_, file_of(R"({"h":{"dtype":"F16","shape":[2,4],"data_offsets":[0,16]},)"
                          R"("b":{"dtype":"BF16","shape":[2],"data_offsets":[16,20]}})",
                          std::string(reinterpret_cast<const char*>(halves), 16) +
                              std::string(reinterpret_cast<const char*>(brains), 4)));
  const FoundCheckpoint found = open_checkpoint(import_into(temporary_.path() + "/imported").path, *self_);
  const Array h(context_, {8}, DType::kFloat32), b(context_, {2}, DType::kFloat32);
  read_pieces(found,
              {{"parameters/h", {2, 4}, Box::whole({2, 4}), h}, {"parameters/b", {2}, Box::whole({2}), b}},
              *self_);
  for (int i = 0; i < 7; ++i) {
    EXPECT_EQ(HostView<float>(h)[i], expected[i]);
    EXPECT_EQ(std::signbit(HostView<float>(h)[i]), std::signbit(expected[i]));
  }
  EXPECT_TRUE(std::isnan(HostView<float>(h)[7]));
  EXPECT_EQ(HostView<float>(b)[0], 1.0F);
  EXPECT_EQ(HostView<float>(b)[1], -2.5F);
}

TEST_F(Safetensors, MalformedFilesAreRefusedInOneSentence) {
  const std::string data(8, '\0');
  const std::pair<const char*, std::string> cases[] = {
      {"too short", "abc"},
      {"its header does not fit", std::string(8, '\xff')},
      {"its header does not fit", file_of("{}", "").substr(0, 9)},
      {"no safetensors file", file_of("{", data)},
      {"its header is no object", file_of("[]", data)},
      {"no safetensors file", file_of(R"({"a":{"dtype":"F32","shape":[2]}})", data)},
      {"lies outside", file_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,16]}})", data)},
      {"lies outside", file_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", data)},
      {"lies outside", file_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,-8]}})", data)},
      {"another number of bytes", file_of(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", data)},
      {"too large",
       file_of(R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,8]}})", data)},
      {"too many dims",
       file_of(R"({"a":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,2],"data_offsets":[0,8]}})", data)},
      {"overlaps another one", file_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                                       R"("b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
                                       data)},
      {"bytes before the tensor \"a\" are of none",
       file_of(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", data)},
      {"its last 4 bytes are of no tensor",
       file_of(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", data)},
      {"its last 8 bytes are of no tensor", file_of("{}", data)},
      {"the name of a tensor has 5011 characters, and may have 512",
       file_of(R"({")" + std::string(5000, 'x') + R"(":{"dtype":"F64","shape":[],"data_offsets":[0,8]}})",
               data)},
      {"the name of a tensor is",
       file_of(R"({"a/b":{"dtype":"F64","shape":[],"data_offsets":[0,8]}})", data)},
      {"too large",
       file_of(R"({"a":{"dtype":"F64","shape":[0,4611686018427387904],"data_offsets":[0,0]}})", "")},
      {"no safetensors file that can be used: its metadata jigsaw.statistics holds no statistics",
       file_of(R"({"__metadata__":{"jigsaw.statistics":"\"none\""}})", "")},
      {"no safetensors file that can be used: its metadata jigsaw.statistics",
       file_of(R"({"__metadata__":{"jigsaw.statistics":"{"}})", "")},
      {"is of type F8_E4M3", file_of(R"({"a":{"dtype":"F8_E4M3","shape":[8],"data_offsets":[0,8]}})", data)},
      {"it holds no tensor of F64, F32, F16 or BF16",
       file_of(R"({"a":{"dtype":"I64","shape":[1],"data_offsets":[0,8]}})", data)}};
  for (const auto& [says, bytes] : cases) {
    put_text(file_, bytes);
    try {
      import_into(temporary_.path() + "/imported");
      ADD_FAILURE() << says;
    } catch (const DataError& error) {
      EXPECT_NE(std::string(error.what()).find(says), std::string::npos) << says << ": " << error.what();
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
      EXPECT_EQ(std::string(error.what()).find("json.exception"), std::string::npos);
    }
    EXPECT_FALSE(std::filesystem::exists(temporary_.path() + "/imported")) << says;
  }
}

/// As num_batches_tracked of PyTorch's batch norm.
TEST_F(Safetensors, WholeNumbersAreNoParameters) {
  put_text(file_, file_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                          R"("n":{"dtype":"I64","shape":[],"data_offsets":[8,16]}})",
                          std::string(16, '\0')));
  const Imported imported = import_into(temporary_.path() + "/imported");
  EXPECT_EQ(imported.left_out, std::vector<std::string>{"n"});
  const FoundCheckpoint found = open_checkpoint(imported.path, *self_);
  EXPECT_NE(found.stored.find("parameters/a"), nullptr);
  EXPECT_EQ(found.stored.find("parameters/n"), nullptr);
}

TEST_F(Safetensors, WhereThereIsNoRoomNoNewFolderIsLeft) {
  export_safetensors(saved(), "parameters", file_, context_);
  const std::string outer = temporary_.path() + "/outer";
  const auto import_without_room = [&] {
    const testing::SmallDisk disk(64);
    return testing::error_of<Error>([&] { import_into(outer + "/inner/"); });
  };
  EXPECT_NE(import_without_room(), "");
  EXPECT_FALSE(std::filesystem::exists(outer));
  std::filesystem::create_directory(outer);
  EXPECT_NE(import_without_room(), "");
  EXPECT_TRUE(std::filesystem::is_empty(outer)) << "it was there before";
  import_into(outer + "/inner/");
  EXPECT_TRUE(std::filesystem::exists(outer + "/inner/latest"));
}

/// 2^52 rows of no elements are no work, and no memory.
TEST_F(Safetensors, TensorsWithoutElementsAreNoWork) {
  put_text(file_, file_of(R"({"a":{"dtype":"F32","shape":[4503599627370496,0],"data_offsets":[0,0]},)"
                          R"("b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
                          std::string(4, '\0')));
  const FoundCheckpoint found = open_checkpoint(import_into(temporary_.path() + "/imported").path, *self_);
  EXPECT_EQ(export_safetensors(found, "parameters", file_, context_), 1);
}

TEST_F(Safetensors, StatisticsGoAlong) {
  CheckpointManifest manifest = case_manifest(5);
  manifest.extra["statistics"] = {{"lead_hours", 6}, {"fields", {{"t2m", {{"mean", 280.5}}}}}};
  save_checkpoint(folder_, manifest, case_pieces(*self_, 5, Cut::kRuns), *self_, {});
  export_safetensors(open_checkpoint(folder_, *self_), "parameters", file_, context_);
  const std::string path = import_into(temporary_.path() + "/imported").path;
  EXPECT_EQ(open_checkpoint(path, *self_).stored.manifest.extra.at("statistics"),
            manifest.extra["statistics"]);
}

TEST_F(Safetensors, ExportReplacesOnlyRegularFiles) {
  const FoundCheckpoint checkpoint = saved();
  EXPECT_THROW(export_safetensors(checkpoint, "parameters", "/dev/full", context_), FileError);
  EXPECT_THROW(export_safetensors(checkpoint, "parameters", temporary_.path(), context_), FileError);
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
  for (const std::string& file : {checkpoint.path + "/rank_0000.h5", folder_ + "/latest"}) {
    const std::string before = text_of(file);
    const std::string error =
        testing::error_of<ConfigError>([&] { export_safetensors(checkpoint, "parameters", file, context_); });
    EXPECT_NE(error.find("is there already and is no safetensors file"), std::string::npos) << error;
    EXPECT_EQ(text_of(file), before);
  }
  export_safetensors(checkpoint, "parameters", file_, context_);
  export_safetensors(checkpoint, "parameters", file_, context_);
}

TEST_F(Safetensors, InspectionShowsNamesWithoutTheirEscapes) {
  put_text(file_, file_of("{\"a\\u001b[2J\\nb\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
                          std::string(4, '\0')));
  const std::string text = inspect(file_).text;
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_NE(text.find("a\\x1b[2J\\x0ab"), std::string::npos) << text;
}

TEST_F(Safetensors, InspectionShowsTreesAndNamesTheDamagedPiece) {
  const FoundCheckpoint checkpoint = saved();
  const Inspection whole = inspect(checkpoint.path);
  EXPECT_EQ(whole.damage, "");
  for (const char* line : {"parameters: 3 tensors of 139 elements, 556 B", "    encoder\n      weight ",
                           "[13, 6]", "adamw.moment1: 2 tensors", "rank_0002.h5", "parameters.h5", "whole"}) {
    EXPECT_NE(whole.text.find(line), std::string::npos) << line << "\n" << whole.text;
  }
  const PieceRecord& piece = checkpoint.stored.shards[1].pieces[1];
  const std::string shard = checkpoint.path + "/rank_0001.h5";
  std::string bytes = text_of(shard);
  bytes[static_cast<std::size_t>(piece.offset)] ^= 1;
  put_text(shard, bytes);
  std::filesystem::remove(checkpoint.path + "/rank_0002.h5");
  const Inspection damaged = inspect(folder_ + "/latest");
  EXPECT_NE(damaged.text.find("damaged in " + piece.tensor + "#1"), std::string::npos) << damaged.text;
  EXPECT_NE(damaged.text.find("missing"), std::string::npos) << damaged.text;
  EXPECT_NE(damaged.damage.find("is not whole: rank_0001.h5, rank_0002.h5"), std::string::npos)
      << damaged.damage;
  save_checkpoint(folder_, case_manifest(6), case_pieces(*self_, 6, Cut::kRuns), *self_, {});
  export_safetensors(open_checkpoint(folder_, *self_), "parameters", file_, context_);
  EXPECT_NE(inspect(file_).text.find("F32"), std::string::npos);
}

TEST_F(Safetensors, InspectionShowsTheVariablesOfAZarrStore) {
  const std::string text = inspect(testing::source_dir() + "/tests/io/fixtures/xarray.zarr").text;
  EXPECT_NE(text.find("    t2m              [time 4, latitude 3, longitude 6]"), std::string::npos) << text;
}

TEST_F(Safetensors, InspectionShowsDimensionsAndChunksOfDataFiles) {
  const std::string fixtures = testing::source_dir() + "/tests/io/fixtures/",
                    netcdf = inspect(fixtures + "packed.nc").text,
                    hdf5 = inspect(fixtures + "images/volume.h5").text;
  EXPECT_NE(netcdf.find("[time 12, latitude 7, longitude 8]"), std::string::npos) << netcdf;
  EXPECT_NE(netcdf.find("int16, scale_factor 0.00052, add_offset 280.125  "), std::string::npos) << netcdf;
  EXPECT_NE(hdf5.find("[11, 9, 10]  int16, scale_factor 0.0025, add_offset 1.5  1.9 KiB  in g/cm3  "
                      "chunks [4, 5, 3] compressed"),
            std::string::npos)
      << hdf5;
}

/// Types for which NetCDF has others, and filters that it does not know.
TEST_F(Safetensors, InspectionShowsNumbersAsTheyAreStored) {
  const std::string path = temporary_.path() + "/types.h5";
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const std::array<hsize_t, 2> extents = {12, 256}, chunk = {4, 256};
  const hid_t space = H5Screate_simple(2, extents.data(), nullptr), plain = H5Pcreate(H5P_DATASET_CREATE),
              filtered = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_chunk(plain, 2, chunk.data());
  H5Pset_chunk(filtered, 2, chunk.data());
  H5Pset_fletcher32(filtered);
  const hid_t half = H5Tcopy(H5T_IEEE_F32LE);  // IEEE 754 binary16
  H5Tset_fields(half, 15, 10, 5, 0, 10);
  H5Tset_size(half, 2);
  H5Tset_ebias(half, 15);
  for (const auto& [name, type, layout] :
       {std::tuple{"half", half, plain}, {"wide", H5T_IEEE_F64BE, plain}, {"small", H5T_STD_I16LE, filtered}})
    H5Dclose(H5Dcreate2(file, name, type, space, H5P_DEFAULT, layout, H5P_DEFAULT));
  H5Tclose(half);
  H5Pclose(plain);
  H5Pclose(filtered);
  H5Sclose(space);
  H5Fclose(file);
  const std::string text = inspect(path).text;
  for (const char* part :
       {"[12, 256]  float16  6.0 KiB  chunks [4, 256]\n", "[12, 256]  float64  24.0 KiB  chunks [4, 256]\n",
        "[12, 256]  int16  6.0 KiB  chunks [4, 256] compressed\n"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

}  // namespace
}  // namespace jigsaw
