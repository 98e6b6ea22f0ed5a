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
  const std::array failed = {code != 0 ? 1.0 : 0.0};
  if (world.all_reduce(failed, ReduceOp::kMax)[0] == 0) return;
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
