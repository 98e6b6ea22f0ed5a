#include "parallel/stream.h"

#include <array>
#include <utility>

#include "base/error.h"
#include "kernels/copy.h"
#include "kernels/pointwise.h"

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

ReceiveStream::ReceiveStream(const Rank& rank, const ShardedTensor& x, const Step& step, const Cut& cut)
    : cut_(cut) {
  require(step.kind == Collective::kAllGather || step.kind == Collective::kAllToAll,
          "gathers and all-to-alls are received in parts");
  Communicator& group = rank.mesh.communicator(step.axes);
  const Box held = rank.box(x.layout);
  const auto part_for = [&](const Box& box) {
    return box == held ? x.piece
                       : extract_box(rank.context, x.piece, relative_to(box, held), Purpose::kWorkspace);
  };
  boxes_.push_back(travels(rank, x.layout, step, group.rank(), group.rank()));
  own_ = part_for(boxes_[0]);
  for (std::size_t distance = 1; distance < static_cast<std::size_t>(group.size()); ++distance) {
    const int to = member_before(group, distance), from = member_after(group, distance);
    const Box sent = travels(rank, x.layout, step, group.rank(), to),
              received = travels(rank, x.layout, step, from, group.rank());
    const Array part = part_for(sent);
    for (int number = 0; number < cut.runs; ++number) boxes_.push_back(run_of(received, cut.runs, number));
    for (int number = 0; number < cut.messages; ++number) {
      messages_.push_back(message_of(received, cut, number));
      arriving_.push_back(swap(group, *consecutive(part, sent, message_of(sent, cut, number)), to, from,
                               messages_.back().extent.count()));
    }
  }
}

ReceiveStream::Part ReceiveStream::next() {
  const std::size_t number = taken_++;
  const Box& box = boxes_[number];
  if (number == 0) return {box, std::move(own_)};
  const auto runs = static_cast<std::size_t>(cut_.runs_per_message());
  const std::size_t message = (number - 1) / runs;
  if ((number - 1) % runs == 0) arrived_ = arriving_[message].wait();
  return {box, consecutive(arrived_, messages_[message], box)->reshaped(box.extent)};
}

SendStream::SendStream(const Rank& rank, const Layout& from, const Step& step, const Cut& cut)
    : rank_(rank),
      kind_(step.kind),
      target_(rank.box(step.to)),
      cut_(cut),
      group_(rank.mesh.communicator(step.axes)) {
  require(kind_ == Collective::kReduceScatter || kind_ == Collective::kAllToAll,
          "reduce-scatters and all-to-alls are sent in parts");
  for (std::size_t distance = 1; distance <= static_cast<std::size_t>(group_.size()); ++distance) {
    const bool own = distance == static_cast<std::size_t>(group_.size());
    const Box sent = travels(rank, from, step, group_.rank(), member_after(group_, distance)),
              received = travels(rank, from, step, member_before(group_, distance), group_.rank());
    for (int number = 0; number < (own ? 1 : cut.runs); ++number) {
      sends_.push_back(run_of(sent, own ? 1 : cut.runs, number));
      receives_.push_back(run_of(received, own ? 1 : cut.runs, number));
    }
    for (int number = 0; !own && number < cut.messages; ++number)
      messages_.push_back(message_of(received, cut, number));
  }
}

void SendStream::put(const Array& part) {
  const std::size_t number = put_++, runs = static_cast<std::size_t>(cut_.runs_per_message());
  if (done()) {
    own_ = part;
    return;
  }
  waiting_.push_back(part.reshaped({part.count()}));
  if (waiting_.size() < runs) return;
  Array message = waiting_.front();
  if (runs > 1) {
    std::int64_t count = 0, first = 0;
    for (const Array& run : waiting_) count += run.count();
    message = Array(rank_.context, {count}, part.dtype(), Purpose::kWorkspace);
    for (const Array& run : waiting_) {
      if (run.count() == 0) continue;
      Array into = message.slice(first, run.shape());
      copy_box(rank_.context, run, Box::whole(run.shape()), into, Box::whole(run.shape()));
      first += run.count();
    }
  }
  waiting_.clear();
  const std::size_t distance = 1 + number / static_cast<std::size_t>(cut_.runs);
  arriving_.push_back(swap(group_, message, member_after(group_, distance), member_before(group_, distance),
                           messages_[arriving_.size()].extent.count()));
}

Array SendStream::received(std::size_t number) {
  const std::size_t message = number / static_cast<std::size_t>(cut_.runs_per_message());
  if (arrived_.empty()) arrived_.resize(arriving_.size());
  if (!arrived_[message].defined()) arrived_[message] = arriving_[message].wait();
  return *consecutive(arrived_[message], messages_[message], receives_[number]);
}

Array SendStream::finish() {
  return kind_ == Collective::kReduceScatter ? sum() : joined();
}

Array SendStream::sum() {
  const auto runs = static_cast<std::size_t>(cut_.runs), members = static_cast<std::size_t>(group_.size());
  const Array own = std::exchange(own_, {});  // where the sums of several runs then stand
  for (std::size_t number = 0; number < runs; ++number) {
    const Box run = run_of(target_, cut_.runs, static_cast<int>(number));
    std::vector<Array> summands(members);
    for (std::size_t distance = 0; distance < members; ++distance) {
      Array& summand = summands[static_cast<std::size_t>(member_before(group_, distance))];
      summand = distance == 0 ? *consecutive(own, target_, run) : received((distance - 1) * runs + number);
      summand = summand.reshaped(run.extent);
    }
    Array sum = add(rank_.context, summands[0], summands[1]);
    for (std::size_t i = 2; i < members; ++i) accumulate(rank_.context, sum, summands[i]);
    if (runs == 1) return sum;
    Array target = *consecutive(own, target_, run);
    if (!run.empty()) copy_box(rank_.context, sum, Box::whole(run.extent), target, Box::whole(run.extent));
  }
  return own.reshaped(target_.extent);
}

Array SendStream::joined() {
  Array result(rank_.context, target_.extent, own_.dtype());
  for (std::size_t number = 0; number < receives_.size(); ++number) {
    const Box& box = receives_[number];
    const Array part = number + 1 == receives_.size() ? std::move(own_) : received(number);
    if (box.empty()) continue;
    copy_box(rank_.context, part.reshaped(box.extent), Box::whole(box.extent), result,
             relative_to(box, target_));
  }
  return result;
}

}  // namespace jigsaw::inline parallel
