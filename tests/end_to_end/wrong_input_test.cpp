// Wrong input ends in one clear sentence and the documented exit code, on one rank and under mpirun.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <sstream>

#include "end_to_end/command.h"

namespace jigsaw::e2e {
namespace {

struct WrongInput {
  const char* name;
  const char* arguments;  ///< after --config FILE --set output=…
  int exit_code;
  const char* says;  ///< part of the sentence
};

void PrintTo(const WrongInput& wrong, std::ostream* out) {
  *out << wrong.name;
}

const WrongInput kCases[] = {
    {"missing_file", "--set 'data.files=[\"nowhere.nc\"]'", 3, "nowhere.nc"},
    {"unknown_key", "--set optimizer.learning_rte=1", 2, "did you mean \"learning_rate\""},
    {"key_of_another_section", "--set train.learning_rate=1", 2, "did you mean \"optimizer.learning_rate\""},
    {"key_of_the_same_section", "--set 'data.transforms={\"t2m\":{\"type\":\"log\",\"eps\":1}}'", 2,
     "did you mean \"epsilon\""},
    {"empty_name_of_a_file", "--set data.files=", 2, "data.files must hold names or patterns of files"},
    {"empty_name_of_a_checkpoint", "--set data.normalization=", 2,
     "data.normalization must be null, \"auto\" or the name of a file or a checkpoint"},
    {"statistics_of_another_format", "--set data.normalization=/bin/sh", 3,
     "data.normalization takes a JSON file of statistics, or a checkpoint"},
    {"lead_between_the_times", "--set 'data.input_hours=[0]' --set data.lead_hours=6 --set data.time_step=4",
     2, "data.lead_hours must be a multiple of data.time_step"},
    {"folder_of_files", "--set 'data.files=[/tmp]'", 3, "/tmp is a folder, not a file; name the files in it"},
    {"option_misspelt", "--resum auto", 2, "there is no option --resum (did you mean \"--resume\"?)"},
    {"wrong_type", "--set 'train.steps=\"ten\"'", 2, "train.steps"},
    {"mesh_beyond_all_machines", "--set 'mesh={\"data\":65536,\"domain\":[65536,1]}'", 2,
     "mesh.data and the other axes make more than 1048576 ranks"},
    {"mesh_that_does_not_fit", "--set 'mesh={\"domain\":[5,1]}'", 2, "mesh"},
    {"variable_not_in_the_file", "--set 'data.variables=[\"t3m\"]'", 3, "t3m"},
    {"patch_larger_than_the_grid", "--set 'model.patch=[300,7]'", 2, "model.patch"},
    {"empty_period", "--set 'data.train=[\"1999-01-01\",\"1999-01-02\"]'", 3, "data.train"},
    {"pattern_that_matches_no_parameter", "--set 'optimizer.groups=[{\"match\":\"decodr.*\"}]'", 2,
     "optimizer.groups[0].match"},
    {"pattern_of_which_nothing_is_left",
     "--set 'optimizer.groups=[{\"match\":\"*\"},{\"match\":\"decoder.*\",\"learning_rate\":1}]'", 2,
     "optimizer.groups[1].match \"decoder.*\" has no effect"},
    {"model_without_parameters",
     "--set data.input_hours=[0] --set data.forcings=[] --set "
     "'model={\"type\":\"sequential\",\"layers\":[{\"type\":\"gelu\"}]}'",
     2, "model has no parameters"},
    {"links_of_other_axes",
     "--set 'machine={\"flops_per_second\":1e9,\"memory_bytes_per_second\":1e9,\"links\":["
     "{\"bytes_per_second\":1e9,\"latency_seconds\":0},{\"bytes_per_second\":1e9,\"latency_seconds\":0}]}'",
     2, "machine.links: there are 2; there should be one for all axes of the mesh, or 4"},
    {"unknown_model", "--set model.type=weathermixr", 2, "weathermixer"},
    {"heads_that_do_not_divide_the_width",
     "--set 'model={\"type\":\"vit\",\"patch\":[3,7],\"embed_dim\":96,\"depth\":1,\"heads\":5}'", 2,
     "model.heads must cut the width 96 into heads of at most 256 channels, and is 5; use 4"},
    {"window_that_does_not_tile_the_grid",
     "--set "
     "'model={\"type\":\"swin\",\"patch\":[3,7],\"embed_dim\":96,\"depth\":1,\"heads\":4,\"window\":[4,7]}'",
     2, "model.window [4, 7] does not tile the grid"},
    {"patches_that_leave_points_out", "--set 'model.patch=[3,7]' --set 'model.patch_kernel=[2,9]'", 2,
     "model.patch_kernel [2, 9] must cover the patch [3, 7] along each axis; use [3, 9]"},
    {"forcings_that_do_not_tell_the_time",
     "--set model.time_embedding=true --set 'data.forcings=[\"latitude\"]'", 2, "model.time_embedding needs"},
    {"best_without_checkpoints", "--set checkpoint.best=loss --set checkpoint.every=0", 2, "checkpoint.best"},
    {"fp64_on_cuda", "--set device=cuda --set train.precision=fp64", 2, "device must be"},
    {"key_of_another_optimizer", "--set optimizer.momentum=0.5", 2, "unknown key optimizer.momentum"},
    {"width_beyond_all_machines", "--set model.embed_dim=4611686018427387904", 2,
     "model.embed_dim must be between 1 and 1048576"},
    {"width_beyond_this_machine", "--set model.embed_dim=1048576", 2, "model.embed_dim and model.depth: "},
    {"depth_beyond_all_machines", "--set model.depth=1000000", 2, "model.depth must be between 1 and 10000"},
    {"batch_beyond_all_machines", "--set train.batch_size=4611686018427387904", 2,
     "train.batch_size must be"},
    {"batch_beyond_this_machine", "--set train.batch_size=1000000000", 2, "might fit"},
    {"grids_that_grow_beyond_all_machines",
     "--set 'model={\"type\":\"sequential\",\"layers\":[{\"type\":\"upsample\",\"scale\":1000000},"
     "{\"type\":\"upsample\",\"scale\":1000000},{\"type\":\"upsample\",\"scale\":1000000},"
     "{\"type\":\"upsample\",\"scale\":1000000}]}'",
     2, "model.layers[0] makes"},
    {"nothing_to_begin_with", "--init-from ''", 2, "--init-from"},
    {"unknown_option", "--confg x", 2, "--confg"},
};

class WrongInputTest : public ::testing::TestWithParam<std::tuple<WrongInput, int>> {};

TEST_P(WrongInputTest, IsOneSentenceAndTheDocumentedExitCode) {
  const auto& [wrong, ranks] = GetParam();
  const TemporaryFolder folder;
  folder.write("config.json", small_config(folder).dump());
  const Outcome outcome = run(ranks, "--config " + (folder / "config.json") +
                                         " --set output=" + (folder / "run") + " " + wrong.arguments);
  EXPECT_EQ(outcome.exit_code, wrong.exit_code) << outcome.err;
  ASSERT_EQ(outcome.errors().size(), 1U) << outcome.err;
  EXPECT_NE(outcome.errors()[0].find(wrong.says), std::string::npos) << outcome.err;
}
INSTANTIATE_TEST_SUITE_P(Cases, WrongInputTest,
                         ::testing::Combine(::testing::ValuesIn(kCases), ::testing::Values(1, 3)));

TEST(Documentation, OfEveryKeyIsWhatTheDeclarationsSay) {
  std::ifstream in(source_dir() + "/docs/configuration.md");
  std::istringstream declared(run(1, "config --markdown").out);
  const char* renew = "renew it with: jigsaw-train config --markdown > docs/configuration.md";
  std::string line, expected;
  while (std::getline(declared, expected)) {
    ASSERT_TRUE(std::getline(in, line)) << renew;
    ASSERT_EQ(line, expected) << renew;
  }
  EXPECT_FALSE(std::getline(in, line)) << renew;
}

TEST(WrongInput, MisspeltCommandsAreNoFiles) {
  for (const char* arguments : {"trian --config x.json", "trian"}) {
    const Outcome outcome = run(1, arguments);
    EXPECT_EQ(outcome.exit_code, 2);
    ASSERT_EQ(outcome.errors().size(), 1U) << outcome.err;
    EXPECT_NE(outcome.errors()[0].find("trian is neither a command nor a file (did you mean \"train\"?)"),
              std::string::npos)
        << outcome.err;
  }
}

TEST(WrongInput, NumbersOutOfRangeAreOneShortSentence) {
  const Outcome outcome = run(1, "sweep --config x.json --grid y.json --index -1");
  EXPECT_EQ(outcome.exit_code, 2);
  ASSERT_EQ(outcome.errors().size(), 1U) << outcome.err;
  EXPECT_NE(outcome.errors()[0].find("must be a number of at least 0, not -1"), std::string::npos)
      << outcome.err;
}

TEST(WrongInput, FilesOfOtherKindsSayHowToConvertThem) {
  const TemporaryFolder folder;
  folder.write("config.json", small_config(folder).dump());
  folder.write("a.grib", "GRIB....");
  folder.write("b.tif", std::string("II*\0....", 8));
  const auto error = [&](const std::string& file) {
    const Outcome outcome =
        run(1, (folder / "config.json") + " --set 'data.files=[" + (folder / file) + "]'");
    EXPECT_EQ(outcome.exit_code, 3) << outcome.err;
    return outcome.errors().empty() ? "" : outcome.errors()[0];
  };
  // A build with ecCodes reads such files, this one not.
  const std::string grib = error("a.grib");
  EXPECT_NE(grib.find(JIGSAW_READS_GRIB ? "its message at byte 0 is of edition 46"
                                        : "a GRIB file; convert it with: cdo -f nc4 copy " +
                                              (folder / "a.grib") + " " + (folder / "a.nc")),
            std::string::npos)
      << grib;
  EXPECT_NE(error("b.tif").find("a TIFF file; convert it with: gdal_translate"), std::string::npos);
  // A format of images.
  std::filesystem::copy_file(source_dir() + "/tests/io/fixtures/images/volume.nii", folder / "c.nii");
  const std::string nifti = error("c.nii");
  EXPECT_NE(nifti.find(" file but a NIfTI file"), std::string::npos) << nifti;
}

/// The process of its own that reads headers first ends, and not the run.
TEST(WrongInput, AFileThatEndsWhoeverReadsItsHeaderIsNamed) {
  const TemporaryFolder folder;
  folder.write("config.json", small_config(folder).dump());
  for (const int ranks : {1, 2}) {
    const std::string file = folder / ("deadly" + std::to_string(ranks) + ".nc");
    std::filesystem::copy_file(source_dir() + "/tests/io/fixtures/packed.nc", file);
    ASSERT_EQ(setenv("JIGSAW_DEADLY_FILE", "/deadly", 1), 0);
    Running running(ranks,
                    "--config " + (folder / "config.json") + " --set output=" + (folder / "run") +
                        " --set 'data.files=[" + file + "]'",
                    JIGSAW_TRAIN_CRASHING);
    unsetenv("JIGSAW_DEADLY_FILE");
    const Outcome outcome = running.collect();
    EXPECT_EQ(outcome.exit_code, 3) << outcome.err;
    ASSERT_EQ(outcome.errors().size(), 1U) << outcome.err;
    EXPECT_NE(outcome.errors()[0].find("cannot read " + file +
                                       ": reading its header ended a process by signal 9 (Killed)"),
              std::string::npos)
        << outcome.err;
  }
}

TEST(WrongInput, AZarrStoreThatIsNestedDeeplyIsADataError) {
  const TemporaryFolder folder;
  folder.write("config.json", small_config(folder).dump());
  std::filesystem::create_directories(folder / "a.zarr/x");
  folder.write("a.zarr/.zgroup", R"({"zarr_format": 2})");
  folder.write("a.zarr/x/.zarray", std::string(200000, '[') + std::string(200000, ']'));
  const Outcome outcome =
      run(1, "check " + (folder / "config.json") + " --set 'data.files=[" + (folder / "a.zarr") + "]'");
  EXPECT_EQ(outcome.exit_code, 3) << outcome.err;
  ASSERT_EQ(outcome.errors().size(), 1U) << outcome.err;
  EXPECT_NE(outcome.errors()[0].find("/x/.zarray: objects and lists are nested deeper than 100 levels"),
            std::string::npos)
      << outcome.err;
}

TEST(WrongInput, AConfigurationNeedsNoOption) {
  const TemporaryFolder folder;
  Json config = small_config(folder);
  config["$schema"] = "schema.json";
  folder.write("config.json", config.dump());
  for (const char* how : {"", "-c ", "train ", "train -c "}) {
    const Outcome outcome =
        run(1, how + (folder / "config.json") + " --set train.steps=1 --set output=" + (folder / "run") +
                   " --resume never");
    EXPECT_EQ(outcome.exit_code, 0) << how << outcome.err;
  }
  EXPECT_EQ(run(1, "check " + (folder / "config.json")).exit_code, 0);
  // What a run writes is a configuration, for editors too.
  EXPECT_EQ(run(1, "check " + (folder / "run/config.json")).exit_code, 0);
  const Json schema = Json::parse(run(1, "config --schema").out),
             written = Json::parse(read(folder / "run/config.json"));
  for (const auto& [key, value] : written.items()) EXPECT_TRUE(schema.at("properties").contains(key)) << key;
  EXPECT_EQ(run(1, "export --checkpoint x --output y " + (folder / "config.json")).exit_code, 2);
}

TEST(WrongInput, WhatStandsBeforeACommandOrIsSwallowedIsSaid) {
  const TemporaryFolder folder;
  folder.write("config.json", small_config(folder).dump());
  const std::string config = folder / "config.json";
  const std::pair<std::string, std::string> cases[] = {
      {"--set train.steps=3 check " + config, "--set stands before the command check"},
      {"--quiet plan " + config + " --ranks 2", "--quiet stands before the command plan"},
      {"--config " + config + " check", "--config stands before the command check"},
      {config + " check", "stands before the command check"},
      {"predict --checkpoint run " + config + " --output f.nc",
       config + " was taken for a value of --checkpoint"},
      {"check " + config + " --set output=~/run", "would be a folder called ~"}};
  for (const auto& [arguments, says] : cases) {
    const Outcome outcome = run(1, arguments);
    EXPECT_EQ(outcome.exit_code, 2) << arguments << outcome.err;
    ASSERT_EQ(outcome.errors().size(), 1U) << arguments << outcome.err;
    EXPECT_NE(outcome.errors()[0].find(says), std::string::npos) << outcome.err;
  }
  EXPECT_EQ(run(1, "help check").out, run(1, "check --help").out);
  EXPECT_EQ(run(1, "help").out, run(1, "--help").out);
  // A home that begins a pattern is that of whoever runs this.
  ::setenv("HOME", folder.path().c_str(), 1);
  const Outcome home = run(1, "check " + config + " --set 'data.files=[\"~/none*.nc\"]'");
  EXPECT_NE(home.err.find("no file matches \"" + (folder / "none*.nc")), std::string::npos) << home.err;
}

TEST(WrongInput, MissingConfigurationFile) {
  const Outcome outcome = run(1, "--config nowhere.json");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.errors().size(), 1U) << outcome.err;
}

TEST(WrongInput, APipeIsNotWaitedFor) {
  const TemporaryFolder folder;
  const std::string pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  folder.write("config.json", small_config(folder).dump());
  std::filesystem::create_directories(folder / "run");
  ASSERT_EQ(::mkfifo((folder / "run/metrics.jsonl").c_str(), 0600), 0);
  const std::pair<std::string, int> commands[] = {
      {"--config " + pipe, 2},
      {"plan --config " + (folder / "config.json") + " --ranks 2 --machine " + pipe, 2},
      {"plan --ranks 2 --config " + pipe, 2},
      {"verify --ranks 2 --config " + pipe, 2},
      {"inspect " + pipe, 3},
      {"report " + (folder / "run") + " --output " + (folder / "page.html"), 3},
      {"import --input " + pipe + " --output " + (folder / "out"), 3},
      {"sweep --list --config " + (folder / "config.json") + " --grid " + pipe, 2}};
  for (const auto& [arguments, code] : commands) {
    const Outcome outcome = run(1, arguments);
    EXPECT_EQ(outcome.exit_code, code) << arguments;
    ASSERT_EQ(outcome.errors().size(), 1U) << outcome.err;
    EXPECT_NE(outcome.errors()[0].find("not a regular file"), std::string::npos) << outcome.err;
  }
  EXPECT_EQ(run(1, "init --data " + pipe + " --output " + (folder / "first.json")).exit_code, 3);
}

TEST(WrongInput, WhatStandsInTheWayOfFilesIsNeitherFollowedNorReplaced) {
  const TemporaryFolder folder;
  folder.write("precious", "kept");
  folder.write("config.json", small_config(folder).dump());
  std::filesystem::create_directories(folder / "run");
  std::filesystem::create_symlink("../precious", folder / "run/lock");
  const Outcome outcome =
      run(1, "--config " + (folder / "config.json") + " --set output=" + (folder / "run"));
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_NE(outcome.err.find("it is a symbolic link"), std::string::npos) << outcome.err;
  EXPECT_EQ(read(folder / "precious"), "kept");
}

/// Of commands that begin no run: what is wrong with their files and folders is one sentence, and nothing is
/// left behind.
TEST(WrongInput, OutputsThatCannotBeWrittenAndNamesThatCannotBe) {
  const TemporaryFolder folder;
  folder.write("config.json", small_config(folder).dump());
  folder.write("file", "mine");
  std::filesystem::create_symlink("nowhere", folder / "dangling");
  const std::string config = " --config " + (folder / "config.json"), name(5000, 'n'),
                    data = " --data " + quoted(source_dir() + "/tests/io/fixtures/packed.nc");
  const struct {
    std::string arguments;
    int code;
    const char* says;
  } cases[] = {
      {"init" + data + " --output /dev/full", 2, "is there already"},
      {"init" + data + " --output " + (folder / "dangling"), 2, "is there already"},
      {"init" + data + " --output " + (folder / "no/such/folder.json"), 2, "cannot be written"},
      {"init" + data + " --output " + name, 2, "cannot be written"},
      {"plan" + config + " --ranks 2 --machine " + name, 2, "--machine"},
      {"plan" + config + " --set 'mesh={\"data\":65536,\"domain\":[65536,1]}'", 2, "mesh.data"},
      {"verify" + config + " --ranks 2 --against '{\"data\":65536,\"domain\":[65536,1]}'", 2, "data"},
      {"check" + config + " --set output=" + name, 2, "output: the run directory"},
      {"report " + name, 2, "is no run directory"},
      {name, 2, ""},
  };
  for (const auto& [arguments, code, says] : cases) {
    const Outcome outcome = run(1, arguments);
    EXPECT_EQ(outcome.exit_code, code) << arguments.substr(0, 100) << outcome.err;
    ASSERT_EQ(outcome.errors().size(), 1U) << outcome.err;
    EXPECT_NE(outcome.errors()[0].find(says), std::string::npos) << outcome.err;
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "nowhere"));
}

TEST(WrongInput, CommandsThatTrainNothingDoTheirWorkOnceOnManyRanks) {
  const Outcome outcome = run(3, "config --explain train.steps");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, run(1, "config --explain train.steps").out);
  EXPECT_EQ(run(3, "inspect nowhere").errors().size(), 1U);
}

TEST(WrongInput, ALauncherThatPromisedMoreRanksThanMpiDelivers) {
  const TemporaryFolder folder;
  folder.write("config.json", small_config(folder).dump());
  ASSERT_EQ(setenv("OMPI_COMM_WORLD_SIZE", "4", 1), 0);
  const Outcome outcome =
      run(1, "--config " + (folder / "config.json") + " --set output=" + (folder / "run"));
  unsetenv("OMPI_COMM_WORLD_SIZE");
  EXPECT_EQ(outcome.exit_code, 2);
  ASSERT_EQ(outcome.errors().size(), 1U) << outcome.err;
  EXPECT_NE(outcome.errors()[0].find("4"), std::string::npos) << outcome.err;
}

}  // namespace
}  // namespace jigsaw::e2e
