#include "layers/linear.h"

#include "config/config.h"
#include "layers/limits.h"

namespace jigsaw::inline layers {

void declare(Keys<LinearOptions>& keys) {
  keys.add("features", &LinearOptions::features)
      .required()
      .range(1, kMostChannels)
      .doc("Channels of the result.");
  keys.add("bias", &LinearOptions::bias).doc("Whether a learned bias is added.");
  keys.add("zero_start", &LinearOptions::zero_start)
      .doc("Whether weight and bias start at zero, so that the untrained layer gives zeros.");
}

Letters hidden_units(char letter, std::int64_t size) {
  constexpr std::int64_t kMany = 4096, kUnit = 8;
  return size >= kMany ? Letters{{letter, kUnit}} : Letters{};
}

Linear::Linear(const LayerSite& site, const LinearOptions& options)
    : Layer({site.input.space, options.features}), path_(site.path) {
  const Initial initial = options.zero_start ? Initial::constant(0) : Initial::fan_in(site.input.channels);
  weight_ = site.weight("weight", {options.features, site.input.channels}, initial, 1);
  if (options.bias) bias_ = site.parameter("bias", {options.features}, initial);
}

Variable Linear::product(Tape& tape, const Variable& x, const Letters& units) const {
  const int space = x.shape().rank() - 2;
  return contract(tape, field_letters(space, 'k') + ",nk->" + field_letters(space, 'n'), x, weight_, units);
}

Variable Linear::run(Tape& tape, const Variable& x, const Variable& residual) const {
  Variable y = product(tape, x);
  if (!bias_.defined() && !residual.defined()) return y;
  return pointwise(tape, y, {field_letters(x.shape().rank() - 2, 'n'), bias_, "n", residual});
}

Variable Linear::run(Tape& tape, const Variable& x, const InnerActivation& activation, double dropout) const {
  Pointwise pass{field_letters(x.shape().rank() - 2, 'n'), bias_, "n"};
  pass.dropout = dropout;
  pass.path = path_;
  return activation.run(tape, product(tape, x, hidden_units('n', output().channels)), pass, 'n');
}

}  // namespace jigsaw::inline layers
