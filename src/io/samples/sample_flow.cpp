#include "samples/sample_flow.h"

#include <cmath>
#include <numbers>

#include "array/random.h"

namespace jigsaw::inline samples {

namespace {

constexpr double kA = RossbyHaurwitzFlow::kEarthRadius;
constexpr double kOmega = RossbyHaurwitzFlow::kSolidRotation;
constexpr double kRotation = RossbyHaurwitzFlow::kEarthRotation;

/// The largest cos^(R-1)(φ) sin(φ), where sin²(φ) = 1/R.
double largest_northward(int r) {
  return std::pow(1.0 - 1.0 / r, 0.5 * (r - 1)) / std::sqrt(r);
}

double angle(const RossbyWave& wave, double longitude, double time) {
  const int r = wave.wavenumber;
  return r * (longitude - RossbyHaurwitzFlow::angular_speed(r) * time) + wave.phase;
}

}  // namespace

RossbyHaurwitzFlow RossbyHaurwitzFlow::random(std::uint64_t seed) {
  const RandomStream stream(seed, RandomPurpose::kSampleData, "rossby_haurwitz");
  std::vector<RossbyWave> waves;
  for (int r = 1; r <= kLargestWavenumber; ++r) {
    const auto element = static_cast<std::uint64_t>(2 * r);
    const double northward = 3.0 + 3.0 * stream.uniform({}, element);
    waves.push_back({.wavenumber = r,
                     .amplitude = northward / (kA * r * largest_northward(r)),
                     .phase = 2.0 * std::numbers::pi * stream.uniform({}, element + 1)});
  }
  return RossbyHaurwitzFlow(std::move(waves));
}

double RossbyHaurwitzFlow::angular_speed(int r) {
  return (r * (3 + r) * kOmega - 2.0 * kRotation) / ((1 + r) * (2 + r));
}

double RossbyHaurwitzFlow::stream_function(double latitude, double longitude, double time) const {
  double psi = -kOmega;
  for (const RossbyWave& wave : waves_) {
    psi += wave.amplitude * std::pow(std::cos(latitude), wave.wavenumber) *
           std::cos(angle(wave, longitude, time));
  }
  return kA * kA * std::sin(latitude) * psi;
}

RossbyHaurwitzFlow::State RossbyHaurwitzFlow::at(double latitude, double longitude, double time) const {
  const double cosine = std::cos(latitude), sine = std::sin(latitude), sine2 = sine * sine;
  const double local_hours = time / 3600.0 + longitude * 12.0 / std::numbers::pi;
  State state{
      .temperature = kEquatorTemperature - kEquatorPoleContrast * sine2 +
                     kDailyTemperature * cosine * std::cos((local_hours - 15.0) * std::numbers::pi / 12.0),
      .eastward = kA * kOmega * cosine,
      .northward = 0.0,
      // Gradient-wind balance of solid rotation.
      .geopotential = kEquatorGeopotential - kA * kA * kOmega * (kRotation + 0.5 * kOmega) * sine2,
  };
  for (const RossbyWave& wave : waves_) {
    const int r = wave.wavenumber;
    const double in_phase = wave.amplitude * std::cos(angle(wave, longitude, time));
    const double a_quarter_off = wave.amplitude * std::sin(angle(wave, longitude, time));
    const double profile = std::pow(cosine, r - 1);
    // u = −∂ψ/∂φ / a and v = ∂ψ/∂λ / (a cos φ).
    state.eastward += kA * profile * (r * sine2 - cosine * cosine) * in_phase;
    state.northward -= kA * r * profile * sine * a_quarter_off;
    // Linear balance ∇²Φ = ∇·(2Ω sin φ ∇ψ), solved in the harmonics of degree R and R + 2.
    const double balance = (r + 1.0) / (r + 2.0) * sine2 + 1.0 / ((r + 1.0) * (r + 2.0));
    state.geopotential += 2.0 * kRotation * kA * kA * profile * cosine * balance * in_phase;
    // ∂T'/∂t + ω ∂T'/∂λ = −v/a ∂T/∂φ: northward wind brings warmth, the rotation carries it on.
    state.temperature +=
        2.0 * kEquatorPoleContrast * profile * cosine * sine2 * in_phase / (kOmega - angular_speed(r));
  }
  return state;
}

}  // namespace jigsaw::inline samples
