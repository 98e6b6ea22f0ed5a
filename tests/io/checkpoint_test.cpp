#include "io/checkpoint.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <limits>

#include "base/file.h"
#include "comm/self/self.h"
#include "comm/thread/run_ranks.h"
#include "support/arrays.h"
#include "support/small_disk.h"
#include "support/temporary_folder.h"

namespace jigsaw {
namespace {

namespace fs = std::filesystem;
using testing::put_text;
using testing::SmallDisk;
using testing::TemporaryFolder;
using testing::text_of;

/// What rank `rank` has at a step: uneven, partly empty, in both types; every number tells where it is from.
std::vector<CheckpointPiece> pieces_at(const Context& context, int rank, std::int64_t step) {
  const auto piece = [&](const char* name, std::int64_t count, DType dtype, double first) {
    std::vector<double> values;
    for (std::int64_t i = 0; i < count; ++i) values.push_back(first + rank * 0.5 + static_cast<double>(i));
    return CheckpointPiece{name, testing::array_of(context, {count}, dtype, values)};
  };
  const auto start = static_cast<double>(1000 * step);
  return {piece("parameters/blocks.0", 7 + rank, DType::kFloat32, start),
          piece("parameters/blocks.1", rank == 1 ? 0 : 3, DType::kFloat32, start + 0.25),
          piece("adamw.m", 2000, DType::kFloat64, start + 1.0 / 3)};
}

CheckpointManifest manifest_at(std::int64_t step) {
  return {step,
          {{"data", 1}, {"domain", {2, 1}}},
          {{"seed", std::numeric_limits<std::uint64_t>::max()}, {"loss", 0.1}, {"name", "A \"b\"\n\u00e9"}}};
}

void zero(std::vector<CheckpointPiece>& pieces) {
  for (CheckpointPiece& piece : pieces) std::fill_n(piece.array.raw(), piece.array.bytes(), std::byte{0});
}

void expect_state_of(const FoundCheckpoint& found, std::int64_t step, Communicator& communicator) {
  EXPECT_EQ(found.manifest.step, step);
  EXPECT_EQ(found.manifest.mesh, manifest_at(step).mesh);
  EXPECT_EQ(found.manifest.extra, manifest_at(step).extra);
  const auto expected = pieces_at(communicator.context(), communicator.rank(), step);
  auto loaded = pieces_at(communicator.context(), communicator.rank(), step);
  zero(loaded);
  load_checkpoint(found, loaded, communicator);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(testing::values_of(loaded[i].array), testing::values_of(expected[i].array)) << expected[i].name;
  }
}

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const CheckpointError& error) {
    return error.what();
  }
  return "";
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

using Names = std::vector<std::string>;

/// One rank and a folder; saves are of pieces_at(step).
class Checkpoint : public ::testing::Test {
 protected:
  void save(std::int64_t step, int keep = 3) {
    save_checkpoint(folder_, manifest_at(step), pieces_at(context_, 0, step), *self_, keep);
  }
  std::optional<FoundCheckpoint> newest() {
    warnings_.clear();
    return newest_checkpoint(folder_, *self_, warnings_);
  }
  std::int64_t newest_step() {
    const auto found = newest();
    return found ? found->manifest.step : -1;
  }
  std::string open_error(const std::string& name) {
    return error_of([&] { open_checkpoint(folder_ + "/" + name, *self_); });
  }
  std::string load_error(std::vector<CheckpointPiece> pieces) {
    return error_of([&] { load_checkpoint(*newest(), pieces, *self_); });
  }

  TemporaryFolder temporary_;
  std::string folder_ = temporary_.path() + "/checkpoints";
  Context context_ = Context::make_host(Backend::kReference, 1);
  std::unique_ptr<Communicator> self_ = make_self_communicator(context_);
  std::vector<std::string> warnings_;
};

TEST(CheckpointRanks, EveryRankGetsItsPiecesBack) {
  for (const int ranks : {1, 2, 3}) {
    const TemporaryFolder folder;
    run_ranks(ranks, [&](Communicator& communicator) {
      std::vector<std::string> warnings;
      EXPECT_FALSE(newest_checkpoint(folder.path(), communicator, warnings));
      for (const std::int64_t step : {100, 200}) {
        save_checkpoint(folder.path(), manifest_at(step),
                        pieces_at(communicator.context(), communicator.rank(), step), communicator, 3);
      }
      const auto found = newest_checkpoint(folder.path(), communicator, warnings);
      ASSERT_TRUE(found);
      EXPECT_EQ(found->path, folder.path() + "/step_00000200");
      expect_state_of(*found, 200, communicator);
      expect_state_of(open_checkpoint(folder.path() + "/step_00000100", communicator), 100, communicator);
      EXPECT_EQ(warnings, Names{});
    });
    EXPECT_EQ(names_in(folder.path()), (Names{"latest", "step_00000100", "step_00000200"}));
    EXPECT_EQ(text_of(folder.path() + "/latest"), "step_00000200");
    EXPECT_EQ(names_in(folder.path() + "/step_00000200").size(), static_cast<std::size_t>(ranks) + 1);
  }
}

