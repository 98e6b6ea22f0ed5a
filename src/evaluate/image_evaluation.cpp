#include "evaluate/image_evaluation.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "comm/agreement.h"
#include "evaluate/image_measures.h"
#include "evaluate/image_report.h"
#include "evaluate/image_scorer.h"
#include "evaluate/score_files.h"
#include "evaluate/written_predictions.h"

namespace jigsaw::inline evaluate {

namespace {

std::vector<double> ranges_of(const ImageData& data, const ImageEvaluationOptions& options,
                              const std::optional<double>& peak, Communicator& world) {
  const std::size_t targets = data.channels().targets.size();
  if (data.options().classes > 0) return {};
  if (options.data_range) return std::vector<double>(targets, *options.data_range);
  if (peak) return std::vector<double>(targets, *peak);
  std::vector<double> ranges;
  for (const auto& [least, most] : data.target_ranges(world)) ranges.push_back(most - least);
  return ranges;
}

void require_parts(const ImageData& data) {
  if (data.validation_parts().empty())
    throw ConfigError("command line: --period train is needed, for the configuration has no data.valid");
}

/// The parts that are scored, and where their scores go.
class Evaluation {
 public:
  /// Collective. @param read  files that are read beside the data's
  Evaluation(const ImageData& data, Communicator& world, const ImageEvaluationOptions& options,
             const std::vector<std::string>& read = {})
      : data_(data), world_(world), options_(options), parts_(data.validation_parts()) {
    together(world_, [&] {
      require_parts(data_);
      if (world_.rank() != 0) return;
      std::vector<std::string> inputs = data_.paths();
      inputs.insert(inputs.end(), read.begin(), read.end());
      files_.emplace(options_.json, options_.netcdf, options_.overwrite, inputs);
    });
  }
  const std::vector<ImageRegion>& parts() const { return parts_; }
  /// Collective. @param source  what predicted. @param by  how, "by 12 windows"; or ""
  void finish(const ImageScorer& scorer, const std::string& source, const std::string& by, Log& log) {
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - before_;
    together(world_, [&] {
      if (world_.rank() != 0) return;
      const ImageReport report = report_of(scorer, source);
      files_->write([&] { return json_of(report); },
                    [&](const std::string& path) { write_netcdf(report, path); });
      for (const std::string& line : table_of(report)) log.info(line);
      if (scorer.not_finite() > 0) {
        log.warn(concat(std::llround(scorer.not_finite()),
                        " values of the predictions are not finite, or missing by what their files say "
                        "(_FillValue, valid_min, valid_max), and do not count in these scores"));
      }
    });
    log.info(concat("scored ", counted(std::ssize(parts_), "part"), " of images", by, " in ",
                    human_seconds(seconds.count())));
  }

 private:
  ImageReport report_of(const ImageScorer& scorer, const std::string& source) const {
    ImageReport report;
    report.title = options_.title;
    report.source = source;
    report.images = names_of_parts(data_, parts_);
    report.measures = scorer.measures();
    for (std::size_t c = 0; c < scorer.ranges().size(); ++c)
      report.ranges.emplace_back(data_.channels().targets[c].name, scorer.ranges()[c]);
    return report;
  }

  const ImageData& data_;
  Communicator& world_;
  const ImageEvaluationOptions& options_;
  std::vector<ImageRegion> parts_;
  std::optional<ScoreFiles> files_;
  std::chrono::steady_clock::time_point before_ = std::chrono::steady_clock::now();
};

/// The configuration's data on the points of the files, without anything that only a model needs.
DataOptions on_own_points(DataOptions data) {
  for (const DataPart& part : data.spacing.empty() ? std::vector<DataPart>{} : data.valid) {
    for (const auto& [dim, range] : std::get<SliceRanges>(part).of) {
      if (!is_spatial(dim)) continue;
      throw ConfigError(
          concat("command line: --predictions are scored on the points of the files, and the "
                 "parts to score take a range of ",
                 name(dim), " of the points of data.spacing; name whole images by case"));
    }
  }
  data.spacing.clear();
  data.shape.clear();
  data.normalization.reset();
  data.crop.assign(data.space().size(), 1);
  return data;
}

}  // namespace

void evaluate_images(TrainedModels& models, const ImageEvaluationOptions& options, Log& log) {
  OpenedRun& run = models.front().run();
  Communicator& world = run.world();
  const auto& data = dynamic_cast<const ImageData&>(run.data());
  const bool denoises = data.options().task == Task::kDenoise;
  Evaluation evaluation(data, world, options);
  ImageRun images(models, evaluation.parts(), options.windows, denoises, kSsimReach);
  const WindowReader noisy(data, denoises);
  ImageScorer scorer(data, world, ranges_of(data, options, run.configuration().validation.peak, world),
                     denoises ? &noisy : nullptr);
  HeldPart held;
  images.run([&](ImageRun::Rows& rows) {
    const ImageRegion& region = images.regions()[rows.region];
    together(world, [&] {
      if (rows.box.begin[0] == region.box.begin[0]) {
        held = {rows.box, images.own_box_of(rows, world.rank()), {}};
        held.box.extent[0] = held.own.extent[0] = region.box.extent[0];
      }
      const std::vector<double> values =
          data.options().classes > 0 ? images.labels(rows) : images.numbers(rows);
      held.values.insert(held.values.end(), values.begin(), values.end());
    });
    if (rows.last) scorer.score(region, std::exchange(held, {}));
  });
  evaluation.finish(scorer, concat("jigsaw-train, ", description_of(models)),
                    concat(" by ", counted(images.windows(), "window")), log);
}

void evaluate_predictions(const Configuration& configuration, const std::filesystem::path& folder,
                          const std::vector<std::string>& predictions, const std::string& parts,
                          const ImageEvaluationOptions& options, Communicator& world, Log& log) {
  DataOptions own;
  together(world, [&] { own = on_own_points(configuration.data); });
  DataUse use;
  use.train = false;
  use.valid_name = parts;
  use.pass.spared = true;  // nothing is normalised
  const ImageData data(own, folder, configuration.seed, {}, world, use);
  together(world, [&] { require_parts(data); });
  WrittenPredictions written(data, predictions, parts, world);
  Evaluation evaluation(data, world, options, written.paths());
  ImageScorer scorer(data, world, ranges_of(data, options, configuration.validation.peak, world), nullptr);
  for (const ImageRegion& part : evaluation.parts()) {
    HeldPart held;
    together(world, [&] {
      held.box = columns_of(part.box, world.size(), world.rank(), kSsimReach);
      held.own = columns_of(part.box, world.size(), world.rank(), 0);
      held.values = written.read(part.image, held.box);
    });
    scorer.score(part, std::move(held));
  }
  evaluation.finish(scorer, concat("jigsaw-train, predictions in ", join(predictions, " ")), "", log);
}

}  // namespace jigsaw::inline evaluate
