#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/trace.h"
#include "comm/communicator.h"
#include "parallel/machine.h"

namespace jigsaw::inline train {

/// What a kind of operation did in the steps of a profile, forward or backward, without what its calls waited
/// for.
struct OperationShare {
  std::int64_t calls = 0;
  double seconds = 0, flops = 0, moved = 0;
};

/// The operations of a block, without what they waited for; "(loss)" and "(update)" are blocks, too.
struct LayerShare {
  double forward = 0, backward = 0;  ///< seconds
  double flops = 0;
  double waiting = 0;  ///< seconds for transfers inside its operations
};

/// A collective along a set of axes.
struct TransferShare {
  std::int64_t calls = 0;
  double bytes = 0;
  double in_flight = 0;  ///< seconds from start to result
  double exposed = 0;    ///< of them the thread spent so many starting and waiting
};

/// Where the steps of one rank went. Seconds are of all steps together.
struct Profile {
  std::int64_t steps = 0;
  double seconds = 0;
  double computing = 0;  ///< in operations, without what they waited for; on a device, by its own clock
  double waiting = 0;    ///< for transfers and in control calls
  double data_wait = 0;
  std::map<std::string, OperationShare> operations;        ///< by family
  std::vector<std::pair<std::string, LayerShare>> layers;  ///< in the order in which they are met
  std::map<std::pair<std::string, std::string>, TransferShare> transfers;  ///< by collective and group
  TransferShare control;

  /// Between operations: the program itself. What it does while a device computes is no part of a step.
  double rest() const { return std::max(0.0, seconds - computing - waiting - data_wait); }
};

/// Of what is inside the steps of the thread that makes them: events as EventTrace::events() gives them.
Profile profile_of(const std::vector<std::pair<std::string, std::vector<TraceEvent>>>& events);

/// Least, mean and greatest of a step's seconds over ranks, and of its parts.
struct ProfileSpread {
  struct Part {
    const char* name;
    double least = 0, mean = 0, most = 0;
  };
  std::vector<Part> parts;
  int ranks = 1;
};
/// Collective.
ProfileSpread over_ranks(const Profile& profile, Communicator& world);

/// Tables of one rank, a line each.
std::string to_text(const Profile& profile, const ProfileSpread& spread,
                    const std::optional<Machine>& machine);

}  // namespace jigsaw::inline train
