#include "autograd/tape.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "kernels/pointwise.h"
#include "parallel/redistribute.h"

namespace jigsaw {

const PlanBook::Entry& PlanBook::at(const std::string& path) const {
  const auto entry = entries_.find(path);
  if (entry == entries_.end()) fail(concat("block ", path, " was not planned"));
  return entry->second;
}

namespace {

std::vector<bool> read_by_backward(const Trace& trace) {
  std::vector<bool> read(trace.values.size(), false), result(trace.nodes.size());
  for (std::size_t n = trace.nodes.size(); n-- > 0;) {
    const Trace::Node& node = trace.nodes[n];
    for (const int output : node.outputs) result[n] = result[n] || read[static_cast<std::size_t>(output)];
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (result[n] || node.signature.saved[i] || node.signature.keeps_findings)
        read[static_cast<std::size_t>(node.inputs[i])] = true;
    }
  }
  return result;
}

}  // namespace

void PlanBook::add(const std::string& path, Entry entry) {
  entry.read_by_backward = read_by_backward(entry.trace);
  entries_[path] = std::move(entry);
}

const Plan& PlanBook::plan(const std::string& path, Trace trace, const MeshShape& mesh) {
  const auto alike =
      std::find_if(entries_.begin(), entries_.end(), [&](const auto& e) { return e.second.trace == trace; });
  Plan plan = alike != entries_.end() ? alike->second.plan : make_plan(trace, mesh, model_);
  add(path, {std::move(trace), std::move(plan)});
  return at(path).plan;
}

std::string PlanBook::to_string(const MeshShape& mesh) const {
  std::string text;
  for (const auto& [path, entry] : entries_)
    text += concat(path, "\n", entry.plan.to_string(entry.trace, mesh));
  return text;
}

Variable Tape::block(const BlockSpec& spec, const std::vector<Variable>& inputs, const Function& run) {
  require(block_ == nullptr, "blocks do not nest");
  if (mode_ == Mode::kTrace) return trace_block(spec, inputs, run);
  const bool recording = mode_ == Mode::kRecord;
  if (recording && spec.recompute) return run_recomputed(spec, inputs, run);
  ParameterBlock* parameters = spec.parameters;
  if (parameters == nullptr) return run_block(spec, inputs, run);
  ParameterBlock* before = nullptr;
  if (recording) {
    if (!recomputes_) before = flow_->enter(parameters);
    record([parameters, flow = flow_] {
      flow->start_scattering(parameters);
      parameters->release();
    });
  }
  parameters->acquire();
  flow_->gather_later(spec.next, false);
  Variable result = run_block(spec, inputs, run);
  flow_->start_all_waiting();
  parameters->release();
  if (recording) {
    record([parameters, before, flow = flow_] {
      if (flow->scattering == parameters) flow->finish_scattering();
      parameters->acquire();
      parameters->begin_gradients();
      flow->gather_later(before, true);
    });
  }
  return result;
}

ParameterBlock* Tape::Flow::enter(ParameterBlock* block) {
  ++uses[block];
  return std::exchange(last, block);
}

void Tape::Flow::finish_scattering() {
  if (scattering == nullptr) return;
  ParameterBlock* block = std::exchange(scattering, nullptr);
  block->finish_gradients();
  if (--uses[block] == 0 && complete) complete(*block);
}

/// Backward leaves a block: what it gathered for gradients is under way, and that of the block before is
/// there.
void Tape::Flow::start_scattering(ParameterBlock* block) {
  start_all_waiting();
  finish_scattering();
  scattering = block;
}

void Tape::Flow::gather_later(ParameterBlock* block, bool backward) {
  if (block == nullptr) return;
  for (const auto& group : block->groups()) {
    if (group->travels()) to_gather.insert(backward ? to_gather.begin() : to_gather.end(), group.get());
  }
}

/// The network is left free for what the next operations need.
void Tape::Flow::start_waiting() {
  for (; !to_scatter.empty(); to_scatter.pop_front()) to_scatter.front()->start_finish_gradients();
  if (to_gather.empty()) return;
  to_gather.front()->start_acquire();
  to_gather.pop_front();
}

void Tape::Flow::start_all_waiting() {
  do start_waiting();
  while (!to_gather.empty());
}

