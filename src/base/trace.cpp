#include "base/trace.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

namespace jigsaw::inline base {

constinit thread_local EventTrace::Lane* trace_lane = nullptr;

namespace {

/// What owns the lane of the calling thread.
thread_local std::shared_ptr<EventTrace> trace_of_thread;

}  // namespace

const char* name(TraceKind kind) {
  static constexpr std::array kNames = {"step",    "phase",     "operation", "start",    "wait",
                                        "control", "data wait", "read",      "transfer", "device transfer"};
  return kNames[static_cast<std::size_t>(kind)];
}

void EventTrace::clear() {
  const std::lock_guard lock(mutex_);
  for (Lane& lane : lanes_) {
    const std::lock_guard of_lane(lane.mutex);
    lane.events.clear();
  }
  samples_.clear();
}

void EventTrace::add(Lane& lane, TraceEvent event) {
  const std::lock_guard lock(lane.mutex);
  if (lane.events.size() >= kMostEvents) {
    ++dropped_;
  } else {
    lane.events.push_back(std::move(event));
  }
}

void EventTrace::add(const TraceSample& sample) {
  const std::lock_guard lock(mutex_);
  if (samples_.size() < kMostEvents) samples_.push_back(sample);
}

std::vector<std::pair<std::string, std::vector<TraceEvent>>> EventTrace::events() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::pair<std::string, std::vector<TraceEvent>>> all;
  for (const Lane& lane : lanes_) {
    const std::lock_guard of_lane(lane.mutex);
    all.emplace_back(lane.name, lane.events);
  }
  return all;
}

std::vector<TraceSample> EventTrace::samples() const {
  const std::lock_guard lock(mutex_);
  return samples_;
}

EventTrace::Lane* EventTrace::enter(const std::string& name) {
  const std::lock_guard lock(mutex_);
  for (Lane& lane : lanes_) {
    if (lane.busy || lane.name != name) continue;
    lane.busy = true;
    return &lane;
  }
  Lane& lane = lanes_.emplace_back();
  lane.trace = this;
  lane.name = name;
  lane.busy = true;
  return &lane;
}

void EventTrace::leave(Lane* lane) {
  const std::lock_guard lock(mutex_);
  lane->busy = false;
}

TracesFor::TracesFor(std::shared_ptr<EventTrace> trace, const std::string& thread_name)
    : trace_(std::exchange(trace_of_thread, std::move(trace))),
      before_(std::exchange(trace_lane, trace_of_thread ? trace_of_thread->enter(thread_name) : nullptr)) {}

TracesFor::~TracesFor() {
  if (trace_of_thread) trace_of_thread->leave(trace_lane);
  trace_lane = before_;
  trace_of_thread = std::move(trace_);
}

std::shared_ptr<EventTrace> current_trace() {
  return trace_of_thread;
}

std::int64_t trace_now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void TraceSpan::begin(TraceKind kind, std::string_view name) {
  event_.emplace(TraceEvent{.kind = kind, .name = std::string(name)});
  event_->begin = trace_now();
}

void TraceSpan::end() {
  event_->end = trace_now();
  if (trace_lane != nullptr) trace_lane->trace->add(*trace_lane, std::move(*event_));
}

}  // namespace jigsaw::inline base
