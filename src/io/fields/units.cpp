#include "fields/units.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

namespace jigsaw::inline fields {

namespace {

using Powers = std::map<std::string, int>;

/// Goes through a text from its first letter on.
class UnitReader {
 public:
  explicit UnitReader(std::string_view text) : text_(text) {}

  /// Nothing where it is no product of powers.
  std::optional<Powers> read() {
    Powers powers;
    bool divided = false;
    while (!text_.empty()) {
      const std::optional<int> power = read_factor();
      if (!power) return std::nullopt;
      if (name_ != "1") powers[name_] += divided ? -*power : *power;
      const std::string_view between =
          take([](char c) { return c == ' ' || c == '.' || c == '*' || c == '/'; });
      if (between.empty() != text_.empty() || std::ranges::count(between, '/') > 1) return std::nullopt;
      divided = between.find('/') != std::string_view::npos;
    }
    return powers;
  }

 private:
  template <typename Belongs>
  std::string_view take(const Belongs& belongs) {
    const auto end = std::ranges::find_if_not(text_, belongs);
    const std::string_view taken = text_.substr(0, static_cast<std::size_t>(end - text_.begin()));
    text_.remove_prefix(taken.size());
    return taken;
  }
  bool take_text(std::string_view text) {
    if (!text_.starts_with(text)) return false;
    text_.remove_prefix(text.size());
    return true;
  }
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }

  /// A name, into name_, and its power, which follows with or without a sign of powers.
  std::optional<int> read_factor() {
    constexpr std::string_view kNoName = " .*/^()[]+-0123456789";
    if (take_text("1")) {
      name_ = "1";
      return 1;
    }
    name_ = take([&](char c) { return kNoName.find(c) == std::string_view::npos; });
    if (name_.empty()) return std::nullopt;
    const bool raised = take_text("**") || take_text("^");
    const bool negative = take_text("-");
    const bool signed_power = negative || take_text("+");
    const std::string_view digits = take(is_digit);
    if (digits.empty()) return raised || signed_power ? std::nullopt : std::optional(1);
    if (digits.size() > 2) return std::nullopt;
    const int power = std::stoi(std::string(digits));
    return negative ? -power : power;
  }

  std::string_view text_;
  std::string name_;
};

}  // namespace

bool same_unit(const std::string& a, const std::string& b) {
  if (a == b) return true;
  const std::optional<Powers> first = UnitReader(a).read(), second = UnitReader(b).read();
  return first && !first->empty() && first == second;
}

std::optional<double> units_per_hectopascal(const std::string& units) {
  static const std::vector<std::pair<std::vector<std::string>, double>> kUnits = {
      {{"hPa", "hectopascal", "hectopascals", "millibars", "millibar", "mbar", "mb"}, 1.0},
      {{"Pa", "pascal", "pascals", "Pascal"}, 100.0},
      {{"kPa", "kilopascal"}, 0.1},
      {{"bar"}, 0.001}};
  for (const auto& [names, count] : kUnits) {
    if (std::find(names.begin(), names.end(), units) != names.end()) return count;
  }
  return std::nullopt;
}

bool is_length(const std::string& units) {
  static const std::vector<std::string> kUnits = {"m",           "meter",      "meters",     "metre",
                                                  "metres",      "km",         "kilometer",  "kilometers",
                                                  "kilometre",   "kilometres", "cm",         "centimeter",
                                                  "centimeters", "centimetre", "centimetres"};
  return std::find(kUnits.begin(), kUnits.end(), units) != kUnits.end();
}

}  // namespace jigsaw::inline fields
