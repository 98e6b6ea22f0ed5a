#include "kernels/window.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace jigsaw::inline kernels {

Shape Window::places(const Shape& space) const {
  Shape places = space;
  for (int dim = 0; dim < space.rank(); ++dim) {
    const std::int64_t room = space[dim] - reach(dim);
    places[dim] = room < 0 ? 0 : room / stride[dim] + 1;
  }
  return places;
}

void Window::require_rank(std::string_view kernel, int rank) const {
  for (const Shape* each : {&extent, &stride, &dilation}) {
    if (rank < 1 || rank > 3 || each->rank() != rank ||
        std::any_of(each->begin(), each->end(), [](auto n) { return n < 1; })) {
      throw ShapeError(concat(kernel, ": extent ", extent, ", stride ", stride, " and dilation ", dilation,
                              " of the window should each have ", rank,
                              " entries of at least 1, for 1 to 3 spatial dims"));
    }
  }
}

}  // namespace jigsaw::inline kernels
