#include "array/arena.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace jigsaw::inline array {

const char* name(Purpose purpose) {
  static constexpr std::array<const char*, kPurposes> kNames = {"parameters",  "gradients", "optimizer",
                                                                "activations", "workspace", "input"};
  return kNames[static_cast<std::size_t>(purpose)];
}

namespace {

constexpr std::int64_t kSmall = 64 << 10;
constexpr std::size_t kRegion = std::size_t{2} << 20;

std::string text_of(const std::array<std::int64_t, kPurposes>& current,
                    const std::array<std::int64_t, kPurposes>& peak) {
  std::vector<std::string> uses;
  for (std::size_t p = 0; p < current.size(); ++p) {
    if (peak[p] == 0) continue;
    uses.push_back(
        concat(human_bytes(current[p]), " ", name(static_cast<Purpose>(p)),
               peak[p] > current[p] ? concat(" (at most ", human_bytes(peak[p]), " before)") : ""));
  }
  return concat("arrays hold ", uses.empty() ? "nothing" : join(uses, ", "),
                "; a smaller train.batch_size, train.recompute \"block\" or more ranks need less");
}

/// An error says how many bytes were for what, how many there could have been, what holds the rest, and what
/// held more before.
std::byte* allocate_in(Heap& heap, std::int64_t bytes, Purpose purpose,
                       const std::array<std::int64_t, kPurposes>& current,
                       const std::array<std::int64_t, kPurposes>& peak) {
  try {
    return heap.allocate(static_cast<std::size_t>(bytes));
  } catch (const OutOfMemoryError& error) {
    const auto fits = static_cast<std::int64_t>(heap.largest());
    throw OutOfMemoryError(
        concat(error.what(), ": an array of ", human_bytes(bytes), " (", name(purpose), ") does not fit, ",
               fits > 0 && fits < bytes ? concat("one of ", human_bytes(fits), " would; ") : "",
               text_of(current, peak)));
  }
}

}  // namespace

Arena::Arena(Device device, std::unique_ptr<MemorySource> source, std::unique_ptr<MemorySource> small)
    : device_(device), source_(std::move(source)), small_source_(std::move(small)) {
  if (device_ == Device::kMeta) return;
  large_ = std::make_unique<Heap>(*source_, kRegion);
  small_ = std::make_unique<Heap>(small_source_ ? *small_source_ : *source_, kRegion);
}

Arena::~Arena() = default;

std::shared_ptr<Arena> Arena::make_host() {
  return std::make_shared<Arena>(Device::kCpu, make_host_memory());
}
std::shared_ptr<Arena> Arena::make_meta() {
  return std::make_shared<Arena>(Device::kMeta, nullptr);
}

Heap& Arena::heap_of(std::int64_t bytes) {
  return bytes <= kSmall ? *small_ : *large_;
}

std::shared_ptr<std::byte> Arena::allocate(std::int64_t bytes, Purpose purpose) {
  const auto p = static_cast<std::size_t>(purpose);
  std::byte* memory = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (device_ != Device::kMeta) {
      Heap& heap = heap_of(bytes);
      if (lends_ && !heap.has(static_cast<std::size_t>(bytes))) {
        large_->keep({});
        small_->keep({});
        lends_ = false;
      }
      memory = allocate_in(heap, bytes, purpose, current_, peak_);
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
  if (memory != nullptr) heap_of(bytes).release(memory);
}

void Arena::note_use() {
  const std::lock_guard lock(mutex_);
  noted_ = {};
  large_->note_in(&noted_.large);
  small_->note_in(&noted_.small);
}

MemoryUse Arena::noted_use() {
  const std::lock_guard lock(mutex_);
  large_->note_in(nullptr);
  small_->note_in(nullptr);
  return noted_;
}

bool Arena::set_aside(const MemoryUse& use) {
  const std::lock_guard lock(mutex_);
  lends_ = false;
  const bool large = large_->keep(use.large), small = small_->keep(use.small);
  return large && small;
}

void Arena::lend() {
  const std::lock_guard lock(mutex_);
  lends_ = true;
}

std::int64_t Arena::current_bytes(Purpose purpose) const {
  const std::lock_guard lock(mutex_);
  return current_[static_cast<std::size_t>(purpose)];
}

std::int64_t Arena::peak_bytes(Purpose purpose) const {
  const std::lock_guard lock(mutex_);
  return peak_[static_cast<std::size_t>(purpose)];
}

std::string Arena::uses_text() const {
  const std::lock_guard lock(mutex_);
  return text_of(current_, peak_);
}

std::int64_t Arena::held_bytes() const {
  const std::lock_guard lock(mutex_);
  return device_ == Device::kMeta ? 0
                                  : static_cast<std::int64_t>(large_->held_bytes() + small_->held_bytes());
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

}  // namespace jigsaw::inline array
