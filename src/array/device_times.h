#pragma once
#include <cstdint>
#include <vector>

#include "array/context.h"
#include "base/trace.h"

namespace jigsaw::inline array {

/// The lane of a trace with operations as the rank's device ran them, and where it stood still for a
/// transfer. Those of the thread that put them into its stream are over when that is done.
inline constexpr const char* kDeviceLane = "device";
/// The lane with collectives as the device carried them.
inline constexpr const char* kDeviceTransferLane = "device communication";
inline constexpr const char* kDeviceBackgroundLane = "device communication in the background";

/// Operations and transfers of a traced rank, timed by its device. Lies in the state of the rank's context,
/// which has a runtime.
class DeviceTimes {
 public:
  /// An operation is begun.
  std::int64_t begin(Context& context);
  /// Ends the operation that was begun last. From time to time the host waits here for the device, to fetch
  /// the times.
  void end(Context& context, std::int64_t begin, TraceEvent event, EventTrace& trace);
  /// Notes work other than an operation that was put into the context's stream since that mark.
  void note(Context& context, const char* lane, std::int64_t begin, TraceEvent event);
  /// Waits for the device, and adds its times to the trace.
  void hand_over(Context& context, EventTrace& trace);

 private:
  struct Noted {
    const char* lane;
    std::int64_t begin, end;  ///< marks
    TraceEvent event;
  };

  int open_ = 0;  ///< operations, one in the other
  std::vector<Noted> noted_;
};

}  // namespace jigsaw::inline array
