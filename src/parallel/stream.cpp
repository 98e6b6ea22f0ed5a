#include "parallel/stream.h"

#include <array>

#include "base/error.h"
#include "kernels/pointwise.h"

namespace jigsaw {

namespace {

/// Boxes of `layout` for each member of the group along `axes`, in the group's order.
std::vector<Box> member_boxes(const Rank& rank, AxisSet axes, const Layout& layout) {
  std::vector<Box> boxes;
  for (int i = 0; i < rank.mesh.size(axes); ++i)
    boxes.push_back(layout.box(rank.mesh.shape(), rank.mesh.member(axes, i)));
  return boxes;
}

/// Sends one array and receives another, of which both ranks know the length.
Pending swap(Communicator& group, const Array& send, std::size_t to, std::size_t from, std::int64_t count) {
  const std::array sends = {Message{static_cast<int>(to), 0, send.count()}};
  const std::array receives = {Message{static_cast<int>(from), 0, count}};
  return group.start_exchange(send.reshaped({send.count()}), sends, receives, count);
}

}  // namespace

GatherStream::GatherStream(const Rank& rank, const ShardedTensor& x, const Step& step)
    : boxes_(member_boxes(rank, step.axes, x.layout)),
      own_(static_cast<std::size_t>(rank.mesh.communicator(step.axes).rank())),
      piece_(x.piece) {
  require(step.kind == Collective::kAllGather, "a gather is streamed");
  const std::size_t ranks = boxes_.size();
  for (std::size_t distance = 1; distance < ranks; ++distance) {
    const std::size_t from = member(distance);
    arriving_.push_back(swap(rank.mesh.communicator(step.axes), piece_, member(ranks - distance), from,
                             boxes_[from].extent.count()));
  }
}

GatherStream::Part GatherStream::next() {
  const std::size_t distance = taken_++;
  const Box& box = boxes_[member(distance)];
  if (distance == 0) return {box, piece_};
  return {box, arriving_[distance - 1].wait().reshaped(box.extent)};
}

ScatterStream::ScatterStream(const Rank& rank, const Step& step)
    : rank_(rank),
      group_(rank.mesh.communicator(step.axes)),
      boxes_(member_boxes(rank, step.axes, step.to)),
      own_(static_cast<std::size_t>(group_.rank())) {
  require(step.kind == Collective::kReduceScatter, "a reduce-scatter is streamed");
}

void ScatterStream::put(const Array& part) {
  const std::size_t to = member();
  ++put_;
  if (to == own_) {
    summand_ = part;
    return;
  }
  const std::size_t from = (own_ + boxes_.size() - put_) % boxes_.size();
  arriving_.push_back(swap(group_, part, to, from, boxes_[own_].extent.count()));
}

Array ScatterStream::finish() {
  std::vector<Array> summands(boxes_.size());
  summands[own_] = std::move(summand_);
  for (std::size_t i = 0; i < arriving_.size(); ++i) {
    summands[(own_ + boxes_.size() - 1 - i) % boxes_.size()] =
        arriving_[i].wait().reshaped(boxes_[own_].extent);
  }
  Array sum = add(rank_.context, summands[0], summands[1]);
  for (std::size_t i = 2; i < summands.size(); ++i) accumulate(rank_.context, sum, summands[i]);
  return sum;
}

}  // namespace jigsaw
