#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "fields/file_set.h"
#include "samples/channels.h"
#include "samples/moments.h"
#include "samples/transformed_values.h"

namespace jigsaw::inline samples {

/// What a field is normalised by, in its own units.
struct FieldStatistics {
  std::string units;
  double mean = 0;
  double deviation = 0;
  /// Of the change over the lead time, about its own mean; 0 for fields that are not prognostic.
  double increment_deviation = 0;
  /// Transform::name() of the values that these are of; of min_max `mean` is the least and `deviation` the
  /// largest less the least, of none they are 0 and 1.
  std::string transform = {};
  /// What missing values counted as, in the unit of the files; nothing where they did not count.
  std::optional<double> fill = {};
  /// The ends of the transformed values; nothing where statistics do not say, as those of files may.
  std::optional<double> least = {}, largest = {};
  /// The part of the points without a value, 0 to 1; nothing where statistics do not say, or missing values
  /// count.
  std::optional<double> missing = {};

  bool operator==(const FieldStatistics&) const = default;
};

/// What the values were that statistics were computed of.
struct SeenValues {
  double missing = 0;             ///< the part of the points without one, 0 to 1
  double least = 0, largest = 0;  ///< of transformed values; 0 without any
  /// The part of the values, 0 to 1, that lie below the domain of the field's transform, and the least of
  /// them in the unit of the files; 0 where none lies further below than a hundredth of the largest value,
  /// which are the roundings of packed numbers.
  double below = 0, lowest = 0;
  /// By how much the spatial mean changes where one file follows another, where that is no change of weather:
  /// more than six deviations of the values of a state, and twenty times the usual change from state to
  /// state. 0 elsewhere.
  double jump = 0, jump_deviations = 0;
  Time jumped = 0;  ///< the first time behind it

  bool operator==(const SeenValues&) const = default;
};

/// Statistics by the name of the field, "t_850".
struct Statistics {
  Time lead_time = 0;  ///< of the increments; seconds, or steps
  std::map<std::string, FieldStatistics> fields;
  /// In the periods, of the fields that were read for it. Not among what to_text() tells, and nothing that
  /// decides whether statistics are equal.
  std::map<std::string, SeenValues> seen;
  bool in_steps = false;  ///< lead_time is a number of steps, of sequences

  bool operator==(const Statistics& other) const {
    return lead_time == other.lead_time && fields == other.fields;
  }
  const FieldStatistics& of(const Field& field) const;

  /// As JSON with every digit, and back. @throws DataError  that names `source` when it is malformed.
  std::string to_text() const;
  static Statistics from_text(const std::string& text, const std::string& source);
  /// @throws DataError
  void save(const std::string& path) const;
  static Statistics load(const std::string& path);
};

/// Of so many points, of which some are the values.
/// @param below  those that the transform of these values does not tell from 0.
SeenValues seen_values(const RunningMoments& values, double points, const ValuesBelow& below = {},
                       const Transform& transform = {});

/// What a channel is normalised by, of these transformed values and the deviation of their increments.
FieldStatistics normalisation_of(const std::string& units, const Channel& channel,
                                 const RunningMoments& values, double increment_deviation);
/// The same of a channel that needs no values for it, with the transform none; nothing of others.
std::optional<FieldStatistics> known_normalisation(const std::string& units, const Channel& channel);

/// Statistics that leave the fields of these channels as they are: mean 0 and deviations 1.
Statistics neutral_statistics(const std::vector<Channel>& channels, Time lead_time = 0);

/// Statistics of the selected fields over valid points, of transformed values: of each state field at all its
/// times in the periods; of the increments between times of one period; of static fields over their points.
/// Every rank reads its share of the times and merges the moments of all, in the order of time: the result is
/// equal in every bit for any number of ranks. Collective.
/// @param known     those of the fields that it has are taken from it; may be null.
/// @param progress  called now and then with the part of this rank's share that is done, if given.
Statistics compute_statistics(FileSet& files, const Channels& channels, const std::vector<Period>& periods,
                              Time lead_time, Communicator& communicator, const Statistics* known = nullptr,
                              const std::function<void(double)>& progress = {});

/// @throws DataError  when statistics of a channel are of values with another transform.
void check_transform(const FieldStatistics& statistics, const Channel& channel);

/// @throws DataError  when a field of the channels is missing, has another unit in the files, another
///                    transform or fill, or does not vary, so that it cannot be normalised; when
///                    increments are predicted over another lead time.
/// @param given  those among them that were not computed of these files; null: none.
void check_statistics(const Statistics& statistics, const Channels& channels, const FileSet& files,
                      Predict predict, Time lead_time, const Statistics* given = nullptr);

/// Of each field whose files say no unit, and whose statistics have one, a sentence.
std::vector<std::string> unit_remarks(const Statistics& statistics, const Channels& channels,
                                      const FileSet& files);

}  // namespace jigsaw::inline samples
