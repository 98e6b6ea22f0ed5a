#include <iostream>

#include "commands.h"
#include "report/page.h"

namespace jigsaw {

void run_report(const ReportCommand& command) {
  write_report({command.runs, command.output, command.scores, command.forecast});
  std::cout << "wrote " << command.output << '\n';
}

}  // namespace jigsaw
