#include "autograd/operation.h"

#include "autograd/tape.h"
#include "base/error.h"
#include "kernels/pointwise.h"
#include "parallel/redistribute.h"

namespace jigsaw::inline autograd {

// ---- Frame

Frame::Frame(Tape& tape, const Decision& decision, std::shared_ptr<const Signature> signature,
             bool result_read)
    : tape_(&tape),
      decision_(&decision),
      signature_(std::move(signature)),
      random_(tape.random()),
      training_(tape.training()),
      result_read_(result_read) {}

const Rank& Frame::rank() const {
  return tape_->rank();
}

DType Frame::dtype() const {
  return tape_->dtype();
}

const CostModel& Frame::cost_model() const {
  return tape_->cost_model();
}

void Frame::long_work_follows() const {
  tape_->long_work_follows();
}

AxisSet Frame::cutting(std::size_t input, int first, int last) const {
  AxisSet axes = 0;
  for (int axis = 0; axis < rank().mesh.shape().axes; ++axis) {
    const Placement& placement = decision_->inputs[input][axis];
    if (placement.is_shard() && placement.dim >= first && placement.dim <= last) axes |= axis_bit(axis);
  }
  return rank().mesh.active(axes);
}

bool Frame::first_along(AxisSet axes) const {
  for (int axis = 0; axis < rank().mesh.shape().axes; ++axis) {
    if (contains(axes, axis) && rank().mesh.coordinate(axis) != 0) return false;
  }
  return true;
}

Layout Frame::gradient(std::size_t i) const {
  Layout layout{signature_->inputs[i], {}};
  for (int axis = 0; axis < rank().mesh.shape().axes; ++axis) {
    layout.placements[axis] = gradient_placement(decision_->inputs[i][axis], contains(cut(), axis));
  }
  return layout;
}

DType Frame::summand_type(const Layout& layout) const {
  return layout.placements.any_partial() && dtype() == DType::kBfloat16 ? DType::kFloat32 : dtype();
}

// ---- Operands

Operands::Operands(const Frame& frame, std::span<const Variable> variables, const std::vector<bool>& keep,
                   bool once)
    : frame_(&frame), saved_(variables.size()), once_(once) {
  for (std::size_t i = 0; i < variables.size(); ++i) {
    if (keep[i]) saved_[i] = variables[i].save();
  }
}

ShardedTensor Operands::where_kept(std::size_t i) {
  if (i < variables_.size()) {
    ShardedTensor value = variables_[i].value();
    value.piece = cast(frame_->context(), value.piece, frame_->dtype());
    return value;
  }
  require(saved_[i] != nullptr, "backward reads an operand that its signature does not save");
  return once_ ? std::exchange(saved_[i], nullptr)() : saved_[i]();
}

Array Operands::redistributed(std::size_t i) {
  return redistribute(frame_->rank(), where_kept(i), frame_->input(i)).piece;
}

// ---- GradientTarget

namespace {

/// How a parameter's gradient is added up: cut as the parameter is. Only where operations of one block use
/// the parameter in several layouts does a gradient come otherwise.
Placements held_gradient(const Placements& compute, const Placements& gradient) {
  Placements held = compute;
  for (std::size_t axis = 0; axis < kMaxAxes; ++axis) {
    if (!compute.of[axis].is_shard() && !gradient.of[axis].is_shard()) held.of[axis] = gradient.of[axis];
  }
  return held;
}

}  // namespace

void GradientTarget::give(const Rank& rank, const Placements& placements, const std::function<Array()>& make,
                          const std::function<void(Array&)>& add) const {
  if (parameter_ != nullptr) {
    const Placements held = held_gradient(parameter_->compute_layout().placements, placements);
    if (!(held == placements)) {
      const ShardedTensor moved = redistribute(rank, {make(), {shape_, placements}}, {shape_, held});
      return give(rank, held, [&] { return moved.piece; });
    }
    if (!Parameter::contributes(rank, placements)) return;
    Array into = parameter_->gradient();
    if (add) return add(into);
    accumulate(rank.context, into, make().reshaped(into.shape()));
  } else if (slot_ != nullptr) {
    const Layout layout{shape_, placements};
    slot_->add(rank, {make().reshaped(rank.box(layout).extent), layout});
  }
}

// ---- Gradients

Gradients::Gradients(std::shared_ptr<const Frame> frame, std::span<const Variable> inputs,
                     std::span<const Variable> outputs)
    : frame_(std::move(frame)), targets_(inputs.begin(), inputs.end()) {
  for (const Variable& output : outputs) slots_.push_back(output.slot());
}

bool Gradients::any_arrived() const {
  for (const auto& slot : slots_) {
    if (slot->gradient.defined()) return true;
  }
  return false;
}

ShardedTensor Gradients::take_where_kept(std::size_t o) {
  GradientSlot& slot = *slots_[o];
  if (slot.gradient.defined()) return slot.take();
  return {filled(frame_->context(), frame_->rank().box(slot.layout).extent, slot.dtype, 0.0), slot.layout};
}

Array Gradients::take(std::size_t o) {
  const Layout made = frame_->output(o);
  return redistribute(frame_->rank(), take_where_kept(o), {made.global, dual(made.placements)}).piece;
}

void Gradients::give(std::size_t i, const Array& gradient) const {
  give(i, [&] { return gradient; });
}

void Gradients::give(std::size_t i, const std::function<Array()>& make,
                     const std::function<void(Array&)>& add) const {
  if (wanted(i)) targets_[i].give(frame_->rank(), frame_->gradient(i).placements, make, add);
}

void Gradients::give(std::size_t i, const ShardedTensor& gradient) const {
  if (wanted(i)) {
    targets_[i].give(frame_->rank(), gradient.layout.placements, [&] { return gradient.piece; });
  }
}

// ---- Operation

std::vector<Array> Operation::rematerialise(Frame& frame, Operands& inputs) const {
  return forward(frame, inputs);
}

}  // namespace jigsaw::inline autograd
