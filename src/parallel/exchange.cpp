#include "parallel/exchange.h"

#include <algorithm>

#include "array/transfer.h"
#include "base/error.h"
#include "base/text.h"
#include "kernels/copy.h"
#include "kernels/pointwise.h"

namespace jigsaw::inline parallel {

namespace {

/// `box`, which lies in `here`, as it lies in `there`, a box of the same extents.
Box moved(const Box& box, const Box& here, const Box& there) {
  Box result = box;
  for (int dim = 0; dim < box.begin.rank(); ++dim) result.begin[dim] += there.begin[dim] - here.begin[dim];
  return result;
}

void set_range(Box& box, int dim, const Range& range) {
  box.begin[dim] = range.begin;
  box.extent[dim] = range.size();
}

/// Axes that cut a dim of the map, with more than one rank.
AxisSet cutting_axes(const MeshShape& mesh, const IndexMap& map, const Layout& input) {
  AxisSet axes = 0;
  for (const DimMap& dim : map.dims) {
    for (const int axis : input.cutting(mesh, dim.dim)) axes |= axis_bit(axis);
  }
  return axes;
}

}  // namespace

Exchange::Exchange(const Rank& rank, const IndexMap& map, const Layout& input, const Layout& output)
    : map_(map), global_(input.global), axes_(cutting_axes(rank.mesh.shape(), map, input)) {
  const MeshShape& mesh = rank.mesh.shape();
  const bool poles = std::any_of(map.dims.begin(), map.dims.end(),
                                 [](const DimMap& dim) { return is_pole(dim.low) || is_pole(dim.high); });
  require(!poles || (map.circle >= 0 && global_[map.circle] % 2 == 0),
          "across a pole lies the other half of a circle of even extent");
  group_size_ = rank.mesh.size(axes_);
  held_ = rank.box(input);
  wanted_ = wanted_by(mesh, output, rank.mesh.coordinates(), held_);
  const std::vector<Copy> sources = sources_of(wanted_);
  for (int member = 0; member < group_size_; ++member) {
    const Coordinates there = rank.mesh.member(axes_, member);
    if (there == rank.mesh.coordinates()) {
      local_ = held_part(sources, held_);
      continue;
    }
    const Box held = input.box(mesh, there);
    add_peer(receives_, member, held_part(sources, held));
    add_peer(sends_, member, held_part(sources_of(wanted_by(mesh, output, there, held)), held_));
  }
  find_inside(rank.mesh, input);
}

Box Exchange::wanted_by(const MeshShape& mesh, const Layout& output, const Coordinates& at,
                        const Box& held) const {
  const Box outputs = output.box(mesh, at);
  Box wanted = held;
  for (const DimMap& dim : map_.dims) {
    set_range(wanted, dim.dim, dim.region(range_of(outputs, dim.dim), global_[dim.dim]));
  }
  return wanted;
}

std::vector<Exchange::Copy> Exchange::sources_of(const Box& wanted) const {
  if (wanted.empty()) return {};
  std::vector<Copy> copies = {{wanted, wanted}};
  const auto split = [&](const DimMap& dim) {
    const Range padded = range_of(wanted, dim.dim);
    const std::int64_t extent = global_[dim.dim];
    const bool turns = dim.dim == map_.circle;
    const std::vector<Run> straight = dim.runs(padded, extent, false);
    const std::vector<Run> turned = turns ? dim.runs(padded, extent, true) : straight;
    std::vector<Copy> next;
    for (const Copy& copy : copies) {
      for (const Run& run : copy.crossed ? turned : straight) {
        next.push_back(copy);
        set_range(next.back().to, dim.dim, {run.to, run.to + run.count});
        set_range(next.back().from, dim.dim, {run.from, run.from + run.count});
        next.back().crossed = copy.crossed != run.crossed;
      }
    }
    copies = std::move(next);
  };
  // What has crossed a pole decides where the circle is read.
  for (const DimMap& dim : map_.dims) {
    if (dim.dim != map_.circle) split(dim);
  }
  for (const DimMap& dim : map_.dims) {
    if (dim.dim == map_.circle) split(dim);
  }
  return copies;
}

std::vector<Exchange::Copy> Exchange::held_part(const std::vector<Copy>& copies, const Box& held) {
  std::vector<Copy> parts;
  for (const Copy& copy : copies) {
    const Box from = intersect(copy.from, held);
    if (!from.empty()) parts.push_back({moved(from, copy.from, copy.to), from, copy.crossed});
  }
  return parts;
}

void Exchange::add_peer(std::vector<PeerCopies>& peers, int peer, std::vector<Copy> copies) {
  if (copies.empty()) return;
  const std::int64_t first = peers.empty() ? 0 : peers.back().first + peers.back().count;
  std::int64_t count = 0;
  for (const Copy& copy : copies) count += copy.to.extent.count();
  peers.push_back({peer, first, count, std::move(copies)});
}

void Exchange::find_inside(const Mesh& mesh, const Layout& input) {
  const auto cut = [&](int dim) { return !input.cutting(mesh.shape(), dim).empty(); };
  inside_ = wanted_;
  for (const DimMap& dim : map_.dims) {
    const bool poles = is_pole(dim.low) || is_pole(dim.high);
    if (!cut(dim.dim) && !(poles && cut(map_.circle))) continue;
    const std::int64_t begin = std::max(wanted_.begin[dim.dim], held_.begin[dim.dim]);
    const std::int64_t end = std::min(wanted_.end(dim.dim), held_.end(dim.dim));
    set_range(inside_, dim.dim, {begin, std::max(begin, end)});
  }
}

Box Exchange::region_of(const Box& outputs) const {
  Box region = wanted_;
  for (const DimMap& dim : map_.dims) {
    set_range(region, dim.dim, dim.region(range_of(outputs, dim.dim), global_[dim.dim]));
  }
  return region;
}

Box Exchange::outputs_inside(const Box& outputs) const {
  Box result = outputs;
  for (const DimMap& dim : map_.dims) {
    const Range here = range_of(inside_, dim.dim);
    const auto reads_here = [&](std::int64_t output) {
      const Range reads = dim.region({output, output + 1}, global_[dim.dim]);
      return reads.size() == 0 || (reads.begin >= here.begin && reads.end <= here.end);
    };
    Range range = range_of(outputs, dim.dim);
    while (range.size() > 0 && !reads_here(range.begin)) ++range.begin;
    while (range.size() > 0 && !reads_here(range.end - 1)) --range.end;
    set_range(result, dim.dim, range);
  }
  return result;
}

namespace {

template <typename Peers>
std::vector<Message> messages(const Peers& peers) {
  std::vector<Message> result;
  for (const auto& peer : peers) result.push_back({peer.peer, peer.first, peer.count});
  return result;
}

template <typename Peers>
std::int64_t packed_count(const Peers& peers) {
  return peers.empty() ? 0 : peers.back().first + peers.back().count;
}

}  // namespace

std::int64_t Exchange::sent_elements() const {
  return packed_count(sends_);
}

Pending Exchange::start(const Rank& rank, const Array& piece) const {
  Array packed(rank.context, {packed_count(sends_)}, piece.dtype(), Purpose::kWorkspace);
  for (const PeerCopies& peer : sends_) {
    std::int64_t first = peer.first;
    for (const Copy& copy : peer.copies) {
      Array part = packed.slice(first, copy.from.extent);
      copy_box(rank.context, piece, relative_to(copy.from, held_), part, Box::whole(copy.from.extent));
      first += part.count();
    }
  }
  return rank.mesh.communicator(axes_).start_exchange(packed, messages(sends_), messages(receives_),
                                                      packed_count(receives_));
}

Array Exchange::assemble(const Rank& rank, const Array& piece, const Array& arrived,
                         const Box& region) const {
  const bool changes = !map_.crossing.factor.empty();
  std::int64_t covered = 0;
  for (const Copy& copy : local_) {
    const Box to = intersect(copy.to, region);
    if (to == region && moved(to, copy.to, copy.from) == held_ && !(copy.crossed && changes))
      return piece.reshaped(region.extent);
    covered += to.extent.count();
  }
  for (const PeerCopies& peer : receives_) {
    for (const Copy& copy : peer.copies) covered += intersect(copy.to, region).extent.count();
  }
  Array result = covered == region.extent.count()
                     ? Array(rank.context, region.extent, piece.dtype(), Purpose::kWorkspace)
                     : filled(rank.context, region.extent, piece.dtype(), 0.0, Purpose::kWorkspace);
  const auto place = [&](const Copy& copy, const Array& source, const Box& source_box) {
    const Box to = intersect(copy.to, region);
    if (to.empty()) return;
    const Box from = moved(to, copy.to, copy.from), here = relative_to(from, source_box);
    if (copy.crossed && changes) {
      const Array part =
          crossed(rank, extract_box(rank.context, source, here, Purpose::kWorkspace), from, false);
      copy_box(rank.context, part, Box::whole(part.shape()), result, relative_to(to, region));
    } else {
      copy_box(rank.context, source, here, result, relative_to(to, region));
    }
  };
  for (const Copy& copy : local_) place(copy, piece, held_);
  for (const PeerCopies& peer : receives_) {
    std::int64_t first = peer.first;
    for (const Copy& copy : peer.copies) {
      if (!intersect(copy.to, region).empty()) place(copy, arrived.slice(first, copy.from.extent), copy.from);
      first += copy.from.extent.count();
    }
  }
  return result;
}

/// x · factor + offset of the channels of `from`, or its adjoint.
Array Exchange::crossed(const Rank& rank, const Array& part, const Box& from, bool adjoint) const {
  const int last = from.begin.rank() - 1;
  const Spread spread{part.count() / std::max<std::int64_t>(from.extent[last], 1), from.extent[last], 1};
  const auto channels = [&](const std::vector<double>& values) {
    return kept_constant(rank.context, {from.extent[last]}, DType::kFloat64,
                         std::span(values).subspan(static_cast<std::size_t>(from.begin[last]),
                                                   static_cast<std::size_t>(from.extent[last])));
  };
  Array scaled = scale_spread(rank.context, spread, part, channels(map_.crossing.factor));
  if (adjoint || map_.crossing.offset.empty()) return scaled;
  const Array offset = cast(rank.context, channels(map_.crossing.offset), part.dtype(), Purpose::kWorkspace);
  return pointwise_forward(rank.context, {Activation::kNone, {}, spread}, scaled, offset, Array());
}

Pending Exchange::start_adjoint(const Rank& rank, const Array& gradient) const {
  Array packed(rank.context, {packed_count(receives_)}, gradient.dtype(), Purpose::kWorkspace);
  for (const PeerCopies& peer : receives_) {
    std::int64_t first = peer.first;
    for (const Copy& copy : peer.copies) {
      Array part = packed.slice(first, copy.to.extent);
      copy_box(rank.context, gradient, relative_to(copy.to, wanted_), part, Box::whole(copy.to.extent));
      first += part.count();
    }
  }
  return rank.mesh.communicator(axes_).start_exchange(packed, messages(receives_), messages(sends_),
                                                      packed_count(sends_));
}

Array Exchange::finish_adjoint(const Rank& rank, const Array& gradient, const Array& arrived) const {
  const bool changes = !map_.crossing.factor.empty();
  const auto whole = std::find_if(local_.begin(), local_.end(), [&](const Copy& copy) {
    return copy.from == held_ && !(copy.crossed && changes);
  });
  if (whole != local_.end() && whole->to == wanted_ && local_.size() == 1 && sends_.empty())
    return gradient.reshaped(held_.extent);
  Array result = whole != local_.end() ? extract_box(rank.context, gradient, relative_to(whole->to, wanted_))
                                       : filled(rank.context, held_.extent, gradient.dtype(), 0.0);
  const auto add = [&](const Copy& copy, const Array& source, const Box& source_box) {
    const Box here = relative_to(copy.to, source_box), target = relative_to(copy.from, held_);
    if (copy.crossed && changes) {
      const Array part =
          crossed(rank, extract_box(rank.context, source, here, Purpose::kWorkspace), copy.from, true);
      add_box(rank.context, part, Box::whole(part.shape()), result, target);
    } else {
      add_box(rank.context, source, here, result, target);
    }
  };
  for (auto copy = local_.begin(); copy != local_.end(); ++copy) {
    if (copy != whole) add(*copy, gradient, wanted_);
  }
  for (const PeerCopies& peer : sends_) {
    std::int64_t first = peer.first;
    for (const Copy& copy : peer.copies) {
      add(copy, arrived.slice(first, copy.to.extent), copy.to);
      first += copy.to.extent.count();
    }
  }
  return result;
}

namespace {

/// Exchanges of one rank, by what they were compiled for.
struct ExchangeBook {
  struct Entry {
    MeshShape mesh;
    Coordinates at;
    IndexMap map;
    Layout input, output;
    std::shared_ptr<const Exchange> exchange;
  };
  std::vector<Entry> entries;
};

}  // namespace

std::shared_ptr<const Exchange> Exchange::of(const Rank& rank, const IndexMap& map, const Layout& input,
                                             const Layout& output) {
  std::vector<ExchangeBook::Entry>& entries = rank.context.state<ExchangeBook>().entries;
  for (const ExchangeBook::Entry& entry : entries) {
    if (entry.input == input && entry.output == output && entry.map == map &&
        entry.mesh == rank.mesh.shape() && entry.at == rank.mesh.coordinates())
      return entry.exchange;
  }
  auto exchange = std::make_shared<const Exchange>(rank, map, input, output);
  entries.push_back({rank.mesh.shape(), rank.mesh.coordinates(), map, input, output, exchange});
  return exchange;
}

}  // namespace jigsaw::inline parallel
