#pragma once
#include "layers/multi_head_attention.h"

namespace jigsaw::inline layers {

/// Multi-head attention inside windows of the grid, shifted or not (Swin transformer, Liu et al. 2021, arXiv
/// 2103.14030; torchvision.models.swin_transformer.ShiftedWindowAttention).
struct WindowedAttentionOptions {
  std::int64_t heads = 0;
  std::vector<std::int64_t> window;
  std::vector<std::int64_t> shift;
  bool circular = false;
  double dropout = 0.0;
};
void declare(Keys<WindowedAttentionOptions>& keys);

/// Parameters: HeadProjections', and relative_position_bias_table [Π (2w − 1), heads] (normal, 0.02).
///
/// Shifted windows reach round the end of the last axis where it is circular; elsewhere what the shift brings
/// from the other end is hidden from the rest of its window.
class WindowedAttention : public Layer {
 public:
  WindowedAttention(const LayerSite& site, const WindowedAttentionOptions& options);
  Variable run(Tape& tape, const Variable& x, const Variable& residual) const override;

 private:
  Variable shifted(Tape& tape, const Variable& x, int direction) const;

  std::vector<std::int64_t> shift_;
  WindowAttention attention_;
  HeadProjections projections_;
  Variable table_;
};

}  // namespace jigsaw::inline layers
