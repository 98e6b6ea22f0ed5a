#include "samples/label_scan.h"

#include <array>

#include "base/heartbeat.h"
#include "comm/agreement.h"

namespace jigsaw::inline samples {

LabelScan::LabelScan(const ImageData& data, Communicator& communicator)
    : data_(data), communicator_(communicator) {
  const std::int64_t slices = data.slices(), rank = communicator.rank(), ranks = communicator.size();
  work_ =
      std::async(std::launch::async, [this, begin = slices * rank / ranks, end = slices * (rank + 1) / ranks,
                                      heartbeat = current_heartbeat()] {
        const WorksFor works_for(heartbeat);
        run(begin, end);
      });
}

LabelScan::~LabelScan() {
  stop_ = true;
  if (work_.valid()) work_.wait();
}

void LabelScan::run(std::int64_t begin, std::int64_t end) {
  try {
    for (std::int64_t slice = begin; slice < end && !stop_; ++slice) data_.check_labels(slice);
  } catch (...) {
    failed_ = true;
    throw;
  }
}

bool LabelScan::poll(bool wait) {
  if (over_) return true;
  if (wait) work_.wait();
  const bool mine = work_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  const auto lowest =
      communicator_.all_reduce(std::array{mine ? 1.0 : 0.0, failed_ ? 0.0 : 1.0}, ReduceOp::kMin);
  const bool all_done = lowest[0] > 0, one_failed = lowest[1] == 0;
  over_ = all_done || one_failed;
  if (one_failed) stop_ = true;
  if (over_) together(communicator_, [&] { work_.get(); });
  return over_;
}

}  // namespace jigsaw::inline samples
