#include "images/label_scan.h"

#include <algorithm>
#include <array>
#include <chrono>

#include "base/heartbeat.h"
#include "base/text.h"
#include "comm/agreement.h"

namespace jigsaw::inline images {

LabelScan::LabelScan(const ImageData& data, Communicator& communicator)
    : data_(data),
      communicator_(communicator),
      begin_(data.slices() * communicator.rank() / communicator.size()),
      end_(data.slices() * (communicator.rank() + 1) / communicator.size()),
      next_(begin_),
      seen_(static_cast<std::size_t>(data.options().classes), 0.0) {
  work_ = std::async(std::launch::async, [this, heartbeat = current_heartbeat()] {
    const WorksFor works_for(heartbeat);
    run();
  });
}

LabelScan::~LabelScan() {
  stop_ = true;
  if (work_.valid()) work_.wait();
}

void LabelScan::run() {
  try {
    for (; next_ < end_ && !stop_; ++next_) data_.check_labels(next_, seen_);
  } catch (...) {
    failed_ = true;
    throw;
  }
}

void LabelScan::wait(const std::function<void(double)>& progress) {
  if (over_) return;
  const std::int64_t first = next_, count = std::max<std::int64_t>(1, end_ - first);
  while (work_.wait_for(std::chrono::milliseconds(100)) != std::future_status::ready)
    progress(static_cast<double>(next_ - first) / static_cast<double>(count));
  poll();
}

bool LabelScan::poll() {
  if (over_) return true;
  const bool mine = work_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  const auto lowest =
      communicator_.all_reduce(std::array{mine ? 1.0 : 0.0, failed_ ? 0.0 : 1.0}, ReduceOp::kMin);
  const bool all_done = lowest[0] > 0, one_failed = lowest[1] == 0;
  over_ = all_done || one_failed;
  if (one_failed) stop_ = true;
  if (over_) together(communicator_, [&] { work_.get(); });
  if (over_) seen_ = communicator_.all_reduce(seen_, ReduceOp::kMax);
  return over_;
}

std::string LabelScan::remark() const {
  constexpr std::size_t kMostNamed = 8;
  const std::vector<std::vector<std::int64_t>>& numbers = data_.options().labels;
  const auto text_of = [&](std::size_t k) {
    return numbers.empty() ? std::to_string(k) : concat(join(numbers[k], " or "), " (class ", k, ")");
  };
  std::vector<std::string> absent;
  for (std::size_t k = 0; over_ && k < seen_.size(); ++k)
    if (seen_[k] == 0) absent.push_back(text_of(k));
  if (absent.empty()) return "";
  if (absent.size() > kMostNamed + 1) {
    const std::string more = concat("and ", absent.size() - kMostNamed, " more");
    absent.resize(kMostNamed);
    absent.push_back(more);
  }
  return concat("no label of data.train is ", join(absent, ", "),
                numbers.empty() ? concat(", of data.classes ", seen_.size()) : ", of data.labels",
                ": such a class cannot be learned");
}

}  // namespace jigsaw::inline images
