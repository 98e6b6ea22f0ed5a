#include "evaluate/sequence_evaluation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <optional>

#include "array/transfer.h"
#include "base/error.h"
#include "base/progress_bar.h"
#include "base/text.h"
#include "comm/agreement.h"
#include "evaluate/score_files.h"
#include "images/sequence_data.h"
#include "kernels/pointwise.h"
#include "task/physical_states.h"
#include "task/score_sums.h"
#include "train/validation.h"

namespace jigsaw::inline evaluate {

namespace {

/// Sums over windows, of one lead and variable, and how many there are of each.
struct SequenceSums {
  enum Kind {
    kWindows,
    kSquares,
    kAbsolute,
    kErrors,
    kReferences,
    kReferenceSquares,
    kVaried,  ///< windows whose truth varies
    kRelative,
    kKinds
  };
};

class SequenceScores {
 public:
  SequenceScores(const SequenceData& data, int leads)
      : data_(data),
        leads_(leads),
        physical_(data.channels(), data.statistics(), data.options().predict),
        cells_(data.grid().row_weights()),
        sums_(static_cast<std::size_t>(leads) * per_lead(), 0.0) {}

  /// Collective over the mesh.
  void add(const Rank& rank, int lead, const ShardedTensor& prediction, const Batch& batch) {
    const Layout& layout = prediction.layout;
    const Box box = rank.box(layout);
    const Array weights = point_weights(rank, box, cells_);
    const ScoredStates scored{physical_.predicted(rank, layout, prediction.piece, batch.origin),
                              batch.state(lead), batch.origin, base(rank, box)};
    const ScoreSums sums = sum_scores(rank, layout, scored, weights.reshaped({1, weights.count()}));
    std::vector<double> here(per_lead(), 0.0);
    for (std::int64_t b = 0; b < sums.group.samples; ++b)
      for (std::int64_t c = 0; c < sums.channels; ++c)
        add_window(sums, b, c, &here[static_cast<std::size_t>(c) * SequenceSums::kKinds]);
    sum_over(rank, sums.group.other_samples, here);
    for (std::size_t i = 0; i < here.size(); ++i)
      sums_[static_cast<std::size_t>(lead) * per_lead() + i] += here[i];
  }

  double rmse(int lead, std::size_t c) const {
    return std::sqrt(mean(lead, c, SequenceSums::kSquares, SequenceSums::kWindows));
  }
  double mae(int lead, std::size_t c) const {
    return mean(lead, c, SequenceSums::kAbsolute, SequenceSums::kWindows);
  }
  double bias(int lead, std::size_t c) const {
    return mean(lead, c, SequenceSums::kErrors, SequenceSums::kWindows);
  }
  double persistence_rmse(int lead, std::size_t c) const {
    return std::sqrt(mean(lead, c, SequenceSums::kReferenceSquares, SequenceSums::kReferences));
  }
  double vrmse(int lead, std::size_t c) const {
    return mean(lead, c, SequenceSums::kRelative, SequenceSums::kVaried);
  }
  int leads() const { return leads_; }

 private:
  std::size_t per_lead() const { return data_.channels().targets.size() * SequenceSums::kKinds; }
  double mean(int lead, std::size_t c, int sum, int count) const {
    const double* of = &sums_[static_cast<std::size_t>(lead) * per_lead() + c * SequenceSums::kKinds];
    return of[sum] / of[count];
  }
  /// About which squares of the truth are summed up, so that its variance is no small difference of large
  /// numbers: the mean of training, as f32 holds it.
  float base_of(std::int64_t channel) const {
    return static_cast<float>(
        data_.statistics().of(data_.channels().targets[static_cast<std::size_t>(channel)].field).mean);
  }
  Array base(const Rank& rank, const Box& box) const {
    if (box.empty()) return {};
    const int last = box.extent.rank() - 1;
    std::vector<double> values(static_cast<std::size_t>(box.extent.count()));
    const auto channels = static_cast<std::size_t>(box.extent[last]);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = base_of(box.begin[last] + static_cast<std::int64_t>(i % channels));
    return constant(rank.context, box.extent, DType::kFloat32, values);
  }
  void add_window(const ScoreSums& sums, std::int64_t b, std::int64_t c, double* to) const {
    const auto of = [&](ScoreSum kind) { return sums.of(kind, b, 0, c); };
    const double weight = of(ScoreSum::kWeight), reference = of(ScoreSum::kReferenceWeight);
    if (reference > 0) {
      to[SequenceSums::kReferences] += 1;
      to[SequenceSums::kReferenceSquares] += of(ScoreSum::kReferenceSquares) / reference;
    }
    if (!(weight > 0)) return;
    const double square = of(ScoreSum::kSquares) / weight;
    to[SequenceSums::kWindows] += 1;
    to[SequenceSums::kSquares] += square;
    to[SequenceSums::kAbsolute] += of(ScoreSum::kAbsolute) / weight;
    to[SequenceSums::kErrors] += of(ScoreSum::kErrors) / weight;
    const double about = of(ScoreSum::kTruthValues) / weight - base_of(c);
    const double squares = of(ScoreSum::kTruth) / weight, variance = squares - about * about;
    constexpr double kNoVariance = 1e-12;
    if (!(variance > kNoVariance * squares)) return;
    to[SequenceSums::kVaried] += 1;
    to[SequenceSums::kRelative] += std::sqrt(square / variance);
  }

