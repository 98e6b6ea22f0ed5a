#pragma once
#include <span>
#include <string>
#include <vector>

#include "array/array.h"
#include "array/box.h"
#include "comm/communicator.h"
#include "samples/dataset.h"

namespace jigsaw::inline predict {

/// How many values of the states that forecasts start from are missing, beside how many were in training.
class MissingAtStart {
 public:
  MissingAtStart() = default;
  MissingAtStart(const Dataset& data, std::size_t starts);

  /// Counts a rank's piece. For the thread that reads.
  /// @param first  the number of the first start in it. @param origin  [start, rows, columns, targets], f64
  void note(std::size_t first, const Box& box, const Array& origin);
  /// A sentence for each prognostic variable that is missing everywhere at some of these starts, the first of
  /// all, or at many more points than in training, where statistics say at how many. Collective.
  std::vector<std::string> remarks(std::span<const Time> starts, Communicator& world) const;

 private:
  const Dataset* data_ = nullptr;
  std::vector<double> looked_, found_;  // points by start and target: at which a value could be, and was
};

}  // namespace jigsaw::inline predict
