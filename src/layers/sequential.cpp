#include "layers/sequential.h"

#include "base/text.h"
#include "config/config.h"
#include "layers/concat_skip.h"
#include "layers/limits.h"
#include "layers/registry.h"

namespace jigsaw::inline layers {

void declare(Keys<SequentialOptions>& keys) {
  keys.tagged("layers", &SequentialOptions::layers, layer_types)
      .required()
      .not_empty()
      .doc("The layers, first to last.");
}

void declare(Keys<RepeatOptions>& keys) {
  keys.add("times", &RepeatOptions::times).required().range(1, kMostBlocks).doc("How often.");
  keys.tagged("layers", &RepeatOptions::layers, layer_types).required().not_empty().doc("What is repeated.");
}

namespace {

void append(Model& model, const std::vector<Tagged>& layers, const std::string& path,
            const std::string& key) {
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const std::string layer_path = concat(path, ".", i), layer_key = concat(key, ".layers[", i, "]");
    if (layers[i].type() == "repeat") {
      const auto& repeat = layers[i].options<RepeatOptions>();
      for (std::int64_t time = 0; time < repeat.times; ++time) {
        append(model, repeat.layers, concat(layer_path, ".", time), layer_key);
      }
    } else if (layers[i].type() == "concat_skip") {
      const std::size_t value = model.value();
      append(model, layers[i].options<ConcatSkipOptions>().layers, layer_path, layer_key);
      model.join(value, layer_key);
    } else {
      model.append(layer_path, layer_key,
                   [&](const LayerSite& site) { return build_layer(layers[i], site, model.description()); });
    }
  }
}

}  // namespace

void append_layers(Model& model, const SequentialOptions& options) {
  append(model, options.layers, "layers", "model");
}

}  // namespace jigsaw::inline layers
