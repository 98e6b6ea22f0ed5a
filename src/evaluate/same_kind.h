#pragma once
#include <optional>
#include <string>

#include "samples/dataset.h"

namespace jigsaw::inline evaluate {

/// What is compared with a field of the data must be values of the same kind, as far as both sides say it:
/// made by the same method in time (`cell_methods`: states, means, sums, …), and at the same height, to a
/// metre.
/// @param what  "t2m in obs.nc". @throws DataError  that begins with it
void require_same_kind(const std::string& what, DataFile& file, const FileVariable& variable, FileSet& data,
                       const Field& field);

/// From where to where the values of a variable hold, from their times, by the bounds of the times along it,
/// or of a GRIB file as its messages say (time_range()); nothing where nothing says it, or values are at
/// points in time by their `cell_methods`.
std::optional<Period> limits_of(DataFile& file, const FileVariable& variable);
/// The same of a field of the data.
std::optional<Period> limits_of(FileSet& data, const Field& field);
/// Sums and means must be over as long a time, and stand at the same place in it, where both sides say it.
/// @param what  as above
void require_same_limits(const std::string& what, const std::optional<Period>& limits,
                         const std::optional<Period>& wanted);
/// Of a length in hours.
double hours_in(const Period& limits);

}  // namespace jigsaw::inline evaluate
