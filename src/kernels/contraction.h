#pragma once
#include <string>
#include <string_view>

#include "array/array.h"

namespace jigsaw::inline kernels {

/// Index letters of c = Σ a·b, as in einsum: "bhwk,nk->bhwn". Each operand's letters are distinct; every
/// output letter stands in a or b; letters in neither the output nor both operands are not allowed.
struct ContractionSpec {
  std::string a, b, c;

  /// Throws ShapeError that quotes the text.
  static ContractionSpec parse(std::string_view text);
  std::string to_string() const { return a + "," + b + "->" + c; }
};

/// c = contraction of a and b over the letters that c lacks (torch.einsum).
///
/// @param a, b  f32, f64 or bf16 of the same type, extents by letter; any extent may be zero (c is then
/// zero).
/// @param out   element type of c; sums are formed in f32 (f64 for f64 operands), on the processor long ones
///               of a matrix and a vector in blocks, these in f64.
/// @return      c, row-major in the order of its letters.
/// @throws ShapeError when a letter has two extents (the message shows both shapes).
Array contract(Context& context, const ContractionSpec& spec, const Array& a, const Array& b, DType out);
/// The same, added to `into` (of type f32 or f64), which no one else may be reading.
void contract_add(Context& context, const ContractionSpec& spec, const Array& a, const Array& b, Array& into);

/// Forgets what backends derived from the contents of parameters (packed weights): call when parameters
/// change.
void forget_packed_weights(Context& context);
/// Declares that `weight` is used in several contractions until forget_packed_weights(), so that a backend
/// may keep it packed. `weight` must stay alive and unchanged until then.
void keep_packed(Context& context, const Array& weight);

}  // namespace jigsaw::inline kernels
