#include "autograd/gradient_case.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <numeric>
#include <random>

#include "base/text.h"
#include "support/test_ranks.h"

namespace jigsaw::testing {

namespace {

std::vector<double> made_up(std::int64_t count, std::mt19937& generator) {
  std::vector<double> values(static_cast<std::size_t>(count));
  std::normal_distribution<double> normal;
  for (double& value : values) value = normal(generator);
  return values;
}

std::vector<Variable> add_parameters(ParameterBlock& block, const GradientCase& what) {
  std::vector<Variable> parameters;
  for (std::size_t i = 0; i < what.parameters.size(); ++i) {
    parameters.emplace_back(block.add(concat("parameter.", i), what.parameters[i], Initial::constant(0)));
  }
  return parameters;
}

/// Space on the domain axes, the last dim on tensor: seldom what a rule wants.
Layout input_layout(const Mesh& mesh, const Shape& shape) {
  Layout layout{shape, {}};
  for (int i = 0; i < mesh.domain_axes() && 1 + i < shape.rank(); ++i) {
    layout.placements[mesh.domain(i)] = Placement::shard(1 + i);
  }
  layout.placements[mesh.tensor()] = Placement::shard(shape.rank() - 1);
  return layout;
}

void force(PlanBook::Entry& entry, const Forced& forced) {
  require(entry.trace.nodes.size() == 1, "only one operation can be forced");
  const Trace::Node& node = entry.trace.nodes[0];
  Decision decision;
  decision.inputs.resize(node.inputs.size());
  decision.rule_outputs.resize(node.outputs.size());
  decision.outputs.resize(node.outputs.size());
  decision.outputs[0] = entry.trace.values[static_cast<std::size_t>(node.outputs[0])].placements;
  if (forced.rule >= 0) {
    const ShardingRule& rule = node.signature.rules[static_cast<std::size_t>(forced.rule)];
    for (std::size_t i = 0; i < node.inputs.size(); ++i) decision.inputs[i][forced.axis] = rule.inputs[i];
    for (std::size_t o = 0; o < rule.outputs.size(); ++o)
      decision.rule_outputs[o][forced.axis] = rule.outputs[o];
    decision.cut = axis_bit(forced.axis);
  }
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    entry.plan.parameters[static_cast<std::size_t>(node.inputs[i])] = decision.inputs[i];
  }
  entry.plan.decisions = {decision};
}

constexpr RandomState kRandom{7, {3, 1, 2}};

}  // namespace

Tensors GradientCase::values(const Shape& output) const {
  std::mt19937 generator(5);
  Tensors values;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    values[concat("input.", i)] = made_up(inputs[i].count(), generator);
  }
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    values[concat("parameter.", i)] = made_up(parameters[i].count(), generator);
  }
  values["weight"] = made_up(output.count(), generator);
  return values;
}

GradientRun::GradientRun(const Rank& rank, const GradientCase& what, std::optional<Forced> forced)
    : rank_(rank), case_(what) {
  PlanBook traced;
  ParameterBlock names("case");
  const std::vector<Variable> parameters = add_parameters(names, what);
  std::vector<Variable> inputs;
  for (const Shape& shape : what.inputs) {
    inputs_.push_back(input_layout(rank.mesh, shape));
    inputs.push_back(Variable::traced(inputs_.back(), -1));
  }
  Tape tape(rank, traced, Tape::Mode::kTrace, DType::kFloat64);
  output_ = run_blocks(tape, names, inputs, parameters).layout();

  PlanBook::Entry entry = traced.at("case");
  if (forced) force(entry, *forced);
  parameters_ = add_parameters(block_, what);
  const PlanBook::Entry& owner = what.heads ? traced.at("heads") : entry;
  for (std::size_t v = 0; v < owner.trace.values.size(); ++v) {
    for (const auto& parameter : block_.parameters()) {
      if (owner.trace.values[v].name != parameter->name()) continue;
      ParameterBlock::set_compute(*parameter, owner.plan.parameters[v]);
    }
  }
  plans_.add("case", std::move(entry));
  if (what.heads) plans_.add("heads", traced.at("heads"));
  block_.materialise(rank, Zero::kNone, DType::kFloat64, DType::kFloat64, 1);
}

