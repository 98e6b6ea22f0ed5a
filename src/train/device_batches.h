#pragma once
#include <functional>
#include <optional>

#include "array/device_runtime.h"
#include "samples/batch.h"

namespace jigsaw::inline train {

/// The batches of steps where kernels read them. On a device the next one goes up in a stream of its own
/// (Stream::kUpload) while kernels work on the one before, into the memory of the one before that: of two
/// batches together. On the host they are what they were.
class DeviceBatches {
 public:
  explicit DeviceBatches(Context& context) : context_(context) {}

  /// The next batch, for what is put into the compute stream until take() is called again: the one that has
  /// gone up, or what `next` gives.
  const Batch& take(const std::function<Batch()>& next);
  /// To be called once what reads the last one taken is in its stream. Lets the one behind it go up, if
  /// `ready` has it; the host is busy meanwhile, for it copies to where the device fetches from. On the host
  /// the last one is let go.
  void go_ahead(const std::function<std::optional<Batch>()>& ready);

 private:
  Context& context_;
  Batch current_, before_;
  std::optional<Batch> coming_;
  DeviceRuntime::Ticket up_;  ///< coming_ is there
};

}  // namespace jigsaw::inline train
