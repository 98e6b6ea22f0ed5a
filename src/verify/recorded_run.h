#pragma once
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "task/opened_run.h"
#include "verify/output_prints.h"

namespace jigsaw::inline verify {

/// Elements of a parameter, or of what belongs to it, that one rank keeps: elements [first, first + count) of
/// a box of the whole, row-major.
struct KeptPart {
  Box box;
  std::int64_t first = 0, count = 0;
  std::string bytes;  ///< in the type of stored parameters
};

/// What a step found, of the parts that this rank owns and no other rank tells.
struct RecordedStep {
  double loss = 0;
  std::map<std::string, std::vector<KeptPart>> gradients, updates;  ///< by parameter; before clipping
  std::map<std::string, double> squares;  ///< of the values of a parameter behind the step: their sum
};

/// A parameter, and how many terms its gradient adds up at most.
struct RecordedParameter {
  std::string name;
  Shape shape;
  double terms = 1;
};

struct RecordedRun {
  std::vector<RecordedParameter> parameters;  ///< in the order of the model
  std::vector<RecordedStep> steps;
  std::vector<OutputPrint> prints;  ///< of the step that was watched
  int operations = 0;               ///< of a forward pass
  double longest_sum = 1;           ///< terms of the longest sum in an operation's result
};

struct RecordOptions {
  int steps = 3;
  int watched = -1;  ///< step whose operations' results are taken fingerprints of
  /// Every parameter and input is off by the rounding of its type: how far results then are off is what
  /// rounding does to them. The number of a Perturbation; 0: none.
  int perturbation = 0;
  /// Called when the run is opened; tests break something there.
  std::function<void(OpenedRun&)> prepare = nullptr;
  /// Called behind each step.
  std::function<void()> made_step = nullptr;
};

/// Opens a configuration on these ranks and makes its first steps, as training does: same initial values,
/// same batches, same updates. Writes nothing. Collective.
/// @throws ConfigError, DataError; Error of code kNonFinite when a loss or gradient is not finite.
RecordedRun record_run(const Configuration& configuration, const std::filesystem::path& folder,
                       Communicator& ranks, const RecordOptions& options);

}  // namespace jigsaw::inline verify
