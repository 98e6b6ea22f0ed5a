// What the machine pretends to have.
#include <cstdlib>
#include <string>

#include "support/fake_cuda/devices.h"

namespace jigsaw::testing::fake_cuda {

void read_number(const std::string& key, int& into) {
  const char* const text = std::getenv("JIGSAW_FAKE_CUDA");
  const std::string given = text == nullptr ? "" : "," + std::string(text);
  const std::size_t at = given.find("," + key + "=");
  if (at != std::string::npos) into = std::atoi(given.c_str() + at + key.size() + 2);
}

namespace {

Machine described() {
  Machine machine;
  read_number("devices", machine.devices);
  read_number("driver", machine.driver);
  read_number("major", machine.major);
  read_number("vmm", machine.vmm);
  read_number("broken", machine.broken);
  read_number("unlike", machine.unlike);
  read_number("fail_after", machine.fail_after);
  read_number("fail_with", machine.fail_with);
  read_number("fail_device", machine.fail_device);
  read_number("cudnn", machine.cudnn);
  read_number("cudnn_cuda", machine.cudnn_cuda);
  read_number("cudnn_refuses", machine.cudnn_refuses);
  read_number("cudnn_lacks", machine.cudnn_lacks);
  read_number("cublas_refuses", machine.cublas_refuses);
  read_number("no_code", machine.no_code);
  int mebibytes = static_cast<int>(machine.memory >> 20);
  read_number("mebibytes", mebibytes);
  machine.memory = static_cast<std::size_t>(mebibytes) << 20;
  return machine;
}

}  // namespace

Machine& machine() {
  static Machine machine = described();
  return machine;
}

}  // namespace jigsaw::testing::fake_cuda
