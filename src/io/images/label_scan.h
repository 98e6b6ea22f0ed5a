#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <future>
#include <string>
#include <vector>

#include "images/image_data.h"

namespace jigsaw::inline images {

/// Looks at every label of the training and validation parts, each rank at its share of the slices, on a
/// thread beside the first steps: a label that is none shows within the time of one pass, not at the first
/// validation. Destroying it at any time ends the thread after the slice it is in.
class LabelScan {
 public:
  /// @param data  outlives it.
  LabelScan(const ImageData& data, Communicator& communicator);
  ~LabelScan();
  LabelScan(const LabelScan&) = delete;
  LabelScan& operator=(const LabelScan&) = delete;

  /// Whether all ranks have come to their end, or one to a label that is none; after that it costs nothing.
  /// Collective.
  /// @throws AgreedError  of code kData, when a label is none.
  bool poll();
  /// Until it is over. Collective, and throws as poll().
  /// @param progress  told, some times a second, how much of what this rank has yet to look at is done, 0
  /// to 1.
  void wait(const std::function<void(double)>& progress);
  /// Once it is over, on all ranks: a sentence on classes that no point of the training parts has; "" where
  /// there are none.
  std::string remark() const;

 private:
  void run();

  const ImageData& data_;
  Communicator& communicator_;
  std::int64_t begin_, end_;  ///< this rank's share
  std::atomic<std::int64_t> next_;
  std::atomic<bool> stop_ = false, failed_ = false;
  std::future<void> work_;
  bool over_ = false;
  std::vector<double> seen_;  ///< by class: 1 where a point of the training parts has it
};

}  // namespace jigsaw::inline images
