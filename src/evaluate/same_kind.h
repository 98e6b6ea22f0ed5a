#pragma once
#include <string>

#include "samples/dataset.h"

namespace jigsaw::inline evaluate {

/// What is compared with a field of the data must be values of the same kind, as far as both sides say it:
/// made by the same method in time (`cell_methods`: states, means, sums, …), and at the same height, to a
/// metre.
/// @param what  "t2m in obs.nc". @throws DataError  that begins with it
void require_same_kind(const std::string& what, DataFile& file, const FileVariable& variable, FileSet& data,
                       const Field& field);

/// Over how many hours the values of a variable are, by the bounds of the times along it, or of a GRIB file
/// as its messages say (time_range()); 0 where nothing says it, or values are at points in time by their
/// `cell_methods`.
double hours_of(DataFile& file, const FileVariable& variable);
/// Those of a field of the data.
double hours_of(FileSet& data, const Field& field);
/// Unless hours are alike, or one of them is 0. @param what  as above
void require_same_hours(const std::string& what, double hours, double wanted);

}  // namespace jigsaw::inline evaluate
