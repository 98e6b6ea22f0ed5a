#include "train/training_state.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <set>

#include "array/transfer.h"
#include "base/file_kind.h"
#include "base/text.h"
#include "comm/agreement.h"
#include "config/config.h"
#include "kernels/copy.h"
#include "kernels/pointwise.h"
#include "optim/registry.h"
#include "train/changed_channels.h"
#include "train/changed_data.h"
#include "train/model_parameters.h"

namespace jigsaw::inline train {
namespace {

constexpr const char* kParameters = "parameters/";
constexpr std::int64_t kMostSkipped = std::numeric_limits<int>::max();
/// Names that a report lists of each kind.
constexpr std::size_t kMostNames = 5;

std::string list(const std::vector<std::string>& names) {
  const std::size_t shown = std::min(names.size(), kMostNames);
  const std::vector<std::string> first(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown));
  return concat(" (", join(first, ", "), names.size() > shown ? ", …" : "", ")");
}

bool matches_any(const std::string& name, const std::vector<std::string>& patterns) {
  return std::ranges::any_of(patterns, [&](const auto& pattern) { return matches_pattern(name, pattern); });
}

void check_patterns(const std::vector<const Parameter*>& parameters, const std::vector<std::string>& skip) {
  for (std::size_t i = 0; i < skip.size(); ++i) {
    if (std::ranges::none_of(parameters, [&](const auto* p) { return matches_pattern(p->name(), skip[i]); }))
      throw ConfigError(
          concat("init.skip[", i, "] \"", skip[i], "\" matches no parameter; their names begin with \"",
                 parameters.front()->name(), "\" and end with \"", parameters.back()->name(), "\""));
  }
}

/// What is read of a checkpoint whose model has no noise: of pieces of parameters that it has without their
/// slices of noise, what there is, into arrays apart; and the other pieces as they are.
class ReadWithoutNoise {
 public:
  /// @param extended  those parameters, by tensor.
  ReadWithoutNoise(Context& context, const std::vector<CheckpointPiece>& pieces,
                   const std::map<std::string, const Parameter*>& extended)
      : context_(context) {
    for (const CheckpointPiece& piece : pieces) {
      const auto parameter = extended.find(piece.tensor);
      if (parameter == extended.end()) {
        wanted_.push_back(piece);
      } else {
        add(piece, *parameter->second);
      }
    }
  }

  const std::vector<CheckpointPiece>& wanted() const { return wanted_; }

  /// Once they are read: the pieces become what there was, and zero where there is noise.
  void spread() const {
    for (const Extended& each : extended_) {
      const Array& to = each.piece.array;
      Array whole = filled(context_, each.piece.box.extent, to.dtype(), 0.0, Purpose::kWorkspace);
      for (const std::size_t part : each.parts) {
        const auto& [box, array] = parts_[part];
        copy_box(context_, array, Box::whole(box.extent), whole, relative_to(box, each.piece.box));
      }
      Array target = to;
      copy_elements(context_, whole, 0, target, 0, to.count());
    }
  }

 private:
  struct Part {
    Box box;  ///< in the parameter with noise
    Array array;
  };
  struct Extended {
    CheckpointPiece piece;
    std::vector<std::size_t> parts;
  };

  void add(const CheckpointPiece& piece, const Parameter& parameter) {
    const auto& [dim, range] = parameter.noise();
    Box noise = Box::whole(parameter.shape());
    noise.begin[dim] = range.begin;
    noise.extent[dim] = range.size();
    const Box inner = intersect(piece.box, noise);
    Extended& each = extended_.emplace_back(Extended{piece, {}});
    for (const Box& box : inner.empty() ? std::vector{piece.box} : around(piece.box, inner)) {
      if (box.empty()) continue;
      const Array array(context_, box.extent, piece.array.dtype(), Purpose::kWorkspace);
      Box there = box;
      if (box.begin[dim] >= range.end) there.begin[dim] -= range.size();
      wanted_.push_back({piece.tensor, parameter.shape_without_noise(), there, array});
      each.parts.push_back(parts_.size());
      parts_.push_back({box, array});
    }
  }

