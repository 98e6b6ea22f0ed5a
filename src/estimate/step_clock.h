#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "comm/record/record.h"
#include "parallel/machine.h"

namespace jigsaw::inline estimate {

/// What went along one set of mesh axes in one kind of collective.
struct AxisTraffic {
  std::int64_t calls = 0;
  double bytes = 0;  ///< by closed form, see Traffic
  std::int64_t messages = 0;
};

/// The time of one rank that records, counted rather than measured, as if all others did as it does: kernels
/// last what the context's Tally says of their FLOPs and bytes, a call's transfer begins when it is started
/// and the rank's link is free, and lasts its messages' latency and its bytes; waiting goes on until it has
/// arrived. So what is computed between start and wait hides what travels. The same rules as VirtualClock's,
/// for one rank.
class StepClock : public CallObserver {
 public:
  /// Counts what happens from now on.
  void begin(Mesh& mesh, const Machine& machine, Context& context);
  /// What was computed after the last call is counted, too.
  void end() { compute(); }

  double seconds() const { return now_; }
  double computed() const { return computed_; }
  double stalled() const { return stalled_; }  ///< waiting for transfers
  /// By the names of the axes ("domain0×tensor"), then by kind.
  const std::map<std::pair<std::string, Collective>, AxisTraffic>& traffic() const { return traffic_; }

  std::size_t started(const Call& call, const std::string& label, const Sent& sent) override;
  void waited(std::size_t number) override;

 private:
  void compute();

  Context* context_ = nullptr;  ///< null until begin()
  Machine machine_;
  struct Group {
    AxisSet axes = 0;
    CostModel costs;
  };
  MeshShape mesh_;
  std::map<std::string, Group> groups_;  ///< by label
  Tally counted_;
  double now_ = 0, computed_ = 0, stalled_ = 0, link_free_ = 0;
  std::vector<double> arrivals_;
  std::map<std::pair<std::string, Collective>, AxisTraffic> traffic_;
};

}  // namespace jigsaw::inline estimate
