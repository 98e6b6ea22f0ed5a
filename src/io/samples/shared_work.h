#pragma once
#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include "comm/agreement.h"

namespace jigsaw::inline samples {

/// The merger of of(0) … of(n − 1), each computed by one rank: they come to one rank, which takes them in in
/// this order, so that the result does not depend on the number of ranks, and go from it to all. Collective;
/// an error of one is thrown by all.
/// @param of     gives `width` results, each merged with those at its place.
/// @param merge  merge(total, one more); `total` begins as `nothing`.
/// @param did    called with the part of this rank's share that is done, if given.
template <typename Result, typename F, typename M>
std::vector<Result> share_wide_work(std::int64_t n, std::size_t width, Communicator& communicator,
                                    const F& of, Result nothing, const M& merge,
                                    const std::function<void(double)>& did = {}) {
  static_assert(std::is_trivially_copyable_v<Result>);
  const std::int64_t ranks = communicator.size(), rank = communicator.rank();
  const std::int64_t begin = rank * (n / ranks) + std::min(rank, n % ranks);
  const std::int64_t count = n / ranks + (rank < n % ranks ? 1 : 0);
  std::vector<Result> own;
  together(communicator, [&] {
    for (std::int64_t i = begin; i < begin + count; ++i) {
      const std::vector<Result> results = of(i);
      own.insert(own.end(), results.begin(), results.end());
      if (did) did(static_cast<double>(i + 1 - begin) / static_cast<double>(count));
    }
  });
  std::vector<Result> total(width, nothing);
  const auto bytes_of = [](const Result* data, std::size_t size) {
    return std::string(reinterpret_cast<const char*>(data), size * sizeof(Result));
  };
  for (const std::string& part : communicator.gather_text(bytes_of(own.data(), own.size()))) {
    std::vector<Result> results(part.size() / sizeof(Result));
    if (!part.empty()) std::memcpy(results.data(), part.data(), part.size());
    for (std::size_t i = 0; i < results.size(); ++i) merge(total[i % width], results[i]);
  }
  const std::string merged = communicator.broadcast_text(bytes_of(total.data(), width));
  if (!merged.empty()) std::memcpy(total.data(), merged.data(), merged.size());
  return total;
}

/// The same of one result.
template <typename Result, typename F, typename M>
Result share_work(std::int64_t n, Communicator& communicator, const F& of, Result nothing, const M& merge,
                  const std::function<void(double)>& did = {}) {
  const auto of_one = [&](std::int64_t i) { return std::vector<Result>{of(i)}; };
  return share_wide_work(n, 1, communicator, of_one, nothing, merge, did).front();
}

}  // namespace jigsaw::inline samples
