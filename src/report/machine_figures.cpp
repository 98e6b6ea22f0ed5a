#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/text.h"
#include "report/figures.h"
#include "report/svg.h"

namespace jigsaw::inline report {

namespace {

double sum_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0,
                         [](double sum, double value) { return std::isfinite(value) ? sum + value : sum; });
}

/// Of those that are known.
double mean_of(const std::vector<double>& values) {
  const auto known = std::ranges::count_if(values, [](double value) { return std::isfinite(value); });
  return known == 0 ? 0 : sum_of(values) / static_cast<double>(known);
}

void add_throughput(const std::vector<RunRecord>& runs, Figures& figures) {
  Plot rate{"Throughput", "step", "samples per second", {}}, share{"Share of peak", "step", "%", {}};
  rate.from_zero = share.from_zero = true;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].step.empty()) continue;
    rate.series.push_back({runs[i].name, runs[i].step, runs[i].rate, i, false});
    Series series{runs[i].name, runs[i].step, runs[i].peak_share, i, false};
    for (double& value : series.y) value *= 100;
    if (std::ranges::any_of(series.y, [](double value) { return std::isfinite(value); }))
      share.series.push_back(series);
  }
  if (!rate.series.empty())
    figures.push_back({"fig-throughput", svg_of(rate), "Samples per second of each step, over all ranks."});
  if (!share.series.empty())
    figures.push_back({"fig-peak", svg_of(share),
                       "FLOPs of rank 0 in a step over what its products were measured to do in that time."});
}

/// From where totals of the summaries count, for runs that went on from a checkpoint.
std::string counted_since(const std::vector<RunRecord>& runs) {
  std::string text;
  for (const RunRecord& run : runs) {
    if (run.first_step() <= 1) continue;
    text += concat(runs.size() == 1 ? " Since" : concat(" ", run.name, ": since"), " step ", run.first_step(),
                   ", where its last start began.");
  }
  return text;
}

/// Seconds of all steps from `first` on: a line of metrics.jsonl stands for the steps since the line before
/// it. @return  also whether it stands for more than its own anywhere.
std::pair<double, bool> seconds_of_steps(const RunRecord& run, double first) {
  double seconds = 0, before = first - 1;
  bool between = false;
  for (std::size_t i = 0; i < run.step.size(); ++i) {
    if (!(run.step[i] >= first) || !std::isfinite(run.step_seconds[i])) continue;
    // A step that was made again after a restart stands for itself.
    const double steps = std::max(1.0, run.step[i] - before);
    seconds += steps * run.step_seconds[i];
    between = between || steps > 1;
    before = run.step[i];
  }
  return {seconds, between};
}

void add_step(const std::vector<RunRecord>& runs, Figures& figures) {
  Bars bars{"Where a step goes, mean of all", "ms", {}};
  for (const RunRecord& run : runs) {
    if (run.step.empty()) continue;
    const double steps = static_cast<double>(run.step.size()) / 1000;
    const double all = sum_of(run.step_seconds) / steps, wait = sum_of(run.data_wait) / steps,
                 communication = 1000 * mean_of(run.communication);
    bars.rows.push_back({run.name,
                         {{"computing and the rest", std::max(0.0, all - wait - communication)},
                          {"communication", communication},
                          {"waiting for data", wait}}});
  }
  if (bars.rows.empty()) return;
  figures.push_back(
      {"fig-step", svg_of(bars),
       "Communication is the time in which rank 0 did nothing but start, move or await messages."});
  const std::string since = counted_since(runs);
  Bars run_bars{"Where the run goes", "s", {}};
  bool between = false;
  for (const RunRecord& run : runs) {
    if (run.step.empty()) continue;
    const auto first = static_cast<double>(run.first_step());
    const auto [steps, more] = seconds_of_steps(run, first);
    between = between || more;
    double validation = 0;
    for (const Json& line : run.valid) {
      if (number_at(line, "step") >= first) validation += number_at(line, "validation_seconds", 0);
    }
    std::vector<BarPart> parts = {{"steps", steps}, {"validations", validation}};
    if (run.over())
      parts.push_back({"opening, saves, rest", std::max(0.0, number_at(run.summary, "seconds", 0) -
                                                                 parts[0].value - parts[1].value)});
    run_bars.rows.push_back({run.name, parts});
  }
  figures.push_back({"fig-run", svg_of(run_bars),
                     concat("Steps, validations and what else took time.",
                            between ? " Steps that metrics.jsonl leaves out (log_every) count as those that "
                                      "it holds behind them."
                                    : "",
                            since)});
}

constexpr std::size_t kMostRanks = 32;

std::string name_of(const Json& rank, std::size_t number_of_runs, const RunRecord& run) {
  const std::string name = concat("rank ", rank.value("rank", 0));
  return number_of_runs == 1 ? name : concat(run.name, " ", name);
}

void add_ranks(const std::vector<RunRecord>& runs, Figures& figures) {
  Bars memory{"Memory", "", {}, true}, sent{"Sent", "", {}, true}, read{"Read from files", "", {}, true};
  bool cut = false;
  for (const RunRecord& run : runs) {
    if (!run.over() || !run.summary.contains("ranks")) continue;
    naming_malformed(run.path + "/summary.json", [&] {
      for (const Json& rank : run.summary.at("ranks")) {
        if (memory.rows.size() >= kMostRanks) {
          cut = true;
          break;
        }
        const std::string name = name_of(rank, runs.size(), run);
        const double parameters = number_at(rank, "parameter_bytes", 0),
                     optimizer = number_at(rank, "optimizer_bytes", 0),
                     activations = number_at(rank, "peak_activation_bytes", 0);
        memory.rows.push_back(
            {name,
             {{"parameters", parameters},
              {"optimizer", optimizer},
              {"activations, peak", activations},
              {"other, of the peak", std::max(0.0, number_at(rank, "peak_memory_bytes", 0) - parameters -
                                                       optimizer - activations)}}});
        std::vector<BarPart> parts;
        if (rank.contains("sent_bytes")) {
          for (const auto& [kind, bytes] : rank.at("sent_bytes").items()) {
            if (bytes.is_number()) parts.push_back({kind, bytes.get<double>()});
          }
        }
        sent.rows.push_back({name, parts});
        read.rows.push_back({name, {{"files", number_at(rank, "file_bytes_read", 0)}}});
      }
    });
  }
  if (memory.rows.empty()) return;
  const std::string since = counted_since(runs),
                    more = concat(since, cut ? " Further ranks stand in summary.json." : "");
  figures.push_back({"fig-memory", svg_of(memory), "What each rank held." + more});
  figures.push_back(
      {"fig-sent", svg_of(sent),
       concat("What each rank sent", since.empty() ? " in the whole run" : "", ", by collective.", more)});
  figures.push_back({"fig-read", svg_of(read), "What each rank read." + more});
}

}  // namespace

Figures machine_figures(const std::vector<RunRecord>& runs) {
  Figures figures;
  add_throughput(runs, figures);
  add_step(runs, figures);
  add_ranks(runs, figures);
  return figures;
}

}  // namespace jigsaw::inline report
