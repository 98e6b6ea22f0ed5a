#include "predict/physical.h"

#include <cmath>

#include "array/transfer.h"

namespace jigsaw::inline predict {

std::int64_t hide_missing(const Rank& rank, const Array& origin, std::vector<double>& states) {
  if (states.empty()) return 0;
  const std::vector<double> starts = download_values(rank.context, origin);
  std::int64_t missing = 0;
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (!std::isnan(starts[i])) continue;
    states[i] = starts[i];
    ++missing;
  }
  return missing;
}

void write_rim(const Rank& rank, const Layout& layout, const Rim& rim, const Array& rims,
               std::vector<double>& states) {
  if (states.empty()) return;
  const Box box = rank.box(layout);
  const Box plane{{box.begin[1], box.begin[2]}, {box.extent[1], box.extent[2]}};
  const std::vector<double> given = download_values(rank.context, rims);
  const auto points = static_cast<std::size_t>(plane.extent.count()),
             channels = static_cast<std::size_t>(box.extent[3]);
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (rim.holds(plane, i / channels % points)) states[i] = given[i];
  }
}

}  // namespace jigsaw::inline predict
