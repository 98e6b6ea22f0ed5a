#include "kernels/box_table.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/text.h"

namespace jigsaw::inline kernels {

namespace {

void require_inside(const BoxTable::Place& place) {
  const Box& box = place.box;
  bool inside = box.begin.rank() == place.shape.rank() && box.extent.rank() == place.shape.rank();
  for (int dim = 0; inside && dim < place.shape.rank(); ++dim)
    inside = box.begin[dim] >= 0 && box.extent[dim] >= 0 && box.end(dim) <= place.shape[dim];
  if (!inside || place.first < 0)
    throw ShapeError(concat("copy_boxes: the region ", box, " does not lie in the shape ", place.shape));
}

bool overlap(const Box& a, const Box& b) {
  for (int dim = 0; dim < a.begin.rank(); ++dim) {
    if (a.end(dim) <= b.begin[dim] || b.end(dim) <= a.begin[dim]) return false;
  }
  return true;
}

/// Part of a view of the target, and the copies that it is the sum of.
struct Part {
  Box box;
  std::vector<const BoxTable::Copy*> copies;
};
/// Elements of the target seen as an array, in parts that do not overlap.
struct View {
  std::int64_t first = 0;
  Shape shape;
  std::vector<Part> parts;
};

/// The parts of `boxes` that lie outside of `box`.
std::vector<Box> outside(const std::vector<Box>& boxes, const Box& box) {
  std::vector<Box> rest;
  for (const Box& one : boxes) {
    if (!overlap(one, box)) {
      rest.push_back(one);
    } else {
      for (const Box& beside : around(one, intersect(one, box))) rest.push_back(beside);
    }
  }
  return rest;
}

/// Parts that are there are cut where the copy ends, so that it is a term of whole parts.
void put(View& view, const BoxTable::Copy& copy) {
  const Box& box = copy.to.box;
  std::vector<Box> rest = {box};
  const std::size_t known = view.parts.size();
  for (std::size_t i = 0; i < known; ++i) {
    if (!overlap(view.parts[i].box, box)) continue;
    const Box whole = view.parts[i].box, common = intersect(whole, box);
    const std::vector<const BoxTable::Copy*> copies = view.parts[i].copies;
    view.parts[i].box = common;
    view.parts[i].copies.push_back(&copy);
    for (const Box& beside : around(whole, common)) view.parts.push_back({beside, copies});
    rest = outside(rest, common);
  }
  for (const Box& one : rest) view.parts.push_back({one, {&copy}});
}

View& view_at(std::vector<View>& views, std::int64_t first, const Shape& shape) {
  const auto found =
      std::find_if(views.rbegin(), views.rend(), [&](const View& view) { return view.first == first; });
  if (found == views.rend()) return views.emplace_back(View{first, shape, {}});
  require(found->shape == shape, "places of one first element have one shape");
  return *found;
}

std::int64_t offset_of(const Shape& strides, const Shape& at) {
  std::int64_t offset = 0;
  for (int dim = 0; dim < at.rank(); ++dim) offset += at[dim] * strides[dim];
  return offset;
}

/// Adds a part to the cells, neighbouring dims that are one everywhere merged.
void add_cell(BoxCells& all, const View& view, const Part& part) {
  const Shape strides = view.shape.strides();
  const int last = part.box.extent.rank() - 1;
  BoxCell cell;
  cell.before = all.count;
  cell.count = part.box.extent.count();
  cell.first = view.first + offset_of(strides, part.box.begin);
  cell.first_term = std::ssize(all.terms);
  cell.terms = std::ssize(part.copies);
  std::vector<Shape> from_strides;
  std::vector<BoxTerm> terms;
  bool by_channel = false;
  for (const BoxTable::Copy* copy : part.copies) {
    from_strides.push_back(copy->from.shape.strides());
    BoxTerm& term = terms.emplace_back();
    term.source = copy->source;
    term.first = copy->from.first + offset_of(from_strides.back(), copy->from.box.begin) +
                 offset_of(from_strides.back(), relative_to(part.box, copy->to.box).begin);
    term.channel = copy->channel == BoxTable::kAsItIs
                       ? copy->channel
                       : copy->channel + part.box.begin[last] - copy->to.box.begin[last];
    by_channel = by_channel || term.channel != BoxTable::kAsItIs;
  }
  // Innermost first, then turned round.
  cell.rank = 1;
  cell.extent[0] = last < 0 ? 1 : part.box.extent[last];
  cell.stride[0] = 1;
  for (BoxTerm& term : terms) term.stride[0] = 1;
  for (int dim = last - 1; dim >= 0; --dim) {
    const std::int64_t extent = part.box.extent[dim];
    if (extent == 1) continue;
    const std::int64_t inner = cell.rank - 1, run = cell.extent[inner];
    bool merges = !(by_channel && inner == 0) && strides[dim] == cell.stride[inner] * run;
    for (std::size_t i = 0; merges && i < terms.size(); ++i)
      merges = from_strides[i][dim] == terms[i].stride[inner] * run;
    if (merges) {
      cell.extent[inner] *= extent;
      continue;
    }
    cell.extent[cell.rank] = extent;
    cell.stride[cell.rank] = strides[dim];
    for (std::size_t i = 0; i < terms.size(); ++i) terms[i].stride[cell.rank] = from_strides[i][dim];
    ++cell.rank;
  }
  std::reverse(cell.extent, cell.extent + cell.rank);
  std::reverse(cell.stride, cell.stride + cell.rank);
  for (BoxTerm& term : terms) std::reverse(term.stride, term.stride + cell.rank);

  std::int64_t common = std::gcd(std::gcd(all.together, cell.first), cell.extent[cell.rank - 1]);
  for (int dim = 0; dim + 1 < cell.rank; ++dim) {
    common = std::gcd(common, cell.stride[dim]);
    for (const BoxTerm& term : terms) common = std::gcd(common, term.stride[dim]);
  }
  for (const BoxTerm& term : terms) common = std::gcd(common, term.first);
  all.together = common;
  all.moves = all.moves && !by_channel && terms.size() <= 1;
  all.count += cell.count;
  all.cells.push_back(cell);
  all.terms.insert(all.terms.end(), terms.begin(), terms.end());
}

}  // namespace

void BoxTable::copy(int source, const Place& from, const Place& to, std::int64_t channel) {
  require(source >= 0 && source < kMostSources, "sources of a table have small numbers");
  require_inside(from);
  require_inside(to);
  if (!(from.box.extent == to.box.extent)) {
    throw ShapeError(concat("copy_boxes: the regions ", from.box, " and ", to.box, " differ in extents"));
  }
  if (from.box.empty()) return;
  const auto number = static_cast<std::size_t>(source);
  if (reach_.size() <= number) reach_.resize(number + 1);
  reach_[number] = std::max(reach_[number], from.first + from.shape.count());
  target_reach_ = std::max(target_reach_, to.first + to.shape.count());
  read_ += from.box.extent.count();
  if (channel != kAsItIs) {
    require(channel >= 0 && from.shape.rank() > 0, "channels are those of the last dim");
    channels_ = std::max(channels_, channel + from.box.extent.back());
    changed_ += from.box.extent.count();
  }
  copies_.push_back({source, from, to, channel});
  cells_.reset();
}

void BoxTable::clear(std::int64_t first, const Shape& shape) {
  if (shape.count() == 0) return;
  target_reach_ = std::max(target_reach_, first + shape.count());
  cleared_.push_back({first, shape});
  cells_.reset();
}

std::int64_t BoxTable::written() const {
  std::int64_t count = 0;
  for (const Cleared& one : cleared_) count += one.shape.count();
  for (const Copy& copy : copies_) {
    const bool counted =
        std::ranges::any_of(cleared_, [&](const Cleared& one) { return one.first == copy.to.first; });
    if (!counted) count += copy.to.box.extent.count();
  }
  return count;
}

const BoxCells& BoxTable::cells() const {
  if (cells_) return *cells_;
  std::vector<View> views;
  for (const Copy& copy : copies_) put(view_at(views, copy.to.first, copy.to.shape), copy);
  for (const Cleared& one : cleared_) {
    View& view = view_at(views, one.first, one.shape);
    std::vector<Box> rest = {Box::whole(one.shape)};
    for (const Part& part : view.parts) rest = outside(rest, part.box);
    for (const Box& box : rest) view.parts.push_back({box, {}});
  }
  BoxCells all;
  for (const View& view : views) {
    for (const Part& part : view.parts) add_cell(all, view, part);
  }
  cells_ = std::make_shared<const BoxCells>(std::move(all));
  return *cells_;
}

}  // namespace jigsaw::inline kernels
