// What shells complete, the manual page and --version: made of what the parser declares.
#include <gtest/gtest.h>

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
