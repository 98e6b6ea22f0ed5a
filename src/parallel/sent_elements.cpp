#include "parallel/sent_elements.h"

#include <algorithm>
#include <array>
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
    for (int axis = mesh.axes - 1; axis >= 0; --axis) {
      const auto a = static_cast<std::size_t>(axis);
      const Placement& p = layout.placements[axis];
      if (!contains(group, axis) || mesh.size[a] == 1 || !p.is_shard() || p.dim != dim) continue;
      axes |= axis_bit(axis);
      strides[a] = count;
      count *= mesh.size[a];
    }
    parts.resize(static_cast<std::size_t>(count));
    for_members(mesh, axes, strides, [&](const Coordinates& at, int number) {
      parts[static_cast<std::size_t>(number)] = range_of(layout.box(mesh, at), dim);
    });
  }
};

/// One dim of an all-to-all: how much of it a member keeps, and how much of it all to which the member sends
/// take of it together.
class DimFlow {
 public:
  /// @param fixed  axes of the group along which members send only to those with their own coordinate.
  DimFlow(const MeshShape& mesh, const Step& step, const Layout& held, int dim, AxisSet fixed)
      : before_(mesh, held, dim, step.axes), after_(mesh, step.to, dim, step.axes) {
    const std::size_t columns = after_.parts.size();
    kept_.resize(before_.parts.size() * columns);
    taken_.assign(kept_.size(), 0);
    std::array<int, kMaxAxes> of_fixed{};
    for (std::size_t a = 0; a < of_fixed.size(); ++a)
      of_fixed[a] = contains(fixed, static_cast<int>(a)) ? after_.strides[a] : 0;
    std::vector<std::size_t> column_of(columns);  // of those with the same fixed coordinates
    for_members(mesh, after_.axes, after_.strides, [&](const Coordinates& at, int number) {
      std::size_t column = 0;
      for (std::size_t a = 0; a < at.size(); ++a) column += static_cast<std::size_t>(at[a] * of_fixed[a]);
      column_of[static_cast<std::size_t>(number)] = column;
    });
    for (std::size_t i = 0; i < before_.parts.size(); ++i) {
      for (std::size_t j = 0; j < columns; ++j) {
        const Range &a = before_.parts[i], &b = after_.parts[j];
        const std::int64_t common =
            std::max<std::int64_t>(0, std::min(a.end, b.end) - std::max(a.begin, b.begin));
        kept_[i * columns + j] = common;
        taken_[i * columns + column_of[j]] += common;
      }
    }
    for (std::size_t a = 0; a < strides_kept_.size(); ++a) {
      const int row = before_.strides[a] * static_cast<int>(columns);
      strides_kept_[a] = row + after_.strides[a];
      strides_taken_[a] = row + of_fixed[a];
    }
  }

  bool constant() const { return (before_.axes | after_.axes) == 0; }
  /// For a member, by the sum of its coordinates × strides.
  std::int64_t kept(int number) const { return kept_[static_cast<std::size_t>(number)]; }
  std::int64_t taken(int number) const { return taken_[static_cast<std::size_t>(number)]; }
  int stride_kept(int axis) const { return strides_kept_[static_cast<std::size_t>(axis)]; }
  int stride_taken(int axis) const { return strides_taken_[static_cast<std::size_t>(axis)]; }

 private:
  DimParts before_, after_;
  std::vector<std::int64_t> kept_, taken_;
  std::array<int, kMaxAxes> strides_kept_{}, strides_taken_{};
};

/// The most that a member sends: each dim's share is found apart, for an axis cuts one dim only, and the sum
/// over those who take factors; what it keeps for itself is no message.
std::int64_t most_sent(const MeshShape& mesh, AxisSet group, const std::vector<DimFlow>& dims,
                       std::int64_t copies, std::int64_t constant) {
  std::array<int, Shape::kMaxRank> kept{}, taken{};
  Coordinates at{};
  std::int64_t most = 0;
  for (bool more = true; more;) {
    std::int64_t all = copies * constant, own = constant;
    for (std::size_t d = 0; d < dims.size(); ++d) {
      all *= dims[d].taken(taken[d]);
      own *= dims[d].kept(kept[d]);
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
        kept[d] += change * dims[d].stride_kept(axis);
        taken[d] += change * dims[d].stride_taken(axis);
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
    constant *= dims.back().kept(0);
    dims.pop_back();
  }
  return most_sent(mesh, step.axes, dims, copies, constant);
}

}  // namespace jigsaw::inline parallel
