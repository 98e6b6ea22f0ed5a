#include "comm/call_log.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "base/text.h"

namespace jigsaw::inline comm {

namespace {

/// The finaliser of SplitMix64 over a running value: order matters.
std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  std::uint64_t z = hash * 0x9e3779b97f4a7c15U + value + 0x632be59bd9b4e019U;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

/// As the device says it now.
CallLog::State state_of(const CallLog::Entry& entry) {
  using enum CallLog::State;
  if (entry.state != kQueued) return entry.state;
  return entry.device.done.passed() ? kDone : entry.device.begun.passed() ? kRunning : kQueued;
}

}  // namespace

std::string CallLog::Entry::describe() const {
  return concat(name(kind), " #", sequence, " on ", group, " (", count, " elements)");
}

std::int64_t CallLog::begin(const std::string& group, bool whole_job, const Call& call) {
  const std::int64_t count = call.send.defined() ? call.send.count() : 0;
  const std::lock_guard lock(mutex_);
  const std::int64_t number = next_++;
  ring_[static_cast<std::size_t>(number % kKept)] = {number, made_++,       group,           call.kind,
                                                     count,  call.sequence, State::kStarted, {}};
  hash_ = mix(hash_, stable_hash(group));
  hash_ = mix(hash_, static_cast<std::uint64_t>(call.kind));
  if (whole_job) hash_ = mix(hash_, static_cast<std::uint64_t>(call.global_count()));
  return number;
}

void CallLog::set_state(std::int64_t number, State state) {
  const std::lock_guard lock(mutex_);
  Entry& entry = ring_[static_cast<std::size_t>(number % kKept)];
  if (entry.number == number) entry.state = state;
}

void CallLog::set_on_device(std::int64_t number, const OnDevice& device) {
  const std::lock_guard lock(mutex_);
  drop_done();
  Entry& entry = ring_[static_cast<std::size_t>(number % kKept)];
  entry.state = State::kQueued;
  entry.device = device;
  on_device_.push_back(entry);
}

/// From the front, as long as they are done.
void CallLog::drop_done() {
  while (!on_device_.empty() && on_device_.front().number < marked_ &&
         on_device_.front().device.done.passed())
    on_device_.pop_front();
}

std::vector<CallLog::Entry> CallLog::since_mark() const {
  const std::lock_guard lock(mutex_);
  std::vector<Entry> entries;
  std::ranges::copy_if(on_device_, std::back_inserter(entries),
                       [&](const Entry& entry) { return entry.number >= marked_; });
  return entries;
}

void CallLog::repeat(const std::vector<Entry>& calls) {
  const std::lock_guard lock(mutex_);
  drop_done();
  for (Entry entry : calls) {
    entry.number = next_++;
    entry.ordinal = made_++;
    ring_[static_cast<std::size_t>(entry.number % kKept)] = entry;
    on_device_.push_back(entry);
    hash_ = mix(hash_, stable_hash(entry.group));
    hash_ = mix(hash_, static_cast<std::uint64_t>(entry.kind));
  }
}

CallLog::Mark CallLog::mark() {
  const std::lock_guard lock(mutex_);
  marked_ = next_;
  return {next_, made_, hash_};
}

void CallLog::forget(const Mark& since) {
  const std::lock_guard lock(mutex_);
  made_ = since.made;
  hash_ = since.hash;
  marked_ = kNothing;
  std::erase_if(on_device_, [&](const Entry& entry) { return entry.number >= since.next; });
  for (Entry& entry : ring_) {
    if (entry.number >= since.next) entry.number = kForgotten;
  }
}

std::vector<CallLog::Entry> CallLog::last() const {
  const std::lock_guard lock(mutex_);
  return last_calls();
}

std::vector<CallLog::Entry> CallLog::last_calls() const {
  std::vector<Entry> entries;
  for (std::int64_t number = std::max<std::int64_t>(0, next_ - kKept); number < next_; ++number) {
    const Entry& entry = ring_[static_cast<std::size_t>(number % kKept)];
    if (entry.number != number) continue;
    entries.push_back(entry);
    entries.back().state = state_of(entry);
  }
  return entries;
}

CallLog::Position CallLog::position() const {
  const std::lock_guard lock(mutex_);
  const std::vector<Entry> entries = last_calls();
  const auto waits = std::ranges::find(entries, State::kWaiting, &Entry::state);
  std::optional<Entry> at;
  if (waits != entries.end()) at = *waits;
  const auto open =
      std::ranges::find_if(on_device_, [](const Entry& entry) { return state_of(entry) != State::kDone; });
  if (open != on_device_.end() && (!at || open->number < at->number)) at = *open;
  if (at && state_of(*at) == State::kQueued)
    return {concat("is outside communication: its device has not come to ", at->describe()), at->ordinal};
  if (at) return {concat("waits in ", at->describe()), at->ordinal, true};
  if (entries.empty()) return {"has made no call yet", made_};
  return {concat("is outside communication, after ", entries.back().describe()), made_};
}

double CallLog::fingerprint() const {
  const std::lock_guard lock(mutex_);
  return static_cast<double>(mix(hash_, static_cast<std::uint64_t>(made_)) >> 11);
}

}  // namespace jigsaw::inline comm
