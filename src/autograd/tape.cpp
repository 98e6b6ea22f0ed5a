#include "autograd/tape.h"

#include <algorithm>
#include <utility>

#include "autograd/operation_span.h"
#include "autograd/output_watch.h"
#include "base/error.h"
#include "base/heartbeat.h"
#include "base/text.h"
#include "kernels/pointwise.h"
#include "parallel/redistribute.h"

namespace jigsaw::inline autograd {

const PlanBook::Entry& PlanBook::at(const std::string& path) const {
  const auto entry = entries_.find(path);
  if (entry == entries_.end()) fail(concat("block ", path, " was not planned"));
  return entry->second;
}

namespace {

std::vector<bool> runs_again(const Trace& trace, const Plan& plan) {
  std::vector<bool> read(trace.values.size(), false), kept(trace.values.size(), false),
      runs(trace.nodes.size());
  for (std::size_t n = trace.nodes.size(); n-- > 0;) {
    const Trace::Node& node = trace.nodes[n];
    bool rematerialised = false;
    for (const int output : node.outputs) {
      const auto o = static_cast<std::size_t>(output);
      runs[n] = runs[n] || read[o] || (kept[o] && !plan.decisions[n].rematerialised);
      rematerialised = rematerialised || kept[o];
    }
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const auto input = static_cast<std::size_t>(node.inputs[i]);
      if (runs[n] || node.signature.keeps_findings) read[input] = true;
      if (rematerialised || node.signature.saved[i]) kept[input] = true;
    }
  }
  return runs;
}

}  // namespace

