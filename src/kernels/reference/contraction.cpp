#include <algorithm>
#include <array>
#include <vector>

#include "array/raw_memory.h"
#include "kernels/front/contraction_kernels.h"

namespace jigsaw::inline kernels::reference {

namespace {

/// One letter: its extent, and how far a step in it moves each array.
struct Loop {
  std::int64_t extent = 1, a = 0, b = 0, c = 0;
};

std::int64_t stride_of(const std::string& letters, const Shape& shape, char letter) {
  const std::size_t dim = letters.find(letter);
  return dim == std::string::npos ? 0 : shape.strides()[static_cast<int>(dim)];
}

/// Kept letters outermost, then contracted ones; last the one that makes the best innermost loop: contiguous
/// over c and an operand, else contiguous over both operands.
std::vector<Loop> order_loops(const ContractionSpec& spec, const Array& a, const Array& b, const Array& c) {
  std::string letters = spec.c;
  for (const char letter : spec.a) {
    if (letters.find(letter) == std::string::npos) letters += letter;
  }
  std::vector<Loop> loops;
  for (const char letter : letters) {
    const std::size_t in_a = spec.a.find(letter);
    const std::int64_t extent = in_a != std::string::npos ? a.shape()[static_cast<int>(in_a)]
                                                          : b.shape()[static_cast<int>(spec.b.find(letter))];
    loops.push_back({extent, stride_of(spec.a, a.shape(), letter), stride_of(spec.b, b.shape(), letter),
                     stride_of(spec.c, c.shape(), letter)});
  }
  const auto worth = [](const Loop& loop) {
    const bool contiguous = loop.a <= 1 && loop.b <= 1 && loop.c <= 1;
    return contiguous ? std::min<std::int64_t>(loop.extent, 32) * (loop.c == 1 ? 2 : 1) : 0;
  };
  const auto inner = std::max_element(loops.begin(), loops.end(),
                                      [&](const Loop& x, const Loop& y) { return worth(x) < worth(y); });
  if (inner != loops.end()) std::rotate(inner, inner + 1, loops.end());
  if (loops.empty()) loops.emplace_back();
  return loops;
}

/// Σ a·b over contiguous rows, in eight interleaved sums so that the compiler may vectorise.
template <typename T, typename Sum>
Sum dot(const T* a, const T* b, std::int64_t n) {
  std::array<Sum, 8> sums{};
  std::int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    for (std::size_t lane = 0; lane < 8; ++lane) {
      const auto j = i + static_cast<std::int64_t>(lane);
      sums[lane] += static_cast<Sum>(a[j]) * static_cast<Sum>(b[j]);
    }
  }
  Sum rest = 0;
  for (; i < n; ++i) rest += static_cast<Sum>(a[i]) * static_cast<Sum>(b[i]);
  for (const Sum sum : sums) rest += sum;
  return rest;
}

/// c += factor · row over contiguous rows.
template <typename T, typename Sum>
void add_multiple(Sum factor, const T* row, Sum* c, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) c[i] += factor * static_cast<Sum>(row[i]);
}

template <typename T, typename Sum>
void innermost(const Loop& loop, const T* a, const T* b, Sum* c) {
  const std::int64_t n = loop.extent;
  if (loop.a == 1 && loop.b == 1 && loop.c == 0) {
    *c += dot<T, Sum>(a, b, n);
  } else if (loop.a == 0 && loop.b == 1 && loop.c == 1) {
    add_multiple<T, Sum>(static_cast<Sum>(*a), b, c, n);
  } else if (loop.a == 1 && loop.b == 0 && loop.c == 1) {
    add_multiple<T, Sum>(static_cast<Sum>(*b), a, c, n);
  } else {
    for (std::int64_t i = 0; i < n; ++i) {
      c[i * loop.c] += static_cast<Sum>(a[i * loop.a]) * static_cast<Sum>(b[i * loop.b]);
    }
  }
}

/// Runs through all indices of the outer loops like an odometer.
template <typename T, typename Sum>
void run_loops(const std::vector<Loop>& loops, const T* a, const T* b, Sum* c) {
  const int outer = static_cast<int>(loops.size()) - 1;
  std::vector<std::int64_t> index(loops.size(), 0);
  while (true) {
    innermost<T, Sum>(loops.back(), a, b, c);
    int dim = outer - 1;
    for (; dim >= 0; --dim) {
      const Loop& loop = loops[static_cast<std::size_t>(dim)];
      std::int64_t& i = index[static_cast<std::size_t>(dim)];
      a += loop.a, b += loop.b, c += loop.c;
      if (++i < loop.extent) break;
      a -= i * loop.a, b -= i * loop.b, c -= i * loop.c;
      i = 0;
    }
    if (dim < 0) return;
  }
}

/// Sums are formed in float64, in `sums`, which is c itself when it has this type.
template <typename T>
void contract_typed(Context& context, const ContractionSpec& spec, const Array& a, const Array& b, Array& c,
                    bool add) {
  using Sum = double;
  const bool direct = c.dtype() == kDType<Sum>;
  Array sums = direct ? c : Array(context, c.shape(), kDType<Sum>, Purpose::kWorkspace);
  if (!(direct && add)) std::ranges::fill(sums.span<Sum>(), Sum{0});
  const std::vector<Loop> loops = order_loops(spec, a, b, c);
  const bool empty = std::ranges::any_of(loops, [](const Loop& loop) { return loop.extent == 0; });
  if (!empty) run_loops<T, Sum>(loops, a.data<T>(), b.data<T>(), sums.data<Sum>());
  if (direct) return;
  visit(c.dtype(), [&](auto zero) {
    using Out = decltype(zero);
    for (std::int64_t i = 0; i < c.count(); ++i) {
      const Sum before = add ? static_cast<Sum>(c.data<Out>()[i]) : Sum{0};
      c.data<Out>()[i] = static_cast<Out>(before + sums.data<Sum>()[i]);
    }
  });
}

class Contraction : public ContractionKernels {
 public:
  void contract(Context& context, const ContractionSpec& spec, const Array& a, const Array& b, Array& c,
                bool add) const override {
    visit(a.dtype(), [&](auto zero) { contract_typed<decltype(zero)>(context, spec, a, b, c, add); });
  }
};

}  // namespace

template <>
const ContractionKernels& kernels() {
  static const Contraction instance;
  return instance;
}

}  // namespace jigsaw::inline kernels::reference
