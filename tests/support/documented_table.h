#pragma once
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "support/source_dir.h"

namespace jigsaw::testing {

/// docs/traffic.md has this table between these lines, or to its end. JIGSAW_WRITE_DOCS=1 writes it.
inline void expect_in_traffic_docs(const std::string& begins, const std::string& table,
                                   const std::string& ends = "") {
  const std::string path = source_dir() + "/docs/traffic.md";
  std::ifstream file(path);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  const std::size_t begin = text.find(begins), end = ends.empty() ? text.size() : text.find(ends);
  ASSERT_TRUE(begin != std::string::npos && end != std::string::npos)
      << path << " has no place for the table";
  std::string wanted = text.substr(0, begin) + begins + "\n" + table;
  if (!ends.empty()) wanted += "\n" + text.substr(end);
  if (std::getenv("JIGSAW_WRITE_DOCS") != nullptr) std::ofstream(path) << wanted;
  EXPECT_TRUE(text == wanted) << "docs/traffic.md is not what is counted; JIGSAW_WRITE_DOCS=1 writes it:\n"
                              << table;
}

}  // namespace jigsaw::testing
