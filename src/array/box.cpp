#include "array/box.h"

#include <algorithm>

#include "base/text.h"

namespace jigsaw::inline array {

std::string Box::to_string() const {
  std::string text = "[";
  for (int dim = 0; dim < begin.rank(); ++dim) {
    text += concat(dim > 0 ? ", " : "", begin[dim], ":", end(dim));
  }
  return text + "]";
}

std::vector<Box> around(const Box& whole, const Box& inner) {
  std::vector<Box> boxes;
  Box rest = whole;
  for (int dim = 0; dim < whole.begin.rank(); ++dim) {
    const auto add = [&](std::int64_t begin, std::int64_t end) {
      Box box = rest;
      box.begin[dim] = begin;
      box.extent[dim] = end - begin;
      if (!box.empty()) boxes.push_back(box);
    };
    add(rest.begin[dim], inner.begin[dim]);
    add(inner.end(dim), rest.end(dim));
    rest.begin[dim] = inner.begin[dim];
    rest.extent[dim] = inner.extent[dim];
  }
  return boxes;
}

std::ostream& operator<<(std::ostream& out, const Box& box) {
  return out << box.to_string();
}

Box intersect(const Box& a, const Box& b) {
  Box result = a;
  for (int dim = 0; dim < a.begin.rank(); ++dim) {
    const std::int64_t first = std::max(a.begin[dim], b.begin[dim]);
    const std::int64_t last = std::min(a.end(dim), b.end(dim));
    if (last <= first) return {Shape::filled(a.begin.rank(), 0), Shape::filled(a.begin.rank(), 0)};
    result.begin[dim] = first;
    result.extent[dim] = last - first;
  }
  return result;
}

Box relative_to(const Box& inner, const Box& outer) {
  Box result = inner;
  for (int dim = 0; dim < inner.begin.rank(); ++dim) {
    result.begin[dim] = inner.empty() ? 0 : inner.begin[dim] - outer.begin[dim];
  }
  return result;
}

}  // namespace jigsaw::inline array
