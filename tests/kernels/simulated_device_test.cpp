#include "support/simulated_device/simulated_device.h"

#include <gtest/gtest.h>

#include <cmath>

#include "array/host_view.h"
#include "array/raw_memory.h"
#include "array/transfer.h"
#include "base/error.h"
#include "kernels/pointwise.h"
#include "support/arrays.h"

// What the simulated device finds: each kind of mistake is made here once.
namespace jigsaw {
namespace simulated_device_test {

using testing::SimulatedDevice;

class OnDevice : public ::testing::Test {
 protected:
  Array numbers(const std::vector<double>& values) {
    return constant(context_, {std::ssize(values)}, DType::kFloat32, values);
  }
  std::vector<double> download(const Array& x) { return download_values(context_, x); }
  std::int64_t waiting(Stream stream) const {
    return static_cast<const SimulatedDevice&>(*context_.runtime()).waiting(stream);
  }
  std::int64_t uploads() const { return static_cast<const SimulatedDevice&>(*context_.runtime()).uploads(); }
  static bool all_nan(const std::vector<double>& values) {
    return std::ranges::all_of(values, [](double x) { return std::isnan(x); });
  }

  Context context_ = SimulatedDevice::make_context(Backend::kCpu, 1);
};

TEST_F(OnDevice, KernelsRunWhenSomebodyWaits) {
  const Array x = numbers({1, 2, 3}), y = add(context_, x, x);
  EXPECT_EQ(waiting(Stream::kCompute), 2);
  EXPECT_EQ(download(y), (std::vector<double>{2, 4, 6}));
  EXPECT_EQ(waiting(Stream::kCompute), 0);
}

/// Found again by numbers, type and how often each stands; under any shape.
TEST_F(OnDevice, KeptConstantsGoUpOnce) {
  const std::vector<double> numbers = {1, 2, 3}, others = {1, 2, 4};
  const auto kept = [&](const Shape& shape, DType type, const std::vector<double>& values) {
    return kept_constant(context_, shape, type, values);
  };
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(download(kept({3}, DType::kFloat64, numbers)), numbers);
    EXPECT_EQ(download(kept({3, 2}, DType::kFloat64, numbers)), (std::vector<double>{1, 1, 2, 2, 3, 3}));
    EXPECT_EQ(kept({2, 3}, DType::kFloat64, numbers).shape(), (Shape{2, 3}));
    EXPECT_EQ(download(kept({1, 3}, DType::kFloat32, numbers)), numbers);
    EXPECT_EQ(download(kept({3}, DType::kFloat64, others)), others);
    EXPECT_EQ(uploads(), 4);
  }
  EXPECT_THROW(kept({4}, DType::kFloat64, numbers), ShapeError);
  const Context host = Context::make_host(Backend::kReference, 1);
  EXPECT_EQ(
      download_values(host, kept_constant(context_.host(), {4}, DType::kFloat64, std::vector<double>{5, 6})),
      (std::vector<double>{5, 5, 6, 6}));
}

TEST_F(OnDevice, TheHostCannotReachItsMemory) {
  Array x = numbers({1, 2, 3});
  context_.runtime()->synchronise(Stream::kCompute);
  EXPECT_THROW(HostView<float>{x}, Error);
  EXPECT_DEATH({ EXPECT_EQ(x.data<float>()[0], 1); }, "");
  EXPECT_DEATH({ x.data<float>()[0] = 1; }, "");
}

TEST_F(OnDevice, KernelsRefuseTheHostsMemory) {
  const Array x = numbers({1, 2, 3});
  const Array host = testing::array_of(context_.host(), {3}, DType::kFloat32, {1, 2, 3});
  EXPECT_THROW(add(context_, x, host), Error);
}

TEST_F(OnDevice, NewAndFreedMemoryHoldsNaN) {
  EXPECT_TRUE(all_nan(download(Array(context_, {1000}, DType::kFloat32))));
  const void* place = nullptr;
  {
    const Array x = filled(context_, {1000}, DType::kFloat64, 1.0);
    place = x.identity();
    EXPECT_EQ(download(x), std::vector<double>(1000, 1.0));
  }
  const Array again(context_, {1000}, DType::kFloat64);
  EXPECT_EQ(again.identity(), place);
  EXPECT_TRUE(all_nan(download(again)));
}

/// A kernel that was put into the queue does not keep its operands: memory that is given back, and out again,
/// before it runs is used in the order of the stream.
TEST_F(OnDevice, OneStreamNeedsNoWaits) {
  Array sum = filled(context_, {100}, DType::kFloat32, 0.0);
  for (int i = 1; i <= 10; ++i) accumulate(context_, sum, filled(context_, {100}, DType::kFloat32, i));
  EXPECT_EQ(download(sum), std::vector<double>(100, 55.0));
}

/// Numbers that come in one stream and are used in another.
TEST_F(OnDevice, AMissingWaitGivesNaN) {
  for (const bool waits : {false, true}) {
    context_.set_stream(Stream::kUpload);
    const Array x = numbers({1, 2, 3});
    const DeviceRuntime::Ticket there = context_.runtime()->ticket(Stream::kUpload);
    context_.set_stream(Stream::kCompute);
    if (waits) context_.runtime()->wait(Stream::kCompute, there);
    const std::vector<double> doubled = download(add(context_, x, x));
    if (waits) {
      EXPECT_EQ(doubled, (std::vector<double>{2, 4, 6}));
    } else {
      EXPECT_TRUE(all_nan(doubled));
    }
    context_.runtime()->synchronise(Stream::kUpload);
  }
}

/// Memory that is given back while a transfer of another stream still reads it.
TEST_F(OnDevice, FreeingWhatATransferReadsGivesNaN) {
  for (const bool waits : {false, true}) {
    Array sent(context_, {3}, DType::kFloat32);
    {
      const Array x = numbers({1, 2, 3});
      const DeviceRuntime::Ticket there = context_.runtime()->ticket(Stream::kCompute);
      context_.runtime()->wait(Stream::kCommunication, there);
      context_.set_stream(Stream::kCommunication);
      copy_elements(context_, x, 0, sent, 0, 3);
      context_.set_stream(Stream::kCompute);
      if (waits)
        context_.runtime()->wait(Stream::kCompute, context_.runtime()->ticket(Stream::kCommunication));
    }
    context_.runtime()->synchronise(Stream::kCompute);
    context_.runtime()->synchronise(Stream::kCommunication);
    if (waits) {
      EXPECT_EQ(download(sent), (std::vector<double>{1, 2, 3}));
    } else {
      EXPECT_TRUE(all_nan(download(sent)));
    }
  }
}

}  // namespace simulated_device_test
}  // namespace jigsaw
