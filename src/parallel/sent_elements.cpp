#include "parallel/sent_elements.h"

#include <algorithm>
#include <array>
#include <deque>
#include <iterator>
#include <span>
#include <unordered_map>
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

/// By axis what a coordinate adds to the number of something.
using Strides = std::array<int, kMaxAxes>;

/// Calls f for all coordinates along `axes`, the last axis fastest, with a number for each of `strides`: the
/// sum over axes of coordinate × stride, from `first` on.
template <typename F>
void for_members(const MeshShape& mesh, AxisSet axes, std::span<const Strides> strides, const F& f,
                 std::span<const int> first = {}) {
  std::array<int, Shape::kMaxRank> numbers{};
  std::ranges::copy(first, numbers.begin());
  Coordinates at{};
  for (bool more = true; more;) {
    f(std::span<const int>(numbers).first(strides.size()));
    more = false;
    for (int axis = mesh.axes - 1; axis >= 0 && !more; --axis) {
      const auto a = static_cast<std::size_t>(axis);
      if (!contains(axes, axis)) continue;
      more = at[a] + 1 < mesh.size[a];
      const int change = more ? 1 : -at[a];
      at[a] += change;
      for (std::size_t i = 0; i < strides.size(); ++i) numbers[i] += change * strides[i][a];
    }
  }
}

/// Numbers of coordinates along `axes`, the last one fastest. @return  how many there are
int number_members(const MeshShape& mesh, AxisSet axes, Strides& strides) {
  int count = 1;
  for (int axis = mesh.axes - 1; axis >= 0; --axis) {
    const auto a = static_cast<std::size_t>(axis);
    if (!contains(axes, axis)) continue;
    strides[a] = count;
    count *= mesh.size[a];
  }
  return count;
}

/// How one layout cuts a dim: by axis its unit, 0 where it does not.
using Cuts = std::array<std::int64_t, kMaxAxes>;

Cuts cuts_of(const MeshShape& mesh, const Layout& layout, int dim) {
  Cuts cuts{};
  for (int axis = 0; axis < mesh.axes; ++axis) {
    const Placement& p = layout.placements[axis];
    if (p.is_shard() && p.dim == dim) cuts[static_cast<std::size_t>(axis)] = p.unit;
  }
  return cuts;
}

AxisSet axes_of(const MeshShape& mesh, const Cuts& cuts) {
  AxisSet axes = 0;
  for (int axis = 0; axis < mesh.axes; ++axis) {
    const auto a = static_cast<std::size_t>(axis);
    if (cuts[a] > 0 && mesh.size[a] > 1) axes |= axis_bit(axis);
  }
  return axes;
}

/// The ranges of one dim that the members of a group hold, as Layout::box() has them; along other axes of the
/// first ranks.
struct DimParts {
  AxisSet axes = 0;   ///< of the group, that cut the dim
  Strides strides{};  ///< a member's range is parts[sum of coordinate × stride]
  std::vector<Range> parts;

