// What evaluate says of thresholds: how well forecasts tell where values reach them.
#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/text.h"
#include "report/figures.h"

namespace jigsaw::inline report {

namespace {

constexpr const char* kFss = "fss_";  // of a scale, in points: "fss_5"

/// The scores of a threshold over the whole grid.
struct Threshold {
  double value = 0;
  Json scores;
};

/// Those of a variable, the least first.
std::vector<Threshold> thresholds_of(const Json& by_threshold) {
  std::vector<Threshold> result;
  for (const auto& [text, regions] : by_threshold.items()) {
    if (regions.contains(kWholeGrid))
      result.push_back({Json::parse(text).get<double>(), regions.at(kWholeGrid)});
  }
  std::ranges::sort(result, {}, &Threshold::value);
  return result;
}

std::string reaching(double threshold) {
  return concat("≥ ", short_number(threshold));
}

/// Of a score that each lead has one of.
double number_of(const Json& list, std::size_t lead) {
  return lead < list.size() && list.at(lead).is_number() ? list.at(lead).get<double>() : std::nan("");
}

/// The critical success index of each threshold by lead, or where there is one lead by threshold.
std::string plot_of_csi(const std::string& title, const LeadAxis& leads, const std::vector<Threshold>& all) {
  Plot plot = small_plot(title, leads.label(), words_of("csi"));
  plot.from_zero = true;
  if (leads.size() > 1) {
    for (const Threshold& each : all)
      plot.series.push_back(
          series_of(reaching(each.value), leads, each.scores.at("csi"), plot.series.size(), false));
    return svg_of(plot);
  }
  plot.x_label = "threshold";
  Series series{words_of("csi"), {}, {}, 0, false};
  for (const Threshold& each : all) {
    series.x.push_back(each.value);
    series.y.push_back(number_of(each.scores.at("csi"), 0));
  }
  plot.series.push_back(std::move(series));
  return svg_of(plot);
}

/// Of all scales of a threshold's fractions skill score, by their points.
std::map<std::int64_t, Json> fractions_of(const Json& scores) {
  std::map<std::int64_t, Json> result;
  for (const auto& [measure, list] : scores.items()) {
    if (measure.starts_with(kFss)) result[Json::parse(measure.substr(std::string(kFss).size()))] = list;
  }
  return result;
}

/// The fractions skill score by scale, at the first and the last lead; nothing where there is none.
std::string plot_of_fractions(const std::string& title, const LeadAxis& leads, const Threshold& threshold) {
  const std::map<std::int64_t, Json> scales = fractions_of(threshold.scores);
  if (scales.empty()) return "";
  Plot plot = small_plot(title, "scale (points)", "FSS");
  plot.from_zero = true;
  for (const std::size_t lead : leads.ends()) {
    Series series{leads.text(leads.leads().at(lead)), {}, {}, plot.series.size(), false};
    for (const auto& [scale, list] : scales) {
      series.x.push_back(static_cast<double>(scale));
      series.y.push_back(number_of(list, lead));
    }
    plot.series.push_back(std::move(series));
  }
  if (plot.series.size() == 1) plot.title += concat(", ", plot.series[0].label);
  return svg_of(plot);
}

/// How often the event came, by how many members had it, at the first and the last lead; nothing where that
/// is not told.
std::string plot_of_reliability(const std::string& title, const LeadAxis& leads, const Threshold& threshold) {
  const Json lists = threshold.scores.value("observed_frequency", Json::array());
  Plot plot = small_plot(title, "share of members", "observed frequency");
  plot.from_zero = true;
  for (const std::size_t lead : leads.ends()) {
    if (lead >= lists.size()) continue;
    Series series{
        leads.text(leads.leads().at(lead)), {}, numbers_of(lists.at(lead)), plot.series.size(), false};
    if (std::ranges::none_of(series.y, [](double y) { return std::isfinite(y); })) continue;
    const auto members = static_cast<double>(std::max<std::size_t>(series.y.size(), 2) - 1);
    for (std::size_t k = 0; k < series.y.size(); ++k) series.x.push_back(static_cast<double>(k) / members);
    plot.series.push_back(std::move(series));
  }
  if (plot.series.empty()) return "";
  plot.series.push_back({"reliable", {0, 1}, {0, 1}, plot.series.size(), true});
  return svg_of(plot);
}

}  // namespace

Figures threshold_figures(const RunRecord& run, const LeadAxis& leads, const std::string& suffix) {
  const Json thresholds = run.scores.value("thresholds", Json::object());
  std::vector<std::string> names, indices, fractions, reliabilities;
  for (const auto& [variable, by_threshold] : thresholds.items()) names.push_back(variable);
  const ShownVariables shown = shown_of(names, kMostScored);
  std::size_t left_out = 0;
  for (const std::string& variable : shown.names) {
    const std::string units =
        run.scores.at("scores").value(variable, Json::object()).value("units", std::string());
    const std::vector<Threshold> all = thresholds_of(thresholds.at(variable));
    indices.push_back(plot_of_csi(quantity(variable, units), leads, all));
    for (const Threshold& each : all) {
      const std::string title = concat(variable, " ", with_unit(reaching(each.value), units));
      const std::string scales = plot_of_fractions(title, leads, each),
                        reliability = plot_of_reliability(title, leads, each);
      if (std::max(fractions.size(), reliabilities.size()) >= kMostScored) {
        left_out += scales.empty() && reliability.empty() ? 0 : 1;
        continue;
      }
      if (!scales.empty()) fractions.push_back(scales);
      if (!reliability.empty()) reliabilities.push_back(reliability);
    }
  }
  const std::string remark = shown.remark(run.scores_path),
                    of_some = concat(left_out == 0 ? ""
                                                   : concat(" Of ", counted(left_out, "more threshold"),
                                                            " the numbers are in ", run.scores_path, "."),
                                     remark);
  Figures figures;
  if (!indices.empty())
    figures.push_back(
        {"fig-thresholds" + suffix, row_of(indices),
         concat(
             "Critical success index of thresholds", leads.size() == 1 ? "" : " by lead",
             " over the period that evaluate scored: of what was forecast or came to reach a threshold, the "
             "share that was forecast and came.",
             remark)});
  if (!fractions.empty())
    figures.push_back(
        {"fig-fss" + suffix, row_of(fractions),
         concat("Fractions skill score of thresholds by the size of the neighbourhood, at the first and "
                "the last lead that evaluate scored: 1 where as many of its points reach the threshold "
                "in forecast and truth.",
                of_some)});
  if (!reliabilities.empty())
    figures.push_back(
        {"fig-reliability" + suffix, row_of(reliabilities),
         concat("Reliability: how often the threshold was reached, by the share of members that reach "
                "it, at the first and the last lead that evaluate scored. Along the dashed line the "
                "share is the probability; flatter: members are too sure.",
                of_some)});
  return figures;
}

}  // namespace jigsaw::inline report
