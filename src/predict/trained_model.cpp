#include "predict/trained_model.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/text.h"
#include "comm/agreement.h"
#include "config/config.h"
#include "files/digest.h"
#include "task/grid_warnings.h"
#include "train/model_parameters.h"
#include "train/training_state.h"

namespace jigsaw::inline predict {

namespace {

/// Whether two models with these keys are two functions. Which files, periods and points are read does not
/// make them so, nor what only training does.
bool decides_function(const std::string& key) {
  static constexpr std::array kData = {"variables",         "diagnostic",  "static",      "forcings",
                                       "forcing_variables", "masks",       "task",        "targets",
                                       "classes",           "labels",      "regions",     "fill",
                                       "transforms",        "clamp",       "predict",     "vector_components",
                                       "lead_hours",        "noise_sigma", "spacing",     "input_hours",
                                       "boundary_width",    "intensity",   "percentiles", "input_steps",
                                       "lead_steps",        "intensities", "missing",     "deaccumulate"};
  for (const char* own : {".files", ".data_set", ".times"})
    if (key.starts_with("data.") && key.find(own) != std::string::npos) return false;
  if (key == "ensemble.local_noise" || key == "ensemble.global_noise") return true;
  if (key.starts_with("model")) return !key.ends_with("dropout") && !key.ends_with("drop_path");
  return std::ranges::any_of(kData, [&](std::string_view name) {
    const std::string whole = concat("data.", name);
    return key == whole || key.starts_with(whole + "[") || key.starts_with(whole + ".");
  });
}

/// With each variable in full, of which one may have been a name alone: so single keys of it are compared.
Json with_variables_in_full(Json configuration) {
  for (const char* list : {"variables", "diagnostic", "static", "forcing_variables"}) {
    if (!configuration.at("data").contains(list) || !configuration.at("data").at(list).is_array()) continue;
    for (Json& variable : configuration.at("data").at(list)) {
      if (variable.is_string())
        variable = section<VariableOptions>()->write(VariableOptions{variable.get<std::string>(), {}});
    }
  }
  return configuration;
}

void check_configuration(const FoundCheckpoint& found, const Configuration& configuration) {
  const Json& extra = found.stored.manifest.extra;
  if (!extra.is_object() || !extra.contains("configuration")) return;
  if (!extra.at("configuration").is_object())
    throw CheckpointError(concat("the checkpoint ", found.path, " lacks what a training run writes"));
  const Json there = with_variables_in_full(with_new_keys(extra.at("configuration"))),
             here = with_variables_in_full(to_json(configuration));
  const auto of_months = [](const Json& keys) { return keys.at("data").at("time_step") == "month"; };
  for (const std::string& key : changed_keys(there, here)) {
    const bool other_times = key == "data.time_step" && of_months(there) != of_months(here);
    if (!decides_function(key) && !other_times) continue;
    throw CheckpointError(concat("the checkpoint ", found.path,
                                 " is of another model than the configuration: ", key,
                                 " differs; use the configuration that it was trained with"));
  }
}

/// Two models that differ in such a key are one function, of other grids.
bool decides_grid(const std::string& key) {
  static constexpr std::array kKeys = {"data.every", "data.region", "data.regrid"};
  return std::ranges::any_of(kKeys, [&](std::string_view name) { return key.starts_with(name); });
}

/// place_warnings() of what a checkpoint was trained with.
std::vector<std::string> places_elsewhere(const FoundCheckpoint& found, const SampleSource& data) {
  const Json& extra = found.stored.manifest.extra;
  const auto trained = order_of(extra.is_object() ? extra.value("data", Json()) : Json());
  return trained ? place_warnings(data, *trained, found.path) : std::vector<std::string>();
}

/// Where weights have extents of the grid, as those of mixers, it must be that of training, and where no
/// target in the files says what it is.
void check_grid(const FoundCheckpoint& found, const std::string& kind, OpenedRun& run) {
  const std::vector<TensorRecord> wanted =
      expected_tensors(run.placed().model().parameters(), DType::kFloat32, {kind});
  const bool fits = std::ranges::all_of(wanted, [&](const TensorRecord& tensor) {
    const TensorRecord* stored = found.stored.find(tensor.name);
    return stored == nullptr || stored->shape == tensor.shape;
  });
  const Json& extra = found.stored.manifest.extra;
  const auto* fields = dynamic_cast<const Dataset*>(&run.data());
  const bool known = fields == nullptr || fields->grid_of_targets();
  if ((fits && known) || !extra.is_object() || !extra.contains("configuration") || !extra.contains("data"))
    return;
  const Shape shape = run.data().grid().shape();
  const Json here = std::vector<std::int64_t>(shape.begin(), shape.end());
  const Json there = extra.at("data").is_object() ? extra.at("data").value("grid", here) : here;
  if (there == here) {
    const std::vector<std::string> elsewhere = places_elsewhere(found, run.data());
    if (!fits && !elsewhere.empty())
      throw CheckpointError(
          concat("the checkpoint ", found.path, " does not fit the data: ", elsewhere.front()));
    return;
  }
  std::string advice =
      known ? "use files on the grid that it was trained on"
            : "these files hold no target, whose grid is the model's: add one that does, or name "
              "the grid by data.regrid.latitude and longitude";
  for (const std::string& key :
       changed_keys(with_new_keys(extra.at("configuration")), to_json(run.configuration()))) {
    if (!decides_grid(key)) continue;
    advice = concat(key, " differs; use the configuration that it was trained with");
    break;
  }
  throw CheckpointError(concat("the checkpoint ", found.path, " is of a grid of ", there.dump(),
                               " points, and the data have ", here.dump(), "; ", advice));
}

/// Days of another calendar are other times of the year.
std::optional<std::string> calendar_remark(const FoundCheckpoint& found, const Dataset& data) {
  const Json& extra = found.stored.manifest.extra;
  if (!extra.is_object() || !extra.contains("calendar") || !extra.at("calendar").is_string())
    return std::nullopt;
  const std::string there = extra.at("calendar"), here = name(data.files().file_calendar());
  if (there == here) return std::nullopt;
  return concat("the files count in the calendar ", here, ", and those that ", found.path,
                " was trained with in ", there);
}

Json statistics_json(const FoundCheckpoint& found) {
  const Json& extra = found.stored.manifest.extra;
  return extra.is_object() ? extra.value("statistics", Json()) : Json();
}

/// data.train of the run that wrote a checkpoint; none where it does not say.
std::vector<DataPart> training_parts(const Json& extra) {
  if (!extra.is_object() || !extra.contains("configuration")) return {};
  try {
    return parse<Configuration>(with_new_keys(extra.at("configuration"))).data.train;
  } catch (const ConfigError&) {
    return {};
  }
}

/// The tensors that are asked for.
std::string kind_of(const FoundCheckpoint& found, Weights weights) {
  const bool averaged = found.stored.find_group("average") != nullptr;
  if (weights == Weights::kAverage && !averaged) {
    throw CheckpointError(concat("the checkpoint ", found.path,
                                 " holds no averaged weights, for optimizer.ema_decay was 0; leave --average "
                                 "out or set it to never"));
  }
  return averaged && weights != Weights::kParameters ? "average" : "parameters";
}

/// Of the digests of the pieces that are taken, which rank 0 knows: the same numbers, cut alike, have the
/// same one, whenever their files were written. Files say by their bytes when that was.
std::string digest_of_weights(const FoundCheckpoint& found, const std::string& kind) {
  std::vector<std::string> pieces;
  for (const ShardRecord& shard : found.stored.shards) {
    for (const PieceRecord& piece : shard.pieces) {
      if (piece.tensor.starts_with(kind + "/"))
        pieces.push_back(
            concat(piece.tensor, " ", piece.box.begin, " ", piece.box.extent, " ", piece.digest));
    }
  }
  if (pieces.empty()) return "";
  std::ranges::sort(pieces);
  return digest_of_text(join(pieces, "\n"));
}

}  // namespace

Weights parse_weights(const std::string& average) {
  if (average == "auto") return Weights::kAuto;
  if (average == "always") return Weights::kAverage;
  if (average == "never") return Weights::kParameters;
  throw ConfigError(concat("command line: --average must be auto, always or never, not ", average));
}

TrainedModel::TrainedModel(const Configuration& configuration, const std::filesystem::path& folder,
                           const std::string& checkpoint, Weights weights, const DataUse& use,
                           Communicator& world, Log& log) try {
  std::string first;  // the checkpoint that the run was opened with
  Json statistics;
  with_checkpoint(checkpoint, world, Verify::kBytes, [&](const FoundCheckpoint& found) {
    std::string kind;
    std::optional<GivenStatistics> given;
    together(world, [&] {
      check_configuration(found, configuration);
      kind = kind_of(found, weights);
      given = statistics_of(found.stored, found.path);
      if (run_ && statistics_json(found) != statistics) {
        throw CheckpointError(concat("the checkpoint ", first, " was removed, and ", found.path,
                                     ", which stands in its place, has other statistics; start again"));
      }
    });
    if (!run_) {
      first = found.path;
      statistics = statistics_json(found);
      open(configuration, folder, given, use, world);
    }
    load(found, kind, log);
  });
} catch (const CheckpointError& error) {  // alike on all ranks, see with_checkpoint()
  throw AgreedError(ExitCode::kCheckpoint, 0, error.what());
}

void TrainedModel::open(const Configuration& configuration, const std::filesystem::path& folder,
                        const std::optional<GivenStatistics>& given, const DataUse& use,
                        Communicator& world) {
  Configuration forward = configuration;
  forward.checkpoint.best.clear();  // there are no validations that could name it
  Opening opening;
  opening.given = given ? &*given : nullptr;
  opening.use = use;
  opening.cache = cache_folder();
  run_ = std::make_unique<OpenedRun>(forward, folder, world, opening);
}

void TrainedModel::load(const FoundCheckpoint& found, const std::string& kind, Log& log) {
  path_ = found.path;
  step_ = found.stored.manifest.step;
  digest_ = digest_of_weights(found, kind);
  const PlacedModel& placed = run_->placed();
  together(run_->world(), [&] { check_grid(found, kind, *run_); });
  const std::int64_t bytes = load_parameters(found, placed.rank(), placed.model().parameters(), kind);
  description_ =
      concat(kind == "average" ? "averaged weights" : "weights", " of step ", step_, " of ", found.path);
  for (const std::string& warning : edge_warnings(run_->configuration().model.to_json(), run_->data()))
    log.warn(warning);
  for (const std::string& remark : run_->data().packing_remarks()) log.warn(remark);
  const Json& extra = found.stored.manifest.extra;
  trained_on_ = training_parts(extra);
  for (const std::string& warning : places_elsewhere(found, run_->data())) log.warn(warning);
  if (const auto remark = inputs_remark(found, run_->configuration())) log.warn(*remark);
  if (const auto* fields = dynamic_cast<const Dataset*>(&run_->data())) {
    if (const auto remark = calendar_remark(found, *fields)) log.warn(*remark);
    for (const std::string& remark : unit_remarks(fields->statistics(), fields->channels(), fields->files()))
      log.warn(remark);
  }
  log.info(concat("loaded ", description_, " (", human_bytes(bytes), " on rank 0) on the mesh ",
                  placed.description().dump()));
}

TrainedModels open_models(const Configuration& configuration, const std::filesystem::path& folder,
                          const std::vector<std::string>& checkpoints, Weights weights, const DataUse& use,
                          Communicator& world, Log& log) {
  TrainedModels models;
  for (const std::string& checkpoint : checkpoints) {
    models.emplace_back(configuration, folder, checkpoint, weights, use, world, log);
    together(world, [&] {
      const std::string& path = models.back().path();
      const auto place = [](const TrainedModel& model) {
        return std::filesystem::weakly_canonical(model.path());
      };
      if (std::ranges::count(models, place(models.back()), place) > 1)
        throw ConfigError(
            concat("command line: --checkpoint names ", path, " twice; predictions of each count once"));
    });
  }
  return models;
}

std::string description_of(const TrainedModels& models) {
  std::vector<std::string> descriptions;
  for (const TrainedModel& model : models) descriptions.push_back(model.description());
  return join(descriptions, "; ");
}

}  // namespace jigsaw::inline predict
