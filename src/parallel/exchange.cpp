#include "parallel/exchange.h"

#include <algorithm>
#include <array>
#include <span>

#include "array/transfer.h"
#include "base/error.h"
#include "base/text.h"
#include "parallel/book.h"

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
  compile_messages();
}

void Exchange::compile_messages() {
  const auto pack = [](BoxTable& table, const std::vector<PeerCopies>& peers, const Box& here,
                       Box Copy::*box) {
    for (const PeerCopies& peer : peers) {
      std::int64_t first = peer.first;
      for (const Copy& copy : peer.copies) {
        const Shape& extent = (copy.*box).extent;
        table.copy(0, {0, here.extent, relative_to(copy.*box, here)}, {first, extent, Box::whole(extent)});
        first += extent.count();
      }
    }
  };
  pack(packing_, sends_, held_, &Copy::from);
  pack(adjoint_packing_, receives_, wanted_, &Copy::to);
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
    const auto reads_of = [&](std::int64_t output) {
      return dim.region({output, output + 1}, global_[dim.dim]);
    };
    // Of some maps outputs that read nothing lie between those that do, and say nothing of these.
    Range range = range_of(outputs, dim.dim);
    for (std::int64_t output = range.begin; output < range.end; ++output) {
      const Range reads = reads_of(output);
      if (reads.size() > 0 && reads.begin >= here.begin) break;
      if (reads.size() > 0) range.begin = output + 1;
    }
    for (std::int64_t output = range.end - 1; output >= range.begin; --output) {
      const Range reads = reads_of(output);
      if (reads.size() > 0 && reads.end <= here.end) break;
      if (reads.size() > 0) range.end = output;
    }
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
  copy_boxes(rank.context, packing_, std::span(&piece, 1), packed);
  return rank.mesh.communicator(axes_).start_exchange(packed, messages(sends_), messages(receives_),
                                                      packed_count(receives_));
}

/// By what an element changes where it is read across a pole: x · factor + offset, adjoint x · factor.
ChannelChange Exchange::crossing(const Rank& rank, bool adjoint) const {
  const auto channels = [&](const std::vector<double>& values) {
    return values.empty() ? Array()
                          : kept_constant(rank.context, {std::ssize(values)}, DType::kFloat64, values);
  };
  return {channels(map_.crossing.factor), channels(adjoint ? std::vector<double>() : map_.crossing.offset)};
}

std::int64_t Exchange::channel_of(const Copy& copy, const Box& from) const {
  return copy.crossed && !map_.crossing.factor.empty() ? from.begin[from.begin.rank() - 1]
                                                       : BoxTable::kAsItIs;
}

const Exchange::Assembly& Exchange::assembly_of(const std::vector<Box>& regions) const {
  for (const auto& known : assemblies_) {
    if (known->regions == regions) return *known;
  }
  Assembly& made = *assemblies_.emplace_back(std::make_unique<Assembly>());
  made.regions = regions;
  for (const Box& region : regions) {
    constexpr std::int64_t kAligned = 64;  // elements at whose multiples regions begin
    made.first.push_back(made.count);
    const std::int64_t first = made.count;
    made.count += (region.extent.count() + kAligned - 1) / kAligned * kAligned;
    const auto place = [&](const Copy& copy, int source, std::int64_t source_first, const Box& source_box) {
      const Box to = intersect(copy.to, region);
      if (to.empty()) return;
      const Box from = moved(to, copy.to, copy.from);
      made.table.copy(source, {source_first, source_box.extent, relative_to(from, source_box)},
                      {first, region.extent, relative_to(to, region)}, channel_of(copy, from));
    };
    for (const Copy& copy : local_) place(copy, 0, 0, held_);
    for (const PeerCopies& peer : receives_) {
      std::int64_t source_first = peer.first;
      for (const Copy& copy : peer.copies) {
        place(copy, 1, source_first, copy.from);
        source_first += copy.from.extent.count();
      }
    }
    made.table.clear(first, region.extent);
  }
  return made;
}

