#pragma once
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/text.h"
#include "support/temporary_folder.h"

namespace jigsaw::testing {

/// What a test of this program that is disabled says in a process of its own, whose cuDNN is the one here but
/// for a part, libcudnn_`part`.so.9, that is no library; "": all of it.
/// @param version  of cuDNN, 91900 for 9.19.0.
inline std::string said_with_cudnn_without(const std::string& part, const std::string& test, int version) {
  namespace fs = std::filesystem;
  Dl_info library{};
  if (dladdr(dlsym(RTLD_DEFAULT, "cudnnGetVersion"), &library) == 0) return "cuDNN is nowhere";
  const TemporaryFolder temporary;
  const fs::path folder = temporary.path(), installed = fs::canonical(library.dli_fname).parent_path();
  for (const fs::directory_entry& each : fs::directory_iterator(installed)) {
    const std::string name = each.path().filename();
    if (name.starts_with("libcudnn")) fs::create_symlink(each.path(), folder / name);
  }
  const std::string whole = concat(".so.", version / 10000), minor = concat(whole, ".", version / 100 % 100);
  for (const std::string& ending : {std::string(".so"), whole, minor, concat(minor, ".", version % 100)}) {
    if (part.empty()) continue;
    const fs::path path = folder / concat("libcudnn_", part, ending);
    fs::remove(path);
    const std::ofstream no_library(path);
  }
  const std::string command = concat(
      "LD_LIBRARY_PATH='", folder.string(), "'${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} '",
      ::testing::internal::GetArgvs()[0], "' --gtest_also_run_disabled_tests --gtest_filter=", test, " 2>&1");
  FILE* const child = popen(command.c_str(), "r");
  std::string said;
  for (int c = std::fgetc(child); c != EOF; c = std::fgetc(child)) said += static_cast<char>(c);
  pclose(child);
  return said;
}

}  // namespace jigsaw::testing
