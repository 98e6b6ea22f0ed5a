#include "autograd/neighbourhood.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "base/error.h"
#include "kernels/copy.h"
#include "parallel/book.h"
#include "parallel/stream.h"

namespace jigsaw::inline autograd {

IndexMap field_map(const Shape& x, const std::vector<Reads>& reads, const Padding& padding,
                   const Shape& space) {
  IndexMap map;
  const int dims = space.rank();
  require(std::ssize(reads) == dims && std::ssize(padding.dims) == dims, "each spatial dim is read somehow");
  for (int i = 0; i < dims; ++i) {
    const auto s = static_cast<std::size_t>(i);
    const Range all = reads[s].of({0, space[i]});
    DimMap dim{1 + i, reads[s], Edge::kNone, Edge::kNone};
    if (all.begin < 0) dim.low = padding.dims[s].low_edge;
    if (all.end > x[1 + i]) dim.high = padding.dims[s].high_edge;
    if (is_pole(dim.low) || is_pole(dim.high)) {
      require(i == dims - 2, "poles lie at the ends of the last spatial dim but one");
      map.circle = 2 + i;
    }
    const bool own_points = reads[s] == Reads{} && space[i] == x[1 + i];
    if (!own_points || map.circle == dim.dim) map.dims.push_back(dim);
  }
  if (map.circle >= 0) map.crossing = padding.crossing;
  return map;
}

Letters field_dims(int space, LetterDim last) {
  Letters dims = letters("b" + std::string("dhw").substr(static_cast<std::size_t>(3 - space)));
  dims.push_back(last);
  return dims;
}

namespace {

/// Halos forward and again backward: those on both sides where there are two neighbours. The numbers are, of
/// each dim of the first input, how many points are read below and above the piece, and whether the dim goes
/// on beyond the grid's ends.
TransferCost halo_traffic(const OwnCall& call, std::span<const double> numbers) {
  const Shape piece = call.piece(0);
  Shape parts = Shape::filled(piece.rank(), 1), region = piece;
  for (int axis = 0; axis < call.mesh.axes; ++axis) {
    if (!contains(call.axes, axis)) continue;
    parts[call.inputs[0].placements[axis].dim] *= call.mesh.size[static_cast<std::size_t>(axis)];
  }
  for (int dim = 0; dim < piece.rank(); ++dim) {
    if (parts[dim] == 1) continue;
    const auto of_dim = numbers.subspan(3 * static_cast<std::size_t>(dim), 3);
    const auto below = static_cast<std::int64_t>(of_dim[0]), above = static_cast<std::int64_t>(of_dim[1]);
    const bool both = of_dim[2] > 0 || parts[dim] > 2;
    region[dim] += both ? below + above : std::max(below, above);
  }
  TransferCost cost;
  cost.add(Collective::kExchange,
           2 * static_cast<double>(region.count() - piece.count()) * call.element_bytes, 2);
  return cost;
}

}  // namespace

void set_halos(Signature& signature, const IndexMap& map) {
  signature.own = {halo_traffic,
                   std::vector<double>(3 * static_cast<std::size_t>(signature.inputs[0].rank()))};
  for (const DimMap& dim : map.dims) {
    // A piece of `numerator` inputs makes `denominator` outputs.
    const Reads& reads = dim.reads;
    const Range read = reads.of({0, reads.denominator});
    const std::int64_t below = std::max<std::int64_t>(-read.begin, 0),
                       above = std::max<std::int64_t>(read.end - reads.numerator, 0);
    double* numbers = &signature.own.numbers[3 * static_cast<std::size_t>(dim.dim)];
    numbers[0] = static_cast<double>(below);
    numbers[1] = static_cast<double>(above);
    numbers[2] = dim.low == Edge::kPeriodic || is_pole(dim.low) || is_pole(dim.high) ? 1 : 0;
    for (ShardingRule& rule : signature.rules) {
      const Placement& input = rule.inputs[0];
      if (input.is_shard() && input.dim == dim.dim) rule.communicates = below + above > 0;
    }
  }
}

void require_cut_alike(const Layout& input, const Layout& output, int first, int last) {
  for (int axis = 0; axis < kMaxAxes; ++axis) {
    const Placement &from = input.placements[axis], &to = output.placements[axis];
    for (const Placement* p : {&from, &to}) {
      if (p->is_shard() && p->dim >= first && p->dim <= last)
        require(from == to, "input and result of an exchange are cut alike");
    }
  }
}

Box space_of(const Box& box) {
  const int dims = box.begin.rank() - 2;
  Box space{Shape::filled(dims, 0), Shape::filled(dims, 0)};
  for (int i = 0; i < dims; ++i) {
    space.begin[i] = box.begin[1 + i];
    space.extent[i] = box.extent[1 + i];
  }
  return space;
}

namespace {

/// The outputs of an exchange that read more than what is here: in boxes, what each reads, and how they come
/// to their places.
struct Borders {
  Borders(const Exchange& exchange, const Box& outputs, const Box& inner) : parts(around(outputs, inner)) {
    for (const Box& part : parts) {
      joining.copy(static_cast<int>(regions.size()), {0, part.extent, Box::whole(part.extent)},
                   {0, outputs.extent, relative_to(part, outputs)});
      regions.push_back(exchange.region_of(part));
    }
  }

