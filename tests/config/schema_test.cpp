#include "config/schema.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "config/layers.h"
#include "support/quoted.h"
#include "support/source_dir.h"

namespace jigsaw {
namespace {

TEST(Schema, SaysTypesRangesDefaultsAndDocs) {
  const Json all = schema<example::Config>();
  EXPECT_EQ(all["$schema"], "https://json-schema.org/draft/2020-12/schema");
  EXPECT_EQ(all["additionalProperties"], false);
  EXPECT_EQ(all["required"].dump(), R"(["data"])");
  const Json& optimizer = all["properties"]["optimizer"];
  EXPECT_EQ(optimizer["properties"]["learning_rate"].dump(),
            R"({"description":"Step size of AdamW.","type":"number","exclusiveMinimum":0,"default":0.5})");
  EXPECT_EQ(optimizer["properties"]["betas"]["minItems"], 2);
  EXPECT_EQ(optimizer["properties"]["groups"]["items"]["required"].dump(), R"(["match"])");
  EXPECT_EQ(
      all["properties"]["loss"]["properties"]["type"].dump(),
      R"({"description":"What is minimised. \"mse\": Mean squared error. \"l1\": Mean absolute error.",)"
      R"("enum":["mse","l1"],"default":"mse"})");
  EXPECT_EQ(all["properties"]["data"]["properties"]["lead_hours"]["description"],
            "Hours ahead | of now. Must be a multiple of 6.");
}

struct Brief {
  int steps = 1;
};
struct Bounded {
  int any = 0;
  std::int64_t large = 0;
  Brief steps;
};
void declare(Keys<Brief>& keys) {
  keys.add("steps", &Brief::steps).doc("So many.");
}
void declare(Keys<Bounded>& keys) {
  keys.add("any", &Bounded::any).doc("Of 32 bits.");
  keys.add("large", &Bounded::large).at_least(0).doc("Of 64 bits.");
  keys.add("steps", &Bounded::steps,
           shorthand<Brief, int>(
               section<Brief>(), form_of<int>(), [](const int& steps) { return Brief{steps}; },
               [](const Brief& brief) { return std::optional(brief.steps); }))
      .range(1, 100)
      .doc("So many, in brief.");
}

/// What a type cannot hold is refused, and so is what a brief form may not be.
TEST(Schema, BoundsAreThoseOfTheParser) {
  const Json properties = schema<Bounded>()["properties"];
  EXPECT_EQ(properties["any"]["minimum"], -2147483648LL);
  EXPECT_EQ(properties["any"]["maximum"], 2147483647);
  EXPECT_EQ(properties["large"]["minimum"], 0);
  EXPECT_FALSE(properties["large"].contains("maximum"));
  EXPECT_EQ(properties["steps"]["anyOf"][0].dump(), R"({"type":"integer","minimum":1,"maximum":100})");
  const auto error_with = [](const char* key, std::int64_t value) {
    return example::error_of([&] { parse<Bounded>({{key, value}}); });
  };
  EXPECT_EQ(error_with("any", 2147483647), "");
  EXPECT_EQ(error_with("any", 2147483648), "any must be between -2147483648 and 2147483647, not 2147483648");
  EXPECT_EQ(error_with("large", std::numeric_limits<std::int64_t>::max()), "");
  EXPECT_EQ(error_with("steps", 100), "");
  EXPECT_EQ(error_with("steps", 0), "steps must be between 1 and 100, not 0");
}

TEST(Schema, TaggedTypesAreDefinitionsThatMayContainOneAnother) {
  const Json all = schema<example::Network>();
  EXPECT_EQ(all["required"].dump(), R"(["model"])");
  EXPECT_EQ(all["properties"]["model"]["$ref"], "#/$defs/layer");
  EXPECT_EQ(all["$defs"]["layer"]["oneOf"].size(), 3u);
  EXPECT_EQ(all["$defs"]["layer.repeat"]["properties"]["layers"]["items"]["$ref"], "#/$defs/layer");
  EXPECT_EQ(all["$defs"]["optimizer.sgd"]["required"].dump(), R"(["type"])");
  EXPECT_EQ(all["$defs"]["optimizer.adam"]["required"].dump(), R"([])");
}

/// What the jsonschema package says of the documents, a character each; "" where it is not installed.
std::string verdicts(const Json& schema, const Json& documents) {
  const std::string base = ::testing::TempDir() + "jigsaw_schema_" + std::to_string(getpid());
  std::ofstream(base + ".json") << Json{{"schema", schema}, {"documents", documents}};
  const std::string script = testing::source_dir() + "/tests/config/schema_check.py";
  const int status =
      std::system(concat("python3 ", testing::quoted(script), " ", testing::quoted(base + ".json"), " > ",
                         testing::quoted(base + ".txt"), " 2>/dev/null")
                      .c_str());
  std::string result;
  std::ifstream(base + ".txt") >> result;
  std::filesystem::remove(base + ".json");
  std::filesystem::remove(base + ".txt");
  constexpr int kNotThere = 127, kNoPackage = 77;
  const int code = WEXITSTATUS(status);
  if (code != kNotThere && code != kNoPackage && result.empty()) result = "the validator failed";
  return result;
}

/// The validator and the parser must agree on every document.
template <typename T>
void expect_agreement(const Json& documents) {
  std::string parsed;
  for (const Json& document : documents) {
    parsed += example::error_of([&] { parse<T>(document); }).empty() ? '1' : '0';
  }
  EXPECT_NE(parsed.find('0'), std::string::npos);
  EXPECT_NE(parsed.find('1'), std::string::npos);
  const std::string validated = verdicts(schema<T>(), documents);
  if (validated.empty()) GTEST_SKIP() << "python3 with the jsonschema package is not installed";
  EXPECT_EQ(validated, parsed);
}

TEST(Schema, AgreesWithTheParserOnSections) {
  Json documents = Json::array();
  for (const char* change : {"name=x",
                             "name=3",
                             "seed=1.0",
                             "seed=1.5",
                             "seed=-1",
                             "mesh=auto",
                             "mesh=other",
                             "mesh={}",
                             "mesh.x=1",
                             "mesh.data=0",
                             "data.files=[\"a\", \"b\"]",
                             "data.files=[]",
                             "data.files=3",
                             "data.variables=[]",
                             "data.variables=t",
                             "$schema=https://example.org/schema.json",
                             "$schema=3",
                             "data.$schema=x",
                             "optimizer.betas=x",
                             "optimizer.groups=x",
                             "data.train=day 1",
                             "data.train=day x",
                             "data.variables=[{\"name\": \"t\", \"levels\": [1]}]",
                             "data.variables=[{}]",
                             "data.variables=[\"t\", 3]",
                             "data.train=[\"day 1\", \"day 2\"]",
                             "data.train=[[\"day 1\"], [\"day 2\"]]",
                             "data.train=[\"day x\"]",
                             "data.shape=null",
                             "data.shape=[1, 2]",
                             "data.shape=[1]",
                             "data.shape=[1, 0]",
                             "data.lead_hours=12",
                             "data.typo=1",
                             "loss.type=l1",
                             "loss.type=l2",
                             "loss.variable_weights.a=1",
                             "loss.variable_weights.a=-1",
                             "loss.variable_weights.a=b",
                             "loss=null",
                             "optimizer.betas=[0, 0.5]",
                             "optimizer.betas=[0, 1]",
                             "optimizer.betas=[0]",
                             "optimizer.groups=[{\"match\": \"a\"}]",
                             "optimizer.groups=[{}]",
                             "optimizer.groups=[{\"match\": \"a\", \"learning_rate\": null}]"}) {
    Json document = example::minimal();
    apply_override(document, change);
    documents.push_back(document);
  }
  documents.push_back(Json::object());
  documents.push_back(to_json(parse<example::Config>(example::minimal())));
  expect_agreement<example::Config>(documents);
}

TEST(Schema, AgreesWithTheParserOnTaggedSections) {
  const Json documents = parse_json(R"([
      {}, {"model": 3}, {"model": {}}, {"model": {"type": "gelu"}}, {"model": {"type": "glu"}},
      {"model": {"type": "gelu", "features": 3}}, {"model": {"type": "linear"}},
      {"model": {"type": "linear", "features": 3}}, {"model": {"type": "linear", "features": 0}},
      {"model": {"type": "repeat", "layers": []}},
      {"model": {"type": "repeat", "layers": [{"type": "repeat", "times": 2, "layers": [{"type": "gelu"}]}]}},
      {"model": {"type": "repeat", "layers": [{"type": "repeat", "times": 0, "layers": [{"type": "gelu"}]}]}},
      {"model": {"type": "gelu"}, "optimizer": {}},
      {"model": {"type": "gelu"}, "optimizer": {"learning_rate": 1}},
      {"model": {"type": "gelu"}, "optimizer": {"momentum": 0.5}},
      {"model": {"type": "gelu"}, "optimizer": {"type": "sgd", "momentum": 0.5}}
    ])",
                                    "test");
  expect_agreement<example::Network>(documents);
}

}  // namespace
}  // namespace jigsaw
