#include "layers/group_norm.h"

#include <algorithm>

#include "base/text.h"
#include "config/config.h"
#include "layers/limits.h"

namespace jigsaw::inline layers {

void declare(Keys<GroupNormOptions>& keys) {
  keys.add("groups", &GroupNormOptions::groups)
      .required()
      .range(1, kMostChannels)
      .doc("Number of groups; it divides the channels.");
  keys.add("eps", &GroupNormOptions::eps).above(0).doc("Added to the variance.");
  declare_activation(keys, &GroupNormOptions::activation, "to what is normalised");
}

void declare(Keys<InstanceNormOptions>& keys) {
  keys.add("eps", &InstanceNormOptions::eps).above(0).doc("Added to the variance.");
  declare_activation(keys, &InstanceNormOptions::activation, "to what is normalised");
}

namespace {

/// The largest number of groups up to the one asked for that divides the channels.
std::int64_t next_that_divides(std::int64_t channels, std::int64_t groups) {
  std::int64_t divisor = std::min(groups, channels);
  while (channels % divisor != 0) --divisor;
  return divisor;
}

}  // namespace

GroupNorm::GroupNorm(const LayerSite& site, const GroupNormOptions& options)
    : Layer(site.input),
      groups_(options.groups),
      eps_(options.eps),
      activation_(site.inner("activation", site.input), options.activation, site.input.channels) {
  const std::int64_t channels = site.input.channels;
  if (channels % groups_ != 0) {
    site.error("groups", concat("is ", groups_, ", which does not divide the ", channels, " channels; use ",
                                next_that_divides(channels, groups_)));
  }
  weight_ = site.parameter("weight", {channels}, Initial::constant(1));
  bias_ = site.parameter("bias", {channels}, Initial::constant(0));
}

Variable GroupNorm::run(Tape& tape, const Variable& x, const Variable& residual) const {
  const Variable y = group_norm(tape, x, weight_, bias_, groups_, eps_, activation_.function());
  return activation_.run_behind(tape, y, residual);
}

}  // namespace jigsaw::inline layers
