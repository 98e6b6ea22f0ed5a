#pragma once
#include <array>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "evaluate/climate_scores.h"
#include "predict/written_fields.h"
#include "samples/channels.h"

namespace jigsaw::inline evaluate {

/// A CF-1.10 NetCDF-4 file of the maps of a climate, on the rank that writes: of each variable that is
/// predicted t2m_mean, t2m_mean_truth, t2m_bias, t2m_std, t2m_std_truth and t2m_count, float [climate_group,
/// level, latitude, longitude] as files of forecasts have them (WrittenFields); a variable whose levels have
/// no unit in common has those of each level. What is not known is missing. Every failure is a DataError that
/// names the file.
class ClimateMapsFile {
 public:
  /// @param files  have the fields of the targets selected.
  ClimateMapsFile(FileSet& files, const std::vector<Channel>& targets, const ClimateOptions& options,
                  const std::map<std::string, std::string>& attributes, const std::string& path);

  /// Rows and columns `box` [H, W] of a channel's map of a group.
  void write(ClimateMap map, std::size_t channel, std::size_t group, const Box& box, std::span<float> values);
  void close() { file_.close(); }

 private:
  NetcdfOutput file_;
  WrittenFields fields_;
  std::vector<std::array<int, kClimateMaps>> variables_;  // of the file, by variable of the fields
};

/// Writes all maps and closes the file. The ranks' pieces come to rank 0 one channel at a time, so that no
/// rank holds a whole field of several. Collective: what throws on one rank throws on all.
/// @param file  on rank 0; elsewhere null.
void write_maps(const Rank& rank, Communicator& world, const ClimateScores& scores, std::size_t channels,
                ClimateMapsFile* file);

}  // namespace jigsaw::inline evaluate
