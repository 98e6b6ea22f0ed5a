#include "estimate/model_work.h"

#include <algorithm>
#include <functional>

#include "base/text.h"
#include "task/opened_run.h"

namespace jigsaw::inline estimate {

std::string to_string(const MeshOptions& mesh) {
  return concat("data ", mesh.data, ", domain [", join(mesh.domain, ", "), "], tensor ", mesh.tensor);
}

bool same(const MeshOptions& a, const MeshOptions& b) {
  return a.data == b.data && a.domain == b.domain && a.tensor == b.tensor;
}

namespace {

void add_block(const Trace& trace, ModelWork& work) {
  const auto value = [&](int v) -> const Trace::Value& { return trace.values[static_cast<std::size_t>(v)]; };
  for (const Trace::Value& one : trace.values) {
    const int rank = one.shape.rank();
    if (one.role == Trace::Role::kParameter) work.parameters += static_cast<double>(one.shape.count());
    if (one.role == Trace::Role::kPinned && rank == static_cast<int>(work.units.size()) + 2)
      work.channels = std::max(work.channels, one.shape.back());
  }
  for (const Trace::Node& node : trace.nodes) {
    work.forward_flops += node.signature.forward_flops;
    double in = 0, parameter = 0, out = 0;
    for (const int v : node.inputs) {
      const auto count = static_cast<double>(value(v).shape.count());
      (value(v).role == Trace::Role::kParameter ? parameter : in) += count;
    }
    for (const int v : node.outputs) out += static_cast<double>(value(v).shape.count());
    if (parameter == 0) continue;
    const auto alike = std::find_if(work.products.begin(), work.products.end(), [&](const auto& known) {
      return known.parameter == parameter && known.values == std::min(in, out);
    });
    if (alike != work.products.end()) {
      ++alike->times;
    } else {
      work.products.push_back({parameter, std::min(in, out), 1});
    }
  }
}

/// All ways to write `ranks` as a product with at most `limits` along each axis.
void for_each_mesh(int ranks, const std::vector<std::int64_t>& limits,
                   const std::function<void(const std::vector<int>&)>& use) {
  std::vector<int> sizes;
  const std::function<void(int)> next = [&](int rest) {
    const std::size_t axis = sizes.size();
    if (axis == limits.size()) {
      if (rest == 1) use(sizes);
      return;
    }
    for (int size = 1; size <= rest && size <= limits[axis]; ++size) {
      if (rest % size != 0) continue;
      sizes.push_back(size);
      next(rest / size);
      sizes.pop_back();
    }
  };
  next(ranks);
}

/// The largest piece's share of an extent over an even one.
double unevenness(std::int64_t extent, int ranks) {
  return static_cast<double>(cut_range(extent, ranks, 0).size() * ranks) / static_cast<double>(extent);
}

class Bounds {
 public:
  Bounds(const ModelWork& work, const Configuration& configuration, const MachineModel& machine)
      : work_(work),
        train_(configuration.train),
        machine_(machine),
        types_(types_of(configuration.train.precision)) {}

  MeshBound of(const std::vector<int>& sizes) const {
    MeshShape shape;
    shape.axes = static_cast<int>(sizes.size());
    std::copy(sizes.begin(), sizes.end(), shape.size.begin());
    const Machine machine = machine_.on(shape, train_);
    MeshBound bound{{sizes.front(), {sizes.begin() + 1, sizes.end() - 1}, sizes.back()}, 0, 0};
    const double even =
        3 * work_.forward_flops / machine.flops_per_second / static_cast<double>(shape.ranks());
    const double by_samples = even * unevenness(work_.samples, sizes.front());
    double uneven = by_samples;
    for (std::size_t d = 0; d < work_.units.size(); ++d) uneven *= unevenness(work_.units[d], sizes[d + 1]);
    const double transfers = transfer_seconds(shape, machine);
    bound.at_least = std::max(by_samples, transfers);
    bound.guess = uneven + transfers;
    return bound;
  }

