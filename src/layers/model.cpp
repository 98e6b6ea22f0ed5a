#include "layers/model.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "layers/concat_skip.h"
#include "layers/limits.h"
#include "layers/registry.h"

namespace jigsaw::inline layers {

namespace {

/// Of repeats within repeats; of a mixer's blocks there are two for each of its depth.
constexpr std::size_t kMostModelBlocks = 2 * static_cast<std::size_t>(kMostBlocks) + 3;

}  // namespace

void Model::append(const std::string& path, const std::string& key,
                   const std::function<LayerPtr(const LayerSite&)>& build) {
  if (blocks_.size() >= kMostModelBlocks)
    throw ConfigError(concat(key, " makes more than ", kMostModelBlocks, " blocks of layers"));
  const FieldShape input = output();
  const bool first = blocks_.empty();
  if (!join_) blocks_.push_back({path, std::make_unique<ParameterBlock>(path), {}});
  LayerSite site{*blocks_.back().parameters, path, input, key};
  if (first) site.time_channels = description_.time_channels;
  append_part(site, build);
}

void Model::append_part(const LayerSite& site, const std::function<LayerPtr(const LayerSite&)>& build) {
  Part part{build(site), {}};
  if (join_) part.joined = join_->value;
  join_.reset();
  blocks_.back().parts.push_back(std::move(part));
}

std::size_t Model::value() {
  finish();
  return blocks_.size();
}

void Model::join(std::size_t value, const std::string& key) {
  finish();
  ParameterBlock none("");
  join_ = Join{value, key, joined_shape({none, "", shape_of(value), key}, output())};
}

void Model::finish() {
  /// Gives what it gets.
  class Identity : public Layer {
   public:
    using Layer::Layer;
    Variable run(Tape& tape, const Variable& x, const Variable& residual) const override {
      return add_residual(tape, x, residual);
    }
  };
  if (!join_) return;
  append_part({*blocks_.back().parameters, "", join_->output, join_->key}, [](const LayerSite& site) {
    return std::make_unique<Identity>(site.input, site.input.crossing);
  });
}

void Model::append_side(const std::string& path, const std::string& key,
                        const std::function<LayerPtr(const LayerSite&)>& build) {
  const std::size_t of = value();
  Block block{path, std::make_unique<ParameterBlock>(path), {}};
  block.parts.push_back({build({*block.parameters, path, output(), key}), {}});
  sides_.push_back({of, std::move(block)});
}

const Model::Side* Model::side_of(std::size_t value) const {
  const auto found = std::ranges::find(sides_, value, &Side::value);
  return found == sides_.end() ? nullptr : &*found;
}

void Model::append_output_map() {
  OutputMap map{std::make_unique<ParameterBlock>("output_map"), {}, {}, {}};
  const std::int64_t channels = output().channels, inputs = description_.input_channels;
  const LayerSite site{*map.parameters, "output_map", output(), "model"};
  const Initial initial = Initial::fan_in(channels + inputs);
  map.output = site.parameter("output.weight", {channels, channels}, initial);
  map.input = LayerSite{*map.parameters, site.path, input(), site.key}.weight("input.weight",
                                                                              {channels, inputs}, initial, 1);
  map.bias = site.parameter("bias", {channels}, initial);
  output_map_ = std::move(map);
}

FieldShape Model::input() const {
  const std::int64_t channels = description_.input_channels;
  return {description_.space,
          channels,
          description_.crossing,
          {channels - description_.noise_channels, channels},
          description_.rows};
}

FieldShape Model::shape_of(std::size_t value) const {
  return value == 0 ? input() : blocks_[value - 1].last().output();
}

std::vector<FieldShape> Model::values() const {
  std::vector<FieldShape> result;
  for (std::size_t value = 0; value <= blocks_.size(); ++value) result.push_back(shape_of(value));
  return result;
}

std::vector<FieldShape> Model::sides() const {
  std::vector<FieldShape> result;
  for (const Side& side : sides_) result.push_back(side.block.last().output());
  return result;
}

FieldShape Model::output() const {
  return join_ ? join_->output : shape_of(blocks_.size());
}

std::vector<std::int64_t> Model::input_units() const {
  return blocks_.empty() ? std::vector<std::int64_t>{} : blocks_.front().first().input_units();
}

std::vector<std::int64_t> Model::output_units() const {
  return blocks_.empty() ? std::vector<std::int64_t>{} : blocks_.back().last().output_units();
}

namespace {

Layout field(const Mesh& mesh, std::int64_t samples, const Shape& space, std::int64_t channels,
             const std::vector<std::int64_t>& units) {
  Shape shape{samples};
  for (const std::int64_t extent : space) shape.append(extent);
  shape.append(channels);
  return mesh.field_layout(shape, units);
}

}  // namespace

Layout Model::input_layout(const Mesh& mesh, std::int64_t samples) const {
  return field(mesh, samples, description_.space, description_.input_channels, input_units());
}

Layout Model::output_layout(const Mesh& mesh, std::int64_t samples) const {
  return field(mesh, samples, output().space, output().channels, output_units());
}

Variable Model::forward(Tape& tape, const Variable& input, std::vector<Variable>* sides) const {
  Variable x = input;
  if (sides != nullptr) sides->clear();
  std::map<std::size_t, Variable> values;  // those that are joined later
  for (const Block& block : blocks_) {
    for (const Part& part : block.parts) {
      if (part.joined) values[*part.joined] = {};
    }
  }
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    if (const auto value = values.find(i); value != values.end()) value->second = x;
    ParameterBlock* next = output_map_ ? output_map_->parameters.get() : nullptr;
    if (i + 1 < blocks_.size()) next = blocks_[i + 1].parameters.get();
    const Side* const side = sides != nullptr ? side_of(i + 1) : nullptr;
    x = run(tape, blocks_[i], side != nullptr ? side->block.parameters.get() : next, x, values);
    if (side != nullptr) sides->push_back(run(tape, side->block, next, x, {}));
  }
  if (!output_map_) return x;
  const BlockSpec spec{"output_map", output_map_->parameters.get(), recompute_, output_units()};
  return tape.block(spec, {x, input}, [&map = *output_map_](Tape& on, const std::vector<Variable>& inputs) {
    const int space = inputs[0].shape().rank() - 2;
    const std::string in = field_letters(space, 'k'), out = field_letters(space, 'n');
    const Variable from_input = contract(on, in + ",nk->" + out, inputs[1], map.input);
    const Variable y = contract(on, in + ",nk->" + out, inputs[0], map.output);
    return pointwise(on, y, {out, map.bias, "n", from_input});
  });
}

