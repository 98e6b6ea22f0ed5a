#include "layers/multi_head_attention.h"

#include <cmath>
#include <cstdlib>

#include "base/text.h"
#include "config/config.h"

namespace jigsaw {

void declare(Keys<MultiHeadAttentionOptions>& keys) {
  using O = MultiHeadAttentionOptions;
  keys.add("heads", &O::heads).required().at_least(1).doc("Number of heads; divides the width.");
  keys.add("dropout", &O::dropout).at_least(0).below(1).doc("Dropout probability of attention weights.");
  keys.add("rotary", &O::rotary)
      .doc("Whether queries and keys are rotated by their position along each spatial axis.");
  keys.add("rotary_base", &O::rotary_base)
      .above(1)
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

std::int64_t checked_head_size(const LayerSite& site, const MultiHeadAttentionOptions& options) {
  const std::int64_t width = site.input.channels, unit = options.rotary ? 2 * site.input.space.rank() : 1;
  if (width % options.heads == 0 && width / options.heads <= 256 && width / options.heads % unit == 0) {
    return width / options.heads;
  }
  const std::string needs =
      concat("must cut the width ", width, " into heads of at most 256 channels",
             unit > 1 ? concat(", in multiples of ", unit, " for rotary positions") : "");
  const std::int64_t best = nearest_heads(width, options.heads, unit);
  site.error("heads",
             concat(needs, ", and is ", options.heads,
                    best > 0 ? concat("; ", best, " would do") : "; no number does: change the width"));
}

}  // namespace

MultiHeadAttention::MultiHeadAttention(const LayerSite& site, const MultiHeadAttentionOptions& options)
    : Layer(site.input),
      path_(site.path),
      head_size_(checked_head_size(site, options)),
      dropout_(options.dropout),
      rotary_base_(options.rotary ? options.rotary_base : 0) {
  const std::int64_t width = site.input.channels;
  const LayerSite out = site.inner("out_proj", site.input);
  const double xavier = std::sqrt(6.0 / static_cast<double>(4 * width));
  in_weight_ = site.parameter("in_proj_weight", {3, width, width}, {Initial::Kind::kUniform, xavier});
  in_bias_ = site.parameter("in_proj_bias", {3, width}, Initial::constant(0));
  out_weight_ = out.parameter("weight", {width, width}, Initial::fan_in(width));
  out_bias_ = out.parameter("bias", {width}, Initial::constant(0));
}

Variable MultiHeadAttention::run(Tape& tape, const Variable& x, const Variable& residual) const {
  const int space = x.shape().rank() - 2;
  const std::string field = field_letters(space, 'k'), out = field_letters(space, 'n');
  const std::string packed = "b" + space_letters(space) + "gn";
  // Heads stay whole from one projection to the other.
  const Letters by_heads = {{'n', head_size_}}, from_heads = {{'k', head_size_}};
  Variable qkv = contract(tape, field + ",gnk->" + packed, x, in_weight_, by_heads);
  Pointwise add_bias{packed, in_bias_, "gn"};
  add_bias.units = by_heads;
  qkv = pointwise(tape, qkv, add_bias);
  if (rotary_base_ > 0) qkv = rotary(tape, qkv, head_size_, rotary_base_);
  const Variable y = attention(tape, qkv, {head_size_, dropout_, path_});
  return pointwise(tape, contract(tape, field + ",nk->" + out, y, out_weight_, from_heads),
                   {out, out_bias_, "n", residual});
}

}  // namespace jigsaw
