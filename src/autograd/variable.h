#pragma once
#include <functional>
#include <memory>

#include "autograd/parameter.h"
#include "parallel/sharded_tensor.h"

namespace jigsaw::inline autograd {

/// Where the gradient of a value is collected: in the value's layout, whole where the value is Partial.
struct GradientSlot {
  Layout layout;
  DType dtype = DType::kFloat32;
  ShardedTensor gradient;  ///< undefined until something is added

  /// Adds a gradient that may stand in any layout, partial ones too.
  void add(const Rank& rank, const ShardedTensor& contribution);
  /// The collected gradient; the slot is empty afterwards.
  ShardedTensor take();
};

/// A value that operations take and give: a piece of a global tensor, a constant, or a parameter. A handle;
/// copies share the gradient slot.
class Variable {
 public:
  Variable() = default;
  /// A value; collects gradients if asked to.
  Variable(ShardedTensor value, bool wants_gradient);
  explicit Variable(Parameter& parameter) : parameter_(&parameter) {}
  /// A value that is not there: nobody reads it, or backward alone, by a recipe. It has a gradient.
  static Variable unread(const Layout& layout, DType dtype);
  /// A value of a trace: only a shape and a number in it.
  static Variable traced(const Layout& layout, int number);

  bool defined() const { return parameter_ != nullptr || layout_.global.rank() > 0; }
  const Shape& shape() const { return parameter_ != nullptr ? parameter_->shape() : layout_.global; }
  const Layout& layout() const { return parameter_ != nullptr ? parameter_->compute_layout() : layout_; }
  Parameter* parameter() const { return parameter_; }
  bool wants_gradient() const { return parameter_ != nullptr || slot_ != nullptr; }
  const std::shared_ptr<GradientSlot>& slot() const { return slot_; }
  int trace_number() const { return trace_number_; }

  /// The piece; of a parameter only inside its block.
  ShardedTensor value() const { return parameter_ != nullptr ? parameter_->value() : value_; }

  /// What backward keeps of this value: the parameter, a recipe to rematerialise it from what is kept anyway
  /// (see Signature::rematerialised), or else the piece.
  std::function<ShardedTensor()> save() const;
  void set_recipe(std::function<ShardedTensor()> recipe) { recipe_ = std::move(recipe); }

 private:
  void collect_gradient(DType dtype);

  ShardedTensor value_;
  Layout layout_;
  std::shared_ptr<GradientSlot> slot_;
  Parameter* parameter_ = nullptr;
  std::function<ShardedTensor()> recipe_;
  int trace_number_ = -1;
};

}  // namespace jigsaw::inline autograd
