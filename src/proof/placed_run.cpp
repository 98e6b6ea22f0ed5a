#include "proof/placed_run.h"

#include <cmath>

#include "array/host_view.h"
#include "array/transfer.h"
#include "base/error.h"
#include "comm/record/record.h"
#include "comm/thread/run_ranks.h"
#include "kernels/copy.h"
#include "kernels/pointwise.h"

namespace jigsaw::inline proof {

namespace {

constexpr double kTolerance = 1e-9;  // relative to the largest element
constexpr RandomState kRandom{7, {3, 1, 2}};

Mesh make_mesh(Communicator& world, const std::vector<int>& sizes) {
  return Mesh(world, 1, sizes, 1);
}

/// Inputs and outputs stand as the rules want and give them, so that nothing is redistributed.
Decision decision_of(const std::vector<const ShardingRule*>& rules, const Signature& signature) {
  Decision decision;
  decision.inputs.resize(signature.inputs.size());
  decision.rule_outputs.resize(signature.outputs.size());
  for (std::size_t i = 0; i < rules.size(); ++i) {
    if (rules[i] == nullptr) continue;
    const int axis = 1 + static_cast<int>(i);  // the domain axis i
    for (std::size_t input = 0; input < decision.inputs.size(); ++input)
      decision.inputs[input][axis] = rules[i]->inputs[input];
    for (std::size_t o = 0; o < decision.rule_outputs.size(); ++o)
      decision.rule_outputs[o][axis] = rules[i]->outputs[o];
    decision.cut |= axis_bit(axis);
  }
  decision.outputs = decision.rule_outputs;
  return decision;
}

Placements gradient_placements(const Decision& decision, std::size_t input) {
  Placements result;
  for (int axis = 0; axis < kMaxAxes; ++axis) {
    result[axis] = gradient_placement(decision.inputs[input][axis], contains(decision.cut, axis));
  }
  return result;
}

/// Number of this rank among those that hold summands of one piece, and how many they are.
std::pair<int, int> summand_of(const MeshShape& mesh, const Placements& placements, const Coordinates& at) {
  int index = 0, count = 1;
  for (int axis = 0; axis < mesh.axes; ++axis) {
    if (!placements[axis].is_partial()) continue;
    const auto a = static_cast<std::size_t>(axis);
    index = index * mesh.size[a] + at[a];
    count *= mesh.size[a];
  }
  return {index, count};
}

bool equal(const Array& actual, const Array& expected, double scale) {
  return std::ranges::equal(HostView<double>(actual), HostView<double>(expected),
                            [scale](double a, double b) { return std::abs(a - b) <= kTolerance * scale; });
}

double largest(const Array& x) {
  double result = 1;
  for (const double element : HostView<double>(x)) result = std::max(result, std::abs(element));
  return result;
}

}  // namespace

Context reference_context() {
  return Context::make_host(Backend::kReference, 1);
}

/// The ranks of a mesh, played one after the other.
struct PlacedRun::Stage {
  std::vector<std::unique_ptr<Communicator>> worlds;
  std::vector<std::unique_ptr<Mesh>> meshes;

