#include <iostream>

#include "commands.h"
#include "proof/report.h"

namespace jigsaw {

ExitCode run_rules() {
  const std::vector<Verdict> verdicts = validate_all();
  std::cout << report(verdicts);
  return proven(verdicts) ? ExitCode::kDone : ExitCode::kInternal;
}

}  // namespace jigsaw
