#include "autograd/operation.h"
#include "autograd/operations.h"
#include "kernels/attention.h"

namespace jigsaw {

Variable rotary(Tape& tape, const Variable& qkv, std::int64_t head_size, double base) {
  const int space = qkv.shape().rank() - 3;
  const Letters all = letters("b" + std::string("dhw").substr(static_cast<std::size_t>(3 - space)) + "1c",
                              {{'c', head_size}});
  Signature signature{Operation::kRotary,          "rotary", {qkv.shape()}, {qkv.shape()},
                      rows_of_letters({all}, all), 0,        {false}};
  signature.forward_flops = 3.0 * static_cast<double>(qkv.shape().count());
  signature.rows.push_back(row_linear_in({true}));
  if (tape.tracing()) return tape.trace(signature, {qkv});
  const Decision& decision = tape.decide(signature);
  const auto rotate = [&tape, &decision, shape = qkv.shape(), space, head_size, base](const Array& x,
                                                                                      bool inverse) {
    const Box box = tape.rank().box({shape, decision.inputs[0]});
    Rotation rotation{{}, {}, base, inverse};
    for (int dim = 1; dim <= space; ++dim) {
      rotation.space.append(box.extent[dim]);
      rotation.origin.push_back(box.begin[dim]);
    }
    const Shape heads{box.extent[0], rotation.space.count(), shape[space + 1],
                      box.extent[space + 2] / head_size, head_size};
    return attention_rotate(tape.context(), x.reshaped(heads), rotation).reshaped(box.extent);
  };
  const bool records = tape.records({qkv});
  Variable y = tape.result(signature, decision, records,
                           [&] { return rotate(tape.bring(qkv, decision.inputs[0]).piece, false); });
  if (!records) return y;
  tape.record([&tape, &decision, rotate, target = GradientTarget(qkv), slot = y.slot()] {
    if (!slot->gradient.defined()) return;
    const Array dy = tape.bring(slot->take(), dual(decision.row_outputs[0])).piece;
    target.give(tape.rank(), tape.gradient_placements(decision, 0), [&] { return rotate(dy, true); });
  });
  return y;
}

}  // namespace jigsaw
