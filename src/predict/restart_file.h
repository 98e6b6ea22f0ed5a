#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "files/netcdf_output.h"
#include "files/variable_file.h"
#include "grids/axis_map.h"
#include "predict/output_file.h"
#include "predict/packed_piece.h"
#include "predict/trained_model.h"
#include "times/time_axis.h"

namespace jigsaw::inline predict {

/// Where the state of forecasts is kept: beside their file, or the name itself if it is one of these.
std::string restart_path(const std::string& forecast);

/// What of a rollout is kept (RolloutState): the inputs that it carries over, the prediction, and the sum of
/// increments where those are predicted.
enum class RestartPart : std::uint8_t { kInput, kPrediction, kSum };

/// What forecasts that go on from each other must have in common.
struct RestartModel {
  std::string digest;     ///< TrainedModel::digest()
  std::int64_t seed = 0;  ///< of the noise; 0 of models that are given none
  Calendar calendar = Calendar::kStandard;
  bool months = false;
  std::int64_t members = 1;
  Shape grid;                ///< rows and columns
  std::vector<int> carried;  ///< Forecaster::carried_inputs()
  std::int64_t targets = 1;
  bool accumulates = false;           ///< whether there is a sum
  GridOrder place = {};               ///< of the grid
  std::optional<double> member = {};  ///< of the data, where they say which one it is

  /// Of a model on the rank that has its digest; elsewhere without it.
  static RestartModel of(TrainedModel& model);
  /// The parts, and the channels of their tensors that are kept.
  std::vector<std::pair<RestartPart, std::vector<int>>> parts() const;
};

/// A NetCDF-4 file of the states that forecasts ended in, from which predict --continue goes on: not in
/// physical units, but as the model takes them, in float64, which holds every type that a tape computes in
/// exactly. `time` are the starts, `steps` [time] how many steps were made, `start_digest` [time] numbers by
/// which the states that they began with are known again (start_digests); `input`, `prediction` and `sum`
/// [time, number, channel, row, column] the parts. `model` are numbers by which the model is known again. For
/// one thread at a time. Every failure is a DataError that names the file.
class RestartWriter {
 public:
  RestartWriter(const RestartModel& model, std::vector<Time> starts, const std::string& path);

  /// A piece [samples · members, rows, columns, C] of one part, of the forecasts from starts[first] on.
  void write(RestartPart part, std::int64_t first, const PackedPiece<double>& piece);
  /// Closes it; it has the first of its starts. @param steps  made of each of them. @param digests  of the
  /// states that they began with.
  void close(const std::vector<int>& steps, const std::vector<double>& digests);

 private:
  NetcdfOutput file_;
  std::int64_t members_;
  std::vector<double> starts_;
  int time_variable_ = -1, steps_variable_ = -1, digest_variable_ = -1;
  std::vector<std::pair<RestartPart, int>> variables_;
};

/// The same, read. Each rank reads its own pieces, whatever mesh wrote it. Every failure is a DataError that
/// names the file, unless it is said otherwise.
class RestartFile {
 public:
  /// Reads all but the states. @param forecast  the name of a file of forecasts, or that of its state.
  /// @throws ConfigError  when there is no such file.
  explicit RestartFile(const std::string& forecast);

  const std::string& path() const { return path_; }
  const std::vector<Time>& starts() const { return starts_; }
  /// Its place in starts(), or nothing.
  std::optional<std::size_t> position_of(Time start) const;
  int steps_of(Time start) const { return steps_.at(position_of(start).value()); }
  /// Of the state that a forecast began with.
  double digest_of(Time start) const { return digests_.at(position_of(start).value()); }
  int most_steps() const;
  std::int64_t members() const { return members_; }

  /// @throws CheckpointError  unless forecasts of this model can go on from it. The digest counts where the
  /// model has one.
  void require(const RestartModel& model) const;

  /// What stands in a part: the piece `box` of a tensor [samples · members, rows, columns, C], row-major;
  /// channels that are not kept are 0.
  /// @param starts  of each sample of the whole batch.
  std::vector<double> read(RestartPart part, std::span<const Time> starts, const std::vector<int>& channels,
                           const Box& box) const;

 private:
  const FileVariable& variable(const std::string& name, int rank) const;

  std::string path_;
  std::unique_ptr<VariableFile> file_;
  std::vector<Time> starts_;
  std::vector<int> steps_;
  std::vector<double> digests_, model_;
  std::int64_t members_ = 1;
};

}  // namespace jigsaw::inline predict
