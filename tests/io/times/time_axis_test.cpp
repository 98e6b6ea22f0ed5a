#include "times/time_axis.h"

#include "base/error.h"
#include "io/fixtures.h"

namespace jigsaw {
namespace time_axis_test {

std::string decoded(double value, const std::string& units, const std::string& calendar = "") {
  return format_time(decode_times(std::vector{value}, units, calendar, "the time")[0]);
}

TEST(TimeAxis, ParsesDatesOfTheConfiguration) {
  EXPECT_EQ(parse_time("1970-01-01"), 0);
  EXPECT_EQ(parse_time("2019-03-01"), 1551398400);
  EXPECT_EQ(parse_time("2019-03-01T06:00"), 1551398400 + 6 * 3600);
  EXPECT_EQ(parse_time("2019-03-01T06"), 1551398400 + 6 * 3600);
  EXPECT_EQ(parse_time("2019-03-01 06:00:07Z"), 1551398400 + 6 * 3600 + 7);
  EXPECT_EQ(parse_time("1969-12-31T23:59:59"), -1);
  for (const char* bad : {"", "2019", "2019-13-01", "2019-02-29", "2019-03-01T", "2019-03-01T24:00",
                          "2019-03-01x", "1900-02-29", "-2019-03-01", "2019-03-01T24", "2019-03-01T06:"}) {
    EXPECT_FALSE(parse_time(bad)) << bad;
  }
  EXPECT_TRUE(parse_time("2000-02-29"));
}

TEST(TimeAxis, PeriodsCountTheirLastDayWhole) {
  const Period days = period("2019-03-01", "2019-03-24");
  EXPECT_TRUE(days.contains(at("2019-03-24T23:59:59")));
  EXPECT_FALSE(days.contains(at("2019-03-25")));
  EXPECT_EQ(format_period(days), "2019-03-01 to 2019-03-24");
  const Period hours = period("2019-03-01T06:00", "2019-03-24T12:00");
  EXPECT_EQ(hours.last, at("2019-03-24T12:00"));
  EXPECT_EQ(format_period(hours), "2019-03-01T06:00 to 2019-03-24T12:00");
}

// Reference: cftime.num2date.
TEST(TimeAxis, DecodesUnitsAndCalendars) {
  EXPECT_EQ(decoded(1044552, "hours since 1900-01-01 00:00:00.0", "gregorian"), "2019-03-01T00:00");
  EXPECT_EQ(decoded(1.25, "days since 2020-02-28"), "2020-02-29T06:00");
  EXPECT_EQ(decoded(90, "minutes since 2020-02-28T12:00:00Z"), "2020-02-28T13:30");
  EXPECT_EQ(decoded(-1, "seconds since 1970-01-01", "proleptic_gregorian"), "1969-12-31T23:59:59");
  EXPECT_EQ(decoded(0, "hours since 2020-01-01 00:00 +01:00"), "2019-12-31T23:00");
  EXPECT_EQ(decoded(1.0 / 3, "days since 2020-01-01"), "2020-01-01T08:00");
  // Just below a second, as 5/24 is in float32 and 13 minutes are in float64.
  EXPECT_EQ(decoded(5.0F / 24.0F, "days since 2020-01-01"), "2020-01-01T05:00");
  EXPECT_EQ(decoded(780.0 / 86400, "days since 2020-01-01"), "2020-01-01T00:13");
  EXPECT_EQ(decoded(-780.0 / 86400, "days since 2020-01-01"), "2019-12-31T23:47");
  EXPECT_EQ(decoded(737424, "days since 1-1-1", "proleptic_gregorian"), "2020-01-01T00:00");
  // The Julian calendar was two days behind the Gregorian in year 1.
  EXPECT_EQ(decoded(737426, "days since 1-1-1", "standard"), "2020-01-01T00:00");
}

// As CF has it (section 4.4): units and calendars in letters of either case.
TEST(TimeAxis, LettersMayBeOfEitherCase) {
  EXPECT_EQ(decoded(1.25, "Days Since 2020-02-28T00:00:00Z", "Gregorian"), "2020-02-29T06:00");
  EXPECT_EQ(decoded(6, "HOURS since 2020-02-28 UTC", "STANDARD"), "2020-02-28T06:00");
  EXPECT_EQ(decoded(737426, "days since 1-1-1", "Standard"), "2020-01-01T00:00");
  EXPECT_EQ(parse_calendar("NOLEAP", "it"), Calendar::kNoLeap);
  EXPECT_EQ(parse_calendar("360_Day", "it"), Calendar::k360Day);
  EXPECT_EQ(parse_calendar("Proleptic_Gregorian", "it"), Calendar::kStandard);
}

TEST(TimeAxis, PartsOfSecondsAndHoursAlone) {
  EXPECT_EQ(decoded(1551398400000, "milliseconds since 1970-01-01"), "2019-03-01T00:00");
  EXPECT_EQ(decoded(90e6, "microseconds since 2020-01-01"), "2020-01-01T00:01:30");
  EXPECT_EQ(decoded(3.6e12, "nanoseconds since 2020-01-01"), "2020-01-01T01:00");
  EXPECT_EQ(decoded(1, "days since 2000-01-01 12"), "2000-01-02T12:00");
  EXPECT_EQ(decoded(0, "days since 2000-01-01T6Z"), "2000-01-01T06:00");
  EXPECT_EQ(decoded(0, "days since 2000-01-01 12 +01:00"), "2000-01-01T11:00");
  EXPECT_THROW(decoded(1, "days since 2000-01-01 24"), DataError);
}

// As cftime has it, to the second.
/// Rounded, two states would have one time.
TEST(TimeAxis, TimesLessThanASecondApartAreRefused) {
  const auto decode = [](const std::vector<double>& values, const std::string& units) {
    return decode_times(values, units, "", "the time");
  };
  try {
    decode({0, 0.25, 0.5}, "seconds since 2000-01-01");
    FAIL() << "rounded";
  } catch (const DataError& error) {
    const std::string said = error.what();
    EXPECT_NE(said.find("the time holds 0 and 0.25"), std::string::npos) << said;
    EXPECT_NE(said.find("less than a second apart"), std::string::npos) << said;
  }
  EXPECT_THROW(decode({5e-6, 0}, "days since 2000-01-01"), DataError);
  EXPECT_THROW(decode({0, 0.6, 1.2}, "seconds since 2000-01-01"), DataError) << "0 and 1 s, if rounded";
  EXPECT_EQ(decode({1.5, 3, 4.5}, "seconds since 1970-01-01"), (std::vector<Time>{2, 3, 5}));
  EXPECT_EQ(decode({1, 1, 1 + 1e-8}, "days since 1970-01-01"), (std::vector<Time>{kDay, kDay, kDay}));
}

TEST(TimeAxis, DurationsAreTimesWithoutDates) {
  EXPECT_EQ(decode_times(std::vector{0.0, 1.5, 2.0}, "days", "noleap", "the time"),
            (std::vector<Time>{0, 36 * kHour, 2 * kDay}));
  EXPECT_EQ(decode_times(std::vector{-3.0}, "S", "", "the time"), std::vector<Time>{-3});
  EXPECT_EQ(calendar_of_times("hours", "noleap", "the time"), Calendar::kNone);
  EXPECT_EQ(calendar_of_times("hours since 2000-01-01", "noleap", "the time"), Calendar::kNoLeap);
  EXPECT_EQ(date_from_days(59, Calendar::kNone), (Date{1970, 3, 1}));
  EXPECT_EQ(days_from_date({1972, 3, 1}, Calendar::kNone), days_from_date({1972, 3, 1}, Calendar::kStandard));
}

/// As ICON writes them, and CDO absolute times.
TEST(TimeAxis, DatesMayBeNumbers) {
  const char* const units = "day as %Y%m%d.%f";
  EXPECT_EQ(decoded(20200131, units), "2020-01-31T00:00");
  EXPECT_EQ(decoded(20200229.25, units, "proleptic_gregorian"), "2020-02-29T06:00");
  EXPECT_EQ(decoded(19991231.0 + 1 / 24.0, units), "1999-12-31T01:00");
  EXPECT_EQ(decoded(20200131.9999999, units), "2020-02-01T00:00") << "rounded to whole seconds";
  EXPECT_EQ(decode_times(std::vector{20200131.75, 20200201.0}, units, "", "the time"),
            (std::vector<Time>{*parse_time("2020-01-31T18:00"), *parse_time("2020-02-01")}));
  EXPECT_EQ(decode_times(std::vector{20200230.5}, units, "360_day", "the time"),
            std::vector<Time>{days_from_date({2020, 2, 30}, Calendar::k360Day) * kDay + 12 * kHour});
  EXPECT_EQ(calendar_of_times(units, "noleap", "the time"), Calendar::kNoLeap);
  for (const double none : {20200230.0, 20201301.0, 20200100.5, 0.25, -20200101.0, 1e30, std::nan("")})
    EXPECT_THROW(decoded(none, units), DataError) << none;
  const std::string message = message_of<DataError>([&] { decoded(20200230.25, units); });
  EXPECT_NE(message.find("the time holds 20200230.25, which is no date of the calendar standard"),
            std::string::npos)
      << message;
  const std::string other = message_of<DataError>([] { decoded(202001.5, "month as %Y%m.%f"); });
  EXPECT_NE(other.find("cdo -r copy IN OUT"), std::string::npos) << other;
}

TEST(TimeAxis, OriginsMayHavePartsOfSeconds) {
  EXPECT_EQ(decoded(0.25, "seconds since 2000-01-01 00:00:15.25"), "2000-01-01T00:00:16");
  EXPECT_EQ(decoded(0.24, "seconds since 2000-01-01 00:00:15.25"), "2000-01-01T00:00:15");
  EXPECT_EQ(decoded(6, "hours since 2000-01-01 00:00:15.4"), "2000-01-01T06:00:15");
  EXPECT_EQ(decoded(6, "hours since 2000-01-01T00:00:59.999999999999Z"), "2000-01-01T06:01");
  // Halves go one way on both sides of the origin, so that steps stay even.
  EXPECT_EQ(decoded(-1, "hours since 2000-01-01 00:00:00.5"), "1999-12-31T23:00:01");
  EXPECT_EQ(decoded(0, "hours since 2000-01-01 00:00:00.5"), "2000-01-01T00:00:01");
  EXPECT_EQ(decoded(-1500, "milliseconds since 2000-01-01 00:00:15.5 +01:00"), "1999-12-31T23:00:14");
  EXPECT_EQ(decoded(1, "days since 2000-01-01 00:00:00.000000 UTC"), "2000-01-02T00:00");
  EXPECT_EQ(decoded(1, "days since 2000-01-01 00:00:07."), "2000-01-02T00:00:07");
  EXPECT_THROW(decoded(1, "days since 2000-01-01 00:00:15.5.5"), DataError);
  EXPECT_THROW(decoded(1, "days since 2000-01-01 00:00:15,5"), DataError);
  EXPECT_FALSE(parse_time("2000-01-01T00:00:15.5")) << "a period begins and ends at whole seconds";
}

TEST(TimeAxis, RefusesOriginsThatTheCalendarLacks) {
  const auto refusal = [](const char* units, const char* calendar) {
    return message_of<DataError>([&] { decoded(1, units, calendar); });
  };
  for (const char* const lost : {"days since 1582-10-05", "days since 1582-10-10", "days since 1582-10-14"}) {
    const std::string message = refusal(lost, "Gregorian");
    EXPECT_NE(message.find("the time counts from 1582-10-"), std::string::npos) << message;
    EXPECT_NE(message.find("Gregorian from 1582-10-15 on"), std::string::npos) << message;
    EXPECT_NO_THROW(decoded(1, lost, "proleptic_gregorian"));
  }
  EXPECT_EQ(decoded(1, "days since 1582-10-04"), "1582-10-15T00:00");
  EXPECT_EQ(decoded(0, "days since 1582-10-15"), "1582-10-15T00:00");
  EXPECT_EQ(decoded(1, "days since 1500-02-29"), decoded(0, "days since 1500-03-01"));
  EXPECT_THROW(decoded(1, "days since 1501-02-29"), DataError);
  const std::string message = refusal("days since 2020-02-29", "noleap");
  EXPECT_NE(message.find("counts from 2020-02-29, a day that the calendar noleap does not have"),
            std::string::npos)
      << message;
}

TEST(TimeAxis, RefusesWhatItCannotDecode) {
  EXPECT_THROW(decoded(1, "days since 2020-02-30", "noleap"), DataError);
  const auto has_unequal = [](const char* units, const char* calendar, const char* why) {
    return message_of<DataError>([&] { decoded(1, units, calendar); }).find(why) != std::string::npos;
  };
  EXPECT_TRUE(has_unequal("months since 2020-01-01", "",
                          "the calendar standard, in which months are not equally long"));
  EXPECT_TRUE(has_unequal("years since 2020-01-01", "julian",
                          "the calendar julian, in which years are not equally long"));
  EXPECT_THROW(decoded(1, "hours since 2020-01-01 00:00:00 +24:00"), DataError);
  EXPECT_THROW(decoded(1, "hours since 2020-01-01 00:00:00 -01:60"), DataError);
  EXPECT_THROW(decoded(1, "days since"), DataError);
  EXPECT_THROW(decoded(1, "1"), DataError);
  EXPECT_THROW(decoded(1, ""), DataError);
  EXPECT_THROW(decoded(1, "days since yesterday"), DataError);
  EXPECT_THROW(decoded(1e30, "days since 2020-01-01"), DataError);
  EXPECT_THROW(decoded(std::nan(""), "days since 2020-01-01"), DataError);
  EXPECT_NE(message_of<DataError>([] { decoded(1, "days since 2020-01-01", "lunar"); }).find("lunar"),
            std::string::npos);
}

// Reference: cftime.num2date.
TEST(TimeAxis, CountsInTheCalendarOfTheFiles) {
  const auto decoded_in = [](double value, const std::string& units, const std::string& calendar) {
    const Calendar known = parse_calendar(calendar, "it");
    return format_time(decode_times(std::vector{value}, units, calendar, "the time")[0], known);
  };
  EXPECT_EQ(decoded_in(59, "days since 2020-01-01", "noleap"), "2020-03-01T00:00");
  EXPECT_EQ(decoded_in(60000.25, "days since 1850-01-01", "365_day"), "2014-05-21T06:00");
  EXPECT_EQ(decoded_in(59, "days since 2021-01-01", "all_leap"), "2021-02-29T00:00");
  EXPECT_EQ(decoded_in(59, "days since 2020-01-01", "360_day"), "2020-02-30T00:00");
  EXPECT_EQ(decoded_in(-1, "days since 1850-01-01", "360_day"), "1849-12-30T00:00");
  EXPECT_EQ(decoded_in(1, "hours since 1999-02-30 23:00", "360_day"), "1999-03-01T00:00");
  EXPECT_EQ(decoded_in(1.5, "months since 1960-01-01", "360"), "1960-02-16T00:00");
  EXPECT_EQ(decoded_in(-2, "Years since 1960-01-01", "360_day"), "1958-01-01T00:00");
  EXPECT_EQ(decoded_in(3, "years since 2019-03-01", "noleap"), "2022-03-01T00:00");
  EXPECT_EQ(decoded_in(-1, "years since 2020-02-29", "366_day"), "2019-02-29T00:00");
  EXPECT_EQ(decoded_in(59, "days since 1900-01-01", "julian"), "1900-02-29T00:00");
  EXPECT_EQ(decoded_in(1.25, "days since 2100-02-28", "Julian"), "2100-02-29T06:00");
  EXPECT_EQ(decoded_in(-200000, "days since 1970-01-01", "julian"), "1422-06-07T00:00");
  EXPECT_EQ(decoded_in(1560000000, "seconds since 1970-01-01 00:00:00 UTC", "julian"), "2019-06-08T13:20");
  EXPECT_DOUBLE_EQ(year_fraction(days_from_date({2001, 2, 30}, Calendar::k360Day) * kDay, Calendar::k360Day),
                   59.0 / 360);
  EXPECT_DOUBLE_EQ(year_fraction(days_from_date({2020, 3, 1}, Calendar::kNoLeap) * kDay, Calendar::kNoLeap),
                   59.0 / 365);
}

TEST(TimeAxis, EveryCalendarCountsThereAndBack) {
  for (const Calendar calendar :
       {Calendar::kStandard, Calendar::kNoLeap, Calendar::kAllLeap, Calendar::k360Day, Calendar::kJulian}) {
    constexpr std::int64_t kFirst = -30000, kEnd = 50000;  // 1900 and 2100 are among the years
    Date date = date_from_days(kFirst, calendar);
    for (std::int64_t days = kFirst; days < kEnd; ++days) {
      ASSERT_EQ(date_from_days(days, calendar), date) << name(calendar);
      ASSERT_EQ(days_from_date(date, calendar), days) << name(calendar);
      if (++date.day <= days_in_month(date.year, date.month, calendar)) continue;
      date.day = 1;
      if (++date.month == 13) date = {date.year + 1, 1, 1};
    }
  }
}

TEST(TimeAxis, PeriodsHoldTheDaysOfTheCalendar) {
  const auto days = [](const char* first, const char* last, Calendar calendar) {
    const Period found = parse_dates(first, last)->in(calendar, "data.train");
    return format_period(found, calendar);
  };
  EXPECT_EQ(days("2019-02-28", "2019-12-31", Calendar::kNoLeap), "2019-02-28 to 2019-12-31");
  EXPECT_EQ(days("2019-02-30", "2019-12-31", Calendar::k360Day), "2019-02-30 to 2019-12-30");
  EXPECT_EQ(days("2019-01-31", "2019-12-30T06:00", Calendar::k360Day), "2019-02-01 to 2019-12-30T06:00");
  EXPECT_EQ(days("2020-02-29", "2020-02-29", Calendar::kStandard), "2020-02-29 to 2020-02-29");
  EXPECT_EQ(days("2020-02-29", "2020-03-01", Calendar::kNoLeap), "2020-03-01 to 2020-03-01");
  EXPECT_NE(message_of<ConfigError>([&] {
              days("2019-02-01", "2019-02-30", Calendar::kStandard);
            }).find("data.train names 2019-02-30"),
            std::string::npos);
  EXPECT_FALSE(parse_dates("2019-02-31", "2019-03-01"));
}

TEST(TimeAxis, YearFractionsKnowLeapYears) {
  EXPECT_EQ(year_fraction(at("2020-01-01")), 0);
  EXPECT_DOUBLE_EQ(year_fraction(at("2020-07-01T12:00")), 182.5 / 366);
  EXPECT_DOUBLE_EQ(year_fraction(at("2019-12-31T12:00")), 364.5 / 365);
}

// The months of a leap year in several calendars.
TEST(TimeAxis, MonthsFollowOneAnother) {
  for (const Calendar calendar :
       {Calendar::kStandard, Calendar::kNoLeap, Calendar::k360Day, Calendar::kJulian}) {
    Time last = 0;
    for (std::int64_t month = 1; month <= 12; ++month) {
      const std::int64_t days = days_in_month(2004, month, calendar);
      const Time begin = days_from_date({2004, month, 1}, calendar) * kDay, end = begin + days * kDay - 1;
      EXPECT_EQ(month_of(begin, calendar), month_of(end, calendar));
      EXPECT_EQ(middle_of_month(month_of(end, calendar), calendar), begin + days * kDay / 2);
      if (month > 1) {
        EXPECT_EQ(month_of(begin, calendar), last + kMonth) << month;
      }
      last = month_of(begin, calendar);
    }
    EXPECT_EQ(format_time(last, Calendar::k360Day), "2004-12-16T00:00");
  }
  EXPECT_EQ(month_of(-1, Calendar::kStandard) + kMonth, month_of(0, Calendar::kStandard));
}

}  // namespace time_axis_test
}  // namespace jigsaw
