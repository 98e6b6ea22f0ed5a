#include "files/unpacking.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/error.h"
#include "base/lower_case.h"
#include "files/variable_file.h"

namespace jigsaw::inline files {

namespace {

constexpr std::size_t kFewMissing = 2;

/// What a loop over numbers needs, in the type C that it computes in. In float nothing is scaled, moved or
/// outside a range.
template <typename C>
struct Rule {
  C scale = 1, offset = 0, low = 0, high = 0;
  std::array<C, kFewMissing> few = {};  ///< NaN where there are less
  std::span<const double> more;         ///< all, where there are more
  bool nan_is_missing = false;
};

template <typename S, bool kSwapped>
[[gnu::always_inline]] inline S load(const std::byte* from) {
  using Bits = std::conditional_t<
      sizeof(S) == 1, std::uint8_t,
      std::conditional_t<sizeof(S) == 2, std::uint16_t,
                         std::conditional_t<sizeof(S) == 4, std::uint32_t, std::uint64_t>>>;
  Bits bits;
  std::memcpy(&bits, from, sizeof bits);
  if constexpr (kSwapped) {
    if constexpr (sizeof(S) == 2) bits = __builtin_bswap16(bits);
    if constexpr (sizeof(S) == 4) bits = __builtin_bswap32(bits);
    if constexpr (sizeof(S) == 8) bits = __builtin_bswap64(bits);
  }
  return std::bit_cast<S>(bits);
}

/// No branch in the loop, so that it is vectorised.
template <typename S, bool kSwapped, typename C, typename T>
[[gnu::always_inline]] inline std::int64_t loop(const std::byte* from, std::size_t count, const Rule<C>& rule,
                                                T* to) {
  const C first = rule.few[0], second = rule.few[1];
  [[maybe_unused]] const C scale = rule.scale, offset = rule.offset, low = rule.low, high = rule.high;
  const bool nan_counts = !rule.nan_is_missing;
  constexpr T kNaN = std::numeric_limits<T>::quiet_NaN();
  constexpr std::size_t kPart = 1024;
  std::int64_t undeclared = 0;
  for (std::size_t begin = 0; begin < count; begin += kPart) {
    const std::size_t end = std::min(count, begin + kPart);
    int here = 0;
    for (std::size_t i = begin; i < end; ++i) {
      const C stored = static_cast<C>(load<S, kSwapped>(from + i * sizeof(S)));
      bool outside = (stored == first) | (stored == second);
      C value;
      if constexpr (std::is_same_v<C, double>) {
        value = stored * scale + offset;
        outside |= (stored < low) | (stored > high);
      } else {
        value = stored + C{0};  // −0 becomes 0, as it does in double
      }
      const bool finite = value - value == C{0};
      const bool nan = stored != stored;
      here += static_cast<int>(!outside & !finite & (!nan | nan_counts));
      const bool missing = outside | !finite;
      to[i] = missing ? kNaN : static_cast<T>(value);
    }
    undeclared += here;
  }
  return undeclared;
}

#if defined(__x86_64__)
/// Products and sums stay two operations, as on machines without AVX2: the same bits everywhere.
template <typename S, bool kSwapped, typename C, typename T>
[[gnu::target("avx2")]] std::int64_t wide_loop(const std::byte* from, std::size_t count, const Rule<C>& rule,
                                               T* to) {
  return loop<S, kSwapped, C, T>(from, count, rule, to);
}
#endif

template <typename S, bool kSwapped, typename C, typename T>
std::int64_t run(const std::byte* from, std::size_t count, const Rule<C>& rule, T* to) {
#if defined(__x86_64__)
  static const bool wide = __builtin_cpu_supports("avx2") > 0;
  if (wide) return wide_loop<S, kSwapped, C, T>(from, count, rule, to);
#endif
  return loop<S, kSwapped, C, T>(from, count, rule, to);
}

/// Many numbers that mean "missing": rare.
template <typename S, bool kSwapped, typename T>
std::int64_t run_with_list(const std::byte* from, std::size_t count, const Rule<double>& rule, T* to) {
  std::int64_t undeclared = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto stored = static_cast<double>(load<S, kSwapped>(from + i * sizeof(S)));
    const bool listed = std::find(rule.more.begin(), rule.more.end(), stored) != rule.more.end();
    if (listed) {
      to[i] = std::numeric_limits<T>::quiet_NaN();
    } else {
      undeclared += loop<S, kSwapped, double, T>(from + i * sizeof(S), 1, rule, to + i);
    }
  }
  return undeclared;
}

/// Calls f with a value of the type and, as a constant, whether its bytes are swapped.
template <typename F>
std::int64_t with_type(StoredNumbers numbers, const F& f) {
  const auto with = [&](auto value) {
    return numbers.swapped ? f(value, std::true_type()) : f(value, std::false_type());
  };
  switch (numbers.type) {
    case StoredType::kU8:
      return f(std::uint8_t{}, std::false_type());
    case StoredType::kI8:
      return f(std::int8_t{}, std::false_type());
    case StoredType::kI16:
      return with(std::int16_t{});
    case StoredType::kU16:
      return with(std::uint16_t{});
    case StoredType::kI32:
      return with(std::int32_t{});
    case StoredType::kU32:
      return with(std::uint32_t{});
    case StoredType::kI64:
      return with(std::int64_t{});
    case StoredType::kU64:
      return with(std::uint64_t{});
    case StoredType::kF16:
      return with(Half());
    case StoredType::kF32:
      return with(float{});
    case StoredType::kF64:
      return with(double{});
  }
  fail("unknown type of a number in a file");
}

/// Whether a variable holds integers that stand for other numbers.
bool is_packed(const FileVariable& variable) {
  return !is_floating(variable.type) &&
         (variable.numbers.contains("scale_factor") || variable.numbers.contains("add_offset"));
}

StoredType unsigned_type(StoredType type) {
  switch (type) {
    case StoredType::kI8:
      return StoredType::kU8;
    case StoredType::kI16:
      return StoredType::kU16;
    case StoredType::kI32:
      return StoredType::kU32;
    case StoredType::kI64:
      return StoredType::kU64;
    default:
      return type;
  }
}

}  // namespace

