#include "kernels/resampling.h"

#include "autograd/field_cases.h"
#include "autograd/neighbourhood.h"
#include "base/error.h"
#include "base/text.h"
#include "kernels/field_extents.h"

namespace jigsaw::inline autograd {

namespace {

class Resample : public Neighbourhood {
 public:
  Resample(const Shape& input, const Shape& output, IndexMap map, const Resampling& resampling)
      : Neighbourhood(input, output, std::move(map)), resampling_(resampling) {}

  std::string_view name() const override { return "resample"; }

  Signature signature(std::span<const Shape>) const override {
    Signature signature = field_signature(true);
    signature.name += concat(" to ", resampling_.output);
    signature.rematerialised = true;
    signature.keeps_findings = true;  // what has arrived of neighbours
    if (resampling_.interpolation == Interpolation::kLinear) {
      const auto points = static_cast<double>(2U << static_cast<unsigned>(resampling_.output.rank()));
      signature.forward_flops = static_cast<double>(output_.count()) * points;
    }
    return signature;
  }

 protected:
  Array forward_tile(Context& context, const Array& region, const Tile& tile, const Array& into,
                     Array&) const override {
    Array y = into.defined() ? into : Array(context, tile.outputs.extent, region.dtype());
    resample_forward_into(context, resampling_of(tile), region, y);
    return y;
  }
  Array backward_tile(Context& context, const Array& dy, const Tile& tile, const Array&) const override {
    return resample_backward(context, resampling_of(tile), dy);
  }

 private:
  Resampling resampling_of(const Tile& tile) const {
    Resampling here = resampling_;
    const Box source = space_of(tile.region);
    here.source_extent = source.extent;
    for (int i = 0; i < source.begin.rank(); ++i)
      here.source_begin[static_cast<std::size_t>(i)] = source.begin[i];
    here.target = space_of(tile.outputs);
    return here;
  }

  Resampling resampling_;
};

/// The exchange is all there is to it.
class Pad : public Neighbourhood {
 public:
  using Neighbourhood::Neighbourhood;

  std::string_view name() const override { return "pad"; }

  Signature signature(std::span<const Shape>) const override {
    Signature signature = field_signature(true);
    signature.rematerialised = true;
    signature.keeps_findings = true;  // what has arrived of neighbours
    return signature;
  }

 protected:
  Array forward_tile(Context&, const Array& region, const Tile&, const Array&, Array&) const override {
    return region;
  }
  Splitting splitting() const override { return Splitting::kNever; }
  Array backward_tile(Context&, const Array& dy, const Tile&, const Array&) const override { return dy; }
};

}  // namespace

Variable resample(Tape& tape, const Variable& x, Interpolation interpolation, const Shape& grid,
                  const Shape& space, const Padding& edges) {
  Resampling resampling;
  resampling.interpolation = interpolation;
  resampling.input = space_of(x.shape());
  resampling.output = grid;
  Padding beyond = edges;
  std::vector<Reads> reads;
  for (int i = 0; i < space.rank(); ++i) {
    const auto s = static_cast<std::size_t>(i);
    Ends& ends = beyond.dims.at(s);
    resampling.clamped[s] = ends.low_edge == Edge::kReplicate && ends.high_edge == Edge::kReplicate;
    if (resampling.clamped[s]) ends.low_edge = ends.high_edge = Edge::kNone;
    const std::int64_t in = resampling.input[i], out = grid[i];
    reads.push_back(interpolation == Interpolation::kNearest ? Reads{in, out, 0, 0}
                    : interpolation == Interpolation::kNearestExact
                        ? Reads{2 * in, 2 * out, in, in}
                        : Reads{2 * in, 2 * out, in - out, in + out});
  }
  const Shape output = field_shape(x.shape()[0], space, x.shape().back());
  const IndexMap map = field_map(x.shape(), reads, beyond, space);
  return apply(tape, Resample(x.shape(), output, map, resampling), {x});
}

Variable pad(Tape& tape, const Variable& x, const Padding& padding) {
  std::vector<Reads> reads;
  Shape space = space_of(x.shape());
  for (int i = 0; i < space.rank(); ++i) {
    const Ends& ends = padding.dims.at(static_cast<std::size_t>(i));
    reads.push_back(Reads::shifted(-ends.low));
    space[i] += ends.low + ends.high;
    require(space[i] >= 0, "cropping leaves nothing");
  }
  const Shape output = field_shape(x.shape()[0], space, x.shape().back());
  const IndexMap map = field_map(x.shape(), reads, padding, space);
  return apply(tape, Pad(x.shape(), output, map), {x});
}

// ---- Proof

std::vector<ProofCase> resample_cases() {
  std::vector<ProofCase> cases;
  for (const Interpolation interpolation : {Interpolation::kNearest, Interpolation::kLinear}) {
    const bool nearest = interpolation == Interpolation::kNearest;
    ProofCase& one =
        cases.emplace_back(ProofCase{nearest ? "nearest, doubled and cropped" : "linear, doubled", {}});
    for (const Shape& field : proof_fields()) {
      const Shape grid{2 * field[1], 2 * field[2]}, space{grid[0] - (nearest ? 1 : 0), grid[1]};
      add_instance(one, {field}, [=](Tape& tape, const std::vector<Variable>& x) {
        return resample(tape, x[0], interpolation, grid, space, all_around(2, 0, Edge::kReplicate));
      });
    }
  }
  ProofCase& fewer = cases.emplace_back(ProofCase{"nearest-exact, halved", {}});
  for (const Shape& field : proof_fields()) {
    const Shape grid{(field[1] + 1) / 2, (field[2] + 1) / 2};
    add_instance(fewer, {field}, [=](Tape& tape, const std::vector<Variable>& x) {
      return resample(tape, x[0], Interpolation::kNearestExact, grid, grid,
                      all_around(2, 0, Edge::kReplicate));
    });
  }
  return cases;
}

std::vector<ProofCase> pad_cases() {
  const auto padded = [](const std::string& name, const Padding& padding) {
    return make_case(name, alone(proof_fields()), [padding](Tape& tape, const std::vector<Variable>& x) {
      return pad(tape, x[0], padding);
    });
  };
  return {padded("zeros", {{{2, 1}, {0, 1}}}), padded("around the circle", all_around(2, 2, Edge::kPeriodic)),
          padded("cropped", {{{0, -1}, {-1, -1}}})};
}

}  // namespace jigsaw::inline autograd
