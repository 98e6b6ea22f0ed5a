#include "sweep/run_name.h"

#include <algorithm>
#include <cctype>
#include <iomanip>
#include <sstream>

#include "base/text.h"

namespace jigsaw::inline sweep {
namespace {

constexpr std::size_t kLongest = 160;

/// The last `parts` parts of a dotted key.
std::string tail(const std::string& key, std::size_t parts) {
  const std::vector<std::string> all = split(key, '.');
  const std::size_t first = all.size() > parts ? all.size() - parts : 0;
  return join(std::vector<std::string>(all.begin() + static_cast<std::ptrdiff_t>(first), all.end()), ".");
}

std::string short_key(const std::string& key, const std::vector<std::string>& keys) {
  const std::size_t longest = split(key, '.').size();
  for (std::size_t parts = 1; parts < longest; ++parts) {
    std::string candidate = tail(key, parts);
    const bool alone = std::none_of(keys.begin(), keys.end(), [&](const std::string& other) {
      return other != key && tail(other, parts) == candidate;
    });
    if (alone) return candidate;
  }
  return key;
}

/// A value as it stands in a name: lists as 2x1.
std::string value_text(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return value.dump();
  std::vector<std::string> parts;
  for (const Json& part : value) parts.push_back(value_text(part));
  return join(parts, "x");
}

/// Whether other values have the same text: the list [2, 1] and "2x1", the number 1 and "1".
bool is_lossy(const Json& value) {
  return value.is_structured() || (value.is_string() && Json::accept(value.get<std::string>()));
}

bool is_plain(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
         std::string_view("._-+=,").find(c) != std::string::npos;
}

}  // namespace

std::string run_name(const Assignment& run, const std::vector<std::string>& keys) {
  if (run.empty()) return "base";
  std::vector<std::string> parts;
  for (const auto& [key, value] : run) parts.push_back(short_key(key, keys) + "=" + value_text(value));
  const std::string whole = join(parts, ",");
  std::string name;
  std::copy_if(whole.begin(), whole.end(), std::back_inserter(name), is_plain);
  const bool lossy =
      std::any_of(run.begin(), run.end(), [](const auto& entry) { return is_lossy(entry.second); });
  if (name == whole && name.size() <= kLongest && !lossy && name.front() != '.') return name;
  std::ostringstream hash;
  hash << std::hex << std::setw(8) << std::setfill('0') << (stable_hash(Json(run).dump()) & 0xffffffffU);
  return name.substr(0, kLongest) + "-" + hash.str();
}

}  // namespace jigsaw::inline sweep
