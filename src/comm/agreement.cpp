#include "comm/agreement.h"

#include <array>
#include <limits>

#include "base/text.h"

namespace jigsaw::inline comm {

namespace {

/// Below the negative of every rank: nobody failed.
constexpr double kNone = -std::numeric_limits<double>::infinity();

}  // namespace

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
  const std::array mine = {code != 0 ? -static_cast<double>(world.rank()) : kNone, calls, -calls};
  const std::vector<double> largest = world.all_reduce(mine, ReduceOp::kMax);
  if (largest[0] != kNone) {
    const auto rank = static_cast<int>(-largest[0]);
    const std::string text = world.broadcast_text(code != 0 ? concat(code, " ", message) : "", rank);
    const std::size_t blank = text.find(' ');
    throw AgreedError(static_cast<ExitCode>(std::stoi(text.substr(0, blank))), rank, text.substr(blank + 1));
  }
  if (largest[1] == -largest[2]) return;
  throw AgreedError(ExitCode::kInternal, 0,
                    concat("the ranks have made different collective calls; rank 0 is one that ",
                           world.log()->position().text));
}

std::string agreed_failure(Communicator& communicator, const std::string& failure) {
  const std::array mine = {failure.empty() ? kNone : -static_cast<double>(communicator.rank())};
  const double lowest = communicator.all_reduce(mine, ReduceOp::kMax)[0];
  return lowest == kNone ? "" : communicator.broadcast_text(failure, static_cast<int>(-lowest));
}

}  // namespace jigsaw::inline comm
