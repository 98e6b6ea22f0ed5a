#pragma once
#include "config/keys.h"
#include "layers/linear.h"

namespace jigsaw::inline layers {

/// The linear maps around attention. Parameters: in_proj_weight [3, C, C] and in_proj_bias [3, C], torch's
/// [3·C, C] and [3·C] with queries, keys and values apart: U(±√(6/4C)) (Xavier) and zeros; out_proj.weight
/// [C, C], U(±1/√C), out_proj.bias [C], zeros.
class HeadProjections {
 public:
  HeadProjections(const LayerSite& site, std::int64_t head_size);
  /// [B, space…, C] → queries, keys and values, [B, space…, 3, C].
  Variable packed(Tape& tape, const Variable& x) const;
  /// [B, space…, C] → the same shape, plus the residual.
  Variable output(Tape& tape, const Variable& y, const Variable& residual) const;

 private:
  std::int64_t head_size_;
  Variable in_weight_, in_bias_, out_weight_, out_bias_;
};

/// Channels of each of so many heads. @throws ConfigError  that names `heads` and a number that would do.
/// @param multiple_of  what a head's channels must be a multiple of.
std::int64_t checked_head_size(const LayerSite& site, std::int64_t heads, std::int64_t multiple_of = 1);

/// torch.nn.MultiheadAttention of every point to every point of its sample.
struct MultiHeadAttentionOptions {
  std::int64_t heads = 0;
  double dropout = 0.0;
  bool rotary = false;
  double rotary_base = 10000.0;
};
void declare(Keys<MultiHeadAttentionOptions>& keys);

/// Parameters: HeadProjections'.
class MultiHeadAttention : public Layer {
 public:
  MultiHeadAttention(const LayerSite& site, const MultiHeadAttentionOptions& options);
  using Layer::run;
  Variable run(Tape& tape, const Variable& x, const Variable& residual) const override;

 private:
  std::string path_;
  std::int64_t head_size_;
  double dropout_, rotary_base_;  // a base of 0: no rotary positions
  HeadProjections projections_;
};

}  // namespace jigsaw::inline layers
