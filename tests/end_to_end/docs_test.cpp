// The commands that README and the documents show: those of the pages for beginners run, in order and with
// small models; of all others every option exists.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <map>
#include <regex>
#include <sstream>

#include "end_to_end/command.h"

namespace jigsaw::e2e {
namespace {

namespace fs = std::filesystem;

/// A fenced block of a page.
struct Block {
  std::string language, text;
  bool run = true;  ///< no "<!-- not run: why -->" stands before it
};

std::vector<Block> blocks_of(const fs::path& page) {
  std::vector<Block> blocks;
  std::istringstream in(read(page));
  bool inside = false, run = true;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("```")) {
      if (!inside) blocks.push_back({line.substr(3), "", run});
      inside = !inside;
      run = true;
    } else if (inside) {
      blocks.back().text += line + "\n";
    } else if (line.starts_with("<!-- not run: ")) {
      run = false;
    }
  }
  EXPECT_FALSE(inside) << page << ": a block has no end";
  return blocks;
}

/// Every page that people read.
std::vector<fs::path> pages() {
  const fs::path root = testing::source_dir();
  std::vector<fs::path> found = {root / "README.md"};
  for (const auto& entry : fs::directory_iterator(root / "docs"))
    if (entry.path().extension() == ".md") found.push_back(entry.path());
  return found;
}

/// An executable script.
void write_program(const TemporaryFolder& folder, const std::string& name, const std::string& text) {
  folder.write(name, "#!/bin/bash\nset -euo pipefail\n" + text);
  fs::permissions(folder / name, fs::perms::owner_all);
}

class Pages : public ::testing::TestWithParam<const char*> {};

TEST_P(Pages, CommandsRun) {
  const TemporaryFolder programs, folder;
  // What init writes is made small; nothing else differs from what a reader does.
  write_program(programs, "jigsaw-train", quoted(JIGSAW_TRAIN) + R"( "$@"
if [[ $1 == init ]]; then
  output=$(sed -n 's/.*--output \([^ ]*\).*/\1/p' <<< "$*")
  sed -i 's/"epochs": 10/"steps": 2/; s/"base_width": 16/"base_width": 4/; s/"every": [12]00/"every": 2/' "$output"
  grep -q '"steps": 2' "$output"
  grep -q '"base_width": 4' "$output"
fi
)");
  write_program(programs, "mpirun",
                "exec " + quoted(JIGSAW_MPIEXEC) + " --oversubscribe --bind-to none \"$@\"\n");
  // Volumes that readers of the page bring with them.
  fs::create_directory(folder.path() / "ct");
  fs::copy(fs::path(testing::source_dir()) / "tests/io/fixtures/images/volume.h5", folder.path() / "ct");

  std::string script = "set -euo pipefail\ncd " + quoted(folder.path().string()) +
                       "\nexport PATH=" + quoted(programs.path().string()) +
                       ":$PATH XDG_CACHE_HOME=$PWD OMP_NUM_THREADS=1 OMPI_ALLOW_RUN_AS_ROOT=1 "
                       "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1\n";
  int configurations = 0;
  bool any = false;
  for (const Block& block : blocks_of(fs::path(testing::source_dir()) / GetParam())) {
    if (block.language == "sh" && block.run) {
      script += block.text;
      any = true;
    } else if (block.language == "jsonc" && block.text.starts_with("{\n  \"data\"")) {
      const std::string name = "shown_" + std::to_string(++configurations) + ".json";
      folder.write(name, block.text);
      script += "jigsaw-train check --config " + name + "\n";
    }
  }
  ASSERT_TRUE(any);
  programs.write("page.sh", script);
  const std::string log = programs / "log.txt";
  const int status = std::system(
      ("timeout -k 5 3000 bash -x " + quoted(programs / "page.sh") + " > " + quoted(log) + " 2>&1").c_str());
  EXPECT_EQ(WEXITSTATUS(status), 0) << read(log);
}

INSTANTIATE_TEST_SUITE_P(Docs, Pages,
                         ::testing::Values("README.md", "docs/commands.md", "docs/story-era5.md",
                                           "docs/story-ct.md", "docs/story-downscaling.md"),
                         [](const auto& page) {
                           return std::regex_replace(std::string(page.param), std::regex("[^A-Za-z0-9]"),
                                                     "_");
                         });

/// The options that a command's help lists.
const std::string& help(const std::string& command) {
  static std::map<std::string, std::string> known;
  const auto [entry, fresh] = known.try_emplace(command);
  if (fresh) entry->second = run(1, command + " --help").out;
  return entry->second;
}

/// Whether a help text lists this option.
bool lists(const std::string& text, const std::string& name) {
  return text.find(name + " ") != std::string::npos || text.find(name + "\n") != std::string::npos;
}

TEST(Documents, ShowOptionsThatAreThere) {
  // A command behind the program's name, or behind a batch script, which trains; then its options, up to a
  // comment, a pipe or a redirection.
  const std::regex call(R"((?:jigsaw-train|train\.sbatch|sweep\.sbatch)((?: +[^\s#|>]\S*)*))");
  const std::regex option(R"( (--[a-z-]+))");
  const std::string commands = help("");
  int options = 0;
  for (const fs::path& page : pages()) {
    for (const Block& block : blocks_of(page)) {
      if (block.language != "sh") continue;
      const std::string text = std::regex_replace(block.text, std::regex(R"(\\\n *)"), "");
      for (std::sregex_iterator at(text.begin(), text.end(), call), end; at != end; ++at) {
        const std::string words = (*at)[1].str();
        std::string command = at->str().starts_with("sweep") ? "sweep" : "";
        std::istringstream in(words);
        std::string first;
        in >> first;
        if (!first.starts_with('-') && commands.find("\n  " + first + " ") != std::string::npos)
          command = first;
        for (std::sregex_iterator word(words.begin(), words.end(), option); word != end; ++word, ++options) {
          const std::string name = (*word)[1].str();
          const bool trains = command.empty() || command == "sweep" || command == "train";
          EXPECT_TRUE(lists(help(command), name) || (trains && lists(commands, name)))
              << page << ": " << (command.empty() ? "jigsaw-train" : command) << " has no " << name;
        }
      }
    }
  }
  EXPECT_GT(options, 100);
}

}  // namespace
}  // namespace jigsaw::e2e