Variable Tape::run_block(const BlockSpec& spec, const std::vector<Variable>& inputs, const Function& run) {
  Block block;
  block.entry = &plans_.at(spec.path);
  block_ = &block;
  Variable result;
  try {
    result = run(*this, inputs);
  } catch (...) {
    block_ = nullptr;
    throw;
  }
  block_ = nullptr;
  // A recipe needs the block's parameters, which are gone outside of it.
  result.set_recipe(nullptr);
  return result;
}

Variable Tape::run_recomputed(const BlockSpec& spec, const std::vector<Variable>& inputs,
                              const Function& run) {
  BlockSpec whole = spec;
  whole.recompute = false;
  Tape forward(rank_, plans_, Mode::kForward, dtype_, random_);
  forward.set_training(training_);
  Variable result(forward.block(whole, inputs, run).value(), true);
  whole.next = spec.parameters == nullptr ? nullptr : flow_->enter(spec.parameters);
  record([this, whole, inputs, run, random = random_, slot = result.slot()] {
    if (!slot->gradient.defined()) return;
    // Held over the block's second forward and its backward.
    if (whole.parameters != nullptr) whole.parameters->acquire();
    Tape again(rank_, plans_, Mode::kRecord, dtype_, random);
    again.set_training(training_);
    again.recomputes_ = true;
    again.flow_ = flow_;
    const Variable output = again.block(whole, inputs, run);
    output.slot()->add(rank_, slot->take());
    again.backward();
    if (whole.parameters != nullptr) whole.parameters->release();
  });
  return result;
}

Variable Tape::trace_into(Block& block, const std::vector<Variable>& inputs, const Function& run) {
  std::vector<Trace::Value>& values = block.trace->values;
  std::vector<Variable> traced;
  for (const Variable& input : inputs) {
    values.push_back({input.shape(), Trace::Role::kPinned, input.layout().placements, "input"});
    traced.push_back(Variable::traced(input.layout(), static_cast<int>(values.size()) - 1));
  }
  block_ = &block;
  Variable result = run(*this, traced);
  block_ = nullptr;
  return result;
}

Trace Tape::trace_of(const std::vector<Variable>& inputs, const Function& run) {
  Trace trace;
  Block block;
  block.trace = &trace;
  trace_into(block, inputs, run);
  return trace;
}

Variable Tape::trace_block(const BlockSpec& spec, const std::vector<Variable>& inputs, const Function& run) {
  Trace trace;
  Block block;
  block.trace = &trace;
  const Variable result = trace_into(block, inputs, run);
  const Layout layout = rank_.mesh.field_layout(result.shape(), spec.units);
  Trace::Value& output = trace.values[static_cast<std::size_t>(result.trace_number())];
  output.role = Trace::Role::kPinned;
  output.placements = layout.placements;
  if (!plans_.has(spec.path)) {
    const Plan& plan = plans_.plan(spec.path, std::move(trace), rank_.mesh.shape());
    for (const auto& [parameter, number] : block.parameters) {
      ParameterBlock::set_compute(*parameter, plan.parameters[static_cast<std::size_t>(number)]);
    }
  }
  return Variable::traced(layout, -1);
}

Variable Tape::trace(const Signature& signature, const std::vector<Variable>& inputs) {
  require(block_ != nullptr, "operations run inside blocks");
  Trace& trace = *block_->trace;
  Trace::Node node{signature, {}, {}};
  for (const Variable& input : inputs) {
    int number = input.trace_number();
    if (Parameter* parameter = input.parameter(); parameter != nullptr) {
      const auto [it, fresh] =
          block_->parameters.try_emplace(parameter, static_cast<int>(trace.values.size()));
      if (fresh) trace.values.push_back({parameter->shape(), Trace::Role::kParameter, {}, parameter->name()});
      number = it->second;
    } else if (number < 0) {
      number = static_cast<int>(trace.values.size());
      trace.values.push_back({input.shape(), Trace::Role::kPinned, input.layout().placements, "constant"});
    }
    node.inputs.push_back(number);
  }
  node.outputs = {static_cast<int>(trace.values.size())};
  trace.values.push_back({signature.outputs[0], Trace::Role::kActivation, {}, signature.name});
  trace.nodes.push_back(node);
  return Variable::traced({signature.outputs[0], {}}, node.outputs[0]);
}

const Decision& Tape::decide(const Signature& signature) {
  require(block_ != nullptr, "operations run inside blocks");
  const Plan& plan = block_->entry->plan;
  if (block_->next >= plan.decisions.size()) fail(concat("operation ", signature.name, " was not planned"));
  return plan.decisions[block_->next++];
}

