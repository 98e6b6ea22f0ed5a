#include "kernels/cuda/constants.h"

#include <algorithm>
#include <string_view>

#include "array/raw_memory.h"
#include "array/recorded_position.h"

namespace jigsaw::inline kernels::cuda {

void Constants::make_room(Context& context, std::size_t bytes) {
  const std::int64_t era = context.state<RecordedPosition>().era;
  const auto old = [&](const auto& each) {
    return each.second.call + kKept < calls_ && each.second.recording != era;
  };
  if (held_ + bytes <= kMostBytes || std::ranges::none_of(known_, old)) return;
  // Kernels that read them may still run.
  for (int stream = 0; stream < kStreams; ++stream)
    context.runtime()->synchronise(static_cast<Stream>(stream));
  std::erase_if(known_, [&](const auto& each) {
    if (!old(each)) return false;
    held_ -= each.first.size();
    return true;
  });
}

const std::byte* Constants::of(Context& context, std::span<const std::byte> bytes) {
  ++calls_;
  const std::string_view key(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  auto found = known_.find(key);
  if (found == known_.end()) {
    make_room(context, bytes.size());
    constexpr std::size_t kWord = sizeof(double);
    Array array(context, {static_cast<std::int64_t>(bytes.size() / kWord + 1)}, DType::kFloat64,
                Purpose::kWorkspace);
    if (!bytes.empty()) context.runtime()->upload(context.stream(), bytes, array.raw(), 1);
    held_ += bytes.size();
    found = known_.emplace(key, Known{std::move(array)}).first;
  }
  found->second.call = calls_;
  const RecordedPosition& position = context.state<RecordedPosition>();
  if (position.steps_later.defined()) found->second.recording = position.era;
  return found->second.array.raw();
}

}  // namespace jigsaw::inline kernels::cuda
