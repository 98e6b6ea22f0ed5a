#include "samples/sample_data.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numbers>

#include "base/error.h"
#include "files/netcdf_file.h"
#include "io/fixtures.h"
#include "samples/sample_flow.h"

namespace jigsaw {
namespace sample_data_test {

constexpr double kA = RossbyHaurwitzFlow::kEarthRadius;
constexpr double kRotation = RossbyHaurwitzFlow::kEarthRotation;
constexpr double kOmega = RossbyHaurwitzFlow::kSolidRotation;
constexpr double kDegree = std::numbers::pi / 180.0;
constexpr double kStep = 1e-4;  // of differences, radians

/// Central difference of f at x.
template <typename F>
double slope(F f, double x, double step = kStep) {
  return (f(x + step) - f(x - step)) / (2.0 * step);
}

/// Calls f(latitude, longitude, time) at places away from the poles, in radians and seconds.
template <typename F>
void at_some_places(F f) {
  for (const double latitude : {-71.0, -33.0, 2.0, 18.0, 45.0, 64.0}) {
    for (const double longitude : {0.0, 77.0, 201.0})
      f(latitude * kDegree, longitude * kDegree, 3.3e8 + 5000.0);
  }
}

TEST(RossbyHaurwitzFlow, WindIsTheCurlOfTheStreamFunction) {
  const auto flow = RossbyHaurwitzFlow::random(3);
  at_some_places([&](double latitude, double longitude, double time) {
    const auto state = flow.at(latitude, longitude, time);
    const double by_latitude =
        slope([&](double x) { return flow.stream_function(x, longitude, time); }, latitude);
    const double by_longitude =
        slope([&](double x) { return flow.stream_function(latitude, x, time); }, longitude);
    EXPECT_NEAR(state.eastward, -by_latitude / kA, 1e-4);
    EXPECT_NEAR(state.northward, by_longitude / (kA * std::cos(latitude)), 1e-4);
  });
}

/// ∇·(weight ∇f) on the sphere at a place; weight and f are functions of latitude and longitude.
template <typename W, typename F>
double divergence_of_gradient(W weight, F f, double latitude, double longitude) {
  const double cosine = std::cos(latitude), step = 1e-3;
  const auto meridional = [&](double x) {
    return weight(x) * std::cos(x) * slope([&](double y) { return f(y, longitude); }, x, step);
  };
  const auto zonal = [&](double x) { return slope([&](double y) { return f(latitude, y); }, x, step); };
  return (slope(meridional, latitude, step) / cosine +
          weight(latitude) * slope(zonal, longitude, step) / (cosine * cosine)) /
         (kA * kA);
}

TEST(RossbyHaurwitzFlow, GeopotentialOfTheWavesIsInLinearBalance) {
  const auto flow = RossbyHaurwitzFlow::random(3);
  const RossbyHaurwitzFlow still({});
  at_some_places([&](double latitude, double longitude, double time) {
    const auto geopotential = [&](double y, double x) {
      return flow.at(y, x, time).geopotential - still.at(y, x, time).geopotential;
    };
    const auto psi = [&](double y, double x) {
      return flow.stream_function(y, x, time) - still.stream_function(y, x, time);
    };
    const double laplacian =
        divergence_of_gradient([](double) { return 1.0; }, geopotential, latitude, longitude);
    const double expected = divergence_of_gradient([](double y) { return 2.0 * kRotation * std::sin(y); },
                                                   psi, latitude, longitude);
    EXPECT_NEAR(laplacian, expected, 1e-4 * 2.0 * kRotation * 1e-5);  // f ζ is about 1e-9
  });
}

TEST(RossbyHaurwitzFlow, SolidRotationIsInGradientWindBalance) {
  const RossbyHaurwitzFlow still({});
  at_some_places([&](double latitude, double longitude, double time) {
    const double u = still.at(latitude, longitude, time).eastward;
    const double gradient =
        slope([&](double y) { return still.at(y, longitude, time).geopotential; }, latitude) / kA;
    EXPECT_NEAR(2.0 * kRotation * std::sin(latitude) * u + u * u * std::tan(latitude) / kA, -gradient, 1e-8);
  });
}

TEST(RossbyHaurwitzFlow, TemperatureIsCarriedByTheWind) {
  const auto flow = RossbyHaurwitzFlow::random(3);
  const RossbyHaurwitzFlow still({});
  at_some_places([&](double latitude, double longitude, double time) {
    const auto anomaly = [&](double x, double t) {
      return flow.at(latitude, x, t).temperature - still.at(latitude, x, t).temperature;
    };
    // Without the course of the day, which is the same for all waves: its mean over a day.
    const auto mean = [&](double y) {
      return 0.5 *
             (still.at(y, longitude, time).temperature + still.at(y, longitude, time + 43200.0).temperature);
    };
    const double change = slope([&](double t) { return anomaly(longitude, t); }, time, 10.0) +
                          kOmega * slope([&](double x) { return anomaly(x, time); }, longitude);
    const double northward = flow.at(latitude, longitude, time).northward;
    EXPECT_NEAR(change, -northward / kA * slope(mean, latitude), 1e-9);  // K/s; waves carry about 1e-5
  });
}

TEST(RossbyHaurwitzFlow, DayIsWarmestAtThreeInTheAfternoon) {
  const RossbyHaurwitzFlow still({});
  const double longitude = 60.0 * kDegree;  // four hours ahead of UTC
  const double warmest = still.at(0.0, longitude, 11.0 * 3600.0).temperature;
  EXPECT_NEAR(warmest, RossbyHaurwitzFlow::kEquatorTemperature + RossbyHaurwitzFlow::kDailyTemperature, 1e-9);
  EXPECT_NEAR(still.at(0.0, longitude, 23.0 * 3600.0).temperature,
              RossbyHaurwitzFlow::kEquatorTemperature - RossbyHaurwitzFlow::kDailyTemperature, 1e-9);
}

/// A file written, read by the reader that the tests of its own compare with netCDF4's.
class Input {
 public:
  explicit Input(const std::string& path) : file_(path) {}