  Context& context_;
  std::vector<CheckpointPiece> wanted_;
  std::vector<Part> parts_;
  std::vector<Extended> extended_;
};

std::vector<const Parameter*> parameters_of(const std::vector<ParameterBlock*>& blocks) {
  std::vector<const Parameter*> result;
  for (const ParameterBlock* block : blocks) {
    for (const auto& parameter : block->parameters()) result.push_back(parameter.get());
  }
  return result;
}

}  // namespace

std::vector<CheckpointPiece> checkpoint_pieces(const Optimizer& optimizer, Optimizer::Share share) {
  std::vector<CheckpointPiece> pieces;
  for (const Optimizer::State& state : optimizer.state(share))
    append_pieces(state.kind, state.segment, state.array, pieces);
  return pieces;
}

std::vector<TensorRecord> expected_tensors(const std::vector<ParameterBlock*>& blocks, DType master,
                                           const std::vector<std::string>& kinds) {
  std::vector<TensorRecord> tensors;
  for (const std::string& kind : kinds) {
    for (const Parameter* parameter : parameters_of(blocks)) {
      tensors.push_back({concat(kind, "/", parameter->name()), master, parameter->shape()});
    }
  }
  return tensors;
}

Json layouts_json(const std::vector<ParameterBlock*>& blocks, const Mesh& mesh) {
  Json layouts = Json::object();
  for (const Parameter* parameter : parameters_of(blocks)) {
    std::vector<std::string> placements;
    for (int axis = 0; axis < mesh.shape().axes; ++axis)
      placements.push_back(parameter->compute_layout().placements[axis].to_string());
    layouts[parameter->name()] = join(placements, " ");
  }
  return layouts;
}

std::string initialise_from(const FoundCheckpoint& found, const std::vector<ParameterBlock*>& blocks,
                            Optimizer& optimizer, const std::vector<std::string>& skip, Communicator& world) {
  const std::vector<const Parameter*> parameters = parameters_of(blocks);
  check_patterns(parameters, skip);
  std::set<std::string> matched, known;
  std::map<std::string, const Parameter*> extended;  // by tensor: the checkpoint has them without noise
  std::vector<std::string> with_noise, skipped, absent, unused;
  for (const Parameter* parameter : parameters) {
    const std::string& name = parameter->name();
    const std::string tensor = kParameters + name;
    const TensorRecord* stored = found.stored.find(tensor);
    known.insert(tensor);
    if (matches_any(name, skip)) {
      skipped.push_back(name);
    } else if (stored == nullptr) {
      absent.push_back(name);
    } else if (stored->shape == parameter->shape()) {
      matched.insert(tensor);
    } else if (stored->shape == parameter->shape_without_noise()) {
      matched.insert(tensor);
      extended.emplace(tensor, parameter);
      with_noise.push_back(name);
    } else {
      throw CheckpointError(concat("the parameter \"", name, "\" has the shape ", stored->shape, " in ",
                                   found.path, " and ", parameter->shape(),
                                   " in this model; list it in init.skip to initialise it anew"));
    }
  }
  for (const TensorRecord& tensor : found.stored.tensors) {
    if (tensor.name.starts_with(kParameters) && !known.contains(tensor.name))
      unused.push_back(tensor.name.substr(std::string_view(kParameters).size()));
  }
  if (matched.empty() && !skipped.empty() && absent.empty())
    throw ConfigError("init.skip leaves none of the model's parameters to begin with; leave --init-from out");
  if (matched.empty()) {
    throw CheckpointError(concat("no parameter of this model is in the checkpoint ", found.path,
                                 unused.empty() ? "" : ", which holds", unused.empty() ? "" : list(unused)));
  }
  std::vector<CheckpointPiece> pieces = checkpoint_pieces(optimizer, Optimizer::Share::kHeld);
  std::erase_if(pieces, [&](const CheckpointPiece& piece) { return !matched.contains(piece.tensor); });
  const ReadWithoutNoise read(world.context(), pieces, extended);
  read_pieces(found, read.wanted(), world);
  read.spread();
  std::string report =
      concat("initialised ", matched.size(), " of ", parameters.size(), " parameters from ", found.path);
  if (!with_noise.empty())
    report += concat("; ", with_noise.size(), " extended by weights of noise, which begin at zero",
                     list(with_noise));
  if (!skipped.empty()) report += concat("; ", skipped.size(), " skipped", list(skipped));
  if (!absent.empty()) report += concat("; ", absent.size(), " not there", list(absent));
  if (!unused.empty()) report += concat("; ", unused.size(), " there not in this model", list(unused));
  if (found.stored.find_group("average") != nullptr)
    report +=
        "; they are those of its last step, and not their moving average, which export --average writes";
  return report;
}

