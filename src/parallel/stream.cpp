#include "parallel/stream.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "base/error.h"
#include "kernels/copy.h"
#include "parallel/book.h"

namespace jigsaw::inline parallel {

namespace {

/// The member of a group so many ranks after this one, cyclically.
int member_after(const Communicator& group, std::size_t distance) {
  return (group.rank() + static_cast<int>(distance)) % group.size();
}
int member_before(const Communicator& group, std::size_t distance) {
  return (group.rank() + group.size() - static_cast<int>(distance)) % group.size();
}

/// What travels from one member to another in a step: of a piece laid out as `from` what the other holds
/// afterwards.
Box travels(const Rank& rank, const Layout& from, const Step& step, int sender, int receiver) {
  const MeshShape& mesh = rank.mesh.shape();
  const Coordinates here = rank.mesh.member(step.axes, sender), there = rank.mesh.member(step.axes, receiver);
  const Box target = step.to.box(mesh, there);
  if (step.kind == Collective::kReduceScatter) return target;
  if (!feeds(step, from, here, there)) {
    const Shape zero = Shape::filled(from.global.rank(), 0);
    return {zero, zero};
  }
  return intersect(from.box(mesh, here), target);
}

/// Sends one array and receives another, of which both ranks know the length.
Pending swap(Communicator& group, const Array& send, int to, int from, std::int64_t count) {
  const std::array sends = {Message{to, 0, send.count()}};
  const std::array receives = {Message{from, 0, count}};
  return group.start_exchange(send.reshaped({send.count()}), sends, receives, count);
}

/// So many runs of a box, cut along its first dim of more than one element: consecutive in memory.
Box runs_of(const Box& box, int runs, int first, int count) {
  Box part = box;
  int dim = 0;
  while (dim + 1 < box.extent.rank() && box.extent[dim] <= 1) ++dim;
  const std::int64_t begin = cut_range(box.extent[dim], runs, first).begin,
                     end = cut_range(box.extent[dim], runs, first + count - 1).end;
  part.begin[dim] += begin;
  part.extent[dim] = end - begin;
  return part;
}
Box run_of(const Box& box, int runs, int number) {
  return runs_of(box, runs, number, 1);
}
Box message_of(const Box& box, const Cut& cut, int number) {
  return runs_of(box, cut.runs, number * cut.runs_per_message(), cut.runs_per_message());
}

}  // namespace

std::optional<Array> consecutive(const Array& array, const Box& box, const Box& region) {
  const Array elements = array.reshaped({array.count()});
  if (region.empty()) return elements.slice(0, region.extent);
  std::int64_t first = 0;
  bool more = true;  // only dims of one element so far
  for (int dim = 0; dim < box.extent.rank(); ++dim) {
    if (!more && region.extent[dim] != box.extent[dim]) return std::nullopt;
    more = more && region.extent[dim] == 1;
    first += (region.begin[dim] - box.begin[dim]) * box.extent.count(dim + 1, box.extent.rank());
  }
  return elements.slice(first, region.extent);
}

namespace {

/// What streams are compiled for, and which of both: one rank takes both parts.
template <typename Plan>
struct StreamKey {
  Layout from, to;
  Collective kind;
  AxisSet axes;
  Cut cut;
  MeshShape mesh;
  Coordinates at;
  bool operator==(const StreamKey&) const = default;
};
template <typename Plan>
std::shared_ptr<const Plan> stream_plan(const Rank& rank, const Layout& from, const Step& step,
                                        const Cut& cut) {
  return rank.context.state<Book<StreamKey<Plan>, Plan>>().of(
      {from, step.to, step.kind, step.axes, cut, rank.mesh.shape(), rank.mesh.coordinates()},
      [&] { return std::make_shared<const Plan>(rank, from, step, cut); });
}

/// Where a region that is consecutive in a box begins there.
std::int64_t first_in(const Box& box, const Box& region) {
  std::int64_t first = 0;
  for (int dim = 0; dim < box.extent.rank(); ++dim)
    first += (region.begin[dim] - box.begin[dim]) * box.extent.count(dim + 1, box.extent.rank());
  return first;
}

}  // namespace

struct ReceiveStream::Plan {
  Plan(const Rank& rank, const Layout& from, const Step& step, const Cut& cut_)
      : cut(cut_), held(rank.box(from)) {
    require(step.kind == Collective::kAllGather || step.kind == Collective::kAllToAll,
            "gathers and all-to-alls are received in parts");
    const Communicator& group = rank.mesh.communicator(step.axes);
    const auto send = [&](const Box& box) {
      sends.push_back(box);
      first.push_back(packed);
      if (box == held) return;
      packing.copy(0, {0, held.extent, relative_to(box, held)}, {packed, box.extent, Box::whole(box.extent)});
      packed += box.extent.count();
    };
    boxes.push_back(travels(rank, from, step, group.rank(), group.rank()));
    send(boxes[0]);
    for (std::size_t distance = 1; distance < static_cast<std::size_t>(group.size()); ++distance) {
      send(travels(rank, from, step, group.rank(), member_before(group, distance)));
      const Box received = travels(rank, from, step, member_after(group, distance), group.rank());
      for (int number = 0; number < cut.runs; ++number) boxes.push_back(run_of(received, cut.runs, number));
      for (int number = 0; number < cut.messages; ++number)
        messages.push_back(message_of(received, cut, number));
    }
  }

