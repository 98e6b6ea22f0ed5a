#pragma once
#include <optional>
#include <string>
#include <vector>

#include "config/json.h"
#include "report/map_picture.h"
#include "task/opened_run.h"

namespace jigsaw::inline report {

/// One plane of a validation sample: of a forecast the whole field, of a volume a slice through the middle of
/// its validation part.
struct ExamplePlane {
  std::string name, units;
  std::vector<float> predicted, truth;  ///< in physical units, or class numbers; NaN where there is none
  std::vector<float> input;             ///< of images the noisy input, else empty
};

/// What a validation is shown by: the first lead of its first sample, of an ensemble that of member 0, and
/// errors by row over all of it, of an ensemble those of its mean.
struct Examples {
  std::int64_t step = 0;
  Time lead_time = 0;       ///< 0: no forecast
  bool in_steps = false;    ///< lead_time is a number of steps, of sequences
  std::int64_t start = 0;   ///< time 0 of fields, seconds since 1970-01-01 of their calendar
  std::string of;           ///< "the forecast of 6 h from 2021-02-18T06:00"; "" of images
  int classes = 0;          ///< 0: the planes are numbers
  std::int64_t slice = -1;  ///< its number along the volume's first axis; −1: no volume
  PlaneGrid grid;
  std::vector<ExamplePlane> planes;
  /// RMSE of each target by row (latitude), over all samples; empty for images.
  std::vector<std::string> targets;
  std::vector<std::vector<double>> rmse_by_row;

  /// Fields are shown in one map of colours whatever their grid, images as they are used to be seen.
  ColourMap colours() const { return targets.empty() ? ColourMap::kGrey : ColourMap::kSequential; }
};

/// examples.json (what is there, and errors by row) and examples.nc (the planes, CF) in a folder, each whole
/// or absent. @throws FileError, DataError
void write_examples(const Examples& examples, const std::string& folder);
/// Nothing where there are none or not both of one validation. @throws DataError  when they are malformed.
std::optional<Examples> read_examples(const std::string& folder);

/// Collects the examples of a validation from the pieces that ranks hold. Rank 0 holds the planes that are
/// shown, at most kMostPlanes and kMostBytes, and no rank more than its piece. Nothing of it counts as the
/// model's traffic.
class ExampleCollector {
 public:
  explicit ExampleCollector(OpenedRun& run);

  /// What is predicted of a batch at a lead; see RunObserver. Collective.
  void add(std::int64_t batch, int lead, const ShardedTensor& predictions, const Batch& truth);
  /// On rank 0 what was collected since the last call, elsewhere planes without values. Collective.
  Examples finish(std::int64_t step);

 private:
  static constexpr std::size_t kMostPlanes = 4;
  static constexpr std::int64_t kMostBytes = std::int64_t{128} << 20;

  void choose_channels();
  void add_planes(const ShardedTensor& prediction, const Batch& truth);
  /// From normalised values, or from noise of deviation 1 that the model takes off the input.
  void bring_to_units(std::size_t channel, ExamplePlane& plane);
  void add_classes(const ShardedTensor& prediction, const Batch& truth);
  void add_rows(const ShardedTensor& prediction, const Batch& truth);
  /// The plane of a channel at rank 0: of values that ranks hold in their boxes of [B, space…, C].
  std::vector<float> gathered(const Box& own, const std::vector<double>& values, std::int64_t channel);

  OpenedRun& run_;
  bool of_images_ = false;
  std::int64_t slice_in_tile_ = 0;  ///< of volumes, the slice's number in the sample
  int classes_ = 0;
  std::vector<std::size_t> channels_;
  Examples examples_;
  std::vector<double> squares_, counts_;  ///< by target and row
};

}  // namespace jigsaw::inline report
