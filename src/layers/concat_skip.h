#pragma once
#include "config/keys.h"
#include "layers/layer.h"

namespace jigsaw::inline layers {

/// [x, layers(x)] over channels: the skip of a U-Net. What its layers give may reach beyond x, as odd extents
/// that were halved and doubled do: it is cropped.
struct ConcatSkipOptions {
  std::vector<Tagged> layers;
};
void declare(Keys<ConcatSkipOptions>& keys);

/// The shape of a skip and what its layers made, joined. @throws ConfigError under "layers" of the site.
FieldShape joined_shape(const LayerSite& site, const FieldShape& made);
/// [skip, made] over channels, `made` cropped to the skip's space.
Variable join_skip(Tape& tape, const Variable& skip, const Variable& made);

/// No parameters of its own. In a `sequential` model its layers are blocks of their own.
class ConcatSkip : public Layer {
 public:
  ConcatSkip(const LayerSite& site, LayerPtr inner)
      : Layer(joined_shape(site, inner->output()), joined_shape(site, inner->output()).crossing),
        inner_(std::move(inner)) {}
  Variable run(Tape& tape, const Variable& x, const Variable& residual) const override;

 private:
  LayerPtr inner_;
};

}  // namespace jigsaw::inline layers
