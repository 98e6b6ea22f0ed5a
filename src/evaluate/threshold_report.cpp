#include "evaluate/threshold_report.h"

#include <charconv>

#include "base/text.h"
#include "evaluate/score_table.h"

namespace jigsaw::inline evaluate {

std::vector<ThresholdMeasure> threshold_measures(std::int64_t members) {
  using S = ThresholdScore;
  std::vector<ThresholdMeasure> measures = {
      {"hits", "share where events were forecast and came", &S::hits, ""},
      {"misses", "share where events came and were not forecast", &S::misses, ""},
      {"false_alarms", "share where events were forecast and did not come", &S::false_alarms, ""},
      {"correct_negatives", "share where events were not forecast and did not come", &S::correct_negatives,
       ""},
      {"base_rate", "share where events came", &S::base_rate, "base rate"},
      {"pod", "probability of detection", &S::pod, "POD"},
      {"far", "false alarm ratio", &S::far, "FAR"},
      {"csi", "critical success index", &S::csi, "CSI"},
      {"frequency_bias", "forecast events over those that came", &S::frequency_bias, "freq.bias"},
      {"hss", "Heidke skill score", &S::hss, "HSS"}};
  if (members > 1) {
    measures.push_back({"brier", "Brier score of the share of members", &S::brier, "Brier"});
    measures.push_back({"brier_skill", "Brier skill score over the base rate", &S::brier_skill, "BSS"});
    measures.push_back({"reliability", "reliability part of the Brier score", &S::reliability, ""});
    measures.push_back({"resolution", "resolution part of the Brier score", &S::resolution, ""});
    measures.push_back(
        {"roc_area", "area under the relative operating characteristic", &S::roc_area, "ROC area"});
  }
  return measures;
}

std::string threshold_text(double threshold) {
  std::array<char, 32> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), threshold).ptr};
}

std::vector<std::string> threshold_tables_of(const ScoreReport& report) {
  const ThresholdScores& scores = report.scores->thresholds();
  std::vector<ThresholdMeasure> shown;
  std::vector<std::string> columns;
  for (const ThresholdMeasure& measure : threshold_measures(scores.members())) {
    if (*measure.title == '\0') continue;
    shown.push_back(measure);
    columns.emplace_back(measure.title);
  }
  for (const std::int64_t scale : scores.scales()) columns.push_back(concat("FSS ", scale));
  std::vector<std::string> lines;
  for (std::size_t variable = 0; variable < report.variables.size() && scores.any(); ++variable) {
    const std::string& units = report.units[variable];
    for (std::size_t t = 0; t < scores.of(variable).size(); ++t) {
      const std::vector<std::string> table =
          score_table(report,
                      concat(report.variables[variable], " >= ", threshold_text(scores.of(variable)[t]),
                             units.empty() ? "" : " ", units),
                      lead_rows(report), columns, [&](std::size_t region, int lead) {
                        const ThresholdScore score = scores.score(lead, variable, t, region);
                        std::vector<double> numbers;
                        for (const ThresholdMeasure& measure : shown) numbers.push_back(score.*measure.value);
                        numbers.insert(numbers.end(), score.fss.begin(), score.fss.end());
                        return numbers;
                      });
      lines.insert(lines.end(), table.begin(), table.end());
    }
  }
  return lines;
}

Json thresholds_of(const ScoreReport& report) {
  const ThresholdScores& scores = report.scores->thresholds();
  Json json = Json::object();
  for (std::size_t variable = 0; variable < report.variables.size() && scores.any(); ++variable) {
    for (std::size_t t = 0; t < scores.of(variable).size(); ++t) {
      Json& of_threshold = json[report.variables[variable]][threshold_text(scores.of(variable)[t])];
      for (std::size_t region = 0; region < report.scores->regions().size(); ++region) {
        Json& to = of_threshold[report.scores->regions()[region].name];
        for (int lead = 0; lead < report.scores->leads(); ++lead) {
          const ThresholdScore score = scores.score(lead, variable, t, region);
          for (const ThresholdMeasure& measure : threshold_measures(scores.members()))
            to[measure.name].push_back(score.*measure.value);
          for (std::size_t s = 0; s < scores.scales().size(); ++s)
            to[concat("fss_", scores.scales()[s])].push_back(score.fss[s]);
          if (scores.members() == 1) continue;
          for (const ReliabilityMeasure& measure : kReliability)
            to[measure.name].push_back(score.*measure.values);
        }
      }
    }
  }
  return json;
}

}  // namespace jigsaw::inline evaluate
