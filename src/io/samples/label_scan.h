#pragma once
#include <atomic>
#include <cstdint>
#include <future>

#include "samples/image_data.h"

namespace jigsaw::inline samples {

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
  /// @param wait  for this rank's end.
  /// @throws AgreedError  of code kData, when a label is none.
  bool poll(bool wait);

 private:
  void run(std::int64_t begin, std::int64_t end);

  const ImageData& data_;
  Communicator& communicator_;
  std::atomic<bool> stop_ = false, failed_ = false;
  std::future<void> work_;
  bool over_ = false;
};

}  // namespace jigsaw::inline samples
