#include "layers/spherical_harmonics.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>
#include <string>
#include <utility>

#include "base/text.h"

namespace jigsaw::inline layers {

namespace {

constexpr double kPi = std::numbers::pi;

/// P̄(l, m) for the degrees first ≤ l < last at one angle, by the recurrence in l (Holmes and Featherstone
/// 2002, doi:10.1007/s00190-002-0216-2), with ∫₋₁¹ P̄² = 2. Near the poles the first of high orders are too
/// small for a double: they carry a power of two beside them.
class LegendreColumn {
 public:
  LegendreColumn(std::int64_t order, double angle) : order_(order), x_(std::cos(angle)) {
    const double sine = std::sin(angle);
    value_ = 1;
    for (std::int64_t k = 1; k <= order; ++k) {
      const auto twice = 2.0 * static_cast<double>(k);
      multiply(sine * std::sqrt((twice + 1) / twice));
    }
  }

  std::int64_t degree() const { return degree_ + order_; }
  double value() const { return std::ldexp(value_, power_); }

  void next() {
    ++degree_;
    const auto l = static_cast<double>(degree()), m = static_cast<double>(order_);
    const double all = std::sqrt((4 * l * l - 1) / (l * l - m * m)),
                 part = std::sqrt(((l - 1) * (l - 1) - m * m) / (4 * (l - 1) * (l - 1) - 1));
    before_ = std::exchange(value_, all * (x_ * value_ - part * before_));
    if (power_ < 0 && std::abs(value_) > kLarge) rescale(1 / kLarge, kLargePower);
  }

 private:
  static constexpr int kLargePower = 400;
  static constexpr double kLarge = 0x1p400;

  void multiply(double factor) {
    value_ *= factor;
    if (std::abs(value_) < 1 / kLarge && value_ != 0) rescale(kLarge, -kLargePower);
  }
  void rescale(double factor, int power) {
    value_ *= factor;
    before_ *= factor;
    power_ += power;
  }

  std::int64_t order_, degree_ = 0;
  double x_, value_ = 0, before_ = 0;
  int power_ = 0;
};

/// The numbers of a box of [M, L, H]: P̄ times a factor for each row.
std::vector<double> legendre_values(const Box& box, const std::vector<double>& angles,
                                    const std::vector<double>& factors) {
  const std::int64_t degrees = box.extent[1], rows = box.extent[2];
  std::vector<double> values(static_cast<std::size_t>(box.extent.count()));
  for (std::int64_t m = 0; m < box.extent[0]; ++m) {
    for (std::int64_t row = 0; row < rows; ++row) {
      const auto at = static_cast<std::size_t>(box.begin[2] + row);
      LegendreColumn column(box.begin[0] + m, angles[at]);
      for (std::int64_t l = std::max<std::int64_t>(0, box.begin[0] + m - box.begin[1]); l < degrees; ++l) {
        while (column.degree() < box.begin[1] + l) column.next();
        values[static_cast<std::size_t>((m * degrees + l) * rows + row)] = factors[at] * column.value();
      }
    }
  }
  return values;
}

/// The numbers of a box of [2, W, M]: cosines and negative sines, times a factor, and √2 for m > 0.
std::vector<double> fourier_values(const Box& box, std::int64_t longitudes, double factor) {
  const auto part = [&](std::int64_t column, std::int64_t order, std::int64_t imaginary) {
    const double angle =
        2 * kPi * static_cast<double>(column * order % longitudes) / static_cast<double>(longitudes);
    const double scale = factor * (order > 0 ? std::numbers::sqrt2 : 1.0);
    return scale * (imaginary == 1 ? -std::sin(angle) : std::cos(angle));
  };
  std::vector<double> values;
  values.reserve(static_cast<std::size_t>(box.extent.count()));
  for (std::int64_t i = box.begin[0]; i < box.end(0); ++i) {
    for (std::int64_t w = box.begin[1]; w < box.end(1); ++w) {
      for (std::int64_t m = box.begin[2]; m < box.end(2); ++m) values.push_back(part(w, m, i));
    }
  }
  return values;
}

/// A grid's rows, found when they are asked for: models are built that nobody runs.
class KnownRows {
 public:
  explicit KnownRows(const GlobalGrid& grid) : grid_(grid) {}

  const std::vector<double>& angles() {
    if (angles_.empty()) angles_ = polar_angles(grid_.rows, grid_.latitudes);
    return angles_;
  }
  const std::vector<double>& half_weights() {
    if (half_weights_.empty()) {
      half_weights_ = quadrature_weights(grid_.rows, grid_.latitudes);
      for (double& weight : half_weights_) weight /= 2;
    }
    return half_weights_;
  }

 private:
  GlobalGrid grid_;
  std::vector<double> angles_, half_weights_;
};

SphericalTransform::Factor fixed(std::string name, const Shape& shape,
                                 std::function<std::vector<double>(const Box&)> values) {
  return std::make_shared<const FixedFactor>(FixedFactor{std::move(name), shape, std::move(values)});
}

}  // namespace

std::int64_t GlobalGrid::most_degrees() const {
  // On the poles themselves all but order 0 are zero.
  const std::int64_t rows_that_tell = rows == GlobalRows::kPolePoint ? latitudes - 1 : latitudes;
  return std::min(rows_that_tell, (longitudes + 1) / 2);
}

std::int64_t GlobalGrid::exact_degrees() const {
  // Products of two harmonics, of degree 2·(L − 1), are what is summed.
  return std::min(rows == GlobalRows::kGauss ? latitudes : (latitudes + 1) / 2, most_degrees());
}

SphericalTransform::SphericalTransform(const GlobalGrid& grid, std::int64_t degrees) {
  const std::int64_t orders = degrees;
  const Shape fourier{2, grid.longitudes, orders}, legendre{orders, degrees, grid.latitudes};
  to_orders = fixed(concat("to orders ", fourier), fourier, [grid](const Box& box) {
    return fourier_values(box, grid.longitudes, 1.0 / static_cast<double>(grid.longitudes));
  });
  from_orders = fixed(concat("from orders ", fourier), fourier,
                      [grid](const Box& box) { return fourier_values(box, grid.longitudes, 1.0); });
  const auto rows = std::make_shared<KnownRows>(grid);
  to_degrees = fixed(concat("to degrees ", legendre, " ", name(grid.rows)), legendre, [rows](const Box& box) {
    return legendre_values(box, rows->angles(), rows->half_weights());
  });
  from_degrees =
      fixed(concat("from degrees ", legendre, " ", name(grid.rows)), legendre, [rows](const Box& box) {
        return legendre_values(box, rows->angles(), std::vector<double>(rows->angles().size(), 1.0));
      });
}

Variable SphericalTransform::analysis(Tape& tape, const Variable& field) const {
  return contract_fixed(tape, "brhmc,mlh->brmlc", contract_fixed(tape, "bhwc,rwm->brhmc", field, to_orders),
                        to_degrees);
}

Variable SphericalTransform::synthesis(Tape& tape, const Variable& coefficients) const {
  return contract_fixed(tape, "brhmc,rwm->bhwc",
                        contract_fixed(tape, "brmlc,mlh->brhmc", coefficients, from_degrees), from_orders);
}

}  // namespace jigsaw::inline layers
