#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "parallel/sharded_tensor.h"
#include "train/output_space.h"

namespace jigsaw::inline train {

/// What one rank of a job tells of itself and of the machine that it runs on.
struct RankFacts {
  /// What it and another rank sent each other while all ranks did the like.
  struct Link {
    int to = 0;
    double bytes_per_second = 0;
    double latency_seconds = 0;
  };

  std::string host;
  std::string build;                  ///< versions of the program and its libraries
  double clock = 0;                   ///< seconds since 1970, read when all ranks had just met
  bool sees_output = true;            ///< whether it reads what rank 0 wrote beside the output
  std::optional<Error> output_error;  ///< why it cannot write there, if it cannot
  double flops_per_second = 0;        ///< 0: not measured, nor are links
  std::vector<Link> links;
};

/// What is said of a job before it begins.
struct PreflightReport {
  std::vector<std::string> lines;
  std::vector<std::string> warnings;
};

/// Compares what the ranks told. A rank is slow, and a link, when it does less than half of what the median
/// does, or a message takes more than twice as long, by 5 µs at least; links within a node and between nodes
/// are two kinds.
/// @param facts  by rank.
/// @throws ConfigError  when ranks run unlike builds, or do not share the output.
PreflightReport judge(const std::vector<RankFacts>& facts, const OutputNeed& need);

/// Asks all ranks, measures what they do and how they reach each other (log2 n rounds, some tenths of a
/// second), and tells what a job of several machines may have wrong that a run on one does not show.
/// Collective; ranks on GPUs are not measured. What it sends is not counted.
/// @param build  of this rank's executable
/// @param need   as rank 0 has it
/// @throws ConfigError  on all ranks alike, as judge()
void preflight(const Rank& rank, const std::string& build, const OutputNeed& need, Log& log);

}  // namespace jigsaw::inline train
