#pragma once
#include <functional>
#include <string>

#include "base/error.h"

namespace jigsaw::testing {

/// The message of the error that `action` throws; "" when it throws none.
template <typename E = Error>
std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const E& error) {
    return error.what();
  }
  return "";
}

}  // namespace jigsaw::testing
