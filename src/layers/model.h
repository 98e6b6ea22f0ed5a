#pragma once
#include <optional>

#include "config/tagged.h"
#include "layers/layer.h"

namespace jigsaw {

/// What a model is built for; files or the configuration alone can supply it.
struct ModelDescription {
  Shape space;  ///< the data's grid
  std::int64_t input_channels = 0;
  std::int64_t output_channels = 0;
};

/// A model: blocks one after the other, from the input fields [B, space…, input channels] to
/// [B, space…, output channels]. Each block is planned, gathered and recomputed as one.
class Model {
 public:
  explicit Model(ModelDescription description) : description_(std::move(description)) {}

  /// Appends a block; its layers are built by `build` at the site given.
  void append(const std::string& path, const std::string& key,
              const std::function<LayerPtr(const LayerSite&)>& build);
  /// The published WeatherMixer's end: result = output·y + input·x + bias over channels, x the model's input.
  void append_output_map();

  const ModelDescription& description() const { return description_; }
  /// Shape after the last block.
  FieldShape output() const;
  /// Units in which the input's space must be cut, and in which the result's is.
  std::vector<std::int64_t> input_units() const;
  std::vector<std::int64_t> output_units() const;
  Layout input_layout(const Mesh& mesh, std::int64_t samples) const;
  Layout output_layout(const Mesh& mesh, std::int64_t samples) const;

  /// Blocks keep only their inputs for backward.
  void set_recompute(bool recompute) { recompute_ = recompute; }
  Variable forward(Tape& tape, const Variable& input) const;
  /// The blocks' parameters, in the order of the model.
  std::vector<ParameterBlock*> parameters() const;

 private:
  struct Block {
    std::string path;
    std::unique_ptr<ParameterBlock> parameters;
    LayerPtr layer;
  };
  struct OutputMap {
    std::unique_ptr<ParameterBlock> parameters;
    Variable output, input, bias;
  };

  ModelDescription description_;
  std::vector<Block> blocks_;
  std::optional<OutputMap> output_map_;
  bool recompute_ = false;
};

/// Builds a configured model. @throws ConfigError that names the key under "model".
std::unique_ptr<Model> build_model(const Tagged& model, const ModelDescription& description);

/// Plans every block on shapes alone, then allocates and initialises this rank's part of the parameters.
/// @param samples  global batch size the plan is made for; other sizes run on the same plan.
void plan_and_materialise(Model& model, const Rank& rank, PlanBook& plans, std::int64_t samples, Zero zero,
                          DType master, DType compute, std::uint64_t seed);

}  // namespace jigsaw
