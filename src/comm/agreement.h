#pragma once
#include <exception>
#include <functional>
#include <string>

#include "base/error.h"
#include "comm/communicator.h"

namespace jigsaw::inline comm {

/// An error that all ranks know of: the same on each, and one of them tells it.
class AgreedError : public Error {
 public:
  AgreedError(ExitCode code, int speaker, const std::string& message)
      : Error(code, message), speaker_(speaker) {}
  /// The rank that prints it: rank 0 when all failed alike.
  int speaker() const { return speaker_; }

 private:
  int speaker_;
};

/// Runs `work` on every rank. When it throws on any, all ranks throw AgreedError with the error of the lowest
/// one; the same when the ranks have not made the same collective calls so far. Collective; `work` may hold
/// collectives of its own only if they fail on all ranks or none.
void together(Communicator& world, const std::function<void()>& work);

/// The text of the lowest rank that has one, on all ranks; "" when none has. Collective. Costs one number per
/// rank where none has.
std::string agreed_failure(Communicator& communicator, const std::string& failure);

/// The same for callers that name an error of their own: what the lowest rank on which `body` threw had to
/// say, or "". Collective; `body` must not be.
template <typename Body>
std::string first_failure(Communicator& communicator, Body&& body) {
  std::string failure;
  try {
    body();
  } catch (const std::exception& error) {
    failure = error.what();
    if (failure.empty()) failure = "unknown error";
  }
  return agreed_failure(communicator, failure);
}

}  // namespace jigsaw::inline comm
