#include "estimate/explanation.h"

#include <algorithm>
#include <cstdio>

#include "base/text.h"
#include "parallel/plan_space.h"
#include "task/device.h"

namespace jigsaw::inline estimate {

namespace {

/// Blocks that are alike, and what they take together in a step.
struct BlockGroup {
  std::string name;
  int count = 0;
  const PlanBook::Entry* entry = nullptr;
  PlanParts parts;
};

MeshShape shape_of(const MeshOptions& mesh) {
  MeshShape shape;
  std::vector<int> sizes = {mesh.data};
  sizes.insert(sizes.end(), mesh.domain.begin(), mesh.domain.end());
  sizes.push_back(mesh.tensor);
  shape.axes = static_cast<int>(sizes.size());
  std::copy(sizes.begin(), sizes.end(), shape.size.begin());
  return shape;
}

/// The machine's constants within a node, and beyond it those of the slowest of the mesh's links.
CostModel constants_of(const MeshQuestion& question, const MeshShape& shape) {
  const MachineModel& machine = question.machine;
  const TrainOptions& train = question.configuration.train;
  CostModel model = machine.on(shape, train).along(shape, axis_bit(shape.axes) - 1, {});
  if (shape.ranks() == 1) model.network = CostModel().network;
  model.element_bytes = static_cast<double>(size_of(types_of(train.precision).compute));
  return model;
}

std::vector<BlockGroup> groups_of(const MeshQuestion& question, const PlannedMesh& planned) {
  const MeshShape shape = shape_of(planned.mesh);
  const CostModel model = constants_of(question, shape);
  const auto passes = static_cast<double>(planned.accumulate * question.configuration.train.rollout.most());
  std::vector<BlockGroup> groups;
  for (const auto& [path, entry] : *planned.plans) {
    const auto alike = std::find_if(groups.begin(), groups.end(), [&, &trace = entry.trace](const auto& g) {
      return g.entry->trace == trace;
    });
    BlockGroup& group = alike != groups.end() ? *alike : groups.emplace_back(BlockGroup{path, 0, &entry, {}});
    if (group.count++ == 0) group.parts = PlanSpace(entry.trace, shape, model).parts(entry.plan);
  }
  for (BlockGroup& group : groups) {
    const double times = passes * group.count;
    group.parts.compute *= times;
    group.parts.move *= times;
    group.parts.own *= times;
    group.parts.parameters *= times;
  }
  return groups;
}

std::string line(const std::string& name, const PlanParts& a, const PlanParts& b) {
  char text[200];
  const auto ms = [](double seconds) { return 1e3 * seconds; };
  std::snprintf(text, sizeof text, "  %-34.34s %9.2f %9.2f  %9.2f %9.2f  %9.2f %9.2f  %9.2f %9.2f\n",
                name.c_str(), ms(a.compute), ms(b.compute), ms(a.move), ms(b.move), ms(a.own), ms(b.own),
                ms(a.parameters), ms(b.parameters));
  return text;
}

/// Operations of a block that run by other rules on the two meshes.
std::string other_rules(const BlockGroup& a, const BlockGroup& b) {
  std::string text;
  const std::size_t operations = std::min(a.entry->plan.decisions.size(), b.entry->plan.decisions.size());
  for (std::size_t n = 0; n < operations; ++n) {
    const std::string &rules = a.entry->plan.decisions[n].rules, &others = b.entry->plan.decisions[n].rules;
    if (rules == others) continue;
    text += concat("    ", a.entry->trace.nodes[n].signature.name, ": cut along ",
                   rules.empty() ? "-" : rules, ", there along ", others.empty() ? "-" : others, "\n");
  }
  return text;
}

}  // namespace

std::string explain(const MeshQuestion& question, const PlannedMesh& better, const PlannedMesh& worse) {
  const std::vector<BlockGroup> a = groups_of(question, better), b = groups_of(question, worse);
  char head[200];
  std::snprintf(head, sizeof head, "  %-34s %19s  %19s  %19s  %19s\n", "ms of a step, here and there",
                "kernels", "values move", "own transfers", "parameters");
  std::string text = concat(to_string(better.mesh), "  takes ", 1e3 * better.worst.seconds, " ms;  ",
                            to_string(worse.mesh), "  takes ", 1e3 * worse.worst.seconds, " ms\n", head);
  PlanParts all_a, all_b;
  std::string largest;
  double difference = 0;
  for (const BlockGroup& group : a) {
    const auto other =
        std::find_if(b.begin(), b.end(), [&](const BlockGroup& g) { return g.name == group.name; });
    if (other == b.end()) continue;
    text += line(group.count > 1 ? concat(group.name, " (", group.count, " alike)") : group.name, group.parts,
                 other->parts);
    all_a += group.parts;
    all_b += other->parts;
    const double here = other->parts.seconds() - group.parts.seconds();
    if (here <= difference) continue;
    difference = here;
    largest =
        concat("  most is gained in ", group.name, ", ", 1e3 * here, " ms\n", other_rules(group, *other));
  }
  text += line("all blocks, nothing hidden", all_a, all_b);
  text += largest;
  char end[240];
  std::snprintf(end, sizeof end,
                "  not hidden by kernels: %.2f and %.2f ms; sent by a rank: %.3f and %.3f GB\n",
                1e3 * better.worst.stalled_seconds, 1e3 * worse.worst.stalled_seconds,
                1e-9 * better.worst.total_sent_bytes(), 1e-9 * worse.worst.total_sent_bytes());
  return text + end;
}

}  // namespace jigsaw::inline estimate
