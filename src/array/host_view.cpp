#include "array/host_view.h"

#include "array/raw_memory.h"
#include "base/error.h"

namespace jigsaw::inline array {

std::byte* host_memory(const Array& array) {
  require(array.defined(), "an array that does not exist has no elements");
  require(array.device() == Device::kCpu,
          "the elements of an array that stands on a device are asked for on the host: download it first");
  return const_cast<std::byte*>(array.raw());  // arrays are handles
}

}  // namespace jigsaw::inline array
