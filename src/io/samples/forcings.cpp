#include "samples/forcings.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"

namespace jigsaw::inline samples {

const char* name(Forcing forcing) {
  switch (forcing) {
    case Forcing::kLatitude:
      return "latitude";
    case Forcing::kLongitude:
      return "longitude";
    case Forcing::kCosLongitude:
      return "cos_longitude";
    case Forcing::kSinLongitude:
      return "sin_longitude";
    case Forcing::kSinTimeOfDay:
      return "sin_time_of_day";
    case Forcing::kCosTimeOfDay:
      return "cos_time_of_day";
    case Forcing::kSinDayOfYear:
      return "sin_day_of_year";
    case Forcing::kCosDayOfYear:
      return "cos_day_of_year";
  }
  fail("unknown forcing");
}

namespace {

/// Mean 0 and deviation 1; zeros for a single value.
std::vector<double> standardised(std::vector<double> values) {
  const auto n = static_cast<double>(values.size());
  double mean = 0, squares = 0;
  for (const double value : values) mean += value / n;
  for (const double value : values) squares += (value - mean) * (value - mean) / n;
  const double scale = squares > 0 ? 1 / std::sqrt(squares) : 0;
  for (double& value : values) value = (value - mean) * scale;
  return values;
}

/// The angle of a time in its day or year.
double phase(Forcing forcing, Time time, Calendar calendar) {
  const bool day = forcing == Forcing::kSinTimeOfDay || forcing == Forcing::kCosTimeOfDay;
  const Time of_day = ((time % kDay) + kDay) % kDay;
  const double part =
      day ? static_cast<double>(of_day) / static_cast<double>(kDay) : year_fraction(time, calendar);
  return 2 * std::numbers::pi * part;
}

}  // namespace

ForcingFields::ForcingFields(const Grid& grid, Calendar calendar)
    : calendar_(calendar),
      latitude_(standardised(grid.axes[0].coordinates)),
      longitude_(standardised(grid.axes[1].coordinates)) {
  for (const double degrees : grid.axes[1].coordinates) {
    cos_longitude_.push_back(std::cos(degrees * std::numbers::pi / 180));
    sin_longitude_.push_back(std::sin(degrees * std::numbers::pi / 180));
  }
}

void ForcingFields::fill(Forcing forcing, Time time, const Box& box, std::span<double> out) const {
  const std::int64_t rows = box.extent[0], columns = box.extent[1];
  const auto along_row = [&](const std::vector<double>& values) {
    for (std::int64_t row = 0; row < rows; ++row) {
      std::copy_n(values.begin() + box.begin[1], columns, out.begin() + row * columns);
    }
  };
  switch (forcing) {
    case Forcing::kLatitude:
      for (std::int64_t row = 0; row < rows; ++row) {
        std::fill_n(out.begin() + row * columns, columns,
                    latitude_[static_cast<std::size_t>(box.begin[0] + row)]);
      }
      return;
    case Forcing::kLongitude:
      return along_row(longitude_);
    case Forcing::kCosLongitude:
      return along_row(cos_longitude_);
    case Forcing::kSinLongitude:
      return along_row(sin_longitude_);
    case Forcing::kSinTimeOfDay:
    case Forcing::kSinDayOfYear:
      std::fill(out.begin(), out.end(), std::sin(phase(forcing, time, calendar_)));
      return;
    case Forcing::kCosTimeOfDay:
    case Forcing::kCosDayOfYear:
      std::fill(out.begin(), out.end(), std::cos(phase(forcing, time, calendar_)));
      return;
  }
}

}  // namespace jigsaw::inline samples
