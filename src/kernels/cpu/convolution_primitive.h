#pragma once
#include <memory>
#include <vector>

#include "array/array.h"
#include "kernels/convolution.h"

namespace jigsaw::inline kernels::cpu {

enum class ConvolutionPass : std::uint8_t { kForward, kBackwardData, kBackwardWeight };

/// One kind of convolution that oneDNN computes: what decides its code.
struct ConvolutionKey {
  ConvolutionPass pass = ConvolutionPass::kForward;
  Convolution convolution;
  Shape x, y;  ///< [B, space…, C] and [B, places…, O]
  DType in = DType::kFloat32, out = DType::kFloat32;
  bool bias = false;
  int threads = 1;

  /// All of them as numbers, by which keys are told apart.
  std::vector<std::int64_t> numbers() const;
};

/// A oneDNN convolution of channels-last fields, made once and run on many operands. Weights come in the
/// layout that oneDNN likes best: with plain ones it falls back to a slow path.
class ConvolutionPrimitive {
 public:
  /// Null when oneDNN has no fast code for the key.
  static std::unique_ptr<ConvolutionPrimitive> make(const ConvolutionKey& key);
  ~ConvolutionPrimitive();

  /// Runs on the key's threads; of x, the packed weight and y the pass makes one from the others. `bias` may
  /// be null. Scratch memory comes from the context's arena.
  void run(Context& context, const std::byte* x, const std::byte* packed_weight, const std::byte* bias,
           const std::byte* y);

  /// A weight [O, C/groups, kernel…] of the key's types, packed.
  Array pack(Context& context, const Array& weight);
  /// Room for a packed weight.
  Array packed_workspace(Context& context) const;
  /// The way back.
  void unpack(const Array& packed, Array& weight);

 private:
  struct State;
  explicit ConvolutionPrimitive(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace jigsaw::inline kernels::cpu
