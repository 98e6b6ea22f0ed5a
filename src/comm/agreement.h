#pragma once
#include <exception>
#include <string>

#include "comm/communicator.h"

namespace jigsaw {

/// Runs `body` on every rank and lets all know how it went, so that all can fail alike: what the lowest rank
/// on which it threw had to say, or "". Collective; `body` must not be.
template <typename Body>
std::string first_failure(Communicator& communicator, Body&& body) {
  std::string failure;
  try {
    body();
  } catch (const std::exception& error) {
    failure = error.what();
    if (failure.empty()) failure = "unknown error";
  }
  for (const std::string& text : communicator.all_gather_text(failure)) {
    if (!text.empty()) return text;
  }
  return "";
}

}  // namespace jigsaw