  DimParts(const MeshShape& mesh, std::int64_t extent, const Cuts& cuts, AxisSet group)
      : axes(axes_of(mesh, cuts) & group) {
    const auto first = std::ranges::find_if(cuts, [](std::int64_t unit) { return unit > 0; });
    const std::int64_t unit = first == cuts.end() ? 1 : *first;
    parts = {{0, (extent + unit - 1) / unit}};
    for (int axis = 0; axis < mesh.axes; ++axis) {
      if (!contains(axes_of(mesh, cuts), axis)) continue;
      const int size = mesh.size[static_cast<std::size_t>(axis)];
      std::vector<Range> finer;
      for (const Range& part : parts) {
        for (int i = 0; i < (contains(axes, axis) ? size : 1); ++i) {
          const Range range = cut_range(part.size(), size, i);
          finer.push_back({part.begin + range.begin, part.begin + range.end});
        }
      }
      parts = std::move(finer);
    }
    for (Range& part : parts) part = {std::min(part.begin * unit, extent), std::min(part.end * unit, extent)};
    number_members(mesh, axes, strides);
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

/// What all to which a member sends take together of a dim, or of several, and what it keeps for itself.
struct Share {
  std::int64_t taken = 1, kept = 1;
};

/// Of some members' shares those that may be the most that is sent, whatever the other dims are: no two of
/// which one has as much taken and keeps no more. By what is taken, and hence by what is kept, ascending.
class Front {
 public:
  void add(const Share& share) {
    const auto place = std::ranges::lower_bound(shares_, share.taken, {}, &Share::taken);
    if (place != shares_.end() && place->kept <= share.kept) return;
    auto end = place;
    while (end != shares_.end() && end->taken == share.taken) ++end;
    auto begin = place;
    while (begin != shares_.begin() && std::prev(begin)->kept >= share.kept) --begin;
    shares_.insert(shares_.erase(begin, end), share);
  }
  /// Of members of which some dims have these shares and others those.
  void add_products(std::span<const Share> some, std::span<const Share> others) {
    for (const Share& a : some) {
      for (const Share& b : others) add({a.taken * b.taken, a.kept * b.kept});
    }
  }
  std::span<const Share> shares() const { return shares_; }
  void clear() { shares_.clear(); }

 private:
  std::vector<Share> shares_;
};

/// What shares in a dim depend on.
struct DimKey {
  std::int64_t extent = 0;
  Cuts before{}, after{};
  AxisSet group = 0;  ///< of the step, as far as they cut the dim
  AxisSet fixed = 0;  ///< of these those along which members send only to those with their own coordinate;
                      ///< they do not cut what is held
  bool operator==(const DimKey&) const = default;
};

struct DimHash {
  std::size_t operator()(const DimKey& key) const {
    std::uint64_t hash = 0;
    const auto add = [&](std::int64_t number) {
      hash = (hash ^ static_cast<std::uint64_t>(number)) * 0x9e3779b97f4a7c15U;
      hash ^= hash >> 32U;
    };
    for (const std::int64_t number : {key.extent, std::int64_t{key.group}, std::int64_t{key.fixed}})
      add(number);
    for (const Cuts* cuts : {&key.before, &key.after}) std::ranges::for_each(*cuts, add);
    return hash;
  }
};

/// One dim of an all-to-all: the shares of all members. It grows with the parts before and behind it, not
/// with their product.
class DimFlow {
 public:
  DimFlow(const MeshShape& mesh, const DimKey& key)
      : mesh_(mesh),
        before_(mesh, key.extent, key.before, key.group),
        after_(mesh, key.extent, key.after, key.group) {
    Strides column{};
    const int columns = number_members(mesh, after_.axes & key.fixed, column);
    std::vector<std::vector<Range>> takers(static_cast<std::size_t>(columns));
    for_members(mesh, after_.axes, std::array{column, after_.strides}, [&](std::span<const int> number) {
      takers[static_cast<std::size_t>(number[0])].push_back(
          after_.parts[static_cast<std::size_t>(number[1])]);
    });
    taken_.resize(before_.parts.size() * takers.size());
    for (std::size_t c = 0; c < takers.size(); ++c) {
      const Covered covered(std::move(takers[c]));
      for (std::size_t i = 0; i < before_.parts.size(); ++i) {
        taken_[i * static_cast<std::size_t>(columns) + c] =
            covered.below(before_.parts[i].end) - covered.below(before_.parts[i].begin);
      }
    }
    for (std::size_t a = 0; a < column.size(); ++a)
      strides_taken_[a] = before_.strides[a] * columns + column[a];
  }

  /// On which shares depend.
  AxisSet axes() const { return before_.axes | after_.axes; }

  /// By the coordinates along some axes, the last one fastest.
  struct Table {
    AxisSet axes = 0;
    Strides strides{};
    std::vector<Share> shares;
    std::vector<std::size_t> ends;

    std::span<const Share> at(int number) const {
      const auto n = static_cast<std::size_t>(number);
      const std::size_t begin = n == 0 ? 0 : ends[n - 1];
      return std::span(shares).subspan(begin, ends[n] - begin);
    }
  };
  /// Over all members with the same coordinates along these of axes(). Found once.
  const Table& fronts(AxisSet along) {
    const auto known = std::ranges::find(tables_, along, &Table::axes);
    if (known != tables_.end()) return *known;
    Table& table = tables_.emplace_back();
    table.axes = along;
    number_members(mesh_, along, table.strides);
    const std::array numbers = {before_.strides, after_.strides, strides_taken_};
    Front front;
    for_members(mesh_, along, numbers, [&](std::span<const int> there) {
      front.clear();
      const auto add = [&](std::span<const int> number) {
        front.add(share(number[0], number[1], number[2]));
      };
      for_members(mesh_, axes() & ~along, numbers, add, there);
      table.shares.insert(table.shares.end(), front.shares().begin(), front.shares().end());
      table.ends.push_back(table.shares.size());
    });
    return table;
  }

 private:
  Share share(int before, int after, int taken) const {
    const Range &a = before_.parts[static_cast<std::size_t>(before)],
                &b = after_.parts[static_cast<std::size_t>(after)];
    return {taken_[static_cast<std::size_t>(taken)],
            std::max<std::int64_t>(0, std::min(a.end, b.end) - std::max(a.begin, b.begin))};
  }

  MeshShape mesh_;
  DimParts before_, after_;
  std::vector<std::int64_t> taken_;
  Strides strides_taken_{};
  std::deque<Table> tables_;
};

/// The shares of dims together, of which each is bound to the others by axes: of dims that are not they are
/// found apart, for what is sent is a product over dims, less another.
/// @param shared  axes that shares in several dims depend on
Front front_of(const MeshShape& mesh, const std::vector<DimFlow*>& dims, AxisSet shared) {
  AxisSet along = 0;
  std::vector<const DimFlow::Table*> tables;
  std::vector<Strides> strides;
  for (DimFlow* dim : dims) {
    tables.push_back(&dim->fronts(dim->axes() & shared));
    strides.push_back(tables.back()->strides);
    along |= tables.back()->axes;
  }
  Front found, joined, next;
  for_members(mesh, along, strides, [&](std::span<const int> number) {
    Share single;  // where each dim has but one, as most have
    std::size_t singles = 0;
    for (; singles < tables.size() && tables[singles]->at(number[singles]).size() == 1; ++singles) {
      const Share& share = tables[singles]->at(number[singles]).front();
      single = {single.taken * share.taken, single.kept * share.kept};
    }
    if (singles == tables.size()) return found.add(single);
    std::span<const Share> together = tables[0]->at(number[0]);
    for (std::size_t d = 1; d < tables.size(); ++d) {
      next.clear();
      next.add_products(together, tables[d]->at(number[d]));
      std::swap(joined, next);
      together = joined.shares();
    }
    for (const Share& share : together) found.add(share);
  });
  return found;
}

}  // namespace

class SentElements::Dims {
 public:
  DimFlow& flow(const MeshShape& mesh, const Step& step, const Layout& held, int dim, AxisSet fixed) {
    DimKey key{held.global[dim], cuts_of(mesh, held, dim), cuts_of(mesh, step.to, dim), 0, 0};
    key.group = step.axes & (axes_of(mesh, key.before) | axes_of(mesh, key.after));
    key.fixed = key.group & fixed;
    return flows_.try_emplace(key, mesh, key).first->second;
  }

