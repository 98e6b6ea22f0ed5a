#include "layers/multi_head_attention.h"

#include <cmath>
#include <cstdlib>

#include "base/text.h"
#include "config/config.h"
#include "layers/limits.h"

namespace jigsaw::inline layers {

void declare(Keys<MultiHeadAttentionOptions>& keys) {
  using O = MultiHeadAttentionOptions;
  keys.add("heads", &O::heads)
      .required()
      .range(1, kMostChannels)
      .doc("Number of heads; divides the width, into heads of at most 256 channels.");
  keys.add("dropout", &O::dropout).at_least(0).below(1).doc("Dropout probability of attention weights.");
  keys.add("rotary", &O::rotary)
      .doc("Whether queries and keys are rotated by their position along each spatial axis.");
  keys.add("rotary_base", &O::rotary_base)
      .above(1)
      .counts_where(here("rotary").is(true))
      .doc("Wave length of the slowest rotation over 2π, in points.");
}

namespace {

/// The divisor of `width` nearest to `heads` that gives heads of at most 256 channels in multiples of `unit`.
std::int64_t nearest_heads(std::int64_t width, std::int64_t heads, std::int64_t unit) {
  std::int64_t best = 0;
  for (std::int64_t n = 1; n <= width; ++n) {
    const bool fits = width % n == 0 && width / n <= 256 && width / n % unit == 0;
    if (fits && (best == 0 || std::abs(n - heads) < std::abs(best - heads))) best = n;
  }
  return best;
}

}  // namespace

std::int64_t checked_head_size(const LayerSite& site, std::int64_t heads, std::int64_t multiple_of) {
  const std::int64_t width = site.input.channels, best = nearest_heads(width, heads, multiple_of);
  if (best == heads) return width / heads;
  const std::int64_t step = heads * multiple_of, wider = (width + step - 1) / step * step;
  const std::string no_number = wider / heads <= 256
                                    ? concat("; no number does so, but a width of ", wider, " can be cut")
                                    : "; no number does so";
  site.error("heads",
             concat("must cut the width ", width, " into heads of at most 256 channels",
                    multiple_of > 1 ? concat(", in multiples of ", multiple_of, " for rotary positions") : "",
                    ", and is ", heads, best > 0 ? concat("; use ", best) : no_number));
}

HeadProjections::HeadProjections(const LayerSite& site, std::int64_t head_size) : head_size_(head_size) {
  const std::int64_t width = site.input.channels;
  const LayerSite out = site.inner("out_proj", site.input);
  const double xavier = std::sqrt(6.0 / static_cast<double>(4 * width));
  in_weight_ = site.parameter("in_proj_weight", {3, width, width}, {Initial::Kind::kUniform, xavier});
  in_bias_ = site.parameter("in_proj_bias", {3, width}, Initial::constant(0));
  out_weight_ = out.parameter("weight", {width, width}, Initial::fan_in(width));
  out_bias_ = out.parameter("bias", {width}, Initial::constant(0));
}

// Heads stay whole from one projection to the other.

Variable HeadProjections::packed(Tape& tape, const Variable& x) const {
  const int space = x.shape().rank() - 2;
  const Letters heads = {{'n', head_size_}};
  const std::string letters = "b" + space_letters(space) + "gn";
  Pointwise add_bias{letters, in_bias_, "gn"};
  add_bias.units = heads;
  return pointwise(tape, contract(tape, field_letters(space, 'k') + ",gnk->" + letters, x, in_weight_, heads),
                   add_bias);
}

Variable HeadProjections::output(Tape& tape, const Variable& y, const Variable& residual) const {
  const int space = y.shape().rank() - 2;
  const std::string letters = field_letters(space, 'n');
  return pointwise(
      tape,
      contract(tape, field_letters(space, 'k') + ",nk->" + letters, y, out_weight_, {{'k', head_size_}}),
      {letters, out_bias_, "n", residual});
}

MultiHeadAttention::MultiHeadAttention(const LayerSite& site, const MultiHeadAttentionOptions& options)
    : Layer(site.input),
      path_(site.path),
      head_size_(checked_head_size(site, options.heads, options.rotary ? 2 * site.input.space.rank() : 1)),
      dropout_(options.dropout),
      rotary_base_(options.rotary ? options.rotary_base : 0),
      projections_(site, head_size_) {}

Variable MultiHeadAttention::run(Tape& tape, const Variable& x, const Variable& residual) const {
  Variable qkv = projections_.packed(tape, x);
  if (rotary_base_ > 0) qkv = rotary(tape, qkv, head_size_, rotary_base_);
  return projections_.output(tape, attention(tape, qkv, {head_size_, dropout_, path_}), residual);
}

}  // namespace jigsaw::inline layers
