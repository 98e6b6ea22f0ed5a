#pragma once
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "autograd/operation.h"

namespace jigsaw::inline autograd {

/// The plans of a model's blocks, by path; made once, replayed by every step.
class PlanBook {
 public:
  struct Entry {
    Trace trace;
    Plan plan;
    /// For each operation, whether its outputs are formed when the block is recomputed: when one is read by
    /// an operation that runs, or kept for backward, unless backward rematerialises it. One that keeps
    /// findings runs for these all the same.
    std::vector<bool> runs_again = {};
  };
  explicit PlanBook(CostModel model = {}) : model_(model) {}

  const CostModel& model() const { return model_; }
  /// Measured rates, see CostModel::measured; equal on all ranks.
  void set_machine(std::shared_ptr<const Machine> machine) { model_.measured = std::move(machine); }
  bool has(const std::string& path) const { return entries_.contains(path); }
  const Entry& at(const std::string& path) const;
  void add(const std::string& path, Entry entry);
  /// Plans a block and adds it; a block like one that is there takes its plan.
  const Plan& plan(const std::string& path, Trace trace, const MeshShape& mesh);
  std::string to_string(const MeshShape& mesh) const;

 private:
  CostModel model_;
  std::map<std::string, Entry> entries_;
};

/// A stretch of the model that is planned, gathered and recomputed as one.
struct BlockSpec {
  std::string path;                      ///< names its plan; a path that comes again replays it
  ParameterBlock* parameters = nullptr;  ///< may be null
  bool recompute = false;                ///< keep only the inputs, and run the block again in backward
  std::vector<std::int64_t> units = {};  ///< units in which the outputs' space is cut; empty: 1
  ParameterBlock* next = nullptr;        ///< of the next block: gathered while this one runs; may be null
};

/// Runs operations for one rank and records what backward needs.
///
/// All operations happen inside blocks. In mode kTrace a block is recorded on shapes alone and planned; in
/// the other modes its operations replay that plan. kRecord also records, for every operation, how its
/// gradient is formed.
class Tape {
 public:
  enum class Mode : std::uint8_t { kTrace, kForward, kRecord };
  using Function = std::function<Variable(Tape&, const std::vector<Variable>&)>;
  using SeveralOutputs = std::function<std::vector<Variable>(Tape&, const std::vector<Variable>&)>;

  Tape(const Rank& rank, PlanBook& plans, Mode mode, DType dtype = DType::kFloat32, RandomState random = {})
      : rank_(rank), plans_(plans), mode_(mode), dtype_(dtype), random_(random) {}

  const Rank& rank() const { return rank_; }
  Context& context() const { return rank_.context; }
  bool tracing() const { return mode_ == Mode::kTrace; }
  /// Dropout is active when gradients are recorded, or recomputed.
  bool training() const { return training_; }
  void set_training(bool training) { training_ = training; }
  DType dtype() const { return dtype_; }
  RandomState& random() { return random_; }

  /// Runs a block: its parameters are gathered before it and released after it, in forward and backward, and
  /// its outputs leave in the mesh's field layout. Outputs that nobody uses get no gradient.
  std::vector<Variable> block(const BlockSpec& spec, const std::vector<Variable>& inputs,
                              const SeveralOutputs& run);
  /// The same of one output.
  Variable block(const BlockSpec& spec, const std::vector<Variable>& inputs, const Function& run);

  /// The operations of `run`, recorded on shapes alone.
  Trace trace_of(const std::vector<Variable>& inputs, const Function& run);

  /// Runs an operation: records it in a trace, or redistributes its operands as the plan decided, runs
  /// it on the pieces, redistributes its outputs to where they are kept, and records its backward.
  std::vector<Variable> run(std::shared_ptr<const Operation> operation, const std::vector<Variable>& inputs);

  const CostModel& cost_model() const { return plans_.model(); }
  /// See Frame.
  void long_work_follows() const { flow_->start_waiting(); }

  /// Calls `complete` as soon as all gradients of a block's parameters from this tape are stored.
  void on_gradients(std::function<void(ParameterBlock&)> complete) { flow_->complete = std::move(complete); }
  /// Runs backward from the gradients already added to slots. Parameters are gathered one block ahead, and
  /// gradients scattered as soon as they are whole, while others are worked on.
  void backward();

