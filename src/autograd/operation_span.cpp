#include "autograd/operation_span.h"

#include <utility>

#include "array/device_times.h"
#include "autograd/output_watch.h"
#include "base/error.h"
#include "base/text.h"

namespace jigsaw::inline autograd {

static_assert(kPurposes <= TraceSample::kValues);

OperationSpan::OperationSpan(Context& context, std::string_view operation)
    : OperationSpan(context, operation, block_of(context)) {}

OperationSpan::OperationSpan(Context& context, std::string_view operation, std::string_view block,
                             std::string_view suffix)
    : context_(context), span_(TraceKind::kOperation, operation) {
  if (context.runtime() != nullptr) {
    work_ = &current_work(context);
    const bool in_block = !block.empty() && block.front() != '(';
    std::string name = concat(operation, suffix, in_block ? concat(" of ", block) : "");
    outer_ = std::exchange(work_->operation, std::move(name));
    ++work_->changes;
  }
  if (span_.event() == nullptr) return;
  span_.event()->name += suffix;
  span_.event()->layer = block;
  before_ = context.tally();
  if (work_ != nullptr) begin_ = context.state<DeviceTimes>().begin(context);
}

OperationSpan::~OperationSpan() {
  if (work_ != nullptr) {
    work_->operation = std::move(outer_);
    ++work_->changes;
  }
  if (span_.event() == nullptr || trace_lane == nullptr) return;
  EventTrace& trace = *trace_lane->trace;
  span_.event()->flops = context_.tally().flops - before_.flops;
  span_.event()->moved = context_.tally().bytes - before_.bytes;
  if (work_ != nullptr) {
    span_.event()->step = work_->step;
    try {
      context_.state<DeviceTimes>().end(context_, begin_, *span_.event(), trace);
    } catch (const Error&) {  // of a device that has failed, which the next call to it says
    }
  }
  TraceSample sample;
  sample.time = trace_now();
  for (int purpose = 0; purpose < kPurposes; ++purpose)
    sample.values[purpose] = context_.arena().current_bytes(static_cast<Purpose>(purpose));
  trace.add(sample);
}

std::string OperationSpan::block_of(Context& context) {
  return tracing() || context.runtime() != nullptr ? context.state<OutputWatch>().block : std::string();
}

}  // namespace jigsaw::inline autograd
