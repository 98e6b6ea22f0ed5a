#include "base/progress_bar.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace jigsaw::inline base {

ProgressBar::ProgressBar(Log& log, std::string what, std::function<double()> clock)
    : log_(log), what_(std::move(what)), clock_(std::move(clock)), begun_(clock_()), last_(begun_) {}

ProgressBar::~ProgressBar() {
  if (log_.speaks()) log_.end_status(false);
}

void ProgressBar::update(double part) {
  if (!log_.speaks()) return;
  const double now = clock_();
  const bool rewrites = log_.terminal().rewrites;
  if (now - last_ < (rewrites ? kSecondsBetweenRewrites : kSecondsBetweenLines)) return;
  last_ = now;
  part = std::clamp(part, 0.0, 1.0);
  const auto percent = std::lround(100 * part);
  const std::string left =
      part > 0 ? human_seconds((now - begun_) / part * (1 - part)) + " left" : std::string("begun");
  if (!rewrites) return log_.info(concat(what_, ": ", percent, " %, ", left));
  constexpr int kFewestCells = 4, kMostCells = 24;
  const std::string behind = concat("  ", percent, " %  ", left);
  // A line that goes on below is not rewritten in whole.
  const int columns = log_.terminal().columns,
            room = columns - columns_of(what_) - columns_of(behind) - static_cast<int>(sizeof "  []"),
            cells = columns > 0 ? std::min(room, kMostCells) : kMostCells;
  std::string bar;
  if (cells >= kFewestCells) {
    const auto full = static_cast<std::size_t>(std::lround(cells * part));
    bar =
        concat("  [", std::string(full, '#'), std::string(static_cast<std::size_t>(cells) - full, '-'), "]");
  }
  log_.status(concat(what_, bar, behind));
}

}  // namespace jigsaw::inline base