namespace {

/// Keys that are others than those of the run that is to be resumed, and may not be.
std::vector<std::string> forbidden_changes(const Json& before, const Configuration& now) {
  const Keys<Configuration> keys = keys_of<Configuration>();
  std::vector<std::string> changed = changed_keys(with_new_keys(before), keys.write(now));
  std::erase_if(changed, [&](const std::string& key) { return may_change(keys, key); });
  return changed;
}

}  // namespace

void require_same_keys(const Json& before, const Configuration& now) {
  const std::vector<std::string> changed = forbidden_changes(before, now);
  if (changed.empty()) return;
  throw ConfigError(
      concat(change_text(with_new_keys(before), to_json(now), changed.front()),
             " differs from the run that is to be resumed; set it back, start anew with --resume "
             "never, or pass --allow-change"));
}

std::optional<std::string> inputs_remark(const FoundCheckpoint& found, const Configuration& configuration) {
  static constexpr std::array kKeys = {"data.regrid", "data.spacing", "data.intensity", "data.intensities",
                                       "data.percentiles"};
  const Json& extra = found.stored.manifest.extra;
  if (!extra.is_object() || !extra.contains("configuration")) return std::nullopt;
  for (const std::string& key :
       changed_keys(with_new_keys(extra.at("configuration")), to_json(configuration))) {
    // Another grid that is named is meant, or is the same one in other words.
    if (key.starts_with("data.regrid.latitude") || key.starts_with("data.regrid.longitude")) continue;
    if (std::ranges::any_of(kKeys, [&](const char* begin) { return key.starts_with(begin); }))
      return concat(key, " differs from that which ", found.path,
                    " was trained with: its model is given other inputs of the same files");
  }
  return std::nullopt;
}

TrainingState::TrainingState(OpenedRun& run, Optimizer& optimizer, Log& log)
    : run_(run), optimizer_(optimizer), log_(log) {}

void TrainingState::count(std::int64_t step, bool skipped) {
  steps_done_ = step;
  skipped_in_row_ = skipped ? skipped_in_row_ + 1 : 0;
}

/// @param extra  of the checkpoint of the run that is to be resumed.
void TrainingState::check_data(const Json& extra) const {
  const std::optional<DataChange> change = changed_data(extra, run_.data());
  if (!change) return;
  const auto normalization = [](const Json& keys) {
    const Json data = keys.value("data", Json::object());
    return data.is_object() ? data.value("normalization", Json()) : Json();
  };
  const bool of_another_file =
      change->key == "statistics" &&
      normalization(extra.at("configuration")) != normalization(to_json(run_.configuration()));
  throw ConfigError(concat(of_another_file ? "data.normalization" : "data.files", ": the ", change->key,
                           of_another_file ? "" : " of the training data",
                           " differ from those of the run that is to be resumed",
                           change->detail.empty() ? "" : concat(" (", change->detail, ")"), "; ",
                           of_another_file ? "set it back" : "use its files",
                           ", start anew with --resume never, or pass --allow-change"));
}