  const SequenceData& data_;
  int leads_;
  PhysicalStates physical_;
  CellWeights cells_;
  std::vector<double> sums_;  ///< [leads, targets, SequenceSums::kKinds]
};

Json json_of(const SequenceScores& scores, const SequenceData& data, const TrainedModel& model,
             const std::string& title) {
  Json steps = Json::array(), variables = Json::object();
  for (int lead = 1; lead <= scores.leads(); ++lead) steps.push_back(lead * data.options().lead_steps);
  const std::vector<Channel>& targets = data.channels().targets;
  for (std::size_t c = 0; c < targets.size(); ++c) {
    Json& variable = variables[targets[c].name];
    variable["units"] = data.files().units(targets[c].field);
    for (int lead = 0; lead < scores.leads(); ++lead) {
      variable["rmse"].push_back(scores.rmse(lead, c));
      variable["mae"].push_back(scores.mae(lead, c));
      variable["bias"].push_back(scores.bias(lead, c));
      variable["persistence_rmse"].push_back(scores.persistence_rmse(lead, c));
      variable["vrmse"].push_back(scores.vrmse(lead, c));
    }
  }
  return {{"title", title},
          {"source", concat("jigsaw-train, ", model.description())},
          {"forecasts", data.count(Split::kValid)},
          {"lead_steps", steps},
          {"variables", variables}};
}

std::vector<std::string> table_of(const SequenceScores& scores, const SequenceData& data) {
  std::size_t width = 8;
  for (const Channel& target : data.channels().targets) width = std::max(width, target.name.size());
  const auto row = [&](const std::string& name, const char* format, auto... cells) {
    std::array<char, 128> text{};
    std::snprintf(text.data(), text.size(), format, cells...);
    return concat("  ", name, std::string(width - name.size(), ' '), text.data());
  };
  std::vector<std::string> lines = {
      row("variable", " %6s %11s %11s %11s %11s %9s", "step", "RMSE", "persistence", "MAE", "bias", "VRMSE")};
  const std::vector<Channel>& targets = data.channels().targets;
  for (std::size_t c = 0; c < targets.size(); ++c) {
    for (int lead = 0; lead < scores.leads(); ++lead) {
      lines.push_back(row(targets[c].name, " %6lld %11.5g %11.5g %11.5g %11.4g %9.4f",
                          static_cast<long long>((lead + 1) * data.options().lead_steps),
                          scores.rmse(lead, c), scores.persistence_rmse(lead, c), scores.mae(lead, c),
                          scores.bias(lead, c), scores.vrmse(lead, c)));
    }
  }
  return lines;
}

}  // namespace

void evaluate_sequences(TrainedModel& model, const SequenceEvaluationOptions& options, Log& log) {
  OpenedRun& run = model.run();
  const auto& data = dynamic_cast<const SequenceData&>(run.data());
  std::optional<ScoreFiles> files;
  together(run.world(), [&] {
    if (data.count(Split::kValid) == 0)
      throw ConfigError("command line: --period is needed, for the configuration has no data.valid");
    if (run.world().rank() == 0) files.emplace(options.json, "", options.overwrite, data.paths());
  });
  SequenceScores scores(data, run.configuration().validation_rollout());
  {
    ProgressBar bar(log, "evaluate");
    Validation(run, true).run(
        [&](int lead, const ShardedTensor& prediction, const Batch& batch) {
          scores.add(run.placed().rank(), lead, prediction, batch);
        },
        [&](double part) { bar.update(part); });
  }
  together(run.world(), [&] {
    if (run.world().rank() != 0) return;
    files->write([&] { return json_of(scores, data, model, options.title); }, [](const std::string&) {});
    for (const std::string& line : table_of(scores, data)) log.info(line);
  });
  log.info(concat("scored ", counted(data.count(Split::kValid), "forecast"), " of ",
                  counted(scores.leads(), "step")));
}

}  // namespace jigsaw::inline evaluate
