#include <iostream>

#include "base/error.h"
#include "base/file.h"
#include "base/output_place.h"
#include "base/text.h"
#include "commands.h"
#include "report/page.h"

namespace jigsaw {

std::function<ExitCode()> declare_report(const CommandOptions& command, const Invocation& /*invocation*/) {
  auto options = std::make_shared<ReportOptions>();
  options->output = "report.html";
  command.add_option("runs", options->runs, "Run directories; they may not be over").required().not_empty();
  command.add_option("--output", options->output, "The file to write; default report.html").not_empty();
  command.add_option("--scores", options->scores,
                     "Scores of the first run, by evaluate --json or --netcdf; default: scores.json there");
  command.add_option("--forecast", options->forecast, "A file of predict to show maps of");
  return [options] {
    check_output_place("--output", options->output, "is no page of report", is_report_page);
    try {
      write_report(*options);
    } catch (const FileError& error) {
      throw ConfigError(
          concat("the page cannot be written: ", error.what(), "; --output names another file"));
    }
    std::cout << "wrote " << options->output << '\n';
    return ExitCode::kDone;
  };
}

}  // namespace jigsaw
