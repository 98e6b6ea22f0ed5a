#include "array/device_times.h"

#include <map>
#include <string_view>

namespace jigsaw::inline array {

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
  note(context, kDeviceLane, begin, std::move(event));
  if (open_ == 0 && noted_.size() >= kMostNoted) hand_over(context, trace);
}

void DeviceTimes::note(Context& context, const char* lane, std::int64_t begin, TraceEvent event) {
  noted_.push_back({lane, begin, context.runtime()->mark(context.stream()), std::move(event)});
}

void DeviceTimes::hand_over(Context& context, EventTrace& trace) {
  if (noted_.empty()) return;
  const std::vector<std::int64_t> passed = context.runtime()->passed();
  std::map<std::string_view, EventTrace::Lane*> lanes;
  for (Noted& each : noted_) {
    EventTrace::Lane*& lane = lanes[each.lane];
    if (lane == nullptr) lane = trace.enter(each.lane);
    each.event.begin = passed.at(static_cast<std::size_t>(each.begin));
    each.event.end = passed.at(static_cast<std::size_t>(each.end));
    trace.add(*lane, std::move(each.event));
  }
  for (const auto& [name, lane] : lanes) trace.leave(lane);
  noted_.clear();
}

}  // namespace jigsaw::inline array
