#include "evaluate/fourier.h"

#include <cmath>
#include <numbers>

namespace jigsaw::inline evaluate {

Fourier::Fourier(std::size_t length) : length_(length) {
  for (std::size_t rest = length, p = 2; rest > 1;) {
    if (rest % p == 0) {
      factors_.push_back(p);
      rest /= p;
    } else {
      p = p * p > rest ? rest : p + 1;
    }
  }
  for (std::size_t i = 0; i < length; ++i) {
    const double angle = -2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(length);
    roots_.emplace_back(std::cos(angle), std::sin(angle));
  }
}

/// The transform of the to.size() elements from[0], from[stride], …: those of each of their p residues, then
/// p of them combined. @param factor  number of the factor that is split off.
void Fourier::transform(std::span<const Complex> from, std::size_t stride, std::span<Complex> to,
                        std::size_t factor) const {
  const std::size_t n = to.size();
  if (n == 1) {
    to[0] = from[0];
    return;
  }
  const std::size_t p = factors_[factor], m = n / p;
  for (std::size_t r = 0; r < p; ++r) {
    transform(from.subspan(r * stride), stride * p, to.subspan(r * m, m), factor + 1);
  }
  std::vector<Complex> parts(p);
  for (std::size_t k = 0; k < m; ++k) {
    for (std::size_t r = 0; r < p; ++r) parts[r] = to[r * m + k];
    for (std::size_t q = 0; q < p; ++q) {
      Complex sum = 0;
      for (std::size_t r = 0; r < p; ++r) sum += parts[r] * roots_[r * (k + q * m) % n * (length_ / n)];
      to[q * m + k] = sum;
    }
  }
}

std::vector<double> Fourier::power(std::span<const double> row) const {
  const std::vector<Complex> from(row.begin(), row.end());
  std::vector<Complex> to(length_);
  transform(from, to);
  std::vector<double> result;
  const auto n = static_cast<double>(length_);
  for (std::size_t k = 0; k < wave_numbers(); ++k) {
    const bool alone = k == 0 || 2 * k == length_;
    result.push_back((alone ? 1.0 : 2.0) * std::norm(to[k]) / (n * n));
  }
  return result;
}

}  // namespace jigsaw::inline evaluate