  std::vector<Box> parts, regions;
  BoxTable joining;
};
/// What they are compiled for: exchanges live as long as the rank's context, which keeps them.
using BordersKey = std::pair<const Exchange*, Box>;

/// Small borders around a large inner part are worth kernels of their own.
bool worth_splitting(const Box& outputs, const Box& inner) {
  return 4 * inner.extent.count() > 3 * outputs.extent.count();
}

/// The place of a tile's outputs, where kernels of any library can write them.
Array place_of(const Array& result, const Box& outputs, const Box& tile) {
  constexpr std::ptrdiff_t kAlignment = 16;  // bytes, as cuDNN's plans want it
  const std::optional<Array> place = consecutive(result, outputs, tile);
  const auto begin = [](const Array& array) { return static_cast<const std::byte*>(array.identity()); };
  return place && (begin(*place) - begin(result)) % kAlignment == 0 ? *place : Array();
}

bool stands_in(const Array& made, const Array& place) {
  return place.defined() && made.identity() == place.identity();
}

}  // namespace

Array over_tiles(const Rank& rank, const std::function<void()>& long_work_follows, const Exchange& exchange,
                 const Box& outputs, const Array& piece, DType type, Array& arrived, const TileKernel& kernel,
                 Splitting splitting) {
  const auto make = [&](const Box& part, const Array& into) {
    const Tile tile{part, exchange.region_of(part)};
    return kernel(exchange.assemble(rank, piece, arrived, tile.region), tile, into);
  };
  Pending pending;
  if (exchange.travels()) pending = exchange.start(rank, piece);
  long_work_follows();
  if (!exchange.travels()) return make(outputs, {});
  const Box inner = exchange.outputs_inside(outputs);
  if (inner == outputs) {  // though others may wait for what is here
    Array all = make(outputs, {});
    arrived = pending.wait();
    return all;
  }
  Array result, place;
  if (splitting != Splitting::kNever && worth_splitting(outputs, inner)) {
    result = Array(rank.context, outputs.extent, type);
    place = place_of(result, outputs, inner);
  }
  if (!result.defined() || (splitting == Splitting::kWhereInPlace && !place.defined())) {
    result = Array();
    arrived = pending.wait();
    return make(outputs, {});
  }
  {
    const Array inside = make(inner, place);
    if (!stands_in(inside, place))
      copy_box(rank.context, inside, Box::whole(inner.extent), result, relative_to(inner, outputs));
  }
  arrived = pending.wait();
  const std::shared_ptr<const Borders> borders = rank.context.state<Book<BordersKey, Borders>>().of(
      {&exchange, outputs}, [&] { return std::make_shared<const Borders>(exchange, outputs, inner); });
  const std::vector<Array> regions = exchange.assemble(rank, piece, arrived, borders->regions);
  std::vector<Array> places, made;
  for (const Box& part : borders->parts) places.push_back(place_of(result, outputs, part));
  bool in_place = std::ranges::all_of(places, &Array::defined);
  if (!in_place) places.assign(places.size(), Array());
  for (std::size_t i = 0; i < regions.size(); ++i) {
    made.push_back(kernel(regions[i], {borders->parts[i], borders->regions[i]}, places[i]));
    in_place = in_place && stands_in(made.back(), places[i]);
  }
  if (!in_place) copy_boxes(rank.context, borders->joining, made, result);
  return result;
}

Neighbourhood::Neighbourhood(const Shape& input, const Shape& output, IndexMap map)
    : input_(input), output_(output), map_(std::move(map)) {}

Signature Neighbourhood::field_signature(bool linear) const {
  Signature signature;
  signature.name = name();
  signature.inputs = {input_};
  signature.outputs = {output_};
  signature.saved = {false};
  const Letters dims = field_dims(input_.rank() - 2, {'c'});
  signature.rules = rules_of_letters({dims}, dims);
  set_halos(signature, map_);
  // Unless crossing a pole adds something.
  if (linear && map_.crossing.offset.empty()) signature.rules.push_back(linear_rule({true}));
  return signature;
}

std::shared_ptr<const Exchange> Neighbourhood::exchange(const Frame& frame) const {
  require_cut_alike(frame.input(0), frame.output(), 1, input_.rank() - 2);
  return Exchange::of(frame.rank(), map_, frame.input(0), frame.output());
}

std::vector<Array> Neighbourhood::forward(Frame& frame, Operands& inputs) const {
  const auto exchange = this->exchange(frame);
  const Array piece = inputs.redistributed(0);
  const Box outputs = frame.output_box();
  Context& context = frame.context();
  Found found;
  const auto make = [&](const Array& region, const Tile& tile, const Array& into) {
    if (!noted_type() || tile.outputs == outputs)
      return forward_tile(context, region, tile, into, found.noted);
    if (!found.noted.defined()) found.noted = Array(context, outputs.extent, *noted_type());
    const std::optional<Array> place = consecutive(found.noted, outputs, tile.outputs);
    Array noted = place ? *place : Array();
    Array made = forward_tile(context, region, tile, into, noted);
    if (!place) {
      copy_box(context, noted, Box::whole(tile.outputs.extent), found.noted,
               relative_to(tile.outputs, outputs));
    }
    return made;
  };
  const Array result = over_tiles(
      frame.rank(), [&] { frame.long_work_follows(); }, *exchange, outputs, piece, piece.dtype(),
      found.arrived, make, splitting());
  frame.keep_findings(found);
  return {result};
}

std::vector<Array> Neighbourhood::rematerialise(Frame& frame, Operands& inputs) const {
  const auto exchange = this->exchange(frame);
  const Tile tile{frame.output_box(), exchange->wanted()};
  const Array& arrived = frame.findings<Found>().arrived;
  Array noted;
  return {forward_tile(frame.context(),
                       exchange->assemble(frame.rank(), inputs.redistributed(0), arrived, tile.region), tile,
                       Array(), noted)};
}

void Neighbourhood::backward(const Frame& frame, Operands&, Gradients& gradients) const {
  const auto exchange = this->exchange(frame);
  const Tile tile{frame.output_box(), exchange->wanted()};
  const Array dy = gradients.take();
  frame.long_work_follows();
  const Array noted = frame.signature().keeps_findings ? frame.findings<Found>().noted : Array();
  const Array gradient = backward_tile(frame.context(), dy, tile, noted);
  gradients.give(0, exchange->scatter(frame.rank(), gradient));
}

}  // namespace jigsaw::inline autograd
