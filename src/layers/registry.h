#pragma once
#include "config/tagged.h"
#include "layers/layer.h"
#include "layers/model.h"

namespace jigsaw::inline layers {

/// The layer zoo: every layer that configurations may name, with its keys. A new layer is a source with
/// its header, and a line in registry.cpp.
const TagRegistry& layer_types();
/// Builds one of them. @throws ConfigError that names the key.
LayerPtr build_layer(const Tagged& layer, const LayerSite& site, const ModelDescription& description);

/// The models that configurations may name. A new one is a source with its header, and a line in
/// registry.cpp.
const TagRegistry& model_types();
/// Appends the layers of one of them. @throws ConfigError that names the key.
void append_model(Model& model, const Tagged& options);

}  // namespace jigsaw::inline layers
