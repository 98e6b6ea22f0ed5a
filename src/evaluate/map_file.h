#pragma once
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "evaluate/point_moments.h"
#include "predict/written_fields.h"
#include "samples/channels.h"

namespace jigsaw::inline evaluate {

/// What a map of each variable is called and says.
struct MapVariable {
  const char *ending, *long_name;
  bool same_quantity;       ///< as the field: it keeps its standard name
  const char* cell_method;  ///< over time; "": none
  bool number = false;      ///< it counts, and has no unit
};

/// What is in a file of maps.
struct MapContents {
  std::vector<MapVariable> maps;
  std::string along;        ///< the dimension of the groups, with a coordinate of that name,
  std::vector<int> places;  ///< its numbers,
  std::function<void(NetcdfOutput& file, int variable)> describe;  ///< and its attributes
  std::map<std::string, std::string> attributes;                   ///< of the file
};

/// A CF-1.10 NetCDF-4 file of maps, on the rank that writes: of each variable that is predicted and each
/// ending t2m_bias, …, float [groups, level, latitude, longitude] as files of forecasts have them
/// (WrittenFields); a variable whose levels have no unit in common has those of each level. What is not known
/// is missing. Every failure is a DataError that names the file.
class MapFile {
 public:
  /// @param files  have the fields of the targets selected.
  MapFile(FileSet& files, const std::vector<Channel>& targets, const MapContents& contents,
          const std::string& path);

  /// Rows and columns `box` [H, W] of a channel's map of a group.
  void write(std::size_t map, std::size_t channel, std::size_t group, const Box& box,
             std::span<float> values);
  void close() { file_.close(); }

 private:
  NetcdfOutput file_;
  WrittenFields fields_;
  std::vector<std::vector<int>> variables_;  // of the file, by variable of the fields and map
};

/// What a rank holds of a channel's maps, [maps, rows, columns] of its box; empty where it holds none.
using MapsOfChannel =
    std::function<std::vector<float>(const TimeMoments& moments, const Box& box, std::int64_t channel)>;

/// Writes all maps and closes the file. The ranks' pieces come to rank 0 one channel at a time, so that no
/// rank holds a whole field of several. Collective: what throws on one rank throws on all.
/// @param maps  how many each group has.
/// @param file  on rank 0; elsewhere null.
void write_maps(const Rank& rank, Communicator& world, const PointMoments& moments, int maps,
                const MapsOfChannel& maps_of, std::size_t channels, MapFile* file);

/// One channel of maps of which `value(map, of, i)` is each, with of the moments and i the point's place in
/// them: [maps, rows, columns] of the box, NaN where nothing counts, but for the map of numbers.
template <typename F>
std::vector<float> maps_of_moments(const TimeMoments& moments, const Box& box, std::int64_t channel,
                                   std::int64_t number, const F& value) {
  if (box.empty() || channel < box.begin[3] || channel >= box.end(3)) return {};
  const HostMoments of(moments);
  std::vector<float> values;
  for (std::int64_t map = box.begin[0]; map < box.end(0); ++map) {
    for (std::int64_t point = 0; point < box.extent[1] * box.extent[2]; ++point) {
      const auto i = static_cast<std::size_t>(point * box.extent[3] + channel - box.begin[3]);
      const bool there = map == number || of.count[i] > 0;
      values.push_back(there ? static_cast<float>(value(map, of, i)) : std::nanf(""));
    }
  }
  return values;
}

}  // namespace jigsaw::inline evaluate
