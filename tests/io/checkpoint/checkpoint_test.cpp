#include "checkpoint/checkpoint.h"

#include <gtest/gtest.h>
#include <hdf5.h>
#include <sys/stat.h>

#include <cmath>
#include <map>

#include "base/text.h"
#include "checkpoint/folder.h"
#include "comm/self/self.h"
#include "comm/thread/run_ranks.h"
#include "files/digest.h"
#include "io/checkpoint/checkpoint_cases.h"
#include "support/temporary_folder.h"

namespace jigsaw {
namespace {

namespace fs = std::filesystem;
using testing::case_manifest;
using testing::case_pieces;
using testing::case_tensors;
using testing::Cut;
using testing::error_of;
using testing::expect_case;
using testing::Names;
using testing::names_in;
using testing::put_text;
using testing::TemporaryFolder;
using testing::text_of;

constexpr Cut kCuts[] = {Cut::kRuns, Cut::kFirstDim, Cut::kLastDim};

/// One rank and a folder.
class Checkpoint : public ::testing::Test {
 protected:
  void save(std::int64_t step, std::int64_t keep = 3) {
    save_checkpoint(folder_, case_manifest(step), case_pieces(*self_, step, Cut::kRuns), *self_,
                    {.keep = keep});
  }
  std::optional<FoundCheckpoint> newest() {
    warnings_.clear();
    return newest_checkpoint(folder_, *self_, warnings_);
  }
  std::int64_t newest_step() {
    const auto found = newest();
    return found ? found->stored.manifest.step : -1;
  }
  std::string open_error(const std::string& name) {
    return error_of([&] { open_checkpoint(folder_ + "/" + name, *self_); });
  }

