#include "autograd/field_operations.h"
#include "base/text.h"
#include "proof/operation_cases.h"

namespace jigsaw {

namespace {

/// Fields of 2 spatial dims whose dims are cut evenly and unevenly, one with less rows than ranks.
const std::vector<Shape> kFields = {{3, 5, 4, 2}, {2, 4, 5, 3}, {4, 2, 7, 5}};
const std::vector<Shape> kVolumes = {{2, 4, 3, 5, 3}, {3, 5, 4, 2, 2}};

Padding all_around(int dims, std::int64_t points, Edge edge = Edge::kZero) {
  return {std::vector<Ends>(static_cast<std::size_t>(dims), {points, points, edge, edge})};
}

Window window(const Shape& extent, std::int64_t stride = 1) {
  return {extent, Shape::filled(extent.rank(), stride), Shape::filled(extent.rank(), 1)};
}

/// Longitude around the circle, cell-centred poles with a vector component among the channels.
Padding globe() {
  return {{{1, 1, Edge::kPoleCell, Edge::kPoleCell}, {1, 1, Edge::kPeriodic, Edge::kPeriodic}},
          {{1, -1, 1, 1, -1}, {0, 0.5, 0, 0, 0}}};
}

/// Shapes of a field and its weight, with `out` channels made and the kernel's extents.
std::vector<std::vector<Shape>> weighted(const std::vector<Shape>& fields, const Shape& kernel,
                                         bool transposed) {
  std::vector<std::vector<Shape>> inputs;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const std::int64_t in = fields[i].back(), out = 4 - static_cast<std::int64_t>(i % 2);
    Shape weight{transposed ? in : out, transposed ? out : in};
    for (const std::int64_t extent : kernel) weight.append(extent);
    inputs.push_back({fields[i], weight});
  }
  return inputs;
}

OperationCase convolved(const std::string& name, const std::vector<std::vector<Shape>>& inputs,
                        const Window& kernel, std::int64_t groups, const Padding& padding) {
  return make_case(name, inputs, [=](Tape& tape, const std::vector<Variable>& x) {
    return convolution(tape, x[0], x[1], kernel, groups, padding);
  });
}

std::vector<std::vector<Shape>> alone(const std::vector<Shape>& fields) {
  std::vector<std::vector<Shape>> inputs;
  for (const Shape& field : fields) inputs.push_back({field});
  return inputs;
}

Shape space_of(const Shape& field) {
  return Shape(std::span(field.begin() + 1, static_cast<std::size_t>(field.rank() - 2)));
}

}  // namespace

std::vector<OperationCase> convolution_cases() {
  const std::vector<Shape> even = {{3, 5, 4, 2}, {2, 4, 2, 3}, {4, 2, 8, 5}};
  return {convolved("3 x 3, zeros", weighted(kFields, {3, 3}, false), window({3, 3}), 1, all_around(2, 1)),
          convolved("3 x 3, far into zeros", weighted(kFields, {3, 3}, false), window({3, 3}), 1,
                    all_around(2, 4)),
          convolved("3 x 2, stride 2, replicated", weighted(kFields, {3, 2}, false), window({3, 2}, 2), 1,
                    all_around(2, 1, Edge::kReplicate)),
          convolved("3 x 3, globe", weighted(even, {3, 3}, false), window({3, 3}), 1, globe()),
          convolved("2 groups", {{{2, 4, 3, 4}, {6, 2, 3, 3}}, {{3, 3, 5, 4}, {6, 2, 3, 3}}}, window({3, 3}),
                    2, all_around(2, 1)),
          convolved("volumes", weighted(kVolumes, {3, 1, 2}, false), window({3, 1, 2}), 1, all_around(3, 1))};
}

std::vector<OperationCase> transposed_convolution_cases() {
  std::vector<OperationCase> cases;
  for (const std::int64_t extent : {2, 3}) {
    OperationCase& one =
        cases.emplace_back(OperationCase{concat(extent, " x ", extent, ", stride 2, cropped"), {}});
    for (const std::vector<Shape>& inputs : weighted(kFields, {extent, extent}, true)) {
      const Shape space{2 * inputs[0][1] - 1, 2 * inputs[0][2]};
      one.instances.push_back({inputs, [space, extent](Tape& tape, const std::vector<Variable>& x) {
                                 return transposed_convolution(tape, x[0], x[1], window({extent, extent}, 2),
                                                               1, Shape::filled(2, extent - 2), space);
                               }});
    }
  }
  return cases;
}

std::vector<OperationCase> pooling_cases() {
  std::vector<OperationCase> cases;
  for (const PoolingKind kind : {PoolingKind::kMax, PoolingKind::kAverage}) {
    for (const bool overlapping : {false, true}) {
      OperationCase& one =
          cases.emplace_back(OperationCase{concat(kind == PoolingKind::kMax ? "max" : "average",
                                                  overlapping ? " 3 x 3" : " 2 x 2, to the end"),
                                           {}});
      for (const Shape& field : kFields) {
        const Shape space = overlapping ? space_of(field) : Shape{(field[1] + 1) / 2, (field[2] + 1) / 2};
        one.instances.push_back({{field}, [=](Tape& tape, const std::vector<Variable>& x) {
                                   return pooling(tape, x[0], kind,
                                                  overlapping ? window({3, 3}) : window({2, 2}, 2),
                                                  all_around(2, overlapping ? 1 : 0), space, overlapping);
                                 }});
      }
    }
  }
  return cases;
}

std::vector<OperationCase> global_average_cases() {
  const auto run = [](Tape& tape, const std::vector<Variable>& x) { return global_average(tape, x[0]); };
  return {make_case("fields", alone(kFields), run), make_case("volumes", alone(kVolumes), run)};
}

std::vector<OperationCase> resample_cases() {
  std::vector<OperationCase> cases;
  for (const Interpolation interpolation : {Interpolation::kNearest, Interpolation::kLinear}) {
    const bool nearest = interpolation == Interpolation::kNearest;
    OperationCase& one =
        cases.emplace_back(OperationCase{nearest ? "nearest, doubled and cropped" : "linear, doubled", {}});
    for (const Shape& field : kFields) {
      const Shape grid{2 * field[1], 2 * field[2]}, space{grid[0] - (nearest ? 1 : 0), grid[1]};
      one.instances.push_back({{field}, [=](Tape& tape, const std::vector<Variable>& x) {
                                 return resample(tape, x[0], interpolation, grid, space,
                                                 all_around(2, 0, Edge::kReplicate));
                               }});
    }
  }
  return cases;
}

std::vector<OperationCase> pad_cases() {
  const auto padded = [](const std::string& name, const Padding& padding) {
    return make_case(name, alone(kFields), [padding](Tape& tape, const std::vector<Variable>& x) {
      return pad(tape, x[0], padding);
    });
  };
  return {padded("zeros", {{{2, 1}, {0, 1}}}), padded("around the circle", all_around(2, 2, Edge::kPeriodic)),
          padded("cropped", {{{0, -1}, {-1, -1}}})};
}

std::vector<OperationCase> concatenate_cases() {
  return {make_case(
      "fields", {{{3, 5, 4, 2}, {3, 5, 4, 3}}, {{2, 4, 5, 1}, {2, 4, 5, 6}}, {{4, 2, 3, 5}, {4, 2, 3, 1}}},
      [](Tape& tape, const std::vector<Variable>& x) { return concatenate(tape, x[0], x[1]); })};
}

}  // namespace jigsaw
