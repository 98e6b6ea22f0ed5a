#pragma once
#include <functional>
#include <string>

#include "base/clock.h"
#include "base/log.h"

namespace jigsaw::inline base {

/// Shows how far something is that takes long: on a terminal a bar that is rewritten in place and is gone in
/// the end, "statistics  [########------------]  41 %  0:12 left"; elsewhere a plain line every few seconds,
/// "statistics: 41 %, 0:12 left". What is over sooner says nothing. Local.
class ProgressBar {
 public:
  /// @param clock  seconds, only forward.
  ProgressBar(Log& log, std::string what, std::function<double()> clock = monotonic_seconds);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// @param part  that is done, 0 to 1.
  void update(double part);
  void update(std::int64_t done, std::int64_t all) {
    update(static_cast<double>(done) / static_cast<double>(all));
  }

 private:
  static constexpr double kSecondsBetweenLines = 5, kSecondsBetweenRewrites = 0.1;

  Log& log_;
  std::string what_;
  std::function<double()> clock_;
  double begun_, last_;
};

}  // namespace jigsaw::inline base
