#include "config/changed_keys.h"

#include <algorithm>

#include "base/text.h"
#include "config/place.h"

namespace jigsaw {
namespace {

bool holds_objects(const Json& list) {
  return std::any_of(list.begin(), list.end(), [](const Json& entry) { return entry.is_object(); });
}

void compare(const Json& before, const Json& after, const Place& at, std::vector<std::string>& changed) {
  if (before == after) return;
  if (before.is_object() && after.is_object()) {
    for (const auto& [name, value] : before.items()) {
      const auto other = after.find(name);
      if (other == after.end()) {
        changed.push_back(at.key(name).path());
      } else {
        compare(value, *other, at.key(name), changed);
      }
    }
    for (const auto& [name, value] : after.items()) {
      if (!before.contains(name)) changed.push_back(at.key(name).path());
    }
  } else if (before.is_array() && after.is_array() && before.size() == after.size() &&
             holds_objects(before)) {
    for (std::size_t i = 0; i < before.size(); ++i) compare(before[i], after[i], at.item(i), changed);
  } else {
    changed.push_back(at.path());
  }
}

}  // namespace

std::vector<std::string> changed_keys(const Json& before, const Json& after) {
  std::vector<std::string> changed;
  compare(before, after, Place(), changed);
  return changed;
}

}  // namespace jigsaw
