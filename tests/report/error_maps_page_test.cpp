// Maps that evaluate writes, in the page, and files of which it has none.
#include <gtest/gtest.h>
#include <netcdf.h>

#include "base/error.h"
#include "base/text.h"
#include "io/netcdf_writer.h"
#include "report/page.h"
#include "report/written_run.h"
#include "support/error_of.h"

namespace jigsaw {
namespace error_maps_page_test {

using testing::count_of;
using testing::faults_of;
using testing::WrittenRun;

/// A file of maps of 3 × 4 points along a dimension of so many, each of the kinds with the same numbers.
void write_maps(const std::string& path, const char* along, std::size_t count, const std::string& names,
                const std::vector<const char*>& kinds) {
  testing::NetcdfWriter file(path);
  const int group = file.dimension(along, count), y = file.dimension("latitude", 3),
            x = file.dimension("longitude", 4);
  const int groups = file.variable(along, NC_INT, {group}), of_y = file.variable("latitude", NC_DOUBLE, {y}),
            of_x = file.variable("longitude", NC_DOUBLE, {x});
  if (names.empty()) {
    file.text(groups, "units", "hours");
  } else {
    file.text(groups, "flag_meanings", names);
  }
  std::vector<int> variables;
  for (const char* kind : kinds) {
    variables.push_back(file.variable(kind, NC_FLOAT, {group, y, x}));
    file.text(variables.back(), "units", "K");
  }
  file.end();
  std::vector<double> places, values;
  for (std::size_t i = 0; i < count; ++i) places.push_back(6.0 * static_cast<double>(i + 1));
  for (std::size_t i = 0; i < 12 * count; ++i) values.push_back(static_cast<double>(i % 12));
  file.put(groups, places);
  file.put(of_y, {10, 20, 30});
  file.put(of_x, {10, 20, 30, 40});
  for (const int variable : variables) file.put(variable, values);
}

std::string page_of(const WrittenRun& run, const std::string& path) {
  return report_page({{run.path}, "", "", "", path});
}

TEST(ReportMaps, OfErrorsAreOfTheFirstAndTheLastLead) {
  const WrittenRun run;
  const std::string path = run.folder.path() + "/errors.nc";
  write_maps(path, "lead_time", 3, "",
             {"t2m_bias", "t2m_rmse", "t2m_count", "u10_bias", "u10_rmse", "u10_spread"});
  const std::string page = page_of(run, path);
  EXPECT_EQ(faults_of(page), std::vector<std::string>());
  const std::size_t second = page.find("<figure id=\"fig-maps-u10\">");
  const std::string t2m = page.substr(page.find("<figure id=\"fig-maps-t2m\">"), second),
                    u10 = page.substr(second);
  for (const char* title : {">t2m: bias, 6 h</text>", ">t2m: bias, 18 h</text>", ">t2m: RMSE, 6 h</text>"})
    EXPECT_NE(t2m.find(title), std::string::npos) << title;
  EXPECT_EQ(page.find(", 12 h</text>"), std::string::npos);
  EXPECT_NE(u10.find(">u10: spread, 18 h</text>"), std::string::npos);
  EXPECT_NE(t2m.find("-11"), std::string::npos) << "colours of the bias are around 0";
}

TEST(ReportMaps, OfAClimateAreOfItsGroups) {
  const WrittenRun run;
  const std::string path = run.folder.path() + "/climate.nc";
  write_maps(path, "climate_group", 5, "all DJF MAM JJA SON", {"t2m_mean", "t2m_bias"});
  const std::string page = page_of(run, path);
  EXPECT_EQ(faults_of(page), std::vector<std::string>());
  for (const char* group : {"all", "DJF", "MAM", "JJA", "SON"})
    EXPECT_EQ(count_of(page, concat(">t2m: bias, ", group, "</text>")), 1) << group;
}

TEST(ReportMaps, OtherFilesAreRefused) {
  const WrittenRun run;
  const std::string path = run.folder.path() + "/forecast.nc";
  write_maps(path, "time", 1, "", {"t2m"});
  const auto said = [&](const std::string& file) {
    return testing::error_of<DataError>([&] { page_of(run, file); });
  };
  EXPECT_NE(said(path).find("holds no maps as evaluate writes them: it has no lead_time and climate_group"),
            std::string::npos);
  write_maps(path + "2", "lead_time", 1, "", {"t2m"});
  EXPECT_NE(said(path + "2").find("holds no maps as evaluate writes them: none ends in _bias"),
            std::string::npos);
}

/// As predict writes them.
TEST(ReportMaps, SaysThatForecastsOfSequencesAreNotDrawn) {
  const WrittenRun run;
  const std::string path = run.folder.path() + "/sequences.nc";
  {
    testing::NetcdfWriter file(path);
    const int sample = file.dimension("sample", 1), time = file.dimension("time", 2),
              height = file.dimension("height", 2), width = file.dimension("width", 2);
    const int times = file.variable("time", NC_DOUBLE, {time}),
              density = file.variable("density", NC_DOUBLE, {sample, time, height, width});
    file.end();
    file.put(times, std::vector<double>{1, 2});
    file.put(density, {1, 2, 3, 4, 5, 6, 7, 8});
  }
  const std::string why = testing::error_of<DataError>([&] { report_page({{run.path}, "", "", path}); });
  EXPECT_NE(why.find("sequences.nc holds no forecasts of fields as predict writes them: it has no lead_time; "
                     "those of sequences are not drawn"),
            std::string::npos)
      << why;
}

}  // namespace error_maps_page_test
}  // namespace jigsaw
