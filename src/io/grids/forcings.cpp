#include "grids/forcings.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "grids/solar.h"

namespace jigsaw::inline grids {

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
    case Forcing::kSinLatitude:
      return "sin_latitude";
    case Forcing::kCosLatitude:
      return "cos_latitude";
    case Forcing::kCosZenithAngle:
      return "cos_zenith_angle";
    case Forcing::kInsolation:
      return "insolation";
    case Forcing::kSinLocalTime:
      return "sin_local_time";
    case Forcing::kCosLocalTime:
      return "cos_local_time";
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
      longitude_(standardised(grid.axes[1].coordinates)),
      row_degrees_(grid.axes[0].coordinates),
      column_degrees_(grid.axes[1].coordinates) {}

bool needs_dates(Forcing forcing) {
  switch (forcing) {
    case Forcing::kLatitude:
    case Forcing::kLongitude:
    case Forcing::kCosLongitude:
    case Forcing::kSinLongitude:
    case Forcing::kSinLatitude:
    case Forcing::kCosLatitude:
      return false;
    default:
      return true;
  }
}

bool needs_degrees(Forcing forcing) {
  switch (forcing) {
    case Forcing::kCosLongitude:
    case Forcing::kSinLongitude:
    case Forcing::kSinLatitude:
    case Forcing::kCosLatitude:
    case Forcing::kCosZenithAngle:
    case Forcing::kInsolation:
    case Forcing::kSinLocalTime:
    case Forcing::kCosLocalTime:
      return true;
    default:
      return false;
  }
}

namespace {

/// A forcing that is sum(latitude) + factor(latitude)·wave(longitude + shift), or its positive part over
/// `divisor`.
struct PlaceForcing {
  double sin_declination = 0, cos_declination = 0;
  double shift = 0;  ///< of longitudes [radians]
  bool positive = false;
  double divisor = 1;
  /// Of the latitude in radians.
  double (*sum)(const PlaceForcing&, double) = [](const PlaceForcing&, double) { return 0.0; };
  double (*factor)(const PlaceForcing&, double) = [](const PlaceForcing&, double) { return 1.0; };
  /// Of the longitude in radians, with its shift.
  double (*wave)(double) = [](double angle) { return std::cos(angle); };

  double value(double sum_here, double factor_here, double wave_here) const {
    const double result = sum_here + factor_here * wave_here;
    return positive ? std::max(0.0, result) / divisor : result;
  }
};

PlaceForcing place_forcing(Forcing forcing, Time time, Calendar calendar) {
  PlaceForcing result;
  const auto nothing = [](const PlaceForcing&, double) { return 0.0; };
  const auto sine = [](double angle) { return std::sin(angle); };
  switch (forcing) {
    case Forcing::kSinLongitude:
      result.wave = sine;
      break;
    case Forcing::kSinLatitude:
      result.sum = [](const PlaceForcing&, double latitude) { return std::sin(latitude); };
      result.factor = nothing;
      break;
    case Forcing::kCosLatitude:
      result.sum = [](const PlaceForcing&, double latitude) { return std::cos(latitude); };
      result.factor = nothing;
      break;
    case Forcing::kSinLocalTime:
      result.wave = sine;
      [[fallthrough]];
    case Forcing::kCosLocalTime:
      result.shift = phase(Forcing::kSinTimeOfDay, time, calendar);
      break;
    case Forcing::kInsolation:
    case Forcing::kCosZenithAngle: {
      const SunPosition sun = sun_at(time, calendar);
      result.sin_declination = std::sin(sun.declination);
      result.cos_declination = std::cos(sun.declination);
      result.shift = sun.greenwich_hour_angle;
      result.positive = forcing == Forcing::kInsolation;
      result.divisor = sun.distance * sun.distance;
      result.sum = [](const PlaceForcing& of, double latitude) {
        return of.sin_declination * std::sin(latitude);
      };
      result.factor = [](const PlaceForcing& of, double latitude) {
        return of.cos_declination * std::cos(latitude);
      };
      break;
    }
    default:
      require(forcing == Forcing::kCosLongitude, "this forcing is no function of places");
  }
  return result;
}

}  // namespace

void ForcingFields::fill_from_degrees(Forcing forcing, Time time, const Box& box, std::span<double> out,
                                      const PointPlaces* places) const {
  constexpr double kRadians = std::numbers::pi / 180;
  const PlaceForcing of = place_forcing(forcing, time, calendar_);
  if (places != nullptr) {
    for (std::size_t i = 0; i < out.size(); ++i) {
      const double latitude = places->latitude[i] * kRadians;
      out[i] = of.value(of.sum(of, latitude), of.factor(of, latitude),
                        of.wave(places->longitude[i] * kRadians + of.shift));
    }
    return;
  }
  std::vector<double> waves;
  for (std::int64_t column = box.begin[1]; column < box.end(1); ++column)
    waves.push_back(of.wave(column_degrees_[static_cast<std::size_t>(column)] * kRadians + of.shift));
  auto to = out.begin();
  for (std::int64_t row = box.begin[0]; row < box.end(0); ++row) {
    const double latitude = row_degrees_[static_cast<std::size_t>(row)] * kRadians;
    const double sum = of.sum(of, latitude), factor = of.factor(of, latitude);
    to = std::transform(waves.begin(), waves.end(), to,
                        [&](double wave) { return of.value(sum, factor, wave); });
  }
}

void ForcingFields::fill(Forcing forcing, Time time, const Box& box, std::span<double> out,
                         const PointPlaces* places) const {
  const std::int64_t rows = box.extent[0], columns = box.extent[1];
  const auto along_row = [&](const std::vector<double>& values) {
    for (std::int64_t row = 0; row < rows; ++row) {
      std::copy_n(values.begin() + box.begin[1], columns, out.begin() + row * columns);
    }
  };
  if (needs_degrees(forcing)) return fill_from_degrees(forcing, time, box, out, places);
  switch (forcing) {
    case Forcing::kLatitude:
      for (std::int64_t row = 0; row < rows; ++row) {
        std::fill_n(out.begin() + row * columns, columns,
                    latitude_[static_cast<std::size_t>(box.begin[0] + row)]);
      }
      return;
    case Forcing::kLongitude:
      return along_row(longitude_);
    case Forcing::kSinTimeOfDay:
    case Forcing::kSinDayOfYear:
      std::fill(out.begin(), out.end(), std::sin(phase(forcing, time, calendar_)));
      return;
    case Forcing::kCosTimeOfDay:
    case Forcing::kCosDayOfYear:
      std::fill(out.begin(), out.end(), std::cos(phase(forcing, time, calendar_)));
      return;
    default:
      fail("unknown forcing");
  }
}

}  // namespace jigsaw::inline grids
