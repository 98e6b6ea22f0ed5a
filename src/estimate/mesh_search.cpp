#include "estimate/mesh_search.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>

#include "base/error.h"
#include "base/text.h"

namespace jigsaw::inline estimate {

namespace {

constexpr std::size_t kMostPlanned = 32;
constexpr std::size_t kRound = 8;  ///< meshes between two looks at what was found

/// What is cut over `data`, and whether blocks run again.
struct Saving {
  Zero zero = Zero::kNone;
  Recompute recompute = Recompute::kNone;
  bool operator==(const Saving&) const = default;
};

/// A rank in the middle of the mesh, which has neighbours on all sides; not on its diagonal, where ranks keep
/// what others send when a cut goes from one axis to another.
int middle_rank(const MeshOptions& mesh) {
  int rank = mesh.data / 2;
  for (std::size_t d = 0; d < mesh.domain.size(); ++d)
    rank = rank * mesh.domain[d] + (d % 2 == 0 ? mesh.domain[d] / 2 : (mesh.domain[d] - 1) / 2);
  return rank * mesh.tensor + mesh.tensor - 1;
}

void keep_most(RankEstimate& most, const RankEstimate& other) {
  const auto keep = [](auto& value, const auto& candidate) { value = std::max(value, candidate); };
  if (other.total_sent_bytes() > most.total_sent_bytes()) most.traffic = other.traffic;
  keep(most.parameter_bytes, other.parameter_bytes);
  keep(most.gradient_bytes, other.gradient_bytes);
  keep(most.optimizer_bytes, other.optimizer_bytes);
  keep(most.activation_bytes, other.activation_bytes);
  keep(most.workspace_bytes, other.workspace_bytes);
  keep(most.input_bytes, other.input_bytes);
  keep(most.memory_bytes, other.memory_bytes);
  keep(most.flops, other.flops);
  keep(most.file_bytes, other.file_bytes);
  keep(most.samples_read, other.samples_read);
  for (std::size_t kind = 0; kind < most.sent_bytes.size(); ++kind)
    keep(most.sent_bytes[kind], other.sent_bytes[kind]);
  keep(most.compute_seconds, other.compute_seconds);
  keep(most.stalled_seconds, other.stalled_seconds);
  keep(most.read_seconds, other.read_seconds);
  keep(most.seconds, other.seconds);
}

bool before(const PlannedMesh& a, const PlannedMesh& b) {
  if (a.fits != b.fits) return a.fits;
  if (!a.fits) return a.worst.memory_bytes < b.worst.memory_bytes;
  if (a.worst.seconds != b.worst.seconds) return a.worst.seconds < b.worst.seconds;
  // Where reading takes longer than all else it takes alike on many meshes.
  const auto without_reading = [](const PlannedMesh& mesh) {
    return mesh.worst.compute_seconds + mesh.worst.stalled_seconds;
  };
  return without_reading(a) < without_reading(b);
}

/// One mesh: its plans for a number of parts, and what the choices on it take.
class OneMesh {
 public:
  OneMesh(const MeshQuestion& question, const MeshOptions& mesh) : question_(question), mesh_(mesh) {}

  /// With the choices as configured.
  PlannedMesh as_configured() {
    const Configuration& config = question_.configuration;
    return of({config.zero, config.train.recompute}, config.train.accumulate);
  }

  /// The fastest choice that fits, or else the one that takes least memory.
  PlannedMesh fastest_that_fits() {
    if (question_.memory_bytes == 0 || question_.as_configured) return as_configured();
    const std::vector<Saving> savings = all_savings();
    std::optional<PlannedMesh> best, least;
    const auto faster = [&](const PlannedMesh& other) {
      return !best || before(other, *best) ? other : *best;
    };
    for (const std::int64_t parts : all_parts()) {
      PlannedMesh fast = of(savings.front(), parts);
      if (fast.fits) return faster(fast);
      PlannedMesh saving = of(savings.back(), parts);
      if (!saving.fits && !least) least = smallest();
      if (least && !least->fits) break;
      if (!saving.fits) continue;
      for (std::size_t i = 1; i + 1 < savings.size(); ++i) {
        if (PlannedMesh between = of(savings[i], parts); between.fits) {
          saving = between;
          break;
        }
      }
      // More parts may be faster where they spare running blocks again.
      best = faster(saving);
      if (saving.recompute == Recompute::kNone) break;
    }
    return best ? *best : *least;
  }

  /// The choice that takes least memory: a sample at a time.
  PlannedMesh smallest() { return of(all_savings().back(), all_parts().back()); }

  RankEstimate rank(const PlannedMesh& planned, int number) {
    return estimate_rank(run_of({planned.zero, planned.recompute}, planned.accumulate), number,
                         planned.plans);
  }

