#include "comm/call_log.h"

#include <gtest/gtest.h>

namespace jigsaw {
namespace call_log_test {

Call make_call(Collective kind, std::int64_t sequence, std::int64_t count) {
  static const Context context = Context::make_meta();
  Call call{.kind = kind, .send = Array(context, {count}, DType::kFloat32), .sequence = sequence};
  return call;
}

TEST(CallLog, KeepsTheLastCalls) {
  CallLog log;
  for (int i = 0; i < 100; ++i) {
    log.set_state(log.begin("tensor", false, make_call(Collective::kAllReduce, i, i)), CallLog::State::kDone);
  }
  const auto entries = log.last();
  ASSERT_EQ(std::ssize(entries), CallLog::kKept);
  EXPECT_EQ(entries.front().number, 100 - CallLog::kKept);
  EXPECT_EQ(entries.back().describe(), "all_reduce #99 on tensor (99 elements)");
  EXPECT_EQ(entries.back().state, CallLog::State::kDone);
  log.set_state(3, CallLog::State::kWaiting);  // long overwritten
  EXPECT_EQ(log.position().text, "is outside communication, after all_reduce #99 on tensor (99 elements)");
  EXPECT_EQ(log.position().ordinal, 100);
  EXPECT_FALSE(log.position().arrived);
  log.set_state(98, CallLog::State::kWaiting);
  EXPECT_EQ(log.position().text, "waits in all_reduce #98 on tensor (98 elements)");
  EXPECT_EQ(log.position().ordinal, 98);
  EXPECT_TRUE(log.position().arrived);
}

/// Of calls on a device, whose streams count.
TEST(CallLog, CallsOnADeviceAreOpenUntilItHasDoneThem) {
  CallLog log;
  const auto count = std::make_shared<std::uint32_t>(0xfffffff0U);  // which begins again
  const auto hand_over = [&](int sequence) {
    const std::int64_t number = log.begin("tensor", false, make_call(Collective::kAllReduce, sequence, 6));
    const std::uint32_t first = 0xfffffff0U + 2 * static_cast<std::uint32_t>(sequence) + 1;
    log.set_on_device(number, {{count, first}, {count, first + 1}});
  };
  for (int i = 0; i < 2 * CallLog::kKept; ++i) hand_over(i);
  EXPECT_EQ(log.position().text,
            "is outside communication: its device has not come to all_reduce #0 on tensor (6 elements)");
  EXPECT_FALSE(log.position().arrived);
  ++*count;
  EXPECT_EQ(log.position().text, "waits in all_reduce #0 on tensor (6 elements)");
  *count += 2 * 100;
  EXPECT_EQ(log.position().text, "waits in all_reduce #100 on tensor (6 elements)");
  const auto entries = log.last();
  EXPECT_EQ(entries[99 - 64].state, CallLog::State::kDone);
  EXPECT_EQ(entries[100 - 64].state, CallLog::State::kRunning);
  EXPECT_EQ(entries[101 - 64].state, CallLog::State::kQueued);
  *count += 1000;
  EXPECT_EQ(log.position().text, "is outside communication, after all_reduce #127 on tensor (6 elements)");
  hand_over(2 * CallLog::kKept);
  EXPECT_EQ(log.last().back().state, CallLog::State::kDone);
  log.set_state(log.begin("world", true, {.kind = Collective::kControl}), CallLog::State::kWaiting);
  EXPECT_EQ(log.position().text, "waits in control #0 on world (0 elements)");
}

/// As if they had not been made, though their numbers are gone.
TEST(CallLog, ForgetsCalls) {
  CallLog log;
  log.begin("world", true, make_call(Collective::kAllReduce, 0, 7));
  const double fingerprint = log.fingerprint();
  const CallLog::Position position = log.position();
  EXPECT_EQ(position.ordinal, 1);
  const CallLog::Mark mark = log.mark();
  const std::int64_t number = log.begin("data", false, make_call(Collective::kAllGather, 0, 7));
  log.set_on_device(number, {});
  EXPECT_NE(log.fingerprint(), fingerprint);
  EXPECT_EQ(log.last().size(), 2U);
  log.forget(mark);
  EXPECT_EQ(log.fingerprint(), fingerprint);
  EXPECT_EQ(log.position().text, position.text);
  EXPECT_EQ(log.position().ordinal, position.ordinal);
  EXPECT_EQ(log.last().size(), 1U);
  EXPECT_TRUE(log.since_mark().empty());
  EXPECT_EQ(log.begin("world", true, make_call(Collective::kAllReduce, 1, 7)), number + 1);
  EXPECT_EQ(log.last().size(), 2U);
  EXPECT_EQ(log.last().back().ordinal, position.ordinal);  // as on a rank that forgot fewer
}

/// Each time they are further calls of the job, those among them in which nothing travels.
TEST(CallLog, RepeatsCalls) {
  CallLog log;
  const auto count = std::make_shared<std::uint32_t>(0);
  log.begin("world", true, make_call(Collective::kAllReduce, 0, 7));
  const CallLog::Mark mark = log.mark();
  const auto hand_over = [&](std::int64_t sequence, const OnDevice& device) {
    log.set_on_device(log.begin("data", false, make_call(Collective::kAllGather, sequence, 7)), device);
  };
  hand_over(0, {});
  hand_over(1, {{count, 1}, {count, 2}});
  hand_over(2, {});
  *count = 2;
  std::vector<CallLog::Entry> calls = log.since_mark();
  ASSERT_EQ(calls.size(), 3U);
  log.forget(mark);
  EXPECT_EQ(log.position().ordinal, 1);
  for (std::uint32_t passed : {4U, 6U}) {
    calls[1].device = {{count, passed - 1}, {count, passed}};
    log.repeat(calls);
  }
  EXPECT_EQ(log.last().back().ordinal, 6);
  EXPECT_EQ(log.position().ordinal, 2);
  EXPECT_FALSE(log.position().arrived);
  *count = 5;
  EXPECT_EQ(log.position().ordinal, 5);
  EXPECT_TRUE(log.position().arrived);
  *count = 6;
  EXPECT_EQ(log.position().ordinal, 7);
}

TEST(CallLog, FingerprintTellsKindOrderGroupAndGlobalCount) {
  const auto fingerprint = [](std::initializer_list<Collective> kinds, const char* group, bool whole_job,
                              std::int64_t count) {
    CallLog log;
    for (const Collective kind : kinds) log.begin(group, whole_job, make_call(kind, 0, count));
    return log.fingerprint();
  };
  using enum Collective;
  const double reference = fingerprint({kAllReduce, kBroadcast}, "data", true, 7);
  EXPECT_EQ(fingerprint({kAllReduce, kBroadcast}, "data", true, 7), reference);
  EXPECT_NE(fingerprint({kBroadcast, kAllReduce}, "data", true, 7), reference);
  EXPECT_NE(fingerprint({kAllReduce}, "data", true, 7), reference);
  EXPECT_NE(fingerprint({kAllReduce, kBroadcast}, "tensor", true, 7), reference);
  EXPECT_NE(fingerprint({kAllReduce, kBroadcast}, "data", true, 8), reference);
  EXPECT_EQ(fingerprint({kAllReduce}, "data", false, 7), fingerprint({kAllReduce}, "data", false, 8))
      << "groups of a mesh axis may hold uneven pieces";
}

}  // namespace call_log_test
}  // namespace jigsaw
