#include "report/axis.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <utility>

#include "report/svg.h"

namespace jigsaw::inline report {

std::vector<double> ticks(double low, double high, int count, bool whole) {
  if (!(high > low)) return {low};
  const double rough = (high - low) / count, power = std::pow(10.0, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough) {
      step = factor * power;
      break;
    }
  }
  if (whole) step = std::max(1.0, std::round(step));
  std::vector<double> result;
  for (double i = std::ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; ++i)
    result.push_back(i * step);
  return result;
}

std::vector<std::string> mark_labels(const std::vector<double>& marks) {
  std::vector<std::string> labels;
  for (const double mark : marks) labels.push_back(short_number(mark));
  double step = std::numeric_limits<double>::infinity();
  for (std::size_t i = 1; i < marks.size(); ++i) step = std::min(step, std::abs(marks[i] - marks[i - 1]));
  const auto exact = [&](std::size_t i) {
    return !std::isfinite(step) || std::abs(std::strtod(labels[i].c_str(), nullptr) - marks[i]) < 0.01 * step;
  };
  for (std::size_t i = 0; i < marks.size(); ++i) {
    for (int digits = 5; digits <= 15 && !exact(i); ++digits) {
      std::array<char, 32> text{};
      std::snprintf(text.data(), text.size(), "%.*g", digits, marks[i]);
      labels[i] = text.data();
    }
  }
  return labels;
}

namespace {

/// The values of a line in order, but those that are huge: beyond the closest half of them by a million times
/// its length (or a fifth of its centre), on a logarithmic axis by ten times its length and six decades. Of a
/// few values none is.
/// @param values  that the axis shows; of a logarithmic one their logarithms.
std::vector<double> without_huge(std::vector<double> values, bool logarithmic) {
  constexpr std::size_t kFew = 4;
  std::ranges::sort(values);
  if (values.size() < kFew) return values;
  const std::size_t half = (values.size() + 1) / 2;
  const auto length = [&](std::size_t i) { return values[i + half - 1] - values[i]; };
  std::size_t best = 0;
  for (std::size_t i = 1; i + half <= values.size(); ++i) {
    if (length(i) < length(best)) best = i;
  }
  const double low = values[best], high = values[best + half - 1], centre = (low + high) / 2;
  constexpr double kMillion = 1e6, kShare = 0.2, kDecades = 6, kLengths = 10;
  const double reach = logarithmic ? std::max(kDecades, kLengths * (high - low))
                                   : kMillion * std::max(high - low, kShare * std::abs(centre));
  if (reach > 0) {
    std::erase_if(
        values, [&](double value) { return value > high + reach || (!logarithmic && value < low - reach); });
  }
  return values;
}

/// Of a list in order the value that half of it does not exceed.
double middle_of(const std::vector<double>& sorted) {
  return sorted[(sorted.size() - 1) / 2];
}

/// The line's value in the middle of those of the half of the lines where it is smallest.
double centre_of(const std::vector<std::vector<double>>& lines) {
  std::vector<double> centres;
  for (const std::vector<double>& line : lines) centres.push_back(middle_of(line));
  std::ranges::sort(centres, {}, [](double centre) { return std::abs(centre); });
  return middle_of(centres);
}

}  // namespace

Limits limits_of_most(const std::vector<std::vector<double>>& lines, bool logarithmic, double far) {
  std::vector<std::vector<double>> shown;
  for (const std::vector<double>& line : lines) {
    std::vector<double> values;
    for (const double value : line) {
      if (!std::isfinite(value) || (logarithmic && value <= 0)) continue;
      values.push_back(logarithmic ? std::log10(value) : value);
    }
    values = without_huge(std::move(values), logarithmic);
    if (!values.empty()) shown.push_back(std::move(values));
  }
  if (shown.empty()) return {};
  const double centre = logarithmic ? 0 : centre_of(shown);
  std::vector<double> sizes;  // how far each line goes from there
  for (const std::vector<double>& line : shown)
    sizes.push_back(logarithmic ? line.back()
                                : std::max(std::abs(line.front() - centre), std::abs(line.back() - centre)));
  std::ranges::sort(sizes);
  constexpr double kLeast = 0.1;  // of the centre, where lines are alike
  const double bound = logarithmic ? middle_of(sizes) + 3 * std::log10(far)
                                   : far * std::max(middle_of(sizes), kLeast * std::abs(centre));
  if (!logarithmic && bound == 0) return {};  // nothing says what is large
  const double most = *std::prev(std::ranges::upper_bound(sizes, bound));
  constexpr double kRounding = 1e-9;
  if (logarithmic) return {0, std::pow(10, most) * (1 + kRounding)};
  const double reach = most * (1 + kRounding) + kRounding * std::abs(centre);
  return {centre - reach, centre + reach};
}

bool Axis::shows(double value) const {
  return std::isfinite(value) && (!log_ || value > 0);
}

void Axis::include(double value) {
  if (!shows(value)) return;
  least_ = std::min(least_, value);
  largest_ = std::max(largest_, value);
  reach_to(value);
}

void Axis::reach_to(double value) {
  if (!shows(value)) return;
  low_ = std::min(low_, value);
  high_ = std::max(high_, value);
}

void Axis::close(double below, double above, bool whole) {
  whole_ = whole;
  if (!(low_ <= high_)) low_ = log_ ? 0.1 : 0, high_ = 1;
  const double range = high_ - low_;
  // Nor do ticks tell apart what lies closer than float64 does.
  if (!(range > 1e-12 * std::abs(high_))) {
    const double around = low_ == 0 ? 1 : 0.1 * std::abs(low_);
    high_ += around;
    low_ = log_ ? low_ / 2 : low_ - around;
    return;
  }
  const double low = low_, high = high_;
  const auto inside = [&](double share) {
    return log_ ? low * std::pow(high / low, share) : low + share * range;
  };
  constexpr double kNear = 0.01;
  if (below > 0 && least_ <= inside(kNear)) low_ = inside(-below);
  if (above > 0 && largest_ >= inside(1 - kNear)) high_ = inside(1 + above);
}

void Axis::place(double first, double last) {
  first_ = first;
  last_ = last;
}

double Axis::at(double value) const {
  const double part =
      log_ ? std::log(value / low_) / std::log(high_ / low_) : (value - low_) / (high_ - low_);
  constexpr double kFar = 1e6;  // still a number of pixels
  return first_ + std::clamp(part, -kFar, kFar) * (last_ - first_);
}

std::vector<double> Axis::marks(int count) const {
  if (!log_ || high_ < 10 * low_) return ticks(low_, high_, count, whole_);
  std::vector<double> result;
  const double first = std::floor(std::log10(low_)), last = std::ceil(std::log10(high_));
  const double every = std::max(1.0, std::ceil((last - first) / count));
  for (double power = first; power <= last; power += every) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double value = factor * std::pow(10.0, power);
      if (value < low_ * 0.999 || value > high_ * 1.001 || (factor != 1 && last - first > 2)) continue;
      if (!whole_ || value == std::round(value)) result.push_back(value);
    }
  }
  return result;
}

}  // namespace jigsaw::inline report
