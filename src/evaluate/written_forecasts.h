#pragma once
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "comm/communicator.h"
#include "fields/forecast_axes.h"
#include "samples/dataset.h"

namespace jigsaw::inline evaluate {

/// Forecasts in files of their own, as predict or another program wrote them (see forecast_axes()), in any
/// format and on any grid that data are read from. Files may hold different starts, leads, variables, levels
/// or members; several that hold the same forecast are members of one ensemble, in the order of the files.
/// Variables are called as those of the data are, or `t_850` on levels, or have their standard_name.
class WrittenForecasts {
 public:
  /// Opens the files. Collective: what throws on one rank throws on all.
  /// @param data  that they are compared with, whose grid they are brought to; outlives this.
  /// @param patterns  files or patterns. @param leads  that are scored, in seconds.
  /// @throws DataError  for files that are none, and targets that no file has or in another unit
  WrittenForecasts(Dataset& data, const std::vector<std::string>& patterns, const std::vector<Time>& leads,
                   Communicator& world);

  /// The files that are read.
  const std::vector<std::string>& paths() const { return paths_; }
  /// What is to be said of them: fields that say no unit, files of different models.
  const std::vector<std::string>& remarks() const { return remarks_; }
  /// Of each forecast: as many as most have of which nothing lacks.
  std::int64_t members() const { return members_; }
  /// Whether all leads of all targets of a start are there, of all members.
  bool has(Time start) const { return whole_.contains(start); }
  /// Of a start that is not: "there is no lead 18 h of t2m".
  std::string why_not(Time start) const;
  /// Rows and columns `box` [H, W] of a target in its physical unit, NaN where it is missing. @throws
  /// DataError
  void read(Time start, Time lead, std::size_t target, std::int64_t member, const Box& box,
            std::span<double> out);

 private:
  /// What a file has of a target.
  struct Content {
    Field field;  ///< as the file calls it
    std::shared_ptr<const ForecastAxes> axes;
  };
  /// Where one member stands.
  struct Place {
    std::size_t file = 0;
    std::map<std::string, std::int64_t> positions;
  };
  struct OpenFile {
    std::size_t number = 0;
    std::unique_ptr<FileSet> files;
  };

  void look_into(std::size_t file);
  std::optional<Field> field_in(DataFile& file, FileSet& set, const Channel& target) const;
  FileSelection selection_of(const std::map<std::size_t, Content>& contents) const;
  FileSet& open(std::size_t file);
  std::optional<Place> place_of(std::size_t target, Time start, Time lead, std::int64_t member) const;
  std::int64_t members_of(std::size_t target, Time start, Time lead) const;
  std::pair<std::int64_t, std::int64_t> counts_of(Time start) const;
  void find_whole();
  void require_different();
  void require_alike(std::size_t file, std::size_t target, DataFile& described, const FileVariable& variable);

  Dataset& data_;
  std::vector<Time> leads_;
  Time begun_;  ///< before what are starts here: DataOptions::lead_of_inputs()
  FileOpener open_file_;
  std::vector<std::string> paths_, remarks_;
  std::vector<std::map<std::size_t, Content>> contents_;  ///< of each file, by target
  std::map<Time, std::vector<std::size_t>> by_start_;     ///< the files that hold something from there
  std::set<Time> whole_;
  std::int64_t members_ = 0;
  std::map<std::size_t, std::optional<Period>> limits_;  ///< of a target's values, where that is known
  std::size_t most_of_start_ = 0;                        ///< files
  std::list<OpenFile> opened_;                           ///< the last one first
};

}  // namespace jigsaw::inline evaluate
