#pragma once
#include <memory>
#include <string>
#include <vector>

#include "array/random.h"
#include "parallel/sharded_tensor.h"

namespace jigsaw::inline autograd {

/// How a parameter starts: a function of the global element, hence equal on every mesh.
struct Initial {
  enum class Kind : std::uint8_t { kConstant, kUniform, kNormal };
  Kind kind = Kind::kConstant;
  double scale = 0;  ///< the constant, the bound of U(−scale, scale), or the standard deviation

  static Initial constant(double value) { return {Kind::kConstant, value}; }
  /// U(−1/√fan_in, 1/√fan_in): torch.nn.Linear's default for weight and bias.
  static Initial fan_in(std::int64_t fan_in);
};

/// How much is cut over `data` too (ZeRO, Rajbhandari et al. 2020).
enum class Zero : std::uint8_t { kNone, kOptimizer, kParameters };

class ParameterGroup;

/// Slices along one dim.
struct Slices {
  int dim = 0;
  Range range;
};

/// A learned tensor, or with a momentum a statistic that is followed rather than trained. Operations use it
/// in its *compute* layout, which the block's plan chooses; it is stored as part of its group's flat buffer.
class Parameter {
 public:
  Parameter(std::string name, const Shape& shape, Initial initial, double momentum)
      : name_(std::move(name)), shape_(shape), initial_(initial), momentum_(momentum) {}

  const std::string& name() const { return name_; }
  const Shape& shape() const { return shape_; }
  const Initial& initial() const { return initial_; }
  /// Of a running statistic: the part of its way to the batch's statistics that it goes in a step; 0 for what
  /// is trained. Its gradient is that way, and no part of the gradient norm.
  double momentum() const { return momentum_; }
  /// The slices that channels of noise alone are multiplied by, see FieldShape::noise; where they are zero,
  /// the model is what it would be without noise.
  const Slices& noise() const { return noise_; }
  void set_noise(const Slices& noise) { noise_ = noise; }
  Shape shape_without_noise() const;
  const Layout& compute_layout() const { return compute_; }

  /// The piece operations use; only while the block is acquired. Waits until it has been gathered.
  ShardedTensor value() const;
  /// Where gradients of that piece are added up, f32 or f64; only between begin_gradients() and
  /// finish_gradients().
  Array gradient() const;
  /// Whether this rank's gradient, placed so along the mesh axes, is to be added: of ranks that hold the same
  /// gradient just the first adds it.
  static bool contributes(const Rank& rank, const Placements& gradient);
  ParameterGroup* group() const { return group_; }

 private:
  friend class ParameterBlock;
  friend class ParameterGroup;
  std::string name_;
  Shape shape_;
  Initial initial_;
  double momentum_;
  Slices noise_;
  Layout compute_;
  Box box_;  // of the compute layout
  ParameterGroup* group_ = nullptr;
  std::int64_t offset_ = 0;  // in the group's flat buffer
};

/// The part of one parameter in a stored range: elements [first, first + count) of its compute piece,
/// row-major, are elements [at, at + count) of the range.
struct Segment {
  const Parameter* parameter;
  Box box;  ///< the compute piece, in global coordinates
  std::int64_t first, count, at;
};

/// Parameters of a block that are replicated along the same mesh axes in their compute layout, one after the
/// other in one flat buffer, which those axes cut evenly: nothing is held twice, and they are gathered by one
/// all-gather before use and their gradients scattered by one reduce-scatter after it. Fewer than eight zeros
/// a share behind the last parameter, in no Segment, make shares equal and multiples of eight elements, which
/// networks and GPUs take faster; a buffer of fewer than 512 elements a share is cut to the element instead.
/// Zero-redundancy domain parallelism and ZeRO-3 differ in the axes only.
class ParameterGroup {
 public:
  ParameterGroup(const Rank& rank, AxisSet axes, Zero zero, DType master, DType compute)
      : rank_(rank), axes_(axes), zero_(zero), master_(master), compute_(compute) {}

  /// The part of the flat buffer that this rank optimises: f32 or f64.
  Array owned() const;
  /// On a device, where operations take parameters in bf16, a copy in that type is kept: that of owned(), for
  /// whoever changes it to write, too; undefined where there is none.
  Array owned_copy() const;
  /// The gradient of that part, once synchronise_gradients() has run.
  Array owned_gradient() const;
  /// Which parts of which parameters it is.
  std::vector<Segment> owned_segments() const { return segments(owned_range_); }
  Range owned_range() const { return owned_range_; }
  /// Axes along which no two ranks own the same elements; along the others, copies are equal.
  AxisSet owning_axes() const;

