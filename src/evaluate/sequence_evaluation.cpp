#include "evaluate/sequence_evaluation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <functional>
#include <iterator>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "array/transfer.h"
#include "base/error.h"
#include "base/progress_bar.h"
#include "base/text.h"
#include "comm/agreement.h"
#include "evaluate/band_spectra.h"
#include "evaluate/score_files.h"
#include "files/netcdf_output.h"
#include "images/sequence_data.h"
#include "kernels/pointwise.h"
#include "task/ensemble.h"
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
        bands_(data.grid().shape()),
        sums_(static_cast<std::size_t>(leads) * per_lead(), 0.0),
        band_sums_(static_cast<std::size_t>(leads) * data.channels().targets.size()) {}

  /// Collective over the mesh.
  void add(const Rank& rank, int lead, const ShardedTensor& prediction, const Batch& batch) {
    const Layout& layout = prediction.layout;
    const Box box = rank.box(layout);
    const Array weights = point_weights(rank, box, cells_);
    const ScoredStates scored{physical_.predicted(rank, layout, prediction.piece, batch.origin),
                              where_both(rank.context, batch.state(lead), batch.origin), batch.origin,
                              base(rank, box)};
    const ScoreSums sums = sum_scores(rank, layout, scored, weights.reshaped({1, weights.count()}));
    std::vector<double> here(per_lead(), 0.0);
    for (std::int64_t b = 0; b < sums.group.samples; ++b)
      for (std::int64_t c = 0; c < sums.channels; ++c)
        add_window(sums, b, c, &here[static_cast<std::size_t>(c) * SequenceSums::kKinds]);
    sum_over(rank, sums.group.other_samples, here);
    for (std::size_t i = 0; i < here.size(); ++i)
      sums_[static_cast<std::size_t>(lead) * per_lead() + i] += here[i];
    add_bands(rank, lead, layout, scored);
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
  /// In each band, low ones first.
  std::vector<double> band_mse(int lead, std::size_t c) const {
    return ratios(of_bands(lead, c).squares, of_bands(lead, c).windows);
  }
  std::vector<double> band_nmse(int lead, std::size_t c) const {
    return ratios(of_bands(lead, c).relative, of_bands(lead, c).varied);
  }
  const BandSpectra& bands() const { return bands_; }
  int leads() const { return leads_; }

 private:
  using Bands = std::array<double, BandSpectra::kBands>;
  /// Sums over windows, and how many there are of each.
  struct BandSums {
    Bands squares{}, windows{}, relative{}, varied{};
  };
  const BandSums& of_bands(int lead, std::size_t c) const {
    return band_sums_[static_cast<std::size_t>(lead) * data_.channels().targets.size() + c];
  }
  static std::vector<double> ratios(const Bands& sums, const Bands& counts) {
    std::vector<double> ratios;
    for (std::size_t band = 0; band < sums.size(); ++band) ratios.push_back(sums[band] / counts[band]);
    return ratios;
  }
  /// Windows in which something of the truth is missing do not count; forecasts that are no numbers do.
  void add_bands(const Rank& rank, int lead, const Layout& layout, const ScoredStates& scored) {
    std::vector<double> error, truth;
    if (!rank.box(layout).empty()) {
      error = download_values(rank.context, scored.forecast);
      truth = download_values(rank.context, scored.truth);
      std::ranges::transform(error, truth, error.begin(), std::minus<>());
    }
    const std::vector<BandSpectra::Powers> powers = bands_.of(rank, layout, error, truth);
    const std::size_t channels = data_.channels().targets.size();
    for (std::size_t i = 0; i < powers.size(); ++i) {
      BandSums& sums = band_sums_[static_cast<std::size_t>(lead) * channels + i % channels];
      const double all = std::accumulate(powers[i].truth.begin(), powers[i].truth.end(), 0.0);
      for (std::size_t band = 0; band < BandSpectra::kBands; ++band) {
        const double square = powers[i].error[band], of_truth = powers[i].truth[band];
        if (!std::isfinite(of_truth)) continue;
        sums.squares[band] += square;
        sums.windows[band] += 1;
        constexpr double kRoundings = 1e-24;
        if (!(of_truth > kRoundings * all)) continue;
        sums.relative[band] += square / of_truth;
        sums.varied[band] += 1;
      }
    }
  }
  std::size_t per_lead() const { return data_.channels().targets.size() * SequenceSums::kKinds; }
  double mean(int lead, std::size_t c, int sum, int count) const {
    const double* of = &sums_[static_cast<std::size_t>(lead) * per_lead() + c * SequenceSums::kKinds];
    return of[sum] / of[count];
  }
  /// About which squares of the truth are summed up, so that its variance is no small difference of large
  /// numbers: the mean of training, as f32 holds it; 0 where it does not.
  float base_of(std::int64_t channel) const {
    const Channel& target = data_.channels().targets[static_cast<std::size_t>(channel)];
    const double mean = target.transform.inverse(data_.statistics().of(target.field).mean);
    using Limits = std::numeric_limits<float>;
    const bool held = std::abs(mean) < Limits::max() && std::abs(mean) > Limits::min();
    return held ? static_cast<float>(mean) : 0.0F;
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
  BandSpectra bands_;
  std::vector<double> sums_;         ///< [leads, targets, SequenceSums::kKinds]
  std::vector<BandSums> band_sums_;  ///< [leads, targets]
};

/// What files hold of each variable and lead.
struct SequenceMeasure {
  const char *name, *long_name;
  bool has_units;
  double (SequenceScores::*value)(int lead, std::size_t channel) const;
};
constexpr std::array<SequenceMeasure, 5> kSequenceMeasures = {
    {{"rmse", "root mean square error", true, &SequenceScores::rmse},
     {"mae", "mean absolute error", true, &SequenceScores::mae},
     {"bias", "mean error", true, &SequenceScores::bias},
     {"persistence_rmse", "root mean square error of persistence", true, &SequenceScores::persistence_rmse},
     {"vrmse", "root mean square error over the standard deviation in space of the truth", false,
      &SequenceScores::vrmse}}};

/// The same by band of wave numbers.
struct BandMeasure {
  const char *name, *long_name;
  bool has_units;
  std::vector<double> (SequenceScores::*value)(int lead, std::size_t channel) const;
};
constexpr std::array<BandMeasure, 2> kBandMeasures = {
    {{"spectral_mse", "mean square error within bands of wave numbers", true, &SequenceScores::band_mse},
     {"spectral_nmse",
      "mean square error within bands of wave numbers over the mean square of the truth there", false,
      &SequenceScores::band_nmse}}};

/// Scores with what they are of.
struct SequenceReport {
  const SequenceScores& scores;
  const SequenceData& data;
  std::string title, source;

  const std::vector<Channel>& targets() const { return data.channels().targets; }
  std::vector<int> steps() const {
    std::vector<int> steps;
    for (int lead = 1; lead <= scores.leads(); ++lead)
      steps.push_back(static_cast<int>(lead * data.options().lead_steps));
    return steps;
  }
  std::vector<double> values(const SequenceMeasure& measure, std::size_t channel) const {
    std::vector<double> values;
    for (int lead = 0; lead < scores.leads(); ++lead)
      values.push_back((scores.*measure.value)(lead, channel));
    return values;
  }
};

Json json_of(const SequenceReport& report) {
  Json variables = Json::object();
  for (std::size_t c = 0; c < report.targets().size(); ++c) {
    Json& variable = variables[report.targets()[c].name];
    variable["units"] = report.data.files().units(report.targets()[c].field);
    for (const SequenceMeasure& measure : kSequenceMeasures)
      variable[measure.name] = report.values(measure, c);
    for (const BandMeasure& measure : kBandMeasures)
      for (int lead = 0; lead < report.scores.leads(); ++lead)
        variable[measure.name].push_back((report.scores.*measure.value)(lead, c));
  }
  return {{"title", report.title},
          {"source", report.source},
          {"forecasts", report.data.count(Split::kValid)},
          {"lead_steps", report.steps()},
          {"wave_number_limits", report.scores.bands().limits()},
          {"variables", variables}};
}

/// CF-1.10: "p_rmse" [lead_steps], …, "p_spectral_mse" [lead_steps, band], …; NaN where there is no number.
void write_netcdf(const SequenceReport& report, const std::string& path) {
  NetcdfOutput file(path, NetcdfOutput::Format::kNetcdf4);
  const std::vector<int> steps = report.steps();
  const int dimension = file.add_dimension("lead_steps", steps.size()),
            leads = file.add_variable("lead_steps", NetcdfOutput::Type::kInt, {dimension});
  file.add_text(leads, "long_name", "steps from the state that forecasts start from");
  const int bands = file.add_dimension("band", BandSpectra::kBands);
  std::vector<std::pair<int, std::vector<double>>> written;
  const auto add = [&](const std::string& name, const std::vector<int>& dimensions, const std::string& what,
                       const std::string& units, std::vector<double> values) {
    const std::string free = file.free_name(name);
    const int variable = file.add_variable(free.c_str(), NetcdfOutput::Type::kDouble, dimensions);
    file.add_text(variable, "long_name", what);
    if (!units.empty()) file.add_text(variable, "units", units);
    file.add_number(variable, "_FillValue", std::numeric_limits<double>::quiet_NaN());
    written.emplace_back(variable, std::move(values));
  };
  const auto& limits = report.scores.bands().limits();
  add("band_from", {bands}, "least wave number of a band, times the distance of points", "1",
      {limits.begin(), limits.end() - 1});
  add("band_to", {bands}, "largest wave number of a band, times the distance of points", "1",
      {limits.begin() + 1, limits.end()});
  for (std::size_t c = 0; c < report.targets().size(); ++c) {
    const std::string &name = report.targets()[c].name,
                      &units = report.data.files().units(report.targets()[c].field);
    for (const SequenceMeasure& measure : kSequenceMeasures) {
      add(concat(name, "_", measure.name), {dimension}, concat(measure.long_name, " of ", name),
          measure.has_units ? units : "1", report.values(measure, c));
    }
    for (const BandMeasure& measure : kBandMeasures) {
      std::vector<double> values;
      for (int lead = 0; lead < report.scores.leads(); ++lead)
        std::ranges::copy((report.scores.*measure.value)(lead, c), std::back_inserter(values));
      const std::string squared = units.empty() ? "" : concat("(", units, ")2");
      add(concat(name, "_", measure.name), {dimension, bands}, concat(measure.long_name, " of ", name),
          measure.has_units ? squared : "1", std::move(values));
    }
  }
  file.add_text(NetcdfOutput::kFile, "Conventions", "CF-1.10");
  file.add_text(NetcdfOutput::kFile, "title", report.title);
  file.add_text(NetcdfOutput::kFile, "source", report.source);
  file.add_numbers(NetcdfOutput::kFile, "forecasts",
                   std::vector{static_cast<int>(report.data.count(Split::kValid))});
  file.end_definitions();
  file.write(leads, steps);
  for (const auto& [variable, values] : written) file.write(variable, values);
  file.close();
}

std::vector<std::string> table_of(const SequenceReport& report) {
  const SequenceScores& scores = report.scores;
  const SequenceData& data = report.data;
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
    if (run.world().rank() == 0) files.emplace(options.json, options.netcdf, options.overwrite, data.paths());
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
    const SequenceReport report{scores, data, options.title, concat("jigsaw-train, ", model.description())};
    files->write([&] { return json_of(report); },
                 [&](const std::string& path) { write_netcdf(report, path); });
    for (const std::string& line : table_of(report)) log.info(line);
  });
  log.info(concat("scored ", counted(data.count(Split::kValid), "forecast"), " of ",
                  counted(scores.leads(), "step")));
}

}  // namespace jigsaw::inline evaluate