void PlanBook::add(const std::string& path, Entry entry) {
  entry.runs_again = runs_again(entry.trace, entry.plan);
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

namespace {

Tape::SeveralOutputs one_output(const Tape::Function& run) {
  return [run](Tape& tape, const std::vector<Variable>& inputs) {
    return std::vector<Variable>{run(tape, inputs)};
  };
}

}  // namespace

Variable Tape::block(const BlockSpec& spec, const std::vector<Variable>& inputs, const Function& run) {
  return block(spec, inputs, one_output(run))[0];
}

std::vector<Variable> Tape::block(const BlockSpec& spec, const std::vector<Variable>& inputs,
                                  const SeveralOutputs& run) {
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
  std::vector<Variable> results = run_block(spec, inputs, run);
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
  return results;
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

/// Called when backward leaves a block: starts all transfers that wait, the scattering of its gradients among
/// them, and finishes the scattering of the block before.
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

std::vector<Variable> Tape::run_in(Block& block, const std::vector<Variable>& inputs,
                                   const SeveralOutputs& run) {
  block_ = &block;
  try {
    std::vector<Variable> results = run(*this, inputs);
    block_ = nullptr;
    return results;
  } catch (...) {
    block_ = nullptr;
    throw;
  }
}

std::vector<Variable> Tape::run_block(const BlockSpec& spec, const std::vector<Variable>& inputs,
                                      const SeveralOutputs& run) {
  Block block;
  block.entry = &plans_.at(spec.path);
  context().state<OutputWatch>().block = spec.path;
  std::vector<Variable> results = run_in(block, inputs, run);
  // A recipe needs the block's parameters, which are gone outside of it.
  for (Variable& result : results) result.set_recipe(nullptr);
  return results;
}

std::vector<Variable> Tape::run_recomputed(const BlockSpec& spec, const std::vector<Variable>& inputs,
                                           const SeveralOutputs& run) {
  BlockSpec whole = spec;
  whole.recompute = false;
  Tape forward(rank_, plans_, Mode::kForward, dtype_, random_);
  forward.set_training(training_);
  std::vector<Variable> results;
  std::vector<std::shared_ptr<GradientSlot>> slots;
  for (const Variable& result : forward.block(whole, inputs, run)) {
    results.emplace_back(result.value(), true);
    slots.push_back(results.back().slot());
  }
  whole.next = spec.parameters == nullptr ? nullptr : flow_->enter(spec.parameters);
  record([this, whole, inputs, run, random = random_, slots] {
    const auto arrived = [](const auto& slot) { return slot->gradient.defined(); };
    if (std::none_of(slots.begin(), slots.end(), arrived)) return;
    // Held over the block's second forward and its backward.
    if (whole.parameters != nullptr) whole.parameters->acquire();
    Tape again(rank_, plans_, Mode::kRecord, dtype_, random);
    again.set_training(training_);
    again.recomputes_ = true;
    again.flow_ = flow_;
    const std::vector<Variable> outputs = again.block(whole, inputs, run);
    for (std::size_t o = 0; o < slots.size(); ++o) {
      if (arrived(slots[o])) outputs[o].slot()->add(rank_, slots[o]->take());
    }
    again.backward();
    if (whole.parameters != nullptr) whole.parameters->release();
  });
  return results;
}

std::vector<Variable> Tape::trace_into(Block& block, const std::vector<Variable>& inputs,
                                       const SeveralOutputs& run) {
  std::vector<Trace::Value>& values = block.trace->values;
  std::vector<Variable> traced;
  for (const Variable& input : inputs) {
    values.push_back({input.shape(), Trace::Role::kPinned, input.layout().placements, "input"});
    traced.push_back(Variable::traced(input.layout(), static_cast<int>(values.size()) - 1));
  }
  return run_in(block, traced, run);
}

Trace Tape::trace_of(const std::vector<Variable>& inputs, const Function& run) {
  Trace trace;
  Block block;
  block.trace = &trace;
  trace_into(block, inputs, one_output(run));
  return trace;
}

std::vector<Variable> Tape::trace_block(const BlockSpec& spec, const std::vector<Variable>& inputs,
                                        const SeveralOutputs& run) {
  Trace trace;
  Block block;
  block.trace = &trace;
  std::vector<Variable> outputs;
  for (const Variable& result : trace_into(block, inputs, run)) {
    const Layout layout = rank_.mesh.field_layout(result.shape(), spec.units);
    Trace::Value& output = trace.values[static_cast<std::size_t>(result.trace_number())];
    output.role = Trace::Role::kPinned;
    output.placements = layout.placements;
    outputs.push_back(Variable::traced(layout, -1));
  }
  if (!plans_.has(spec.path)) {
    const Plan& plan = plans_.plan(spec.path, std::move(trace), rank_.mesh.shape());
    for (const auto& [parameter, number] : block.parameters) {
      ParameterBlock::set_compute(*parameter, plan.parameters[static_cast<std::size_t>(number)]);
    }
  }
  return outputs;
}

std::vector<Variable> Tape::trace(const Signature& signature, const std::vector<Variable>& inputs) {
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
  std::vector<Variable> outputs;
  for (const Shape& shape : signature.outputs) {
    node.outputs.push_back(static_cast<int>(trace.values.size()));
    trace.values.push_back({shape, Trace::Role::kActivation, {}, signature.name});
    outputs.push_back(Variable::traced({shape, {}}, node.outputs.back()));
  }
  trace.nodes.push_back(node);
  return outputs;
}

namespace {

Signature signature_of(const Operation& operation, const std::vector<Variable>& inputs) {
  std::vector<Shape> shapes;
  for (const Variable& input : inputs) shapes.push_back(input.shape());
  Signature signature = operation.signature(shapes);
  signature.operation = operation.name();
  signature.inputs = std::move(shapes);
  return signature;
}

bool takes(const Signature& signature, const std::vector<Variable>& inputs) {
  return std::equal(signature.inputs.begin(), signature.inputs.end(), inputs.begin(), inputs.end(),
                    [](const Shape& shape, const Variable& input) { return shape == input.shape(); });
}

bool any_wants_gradient(const std::vector<Variable>& inputs) {
  return std::ranges::any_of(inputs, &Variable::wants_gradient);
}

}  // namespace

Tape::Planned Tape::decide(const Operation& operation, const std::vector<Variable>& inputs) {
  const PlanBook::Entry& entry = *block_->entry;
  const std::size_t number = block_->next++;
  if (number >= entry.plan.decisions.size()) fail(concat("operation ", operation.name(), " was not planned"));
  const Signature& planned = entry.trace.nodes[number].signature;
  // Another number of samples runs on the same plan.
  auto signature = takes(planned, inputs)
                       ? std::shared_ptr<const Signature>(std::shared_ptr<void>(), &planned)
                       : std::make_shared<const Signature>(signature_of(operation, inputs));
  // What no gradient goes to has no backward that could rematerialise it.
  const bool runs = !recomputes_ || entry.runs_again[number] || !any_wants_gradient(inputs);
  return {entry.plan.decisions[number], std::move(signature), runs};
}

std::vector<Variable> Tape::run(std::shared_ptr<const Operation> operation,
                                const std::vector<Variable>& inputs) {
  require(block_ != nullptr, "operations run inside blocks");
  if (tracing()) return trace(signature_of(*operation, inputs), inputs);
  const Planned planned = decide(*operation, inputs);
  const Signature& signature = *planned.signature;
  const OperationSpan span(context(), signature.name);
  const auto frame = std::make_shared<Frame>(*this, planned.decision, planned.signature, planned.read);
  std::vector<Array> pieces(signature.outputs.size());
  if (planned.read || signature.keeps_findings) {
    Operands operands(*frame, inputs);
    pieces = operation->forward(*frame, operands);
    if (!planned.read) pieces.assign(pieces.size(), Array());  // findings alone; nothing travels
  }
  const bool recorded = records(inputs);
  std::vector<Variable> outputs = keep(*frame, std::move(pieces), recorded);
  if (recorded) record_call(operation, frame, inputs, outputs);
  beat();
  show(signature.name, outputs, recorded);
  return outputs;
}

std::vector<Variable> Tape::keep(const Frame& frame, std::vector<Array> pieces, bool recorded) {
  std::vector<Variable> outputs;
  for (std::size_t o = 0; o < pieces.size(); ++o) {
    const Layout home = frame.home(o);
    if (!pieces[o].defined()) {
      outputs.push_back(Variable::unread(home, dtype_));
      continue;
    }
    const bool there = contains(frame.home_, static_cast<int>(o));
    ShardedTensor value{std::move(pieces[o]), there ? home : frame.output(o)};
    value = redistribute(rank_, value, home);
    value.piece = cast(rank_.context, value.piece, dtype_);
    outputs.emplace_back(std::move(value), recorded);
  }
  return outputs;
}

void Tape::show(const std::string& name, const std::vector<Variable>& outputs, bool recorded) {
  OutputWatch& watch = context().state<OutputWatch>();
  if (!watch.saw) return;
  using Phase = OutputWatch::Phase;
  OutputWatch::Source source{watch.block, block_->next - 1, name, Phase::kForward};
  for (const Variable& output : outputs) {
    if (output.value().defined()) watch.saw(source, output.value());
  }
  if (!recorded) return;
  source.phase = Phase::kGradient;
  record([source, outputs, &watch] {
    for (const Variable& output : outputs) {
      if (output.slot()->gradient.defined()) watch.saw(source, output.slot()->gradient);
    }
  });
}

void Tape::record_call(const std::shared_ptr<const Operation>& operation, const std::shared_ptr<Frame>& frame,
                       const std::vector<Variable>& inputs, std::vector<Variable>& outputs) {
  const Signature& signature = frame->signature();
  if (frame->decision_->rematerialised) {
    const auto all =
        std::make_shared<Operands>(*frame, inputs, std::vector<bool>(inputs.size(), true), false);
    for (std::size_t o = 0; o < outputs.size(); ++o) {
      outputs[o].set_recipe([operation, frame, all, o] {
        const ShardedTensor again{operation->rematerialise(*frame, *all)[o], frame->output(o)};
        return redistribute(frame->rank(), again, frame->home(o));
      });
    }
  }
  std::vector<bool> saved = signature.saved;
  if (signature.bilinear) {
    const auto wants = [&](std::size_t i) {
      return signature.saved[i] && inputs[i].wants_gradient() ? 1 : 0;
    };
    int factors = 0;
    for (std::size_t i = 0; i < inputs.size(); ++i) factors += wants(i);
    for (std::size_t i = 0; i < inputs.size(); ++i) saved[i] = saved[i] && factors > wants(i);
  }
  record([operation, frame, operands = Operands(*frame, inputs, saved, true),
          gradients = Gradients(frame, inputs, outputs),
          block = OperationSpan::block_of(context())]() mutable {
    const OperationSpan span(frame->context(), frame->signature().name, block, kBackwardSuffix);
    if (gradients.any_arrived()) operation->backward(*frame, operands, gradients);
    beat();
  });
}

bool Tape::records(const std::vector<Variable>& inputs) {
  if (mode_ != Mode::kRecord || !any_wants_gradient(inputs)) return false;
  for (const Variable& input : inputs) {
    if (input.parameter() == nullptr) continue;
    ParameterGroup* group = input.parameter()->group();
    if (block_->used.insert(group).second)
      record([group, flow = flow_] { flow->to_scatter.push_back(group); });
  }
  return true;
}

void Tape::backward() {
  while (!steps_.empty()) {
    const std::function<void()> step = std::move(steps_.back());
    steps_.pop_back();
    step();
  }
  if (!recomputes_) flow_->finish_scattering();
}

}  // namespace jigsaw::inline autograd
