#pragma once
#include "config/keys.h"
#include "layers/layer.h"

namespace jigsaw::inline layers {

/// The time of a model's input, added at each point of what its layers make of that input: φ → linear → SiLU
/// → linear, as diffusion transformers embed their time (Peebles and Xie 2023, arXiv 2212.09748), where φ are
/// the sines and cosines of the time of the day, at time 0 and at the first target, and of the day of the
/// year at time 0: the input's own forcing channels, which are alike at all points and are taken as their
/// mean.
struct TimeEmbeddingOptions {
  std::vector<Tagged> layers;
};
void declare(Keys<TimeEmbeddingOptions>& keys);

/// Parameters, for K channels that tell time and N that the layers give: fc1.weight [N, K], fc1.bias [N],
/// fc2.weight [N, N], fc2.bias [N], each as torch.nn.Linear starts them; and those of its layers.
class TimeEmbedding : public Layer {
 public:
  /// @param site   names its own parameters; its input is the model's, with LayerSite::time_channels.
  /// @param inner  its layers, built on the same input.
  TimeEmbedding(const LayerSite& site, LayerPtr inner);
  std::vector<std::int64_t> input_units() const override { return inner_->input_units(); }
  std::vector<std::int64_t> output_units() const override { return inner_->output_units(); }
  Variable run(Tape& tape, const Variable& x, const Variable& residual) const override;

 private:
  LayerPtr inner_;
  std::vector<std::int64_t> channels_;
  LayerPtr fc1_, fc2_;
};

/// A model's encoder, with the time added to its result (parameters time.*) where `wanted`.
/// @throws ConfigError  under `time_embedding` when nothing in the input tells the time.
LayerPtr with_time(const LayerSite& site, bool wanted, LayerPtr encoder);

}  // namespace jigsaw::inline layers