  Stage(Context& context, const std::vector<int>& sizes) {
    int ranks = 1;
    for (const int size : sizes) ranks *= size;
    for (int rank = 0; rank < ranks; ++rank) {
      worlds.push_back(make_record_communicator(context, rank, ranks));
      meshes.push_back(std::make_unique<Mesh>(make_mesh(*worlds.back(), sizes)));
    }
  }
  /// A number that grows when a rank communicates.
  std::int64_t calls() const {
    std::int64_t total = 0;
    for (const auto& world : worlds) {
      const std::vector<CallLog::Entry> last = world->log()->last();
      if (!last.empty()) total += last.back().number + 1;
    }
    return total;
  }
};

PlacedRun::PlacedRun(const ProofCase::Instance& instance, const MakeContext& make_context)
    : instance_(instance), make_context_(make_context), rank_context_(make_context()) {
  const auto world = make_record_communicator(context_, 0, 1);
  Mesh mesh = make_mesh(*world, {1});
  const Rank rank{context_, mesh};
  std::vector<Variable> traced;
  for (const Shape& shape : instance.inputs) {
    inputs_.push_back(random_array(shape));
    traced.push_back(Variable::traced({shape, {}}, -1));
  }
  PlanBook none;
  trace_ = Tape(rank, none, Tape::Mode::kTrace, DType::kFloat64)
               .trace_of(traced, [&](Tape& tape, const std::vector<Variable>& x) {
                 return instance.run(tape, x).front();
               });
  require(trace_.nodes.size() == 1, "a case of the validator calls one operation");
  for (const Shape& output : signature().outputs) output_gradients_.push_back(random_array(output));
  expected_ = run(rank, decision_of({}, signature()), inputs_, output_gradients_);
}

Array PlacedRun::random_array(const Shape& shape) {
  Array array(context_, shape, DType::kFloat64);
  std::normal_distribution<double> normal(0.1);
  for (double& element : HostView<double>(array)) element = normal(generator_);
  return array;
}

PlacedRun::Stage& PlacedRun::stage(const std::vector<int>& sizes) {
  std::shared_ptr<Stage>& stage = stages_[sizes];
  if (!stage) stage = std::make_shared<Stage>(rank_context_, sizes);
  return *stage;
}

const std::vector<Array>& PlacedRun::summands(std::size_t input, int count) {
  std::vector<Array>& parts = summands_[{input, count}];
  if (!parts.empty()) return parts;
  const Array rest = extract_box(context_, inputs_[input], Box::whole(inputs_[input].shape()));
  for (int i = 0; i + 1 < count; ++i) {
    const Array& part = parts.emplace_back(random_array(rest.shape()));
    const HostView<double> left(rest), taken(part);
    for (std::size_t e = 0; e < left.size(); ++e) left[e] -= taken[e];
  }
  parts.push_back(rest);
  return parts;
}

Array PlacedRun::input_piece(const MeshShape& mesh, const Layout& layout, const Coordinates& at,
                             std::size_t input) {
  const auto [index, count] = summand_of(mesh, layout.placements, at);
  const Array& whole = summands(input, count)[static_cast<std::size_t>(index)];
  return extract_box(context_, whole, layout.box(mesh, at));
}

PlacedRun::Pieces PlacedRun::run(const Rank& rank, const Decision& decision, const std::vector<Array>& inputs,
                                 const std::vector<Array>& output_gradients) const {
  PlanBook plans;
  plans.add("operation", {trace_, {{decision}, {}, 0}});
  Tape tape(rank, plans, Tape::Mode::kRecord, DType::kFloat64, kRandom);
  tape.set_training(true);
  std::vector<Variable> variables;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Layout layout{signature().inputs[i], decision.inputs[i]};
    Variable& variable = variables.emplace_back(ShardedTensor{upload(rank.context, inputs[i]), layout}, true);
    // Gradients stay as the operation gives them.
    variable.slot()->layout.placements = gradient_placements(decision, i);
  }
  std::vector<Variable> outputs;
  tape.block({"operation"}, variables, [&](Tape& on, const std::vector<Variable>& x) {
    outputs = instance_.run(on, x);
    return outputs.front();
  });
  Pieces pieces;
  for (const Variable& output : outputs)
    pieces.outputs.push_back(download(rank.context, output.value().piece));
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    if (!(pieces.outputs[o].shape() == output_gradients[o].shape())) return pieces;
    const Layout gradient{signature().outputs[o], dual(decision.rule_outputs[o])};
    outputs[o].slot()->add(rank, {upload(rank.context, output_gradients[o]), gradient});
  }
  tape.backward();
  for (const Variable& variable : variables)
    pieces.gradients.push_back(download(rank.context, variable.slot()->take().piece));
  return pieces;
}

