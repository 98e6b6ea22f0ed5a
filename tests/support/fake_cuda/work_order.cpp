#include "support/fake_cuda/work_order.h"

#include <sys/mman.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace jigsaw::testing::fake_cuda {

WorkOrder& WorkOrder::all() {
  static WorkOrder order;
  return order;
}

void WorkOrder::join(Clock& clock, const Clock& other) {
  clock.resize(std::max(clock.size(), other.size()));
  for (std::size_t i = 0; i < other.size(); ++i) clock[i] = std::max(clock[i], other[i]);
}

/// Numbers of streams that have ended are taken again, and count on.
int WorkOrder::open_stream() {
  auto free = std::ranges::find(streams_, false, &Stream::open);
  if (free == streams_.end()) free = streams_.insert(free, Stream{});
  free->open = true;
  const auto stream = static_cast<std::size_t>(free - streams_.begin());
  free->clock.resize(std::max(free->clock.size(), stream + 1));
  return static_cast<int>(stream);
}

void WorkOrder::close_stream(int stream) {
  streams_[static_cast<std::size_t>(stream)].open = false;
}

WorkOrder::Id WorkOrder::put(int stream, const std::string& name) {
  const auto s = static_cast<std::size_t>(stream);
  Stream& into = streams_[s];
  join(into.clock, host_);
  Clock others = into.clock;
  others[s] = 0;
  if (into.others == nullptr || *into.others != others) into.others = std::make_shared<const Clock>(others);
  work_.push_back({name, stream, ++into.clock[s], into.others});
  return static_cast<Id>(work_.size() - 1);
}

void WorkOrder::stream_waits(int stream, const Clock& place) {
  join(streams_[static_cast<std::size_t>(stream)].clock, place);
}

void WorkOrder::find_bounds() {
  low_ = ranges_.empty() ? 0 : ranges_.begin()->first;
  extent_ = ranges_.empty() ? 0 : ranges_.rbegin()->first + ranges_.rbegin()->second.bytes - low_;
}

void WorkOrder::watch(std::byte* base, std::size_t bytes) {
  void* const words = mmap(nullptr, (bytes / kWord + 1) * sizeof(Word), PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  require(words != MAP_FAILED, "there is no room to watch the memory of a fake device");
  ranges_[reinterpret_cast<std::uintptr_t>(base)] = {bytes, static_cast<Word*>(words)};
  find_bounds();
}

void WorkOrder::forget(std::byte* base) {
  const auto found = ranges_.find(reinterpret_cast<std::uintptr_t>(base));
  if (found == ranges_.end()) return;
  munmap(found->second.words, (found->second.bytes / kWord + 1) * sizeof(Word));
  ranges_.erase(found);
  find_bounds();
}

bool WorkOrder::comes_before(Id first, Id second) const {
  const Work &a = work_[first], &b = work_[second];
  if (a.stream == b.stream) return a.number < b.number;
  const auto stream = static_cast<std::size_t>(a.stream);
  return stream < b.others->size() && (*b.others)[stream] >= a.number;
}

void WorkOrder::look(std::uintptr_t at, std::size_t bytes, bool writes) {
  auto after = ranges_.upper_bound(at);
  if (after == ranges_.begin()) return;
  --after;
  const std::size_t first = at - after->first;
  if (first >= after->second.bytes) return;
  const std::size_t end = std::min(first + bytes, after->second.bytes);
  for (std::size_t word = first / kWord; word * kWord < end; ++word)
    look_at(after->second.words[word], writes);
}

void WorkOrder::look_at(Word& word, bool writes) {
  const std::size_t slot = static_cast<std::size_t>(work_[running_].stream) % kReaders;
  if (word.writer != running_ && word.writer != 0 && !comes_before(word.writer, running_))
    found(word.writer, true, writes);
  if (!writes) {
    word.readers[slot] = running_;
    return;
  }
  for (Id& reader : word.readers) {
    if (reader != 0 && reader != running_ && !comes_before(reader, running_)) found(reader, false, writes);
    reader = 0;
  }
  word.writer = running_;
}

/// They are named in the order in which they were put in, which is the same in every run.
void WorkOrder::found(Id other, bool other_writes, bool writes) {
  if (!conflict_.empty()) return;
  const bool other_first = other < running_;
  const Work &first = work_[other_first ? other : running_], &second = work_[other_first ? running_ : other];
  const bool first_writes = other_first ? other_writes : writes,
             second_writes = other_first ? writes : other_writes;
  report(concat(first.name, " in stream ", first.stream, first_writes ? " writes" : " reads", " what ",
                second.name, " in stream ", second.stream, second_writes ? " writes" : " reads",
                ", and neither waits for the other"));
}

}  // namespace jigsaw::testing::fake_cuda
