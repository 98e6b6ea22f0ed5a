#include "train/profile.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <set>

#include "array/device_times.h"
#include "autograd/operation_span.h"
#include "base/text.h"

namespace jigsaw::inline train {

namespace {

double seconds_of(const TraceEvent& event) {
  return 1e-9 * static_cast<double>(event.end - event.begin);
}

/// Walks the nested events of one thread in the order in which they begin.
class Walk {
 public:
  /// @param on_device  the operations are those of a device, which runs them: only they are counted, and
  /// other threads' are not.
  /// @param carried  numbers of the calls that it carries, for which no thread waits.
  Walk(Profile& profile, bool is_device, bool on_device, const std::set<std::int64_t>& carried)
      : profile_(profile), is_device_(is_device), on_device_(on_device), carried_(carried) {}

  void enter(const TraceEvent& event) {
    while (!open_.empty() && open_.back()->end <= event.begin) open_.pop_back();
    if (is_device_) {
      if (event.kind == TraceKind::kWait) return count_stall(event);
      if (open_.empty() && event.step > 0) count_operation(event);
    } else if (event.kind == TraceKind::kStep) {
      ++profile_.steps;
      profile_.seconds += seconds_of(event);
    } else if (inside(TraceKind::kStep) != nullptr) {
      count(event);
    }
    open_.push_back(&event);
  }

  void transfer(const TraceEvent& event) {
    TransferShare& share = profile_.transfers[{event.name, event.layer}];
    share.in_flight += seconds_of(event);
  }

 private:
  const TraceEvent* inside(TraceKind kind) const {
    const auto found = std::find_if(open_.rbegin(), open_.rend(),
                                    [&](const TraceEvent* each) { return each->kind == kind; });
    return found == open_.rend() ? nullptr : *found;
  }

  LayerShare& layer(const std::string& name) {
    for (auto& [known, share] : profile_.layers) {
      if (known == name) return share;
    }
    return profile_.layers.emplace_back(name, LayerShare{}).second;
  }

  /// The device stood still for a transfer.
  void count_stall(const TraceEvent& event) {
    if (event.step == 0) return;
    const double seconds = seconds_of(event);
    profile_.transfers[{event.name, event.layer}].exposed += seconds;
    profile_.waiting += seconds;
    if (!open_.empty() && open_.front()->step > 0) count_idle(seconds, *open_.front());
  }

  /// Seconds of a step in which the thread did not compute, inside an operation perhaps.
  void count_idle(double seconds) {
    const TraceEvent* const around = inside(TraceKind::kOperation);
    if (around != nullptr && !on_device_) count_idle(seconds, *around);
  }
  void count_idle(double seconds, const TraceEvent& operation) {
    profile_.computing -= seconds;
    profile_.operations[operation.name].seconds -= seconds;
    LayerShare& share = layer(operation.layer);
    (is_backward(operation) ? share.backward : share.forward) -= seconds;
    share.waiting += seconds;
  }

  static bool is_backward(const TraceEvent& event) { return event.name.ends_with(kBackwardSuffix); }

  void count(const TraceEvent& event) {
    const double seconds = seconds_of(event);
    switch (event.kind) {
      case TraceKind::kOperation:
        if (inside(TraceKind::kOperation) == nullptr && !on_device_) count_operation(event);
        break;
      case TraceKind::kStart:
      case TraceKind::kWait: {
        TransferShare& share = profile_.transfers[{event.name, event.layer}];
        share.bytes += event.bytes;
        share.calls += event.kind == TraceKind::kStart ? 1 : 0;
        if (carried_.contains(event.number)) break;
        share.exposed += seconds;
        profile_.waiting += seconds;
        count_idle(seconds);
        break;
      }
      case TraceKind::kControl:
        ++profile_.control.calls;
        profile_.control.exposed += seconds;
        profile_.waiting += seconds;
        count_idle(seconds);
        break;
      case TraceKind::kDataWait:
        profile_.data_wait += seconds;
        count_idle(seconds);
        break;
      default:
        break;
    }
  }

