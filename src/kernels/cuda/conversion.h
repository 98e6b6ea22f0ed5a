#pragma once
#include "array/array.h"

namespace jigsaw::inline kernels::cuda {

/// y = x in y's type, rounded to nearest even.
void convert(Context& context, const Array& x, Array& y);

}  // namespace jigsaw::inline kernels::cuda