ShardedTensor Tape::bring(const ShardedTensor& value, const Placements& wanted) const {
  return redistribute(rank_, value, {value.layout.global, wanted});
}

ShardedTensor Tape::bring(const Variable& operand, const Placements& wanted) const {
  return bring(this->operand(operand), wanted);
}

ShardedTensor Tape::operand(const Variable& operand) const {
  ShardedTensor value = operand.value();
  value.piece = cast(rank_.context, value.piece, dtype_);
  return value;
}

Variable Tape::result(const Signature& signature, const Decision& decision, bool wants_gradient,
                      const std::function<Array()>& kernel) const {
  return result(signature, decision, wants_gradient, [&] {
    return ShardedTensor{kernel(), {signature.outputs[0], decision.row_outputs[0]}};
  });
}

Variable Tape::result(const Signature& signature, const Decision& decision, bool wants_gradient,
                      const std::function<ShardedTensor()>& kernel) const {
  if (recomputes_ && !block_->entry->read_by_backward[block_->next - 1])
    return Variable::unread({signature.outputs[0], decision.outputs[0]}, dtype_);
  return keep(kernel(), decision, wants_gradient);
}

Variable Tape::keep(Array piece, const Shape& global, const Decision& decision, bool wants_gradient) const {
  return keep(ShardedTensor{std::move(piece), {global, decision.row_outputs[0]}}, decision, wants_gradient);
}

Variable Tape::keep(const ShardedTensor& value, const Decision& decision, bool wants_gradient) const {
  ShardedTensor result = bring(value, decision.outputs[0]);
  result.piece = cast(rank_.context, result.piece, dtype_);
  return Variable(std::move(result), wants_gradient);
}

bool Tape::records(const std::vector<Variable>& inputs) {
  const auto wants = [](const Variable& v) { return v.wants_gradient(); };
  if (mode_ != Mode::kRecord || std::none_of(inputs.begin(), inputs.end(), wants)) return false;
  for (const Variable& input : inputs) {
    if (input.parameter() == nullptr) continue;
    ParameterGroup* group = input.parameter()->group();
    if (block_->used.insert(group).second)
      record([group, flow = flow_] { flow->to_scatter.push_back(group); });
  }
  return true;
}

Placements Tape::gradient_placements(const Decision& decision, std::size_t input) const {
  Placements result;
  for (int axis = 0; axis < rank_.mesh.shape().axes; ++axis) {
    result[axis] = gradient_placement(decision.inputs[input][axis], contains(decision.cut, axis));
  }
  return result;
}

DType Tape::gradient_type(const Placements& placements) const {
  return placements.any_partial() && dtype_ == DType::kBfloat16 ? DType::kFloat32 : dtype_;
}

namespace {

/// How a parameter's gradient is added up: cut as the parameter is. Only where operations of one block use
/// the parameter in several layouts does a gradient come otherwise.
Placements held_gradient(const Placements& compute, const Placements& gradient) {
  Placements held = compute;
  for (std::size_t axis = 0; axis < kMaxAxes; ++axis) {
    if (!compute.of[axis].is_shard() && !gradient.of[axis].is_shard()) held.of[axis] = gradient.of[axis];
  }
  return held;
}

}  // namespace

void GradientTarget::give(const Rank& rank, const Placements& placements,
                          const std::function<Array()>& make) const {
  give(rank, placements, make,
       [&](Array& into) { accumulate(rank.context, into, make().reshaped(into.shape())); });
}

void GradientTarget::give(const Rank& rank, const Placements& placements, const std::function<Array()>& make,
                          const std::function<void(Array&)>& add) const {
  if (parameter_ != nullptr) {
    const Placements held = held_gradient(parameter_->compute_layout().placements, placements);
    if (!(held == placements)) {
      const ShardedTensor moved = redistribute(rank, {make(), {shape_, placements}}, {shape_, held});
      return give(rank, held, [&] { return moved.piece; });
    }
    if (!Parameter::contributes(rank, placements)) return;
    Array into = parameter_->gradient();
    add(into);
  } else if (slot_ != nullptr) {
    const Layout layout{shape_, placements};
    slot_->add(rank, {make().reshaped(rank.box(layout).extent), layout});
  }
}

void Tape::backward() {
  while (!steps_.empty()) {
    const std::function<void()> step = std::move(steps_.back());
    steps_.pop_back();
    step();
  }
  if (!recomputes_) flow_->finish_scattering();
}

}  // namespace jigsaw
