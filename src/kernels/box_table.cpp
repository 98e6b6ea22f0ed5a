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

/// Adds a part to the cells.
void add_cell(BoxCells& all, const View& view, const Part& part) {
  const Shape strides = view.shape.strides();
  const int last = part.box.extent.rank() - 1;
  BoxCell cell;
  cell.before = all.count;
  cell.count = part.box.extent.count();
  cell.first = view.first + offset_of(strides, part.box.begin);
  cell.first_term = std::ssize(all.terms);
  cell.terms = std::ssize(part.copies);
  cell.rank = std::max(last + 1, 1);
  cell.extent[0] = cell.stride[0] = 1;
  std::copy(part.box.extent.begin(), part.box.extent.end(), cell.extent);
  std::copy(strides.begin(), strides.end(), cell.stride);
  std::vector<BoxTerm> terms;
  bool by_channel = false;
  for (const BoxTable::Copy* copy : part.copies) {
    const Shape from_strides = copy->from.shape.strides();
    BoxTerm& term = terms.emplace_back();
    term.source = copy->source;
    term.first = copy->from.first + offset_of(from_strides, copy->from.box.begin) +
                 offset_of(from_strides, relative_to(part.box, copy->to.box).begin);
    term.channel = copy->channel == BoxTable::kAsItIs
                       ? copy->channel
                       : copy->channel + part.box.begin[last] - copy->to.box.begin[last];
    term.stride[0] = 1;
    std::copy(from_strides.begin(), from_strides.end(), term.stride);
    by_channel = by_channel || term.channel != BoxTable::kAsItIs;
  }
  merge_dims(cell, terms, by_channel);
  all.together = elements_together(cell, terms, all.together);
  all.moves = all.moves && !by_channel && terms.size() <= 1;
  all.count += cell.count;
  all.cells.push_back(cell);
  all.terms.insert(all.terms.end(), terms.begin(), terms.end());
}

}  // namespace

void merge_dims(BoxCell& cell, std::span<BoxTerm> terms, bool last_alone) {
  const std::int64_t last = cell.rank - 1;
  std::int64_t to = last;  // dims from here on are done
  for (std::int64_t dim = last - 1; dim >= 0; --dim) {
    if (cell.extent[dim] == 1) continue;
    const std::int64_t run = cell.extent[to];
    bool merges = !(last_alone && to == last) && cell.stride[dim] == cell.stride[to] * run;
    for (const BoxTerm& term : terms) merges = merges && term.stride[dim] == term.stride[to] * run;
    if (merges) {
      cell.extent[to] *= cell.extent[dim];
      continue;
    }
    --to;
    cell.extent[to] = cell.extent[dim];
    cell.stride[to] = cell.stride[dim];
    for (BoxTerm& term : terms) term.stride[to] = term.stride[dim];
  }
  const auto to_the_front = [&](std::int64_t* values) {
    std::fill(std::copy(values + to, values + cell.rank, values), values + Shape::kMaxRank, 0);
  };
  to_the_front(cell.extent);
  to_the_front(cell.stride);
  for (BoxTerm& term : terms) to_the_front(term.stride);
  cell.rank -= to;
  for (std::int64_t dim = 0; dim < cell.rank; ++dim) cell.divisor[dim] = divisor(cell.extent[dim]);
}

std::int64_t elements_together(const BoxCell& cell, std::span<const BoxTerm> terms, std::int64_t most) {
  const std::int64_t last = cell.rank - 1;
  std::int64_t common = std::gcd(std::gcd(most, cell.first), cell.extent[last]);
  bool runs = cell.stride[last] == 1;
  for (std::int64_t dim = 0; dim < last; ++dim) common = std::gcd(common, cell.stride[dim]);
  for (const BoxTerm& term : terms) {
    runs = runs && term.stride[last] == 1;
    common = std::gcd(common, term.first);
    for (std::int64_t dim = 0; dim < last; ++dim) common = std::gcd(common, term.stride[dim]);
  }
  return runs ? common : 1;
}

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
