#include <iostream>

#include "commands.h"
#include "samples/sample_data.h"

namespace jigsaw {

void run_sample_data(const SampleDataCommand& command) {
  SampleDataOptions options;
  options.months = command.months;
  options.seed = command.seed;
  write_sample_data(options, command.output);
  std::cout << "wrote " << options.months << " months of t2m, u10, v10 and z to " << command.output << '\n';
}

}  // namespace jigsaw
