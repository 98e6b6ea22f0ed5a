#include "config/explain.h"

#include "config/layers.h"

namespace jigsaw {
namespace {

using example::Config;
using example::error_of;
using example::Network;

TEST(Explain, Keys) {
  EXPECT_EQ(explain<Config>("optimizer.learning_rate"),
            "optimizer.learning_rate\n"
            "  number above 0\n"
            "  default: 0.5\n"
            "  Step size of AdamW.\n");
  EXPECT_EQ(explain<Config>("loss.type"),
            "loss.type\n"
            "  \"mse\" or \"l1\"\n"
            "  default: \"mse\"\n"
            "  What is minimised.\n"
            "  values:\n"
            "    mse  Mean squared error.\n"
            "    l1   Mean absolute error.\n");
  EXPECT_EQ(explain<Config>("data.lead_hours"),
            "data.lead_hours\n"
            "  integer of at least 1\n"
            "  default: 6\n"
            "  Hours ahead | of now.\n"
            "  Must be a multiple of 6.\n");
  EXPECT_EQ(explain<Config>("optimizer.groups[3].match"), explain<Config>("optimizer.groups.match"));
  EXPECT_NE(explain<Config>("optimizer.groups.match").find("\n  required\n"), std::string::npos);
  EXPECT_EQ(explain<Config>("optimizer.groups[].match"), explain<Config>("optimizer.groups.match"));
  EXPECT_EQ(explain<Config>("optimizer.groups[]"), explain<Config>("optimizer.groups"));
  EXPECT_NE(explain<Config>("data.variables.levels").find("list of integers of at least 1"),
            std::string::npos);
}

TEST(Explain, SectionsListTheirKeys) {
  EXPECT_EQ(explain<Config>("mesh"),
            "mesh\n"
            "  object or \"auto\"\n"
            "  default: \"auto\"\n"
            "  How the ranks are arranged.\n"
            "  May change when a run goes on from a checkpoint.\n"
            "  keys:\n"
            "    data    integer of at least 1; default: 1\n"
            "    domain  list of integers of at least 1; default: []\n");
  EXPECT_NE(explain<Config>("").find("    optimizer     object\n"), std::string::npos);
}

TEST(Explain, UnknownKeysAreErrorsWithASuggestion) {
  EXPECT_EQ(error_of([] { explain<Config>("optimizer.learning_rte"); }),
            "there is no key \"optimizer.learning_rte\" (did you mean \"learning_rate\"?)");
  EXPECT_EQ(error_of([] { explain<Config>("otpimizer.learning_rate"); }),
            "there is no key \"otpimizer.learning_rate\" (did you mean \"optimizer\"?)");
  EXPECT_EQ(error_of([] { explain<Config>("name.x"); }), "there is no key \"name.x\"");
  EXPECT_EQ(error_of([] { explain<Config>("..3"); }), "there is no key \"..3\"");
  std::string endless = "model";
  for (int i = 0; i < 60; ++i) endless += ".layers";
  EXPECT_NE(error_of([&] { explain<Network>(endless); }), "");
}

TEST(Explain, NamesAloneAreFoundWhereverTheyAre) {
  EXPECT_EQ(explain<Config>("learning_rate"), explain<Config>("optimizer.learning_rate"));
  EXPECT_EQ(explain<Config>("levels"), explain<Config>("data.variables.levels"));
  EXPECT_EQ(explain<Network>("linear"), explain<Network>("model.linear"));
  EXPECT_EQ(explain<Network>("sgd"),
            explain<Network>("optimizer.sgd") + "\n" + explain<Network>("finetune.sgd"));
  EXPECT_EQ(error_of([] { explain<Config>("learning_rte"); }),
            "there is no key \"learning_rte\" (did you mean \"learning_rate\"?)");
}

TEST(Explain, TaggedSections) {
  EXPECT_EQ(explain<Network>("finetune"),
            "finetune\n"
            "  object with a \"type\" (optimizer)\n"
            "  default: {\"type\":\"sgd\",\"learning_rate\":0.1,\"momentum\":0.0}\n"
            "  How it learns at the end.\n"
            "  types:\n"
            "    adam  Adam.\n"
            "    sgd   Gradient descent.\n");
  EXPECT_EQ(explain<Network>("model.repeat.layers.linear.bias"),
            "model.layers.bias, where model.type is \"repeat\" and model.layers.type is \"linear\"\n"
            "  boolean\n"
            "  default: true\n"
            "  Add a bias.\n");
  EXPECT_EQ(explain<Network>("optimizer.momentum").substr(0, 51),
            "optimizer.momentum, where optimizer.type is \"sgd\"\n ");
  const std::string both = explain<Network>("optimizer.learning_rate");
  EXPECT_NE(both.find("where optimizer.type is \"adam\""), std::string::npos);
  EXPECT_NE(both.find("where optimizer.type is \"sgd\""), std::string::npos);
  EXPECT_NE(explain<Network>("model.linear").find("    features  integer of at least 1; required\n"),
            std::string::npos);
  EXPECT_NE(explain<Network>("optimizer.type").find("default: \"adam\""), std::string::npos);
  EXPECT_EQ(explain<Network>("linear.bias"), explain<Network>("model.linear.bias"));
  EXPECT_EQ(error_of([] { explain<Network>("model.tims"); }),
            "there is no key \"model.tims\" (did you mean \"times\"?)");
}

TEST(Reference, IsATablePerSectionAndType) {
  const std::string text = reference<Config>();
  EXPECT_NE(text.find("| `lead_hours` | integer of at least 1 | `6` | Hours ahead \\| of now. Must be a "
                      "multiple of 6. |\n"),
            std::string::npos);
  EXPECT_NE(text.find("| `files` | string, or a list of at least one | required | Files to read. |\n"),
            std::string::npos);
  EXPECT_NE(
      text.find("| `type` | \"mse\" or \"l1\" | `\"mse\"` | What is minimised. `mse`: Mean squared error. "),
      std::string::npos);
  EXPECT_NE(text.find("| Number of steps. May change when a run goes on from a checkpoint. |"),
            std::string::npos);
  for (const char* heading : {"## `data`", "## `data.variables[]`", "## `mesh`", "## `optimizer.groups[]`"}) {
    EXPECT_NE(text.find(concat(heading, "\n\n")), std::string::npos) << heading;
  }
  const std::string tagged = reference<Network>();
  EXPECT_NE(tagged.find("## layer of type `repeat`\n\nA chain of layers, several times.\n\n| key |"),
            std::string::npos);
  EXPECT_NE(tagged.find("| `optimizer` | object with a \"type\" (optimizer) | "
                        "`{\"type\":\"adam\",\"learning_rate\":0.001}` | How it learns. |"),
            std::string::npos);
  EXPECT_NE(tagged.find("## optimizer of type `adam`\n\nThe default type. Adam.\n\n"), std::string::npos);
  EXPECT_EQ(tagged.find("layer of type `repeat`"), tagged.rfind("layer of type `repeat`"));
}

}  // namespace
}  // namespace jigsaw
