#include "config/changed_keys.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <system_error>

#include "base/text.h"
#include "config/place.h"
#include "config/tagged.h"

namespace jigsaw::inline config {
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

/// Follows the names of a path; indices of lists are no names.
class ChangeSearch {
 public:
  explicit ChangeSearch(std::vector<std::string> names) : names_(std::move(names)) {}

  bool in_table(const KeyTable& table, std::size_t i) const {
    for (const KeyInfo* key : table.keys()) {
      if (key->name != names_[i]) continue;
      return key->changeable || (i + 1 < names_.size() && in_form(key->form(), i + 1));
    }
    return false;
  }

 private:
  bool in_form(const Form& form, std::size_t i) const {
    if (form.table() != nullptr && in_table(*form.table(), i)) return true;
    if (form.tags() != nullptr) {
      for (const auto& type : form.tags()->types()) {
        if (in_table(type->table(), i)) return true;
      }
    }
    const std::vector<const Form*> parts = form.parts();
    return std::any_of(parts.begin(), parts.end(), [&](const Form* part) { return in_form(*part, i); });
  }

  std::vector<std::string> names_;
};

/// The number of an entry of a list; SIZE_MAX for what is none.
std::size_t entry_of(const std::string& name) {
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  return error == std::errc() && end == name.data() + name.size() ? number : SIZE_MAX;
}

}  // namespace

bool may_change(const KeyTable& root, std::string_view path) {
  std::vector<std::string> names = split_path(path);
  std::erase_if(names, [](const std::string& name) {
    return !name.empty() && name.find_first_not_of("0123456789") == std::string::npos;
  });
  return !names.empty() && ChangeSearch(std::move(names)).in_table(root, 0);
}

std::string change_text(const Json& before, const Json& after, const std::string& path) {
  constexpr std::size_t kLongest = 60;
  const auto value_in = [&](const Json& root) -> std::string {
    const Json* at = &root;
    for (const std::string& name : split_path(path)) {
      if (at->is_object() && at->contains(name)) {
        at = &at->at(name);
      } else if (at->is_array() && entry_of(name) < at->size()) {
        at = &at->at(entry_of(name));
      } else {
        return "nothing";
      }
    }
    return at->dump(-1, ' ', false, Json::error_handler_t::replace);
  };
  const std::string was = value_in(before), is = value_in(after);
  if (was == is) return path;  // a key with dots in it
  return std::max(was.size(), is.size()) > kLongest ? path
                                                    : concat(path, " (", was, " before, ", is, " now)");
}

std::vector<std::string> changed_keys(const Json& before, const Json& after) {
  std::vector<std::string> changed;
  compare(before, after, Place(), changed);
  return changed;
}

}  // namespace jigsaw::inline config
