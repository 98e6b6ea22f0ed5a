#include <map>

#include "array/raw_memory.h"
#include "kernels/copy.h"
#include "kernels/cpu/convolution_primitive.h"
#include "kernels/cpu/packed_weights.h"
#include "kernels/front/convolution_kernels.h"
#include "kernels/pointwise.h"

namespace jigsaw::inline kernels::cpu {

namespace {

/// Convolutions of a rank, made once.
struct ConvolutionState {
  std::map<std::vector<std::int64_t>, std::unique_ptr<ConvolutionPrimitive>> primitives;

  /// Null where oneDNN has no fast code.
  ConvolutionPrimitive* of(const ConvolutionKey& key) {
    const std::vector<std::int64_t> numbers = key.numbers();
    auto found = primitives.find(numbers);
    if (found == primitives.end()) found = primitives.emplace(numbers, ConvolutionPrimitive::make(key)).first;
    return found->second.get();
  }
};

/// What meets in a convolution, one of them made by the pass.
struct Operands {
  Array x, weight, bias, y;

  Array& made_by(ConvolutionPass pass) {
    return pass == ConvolutionPass::kForward ? y : pass == ConvolutionPass::kBackwardData ? x : weight;
  }
  DType type_read_by(ConvolutionPass pass) const {
    return pass == ConvolutionPass::kBackwardData ? y.dtype() : x.dtype();
  }
  bool any_empty() const { return x.count() == 0 || weight.count() == 0 || y.count() == 0; }
};

/// Whether oneDNN stores a result of this type from operands of that.
bool stores(DType in, DType out) {
  return out == DType::kFloat32 || (out == DType::kBfloat16 && in == DType::kBfloat16);
}

void put(Context& context, const Array& result, Array& into, bool add) {
  if (add) return accumulate(context, into, result);
  const Array converted = cast(context, result, into.dtype(), Purpose::kWorkspace);
  copy_box(context, converted, Box::whole(into.shape()), into, Box::whole(into.shape()));
}

/// The pass by oneDNN; false, and nothing written, when that has no fast code for it.
bool run_fast(Context& context, ConvolutionPass pass, const Convolution& convolution, Operands operands,
              bool add) {
  Array into = operands.made_by(pass);
  const DType in = operands.type_read_by(pass);
  // Sums with what is there, and types oneDNN does not store, go through float32.
  const bool direct = !add && stores(in, into.dtype());
  if (!direct) operands.made_by(pass) = Array(context, into.shape(), DType::kFloat32, Purpose::kWorkspace);
  const ConvolutionKey key = {pass,
                              convolution,
                              operands.x.shape(),
                              operands.y.shape(),
                              in,
                              operands.made_by(pass).dtype(),
                              operands.bias.defined(),
                              context.threads()};
  ConvolutionPrimitive* const primitive = context.state<ConvolutionState>().of(key);
  if (primitive == nullptr) return false;
  const std::byte* const bias = operands.bias.defined() ? operands.bias.raw() : nullptr;
  if (pass == ConvolutionPass::kBackwardWeight) {
    const Array packed = primitive->packed_workspace(context);
    primitive->run(context, operands.x.raw(), packed.raw(), bias, operands.y.raw());
    primitive->unpack(packed, operands.weight);
  } else {
    const Array packed =
        context.state<PackedWeights>().packed(operands.weight, operands.weight.raw(), primitive,
                                              [&] { return primitive->pack(context, operands.weight); });
    primitive->run(context, operands.x.raw(), packed.raw(), bias, operands.y.raw());
  }
  if (!direct) put(context, operands.made_by(pass), into, add);
  return true;
}

/// False when only the plain loops remain.
bool run_pass(Context& context, ConvolutionPass pass, const Convolution& convolution, Operands operands,
              bool add) {
  if (operands.any_empty()) return false;
  const Tally counted = context.tally();  // the front has counted; what runs below is part of it
  bool done = run_fast(context, pass, convolution, operands, add);
  if (!done && operands.type_read_by(pass) == DType::kBfloat16) {
    // A processor for which oneDNN has no bf16 code.
    const Array made = operands.made_by(pass);
    for (Array* each : {&operands.x, &operands.weight, &operands.y}) {
      if (each->identity() != made.identity()) {
        *each = cast(context, *each, DType::kFloat32, Purpose::kWorkspace);
      }
    }
    done = run_fast(context, pass, convolution, operands, add);
  }
  context.tally() = counted;
  return done;
}

class ConvolutionOneDnn : public ConvolutionKernels {
 public:
  void forward(Context& context, const Convolution& convolution, const Array& x, const Array& weight,
               const Array& bias, Array& y) const override {
    if (run_pass(context, ConvolutionPass::kForward, convolution, {x, weight, bias, y}, false)) return;
    reference::kernels<ConvolutionKernels>().forward(context, convolution, x, weight, bias, y);
  }

  void backward_data(Context& context, const Convolution& convolution, const Array& dy, const Array& weight,
                     Array& dx) const override {
    if (run_pass(context, ConvolutionPass::kBackwardData, convolution, {dx, weight, {}, dy}, false)) return;
    reference::kernels<ConvolutionKernels>().backward_data(context, convolution, dy, weight, dx);
  }

  void backward_weight(Context& context, const Convolution& convolution, const Array& dy, const Array& x,
                       Array& dw, bool add) const override {
    if (run_pass(context, ConvolutionPass::kBackwardWeight, convolution, {x, dw, {}, dy}, add)) return;
    reference::kernels<ConvolutionKernels>().backward_weight(context, convolution, dy, x, dw, add);
  }
};

}  // namespace

template <>
const ConvolutionKernels& kernels() {
  static const ConvolutionOneDnn instance;
  return instance;
}

}  // namespace jigsaw::inline kernels::cpu
