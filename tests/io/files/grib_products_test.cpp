// What GRIB messages hold beside states at one time: products of ensembles, and sums and means over some
// time.
#include "fields/file_set.h"
#include "files/grib_file.h"
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

INSTANTIATE_TEST_SUITE_P(Editions, GribProducts, ::testing::Values(1, 2));

}  // namespace grib_file_test
}  // namespace jigsaw