 private:
  /// From fast to small.
  std::vector<Saving> all_savings() const {
    std::vector<Saving> savings;
    const auto zeros = mesh_.data > 1 ? std::vector{Zero::kNone, Zero::kOptimizer, Zero::kParameters}
                                      : std::vector{Zero::kNone};
    for (const Recompute recompute : {Recompute::kNone, Recompute::kBlock}) {
      for (const Zero zero : zeros) savings.push_back({zero, recompute});
    }
    return savings;
  }

  /// Into how many parts a batch may be cut so that each group has a sample, or a member of one: as
  /// configured, and more.
  std::vector<std::int64_t> all_parts() const {
    const TrainOptions& train = question_.configuration.train;
    std::vector<std::int64_t> parts;
    const std::int64_t members = question_.configuration.ensemble.members;
    for (std::int64_t count = train.accumulate; train.batch_size / count * members >= mesh_.data; ++count) {
      const bool doubles = parts.empty() || count >= 2 * parts.back();
      if (train.batch_size % count == 0 && doubles) parts.push_back(count);
    }
    return parts.empty() ? std::vector{train.accumulate} : parts;
  }

  EstimatedRun run_of(const Saving& saving, std::int64_t parts) const {
    EstimatedRun run{question_.configuration, question_.data, question_.machine, question_.ranks};
    run.configuration.mesh = mesh_;
    run.configuration.zero = saving.zero;
    run.configuration.train.recompute = saving.recompute;
    run.configuration.train.accumulate = parts;
    return run;
  }

  PlannedMesh of(const Saving& saving, std::int64_t parts) {
    if (parts != planned_parts_) plans_ = nullptr;
    planned_parts_ = parts;
    PlannedMesh result{mesh_, saving.zero, saving.recompute, parts};
    const EstimatedRun run = run_of(saving, parts);
    KnownPlans* const leave = plans_ == nullptr ? &plans_ : nullptr;
    const KnownPlans known = plans_;
    result.worst = estimate_rank(run, 0, known, leave);
    result.plans = plans_;
    const auto fits = [&] {
      return question_.memory_bytes == 0 || result.worst.memory_bytes <= question_.memory_bytes;
    };
    // Pieces are largest on rank 0; what is sent is most in the middle.
    if (const int middle = middle_rank(mesh_); fits() && middle > 0)
      keep_most(result.worst, estimate_rank(run, middle, plans_));
    result.fits = fits();
    return result;
  }

