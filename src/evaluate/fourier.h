#pragma once
#include <complex>
#include <span>
#include <vector>

namespace jigsaw::inline evaluate {

/// Discrete Fourier transforms of rows of one length, whatever its factors: Σ_l x(l)·exp(−2πi·k·l / L), in
/// float64 (Cooley and Tukey 1965, of mixed radix).
class Fourier {
 public:
  using Complex = std::complex<double>;

  explicit Fourier(std::size_t length);

  /// Of a row of that length. @param to  of the same.
  void transform(std::span<const Complex> from, std::span<Complex> to) const { transform(from, 1, to, 0); }
  /// Variance by wave number k = 0 … L/2: |F(k)/L|², twice that for the k that stand for −k as well. They add
  /// up to the mean square of the row.
  std::vector<double> power(std::span<const double> row) const;
  std::size_t wave_numbers() const { return length_ / 2 + 1; }

 private:
  void transform(std::span<const Complex> from, std::size_t stride, std::span<Complex> to,
                 std::size_t factor) const;

  std::size_t length_;
  std::vector<std::size_t> factors_;
  std::vector<Complex> roots_;
};

}  // namespace jigsaw::inline evaluate
