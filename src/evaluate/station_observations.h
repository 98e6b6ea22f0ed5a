#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fields/named_places.h"
#include "fields/units.h"
#include "files/variable_file.h"
#include "samples/dataset.h"

namespace jigsaw::inline evaluate {

/// What was observed at stations of the variables that are forecast. Files are of variables along a dimension
/// of times and one of places that each have a latitude and a longitude, in any order (and one of levels,
/// where targets have some; or a scalar coordinate says the level), which are found as those of data files
/// are; or tables of text (TextTable) with a line for each time and place: columns `time`, those of
/// PlaceColumns, and "t2m" or "t2m [K]" for each variable. Files may hold other variables, times and places;
/// places of one name that are no more than 0.01° apart are one. For the rank that scores.
class StationObservations {
 public:
  /// Reads what was observed at these times, in single precision and the units of the data.
  /// @param data  whose targets are compared with them.
  /// @param times  of the forecasts in its calendar, ascending
  /// @param tolerance  what was observed so much earlier or later counts as observed at the nearest of them,
  /// of a place what is nearest to it, of two as near the earlier one.
  /// @throws DataError  for files that hold none of the targets, or one on a grid, in a unit of another
  /// quantity or in another calendar, or of another kind (require_same_kind(), limits_of()), for different
  /// values of one place and time, and where nothing was observed from the first of the times to the last.
  StationObservations(const std::vector<std::string>& paths, const FileOpener& open, Dataset& data,
                      std::vector<Time> times, Time tolerance);

  const NamedPlaces& places() const { return places_; }
  Time tolerance() const { return tolerance_; }
  /// Target channels that were observed anywhere, ascending.
  const std::vector<int>& channels() const { return channels_; }
  /// What is to be said of units and of sums over time.
  const std::vector<std::string>& remarks() const { return remarks_; }
  /// Of all places at a time, NaN where nothing was observed.
  std::vector<double> at(int channel, Time time) const;
  /// Whether anything was observed at a place from the first of the times to the last.
  bool observes(int channel, std::size_t place) const;

 private:
  struct Observation {
    std::uint32_t place;
    float value;
    std::int32_t later;  ///< than the time that it counts at, in s
  };
  /// Of a channel.
  struct Observed {
    std::map<Time, std::vector<Observation>> at;  ///< by place, one of each, once all is read
    std::vector<bool> places;                     ///< where anything was observed
  };
  /// What is said of a channel once.
  enum class Remark : std::uint8_t { kUnit, kHours };
  /// A table's column of a channel.
  struct Column {
    int channel = 0;
    std::size_t number = 0;
    UnitConversion convert;
  };

  void look_into(DataFile& file);
  void look_into_table(const std::string& path);
  std::vector<Column> columns_of(const TextTable& table);
  UnitConversion conversion(int channel, const std::string& what, const std::string& unit,
                            const std::string& advice = "");
  void remark_once(int channel, Remark kind, const std::string& remark);
  std::string remark_on_hours(const std::string& what, DataFile& file, const FileVariable& variable,
                              const Field& field);
  std::string hours_remark(const std::string& what, const Field& field);
  void remark_on_title(const std::string& title);
  void read(DataFile& file, const FileVariable& variable, int channel, const UnitConversion& convert);
  std::pair<std::int64_t, std::int64_t> rows_of(const std::vector<Time>& times);
  std::size_t add_place(const std::string& name, double latitude, double longitude);
  void add(int channel, Time time, std::size_t place, float value);
  bool note_time(Time time);
  void bring_together();
  std::optional<Time> counts_at(Time time) const;
  [[noreturn]] void refuse_period() const;

  Dataset& data_;
  std::vector<Time> times_;
  Time tolerance_;
  Period wanted_;
  NamedPlaces places_;
  std::map<std::string, std::vector<std::size_t>> known_;  // by name
  std::map<int, Observed> observed_;                       // by channel
  std::vector<int> channels_;
  std::vector<std::string> remarks_;
  std::set<std::pair<int, Remark>> remarked_;
  std::vector<Time> seen_;  // the first and the last time of all files
};

}  // namespace jigsaw::inline evaluate
