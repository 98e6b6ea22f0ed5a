#include <iostream>

#include "base/text.h"
#include "commands.h"
#include "samples/sample_data.h"

namespace jigsaw {

std::function<ExitCode()> declare_sample_data(const CommandOptions& command,
                                              const Invocation& /*invocation*/) {
  struct Options {
    std::string output;
    SampleDataOptions data;
  };
  auto options = std::make_shared<Options>();
  options->data.months = 2;
  command.add_option("--output", options->output, "Folder for the files").required().not_empty();
  command.add_option("--months", options->data.months, "Months from January 2021 on");
  command
      .add_option("--rows", options->data.rows,
                  "Latitudes from pole to pole, with twice as many steps of longitude; 37: every 5 degrees")
      .within(10, 2000);
  command.add_option("--seed", options->data.seed, "Of the waves");
  return [options] {
    options->data.columns = 2 * (options->data.rows - 1);
    write_sample_data(options->data, options->output);
    std::cout << "wrote " << counted(options->data.months, "month") << " of t2m, u10, v10 and z to "
              << options->output << '\n';
    return ExitCode::kDone;
  };
}

}  // namespace jigsaw