  /// Whether the parameters are cut, so that there is anything to gather.
  bool travels() const { return rank_.mesh.size(axes_) > 1; }
  /// Starts to gather the parameters, so that their first use finds them there. They must not change in
  /// between.
  void start_acquire();
  /// Starts to scatter the gradients, to which nothing may be added afterwards.
  void start_finish_gradients();

  /// Starts to sum gradients over `data` (once a step, after all micro-batches), so that it happens while
  /// backward goes on.
  void start_synchronise_gradients();
  /// The same, unless it was started, and waits for it.
  void synchronise_gradients();
  /// After the optimizer changed owned(): brings the other owners' parts here.
  /// @param copied  owned_copy() was written, too.
  void share_parameters(bool copied = false);
  void zero_gradients();
  /// Before the first gradients of a step: forgets a pass that was put in and never runs.
  void forget_pass();
  /// All parameters of the stored range, for checkpoints and tests.
  Array stored() const { return stored_; }
  std::vector<Segment> stored_segments() const { return segments(stored_range_); }
  Range stored_range() const { return stored_range_; }
  /// The part of the stored range that no other rank saves, though others along `data` may hold it.
  Range saved_range() const;
  /// The parts of parameters in a range of the flat buffer.
  std::vector<Segment> segments(const Range& range) const;

 private:
  friend class Parameter;
  friend class ParameterBlock;
  /// Whether one more parameter that is replicated along these axes belongs here; equal on all ranks.
  bool takes(AxisSet axes) const;
  void add(Parameter& parameter);
  void materialise(std::uint64_t seed);
  void initialise(const Segment& segment, std::uint64_t seed);
  void acquire();
  const Array& gathered();
  void release();
  void begin_gradients();
  void finish_gradients();
  /// Whether ranks along `data` own parts of what this one stores.
  bool shares_ownership() const;
  /// What is stored, as operations take it.
  Array stored_for_use() const;
  /// Lengthens the flat buffer by the zeros that make its shares equal.
  void pad();
  Array zeros(std::int64_t count) const;
  std::vector<std::int64_t> stored_counts() const;
  std::vector<std::int64_t> owned_counts() const;

  Rank rank_;
  AxisSet axes_;
  Zero zero_;
  DType master_, compute_;
  std::vector<Parameter*> parameters_;
  std::int64_t length_ = 0, largest_ = 0;  // of the flat buffer, here and where it is longest
  Range stored_range_, owned_range_;       // in the flat buffer
  Array stored_, stored_copy_;
  Array stored_gradient_, owned_gradient_;  // undefined is zero: memory follows backward, block by block
  Array gathered_, gradient_;               // whole flat buffer, while in use
  Pending gathering_, scattering_, synchronising_;
  int users_ = 0;
};

/// The parameters of one block of a model, which are acquired and released together. They travel in groups of
/// some size, in the order in which they were added, so that the first can be used, and others wait to travel
/// until the network has nothing more urgent.
class ParameterBlock {
 public:
  explicit ParameterBlock(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  /// @param name  the full name, unique in the model.
  /// @param momentum  of a running statistic.
  Parameter& add(const std::string& name, const Shape& shape, Initial initial, double momentum = 0.0);
  const std::vector<std::unique_ptr<Parameter>>& parameters() const { return parameters_; }
  std::vector<std::unique_ptr<ParameterGroup>>& groups() { return groups_; }

  /// From the plan: the placements operations want this parameter in.
  static void set_compute(Parameter& parameter, const Placements& placements);
  /// Allocates and initialises what this rank stores, once all compute layouts are known.
  void materialise(const Rank& rank, Zero zero, DType master, DType compute, std::uint64_t seed);

  /// Gathers the parameters for use, unless that was started. Nests with release().
  void acquire();
  void release();
  /// Between these two gradients of the gathered parameters are added up.
  void begin_gradients();
  /// Scatters the gradients to where they are stored, unless that was started, and waits for it. Must come
  /// before the block's next begin_gradients().
  void finish_gradients();
  void start_synchronise_gradients();
  void forget_pass();

 private:
  std::string path_;
  std::vector<std::unique_ptr<Parameter>> parameters_;
  std::vector<std::unique_ptr<ParameterGroup>> groups_;
};

/// Calls f(element of the run, row-major global index) for elements [first, first + count) of a box of
/// `global`.
template <typename F>
void for_each_global_index(const Shape& global, const Box& box, std::int64_t first, std::int64_t count,
                           F&& f) {
  const Shape strides = global.strides();
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t rest = first + i, index = 0;
    for (int dim = global.rank() - 1; dim >= 0; --dim) {
      index += (box.begin[dim] + rest % box.extent[dim]) * strides[dim];
      rest /= box.extent[dim];
    }
    f(i, index);
  }
}

}  // namespace jigsaw::inline autograd
