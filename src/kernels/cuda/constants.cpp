#include "kernels/cuda/constants.h"

#include "array/raw_memory.h"

namespace jigsaw::inline kernels::cuda {

const std::byte* Constants::of(Context& context, std::span<const std::byte> bytes) {
  constexpr std::size_t kMostBytes = std::size_t{64} << 20;
  std::string key(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (const auto found = known_.find(key); found != known_.end()) return found->second.raw();
  if (held_ + bytes.size() > kMostBytes) {
    // Kernels that read them may still run.
    for (int stream = 0; stream < kStreams; ++stream)
      context.runtime()->synchronise(static_cast<Stream>(stream));
    known_.clear();
    held_ = 0;
  }
  constexpr std::size_t kWord = sizeof(double);
  Array array(context, {static_cast<std::int64_t>(bytes.size() / kWord + 1)}, DType::kFloat64,
              Purpose::kWorkspace);
  if (!bytes.empty()) context.runtime()->upload(context.stream(), bytes, array.raw());
  held_ += bytes.size();
  return known_.emplace(std::move(key), array).first->second.raw();
}

}  // namespace jigsaw::inline kernels::cuda
