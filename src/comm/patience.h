#pragma once
#include <chrono>
#include <cstdint>

namespace jigsaw::inline comm {

/// Tells from looks at counters whether progress has ended: of a rank, by its heartbeat, and of its job, by a
/// stamp that some rank changes while any makes progress. It knows no time but that of its looks. Time in
/// which this process did not run at all (it was stopped, or the machine slept) does not count: a gap between
/// looks of more than half of the patience begins it anew.
class Patience {
 public:
  using Time = std::chrono::steady_clock::time_point;

  Patience(std::chrono::steady_clock::duration patience, Time now)
      : patience_(patience), last_(now), seen_(now) {}

  struct Look {
    Time now;
    std::uint64_t rank = 0;  ///< count of the rank's heartbeat
    std::int64_t job = 0;    ///< the job's stamp; 0: there is none, or none any more, which is no progress
  };
  struct Verdict {
    bool rank_progressed = false;  ///< since the last look
    bool job_progressed = false;   ///< since the last look, as the stamp says
    bool spent = false;            ///< neither has progressed for all of the patience
  };
  Verdict look(const Look& look) {
    const Verdict verdict{look.rank != rank_, look.job != job_ && look.job != 0, false};
    if (verdict.rank_progressed || verdict.job_progressed || look.now - seen_ > patience_ / 2)
      last_ = look.now;
    rank_ = look.rank;
    if (look.job != 0) job_ = look.job;
    seen_ = look.now;
    return {verdict.rank_progressed, verdict.job_progressed, look.now - last_ >= patience_};
  }

 private:
  std::chrono::steady_clock::duration patience_;
  Time last_;  ///< progress, as far as is known
  Time seen_;
  std::uint64_t rank_ = 0;
  std::int64_t job_ = 0;
};

}  // namespace jigsaw::inline comm
