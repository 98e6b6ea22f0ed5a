#include "array/dtype.h"

namespace jigsaw::inline array {

std::string_view name(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return "fp32";
    case DType::kFloat64:
      return "fp64";
    case DType::kBfloat16:
      return "bf16";
  }
  fail("unknown element type");
}

}  // namespace jigsaw::inline array
