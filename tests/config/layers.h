#pragma once
#include "config/example.h"

/// A registry of layers that may contain layers, and a configuration that uses it.
namespace jigsaw::example {

const TagRegistry& layer_types();

struct Linear {
  std::int64_t features = 0;
  bool bias = true;
};
inline void declare(Keys<Linear>& keys) {
  keys.add("features", &Linear::features).required().at_least(1).doc("Extent of the output.");
  keys.add("bias", &Linear::bias).doc("Add a bias.");
}

struct Gelu {};
inline void declare(Keys<Gelu>&) {}

struct Repeat {
  std::int64_t times = 1;
  std::vector<Tagged> layers;
};
inline void declare(Keys<Repeat>& keys) {
  keys.add("times", &Repeat::times).range(1, 1000).doc("How often.");
  keys.tagged("layers", &Repeat::layers, layer_types).required().not_empty().doc("What is repeated.");
}

inline TagRegistry make_layer_types() {
  TagRegistry types("layer");
  types.add<Linear>("linear", "A linear map of the channels.");
  types.add<Gelu>("gelu", "GELU, elementwise.");
  types.add<Repeat>("repeat", "A chain of layers, several times.");
  return types;
}
inline const TagRegistry& layer_types() {
  static const TagRegistry types = make_layer_types();
  return types;
}

struct Adam {
  double learning_rate = 1e-3;
};
inline void declare(Keys<Adam>& keys) {
  keys.add("learning_rate", &Adam::learning_rate).at_least(0).doc("Step size.");
}
struct Sgd {
  double learning_rate = 0.1;
  double momentum = 0;
};
inline void declare(Keys<Sgd>& keys) {
  keys.add("learning_rate", &Sgd::learning_rate).at_least(0).doc("Step size.");
  keys.add("momentum", &Sgd::momentum).changeable().at_least(0).below(1).doc("Decay of the mean gradient.");
}
inline const TagRegistry& optimizer_types() {
  static const TagRegistry types = [] {
    TagRegistry made("optimizer", "adam");
    made.add<Adam>("adam", "Adam.");
    made.add<Sgd>("sgd", "Gradient descent.");
    return made;
  }();
  return types;
}

struct Network {
  Tagged model;
  Tagged optimizer;
  Tagged finetune = optimizer_types().make("sgd");
  bool operator==(const Network&) const = default;
};
inline void declare(Keys<Network>& keys) {
  keys.tagged("model", &Network::model, layer_types).doc("The network.");
  keys.tagged("optimizer", &Network::optimizer, optimizer_types).doc("How it learns.");
  keys.tagged("finetune", &Network::finetune, optimizer_types).doc("How it learns at the end.");
}

}  // namespace jigsaw::example