TEST(CheckpointRanks, AnotherNumberOfRanksIsRefused) {
  const TemporaryFolder folder;
  const auto pieces = [](Communicator& c) { return pieces_at(c.context(), c.rank(), 5); };
  run_ranks(2, [&](Communicator& c) { save_checkpoint(folder.path(), manifest_at(5), pieces(c), c, 1); });
  run_ranks(3, [&](Communicator& c) {
    auto wanted = pieces(c);
    const auto found = open_checkpoint(folder.path() + "/step_00000005", c);
    EXPECT_EQ(error_of([&] { load_checkpoint(found, wanted, c); }),
              "the checkpoint " + folder.path() +
                  "/step_00000005 was saved by 2 ranks and cannot be loaded by 3; start as many");
  });
}

TEST(CheckpointRanks, WhatOneRankFindsAllRanksThrow) {
  const TemporaryFolder folder;
  const auto pieces = [](Communicator& c) { return pieces_at(c.context(), c.rank(), 5); };
  run_ranks(3, [&](Communicator& c) { save_checkpoint(folder.path(), manifest_at(5), pieces(c), c, 1); });
  run_ranks(3, [&](Communicator& c) {
    auto wanted = pieces(c);
    if (c.rank() == 2) wanted[0].name = "parameters/blocks.9";
    const auto found = open_checkpoint(folder.path() + "/step_00000005", c);
    const std::string error = error_of([&] { load_checkpoint(found, wanted, c); });
    EXPECT_NE(error.find("rank_0002.h5 holds \"parameters/blocks.0\" of 9 fp32 where this run has "
                         "\"parameters/blocks.9\" of 9 fp32"),
              std::string::npos)
        << error;
  });
  const std::string shard = folder.path() + "/step_00000005/rank_0001.h5";
  std::string bytes = text_of(shard);
  bytes[bytes.size() / 2] ^= 1;
  put_text(shard, bytes);
  run_ranks(2, [&](Communicator& c) {
    EXPECT_EQ(error_of([&] { open_checkpoint(folder.path() + "/step_00000005", c); }),
              "the checkpoint file " + shard + " is damaged: its digest does not fit");
  });
}

