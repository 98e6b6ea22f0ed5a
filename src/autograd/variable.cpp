#include "autograd/variable.h"

#include "kernels/pointwise.h"
#include "parallel/redistribute.h"

namespace jigsaw::inline autograd {

void GradientSlot::add(const Rank& rank, const ShardedTensor& contribution) {
  ShardedTensor g = redistribute(rank, contribution, layout);
  g.piece = cast(rank.context, g.piece, dtype);
  if (!gradient.defined()) {
    gradient = std::move(g);
  } else if (gradient.piece.unique()) {
    accumulate(rank.context, gradient.piece, g.piece);
  } else {
    gradient.piece = jigsaw::add(rank.context, gradient.piece, g.piece);
  }
}

ShardedTensor GradientSlot::take() {
  ShardedTensor result = std::move(gradient);
  gradient = {};
  return result;
}

Variable::Variable(ShardedTensor value, bool wants_gradient)
    : value_(std::move(value)), layout_(value_.layout) {
  if (wants_gradient) collect_gradient(value_.dtype());
}

Variable Variable::unread(const Layout& layout, DType dtype) {
  Variable variable;
  variable.layout_ = layout;
  variable.collect_gradient(dtype);
  return variable;
}

void Variable::collect_gradient(DType dtype) {
  slot_ = std::make_shared<GradientSlot>();
  slot_->layout = {layout_.global, dual(layout_.placements)};
  slot_->dtype = dtype;
}

Variable Variable::traced(const Layout& layout, int number) {
  Variable variable;
  variable.layout_ = layout;
  variable.trace_number_ = number;
  return variable;
}

std::function<ShardedTensor()> Variable::save() const {
  if (parameter_ != nullptr) return [parameter = parameter_] { return parameter->value(); };
  if (recipe_) return recipe_;
  return [value = value_] { return value; };
}

}  // namespace jigsaw::inline autograd
