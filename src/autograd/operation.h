#pragma once
#include <any>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "autograd/variable.h"
#include "base/error.h"
#include "parallel/planner.h"

namespace jigsaw::inline autograd {

class Tape;

/// Which random numbers a forward pass uses.
struct RandomState {
  std::uint64_t seed = 0;
  RandomPosition position;
};

/// What one call of an operation sees, forward and backward: where its operands and results lie, and what the
/// rank computes with.
class Frame {
 public:
  Frame(Tape& tape, const Decision& decision, std::shared_ptr<const Signature> signature, bool result_read);

  const Rank& rank() const;
  Context& context() const { return rank().context; }
  /// The ranks that share a piece's rows, along axes that cutting() gives.
  Communicator& group(AxisSet axes) const { return rank().mesh.communicator(axes); }
  /// The axes of more than one rank that cut one of the dims first to last of an input.
  AxisSet cutting(std::size_t input, int first, int last) const;

  const Signature& signature() const { return *signature_; }
  /// The axes along which some letter is cut.
  AxisSet cut() const { return decision_->cut; }
  /// An operand as the rule takes it, an output as it gives it, and as that is kept.
  Layout input(std::size_t i) const { return {signature_->inputs[i], decision_->inputs[i]}; }
  Layout output(std::size_t o = 0) const { return {signature_->outputs[o], decision_->rule_outputs[o]}; }
  Layout home(std::size_t o = 0) const { return {signature_->outputs[o], decision_->outputs[o]}; }
  Box input_box(std::size_t i) const { return rank().box(input(i)); }
  Box output_box(std::size_t o = 0) const { return rank().box(output(o)); }
  /// Where and in which type the gradient of an input is formed along the rule, see gradient_placement().
  Layout gradient(std::size_t i) const;
  DType gradient_type(std::size_t i) const { return summand_type(gradient(i)); }
  /// The type in which an output is formed: summands of several ranks in at least f32.
  DType output_type(std::size_t o = 0) const { return summand_type(output(o)); }

  /// Whether this rank is the first along the axes: the one that adds what all ranks know alike to a sum over
  /// them.
  bool first_along(AxisSet axes) const;

  /// The type of values, and that of statistics and sums: f64 in f64, else f32.
  DType dtype() const;
  DType wide_type() const { return dtype() == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32; }
  bool training() const { return training_; }
  /// Of the forward pass.
  const RandomState& random() const { return random_; }
  const CostModel& cost_model() const;
  /// What the call needs is under way, and a long computation follows, behind which parameters of the next
  /// block and gradients of the last one may travel.
  void long_work_follows() const;

  /// Whether the results may be read as forward() gives them. In a block that is recomputed they often are
  /// not: nobody reads them, or backward alone, which rematerialises them. forward() then runs for the
  /// findings, and may leave the results undefined.
  bool result_read() const { return result_read_; }
  /// In forward: an output is given in home(), not in output().
  void redistributed_home(std::size_t o) { home_ |= 1U << o; }

  /// What forward found out beside its results, for backward; needs Signature::keeps_findings.
  template <typename T>
  void keep_findings(T findings) {
    findings_ = std::move(findings);
  }
  template <typename T>
  const T& findings() const {
    const T* const findings = std::any_cast<T>(&findings_);
    require(findings != nullptr, "forward has kept no findings");
    return *findings;
  }

 private:
  friend class Tape;
  DType summand_type(const Layout& layout) const;

  Tape* tape_;
  const Decision* decision_;
  std::shared_ptr<const Signature> signature_;
  RandomState random_;
  bool training_, result_read_;
  std::uint32_t home_ = 0;
  std::any findings_;
};

/// The operands of a call, or what backward kept of them. They travel when they are asked for, so that an
/// operation says what it needs first; all ranks ask alike.
class Operands {
 public:
  /// Of a forward pass.
  Operands(const Frame& frame, std::span<const Variable> variables) : frame_(&frame), variables_(variables) {}
  /// For backward: the operands that `keep` selects.
  /// @param once  whether each is asked for only once, after which it is freed.
  Operands(const Frame& frame, std::span<const Variable> variables, const std::vector<bool>& keep, bool once);

  /// The piece in the rule's placements.
  Array redistributed(std::size_t i);
  /// The operand where it is kept, for an operation that moves it by itself, part by part.
  ShardedTensor where_kept(std::size_t i);

 private:
  const Frame* frame_;
  std::span<const Variable> variables_;
  std::vector<std::function<ShardedTensor()>> saved_;
  bool once_ = false;
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
  /// Adds the array that `make` returns, placed so. Of ranks with equal copies one alone calls it. Where a
  /// parameter's gradient is there already, `add`, if given, adds to it in place.
  void give(const Rank& rank, const Placements& placements, const std::function<Array()>& make,
            const std::function<void(Array&)>& add = nullptr) const;

 private:
  Parameter* parameter_;
  std::shared_ptr<GradientSlot> slot_;
  Shape shape_;
};

/// The gradients of one call: of its outputs, which backward takes, and of its inputs, which it gives.
class Gradients {
 public:
  Gradients(std::shared_ptr<const Frame> frame, std::span<const Variable> inputs,
            std::span<const Variable> outputs);

  /// The gradient of an output's piece, dual to the rule's placements; zeros where nobody used the output. To
  /// be taken once.
  Array take(std::size_t o = 0);
  /// The same where it was collected, for an operation that moves it by itself, part by part.
  ShardedTensor take_where_kept(std::size_t o = 0);
  bool any_arrived() const;

  bool wanted(std::size_t i) const { return targets_[i].wanted(); }
  const GradientTarget& target(std::size_t i) const { return targets_[i]; }
  /// Gives the gradient of input i, placed as Frame::gradient() says, if it is wanted. Of ranks with equal
  /// copies one alone calls `make`, which must not communicate.
  /// @param add  adds the gradient to another array in place.
  void give(std::size_t i, const Array& gradient) const;
  void give(std::size_t i, const std::function<Array()>& make,
            const std::function<void(Array&)>& add = nullptr) const;
  /// Gives a gradient that stands in another layout.
  void give(std::size_t i, const ShardedTensor& gradient) const;

 private:
  std::shared_ptr<const Frame> frame_;
  std::vector<GradientTarget> targets_;
  std::vector<std::shared_ptr<GradientSlot>> slots_;
};

/// A differentiable operation on global tensors, by what it does to pieces of them. Objects hold the options
/// of a call (letters, windows, probabilities) and no state: Tape::run() traces, decides, redistributes
/// operands as their rules want, saves, rematerialises results and hands gradients on. Its rules are proved
/// by the cases that autograd/registry.h lists of it.
class Operation {
 public:
  virtual ~Operation() = default;
  /// As in the registry.
  virtual std::string_view name() const = 0;
  /// @throws ShapeError when the inputs do not fit together; the message shows them.
  virtual Signature signature(std::span<const Shape> inputs) const = 0;
  /// The pieces of the outputs. What this communicates by itself Signature::own tells.
  virtual std::vector<Array> forward(Frame& frame, Operands& inputs) const = 0;
  /// The outputs once more, without communication; may use the findings, if Signature::keeps_findings. Only
  /// of what is Signature::rematerialised.
  virtual std::vector<Array> rematerialise(Frame& frame, Operands& inputs) const;
  /// Gives the gradients of the inputs. `saved` has those of Signature::saved.
  virtual void backward(const Frame& frame, Operands& saved, Gradients& gradients) const = 0;
};

}  // namespace jigsaw::inline autograd