Variable GradientRun::run_blocks(Tape& tape, ParameterBlock& block, const std::vector<Variable>& inputs,
                                 const std::vector<Variable>& parameters) const {
  std::vector<Variable> operands = inputs;
  if (case_.heads) {
    operands =
        tape.block({"heads", &block, case_.recompute}, inputs,
                   [&](Tape& on, const std::vector<Variable>& x) { return case_.heads(on, x, parameters); });
  }
  const BlockSpec spec{"case", case_.heads ? nullptr : &block, case_.recompute, case_.units};
  return tape.block(spec, operands,
                    [&](Tape& on, const std::vector<Variable>& x) { return case_.run(on, x, parameters); });
}

Variable GradientRun::forward(Tape& tape, const std::vector<Variable>& inputs) {
  tape.set_training(true);
  std::vector<Variable> operands = inputs;
  for (int i = 0; i < case_.times; ++i) {
    operands[0] = run_blocks(tape, block_, operands, parameters_);
  }
  return operands[0];
}

std::vector<Variable> GradientRun::inputs_of(const Tensors& values, bool want_gradients) const {
  std::vector<Variable> inputs;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const Array piece = cut_piece(rank_, inputs_[i], DType::kFloat64, values.at(concat("input.", i)));
    inputs.emplace_back(ShardedTensor{piece, inputs_[i]}, want_gradients);
  }
  return inputs;
}

double GradientRun::weighted_sum(const Tensors& values) {
  load(rank_.context, block_, values);
  Tape tape(rank_, plans_, Tape::Mode::kForward, DType::kFloat64, kRandom);
  const Array y = forward(tape, inputs_of(values, false)).value().piece;
  const Array weight = cut_piece(rank_, output_, DType::kFloat64, values.at("weight"));
  const std::vector<double> values_here = values_of(y), weights = values_of(weight);
  return std::inner_product(values_here.begin(), values_here.end(), weights.begin(), 0.0);
}

Tensors GradientRun::gradients(const Tensors& values) {
  load(rank_.context, block_, values);
  for (auto& group : block_.groups()) group->zero_gradients();
  Tape tape(rank_, plans_, Tape::Mode::kRecord, DType::kFloat64, kRandom);
  const std::vector<Variable> inputs = inputs_of(values, true);
  const Variable y = forward(tape, inputs);
  y.slot()->add(rank_, {cut_piece(rank_, output_, DType::kFloat64, values.at("weight")), output_});
  tape.backward();

  Tensors result;
  const auto paste = [&](const std::string& name, const ShardedTensor& x) {
    std::vector<double>& whole = result[name];
    whole.assign(static_cast<std::size_t>(x.layout.global.count()), NAN);
    paste_piece(rank_, x.layout, x.piece, whole);
  };
  paste("output", y.value());
  for (std::size_t i = 0; i < inputs.size(); ++i) paste(concat("input.", i), inputs[i].slot()->take());
  for (auto& group : block_.groups()) {
    group->synchronise_gradients();
    collect(group->owned_segments(), group->owned_gradient(), result);
  }
  return result;
}

