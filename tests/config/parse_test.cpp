#include <limits>

#include "config/example.h"
#include "config/layers.h"

namespace jigsaw {
namespace {

using example::Config;
using example::error_of;

Config with(std::string_view assignment) {
  Json json = example::minimal();
  apply_override(json, assignment);
  return parse<Config>(json);
}

std::string error_with(std::string_view assignment) {
  return error_of([&] { with(assignment); });
}

TEST(Parse, DefaultsAreTheMemberInitialisers) {
  const Config config = parse<Config>(example::minimal());
  EXPECT_EQ(config.name, "run");
  EXPECT_EQ(config.optimizer.learning_rate, 0.5);  // the initialiser of the outer struct counts
  EXPECT_EQ(config.optimizer.betas[1], 0.95);
  EXPECT_EQ(config.mesh, std::nullopt);
  EXPECT_EQ(with("optimizer.betas=[0, 0.5]").optimizer.learning_rate, 0.5);
}

TEST(Parse, UnknownKeysAreErrorsWithASuggestion) {
  EXPECT_EQ(error_with("optimizer.learning_rte=1"),
            "unknown key optimizer.learning_rte (did you mean \"learning_rate\"?)");
  EXPECT_EQ(error_with("zzzzzz=1"), "unknown key zzzzzz");
  EXPECT_EQ(error_with(R"(optimizer.groups=[{"match": "a"}, {"match": "b", "mtach": "c"}])"),
            "unknown key optimizer.groups[1].mtach (did you mean \"match\"?)");
  EXPECT_EQ(error_with("a\nb=1"), "unknown key a\\nb");
}

TEST(Parse, UnknownKeysThatAreElsewhereSayWhere) {
  EXPECT_EQ(error_with("loss.learning_rate=1"),
            "unknown key loss.learning_rate (did you mean \"optimizer.learning_rate\"?)");
  EXPECT_EQ(error_with("learning_rate=1"),
            "unknown key learning_rate (did you mean \"optimizer.learning_rate\"?)");
  EXPECT_EQ(error_with("optimizer.steps=1"), "unknown key optimizer.steps (did you mean \"steps\"?)");
  EXPECT_EQ(error_of([] {
              parse<example::Network>(
                  parse_json(R"({"model": {"type": "gelu"}, "optimizer": {"momentum": 0.5}})", ""));
            }),
            "unknown key optimizer.momentum; optimizer.type \"sgd\" has such a key");
}

struct Logarithm {
  double epsilon = 1;
};
void declare(Keys<Logarithm>& keys) {
  keys.add("epsilon", &Logarithm::epsilon).doc("What is added before.");
}
struct Rule {
  double eps = 1;
};
void declare(Keys<Rule>& keys) {
  keys.add("eps", &Rule::eps).doc("What is added to the denominator.");
}
struct Both {
  Logarithm logarithm;
  Rule rule;
};
void declare(Keys<Both>& keys) {
  keys.add("logarithm", &Both::logarithm).doc("A transform.");
  keys.add("rule", &Both::rule).doc("A rule.");
}

TEST(Parse, AKeyOfTheSameSectionThatIsNearlyTheSameIsLikelier) {
  const auto error_in = [](const char* text) { return error_of([&] { parse<Both>(parse_json(text, "")); }); };
  EXPECT_EQ(error_in(R"({"logarithm": {"eps": 2}})"),
            "unknown key logarithm.eps (did you mean \"epsilon\"?)");
  EXPECT_EQ(error_in(R"({"rule": {"epsilon": 2}})"),
            "unknown key rule.epsilon (did you mean \"logarithm.epsilon\"?)");
}

TEST(Parse, TheSchemaOfEditorsIsNoKey) {
  EXPECT_EQ(with("$schema=https://example.org/schema.json"), with("steps=100"));
  EXPECT_EQ(error_with("$schema=3"), "$schema must be the address of a JSON Schema, not the number 3");
  EXPECT_EQ(error_with("loss.$schema=x"), "unknown key loss.$schema");
}

TEST(Parse, ATextAloneIsAListOfOne) {
  EXPECT_EQ(with("data.variables=t2m").data.variables, (std::vector<example::Variable>{{"t2m", {}}}));
  EXPECT_NE(error_with("optimizer.betas=0.9"), "");
  EXPECT_NE(error_with("optimizer.groups=encoder"), "");
}

TEST(Parse, RequiredKeys) {
  EXPECT_EQ(error_of([] { parse<Config>(Json::object()); }),
            "data.files is required; give it a string, or a list of at least one");
  EXPECT_EQ(error_of([] { parse<Config>(parse_json(R"({"data": {"files": ["a"]}})", "")); }),
            "data.variables is required; give it a list of one or more strings or objects");
  EXPECT_EQ(error_with("optimizer.groups=[{}]"), "optimizer.groups[0].match is required; give it a string");
}

TEST(Parse, WrongTypes) {
  EXPECT_EQ(error_with("steps=ten"), "steps must be an integer of at least 0, not the string \"ten\"");
  EXPECT_EQ(error_with("steps=null"), "steps must be an integer of at least 0, not null");
  EXPECT_EQ(error_with("steps=true"), "steps must be an integer of at least 0, not true");
  EXPECT_EQ(error_with("name=5"), "name must be a string, not the number 5");
  EXPECT_EQ(error_with("loss.area_weighted=1"), "loss.area_weighted must be true or false, not the number 1");
  EXPECT_EQ(error_with("loss=[]"), "loss must be an object, not an empty list");
  EXPECT_EQ(error_with("optimizer.groups={}"), "optimizer.groups must be a list of objects, not an object");
  EXPECT_EQ(error_with("optimizer.betas=[0.9]"),
            "optimizer.betas must be a list of 2 numbers of at least 0 and below 1, not a list of 1");
  EXPECT_EQ(error_with("optimizer.betas=[0.9, \"x\"]"),
            "optimizer.betas[1] must be a number of at least 0 and below 1, not the string \"x\"");
  EXPECT_EQ(error_of([] { parse<Config>(Json(3)); }),
            "the configuration must be an object, not the number 3");
  EXPECT_EQ(
      error_with(concat("steps=", std::string(1000, 'x'))),
      concat("steps must be an integer of at least 0, not the string \"", std::string(60, 'x'), "...\""));
}

TEST(Parse, Ranges) {
  EXPECT_EQ(error_with("seed=-1"), "seed must be at least 0, not -1");
  EXPECT_EQ(error_with("optimizer.learning_rate=0"), "optimizer.learning_rate must be above 0, not 0");
  EXPECT_EQ(error_with("optimizer.betas=[0, 1]"), "optimizer.betas[1] must be at least 0 and below 1, not 1");
  EXPECT_EQ(error_with("loss.variable_weights.t2m=-1"),
            "loss.variable_weights.t2m must be at least 0, not -1");
  EXPECT_EQ(error_with("data.lead_hours=7"), "data.lead_hours must be a multiple of 6, and is the number 7");
  EXPECT_EQ(error_with("data.shape=[1]"),
            "data.shape must be a list of between 2 and 3 integers of at least 1, not a list of 1");
  EXPECT_EQ(error_with("data.files=[]"),
            "data.files must be a string, or a list of at least one, not an empty list");
}

TEST(Parse, Integers) {
  EXPECT_EQ(with("steps=60.0").steps, 60);
  EXPECT_EQ(with("steps=1e3").steps, 1000);
  EXPECT_EQ(with("seed=9223372036854775807").seed, std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(error_with("steps=6.5"), "steps must be an integer of at least 0, not the number 6.5");
  const std::string message =
      "seed must be an integer of at least 0, up to 2^63 - 1 and written in full, not ";
  EXPECT_EQ(error_with("seed=9223372036854775808"), message + "9223372036854775808");
  EXPECT_EQ(error_with("seed=99999999999999999999"), message + "1e+20");
  EXPECT_EQ(error_with("seed=1e300"), message + "1e+300");
  EXPECT_EQ(error_with("data.lead_hours=6000000000"),
            "data.lead_hours must be between 1 and 2147483647, not 6000000000");
}

/// It would end a path, and the sentence about it.
TEST(Parse, TextsHoldNoCharacterZero) {
  EXPECT_EQ(error_with(R"(name="a\u0000b")"), "name must not hold the character \\u0000");
}

TEST(Parse, NumbersAreFinite) {
  Json json = example::minimal();
  json["optimizer"]["learning_rate"] = std::numeric_limits<double>::infinity();
  EXPECT_NE(error_of([&] { parse<Config>(json); }), "");
  json["optimizer"]["learning_rate"] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_NE(error_of([&] { parse<Config>(json); }), "");
  json["optimizer"] = Json::object();
  json["steps"] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_NE(error_of([&] { parse<Config>(json); }), "");
}

TEST(Parse, Choices) {
  EXPECT_EQ(with("loss.type=l1").loss.type, example::LossType::kL1);
  EXPECT_EQ(error_with("loss.type=mes"),
            "loss.type must be \"mse\" or \"l1\", not \"mes\" (did you mean \"mse\"?)");
  EXPECT_EQ(error_with("loss.type=3"), "loss.type must be \"mse\" or \"l1\", not the number 3");
}

TEST(Parse, AlternativeForms) {
  const Config brief = with(R"(data.variables=["t2m", {"name": "t", "levels": [850, 500]}])");
  EXPECT_EQ(brief.data.variables, (std::vector<example::Variable>{{"t2m", {}}, {"t", {850, 500}}}));
  EXPECT_EQ(error_with("data.variables=[3]"),
            "data.variables[0] must be a string or an object, not the number 3");

  EXPECT_EQ(with("mesh=auto").mesh, std::nullopt);
  EXPECT_EQ(with("mesh.domain=[2, 1]").mesh, (example::Mesh{1, {2, 1}}));
  EXPECT_EQ(error_with("mesh=none"), "mesh must be an object or \"auto\", not the string \"none\"");
  EXPECT_EQ(error_with("mesh.dta=1"), "unknown key mesh.dta (did you mean \"data\"?)");

  EXPECT_EQ(with("data.files=[\"a\", \"b\"]").data.files.size(), 2u);
  EXPECT_EQ(with(R"(data.train=["day 1", "day 2"])").data.train,
            (std::vector<std::vector<example::Day>>{{{1}, {2}}}));
  EXPECT_EQ(with(R"(data.train=[["day 1", "day 2"], ["day 4", "day 5"]])").data.train.size(), 2u);
  EXPECT_EQ(error_with(R"(data.train=[["day 1", "day x"]])"),
            "data.train[0][1] must be a day such as \"day 3\", not the string \"day x\"");
  EXPECT_EQ(error_with(R"(data.train=["day 1", 2])"),
            "data.train[1] must be a day such as \"day 3\", not the number 2");
  EXPECT_EQ(with("data.shape=null").data.shape, std::nullopt);
}

TEST(Parse, ChecksAcrossKeys) {
  EXPECT_EQ(error_with("warmup_steps=101"), "warmup_steps must be at most steps, 100, not 101");
}

TEST(Parse, ResolvedConfigurationIsCompleteOrderedAndParsesToTheSame) {
  EXPECT_EQ(
      to_json(parse<Config>(example::minimal())).dump(),
      R"({"name":"run","seed":1,"mesh":"auto","data":{"files":"a.nc","variables":["t2m"],"train":[],)"
      R"("shape":null,"lead_hours":6},"loss":{"type":"mse","area_weighted":true,"variable_weights":{}},)"
      R"("optimizer":{"learning_rate":0.5,"betas":[0.9,0.95],"groups":[]},"steps":100,"warmup_steps":10})");
  const Json full = parse_json(R"({"warmup_steps": 0, "mesh": {"data": 3}, "seed": 4.0,
      "data": {"files": ["a", "b"], "variables": ["u", {"name": "t", "levels": [500]}, {"name": "v"}],
               "train": [["day 1", "day 2"], ["day 3"]], "shape": [3, 4]},
      "loss": {"type": "l1", "variable_weights": {"t": 0.1, "u": 2}},
      "optimizer": {"groups": [{"match": "e.*", "learning_rate": 0.30000000000000004}, {"match": "d.*"}]}})",
                               "test");
  const Config config = parse<Config>(full);
  EXPECT_EQ(parse<Config>(to_json(config)), config);
  EXPECT_EQ(parse<Config>(parse_json(to_json(config).dump(2), "again")), config);
}

struct Patches {
  std::int64_t patch = 4;
};
struct Deeper : Patches {
  std::int64_t depth = 6;
};
template <typename T>
void declare_patches(Keys<T>& keys) {
  keys.add("patch", &Patches::patch).at_least(1).doc("Extent of a patch.");
}
void declare(Keys<Deeper>& keys) {
  declare_patches(keys);
  keys.add("depth", &Deeper::depth).at_least(1).doc("Number of blocks.");
}

TEST(Parse, KeysOfABaseCanBeShared) {
  EXPECT_EQ(parse<Deeper>(parse_json(R"({"patch": 2})", "test")).patch, 2);
  EXPECT_EQ(to_json(Deeper{}).dump(), R"({"patch":4,"depth":6})");
}

struct WithoutDoc {
  int a = 0;
};
void declare(Keys<WithoutDoc>& keys) {
  keys.add("a", &WithoutDoc::a);
}

struct Twice {
  int a = 0;
};
void declare(Keys<Twice>& keys) {
  keys.add("a", &Twice::a).doc("A.");
  keys.add("a", &Twice::a).doc("A.");
}

struct NoLength {
  int a = 0;
};
void declare(Keys<NoLength>& keys) {
  keys.add("a", &NoLength::a).length(2).doc("A.");
}

template <typename T>
std::string fault() {
  try {
    keys_of<T>();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Parse, FaultyDeclarationsShowAtOnce) {
  EXPECT_EQ(fault<WithoutDoc>(), "the key a is declared without doc");
  EXPECT_EQ(fault<Twice>(), "the key a is declared twice");
  EXPECT_EQ(fault<NoLength>(), "the key a has no length to restrict like this");
}

}  // namespace
}  // namespace jigsaw
