#include <algorithm>
#include <iostream>

#include "base/disk.h"
#include "base/error.h"
#include "base/file.h"
#include "base/output_place.h"
#include "base/text.h"
#include "commands.h"
#include "report/page.h"
#include "report/run_table.h"
#include "sweep/run_list.h"

namespace jigsaw {
namespace {

struct TableOptions {
  bool states = false;
  std::string format = "table";
};

ExitCode print_states(const ReportOptions& options, const TableOptions& table) {
  if (!options.scores.empty() || !options.forecast.empty() || !options.maps.empty())
    throw ConfigError("command line: --scores, --forecast and --maps have no effect with --states");
  std::vector<RunStanding> runs;
  for (const std::string& run : options.runs) runs.push_back(standing_of(run));
  std::cout << (table.format == "json" ? standings_json(runs).dump(2) + "\n" : standings_text(runs));
  return ExitCode::kDone;
}

}  // namespace

std::function<ExitCode()> declare_report(const CommandOptions& command, const Invocation& /*invocation*/) {
  auto options = std::make_shared<ReportOptions>();
  options->output = "report.html";
  command.add_option("runs", options->runs, "Run directories; they may not be over").required().not_empty();
  command.add_option("--output", options->output, "The file to write; default report.html").not_empty();
  command.add_option("--scores", options->scores,
                     "Scores of the first run, by evaluate --json or --netcdf; default: scores.json there");
  command.add_option("--forecast", options->forecast, "A file of predict to show maps of");
  command.add_option("--maps", options->maps, "A file of evaluate --error-maps or --maps to show");
  auto table = std::make_shared<TableOptions>();
  command.add_flag("--states", table->states, "Print a table of how the runs stand, and write no file");
  command.add_option("--format", table->format, "Of --states: table or json").one_of({"table", "json"});
  return [options, table] {
    // Of FOLDER/* of a sweep; alone they are refused as any file is.
    if (!std::ranges::all_of(options->runs, is_sweep_file)) std::erase_if(options->runs, is_sweep_file);
    if (table->states) return print_states(*options, *table);
    if (table->format != "table") throw ConfigError("command line: --format has no effect without --states");
    check_output_place("--output", options->output, "is no page of report", is_report_page);
    try {
      write_report(*options);
    } catch (const FileError& error) {
      refuse_output<ConfigError>(
          error, concat("the page cannot be written: ", error.what(), "; --output names another file"));
    }
    std::cout << "wrote " << options->output << '\n';
    return ExitCode::kDone;
  };
}

}  // namespace jigsaw
