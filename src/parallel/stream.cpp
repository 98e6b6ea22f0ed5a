#include "parallel/stream.h"

#include <array>

#include "base/error.h"
#include "kernels/copy.h"
#include "kernels/pointwise.h"

namespace jigsaw {

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

}  // namespace

ReceiveStream::ReceiveStream(const Rank& rank, const ShardedTensor& x, const Step& step) {
  require(step.kind == Collective::kAllGather || step.kind == Collective::kAllToAll,
          "gathers and all-to-alls are received in parts");
  Communicator& group = rank.mesh.communicator(step.axes);
  const Box held = rank.box(x.layout);
  const auto part_for = [&](int receiver) {
    const Box box = travels(rank, x.layout, step, group.rank(), receiver);
    return box == held ? x.piece
                       : extract_box(rank.context, x.piece, relative_to(box, held), Purpose::kWorkspace);
  };
  for (std::size_t distance = 0; distance < static_cast<std::size_t>(group.size()); ++distance) {
    boxes_.push_back(travels(rank, x.layout, step, member_after(group, distance), group.rank()));
    if (distance == 0) {
      own_ = part_for(group.rank());
      continue;
    }
    const int to = member_before(group, distance), from = member_after(group, distance);
    arriving_.push_back(swap(group, part_for(to), to, from, boxes_.back().extent.count()));
  }
}

ReceiveStream::Part ReceiveStream::next() {
  const std::size_t distance = taken_++;
  const Box& box = boxes_[distance];
  if (distance == 0) return {box, std::move(own_)};
  return {box, arriving_[distance - 1].wait().reshaped(box.extent)};
}

SendStream::SendStream(const Rank& rank, const Layout& from, const Step& step)
    : rank_(rank), kind_(step.kind), target_(rank.box(step.to)), group_(rank.mesh.communicator(step.axes)) {
  require(kind_ == Collective::kReduceScatter || kind_ == Collective::kAllToAll,
          "reduce-scatters and all-to-alls are sent in parts");
  for (std::size_t distance = 0; distance < static_cast<std::size_t>(group_.size()); ++distance) {
    sends_.push_back(travels(rank, from, step, group_.rank(), member_after(group_, distance)));
    receives_.push_back(travels(rank, from, step, member_before(group_, distance), group_.rank()));
  }
}

void SendStream::put(const Array& part) {
  const std::size_t distance = ++put_ % sends_.size();
  if (distance == 0) {
    own_ = part;
    return;
  }
  arriving_.push_back(swap(group_, part, member_after(group_, distance), member_before(group_, distance),
                           receives_[distance].extent.count()));
}

Array SendStream::finish() {
  return kind_ == Collective::kReduceScatter ? sum() : joined();
}

Array SendStream::sum() {
  std::vector<Array> summands(sends_.size());
  for (std::size_t distance = 0; distance < sends_.size(); ++distance) {
    const auto sender = static_cast<std::size_t>(member_before(group_, distance));
    summands[sender] = distance == 0 ? std::move(own_) : arriving_[distance - 1].wait();
    summands[sender] = summands[sender].reshaped(target_.extent);
  }
  Array sum = add(rank_.context, summands[0], summands[1]);
  for (std::size_t i = 2; i < summands.size(); ++i) accumulate(rank_.context, sum, summands[i]);
  return sum;
}

Array SendStream::joined() {
  Array result(rank_.context, target_.extent, own_.dtype());
  for (std::size_t distance = 0; distance < sends_.size(); ++distance) {
    const Box& box = receives_[distance];
    const Array part = distance == 0 ? std::move(own_) : arriving_[distance - 1].wait();
    if (box.empty()) continue;
    copy_box(rank_.context, part.reshaped(box.extent), Box::whole(box.extent), result,
             relative_to(box, target_));
  }
  return result;
}

}  // namespace jigsaw