  void count_operation(const TraceEvent& event) {
    const double seconds = seconds_of(event);
    OperationShare& operation = profile_.operations[event.name];
    ++operation.calls;
    operation.seconds += seconds;
    operation.flops += event.flops;
    operation.moved += event.moved;
    profile_.computing += seconds;
    LayerShare& share = layer(event.layer);
    share.flops += event.flops;
    (is_backward(event) ? share.backward : share.forward) += seconds;
  }

  Profile& profile_;
  bool is_device_, on_device_;
  const std::set<std::int64_t>& carried_;
  std::vector<const TraceEvent*> open_;
};

std::string line(const char* format, auto... values) {
  char text[300];
  std::snprintf(text, sizeof text, format, values...);
  return std::string(text) + "\n";
}

/// "  87 %" of a peak, or nothing where that is not known.
std::string share(double rate, double peak) {
  char text[16] = "      -";
  if (peak > 0) std::snprintf(text, sizeof text, "%5.1f %%", 100 * rate / peak);
  return text;
}

std::string operations_text(const Profile& profile, const std::optional<Machine>& machine) {
  const auto steps = static_cast<double>(profile.steps);
  std::vector<std::pair<std::string, OperationShare>> operations(profile.operations.begin(),
                                                                 profile.operations.end());
  std::sort(operations.begin(), operations.end(),
            [](const auto& a, const auto& b) { return a.second.seconds > b.second.seconds; });
  std::string text = line("%-40s %8s %10s %8s %10s %9s %8s %9s", "operations of a step", "calls", "ms",
                          "share", "GFLOP/s", "of peak", "GB/s", "of peak");
  for (const auto& [name, each] : operations) {
    const double seconds = std::max(each.seconds, 1e-12);
    text += line("%-40s %8.1f %10.3f %6.1f %% %10.2f %9s %8.2f %9s", name.c_str(),
                 static_cast<double>(each.calls) / steps, 1e3 * each.seconds / steps,
                 100 * each.seconds / profile.seconds, 1e-9 * each.flops / seconds,
                 share(each.flops / seconds, machine ? machine->flops_per_second : 0).c_str(),
                 1e-9 * each.moved / seconds,
                 share(each.moved / seconds, machine ? machine->memory_bytes_per_second : 0).c_str());
  }
  return text;
}

std::string layers_text(const Profile& profile, const std::optional<Machine>& machine) {
  const auto steps = static_cast<double>(profile.steps);
  std::string text = line("%-40s %11s %11s %8s %10s %9s %10s", "layers", "forward ms", "backward ms", "share",
                          "GFLOP/s", "of peak", "waiting ms");
  for (const auto& [name, each] : profile.layers) {
    const double seconds = std::max(each.forward + each.backward, 1e-12);
    text += line("%-40s %11.3f %11.3f %6.1f %% %10.2f %9s %10.3f", name.c_str(), 1e3 * each.forward / steps,
                 1e3 * each.backward / steps, 100 * (each.forward + each.backward) / profile.seconds,
                 1e-9 * each.flops / seconds,
                 share(each.flops / seconds, machine ? machine->flops_per_second : 0).c_str(),
                 1e3 * each.waiting / steps);
  }
  return text;
}

std::string transfers_text(const Profile& profile) {
  const auto steps = static_cast<double>(profile.steps);
  std::string text = line("%-40s %8s %12s %12s %11s %8s", "communication", "calls", "kB sent", "in flight ms",
                          "exposed ms", "hidden");
  for (const auto& [where, each] : profile.transfers) {
    const double hidden = each.in_flight > 0 ? std::max(0.0, 1 - each.exposed / each.in_flight) : 0;
    text += line("%-40s %8.1f %12.1f %12.3f %11.3f %6.1f %%",
                 concat(where.first, " along ", where.second).c_str(),
                 static_cast<double>(each.calls) / steps, 1e-3 * each.bytes / steps,
                 1e3 * each.in_flight / steps, 1e3 * each.exposed / steps, 100 * hidden);
  }
  return text + line("%-40s %8.1f %12s %12s %11.3f", "control",
                     static_cast<double>(profile.control.calls) / steps, "", "",
                     1e3 * profile.control.exposed / steps);
}

}  // namespace

Profile profile_of(const std::vector<std::pair<std::string, std::vector<TraceEvent>>>& events) {
  Profile profile;
  const bool on_device = std::any_of(events.begin(), events.end(), [](const auto& lane) {
    return lane.first == kDeviceLane && !lane.second.empty();
  });
  std::set<std::int64_t> carried;
  for (const auto& [thread, own] : events) {
    for (const TraceEvent& event : own) {
      if (event.kind != TraceKind::kCarried) continue;
      carried.insert(event.number);
      if (event.step > 0) profile.transfers[{event.name, event.layer}].in_flight += seconds_of(event);
    }
  }
  for (const auto& [thread, own] : events) {
    const auto is_step = [](const TraceEvent& event) { return event.kind == TraceKind::kStep; };
    std::vector<const TraceEvent*> ordered, steps;
    for (const TraceEvent& event : own) {
      const bool nests = event.kind != TraceKind::kTransfer && event.kind != TraceKind::kCarried;
      if (nests) ordered.push_back(&event);
      if (is_step(event)) steps.push_back(&event);
    }
    // Of events that begin together the longer one is around the other.
    std::stable_sort(ordered.begin(), ordered.end(), [](const TraceEvent* a, const TraceEvent* b) {
      return std::pair(a->begin, -a->end) < std::pair(b->begin, -b->end);
    });
    Walk walk(profile, thread == kDeviceLane, on_device, carried);
    for (const TraceEvent* event : ordered) walk.enter(*event);
    for (const TraceEvent& event : own) {
      const auto holds = [&](const TraceEvent* each) {
        return each->begin <= event.begin && event.end <= each->end;
      };
      if (event.kind == TraceKind::kTransfer && std::any_of(steps.begin(), steps.end(), holds))
        walk.transfer(event);
    }
  }
  return profile;
}

ProfileSpread over_ranks(const Profile& profile, Communicator& world) {
  const double steps = static_cast<double>(std::max<std::int64_t>(profile.steps, 1));
  const std::array own = {profile.seconds / steps, profile.computing / steps, profile.waiting / steps,
                          profile.data_wait / steps, profile.rest() / steps};
  constexpr std::array kNames = {"step", "operations", "other ranks", "data", "rest"};
  const std::vector<double> least = world.all_reduce(own, ReduceOp::kMin),
                            sum = world.all_reduce(own, ReduceOp::kSum),
                            most = world.all_reduce(own, ReduceOp::kMax);
  ProfileSpread spread;
  spread.ranks = world.size();
  for (std::size_t i = 0; i < own.size(); ++i)
    spread.parts.push_back({kNames[i], least[i], sum[i] / world.size(), most[i]});
  return spread;
}

std::string to_text(const Profile& profile, const ProfileSpread& spread,
                    const std::optional<Machine>& machine) {
  if (profile.steps == 0) return "profile: none of the chosen steps was made\n";
  const auto steps = static_cast<double>(profile.steps);
  const double step = profile.seconds / steps;
  std::string text =
      concat("profile of ", counted(profile.steps, "step"), " on rank 0 of ", spread.ranks, "\n");
  text += line("%-14s %10s %8s   %10s %10s %10s", "a step", "ms", "share", "least", "mean", "most of ranks");
  const std::array own = {step, profile.computing / steps, profile.waiting / steps, profile.data_wait / steps,
                          profile.rest() / steps};
  for (std::size_t i = 0; i < own.size(); ++i) {
    const ProfileSpread::Part& part = spread.parts[i];
    text += line("%-14s %10.3f %6.1f %%   %10.3f %10.3f %10.3f", part.name, 1e3 * own[i], 100 * own[i] / step,
                 1e3 * part.least, 1e3 * part.mean, 1e3 * part.most);
  }
  if (machine)
    text += line("peaks, as measured: %.1f GFLOP/s of float32 products, %.1f GB/s of memory",
                 1e-9 * machine->flops_per_second, 1e-9 * machine->memory_bytes_per_second);
  text += operations_text(profile, machine) + layers_text(profile, machine);
  if (spread.ranks > 1) text += transfers_text(profile);
  return text;
}

}  // namespace jigsaw::inline train
