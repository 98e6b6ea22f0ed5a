#include "comm/agreement.h"

#include <array>

#include "base/text.h"

namespace jigsaw {

void together(Communicator& world, const std::function<void()>& work) {
  int code = 0;
  std::string message;
  try {
    work();
  } catch (const AgreedError&) {
    throw;
  } catch (const Error& error) {
    code = static_cast<int>(error.code());
    message = error.what();
  } catch (const std::exception& error) {
    code = static_cast<int>(ExitCode::kInternal);
    message = error.what();
  }
  const double calls = world.log()->fingerprint();
  const std::array mine = {code != 0 ? 1.0 : 0.0, calls, -calls};
  const std::vector<double> largest = world.all_reduce(mine, ReduceOp::kMax);
  if (largest[0] == 0) {
    if (largest[1] == -largest[2]) return;
    throw AgreedError(ExitCode::kInternal, 0,
                      concat("the ranks have made different collective calls; rank 0 is one that ",
                             world.log()->position()));
  }
  const std::vector<std::string> all = world.all_gather_text(code != 0 ? concat(code, " ", message) : "");
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].empty()) continue;
    const std::size_t blank = all[rank].find(' ');
    throw AgreedError(static_cast<ExitCode>(std::stoi(all[rank].substr(0, blank))), static_cast<int>(rank),
                      all[rank].substr(blank + 1));
  }
  fail("ranks disagree on whether one failed");
}

}  // namespace jigsaw
