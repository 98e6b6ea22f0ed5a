#include "verify/verification.h"

#include "base/error.h"
#include "base/text.h"
#include "comm/agreement.h"
#include "comm/self/self.h"
#include "config/config.h"
#include "verify/difference.h"

namespace jigsaw::inline verify {

namespace {

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
    Runs runs = record(options_.steps, -1);
    const ComparedRuns compared{&runs.tested, runs.takes_part ? &runs.reference : nullptr,
                                runs.takes_part ? &runs.perturbed : nullptr};
    const Precision precision = configuration_.train.precision;
    const Comparison comparison = compare(world_, compared, precision);
    Verification result;
    result.passed = comparison.first_failing == 0;
    const Tolerances tolerances(precision, runs.tested);
    result.report = concat(tolerances.to_string(), "\n", comparison.to_text());
    if (result.passed) return result;
    const int step = comparison.first_failing;
    runs = record(step, step);
    if (world_.rank() != 0) return result;
    result.first_different = first_difference(runs.tested, runs.reference, runs.perturbed, tolerances);
    result.report += concat("differs first in ", comparison.first_failure, "\n");
    result.report += result.first_different.empty()
                         ? std::string(
                               "no operation's result differs, and no gradient of one: what a parameter's "
                               "gradient or update is formed from does\n")
                         : concat("the first that differs in this step is ", result.first_different, "\n");
    return result;
  }

 private:
  struct Runs {
    RecordedRun tested, reference, perturbed;
    bool takes_part = true;
  };

  Runs record(int steps, int watched) {
    Runs runs;
    std::size_t space = 0;
    RecordOptions record_options{steps, watched, false, nullptr, nullptr};
    if (options_.progress && watched < 0) {  // of three runs
      record_options.made_step = [&, made = std::make_shared<int>(0)] {
        options_.progress(++*made / (3.0 * steps));
      };
    }
    record_options.prepare = [&](OpenedRun& run) {
      space = static_cast<std::size_t>(run.placed().mesh().domain_axes());
      if (options_.prepare) options_.prepare(run);
    };
    runs.tested = record_run(configuration_, folder_, world_, record_options);
    record_options.prepare = nullptr;
    OtherMesh other;
    together(world_, [&] { other = other_mesh(configuration_, world_, options_, space); });
    runs.takes_part = other.ranks != nullptr;
    together(world_, [&] {
      if (!runs.takes_part) return;
      runs.reference = record_run(other.configuration, folder_, *other.ranks, record_options);
      record_options.perturbed = true;
      runs.perturbed = record_run(other.configuration, folder_, *other.ranks, record_options);
    });
    return runs;
  }

  const Configuration& configuration_;
  const std::filesystem::path& folder_;
  Communicator& world_;
  const VerifyOptions& options_;
};

}  // namespace

Verification verify_run(const Configuration& configuration, const std::filesystem::path& folder,
                        Communicator& world, const VerifyOptions& options) {
  return Verifier(configuration, folder, world, options).run();
}

}  // namespace jigsaw::inline verify
