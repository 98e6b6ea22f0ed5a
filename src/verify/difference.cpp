#include "verify/difference.h"

#include <algorithm>

#include "base/text.h"

namespace jigsaw::inline verify {

std::string first_difference(const RecordedRun& tested, const RecordedRun& reference,
                             const RecordedRun& perturbed, const Tolerances& tolerances) {
  const std::size_t count =
      std::min({tested.prints.size(), reference.prints.size(), perturbed.prints.size()});
  for (std::size_t i = 0; i < count; ++i) {
    const OutputPrint &here = tested.prints[i], &there = reference.prints[i];
    if (here.source.block != there.source.block || here.source.operation != there.source.operation)
      return concat(here.to_string(), " comes where on the other mesh there is ", there.to_string());
    const double difference = OutputPrint::difference(here, there);
    const double noise = OutputPrint::difference(perturbed.prints[i], there);
    const double tolerance =
        std::max(tolerances.of_value(static_cast<int>(i)), Tolerances::kNoiseFactor * noise);
    if (!(difference <= tolerance)) {
      return concat(here.to_string(), ": ", difference, " apart, tolerance ", tolerance,
                    here.source.phase == OutputWatch::Phase::kGradient
                        ? "; the backward of an operation that uses it is wrong"
                        : "");
    }
  }
  return "";
}

}  // namespace jigsaw::inline verify
