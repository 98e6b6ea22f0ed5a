#pragma once
#include <cstddef>
#include <span>

#include "evaluate/score_report.h"

namespace jigsaw::inline evaluate {

/// Straight lines through the spatial means of forecast and truth by lead, least squares, and through their
/// difference: how far each goes in ten years of the calendar, in the variable's units. NaN where fewer than
/// two leads have a number.
struct ClimateTrend {
  double forecast = 0, truth = 0, drift = 0;
};
/// Of the leads behind the spin-up of the climate.
ClimateTrend trend_of(const ScoreReport& report, std::size_t variable, std::size_t region);

/// The slope of the least-squares line through the values at 0, 1, …; those that are not finite do not count.
double slope_of(std::span<const double> values);

struct TrendMeasure {
  const char *name, *long_name;
  double ClimateTrend::*value;
  const char* title;  ///< of its column
};
std::span<const TrendMeasure> trend_measures();

}  // namespace jigsaw::inline evaluate
