#include "samples/batch.h"

#include "array/transfer.h"

namespace jigsaw::inline samples {

void Batch::go_on(Batch part) {
  if (part.first_lead == 0) {
    *this = std::move(part);
    return;
  }
  first_lead = part.first_lead;
  targets = std::move(part.targets);
  states = std::move(part.states);
  forcings = std::move(part.forcings);
  rims = std::move(part.rims);
}

Batch allocate_batch(const BatchRequest& request, bool forced, const Context& context) {
  const auto like = [&](const Box& piece, DType dtype) {
    return Array(context, piece.extent, dtype, Purpose::kInput);
  };
  const auto zeros = [&](const Box& piece, DType dtype) {
    return Array::zeros(context, piece.extent, dtype, Purpose::kInput);
  };
  Batch batch;
  batch.times = request.times;
  batch.rollout = request.rollout;
  batch.first_lead = request.first_lead();
  for (int lead = request.first_lead(); lead < request.end_lead(); ++lead) {
    batch.targets.push_back(request.targets ? like(request.target, request.dtype) : Array());
    if (request.origin && request.targets) batch.states.push_back(like(request.target, DType::kFloat64));
    if (forced && lead + 1 < request.rollout) batch.forcings.push_back(zeros(request.input, request.dtype));
    if (request.rims) batch.rims.push_back(zeros(request.target, DType::kFloat64));
  }
  if (!request.starts()) return batch;
  batch.input = like(request.input, request.dtype);
  if (request.rollout > 1) batch.present = like(request.input, request.dtype);
  if (request.baseline) batch.baseline = like(request.target, request.dtype);
  if (request.origin) batch.origin = like(request.target, DType::kFloat64);
  return batch;
}

std::int64_t bytes_of(const Batch& batch) {
  std::int64_t bytes = 0;
  Batch::for_each_array(batch, [&](const Array& array) { bytes += array.defined() ? array.bytes() : 0; });
  return bytes;
}

Batch upload(const Context& context, const Batch& batch) {
  Batch there = batch;
  Batch::for_each_array(there, [&](Array& array) { array = upload(context, array, Purpose::kInput); });
  return there;
}

}  // namespace jigsaw::inline samples
