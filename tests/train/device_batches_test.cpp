// Batches that go up beside the work on the one before, on a device where what is not ordered reads NaN.
#include "train/device_batches.h"

#include <gtest/gtest.h>

#include <vector>

#include "array/transfer.h"
#include "kernels/pointwise.h"
#include "support/arrays.h"
#include "support/simulated_device/simulated_device.h"

namespace jigsaw {
namespace device_batches_test {

Batch batch_of(double value, std::int64_t width = 6, int leads = 2) {
  Context host = Context::make_host(Backend::kReference, 1);
  const auto array = [&](double x) {
    return constant(host, {1, 2, width}, DType::kFloat32,
                    std::vector<double>(static_cast<std::size_t>(2 * width), x), Purpose::kInput);
  };
  Batch batch;
  batch.rollout = leads;
  batch.input = array(value);
  for (int lead = 0; lead < leads; ++lead) batch.targets.push_back(array(value + 0.25 * (lead + 1)));
  return batch;
}

TEST(DeviceBatches, GoUpBesideTheWorkOnTheOneBefore) {
  Context context = testing::SimulatedDevice::make_context(Backend::kReference, 1);
  const auto& device = static_cast<const testing::SimulatedDevice&>(*context.runtime());
  DeviceBatches batches(context);
  std::vector<Array> sums;
  std::vector<const void*> places;
  std::vector<double> wanted;
  constexpr int kBatches = 6;
  for (int i = 0; i < kBatches; ++i) {
    // The fourth is larger, the last was not there in time.
    const auto made = [](int number) { return batch_of(number, number == 3 ? 8 : 6); };
    const Batch& batch = batches.take([&] { return made(i); });
    places.push_back(batch.input.identity());
    const Array sum = add(context, batch.input, batch.target(1));
    sums.push_back(sum);
    wanted.push_back(2 * i + 0.5);
    const std::int64_t waits = device.host_waits(), waiting = device.waiting(Stream::kUpload);
    batches.go_ahead([&]() -> std::optional<Batch> {
      if (i + 1 >= kBatches - 1) return std::nullopt;
      return made(i + 1);
    });
    EXPECT_EQ(device.host_waits(), waits);
    EXPECT_EQ(device.waiting(Stream::kUpload) > waiting, i + 1 < kBatches - 1) << i;
  }
  EXPECT_EQ(places[2], places[0]) << "two batches take turns";
  EXPECT_NE(places[1], places[0]);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    for (const double value : testing::values_of(sums[i])) EXPECT_EQ(value, wanted[i]) << i;
  }
}

TEST(DeviceBatches, OnTheHostThereIsOneAtATime) {
  Context context = Context::make_host(Backend::kReference, 1);
  DeviceBatches batches(context);
  int asked = 0;
  for (int i = 0; i < 3; ++i) {
    const Batch given = batch_of(i);
    const Batch& batch = batches.take([&] { return given; });
    EXPECT_EQ(batch.input.identity(), given.input.identity());
    batches.go_ahead([&] {
      ++asked;
      return std::optional<Batch>();
    });
    EXPECT_FALSE(batch.input.defined());
  }
  EXPECT_EQ(asked, 0);
}

}  // namespace device_batches_test
}  // namespace jigsaw