TEST(CheckpointRanks, AFullDiskOnOneRankLeavesWhatWasThere) {
  const TemporaryFolder folder;
  const auto save = [&](std::int64_t step, std::int64_t count) {
    run_ranks(2, [&](Communicator& c) {
      auto pieces = pieces_at(c.context(), c.rank(), step);
      const Shape shape{c.rank() == 1 ? count : 1};
      pieces.push_back({"large", Array::zeros(c.context(), shape, DType::kFloat32)});
      save_checkpoint(folder.path(), manifest_at(step), pieces, c, 1);
    });
  };
  save(100, 10);
  {
    const SmallDisk disk(200'000);
    const std::string error = error_of([&] { save(200, 100'000); });
    EXPECT_EQ(error, "the checkpoint of step 200 cannot be saved: cannot write " + folder.path() +
                         "/.tmp-step_00000200/rank_0001.h5: File too large");
  }
  EXPECT_EQ(names_in(folder.path()), (Names{"latest", "step_00000100"}));
  save(300, 10);
  EXPECT_EQ(names_in(folder.path()), (Names{"latest", "step_00000300"}));
}

TEST_F(Checkpoint, AFullDiskAtAnyByteLeavesWhatWasThere) {
  save(100);
  for (const rlim_t bytes : {0, 1, 90, 500, 1000, 5000, 18000, 30000}) {
    const SmallDisk disk(bytes);
    EXPECT_NE(error_of([&] { save(200); }), "") << bytes;
    EXPECT_EQ(names_in(folder_), (Names{"latest", "step_00000100"})) << bytes;
  }
  auto manifest = manifest_at(200);
  manifest.extra["large"] = std::string(300'000, 'x');
  const auto pieces = pieces_at(context_, 0, 200);
  {
    const SmallDisk disk(200'000);
    EXPECT_EQ(error_of([&] { save_checkpoint(folder_, manifest, pieces, *self_, 1); }),
              "the checkpoint of step 200 cannot be saved: cannot write " + folder_ +
                  "/.tmp-step_00000200/manifest.json.tmp: File too large");
  }
  EXPECT_EQ(names_in(folder_), (Names{"latest", "step_00000100"}));
  EXPECT_EQ(newest_step(), 100);
  save_checkpoint(folder_, manifest, pieces, *self_, 1);
  EXPECT_EQ(newest_step(), 200);
}

TEST_F(Checkpoint, APathThatIsAFileIsRefused) {
  put_text(folder_, "");
  EXPECT_NE(error_of([&] { save(1); }).find("the checkpoint of step 1 cannot be saved: "), std::string::npos);
  EXPECT_EQ(newest_step(), -1);
}

TEST_F(Checkpoint, TheStepThatExistsIsReplaced) {
  save(7);
  const auto pieces = pieces_at(context_, 0, 8);
  save_checkpoint(folder_, manifest_at(7), pieces, *self_, 3);
  EXPECT_EQ(names_in(folder_), (Names{"latest", "step_00000007"}));
  auto loaded = pieces_at(context_, 0, 7);
  load_checkpoint(*newest(), loaded, *self_);
  EXPECT_EQ(testing::values_of(loaded[0].array), testing::values_of(pieces[0].array));
}

TEST_F(Checkpoint, TheOneReplacedIsFoundWhileTheNewOneHasNoName) {
  save(7);
  fs::rename(folder_ + "/step_00000007", folder_ + "/step_00000007.old");  // and here the machine died
  ASSERT_EQ(newest_step(), 7);
  expect_state_of(*newest(), 7, *self_);
  save(7);
  EXPECT_EQ(names_in(folder_), (Names{"latest", "step_00000007"}));
}

TEST_F(Checkpoint, KeepsThoseSavedLast) {
  for (const std::int64_t step : {100, 200, 300, 400}) save(step, 2);
  EXPECT_EQ(names_in(folder_), (Names{"latest", "step_00000300", "step_00000400"}));
  save(50, 2);  // the run was taken back
  EXPECT_EQ(names_in(folder_), (Names{"latest", "step_00000050", "step_00000400"}));
  EXPECT_EQ(newest_step(), 50);
}

TEST_F(Checkpoint, LeftoversAndFoldersThatAreNotWholeDoNotCount) {
  save(100);
  save(200);
  fs::create_directories(folder_ + "/.tmp-step_00000300/x");
  fs::create_directories(folder_ + "/step_00000900");
  EXPECT_EQ(newest_step(), 200);
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_EQ(warnings_[0],
            folder_ + "/step_00000900 is not a whole checkpoint: it has no manifest.json; it is passed over");
  save(300, 2);
  EXPECT_EQ(names_in(folder_), (Names{"latest", "step_00000200", "step_00000300", "step_00000900"}));
}

TEST_F(Checkpoint, DamageIsNoticedAndTheOneBeforeIsFound) {
  save(100);
  save(200);
  const std::string folder = folder_ + "/step_00000200";
  for (const char* name : {"manifest.json", "rank_0000.h5"}) {
    const std::string path = folder + "/" + name, whole = text_of(path);
    for (std::size_t at = 0; at < whole.size(); at += 1 + whole.size() / 97) {
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
  EXPECT_EQ(open_error("step_00000002"), "there is no checkpoint " + folder_ + "/step_00000002");
  for (const char* text : {"", "{", "null", "[]", "{}", "{\"format_version\": \"x\"}", "\xff\xfe",
                           "{\"format_version\": 1}", "{\"format_version\": 1, \"xxh64\": \"\"}"}) {
    put_text(folder_ + "/step_00000001/manifest.json", text);
    const std::string error = open_error("step_00000001");
    EXPECT_NE(error.find("step_00000001/manifest.json is not a whole manifest of a checkpoint: "),
              std::string::npos)
        << text << ": " << error;
    EXPECT_EQ(error.find('\n'), std::string::npos);
  }
  put_text(folder_ + "/step_00000001/manifest.json", "{\"format_version\": 2, \"new\": true}");
  EXPECT_NE(open_error("step_00000001").find("is of format version 2, this program reads version 1; "),
            std::string::npos);
}

TEST_F(Checkpoint, ManifestsOfTheRightDigestAndTheWrongFieldsAreRefused) {
  const std::string text = write_manifest(manifest_at(1), 1, {});
  EXPECT_EQ(read_manifest(text, "x").serial, 1);
  for (const auto& [key, value] : std::vector<std::pair<const char*, Json>>{{"step", -1},
                                                                            {"step", 1.5},
                                                                            {"serial", "1"},
                                                                            {"shards", Json::array({1})},
                                                                            {"shards", {{"bytes", 3}}}}) {
    Json json = Json::parse(text);
    json.erase("xxh64");
    json[key] = value;
    json["xxh64"] = digest_of_text(json.dump());
    EXPECT_NE(error_of([&] { read_manifest(json.dump(), "x"); }), "") << key << value;
  }
}

TEST_F(Checkpoint, TheFirstPieceThatDiffersIsNamed) {
  save(1);
  const auto pieces = pieces_at(context_, 0, 1);
  const auto says = [&](const std::vector<CheckpointPiece>& wanted, const std::string& what) {
    const std::string error = load_error(wanted);
    EXPECT_NE(error.find(what), std::string::npos) << error;
  };
  auto wanted = pieces;
  wanted[2].array = testing::random_array(context_, {2000}, DType::kFloat32, 1);
  says(wanted, "holds \"adamw.m\" of 2000 fp64 where this run has \"adamw.m\" of 2000 fp32");
  wanted[1].array = testing::random_array(context_, {4}, DType::kFloat32, 1);
  says(wanted,
       "holds \"parameters/blocks.1\" of 3 fp32 where this run has \"parameters/blocks.1\" of 4 fp32");
  wanted = pieces;
  wanted.pop_back();
  says(wanted, "holds \"adamw.m\" of 2000 fp64 where this run has no further piece");
  wanted = pieces;
  wanted.push_back(pieces[0]);
  says(wanted, "holds no further piece where this run has \"parameters/blocks.0\" of 7 fp32");
}

TEST_F(Checkpoint, ShardsOfOtherShapesAreRefusedByThemselves) {
  save(1);
  const std::string shard = folder_ + "/step_00000001/rank_0000.h5";
  auto pieces = pieces_at(context_, 0, 1);
  pieces[0].array = testing::random_array(context_, {6}, DType::kFloat32, 1);
  EXPECT_NE(error_of([&] { read_shard(shard, pieces); }).find("does not hold 6 numbers of fp32"),
            std::string::npos);
  pieces[0].name = "other";
  EXPECT_NE(error_of([&] { read_shard(shard, pieces); }).find("HDF5 cannot find the piece \"other\" in "),
            std::string::npos);
  put_text(shard, "not HDF5");
  EXPECT_EQ(error_of([&] { read_shard(shard, pieces); }), "HDF5 cannot open " + shard);
  EXPECT_NE(error_of([&] {
              save_checkpoint(folder_, manifest_at(2), {pieces[0], pieces[0]}, *self_, 1);
            }).find("HDF5 cannot create the piece \"other\""),
            std::string::npos);
}

// HDF5 takes a second block of metadata, behind the data, only when the first was too small.
TEST_F(Checkpoint, TheDescriptionOfManyPiecesStandsBeforeThem) {
  constexpr int kPieces = 500;
  std::vector<CheckpointPiece> pieces;
  for (int i = 0; i < kPieces; ++i) {
    const std::string name = "model/blocks." + std::to_string(i) + "/adamw.m/fp32";
    pieces.push_back({name, testing::random_array(context_, {100}, DType::kFloat32, i)});
  }
  const std::string path = temporary_.path() + "/many.h5";
  write_shard(path, pieces);
  EXPECT_LT(fs::file_size(path), kPieces * (400 + 8192) + 100'000);
  auto loaded = pieces;
  for (CheckpointPiece& piece : loaded) piece.array = Array::zeros(context_, {100}, DType::kFloat32);
  read_shard(path, loaded);
  for (int i = 0; i < kPieces; ++i) {
    ASSERT_EQ(testing::values_of(loaded[i].array), testing::values_of(pieces[i].array));
  }
}

/// A child saves on and on, every second time the same step, and is killed at any moment.
TEST_F(Checkpoint, KilledAtAnyMomentTheLastOneIsWhole) {
  save(1);
  std::int64_t last = 1;
  for (int round = 0; round < 12; ++round) {
    const pid_t child = ::fork();
    if (child == 0) {
      for (std::int64_t step = last + 1;; ++step) {
        save(step, 1 + round % 2);
        save(step, 1 + round % 2);
      }
    }
    ::usleep(static_cast<useconds_t>(15'000 + 1'700 * round));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the child ended by itself";
    const auto found = newest();
    ASSERT_TRUE(found);
    EXPECT_EQ(warnings_, Names{});
    EXPECT_GE(found->manifest.step, last);
    last = found->manifest.step;
    expect_state_of(*found, last, *self_);
  }
  EXPECT_GT(last, 1) << "no child came to save anything";
}

}  // namespace
}  // namespace jigsaw
