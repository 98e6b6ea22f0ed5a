#pragma once
#include <string>

#include "support/fake_cuda/streams.h"

// Captures, as streams and events meet them; devices.h has what records work. Under the runtime's mutex.

namespace jigsaw::testing::fake_cuda {

/// cudaEventRecord in a stream that captures.
cudaError_t record_event(FakeEvent& event, FakeStream& stream);
/// cudaStreamWaitEvent where the stream captures, or the event was recorded in one that did.
cudaError_t record_wait(FakeStream& stream, const FakeEvent& event);
/// A call that must not be made of a stream that captures: invalidates its capture.
cudaError_t refuse(const FakeStream& stream, const std::string& call);
/// The same of an event that was recorded in one.
cudaError_t refuse(const FakeEvent& event, const std::string& call);
/// The stream is destroyed.
void leave_capture(FakeStream& stream);

}  // namespace jigsaw::testing::fake_cuda
