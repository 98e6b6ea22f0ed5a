#include "task/configuration.h"

#include <algorithm>
#include <functional>

#include "base/error.h"
#include "base/text.h"
#include "task/metric.h"

namespace jigsaw::inline task {

namespace {

// Far beyond what any machine runs at a time, so that sizes can be counted.
constexpr double kMostSamples = 1 << 30, kMostLeads = 10000;
constexpr int kMostRanks = 1 << 20;
constexpr double kMostMembers = 1024, kMostNoise = 1024, kMostScale = 1 << 20;

}  // namespace

int RolloutOptions::most() const {
  return leads.empty() ? max : *std::max_element(leads.begin(), leads.end());
}

int RolloutOptions::fewest() const {
  return leads.empty() ? min : *std::min_element(leads.begin(), leads.end());
}

int RolloutOptions::at(std::int64_t step, double draw) const {
  if (leads.empty()) return min + static_cast<int>(draw * (max - min + 1));
  const auto next = std::upper_bound(from.begin(), from.end(), step);
  return leads[static_cast<std::size_t>(std::max<std::ptrdiff_t>(next - from.begin() - 1, 0))];
}

double TrainOptions::lead_weight(int r, int leads) const {
  if (rollout_gradient == RolloutGradient::kLast) return r + 1 == leads ? 1.0 : 0.0;
  return rollout_weights.empty() ? 1.0 : rollout_weights[static_cast<std::size_t>(r)];
}

void declare(Keys<MeshOptions>& keys) {
  using O = MeshOptions;
  keys.add("data", &O::data)
      .at_least(1)
      .doc("Groups of ranks that train on samples of their own (data parallelism).");
  keys.add("domain", &O::domain)
      .at_least(1)
      .doc("Ranks along each spatial axis, [lat, lon] or [depth, height, width]; empty: not cut.");
  keys.add("tensor", &O::tensor).at_least(1).doc("Ranks that cut channels (tensor parallelism).");
  keys.check([](const O& o, const Place& at) {
    double ranks = static_cast<double>(o.data) * o.tensor;
    for (const int size : o.domain) ranks *= size;
    if (ranks > kMostRanks)
      at.error("data", concat("and the other axes make more than ", kMostRanks, " ranks"));
  });
}

void declare(Keys<RolloutOptions>& keys) {
  using O = RolloutOptions;
  const Condition drawn = here("leads").is(Json::array()), scheduled = here("leads").is_given();
  keys.add("min", &O::min).at_least(1).counts_where(drawn).doc("Fewest rollout steps.");
  keys.add("max", &O::max)
      .range(1, kMostLeads)
      .counts_where(drawn)
      .doc("Most rollout steps; each training step draws a number of its own.");
  keys.add("leads", &O::leads)
      .range(1, kMostLeads)
      .doc("Rollout steps by the number of the training step, such as [1, 2, 4]; []: between min and max.");
  keys.add("from", &O::from)
      .at_least(1)
      .counts_where(scheduled)
      .doc("The training steps from which each entry of leads holds, such as [1, 1001, 2001].")
      .must("begin with 1 and ascend", [](const auto& from) {
        return from.empty() || (from[0] == 1 && std::adjacent_find(from.begin(), from.end(),
                                                                   std::greater_equal<>()) == from.end());
      });
  keys.check([](const O& o, const Place& at) {
    if (o.max < o.min) at.error("max", "must be at least min");
    if (!o.leads.empty() && o.from.size() != o.leads.size())
      at.error("from", concat("must have one entry for each of leads, ", o.leads.size()));
  });
}

namespace {

FormPtr<RolloutOptions> rollout_form() {
  return shorthand<RolloutOptions, int>(
      section<RolloutOptions>(), form_of<int>(),
      [](const int& steps) {
        return RolloutOptions{steps, steps, {}, {}};
      },
      [](const RolloutOptions& o) {
        return o.leads.empty() && o.from.empty() && o.min == o.max ? std::optional(o.min) : std::nullopt;
      });
}

}  // namespace

void declare(Keys<TrainOptions>& keys) {
  using O = TrainOptions;
  keys.add("steps", &O::steps)
      .changeable()
      .range(1, kMostUpdates)
      .doc("Updates to make; null: as epochs says, or 1000 without it.");
  keys.add("epochs", &O::epochs)
      .changeable()
      .above(0)
      .doc("Passes over the training windows, in place of steps.");
  keys.add("batch_size", &O::batch_size).range(1, kMostSamples).doc("Samples per update, over all ranks.");
  keys.add("accumulate", &O::accumulate)
      .at_least(1)
      .doc(
          "Parts in which a batch is run, one after the other, to save memory; the update is the same "
          "but with batch_norm.");
  keys.choice("precision", &O::precision,
              {{"fp32", Precision::kFloat32, "float32 throughout."},
               {"bf16", Precision::kBfloat16,
                "bfloat16 activations; float32 master weights, optimizer and reductions."},
               {"fp64", Precision::kFloat64,
                "float64 on the reference kernels, for proofs; on the processor only."}})
      .doc("Type of activations and parameters.");
  keys.add("tf32", &O::tf32)
      .counts_where(where("device").is_one_of({"auto", "cuda"}) && here("precision").is("fp32"))
      .doc(
          "A GPU may round the factors of products and convolutions to TensorFloat-32, 11 bits in place of "
          "24, and is faster; sums stay float32. Results of meshes then agree to three digits rather than "
          "six.");
  keys.add("deterministic", &O::deterministic)
      .changeable()
      .counts_where(where("device").is_one_of({"auto", "cuda"}))
      .doc(
          "A GPU repeats each sum bit for bit, as the processor always does. false lets cuDNN add up "
          "gradients of attention and convolutions in any order: faster and in less memory, and runs then "
          "differ by rounding.");
  keys.add("graphs", &O::graphs)
      .changeable()
      .counts_where(where("device").is_one_of({"auto", "cuda"}))
      .doc(
          "A GPU runs steps that are alike as CUDA graphs, which the host does not put in anew; results are "
          "the same to the last bit. One more batch stands on the GPU.");
  keys.add("rollout", &O::rollout, rollout_form())
      .range(1, kMostLeads)
      .doc("Forecast steps that a training sample runs, each from the prediction before it.");
  keys.add("rollout_weights", &O::rollout_weights)
      .at_least(0)
      .counts_where(where("train.rollout").above(1) && here("rollout_gradient").is("all"))
      .doc("Weight of each lead in the loss; empty: all alike.");
  keys.choice("rollout_gradient", &O::rollout_gradient,
              {{"all", RolloutGradient::kAll, "Through all leads, each of which counts in the loss."},
               {"last", RolloutGradient::kLast,
                "Through the last lead, which alone counts in the loss; those before it run as in a "
                "forecast, and take no memory of activations."}})
      .counts_where(where("train.rollout").above(1))
      .doc("Where gradients of a rollout flow.");
  keys.choice(
          "recompute", &O::recompute,
          {{"none", Recompute::kNone, "Keep what backward needs."},
           {"block", Recompute::kBlock, "Keep only the inputs of blocks, and run each again in backward."}})
      .changeable()
      .doc("Trades memory of activations for time.");
  keys.add("max_skipped", &O::max_skipped)
      .at_least(0)
      .doc(
          "Steps in a row that may be skipped because loss or gradient is not finite; one more ends the "
          "run, and so does the last step where all were.");
  keys.check([](const O& o, const Place& at) {
    if (o.steps && o.epochs) at.error("epochs", "must not stand beside train.steps; give one of them");
    if (o.batch_size % o.accumulate != 0) {
      at.error("accumulate", concat("must divide train.batch_size, ", o.batch_size));
    }
    if (!o.rollout_weights.empty() && static_cast<int>(o.rollout_weights.size()) != o.rollout.most()) {
      at.error("rollout_weights", concat("must have one entry per rollout step, ", o.rollout.most()));
    }
    const auto shortest = o.rollout_weights.begin() +
                          std::min<std::ptrdiff_t>(o.rollout.fewest(), std::ssize(o.rollout_weights));
    if (!o.rollout_weights.empty() &&
        std::all_of(o.rollout_weights.begin(), shortest, [](double w) { return w == 0; })) {
      at.error("rollout_weights", concat("must hold a number above 0 among the first ", o.rollout.fewest(),
                                         ", for a step may run no more leads"));
    }
  });
}

void declare(Keys<EnsembleOptions>& keys) {
  using O = EnsembleOptions;
  keys.add("members", &O::members)
      .range(1, kMostMembers)
      .doc(
          "Forecasts of each sample that run at once, in training and validation; loss.type \"crps\" "
          "compares them with what came. Each takes the memory and the time of a sample of its own. "
          "predict and evaluate run as many, or --members.");
  keys.add("local_noise", &O::local_noise)
      .range(0, kMostNoise)
      .doc(
          "Channels that are added to the input, of standard normal numbers that differ from point to point, "
          "from member to member and from lead to lead.");
  keys.add("global_noise", &O::global_noise)
      .range(0, kMostNoise)
      .doc("The same with one number for all points of a field.");
  keys.check([](const O& o, const Place& at) {
    if (o.members > 1 && o.noise_channels() == 0)
      at.error("members", "is above 1, and its members would all be equal; set local_noise or global_noise");
  });
}

namespace {

/// Forecasts of fields on latitudes and longitudes.
Condition of_dates() {
  return where("data.task").is("forecast") && where("data.dims").is(Json::array());
}

}  // namespace

void declare(Keys<ValidationOptions>& keys) {
  keys.add("every", &ValidationOptions::every)
      .at_least(0)
      .doc("Steps between validations, which also run after the last step; 0: never.");
  keys.add("overlap", &ValidationOptions::overlap)
      .at_least(0)
      .counts_where(where("data.task").is_one_of({"denoise", "map"}))
      .idle_unless(here("every").above(0))
      .doc(
          "Points by which the tiles that cover a validation part of images overlap at least, per spatial "
          "axis; each point is scored in the tile whose border is farthest. []: 0.");
  keys.add("peak", &ValidationOptions::peak, auto_or<double>())
      .above(0)
      .counts_where(where("data.task").is_one_of({"denoise", "map"}) && where("data.classes").is(0))
      .idle_unless(here("every").above(0))
      .doc(
          "The peak of PSNR of images, in the target's unit; \"auto\": the largest less the smallest value "
          "of "
          "the target in the validation parts, as in evaluate.");
  keys.add("rollout", &ValidationOptions::rollout)
      .at_least(1)
      .doc("Forecast steps that a validation runs; null: as many as train.rollout at most.");
  keys.add("patience", &ValidationOptions::patience)
      .at_least(0)
      .counts_where(where("checkpoint.best").is_given())
      .idle_unless(here("every").above(0))
      .doc(
          "The training ends, as after its last step, when so many validations in a row did not improve "
          "checkpoint.best (early stopping); 0: it does not.");
  keys.add("climatology", &ValidationOptions::climatology)
      .counts_where(of_dates())
      .idle_unless(here("every").above(0))
      .doc(
          "Score the climatology of data.train beside forecasts; the run reads the training data once more "
          "for it.");
  keys.add("thresholds", &ValidationOptions::thresholds)
      .counts_where(of_dates())
      .doc(
          "Thresholds of variables or fields, in the unit of the files, by which evaluate scores how "
          "forecasts tell where values reach them: {\"tp\": [0.1, 1, 5]}. Each list ascends. "
          "evaluate --threshold takes others.");
  keys.add("fss_scales", &ValidationOptions::fss_scales)
      .range(1, kMostScale)
      .counts_where(of_dates() && here("thresholds").is_given())
      .doc(
          "Neighbourhoods of the fractions skill score of evaluate, at each of the thresholds: how many "
          "points their edges are long, odd numbers that ascend, such as [1, 5, 21]. evaluate --fss-scales "
          "takes others.");
  keys.check([](const ValidationOptions& o, const Place& at) {
    for (const auto& [name, values] : o.thresholds) {
      if (values.empty() || !std::ranges::is_sorted(values, std::less_equal<>()))
        at.error("thresholds", concat("must give ", name, " one or more numbers, each above the one before"));
    }
    const bool odd = std::ranges::all_of(o.fss_scales, [](std::int64_t scale) { return scale % 2 == 1; });
    if (!odd || !std::ranges::is_sorted(o.fss_scales, std::less_equal<>()))
      at.error("fss_scales", "must be odd numbers of points, each above the one before, such as [1, 5, 21]");
  });
}

void declare(Keys<CheckpointOptions>& keys) {
  using O = CheckpointOptions;
  keys.add("every", &O::every)
      .at_least(0)
      .doc("Steps between checkpoints, one of which is also written after the last step; 0: none.");
  keys.add("minutes", &O::minutes)
      .at_least(0)
      .idle_unless(here("every").above(0))
      .doc("Minutes since the last checkpoint after which a step is saved, too; 0: every alone counts.");
  keys.add("keep", &O::keep)
      .at_least(1)
      .idle_unless(here("every").above(0))
      .doc("How many of the newest checkpoints are kept.");
  keys.add("keep_every", &O::keep_every)
      .at_least(0)
      .idle_unless(here("every").above(0))
      .doc("Checkpoints whose step is a multiple of this are kept for good; 0: none.");
  keys.add("best", &O::best)
      .counts_where(here("every").above(0))
      .doc(
          "A number of the validation, such as loss, t2m.rmse, or of classes mask.foreground_dice and "
          "mask.dice.1: a checkpoint is written after each "
          "validation that improves it, and the best one is kept and named by the file best; empty: none. "
          "t2m.rmse is of the first lead; leads.24.t2m.rmse of a later one, by its name in metrics.jsonl: "
          "hours, of sequences steps.");
  keys.choice("best_is", &O::best_is, best_is_choices())
      .idle_unless(here("best").is_given())  // earlier versions wrote "lowest" beside none
      .doc("Which value of checkpoint.best is best.");
}

void declare(Keys<InitOptions>& keys) {
  keys.add("skip", &InitOptions::skip)
      .doc("Patterns of parameter names, with * for any characters, that --init-from leaves as initialised.");
}

namespace {

/// Whether several groups of ranks may train on samples of their own, as "auto" may let them.
bool has_data_axis(const Json& root, const Json& /*section*/) {
  const auto mesh = root.find("mesh");
  return mesh == root.end() || !mesh->is_object() || mesh->value("data", 1) > 1;
}

}  // namespace

void declare(Keys<Configuration>& keys) {
  using O = Configuration;
  keys.check([](const O& o, const Place& at) {
    make_schedule(o.schedule, common_options(o.optimizer).learning_rate);  // throws where they do not fit
    if (o.device == DeviceChoice::kCuda && o.train.precision == Precision::kFloat64) {
      at.error("device",
               "must be \"auto\" or \"cpu\" where train.precision is \"fp64\", which runs on the processor");
    }
    const std::vector<std::string> targets = o.data.target_names();
    for (const auto& [name, values] : o.validation.thresholds) {
      if (o.data.of_images() || std::ranges::find(targets, name) != targets.end()) continue;
      at.error("validation.thresholds",
               concat("names ", name, ", which is no target", did_you_mean(name, targets),
                      "; known: ", join(targets, ", ")));
    }
    // Of images these keys are void, which is said of them.
    const bool compares_members = has_crps(o.loss), of_fields = !o.data.of_images() && !o.data.of_sequences();
    if (compares_members && o.data.of_sequences())
      at.error("loss",
               "has a term \"crps\", which compares members, and there are none where data.dims is given");
    if (compares_members && o.ensemble.members < 2 && of_fields)
      at.error("loss", "has a term \"crps\", which compares members; set ensemble.members to 2 or more");
    if (!compares_members && o.ensemble.members > 1 && of_fields) {
      at.error("ensemble.members",
               concat("is ", o.ensemble.members,
                      ", and the loss has no term \"crps\" of a weight above 0, so that members "
                      "would learn to be equal"));
    }
  });
  keys.add("name", &O::name).changeable().doc("What people call the run.");
  keys.add("seed", &O::seed).at_least(0).doc("Of all random numbers.");
  keys.add("mesh", &O::mesh, auto_or<MeshOptions>())
      .changeable()
      .doc(
          "How ranks cut the work; \"auto\": as a step takes least time by the model of `plan`, on as many "
          "ranks as were started and within their memory (forecasts and scores: the domain).");
  keys.choice("zero", &O::zero,
              {{"none", Zero::kNone, "Groups along data hold equal parameters and optimizer state."},
               {"optimizer", Zero::kOptimizer, "The optimizer's state is cut over data (ZeRO-1)."},
               {"parameters", Zero::kParameters, "Parameters and gradients too (ZeRO-3)."}})
      .changeable()
      .idle_unless({"mesh.data is above 1", has_data_axis})
      .doc("What is cut over data as well.");
  keys.choice("device", &O::device,
              {{"auto", DeviceChoice::kAuto,
                "A GPU for each rank where the build has CUDA, the machine a GPU, and train.precision is not "
                "\"fp64\"; else the processor."},
               {"cpu", DeviceChoice::kCpu, "The processor."},
               {"cuda", DeviceChoice::kCuda,
                "A GPU for each rank of a machine; needs a build with CUDA. Compiled, never run on a GPU."}})
      .changeable()
      .doc("What computes.");
  keys.choice("reduction", &O::reduction,
              {{"ordered", Reduction::kOrdered,
                "In one order, so that runs repeat, and on one node every transport gives the same bits."},
               {"fast", Reduction::kFast, "Between GPUs in the order that NCCL finds fastest."}})
      .changeable()
      .counts_where(where("device").is_one_of({"auto", "cuda"}))
      .doc("How sums over ranks are added.");
  keys.add("machine", &O::machine, auto_or<MachineOptions>())
      .changeable()
      .doc(
          "What each rank does in a second; decides in how many messages data travels, and no result. "
          "\"auto\": measured when the run begins, and kept in machine.json of the run directory.");
  keys.add("watchdog_seconds", &O::watchdog_seconds)
      .changeable()
      .at_least(0)
      .doc(
          "Without progress of any rank for so long, a job says which rank waits where and ends; so it does "
          "where a "
          "GPU's driver does not answer for so long when the run begins; 0: never.");
  keys.add("data", &O::data).required().doc("Files and what is made of them.");
  keys.tagged("model", &O::model, model_types).required().doc("The network.");
  keys.tagged("loss", &O::loss, loss_types).doc("What training minimises.");
  keys.tagged("optimizer", &O::optimizer, optimizer_types).doc("How parameters are updated.");
  keys.tagged("schedule", &O::schedule, schedule_types).changeable().doc("How the learning rate changes.");
  keys.add("train", &O::train).doc("Length and manner of training.");
  keys.add("ensemble", &O::ensemble)
      .counts_where(of_dates())
      .doc("Forecasts that differ by what is random in their inputs, for probabilities.");
  keys.add("validation", &O::validation)
      .changeable()
      .doc("Scores on data that training does not see: how often, and how far ahead.");
  keys.add("checkpoint", &O::checkpoint).changeable().doc("What a stopped run goes on from.");
  keys.add("init", &O::init).doc("What --init-from takes of another run's checkpoint.");
  keys.add("log_every", &O::log_every)
      .changeable()
      .at_least(1)
      .doc("Steps between training lines of metrics.jsonl, which also has one of each validated step.");
  keys.add("report", &O::report)
      .changeable()
      .doc(
          "Keep what a report shows (which rank holds what, maps or slices of each validation), and write "
          "report.html in the end.");
  keys.add("tensorboard", &O::tensorboard)
      .changeable()
      .doc(
          "Write scalars, maps and the configuration for TensorBoard, in the folder tensorboard of the run.");
  keys.add("output", &O::output)
      .changeable()
      .not_empty()
      .doc("The run directory, relative to the working folder.");
}

Members members_of(const Configuration& configuration) {
  return {configuration.ensemble.members, configuration.train.batch_size / configuration.train.accumulate};
}

Json with_new_keys(const Json& stored) {
  try {
    return to_json(parse<Configuration>(stored));
  } catch (const Error&) {
    return stored;
  }
}

MeshOptions resolved_mesh(const std::optional<MeshOptions>& mesh, int ranks, const Shape& space,
                          const std::vector<std::int64_t>& units) {
  const auto axes = static_cast<std::size_t>(space.rank());
  if (mesh) {
    MeshOptions result = *mesh;
    if (result.domain.empty()) result.domain.assign(axes, 1);
    if (result.domain.size() != axes) {
      throw ConfigError(concat("mesh.domain must have one entry per spatial axis of the data, ", axes,
                               ", not ", result.domain.size()));
    }
    return result;
  }
  MeshOptions best{1, std::vector<int>(axes, 1), 1};
  std::int64_t smallest = -1;
  // All ways to write `ranks` as a product over the axes; for equal pieces the first axis is cut most.
  std::vector<int> domain(axes, 1);
  const std::function<void(std::size_t, int)> try_axis = [&](std::size_t axis, int rest) {
    if (axis + 1 == axes) {
      domain[axis] = rest;
      std::int64_t piece = 1;
      for (std::size_t i = 0; i < axes; ++i) {
        const std::int64_t unit = units.empty() ? 1 : units[i];
        const std::int64_t count = (space[static_cast<int>(i)] + unit - 1) / unit;
        piece *= cut_range(count, domain[i], 0).size();
      }
      if (smallest < 0 || piece < smallest) {
        smallest = piece;
        best.domain = domain;
      }
      return;
    }
    for (int size = rest; size >= 1; --size) {
      if (rest % size != 0) continue;
      domain[axis] = size;
      try_axis(axis + 1, rest / size);
    }
  };
  try_axis(0, ranks);
  return best;
}

}  // namespace jigsaw::inline task