Unpacking::Unpacking(const FileVariable& variable) {
  const auto first = [&](const char* attribute, double otherwise) {
    const auto found = variable.numbers.find(attribute);
    return found == variable.numbers.end() ? otherwise : found->second[0];
  };
  scale_ = first("scale_factor", 1.0);
  offset_ = first("add_offset", 0.0);
  unsigned_ = to_lower(variable.text("_Unsigned")) == "true";
  if (variable.numbers.contains("valid_range")) {
    limit(variable, "valid_range", 0, false);
    limit(variable, "valid_range", 1, true);
  } else {
    limit(variable, "valid_min", 0, false);
    limit(variable, "valid_max", 0, true);
  }
  add_missing(variable, "missing_value");
  if (variable.numbers.contains("_FillValue")) {
    add_missing(variable, "_FillValue");
  } else if (variable.default_fill) {
    missing_.push_back(stored_number(variable, "_FillValue", *variable.default_fill));
  }
  std::sort(missing_.begin(), missing_.end());
  missing_.erase(std::unique(missing_.begin(), missing_.end()), missing_.end());
}

/// A limit of physical values, as one of stored integers: it holds to a part in a million, for values and
/// limits are rounded in ways of their own.
double Unpacking::stored_limit(double value, bool upper) const {
  if (scale_ == 0) return upper ? kInfinity : -kInfinity;
  const double stored = (value - offset_) / scale_, room = 1e-3 + 1e-6 * std::abs(stored);
  return upper ? stored + room : stored - room;
}

/// What an attribute's number, which is of the type of what is stored, stands for.
double Unpacking::stored_number(const FileVariable& variable, const char* attribute, double value) const {
  if (!unsigned_ || value >= 0 || is_floating(variable.type) || variable.floating.contains(attribute))
    return value;
  return value + std::ldexp(1.0, static_cast<int>(8 * size_of(variable.type)));
}

