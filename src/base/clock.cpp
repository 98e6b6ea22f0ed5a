#include "base/clock.h"

#include <chrono>
#include <cstdio>
#include <ctime>

namespace jigsaw::inline base {

double monotonic_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string utc_stamp(bool with_milliseconds) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto whole = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
  const auto seconds = static_cast<std::time_t>(whole / 1000);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char stamp[32], text[48];
  std::strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%S", &parts);
  if (with_milliseconds) {
    std::snprintf(text, sizeof text, "%s.%03dZ", stamp, static_cast<int>(whole % 1000));
  } else {
    std::snprintf(text, sizeof text, "%sZ", stamp);
  }
  return text;
}

}  // namespace jigsaw::inline base