namespace {

/// One rank per member, along tensor or the first domain axis of a mesh that fits the case's output.
void on_mesh(int ranks, bool tensor, int output_rank, const std::function<void(const Rank&)>& body) {
  testing::run_test_ranks(ranks, [&](Communicator& world) {
    std::vector<int> domain(static_cast<std::size_t>(output_rank - 2), 1);
    if (!tensor) domain.at(0) = ranks;
    Mesh mesh(world, 1, domain, tensor ? ranks : 1);
    body(Rank{world.context(), mesh});
  });
}

/// Rank of the output, found by trying: a mesh must have as many domain axes as the output has spatial dims.
int output_rank(const GradientCase& what) {
  testing::run_test_ranks(1, [](Communicator&) {});  // where there is no device, that is what is wrong
  for (int rank = 2; rank <= kMaxAxes; ++rank) {
    try {
      on_mesh(1, true, rank, [&](const Rank& on) { GradientRun(on, what); });
      return rank;
    } catch (const Error&) {
    }
  }
  fail("no mesh fits the case " + what.name);
}

/// Central differences of Σ weight · output by every element.
void check_differences(GradientRun& run, Tensors values, const Tensors& gradients) {
  for (auto& [name, elements] : values) {
    if (name == "weight") continue;
    std::vector<double> slopes;
    for (double& element : elements) {
      const double middle = element, step = 1e-5 * std::max(1.0, std::abs(element));
      element = middle + step;
      const double above = run.weighted_sum(values);
      element = middle - step;
      const double below = run.weighted_sum(values);
      element = middle;
      slopes.push_back((above - below) / (2 * step));
    }
    EXPECT_LE(relative_difference(gradients.at(name), slopes), 1e-7) << "gradient by " << name;
  }
}

}  // namespace

Tensors gradients_on(int ranks, bool tensor, const GradientCase& what, std::optional<int> rule) {
  Tensors all;
  std::mutex mutex;
  on_mesh(ranks, tensor, output_rank(what), [&](const Rank& rank) {
    std::optional<Forced> forced;
    if (rule) forced = Forced{tensor ? rank.mesh.tensor() : rank.mesh.domain(0), *rule};
    GradientRun run(rank, what, forced);
    const Tensors mine = run.gradients(what.values(run.output()));
    const std::lock_guard lock(mutex);
    merge(all, mine);
  });
  return all;
}

Tensors gradients_on_mesh(const std::vector<int>& domain, int tensor, const GradientCase& what) {
  Tensors all;
  std::mutex mutex;
  int ranks = tensor;
  for (const int size : domain) ranks *= size;
  testing::run_test_ranks(ranks, [&](Communicator& world) {
    Mesh mesh(world, 1, domain, tensor);
    GradientRun run(Rank{world.context(), mesh}, what);
    const Tensors mine = run.gradients(what.values(run.output()));
    const std::lock_guard lock(mutex);
    merge(all, mine);
  });
  return all;
}

void check_gradients(const GradientCase& what, bool every_row) {
  SCOPED_TRACE(what.name);
  Tensors one;
  std::vector<ShardingRule> rules;
  const int rank = output_rank(what);
  on_mesh(1, true, rank, [&](const Rank& on) {
    GradientRun run(on, what);
    const Tensors values = what.values(run.output());
    one = run.gradients(values);
    rules = run.rules();
    check_differences(run, values, one);
  });
  const auto compare = [&](int ranks, bool tensor, std::optional<int> rule, const std::string& label) {
    const Tensors many = gradients_on(ranks, tensor, what, rule);
    ASSERT_EQ(one.size(), many.size());
    for (const auto& [name, values] : one) {
      EXPECT_LE(relative_difference(many.at(name), values), 1e-12)
          << name << " on " << ranks << (tensor ? " tensor" : " domain") << " ranks, " << label;
    }
  };
  for (const int ranks : {2, 3}) {
    for (const bool tensor : {false, true}) {
      if (!tensor && rank == 2) continue;
      compare(ranks, tensor, {}, "planned");
      if (!every_row) continue;
      compare(ranks, tensor, -1, "replicated");
      for (std::size_t r = 0; r < rules.size(); ++r) {
        const std::vector<Placement>& inputs = rules[r].inputs;
        const bool cuts = std::none_of(inputs.begin(), inputs.end(), [](auto& p) { return p.is_partial(); });
        if (cuts) compare(ranks, tensor, static_cast<int>(r), "rule " + rules[r].label);
      }
    }
  }
}

}  // namespace jigsaw::testing
