#include "parallel/sent_elements.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

namespace jigsaw::inline parallel {

namespace {

/// Whether the pieces that some rank has of two layouts have nothing in common: some dim is cut by an axis in
/// the one where another cuts it in the other.
bool some_are_apart(const MeshShape& mesh, const Layout& a, const Layout& b) {
  for (int dim = 0; dim < a.global.rank(); ++dim) {
    int of_a = 0, of_b = 0;
    const auto next = [&](const Layout& layout, int& axis) {
      while (axis < mesh.axes && (mesh.size[static_cast<std::size_t>(axis)] == 1 ||
                                  !layout.placements[axis].is_shard() || layout.placements[axis].dim != dim))
        ++axis;
      return axis < mesh.axes;
    };
    for (; next(a, of_a) && next(b, of_b); ++of_a, ++of_b) {
      if (of_a != of_b) return true;
    }
  }
  return false;
}

/// Calls f with the coordinates along `axes`, those of other axes zero, and a number for each: the sum over
/// axes of coordinate × stride.
template <typename F>
void for_members(const MeshShape& mesh, AxisSet axes, const std::array<int, kMaxAxes>& strides, const F& f) {
  Coordinates at{};
  int number = 0;
  for (bool more = true; more;) {
    f(at, number);
    more = false;
    for (int axis = mesh.axes - 1; axis >= 0 && !more; --axis) {
      const auto a = static_cast<std::size_t>(axis);
      if (!contains(axes, axis)) continue;
      more = at[a] + 1 < mesh.size[a];
      number += more ? strides[a] : -at[a] * strides[a];
      at[a] = more ? at[a] + 1 : 0;
    }
  }
}

/// The ranges of one dim that the members of a group hold.
struct DimParts {
  AxisSet axes = 0;                     ///< of the group, that cut the dim
  std::array<int, kMaxAxes> strides{};  ///< a member's range is parts[sum of coordinate × stride]
  std::vector<Range> parts;

  DimParts(const MeshShape& mesh, const Layout& layout, int dim, AxisSet group) {
    int count = 1;
    Layout alone{Shape{layout.global[dim]}, {}};
    for (int axis = mesh.axes - 1; axis >= 0; --axis) {
      const auto a = static_cast<std::size_t>(axis);
      const Placement& p = layout.placements[axis];
      if (p.is_shard() && p.dim == dim) alone.placements[axis] = Placement::shard(0, p.unit);
      if (!contains(group, axis) || mesh.size[a] == 1 || !p.is_shard() || p.dim != dim) continue;
      axes |= axis_bit(axis);
      strides[a] = count;
      count *= mesh.size[a];
    }
    parts.resize(static_cast<std::size_t>(count));
    for_members(mesh, axes, strides, [&](const Coordinates& at, int number) {
      parts[static_cast<std::size_t>(number)] = range_of(alone.box(mesh, at), 0);
    });
  }
};

/// How many elements of a dim below some place lie in ranges that have nothing in common.
class Covered {
 public:
  explicit Covered(std::vector<Range> ranges) : ranges_(std::move(ranges)) {
    std::ranges::sort(ranges_, {}, &Range::begin);
    for (const Range& range : ranges_) sums_.push_back(sums_.back() + range.end - range.begin);
  }
  std::int64_t below(std::int64_t place) const {
    const auto behind = std::ranges::lower_bound(ranges_, place, {}, &Range::begin);
    if (behind == ranges_.begin()) return 0;
    const Range& last = *std::prev(behind);
    return sums_[static_cast<std::size_t>(behind - ranges_.begin())] -
           std::max<std::int64_t>(0, last.end - place);
  }

 private:
  std::vector<Range> ranges_;
  std::vector<std::int64_t> sums_ = {0};  ///< elements of the first so many
};

/// One dim of an all-to-all: how much of it a member keeps, and how much of it all to which the member sends
/// take of it together. It grows with the parts before and behind it, not with their product.
class DimFlow {
 public:
  using Strides = std::array<int, kMaxAxes>;

