#include <algorithm>
#include <iostream>

#include "base/error.h"
#include "base/text.h"
#include "commands.h"
#include "evaluate/score_comparison.h"
#include "evaluate/score_files.h"

namespace jigsaw {
namespace {

struct CompareArguments {
  std::string first, second;
  std::vector<std::string> scores;
  std::string region = "all";
  std::string json;
  bool overwrite = false;
};

ExitCode compare(const CompareArguments& options) {
  ScoreFiles files(options.json, "", options.overwrite, {options.first, options.second});
  const ScoreComparison comparison = compare_scores(options.first, options.second, options.scores);
  const auto is_shown = [&](const ComparedScore& score) {
    return options.region == "every" || score.region == options.region;
  };
  if (std::ranges::none_of(comparison.scores, is_shown)) {
    std::vector<std::string> known;
    for (const ComparedScore& score : comparison.scores)
      if (std::ranges::find(known, score.region) == known.end()) known.push_back(score.region);
    throw ConfigError(concat("command line: no region ", options.region, did_you_mean(options.region, known),
                             "; both have ", join(known, ", ")));
  }
  files.write([&] { return json_of(comparison); }, {});
  for (const std::string& line : table_of(comparison, options.region == "every" ? "" : options.region))
    std::cout << line << '\n';
  return ExitCode::kDone;
}

}  // namespace

std::function<ExitCode()> declare_compare(const CommandOptions& command, const Invocation& /*invocation*/) {
  auto options = std::make_shared<CompareArguments>();
  command.add_option("first", options->first, "A file of evaluate --by-start").required().not_empty();
  command.add_option("second", options->second, "Another one, of the same data").required().not_empty();
  command.add_option("--score", options->scores,
                     "Scores to compare, such as rmse mae acc; default: rmse, and of ensembles crps");
  command.add_option("--region", options->region,
                     "The region of the table; default: all, the whole grid. every: each");
  command.add_option("--json", options->json, "A JSON file to write all regions and leads to");
  command.add_flag("--overwrite", options->overwrite, "Replace this file if it is there");
  return [options] { return compare(*options); };
}

}  // namespace jigsaw
