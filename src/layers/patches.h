#pragma once
#include "config/keys.h"
#include "layers/layer.h"

namespace jigsaw {

/// Patch embedding: each patch of points becomes one vector, torch.nn.Conv2d with stride = kernel. A patch
/// that does not divide the grid reads zeros beyond its end.
struct PatchEmbedOptions {
  std::vector<std::int64_t> patch;
  std::int64_t embed_dim = 0;
};
void declare(Keys<PatchEmbedOptions>& keys);

/// Parameters: weight [N, C, P] with P = Π patch points (Conv2d's [N, C, ph, pw] flattened), bias [N];
/// U(±1/√(C·P)).
class PatchEmbed : public Layer {
 public:
  PatchEmbed(const LayerSite& site, const PatchEmbedOptions& options);
  std::vector<std::int64_t> input_units() const override { return {patch_.begin(), patch_.end()}; }
  Variable run(Tape& tape, const Variable& x, const Variable& residual) const override;

 private:
  std::string path_;
  Shape patch_;
  Variable weight_, bias_;
};

/// The way back: each vector becomes a patch of points, by a linear layer; what lies beyond the grid is
/// dropped.
struct PatchRecoverOptions {
  std::vector<std::int64_t> patch;
  std::int64_t channels = 0;
  std::vector<std::int64_t> grid;
  bool zero_start = false;
};
void declare(Keys<PatchRecoverOptions>& keys);

/// Parameters: weight [C, P, N], bias [C, P], U(±1/√N) or zeros.
class PatchRecover : public Layer {
 public:
  PatchRecover(const LayerSite& site, const PatchRecoverOptions& options);
  std::vector<std::int64_t> output_units() const override { return {patch_.begin(), patch_.end()}; }
  Variable run(Tape& tape, const Variable& x, const Variable& residual) const override;

 private:
  std::string path_;
  Shape patch_;
  Variable weight_, bias_;
};

}  // namespace jigsaw
