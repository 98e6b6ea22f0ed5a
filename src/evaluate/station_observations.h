#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "fields/named_places.h"
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
  /// Reads what lies in a period, in single precision.
  /// @param data  whose targets are compared with them. @param wanted  in its calendar
  /// @throws DataError  for files that hold none of the targets, or one on a grid, in another unit or
  /// calendar, or of another kind (require_same_kind(), hours_of()), for different values of one place and
  /// time, and where nothing was observed in the period.
  StationObservations(const std::vector<std::string>& paths, const FileOpener& open, Dataset& data,
                      const Period& wanted);

  const NamedPlaces& places() const { return places_; }
  /// Target channels that were observed anywhere, ascending.
  const std::vector<int>& channels() const { return channels_; }
  /// What is to be said of units and of sums over time.
  const std::vector<std::string>& remarks() const { return remarks_; }
  /// Of all places at a time, NaN where nothing was observed.
  std::vector<double> at(int channel, Time time) const;
  /// Whether anything was observed at a place in the period.
  bool observes(int channel, std::size_t place) const;

 private:
  /// What a file holds of a channel.
  struct Series {
    std::string path;
    std::map<Time, std::size_t> times;  ///< rows of the values
    std::vector<std::size_t> places;    ///< of all
    std::vector<float> values;          ///< [times, places]
  };
  /// A table's column of a channel.
  struct Column {
    int channel = 0;
    std::size_t number = 0;
  };

  void look_into(DataFile& file);
  void look_into_table(const std::string& path);
  std::vector<Column> columns_of(const TextTable& table);
  void remark_on_hours(const std::string& what, DataFile& file, const FileVariable& variable,
                       const Field& field);
  Series read(DataFile& file, const FileVariable& variable, const Channel& target);
  std::pair<std::int64_t, std::int64_t> rows_of(const std::vector<Time>& times);
  std::size_t add_place(const std::string& name, double latitude, double longitude);
  bool note_time(Time time);
  void require_agreement() const;
  [[noreturn]] void refuse_period() const;

  Dataset& data_;
  Period wanted_;
  NamedPlaces places_;
  std::map<std::string, std::vector<std::size_t>> known_;  // by name
  std::map<int, std::vector<Series>> series_;
  std::vector<int> channels_;
  std::vector<std::string> remarks_;
  std::vector<Time> seen_;  // the first and the last time of all files
};

}  // namespace jigsaw::inline evaluate
