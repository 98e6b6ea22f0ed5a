#include "files/value_kinds.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/text.h"

namespace jigsaw::inline files {

namespace {

/// Without what stands in parentheses.
std::string without_comments(const std::string& text) {
  std::string plain;
  int depth = 0;
  for (const char c : text) {
    if (c == '(') ++depth;
    if (depth == 0) plain += c;
    if (c == ')' && depth > 0) --depth;
  }
  return plain;
}

}  // namespace

std::string method_along(const std::string& cell_methods, const std::string& dimension) {
  std::vector<std::string> found;
  bool names = false, named = false, append = false;
  for (const std::string& word : split(without_comments(cell_methods), ' ')) {
    if (word.empty()) continue;
    if (word.ends_with(':')) {
      if (!names) named = false;
      names = true;
      append = false;
      named = named || word.substr(0, word.size() - 1) == dimension;
      continue;
    }
    names = false;
    if (!named) continue;
    if (append) {
      found.back() += " " + word;
    } else {
      found.push_back(word);
    }
    append = true;
  }
  return join(found, ", ");
}

double time_range(const FileVariable& variable) {
  const auto said = variable.numbers.find(kTimeRange);
  return said == variable.numbers.end() || said->second.empty() ? 0 : said->second.front();
}

bool same_time_range(double hours, double others) {
  constexpr double kDay = 24, kSame = 1e-3;
  const auto both = [&](double least, double most) {
    return std::min(hours, others) >= least * kDay && std::max(hours, others) <= most * kDay;
  };
  return std::abs(hours - others) < kSame || both(28, 31) || both(365, 366);
}

}  // namespace jigsaw::inline files
