// What long forecasts are made of: which steps a file holds, means over them, states that are kept, and where
// the first value is that is not finite.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "io/netcdf_writer.h"
#include "predict/calendar_means.h"
#include "predict/first_not_finite.h"
#include "predict/forecast.h"
#include "predict/forecast_stop.h"
#include "predict/restart_file.h"
#include "predict/start_digest.h"
#include "predict/step_means.h"
#include "predict/written_leads.h"
#include "support/netcdf_reader.h"
#include "support/temporary_folder.h"
#include "support/test_ranks.h"

namespace jigsaw {
namespace long_forecasts_test {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// Against a list of the steps that end a lead.
TEST(WrittenLeads, AreThoseOfAList) {
  for (const bool means : {false, true}) {
    for (int first = 0; first < 9; ++first) {
      for (int last = first + 1; last < 15; ++last) {
        for (int every = 1; every < 6; ++every) {
          SCOPED_TRACE(::testing::Message() << means << " " << first << " " << last << " " << every);
          std::vector<int> steps;
          for (int step = first + 1; step <= last; ++step)
            if ((means ? step - first : step) % every == 0) steps.push_back(step);
          const WrittenLeads leads{first, last, every, means};
          ASSERT_EQ(leads.count(), std::ssize(steps));
          for (int lead = 0; lead < leads.count(); ++lead)
            EXPECT_EQ(leads.step_of(lead), steps[static_cast<std::size_t>(lead)]);
          for (int step = first + 1; step <= last; ++step) {
            const auto found = std::ranges::find(steps, step);
            const std::optional<int> wanted =
                found == steps.end() ? std::nullopt : std::optional(static_cast<int>(found - steps.begin()));
            EXPECT_EQ(leads.lead_of(step), wanted) << step;
          }
        }
      }
    }
  }
}

TEST(WrittenLeads, OfTheCalendarAreThoseOfTheirList) {
  const WrittenLeads leads{2, 17, 1, true, "month", {{4, 6, {}}, {7, 7, {}}, {8, 17, {}}}};
  ASSERT_EQ(leads.count(), 3);
  const std::map<int, int> ends = {{6, 0}, {7, 1}, {17, 2}};
  for (int step = 3; step <= 17; ++step) {
    const auto found = ends.find(step);
    EXPECT_EQ(leads.lead_of(step), found == ends.end() ? std::nullopt : std::optional(found->second)) << step;
    EXPECT_EQ(leads.has(step), step >= 4) << step;
    EXPECT_EQ(leads.count_until(step), step < 6 ? 0 : step < 7 ? 1 : step < 17 ? 2 : 3) << step;
  }
  EXPECT_EQ(leads.first_of(2), 8);
  EXPECT_EQ(leads.step_of(2), 17);
  EXPECT_EQ(leads.option(), "--mean month");
  EXPECT_EQ((WrittenLeads{0, 8, 4, true}.option()), "--mean 4");
  EXPECT_EQ((WrittenLeads{0, 8, 4}.option()), "--every 4");
  EXPECT_EQ((WrittenLeads{0, 8}.option()), "");
  const WrittenLeads every{0, 9, 4}, means{0, 9, 4, true};
  for (int step = 1; step <= 9; ++step) {
    EXPECT_EQ(every.has(step), step % 4 == 0);
    EXPECT_EQ(means.has(step), step <= 8) << "of a rest nothing is";
  }
  EXPECT_EQ(means.first_of(1), 5);
}

constexpr CalendarUnit kUnits[] = {CalendarUnit::kDay, CalendarUnit::kMonth, CalendarUnit::kSeason,
                                   CalendarUnit::kYear};
constexpr Calendar kCalendars[] = {Calendar::kStandard, Calendar::kNoLeap, Calendar::kAllLeap,
                                   Calendar::k360Day, Calendar::kJulian};

/// What days of one unit have in common, and those of its neighbours have not.
std::array<std::int64_t, 2> mark_of(std::int64_t day, CalendarUnit unit, Calendar calendar) {
  const Date date = date_from_days(day, calendar);
  switch (unit) {
    case CalendarUnit::kDay:
      return {day, 0};
    case CalendarUnit::kMonth:
      return {date.year, date.month};
    case CalendarUnit::kSeason:
      return {date.month == 12 ? date.year + 1 : date.year, date.month == 12 ? 0 : date.month / 3};
    case CalendarUnit::kYear:
      break;
  }
  return {date.year, 0};
}

/// Against a walk from day to day, before 1970 and behind it, over leap years.
TEST(CalendarUnits, ReachFromTheirFirstDayToTheNextOne) {
  for (const Calendar calendar : kCalendars) {
    for (const CalendarUnit unit : kUnits) {
      SCOPED_TRACE(::testing::Message() << name(calendar) << " " << name(unit));
      EXPECT_EQ(parse_calendar_unit(name(unit)), unit);
      for (std::int64_t day = -500; day < 1200; day += 17) {
        std::int64_t first = day, behind = day + 1;
        const auto same = [&](std::int64_t other) {
          return mark_of(other, unit, calendar) == mark_of(day, unit, calendar);
        };
        while (same(first - 1)) --first;
        while (same(behind)) ++behind;
        for (const Time second : {Time{0}, kDay / 2, kDay - 1})
          ASSERT_EQ(unit_around(day * kDay + second, unit, calendar), (Period{first * kDay, behind * kDay}))
              << day;
      }
    }
  }
  EXPECT_FALSE(parse_calendar_unit("week").has_value());
  EXPECT_TRUE(divides(kDay, CalendarUnit::kDay, Calendar::kStandard));
  EXPECT_FALSE(divides(kDay + 1, CalendarUnit::kDay, Calendar::kStandard));
  EXPECT_TRUE(divides(kMonth, CalendarUnit::kMonth, Calendar::k360Day));
  EXPECT_FALSE(divides(kMonth, CalendarUnit::kMonth, Calendar::kNoLeap));
  EXPECT_FALSE(divides(4 * kMonth, CalendarUnit::kSeason, Calendar::k360Day));
  EXPECT_TRUE(divides(12 * kMonth, CalendarUnit::kYear, Calendar::k360Day));
}

/// Against lists of the steps of each unit: those are whole in which neither the step before the start (or
/// that which was the last) nor the one behind the end lies.
TEST(CalendarMeans, AreThoseOfWholeUnits) {
  int found = 0, unlike = 0;
  for (const Calendar calendar : kCalendars) {
    for (const CalendarUnit unit : kUnits) {
      for (const Time step : {6 * kHour, kDay, 5 * kHour}) {
        for (const Time start : {Time{0}, 17 * kDay + 5 * kHour, -3 * kHour, 30 * kDay + 18 * kHour}) {
          for (const int first : {0, 7}) {
            for (const std::optional<Period>& limits :
                 {std::optional<Period>(), std::optional(Period{-step, 0}), std::optional(Period{0, step})}) {
              const int last =
                  first + static_cast<int>(unit == CalendarUnit::kDay ? 9 * kDay / step : 430 * kDay / step);
              const auto mark = [&](int number) {
                const Time middle = limits ? (limits->first + limits->last) / 2 : 0;
                return mark_of(floor_div(start + number * step + middle, kDay), unit, calendar);
              };
              std::map<std::array<std::int64_t, 2>, std::vector<int>> steps;
              for (int number = first + 1; number <= last; ++number) steps[mark(number)].push_back(number);
              steps.erase(mark(first == 0 ? -1 : first));
              steps.erase(mark(last + 1));
              const std::vector<CalendarMean> means =
                  calendar_means({start, step, first, last, calendar, limits}, unit);
              ASSERT_EQ(means.size(), steps.size());
              EXPECT_EQ(lacks_start({start, step, first, last, calendar, limits}, unit),
                        first == 0 && mark(0) == mark(1) && mark(-1) != mark(0));
              auto wanted = steps.begin();
              for (const CalendarMean& mean : means) {
                ASSERT_EQ(mean.first, wanted->second.front());
                ASSERT_EQ(mean.last, wanted->second.back());
                Period span = unit_around(start + mean.first * step, unit, calendar);
                span = {span.first - start, span.last - start};
                if (limits) span = {mean.first * step + limits->first, mean.last * step + limits->last};
                ASSERT_EQ(mean.span, span);
                ++wanted;
                ++found;
                unlike += mean.last - mean.first != means.front().last - means.front().first;
              }
            }
          }
        }
      }
    }
  }
  EXPECT_GT(found, 1000);
  EXPECT_GT(unlike, 100) << "months differ in length";
  // A forecast from the first of a month on has that month, without the start; one from a step later has not.
  const auto of_january = [](Time start) {
    return calendar_means({start, 6 * kHour, 0, 130, Calendar::kNoLeap, {}}, CalendarUnit::kMonth);
  };
  EXPECT_EQ(of_january(0), (std::vector<CalendarMean>{{1, 123, {0, 31 * kDay}}}));
  EXPECT_TRUE(of_january(6 * kHour).empty());
}

TEST(StepMeans, LeaveOutWhatIsNotFinite) {
  StepMeans means;
  means.add(std::vector<double>{1, kNaN, kNaN, 1e8});
  means.add(std::vector<double>{2, 5, INFINITY, 1});
  means.add(std::vector<double>{6, 7, kNaN, 1});
  const std::vector<float> found = means.take();
  EXPECT_EQ(found[0], 3.0F);
  EXPECT_EQ(found[1], 6.0F);
  EXPECT_TRUE(std::isnan(found[2]));
  EXPECT_EQ(found[3], static_cast<float>((1e8 + 2) / 3)) << "in double precision";
  means.add(std::vector<double>{4, 4, 4, 4});
  EXPECT_EQ(means.take(), std::vector<float>(4, 4.0F)) << "what was taken is gone";
}

TEST(FirstNotFinite, IsThatOfTheEarliestStepOnAnyRank) {
  testing::run_test_ranks(3, [](Communicator& world) {
    FirstNotFinite none;
    EXPECT_FALSE(none.find(world).has_value());
    FirstNotFinite found;
    if (world.rank() == 0) {
      found.add(5, 0, 0, std::vector<double>{0, 3});
    } else if (world.rank() == 2) {
      found.add(4, 2, 6, std::vector<double>{0, 0});
      found.add(4, 2, 6, std::vector<double>{0, 1});
      found.add(4, 1, 8, std::vector<double>{2, 0});
      found.add(6, 0, 0, std::vector<double>{1, 1});
    }
    const std::optional<FirstNotFinite::Found> first = found.find(world);
    ASSERT_TRUE(first.has_value());
    EXPECT_EQ(first->count, 8);
    EXPECT_EQ(first->step, 4);
    EXPECT_EQ(first->start, 1);
    EXPECT_EQ(first->channel, 8);
  });
}

RestartModel some_model() {
  return {"0123456789abcdef",  7, Calendar::kStandard, false, 2, {3, 5}, {1, 4}, 3, true,
          {{90, 0}, {0, 288}}, 3};
}

/// Of channel number `number` of those that are kept, of a forecast, at a point; no float32.
double kept(RestartPart part, std::int64_t start, std::int64_t member, int number, std::int64_t point) {
  return static_cast<int>(part) + 10 * static_cast<double>(start) + 0.1 * static_cast<double>(member) +
         0.01 * number + 1e-9 * static_cast<double>(point);
}

/// Three starts of two members, whole rows but the first of them in one piece and the first in another.
void write_states(const std::string& path, const std::vector<Time>& starts) {
  const RestartModel model = some_model();
  RestartWriter file(model, starts, path);
  for (const auto& [part, channels] : model.parts()) {
    for (const auto& [row, rows] : {std::pair<std::int64_t, std::int64_t>{0, 1}, {1, 2}}) {
      // All starts but the last in one batch.
      for (const auto& [first, count] : {std::pair<std::int64_t, std::int64_t>{0, 2}, {2, 1}}) {
        PackedPiece<double> piece{{{0, row, 0, 0}, {count * 2, rows, 5, 6}}, {}, {}};
        piece.numbers.resize(channels.size());
        std::iota(piece.numbers.begin(), piece.numbers.end(), 0);
        for (const int number : piece.numbers)
          for (std::int64_t b = 0; b < count * 2; ++b)
            for (std::int64_t i = 0; i < rows * 5; ++i)
              piece.values.push_back(kept(part, first + b / 2, b % 2, number, row * 5 + i));
        file.write(part, first, piece);
      }
    }
  }
  file.close({12, 12, 5}, {17, 0, 4294967295});
}

TEST(RestartFile, GivesEveryPieceAsItWasKept) {
  const testing::TemporaryFolder folder;
  const std::vector<Time> starts = {3600, 86400, 1'000'000'000};
  write_states(folder.path() + "/forecast.nc.restart", starts);
  const RestartFile file(folder.path() + "/forecast.nc");
  EXPECT_EQ(file.starts(), starts);
  EXPECT_EQ(file.steps_of(86400), 12);
  EXPECT_EQ(file.steps_of(1'000'000'000), 5);
  EXPECT_EQ(file.most_steps(), 12);
  EXPECT_EQ(file.digest_of(3600), 17);
  EXPECT_EQ(file.digest_of(1'000'000'000), 4294967295);
  EXPECT_EQ(file.members(), 2);
  EXPECT_FALSE(file.position_of(7200).has_value());
  const RestartModel model = some_model();
  file.require(model);
  // Forecasts 1 to 3 of a batch of the last and the first start; columns 1 to 3, and channels from 1 on.
  const std::vector<Time> batch = {starts[2], starts[0]};
  const Box box{{1, 0, 1, 1}, {3, 3, 3, 4}};
  for (const auto& [part, channels] : model.parts()) {
    const std::vector<double> values = file.read(part, batch, channels, box);
    ASSERT_EQ(std::ssize(values), box.extent.count());
    std::size_t at = 0;
    for (std::int64_t b = 1; b < 4; ++b) {
      for (std::int64_t row = 0; row < 3; ++row) {
        for (std::int64_t column = 1; column < 4; ++column) {
          for (int channel = 1; channel < 5; ++channel) {
            const auto place = std::ranges::find(channels, channel);
            const double wanted = place == channels.end()
                                      ? 0
                                      : kept(part, b < 2 ? 2 : 0, b % 2,
                                             static_cast<int>(place - channels.begin()), row * 5 + column);
            ASSERT_EQ(values[at++], wanted) << static_cast<int>(part) << " " << b << " " << channel;
          }
        }
      }
    }
  }
}

TEST(RestartFile, IsOfOneModelAlone) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path() + "/forecast.nc.restart";
  write_states(path, {0, 3600, 7200});
  const RestartFile file(path);
  const auto expect = [&](const std::string& says, const auto& change) {
    RestartModel model = some_model();
    change(model);
    try {
      file.require(model);
      ADD_FAILURE() << "not refused: " << says;
    } catch (const CheckpointError& error) {
      EXPECT_NE(std::string(error.what()).find(says), std::string::npos) << error.what();
    }
  };
  expect("other weights", [](RestartModel& model) { model.digest = "0123456789abcdee"; });
  expect("another seed", [](RestartModel& model) { model.seed = 8; });
  expect("another calendar", [](RestartModel& model) { model.calendar = Calendar::kNoLeap; });
  expect("2 members, not 3", [](RestartModel& model) { model.members = 3; });
  expect("a grid of 3 x 5 points", [](RestartModel& model) { model.grid = {3, 6}; });
  expect("rows from 90 to 0 and columns from 0 to 288, and the data on one with rows from 0 to -90",
         [](RestartModel& model) {
           model.place.rows = {0, -90};
         });
  expect("columns from 10 to 298", [](RestartModel& model) { model.place.columns = {10, 298}; });
  expect("corners from 50, 1", [](RestartModel& model) {
    model.place = {{}, {}, {50, 1, 50, 9, 40, 1, 40, 9}};
  });
  expect("of member 3 of the data's ensemble, not 4", [](RestartModel& model) { model.member = 4; });
  expect("another model", [](RestartModel& model) { model.carried = {1, 3}; });
  expect("another model", [](RestartModel& model) { model.accumulates = false; });
  RestartModel without_digest = some_model();
  without_digest.digest = "";
  EXPECT_NO_THROW(file.require(without_digest)) << "rank 0 alone knows it";
  RestartModel turned = some_model();
  turned.member = std::nullopt;
  turned.place.columns = {360, 648};
  EXPECT_NO_THROW(file.require(turned)) << "files of one member need not say so";
}

TEST(RestartFile, WhatIsNoneIsOneSentence) {
  const testing::TemporaryFolder folder;
  EXPECT_THROW(RestartFile(folder.path() + "/none.nc"), ConfigError);
  testing::put_text(folder.path() + "/text.restart", "no states");
  EXPECT_THROW(RestartFile(folder.path() + "/text.restart"), DataError);
  {
    NetcdfOutput other(folder.path() + "/other.restart", NetcdfOutput::Format::kNetcdf4);
    const int time = other.add_dimension("time", 1);
    const int variable = other.add_variable("time", NetcdfOutput::Type::kDouble, {time});
    other.end_definitions();
    other.write(variable, std::vector<double>{0});
    other.close();
  }
  EXPECT_THROW(RestartFile(folder.path() + "/other.restart"), DataError);
}

/// Whatever ranks hold the pieces, and whatever is beside a sample; by any value, and by its place.
TEST(StartDigests, AreOfTheStateAlone) {
  const auto state = [](std::int64_t b, std::int64_t row, std::int64_t column, std::int64_t channel) {
    if (row == 1 && column == 2) return kNaN;
    return 280.0 + static_cast<double>(b) + 3.0 * static_cast<double>(row * 6 + column) +
           0.5 * static_cast<double>(channel);
  };
  using State = std::function<double(std::int64_t, std::int64_t, std::int64_t, std::int64_t)>;
  const auto digests = [&](int ranks, const State& value, const std::vector<bool>& counts) {
    std::vector<double> found;
    testing::run_test_ranks(ranks, [&](Communicator& world) {
      const std::int64_t columns = 6 / world.size();
      const Box box{{0, 0, world.rank() * columns, 0}, {2, 4, columns, 2}};
      std::vector<double> values;
      for (std::int64_t b = 0; b < 2; ++b)
        for (std::int64_t row = 0; row < 4; ++row)
          for (std::int64_t column = box.begin[2]; column < box.end(2); ++column)
            for (std::int64_t channel = 0; channel < 2; ++channel)
              values.push_back(value(b, row, column, channel));
      const std::vector<double> mine = start_digests(world, 2, box, values, counts);
      if (world.rank() == 0) found = mine;
    });
    return found;
  };
  const std::vector<bool> both = {true, true}, one = {true, false};
  const std::vector<double> wanted = digests(1, state, both);
  ASSERT_EQ(wanted.size(), 2U);
  EXPECT_NE(wanted[0], wanted[1]);
  EXPECT_EQ(digests(2, state, both), wanted);
  EXPECT_EQ(digests(3, state, both), wanted);
  const auto changed = [&](double by, std::int64_t of) {
    return [=](std::int64_t b, std::int64_t row, std::int64_t column, std::int64_t channel) {
      return state(b, row, column, channel) + (b == 1 && row == 2 && column == 3 && channel == of ? by : 0);
    };
  };
  EXPECT_EQ(digests(1, changed(0.1, 1), both)[0], wanted[0]);
  EXPECT_NE(digests(1, changed(0.1, 1), both)[1], wanted[1]);
  EXPECT_EQ(digests(1, changed(0.1, 1), one), digests(1, state, one)) << "of a channel that does not count";
  EXPECT_EQ(digests(1, changed(1e-12, 1), both), wanted) << "but for roundings";
  const auto swapped = [&](std::int64_t b, std::int64_t row, std::int64_t column, std::int64_t channel) {
    return state(b, row == 0 ? 3 : row == 3 ? 0 : row, column, channel);
  };
  EXPECT_NE(digests(1, swapped, both), wanted);
}

/// Three batches of two starts, of which the second was stopped.
TEST(StoppedForecasts, AreSaidWithTheOptionsThatMakeTheRest) {
  const std::vector<std::string> starts = {"A", "B", "C", "D", "E", "F"};
  ForecastsMade made;
  made.starts = 4;
  made.leads = 10;
  made.whole = 2;
  made.states = 4;
  made.step = 7;
  made.stopped = made.kept = true;
  const WrittenLeads each{0, 10, 1, false}, every{0, 10, 4, false}, means{0, 10, 1, true};
  EXPECT_EQ(stop_sentence(made, each, starts, "a b.nc", true),
            "stopped early behind step 7 of 10 of the forecasts from C on: a b.nc is incomplete and holds 4 "
            "of 6 forecasts; those from E on are not in it; the rest of those from C to D is made with "
            "another --output and --continue 'a b.nc' --steps 3 --start C D; all are made anew with "
            "--overwrite or --skip-existing");
  EXPECT_EQ(stop_comment(made, each, starts),
            "predict was stopped early, behind step 7 of 10 of the forecasts from C on; those before are "
            "whole; the forecasts from E on were not made");
  EXPECT_NE(stop_sentence(made, every, starts, "a.nc", true).find("--steps 3 --every 4 --start C D"),
            std::string::npos);
  EXPECT_NE(stop_sentence(made, means, starts, "a.nc", true).find("--steps 3 --mean 1 --start C D"),
            std::string::npos);
  const WrittenLeads months{0, 10, 1, true, "month", {{3, 7, {}}, {8, 10, {}}}};
  EXPECT_NE(stop_sentence(made, months, starts, "a.nc", true).find("--steps 3 --mean month --start C D"),
            std::string::npos);
  made.step = 9;
  EXPECT_EQ(stop_sentence(made, every, starts, "a.nc", true).find("--continue"), std::string::npos)
      << "no lead is left";
  made.kept = false;
  EXPECT_NE(stop_sentence(made, each, starts, "a.nc", true).find("no state was kept"), std::string::npos);
  // Between two batches.
  made.whole = made.starts;
  made.step = 10;
  EXPECT_EQ(
      stop_sentence(made, each, starts, "a.nc", true),
      "stopped early: a.nc is incomplete and holds 4 of 6 forecasts; those from E on are not in it; all "
      "are made anew with --overwrite or --skip-existing");
  // By --stop-outside, which the same command comes to again.
  made.outside = true;
  made.starts = made.whole = 6;
  EXPECT_EQ(stop_sentence(made, each, starts, "a.nc", true),
            "ended by --stop-outside: a.nc holds 6 of 6 forecasts");
  made.outside = false;
  made.starts = made.whole = 4;
  EXPECT_EQ(stop_comment(made, each, starts),
            "predict was stopped early; all that is here is whole; the forecasts from E on were not made");
  // Of one start.
  made = {};
  made.starts = made.leads = made.states = 1;
  made.step = 7;
  made.stopped = made.kept = true;
  EXPECT_EQ(stop_sentence(made, each, {"A"}, "a.nc", true),
            "stopped early behind step 7 of 10: a.nc is incomplete; the rest of those from A is made with "
            "another --output and --continue a.nc --steps 3; it is made anew with --overwrite or "
            "--skip-existing");
  made.kept = false;
  EXPECT_EQ(stop_sentence(made, each, {"A"}, "a.nc", true),
            "stopped early behind step 7 of 10: a.nc is incomplete; no state was kept to go on from; it is "
            "made anew with --overwrite or --skip-existing");
  // Before the first lead.
  made = {};
  made.step = 3;
  EXPECT_EQ(stop_sentence(made, every, starts, "a.nc", false),
            "stopped early behind step 3 of 10: no lead was whole by then, and there is no a.nc");
  EXPECT_EQ(stop_sentence(made, every, starts, "a.nc", true),
            "stopped early behind step 3 of 10: no lead was whole by then, and a.nc still is the file that "
            "was there before");
}

/// By what stop_comment() says in them.
TEST(StoppedForecasts, AreKnownByTheirFile) {
  const testing::TemporaryFolder folder;
  const auto file = [&](const char* name, const std::string& comment) {
    const std::string path = folder.path() + "/" + name;
    testing::NetcdfWriter writer(path);
    writer.text(NC_GLOBAL, "source",
                std::string_view(name) == "other.nc" ? "measured" : "jigsaw-train, a model");
    writer.text(NC_GLOBAL, "comment", comment);
    return path;
  };
  ForecastsMade made;
  made.starts = made.leads = 1;
  made.step = 1;
  made.stopped = true;
  const WrittenLeads leads{0, 10, 1, false};
  EXPECT_TRUE(is_cut_short(file("stopped.nc", stop_comment(made, leads, {"A"}))));
  made.outside = true;
  EXPECT_FALSE(is_cut_short(file("outside.nc", stop_comment(made, leads, {"A"}))))
      << "which the same command would make again";
  EXPECT_FALSE(is_cut_short(file("whole.nc", "")));
  const std::string table = folder.path() + "/places.csv";
  write_text_atomically(table, "start,time,lead_hours,station\nA,B,6,x\nA,C,12,x\n");
  EXPECT_FALSE(is_cut_short(table));
  made.outside = false;
  write_text_atomically(
      table, concat("start,time,lead_hours,station\nA,B,6,x\n# ", stop_comment(made, leads, {"A"}), "\n"));
  EXPECT_TRUE(is_cut_short(table));
  EXPECT_THROW(is_cut_short(file("other.nc", "")), ConfigError);
  for (const char* name : {"/text.nc", "/other.csv"}) {
    write_text_atomically(folder.path() + name, "name,latitude,longitude\n");
    EXPECT_THROW(is_cut_short(folder.path() + name), ConfigError) << name;
  }
  // Behind the last lead that is written nothing lacks.
  made.step = 9;
  EXPECT_EQ(stop_comment(made, {0, 10, 4, false}, {"A"}), "");
  made.step = 7;
  EXPECT_NE(stop_comment(made, {0, 10, 4, false}, {"A"}), "");
}

TEST(ForecastName, PromisesNoOtherFormat) {
  for (const char* name : {"f.zarr", "f.grib", "f.grb2", "f.nii.gz", "f.nc.restart", "f.restart"})
    EXPECT_THROW(require_netcdf_name(name, false), ConfigError) << name;
  for (const char* name : {"f.nc", "f.nc4", "f", "f.h5", "zarr/f.nc"})
    EXPECT_NO_THROW(require_netcdf_name(name, false)) << name;
}

}  // namespace long_forecasts_test
}  // namespace jigsaw
