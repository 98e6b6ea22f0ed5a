#pragma once
#include <cstdint>
#include <type_traits>

namespace jigsaw::inline kernels::cpu {

/// `kLanes` floats in one vector register, and what is made of them: written in vectors by hand where the
/// compiler's own vectoriser keeps sums in memory. For bodies of vectorized_lanes(); vectors are no
/// arguments, since their ABI depends on the instructions.
template <int kLanes>
struct Lanes {
  typedef float Vector __attribute__((vector_size(kLanes * 4), may_alias));
  typedef std::uint32_t Integers __attribute__((vector_size(kLanes * 4), may_alias));
  static constexpr int kCount = kLanes;
  /// Registers across a tile of a product, and rows: as many sums as stay in registers.
  static constexpr int kAcross = kLanes == 16 ? 4 : 2, kDown = 6;

  static std::int64_t rounded_up(std::int64_t n) { return (n + kLanes - 1) / kLanes * kLanes; }

  /// x = 2^x for x ≤ 127, zero below −126, within 1.9e-7 of it and the rounding of x: 2^n, in the exponent's
  /// bits, times a minimax polynomial of degree 5 on [−1/2, 1/2]. Several vectors step by step together,
  /// since one alone waits for each step's result.
  template <int kVectors>
  static void exp2(Vector (&x)[kVectors]) {
    Vector shifted[kVectors], f[kVectors], p[kVectors];
    const auto each = [](auto step) {
#pragma GCC unroll 4
      for (int i = 0; i < kVectors; ++i) step(i);
    };
    each([&](int i) { shifted[i] = x[i] + 12582912.0F; });
    each([&](int i) { f[i] = x[i] - (shifted[i] - 12582912.0F); });
    each([&](int i) { p[i] = f[i] * 1.326472731e-3F + 9.671512991e-3F; });
    each([&](int i) { p[i] = p[i] * f[i] + 5.550733582e-2F; });
    each([&](int i) { p[i] = p[i] * f[i] + 2.402224243e-1F; });
    each([&](int i) { p[i] = p[i] * f[i] + 6.931470037e-1F; });
    each([&](int i) { p[i] = p[i] * f[i] + 1.0F; });
    each([&](int i) {
      const Integers bits = (Integers)p[i] + ((Integers)shifted[i] << 23);
      x[i] = x[i] < -126.0F ? Vector{} : (Vector)bits;
    });
  }

  /// step(i, n) for the vectors i … i + n − 1 of `count`: by fours, then one by one; n as an integral
  /// constant.
  template <typename F>
  static void by_fours(std::int64_t count, const F& step) {
    std::int64_t i = 0;
    for (; i + 4 <= count; i += 4) step(i, std::integral_constant<int, 4>{});
    for (; i < count; ++i) step(i, std::integral_constant<int, 1>{});
  }

  static float largest(const Vector& x) {
    return fold(x, [](auto& a, const auto& b) { a = a > b ? a : b; });
  }
  static float sum(const Vector& x) {
    return fold(x, [](auto& a, const auto& b) { a += b; });
  }

  /// A matrix read element by element.
  struct Matrix {
    const float* data;
    std::int64_t row, column;  ///< elements to the next one
  };

  /// What a product is added to: what is in c; or else the negative of a number for each row, up to the last
  /// whole tile; or else nothing.
  struct Start {
    bool c = false;
    const float* minus = nullptr;
  };

  /// c[m, n] = start + a[m, k]·b[k, n]. n is a multiple of kLanes, and c has room for m rounded up to a
  /// multiple of kDown rows, as a and start have. b and c are rows of `b_row` and `c_row` floats.
  static void product(const Matrix& a, std::int64_t m, std::int64_t k, const float* b, std::int64_t b_row,
                      std::int64_t n, float* c, std::int64_t c_row, Start start) {
    std::int64_t column = 0;
    for (; column + kAcross * kLanes <= n; column += kAcross * kLanes) {
      columns<kAcross>(a, m, k, b + column, b_row, c + column, c_row, start);
    }
    rest<kAcross - 1>(a, m, k, b + column, b_row, n - column, c + column, c_row, start);
  }

 private:
  template <int>
  friend struct Lanes;

  /// join(a, b) puts two into a: halves of the vector, then of the half, until one number is left.
  template <typename F>
  static float fold(const Vector& x, const F& join) {
    alignas(64) float values[kLanes];
    *reinterpret_cast<Vector*>(values) = x;
    if constexpr (kLanes > 4) {
      using HalfLanes = Lanes<kLanes / 2>;
      using Half = typename HalfLanes::Vector;
      Half low = *reinterpret_cast<const Half*>(values);
      join(low, *reinterpret_cast<const Half*>(values + kLanes / 2));
      return HalfLanes::fold(low, join);
    } else {
      join(values[0], values[2]);
      join(values[1], values[3]);
      join(values[0], values[1]);
      return values[0];
    }
  }

  /// The columns that are left, fewer than a tile's.
  template <int kVectors>
  static void rest(const Matrix& a, std::int64_t m, std::int64_t k, const float* b, std::int64_t b_row,
                   std::int64_t n, float* c, std::int64_t c_row, Start start) {
    if constexpr (kVectors > 0) {
      if (n == kVectors * kLanes) {
        columns<kVectors>(a, m, k, b, b_row, c, c_row, start);
      } else {
        rest<kVectors - 1>(a, m, k, b, b_row, n, c, c_row, start);
      }
    }
  }

  template <int kVectors>
  static void columns(const Matrix& a, std::int64_t m, std::int64_t k, const float* b, std::int64_t b_row,
                      float* c, std::int64_t c_row, Start start) {
    for (std::int64_t row = 0; row < m; row += kDown) {
      tile<kVectors>({a.data + row * a.row, a.row, a.column}, k, b, b_row, c + row * c_row, c_row, start);
      if (start.minus != nullptr) start.minus += kDown;
    }
  }

  template <int kVectors>
  static void tile(const Matrix& a, std::int64_t k, const float* b, std::int64_t b_row, float* c,
                   std::int64_t c_row, Start start) {
    Vector sums[kDown][kVectors];
#pragma GCC unroll 8
    for (int i = 0; i < kDown; ++i) {
#pragma GCC unroll 8
      for (int j = 0; j < kVectors; ++j) {
        sums[i][j] = start.c                  ? *reinterpret_cast<const Vector*>(c + i * c_row + j * kLanes)
                     : start.minus != nullptr ? Vector{} - start.minus[i]
                                              : Vector{};
      }
    }
    for (std::int64_t step = 0; step < k; ++step) {
      Vector row[kVectors];
#pragma GCC unroll 8
      for (int j = 0; j < kVectors; ++j)
        row[j] = *reinterpret_cast<const Vector*>(b + step * b_row + j * kLanes);
#pragma GCC unroll 8
      for (int i = 0; i < kDown; ++i) {
        const float factor = a.data[i * a.row + step * a.column];
#pragma GCC unroll 8
        for (int j = 0; j < kVectors; ++j) sums[i][j] += factor * row[j];
      }
    }
#pragma GCC unroll 8
    for (int i = 0; i < kDown; ++i) {
#pragma GCC unroll 8
      for (int j = 0; j < kVectors; ++j) *reinterpret_cast<Vector*>(c + i * c_row + j * kLanes) = sums[i][j];
    }
  }
};

}  // namespace jigsaw::inline kernels::cpu
