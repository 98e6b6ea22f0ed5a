#include "autograd/operation.h"
#include "autograd/operations.h"
#include "base/error.h"
#include "kernels/copy.h"
#include "kernels/pointwise.h"

namespace jigsaw {

namespace {

/// Letters of a field [B, space…, C] and of its patches [B, patches…, C, P].
struct PatchLetters {
  Letters field, patches;
};

PatchLetters letters_of(const Shape& patch) {
  static constexpr const char* kSpace = "dhw";
  PatchLetters result{{{'b'}}, {{'b'}}};
  for (int dim = 0; dim < patch.rank(); ++dim) {
    const char letter = kSpace[3 - patch.rank() + dim];
    result.field.push_back({letter, patch[dim]});
    result.patches.push_back({letter, 1});
  }
  result.field.push_back({'c'});
  result.patches.push_back({'c'});
  // Points of one patch stay together.
  result.patches.push_back({'1'});
  return result;
}

Shape patches_shape(const Shape& field, const Shape& patch) {
  Shape shape{field[0]};
  for (int dim = 0; dim < patch.rank(); ++dim) shape.append((field[1 + dim] + patch[dim] - 1) / patch[dim]);
  shape.append(field.back());
  shape.append(patch.count());
  return shape;
}

/// The field's extents rounded up to whole patches.
Shape padded_shape(const Shape& field, const Shape& patch) {
  Shape shape = field;
  for (int dim = 0; dim < patch.rank(); ++dim) {
    shape[1 + dim] = (field[1 + dim] + patch[dim] - 1) / patch[dim] * patch[dim];
  }
  return shape;
}

/// [b, h, ph, w, pw, c]: the padded field with patches apart.
Shape split_shape(const Shape& padded, const Shape& patch) {
  Shape shape{padded[0]};
  for (int dim = 0; dim < patch.rank(); ++dim) {
    shape.append(padded[1 + dim] / patch[dim]);
    shape.append(patch[dim]);
  }
  shape.append(padded.back());
  return shape;
}

/// Dims of the split field in the order of patches: b, h, w, c, ph, pw.
std::vector<int> patch_order(int space) {
  std::vector<int> order = {0};
  for (int dim = 0; dim < space; ++dim) order.push_back(1 + 2 * dim);
  order.push_back(1 + 2 * space);
  for (int dim = 0; dim < space; ++dim) order.push_back(2 + 2 * dim);
  return order;
}

Array cut_patches(Context& context, const Array& field, const Shape& patch) {
  const Shape padded = padded_shape(field.shape(), patch);
  Array source = field;
  if (!(padded == field.shape())) {
    source = filled(context, padded, field.dtype(), 0.0, Purpose::kWorkspace);
    const Box all = Box::whole(field.shape());
    copy_box(context, field, all, source, all);
  }
  const Array split = source.reshaped(split_shape(padded, patch));
  return permute(context, split, patch_order(patch.rank())).reshaped(patches_shape(field.shape(), patch));
}

Array join_patches(Context& context, const Array& patches, const Shape& patch, const Shape& field) {
  const std::vector<int> order = patch_order(patch.rank());
  const Shape padded = padded_shape(field, patch), split = split_shape(padded, patch);
  Shape permuted;
  std::vector<int> inverse(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    permuted.append(split[order[i]]);
    inverse[static_cast<std::size_t>(order[i])] = static_cast<int>(i);
  }
  const Array joined = permute(context, patches.reshaped(permuted), inverse).reshaped(padded);
  return padded == field ? joined : extract_box(context, joined, Box::whole(field));
}

/// Both directions: a linear operation whose adjoint is the other one.
Variable rearrange(Tape& tape, const Variable& x, const Signature& signature, const Shape& patch,
                   bool to_patches) {
  if (tape.tracing()) return tape.trace(signature, {x});
  const Decision& decision = tape.decide(signature);
  const auto run = [&tape, patch](const Array& piece, const Shape& result, bool cut) {
    return cut ? cut_patches(tape.context(), piece, patch)
               : join_patches(tape.context(), piece, patch, result);
  };
  const Shape result_piece = tape.rank().box({signature.outputs[0], decision.row_outputs[0]}).extent;
  const Shape input_piece = tape.rank().box({signature.inputs[0], decision.inputs[0]}).extent;
  const bool records = tape.records({x});
  Variable y = tape.result(signature, decision, records, [&] {
    return ShardedTensor{run(tape.bring(x, decision.inputs[0]).piece, result_piece, to_patches),
                         {signature.outputs[0], decision.row_outputs[0]}};
  });
  if (records) {
    if (decision.remade) {
      y.set_recipe([&tape, &decision, run, shape = signature.outputs[0], result_piece, save = x.save()] {
        const Array again = run(tape.bring(save(), decision.inputs[0]).piece, result_piece, true);
        return tape.bring(ShardedTensor{again, {shape, decision.row_outputs[0]}}, decision.outputs[0]);
      });
    }
    tape.record(
        [&tape, &decision, run, input_piece, to_patches, target = GradientTarget(x), slot = y.slot()] {
          if (!slot->gradient.defined()) return;
          const Array dy = tape.bring(slot->take(), dual(decision.row_outputs[0])).piece;
          target.give(tape.rank(), tape.gradient_placements(decision, 0),
                      [&] { return run(dy, input_piece, !to_patches); });
        });
  }
  return y;
}

}  // namespace

Variable patchify(Tape& tape, const Variable& x, const Shape& patch) {
  const PatchLetters names = letters_of(patch);
  Signature signature{
      Operation::kPatchify, "patchify", {x.shape()}, {patches_shape(x.shape(), patch)}, {}, 0, {false}};
  signature.rows = rows_of_letters({names.field}, names.patches);
  signature.remade = true;  // Of fields and patches, the fields are kept: often they are the batch itself.
  signature.rows.push_back(row_linear_in({true}));
  return rearrange(tape, x, signature, patch, true);
}

Variable unpatchify(Tape& tape, const Variable& x, const Shape& patch, const Shape& space) {
  const PatchLetters names = letters_of(patch);
  Shape field{x.shape()[0]};
  for (const std::int64_t extent : space) field.append(extent);
  field.append(x.shape()[x.shape().rank() - 2]);
  require(patches_shape(field, patch) == x.shape(), "the patches do not cover this grid");
  Signature signature{Operation::kUnpatchify, "unpatchify", {x.shape()}, {field}, {}, 0, {false}};
  signature.rows = rows_of_letters({names.patches}, names.field);
  signature.rows.push_back(row_linear_in({true}));
  return rearrange(tape, x, signature, patch, false);
}

}  // namespace jigsaw
