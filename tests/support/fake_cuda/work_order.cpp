#include "support/fake_cuda/work_order.h"

#include <algorithm>

#include "base/text.h"

namespace jigsaw::testing::fake_cuda {

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

bool WorkOrder::comes_before(Id first, Id second) const {
  const Work &a = work_[first], &b = work_[second];
  if (a.stream == b.stream) return a.number < b.number;
  const auto stream = static_cast<std::size_t>(a.stream);
  return stream < b.others->size() && (*b.others)[stream] >= a.number;
}

void WorkOrder::look_at(Word& word, bool writes) {
  if (word.writer != running_ && word.writer != 0 && !comes_before(word.writer, running_))
    found(word.writer, true, writes);
  if (!writes) {
    word.readers[reader_] = running_;
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
