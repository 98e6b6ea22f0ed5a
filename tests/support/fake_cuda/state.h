#pragma once
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <map>
#include <mutex>

#include "cuda.h"
#include "cuda_runtime.h"
#include "support/fake_cuda/devices.h"

// What the devices of a process hold and do, for the sources of the fake runtime alone.

namespace jigsaw::testing::fake_cuda {

/// Every float type reads it as a NaN.
constexpr int kNaNByte = 0xff;

/// Addresses that were reserved, backed from the first one on.
struct Range {
  std::size_t bytes = 0, backed = 0;
  int device = 0;  ///< whose memory it is
  int open = 0;    ///< pieces of work that run, one within the other
};
/// Memory that was created and not released.
struct Piece {
  int device = 0;
  std::size_t bytes = 0;
};

/// All devices of the process.
struct Devices {
  std::recursive_mutex mutex;
  std::condition_variable_any changed;  ///< work that could not run may go on
  std::map<std::byte*, Range> ranges;
  std::map<CUmemGenericAllocationHandle, Piece> pieces;
  CUmemGenericAllocationHandle last_piece = 0;
  std::map<std::byte*, std::size_t> pinned;  ///< memory of the host
  Order order = Order::kShuffled;
  std::uint64_t seed = 1;
  std::int64_t kernels = 0, pieces_of_work = 0, library_handles = 0;
  int stopped = -1;  ///< the device that hangs
  cudaError_t next = cudaSuccess, sticky = cudaSuccess, last = cudaSuccess;

  /// Never destroyed: threads that were left alone may wait for its mutex when main() has ended.
  static Devices& all() {
    static Devices& devices = *new Devices;
    return devices;
  }
  std::size_t used(int device) const {
    std::size_t bytes = 0;
    for (const auto& [handle, piece] : pieces) bytes += piece.device == device ? piece.bytes : 0;
    return bytes;
  }
  /// Whether the address lies in memory of a device.
  bool hold(const void* address) const {
    auto after = ranges.upper_bound(static_cast<std::byte*>(const_cast<void*>(address)));
    if (after == ranges.begin()) return false;
    --after;
    return address < after->first + after->second.backed;
  }
  /// Whether the address lies in pinned memory.
  bool pin(const void* address) const {
    auto after = pinned.upper_bound(static_cast<std::byte*>(const_cast<void*>(address)));
    return after != pinned.begin() && address < std::prev(after)->first + std::prev(after)->second;
  }
};

/// Whether a device has failed, as libraries find when they are called.
bool has_failed();
/// Comes back when the device no longer hangs: what CUDA does before it frees, and libraries before they end.
void wait_for_device(int device);

/// What a library keeps of a device.
struct LibraryHandle {
  LibraryHandle() {
    const std::lock_guard lock(Devices::all().mutex);
    ++Devices::all().library_handles;
  }
  ~LibraryHandle() {
    wait_for_device(device);
    const std::lock_guard lock(Devices::all().mutex);
    --Devices::all().library_handles;
  }
  LibraryHandle(const LibraryHandle&) = delete;
  LibraryHandle& operator=(const LibraryHandle&) = delete;

  const int device = current_device();
};

/// More that JIGSAW_FAKE_CUDA may say of a process.
struct Faults {
  int own = 0;                          ///< 1: ranks see their own device alone; 2: all, their own first
  int taken = 0, taken_device = 0;      ///< the error for whoever chooses this device
  int slices = 0;                       ///< 1: all devices are slices of one GPU
  int peers = 2;                        ///< devices reach each other by NVLink; 1: by PCIe, 0: not at all
  int hang_after = 0, hang_device = 0;  ///< it does no more than so many kernels and copies
  int spoil_device = -1;                ///< whose copies to the host bring a number that is not there
  int silent = -1;                      ///< the rank on the machine whom the driver never answers

  static Faults& all() {
    static Faults faults = [] {
      Faults given;
      read_number("own", given.own);
      read_number("slices", given.slices);
      read_number("taken", given.taken);
      read_number("taken_device", given.taken_device);
      read_number("peers", given.peers);
      read_number("hang_after", given.hang_after);
      read_number("hang_device", given.hang_device);
      read_number("spoil_device", given.spoil_device);
      read_number("silent", given.silent);
      return given;
    }();
    return faults;
  }
  static int rank_on_machine() {
    const char* const text = std::getenv("OMPI_COMM_WORLD_LOCAL_RANK");
    return text == nullptr ? 0 : std::atoi(text);
  }
  /// The number among all of the machine of one that the process sees.
  int on_machine(int device) const {
    const int rank = rank_on_machine();
    if (own == 1) return rank + device;
    return own == 2 ? (rank + device) % machine().devices : device;
  }
};

}  // namespace jigsaw::testing::fake_cuda
