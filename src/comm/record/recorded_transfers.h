#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/call.h"
#include "comm/communicator.h"
#include "comm/record/record.h"

namespace jigsaw::inline comm {

/// The transfers of a recording rank, on all its groups: tells the observer of them, and can tell it once
/// more of those of a step.
class RecordedTransfers {
 public:
  /// By which number the observer knows a transfer that is under way.
  using Number = std::shared_ptr<std::size_t>;

  /// @param observer  may be null.
  RecordedTransfers(Context& context, CallObserver* observer) : context_(context), observer_(observer) {}

  Number started(const Call& call, const std::string& label, const Sent& sent);
  void waited(const Number& number);
  /// Is under way no more, if it was; nobody waits for it.
  void dropped(const Number& number);
  /// A call of another kind, that no step with it is told of once more.
  void control(const Call& call, const std::string& label, const Sent& sent);

  std::int64_t under_way() const { return std::ssize(open_); }

  /// What a step did, in its order.
  struct Step {
    struct Event {
      bool starts = false;
      std::int64_t place = 0;  ///< of what is waited for, among those under way
      Call call;
      std::string label;
      Sent sent;
      Tally before;  ///< work since the event before
    };
    std::vector<Event> events;
    Tally rest;
    bool whole = true;  ///< whether the events are all that it did
  };
  /// Does it, and what it was.
  Step record(const std::function<void()>& work);
  /// Counts it once more. Transfers that are under way stand for those of the step: what was under way when
  /// it began, and what is when it ends.
  void repeat(const Step& step, Traffic& traffic);

 private:
  std::size_t tell(const Call& call, const std::string& label, const Sent& sent) const {
    return observer_ != nullptr ? observer_->started(call, label, sent) : 0;
  }
  /// Since the last event.
  Tally take_work();

  Context& context_;
  CallObserver* observer_;
  std::vector<Number> open_;  ///< in the order in which they were started
  Step* recorded_ = nullptr;
  Tally counted_;
};

/// Those of a communicator that make_record_communicator() made, or that was split off one, on a context
/// without memory; null elsewhere.
RecordedTransfers* recorded_transfers(Communicator& communicator);

}  // namespace jigsaw::inline comm
