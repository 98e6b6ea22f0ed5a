#pragma once
#include <cstdint>
#include <vector>

namespace jigsaw::inline samples {

/// One Rossby–Haurwitz wave: stream function a² K cos^R(φ) sin(φ) cos(R(λ − νt) + p).
struct RossbyWave {
  int wavenumber = 1;    ///< R, waves around a circle of latitude
  double amplitude = 0;  ///< K [s-1]
  double phase = 0;      ///< p [radians]
};

/// An analytic barotropic atmosphere: solid rotation, and Rossby–Haurwitz waves that travel on it,
/// long ones to the west, short ones to the east. It has no noise and no land; what is to be
/// learned is how each wave moves, and the course of the day.
///
/// Stream function (Haurwitz 1940; Williamson et al. 1992, test case 6), a the Earth's radius:
///   ψ = −a²ω sin(φ) + Σ a² K cos^R(φ) sin(φ) cos(R(λ − νt) + p),
///   ν = (R(3 + R)ω − 2Ω) / ((1 + R)(2 + R)),
/// exact for one wave, and for several as the linear theory has it. Everything else follows:
/// winds from ψ, geopotential in balance, temperature as the waves carry it.
///
/// Latitude φ and longitude λ in radians, time t in seconds since any midnight UTC.
class RossbyHaurwitzFlow {
 public:
  static constexpr int kLargestWavenumber = 8;
  static constexpr double kEarthRadius = 6.37122e6;     ///< a [m]
  static constexpr double kEarthRotation = 7.292e-5;    ///< Ω [s-1]
  static constexpr double kSolidRotation = 4.7e-6;      ///< ω [s-1]: 30 m/s at the equator
  static constexpr double kEquatorPoleContrast = 45.0;  ///< of the mean temperature [K]
  static constexpr double kEquatorTemperature = 300.0;  ///< [K]
  static constexpr double kDailyTemperature =
      3.0;  ///< amplitude at the equator, warmest at 15 h local time [K]
  static constexpr double kEquatorGeopotential = 57500.0;  ///< of the 500 hPa surface [m2 s-2]

  struct State {
    double temperature;   ///< [K]
    double eastward;      ///< wind [m s-1]
    double northward;     ///< wind [m s-1]
    double geopotential;  ///< [m2 s-2]
  };

  explicit RossbyHaurwitzFlow(std::vector<RossbyWave> waves) : waves_(std::move(waves)) {}
  /// All wavenumbers from 1 on, phases and amplitudes (3 to 6 m/s of northward wind) by the seed.
  static RossbyHaurwitzFlow random(std::uint64_t seed);

  /// ν: the angle by which a wave moves eastward [s-1].
  static double angular_speed(int wavenumber);

  /// ψ [m2 s-1].
  double stream_function(double latitude, double longitude, double time) const;
  State at(double latitude, double longitude, double time) const;

 private:
  std::vector<RossbyWave> waves_;
};

}  // namespace jigsaw::inline samples
