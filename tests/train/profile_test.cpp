#include "train/profile.h"

#include <gtest/gtest.h>

#include <cmath>

#include "array/device_times.h"

namespace jigsaw {
namespace profile_test {

constexpr std::int64_t kMillisecond = 1'000'000;

TraceEvent event_of(TraceKind kind, const char* name, const char* layer, std::int64_t begin, std::int64_t end,
                    std::int64_t number, std::int64_t step) {
  TraceEvent event{.kind = kind, .name = name, .layer = layer};
  event.begin = begin * kMillisecond;
  event.end = end * kMillisecond;
  event.number = number;
  event.step = step;
  return event;
}

/// A step of 100 ms on a device: two operations of 30 and 40 ms, of which the second stands still for 10, and
/// 5 between them; a gather that takes 25 ms, a scatter that takes 8; a call that another transport carries.
TEST(Profile, OfADeviceIsByItsOwnClock) {
  using enum TraceKind;
  std::vector<TraceEvent> host = {event_of(kOperation, "contract", "block", 1, 2, -1, 0),
                                  event_of(kStart, "all_gather", "tensor", 1, 3, 7, 0),
                                  event_of(kStart, "exchange", "domain0", 4, 5, 8, 0),
                                  event_of(kWait, "exchange", "domain0", 6, 9, 8, 0),
                                  event_of(kStart, "reduce_scatter", "data", 10, 11, 9, 0),
                                  event_of(kStep, "step 5", "", 0, 100, -1, 0)};
  host[1].bytes = 4000;
  const std::vector<TraceEvent> device = {event_of(kOperation, "contract", "block", 10, 40, -1, 5),
                                          event_of(kWait, "all_gather", "tensor", 40, 45, 7, 5),
                                          event_of(kWait, "reduce_scatter", "data", 50, 60, 9, 5),
                                          event_of(kOperation, "norm", "block", 45, 85, -1, 5),
                                          event_of(kWait, "all_gather", "tensor", 90, 95, 4, 0)};
  const std::vector<TraceEvent> carried = {event_of(kCarried, "all_gather", "tensor", 20, 45, 7, 5),
                                           event_of(kCarried, "reduce_scatter", "data", 52, 60, 9, 5),
                                           event_of(kCarried, "all_gather", "tensor", 86, 95, 4, 0)};
  const Profile profile =
      profile_of({{"training", host}, {kDeviceLane, device}, {kDeviceTransferLane, carried}});
  const auto milliseconds = [](double seconds) { return std::llround(1e3 * seconds); };
  EXPECT_EQ(profile.steps, 1);
  EXPECT_EQ(milliseconds(profile.computing), 30 + 30);
  EXPECT_EQ(milliseconds(profile.waiting), 5 + 10 + 4);
  EXPECT_EQ(milliseconds(profile.operations.at("norm").seconds), 30);
  EXPECT_EQ(milliseconds(profile.layers.at(0).second.waiting), 10);
  const TransferShare &gather = profile.transfers.at({"all_gather", "tensor"}),
                      &scatter = profile.transfers.at({"reduce_scatter", "data"}),
                      &exchange = profile.transfers.at({"exchange", "domain0"});
  EXPECT_EQ(gather.calls, 1);
  EXPECT_EQ(gather.bytes, 4000);
  EXPECT_EQ(milliseconds(gather.in_flight), 25);
  EXPECT_EQ(milliseconds(gather.exposed), 5);
  EXPECT_EQ(milliseconds(scatter.in_flight), 8);
  EXPECT_EQ(milliseconds(scatter.exposed), 10);
  EXPECT_EQ(milliseconds(exchange.exposed), 1 + 3);
}

}  // namespace profile_test
}  // namespace jigsaw