  const MeshQuestion& question_;
  MeshOptions mesh_;
  KnownPlans plans_;
  std::int64_t planned_parts_ = 0;
};

/// `work(i)` for i = 0 … count − 1 on several threads. Throws what the lowest i threw.
void for_each_on_threads(std::size_t count, int threads, const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next = 0;
  std::vector<std::exception_ptr> errors(count);
  const auto run = [&] {
    for (std::size_t i = next++; i < count; i = next++) {
      try {
        work(i);
      } catch (...) {
        errors[i] = std::current_exception();
      }
    }
  };
  std::vector<std::thread> others;
  for (std::size_t t = 1; t < std::min(count, static_cast<std::size_t>(threads)); ++t)
    others.emplace_back(run);
  run();
  for (std::thread& thread : others) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

[[noreturn]] void refuse_ranks(const MeshQuestion& question, const ModelWork& work) {
  const auto fits = [&](int ranks) {
    return ranks >= 1 && !bound_meshes(work, question.configuration, question.machine, ranks).empty();
  };
  const int ranks = question.ranks;
  std::int64_t most = work.samples * work.channels;
  for (const std::int64_t units : work.units) most *= units;
  int below = static_cast<int>(std::min<std::int64_t>(ranks - 1, most)), above = ranks + 1;
  while (!fits(below)) --below;
  while (above <= most && above < 2 * ranks && !fits(above)) ++above;
  throw ConfigError(concat(
      "--ranks ", ranks,
      ": no mesh has so many ranks of which each has a part of the work: data can be at most ", work.samples,
      question.configuration.ensemble.members > 1 ? " (members of samples" : " (samples",
      " at a time), domain at most [", join(work.units, ", "), "] (patches), tensor at most ", work.channels,
      " (channels); ", below, fits(above) ? concat(" or ", above) : "", " ranks would fit"));
}

}  // namespace

MeshAnswer find_meshes(const MeshQuestion& question) {
  const ModelWork work = work_of(question.configuration, question.data);
  std::vector<MeshBound> meshes =
      bound_meshes(work, question.configuration, question.machine, question.ranks);
  if (meshes.empty()) refuse_ranks(question, work);
  MeshAnswer answer;
  std::size_t seen = 0;
  const auto may_be_kept = [&](const MeshBound& mesh) {
    const bool full = answer.best.size() >= question.kept && answer.best.back().fits;
    return !full || mesh.at_least <= answer.best.back().worst.seconds;
  };
  while (!meshes.empty() && seen < kMostPlanned) {
    std::vector<MeshBound> round;
    std::vector<MeshBound> later;
    for (const MeshBound& mesh : meshes) {
      if (!may_be_kept(mesh)) {
        answer.others.push_back(mesh);
      } else {
        (round.size() < kRound ? round : later).push_back(mesh);
      }
    }
    std::vector<PlannedMesh> found(round.size());
    std::vector<std::string> refused(round.size());
    for_each_on_threads(round.size(), question.threads, [&](std::size_t i) {
      try {
        found[i] = OneMesh(question, round[i].mesh).fastest_that_fits();
      } catch (const Error& error) {
        refused[i] = error.what();
      }
    });
    for (std::size_t i = 0; i < round.size(); ++i) {
      if (refused[i].empty()) answer.best.push_back(std::move(found[i]));
      if (answer.refused.empty()) answer.refused = refused[i];
    }
    seen += round.size();
    std::stable_sort(answer.best.begin(), answer.best.end(), before);
    if (answer.best.size() > question.kept) answer.best.resize(question.kept);
    meshes = std::move(later);
    // Where the most likely are far too large, the others are, too.
    if (seen >= 2 * kRound && !answer.best.empty() && !answer.best.front().fits) break;
  }
  answer.planned = static_cast<std::int64_t>(seen);
  answer.others.insert(answer.others.end(), meshes.begin(), meshes.end());
  std::stable_sort(answer.others.begin(), answer.others.end(),
                   [](const MeshBound& a, const MeshBound& b) { return a.at_least < b.at_least; });
  return answer;
}

std::optional<PlannedMesh> configured_mesh(const MeshQuestion& question,
                                           std::vector<RankEstimate>* all_ranks) {
  const Configuration& config = question.configuration;
  const ModelWork work = work_of(config, question.data);
  Shape units;
  for (const std::int64_t count : work.units) units.append(count);
  const MeshOptions mesh = resolved_mesh(config.mesh, question.ranks, units, {});
  int ranks = mesh.data * mesh.tensor;
  for (const int size : mesh.domain) ranks *= size;
  if (ranks != question.ranks) return std::nullopt;
  OneMesh one(question, mesh);
  PlannedMesh planned = one.as_configured();
  if (all_ranks == nullptr) return planned;
  all_ranks->resize(static_cast<std::size_t>(std::min(ranks, kMostRanks)));
  for_each_on_threads(all_ranks->size(), question.threads, [&](std::size_t rank) {
    (*all_ranks)[rank] = one.rank(planned, static_cast<int>(rank));
  });
  if (ranks <= kMostRanks) {
    for (const RankEstimate& each : *all_ranks) keep_most(planned.worst, each);
  }
  planned.fits = question.memory_bytes == 0 || planned.worst.memory_bytes <= question.memory_bytes;
  return planned;
}

int smallest_ranks(const MeshQuestion& question) {
  constexpr int kMost = 1 << 16, kSteps = 8;
  constexpr std::size_t kTried = 2;
  const ModelWork work = work_of(question.configuration, question.data);
  // Parameters, gradients and what the optimizer keeps of them are never less than parameters and gradients.
  const double stored = static_cast<double>(size_of(types_of(question.configuration.train.precision).master));
  const auto fits = [&](int ranks) {
    if (2 * stored * work.parameters / ranks > static_cast<double>(question.memory_bytes)) return false;
    MeshQuestion smaller = question;
    smaller.ranks = ranks;
    std::vector<MeshBound> meshes = bound_meshes(work, question.configuration, question.machine, ranks);
    // One sample at a time needs the fewest activations.
    std::stable_sort(meshes.begin(), meshes.end(),
                     [](const MeshBound& a, const MeshBound& b) { return a.mesh.data < b.mesh.data; });
    meshes.resize(std::min(meshes.size(), kTried));
    return std::any_of(meshes.begin(), meshes.end(),
                       [&](const MeshBound& mesh) { return OneMesh(smaller, mesh.mesh).smallest().fits; });
  };
  // Between a power of two and the one before it.
  const auto first_below = [&](int power) {
    const int step = std::max(1, power / 2 / kSteps);
    for (int ranks = power / 2 + step; ranks < power; ranks += step)
      if (fits(ranks)) return ranks;
    return 0;
  };
  for (int power = 1; power <= kMost; power *= 2) {
    if (!fits(power)) continue;
    const int less = first_below(power);
    return less > 0 ? less : power;
  }
  // No mesh has a power of two of ranks, perhaps.
  for (int power = 4; power <= kMost; power *= 2) {
    if (const int ranks = first_below(power); ranks > 0) return ranks;
  }
  return 0;
}

}  // namespace jigsaw::inline estimate
