// How parameters are stored: equal shares of a flat buffer, every element once, zeros behind the last.
#include "autograd/parameter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "support/parameters.h"
#include "support/test_ranks.h"

namespace jigsaw {
namespace {

struct Case {
  int data, domain, tensor;
  Zero zero;
};

/// What all ranks hold of three parameters, of which the third has one element.
struct Held {
  std::vector<std::int64_t> stored, owned;         ///< elements, of each rank in any order
  std::map<std::string, std::vector<int>> owners;  ///< of each element of each parameter
  std::vector<double> behind;                      ///< numbers stored in no segment
};

Held hold(const Case& on, const Shape& first, const Shape& second) {
  Held held;
  std::mutex mutex;
  const int ranks = on.data * on.domain * on.tensor;
  testing::run_test_ranks(ranks, [&](Communicator& world) {
    EXPECT_EQ(world.size(), ranks);
    Mesh mesh(world, on.data, {on.domain}, on.tensor);
    ParameterBlock block("block");
    for (const auto& [name, shape] : std::map<std::string, Shape>{{"a", first}, {"b", second}, {"c", {1}}})
      ParameterBlock::set_compute(block.add(name, shape, Initial::constant(2)), {});
    block.materialise({world.context(), mesh}, on.zero, DType::kFloat32, DType::kFloat32, 1);
    block.acquire();
    for (const auto& parameter : block.parameters()) {
      const std::vector<double> whole = testing::values_of(parameter->value().piece);
      EXPECT_EQ(whole, std::vector<double>(whole.size(), 2.0)) << parameter->name();
    }
    block.release();
    const std::lock_guard lock(mutex);
    for (const auto& group : block.groups()) {
      held.stored.push_back(group->stored_range().size());
      held.owned.push_back(group->owned_range().size());
      std::vector<double> values = testing::values_of(group->stored());
      for (const Segment& segment : group->stored_segments()) {
        for (std::int64_t i = 0; i < segment.count; ++i)
          values[static_cast<std::size_t>(segment.at + i)] = -1;
      }
      for (const double value : values) {
        if (value != -1) held.behind.push_back(value);
      }
      for (const Segment& segment : group->owned_segments()) {
        std::vector<int>& owners = held.owners[segment.parameter->name()];
        owners.resize(static_cast<std::size_t>(segment.parameter->shape().count()));
        for (std::int64_t i = 0; i < segment.count; ++i)
          ++owners[static_cast<std::size_t>(segment.first + i)];
      }
    }
  });
  return held;
}

TEST(ParameterGroup, SharesAreEqualAndHoldEveryElementOnce) {
  for (const Case& on :
       {Case{1, 2, 1, Zero::kNone}, Case{1, 3, 1, Zero::kNone}, Case{1, 2, 3, Zero::kNone},
        Case{3, 1, 1, Zero::kOptimizer}, Case{3, 2, 1, Zero::kOptimizer}, Case{3, 1, 1, Zero::kParameters},
        Case{2, 2, 1, Zero::kParameters}, Case{2, 2, 1, Zero::kNone}}) {
    SCOPED_TRACE(::testing::Message() << on.data << " × " << on.domain << " × " << on.tensor << ", ZeRO "
                                      << static_cast<int>(on.zero));
    const Held held = hold(on, {1031}, {41, 53});
    const auto ranks = static_cast<std::size_t>(on.data * on.domain * on.tensor);
    EXPECT_EQ(held.stored, std::vector<std::int64_t>(ranks, held.stored.front()));
    EXPECT_EQ(held.owned, std::vector<std::int64_t>(ranks, held.owned.front()));
    EXPECT_EQ(held.owned.front() % 8, 0);
    EXPECT_EQ(held.behind, std::vector<double>(held.behind.size(), 0.0));
    EXPECT_GT(held.behind.size(), 0U);
    EXPECT_LT(held.behind.size(), 8 * ranks * static_cast<std::size_t>(on.data));
    // Along `data` copies are equal where optimizer states are not cut.
    const int copies = on.zero == Zero::kNone ? on.data : 1;
    for (const auto& [name, elements] : std::map<std::string, int>{{"a", 1031}, {"b", 41 * 53}, {"c", 1}})
      EXPECT_EQ(held.owners.at(name), std::vector<int>(static_cast<std::size_t>(elements), copies)) << name;
  }
}

/// Nothing is added where nothing is cut, or where it would be much beside what there is.
TEST(ParameterGroup, SmallBuffersAreCutToTheElement) {
  EXPECT_EQ(hold({1, 1, 1, Zero::kParameters}, {1031}, {41, 53}).stored,
            std::vector<std::int64_t>{1031 + 41 * 53 + 1});
  Held small = hold({1, 3, 1, Zero::kNone}, {7}, {3, 5});
  std::ranges::sort(small.stored);
  EXPECT_EQ(small.stored, (std::vector<std::int64_t>{7, 8, 8}));
  EXPECT_TRUE(small.behind.empty());
}

}  // namespace
}  // namespace jigsaw
