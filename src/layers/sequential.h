#pragma once
#include "config/keys.h"
#include "layers/model.h"

namespace jigsaw::inline layers {

/// Any chain of the layer zoo; each layer is one block.
struct SequentialOptions {
  std::vector<Tagged> layers;
};
void declare(Keys<SequentialOptions>& keys);

struct RepeatOptions {
  std::int64_t times = 1;
  std::vector<Tagged> layers;
};
void declare(Keys<RepeatOptions>& keys);

/// Appends the layers to the model; parameters of layer i are layers.i.…, of the j-th repetition's layer k
/// layers.i.j.k.….
void append_layers(Model& model, const SequentialOptions& options);

}  // namespace jigsaw::inline layers