  /// @param fixed  axes of the group along which members send only to those with their own coordinate; they
  /// do
  ///               not cut what is held.
  DimFlow(const MeshShape& mesh, const Step& step, const Layout& held, int dim, AxisSet fixed)
      : before_(mesh, held, dim, step.axes), after_(mesh, step.to, dim, step.axes) {
    int columns = 1;
    Strides column{};
    for (int axis = mesh.axes - 1; axis >= 0; --axis) {
      const auto a = static_cast<std::size_t>(axis);
      if (!contains(after_.axes, axis) || !contains(fixed, axis)) continue;
      column[a] = columns;
      columns *= mesh.size[a];
    }
    std::vector<std::vector<Range>> takers(static_cast<std::size_t>(columns));
    for_members(mesh, after_.axes, after_.strides, [&](const Coordinates& at, int number) {
      int own = 0;
      for (std::size_t a = 0; a < at.size(); ++a) own += at[a] * column[a];
      takers[static_cast<std::size_t>(own)].push_back(after_.parts[static_cast<std::size_t>(number)]);
    });
    taken_.resize(before_.parts.size() * takers.size());
    for (std::size_t c = 0; c < takers.size(); ++c) {
      const Covered covered(std::move(takers[c]));
      for (std::size_t i = 0; i < before_.parts.size(); ++i) {
        taken_[i * static_cast<std::size_t>(columns) + c] =
            covered.below(before_.parts[i].end) - covered.below(before_.parts[i].begin);
      }
    }
    for (std::size_t a = 0; a < strides_taken_.size(); ++a)
      strides_taken_[a] = before_.strides[a] * columns + column[a];
    most_taken_ = *std::ranges::max_element(taken_);
    least_kept_ = std::numeric_limits<std::int64_t>::max();
    for_members(mesh, before_.axes | after_.axes, before_.strides, [&](const Coordinates& at, int number) {
      int own = 0;
      for (std::size_t a = 0; a < at.size() && least_kept_ > 0; ++a) own += at[a] * after_.strides[a];
      if (least_kept_ > 0) least_kept_ = std::min(least_kept_, kept(number, own));
    });
  }

  bool constant() const { return (before_.axes | after_.axes) == 0; }
  /// For a member, by the sums of its coordinates × strides.
  std::int64_t kept(int before, int after) const {
    const Range &a = before_.parts[static_cast<std::size_t>(before)],
                &b = after_.parts[static_cast<std::size_t>(after)];
    return std::max<std::int64_t>(0, std::min(a.end, b.end) - std::max(a.begin, b.begin));
  }
  std::int64_t taken(int number) const { return taken_[static_cast<std::size_t>(number)]; }
  std::int64_t least_kept() const { return least_kept_; }
  std::int64_t most_taken() const { return most_taken_; }
  const Strides& strides_before() const { return before_.strides; }
  const Strides& strides_after() const { return after_.strides; }
  const Strides& strides_taken() const { return strides_taken_; }

 private:
  DimParts before_, after_;
  std::vector<std::int64_t> taken_;
  Strides strides_taken_{};
  std::int64_t least_kept_ = 0, most_taken_ = 0;
};

/// The most that a member sends: each dim's share is found apart, for an axis cuts one dim only, and the sum
/// over those who take factors; what it keeps for itself is no message.
std::int64_t most_sent(const MeshShape& mesh, AxisSet group, const std::vector<DimFlow>& dims,
                       std::int64_t copies, std::int64_t constant) {
  std::array<int, Shape::kMaxRank> before{}, after{}, taken{};
  Coordinates at{};
  std::int64_t most = 0, bound = copies * constant, least_kept = constant;
  for (const DimFlow& dim : dims) {
    bound *= dim.most_taken();
    least_kept *= dim.least_kept();
  }
  bound -= least_kept;  // which an early member attains as a rule
  for (bool more = true; more && most < bound;) {
    std::int64_t all = copies * constant, own = constant;
    for (std::size_t d = 0; d < dims.size(); ++d) {
      all *= dims[d].taken(taken[d]);
      own *= dims[d].kept(before[d], after[d]);
    }
    most = std::max(most, all - own);
    more = false;
    for (int axis = mesh.axes - 1; axis >= 0 && !more; --axis) {
      const auto a = static_cast<std::size_t>(axis);
      if (!contains(group, axis)) continue;
      more = at[a] + 1 < mesh.size[a];
      const int change = more ? 1 : -at[a];
      at[a] += change;
      for (std::size_t d = 0; d < dims.size(); ++d) {
        before[d] += change * dims[d].strides_before()[a];
        after[d] += change * dims[d].strides_after()[a];
        taken[d] += change * dims[d].strides_taken()[a];
      }
    }
  }
  return most;
}

}  // namespace

std::int64_t most_sent_elements(const MeshShape& mesh, const Step& step, const Layout& held) {
  AxisSet fixed = 0;
  std::int64_t copies = 1;  // of what is held, that go out
  for (int axis = 0; axis < mesh.axes; ++axis) {
    if (!contains(step.axes, axis)) continue;
    const bool cut = held.placements[axis].is_shard();
    if (!cut) fixed |= axis_bit(axis);
    if (cut && step.to.placements[axis].is_replicate()) copies *= mesh.size[static_cast<std::size_t>(axis)];
  }
  if (fixed == 0) {
    const Shape source = held.largest_piece(mesh), target = step.to.largest_piece(mesh);
    std::int64_t kept = some_are_apart(mesh, held, step.to) ? 0 : 1;
    for (int dim = 0; dim < source.rank(); ++dim) kept *= std::min(source[dim], target[dim]);
    return source.count() * copies - kept;
  }
  std::vector<DimFlow> dims;
  std::int64_t constant = 1;
  for (int dim = 0; dim < held.global.rank(); ++dim) {
    dims.emplace_back(mesh, step, held, dim, fixed);
    if (!dims.back().constant()) continue;
    constant *= dims.back().kept(0, 0);
    dims.pop_back();
  }
  return most_sent(mesh, step.axes, dims, copies, constant);
}

}  // namespace jigsaw::inline parallel