  TemporaryFolder temporary_;
  std::string folder_ = temporary_.path() + "/checkpoints";
  Context context_ = Context::make_host(Backend::kReference, 1);
  std::unique_ptr<Communicator> self_ = make_self_communicator(context_);
  std::vector<std::string> warnings_;
};

TEST(CheckpointRanks, AnyNumberOfRanksLoadsFromAnyOtherJustWhatItNeeds) {
  for (const int ranks : {1, 2, 3, 4, 8}) {
    for (const Cut cut : kCuts) {
      const TemporaryFolder folder;
      run_ranks(ranks, [&](Communicator& c) {
        save_checkpoint(folder.path(), case_manifest(5), case_pieces(c, 5, cut), c, {});
      });
      EXPECT_EQ(names_in(folder.path() + "/step_00000005").size(), static_cast<std::size_t>(ranks) + 2);
      for (const int others : {1, 2, 3, 8}) {
        for (const Cut other : kCuts) {
          run_ranks(others, [&](Communicator& c) {
            std::vector<std::string> warnings;
            const auto found = newest_checkpoint(folder.path(), c, warnings);
            ASSERT_TRUE(found);
            EXPECT_EQ(warnings, Names{});
            check_tensors(*found, case_tensors());
            expect_case(*found, 5, c, other);
            const double verified =
                c.all_reduce(std::array{static_cast<double>(found->verified_bytes)}, ReduceOp::kSum)[0];
            double bytes = 0;
            for (const FileRecord& file : found->stored.files()) bytes += static_cast<double>(file.bytes);
            EXPECT_EQ(bytes, c.rank() == 0 ? verified : 0.0)
                << "a file is verified twice or not at all, or a rank holds what only the first needs";
          });
        }
      }
    }
  }
}

TEST(CheckpointRanks, WhatOneRankFindsAllRanksThrow) {
  const TemporaryFolder folder;
  run_ranks(3, [&](Communicator& c) {
    save_checkpoint(folder.path(), case_manifest(5), case_pieces(c, 5, Cut::kRuns), c, {});
  });
  const std::string shard = folder.path() + "/step_00000005/rank_0001.h5";
  std::string bytes = text_of(shard);
  bytes[bytes.size() / 2] ^= 1;
  put_text(shard, bytes);
  run_ranks(2, [&](Communicator& c) {
    EXPECT_EQ(error_of([&] { open_checkpoint(folder.path() + "/step_00000005", c); }),
              "the checkpoint file " + shard + " is damaged: its digest does not fit");
    open_checkpoint(folder.path() + "/step_00000005", c, Verify::kSizesOnly);
  });
}

/// A training that keeps one saves the next while this one is read.
TEST(CheckpointRanks, OneThatWasRemovedWhileItIsReadIsChosenAnew) {
  for (const int ranks : {1, 3}) {
    const TemporaryFolder folder;
    const auto save = [&](std::int64_t step, Communicator& c) {
      save_checkpoint(folder.path(), case_manifest(step), case_pieces(c, step, Cut::kRuns), c, {.keep = 1});
    };
    run_ranks(ranks, [&](Communicator& c) {
      save(1, c);
      std::vector<std::int64_t> steps;
      const auto use = [&](const FoundCheckpoint& found) {
        const std::int64_t step = steps.emplace_back(found.stored.manifest.step);
        if (step == 1) save(2, c);
        expect_case(found, step, c, Cut::kLastDim);
        return found.path;
      };
      for (const char* path : {"", "/", "/latest"}) {
        steps.clear();
        save(1, c);
        EXPECT_EQ(with_checkpoint(folder.path() + path, c, Verify::kBytes, use),
                  folder.path() + "/step_00000002");
        EXPECT_EQ(steps, (std::vector<std::int64_t>{1, 2}));
      }
      // One that was named is that one or none.
      steps.clear();
      save(1, c);
      const std::string named = folder.path() + "/step_00000001/";
      EXPECT_NE(error_of([&] { with_checkpoint(named, c, Verify::kBytes, use); }), "");
      EXPECT_EQ(steps, std::vector<std::int64_t>{1});
      // Not for ever.
      std::int64_t last = 2;
      int uses = 0;
      EXPECT_NE(error_of([&] {
                  with_checkpoint(folder.path(), c, Verify::kBytes, [&](const FoundCheckpoint& found) {
                    ++uses;
                    save(++last, c);
                    expect_case(found, last - 1, c, Cut::kRuns);
                  });
                }),
                "");
      EXPECT_EQ(uses, kMostChoices);
      // What is wrong with one that is still there is not tried again.
      uses = 0;
      EXPECT_EQ(error_of([&] {
                  with_checkpoint(folder.path(), c, Verify::kBytes, [&](const FoundCheckpoint& /*found*/) {
                    ++uses;
                    throw CheckpointError("of another model");
                  });
                }),
                "of another model");
      EXPECT_EQ(uses, 1);
    });
  }
}

TEST_F(Checkpoint, OneThatWasRemovedBeforeItsManifestIsReadIsChosenAnew) {
  save(1, 1);
  std::vector<std::string> chosen;
  const auto read = [&](const std::string& checkpoint) {
    chosen.push_back(checkpoint);
    if (chosen.size() == 1) save(2, 1);
    return read_manifest(manifest_text(checkpoint), manifest_path(checkpoint)).manifest.step;
  };
  EXPECT_EQ(with_checkpoint_at(folder_, read), 2);
  EXPECT_EQ(chosen, (Names{folder_ + "/step_00000001", folder_ + "/step_00000002"}));
  chosen = {"one before"};
  EXPECT_EQ(error_of([&] { with_checkpoint_at(folder_ + "/step_00000001", read); }),
            "there is no checkpoint \"" + folder_ + "/step_00000001\"");
  EXPECT_EQ(chosen.size(), 2u);
}

TEST_F(Checkpoint, ElementsAreConverted) {
  save(3);
  auto wanted = case_pieces(*self_, 3, Cut::kLastDim);
  for (CheckpointPiece& piece : wanted) {
    const DType other = piece.array.dtype() == DType::kFloat32 ? DType::kFloat64 : DType::kFloat32;
    piece.array = Array::zeros(context_, piece.array.shape(), other);
  }
  read_pieces(*newest(), wanted, *self_);
  const auto expected = case_pieces(*self_, 3, Cut::kLastDim);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const auto loaded = testing::values_of(wanted[i].array), right = testing::values_of(expected[i].array);
    for (std::size_t k = 0; k < right.size(); ++k)
      EXPECT_EQ(static_cast<float>(loaded[k]), static_cast<float>(right[k]));
  }
}

/// Reads a data set of an HDF5 file by the library alone.
std::vector<double> read_hdf5(const std::string& path, const std::string& name, std::vector<hsize_t>& shape) {
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  const hid_t set = H5Dopen2(file, name.c_str(), H5P_DEFAULT), space = H5Dget_space(set);
  shape.resize(static_cast<std::size_t>(std::max(H5Sget_simple_extent_ndims(space), 0)));
  H5Sget_simple_extent_dims(space, shape.data(), nullptr);
  std::vector<double> values(static_cast<std::size_t>(H5Sget_simple_extent_npoints(space)));
  EXPECT_GE(H5Dread(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
  H5Sclose(space);
  H5Dclose(set);
  H5Fclose(file);
  return values;
}

TEST(CheckpointRanks, ParametersOpenAsWholeTensorsAndAMissingShardShowsAsNan) {
  for (const Cut cut : kCuts) {
    const TemporaryFolder folder;
    run_ranks(3, [&](Communicator& c) {
      save_checkpoint(folder.path(), case_manifest(5), case_pieces(c, 5, cut), c, {});
    });
    const std::string checkpoint = folder.path() + "/moved";
    fs::rename(folder.path() + "/step_00000005", checkpoint);
    for (std::size_t t = 0; t < 3; ++t) {
      const TensorRecord& tensor = case_tensors()[t];
      std::vector<hsize_t> shape;
      const auto values = read_hdf5(checkpoint + "/parameters.h5", tensor.name.substr(11), shape);
      EXPECT_EQ(shape, std::vector<hsize_t>(tensor.shape.begin(), tensor.shape.end()));
      ASSERT_EQ(values.size(), static_cast<std::size_t>(tensor.shape.count()));
      for (std::size_t i = 0; i < values.size(); ++i)
        EXPECT_EQ(values[i], testing::case_value(t, static_cast<std::int64_t>(i), 5)) << tensor.name << i;
    }
    fs::remove(checkpoint + "/rank_0001.h5");
    std::vector<hsize_t> shape;
    const auto values = read_hdf5(checkpoint + "/parameters.h5", "encoder.weight", shape);
    const auto missing = std::ranges::count_if(values, [](double x) { return std::isnan(x); });
    EXPECT_EQ(missing, cut == Cut::kRuns ? 26 : cut == Cut::kFirstDim ? 4 * 6 : 13 * 2);
  }
}

TEST_F(Checkpoint, AShardSaysOfEachPieceWhatItIs) {
  save(3);
  const std::string shard = folder_ + "/step_00000003/rank_0000.h5";
  const FoundCheckpoint found = *newest();
  for (const PieceRecord& piece : found.stored.shards[0].pieces) {
    std::vector<hsize_t> shape;
    const auto values = read_hdf5(shard, piece.tensor + "#0", shape);
    EXPECT_EQ(shape, std::vector<hsize_t>(piece.box.extent.begin(), piece.box.extent.end()));
    const auto bytes = text_of(shard).substr(static_cast<std::size_t>(piece.offset),
                                             values.size() * static_cast<std::size_t>(size_of(piece.dtype)));
    EXPECT_EQ(digest_of_text(bytes), piece.digest);
    const hid_t file = H5Fopen(shard.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
    char digest[17] = "";
    const hid_t set = H5Dopen2(file, (piece.tensor + "#0").c_str(), H5P_DEFAULT);
    const hid_t attribute = H5Aopen(set, "xxh64", H5P_DEFAULT), type = H5Aget_type(attribute);
    EXPECT_GE(H5Aread(attribute, type, digest), 0);
    EXPECT_EQ(piece.digest, digest);
    H5Tclose(type);
    H5Aclose(attribute);
    H5Dclose(set);
    H5Fclose(file);
  }
}

TEST_F(Checkpoint, DamageIsNoticedAndTheOneBeforeIsFound) {
  save(100);
  save(200);
  const std::string folder = folder_ + "/step_00000200";
  for (const char* name : {"manifest.json", "rank_0000.h5", "parameters.h5"}) {
    const std::string path = folder + "/" + name, whole = text_of(path);
    for (std::size_t at = 0; at + 1 < whole.size(); at += 1 + whole.size() / 61) {
      std::string damaged = whole;
      damaged[at] ^= 4;
      put_text(path, damaged);
      EXPECT_EQ(newest_step(), 100) << name << " at " << at;
      EXPECT_EQ(warnings_.size(), 1u);
      EXPECT_NE(open_error("step_00000200"), "");
      put_text(path, whole.substr(0, at));
      EXPECT_EQ(newest_step(), 100) << name << " cut at " << at;
    }
    fs::remove(path);
    EXPECT_EQ(newest_step(), 100);
    put_text(path, whole);
    EXPECT_EQ(newest_step(), 200);
  }
}

TEST_F(Checkpoint, WhatIsNotThereOrNotWholeIsNotOpened) {
  save(1);
  EXPECT_EQ(open_error("step_00000002"), "there is no checkpoint \"" + folder_ + "/step_00000002\"");
  EXPECT_EQ(open_error("latest"), "");
  EXPECT_EQ(open_error("step_00000001/"), "");
  // What cannot be looked at, as behind a folder that denies permission, may be whole.
  std::filesystem::create_directory(folder_ + "/loop");
  std::filesystem::create_symlink("latest", folder_ + "/loop/latest");
  EXPECT_EQ(open_error("loop"), "cannot read " + folder_ + "/loop/latest: Too many levels of symbolic links");
  for (const char* text : {"", "{", "null", "[]", "{}", "{\"format_version\": \"x\"}", "\xff\xfe",
                           "{\"format_version\": 2}", "{\"format_version\": 2, \"xxh64\": \"\"}"}) {
    put_text(folder_ + "/step_00000001/manifest.json", text);
    const std::string error = open_error("step_00000001");
    EXPECT_NE(error.find("step_00000001/manifest.json is not a whole manifest of a checkpoint: "),
              std::string::npos)
        << text << ": " << error;
    EXPECT_EQ(error.find('\n'), std::string::npos);
  }
  put_text(folder_ + "/step_00000001/manifest.json", "{\"format_version\": 4, \"new\": true}");
  EXPECT_NE(open_error("step_00000001").find("is of format version 4, this program reads versions 2 to 3; "),
            std::string::npos);
}

TEST_F(Checkpoint, ManifestsOfTheRightDigestAndTheWrongFieldsAreRefused) {
  save(1);
  const std::string text = text_of(folder_ + "/step_00000001/manifest.json");
  EXPECT_EQ(read_manifest(text, "x").serial, 1);
  const auto with = [&](const std::string& pointer, const Json& value) {
    Json json = Json::parse(text);
    json.erase("xxh64");
    json[Json::json_pointer(pointer)] = value;
    json["xxh64"] = digest_of_text(json.dump());
    return error_of([&] { read_manifest(json.dump(), "x"); });
  };
  EXPECT_EQ(with("/step", 7), "");
  const std::pair<const char*, Json> wrong[] = {{"/step", -1},
                                                {"/step", 1.5},
                                                {"/serial", "1"},
                                                {"/shards", Json::array({1})},
                                                {"/shards", Json::array()},
                                                {"/shards", {{"bytes", 3}}},
                                                {"/shards/0/name", "../../rank_0000.h5"},
                                                {"/shards/0/name", ".."},
                                                {"/shards/0/bytes", -1},
                                                {"/shards/0/bytes", 100},
                                                {"/shards/0/pieces/0/0", 99},
                                                {"/shards/0/pieces/0/1/0", 1},
                                                {"/shards/0/pieces/0/2/0", std::int64_t{1} << 62},
                                                {"/shards/0/pieces/0/2", {13, 6, 1}},
                                                {"/shards/0/pieces/0/3", std::int64_t{1} << 62},
                                                {"/tensors/0/1", "fp8"},
                                                {"/tensors/0/2/0", 14},
                                                {"/tensors/0/2/0", std::int64_t{1} << 62},
                                                {"/tensors/0/2", {1, 1, 1, 1, 1, 1, 1, 1, 78}},
                                                {"/tensors/0/2/0", 1e80},
                                                {"/tensors/0/2", {0, std::int64_t{1} << 62, 8}},
                                                {"/tensors/0/0", "parameters/" + std::string(5000, 'x')},
                                                {"/tensors/0/0", "encoder.weight"},
                                                {"/tensors/0/0", "parameters/a/b"},
                                                {"/tensors/0/0", "parameters/blocks.0.cube"},
                                                {"/step", std::int64_t{1} << 62},
                                                {"/step", 1e80},
                                                {"/serial", 1e308},
                                                {"/extra", "seed"},
                                                {"/extra", Json::array()},
                                                {"/extra/layouts", {{"encoder.weight", 7}}},
                                                {"/extra/layouts", "shard"},
                                                {"/views/0", "parameters.h5"}};
  for (const auto& [pointer, value] : wrong) EXPECT_NE(with(pointer, value), "") << pointer << value;
}

TEST_F(Checkpoint, PiecesThatOverlapOrStandElsewhereAreRefused) {
  run_ranks(2, [&](Communicator& c) {
    save_checkpoint(folder_, case_manifest(1), case_pieces(c, 1, Cut::kFirstDim), c, {});
  });
  const std::string path = folder_ + "/step_00000001/manifest.json", text = text_of(path);
  const auto opened_with = [&](const std::function<void(Json&)>& edit) {
    Json json = Json::parse(text);
    json.erase("xxh64");
    edit(json);
    json["xxh64"] = digest_of_text(json.dump());
    put_text(path, json.dump());
    return open_error("step_00000001");
  };
  EXPECT_EQ(opened_with([](Json&) {}), "");
  // The second rank's rows 6 to 12 of the first tensor become 5 to 11: one twice, one never.
  const Json second = Json::parse(text).at("shards").at(1).at("pieces").at(0);
  ASSERT_EQ(second.at(0), 0);
  EXPECT_NE(opened_with([&](Json& json) {
              json["shards"][1]["pieces"][0][1][0] = second.at(1).at(0).get<int>() - 1;
            }).find("the pieces of the tensor parameters/encoder.weight do not make it up"),
            std::string::npos);
  // Two pieces of one size change places, or one stands where another does.
  const Json first = Json::parse(text).at("shards").at(0).at("pieces");
  EXPECT_NE(opened_with([&](Json& json) {
              json["shards"][0]["pieces"][0][3] = first.at(1).at(3);
            }).find("two pieces stand in the same place of the file rank_0000.h5"),
            std::string::npos);
  EXPECT_NE(opened_with([&](Json& json) {
              json["shards"][0]["pieces"][0][3] = first.at(0).at(3).get<int>() - 8;
            }).find(" is damaged: "),
            std::string::npos);
  EXPECT_NE(opened_with([&](Json& json) { json["shards"][1]["name"] = "rank_0000.h5"; }), "");
}

/// Whose digests of shards are those of all their bytes.
TEST_F(Checkpoint, OfTheFormatBeforeIsReadAndItsDamageNoticed) {
  save(1);
  const std::string folder = folder_ + "/step_00000001", shard = folder + "/rank_0000.h5";
  Json json = Json::parse(text_of(folder + "/manifest.json"));
  json.erase("xxh64");
  EXPECT_NE(json["shards"][0]["xxh64"], digest_of_text(text_of(shard)));
  json["format_version"] = 2;
  json["shards"][0]["xxh64"] = digest_of_text(text_of(shard));
  json["xxh64"] = digest_of_text(json.dump());
  put_text(folder + "/manifest.json", json.dump());
  expect_case(open_checkpoint(folder, *self_), 1, *self_, Cut::kLastDim);
  const std::string whole = text_of(shard);
  for (std::size_t at = 0; at < whole.size(); at += 97) {
    std::string damaged = whole;
    damaged[at] ^= 4;
    put_text(shard, damaged);
    EXPECT_NE(open_error("step_00000001").find("is damaged"), std::string::npos) << at;
  }
}

/// The digest of a shard as docs/checkpoints.md describes it.
TEST_F(Checkpoint, TheDigestOfAShardHasThoseOfItsPiecesInPlaceOfTheirBytes) {
  save(1);
  const FoundCheckpoint found = *newest();
  const ShardRecord& shard = found.stored.shards[0];
  const std::string bytes = text_of(found.path + "/" + shard.file.name);
  std::map<std::size_t, const PieceRecord*> pieces;
  for (const PieceRecord& piece : shard.pieces) pieces[static_cast<std::size_t>(piece.offset)] = &piece;
  std::string text;
  std::size_t at = 0;
  for (const auto& [offset, piece] : pieces) {
    const auto length = static_cast<std::size_t>(piece->box.extent.count() * size_of(piece->dtype));
    text += bytes.substr(at, offset - at) + digest_of_text(bytes.substr(offset, length));
    at = offset + length;
  }
  EXPECT_EQ(digest_of_text(text + bytes.substr(at)), shard.file.digest);
}

TEST_F(Checkpoint, LatestNamesACheckpointBesideIt) {
  save(1);
  for (const char* name : {"../elsewhere", "/etc", ".", "..", ""}) {
    put_text(folder_ + "/latest", name);
    EXPECT_EQ(open_error("latest"),
              concat(folder_, "/latest names ", Json(name).dump(), ", which is no checkpoint beside it"));
  }
}

TEST_F(Checkpoint, APointerToWhatIsGoneNamesThoseThere) {
  save(1);
  put_text(folder_ + "/best", "step_00000300");
  EXPECT_EQ(open_error("best"),
            folder_ + "/best names step_00000300, which is not there any more; beside it is step_00000001");
  for (int step = 2; step < 9; ++step)
    std::filesystem::create_directory(concat(folder_, "/step_0000000", step));
  EXPECT_EQ(open_error("best"),
            folder_ +
                "/best names step_00000300, which is not there any more; beside it are step_00000003, "
                "step_00000004, step_00000005, step_00000006, step_00000007, step_00000008 and 2 of "
                "earlier steps");
  for (int step = 1; step < 9; ++step) std::filesystem::remove_all(concat(folder_, "/step_0000000", step));
  put_text(folder_ + "/latest", "step_00000001");
  EXPECT_EQ(error_of([&] { checkpoint_at(folder_); }),
            folder_ + "/latest names step_00000001, which is not there any more; no checkpoint is beside it");
}

TEST_F(Checkpoint, APipeInPlaceOfTheManifestIsNotWaitedFor) {
  save(1);
  const std::string path = folder_ + "/step_00000001/manifest.json";
  fs::remove(path);
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_NE(error_of([&] {
              as_checkpoint_error([&] { open_checkpoint(folder_ + "/step_00000001", *self_); });
            }).find("it is a pipe, not a regular file"),
            std::string::npos);
}

TEST_F(Checkpoint, TheFirstTensorThatDiffersIsNamed) {
  save(1);
  const auto says = [&](const std::vector<TensorRecord>& expected, const std::string& what) {
    const std::string error = error_of([&] { check_tensors(*newest(), expected); });
    EXPECT_NE(error.find(what), std::string::npos) << error;
  };
  auto expected = case_tensors();
  expected[4].dtype = DType::kFloat32;
  says(expected,
       "holds \"adamw.moment1/encoder.weight\" of shape [13, 6] in fp64 where this run has "
       "\"adamw.moment1/encoder.weight\" of shape [13, 6] in fp32");
  expected[1].shape = {3, 4, 6};
  says(expected,
       "holds \"parameters/blocks.0.cube\" of shape [3, 4, 5] in fp32 where this run has "
       "\"parameters/blocks.0.cube\" of shape [3, 4, 6] in fp32");
  expected[0].name = "parameters/decoder.weight";
  says(expected, "holds no such tensor where this run has \"parameters/decoder.weight\" of shape [13, 6]");
  expected = case_tensors();
  expected.erase(expected.begin());
  says(expected,
       "holds \"parameters/encoder.weight\" of shape [13, 6] in fp32 where this run has no such tensor");
  expected = {case_tensors()[0], case_tensors()[1], case_tensors()[2]};
  EXPECT_EQ(error_of([&] { check_tensors(*newest(), expected); }), "") << "groups that are not asked for";
}

TEST_F(Checkpoint, PiecesThatAreNotThereAreRefused) {
  save(1);
  auto pieces = case_pieces(*self_, 1, Cut::kRuns);
  pieces[0].tensor = "parameters/other";
  EXPECT_NE(error_of([&] {
              read_pieces(*newest(), pieces, *self_);
            }).find("does not hold all of \"parameters/other\""),
            std::string::npos);
}

// HDF5 takes a second block of metadata, behind the data, only when the first was too small.
TEST_F(Checkpoint, TheDescriptionOfManyPiecesStandsBeforeThem) {
  constexpr int kPieces = 500;
  std::vector<CheckpointPiece> pieces;
  for (int i = 0; i < kPieces; ++i) {
    pieces.push_back({concat("parameters/blocks.", i, ".attention.projection.weight"),
                      {20, 5},
                      Box::whole({20, 5}),
                      testing::random_array(context_, {100}, DType::kFloat32, i)});
  }
  save_checkpoint(folder_, case_manifest(1), pieces, *self_, {});
  EXPECT_LT(fs::file_size(folder_ + "/step_00000001/rank_0000.h5"), kPieces * (400 + 2100) + 100'000);
  auto loaded = pieces;
  for (CheckpointPiece& piece : loaded) piece.array = Array::zeros(context_, {100}, DType::kFloat32);
  read_pieces(*newest(), loaded, *self_);
  for (int i = 0; i < kPieces; ++i) {
    ASSERT_EQ(testing::values_of(loaded[i].array), testing::values_of(pieces[i].array));
  }
}

}  // namespace
}  // namespace jigsaw
