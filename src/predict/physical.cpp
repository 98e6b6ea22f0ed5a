#include "predict/physical.h"

#include "kernels/copy.h"

namespace jigsaw::inline predict {

void write_rim(const Rank& rank, const Layout& layout, const Rim& rim, const Array& rims, Array& states) {
  const Box box = rank.box(layout);
  if (box.empty()) return;
  for (const Box& part : rim.parts_of({{box.begin[1], box.begin[2]}, {box.extent[1], box.extent[2]}})) {
    Box here = Box::whole(box.extent);
    for (int dim = 0; dim < 2; ++dim) {
      here.begin[dim + 1] = part.begin[dim] - box.begin[dim + 1];
      here.extent[dim + 1] = part.extent[dim];
    }
    copy_box(rank.context, rims, here, states, here);
  }
}

}  // namespace jigsaw::inline predict
