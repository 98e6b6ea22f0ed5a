#include <numeric>
// What a save costs: the time for which it holds up training, over the time of copying the same state in
// memory; and how fast it writes, beside `dd conv=fsync` to the same folder. Both sides of each ratio are of
// one run, in turns. Prints one JSON line.
//
//   checkpoint_save [--mebibytes N] [--saves N] [--folder DIR]
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "array/host_view.h"
#include "base/text.h"
#include "checkpoint/writer.h"
#include "comm/self/self.h"

namespace {

using namespace jigsaw;

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

/// Tensors of 16 MiB each, all different.
std::vector<CheckpointPiece> make_state(Context& context, int mebibytes) {
  std::vector<CheckpointPiece> pieces;
  const Shape shape{1 << 10, 4 << 10};
  for (int i = 0; i * 16 < mebibytes; ++i) {
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

void run(int mebibytes, int saves, const std::string& folder) {
  Context context = Context::make_host(Backend::kCpu, 1);
  const auto self = make_self_communicator(context);
  const auto pieces = make_state(context, mebibytes);
  std::vector<Array> buffers;
  for (const CheckpointPiece& piece : pieces)
    buffers.push_back(Array::zeros(context, piece.array.shape(), DType::kFloat32));
  CheckpointWriter writer(folder + "/checkpoints", {}, *self);
  std::vector<double> stalls, copies, wholes, removals, dds;
  for (int i = 0; i <= saves; ++i) {
    double whole = 0;
    const double copy = seconds_of_copy(pieces, buffers);
    const double stall = seconds_of_stall(writer, i + 1, pieces, whole);
    const double removal = writer.settle();  // of the checkpoint before, beside the training
    const double dd = seconds_of_dd(folder, mebibytes);
    if (i == 0) continue;  // fresh pages
    stalls.push_back(stall);
    copies.push_back(copy);
    wholes.push_back(whole);
    removals.push_back(removal);
    dds.push_back(dd);
  }
  const double bytes = static_cast<double>(pieces.size()) * (16 << 20);
  std::cout << nlohmann::ordered_json{{"benchmark", "checkpoint_save"},
                                      {"state_bytes", bytes},
                                      {"stall_seconds", median(stalls)},
                                      {"copy_seconds", median(copies)},
                                      {"stall_over_copy", median(stalls) / median(copies)},
                                      {"write_bytes_per_second", bytes / median(wholes)},
                                      {"removal_seconds", median(removals)},
                                      {"dd_bytes_per_second", bytes / median(dds)},
                                      {"write_over_dd", median(dds) / median(wholes)}}
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
  std::filesystem::create_directories(work);
  try {
    run(mebibytes, saves, work);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    std::filesystem::remove_all(work);
    return 1;
  }
  std::filesystem::remove_all(work);
}
