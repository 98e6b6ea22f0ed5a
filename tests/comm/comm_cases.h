#pragma once
#include <cstdint>
#include <cstring>
#include <vector>

#include "comm/communicator.h"

// Inputs that every rank can compute for every other, and the references made from them.
namespace jigsaw {

/// Exact in all types, and different for neighbouring ranks and elements.
inline double exact_value(int rank, std::int64_t i) {
  return static_cast<double>((rank * 53 + i * 11) % 251);
}

/// Sums of these depend on the order of summation.
inline double rough_value(int rank, std::int64_t i) {
  const double sign = (rank + i) % 2 == 0 ? 1 : -1;
  return sign * (1.0 / 3 + static_cast<double>((rank * 7919 + i * 104729) % 1000003)) *
         (rank % 3 == 1 ? 1e-4 : 1.7);
}

template <typename T, typename F>
Array make_array(const Context& context, std::int64_t count, F value) {
  Array array(context, {count}, kDType<T>);
  for (std::int64_t i = 0; i < count; ++i) array.data<T>()[i] = T(value(i));
  return array;
}

template <typename T>
std::vector<T> to_vector(const Array& array) {
  const auto span = array.span<T>();
  return {span.begin(), span.end()};
}

/// Bit for bit, so that NaN equals NaN and −0 differs from 0.
template <typename T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

/// Uneven counts; the second rank has none.
inline std::vector<std::int64_t> uneven_counts(int size, std::int64_t scale = 1) {
  std::vector<std::int64_t> counts;
  for (int r = 0; r < size; ++r) counts.push_back(r == 1 ? 0 : (3 + 2 * r) * scale);
  return counts;
}

/// rough_value of all ranks, added from rank 0 on in type T.
template <typename T>
std::vector<T> serial_sum(int size, std::int64_t first, std::int64_t count) {
  std::vector<T> sums;
  for (std::int64_t i = first; i < first + count; ++i) {
    T sum = static_cast<T>(rough_value(0, i));
    for (int r = 1; r < size; ++r) sum += static_cast<T>(rough_value(r, i));
    sums.push_back(sum);
  }
  return sums;
}

}  // namespace jigsaw
