#pragma once
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fields/file_set.h"
#include "files/netcdf_output.h"
#include "predict/output_file.h"
#include "predict/written_fields.h"
#include "predict/written_leads.h"

namespace jigsaw::inline predict {

/// What leads are counted in: months, or the largest of hours, minutes and seconds of which each is a whole
/// number.
struct LeadUnit {
  const char* name;
  Time seconds;  ///< of months those of kMonth
};
LeadUnit lead_unit(Time lead_time, bool of_months);
/// What a variable of leads is.
void add_lead_attributes(NetcdfOutput& file, int variable, const LeadUnit& unit);

/// What a file of forecasts holds.
struct ForecastContents {
  std::vector<Time> starts;    ///< ascending
  Time lead_time = 6 * kHour;  ///< of a step
  WrittenLeads leads;
  std::vector<Field> fields;
  /// Each level is a variable of its own, t_850: for programs that take four dimensions at most.
  bool split_levels = false;
  std::map<std::string, std::string> attributes;  ///< of the whole file
  std::int64_t members = 1;                       ///< of the ensemble that the model makes
  bool time_series = false;                       ///< of one start alone: its leads are times
  const NamedPlaces* places = nullptr;            ///< in place of rows and columns; null: those
  /// How much before `starts` began what the model was given: `time` is then that, and leads count from it.
  Time begun = 0;  ///< DataOptions::lead_of_inputs()
};

/// From where to where the states of all fields hold, from their times, where the input says that by bounds
/// and it is the same for all that it has; of months no matter what. @param files  have the fields selected.
std::optional<Period> limits_of_all(FileSet& files, const std::vector<Field>& fields);

/// A CF-1.10 NetCDF-4 file of forecasts in physical units: each variable is float
/// [time, lead_time, level, latitude, longitude], without the level where it has none. `time` is when a
/// forecast starts, `valid_time` [time, lead_time] what it is of, an auxiliary coordinate of each variable;
/// so is the member of an ensemble, a number. What a model makes several members of has a dimension for them
/// behind the leads, `number`, from 0 on. Variables have the attributes of the input that say what they
/// are (files/field_attributes.h). Rows, columns and levels are those of WrittenFields. Times and leads are
/// dimensions that grow, so that a file may end early. For one thread at a time.
///
/// Where the times of the input have bounds, all of one length, as of daily means, so has `valid_time`.
///
/// Means over steps have `lead_time` and `valid_time` of the last of them, with bounds from that of the step
/// before the first (of months from the first's beginning to the last's end; of means over periods of the
/// calendar those of the period), and cell_methods that say so.
///
/// Of places in place of rows and columns variables are float [time, lead_time, level, station] (PlaceAxis).
///
/// A time series has the dimension `time`, what the forecast is of (of means the middle of their bounds), in
/// place of start and lead, and the start as a scalar coordinate, `forecast_reference_time`.
///
/// Every failure is a DataError that names the file.
class ForecastFile {
 public:
  /// @param files  have the fields selected.
  /// @param overlap  forecasts that are written at the same time: chunks are kept for that many.
  ForecastFile(FileSet& files, const ForecastContents& contents, OutputFile& output, std::int64_t overlap);

  /// Rows and columns `box` [H, W], or places, of field number `field` of the contents, of the forecast from
  /// starts[start] at lead number `lead` of the contents, of one of the members. What is not finite is
  /// missing.
  void write(std::size_t field, std::int64_t start, std::int64_t lead, const Box& box,
             std::span<float> values, std::int64_t member = 0);
  /// Says something of the whole file, which is not closed yet.
  void add_comment(const std::string& text) { file_.add_text(NetcdfOutput::kFile, "comment", text); }
  /// Closes it; it has the first of its starts and leads. What is written lies in them; what is not is
  /// missing.
  void close(std::int64_t starts, std::int64_t leads);
  /// Closes the whole and gives it its name. @return its bytes.
  std::int64_t finish();

 private:
  /// As they are written: `valid` [starts, leads], `bounds` [starts, leads, 2] or none.
  struct Times {
    std::string units;
    LeadUnit of_leads;
    std::vector<double> starts, valid, bounds, lead_bounds;
    std::vector<int> leads;
    std::string cell_methods;  ///< of means, what they are over
  };

  Times times_of(const ForecastContents& contents, Calendar calendar,
                 const std::optional<Period>& limits) const;
  Period span_of(const ForecastContents& contents, const std::optional<Period>& limits, int lead) const;
  void add_leads(const ForecastContents& contents, const std::optional<Period>& limits, Times& times) const;
  int add_time(const char* name, const std::vector<int>& dimensions, const char* standard_name,
               const char* long_name, Calendar calendar);
  void define_times(const ForecastContents& contents, Calendar calendar);
  void define_series(Calendar calendar);
  void define_bounds(bool means, std::size_t starts, std::size_t leads);
  void define_members(std::int64_t members);
  void define_member(const CoordinateDescription& member);
  void define_fields(FileSet& files, const ForecastContents& contents, std::int64_t overlap);
  void write_members(const ForecastContents& contents, FileSet& files);
  void write_times(std::size_t starts, std::size_t leads);

  OutputFile& output_;
  NetcdfOutput file_;
  WrittenFields fields_;
  std::vector<int> variables_;  // of the file, as those of the fields
  Times times_;
  bool series_;
  int time_ = -1, lead_ = -1, members_ = -1;  // of a series there are no leads
  int start_variable_ = -1, lead_variable_ = -1, valid_variable_ = -1, members_variable_ = -1,
      member_variable_ = -1, lead_bounds_ = -1, valid_bounds_ = -1;
  std::vector<std::string> auxiliary_;  // coordinates that all variables name
  bool months_ = false;                 ///< whether times are months
};

}  // namespace jigsaw::inline predict
