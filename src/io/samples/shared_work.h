#pragma once
#include <algorithm>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "comm/agreement.h"

namespace jigsaw {

/// of(0) … of(n − 1), each computed by one rank and known to all: what is merged in this order does not
/// depend on the number of ranks. Collective; an error of one is thrown by all.
template <typename F>
auto share_work(std::int64_t n, Communicator& communicator, const F& of) {
  using Result = std::invoke_result_t<F, std::int64_t>;
  static_assert(std::is_trivially_copyable_v<Result>);
  const std::int64_t ranks = communicator.size(), rank = communicator.rank();
  const std::int64_t begin = rank * (n / ranks) + std::min(rank, n % ranks);
  const std::int64_t count = n / ranks + (rank < n % ranks ? 1 : 0);
  std::vector<Result> own;
  together(communicator, [&] {
    for (std::int64_t i = begin; i < begin + count; ++i) own.push_back(of(i));
  });
  const std::string bytes(reinterpret_cast<const char*>(own.data()), own.size() * sizeof(Result));
  std::vector<Result> all;
  for (const std::string& part : communicator.all_gather_text(bytes)) {
    const std::size_t old = all.size();
    all.resize(old + part.size() / sizeof(Result));
    if (!part.empty()) std::memcpy(all.data() + old, part.data(), part.size());
  }
  return all;
}

}  // namespace jigsaw
