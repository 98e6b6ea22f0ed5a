#include "autograd/device_times.h"

namespace jigsaw::inline autograd {

namespace {

/// A few steps of a large model.
constexpr std::size_t kMostNoted = 8192;

}  // namespace

std::int64_t DeviceTimes::begin(Context& context) {
  ++open_;
  return context.runtime()->mark(context.stream());
}

void DeviceTimes::end(Context& context, std::int64_t begin, TraceEvent event, EventTrace& trace) {
  --open_;
  noted_.push_back({begin, context.runtime()->mark(context.stream()), std::move(event)});
  if (open_ == 0 && noted_.size() >= kMostNoted) hand_over(context, trace);
}

void DeviceTimes::hand_over(Context& context, EventTrace& trace) {
  if (noted_.empty()) return;
  const std::vector<std::int64_t> passed = context.runtime()->passed();
  EventTrace::Lane* const lane = trace.enter(kDeviceLane);
  for (Noted& each : noted_) {
    each.event.begin = passed.at(static_cast<std::size_t>(each.begin));
    each.event.end = passed.at(static_cast<std::size_t>(each.end));
    trace.add(*lane, std::move(each.event));
  }
  trace.leave(lane);
  noted_.clear();
}

}  // namespace jigsaw::inline autograd
