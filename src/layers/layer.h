#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "autograd/operations.h"
#include "layers/global_rows.h"
#include "parallel/index_map.h"

namespace jigsaw::inline layers {

/// What flows between layers, without the sample dim: [B, space…, channels].
struct FieldShape {
  Shape space;
  std::int64_t channels = 0;
  /// Which channels are components of vectors, and so change across a pole.
  PoleCrossing crossing = {};
  /// Which channels are the noise of an ensemble, as long as layers leave each where it is.
  Range noise = {};
  /// Where its rows lie on the globe, as far as known.
  std::optional<GlobalRows> rows = {};

  std::string to_string() const;
};
/// "…" where rows of two fields that are to go together lie elsewhere; "" where they do not, as far as known.
std::string contradiction(const FieldShape& a, const FieldShape& b);

/// Letters of a field with `space` spatial dims whose last dim is `channel`: "bhwc", "bdhwc".
std::string field_letters(int space, char channel);
/// Only the spatial letters: "hw", "dhw".
std::string space_letters(int space);

/// Where a layer is built: its place in the model and the block that will hold its parameters.
struct LayerSite {
  ParameterBlock& parameters;
  std::string path;  ///< dotted; names parameters and random masks
  FieldShape input;
  std::string key;  ///< dotted path in the configuration, for errors
  /// Where the input is the model's: its channels that tell the time, see ModelDescription.
  std::vector<std::int64_t> time_channels;

  /// A learned tensor path.name.
  Variable parameter(const std::string& name, const Shape& shape, Initial initial) const;
  /// One that has a slice for each channel of the input, along `dim`, which that channel alone is multiplied
  /// by: a run that was trained without noise is taken for one with it, see Parameter::noise().
  Variable weight(const std::string& name, const Shape& shape, Initial initial, int dim) const;
  /// A running statistic path.name of `channels` numbers, see Parameter::momentum().
  Variable statistic(const std::string& name, std::int64_t channels, double start, double momentum) const;
  /// The site of a layer inside this one.
  LayerSite inner(const std::string& name, const FieldShape& shape) const;
  /// The site of a part whose parameters are named from the model's root.
  LayerSite at_root(const std::string& name, const FieldShape& shape) const;
  /// Throws ConfigError "<key of the layer>.<name> <sentence>".
  [[noreturn]] void error(const std::string& name, const std::string& sentence) const;
};

/// One layer: a function of a field, made of sharded operations, written as if for one machine.
class Layer {
 public:
  /// Channels of the result are scalars: what a layer has mixed or bent is a component of nothing, and no
  /// noise.
  explicit Layer(const FieldShape& output)
      : Layer({output.space, output.channels, {}, {}, output.rows}, {}) {}
  /// For layers that keep channels apart and are linear.
  Layer(FieldShape output, PoleCrossing crossing) : output_(std::move(output)) {
    output_.crossing = std::move(crossing);
  }
  virtual ~Layer() = default;
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;

  const FieldShape& output() const { return output_; }
  /// On the input's grid rows lie where those of the input do, unless the layer says itself where.
  void keep_rows(const FieldShape& input);
  /// Units in which its input's and output's space is cut; empty where any cut will do.
  virtual std::vector<std::int64_t> input_units() const { return {}; }
  virtual std::vector<std::int64_t> output_units() const { return {}; }

  /// @param residual  added to the result if defined; of the output's shape.
  virtual Variable run(Tape& tape, const Variable& x, const Variable& residual) const = 0;
  Variable run(Tape& tape, const Variable& x) const { return run(tape, x, Variable()); }

 private:
  FieldShape output_;
};
using LayerPtr = std::unique_ptr<Layer>;

/// y + residual, or y itself where there is none: for layers that have no pass to fuse the sum into.
Variable add_residual(Tape& tape, const Variable& y, const Variable& residual);

}  // namespace jigsaw::inline layers