void TrainingState::restore(const FoundCheckpoint& found, bool allow_change) {
  const CheckpointManifest& manifest = found.stored.manifest;
  std::int64_t optimizer_steps = 0;
  Json configuration;
  try {
    configuration = manifest.extra.at("configuration");
    optimizer_steps = read_count(manifest.extra.at("optimizer").at("steps"), manifest.step);
    skipped_in_row_ = static_cast<int>(read_count(manifest.extra.at("skipped"), kMostSkipped));
    manifest.extra.at("data");
    const Json& sampler = manifest.extra.at("sampler");
    const std::int64_t samples = read_count(sampler.at("samples"));
    const std::int64_t batch = read_count(configuration.at("train").at("batch_size"));
    SamplesSeen seen;
    // Earlier versions do not write it.
    if (sampler.contains("before"))
      seen = {read_count(sampler.at("before").at("steps"), manifest.step),
              read_count(sampler.at("before").at("samples"), samples)};
    const std::int64_t since = samples - seen.samples;
    if (batch < 1 || since % batch != 0 || since / batch != manifest.step - seen.steps)
      fail("its step is not that of its sampler");
    seen_ = batch == run_.configuration().train.batch_size ? seen : SamplesSeen{manifest.step, samples};
  } catch (const Json::exception&) {
    throw CheckpointError(concat("the checkpoint ", found.path,
                                 " lacks what a training run writes; --init-from takes its parameters"));
  } catch (const Error& error) {
    throw CheckpointError(concat("the checkpoint ", found.path, " cannot be resumed from: ", error.what()));
  }
  if (!allow_change) {
    require_same_keys(configuration, run_.configuration());
    check_data(manifest.extra);
  }
  load(found, allow_change);
  if (allow_change) tell_changes(found);
  tell_allowed(configuration);
  optimizer_.restore(optimizer_steps);
  steps_done_ = manifest.step;
  log_.info(concat("resumed from ", found.path, " at step ", manifest.step));
}

/// Which keys that may change have done so, for a log that is read when all else is forgotten.
void TrainingState::tell_allowed(const Json& configuration) {
  constexpr std::size_t kMost = 8;
  const Keys<Configuration> keys = keys_of<Configuration>();
  const Json before = with_new_keys(configuration), now = keys.write(run_.configuration());
  std::vector<std::string> changes;
  bool scores = false;
  for (const std::string& key : changed_keys(before, now)) {
    if (!may_change(keys, key)) continue;
    changes.push_back(change_text(before, now, key));
    scores = scores ||
             (key.starts_with("validation.") && key != "validation.every" && key != "validation.patience") ||
             key == "data.valid";
  }
  if (changes.empty()) return;
  const std::size_t more = changes.size() - std::min(changes.size(), kMost);
  changes.resize(changes.size() - more);
  log_.info(concat("from here on other than before: ", join(changes, ", "),
                   more == 0 ? "" : concat(" and ", more, " more")));
  if (scores && !run_.configuration().checkpoint.best.empty()) {
    told_other_validations_ = true;
    log_.warn(concat("validations are others than before, and ", kScoresCompared));
  }
}

void TrainingState::tell_changes(const FoundCheckpoint& found) {
  const Json& extra = found.stored.manifest.extra;
  std::vector<std::string> changed = forbidden_changes(extra.at("configuration"), run_.configuration());
  if (const std::optional<DataChange> change = changed_data(extra, run_.data())) {
    changed.push_back(concat("the ", change->key, " of the training data",
                             change->detail.empty() ? "" : concat(" (", change->detail, ")")));
  }
  if (!changed.empty())
    log_.warn(concat("--allow-change: from here on other than before: ", join(changed, ", ")));
  const std::optional<GivenStatistics> before = statistics_of(found.stored, found.path);
  const std::string other = before ? largest_change(before->statistics, run_.data().statistics()) : "";
  if (!other.empty()) {
    log_.warn(
        concat("--allow-change: variables are normalised otherwise than the parameters were trained "
               "with, most of all ",
               other, "; --set data.normalization=", shell_word(found.path),
               " goes on with the statistics of the checkpoint"));
  } else if (!run_.statistics_from().empty()) {
    log_.info(
        concat("--allow-change: the statistics stay those of the checkpoint, whatever the training "
               "data are now; ",
               run_.configuration().data.normalization ? "a file that data.normalization names"
                                                       : "data.normalization \"auto\"",
               " gives others"));
  }
}

