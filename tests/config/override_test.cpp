#include "config/override.h"

#include "config/example.h"

namespace jigsaw {
namespace {

using example::error_of;

std::string overridden(std::string_view text, std::string_view assignment) {
  Json json = parse_json(text, "test");
  apply_override(json, assignment);
  return json.dump();
}

TEST(Override, SetsByDottedPath) {
  EXPECT_EQ(overridden(R"({"data": {"lead_hours": 6, "x": 1}})", "data.lead_hours=24"),
            R"({"data":{"lead_hours":24,"x":1}})");
  EXPECT_EQ(overridden(R"({"groups": [{"a": 1}, {"a": 2}]})", "groups.1.a=3"),
            R"({"groups":[{"a":1},{"a":3}]})");
  EXPECT_EQ(overridden(R"({"groups": [{"a": 1}, {"a": 2}]})", "groups[0].a=3"),
            R"({"groups":[{"a":3},{"a":2}]})");
  EXPECT_EQ(overridden("{}", "a.b.c=1"), R"({"a":{"b":{"c":1}}})");
  EXPECT_EQ(overridden(R"({"mesh": "auto"})", "mesh.tensor=2"), R"({"mesh":{"tensor":2}})");
}

TEST(Override, ValueIsJsonOrElseABareString) {
  EXPECT_EQ(overridden("{}", "a=[1, {\"b\": null}]"), R"({"a":[1,{"b":null}]})");
  EXPECT_EQ(overridden("{}", "a=\"24\""), R"({"a":"24"})");
  EXPECT_EQ(overridden("{}", "a=true"), R"({"a":true})");
  EXPECT_EQ(overridden("{}", "a=data/era5_*.nc"), R"({"a":"data/era5_*.nc"})");
  EXPECT_EQ(overridden("{}", "a=b=c"), R"({"a":"b=c"})");
  EXPECT_EQ(overridden("{}", "a="), R"({"a":""})");
  EXPECT_EQ(overridden("{}", "a=2019-03-01"), R"({"a":"2019-03-01"})");
}

TEST(Override, TextsInListsNeedNoQuotes) {
  EXPECT_EQ(overridden("{}", "a=[x.nc]"), R"({"a":["x.nc"]})");
  EXPECT_EQ(overridden("{}", "a=[2019-03-01, 2019-03-24]"), R"({"a":["2019-03-01","2019-03-24"]})");
  EXPECT_EQ(overridden("{}", "a=[t2m,3,true]"), R"({"a":["t2m",3,true]})");
}

TEST(Override, ATextThatIsNoUtf8IsAnError) {
  Json config = Json::object();
  for (const char* value : {"name=caf\xe9", "name=[\"caf\xe9\"]"}) {
    const std::string said = error_of([&] { apply_override(config, value); });
    EXPECT_NE(said.find("is no UTF-8, and a configuration is kept as JSON"), std::string::npos) << said;
  }
  apply_override(config, "name=caf\xc3\xa9");
  EXPECT_EQ(config.at("name"), "caf\xc3\xa9");
}

TEST(Override, MalformedIsAnError) {
  const auto error = [](std::string_view text, std::string_view assignment) {
    return error_of([&] { overridden(text, assignment); });
  };
  EXPECT_EQ(error("{}", "a.b"), "--set needs KEY=VALUE, not \"a.b\"");
  EXPECT_EQ(error("{}", "=1"), "--set: the key \"\" has an empty part");
  EXPECT_EQ(error("{}", "a..b=1"), "--set: the key \"a..b\" has an empty part");
  EXPECT_NE(error("{}", "a=[1, 2").find("--set a, line 1, column 6: "), std::string::npos);
  EXPECT_NE(error("{}", "a=[x, \"y]").find("--set a, line 1"), std::string::npos);
  EXPECT_NE(error("{}", "a=[x,,y]").find("--set a, line 1"), std::string::npos);
  EXPECT_EQ(error("{}", "a={\"b\":1,\"b\":2}"), "--set a: the key \"b\" stands twice in the same object");
  EXPECT_EQ(error(R"({"a": [1, 2]})", "a.2=1"),
            "--set: a is a list, and \"2\" is no entry of it: an index from 0 to 1 is needed");
  EXPECT_EQ(error(R"({"b": {"a": []}})", "b.a.x=1"),
            "--set: b.a is a list, and \"x\" is no entry of it: it has no entries");
  std::string deep = "a";
  for (int i = 0; i < 200000; ++i) deep += ".a";
  EXPECT_NE(error("{}", deep + "=1").find("is deeper than 100 levels"), std::string::npos);
}

}  // namespace
}  // namespace jigsaw