Array Exchange::assemble(const Rank& rank, const Array& piece, const Array& arrived,
                         const Box& region) const {
  for (const Copy& copy : local_) {
    if (intersect(copy.to, region) == region && moved(region, copy.to, copy.from) == held_ &&
        channel_of(copy, held_) == BoxTable::kAsItIs)
      return piece.reshaped(region.extent);
  }
  Array result(rank.context, region.extent, piece.dtype(), Purpose::kWorkspace);
  copy_boxes(rank.context, assembly_of({region}).table, std::array{piece, arrived}, result,
             crossing(rank, false));
  return result;
}

std::vector<Array> Exchange::assemble(const Rank& rank, const Array& piece, const Array& arrived,
                                      const std::vector<Box>& regions) const {
  const Assembly& assembly = assembly_of(regions);
  Array all(rank.context, {assembly.count}, piece.dtype(), Purpose::kWorkspace);
  copy_boxes(rank.context, assembly.table, std::array{piece, arrived}, all, crossing(rank, false));
  std::vector<Array> results;
  for (std::size_t i = 0; i < regions.size(); ++i)
    results.push_back(all.slice(assembly.first[i], regions[i].extent));
  return results;
}

Pending Exchange::start_adjoint(const Rank& rank, const Array& gradient) const {
  Array packed(rank.context, {packed_count(receives_)}, gradient.dtype(), Purpose::kWorkspace);
  copy_boxes(rank.context, adjoint_packing_, std::span(&gradient, 1), packed);
  return rank.mesh.communicator(axes_).start_exchange(packed, messages(receives_), messages(sends_),
                                                      packed_count(sends_));
}

Array Exchange::finish_adjoint(const Rank& rank, const Array& gradient, const Array& arrived) const {
  const auto whole = std::find_if(local_.begin(), local_.end(), [&](const Copy& copy) {
    return copy.from == held_ && channel_of(copy, held_) == BoxTable::kAsItIs;
  });
  if (whole != local_.end() && whole->to == wanted_ && local_.size() == 1 && sends_.empty())
    return gradient.reshaped(held_.extent);
  if (sums_.empty()) {
    const auto add = [&](const Copy& copy, int source, std::int64_t first, const Box& source_box) {
      sums_.copy(source, {first, source_box.extent, relative_to(copy.to, source_box)},
                 {0, held_.extent, relative_to(copy.from, held_)}, channel_of(copy, copy.from));
    };
    if (whole != local_.end()) add(*whole, 0, 0, wanted_);
    for (auto copy = local_.begin(); copy != local_.end(); ++copy) {
      if (copy != whole) add(*copy, 0, 0, wanted_);
    }
    for (const PeerCopies& peer : sends_) {
      std::int64_t first = peer.first;
      for (const Copy& copy : peer.copies) {
        add(copy, 1, first, copy.to);
        first += copy.to.extent.count();
      }
    }
    sums_.clear(0, held_.extent);
  }
  Array result(rank.context, held_.extent, gradient.dtype());
  copy_boxes(rank.context, sums_, std::array{gradient, arrived}, result, crossing(rank, true));
  return result;
}

namespace {

/// What an exchange is compiled for.
struct ExchangeKey {
  Layout input, output;
  IndexMap map;
  MeshShape mesh;
  Coordinates at;
  bool operator==(const ExchangeKey&) const = default;
};

}  // namespace

std::shared_ptr<const Exchange> Exchange::of(const Rank& rank, const IndexMap& map, const Layout& input,
                                             const Layout& output) {
  return rank.context.state<Book<ExchangeKey, Exchange>>().of(
      {input, output, map, rank.mesh.shape(), rank.mesh.coordinates()},
      [&] { return std::make_shared<const Exchange>(rank, map, input, output); });
}

}  // namespace jigsaw::inline parallel
