#include "config/changed_keys.h"

#include "config/layers.h"

namespace jigsaw {
namespace {

std::string changes(std::string_view before, std::string_view after) {
  return join(changed_keys(parse_json(before, "before"), parse_json(after, "after")), " ");
}

TEST(ChangedKeys, AreDottedPathsOfTheDifferences) {
  EXPECT_EQ(changes(R"({"a": 1, "b": {"c": [1, 2]}})", R"({"b": {"c": [1, 2]}, "a": 1.0})"), "");
  EXPECT_EQ(changes(R"({"a": 1, "b": {"c": 1, "d": 2}})", R"({"a": 2, "b": {"c": 1, "d": 3}})"), "a b.d");
  EXPECT_EQ(changes(R"({"a": 1, "b": {"x": 1}})", R"({"b": {"x": 1, "y": 2}})"), "a b.y");
  EXPECT_EQ(changes(R"({"a": [1, 2]})", R"({"a": [1, 3]})"), "a");
  EXPECT_EQ(changes(R"({"m": {"l": [{"t": 1}, {"t": 2}]}})", R"({"m": {"l": [{"t": 1}, {"t": 3}]}})"),
            "m.l[1].t");
  EXPECT_EQ(changes(R"({"l": [{"t": 1}]})", R"({"l": []})"), "l");
  EXPECT_EQ(changes(R"({"mesh": "auto"})", R"({"mesh": {"data": 1}})"), "mesh");
}

TEST(ChangedKeys, MayChangeWhereTheDeclarationSaysSo) {
  const auto changeable = [](std::string_view path) { return may_change(keys_of<example::Config>(), path); };
  for (const char* path :
       {"steps", "mesh", "mesh.data", "mesh.domain[1]", "optimizer.groups[2].learning_rate"}) {
    EXPECT_TRUE(changeable(path)) << path;
  }
  for (const char* path : {"seed", "data", "data.files", "optimizer", "optimizer.learning_rate",
                           "optimizer.groups", "optimizer.groups[2].match", "step", "seed.steps", ""}) {
    EXPECT_FALSE(changeable(path)) << path;
  }
  EXPECT_TRUE(may_change(keys_of<example::Network>(), "optimizer.momentum"));
  EXPECT_FALSE(may_change(keys_of<example::Network>(), "optimizer.learning_rate"));
  EXPECT_FALSE(may_change(keys_of<example::Network>(), "model.layers[0].features"));
}

}  // namespace
}  // namespace jigsaw
