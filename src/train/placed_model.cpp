#include "train/placed_model.h"

#include "base/error.h"
#include "base/text.h"
#include "config/config.h"
#include "train/pole_crossing.h"

namespace jigsaw::inline train {

namespace {

/// Numbers of the inputs that are sines and cosines of the time.
std::vector<std::int64_t> time_channels(const Channels& channels) {
  std::vector<std::int64_t> numbers;
  for (std::size_t i = 0; i < channels.inputs.size(); ++i) {
    const Channel& input = channels.inputs[i];
    if (input.role == Role::kForcing && input.forcing >= Forcing::kSinTimeOfDay) {
      numbers.push_back(static_cast<std::int64_t>(i));
    }
  }
  return numbers;
}

ModelDescription describe(Objective& objective) {
  const SampleSource& data = objective.data();
  const Channels& channels = data.channels();
  return {data.grid().shape(), static_cast<std::int64_t>(channels.inputs.size()), objective.output_channels(),
          time_channels(channels), pole_crossing(channels.inputs, data.statistics())};
}

}  // namespace

PlacedModel::PlacedModel(const Configuration& configuration, Objective& objective, Communicator& world)
    : types_(types_of(configuration.train.precision)),
      zero_(to_json(configuration).at("zero")),
      samples_(configuration.train.batch_size / configuration.train.accumulate) {
  const SampleSource& data = objective.data();
  model_ = build_model(configuration.model, describe(objective));
  model_->set_recompute(configuration.train.recompute == Recompute::kBlock);
  const MeshOptions mesh =
      resolved_mesh(configuration.mesh, world.size(), data.grid().shape(), model_->input_units());
  mesh_ = std::make_unique<Mesh>(world, mesh.data, mesh.domain, mesh.tensor);
  if (samples_ < mesh.data) {
    throw ConfigError(
        concat("mesh.data ", mesh.data, " is more than the ", samples_,
               " samples that run at a time; train.batch_size / train.accumulate must be at least as many"));
  }
  rank_ = std::make_unique<Rank>(Rank{world.context(), *mesh_});
  forecaster_ =
      std::make_unique<Forecaster>(*model_, data.channels(), data.statistics(), configuration.data.predict,
                                   configuration.data.lead_hours, configuration.train.rollout.max);
  plan_and_materialise(*model_, *rank_, plans_, samples_, configuration.zero, types_.master, types_.compute,
                       static_cast<std::uint64_t>(configuration.seed));
  forecaster_->plan(*rank_, plans_, samples_);
}

Box PlacedModel::input_box(std::int64_t samples) const {
  return rank_->box(model_->input_layout(*mesh_, samples));
}

Box PlacedModel::target_box(const Loss& loss, std::int64_t samples) const {
  return rank_->box(loss.target_layout(*mesh_, model_->output_layout(*mesh_, samples)));
}

Json PlacedModel::description() const {
  Json mesh = {{"data", mesh_->size(Mesh::kData)},
               {"domain", Json::array()},
               {"tensor", mesh_->size(mesh_->tensor())}};
  for (int dim = 0; dim < mesh_->domain_axes(); ++dim)
    mesh["domain"].push_back(mesh_->size(mesh_->domain(dim)));
  mesh["zero"] = zero_;
  return mesh;
}

}  // namespace jigsaw::inline train
