#pragma once
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "images/image_files.h"
#include "samples/data_use.h"
#include "samples/moments.h"
#include "samples/sample_source.h"
#include "samples/statistics_pass.h"

namespace jigsaw::inline images {

/// Of a state and, where its part goes on so far, of the increment from it, both of transformed values.
struct SequenceMoments {
  RunningMoments state, increment;
  ValuesBelow below;  ///< of the state
};

/// Forecasts of states that follow one another by number, as simulations and moving volumes have them: of
/// each sample of HDF5, NetCDF or NIfTI files with a dim "time" one sequence, all of the same extents in
/// space, without dates, latitudes and longitudes. A state is an image of ImageFiles, and its number there
/// stands for its time: offsets of channels and lead times are numbers of steps. No window reaches from one
/// sequence into another. Fields of data.static are inputs, alike at all states of a sequence. What does not
/// vary in the training parts, or not in time, is normalised by 1, which is told.
class SequenceData : public SampleSource {
 public:
  /// Numbers of states, both included, of one sequence.
  struct Run {
    std::int64_t first = 0, last = 0;
  };

  /// Opens the files. Collective: when it throws on one rank it throws on all.
  ///
  /// @param folder   that of the configuration, from which relative names start.
  /// @param rollout  targets per window.
  /// @throws DataError    when the files cannot be used. @throws ConfigError  when parts or data.shape do not
  /// fit what they hold.
  SequenceData(const DataOptions& options, const std::filesystem::path& folder, int rollout,
               Communicator& communicator, const DataUse& use = {});

  std::vector<std::string> paths() const override { return paths_; }
  const Grid& grid() const override { return grid_; }
  const Channels& channels() const override { return channels_; }
  const Statistics& statistics() const override { return statistics_; }
  std::int64_t count(Split split) const override { return std::ssize(windows(split)); }
  std::vector<std::int64_t> identity() const override { return train_; }
  std::unique_ptr<SampleReader> open_reader() override;
  std::int64_t bytes_read() const override { return files_->bytes_read(); }
  std::int64_t bytes_fetched() const override { return files_->bytes_fetched(); }
  std::map<std::string, UndeclaredValues> undeclared() const override { return files_->undeclared(); }
  std::vector<std::string> packing_remarks() const override { return files_->packing_remarks(); }

  const DataOptions& options() const { return options_; }
  ImageFiles& files() const { return *files_; }
  /// Numbers of the states at time 0 of the samples of a split.
  const std::vector<std::int64_t>& windows(Split split) const {
    return split == Split::kTrain ? train_ : valid_;
  }
  /// "state 3 of sequence 1 (run_1.h5)", of all files' sequences from 0 on.
  std::string text_of(std::int64_t state) const;

 private:
  void open(const FileOpener& open_file);
  std::size_t series_of(std::int64_t state) const;
  void check_extents() const;
  std::vector<Run> runs(const std::vector<DataPart>& parts, const std::string& key) const;
  std::vector<std::int64_t> windows_in(const std::vector<Run>& runs, int rollout,
                                       const std::string& key) const;
  Statistics compute_statistics(Communicator& communicator, const Statistics* known,
                                const std::function<void(double)>& progress) const;
  SequenceMoments moments_of(const Channel& channel, const std::set<std::int64_t>& states,
                             const std::set<std::int64_t>& with_increment, Communicator& communicator,
                             const std::function<void(double)>& did) const;
  std::set<std::int64_t> images_of_constant(const Field& field) const;
  std::vector<Channel> normalised_channels() const;
  void check_statistics() const;
  std::string divide_constants_by_one();
  Json decides_statistics() const;

  DataOptions options_;
  std::unique_ptr<ImageFiles> files_;
  Channels channels_;
  Statistics statistics_;
  Grid grid_;
  std::vector<std::string> paths_;
  OwnFiles own_paths_;
  std::vector<Run> train_runs_;
  std::vector<std::int64_t> train_, valid_;
};

/// Channels of sequences: prognostic fields at each of the input steps, then constant ones, and at the lead
/// prognostic ones. @throws ConfigError  when a field is named twice, or as set_known_values() does.
Channels sequence_channels(const DataOptions& options, const std::vector<Field>& fields,
                           const std::vector<Field>& constants);

}  // namespace jigsaw::inline images
