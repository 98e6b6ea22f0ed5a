#include "task/placed_model.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "config/config.h"
#include "task/ensemble.h"
#include "task/grid_warnings.h"
#include "task/pole_crossing.h"
#include "task/run_machine.h"

namespace jigsaw::inline task {

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

/// Behind the channels of data stand those of noise, which go over a pole as they are.
ModelDescription describe(const SampleSource& data, std::int64_t outputs, const Statistics& statistics,
                          const EnsembleOptions& ensemble) {
  const Channels& channels = data.channels();
  const std::size_t inputs = channels.inputs.size() + static_cast<std::size_t>(ensemble.noise_channels());
  PoleCrossing crossing = pole_crossing(channels.inputs, statistics);
  if (!crossing.factor.empty()) {
    crossing.factor.resize(inputs, 1);
    crossing.offset.resize(inputs, 0);
  }
  const Grid& grid = data.grid();
  const bool global = grid.geographic && grid.periodic;
  return {grid.shape(),
          static_cast<std::int64_t>(inputs),
          outputs,
          time_channels(channels),
          std::move(crossing),
          ensemble.noise_channels(),
          global ? global_rows_of(grid.axes[0].coordinates) : std::nullopt};
}

/// @throws ConfigError  also where it has nothing to train.
std::unique_ptr<Model> build_trained(const Tagged& config, const ModelDescription& description) {
  std::unique_ptr<Model> model = build_model(config, description);
  const auto has_none = [](const ParameterBlock* block) { return block->parameters().empty(); };
  if (std::ranges::all_of(model->parameters(), has_none))
    throw ConfigError("model has no parameters, so that there is nothing to train");
  return model;
}

std::unique_ptr<Mesh> make_mesh(const Configuration& configuration, const SampleSource& data,
                                const Model& model, Communicator& world) {
  const MeshOptions mesh =
      resolved_mesh(configuration.mesh, world.size(), data.grid().shape(), model.input_units());
  auto result = std::make_unique<Mesh>(world, mesh.data, mesh.domain, mesh.tensor);
  if (configuration.machine) require_links(*configuration.machine, result->shape().axes);
  const std::int64_t samples = configuration.train.batch_size / configuration.train.accumulate,
                     members = configuration.ensemble.members;
  if (samples * members < mesh.data) {
    throw ConfigError(concat("mesh.data ", mesh.data, " is more than the ", counted(samples, "sample"),
                             members > 1 ? concat(" of ", members, " members") : "",
                             " that run at a time; train.batch_size / train.accumulate",
                             members > 1 ? ", times ensemble.members (or --members)," : "",
                             " must be at least as many"));
  }
  return result;
}

}  // namespace

void check_placement(const Configuration& configuration, const SampleSource& data, Communicator& world,
                     const MemoryRoom& room, bool trains) {
  const Statistics neutral = neutral_statistics(data.channels().inputs);
  refuse_harmonics(configuration.model.to_json(), data.grid());
  const std::int64_t labels = configuration.data.label_outputs();
  const std::int64_t outputs = labels > 0 ? labels : std::ssize(data.channels().targets);
  const std::unique_ptr<Model> model =
      build_trained(configuration.model, describe(data, outputs, neutral, configuration.ensemble));
  const std::unique_ptr<Mesh> mesh = make_mesh(configuration, data, *model, world);
  const TrainOptions& train = configuration.train;
  // Of forecasts one may be all that is asked for.
  check_memory(least_memory(*model, *mesh, configuration, types_of(train.precision),
                            trains ? train.batch_size / train.accumulate : 1, trains),
               configuration, room, trains);
}

PlacedModel::PlacedModel(const Configuration& configuration, Objective& objective, Communicator& world,
                         const CostModel& costs, const std::vector<BlockPlan>& known)
    : types_(types_of(configuration.train.precision)),
      zero_(to_json(configuration).at("zero")),
      samples_(configuration.train.batch_size / configuration.train.accumulate),
      plans_(costs) {
  // A block like one that is in the book takes its plan, whatever their names.
  for (const BlockPlan& plan : known) plans_.add("known: " + plan.path, plan.entry);
  const SampleSource& data = objective.data();
  model_ = build_trained(configuration.model, describe(data, objective.output_channels(), data.statistics(),
                                                       configuration.ensemble));
  model_->set_recompute(configuration.train.recompute == Recompute::kBlock);
  mesh_ = make_mesh(configuration, data, *model_, world);
  rank_ = std::make_unique<Rank>(Rank{world.context(), *mesh_});
  const int rollout = std::max(configuration.train.rollout.most(), configuration.validation_rollout());
  forecaster_ =
      std::make_unique<Forecaster>(*model_, data.channels(), data.statistics(), configuration, rollout);
  plan_and_materialise(*model_, *rank_, plans_, forecasts(), configuration.zero, types_.master,
                       types_.compute, static_cast<std::uint64_t>(configuration.seed));
  forecaster_->plan(*rank_, plans_, samples_);
  supervision_ = std::make_unique<DeepSupervision>(*model_, objective.loss());
  supervision_->plan(*rank_, plans_, forecasts());
}

std::vector<BlockPlan> PlacedModel::block_plans() const {
  std::vector<std::string> paths;
  for (const ParameterBlock* block : model_->parameters()) paths.push_back(block->path());
  for (const char* path : Forecaster::kBlocks) paths.emplace_back(path);
  for (const std::string& path : supervision_->blocks()) paths.push_back(path);
  std::vector<BlockPlan> plans;
  for (const std::string& path : paths) {
    if (plans_.has(path)) plans.push_back({path, plans_.at(path)});
  }
  return plans;
}

Box PlacedModel::input_box(std::int64_t samples) const {
  return forecaster_->data_box(*mesh_, samples);
}

Box PlacedModel::target_box(const Loss& loss, std::int64_t samples) const {
  return rank_->box(loss.target_layout(*mesh_, model_->output_layout(*mesh_, samples * members())));
}

Layout PlacedModel::compared_layout(std::int64_t samples) const {
  return members_together(*mesh_, model_->output_layout(*mesh_, samples * members()), {members(), samples_});
}

Layout PlacedModel::sample_layout(std::int64_t samples) const {
  return of_samples(compared_layout(samples), members());
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

}  // namespace jigsaw::inline task
