// Archives of forecasts as data: the state at a time is that of a forecast of one lead.
#include <gtest/gtest.h>

#include "base/error.h"
#include "fields/file_set.h"
#include "io/fixtures.h"
#include "io/netcdf_writer.h"
#include "support/temporary_folder.h"

namespace jigsaw {
namespace forecast_leads_test {

using testing::NetcdfWriter;

constexpr std::size_t kPoints = 6;
constexpr Time kFirst = 18628 * kDay;  // 2021-01-01
const Box kPlane{{0, 0}, {2, 3}};
const Field kT2m{"t2m", {}};

/// How a file says starts and leads, both in hours; of a list of one entry `scalar` is a coordinate without
/// a dimension.
struct Archive {
  std::vector<double> starts, leads;
  bool scalar_start = false, scalar_lead = false;
  std::string start_name = "time", lead_name = "step";
  std::string standard_name = "forecast_reference_time";  ///< of the starts
  bool valid = false;  ///< with valid_time along starts (and leads, where these are a dimension)
  bool leads_first = false;
};

/// What stands at a point of a forecast.
double value_of(double start, double lead, std::size_t point) {
  return 1000 * start + lead + 0.01 * static_cast<double>(point);
}

void write(const std::string& path, const Archive& made) {
  NetcdfWriter file(path);
  std::vector<int> starts, leads;
  if (!made.scalar_start) starts = {file.dimension(made.start_name, made.starts.size())};
  if (!made.scalar_lead) leads = {file.dimension(made.lead_name, made.leads.size())};
  const int rows = file.dimension("latitude", 2), columns = file.dimension("longitude", 3);
  std::vector<int> both = made.leads_first ? leads : starts;
  const std::vector<int>& second = made.leads_first ? starts : leads;
  both.insert(both.end(), second.begin(), second.end());
  std::vector<int> whole = both;
  whole.insert(whole.end(), {rows, columns});
  const int start = file.variable(made.start_name, NC_DOUBLE, starts),
            lead = file.variable(made.lead_name, NC_DOUBLE, leads),
            latitudes = file.variable("latitude", NC_DOUBLE, {rows}),
            longitudes = file.variable("longitude", NC_DOUBLE, {columns}),
            valid = made.valid ? file.variable("valid_time", NC_DOUBLE, both) : -1,
            field = file.variable("t2m", NC_DOUBLE, whole);
  file.text(start, "units", "hours since 2021-01-01");
  file.text(start, "standard_name", made.standard_name);
  file.text(lead, "units", "hours");
  file.text(lead, "standard_name", "forecast_period");
  file.text(latitudes, "units", "degrees_north");
  file.text(longitudes, "units", "degrees_east");
  if (made.valid) {
    file.text(valid, "units", "hours since 2021-01-01");
    file.text(valid, "standard_name", "time");
  }
  file.end();
  file.put(start, made.starts);
  file.put(lead, made.leads);
  file.put(latitudes, {10, 20});
  file.put(longitudes, {0, 5, 10});
  std::vector<double> values, times;
  const std::vector<double>&outer = made.leads_first ? made.leads : made.starts,
        &inner = made.leads_first ? made.starts : made.leads;
  for (const double one : outer) {
    for (const double other : inner) {
      const double from = made.leads_first ? other : one, ahead = made.leads_first ? one : other;
      times.push_back(from + ahead);
      for (std::size_t p = 0; p < kPoints; ++p) values.push_back(value_of(from, ahead, p));
    }
  }
  if (made.valid) file.put(valid, times);
  file.put(field, values);
}

class ForecastLeads : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }
  static FileSelection of_lead(std::optional<Time> lead) {
    FileSelection selection;
    selection.sources.names = {"t2m"};
    selection.sources.variables["t2m"].lead = lead;
    return selection;
  }
  /// Of each start the state at start + lead, at its time, and no other.
  static void expect_states(const std::vector<std::string>& paths, const std::vector<double>& starts,
                            double lead) {
    FileSet files(paths, of_lead(static_cast<Time>(lead) * kHour));
    files.select(kT2m, true);
    std::vector<Time> times;
    for (const double start : starts) times.push_back(kFirst + static_cast<Time>(start + lead) * kHour);
    EXPECT_EQ(files.times(kT2m), times);
    std::vector<double> values(kPoints);
    for (std::size_t i = 0; i < starts.size(); ++i) {
      files.read(kT2m, times[i], kPlane, values);
      for (std::size_t p = 0; p < kPoints; ++p)
        EXPECT_EQ(values[p], value_of(starts[i], lead, p)) << starts[i] << " " << p;
    }
  }

  const testing::TemporaryFolder folder_;
};

const std::vector<double> kStarts = {0, 12, 24}, kLeads = {0, 6, 12, 24};