 private:
  /// The parameter blocks that backward will reach, and the queues of parameters to gather and gradients to
  /// scatter; shared with the tapes of recomputed blocks.
  struct Flow {
    std::map<ParameterBlock*, int> uses;  ///< gradients still to come
    ParameterBlock* last = nullptr;       ///< recorded: backward reaches it first
    ParameterBlock* scattering = nullptr;
    std::deque<ParameterGroup*> to_gather, to_scatter;
    std::function<void(ParameterBlock&)> complete;

    /// The block that backward reaches after `block`.
    ParameterBlock* enter(ParameterBlock* block);
    void finish_scattering();
    void start_scattering(ParameterBlock* block);
    /// The groups of the block that comes next, in the order of their parameters, or for backward against it.
    void gather_later(ParameterBlock* block, bool backward);
    void start_waiting();
    void start_all_waiting();
  };

  /// How the next operation runs.
  struct Planned {
    const Decision& decision;
    std::shared_ptr<const Signature> signature;
    /// Whether its outputs may be read as forward gives them: by an operation that runs, or by backward, if
    /// it does not rematerialise them.
    bool read = true;
  };
  Planned decide(const Operation& operation, const std::vector<Variable>& inputs);
  std::vector<Variable> trace(const Signature& signature, const std::vector<Variable>& inputs);
  /// The outputs in the layouts in which the plan keeps them; `pieces` are undefined where they are not
  /// Planned::read.
  std::vector<Variable> keep(const Frame& frame, std::vector<Array> pieces, bool recorded);
  /// Shows the outputs to OutputWatch, now and again when their gradients arrive.
  void show(const std::string& name, const std::vector<Variable>& outputs, bool recorded);
  /// What backward keeps of a call: how its outputs are rematerialised, and how its gradients are formed.
  void record_call(const std::shared_ptr<const Operation>& operation, const std::shared_ptr<Frame>& frame,
                   const std::vector<Variable>& inputs, std::vector<Variable>& outputs);
  /// Whether backward needs an operation on these inputs. Called once per operation, before it is recorded,
  /// for it also records where the gradients of its parameters are complete: once backward has passed the
  /// first operation that uses them.
  bool records(const std::vector<Variable>& inputs);
  /// Adds a step of backward; steps run in reverse order and are freed as they run.
  void record(std::function<void()> backward) { steps_.push_back(std::move(backward)); }

  std::vector<Variable> trace_block(const BlockSpec& spec, const std::vector<Variable>& inputs,
                                    const SeveralOutputs& run);
  std::vector<Variable> run_block(const BlockSpec& spec, const std::vector<Variable>& inputs,
                                  const SeveralOutputs& run);
  std::vector<Variable> run_recomputed(const BlockSpec& spec, const std::vector<Variable>& inputs,
                                       const SeveralOutputs& run);

  Rank rank_;
  PlanBook& plans_;
  Mode mode_;
  DType dtype_;
  RandomState random_;
  bool training_ = false;
  bool recomputes_ = false;
  std::shared_ptr<Flow> flow_ = std::make_shared<Flow>();
  std::vector<std::function<void()>> steps_;

  struct Block {
    const PlanBook::Entry* entry = nullptr;
    std::size_t next = 0;
    Trace* trace = nullptr;
    std::map<Parameter*, int> parameters;  // traced parameters by value number
    std::set<ParameterGroup*> used;        // by operations that are recorded
  };
  /// With the block as the one at work, whatever `run` throws.
  std::vector<Variable> run_in(Block& block, const std::vector<Variable>& inputs, const SeveralOutputs& run);
  std::vector<Variable> trace_into(Block& block, const std::vector<Variable>& inputs,
                                   const SeveralOutputs& run);
  Block* block_ = nullptr;
};

/// Runs an operation that has one output.
template <typename O>
Variable apply(Tape& tape, O operation, const std::vector<Variable>& inputs) {
  return tape.run(std::make_shared<const O>(std::move(operation)), inputs)[0];
}

}  // namespace jigsaw::inline autograd
