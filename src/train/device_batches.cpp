#include "train/device_batches.h"

#include <utility>
#include <vector>

#include "array/transfer.h"

namespace jigsaw::inline train {

const Batch& DeviceBatches::take(const std::function<Batch()>& next) {
  DeviceRuntime* const runtime = context_.runtime();
  if (runtime == nullptr) return current_ = next();
  if (coming_) {
    before_ = std::exchange(current_, *std::exchange(coming_, std::nullopt));
    runtime->wait(Stream::kCompute, up_);
  } else {
    // What did not go ahead takes the place of those that were read.
    Batch batch = next();
    before_ = {}, current_ = {};
    current_ = upload(context_, batch);
  }
  // From here on what read the one before has been done.
  runtime->wait(Stream::kUpload, runtime->ticket(Stream::kCompute));
  return current_;
}

void DeviceBatches::go_ahead(const std::function<std::optional<Batch>()>& ready) {
  DeviceRuntime* const runtime = context_.runtime();
  if (runtime == nullptr) current_ = {};
  if (runtime == nullptr || coming_) return;
  std::optional<Batch> batch = ready();
  if (!batch) return;
  std::vector<Array> places, given;
  Batch::for_each_array(before_, [&](Array& array) { places.push_back(array); });
  before_ = {};
  Batch::for_each_array(*batch, [&](Array& array) { given.push_back(array); });
  places.resize(given.size());
  bool fresh = false;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const Array& host = given[i];
    Array& place = places[i];
    if (!host.defined() ||
        (place.defined() && place.shape() == host.shape() && place.dtype() == host.dtype()))
      continue;
    place = Array(context_, host.shape(), host.dtype(), Purpose::kInput);
    fresh = true;
  }
  // Memory that is new here may be what work before now still uses.
  if (fresh) runtime->wait(Stream::kUpload, runtime->ticket(Stream::kCompute));
  {
    const StreamScope copies(context_, Stream::kUpload);
    for (std::size_t i = 0; i < given.size(); ++i) {
      if (given[i].defined()) upload_into(context_, given[i], places[i]);
    }
  }
  up_ = runtime->ticket(Stream::kUpload);
  std::size_t i = 0;
  Batch::for_each_array(*batch, [&](Array& array) {
    if (array.defined()) array = places[i];
    ++i;
  });
  coming_ = std::move(batch);
}

}  // namespace jigsaw::inline train
