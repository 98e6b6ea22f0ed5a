#include <array>
#include <utility>

#include "autograd/operation.h"
#include "autograd/operations.h"
#include "base/error.h"
#include "base/text.h"
#include "kernels/contraction.h"

namespace jigsaw {

namespace {

std::int64_t extent_of(char letter, const ContractionSpec& spec, const Shape& a, const Shape& b) {
  const std::size_t in_a = spec.a.find(letter);
  return in_a != std::string::npos ? a[static_cast<int>(in_a)] : b[static_cast<int>(spec.b.find(letter))];
}

Signature signature_of(const ContractionSpec& spec, const Shape& a, const Shape& b, const Letters& units) {
  if (static_cast<int>(spec.a.size()) != a.rank() || static_cast<int>(spec.b.size()) != b.rank()) {
    throw ShapeError(concat("contraction ", spec.to_string(), " of ", a, " and ", b));
  }
  Signature signature{Operation::kContract, "contract " + spec.to_string(), {a, b}, {}, {}, 2.0,
                      {true, true}};
  for (const char letter : spec.c) signature.output.append(extent_of(letter, spec, a, b));
  std::string all = spec.a;
  for (const char letter : spec.b)
    all += spec.a.find(letter) == std::string::npos ? std::string(1, letter) : "";
  for (const char letter : all) signature.forward_flops *= static_cast<double>(extent_of(letter, spec, a, b));
  signature.rows = rows_of_letters({letters(spec.a, units), letters(spec.b, units)}, letters(spec.c, units));
  signature.rows.push_back(row_linear_in({true, false}));
  signature.rows.push_back(row_linear_in({false, true}));
  return signature;
}

}  // namespace

Variable contract(Tape& tape, std::string_view text, const Variable& a, const Variable& b,
                  const Letters& units) {
  const ContractionSpec spec = ContractionSpec::parse(text);
  const Signature signature = signature_of(spec, a.shape(), b.shape(), units);
  if (tape.tracing()) return tape.trace(signature, {a, b});
  const Decision& decision = tape.decide(signature);
  const bool records = tape.records({a, b});
  Variable y = tape.result(signature, decision, records, [&] {
    return contract(tape.context(), spec, tape.bring(a, decision.inputs[0]).piece,
                    tape.bring(b, decision.inputs[1]).piece, tape.gradient_type(decision.row_output));
  });
  if (!records) return y;

  const auto saved_if = [](const Variable& v, bool needed) { return needed ? v.save() : nullptr; };
  tape.record([&tape, &decision, spec, targets = std::array{GradientTarget(a), GradientTarget(b)},
               saved = std::array{saved_if(a, b.wants_gradient()), saved_if(b, a.wants_gradient())},
               slot = y.slot()]() mutable {
    if (!slot->gradient.defined()) return;
    const Array dy = tape.bring(slot->take(), dual(decision.row_output)).piece;
    const std::array<ContractionSpec, 2> transposed = {ContractionSpec{spec.c, spec.b, spec.a},
                                                       ContractionSpec{spec.c, spec.a, spec.b}};
    // The weight's gradient first: what it alone reads, a as saved or computed again, goes before da comes.
    for (const std::size_t i : {1, 0}) {
      if (!targets[i].wanted()) continue;
      const Array other = tape.bring(std::exchange(saved[1 - i], nullptr)(), decision.inputs[1 - i]).piece;
      const Placements placements = tape.gradient_placements(decision, i);
      targets[i].give(
          tape.rank(), placements,
          [&] { return contract(tape.context(), transposed[i], dy, other, tape.gradient_type(placements)); },
          [&](Array& into) { contract_add(tape.context(), transposed[i], dy, other, into); });
    }
  });
  return y;
}

}  // namespace jigsaw
