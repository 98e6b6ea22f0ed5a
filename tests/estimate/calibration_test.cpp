// What is measured of a GPU: on the fake CUDA runtime, which counts products by how they take their factors.
#include "estimate/calibration.h"

#include <gtest/gtest.h>

#include "comm/self/self.h"
#include "support/fake_cuda/fake_cuda.h"
#include "support/temporary_folder.h"
#include "support/test_context.h"

namespace jigsaw {
namespace calibration_test {

namespace fake_cuda = testing::fake_cuda;

/// Of a run with train.tf32, whose own products are measured before the two.
TEST(Calibration, OfAGpuMeasuresFloat32AndTensorFloat32Apart) {
  const testing::TemporaryFolder folder;
  const std::string file = folder.path() + "/measured.json";
  Context context = testing::cuda_test_context();
  context.set_tf32(true);
  const auto world = make_self_communicator(context);
  const std::int64_t rounded_before = fake_cuda::rounded_products(), full_before = fake_cuda::full_products();
  const MachineModel measured = calibrate_to(file, *world, {});
  const std::int64_t rounded = fake_cuda::rounded_products() - rounded_before,
                     full = fake_cuda::full_products() - full_before;
  EXPECT_GT(full, 0);
  EXPECT_GT(rounded, full);
  EXPECT_TRUE(context.tf32());
  EXPECT_EQ(measured.device, Device::kCuda);
  for (const double rate :
       {measured.flops_per_second, measured.flops_per_second_tf32, measured.flops_per_second_bf16,
        measured.memory_bytes_per_second, measured.memory_bytes, measured.links.at(0).bytes_per_second})
    EXPECT_GT(rate, 0);
  EXPECT_NE(measured.flops_per_second_tf32, measured.flops_per_second);
  // One rank sends to nobody: links are those of the GPU without a measurement.
  const MachineModel usual = machine_model(default_machine(Device::kCuda));
  EXPECT_EQ(measured.links.at(0).bytes_per_second, usual.links.at(0).bytes_per_second);
  EXPECT_EQ(measured.links.at(0).latency_seconds, usual.links.at(0).latency_seconds);
  // Which runs on processors alone; and no files were named.
  EXPECT_EQ(measured.flops_per_second_fp64, 0);
  EXPECT_EQ(measured.read_bytes_per_second, 0);
  // Plans take each for what it is.
  const MachineModel kept = machine_model(file);
  const MeshShape mesh{1, {1}};
  TrainOptions train;
  EXPECT_EQ(kept.on(mesh, train).flops_per_second, measured.flops_per_second);
  train.tf32 = true;
  EXPECT_EQ(kept.on(mesh, train).flops_per_second, measured.flops_per_second_tf32);
}

}  // namespace calibration_test
}  // namespace jigsaw
