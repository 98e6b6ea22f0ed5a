#include "samples/piece.h"

#include "base/error.h"
#include "base/text.h"

namespace jigsaw::inline samples {

void require_piece(const Box& piece, std::int64_t samples, const Shape& space, std::size_t channels) {
  Shape global{samples};
  for (const std::int64_t extent : space) global.append(extent);
  global.append(static_cast<std::int64_t>(channels));
  bool inside = piece.begin.rank() == global.rank() && piece.extent.rank() == global.rank();
  for (int d = 0; inside && d < global.rank(); ++d) {
    inside = piece.begin[d] >= 0 && piece.extent[d] >= 0 && piece.end(d) <= global[d];
  }
  if (!inside) throw ShapeError(concat("the piece ", piece, " does not lie in the batch ", global));
}

}  // namespace jigsaw::inline samples
