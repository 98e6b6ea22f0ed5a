#pragma once
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "autograd/variable.h"
#include "parallel/planner.h"

namespace jigsaw {

/// The plans of a model's blocks, by path; made once, replayed by every step.
class PlanBook {
 public:
  struct Entry {
    Trace trace;
    Plan plan;
    /// For each operation, whether its backward, or that of one after it, reads the output: the others need
    /// not run when a block is recomputed.
    std::vector<bool> read_by_backward = {};
  };
  explicit PlanBook(CostModel model = {}) : model_(model) {}

  const CostModel& model() const { return model_; }
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

/// Where an operand's gradient goes; holds no value, so that backward keeps only what it must.
class GradientTarget {
 public:
  explicit GradientTarget(const Variable& operand)
      : parameter_(operand.parameter()), slot_(operand.slot()), shape_(operand.shape()) {}

  bool wanted() const { return parameter_ != nullptr || slot_ != nullptr; }
  bool is_parameter() const { return parameter_ != nullptr; }
  /// Where the gradient of a value that is no parameter is collected.
  const Layout& layout() const { return slot_->layout; }
  /// Adds what `make` gives, an array placed so; it is not called where another rank speaks for this one.
  void give(const Rank& rank, const Placements& placements, const std::function<Array()>& make) const;
  /// The same, with `add` adding to the parameter's gradient in place where there is one.
  void give(const Rank& rank, const Placements& placements, const std::function<Array()>& make,
            const std::function<void(Array&)>& add) const;

 private:
  Parameter* parameter_;
  std::shared_ptr<GradientSlot> slot_;
  Shape shape_;
};

/// Which random numbers a forward pass uses.
struct RandomState {
  std::uint64_t seed = 0;
  RandomPosition position;
};

/// A stretch of the model that is planned, gathered and recomputed as one.
struct BlockSpec {
  std::string path;                      ///< names its plan; a path that comes again replays it
  ParameterBlock* parameters = nullptr;  ///< may be null
  bool recompute = false;                ///< keep only the inputs, and run the block again in backward
  std::vector<std::int64_t> units = {};  ///< units in which the output's space is cut; empty: 1
  ParameterBlock* next = nullptr;        ///< of the block after it: gathered while this one runs; may be null
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
  /// its output leaves in the mesh's field layout.
  Variable block(const BlockSpec& spec, const std::vector<Variable>& inputs, const Function& run);

  /// The operations of `run`, recorded on shapes alone.
  Trace trace_of(const std::vector<Variable>& inputs, const Function& run);

  /// For operations: records the operation in a trace, giving its result.
  Variable trace(const Signature& signature, const std::vector<Variable>& inputs);
  /// For operations: how the next one runs.
  const Decision& decide(const Signature& signature);
  const CostModel& cost_model() const { return plans_.model(); }
  /// An operand in the placements that the decision wants.
  ShardedTensor bring(const ShardedTensor& value, const Placements& wanted) const;
  ShardedTensor bring(const Variable& operand, const Placements& wanted) const;
  /// An operand where it is, in the tape's type.
  ShardedTensor operand(const Variable& operand) const;
  /// The result of an operation that keeps nothing but its operands: what `kernel` gives, see keep(); when a
  /// block is recomputed and no backward reads the result, only its layout, and the kernel does not run.
  Variable result(const Signature& signature, const Decision& decision, bool wants_gradient,
                  const std::function<Array()>& kernel) const;
  /// The same for an operation that says itself in which layout its result comes.
  Variable result(const Signature& signature, const Decision& decision, bool wants_gradient,
                  const std::function<ShardedTensor()>& kernel) const;
  /// A value brought to where it is kept, in the tape's type.
  Variable keep(const ShardedTensor& value, const Decision& decision, bool wants_gradient) const;
  /// The result of a kernel, which stands in the row's output placements.
  Variable keep(Array piece, const Shape& global, const Decision& decision, bool wants_gradient) const;
  /// Whether backward needs an operation on these inputs. To be asked once by each, before it records
  /// anything: when backward has passed here the first operation that uses a parameter, its gradient is
  /// whole.
  bool records(const std::vector<Variable>& inputs);
  /// For operations, forward and backward: what they need is under way, and a long computation follows,
  /// behind which parameters of the next block and gradients of the last one may travel.
  void long_work_follows() const { flow_->start_waiting(); }
  /// Adds a step of backward; steps run in reverse order and are freed as they run.
  void record(std::function<void()> backward) { steps_.push_back(std::move(backward)); }

  /// Where the gradient of input i lies after its row: see gradient_placement().
  Placements gradient_placements(const Decision& decision, std::size_t input) const;
  /// The type in which a gradient with these placements is formed: summands of several ranks in at least f32.
  DType gradient_type(const Placements& placements) const;

  /// Calls `complete` as soon as all gradients of a block's parameters from this tape are stored.
  void on_gradients(std::function<void(ParameterBlock&)> complete) { flow_->complete = std::move(complete); }
  /// Runs backward from the gradients already added to slots. Parameters are gathered one block ahead, and
  /// gradients scattered as soon as they are whole, while others are worked on.
  void backward();

 private:
  /// The parameter blocks that backward passes through, and what of their parameters and gradients waits to
  /// travel; shared with the tapes that recompute.
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

  Variable trace_block(const BlockSpec& spec, const std::vector<Variable>& inputs, const Function& run);
  Variable run_block(const BlockSpec& spec, const std::vector<Variable>& inputs, const Function& run);
  Variable run_recomputed(const BlockSpec& spec, const std::vector<Variable>& inputs, const Function& run);

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
  Variable trace_into(Block& block, const std::vector<Variable>& inputs, const Function& run);
  Block* block_ = nullptr;
};

}  // namespace jigsaw
