#pragma once
#include <string>
#include <vector>

#include "files/variable_file.h"

namespace jigsaw::inline files {

/// Files are not trusted, and neither are the libraries that read their headers: a process of its own, with
/// limits on memory and processor time, does that first. Where it dies, so would have the run.
struct Probe {
  /// What is started, with kCommand as its only argument: a program whose main() calls run_probe() then.
  std::string program;
  Dimensions dimensions = Dimensions::kByName;
  External external = External::kRefused;

  static constexpr const char* kCommand = "--probe-files";

  /// For each file "", or how the process ended that read its header: "signal 11 (Segmentation fault)". What
  /// ends in an error there is "": it will here, too. One process reads all files, and another goes on behind
  /// each that it died of.
  /// @throws Error  when the program cannot be started.
  std::vector<std::string> outcomes(const std::vector<std::string>& paths) const;
  /// @throws DataError  that names the first file whose header ended the process.
  void check(const std::vector<std::string>& paths) const;
};

/// The other side: reads names of files from stdin, each ended by a zero, opens each, and reads what
/// describes it and its coordinates. The first of them is none, but "name" or "number" for Dimensions, with
/// '+' behind it where External is kFollowed. Writes a byte to stdout before each file. @return  the exit
/// code.
int run_probe();

/// The program by which this process has files probed; "" for none, which holds until it is set: tests and
/// other programs than jigsaw-train read in their own process. Set once, before threads start.
void set_probe_program(std::string program);
const std::string& probe_program();
/// Probe::check() by that program; nothing where there is none.
void probe_files(const std::vector<std::string>& paths, Dimensions dimensions, External external);

}  // namespace jigsaw::inline files
