#pragma once
#include <cstdint>
#include <string>

namespace jigsaw::inline base {

/// Bytes of memory that processes here can have together: of the machine, or of the control group (of a
/// container, of a batch job) that this process is in, whichever is less. The largest number where neither
/// is known.
std::int64_t memory_limit();

/// The limit of a control group and of those above it.
/// @param groups  text of /proc/self/cgroup. @param root  where control groups are mounted.
/// @return        the largest number where there is none.
std::int64_t control_group_limit(const std::string& groups, const std::string& root);

}  // namespace jigsaw::inline base
