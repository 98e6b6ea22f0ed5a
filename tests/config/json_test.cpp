#include "config/json.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "config/example.h"

namespace jigsaw {
namespace {

using example::error_of;

class LoadConfig : public ::testing::Test {
 protected:
  LoadConfig() : path_(::testing::TempDir() + "jigsaw_config_" + std::to_string(getpid()) + ".json") {}
  ~LoadConfig() override { std::filesystem::remove(path_); }

  std::string load_error(const std::string& text) {
    write(text);
    return error_of([&] { load_config(path_); });
  }
  void write(const std::string& text) { std::ofstream(path_, std::ios::binary) << text; }

  std::string path_;
};

TEST_F(LoadConfig, CommentsAreAllowedAndOrderIsKept) {
  write("// a run\n{\"z\": 1, /* why */ \"a\": {\"y\": [1, 2.5, \"x\"], \"b\": null}} // end\n");
  EXPECT_EQ(load_config(path_).dump(), R"({"z":1,"a":{"y":[1,2.5,"x"],"b":null}})");
}

TEST_F(LoadConfig, ErrorsNameFileLineAndColumn) {
  EXPECT_EQ(
      load_error("{\n  \"a\": 1,\n  \"b\": }\n"),
      path_ +
          ", line 3, column 8: syntax error while parsing value - unexpected '}'; expected '[', '{', or "
          "a literal");
  EXPECT_NE(load_error("").find(", line 1, column 1: "), std::string::npos);
  EXPECT_NE(load_error("{} {}").find(", line 1, column 4: "), std::string::npos);
  EXPECT_EQ(load_error("{\n\"a\": 1e999}"), path_ + ", line 2, column 10: number overflow parsing '1e999'");
  EXPECT_NE(load_error("{\"a\": NaN}").find("line 1, column 7"), std::string::npos);
  EXPECT_NE(load_error("{\"a\": \"\xff\"}").find("invalid string"), std::string::npos);
  EXPECT_LT(load_error("{\"a\": \"" + std::string(100000, 'x')).size(), 500u);
}

TEST_F(LoadConfig, ACommaBeforeTheEndIsCalledSo) {
  EXPECT_EQ(load_error("{\n  \"a\": 1,\n}"),
            path_ + ", line 3, column 1: a comma stands before '}'; leave it out, JSON has none at the end");
  EXPECT_EQ(load_error("{\"a\": [1, 2, ]}"),
            path_ + ", line 1, column 14: a comma stands before ']'; leave it out, JSON has none at the end");
}

TEST_F(LoadConfig, WhatIsNoJsonIsCalledByWhatItIsThere) {
  EXPECT_EQ(load_error("{\"a\": 1\n \"b\": 2}"),
            path_ + ", line 2, column 4: a comma is missing before \"b\"");
  EXPECT_EQ(load_error("{\"a\": [1 2]}"), path_ + ", line 1, column 10: a comma is missing before 2");
  EXPECT_EQ(load_error("{\"a\": [{\"b\": 1} {\"b\": 2}]}"),
            path_ + ", line 1, column 17: a comma is missing before {");
  EXPECT_EQ(load_error("{\"a\": [1, 2}"), path_ + ", line 1, column 12: a list ends with ], and here with }");
  EXPECT_EQ(load_error("{\"a\": 1]"), path_ + ", line 1, column 8: an object ends with }, and here with ]");
  EXPECT_EQ(load_error("{\"a\": \"b\": 1}").find("comma"), std::string::npos);
  EXPECT_EQ(load_error(" \n"), path_ + ", line 2, column 1: the file is empty");
  EXPECT_EQ(load_error("{\"a\": {\"b\": 1"),
            path_ + ", line 1, column 14: the file ends before the last 2 of { and [ are closed");
  EXPECT_EQ(load_error("{\"a\": 1"),
            path_ + ", line 1, column 8: the file ends before the last of { and [ is closed");
  EXPECT_EQ(
      load_error("{\xc2\xa0\"a\": 1}"),
      path_ +
          ", line 1, column 2: a no-break space (U+00A0) stands here, as copied text may hold; delete it");
  EXPECT_EQ(load_error("{\"a\": [−6, 0]}"),
            path_ + ", line 1, column 8: a number begins with a plain minus (-), not −");
  EXPECT_EQ(load_error("{\"a\": True}"), path_ + ", line 1, column 7: True is true in JSON");
  EXPECT_EQ(load_error("{\"a\": [1, None]}"), path_ + ", line 1, column 11: None is null in JSON");
  EXPECT_EQ(load_error("{\"a\": NaN}"), path_ + ", line 1, column 7: JSON has no number NaN");
  EXPECT_EQ(load_error("{\"a\": 1, # one\n\"b\": 2}"),
            path_ + ", line 1, column 10: a comment begins with // in place of #");
  EXPECT_EQ(load_error("{'a': 1}"),
            path_ + ", line 1, column 2: texts stand between straight double quotes (\"), not '");
  EXPECT_EQ(load_error("{“a”: 1}"),
            path_ + ", line 1, column 2: texts stand between straight double quotes (\"), not “");
  EXPECT_EQ(load_error("{\"a\": info}").find("JSON has no number"), std::string::npos);
  EXPECT_NE(load_error("\xff\xfe{").find("UTF-16"), std::string::npos);
}

TEST_F(LoadConfig, OtherFilesAreCalledWhatTheyAre) {
  for (const char* yaml : {"# a run\nname: run\ndata:\n  files: [a.nc]\n", "---\nname: run\n", "data:\n"}) {
    const std::string message = load_error(yaml);
    EXPECT_NE(message.find("looks like YAML"), std::string::npos) << message;
    EXPECT_NE(message.find("< " + path_), std::string::npos) << message;
  }
  EXPECT_NE(load_error("// name: run\n[1]").find("must hold an object"), std::string::npos);
  EXPECT_EQ(
      load_error(std::string("CDF\x01", 4) + std::string(100, '\0')),
      path_ + " is a NetCDF file, not a configuration, which is JSON and names such files in data.files");
  EXPECT_NE(load_error("\x89HDF\r\n\x1a\n....").find("HDF5"), std::string::npos);
}

TEST_F(LoadConfig, RefusesWhatIsNoConfiguration) {
  EXPECT_EQ(load_error("[1]"), "the configuration file " + path_ + " must hold an object, not a list of 1");
  EXPECT_EQ(error_of([] { load_config("/nowhere/c.json"); }),
            "the configuration file cannot be used: cannot open /nowhere/c.json: No such file or directory");
  EXPECT_EQ(error_of([] { load_config("/tmp"); }), "the configuration /tmp is a folder, not a file");
  EXPECT_EQ(error_of([] { load_config("/tmp", "machine"); }), "the machine /tmp is a folder, not a file");
  EXPECT_EQ(error_of([] { load_config("/nowhere/m.json", "machine"); }),
            "the machine file cannot be used: cannot open /nowhere/m.json: No such file or directory");
  EXPECT_EQ(load_error(std::string((16 << 20) + 1, ' ')),
            "the configuration file cannot be used: cannot read " + path_ + ": it is longer than 16.0 MiB");
}

TEST(ParseJson, RepeatedKeysAreErrors) {
  EXPECT_EQ(error_of([] { parse_json(R"({"a": {"b": 1, "c": 2, "b": 3}})", "x.json"); }),
            R"(x.json: the key "b" stands twice in the same object)");
  EXPECT_EQ(parse_json(R"({"a": {"b": 1}, "b": [{"b": 1}, {"b": 2}]})", "x").dump(),
            R"({"a":{"b":1},"b":[{"b":1},{"b":2}]})");
}

TEST(ParseJson, DepthIsLimited) {
  const std::string at_limit = std::string(100, '[') + std::string(100, ']');
  EXPECT_EQ(parse_json(at_limit, "x").dump(), at_limit);
  const std::string message = "x: objects and lists are nested deeper than 100 levels";
  EXPECT_EQ(error_of([] { parse_json(std::string(1000000, '['), "x"); }), message);
  std::string objects;
  for (int i = 0; i < 100000; ++i) objects += "{\"a\":";
  EXPECT_EQ(error_of([&] { parse_json(objects, "x"); }), message);
}

TEST(ParseJson, LargeObjectsTakeLinearTime) {
  std::string text = "{\"k\": 0";
  for (int i = 0; i < 200000; ++i) text += concat(",\"k", i, "\":", i);
  EXPECT_EQ(parse_json(text + "}", "x").size(), 200001u);
}

TEST(SplitPath, TakesBothWritingsOfIndices) {
  EXPECT_EQ(join(split_path("a.b[2].c"), "|"), "a|b|2|c");
  EXPECT_EQ(join(split_path("a.b.2.c"), "|"), "a|b|2|c");
  EXPECT_EQ(join(split_path("a[1][2]"), "|"), "a|1|2");
  EXPECT_EQ(join(split_path("a[]..]"), "|"), "a|||]");
}

}  // namespace
}  // namespace jigsaw