Variable Model::run(Tape& tape, const Block& block, ParameterBlock* next, const Variable& x,
                    const std::map<std::size_t, Variable>& values) const {
  const BlockSpec spec{block.path, block.parameters.get(), recompute_, block.last().output_units(), next};
  std::vector<Variable> operands = {x};
  for (const Part& part : block.parts) {
    if (part.joined) operands.push_back(values.at(*part.joined));
  }
  return tape.block(spec, operands, [&block](Tape& on, const std::vector<Variable>& inputs) {
    Variable y = inputs[0];
    auto skip = inputs.begin() + 1;
    for (const Part& part : block.parts) {
      y = part.layer->run(on, part.joined ? join_skip(on, *skip++, y) : y);
    }
    return y;
  });
}

std::vector<ParameterBlock*> Model::parameters() const {
  std::vector<ParameterBlock*> result;
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    result.push_back(blocks_[i].parameters.get());
    if (const Side* const side = side_of(i + 1)) result.push_back(side->block.parameters.get());
  }
  if (output_map_) result.push_back(output_map_->parameters.get());
  return result;
}

std::unique_ptr<Model> build_model(const Tagged& model, const ModelDescription& description) {
  auto result = std::make_unique<Model>(description);
  append_model(*result, model);
  result->finish();
  const FieldShape output = result->output();
  if (output.rows && description.rows && *output.rows != *description.rows) {
    throw ConfigError(concat("model ends on rows that are \"", name(*output.rows),
                             "\", but those of the data are \"", name(*description.rows), "\""));
  }
  if (!(output.space == description.space) || output.channels != description.output_channels) {
    throw ConfigError(concat("model gives ", output.to_string(), ", but the data's targets are ",
                             FieldShape{description.space, description.output_channels}.to_string()));
  }
  return result;
}

void plan_and_materialise(Model& model, const Rank& rank, PlanBook& plans, std::int64_t samples, Zero zero,
                          DType master, DType compute, std::uint64_t seed) {
  Tape trace(rank, plans, Tape::Mode::kTrace, compute);
  std::vector<Variable> sides;
  model.forward(trace, Variable::traced(model.input_layout(rank.mesh, samples), -1), &sides);
  for (ParameterBlock* block : model.parameters()) block->materialise(rank, zero, master, compute, seed);
}

}  // namespace jigsaw::inline layers
