// What sharded dispatch costs per operation in a step: a mixer of 24 blocks, forward and backward, on arrays
// without data and a communicator that moves nothing, so that only deciding, recording, allocating and the
// bookkeeping of redistributions remain. Prints one JSON line per mesh; the limit is 20 microseconds for an
// operation, forward and backward counting as two.
#include <algorithm>
#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "base/text.h"
#include "comm/record/record.h"
#include "layers/weathermixer.h"

namespace {

using namespace jigsaw;

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Operations of all blocks: one line each in the printed plans.
std::size_t operations_of(const PlanBook& plans, const MeshShape& mesh) {
  const std::string text = plans.to_string(mesh);
  std::size_t count = 0;
  for (std::size_t at = text.find("  rules: "); at != std::string::npos; at = text.find("  rules: ", at + 1))
    ++count;
  return count;
}

void run(const std::vector<int>& domain, int tensor) {
  Context context = Context::make_meta();
  const auto world = make_record_communicator(context, 0, domain[0] * domain[1] * tensor);
  Mesh mesh(*world, 1, domain, tensor);
  const Rank rank{context, mesh};
  Model model({{361, 720}, 69, 69});
  append_weathermixer(model, {.patch = {8, 8}, .embed_dim = 768, .depth = 24, .output_map = false});
  PlanBook plans;
  const double start = seconds_now();
  plan_and_materialise(model, rank, plans, 1, Zero::kNone, DType::kFloat32, DType::kFloat32, 1);
  const double planning = seconds_now() - start;
  const Layout in = model.input_layout(mesh, 1), out = model.output_layout(mesh, 1);
  const Array x(context, rank.box(in).extent, DType::kFloat32),
      dy(context, rank.box(out).extent, DType::kFloat32);
  const auto operations = static_cast<double>(operations_of(plans, mesh.shape()));
  std::vector<double> forward, backward;
  for (int step = 0; step < 20; ++step) {
    Tape tape(rank, plans, Tape::Mode::kRecord);
    const double begin = seconds_now();
    const Variable y = model.forward(tape, Variable({x, in}, false));
    const double middle = seconds_now();
    y.slot()->add(rank, {dy, out});
    tape.backward();
    forward.push_back((middle - begin) / operations * 1e6);
    backward.push_back((seconds_now() - middle) / operations * 1e6);
  }
  const auto median = [](std::vector<double>& times) {
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
  };
  std::cout << nlohmann::ordered_json{{"benchmark", "dispatch"},
                                      {"mesh", concat("[", join(domain, ", "), "] x ", tensor)},
                                      {"operations", operations},
                                      {"forward_microseconds_per_operation", median(forward)},
                                      {"backward_microseconds_per_operation", median(backward)},
                                      {"limit", 20},
                                      {"planning_seconds", planning}}
                   .dump()
            << std::endl;
}

}  // namespace

int main() {
  run({1, 1}, 1);
  run({2, 1}, 1);
  run({2, 1}, 2);
  run({2, 2}, 2);
}
