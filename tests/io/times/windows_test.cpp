#include "times/windows.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "io/fixtures.h"
#include "samples/sampler.h"

namespace jigsaw {
namespace windows_test {

std::vector<Time> every(int hours, const std::string& first, const std::string& last) {
  std::vector<Time> times;
  for (Time time = at(first); time <= at(last); time += hours * kHour) times.push_back(time);
  return times;
}

std::size_t count(const std::vector<Time>& times, const WindowRule& rule,
                  const std::vector<Period>& periods) {
  return find_windows(times, times, rule, periods, "data.train").size();
}

TEST(Windows, TheUsualStepIsTheMostFrequentOfThemTheShortest) {
  EXPECT_EQ(usual_step({}), 0);
  EXPECT_EQ(usual_step({5}), 0);
  EXPECT_EQ(usual_step({0, 6, 12, 24, 36, 48, 72}), 12);
  EXPECT_EQ(usual_step({0, 12, 18, 24, 36}), 6);
}

TEST(Windows, LieWholeInAPeriodButForEarlierInputs) {
  const std::vector<Time> hourly = every(1, "2019-03-01", "2019-03-31T23:00");
  // 24 days of hours, the last 6 of which have their target outside; the first 6 lack the earlier input.
  EXPECT_EQ(count(hourly, {{-6 * kHour, 0}, 6 * kHour, 1}, {period("2019-03-01", "2019-03-24")}),
            24U * 24 - 12);
  EXPECT_EQ(count(hourly, {{-6 * kHour, 0}, 6 * kHour, 1}, {period("2019-03-25", "2019-03-31")}),
            7U * 24 - 6);
  EXPECT_EQ(count(hourly, {{0}, 6 * kHour, 3}, {period("2019-03-25", "2019-03-31")}), 7U * 24 - 18);
  // Two periods that touch are still two.
  EXPECT_EQ(count(hourly, {{0}, 6 * kHour, 1},
                  {period("2019-03-10", "2019-03-10"), period("2019-03-11", "2019-03-11")}),
            2U * (24 - 6));
  EXPECT_EQ(count(hourly, {{0}, 6 * kHour, 1},
                  {period("2019-03-10", "2019-03-10"), period("2019-03-10", "2019-03-11")}),
            48U - 6);
}

TEST(NearestTime, IsTheEarlierOneOfTwo) {
  const std::vector<Time> times = {10, 20, 40};
  EXPECT_EQ(nearest_time(times, 5), 10);
  EXPECT_EQ(nearest_time(times, 14), 10);
  EXPECT_EQ(nearest_time(times, 15), 10);
  EXPECT_EQ(nearest_time(times, 16), 20);
  EXPECT_EQ(nearest_time(times, 90), 40);
  EXPECT_FALSE(nearest_time({}, 5));
}

TEST(Windows, WithMissingTimesAreLeftOut) {
  std::vector<Time> times = every(6, "2020-01-01", "2020-01-03T18:00");
  std::erase(times, at("2020-01-02T06:00"));
  const std::vector<Time> windows = find_windows(times, times, {{-6 * kHour, 0}, 6 * kHour, 1},
                                                 {period("2020-01-01", "2020-01-03")}, "data.train");
  EXPECT_EQ(windows, (std::vector{at("2020-01-01T06:00"), at("2020-01-01T12:00"), at("2020-01-01T18:00"),
                                  at("2020-01-02T18:00"), at("2020-01-03"), at("2020-01-03T06:00"),
                                  at("2020-01-03T12:00")}));
}

TEST(Windows, OfRolloutsHaveTheirLastTargetInThePeriod) {
  std::vector<Time> times;
  for (int i = 0; i < 20; ++i) times.push_back(at("2020-01-01") + i * 6 * kHour);
  const auto windows =
      find_windows(times, times, {{0}, 6 * kHour, 3}, {period("2020-01-01", "2020-01-02")}, "data.train");
  EXPECT_EQ(windows, std::vector<Time>(times.begin(), times.begin() + 5));
}

TEST(Windows, NoneIsAnErrorThatSaysWhatThereIs) {
  const std::vector<Time> times = every(6, "2020-01-01", "2020-01-02");
  const std::string message = message_of<DataError>([&] {
    count(times, {{0}, 6 * kHour, 1}, {period("2019-01-01", "2019-02-01")});
  });
  for (const char* part :
       {"data.train", "2019-01-01 to 2019-02-01", "2020-01-01T00:00 to 2020-01-02T00:00"}) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  }
}

TEST(Windows, NoneForLeadsBetweenTheTimes) {
  const std::vector<Time> times = every(6, "2020-01-01", "2020-01-31");
  const auto message = [&](const WindowRule& rule) {
    return message_of<DataError>([&] { count(times, rule, {period("2020-01-01", "2020-01-31")}); });
  };
  EXPECT_NE(message({{0}, 5 * kHour, 1}).find("are 6 h apart, so data.lead_hours must be a multiple of 6"),
            std::string::npos);
  EXPECT_NE(message({{-3 * kHour, 0}, 6 * kHour, 1})
                .find("are 6 h apart, so data.input_hours must be multiples of 6"),
            std::string::npos);
  EXPECT_EQ(message({{0}, 1200 * kHour, 1}).find("apart"), std::string::npos);
  const std::string named =
      message({.input_times = {0}, .lead_time = 5 * kHour, .fewest_times = "u has 3 times"});
  EXPECT_NE(named.find("must be a multiple of 6; u has 3 times"), std::string::npos) << named;
}

// Every 5 minutes.
TEST(Windows, SomeAreEvenlySpread) {
  const std::vector<Time> nine = every(6, "2021-01-01", "2021-01-03");
  EXPECT_EQ(evenly_spread(nine, 4), (std::vector{nine[0], nine[2], nine[4], nine[6]}));
  EXPECT_EQ(evenly_spread(nine, 1), (std::vector{nine[0]}));
  EXPECT_EQ(evenly_spread(nine, 8).size(), 8U);
  EXPECT_EQ(evenly_spread(nine, 9), nine);
  EXPECT_EQ(evenly_spread(nine, 100), nine);
  EXPECT_TRUE(evenly_spread({}, 3).empty());
}

TEST(Windows, MayLieWithinAnHour) {
  std::vector<Time> times;
  for (int i = 0; i < 24; ++i) times.push_back(at("2020-01-01") + i * 300);
  std::erase(times, at("2020-01-01T00:30"));
  const std::vector<Period> day = {period("2020-01-01", "2020-01-01")};
  // Neither an input, at 0, 5 and 10 minutes before, nor one of two targets is at 00:30.
  EXPECT_EQ(count(times, {{-600, -300, 0}, 300, 2}, day), 24U - 2 - 2 - 5);
  const std::string message = message_of<DataError>([&] { count(times, {{-420, 0}, 300, 1}, day); });
  EXPECT_NE(message.find("holds no window with inputs at -7 min, 0 h and targets up to 5 min"),
            std::string::npos)
      << message;
  EXPECT_NE(message.find("are 5 min apart, so data.input_hours must be multiples of 5 min"),
            std::string::npos)
      << message;
}

TEST(Windows, NoneOfTimesThatSecondsPart) {
  std::vector<Time> times = every(6, "2020-01-01", "2020-01-31");
  for (std::size_t i = 0; i < times.size(); ++i) times[i] += static_cast<Time>(i % 7);
  const std::string message = message_of<DataError>([&] {
    count(times, {{0}, 6 * kHour, 1}, {period("2020-01-01", "2020-01-31")});
  });
  EXPECT_NE(message.find("some of these are not of whole minutes, as 2020-01-01T06:00:01"), std::string::npos)
      << message;
  EXPECT_EQ(message.find("a multiple of"), std::string::npos) << message;
}

TEST(Sampler, EpochsArePermutationsThatRunOn) {
  Sampler sampler(10, 4, Sampler::Order::kShuffled, 1);
  std::vector<std::int64_t> order;
  for (int step = 0; step < 5; ++step) {
    for (const std::int64_t index : sampler.batch(step)) order.push_back(index);
  }
  ASSERT_EQ(order.size(), 20U);
  const std::vector<std::int64_t> first(order.begin(), order.begin() + 10),
      second(order.begin() + 10, order.end());
  EXPECT_EQ(std::set(first.begin(), first.end()).size(), 10U);
  EXPECT_EQ(std::set(second.begin(), second.end()).size(), 10U);
  EXPECT_NE(first, second);
  EXPECT_FALSE(std::is_sorted(first.begin(), first.end()));
}

/// After two steps of four, steps of two.
TEST(Sampler, GoesOnBehindWhatWasSeenWithAnotherBatchSize) {
  Sampler whole(10, 4, Sampler::Order::kShuffled, 1), changed(10, 2, Sampler::Order::kShuffled, 1);
  changed.go_on_behind({2, 8});
  std::vector<std::int64_t> order, behind;
  for (int step = 2; step < 5; ++step) {
    for (const std::int64_t index : whole.batch(step)) order.push_back(index);
  }
  for (int step = 2; step < 8; ++step) {
    for (const std::int64_t index : changed.batch(step)) behind.push_back(index);
  }
  EXPECT_EQ(behind, order);
}

TEST(Sampler, IsAFunctionOfSeedAndStepAlone) {
  Sampler forward(100, 7, Sampler::Order::kShuffled, 3), jumping(100, 7, Sampler::Order::kShuffled, 3);
  Sampler other(100, 7, Sampler::Order::kShuffled, 4);
  std::vector<std::vector<std::int64_t>> batches;
  for (int step = 0; step < 40; ++step) batches.push_back(forward.batch(step));
  for (const int step : {39, 0, 14, 15, 13})
    EXPECT_EQ(jumping.batch(step), batches[static_cast<std::size_t>(step)]);
  EXPECT_NE(other.batch(0), batches[0]);
}

TEST(Sampler, SequentialGoesInOrder) {
  Sampler sampler(5, 2, Sampler::Order::kSequential, 1);
  EXPECT_EQ(sampler.batch(1), (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(sampler.batch(2), (std::vector<std::int64_t>{4, 0}));
}

// Every window comes first about as often as any other.
TEST(Sampler, ShufflesEvenly) {
  std::vector<int> counts(6);
  for (std::uint64_t seed = 0; seed < 6000; ++seed) {
    ++counts[static_cast<std::size_t>(Sampler(6, 1, Sampler::Order::kShuffled, seed).batch(0)[0])];
  }
  for (const int times : counts) EXPECT_NEAR(times, 1000, 150);
}

}  // namespace windows_test
}  // namespace jigsaw
