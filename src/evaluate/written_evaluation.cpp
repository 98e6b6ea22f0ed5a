// Scores of forecasts that files hold.
#include <algorithm>

#include "array/transfer.h"
#include "base/error.h"
#include "base/text.h"
#include "comm/agreement.h"
#include "evaluate/scored_forecasts.h"
#include "evaluate/written_forecasts.h"
#include "task/opened_run.h"

namespace jigsaw::inline evaluate {

namespace {

/// What of a model means nothing for forecasts that are there.
void require_comparable(const DataOptions& data) {
  if (data.time_step.month)
    throw ConfigError("command line: --predictions are by dates, and data.time_step is \"month\"");
  if (data.member.all) {
    throw ConfigError(
        "command line: --predictions are compared with one truth, and data.member \"all\" gives several; "
        "name one of them");
  }
}

/// Of which windows there is no forecast in files. Collective. @throws DataError  where there is none at all
void say_left_out(const WrittenForecasts& written, const ScoredForecasts& of, const std::string& period,
                  Log& log) {
  const std::vector<Time>& windows = of.data.valid_windows();
  const auto out = std::ranges::find_if_not(windows, [&](Time start) { return written.has(start); });
  if (out == windows.end()) return;
  const std::string why = concat("from ", of.data.files().text_of(*out), " ", written.why_not(*out));
  const std::string count = counted(std::ssize(windows), "window");
  together(of.world, [&] {
    if (of.starts.empty()) {
      throw DataError(
          concat("--predictions hold a whole forecast from none of the ", count, " in ", period, ": ", why));
    }
  });
  const auto left_out = std::ssize(windows) - std::ssize(of.starts);
  log.warn(concat("of the ", count, " in ", period, ", ", left_out, left_out == 1 ? " is" : " are",
                  " left out, for --predictions hold no whole forecast: ", why));
}

/// Reads what was forecast and what was, a start at a time.
class WrittenRun {
 public:
  WrittenRun(Dataset& data, WrittenForecasts& written, const Rank& rank, int leads)
      : data_(data), written_(written), rank_(rank), leads_(leads), reader_(data.open_reader()) {
    const Shape& grid = data.grid().shape();
    layout_ = rank.mesh.field_layout({1, grid[0], grid[1], std::ssize(data.channels().targets)});
  }
  /// Of one sample.
  const Layout& layout() const { return layout_; }
  /// Collective. @param windows  numbers of those of data.valid
  void run(Communicator& world, const std::vector<std::int64_t>& windows, ForecastScores& scores,
           const std::function<void(double)>& done) {
    for (std::size_t i = 0; i < windows.size(); ++i) {
      done(static_cast<double>(i) / static_cast<double>(windows.size()));
      Batch batch;
      for (int lead = 0; lead < leads_; ++lead) {
        Array members;
        together(world, [&] {
          batch.go_on(upload(rank_.context, read_truth(windows[i], lead)));
          members = read_members(batch.times.front(), lead);
        });
        scores.add_states(rank_, lead, layout_, members, batch);
      }
    }
  }

 private:
  Batch read_truth(std::int64_t window, int lead) {
    SampleRequest request;
    request.split = Split::kValid;
    request.samples = {window};
    request.input = {Shape::filled(4, 0), Shape::filled(4, 0)};
    request.target = rank_.box(layout_);
    request.rollout = leads_;
    request.lead = lead;
    request.baseline = request.origin = true;
    return reader_->read(request, rank_.context.host());
  }
  /// f64 [members, rows, columns, targets].
  Array read_members(Time start, int lead) {
    const Box box = rank_.box(layout_);
    const Box plane{{box.begin[1], box.begin[2]}, {box.extent[1], box.extent[2]}};
    const auto points = static_cast<std::size_t>(plane.extent.count());
    const auto targets = static_cast<std::size_t>(box.extent[3]);
    std::vector<double> values(static_cast<std::size_t>(written_.members()) * points * targets), one(points);
    const Time ahead = (lead + 1) * data_.options().lead_time;
    for (std::int64_t member = 0; member < written_.members(); ++member) {
      double* const to = values.data() + static_cast<std::size_t>(member) * points * targets;
      for (std::size_t target = 0; target < targets && points > 0; ++target) {
        written_.read(start, ahead, target, member, plane, one);
        for (std::size_t point = 0; point < points; ++point) to[point * targets + target] = one[point];
      }
    }
    Shape shape = box.extent;
    shape[0] = written_.members();
    return constant(rank_.context, shape, DType::kFloat64, values);
  }

  Dataset& data_;
  WrittenForecasts& written_;
  const Rank& rank_;
  int leads_;
  std::unique_ptr<SampleReader> reader_;
  Layout layout_;
};

}  // namespace

void evaluate_written_forecasts(const Configuration& configuration, const std::filesystem::path& folder,
                                const std::vector<std::string>& predictions, DataUse use,
                                const EvaluationOptions& options, Communicator& world, Log& log) {
  together(world, [&] { require_comparable(configuration.data); });
  use.pass.spared = true;  // nothing is normalised
  use.pass.cache = cache_folder();
  const int leads = configuration.validation_rollout();
  Dataset data(configuration.data, folder, leads, world, use);
  std::vector<Time> ahead;
  for (int lead = 1; lead <= leads; ++lead) ahead.push_back(lead * configuration.data.lead_time);
  WrittenForecasts written(data, predictions, ahead, world);
  Mesh mesh(world, 1, {world.size(), 1}, 1);
  const Rank rank{world.context(), mesh};
  WrittenRun run(data, written, rank, leads);
  ScoredForecasts of{world,
                     configuration,
                     data,
                     rank,
                     rank.box(run.layout()),
                     {},
                     written.members(),
                     concat("forecasts in ", join(predictions, " ")),
                     written.paths()};
  of.of_model = false;
  std::vector<std::int64_t> windows;
  for (std::int64_t window = 0; window < data.count(Split::kValid); ++window) {
    const Time start = data.valid_windows()[static_cast<std::size_t>(window)];
    if (!written.has(start)) continue;
    windows.push_back(window);
    of.starts.push_back(start);
  }
  for (const std::string& remark : written.remarks()) log.warn(remark);
  say_left_out(written, of, options.period, log);
  of.run = [&](ForecastScores& scores, const std::function<void(double)>& done) {
    run.run(world, windows, scores, done);
  };
  score(of, options, log);
}

}  // namespace jigsaw::inline evaluate
