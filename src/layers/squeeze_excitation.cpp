#include "layers/squeeze_excitation.h"

#include "autograd/field_operations.h"
#include "config/config.h"
#include "kernels/pointwise.h"
#include "layers/limits.h"

namespace jigsaw::inline layers {

namespace {

/// The site of the maps, whose input is the mean over space.
LayerSite site_of_mean(LayerSite site) {
  site.input = {Shape::filled(site.input.space.rank(), 1), site.input.channels};
  return site;
}

/// [B, 1…, C] → [B, C].
Variable without_space(Tape& tape, const Variable& x) {
  const int space = x.shape().rank() - 2;
  const std::string ones = std::string("xyz").substr(0, static_cast<std::size_t>(space));
  const Array one = filled(tape.context(), Shape::filled(space, 1), tape.dtype(), 1, Purpose::kWorkspace);
  return contract(tape, "b" + ones + "c," + ones + "->bc", x, Variable({one, {one.shape(), {}}}, false));
}

}  // namespace

void declare(Keys<SqueezeExcitationOptions>& keys) {
  keys.add("hidden_ratio", &SqueezeExcitationOptions::hidden_ratio)
      .above(0)
      .at_most(kLargestRatio)
      .doc("Hidden size over the number of channels.");
  declare_activation(keys, &SqueezeExcitationOptions::activation, "to the hidden numbers");
}

// A component of a vector times a factor of the whole field is one still, but in units that the factor
// changed: what crosses a pole is no longer known, and the result is a scalar.
SqueezeExcitation::SqueezeExcitation(const LayerSite& site, const SqueezeExcitationOptions& options)
    : Layer({site.input.space, site.input.channels}),
      factors_(site_of_mean(site), ChannelMixingOptions{options.hidden_ratio, 0, options.activation}) {}

Variable SqueezeExcitation::run(Tape& tape, const Variable& x, const Variable& residual) const {
  const std::string field = field_letters(x.shape().rank() - 2, 'c');
  const Variable factors =
      pointwise(tape, without_space(tape, factors_.run(tape, global_average(tape, x), Variable())),
                {.letters = "bc", .activation = Activation::kSigmoid});
  return add_residual(tape, contract(tape, field + ",bc->" + field, x, factors), residual);
}

}  // namespace jigsaw::inline layers