bool PlacedRun::assembles(const MeshShape& mesh, const Layout& layout, const std::vector<Array>& pieces,
                          const Array& whole) {
  const double scale = largest(whole);
  for (int rank = 0; rank < mesh.ranks(); ++rank) {
    const Coordinates at = mesh.coordinates(rank);
    const auto [index, count] = summand_of(mesh, layout.placements, at);
    const Box box = layout.box(mesh, at);
    if (index > 0) continue;
    Array sum = filled(context_, box.extent, DType::kFloat64, 0.0);
    for (int other = 0; other < mesh.ranks(); ++other) {
      const Coordinates there = mesh.coordinates(other);
      bool together = true;
      for (int axis = 0; axis < mesh.axes; ++axis) {
        const auto a = static_cast<std::size_t>(axis);
        together = together && (layout.placements[axis].is_partial() || at[a] == there[a]);
      }
      if (!together) continue;
      const Array& piece = pieces[static_cast<std::size_t>(other)];
      if (!piece.defined() || piece.count() != sum.count()) return false;
      accumulate(context_, sum, piece.reshaped(sum.shape()));
    }
    if (!equal(sum, extract_box(context_, whole, box), scale)) return false;
  }
  return true;
}

bool PlacedRun::right(const std::vector<int>& sizes, const std::vector<const ShardingRule*>& rules) {
  Stage& ranks = stage(sizes);
  const MeshShape& mesh = ranks.meshes[0]->shape();
  const Decision decision = decision_of(rules, signature());
  std::vector<std::vector<Array>> inputs, output_gradients;
  for (int rank = 0; rank < mesh.ranks(); ++rank) {
    const Coordinates at = mesh.coordinates(rank);
    std::vector<Array>& own = inputs.emplace_back();
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      own.push_back(input_piece(mesh, {signature().inputs[i], decision.inputs[i]}, at, i));
    }
    std::vector<Array>& theirs = output_gradients.emplace_back();
    for (std::size_t o = 0; o < output_gradients_.size(); ++o) {
      const Layout gradient{signature().outputs[o], dual(decision.rule_outputs[o])};
      theirs.push_back(extract_box(context_, output_gradients_[o], gradient.box(mesh, at)));
    }
  }
  std::vector<Pieces> pieces(inputs.size());
  const auto play = [&](const Rank& rank, std::size_t number) {
    pieces[number] = run(rank, decision, inputs[number], output_gradients[number]);
  };
  const std::int64_t calls = ranks.calls();
  try {
    for (std::size_t i = 0; i < pieces.size(); ++i) play({rank_context_, *ranks.meshes[i]}, i);
  } catch (const Error&) {
    if (ranks.calls() == calls) return false;
  }
  const auto complete = [](const Pieces& own) { return !own.gradients.empty(); };
  if (ranks.calls() == calls && !std::all_of(pieces.begin(), pieces.end(), complete)) return false;
  if (ranks.calls() != calls) {
    try {
      run_ranks(
          mesh.ranks(), {}, [this](int) { return make_context_(); },
          [&](Communicator& world) {
            Mesh own = make_mesh(world, sizes);
            play({world.context(), own}, static_cast<std::size_t>(world.rank()));
          });
    } catch (const Error&) {
      return false;
    }
  }
  const auto check = [&](const Layout& layout, const Array& whole, const auto& part) {
    std::vector<Array> parts;
    for (const Pieces& own : pieces) parts.push_back(part(own));
    return assembles(mesh, layout, parts, whole);
  };
  for (std::size_t o = 0; o < output_gradients_.size(); ++o) {
    const Layout layout{signature().outputs[o], decision.rule_outputs[o]};
    if (!check(layout, expected_.outputs[o], [o](const Pieces& own) { return own.outputs[o]; })) return false;
  }
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (!expected_.gradients[i].defined()) continue;
    const Layout layout{signature().inputs[i], gradient_placements(decision, i)};
    if (!check(layout, expected_.gradients[i], [i](const Pieces& own) { return own.gradients[i]; }))
      return false;
  }
  return true;
}

}  // namespace jigsaw::inline proof