void Unpacking::limit(const FileVariable& variable, const char* attribute, std::size_t entry, bool upper) {
  const auto found = variable.numbers.find(attribute);
  if (found == variable.numbers.end()) return;
  double value = stored_number(variable, attribute, found->second[entry]);
  if (is_packed(variable) && variable.floating.contains(attribute)) {
    upper = upper != (scale_ < 0);
    value = stored_limit(value, upper);
  }
  (upper ? high_ : low_) = value;
}

void Unpacking::add_missing(const FileVariable& variable, const char* attribute) {
  const auto found = variable.numbers.find(attribute);
  if (found == variable.numbers.end()) return;
  for (const double value : found->second) {
    if (std::isnan(value)) {
      nan_is_missing_ = true;
      continue;
    }
    // A double attribute of a float variable is meant as the float nearest to it.
    missing_.push_back(variable.type == StoredType::kF16 ? static_cast<double>(Half(value))
                       : variable.single_precision       ? static_cast<double>(static_cast<float>(value))
                                                         : stored_number(variable, attribute, value));
  }
}

bool Unpacking::exact_in_float(const FileVariable& variable) {
  if (variable.numbers.contains("scale_factor") || variable.numbers.contains("add_offset")) return false;
  switch (variable.type) {
    case StoredType::kU8:
    case StoredType::kI8:
    case StoredType::kI16:
    case StoredType::kU16:
    case StoredType::kF16:
    case StoredType::kF32:
      return true;
    default:
      return false;
  }
}

template <typename T>
std::int64_t Unpacking::unpack(StoredNumbers numbers, std::span<const std::byte> stored,
                               std::span<T> out) const {
  if (unsigned_) numbers.type = unsigned_type(numbers.type);
  const auto fill_rule = [&](auto& rule) {
    using C = std::remove_reference_t<decltype(rule.scale)>;
    rule.few.fill(std::numeric_limits<C>::quiet_NaN());
    for (std::size_t i = 0; i < missing_.size() && missing_.size() <= kFewMissing; ++i)
      rule.few[i] = static_cast<C>(missing_[i]);
    rule.nan_is_missing = nan_is_missing_;
    rule.low = static_cast<C>(low_);
    rule.high = static_cast<C>(high_);
  };
  const bool single = numbers.type == StoredType::kF32 && scale_ == 1 && offset_ == 0 && low_ == -kInfinity &&
                      high_ == kInfinity && missing_.size() <= kFewMissing &&
                      std::all_of(missing_.begin(), missing_.end(), [](double value) {
                        return static_cast<double>(static_cast<float>(value)) == value;
                      });
  if (single) {
    Rule<float> rule;
    fill_rule(rule);
    return numbers.swapped ? run<float, true, float, T>(stored.data(), out.size(), rule, out.data())
                           : run<float, false, float, T>(stored.data(), out.size(), rule, out.data());
  }
  Rule<double> rule;
  fill_rule(rule);
  rule.scale = scale_;
  rule.offset = offset_;
  rule.more = missing_;
  return with_type(numbers, [&](auto value, auto swapped) {
    using S = decltype(value);
    return missing_.size() <= kFewMissing
               ? run<S, swapped.value, double, T>(stored.data(), out.size(), rule, out.data())
               : run_with_list<S, swapped.value, T>(stored.data(), out.size(), rule, out.data());
  });
}

std::int64_t Unpacking::infinite(StoredNumbers numbers, std::span<const std::byte> stored) const {
  if (!is_floating(numbers.type)) return 0;
  return with_type(numbers, [&](auto value, auto swapped) {
    using S = decltype(value);
    std::int64_t count = 0;
    for (std::size_t at = 0; at + sizeof(S) <= stored.size(); at += sizeof(S)) {
      const auto number = static_cast<double>(load<S, swapped.value>(stored.data() + at));
      if (std::abs(number) != kInfinity || number < low_ || number > high_) continue;
      count += std::ranges::binary_search(missing_, number) ? 0 : 1;
    }
    return count;
  });
}

template std::int64_t Unpacking::unpack<float>(StoredNumbers, std::span<const std::byte>,
                                               std::span<float>) const;
template std::int64_t Unpacking::unpack<double>(StoredNumbers, std::span<const std::byte>,
                                                std::span<double>) const;

}  // namespace jigsaw::inline files
