// What a save costs: the time for which it holds up training, over the time of copying the same state in
// memory; how fast it writes, beside `dd conv=fsync` to the same folder; and, apart, how long the removal of
// the checkpoint before takes. Both sides of each ratio are of one run, in turns. Each rank saves its part of
// the state. Prints one JSON line: medians over the saves of the slowest rank.
//
//   [mpirun -n RANKS] checkpoint_save [--mebibytes N] [--saves N] [--folder DIR]
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <thread>

#include "array/host_view.h"
#include "base/text.h"
#include "checkpoint/writer.h"
#include "comm/mpi/mpi_session.h"

namespace {

using namespace jigsaw;

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

/// This rank's tensors of 16 MiB each, all different.
std::vector<CheckpointPiece> make_state(Context& context, const Communicator& world, int mebibytes) {
  std::vector<CheckpointPiece> pieces;
  const Shape shape{1 << 10, 4 << 10};
  for (int i = world.rank(); i * 16 < mebibytes; i += world.size()) {
    const Array array(context, shape, DType::kFloat32, Purpose::kParameters);
    const HostView<float> elements(array);
    std::iota(elements.begin(), elements.end(), static_cast<float>(i));
    pieces.push_back({concat("parameters/block.", i, ".weight"), shape, Box::whole(shape), array});
  }
  return pieces;
}

double seconds_of_copy(const std::vector<CheckpointPiece>& pieces, const std::vector<Array>& buffers) {
  const double before = seconds_now();
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    std::ranges::copy(HostView<const std::byte>(pieces[i].array), HostView<std::byte>(buffers[i]).begin());
  }
  return seconds_now() - before;
}

/// Steps of 5 ms that ask each time how the save is; the seconds in which they were held up.
double seconds_of_stall(CheckpointWriter& writer, std::int64_t step,
                        const std::vector<CheckpointPiece>& pieces, double& whole) {
  double stall = -seconds_now();
  std::optional<SaveOutcome> outcome = writer.start({step, {}, {}, {}}, pieces);
  stall += seconds_now();
  while (!outcome) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    stall -= seconds_now();
    outcome = writer.poll();
    stall += seconds_now();
  }
  if (!outcome->saved()) throw CheckpointError(outcome->failure);
  whole = outcome->seconds;
  return stall;
}

double seconds_of_dd(const std::string& folder, int mebibytes) {
  const std::string file = folder + "/dd";
  const double before = seconds_now();
  const int status = std::system(
      concat("dd if=/dev/zero of=", file, " bs=1M count=", mebibytes, " conv=fsync 2> /dev/null").c_str());
  const double seconds = seconds_now() - before;
  std::filesystem::remove(file);
  require(status == 0, "dd failed");
  return seconds;
}

/// The median of the slowest rank's seconds in each save.
double median_of_slowest(Communicator& world, const std::vector<double>& seconds) {
  return median(world.all_reduce(seconds, ReduceOp::kMax));
}

void run(MpiSession& session, int mebibytes, int saves, const std::string& folder) {
  Context context = Context::make_host(Backend::kCpu, 1);
  const auto world = session.world(context);
  const auto pieces = make_state(context, *world, mebibytes);
  std::vector<Array> buffers;
  for (const CheckpointPiece& piece : pieces)
    buffers.push_back(Array::zeros(context, piece.array.shape(), DType::kFloat32));
  CheckpointWriter writer(folder + "/checkpoints", {}, *world);
  std::vector<double> stalls, copies, wholes, removals, dds;
  for (int i = 0; i <= saves; ++i) {
    double whole = 0;
    const double copy = seconds_of_copy(pieces, buffers);
    const double stall = seconds_of_stall(writer, i + 1, pieces, whole);
    const double removal = writer.settle();                   // of the checkpoint before, beside the training
    world->all_reduce(std::vector{removal}, ReduceOp::kMax);  // nobody copies beside dd
    const double dd = world->rank() == 0 ? seconds_of_dd(folder, mebibytes) : 0.0;
    world->all_reduce(std::vector{dd}, ReduceOp::kMax);
    if (i == 0) continue;  // fresh pages
    stalls.push_back(stall);
    copies.push_back(copy);
    wholes.push_back(whole);
    removals.push_back(removal);
    dds.push_back(dd);
  }
  const double tensors =
      world->all_reduce(std::vector{static_cast<double>(pieces.size())}, ReduceOp::kSum)[0];
  const double bytes = tensors * (16 << 20), stall = median_of_slowest(*world, stalls),
               copy = median_of_slowest(*world, copies), whole = median_of_slowest(*world, wholes),
               removal = median_of_slowest(*world, removals), dd = median_of_slowest(*world, dds);
  if (world->rank() != 0) return;
  std::cout
      << nlohmann::ordered_json{{"benchmark", "checkpoint_save"}, {"ranks", world->size()},
                                {"state_bytes", bytes},           {"stall_seconds", stall},
                                {"copy_seconds", copy},           {"stall_over_copy", stall / copy},
                                {"save_seconds", whole},          {"write_bytes_per_second", bytes / whole},
                                {"removal_seconds", removal},     {"dd_bytes_per_second", bytes / dd},
                                {"write_over_dd", dd / whole}}
             .dump()
      << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  int mebibytes = 512, saves = 5;
  std::string folder = std::filesystem::temp_directory_path().string();
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string option = argv[i];
    if (option == "--mebibytes") mebibytes = std::atoi(argv[i + 1]);
    if (option == "--saves") saves = std::atoi(argv[i + 1]);
    if (option == "--folder") folder = argv[i + 1];
  }
  const std::string work = folder + "/checkpoint_save_benchmark";
  MpiSession session;
  int status = 0;
  try {
    std::filesystem::create_directories(work);
    run(session, mebibytes, saves, work);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    status = 1;
  }
  if (session.rank() == 0) std::filesystem::remove_all(work);
  return status;
}
