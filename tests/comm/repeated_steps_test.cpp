// A ring whose steps are counted once more tells what one tells whose steps are all made.
#include "comm/record/repeated_steps.h"

#include <gtest/gtest.h>

#include <tuple>

#include "comm/record/record.h"

namespace jigsaw {
namespace repeated_steps_test {

/// What an observer is told: bytes of what starts, or -1; the number; FLOPs by then.
using Told = std::vector<std::tuple<double, std::size_t, double>>;

class Listener : public CallObserver {
 public:
  explicit Listener(Context& context) : context_(context) {}
  std::size_t started(const Call&, const std::string&, const Sent& sent) override {
    told.emplace_back(sent.bytes, next_, context_.tally().flops);
    return next_++;
  }
  void waited(std::size_t number) override { told.emplace_back(-1, number, context_.tally().flops); }

  Told told;

 private:
  Context& context_;
  std::size_t next_ = 0;
};

struct Ring {
  Told told;
  Traffic traffic;
  Tally tally;
  std::int64_t most_bytes = 0;
  int made = 0;  ///< steps
};

/// Each step waits for its block, fetches the next one, works, waits for what the step before sent back, and
/// sends back. Every fourth block is larger, and the last ones.
Ring ring(bool repeats, bool controls = false) {
  constexpr int kRanks = 23;
  Context context = Context::make_meta();
  Listener listener(context);
  const auto world = make_record_communicator(context, 5, kRanks, &listener);
  const auto group = world->split("ring", [](int rank) { return std::pair{0, rank}; });
  Ring ring;
  const auto size_of = [](int step) { return std::int64_t{step % 4 == 0 || step > 17 ? 12 : 8}; };
  const auto transfer = [&](std::int64_t count, int step) {
    const Array array(context, {count}, DType::kFloat32, Purpose::kWorkspace);
    const std::vector<Message> to = {{(5 + step) % kRanks, 0, count}},
                               from = {{(5 - step + kRanks) % kRanks, 0, count}};
    return group->start_exchange(array, to, from, count);
  };
  Pending next = transfer(size_of(1), 1), arriving;
  std::vector<std::vector<std::int64_t>> kinds;
  for (int step = 1; step < kRanks; ++step)
    kinds.push_back({size_of(step - 1), size_of(step), step + 1 < kRanks ? size_of(step + 1) : -1});
  const auto work = [&](std::size_t number) {
    const int step = static_cast<int>(number) + 1;
    ++ring.made;
    next.wait();
    if (step + 1 < kRanks) next = transfer(size_of(step + 1), step + 1);
    context.tally().flops += 100 * static_cast<double>(size_of(step));
    if (controls) world->barrier();
    if (arriving.valid()) arriving.wait();
    arriving = transfer(size_of(step), step);
    context.tally().bytes += 3;
  };
  if (repeats) {
    for_steps(*group, kinds, work);
  } else {
    for (std::size_t step = 0; step < kinds.size(); ++step) work(step);
  }
  arriving.wait();
  ring.told = listener.told;
  ring.traffic = world->traffic();
  ring.tally = context.tally();
  ring.most_bytes = context.arena().peak_bytes(Purpose::kWorkspace);
  return ring;
}

TEST(RepeatedSteps, AreToldAsIfAllWereMade) {
  for (const bool controls : {false, true}) {
    const Ring all = ring(false, controls), some = ring(true, controls);
    EXPECT_EQ(all.made, 22);
    if (controls) {
      EXPECT_EQ(some.made, 22);
    } else {
      EXPECT_LT(some.made, 14);  // four kinds, and the first and the last steps
    }
    EXPECT_EQ(some.most_bytes, all.most_bytes);
    EXPECT_EQ(some.told, all.told);
    EXPECT_EQ(some.tally.flops, all.tally.flops);
    EXPECT_EQ(some.tally.bytes, all.tally.bytes);
    EXPECT_EQ(some.traffic.sent_bytes, all.traffic.sent_bytes);
    EXPECT_EQ(some.traffic.calls, all.traffic.calls);
    const auto exchange = static_cast<std::size_t>(Collective::kExchange);
    EXPECT_EQ(some.traffic.sent[exchange].messages, all.traffic.sent[exchange].messages);
    EXPECT_EQ(all.traffic.calls[exchange], 44);
  }
}

}  // namespace repeated_steps_test
}  // namespace jigsaw