  Cut cut;
  Box held;
  std::vector<Box> boxes;           ///< this rank's, then the runs by distance of the sender from this rank
  std::vector<Box> messages;        ///< in the same order
  std::vector<Box> sends;           ///< this rank's own, then by distance of the receiver
  std::vector<std::int64_t> first;  ///< where they are packed, those that are not all that is held
  std::int64_t packed = 0;
  BoxTable packing;
};

ReceiveStream::ReceiveStream(const Rank& rank, const ShardedTensor& x, const Step& step, const Cut& cut)
    : plan_(stream_plan<Plan>(rank, x.layout, step, cut)) {
  Communicator& group = rank.mesh.communicator(step.axes);
  Array packed(rank.context, {plan_->packed}, x.piece.dtype(), Purpose::kWorkspace);
  copy_boxes(rank.context, plan_->packing, std::span(&x.piece, 1), packed);
  const auto part = [&](std::size_t number) {
    const Box& box = plan_->sends[number];
    return box == plan_->held ? x.piece : packed.slice(plan_->first[number], box.extent);
  };
  own_ = part(0);
  for (std::size_t distance = 1; distance < plan_->sends.size(); ++distance) {
    const Array sent = part(distance);
    for (int number = 0; number < cut.messages; ++number) {
      const Box& box = plan_->sends[distance];
      arriving_.push_back(swap(group, *consecutive(sent, box, message_of(box, cut, number)),
                               member_before(group, distance), member_after(group, distance),
                               plan_->messages[arriving_.size()].extent.count()));
    }
  }
}

bool ReceiveStream::done() const {
  return taken_ == plan_->boxes.size();
}

ReceiveStream::Part ReceiveStream::next() {
  const std::size_t number = taken_++;
  const Box& box = plan_->boxes[number];
  if (number == 0) return {box, std::move(own_)};
  const auto runs = static_cast<std::size_t>(plan_->cut.runs_per_message());
  const std::size_t message = (number - 1) / runs;
  if ((number - 1) % runs == 0) arrived_ = arriving_[message].wait();
  return {box, consecutive(arrived_, plan_->messages[message], box)->reshaped(box.extent)};
}

struct SendStream::Plan {
  Plan(const Rank& rank, const Layout& from, const Step& step, const Cut& cut_)
      : kind(step.kind), target(rank.box(step.to)), cut(cut_) {
    require(kind == Collective::kReduceScatter || kind == Collective::kAllToAll,
            "reduce-scatters and all-to-alls are sent in parts");
    const Communicator& group = rank.mesh.communicator(step.axes);
    for (std::size_t distance = 1; distance <= static_cast<std::size_t>(group.size()); ++distance) {
      const bool own = distance == static_cast<std::size_t>(group.size());
      const Box sent = travels(rank, from, step, group.rank(), member_after(group, distance)),
                received = travels(rank, from, step, member_before(group, distance), group.rank());
      for (int number = 0; number < (own ? 1 : cut.runs); ++number) {
        sends.push_back(run_of(sent, own ? 1 : cut.runs, number));
        receives.push_back(run_of(received, own ? 1 : cut.runs, number));
      }
      for (int number = 0; number < (own ? 1 : cut.messages); ++number)
        messages.push_back(own ? received : message_of(received, cut, number));
    }
    const auto runs = static_cast<std::size_t>(cut.runs_per_message());
    for (std::size_t first = 0; runs > 1 && first + runs < sends.size(); first += runs)
      packing.push_back(one_after_another(std::span(sends).subspan(first, runs)));
    if (kind == Collective::kReduceScatter) {
      compile_sums(group.size());
    } else {
      compile_joining();
    }
  }

  /// Runs as one message.
  static BoxTable one_after_another(std::span<const Box> runs) {
    BoxTable table;
    std::int64_t first = 0;
    for (std::size_t run = 0; run < runs.size(); ++run) {
      const Shape elements = {runs[run].extent.count()};
      table.copy(static_cast<int>(run), {0, elements, Box::whole(elements)},
                 {first, elements, Box::whole(elements)});
      first += elements.count();
    }
    return table;
  }

  /// Of each run the summands of all members, so many at a time as one call takes; the sum so far is the
  /// first.
  void compile_sums(int members) {
    for (int run = 0; run < cut.runs; ++run) {
      const Shape elements = {run_of(target, cut.runs, run).extent.count()};
      const BoxTable::Place all = {0, elements, Box::whole(elements)};
      for (int member = 0; member < members;) {
        BoxTable& table = tables.emplace_back();
        int source = 0;
        if (member > 0) table.copy(source++, all, all);
        for (; source < BoxTable::kMostSources && member < members; ++member) table.copy(source++, all, all);
        table.clear(0, elements);
      }
    }
  }

