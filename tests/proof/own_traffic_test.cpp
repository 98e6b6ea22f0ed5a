// What operations say that they send by their own algorithms is what a run sends.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "autograd/registry.h"
#include "base/text.h"
#include "comm/record/record.h"

namespace jigsaw {
namespace {

constexpr int kAxis = 1;  ///< of the mesh, along which rules run

Trace trace_of(const ProofCase::Instance& instance) {
  Context context = Context::make_meta();
  const auto world = make_record_communicator(context, 0, 1);
  Mesh mesh(*world, 1, {1}, 1);
  std::vector<Variable> inputs;
  for (const Shape& shape : instance.inputs) inputs.push_back(Variable::traced({shape, {}}, -1));
  PlanBook none;
  return Tape({context, mesh}, none, Tape::Mode::kTrace)
      .trace_of(inputs, [&](Tape& tape, const std::vector<Variable>& x) { return instance.run(tape, x)[0]; });
}

/// Operands and results stand as the rule has them, so that nothing is redistributed.
Decision decision_of(const ShardingRule& rule) {
  Decision decision;
  decision.inputs.resize(rule.inputs.size());
  for (std::size_t i = 0; i < rule.inputs.size(); ++i) decision.inputs[i][kAxis] = rule.inputs[i];
  decision.rule_outputs.resize(rule.outputs.size());
  for (std::size_t o = 0; o < rule.outputs.size(); ++o) decision.rule_outputs[o][kAxis] = rule.outputs[o];
  decision.outputs = decision.rule_outputs;
  decision.cut = axis_bit(kAxis);
  return decision;
}

/// Bytes that one of `ranks` sends in forward and backward, on arrays without data.
double sent_by(int number, int ranks, const ProofCase::Instance& instance, const Trace& trace,
               const ShardingRule& rule) {
  Context context = Context::make_meta();
  const auto world = make_record_communicator(context, number, ranks);
  Mesh mesh(*world, 1, {ranks}, 1);
  const Rank rank{context, mesh};
  const Signature& signature = trace.nodes[0].signature;
  const Decision decision = decision_of(rule);
  PlanBook plans;
  plans.add("operation", {trace, {{decision}, {}, 0}});
  Tape tape(rank, plans, Tape::Mode::kRecord);
  tape.set_training(true);
  std::vector<Variable> inputs, outputs;
  for (std::size_t i = 0; i < signature.inputs.size(); ++i) {
    const Layout layout{signature.inputs[i], decision.inputs[i]};
    const Array piece(context, rank.box(layout).extent, DType::kFloat32);
    Variable& input = inputs.emplace_back(ShardedTensor{piece, layout}, true);
    // Gradients stay as the operation gives them.
    input.slot()->layout.placements[kAxis] = gradient_placement(rule.inputs[i], true);
  }
  tape.block({"operation"}, inputs, [&](Tape& on, const std::vector<Variable>& x) {
    outputs = instance.run(on, x);
    return outputs[0];
  });
  for (const Variable& output : outputs) {
    const Layout layout = output.slot()->layout;
    output.slot()->add(rank, {Array(context, rank.box(layout).extent, DType::kFloat32), layout});
  }
  tape.backward();
  return world->traffic().total_bytes();
}

/// Whether all ranks hold pieces of one extent. Elsewhere, what stands between outputs that are cut otherwise
/// than inputs travels too.
bool cuts_evenly(const Signature& signature, const ShardingRule& rule, int ranks) {
  const auto even = [ranks](const std::vector<Placement>& placements, const std::vector<Shape>& shapes) {
    for (std::size_t i = 0; i < placements.size(); ++i) {
      const Placement& p = placements[i];
      if (p.is_shard() && shapes[i][p.dim] % (p.unit * ranks) != 0) return false;
    }
    return true;
  };
  return even(rule.inputs, signature.inputs) && even(rule.outputs, signature.outputs);
}

/// Whether exactly what is said is sent: statistics, keys and values, and halos that nothing goes on behind.
/// Other halos hold points more than once, or points of the other side of a pole, which costs leave out.
bool is_exact(const std::string& operation, const std::string& name) {
  return operation.find("norm") != std::string::npos || operation.find("attention") != std::string::npos ||
         (operation == "convolution" && name == "3 x 3, zeros");
}

/// Compares one rule of one call; whether there was anything to compare.
bool compare(const RegisteredOperation& operation, const ProofCase& one, const ProofCase::Instance& instance,
             const ShardingRule& rule, int ranks) {
  SCOPED_TRACE(concat(operation.name, " ", one.name, ", rule ", rule.label, " on ", ranks, " ranks"));
  const Trace trace = trace_of(instance);
  const Signature& signature = trace.nodes[0].signature;
  if (!cuts_evenly(signature, rule, ranks)) return false;
  double sent = 0;
  for (int number = 0; number < ranks; ++number)
    sent = std::max(sent, sent_by(number, ranks, instance, trace, rule));
  if (!rule.communicates) {
    EXPECT_EQ(sent, 0);
    return false;
  }
  const bool exact = is_exact(operation.name, one.name);
  if (!exact && !rule.moves_result) return false;
  const MeshShape mesh{3, {1, ranks, 1}};
  std::vector<Layout> inputs;
  for (std::size_t i = 0; i < rule.inputs.size(); ++i)
    inputs.push_back({signature.inputs[i], decision_of(rule).inputs[i]});
  const double said = signature.own({mesh, inputs, axis_bit(kAxis), 4}).total_bytes();
  constexpr double kRounding = 1e-9;
  EXPECT_LE(sent, (1 + kRounding) * said);
  if (exact) {
    EXPECT_GE(sent, (1 - kRounding) * said);
  }
  return true;
}

TEST(OwnTraffic, IsWhatARunSends) {
  std::set<std::string> compared;
  for (const RegisteredOperation& operation : all_operations()) {
    for (const ProofCase& one : operation.cases()) {
      for (const ProofCase::Instance& instance : one.instances) {
        const Trace trace = trace_of(instance);
        for (const ShardingRule& rule : trace.nodes[0].signature.rules) {
          for (const int ranks : {2, 3}) {
            if (compare(operation, one, instance, rule, ranks)) compared.insert(operation.name);
          }
        }
      }
    }
  }
  for (const char* name : {"attention", "cross_attention", "layer_norm", "rms_norm", "group_norm",
                           "batch_norm", "convolution", "split"})
    EXPECT_EQ(compared.count(name), 1U) << name;
}

}  // namespace
}  // namespace jigsaw
