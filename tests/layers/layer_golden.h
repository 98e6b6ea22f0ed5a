#pragma once
#include <functional>
#include <string>
#include <vector>

#include "layers/layer.h"
#include "support/parameters.h"

namespace jigsaw::testing {

/// A layer of a golden file: what PyTorch says of one forward and backward pass in float64.
struct LayerGolden {
  std::string name;
  Shape field;  ///< the input as [B, space…, C]
  std::function<LayerPtr(const LayerSite&)> build;
  std::vector<double> input, output_gradient;
  Tensors parameters;
  bool training = false;
  std::vector<std::int64_t> time_channels = {};  ///< as LayerSite has them
  Tensors expected;  ///< "output", "input" and the gradients of parameters by their name
};

/// @param file, name  such as "layers.h5", and a group in it.
LayerGolden read_layer(const std::string& file, const std::string& name, const Shape& field,
                       std::function<LayerPtr(const LayerSite&)> build);

/// Output and all gradients of a golden's layer on one mesh, whole.
Tensors run_layer_on(const LayerGolden& golden, const std::vector<int>& domain, int tensor);
/// The same as PyTorch's.
void check_layer_on(const LayerGolden& golden, const std::vector<int>& domain, int tensor);
/// The same on one rank and on meshes of 2 to 8.
void check_layer(const LayerGolden& golden);

/// The gradients that the file holds, of every element, against central differences of our own layer.
void check_differences(const LayerGolden& golden);

/// Builds a layer from its options.
template <typename L, typename Options>
std::function<LayerPtr(const LayerSite&)> layer(const Options& options) {
  return [options](const LayerSite& site) { return std::make_unique<L>(site, options); };
}

}  // namespace jigsaw::testing