  /// From the messages, this rank's own part the last of them, so many at a time as one call takes.
  void compile_joining() {
    const auto runs = static_cast<std::size_t>(cut.runs_per_message());
    for (std::size_t number = 0; number < receives.size(); ++number) {
      const std::size_t message = number / runs;
      const Box &box = receives[number], &whole = messages[message];
      if (message % BoxTable::kMostSources == 0 && number % runs == 0) tables.emplace_back();
      if (box.empty()) continue;
      tables.back().copy(static_cast<int>(message % BoxTable::kMostSources),
                         {first_in(whole, box), box.extent, Box::whole(box.extent)},
                         {0, target.extent, relative_to(box, target)});
    }
  }

  Collective kind;
  Box target;
  Cut cut;
  // Runs by distance of the peer after and before this rank, then this rank's own part.
  std::vector<Box> sends, receives;
  std::vector<Box> messages;      ///< that are received, in the same order
  std::vector<BoxTable> packing;  ///< of runs, by message, where there are several in one
  std::vector<BoxTable> tables;   ///< of sums those of each run in turn
};

SendStream::SendStream(const Rank& rank, const Layout& from, const Step& step, const Cut& cut)
    : rank_(rank),
      plan_(stream_plan<Plan>(rank, from, step, cut)),
      group_(rank.mesh.communicator(step.axes)) {}

bool SendStream::done() const {
  return put_ == plan_->sends.size();
}

const Box& SendStream::box() const {
  return plan_->sends[put_];
}

void SendStream::put(const Array& part) {
  const std::size_t number = put_++, runs = static_cast<std::size_t>(plan_->cut.runs_per_message());
  if (done()) {
    own_ = part;
    return;
  }
  waiting_.push_back(part.reshaped({part.count()}));
  if (waiting_.size() < runs) return;
  Array message = waiting_.front();
  if (runs > 1) {
    const BoxTable& packing = plan_->packing[arriving_.size()];
    message = Array(rank_.context, {packing.read()}, part.dtype(), Purpose::kWorkspace);
    copy_boxes(rank_.context, packing, waiting_, message);
  }
  waiting_.clear();
  const std::size_t distance = 1 + number / static_cast<std::size_t>(plan_->cut.runs);
  arriving_.push_back(swap(group_, message, member_after(group_, distance), member_before(group_, distance),
                           plan_->messages[arriving_.size()].extent.count()));
}

const Array& SendStream::message(std::size_t number) {
  if (number == arriving_.size()) return own_;
  arrived_.resize(arriving_.size());
  if (!arrived_[number].defined()) arrived_[number] = arriving_[number].wait();
  return arrived_[number];
}

Array SendStream::finish() {
  return plan_->kind == Collective::kReduceScatter ? sum() : joined();
}

Array SendStream::sum() {
  const auto runs = static_cast<std::size_t>(plan_->cut.runs),
             per_message = static_cast<std::size_t>(plan_->cut.runs_per_message()),
             members = static_cast<std::size_t>(group_.size()), tables = plan_->tables.size() / runs;
  // The sums of several runs stand where this rank's own part did, unless a later table has yet to read that.
  const Array result = runs > 1 && tables == 1 ? own_.reshaped(plan_->target.extent)
                                               : Array(rank_.context, plan_->target.extent, own_.dtype());
  for (std::size_t run = 0; run < runs; ++run) {
    std::vector<Array> summands(members);  // by member
    for (std::size_t distance = 1; distance <= members; ++distance) {
      const std::size_t number = (distance - 1) * runs + run;  // of a received run
      Array& summand = summands[static_cast<std::size_t>(member_before(group_, distance))];
      summand = distance == members
                    ? *consecutive(own_, plan_->target,
                                   run_of(plan_->target, plan_->cut.runs, static_cast<int>(run)))
                    : *consecutive(message(number / per_message), plan_->messages[number / per_message],
                                   plan_->receives[number]);
    }
    Array target =
        *consecutive(result, plan_->target, run_of(plan_->target, plan_->cut.runs, static_cast<int>(run)));
    std::span<const Array> rest = summands;
    for (std::size_t table = 0; table < tables; ++table) {
      std::vector<Array> sources;
      if (table > 0) sources.push_back(target);
      while (sources.size() < BoxTable::kMostSources && !rest.empty()) {
        sources.push_back(rest.front());
        rest = rest.subspan(1);
      }
      copy_boxes(rank_.context, plan_->tables[run * tables + table], sources, target);
    }
  }
  return result;
}

Array SendStream::joined() {
  Array result(rank_.context, plan_->target.extent, own_.dtype());
  std::vector<Array> sources;
  auto table = plan_->tables.begin();
  for (std::size_t number = 0; number < plan_->messages.size(); ++number) {
    sources.push_back(message(number));
    if (sources.size() < BoxTable::kMostSources && number + 1 < plan_->messages.size()) continue;
    copy_boxes(rank_.context, *table++, sources, result);
    sources.clear();
  }
  return result;
}

}  // namespace jigsaw::inline parallel
