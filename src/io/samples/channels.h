#pragma once
#include <optional>
#include <string>
#include <vector>

#include "fields/data_options.h"
#include "fields/field.h"
#include "fields/transform.h"
#include "grids/forcings.h"

namespace jigsaw::inline samples {

enum class Role {
  kPrognostic,
  kDiagnostic,
  kStatic,
  kForcing,     ///< what place and time determine
  kPrescribed,  ///< fields of the files that are known at all times: given, not predicted
};

/// One channel of a model's input or output.
struct Channel {
  std::string name;  ///< "t2m", "t_850", "sin_time_of_day"; the same for every input hour
  Role role = Role::kPrognostic;
  Field field;                           ///< unless it is a forcing
  Forcing forcing = Forcing::kLatitude;  ///< if it is one
  /// From time 0 to the time the values are of; 0 for static channels.
  Time offset = 0;
  bool mask = false;  ///< 1 where the field is there at time 0, 0 where it is missing; its role is kStatic
  bool vector_component = false;    ///< eastward or northward: of the other sign beyond a pole
  Transform transform = {};         ///< of the values before they are normalised
  ValueRange range = {};            ///< that predictions are kept in, in the unit of the files
  std::optional<double> fill = {};  ///< in place of missing values, in the unit of the files

  bool operator==(const Channel&) const = default;
};

/// What the channels of input [B, H, W, Cin] and target [B, H, W, Cout] are.
///
/// Input: for each input hour in order every prognostic field in order; then statics; then prescribed fields,
/// all at time 0, then all at the first target; then forcings; then masks, which stay as they are in
/// rollouts. Target: prognostic, then diagnostic fields, at the lead time; of lead 0, at which prognostic
/// fields are known, diagnostic ones alone.
/// Known from the configuration alone, but for one thing: longitude is two channels on a periodic grid.
struct Channels {
  std::vector<Channel> inputs, targets;
};

/// @param periodic  the grid's longitude closes the circle (Grid::periodic, or else looks_global()).
/// @throws ConfigError  when a field is named twice.
Channels make_channels(const DataOptions& options, bool periodic);

/// Gives channels what data.transforms, data.clamp and data.fill say of their fields; forcings, masks and
/// targets that are labels nothing.
void set_values(Channels& channels, const DataOptions& options);
/// The same of images and sequences, of which the files say which channels there are.
/// @throws ConfigError  when data.transforms names none of the channels, or data.clamp no target.
void set_known_values(Channels& channels, const DataOptions& options);

/// Whether rows × columns are those of a whole globe with equal steps (181 × 360, 180 × 360): what to assume
/// of a grid while no file is open.
bool looks_global(const std::vector<std::int64_t>& shape);

/// Whether a rollout is given something at its leads: forcings, prescribed fields, or what stands on a rim.
/// @param rim  whether the data has one.
bool given_at_leads(const Channels& channels, bool rim);

/// The distinct fields of these channels that have the role, in order; those of masks do not count.
std::vector<Field> fields_of(const std::vector<Channel>& channels, Role role);
/// Those of which files hold states in time: targets, prognostic and prescribed inputs, each once.
std::vector<Field> fields_in_time(const Channels& channels);

}  // namespace jigsaw::inline samples