 private:
  struct Side {
    double ranks = 1, seconds_per_byte = 0;
  };
  static Side side(const MeshShape& shape, const Machine& machine, AxisSet axes) {
    Side result;
    for (int axis = 0; axis < shape.axes; ++axis) {
      if (contains(axes, axis)) result.ranks *= shape.size[static_cast<std::size_t>(axis)];
    }
    if (result.ranks > 1)
      result.seconds_per_byte = machine.along(shape, axes, {}).seconds_per_byte(shape, axes);
    return result;
  }

  double transfer_seconds(const MeshShape& shape, const Machine& machine) const {
    const auto bytes = static_cast<double>(size_of(types_.compute)),
               stored = static_cast<double>(size_of(types_.master));
    const double groups = shape.size[0];
    const AxisSet all = axis_bit(shape.axes) - 1, cutting = all & ~axis_bit(Mesh::kData);
    const auto passes = static_cast<double>(train_.accumulate * train_.rollout.most());
    // Of each way to part the axes: along `gathered` the parameter travels, twice to be used and once as a
    // gradient; along the others the values, forward and backward.
    std::vector<std::pair<Side, Side>> ways;
    for (AxisSet gathered = 0; gathered <= all; ++gathered) {
      if ((gathered & ~cutting) == 0)
        ways.emplace_back(side(shape, machine, gathered), side(shape, machine, cutting & ~gathered));
    }
    double seconds = 0;
    for (const ModelWork::Product& product : work_.products) {
      double least = -1;
      for (const auto& [gathered, moved] : ways) {
        const double of_parameter = (2 * bytes + stored) * product.parameter / moved.ranks *
                                    (1 - 1 / gathered.ranks) * gathered.seconds_per_byte;
        const double of_values = 2 * bytes * product.values / (groups * gathered.ranks) *
                                 (1 - 1 / moved.ranks) * moved.seconds_per_byte;
        const double both = of_parameter + of_values;
        if (least < 0 || both < least) least = both;
      }
      seconds += least * product.times * passes;
    }
    const Side data = side(shape, machine, axis_bit(Mesh::kData));
    const double held = work_.parameters * groups / static_cast<double>(shape.ranks());
    return seconds + 2 * (1 - 1 / groups) * held * stored * data.seconds_per_byte;
  }

  const ModelWork& work_;
  const TrainOptions& train_;
  const MachineModel& machine_;
  PrecisionTypes types_;
};

}  // namespace

ModelWork work_of(const Configuration& configuration, const DataDescription& data) {
  Configuration alone = configuration;
  alone.mesh = MeshOptions{1, std::vector<int>(static_cast<std::size_t>(data.space.rank()), 1), 1};
  Context context = Context::make_meta();
  const auto world = make_record_communicator(context, 0, 1);
  OpenedRun run(alone, described_objective(alone, data), *world);
  PlacedModel& placed = run.placed();
  ModelWork work;
  work.samples = placed.forecasts();
  const std::vector<std::int64_t> units = placed.model().input_units();
  for (int d = 0; d < data.space.rank(); ++d) {
    const std::int64_t unit = units.empty() ? 1 : units[static_cast<std::size_t>(d)];
    work.units.push_back((data.space[d] + unit - 1) / unit);
  }
  for (const BlockPlan& block : placed.block_plans()) add_block(block.entry.trace, work);
  work.forward_flops *=
      static_cast<double>(configuration.train.accumulate * configuration.train.rollout.most());
  return work;
}

std::vector<MeshBound> bound_meshes(const ModelWork& work, const Configuration& configuration,
                                    const MachineModel& machine, int ranks) {
  std::vector<std::int64_t> limits = {work.samples};
  limits.insert(limits.end(), work.units.begin(), work.units.end());
  limits.push_back(work.channels);
  const Bounds bounds(work, configuration, machine);
  std::vector<MeshBound> meshes;
  for_each_mesh(ranks, limits, [&](const std::vector<int>& sizes) { meshes.push_back(bounds.of(sizes)); });
  std::stable_sort(meshes.begin(), meshes.end(),
                   [](const MeshBound& a, const MeshBound& b) { return a.guess < b.guess; });
  return meshes;
}

}  // namespace jigsaw::inline estimate