 private:
  std::unordered_map<DimKey, DimFlow, DimHash> flows_;
};

SentElements::SentElements(const MeshShape& mesh) : mesh_(mesh), dims_(std::make_unique<Dims>()) {}
SentElements::~SentElements() = default;

std::int64_t SentElements::most(const Step& step, const Layout& held) {
  AxisSet fixed = 0;
  std::int64_t copies = 1;  // of what is held, that go out
  for (int axis = 0; axis < mesh_.axes; ++axis) {
    if (!contains(step.axes, axis)) continue;
    const bool cut = held.placements[axis].is_shard();
    if (!cut) fixed |= axis_bit(axis);
    if (cut && step.to.placements[axis].is_replicate()) copies *= mesh_.size[static_cast<std::size_t>(axis)];
  }
  if (fixed == 0) {
    const Shape source = held.largest_piece(mesh_), target = step.to.largest_piece(mesh_);
    std::int64_t kept = some_are_apart(mesh_, held, step.to) ? 0 : 1;
    for (int dim = 0; dim < source.rank(); ++dim) kept *= std::min(source[dim], target[dim]);
    return source.count() * copies - kept;
  }
  std::vector<DimFlow*> dims;
  AxisSet some = 0, shared = 0;  // axes that shares in a dim depend on; in several
  for (int dim = 0; dim < held.global.rank(); ++dim) {
    dims.push_back(&dims_->flow(mesh_, step, held, dim, fixed));
    shared |= some & dims.back()->axes();
    some |= dims.back()->axes();
  }
  Front all;
  all.add({copies, 1});
  while (!dims.empty()) {
    // The first that is left, and what is bound to it by way of others.
    std::vector<DimFlow*> bound = {dims.front()};
    AxisSet axes = bound.front()->axes();
    dims.erase(dims.begin());
    for (auto dim = dims.begin(); dim != dims.end();) {
      if (((*dim)->axes() & axes) == 0) {
        ++dim;
        continue;
      }
      axes |= (*dim)->axes();
      bound.push_back(*dim);
      dims.erase(dim);
      dim = dims.begin();
    }
    Front product;
    product.add_products(all.shares(), front_of(mesh_, bound, shared).shares());
    std::swap(all, product);
  }
  std::int64_t most = 0;
  for (const Share& share : all.shares()) most = std::max(most, share.taken - share.kept);
  return most;
}

}  // namespace jigsaw::inline parallel
