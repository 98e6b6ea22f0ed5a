// Convolutions on the sphere and global grids in float64 beside PyTorch's numbers, on one rank and on meshes;
// and what spherical harmonics are by definition.
#include "layers/spherical.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "config/config.h"
#include "layers/layer_golden.h"
#include "layers/model.h"
#include "layers/spherical_harmonics.h"
#include "support/golden_file.h"
#include "task/configuration.h"

namespace jigsaw {
namespace spherical_test {

using testing::check_layer;
using testing::GoldenFile;
using testing::layer;
using testing::read_layer;

constexpr const char* kFile = "spherical.h5";
constexpr GlobalRows kAllRows[] = {GlobalRows::kPolePoint, GlobalRows::kPoleCell, GlobalRows::kGauss};

TEST(GoldenSpherical, Convolution) {
  const std::map<GlobalRows, Shape> fields = {{GlobalRows::kPolePoint, {2, 7, 12, 3}},
                                              {GlobalRows::kPoleCell, {2, 6, 9, 3}},
                                              {GlobalRows::kGauss, {2, 5, 10, 3}}};
  for (const auto& [rows, field] : fields) {
    SphericalConvolutionOptions options{.latitudes = rows, .features = 4};
    check_layer(read_layer(kFile, concat("spherical_conv_", name(rows)), field,
                           layer<SphericalConvolution>(options)));
  }
}

TEST(GoldenSpherical, Resample) {
  check_layer(read_layer(kFile, "spherical_resample", {2, 9, 16, 3},
                         layer<SphericalResample>(SphericalResampleOptions{{5, 8}})));
}

TEST(GoldenSpherical, EveryLayerOfTheFileIsTested) {
  const std::vector<std::string> expected = {"spherical_conv_gauss", "spherical_conv_pole_cell",
                                             "spherical_conv_pole_point", "spherical_resample"};
  EXPECT_EQ(GoldenFile(kFile).names("/"), expected);
}

// ---- quadrature

double legendre_polynomial(std::int64_t degree, double x) {
  return degree == 0 ? 1 : std::legendre(static_cast<unsigned>(degree), x);
}

TEST(GlobalRows, SumsAreExactForAsManyDegreesAsTheyPromise) {
  for (const GlobalRows rows : kAllRows) {
    for (const std::int64_t count : {2, 3, 8, 33, 180, 721}) {
      SCOPED_TRACE(concat(name(rows), " ", count));
      const std::vector<double> latitudes = global_latitudes(rows, count),
                                weights = quadrature_weights(rows, count);
      const std::int64_t exact = rows == GlobalRows::kGauss ? 2 * count - 1 : count - 1;
      double worst = 0;
      for (std::int64_t degree = 0; degree <= exact; ++degree) {
        double sum = 0;
        for (std::size_t row = 0; row < weights.size(); ++row) {
          const double sine = std::sin(latitudes[row] * std::numbers::pi / 180);
          sum += weights[row] * legendre_polynomial(degree, sine);
        }
        worst = std::max(worst, std::abs(sum - (degree == 0 ? 2 : 0)));
      }
      EXPECT_LT(worst, 1e-12);
    }
  }
}

TEST(GlobalRows, LieWhereTheirNameSays) {
  EXPECT_NEAR(global_latitudes(GlobalRows::kPolePoint, 181)[1], 89, 1e-12);
  EXPECT_NEAR(global_latitudes(GlobalRows::kPolePoint, 181)[180], -90, 1e-12);
  EXPECT_NEAR(global_latitudes(GlobalRows::kPoleCell, 180)[0], 89.5, 1e-12);
  // Of the Gaussian grid N32, as ECMWF lists it.
  EXPECT_NEAR(global_latitudes(GlobalRows::kGauss, 64)[0], 87.863799, 1e-6);
  EXPECT_NEAR(global_latitudes(GlobalRows::kGauss, 64)[31], 1.395307, 1e-6);
}

// ---- harmonics

/// P̄(l, m) at the rows, of a factor to degrees with its weights taken out.
std::vector<double> legendre_row(const SphericalTransform& transform, std::int64_t order,
                                 std::int64_t degree) {
  const Shape& shape = transform.from_degrees->shape;
  return transform.from_degrees->values({{order, degree, 0}, {1, 1, shape[2]}});
}

TEST(SphericalHarmonics, AreThoseOfTheLibrary) {
  const GlobalGrid grid{GlobalRows::kGauss, 12, 24};
  const SphericalTransform transform(grid, 12);
  const std::vector<double> latitudes = global_latitudes(grid.rows, grid.latitudes);
  for (unsigned m = 0; m < 12; ++m) {
    for (unsigned l = 0; l < 12; ++l) {
      const std::vector<double> row = legendre_row(transform, m, l);
      for (std::size_t i = 0; i < row.size(); ++i) {
        // std::sph_legendre has the mean square 1/4π, and the sign (−1)^m.
        const double angle = (90 - latitudes[i]) * std::numbers::pi / 180,
                     scale = std::sqrt(4 * std::numbers::pi) * (m % 2 == 0 ? 1 : -1);
        const double expected = l < m ? 0 : scale * std::sph_legendre(l, m, angle);
        EXPECT_NEAR(row[i], expected, 1e-12) << m << " " << l;
      }
    }
  }
}

TEST(SphericalHarmonics, OfHighOrderAreOrthonormalAndFinite) {
  const GlobalGrid grid{GlobalRows::kGauss, 1024, 2048};
  const SphericalTransform transform(grid, 1024);
  for (const std::int64_t order : {0, 1, 200, 700, 1000}) {
    for (const std::int64_t degree : {std::int64_t{1000}, std::int64_t{1023}}) {
      const std::vector<double> row = legendre_row(transform, order, degree);
      const std::vector<double> weighted = transform.to_degrees->values({{order, degree, 0}, {1, 1, 1024}});
      double square = 0, product = 0;
      const std::vector<double> other = legendre_row(transform, order, degree == 1000 ? 1022 : 1001);
      for (std::size_t i = 0; i < row.size(); ++i) {
        square += row[i] * weighted[i];
        product += other[i] * weighted[i];
      }
      EXPECT_NEAR(square, 1, 1e-10) << order << " " << degree;
      EXPECT_NEAR(product, 0, 1e-10) << order << " " << degree;
    }
  }
}

/// Where the first of an order are smaller near the poles than any double.
TEST(SphericalHarmonics, OfDegreesBeyondTheRangeOfDoublesAreOrthonormal) {
  const SphericalTransform transform({GlobalRows::kGauss, 2600, 5200}, 2600);
  const Box row{{950, 2500, 0}, {1, 1, 2600}};
  const std::vector<double> values = transform.from_degrees->values(row),
                            weighted = transform.to_degrees->values(row);
  double square = 0;
  for (std::size_t i = 0; i < values.size(); ++i) square += values[i] * weighted[i];
  EXPECT_NEAR(square, 1, 1e-10);
}

/// Any part of a factor is that part of the whole.
TEST(SphericalHarmonics, PartsOfFactorsAreThoseOfTheWhole) {
  const SphericalTransform transform({GlobalRows::kPoleCell, 9, 16}, 5);
  for (const auto& factor :
       {transform.to_orders, transform.to_degrees, transform.from_degrees, transform.from_orders}) {
    const Shape& shape = factor->shape;
    const std::vector<double> whole = factor->values(Box::whole(shape));
    ASSERT_EQ(static_cast<std::int64_t>(whole.size()), shape.count());
    const Box box{{1, 2, 1}, {shape[0] - 2, shape[1] - 2, shape[2] - 1}};
    const std::vector<double> part = factor->values(box);
    std::size_t at = 0;
    for (std::int64_t i = box.begin[0]; i < box.end(0); ++i) {
      for (std::int64_t j = box.begin[1]; j < box.end(1); ++j) {
        for (std::int64_t k = box.begin[2]; k < box.end(2); ++k)
          EXPECT_EQ(part.at(at++), whole[static_cast<std::size_t>((i * shape[1] + j) * shape[2] + k)]);
      }
    }
    EXPECT_EQ(at, part.size());
  }
}

// ---- what is refused

/// The message of building a convolution on such a field.
std::string refused(const Shape& space, const SphericalConvolutionOptions& options) {
  ParameterBlock block("layer");
  try {
    const SphericalConvolution layer({block, "", {space, 3}, "model.layers[1]"}, options);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

/// The message of building a model of such layers for such rows.
std::string refused_model(const Json& layers, std::optional<GlobalRows> rows) {
  const Json json = {
      {"data", {{"files", {"a.nc"}}, {"variables", {"t"}}, {"train", {"2020-01-01", "2020-01-02"}}}},
      {"model", {{"type", "sequential"}, {"layers", layers}}}};
  ModelDescription description{{9, 16}, 3, 2};
  description.rows = rows;
  try {
    build_model(parse<Configuration>(json).model, description);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(SphericalLayers, KnowWhereRowsLie) {
  const Json conv = {{"type", "spherical_conv"}, {"latitudes", "pole_cell"}},
             gauss = {{"type", "spherical_conv"}, {"latitudes", "gauss"}},
             linear = {{"type", "linear"}, {"features", 2}},
             residual = {{"type", "residual"}, {"layers", {{{"type", "layer_norm"}}, linear}}},
             down = {{"type", "spherical_resample"}, {"latitudes", "pole_cell"}, {"size", {5, 8}}},
             up = {{"type", "spherical_resample"},
                   {"latitudes", "gauss"},
                   {"to_latitudes", "pole_cell"},
                   {"size", {9, 16}}};
  EXPECT_EQ(refused_model({conv, linear}, {}), "");
  EXPECT_EQ(refused_model({conv, linear}, GlobalRows::kPoleCell), "");
  EXPECT_EQ(refused_model({linear, conv}, GlobalRows::kPolePoint),
            "model.layers[1].latitudes is \"pole_cell\", but the rows here are \"pole_point\"");
  EXPECT_EQ(refused_model({down, linear, gauss, residual, up}, GlobalRows::kPoleCell), "");
  EXPECT_EQ(refused_model({down, linear, residual, conv, up}, {}),
            "model.layers[3].latitudes is \"pole_cell\", but the rows here are \"gauss\"");
  // Where the grid changes otherwise, rows lie nobody knows where.
  const Json pool = {{"type", "avg_pool"}, {"kernel", 2}}, pad = {{"type", "pad"}, {"high", {1, 0}}};
  EXPECT_EQ(refused_model({pool, gauss, {{"type", "upsample"}, {"size", {9, 16}}}}, GlobalRows::kPoleCell)
                .find("rows"),
            std::string::npos);
  EXPECT_EQ(refused_model({pad, gauss}, GlobalRows::kPoleCell).find("rows here"), std::string::npos);
  const Json skip = {
      {"type", "concat_skip"},
      {"layers", {down, {{"type", "spherical_resample"}, {"latitudes", "gauss"}, {"size", {9, 16}}}}}};
  EXPECT_EQ(refused_model({skip, linear}, GlobalRows::kPoleCell),
            "model.layers[0].layers end with rows that are \"gauss\", where they began with \"pole_cell\"");
  const Json back = {{"type", "spherical_resample"}, {"latitudes", "gauss"}, {"size", {9, 16}}};
  EXPECT_EQ(refused_model({down, back, linear}, GlobalRows::kPoleCell),
            "model ends on rows that are \"gauss\", but those of the data are \"pole_cell\"");
}

TEST(GlobalRows, AreFoundFromLatitudes) {
  for (const GlobalRows rows : kAllRows) {
    for (const std::int64_t count : {2, 7, 48, 721}) {
      std::vector<double> latitudes = global_latitudes(rows, count);
      EXPECT_EQ(global_rows_of(latitudes), rows) << name(rows) << " " << count;
      std::ranges::reverse(latitudes);
      for (double& latitude : latitudes) latitude = static_cast<float>(latitude);
      EXPECT_EQ(global_rows_of(latitudes), rows) << name(rows) << " " << count;
      latitudes.pop_back();
      if (count > 2) {
        EXPECT_FALSE(global_rows_of(latitudes)) << name(rows) << " " << count;
      }
    }
  }
}

TEST(SphericalConvolutions, NeedAGridAroundTheGlobe) {
  EXPECT_EQ(refused({7, 12}, {}), "");
  EXPECT_EQ(refused({4, 7, 12}, {}),
            "model.layers[1].type is for rows and columns around the globe, at least 2 of each, and the grid "
            "here is [4, 7, 12]");
  EXPECT_EQ(refused({7, 12}, {.degrees = 6}), "");
  EXPECT_EQ(refused({7, 12}, {.degrees = 7}),
            "model.layers[1].degrees must be at most 6 on the grid [7, 12] (its rows, without a pole, and "
            "half its columns), "
            "and is 7");
}

}  // namespace spherical_test
}  // namespace jigsaw
