#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
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
    rate.series.push_back({label_of_only(runs, runs[i], "throughput"), runs[i].step, runs[i].rate, i, false});
    Series series{label_of_only(runs, runs[i], "share of peak"), runs[i].step, runs[i].peak_share, i, false};
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

double sum_of(const std::vector<BarPart>& parts) {
  return std::accumulate(parts.begin(), parts.end(), 0.0,
                         [](double sum, const BarPart& part) { return sum + part.value; });
}

/// Bars of ranks, and what is to be said of those that are left out.
struct RankBars {
  Bars bars;
  std::string remark;

  explicit RankBars(const char* title) : bars{title, "", {}, true} {}

  /// Those of a run: all, or of more than `most` the largest, the largest first.
  /// @param alone  whether there is no other run.
  void add(decltype(Bars::rows) rows, std::size_t most, bool alone) {
    if (rows.size() > most) {
      std::ranges::stable_sort(rows, std::greater(), [](const auto& row) { return sum_of(row.second); });
      const auto shown = [&](std::size_t at) { return human_bytes(std::llround(sum_of(rows[at].second))); };
      remark = alone ? concat(" Shown are the ", most, " of ", rows.size(),
                              " ranks that have most; the rank in the middle of all has ",
                              shown(rows.size() / 2), ", the last ", shown(rows.size() - 1), ".")
                     : concat(" Shown are, of runs on more ranks, the ", most, " that have most.");
      remark += " All stand in summary.json.";
      rows.resize(most);
    }
    std::ranges::move(rows, std::back_inserter(bars.rows));
  }
};

std::vector<BarPart> memory_of(const Json& rank) {
  const double parameters = number_at(rank, "parameter_bytes", 0),
               optimizer = number_at(rank, "optimizer_bytes", 0),
               activations = number_at(rank, "peak_activation_bytes", 0),
               peak = number_at(rank, "peak_memory_bytes", 0);
  return {{"parameters", parameters},
          {"optimizer", optimizer},
          {"activations, peak", activations},
          {"other, of the peak", std::max(0.0, peak - parameters - optimizer - activations)}};
}

std::vector<BarPart> sent_of(const Json& rank) {
  std::vector<BarPart> parts;
  if (!rank.contains("sent_bytes")) return parts;
  for (const auto& [kind, bytes] : rank.at("sent_bytes").items()) {
    if (bytes.is_number()) parts.push_back({kind, bytes.get<double>()});
  }
  return parts;
}

/// How many ranks each run may show.
std::size_t most_of_each(const std::vector<RunRecord>& runs) {
  std::size_t ranks = 0, with_ranks = 0;
  for (const RunRecord& run : runs) {
    if (!run.over() || !run.summary.contains("ranks")) continue;
    ranks += run.summary.at("ranks").size();
    ++with_ranks;
  }
  return ranks <= kMostRanks ? kMostRanks : std::max<std::size_t>(1, kMostRanks / with_ranks);
}

void add_ranks(const std::vector<RunRecord>& runs, Figures& figures) {
  RankBars memory("Memory"), sent("Sent"), read("Read from files");
  const std::size_t most = most_of_each(runs);
  for (const RunRecord& run : runs) {
    if (!run.over() || !run.summary.contains("ranks")) continue;
    naming_malformed(run.path + "/summary.json", [&] {
      decltype(Bars::rows) held, out, in;
      for (const Json& rank : run.summary.at("ranks")) {
        const std::string name = name_of(rank, runs.size(), run);
        held.emplace_back(name, memory_of(rank));
        out.emplace_back(name, sent_of(rank));
        in.emplace_back(name, std::vector<BarPart>{{"files", number_at(rank, "file_bytes_read", 0)}});
      }
      const bool alone = runs.size() == 1;
      memory.add(std::move(held), most, alone);
      sent.add(std::move(out), most, alone);
      read.add(std::move(in), most, alone);
    });
  }
  if (memory.bars.rows.empty()) return;
  const std::string since = counted_since(runs);
  figures.push_back({"fig-memory", svg_of(memory.bars), "What each rank held." + since + memory.remark});
  figures.push_back({"fig-sent", svg_of(sent.bars),
                     concat("What each rank sent", since.empty() ? " in the whole run" : "",
                            ", by collective.", since, sent.remark)});
  figures.push_back({"fig-read", svg_of(read.bars), "What each rank read." + since + read.remark});
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
