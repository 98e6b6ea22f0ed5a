#pragma once
#include "config/keys.h"
#include "layers/linear.h"

namespace jigsaw::inline layers {

/// Channel mixing: linear, activation, dropout, linear over the channels of each point (the MLP of a
/// transformer).
struct ChannelMixingOptions {
  double hidden_ratio = 4.0;
  double dropout = 0.0;
  ActivationKind activation = ActivationKind::kGelu;
};
void declare(Keys<ChannelMixingOptions>& keys);

/// Numbers at each point inside such a layer and behind it.
struct ChannelSizes {
  std::int64_t hidden = 0, features = 0;
  bool zero_start = false;  ///< whether the last map starts at zero
};

/// Parameters, with hidden size T = round(hidden_ratio × C): fc1.weight [T, C], fc1.bias [T], fc2.weight [C,
/// T], fc2.bias [C], each as torch.nn.Linear starts them; with "prelu" activation.slope [T].
class ChannelMixing : public Layer {
 public:
  ChannelMixing(const LayerSite& site, const ChannelMixingOptions& options);
  /// To another number of channels.
  ChannelMixing(const LayerSite& site, const ChannelSizes& sizes, double dropout, ActivationKind activation);
  Variable run(Tape& tape, const Variable& x, const Variable& residual) const override;

 private:
  double dropout_;
  Linear fc1_;
  InnerActivation activation_;
  Linear fc2_;
};

/// Token mixing (MLP-Mixer, Tolstikhin et al. 2021): linear, activation, dropout, linear over all points of
/// each channel.
struct TokenMixingOptions {
  double hidden_ratio = 0.5;
  double dropout = 0.0;
  ActivationKind activation = ActivationKind::kGelu;
};
void declare(Keys<TokenMixingOptions>& keys);

/// Parameters, over points h, w (d, h, w) with hidden size T = round(hidden_ratio × points): fc1.weight [T,
/// h, w], fc1.bias [T], fc2.weight [h, w, T], fc2.bias [h, w]: torch.nn.Linear's over flattened points; with
/// "prelu" activation.slope [T].
class TokenMixing : public Layer {
 public:
  TokenMixing(const LayerSite& site, const TokenMixingOptions& options);
  Variable run(Tape& tape, const Variable& x, const Variable& residual) const override;

 private:
  std::string path_;
  double dropout_;
  InnerActivation activation_;
  Variable weight1_, bias1_, weight2_, bias2_;
};

}  // namespace jigsaw::inline layers
