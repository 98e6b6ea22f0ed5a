#pragma once
#include <optional>
#include <string>

#include "kernels/contraction.h"
#include "parallel/cost.h"
#include "parallel/stream.h"

namespace jigsaw::inline autograd {

/// A piece of an operand whose dims have index letters.
struct LetteredPiece {
  std::string letters;
  Array piece;
  Box box;  ///< of the piece in the global tensor
};

/// The only step of a redistribution, cut into parts.
struct StreamedStep {
  Step step;
  Cut cut;
};

/// The step of a redistribution that is worth cutting into parts, so that the product with what has arrived
/// hides the transfer of the rest (or the transfer of what is computed): when that saves more than the extra
/// messages and kernels cost. Equal on all ranks. What the ranks were measured to do decides only how many of
/// a part's runs travel together.
/// @param flops  of the products on the largest piece.
std::optional<StreamedStep> streamed_step(const Rank& rank, const Layout& from, const Layout& to,
                                          double flops, const CostModel& model);

/// y = contraction of a streamed operand, part by part as it arrives, with a piece that is here.
class StreamedProduct {
 public:
  /// @param streamed  letters of the streamed operand.
  /// @param y         letters and box of the result; its piece is not read.
  StreamedProduct(Context& context, std::string streamed, LetteredPiece other, LetteredPiece y)
      : context_(context), streamed_(std::move(streamed)), other_(std::move(other)), y_(std::move(y)) {
    y_.piece = Array();
  }
  void add(const ReceiveStream::Part& part);
  /// The sum, f32 or f64.
  Array result();

 private:
  Context& context_;
  std::string streamed_;
  LetteredPiece other_, y_;
};

/// The contraction of two pieces that are here: each part of the result travels while the
/// next is computed.
/// @param made_in   layout in which the products come.
/// @param step  from there to where the result is wanted: a reduce-scatter or all-to-all.
Array contract_sending(const Rank& rank, const LetteredPiece& a, const LetteredPiece& b,
                       const std::string& result, const Layout& made_in, const StreamedStep& step, DType out);

}  // namespace jigsaw::inline autograd
