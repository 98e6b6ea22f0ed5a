#include "verify/verification.h"

#include "base/error.h"
#include "base/text.h"
#include "comm/agreement.h"
#include "comm/self/self.h"
#include "config/config.h"
#include "verify/difference.h"

namespace jigsaw::inline verify {

namespace {

/// Perturbed runs, at most, of which each tells more of what rounding does.
constexpr int kMostPerturbations = 8;

/// Another mesh, on one rank or on all: what only some ranks call would no longer agree with the others.
struct OtherMesh {
  Configuration configuration;
  std::unique_ptr<Communicator> alone;  ///< of rank 0, which calls nobody
  Communicator* ranks = nullptr;        ///< null on ranks that wait
};

OtherMesh other_mesh(const Configuration& configuration, Communicator& world, const VerifyOptions& options,
                     std::size_t space) {
  MeshOptions mesh{1, std::vector<int>(space, 1), 1};
  if (options.against) mesh = *options.against;
  if (mesh.domain.empty()) mesh.domain.assign(space, 1);
  int count = mesh.data * mesh.tensor;
  for (const int size : mesh.domain) count *= size;
  if (count != 1 && count != world.size()) {
    throw ConfigError(concat("--against ", to_json(mesh).dump(), " needs ", count, " ranks, but there are ",
                             world.size(), "; give a mesh of as many, or of one"));
  }
  OtherMesh other{configuration, nullptr, count == 1 ? nullptr : &world};
  other.configuration.mesh = mesh;
  if (count == 1 && world.rank() == 0) {
    other.alone = make_self_communicator(world.context());
    other.ranks = other.alone.get();
  }
  return other;
}

class Verifier {
 public:
  Verifier(const Configuration& configuration, const std::filesystem::path& folder, Communicator& world,
           const VerifyOptions& options)
      : configuration_(configuration), folder_(folder), world_(world), options_(options) {}

  Verification run() {
    const int steps = options_.steps;
    tested_ = record_tested(steps, -1);
    together(world_, [&] { other_ = other_mesh(configuration_, world_, options_, space_); });
    reference_ = record_other(steps, -1, 0);
    const Comparison comparison = compare_beside_noise(steps);
    Verification result;
    result.passed = comparison.first_failing == 0;
    const Tolerances tolerances(configuration_.train.precision, tested_);
    result.report = concat(tolerances.to_string(), "\n", comparison.to_text(), remark_);
    if (!result.passed) locate(comparison, tolerances, result);
    return result;
  }

 private:
  /// One perturbed run shows what rounding does in most cases; where something is not within what it allows,
  /// others may show that rounding decides it.
  Comparison compare_beside_noise(int steps) {
    RunNoise noise;
    Comparison comparison;
    std::string first;
    int perturbations = 0;
    do {
      const RecordedRun perturbed = record_other(steps, -1, ++perturbations);
      comparison = compare(world_, runs(perturbed), configuration_.train.precision, noise);
      if (perturbations == 1) first = comparison.first_failure;
    } while (comparison.first_failing > 0 && perturbations < kMostPerturbations);
    if (first.empty()) return comparison;
    remark_ = concat(first, " is beyond what one perturbed run shows of rounding, and ",
                     comparison.first_failing > 0 ? "beyond" : "within", " what ", perturbations, " show\n");
    return comparison;
  }

  /// Repeats the first step that differs, to find where.
  void locate(const Comparison& comparison, const Tolerances& tolerances, Verification& result) {
    const int step = comparison.first_failing;
    tested_ = record_tested(step, step);
    reference_ = record_other(step, step, 0);
    const RecordedRun perturbed = record_other(step, step, 1);
    if (world_.rank() != 0) return;
    result.first_different = first_difference(tested_, reference_, perturbed, tolerances);
    result.report += concat("differs first in ", comparison.first_failure, "\n");
    result.report += result.first_different.empty()
                         ? std::string(
                               "no operation's result differs, and no gradient of one: what a parameter's "
                               "gradient or update is formed from does\n")
                         : concat("the first that differs in this step is ", result.first_different, "\n");
  }

  ComparedRuns runs(const RecordedRun& perturbed) const {
    const bool takes_part = other_.ranks != nullptr;
    return {&tested_, takes_part ? &reference_ : nullptr, takes_part ? &perturbed : nullptr};
  }

  RecordedRun record_tested(int steps, int watched) {
    RecordOptions options = record_options(steps, watched, 0);
    options.prepare = [&](OpenedRun& run) {
      space_ = static_cast<std::size_t>(run.placed().mesh().domain_axes());
      if (options_.prepare) options_.prepare(run);
    };
    return record_run(configuration_, folder_, world_, options);
  }

  /// Nothing on ranks that wait.
  RecordedRun record_other(int steps, int watched, int perturbation) {
    const RecordOptions options = record_options(steps, watched, perturbation);
    RecordedRun recorded;
    together(world_, [&] {
      if (other_.ranks != nullptr)
        recorded = record_run(other_.configuration, folder_, *other_.ranks, options);
    });
    return recorded;
  }

  RecordOptions record_options(int steps, int watched, int perturbation) {
    RecordOptions options{.steps = steps, .watched = watched, .perturbation = perturbation};
    if (options_.progress && watched < 0 && perturbation <= 1) {  // what runs in any case
      options.made_step = [this, all = 3.0 * steps] { options_.progress(++made_ / all); };
    }
    return options;
  }

  const Configuration& configuration_;
  const std::filesystem::path& folder_;
  Communicator& world_;
  const VerifyOptions& options_;
  std::size_t space_ = 0;
  OtherMesh other_;
  RecordedRun tested_, reference_;
  int made_ = 0;        ///< steps that progress was told of
  std::string remark_;  ///< on perturbed runs beyond the first
};

}  // namespace

Verification verify_run(const Configuration& configuration, const std::filesystem::path& folder,
                        Communicator& world, const VerifyOptions& options) {
  return Verifier(configuration, folder, world, options).run();
}

}  // namespace jigsaw::inline verify
