// Attention over a long sequence, 256 × 256 tokens of one head, forward and backward, float32: prints one
// JSON line with the seconds of a pass and the largest resident memory of a rank above what it had before,
// and fails above 2 GiB. The matrix of weights alone would take 16 GiB. Tokens are cut over the ranks, so
// that with more than one rank keys and values go round.
//
//   mpirun -n N long_attention [--size NUMBERS_OF_A_HEAD] [--tokens SIDE]
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "array/host_view.h"
#include "autograd/operations.h"
#include "comm/mpi/mpi_session.h"
#include "kernels/flush_to_zero.h"
#include "train/summary.h"

namespace {

using namespace jigsaw;

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Array noise(const Rank& rank, const Layout& layout, const char* name) {
  Array array(rank.context, rank.box(layout).extent, DType::kFloat32);
  const RandomStream random(1, RandomPurpose::kNoise, name);
  const HostView<float> elements(array);
  for (std::size_t i = 0; i < elements.size(); ++i) elements[i] = static_cast<float>(random.normal({}, i));
  return array;
}

/// One pass: this rank's seconds.
double pass(const Rank& rank, PlanBook& plans, std::int64_t side, std::int64_t size) {
  Layout input{{1, side, side, 3, size}, {}};
  input.placements[rank.mesh.domain(0)] = Placement::shard(1);
  const auto run = [&](Tape& tape, const std::vector<Variable>& x) { return attention(tape, x[0], {size}); };
  if (!plans.has("attention")) {
    Tape trace(rank, plans, Tape::Mode::kTrace);
    trace.block({"attention"}, {Variable::traced(input, -1)}, run);
  }
  const Variable x({noise(rank, input, "x"), input}, true);
  const double start = seconds_now();
  Tape tape(rank, plans, Tape::Mode::kRecord);
  const Variable y = tape.block({"attention"}, {x}, run);
  y.slot()->add(rank, {noise(rank, y.layout(), "dy"), y.layout()});
  tape.backward();
  return seconds_now() - start;
}

int run(MpiSession& session, std::int64_t side, std::int64_t size) {
  constexpr double kLimit = 2.0 * (1 << 30);
  const std::int64_t before = peak_resident_bytes();
  const char* const threads_text = std::getenv("OMP_NUM_THREADS");
  const int threads = threads_text == nullptr ? 1 : std::max(1, std::atoi(threads_text));
  Context context = Context::make_host(Backend::kCpu, threads);
  set_flush_to_zero(threads);
  const std::unique_ptr<Communicator> world = session.world(context);
  Mesh mesh(*world, 1, {world->size(), 1}, 1);
  const Rank rank{context, mesh};
  PlanBook plans;
  const double seconds = pass(rank, plans, side, size);
  const auto memory = static_cast<double>(peak_resident_bytes() - before);
  const double largest = world->all_reduce(std::vector{memory}, ReduceOp::kMax)[0];
  const double slowest = world->all_reduce(std::vector{seconds}, ReduceOp::kMax)[0];
  if (world->rank() == 0) {
    std::cout << nlohmann::ordered_json{{"benchmark", "long_attention"},
                                        {"tokens", side * side},
                                        {"head_size", size},
                                        {"ranks", world->size()},
                                        {"threads", threads},
                                        {"seconds", slowest},
                                        {"peak_bytes", largest},
                                        {"sent_bytes", world->traffic().total_bytes()}}
                     .dump()
              << std::endl;
  }
  return largest <= kLimit ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::int64_t side = 256, size = 64;
  for (int i = 1; i + 1 < argc; ++i) {
    if (std::strcmp(argv[i], "--size") == 0) size = std::stoll(argv[i + 1]);
    if (std::strcmp(argv[i], "--tokens") == 0) side = std::stoll(argv[i + 1]);
  }
  MpiSession session;
  return run(session, side, size);
}
