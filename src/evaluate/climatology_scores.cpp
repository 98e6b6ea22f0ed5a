#include "evaluate/climatology_scores.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "array/transfer.h"
#include "base/progress_bar.h"
#include "comm/agreement.h"
#include "evaluate/climatology.h"
#include "kernels/forecast_scores.h"
#include "kernels/pointwise.h"
#include "samples/dataset.h"
#include "train/validation.h"

namespace jigsaw::inline evaluate {

namespace {

/// Sums over the points of one window, lead and target.
struct Sums {
  std::vector<double> squares, weights;
  std::size_t leads, targets;

  Sums(std::size_t windows, std::size_t leads_, std::size_t targets_)
      : squares(windows * leads_ * targets_, 0.0), weights(squares), leads(leads_), targets(targets_) {}
  std::size_t index(std::size_t window, std::size_t lead, std::size_t target) const {
    return (window * leads + lead) * targets + target;
  }
};

class ClimatologyPass {
 public:
  explicit ClimatologyPass(OpenedRun& run)
      : run_(run),
        placed_(run.placed()),
        data_(dynamic_cast<Dataset&>(run.data())),
        cells_(data_.cell_weights()),
        sums_(data_.valid_windows().size(),
              static_cast<std::size_t>(run.configuration().validation_rollout()),
              data_.channels().targets.size()) {
    together(run.world(), [&] { open(); });
  }

  std::vector<std::vector<double>> run(Log& log) {
    Validation validation(run_, true);
    const Context& context = placed_.rank().context;
    ProgressBar bar(log, "climatology");
    for (std::int64_t i = 0; i < validation.batches(); ++i) {
      Batch batch;
      for (int lead = 0; lead < validation.leads(); ++lead) {
        together(run_.world(),
                 [&] { batch.go_on(upload(context, validation.read(i, lead, context.host()))); });
        add(i * placed_.samples(), lead, batch);
      }
      bar.update(i + 1, validation.batches());
    }
    return finish();
  }

 private:
  Time ahead(int lead) const { return static_cast<Time>(lead + 1) * data_.options().lead_time; }

  void open() {
    const Calendar calendar = data_.files().calendar();
    std::set<DayAndHour> wanted;
    for (const Time start : data_.valid_windows()) {
      for (int lead = 0; lead < run_.configuration().validation_rollout(); ++lead)
        wanted.insert(day_and_hour(start + ahead(lead), calendar));
    }
    const Rank& rank = placed_.rank();
    climatology_ = std::make_unique<Climatology>(data_.files(), data_.channels().targets,
                                                 rank.box(placed_.sample_layout(placed_.samples())),
                                                 data_.files().periods(data_.options().train, "data.train"),
                                                 std::vector<DayAndHour>(wanted.begin(), wanted.end()));
  }

  void add(std::int64_t first, int lead, const Batch& batch) {
    const Rank& rank = placed_.rank();
    const Layout layout = placed_.sample_layout(std::ssize(batch.times));
    const Box box = rank.box(layout);
    if (box.empty()) return;
    const Array& truth = batch.state(lead);
    const Array weights = point_weights(rank, box, cells_);
    const std::int64_t channels = box.extent[3], points = weights.count();
    Array climate(rank.context, box.extent, DType::kFloat32, Purpose::kWorkspace);
    for (std::int64_t b = 0; b < box.extent[0]; ++b) {
      const Time time = batch.times[static_cast<std::size_t>(box.begin[0] + b)] + ahead(lead);
      const DayAndHour when = day_and_hour(time, data_.files().calendar());
      const Array known = upload(rank.context, climatology_->at(when), Purpose::kWorkspace);
      copy_elements(rank.context, known, 0, climate, b * points * channels, points * channels);
    }
    const Array forecast = cast(rank.context, climate, DType::kFloat64, Purpose::kWorkspace);
    const std::vector<double> all = download_values(
        rank.context, score_sums(rank.context, {truth, truth, forecast, {}}, weights.reshaped({1, points})));
    const std::int64_t each = box.extent[0] * channels;
    const auto sum = [&](ScoreSum kind, std::int64_t i) {
      return all[static_cast<std::size_t>(static_cast<std::int64_t>(kind) * each + i)];
    };
    for (std::int64_t i = 0; i < each; ++i) {
      const std::size_t at =
          sums_.index(static_cast<std::size_t>(first + box.begin[0] + i / channels),
                      static_cast<std::size_t>(lead), static_cast<std::size_t>(box.begin[3] + i % channels));
      sums_.squares[at] += sum(ScoreSum::kReferenceSquares, i);
      sums_.weights[at] += sum(ScoreSum::kReferenceWeight, i);
    }
  }

  std::vector<std::vector<double>> finish() {
    sums_.squares = run_.world().all_reduce(sums_.squares, ReduceOp::kSum);
    sums_.weights = run_.world().all_reduce(sums_.weights, ReduceOp::kSum);
    std::vector<std::vector<double>> rmse(sums_.leads, std::vector<double>(sums_.targets));
    for (std::size_t lead = 0; lead < sums_.leads; ++lead) {
      for (std::size_t target = 0; target < sums_.targets; ++target) {
        double sum = 0, count = 0;
        for (std::size_t window = 0; window < data_.valid_windows().size(); ++window) {
          const std::size_t at = sums_.index(window, lead, target);
          if (!(sums_.weights[at] > 0)) continue;
          sum += sums_.squares[at] / sums_.weights[at];
          ++count;
        }
        rmse[lead][target] = std::sqrt(sum / count);
      }
    }
    return rmse;
  }

  OpenedRun& run_;
  PlacedModel& placed_;
  Dataset& data_;
  CellWeights cells_;
  Sums sums_;
  std::unique_ptr<Climatology> climatology_;
};

}  // namespace

void ClimatologyScores::begin(OpenedRun& run, const RunDirectory& /*directory*/, std::int64_t /*step*/) {
  if (!run.validates()) return;
  targets_ = channel_names(run.data().channels().targets);
  rmse_ = ClimatologyPass(run).run(log_);
  auto& data = dynamic_cast<Dataset&>(run.data());
  const std::string remark =
      climatology_remark(data, data.valid_windows(), run.configuration().validation_rollout());
  if (!remark.empty()) log_.warn(remark);
}

void ClimatologyScores::validated(std::int64_t /*step*/, ValidationResult& result) {
  for (std::size_t lead = 0; lead < std::min(rmse_.size(), result.leads.size()); ++lead) {
    for (std::size_t target = 0; target < targets_.size(); ++target) {
      if (const auto scores = result.leads[lead].find(targets_[target]); scores != result.leads[lead].end())
        (*scores)["climatology_rmse"] = rmse_[lead][target];
    }
  }
}

}  // namespace jigsaw::inline evaluate
