#pragma once
#include <optional>
#include <string>

#include "verify/comparison.h"

namespace jigsaw::inline verify {

struct VerifyOptions {
  int steps = 3;
  std::optional<MeshOptions> against;  ///< else one rank
  /// Called on the tested run when it is opened; tests break a rule there.
  std::function<void(OpenedRun&)> prepare = nullptr;
  /// Told the part of the steps that are made.
  std::function<void(double)> progress = nullptr;
};

struct Verification {
  bool passed = false;          ///< on all ranks
  std::string report;           ///< on rank 0
  std::string first_different;  ///< on rank 0: the first operation whose result differs, or ""
};

/// Makes the first steps of a configuration on all ranks, and on another mesh of them (the others wait), and
/// compares losses, gradients and updates. What is right is decided by the number type, the lengths of sums,
/// and what a perturbation of one rounding does to the other mesh, or, where that is not enough, several
/// others. When something differs both runs are repeated up to that step, to find the first operation whose
/// result differs, or whose result's gradient does. Collective.
///
/// @throws ConfigError when the other mesh is neither of one rank nor of as many as there are; what
/// record_run() throws.
Verification verify_run(const Configuration& configuration, const std::filesystem::path& folder,
                        Communicator& world, const VerifyOptions& options);

}  // namespace jigsaw::inline verify
