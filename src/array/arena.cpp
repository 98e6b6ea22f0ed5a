#include "array/arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdlib>

#include "base/error.h"
#include "base/text.h"

namespace jigsaw {

const char* name(Purpose purpose) {
  static constexpr std::array<const char*, kPurposes> kNames = {"parameters",  "gradients", "optimizer",
                                                                "activations", "workspace", "input"};
  return kNames[static_cast<std::size_t>(purpose)];
}

namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

class HostMemory : public MemorySource {
 public:
  void* allocate(std::size_t bytes) override {
    const bool large = bytes >= kHugePage;
    void* memory = nullptr;
    if (posix_memalign(&memory, large ? kHugePage : 64, bytes) != 0) {
      fail(concat("out of memory: ", human_bytes(static_cast<std::int64_t>(bytes)),
                  " could not be allocated"));
    }
    if (large) madvise(memory, bytes, MADV_HUGEPAGE);
    return memory;
  }
  void release(void* memory, std::size_t) noexcept override { std::free(memory); }
};

}  // namespace

std::unique_ptr<MemorySource> make_host_memory() {
  return std::make_unique<HostMemory>();
}

Arena::Arena(Device device, std::unique_ptr<MemorySource> source)
    : device_(device), source_(std::move(source)) {}

Arena::~Arena() {
  for (auto& [bytes, blocks] : free_) {
    for (std::byte* block : blocks) source_->release(block, bytes);
  }
}

std::shared_ptr<Arena> Arena::make_host() {
  return std::make_shared<Arena>(Device::kCpu, make_host_memory());
}
std::shared_ptr<Arena> Arena::make_meta() {
  return std::make_shared<Arena>(Device::kMeta, nullptr);
}

/// Eight classes an octave: at most an eighth of a block is wasted, and blocks are found again.
std::size_t Arena::size_class(std::int64_t bytes) {
  const auto wanted = static_cast<std::size_t>(std::max<std::int64_t>(bytes, 64));
  const std::size_t step = std::max<std::size_t>(64, std::bit_floor(wanted) / 8);
  return (wanted + step - 1) / step * step;
}

std::shared_ptr<std::byte> Arena::allocate(std::int64_t bytes, Purpose purpose) {
  const auto p = static_cast<std::size_t>(purpose);
  std::byte* memory = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (device_ != Device::kMeta) {
      std::vector<std::byte*>& blocks = free_[size_class(bytes)];
      if (blocks.empty()) {
        memory = static_cast<std::byte*>(source_->allocate(size_class(bytes)));
      } else {
        memory = blocks.back();
        blocks.pop_back();
      }
    }
    current_[p] += bytes;
    total_ += bytes;
    peak_[p] = std::max(peak_[p], current_[p]);
    total_peak_ = std::max(total_peak_, total_);
  }
  return {memory, [arena = shared_from_this(), bytes, purpose](std::byte* block) {
            arena->give_back(block, bytes, purpose);
          }};
}

void Arena::give_back(std::byte* memory, std::int64_t bytes, Purpose purpose) noexcept {
  const std::lock_guard lock(mutex_);
  current_[static_cast<std::size_t>(purpose)] -= bytes;
  total_ -= bytes;
  if (memory != nullptr) free_[size_class(bytes)].push_back(memory);
}

std::int64_t Arena::current_bytes(Purpose purpose) const {
  const std::lock_guard lock(mutex_);
  return current_[static_cast<std::size_t>(purpose)];
}

std::int64_t Arena::peak_bytes(Purpose purpose) const {
  const std::lock_guard lock(mutex_);
  return peak_[static_cast<std::size_t>(purpose)];
}

std::int64_t Arena::peak_bytes() const {
  const std::lock_guard lock(mutex_);
  return total_peak_;
}

void Arena::reset_peaks() {
  const std::lock_guard lock(mutex_);
  peak_ = current_;
  total_peak_ = total_;
}

}  // namespace jigsaw
