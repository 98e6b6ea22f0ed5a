#include "config/tagged.h"

#include "config/layers.h"

namespace jigsaw {
namespace {

using example::error_of;
using example::Network;

Network network(const std::string& model) {
  return parse<Network>(parse_json("{\"model\": " + model + "}", "test"));
}
std::string network_error(const std::string& model) {
  return error_of([&] { network(model); });
}

TEST(Tagged, TypeSelectsTheTableAndTablesNest) {
  const Network net =
      network(R"({"type": "repeat", "layers": [{"type": "linear", "features": 8}, {"type": "gelu"},
                      {"type": "repeat", "times": 6, "layers": [{"type": "linear", "features": 3, "bias": false}]}]})");
  EXPECT_EQ(net.model.type(), "repeat");
  const auto& outer = net.model.options<example::Repeat>();
  EXPECT_EQ(outer.times, 1);
  ASSERT_EQ(outer.layers.size(), 3u);
  EXPECT_EQ(outer.layers[0].options<example::Linear>().features, 8);
  EXPECT_EQ(outer.layers[1].type(), "gelu");
  const auto& inner = outer.layers[2].options<example::Repeat>();
  EXPECT_EQ(inner.times, 6);
  EXPECT_FALSE(inner.layers[0].options<example::Linear>().bias);
  EXPECT_THROW(outer.layers[1].options<example::Linear>(), Error);

  EXPECT_EQ(parse<Network>(to_json(net)), net);
  EXPECT_EQ(to_json(net)["model"]["layers"][2].dump(),
            R"({"type":"repeat","times":6,"layers":[{"type":"linear","features":3,"bias":false}]})");
}

TEST(Tagged, ErrorsCarryTheDottedPath) {
  EXPECT_EQ(network_error(R"({"type": "repeat", "layers": [{"type": "gelu"}, {"type": "gelu"},
                             {"type": "repeat", "times": 0, "layers": [{"type": "gelu"}]}]})"),
            "model.layers[2].times must be between 1 and 1000, not 0");
  EXPECT_EQ(network_error(R"({"type": "repeat", "layers": [{"type": "lin"}]})"),
            "model.layers[0].type must be one of \"linear\", \"gelu\", \"repeat\", not \"lin\" "
            "(did you mean \"linear\"?)");
  EXPECT_EQ(
      network_error(R"({"type": "repeat", "layers": [{"type": "linear", "features": 1, "bais": true}]})"),
      "unknown key model.layers[0].bais (did you mean \"bias\"?)");
  EXPECT_EQ(network_error(R"({"type": "repeat", "layers": []})"),
            "model.layers must be a list of one or more objects with a \"type\" (layer), not an empty list");
  EXPECT_EQ(network_error(R"({"type": "linear"})"),
            "model.features is required; give it an integer of at least 1");
  EXPECT_EQ(network_error("3"), "model must be an object with a \"type\" (layer), not the number 3");
  EXPECT_EQ(network_error("{}"), "model.type is required; give it one of \"linear\", \"gelu\", \"repeat\"");
  EXPECT_EQ(error_of([] { parse<Network>(Json::object()); }),
            "model.type is required; give it one of \"linear\", \"gelu\", \"repeat\"");
}

TEST(Tagged, DefaultTypesAndDefaultsOfTheMember) {
  const Network net = network(R"({"type": "gelu"})");
  EXPECT_EQ(to_json(net).dump(),
            R"({"model":{"type":"gelu"},"optimizer":{"type":"adam","learning_rate":0.001},)"
            R"("finetune":{"type":"sgd","learning_rate":0.1,"momentum":0.0}})");
  const Json given = parse_json(R"({"model": {"type": "gelu"}, "optimizer": {"learning_rate": 2},
                                    "finetune": {"type": "sgd", "momentum": 0.5}})",
                                "test");
  const Network other = parse<Network>(given);
  EXPECT_EQ(other.optimizer.options<example::Adam>().learning_rate, 2);
  EXPECT_EQ(other.finetune.options<example::Sgd>().momentum, 0.5);
  EXPECT_FALSE(other == net);
}

TEST(Tagged, DepthIsGuardedForJsonMadeInMemory) {
  Json json = {{"type", "gelu"}};
  for (int i = 0; i < 2000; ++i) {
    Json outer = {{"type", "repeat"}, {"layers", Json::array()}};
    outer["layers"].push_back(std::move(json));
    json = std::move(outer);
  }
  Json config = Json::object();
  config["model"] = std::move(json);
  EXPECT_NE(error_of([&] { parse<Network>(config); }).find("nested deeper than 100 levels"),
            std::string::npos);
}

TEST(Tagged, RegistriesRefuseFaultyTypes) {
  TagRegistry types("layer");
  types.add<example::Gelu>("gelu", "GELU.");
  EXPECT_THROW(types.add<example::Gelu>("gelu", "Again."), Error);
  EXPECT_THROW(types.add<example::Gelu>("silent", ""), Error);
  EXPECT_THROW(types.add<example::Loss>("loss", "Has a key \"type\" of its own."), Error);
  EXPECT_THROW(types.make("linear"), Error);
}

}  // namespace
}  // namespace jigsaw
