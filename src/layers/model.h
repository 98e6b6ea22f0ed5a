#pragma once
#include <map>
#include <optional>

#include "config/tagged.h"
#include "layers/layer.h"

namespace jigsaw::inline layers {

/// What a model is built for; files or the configuration alone can supply it.
struct ModelDescription {
  Shape space;  ///< the data's grid
  std::int64_t input_channels = 0;
  std::int64_t output_channels = 0;
  /// Input channels that are sines and cosines of the time of the day or of the day of the year.
  std::vector<std::int64_t> time_channels = {};
  PoleCrossing crossing = {};       ///< of the input channels
  std::int64_t noise_channels = 0;  ///< the last of the input channels, see FieldShape::noise
  std::optional<GlobalRows> rows =
      {};  ///< where the rows of the data's grid lie on the globe, as far as known
};

/// A model: blocks one after the other, from the input fields [B, space…, input channels] to
/// [B, space…, output channels]. Each block is planned, gathered and recomputed as one.
class Model {
 public:
  explicit Model(ModelDescription description) : description_(std::move(description)) {}

  /// Appends a block, or behind a join a part of the last one; its layers are built by `build` at the site
  /// given.
  void append(const std::string& path, const std::string& key,
              const std::function<LayerPtr(const LayerSite&)>& build);
  /// Number of the value that stands after the last block, for join(); the model's input is 0.
  std::size_t value();
  /// What is appended next takes [that value, what stands now] over channels, the latter cropped to the
  /// former's points, and belongs to the last block. @throws ConfigError under `key` when it has fewer
  /// points.
  void join(std::size_t value, const std::string& key);
  /// A join that nothing follows ends the last block.
  void finish();
  /// Appends a block beside the others: another output, of what stands now, which forward() makes where it is
  /// asked for.
  void append_side(const std::string& path, const std::string& key,
                   const std::function<LayerPtr(const LayerSite&)>& build);
  /// The published WeatherMixer's end: result = output·y + input·x + bias over channels, x the model's input.
  void append_output_map();

  const ModelDescription& description() const { return description_; }
  /// Shape of the input and of what stands after each block, in order.
  std::vector<FieldShape> values() const;
  /// Shape after the last block.
  FieldShape output() const;
  /// Shapes of the outputs beside it, in order.
  std::vector<FieldShape> sides() const;
  /// Units in which the input's space must be cut, and in which the result's is.
  std::vector<std::int64_t> input_units() const;
  std::vector<std::int64_t> output_units() const;
  Layout input_layout(const Mesh& mesh, std::int64_t samples) const;
  Layout output_layout(const Mesh& mesh, std::int64_t samples) const;

  /// Blocks keep only their inputs for backward.
  void set_recompute(bool recompute) { recompute_ = recompute; }
  /// @param sides  set to what the blocks beside the others give, in the order of the model; null: they do
  ///               not run.
  Variable forward(Tape& tape, const Variable& input, std::vector<Variable>* sides = nullptr) const;
  /// The blocks' parameters, in the order of the model.
  std::vector<ParameterBlock*> parameters() const;

 private:
  /// One of the layers that a block runs one after the other.
  struct Part {
    LayerPtr layer;
    std::optional<std::size_t> joined;  ///< the value that stands before its input, over channels
  };
  struct Block {
    std::string path;
    std::unique_ptr<ParameterBlock> parameters;
    std::vector<Part> parts;

    const Layer& first() const { return *parts.front().layer; }
    const Layer& last() const { return *parts.back().layer; }
  };
  /// A block beside the others.
  struct Side {
    std::size_t value;  ///< its input
    Block block;
  };
  struct Join {
    std::size_t value;
    std::string key;
    FieldShape output;
  };
  const Side* side_of(std::size_t value) const;
  void append_part(const LayerSite& site, const std::function<LayerPtr(const LayerSite&)>& build);
  Variable run(Tape& tape, const Block& block, ParameterBlock* next, const Variable& x,
               const std::map<std::size_t, Variable>& values) const;
  FieldShape input() const;
  FieldShape shape_of(std::size_t value) const;
  struct OutputMap {
    std::unique_ptr<ParameterBlock> parameters;
    Variable output, input, bias;
  };

  ModelDescription description_;
  std::vector<Block> blocks_;
  std::vector<Side> sides_;   ///< by their inputs, at most one of each
  std::optional<Join> join_;  ///< awaits what is appended next
  std::optional<OutputMap> output_map_;
  bool recompute_ = false;
};

/// Builds a configured model. @throws ConfigError that names the key under "model".
std::unique_ptr<Model> build_model(const Tagged& model, const ModelDescription& description);

/// Plans every block on shapes alone, then allocates and initialises this rank's part of the parameters.
/// @param samples  global batch size the plan is made for; other sizes run on the same plan.
void plan_and_materialise(Model& model, const Rank& rank, PlanBook& plans, std::int64_t samples, Zero zero,
                          DType master, DType compute, std::uint64_t seed);

}  // namespace jigsaw::inline layers
