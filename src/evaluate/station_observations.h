#pragma once
#include <map>
#include <string>
#include <vector>

#include "fields/named_places.h"
#include "files/variable_file.h"
#include "samples/dataset.h"

namespace jigsaw::inline evaluate {

/// What was observed at stations of the variables that are forecast: files of variables along a dimension of
/// times and one of places that each have a latitude and a longitude, in any order (and of levels, where
/// targets have some). Variables are found as those of data files are. Files may hold other variables, times
/// and places; places of one name, latitude and longitude are one. For the rank that scores.
class StationObservations {
 public:
  /// Reads what lies in a period, in single precision.
  /// @param data  whose targets are compared with them. @param wanted  in its calendar
  /// @throws DataError  for files that hold none of the targets, or one on a grid, in another unit, in
  /// another calendar, or made otherwise in time (cell_methods), and where nothing was observed in the
  /// period.
  StationObservations(const std::vector<std::string>& paths, const FileOpener& open, Dataset& data,
                      const Period& wanted);

  const NamedPlaces& places() const { return places_; }
  /// Target channels that were observed anywhere, ascending.
  const std::vector<int>& channels() const { return channels_; }
  /// What is to be said of units.
  const std::vector<std::string>& remarks() const { return remarks_; }
  /// Of all places at a time, NaN where nothing was observed. @throws DataError  where files hold different
  /// values of a place
  std::vector<double> at(int channel, Time time) const;

 private:
  /// What a file holds of a channel.
  struct Series {
    std::string path;
    std::map<Time, std::size_t> times;  ///< rows of the values
    std::vector<std::size_t> places;    ///< of all
    std::vector<float> values;          ///< [times, places]
  };

  void look_into(const std::string& path, DataFile& file, Dataset& data, const Period& wanted);
  Series read(DataFile& file, const FileVariable& variable, const Channel& target, Dataset& data,
              const Period& wanted);
  std::vector<std::size_t> add_places(const NamedPlaces& places);
  [[noreturn]] void refuse_period(const Period& wanted, const Dataset& data) const;

  NamedPlaces places_;
  std::map<std::string, std::size_t> known_;  // by name and degrees
  std::map<int, std::vector<Series>> series_;
  std::vector<int> channels_;
  std::vector<std::string> remarks_;
  std::vector<Time> seen_;  // the first and the last time of all files
};

}  // namespace jigsaw::inline evaluate