void TrainingState::load(const FoundCheckpoint& found, bool allow_change) {
  const PlacedModel& placed = run_.placed();
  std::vector<std::string> kinds = optimizer_.kinds();
  // An average that a changed configuration asks for begins with the parameters.
  const bool begins =
      allow_change && kinds.back() == "average" && found.stored.find_group("average") == nullptr;
  if (begins) kinds.pop_back();
  check_tensors(found, expected_tensors(placed.model().parameters(), placed.types().master, kinds));
  std::vector<CheckpointPiece> pieces = checkpoint_pieces(optimizer_, Optimizer::Share::kHeld);
  for (CheckpointPiece& piece : pieces) {
    const std::string_view kind = "average/";
    if (begins && piece.tensor.starts_with(kind)) piece.tensor.replace(0, kind.size(), "parameters/");
  }
  std::int64_t bytes = 0;
  together(run_.world(), [&] { bytes = read_pieces(found, pieces, run_.world()); });
  log_.info(concat("rank 0 verified ", human_bytes(found.verified_bytes), " of the checkpoint and loaded ",
                   human_bytes(bytes), "; it was saved on the mesh ", found.stored.manifest.mesh.dump()));
}

void TrainingState::initialise(const FoundCheckpoint& found) {
  std::string report;
  together(run_.world(), [&] {
    report = initialise_from(found, run_.placed().model().parameters(), optimizer_,
                             run_.configuration().init.skip, run_.world());
  });
  optimizer_.restart();
  log_.info(report);
  const std::string changed = changed_channels(found.stored.manifest.extra, run_.data().channels(),
                                               run_.configuration().data, run_.configuration().ensemble);
  if (!changed.empty())
    log_.warn(concat("the parameters of ", found.path,
                     " were trained on other channels and are taken as they are: ", changed));
}

Json TrainingState::manifest_extra(std::int64_t total_steps) const {
  const Configuration& configuration = run_.configuration();
  const std::int64_t samples = seen_.in(steps_done_, configuration.train.batch_size);
  const double rate = optimizer_.options().learning_rate;
  const std::int64_t epoch = run_.data().count(Split::kTrain);
  Json extra = {
      {"configuration", to_json(configuration)},
      {"seed", configuration.seed},
      {"sampler",
       {{"samples", samples},
        {"epoch", samples / epoch},
        {"position", samples % epoch},
        {"before", {{"steps", seen_.steps}, {"samples", seen_.samples}}}}},
      {"schedule",
       {{"steps", total_steps},
        {"learning_rate",
         rate * make_schedule(configuration.schedule, rate)->factor(steps_done_, total_steps)}}},
      {"optimizer", {{"steps", optimizer_.steps_done()}, {"ema_decay", optimizer_.options().ema_decay}}},
      {"skipped", skipped_in_row_},
      {"layouts", layouts_json(run_.placed().model().parameters(), run_.placed().mesh())},
      {"statistics", Json::parse(run_.data().statistics().to_text())},
      {"data", data_fingerprint(run_.data())}};
  if (const auto* forecasts = dynamic_cast<const Dataset*>(&run_.data()))
    extra["calendar"] = name(forecasts->files().file_calendar());
  if (!run_.statistics_from().empty()) extra["statistics_from"] = run_.statistics_from();
  return extra;
}

}  // namespace jigsaw::inline train
