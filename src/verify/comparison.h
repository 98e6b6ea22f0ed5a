#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "verify/tolerance.h"

namespace jigsaw::inline verify {

/// ‖a − b‖ / ‖b‖ of something, and how much is right.
struct Apart {
  enum class Of : std::uint8_t {
    kNothing,  ///< nothing was compared
    kZeros,    ///< a and b are zero everywhere: equal, without a size that a difference would be part of
    kValues
  };

  double difference = 0, tolerance = 0;
  Of of = Of::kNothing;
  /// Not where the difference is no number.
  bool within() const { return difference <= tolerance; }
  /// Keeps the one that comes nearest to its tolerance, or exceeds it most; of zeros or nothing only where
  /// the other is, too.
  void keep_worse(const Apart& other);
};

struct ComparedLoss {
  double tested = 0, reference = 0;
  Apart apart;
};

/// A parameter over all steps.
struct ComparedParameter {
  std::string name;
  Apart gradient, update;
  double compared = 1;  ///< least share of the elements whose updates were compared
};

/// Of a run and the one that it should equal. Known to rank 0 alone, but for `first_failing`.
struct Comparison {
  std::vector<ComparedLoss> losses;  ///< by step
  std::vector<ComparedParameter> parameters;
  std::string first_failure;  ///< what of the first step that is not within tolerance
  int first_failing = 0;      ///< that step, from 1 on; 0: all is within. On all ranks

  std::string to_text() const;
};

/// What the ranks of a job know of three runs; those that had no part in one pass null.
struct ComparedRuns {
  const RecordedRun* tested;  ///< on all ranks
  const RecordedRun* reference;
  const RecordedRun* perturbed;  ///< see RecordOptions
};

/// What perturbed runs told of rounding until now, by step. Known to rank 0.
struct StepNoise {
  Noise loss;
  std::vector<Noise> gradients, updates;  ///< by parameter
};
using RunNoise = std::vector<StepNoise>;

/// Brings each parameter's gradients and updates to rank 0, one after the other, and compares them there, by
/// what this perturbed run and those before it tell of rounding. Collective over the job.
///
/// @param noise  of the perturbed runs before, empty at first; this one is added.
Comparison compare(Communicator& world, const ComparedRuns& runs, Precision precision, RunNoise& noise);

}  // namespace jigsaw::inline verify