  const FileVariable& operator[](const std::string& name) const {
    const FileVariable* variable = file_.find(name);
    if (variable == nullptr) throw std::out_of_range(name);
    return *variable;
  }
  /// In physical units; NaN where it is the fill value.
  std::vector<double> values(const std::string& name) {
    const FileVariable& variable = (*this)[name];
    std::vector<double> result(static_cast<std::size_t>(variable.shape.count()));
    file_.read<double>(variable, Box::whole(variable.shape), result);
    return result;
  }
  double number(const std::string& name, const std::string& attribute) const {
    return (*this)[name].numbers.at(attribute).at(0);
  }

 private:
  NetcdfFile file_;
};

class SampleData : public ::testing::Test {
 protected:
  SampleData() {
    folder_ = std::filesystem::temp_directory_path() /
              (std::string("jigsaw_sample_data_") +
               ::testing::UnitTest::GetInstance()->current_test_info()->name() + std::to_string(getpid()));
  }
  ~SampleData() override { std::filesystem::remove_all(folder_); }

  std::string write(const SampleDataOptions& options, const std::string& name = "a") const {
    write_sample_data(options, (folder_ / name).string());
    return (folder_ / name).string();
  }

  std::filesystem::path folder_;
};

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST_F(SampleData, LinksAreReplacedAndNotFollowed) {
  std::filesystem::create_directories(folder_ / "a");
  const std::string precious = folder_ / "precious";
  std::ofstream(precious) << "kept";
  for (const std::string& name : {std::string("sample_2021-01.nc"), private_name("sample_2021-01.nc")})
    std::filesystem::create_symlink("../precious", folder_ / "a" / name);
  const std::string folder =
      write({.rows = 5, .columns = 18, .step_hours = 12, .year = 2021, .month = 1, .months = 1});
  EXPECT_EQ(Input(folder + "/sample_2021-01.nc").values("time").size(), 62U);
  EXPECT_EQ(bytes_of(precious), "kept");
}

TEST_F(SampleData, FilesLookLikeTheClimateDataStores) {
  const std::string folder = write({.rows = 5, .columns = 18, .step_hours = 12, .year = 2019, .month = 12});
  Input december(folder + "/sample_2019-12.nc"), january(folder + "/sample_2020-01.nc");

  EXPECT_EQ(december.values("time").size(), 62U);
  EXPECT_EQ(december.values("time").front(), 1051152.0);  // 43798 days from 1900-01-01 to 2019-12-01
  EXPECT_EQ(january.values("time").front(), december.values("time").back() + 12.0);
  EXPECT_EQ(december["time"].text("units"), "hours since 1900-01-01 00:00:00.0");
  EXPECT_EQ(december["time"].text("calendar"), "gregorian");
  EXPECT_EQ(december.values("latitude"), (std::vector<double>{90, 45, 0, -45, -90}));
  EXPECT_EQ(december["latitude"].text("units"), "degrees_north");
  EXPECT_EQ(december.values("longitude").front(), 0.0);
  EXPECT_EQ(december.values("longitude").back(), 340.0);
  EXPECT_EQ(december["longitude"].text("units"), "degrees_east");
  const std::vector<std::array<const char*, 3>> variables = {{"t2m", "K", "air_temperature"},
                                                             {"u10", "m s**-1", "eastward_wind"},
                                                             {"v10", "m s**-1", "northward_wind"},
                                                             {"z", "m**2 s**-2", "geopotential"}};
  for (const auto& [name, units, standard_name] : variables) {
    SCOPED_TRACE(name);
    EXPECT_EQ(december[name].bytes, 2);
    EXPECT_EQ(december[name].dimensions, (std::vector<std::string>{"time", "latitude", "longitude"}));
    EXPECT_EQ(december[name].text("units"), units);
    EXPECT_EQ(december[name].text("standard_name"), standard_name);
    EXPECT_NE(december[name].text("long_name"), "");
    EXPECT_EQ(december.number(name, "_FillValue"), -32767.0);
    EXPECT_EQ(december.number(name, "missing_value"), -32767.0);
    EXPECT_NE(december.number(name, "scale_factor"), january.number(name, "scale_factor"));
    for (const double value : december.values(name)) ASSERT_FALSE(std::isnan(value));
  }
}

TEST_F(SampleData, PackingIsWrongByHalfAStepAtMost) {
  const SampleDataOptions options{.rows = 7, .columns = 20, .months = 1, .seed = 5};
  Input file(write(options) + "/sample_2021-01.nc");
  const auto flow = RossbyHaurwitzFlow::random(options.seed);
  const auto times = file.values("time"), latitudes = file.values("latitude"),
             longitudes = file.values("longitude");
  const auto t2m = file.values("t2m"), u10 = file.values("u10"), v10 = file.values("v10"),
             z = file.values("z");
  const auto half = [&](const char* name) { return 0.5 * file.number(name, "scale_factor") * (1.0 + 1e-6); };
  std::size_t i = 0;
  for (const double time : times) {
    for (const double latitude : latitudes) {
      for (const double longitude : longitudes) {
        const auto state = flow.at(latitude * kDegree, longitude * kDegree, time * 3600.0);
        ASSERT_NEAR(t2m[i], state.temperature, half("t2m"));
        ASSERT_NEAR(u10[i], state.eastward, half("u10"));
        ASSERT_NEAR(v10[i], state.northward, half("v10"));
        ASSERT_NEAR(z[i], state.geopotential, half("z"));
        ++i;
      }
    }
  }
  EXPECT_EQ(i, 124U * 7 * 20);
  EXPECT_LT(half("t2m"), 0.001);
}

TEST_F(SampleData, WindDivergesLittleOnTheGrid) {
  const int rows = 91, columns = 180;  // 2 degrees
  Input file(write({.rows = rows, .columns = columns, .step_hours = 24, .months = 1}) + "/sample_2021-01.nc");
  const auto u = file.values("u10"), v = file.values("v10"), latitudes = file.values("latitude");
  const auto at = [&](const std::vector<double>& field, int row, int column) {
    return field[static_cast<std::size_t>(row * columns + (column + columns) % columns)];
  };
  double divergence2 = 0, vorticity2 = 0;
  const double spacing = 2.0 * 2.0 * kDegree;  // between both neighbours
  for (int row = 1; row + 1 < rows; ++row) {
    const auto cosine = [&](int r) { return std::cos(latitudes[static_cast<std::size_t>(r)] * kDegree); };
    for (int column = 0; column < columns; ++column) {
      const auto both = [&](const std::vector<double>& zonal, const std::vector<double>& meridional,
                            double sign) {
        const double along = at(zonal, row, column + 1) - at(zonal, row, column - 1);
        const double across = at(meridional, row - 1, column) * cosine(row - 1) -
                              at(meridional, row + 1, column) * cosine(row + 1);
        return (along + sign * across) / (spacing * kA * cosine(row));
      };
      const double area = cosine(row);
      divergence2 += area * std::pow(both(u, v, 1.0), 2);
      vorticity2 += area * std::pow(both(v, u, -1.0), 2);
    }
  }
  EXPECT_GT(std::sqrt(vorticity2), 0.0);
  EXPECT_LT(std::sqrt(divergence2), 0.02 * std::sqrt(vorticity2));
}

TEST_F(SampleData, WavesTravelByTheirDispersionRelation) {
  const SampleDataOptions options{.rows = 37, .columns = 72, .step_hours = 3, .months = 1};
  Input file(write(options) + "/sample_2021-01.nc");
  const auto z = file.values("z");
  const int row = 9, times = 8;  // 45 degrees north, a day
  for (int r = 1; r <= RossbyHaurwitzFlow::kLargestWavenumber; ++r) {
    const auto phase = [&](int time) {
      double along = 0, off = 0;
      for (int column = 0; column < options.columns; ++column) {
        const double value =
            z[static_cast<std::size_t>((time * options.rows + row) * options.columns + column)];
        along += value * std::cos(r * column * 5.0 * kDegree);
        off += value * std::sin(r * column * 5.0 * kDegree);
      }
      return std::atan2(off, along);
    };
    double turned = 0;
    for (int time = 0; time < times; ++time) {
      turned += std::remainder(phase(time + 1) - phase(time), 2.0 * std::numbers::pi);
    }
    const double measured = turned / r / (times * 3 * 3600.0);
    // Solid rotation carries the harmonics of degree n = R + 1, the beta effect holds them back.
    const double expected = kOmega - 2.0 * (kRotation + kOmega) / ((r + 1.0) * (r + 2.0));
    EXPECT_NEAR(measured, expected, 1e-9) << "wavenumber " << r;
  }
}

TEST_F(SampleData, SeedDecidesTheBytes) {
  SampleDataOptions options{.rows = 5, .columns = 18, .step_hours = 24, .months = 1};
  const std::string first = bytes_of(write(options, "first") + "/sample_2021-01.nc");
  EXPECT_EQ(first, bytes_of(write(options, "again") + "/sample_2021-01.nc"));
  options.seed = 2;
  EXPECT_NE(first, bytes_of(write(options, "other") + "/sample_2021-01.nc"));
}

TEST_F(SampleData, SaysWhatIsWrong) {
  EXPECT_THROW(write({.columns = 17}), ConfigError);
  EXPECT_THROW(write({.step_hours = 5}), ConfigError);
  EXPECT_THROW(write({.month = 13}), ConfigError);
  std::filesystem::create_directories(folder_);
  std::ofstream(folder_ / "a") << "a file";
  const std::string message = message_of<ConfigError>([&] { write({}); });
  EXPECT_NE(message.find((folder_ / "a").string()), std::string::npos) << message;
}

}  // namespace sample_data_test
}  // namespace jigsaw
