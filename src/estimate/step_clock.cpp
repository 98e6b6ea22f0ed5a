#include "estimate/step_clock.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace jigsaw::inline estimate {

void StepClock::begin(Mesh& mesh, const Machine& machine, Context& context) {
  *this = StepClock();
  context_ = &context;
  machine_ = machine;
  counted_ = context.tally();
  mesh_ = mesh.shape();
  const auto add = [&](const std::string& label, AxisSet axes) {
    groups_[label] = {axes, machine.along(mesh_, axes, {})};
  };
  for (AxisSet axes = 0; axes <= mesh.all_axes(); ++axes) {
    if (mesh.active(axes) == axes) add(mesh.communicator(axes).label(), axes);
  }
  add(mesh.world().label(), mesh.all_axes());
}

void StepClock::compute() {
  const Tally now = context_->tally();
  const double seconds = (now.flops - counted_.flops) / machine_.flops_per_second +
                         (now.bytes - counted_.bytes) / machine_.memory_bytes_per_second;
  counted_ = now;
  computed_ += seconds;
  now_ += seconds;
}

std::size_t StepClock::started(const Call& call, const std::string& label, const Sent& sent) {
  if (context_ == nullptr) return 0;
  compute();
  const auto group = groups_.find(label);
  require(group != groups_.end(), "a group of ranks has no axes of the mesh");
  AxisTraffic& traffic = traffic_[{label, call.kind}];
  ++traffic.calls;
  traffic.bytes += call.kind == Collective::kControl ? sent.bytes : call.sent_bytes;
  traffic.messages += sent.messages;
  const CostModel& costs = group->second.costs;
  TransferCost cost;
  cost.bytes[static_cast<std::size_t>(call.kind)] = sent.bytes;
  const bool at_once = !std::isinf(costs.two_levels_from);  // as NCCL sends all messages of a call
  cost.messages = at_once ? 1 : static_cast<int>(sent.messages);
  link_free_ = std::max(link_free_, now_) + costs.seconds(mesh_, group->second.axes, cost);
  arrivals_.push_back(link_free_);
  return arrivals_.size() - 1;
}

void StepClock::waited(std::size_t number) {
  if (context_ == nullptr || number >= arrivals_.size()) return;
  compute();
  const double arrival = arrivals_[number];
  stalled_ += std::max(0.0, arrival - now_);
  now_ = std::max(now_, arrival);
}

}  // namespace jigsaw::inline estimate
