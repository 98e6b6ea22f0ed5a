#include "autograd/operations.h"
#include "autograd/registry.h"
#include "autograd/split_shape.h"
#include "base/error.h"
#include "base/text.h"
#include "kernels/copy.h"
#include "kernels/pointwise.h"

namespace jigsaw::inline autograd {

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
class PatchOperation : public Operation {
 public:
  /// @param space  extents of the grid, to recover fields; undefined to cut them.
  PatchOperation(const Shape& patch, const Shape& space) : patch_(patch), space_(space) {}

  std::string_view name() const override { return cuts() ? "patchify" : "unpatchify"; }

  Signature signature(std::span<const Shape> inputs) const override {
    const PatchLetters names = letters_of(patch_);
    const Shape& x = inputs[0];
    Signature signature;
    signature.name = name();
    signature.saved = {false};
    if (cuts()) {
      signature.outputs = {patches_shape(x, patch_)};
      signature.rules = rules_of_letters({names.field}, names.patches);
      signature.rematerialised =
          true;  // Of fields and patches, the fields are kept: often they are the batch itself.
    } else {
      Shape field{x[0]};
      for (const std::int64_t extent : space_) field.append(extent);
      field.append(x[x.rank() - 2]);
      require(patches_shape(field, patch_) == x, "the patches do not cover this grid");
      signature.outputs = {field};
      signature.rules = rules_of_letters({names.patches}, names.field);
    }
    signature.rules.push_back(linear_rule({true}));
    return signature;
  }

  std::vector<Array> forward(Frame& frame, Operands& inputs) const override {
    return {run(frame, inputs.redistributed(0), cuts(), frame.output_box().extent)};
  }

  void backward(const Frame& frame, Operands&, Gradients& gradients) const override {
    const Array dy = gradients.take();
    gradients.give(0, [&] { return run(frame, dy, !cuts(), frame.input_box(0).extent); });
  }

 private:
  bool cuts() const { return space_.rank() == 0; }
  Array run(const Frame& frame, const Array& piece, bool cut, const Shape& result) const {
    return cut ? cut_patches(frame.context(), piece, patch_)
               : join_patches(frame.context(), piece, patch_, result);
  }

  Shape patch_, space_;
};

}  // namespace

Variable patchify(Tape& tape, const Variable& x, const Shape& patch) {
  return apply(tape, PatchOperation(patch, {}), {x});
}

Variable unpatchify(Tape& tape, const Variable& x, const Shape& patch, const Shape& space) {
  return apply(tape, PatchOperation(patch, space), {x});
}

// ---- Proof

namespace {

/// Grids that patches divide and that they do not, of 1 to 5 patches a side.
struct Grids {
  Shape patch;
  std::vector<Shape> spaces;
};

std::vector<Grids> grids() {
  return {{{3}, {{13}, {6}, {12}}},
          {{2, 3}, {{9, 8}, {4, 13}, {7, 3}}},
          {{1, 2, 2}, {{2, 3, 5}, {4, 9, 4}, {3, 4, 7}}}};
}

constexpr std::int64_t kSamples[] = {3, 2, 4}, kChannels[] = {2, 5, 3};

Shape field_of(const Grids& grid, std::size_t i) {
  Shape shape{kSamples[i]};
  for (const std::int64_t extent : grid.spaces[i]) shape.append(extent);
  shape.append(kChannels[i]);
  return shape;
}

}  // namespace

std::vector<ProofCase> patchify_cases() {
  std::vector<ProofCase> cases;
  for (const Grids& grid : grids()) {
    ProofCase& one = cases.emplace_back(ProofCase{concat("by ", grid.patch), {}});
    for (std::size_t i = 0; i < grid.spaces.size(); ++i) {
      add_instance(one, {field_of(grid, i)},
                   [patch = grid.patch](Tape& tape, const std::vector<Variable>& x) {
                     return patchify(tape, x[0], patch);
                   });
    }
  }
  return cases;
}

std::vector<ProofCase> unpatchify_cases() {
  std::vector<ProofCase> cases;
  for (const Grids& grid : grids()) {
    ProofCase& one = cases.emplace_back(ProofCase{concat("by ", grid.patch), {}});
    for (std::size_t i = 0; i < grid.spaces.size(); ++i) {
      add_instance(one, {patches_shape(field_of(grid, i), grid.patch)},
                   [patch = grid.patch, space = grid.spaces[i]](Tape& tape, const std::vector<Variable>& x) {
                     return unpatchify(tape, x[0], patch, space);
                   });
    }
  }
  return cases;
}

}  // namespace jigsaw::inline autograd
