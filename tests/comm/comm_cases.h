#pragma once
#include <cstdint>
#include <cstring>
#include <vector>

#include "array/host_view.h"
#include "array/transfer.h"
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
  Array array(context.host(), {count}, kDType<T>);
  const HostView<T> elements(array);
  for (std::int64_t i = 0; i < count; ++i) elements[static_cast<std::size_t>(i)] = T(value(i));
  return upload(context, array);
}

template <typename T>
std::vector<T> to_vector(const Communicator& comm, const Array& array) {
  const Array host = download(comm.context(), array);
  const auto span = HostView<T>(host);
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

/// Sizes of at most four parts of n, first-remainder.
inline std::vector<int> part_sizes(int n) {
  std::vector<int> sizes;
  for (int left = n, parts = n < 4 ? n : 4; parts > 0; --parts) {
    sizes.push_back((left + parts - 1) / parts);
    left -= sizes.back();
  }
  return sizes;
}

/// What reduce_scatter promises of the order: `values` of the ranks in order; those at the owner's place in
/// the other parts (in the last place of a shorter part all that have no other) are added to each of its
/// part, in the order of ranks, and so on within the part.
template <typename T>
T owners_sum(const std::vector<T>& values, int owner) {
  if (values.size() == 1) return values[0];
  const std::vector<int> sizes = part_sizes(static_cast<int>(values.size()));
  int own = 0, begin = 0;
  while (owner >= begin + sizes[static_cast<std::size_t>(own)])
    begin += sizes[static_cast<std::size_t>(own++)];
  const int size = sizes[static_cast<std::size_t>(own)];
  std::vector<T> sums(static_cast<std::size_t>(size));
  std::vector<bool> begun(sums.size(), false);
  int rank = 0;
  for (const int each : sizes) {
    for (int place = 0; place < each; ++place, ++rank) {
      const auto to = static_cast<std::size_t>(place < size ? place : size - 1);
      sums[to] = begun[to] ? sums[to] + values[static_cast<std::size_t>(rank)]
                           : values[static_cast<std::size_t>(rank)];
      begun[to] = true;
    }
  }
  return owners_sum(sums, owner - begin);
}

/// What a small all_reduce promises: the sums of the parts, in order.
template <typename T>
T sum_of_parts(const std::vector<T>& values) {
  if (values.size() == 1) return values[0];
  T sum = 0;
  auto first = values.begin();
  for (const int size : part_sizes(static_cast<int>(values.size()))) {
    const T part = sum_of_parts(std::vector<T>(first, first + size));
    sum = first == values.begin() ? part : sum + part;
    first += size;
  }
  return sum;
}

/// rough_value of all ranks for an element, in type T.
template <typename T>
std::vector<T> rough_values(int size, std::int64_t i) {
  std::vector<T> values;
  for (int r = 0; r < size; ++r) values.push_back(static_cast<T>(rough_value(r, i)));
  return values;
}

/// The sums of elements that `owner` has.
template <typename T>
std::vector<T> reference_piece(int size, int owner, std::int64_t first, std::int64_t count) {
  std::vector<T> sums;
  for (std::int64_t i = first; i < first + count; ++i)
    sums.push_back(owners_sum(rough_values<T>(size, i), owner));
  return sums;
}

/// Those of an all_reduce: small ones are exchanged whole, of large ones each rank has an even part.
template <typename T>
std::vector<T> reference_sum(int size, std::int64_t count) {
  std::vector<T> sums;
  if (count * static_cast<std::int64_t>(sizeof(T)) <= 4096) {
    for (std::int64_t i = 0; i < count; ++i) sums.push_back(sum_of_parts(rough_values<T>(size, i)));
    return sums;
  }
  for (int owner = 0; owner < size; ++owner) {
    const std::int64_t part = count / size + (owner < count % size ? 1 : 0);
    for (const T sum : reference_piece<T>(size, owner, std::ssize(sums), part)) sums.push_back(sum);
  }
  return sums;
}

}  // namespace jigsaw
