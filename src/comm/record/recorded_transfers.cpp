#include "comm/record/recorded_transfers.h"

#include <algorithm>

#include "base/error.h"

namespace jigsaw::inline comm {

Tally RecordedTransfers::take_work() {
  const Tally now = context_.tally();
  const Tally work{now.flops - counted_.flops, now.bytes - counted_.bytes};
  counted_ = now;
  return work;
}

RecordedTransfers::Number RecordedTransfers::started(const Call& call, const std::string& label,
                                                     const Sent& sent) {
  if (recorded_ != nullptr) {
    recorded_->events.push_back({true, 0, call, label, sent, take_work()});
    recorded_->events.back().call.send = Array();  // which only the transfer holds
  }
  open_.push_back(std::make_shared<std::size_t>(tell(call, label, sent)));
  return open_.back();
}

void RecordedTransfers::waited(const Number& number) {
  const auto found = std::ranges::find(open_, number);
  if (recorded_ != nullptr)
    recorded_->events.push_back({false, found - open_.begin(), {}, {}, {}, take_work()});
  if (observer_ != nullptr) observer_->waited(*number);
  open_.erase(found);
}

void RecordedTransfers::dropped(const Number& number) {
  const auto found = std::ranges::find(open_, number);
  if (found == open_.end()) return;
  if (recorded_ != nullptr) recorded_->whole = false;
  open_.erase(found);
}

void RecordedTransfers::control(const Call& call, const std::string& label, const Sent& sent) {
  if (recorded_ != nullptr) recorded_->whole = false;
  if (observer_ != nullptr) observer_->waited(tell(call, label, sent));
}

RecordedTransfers::Step RecordedTransfers::record(const std::function<void()>& work) {
  require(recorded_ == nullptr, "a step within a step is repeated");
  Step step;
  counted_ = context_.tally();
  recorded_ = &step;
  try {
    work();
  } catch (...) {
    recorded_ = nullptr;
    throw;
  }
  recorded_ = nullptr;
  step.rest = take_work();
  return step;
}

void RecordedTransfers::repeat(const Step& step, Traffic& traffic) {
  std::vector<std::size_t> numbers;
  for (const Number& number : open_) numbers.push_back(*number);
  const auto work = [&](const Tally& more) {
    context_.tally().flops += more.flops;
    context_.tally().bytes += more.bytes;
  };
  for (const Step::Event& event : step.events) {
    work(event.before);
    if (event.starts) {
      const auto kind = static_cast<std::size_t>(event.call.kind);
      traffic.sent_bytes[kind] += event.call.sent_bytes;
      traffic.calls[kind] += 1;
      traffic.sent[kind] += event.sent;
      numbers.push_back(tell(event.call, event.label, event.sent));
    } else {
      const auto waited = numbers.begin() + event.place;
      if (observer_ != nullptr) observer_->waited(*waited);
      numbers.erase(waited);
    }
  }
  work(step.rest);
  require(numbers.size() == open_.size(), "a step that is repeated ends as it began");
  for (std::size_t i = 0; i < numbers.size(); ++i) *open_[i] = numbers[i];
}

}  // namespace jigsaw::inline comm
