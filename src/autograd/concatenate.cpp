#include <array>

#include "autograd/neighbourhood.h"
#include "autograd/operation.h"
#include "base/error.h"
#include "base/text.h"
#include "kernels/copy.h"

namespace jigsaw {

namespace {

/// Of one operand: the exchange that brings its channels of this rank's result, and where they stand there.
struct Part {
  std::shared_ptr<const Exchange> exchange;
  Box place;  ///< relative to this rank's piece of the result
};

Part part_of(const Rank& rank, const Layout& here, const Layout& made, std::int64_t first) {
  const int last = made.global.rank() - 1;
  const IndexMap map{{{last, Reads::shifted(-first), Edge::kNone, Edge::kNone}}, -1, {}};
  Part part{Exchange::of(rank, map, here, made), Box::whole(rank.box(made).extent)};
  const Box& wanted = part.exchange->wanted();
  part.place.extent[last] = wanted.extent[last];
  if (!wanted.empty()) part.place.begin[last] = wanted.begin[last] + first - rank.box(made).begin[last];
  return part;
}

/// What changes ranks forward, and again backward, over the elements of the first input's piece, at most.
TransferCost moved_traffic(const OwnCall& call, std::span<const double> numbers) {
  TransferCost cost;
  cost.add(Collective::kExchange,
           2 * numbers[0] * static_cast<double>(call.piece(0).count()) * call.element_bytes, 2);
  return cost;
}

/// Both operands in one array, their transfers under way together.
Array join(const Rank& rank, const std::array<Part, 2>& parts, const std::array<Array, 2>& pieces,
           const Shape& extent) {
  std::array<Pending, 2> pending;
  for (std::size_t i = 0; i < 2; ++i) {
    if (parts[i].exchange->travels()) pending[i] = parts[i].exchange->start(rank, pieces[i]);
  }
  Array joined(rank.context, extent, pieces[0].dtype());
  for (std::size_t i = 0; i < 2; ++i) {
    const Exchange& exchange = *parts[i].exchange;
    const Array arrived = pending[i].valid() ? pending[i].wait() : Array();
    const Array piece = exchange.assemble(rank, pieces[i], arrived, exchange.wanted());
    copy_box(rank.context, piece, Box::whole(piece.shape()), joined, parts[i].place);
  }
  return joined;
}

}  // namespace

Variable concatenate(Tape& tape, const Variable& x, const Variable& y) {
  const int last = x.shape().rank() - 1;
  Shape output = x.shape(), other = y.shape();
  output[last] += other[last];
  other[last] = x.shape()[last];
  if (!(other == x.shape())) throw ShapeError(concat("cannot join ", x.shape(), " and ", y.shape()));
  Signature signature{Operation::kConcatenate, "concatenate", {x.shape(), y.shape()}, {output}, {}, 0,
                      {false, false}};
  signature.remade = true;
  const Letters dims = field_dims(last - 1, {'c'});
  signature.rows = rows_of_letters({dims, dims}, dims);
  for (Row& row : signature.rows) {
    // Cut channels stand on other ranks in the result.
    row.communicates = row.moves_result = row.outputs[0] == Placement::shard(last);
  }
  signature.own = {moved_traffic, {static_cast<double>(output[last]) / static_cast<double>(x.shape()[last])}};
  signature.rows.push_back(row_linear_in({true, true}));
  if (tape.tracing()) return tape.trace(signature, {x, y});
  const Decision& decision = tape.decide(signature);

  for (const std::size_t input : {0U, 1U}) require_cut_alike(decision, input, 0, last);
  const Rank& rank = tape.rank();
  const Layout made{output, decision.row_outputs[0]};
  const std::array parts = {part_of(rank, {x.shape(), decision.inputs[0]}, made, 0),
                            part_of(rank, {y.shape(), decision.inputs[1]}, made, x.shape()[last])};
  const bool records = tape.records({x, y});
  Variable z = tape.result(signature, decision, records, [&] {
    const std::array here = {tape.bring(x, decision.inputs[0]).piece,
                             tape.bring(y, decision.inputs[1]).piece};
    return join(rank, parts, here, rank.box(made).extent);
  });
  if (!records) return z;
  if (decision.remade) {
    z.set_recipe([&tape, &decision, parts, made, saved = std::array{x.save(), y.save()}] {
      const std::array again = {tape.bring(saved[0](), decision.inputs[0]).piece,
                                tape.bring(saved[1](), decision.inputs[1]).piece};
      return tape.bring(ShardedTensor{join(tape.rank(), parts, again, tape.rank().box(made).extent), made},
                        decision.outputs[0]);
    });
  }
  tape.record(
      [&tape, &decision, parts, targets = std::array{GradientTarget(x), GradientTarget(y)}, slot = z.slot()] {
        if (!slot->gradient.defined()) return;
        const Array dz = tape.bring(slot->take(), dual(decision.row_outputs[0])).piece;
        for (std::size_t i = 0; i < 2; ++i) {
          if (!targets[i].wanted()) continue;
          const Array part = extract_box(tape.context(), dz, parts[i].place);
          Array gradient = parts[i].exchange->scatter(tape.rank(), part);
          targets[i].give(tape.rank(), tape.gradient_placements(decision, i), [&] { return gradient; });
        }
      });
  return z;
}

}  // namespace jigsaw
