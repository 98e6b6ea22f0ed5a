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
/// @param merge  merge(total, one more); `total` begins as `nothing`.
/// @param did    called with the part of this rank's share that is done, if given.
template <typename Result, typename F, typename M>
Result share_work(std::int64_t n, Communicator& communicator, const F& of, Result nothing, const M& merge,
                  const std::function<void(double)>& did = {}) {
  static_assert(std::is_trivially_copyable_v<Result>);
  const std::int64_t ranks = communicator.size(), rank = communicator.rank();
  const std::int64_t begin = rank * (n / ranks) + std::min(rank, n % ranks);
  const std::int64_t count = n / ranks + (rank < n % ranks ? 1 : 0);
  std::vector<Result> own;
  together(communicator, [&] {
    for (std::int64_t i = begin; i < begin + count; ++i) {
      own.push_back(of(i));
      if (did) did(static_cast<double>(i + 1 - begin) / static_cast<double>(count));
    }
  });
  Result total = nothing;
  const auto bytes_of = [](const Result* data, std::size_t size) {
    return std::string(reinterpret_cast<const char*>(data), size * sizeof(Result));
  };
  for (const std::string& part : communicator.gather_text(bytes_of(own.data(), own.size()))) {
    std::vector<Result> results(part.size() / sizeof(Result));
    if (!part.empty()) std::memcpy(results.data(), part.data(), part.size());
    for (const Result& result : results) merge(total, result);
  }
  const std::string merged = communicator.broadcast_text(bytes_of(&total, 1));
  std::memcpy(&total, merged.data(), sizeof total);
  return total;
}

}  // namespace jigsaw::inline samples
