// What shells complete, the manual page and --version: made of what the parser declares.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "end_to_end/command.h"
#include "support/source_dir.h"

namespace jigsaw::e2e {
namespace {

/// What bash offers behind these words, the last of which is being typed.
std::string completions(const TemporaryFolder& folder, const std::vector<std::string>& words) {
  std::string typed;
  for (const std::string& word : words) typed += " " + quoted(word);
  folder.write("complete.sh", "set -u\nsource " + quoted(folder / "completion.bash") +
                                  "\nCOMP_WORDS=(jigsaw-train" + typed +
                                  ")\nCOMP_CWORD=" + std::to_string(words.size()) +
                                  "\n_jigsaw_train 2> /dev/null\nprintf '%s ' \"${COMPREPLY[@]}\"\n");
  const std::string command = "cd " + quoted(folder.path().string()) + " && bash complete.sh > offered.txt";
  EXPECT_EQ(std::system(command.c_str()), 0);
  return read(folder / "offered.txt");
}

TEST(ShellPages, BashCompletesCommandsOptionsAndWords) {
  const TemporaryFolder folder;
  const Outcome completion = run(1, "completion bash");
  ASSERT_EQ(completion.exit_code, 0) << completion.err;
  folder.write("completion.bash", completion.out);
  folder.write("my.json", "{}");
  EXPECT_EQ(completions(folder, {"pred"}), "predict ");
  EXPECT_EQ(completions(folder, {"my"}), "my.json ");
  EXPECT_EQ(completions(folder, {"predict", "--av"}), "--average ");
  EXPECT_EQ(completions(folder, {"predict", "--average", "a"}), "auto always ");
  EXPECT_EQ(completions(folder, {"sweep", "--max"}), "--max-minutes ");  // an option of the main command
  EXPECT_EQ(completions(folder, {"predict", "--max"}), " ");
  EXPECT_EQ(completions(folder, {"--resu"}), "--resume ");
}

/// What is printed for others to read is there in whole, or its command says that it is not.
TEST(ShellPages, AFullDiskBehindStdoutIsAnError) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full";
  const TemporaryFolder folder;
  const std::string plan =
      "plan --ranks 2 --json --config " + quoted(testing::source_dir() + "/configs/era5_uk_vit.json");
  for (const std::string& arguments :
       {std::string("config --schema"), std::string("manual"), std::string("--help"), plan}) {
    const std::string command =
        quoted(JIGSAW_TRAIN) + " " + arguments + " > /dev/full 2> " + quoted(folder / "err.txt");
    EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), 4) << arguments;
    EXPECT_NE(read(folder / "err.txt").find("stdout"), std::string::npos) << arguments;
  }
}

/// Who reads a part of what is printed, or none of it, has what was wanted: in a pipe whose reader left, and
/// where stdout is closed, of which no file gets the place.
TEST(ShellPages, ReadersMayLeave) {
  const TemporaryFolder folder;
  const std::string plan =
      "plan --ranks 2 --json --config " + quoted(testing::source_dir() + "/configs/era5_uk_vit.json");
  int ends[2] = {-1, -1};
  ASSERT_EQ(::pipe(ends), 0);
  ::close(ends[0]);
  const std::string left = " >&" + std::to_string(ends[1]);
  for (const std::string& arguments : {std::string("manual"), std::string("--help"), plan}) {
    for (const std::string& out : {left, std::string(" >&-")}) {
      const std::string command =
          quoted(JIGSAW_TRAIN) + " " + arguments + out + " 2> " + quoted(folder / "err.txt");
      const int status = std::system(command.c_str());
      EXPECT_TRUE(WIFEXITED(status)) << arguments << out;
      EXPECT_EQ(WEXITSTATUS(status), 0) << arguments << out;
      EXPECT_EQ(read(folder / "err.txt"), "") << arguments << out;
    }
  }
  ::close(ends[1]);
  // A file that is opened next would have been stdout.
  const std::string sample =
      quoted(JIGSAW_TRAIN) + " sample-data --output " + quoted(folder / "s") + " >&- 2>&-";
  EXPECT_EQ(WEXITSTATUS(std::system(sample.c_str())), 0);
  EXPECT_EQ(run(1, "inspect " + quoted(folder / "s/sample_2021-01.nc")).exit_code, 0);
}

/// Of a file the sentence says which, and the room of its disk.
TEST(ShellPages, AFileBehindStdoutIsNamed) {
  if (!std::filesystem::exists("/proc/self/fd/1")) GTEST_SKIP() << "no /proc";
  const TemporaryFolder folder;
  const std::string command = "ulimit -f 1; " + quoted(JIGSAW_TRAIN) + " manual > " +
                              quoted(folder / "out.txt") + " 2> " + quoted(folder / "err.txt");
  EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), 4);
  EXPECT_NE(read(folder / "err.txt")
                .find("what goes to stdout, " + (folder / "out.txt") +
                      ", cannot be written in whole: File too large"),
            std::string::npos)
      << read(folder / "err.txt");
}

TEST(ShellPages, ZshCompletionAndManualNameEveryCommand) {
  const std::string help = run(1, "--help").out;
  const std::string zsh = run(1, "completion zsh").out, manual = run(1, "manual").out;
  EXPECT_TRUE(zsh.starts_with("#compdef jigsaw-train\n"));
  EXPECT_TRUE(manual.starts_with(".TH JIGSAW"));
  for (const std::string command :
       {"train", "check", "predict", "evaluate", "plan", "verify", "sweep", "manual"}) {
    EXPECT_NE(help.find("\n  " + command + " "), std::string::npos) << command;
    EXPECT_NE(zsh.find("'" + command + ":"), std::string::npos) << command;
    EXPECT_NE(manual.find("\n.SS " + command + "\n"), std::string::npos) << command;
  }
  EXPECT_NE(manual.find("\\fB\\-\\-average\\fR auto|always|never\n"), std::string::npos) << manual;
}

TEST(ShellPages, TheVersionNamesCommitAndLibraries) {
  const Outcome version = run(1, "--version");
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_TRUE(version.out.starts_with("jigsaw-train 0.")) << version.out;
  for (const char* name :
       {"\ncommit ", "\ncompiler GCC ", "\nbackends cpu, ", "\nmpi ", "\noneDNN ", "\nhdf5 ", "\nnetcdf "})
    EXPECT_NE(version.out.find(name), std::string::npos) << name << version.out;
  const bool cuda = version.out.find("\ncuda ") != std::string::npos;
  EXPECT_EQ(version.out.find(", no cuda\n") == std::string::npos, cuda) << version.out;
}

}  // namespace
}  // namespace jigsaw::e2e
