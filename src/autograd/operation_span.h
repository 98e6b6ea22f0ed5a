#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "array/current_work.h"
#include "base/trace.h"

namespace jigsaw::inline autograd {

/// Traces a call of an operation, or other work of kernels, with the block that it stands in and what the
/// context counts of it, and samples the arena's bytes by purpose when it ends. On a device it is the rank's
/// current work meanwhile, and the device times it, too (array/device_times.h).
class OperationSpan {
 public:
  /// In forward, in the block that runs.
  OperationSpan(Context& context, std::string_view operation);
  /// @param suffix  of the name, such as kBackwardSuffix.
  OperationSpan(Context& context, std::string_view operation, std::string_view block,
                std::string_view suffix = "");
  ~OperationSpan();
  OperationSpan(const OperationSpan&) = delete;
  OperationSpan& operator=(const OperationSpan&) = delete;

  /// The block that runs, for backward; "" where nobody would be told.
  static std::string block_of(Context& context);

 private:
  Context& context_;
  TraceSpan span_;
  Tally before_;
  CurrentWork* work_ = nullptr;
  std::string outer_;       ///< what was the current operation before
  std::int64_t begin_ = 0;  ///< mark of the device
};

/// What an operation is called in traces when its backward runs.
inline constexpr std::string_view kBackwardSuffix = " backward";

}  // namespace jigsaw::inline autograd
