#pragma once
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "base/log.h"
#include "base/trace.h"
#include "parallel/machine.h"
#include "parallel/sharded_tensor.h"

namespace jigsaw::inline train {

/// What of a run is traced.
struct TraceOptions {
  std::string file;      ///< for `--trace`, replaced when the run ends; empty: none
  bool profile = false;  ///< `--profile`: print where a step goes
  /// The steps: "all" (with what goes before and between them), "7", "7-9", "7-900:10" (every tenth from the
  /// seventh on); empty: the three after the first of this process.
  std::string steps;
  std::string folder;  ///< of the run, of whose own files none becomes a trace

  bool wanted() const { return profile || !file.empty(); }
};

/// First and last step, from 1 on, and how far from each to the next.
struct TracedSteps {
  std::int64_t first = 1, last = std::numeric_limits<std::int64_t>::max(), stride = 1;
  bool everything = false;  ///< also what is no step

  bool contain(std::int64_t step) const {
    return step >= first && step <= last && (step - first) % stride == 0;
  }
};
/// @param first_step  of this process.
/// @throws ConfigError  when it is none of these.
TracedSteps traced_steps(const std::string& text, std::int64_t first_step);

/// The trace of one rank of a run: switched on for the chosen steps, written when the run ends. Lives on the
/// thread that it traces. Where nobody asked for a trace every call does nothing.
class RunTrace {
 public:
  /// Collective.
  /// @throws ConfigError  when the file cannot be written, is no earlier trace or one of the run's own, or
  ///                      the steps are none.
  RunTrace(const TraceOptions& options, Communicator& world);

  /// The run begins with this step. Collective.
  /// @throws ConfigError
  void begin(std::int64_t first_step);
  /// Before each step.
  void at_step(std::int64_t step);
  /// Behind the last step of the run, or where it stops. Writes the file, and prints the profile. Collective.
  ///
  /// @param machine  what the rank was measured to do, for shares of peaks.
  void finish(const Rank& rank, const std::optional<Machine>& machine, Log& log);
  /// In place of both, where no step was left to make.
  void tell_no_steps(Log& log) const;

 private:
  /// By rank 0. @throws ConfigError
  void check_place() const;
  void write(const Rank& rank) const;
  void join_parts() const;
  std::string part(int rank) const;

  TraceOptions options_;
  Communicator& world_;
  TracedSteps steps_;
  std::int64_t first_made_ = 0, last_made_ = 0;  ///< steps of this start; 0: none
  bool traced_ = false;                          ///< one of them
  std::int64_t zero_ = 0;                        ///< when all ranks were here
  std::shared_ptr<EventTrace> trace_;
  std::optional<TracesFor> lane_;
};

/// The events of a rank as members of a Chrome trace's "traceEvents", which Perfetto reads, a line each and a
/// comma behind each: spans ("X"), transfers from start to result ("b", "e"), memory by purpose ("C"), names
/// of the process and of its threads ("M"). Times are microseconds.
///
/// @param zero  what events' times count from, in nanoseconds.
std::string chrome_events(const EventTrace& trace, int rank, const std::string& process_name,
                          std::int64_t zero);

}  // namespace jigsaw::inline train
