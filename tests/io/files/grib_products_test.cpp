// What GRIB messages hold beside states at one time: products of ensembles, and sums and means over some
// time.
#include "fields/file_set.h"
#include "fields/forecast_axes.h"
#include "files/grib_file.h"
#include "files/grib_handle.h"
#include "files/value_kinds.h"
#include "io/files/grib_fixture.h"

namespace jigsaw {
namespace grib_file_test {

class GribProducts : public Grib {
 protected:
  /// In edition 1 by ECMWF's type.
  Spec derived(const std::string& type, long product, long kind) const {
    Spec result = surface();
    result.type = GetParam() == 1 ? type : "";
    if (GetParam() == 2) {
      result.product = product;
      result.more = {{"derivedForecast", kind}};
    }
    return result;
  }
  /// Over steps, "0-6".
  Spec over(const std::string& range, const std::string& step_type) const {
    Spec result = surface();
    result.product = 8;
    result.step_type = step_type;
    result.range = range;
    if (step_type == "accum") {
      result.name = "tp";
      result.level_type = "surface";
      result.level = 0;
    }
    return result;
  }
  std::string refusal_of(const std::string& bytes, const std::string& variable) const {
    put_text(in("refused.grib"), bytes);
    return refusal([&] {
      GribFile file(in("refused.grib"));
      read(file, variable);
    });
  }
};

TEST_P(GribProducts, OfAnEnsembleAreVariablesOfTheirOwn) {
  Spec plain = surface(), spread = derived("es", 2, 4), mean = derived("em", 2, 0);
  plain.time = 600;
  put_text(in("a.grib"),
           message(plain, field(plain)) + message(spread, field(spread)) + message(mean, field(mean)));
  GribFile file(in("a.grib"));
  expect_near(read(file, "2t"), field(plain));
  expect_near(read(file, "2t_spread"), field(spread));
  expect_near(read(file, "2t_mean"), field(mean));
  EXPECT_EQ(file.find("2t_spread")->text("standard_name"), "");
  EXPECT_EQ(file.find("2t_spread")->text("units"), "K");
}

TEST_P(GribProducts, ThatAreProbabilitiesHaveTheirLimitsInTheirNames) {
  if (GetParam() == 1) GTEST_SKIP() << "edition 1 has no template of probabilities";
  Spec plain = surface(), frost = surface(), tenth = surface(), error = surface();
  frost.product = 5;
  frost.more = {{"probabilityType", 1}, {"scaleFactorOfUpperLimit", 2}, {"scaledValueOfUpperLimit", 27315}};
  tenth.product = 6;
  tenth.more = {{"percentileValue", 10}};
  error.product = 7;
  std::string bytes;
  for (const Spec& each : {plain, frost, tenth, error}) bytes += message(each, field(each));
  put_text(in("a.grib"), bytes);
  GribFile file(in("a.grib"));
  for (const char* name : {"2t", "2t_probability_above_273.15", "2t_percentile_10", "2t_error"})
    EXPECT_NE(file.find(name), nullptr) << name;
  EXPECT_EQ(file.find("2t_probability_above_273.15")->text("units"), "%");
}

TEST_P(GribProducts, ThatMeetAtOneTimeAreNamedByTheKeyInWhichTheyDiffer) {
  Spec here = surface(), there = surface();
  const char* const key = GetParam() == 1 ? "generatingProcessIdentifier" : "typeOfProcessedData";
  here.more = {{key, 1}};
  there.more = {{key, 2}};
  put_text(in("a.grib"), message(here, field(here)) + message(there, field(there)));
  const std::string said = refusal([&] {
    GribFile file(in("a.grib"));
    read(file, "2t");
  });
  EXPECT_NE(said.find("it has two messages of 2020-01-01T00:00, at bytes 0 and "), std::string::npos) << said;
  EXPECT_NE(said.find(concat("of the file, which differ in ", GetParam() == 1 ? key : "dataType", " ")),
            std::string::npos)
      << said;
  EXPECT_NE(said.find("grib_copy -w KEY=VALUE IN OUT"), std::string::npos) << said;
}

TEST_P(GribProducts, SayHowTheyWereMadeInTime) {
  for (const auto& [type, method] : {std::pair{"accum", "time: sum"},
                                     {"avg", "time: mean"},
                                     {"max", "time: maximum"},
                                     {"min", "time: minimum"}}) {
    if (GetParam() == 1 && type[0] == 'm') continue;  // which edition 1 does not tell apart
    const Spec spec = over("6-12", type);
    put_text(in("a.grib"), message(spec, field(spec)));
    GribFile file(in("a.grib"));
    const auto found = std::ranges::find_if(
        file.variables(), [](const FileVariable& variable) { return variable.shape.rank() > 2; });
    ASSERT_NE(found, file.variables().end()) << type;
    EXPECT_EQ(found->text("cell_methods"), method);
    EXPECT_EQ(time_range(*found), 6);
  }
  const Spec state = surface();
  put_text(in("a.grib"), message(state, field(state)));
  GribFile file(in("a.grib"));
  EXPECT_EQ(file.find("2t")->text("cell_methods"), "time: point");
  EXPECT_EQ(time_range(*file.find("2t")), 0);
}

/// Buckets of GFS, and sums from the beginning of a run.
TEST_P(GribProducts, OverTimesOfSeveralLengthsAreRefused) {
  for (const auto& [ranges, told] : {std::pair{std::vector<std::string>{"0-3", "0-6", "6-9"}, "3, 6"},
                                     {{"0-6", "0-12", "0-18"}, "6, 12, 18"}}) {
    std::string bytes;
    for (const std::string& range : ranges) {
      const Spec spec = over(range, "accum");
      bytes += message(spec, field(spec));
    }
    EXPECT_NE(refusal_of(bytes, "tp")
                  .find(concat("its messages (accum) are over times of several lengths, of ", told,
                               " hours; choose those of one")),
              std::string::npos);
  }
  std::string equal, months;
  for (const char* range : {"0-6", "6-12", "12-18"}) {
    const Spec spec = over(range, "accum");
    equal += message(spec, field(spec));
  }
  Spec january = over("0-744", "avg"), february = over("0-696", "avg");
  february.date = 20200201;
  put_text(in("equal.grib"), equal);
  put_text(in("months.grib"), message(january, field(january)) + message(february, field(february)));
  EXPECT_EQ(GribFile(in("equal.grib")).find("tp")->shape, (Shape{3, kRows, kColumns}));
  EXPECT_EQ(GribFile(in("months.grib")).variables().back().shape, (Shape{2, kRows, kColumns}));
}

/// So that a forecast of sums says over which time they are, and a mean of January is one of January, whose
/// time is the first moment of February.
TEST_P(GribProducts, HaveTheBoundsOfTheirTimes) {
  const Spec state = surface(), sum = over("6-12", "accum"), mean = over("0-744", "avg");
  put_text(in("sums.grib"), message(state, field(state)) + message(sum, field(sum)));
  GribFile file(in("sums.grib"));
  EXPECT_EQ(file.find("2t")->dimensions[0], "time");
  EXPECT_EQ(file.find("tp")->dimensions[0], "time_2");
  EXPECT_EQ(file.find("time")->text("bounds"), "");
  EXPECT_EQ(file.find("time_2")->text("bounds"), "time_2_bnds");
  EXPECT_EQ(read(file, "time_2_bnds"), (std::vector<double>{1577836800 + 6 * 3600, 1577836800 + 12 * 3600}));
  FileSet files({in("sums.grib")});
  files.select({"tp", {}}, true);
  const std::optional<Period> limits = files.time_limits({"tp", {}});
  ASSERT_TRUE(limits.has_value());
  EXPECT_EQ(limits->first, -6 * kHour);
  EXPECT_EQ(limits->last, 0);

  put_text(in("month.grib"), message(mean, field(mean)));
  FileSelection months;
  months.time_step.month = true;
  FileSet monthly({in("month.grib")}, months);
  const std::string name = monthly.catalogue().front().name;
  monthly.select({name, {}}, true);
  EXPECT_EQ(monthly.text_of(monthly.times({name, {}})[0]), "2020-01");
}

TEST_P(GribProducts, AreNoSeriesWithStatesAndOtherLengthsOfOtherFiles) {
  Spec state = surface(), mean = over("6-12", "avg"), shorter = over("0-3", "accum"),
       longer = over("3-9", "accum");
  state.name = mean.name = "t";  // which sums have, too
  state.level_type = mean.level_type = "surface";
  state.level = mean.level = 0;
  for (const auto& [name, spec] :
       {std::pair{"state", state}, {"mean", mean}, {"shorter", shorter}, {"longer", longer}})
    put_text(in(concat(name, ".grib")), message(spec, field(spec)));
  EXPECT_EQ(
      refusal([&] {
        FileSet files({in("state.grib"), in("mean.grib")});
        files.select({"t", {}}, true);
      }),
      concat("t in ", in("state.grib"), " is of the method \"point\" in time (cell_methods), and in ",
             in("mean.grib"),
             " of \"mean\"; leave one of the files out, or make of them two variables in data.variables, "
             "each with `files` of its own"));
  EXPECT_NE(refusal([&] {
              FileSet files({in("shorter.grib"), in("longer.grib")});
              files.select({"tp", {}}, true);
            }).find(concat("is over 3 hours each, and in ", in("longer.grib"), " over 6; ")),
            std::string::npos);
}

/// By commands whose results are read, or by none.
TEST(GribGrids, ThatAreNotReadAreRefusedWithWhatHelps) {
  EXPECT_EQ(conversion("lambert", false, "a b.grib"),
            "convert it with: cdo -f nc4 -setgridtype,curvilinear 'a b.grib' 'a b.nc'");
  EXPECT_EQ(conversion("sh", false, "a.grib"), "convert it with: cdo -f nc4 -sp2gpl a.grib a.nc");
  EXPECT_EQ(
      conversion("unstructured_grid", false, "a.grib"),
      "convert it with: cdo -f nc4 -setgrid,GRIDFILE a.grib a.nc, where GRIDFILE is the model's own file of "
      "its grid");
  for (const char* grid : {"reduced_ll", "rotated_gg", "reduced_rotated_gg"})
    EXPECT_EQ(conversion(grid, false, "a.grib").find("cdo"), std::string::npos) << grid;
  EXPECT_EQ(conversion("lambert", true, "a.grib").find("cdo"), std::string::npos);
}

/// The times of a file of forecasts are those that they are of.
TEST_P(GribProducts, OfOneRunOrOneLeadSayWhenTheyStart) {
  const auto value_of = [](GribFile& file, const char* name) {
    const FileVariable* const scalar = file.find(name);
    return scalar == nullptr ? kNaN : file.read_all(*scalar).at(0);
  };
  constexpr double kFirst = 18262 * 86400.0;  // 2020-01-01
  {
    std::string bytes;
    for (const long step : {6, 12}) {
      Spec spec = surface();
      spec.step = step;
      bytes += message(spec, field(spec));
    }
    put_text(in("a.grib"), bytes);
    GribFile file(in("a.grib"));
    EXPECT_EQ(value_of(file, "forecast_reference_time"), kFirst);
    EXPECT_TRUE(std::isnan(value_of(file, "forecast_period")));
    DataFile axes(std::make_unique<GribFile>(in("a.grib")));
    const ForecastAxes found = forecast_axes(axes, *axes.file().find("2t"));
    EXPECT_EQ(found.starts, (std::vector<Time>{18262 * kDay}));
    EXPECT_EQ(found.leads, (std::vector<Time>{6 * kHour, 12 * kHour}));
  }
  {
    std::string bytes;
    for (const long day : {1, 2}) {
      Spec spec = surface();
      spec.date = 20200100 + day;
      spec.step = 6;
      bytes += message(spec, field(spec));
    }
    put_text(in("b.grib"), bytes);
    GribFile file(in("b.grib"));
    EXPECT_TRUE(std::isnan(value_of(file, "forecast_reference_time")));
    EXPECT_EQ(value_of(file, "forecast_period"), 6);
    DataFile axes(std::make_unique<GribFile>(in("b.grib")));
    const ForecastAxes found = forecast_axes(axes, *axes.file().find("2t"));
    EXPECT_EQ(found.starts, (std::vector<Time>{18262 * kDay, 18263 * kDay}));
    EXPECT_EQ(found.leads, (std::vector<Time>{6 * kHour}));
  }
  // Analyses have none.
  const Spec analysis = surface();
  put_text(in("c.grib"), message(analysis, field(analysis)));
  GribFile file(in("c.grib"));
  EXPECT_TRUE(std::isnan(value_of(file, "forecast_reference_time")));
}

TEST(TimeMethods, AreThoseOfOneDimension) {
  EXPECT_EQ(method_along("area: mean time: sum", "time"), "sum");
  EXPECT_EQ(method_along("area: time: mean (interval: 1 hour comment: time: no)", "time"), "mean");
  EXPECT_EQ(method_along("time: maximum within days time: mean over days", "time"),
            "maximum within days, mean over days");
  EXPECT_EQ(method_along("area: mean", "time"), "");
  EXPECT_EQ(method_along("", "time"), "");
  EXPECT_TRUE(same_time_range(28 * 24, 31 * 24));
  EXPECT_FALSE(same_time_range(3, 6));
}

INSTANTIATE_TEST_SUITE_P(Editions, GribProducts, ::testing::Values(1, 2));

}  // namespace grib_file_test
}  // namespace jigsaw
