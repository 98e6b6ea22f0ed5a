#include "comm/reduce.h"

#include <algorithm>
#include <array>

#include "array/parallel.h"
#include "base/error.h"
#include "comm/levels.h"

namespace jigsaw::inline comm {

namespace {

/// Elements summed at a time, so that the running sum stays in the first cache.
constexpr std::int64_t kBlock = 2048;

template <typename T, typename F>
void fold(std::span<const std::byte* const> pieces, std::int64_t begin, std::int64_t end, std::byte* out,
          F combine) {
  T* const result = reinterpret_cast<T*>(out);
  for (std::int64_t first = begin; first < end; first += kBlock) {
    const std::int64_t last = std::min(end, first + kBlock);
    std::copy(reinterpret_cast<const T*>(pieces[0]) + first, reinterpret_cast<const T*>(pieces[0]) + last,
              result + first);
    for (const std::byte* piece : pieces.subspan(1)) {
      const T* const values = reinterpret_cast<const T*>(piece);
      for (std::int64_t i = first; i < last; ++i) result[i] = combine(result[i], values[i]);
    }
  }
}

template <typename T>
void reduce_typed(std::span<const std::byte* const> pieces, std::int64_t begin, std::int64_t end, ReduceOp op,
                  std::byte* out) {
  switch (op) {
    case ReduceOp::kSum:
      return fold<T>(pieces, begin, end, out, [](T a, T b) { return a + b; });
    case ReduceOp::kMax:
      return fold<T>(pieces, begin, end, out, [](T a, T b) { return a > b || a != a ? a : b; });
    case ReduceOp::kMin:
      return fold<T>(pieces, begin, end, out, [](T a, T b) { return a < b || a != a ? a : b; });
  }
}

using Pieces = std::span<const std::byte* const>;

/// reduce_for() a block of elements at a time, so that partial sums stay in a cache.
class OwnersSum {
 public:
  OwnersSum(int ranks, int owner) {
    for (const Level& level : levels(ranks, owner)) {
      Step step;
      const auto own = static_cast<std::size_t>(level.own);
      for (int rank = level.begin[own]; rank < level.begin[own + 1]; ++rank) {
        std::vector<int>& from = step.emplace_back(summands(level, rank));
        for (int& place : from) place -= level.begin.front();
      }
      steps_.push_back(std::move(step));
    }
  }

  void add(Pieces pieces, std::int64_t count, DType dtype, ReduceOp op, std::byte* out) {
    const auto bytes = static_cast<std::size_t>(count * size_of(dtype));
    std::vector<const std::byte*> now(pieces.begin(), pieces.end());
    for (std::size_t s = 0; s < steps_.size(); ++s) {
      std::vector<std::byte>& sums = sums_[s % 2];
      const bool last = s + 1 == steps_.size();
      if (!last) sums.resize(steps_[s].size() * bytes);
      std::vector<const std::byte*> next;
      for (const std::vector<int>& from : steps_[s]) {
        std::vector<const std::byte*> summed;
        for (const int place : from) summed.push_back(now[static_cast<std::size_t>(place)]);
        std::byte* const to = last ? out : sums.data() + next.size() * bytes;
        reduce_in_order(summed, count, dtype, op, to);
        next.push_back(to);
      }
      now = std::move(next);
    }
  }

 private:
  using Step = std::vector<std::vector<int>>;  ///< of each rank of the part: places whose sums it adds
  std::vector<Step> steps_;
  std::array<std::vector<std::byte>, 2> sums_;
};

void reduce_parts(Pieces pieces, std::int64_t count, DType dtype, ReduceOp op, std::byte* out) {
  if (std::ssize(pieces) <= Level::kParts) return reduce_in_order(pieces, count, dtype, op, out);
  const auto bytes = static_cast<std::size_t>(count * size_of(dtype));
  std::vector<std::byte> sums(Level::kParts * bytes);
  std::vector<const std::byte*> results;
  std::size_t first = 0;
  for (const std::int64_t size : even_counts(std::ssize(pieces), Level::kParts)) {
    std::byte* const to = sums.data() + results.size() * bytes;
    reduce_parts(pieces.subspan(first, static_cast<std::size_t>(size)), count, dtype, op, to);
    results.push_back(to);
    first += static_cast<std::size_t>(size);
  }
  reduce_in_order(results, count, dtype, op, out);
}

/// Calls f(pieces of the block, its first byte, its elements) for blocks of elements.
template <typename F>
void for_each_block(Pieces pieces, std::int64_t count, DType dtype, const F& f) {
  std::vector<const std::byte*> block(pieces.size());
  for (std::int64_t first = 0; first < count; first += kBlock) {
    const std::int64_t at = first * size_of(dtype);
    std::ranges::transform(pieces, block.begin(), [at](const std::byte* piece) { return piece + at; });
    f(Pieces(block), at, std::min(kBlock, count - first));
  }
}

}  // namespace

void reduce_for(int owner, Pieces pieces, std::int64_t count, DType dtype, ReduceOp op, std::byte* out) {
  if (std::ssize(pieces) <= Level::kParts) return reduce_in_order(pieces, count, dtype, op, out);
  OwnersSum sum(static_cast<int>(pieces.size()), owner);
  for_each_block(pieces, count, dtype, [&](Pieces block, std::int64_t at, std::int64_t elements) {
    sum.add(block, elements, dtype, op, out + at);
  });
}

void reduce_for_all(Pieces pieces, std::int64_t count, DType dtype, ReduceOp op, std::byte* out) {
  if (std::ssize(pieces) <= Level::kParts) return reduce_in_order(pieces, count, dtype, op, out);
  for_each_block(pieces, count, dtype, [&](Pieces block, std::int64_t at, std::int64_t elements) {
    reduce_parts(block, elements, dtype, op, out + at);
  });
}

void reduce_in_order(std::span<const std::byte* const> pieces, std::int64_t count, DType dtype, ReduceOp op,
                     std::byte* out, int threads) {
  if (dtype == DType::kBfloat16) throw CommError("bf16 arrays are not reduced; cast to fp32 first");
  constexpr std::int64_t kFew = 1 << 16;
  for_ranges(count < kFew ? 1 : threads, count, kBlock, [&](std::int64_t begin, std::int64_t end, int) {
    if (dtype == DType::kFloat32) return reduce_typed<float>(pieces, begin, end, op, out);
    reduce_typed<double>(pieces, begin, end, op, out);
  });
}

std::vector<std::int64_t> even_counts(std::int64_t count, int parts) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(parts), count / parts);
  for (std::int64_t i = 0; i < count % parts; ++i) ++counts[static_cast<std::size_t>(i)];
  return counts;
}

}  // namespace jigsaw::inline comm
