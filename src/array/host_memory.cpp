#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "array/memory_source.h"
#include "base/error.h"
#include "base/text.h"

namespace jigsaw::inline array {

namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

std::size_t physical_bytes() {
  return static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

class HostMemory : public MemorySource {
 public:
  HostMemory() = default;
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;
  ~HostMemory() override {
    for (const Reservation& r : reservations_) munmap(r.memory, r.bytes);
  }

  std::byte* allocate(std::size_t bytes) override {
    given_ += bytes;
    if (given_ > physical_bytes() || (bytes > static_cast<std::size_t>(end_ - next_) && !reserve(bytes))) {
      given_ -= bytes;
      throw OutOfMemoryError(
          concat("out of memory, ", human_bytes(static_cast<std::int64_t>(given_)), " are in use"));
    }
    std::byte* memory = next_;
    next_ += bytes;
    madvise(memory, bytes, MADV_HUGEPAGE);
    return memory;
  }

  bool joins() const override { return true; }
  std::size_t left() const override { return physical_bytes() - std::min(given_, physical_bytes()); }

 private:
  struct Reservation {
    void* memory;
    std::size_t bytes;
  };

  /// As much address space as there is memory, or, where that is limited, what is needed now.
  bool reserve(std::size_t bytes) {
    for (const std::size_t wanted : {std::max(bytes, physical_bytes()), bytes}) {
      const std::size_t length = wanted + kHugePage;
      void* memory =
          mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (memory == MAP_FAILED) continue;
      reservations_.push_back({memory, length});
      void* aligned = memory;
      std::size_t space = length;
      next_ = static_cast<std::byte*>(std::align(kHugePage, wanted, aligned, space));
      end_ = next_ + wanted;
      return true;
    }
    return false;
  }

  std::vector<Reservation> reservations_;
  std::byte *next_ = nullptr, *end_ = nullptr;
  std::size_t given_ = 0;
};

}  // namespace

std::unique_ptr<MemorySource> make_host_memory() {
  return std::make_unique<HostMemory>();
}

}  // namespace jigsaw::inline array
