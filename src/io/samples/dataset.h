#pragma once
#include <filesystem>
#include <memory>
#include <vector>

#include "comm/communicator.h"
#include "fields/data_options.h"
#include "fields/file_set.h"
#include "grids/rim.h"
#include "samples/batch_reader.h"
#include "samples/cell_weights.h"
#include "samples/channels.h"
#include "samples/data_use.h"
#include "samples/sample_source.h"
#include "samples/statistics.h"
#include "samples/statistics_pass.h"

namespace jigsaw::inline samples {

/// What of the files the options take. @param metadata  of makani_metadata(). @throws DataError
FileSelection file_selection(const DataOptions& options, const std::string& metadata);

/// Forecasts: files, grid, channels, windows and statistics.
class Dataset : public SampleSource {
 public:
  /// Opens the files. Collective: when it throws on one rank it throws on all.
  ///
  /// @param folder   that of the configuration, from which relative names start.
  /// @param rollout  targets per window.
  /// @param use      what goes with the opening, and statistics that are given.
  /// @throws DataError    when the files cannot be used. @throws ConfigError  when data.shape is not theirs.
  Dataset(const DataOptions& options, const std::filesystem::path& folder, int rollout,
          Communicator& communicator, const DataUse& use = {});

  const DataOptions& options() const { return options_; }
  std::vector<std::string> paths() const override { return paths_; }
  const Grid& grid() const override { return files_->grid(); }
  const Channels& channels() const override { return channels_; }
  const Statistics& statistics() const override { return statistics_; }
  /// How much points count in means over space, as data.cell_area says; where nothing is read but what
  /// forecasts start from, by rows.
  const CellWeights& cell_weights() const { return cell_weights_; }
  /// Times 0 of all windows, ascending; of an ensemble of which all members are read each comes as often as
  /// there are members, that of member 0 first. Validation has none where no period is given.
  const std::vector<Time>& train_windows() const { return train_windows_; }
  const std::vector<Time>& valid_windows() const { return valid_windows_; }

  /// A reader of its own for each thread, no longer than the data set lives.
  BatchReader make_reader() {
    return {*files_, channels_, statistics_, options_.predict, options_.lead_time, rim_};
  }
  std::int64_t count(Split split) const override { return std::ssize(windows(split)); }
  const std::vector<Time>& windows(Split split) const {
    return split == Split::kTrain ? train_windows_ : valid_windows_;
  }
  /// Whose window one of these is, from 0 on.
  std::int32_t member_of(std::int64_t window) const {
    return static_cast<std::int32_t>(window % files_->members());
  }
  /// At which all states of the inputs are in the files, ascending.
  std::vector<Time> input_times() const;
  /// The times in periods that forecasts of so many leads can start from, ascending: all inputs are in the
  /// files, and what is prescribed at the leads, whatever is of the targets. @param key  as of
  /// find_windows(). @throws DataError  when there is none.
  std::vector<Time> starts(const std::vector<Period>& periods, const std::string& key, int leads) const;
  /// @throws DataError  unless every input of a forecast of so many leads from this time is in the files.
  /// @param first  leads that were made before: what is given at those alone, but for the first of them, need
  /// not be there.
  void require_inputs(Time start, int leads, int first = 0) const;
  /// The points that rollouts take from the files.
  const Rim& rim() const { return rim_; }
  std::vector<std::int64_t> identity() const override { return train_windows_; }
  std::unique_ptr<SampleReader> open_reader() override;
  /// Whether the grid is that of a target, or of one that is named; else the files hold no target.
  bool grid_of_targets() const { return grid_of_targets_ || !options_.regrid.latitude.empty(); }
  FileSet& files() { return *files_; }
  const FileSet& files() const { return *files_; }
  std::int64_t bytes_read() const override { return files_->bytes_read(); }
  std::int64_t bytes_fetched() const override { return files_->bytes_fetched(); }
  std::map<std::string, UndeclaredValues> undeclared() const override { return files_->undeclared(); }

 private:
  void open(const FileSelection& selection, const FileOpener& open_file, const Statistics* trained_with);
  Json decides_statistics() const;
  void check_shape() const;
  /// Whether the files have what is needed at all leads of a forecast; null where nothing is.
  std::function<bool(Time)> has_prescribed() const;
  std::vector<Field> prescribed() const;
  std::function<std::string(Time)> why_not_prescribed() const;
  std::string why_not(const Field& field, Time time) const;
  std::string fewest_times(const std::vector<Field>& fields) const;
  std::vector<Time> of_each_member(const std::vector<Time>& windows) const;
  void find_all_windows(int rollout, const DataUse& use);

  DataOptions options_;
  std::vector<std::string> paths_;
  std::unique_ptr<FileSet> files_;
  Json layout_;   ///< of files that do not say what they hold; null for others
  Json sources_;  ///< VariableSources::to_json()
  bool grid_of_targets_ = true;
  Channels channels_;
  Rim rim_;
  Statistics statistics_;
  CellWeights cell_weights_{std::vector<double>()};
  std::vector<Time> train_windows_, valid_windows_;
};

}  // namespace jigsaw::inline samples
