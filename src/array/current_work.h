#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "array/context.h"

namespace jigsaw::inline array {

/// What a rank works on, for errors that its device reports later than they happen.
struct CurrentWork {
  std::string operation;     ///< and the block that it stands in; "" between operations
  std::int64_t step = 0;     ///< of training; 0 outside of it
  std::string checkpoint;    ///< the run's last whole one; "" for none
  std::int64_t changes = 0;  ///< of operation and step

  /// "operation contract of encoder.0 of step 7".
  std::string text() const {
    std::string text = operation.empty() ? "work between operations" : "operation " + operation;
    if (step > 0) text += " of step " + std::to_string(step);
    return text;
  }
};

/// Lies in the state of the rank's context.
struct SharedWork {
  std::shared_ptr<CurrentWork> work = std::make_shared<CurrentWork>();
};
inline CurrentWork& current_work(Context& context) {
  return *context.state<SharedWork>().work;
}

/// While it lives the rank is in this step.
class CurrentStep {
 public:
  CurrentStep(Context& context, std::int64_t step) : work_(current_work(context)) { set(step); }
  ~CurrentStep() { set(0); }
  CurrentStep(const CurrentStep&) = delete;
  CurrentStep& operator=(const CurrentStep&) = delete;

 private:
  void set(std::int64_t step) {
    work_.step = step;
    ++work_.changes;
  }
  CurrentWork& work_;
};

}  // namespace jigsaw::inline array
