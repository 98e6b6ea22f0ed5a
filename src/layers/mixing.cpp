#include "layers/mixing.h"

#include <algorithm>
#include <cmath>

#include "config/config.h"
#include "layers/limits.h"

namespace jigsaw::inline layers {

namespace {

std::int64_t hidden_size(double ratio, std::int64_t width) {
  return std::max<std::int64_t>(1, std::llround(ratio * static_cast<double>(width)));
}

template <typename Options>
void declare_mixing(Keys<Options>& keys, const char* of_what) {
  keys.add("hidden_ratio", &Options::hidden_ratio)
      .above(0)
      .at_most(kLargestRatio)
      .doc(concat("Hidden size over the number of ", of_what, "."));
  keys.add("dropout", &Options::dropout)
      .at_least(0)
      .below(1)
      .doc("Dropout probability behind the activation.");
  declare_activation(keys, &Options::activation, "to the hidden numbers");
}

}  // namespace

void declare(Keys<ChannelMixingOptions>& keys) {
  declare_mixing(keys, "channels");
}
void declare(Keys<TokenMixingOptions>& keys) {
  declare_mixing(keys, "points");
}

ChannelMixing::ChannelMixing(const LayerSite& site, const ChannelMixingOptions& options)
    : ChannelMixing(site, {hidden_size(options.hidden_ratio, site.input.channels), site.input.channels},
                    options.dropout, options.activation) {}

ChannelMixing::ChannelMixing(const LayerSite& site, const ChannelSizes& sizes, double dropout,
                             ActivationKind activation)
    : Layer({site.input.space, sizes.features}),
      dropout_(dropout),
      fc1_(site.inner("fc1", site.input), {sizes.hidden}),
      activation_(site.inner("activation", fc1_.output()), activation, sizes.hidden),
      fc2_(site.inner("fc2", fc1_.output()), {sizes.features, true, sizes.zero_start}) {}

Variable ChannelMixing::run(Tape& tape, const Variable& x, const Variable& residual) const {
  return fc2_.run(tape, fc1_.run(tape, x, activation_, dropout_), residual);
}

TokenMixing::TokenMixing(const LayerSite& site, const TokenMixingOptions& options)
    : Layer(site.input),
      path_(site.path),
      dropout_(options.dropout),
      activation_(site.inner("activation", site.input), options.activation,
                  hidden_size(options.hidden_ratio, site.input.space.count())) {
  const Shape& space = site.input.space;
  const std::int64_t tokens = space.count(), hidden = hidden_size(options.hidden_ratio, tokens);
  Shape first{hidden}, last = space;
  for (const std::int64_t extent : space) first.append(extent);
  last.append(hidden);
  const LayerSite fc1 = site.inner("fc1", site.input), fc2 = site.inner("fc2", site.input);
  weight1_ = fc1.parameter("weight", first, Initial::fan_in(tokens));
  bias1_ = fc1.parameter("bias", {hidden}, Initial::fan_in(tokens));
  weight2_ = fc2.parameter("weight", last, Initial::fan_in(hidden));
  bias2_ = fc2.parameter("bias", space, Initial::fan_in(hidden));
}

Variable TokenMixing::run(Tape& tape, const Variable& x, const Variable& residual) const {
  const int space = x.shape().rank() - 2;
  const std::string field = field_letters(space, 'c'), points = space_letters(space);
  Variable hidden =
      contract(tape, field + ",t" + points + "->btc", x, weight1_, hidden_units('t', weight1_.shape()[0]));
  hidden = activation_.run(tape, hidden, {"btc", bias1_, "t", {}, Activation::kNone, dropout_, path_}, 't');
  const Variable y = contract(tape, "btc," + points + "t->" + field, hidden, weight2_);
  return pointwise(tape, y, {field, bias2_, points, residual, Activation::kNone, 0.0, path_});
}

}  // namespace jigsaw::inline layers
