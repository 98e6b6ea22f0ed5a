#pragma once
#include <array>
#include <cstdint>
#include <cstdio>
#include <string>

namespace jigsaw::inline predict {

/// "12.3 steps a second". @param many  the noun in its plural.
inline std::string per_second(std::int64_t count, const char* many, double seconds) {
  std::array<char, 64> text{};
  const double rate = static_cast<double>(count) / seconds;
  std::snprintf(text.data(), text.size(), rate < 100 ? "%.3g %s a second" : "%.0f %s a second", rate, many);
  return text.data();
}

}  // namespace jigsaw::inline predict
