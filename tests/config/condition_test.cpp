// Keys that the rest of a configuration leaves without effect.
#include "config/condition.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "config/config.h"

namespace jigsaw {
namespace {

struct Inner {
  bool on = true;
  double size = 1;
};
void declare(Keys<Inner>& keys) {
  keys.add("on", &Inner::on).doc("Whether.");
  keys.add("size", &Inner::size).counts_where(here("on").is(true)).doc("How much.");
}

struct Outer {
  std::string kind = "plain";
  std::int64_t count = 0;
  double depth = 2;
  std::vector<std::string> names;
  std::int64_t rest = 3;
  std::vector<Inner> parts;
};
void declare(Keys<Outer>& keys) {
  keys.add("kind", &Outer::kind).doc("A kind.");
  keys.add("count", &Outer::count).doc("A number.");
  keys.add("depth", &Outer::depth)
      .counts_where(where("kind").is_one_of({"deep", "deeper"}) && where("count").above(0))
      .doc("A depth.");
  keys.add("names", &Outer::names).doc("Some names.");
  keys.add("rest", &Outer::rest).idle_unless(where("names").is_given()).doc("What is left.");
  keys.add("parts", &Outer::parts).doc("Parts.");
}

std::string error_of(const Json& json) {
  try {
    parse<Outer>(json);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(Condition, AKeyWithoutEffectIsRefusedWithWhatItNeeds) {
  EXPECT_EQ(error_of({{"depth", 5}}),
            "depth has no effect: it counts only where kind is \"deep\" or \"deeper\" and count is above 0; "
            "leave it out");
  EXPECT_NE(error_of({{"depth", 5}, {"kind", "deep"}}), "");
  EXPECT_NE(error_of({{"depth", 5}, {"count", 1}}), "");
  EXPECT_EQ(error_of({{"depth", 5}, {"kind", "deeper"}, {"count", 1}}), "");
}

TEST(Condition, TheDefaultSaysNothing) {
  EXPECT_EQ(error_of({{"depth", 2}}), "");
  EXPECT_EQ(error_of(to_json(Outer{})), "");
}

TEST(Condition, OfAnIdleKeyIsOnlyWarned) {
  const Json json = {{"rest", 4}};
  const auto value = parse<Outer>(json);
  EXPECT_EQ(
      idle_keys(json, value),
      std::vector<std::string>{"rest has no effect: it counts only where names is given; leave it out"});
  const Json named = {{"rest", 4}, {"names", {"a"}}};
  EXPECT_TRUE(idle_keys(named, parse<Outer>(named)).empty());
}

TEST(Condition, LooksIntoTheSectionOfTheKey) {
  EXPECT_EQ(error_of({{"parts", {{{"size", 2}}, {{"on", false}, {"size", 2}}}}}).find("parts[1].size has no"),
            0U);
  EXPECT_EQ(error_of({{"parts", {{{"on", false}}, {{"size", 2}}}}}), "");
}

TEST(Condition, HoldsOfATableThatIsReadApart) {
  const Condition condition = where("elsewhere.kind").is("deep");
  EXPECT_TRUE(condition.holds({{"depth", 5}}, Json::object()));
  EXPECT_FALSE(condition.holds({{"elsewhere", {{"kind", "flat"}}}}, Json::object()));
  EXPECT_TRUE((condition || here("a").is(1)).holds({{"elsewhere", {{"kind", "flat"}}}}, {{"a", 1}}));
}

TEST(Condition, IsTold) {
  EXPECT_NE(explain<Outer>("depth").find("Counts only where kind is \"deep\""), std::string::npos);
  EXPECT_NE(reference<Outer>().find("What is left. Counts only where names is given."), std::string::npos);
}

}  // namespace
}  // namespace jigsaw