TEST_F(ForecastLeads, OneOfSeveralIsTaken) {
  write(path("a.nc"), {.starts = kStarts, .leads = kLeads});
  write(path("valid.nc"), {.starts = kStarts, .leads = kLeads, .valid = true});
  write(path("turned.nc"), {.starts = kStarts, .leads = kLeads, .leads_first = true});
  write(path("names.nc"), {.starts = kStarts,
                           .leads = kLeads,
                           .start_name = "forecast_reference_time",
                           .lead_name = "forecast_period"});
  for (const char* name : {"a.nc", "valid.nc", "turned.nc", "names.nc"}) {
    SCOPED_TRACE(name);
    for (const double lead : kLeads) expect_states({path(name)}, kStarts, lead);
  }
}

TEST_F(ForecastLeads, AFileMayHoldOneStartOrOneLead) {
  for (const bool valid : {false, true}) {
    SCOPED_TRACE(valid);
    std::vector<std::string> starts, single;
    for (const double start : kStarts) {
      starts.push_back(path("start" + std::to_string(static_cast<int>(start)) + ".nc"));
      write(starts.back(), {.starts = {start}, .leads = kLeads, .scalar_start = true, .valid = valid});
      single.push_back(path("single" + std::to_string(static_cast<int>(start)) + ".nc"));
      write(single.back(), {.starts = {start}, .leads = kLeads, .valid = valid});
    }
    expect_states(starts, kStarts, 12);
    expect_states(single, kStarts, 12);
    // Files without the lead have no part in it.
    write(path("other.nc"), {.starts = {36}, .leads = {6, 24}, .valid = valid});
    single.push_back(path("other.nc"));
    expect_states(single, kStarts, 12);
    write(path("lead.nc"), {.starts = kStarts, .leads = {24}, .scalar_lead = true, .valid = valid});
    expect_states({path("lead.nc")}, kStarts, 24);
    write(path("entry.nc"), {.starts = kStarts, .leads = {24}, .valid = valid});
    expect_states({path("entry.nc")}, kStarts, 24);
  }
}

/// Where a file says what its one lead is of, nothing has to be chosen.
TEST_F(ForecastLeads, ValidTimesOfOneLeadAreTimes) {
  for (const bool scalar : {true, false}) {
    write(path("lead.nc"), {.starts = kStarts, .leads = {24}, .scalar_lead = scalar, .valid = true});
    FileSet files({path("lead.nc")});
    files.select(kT2m, true);
    EXPECT_EQ(files.times(kT2m),
              (std::vector<Time>{kFirst + 24 * kHour, kFirst + 36 * kHour, kFirst + 48 * kHour}))
        << scalar;
  }
}

TEST_F(ForecastLeads, StartsAreNotTakenForTimes) {
  const auto open = [&](const FileSelection& selection = {}) {
    FileSet files({path("lead.nc")}, selection);
    files.select(kT2m, true);
  };
  const auto message = [&](const FileSelection& selection) {
    return message_of<DataError>([&] { open(selection); });
  };
  const auto expect = [](const std::string& says, const std::vector<std::string>& parts) {
    for (const std::string& part : parts)
      EXPECT_NE(says.find(part), std::string::npos) << part << " is not in\n" << says;
  };
  write(path("lead.nc"), {.starts = kStarts, .leads = {24}, .scalar_lead = true});
  expect(message({}), {"t2m in ", "lead.nc is of forecasts of 24 h, and time counts when they began",
                       "{\"name\": \"t2m\", \"lead\": 24}"});
  // Nothing says whether they are starts.
  write(path("lead.nc"), {.starts = kStarts, .leads = {24}, .scalar_lead = true, .standard_name = ""});
  expect(message({}), {"is of forecasts of 24 h"});
  write(path("lead.nc"), {.starts = kStarts, .leads = {24}});
  expect(message({}), {"its dimension step has the one entry 24 hours", "`lead` of the variable"});
  write(path("lead.nc"), {.starts = kStarts, .leads = kLeads});
  expect(message({}), {"its dimension step has 4 entries, the leads of forecasts; `lead` of the variable"});
  expect(message(of_lead(18 * kHour)), {"t2m has no lead of 18 h in ", "leads there: 0 h, 6 h, 12 h, 24 h"});
  // A lead of nothing is a state, and so are times that are said to be those of states.
  write(path("lead.nc"), {.starts = kStarts, .leads = {0}, .scalar_lead = true});
  EXPECT_NO_THROW(open());
  write(path("lead.nc"), {.starts = kStarts, .leads = {24}, .scalar_lead = true, .standard_name = "time"});
  EXPECT_NO_THROW(open());
}

}  // namespace forecast_leads_test
}  // namespace jigsaw
