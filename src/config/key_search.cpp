#include "config/key_search.h"

#include <algorithm>
#include <functional>
#include <set>

#include "base/text.h"
#include "config/tagged.h"

namespace jigsaw::inline config {
namespace {

/// More places than this are no help.
constexpr std::size_t kMostPlaces = 3;

using Visit = std::function<void(const std::string& name, const NamedPlace& place)>;

std::string below(const std::string& path, const std::string& name) {
  return path.empty() ? name : concat(path, ".", name);
}

/// Goes through all keys and types; through tagged types that contain themselves once.
class Walk {
 public:
  explicit Walk(const Visit& visit) : visit_(visit) {}

  void in_table(const KeyTable& table, const NamedPlace& at) {
    for (const KeyInfo* key : table.keys()) {
      const NamedPlace here{below(at.path, key->name), below(at.typed, key->name), at.type};
      visit_(key->name, here);
      in_form(key->form(), here);
    }
  }

 private:
  void in_form(const Form& form, const NamedPlace& at) {
    if (const KeyTable* table = form.table()) in_table(*table, at);
    if (const TagRegistry* tags = form.tags()) in_tags(*tags, at);
    for (const Form* part : form.parts()) in_form(*part, at);
  }

  void in_tags(const TagRegistry& tags, const NamedPlace& at) {
    if (std::find(open_.begin(), open_.end(), &tags) != open_.end()) return;
    open_.push_back(&tags);
    for (const auto& type : tags.types()) {
      const NamedPlace here{at.path, below(at.typed, type->name()), type->name()};
      visit_(type->name(), here);
      in_table(type->table(), here);
    }
    open_.pop_back();
  }

  const Visit& visit_;
  std::vector<const TagRegistry*> open_;  ///< those on the way here
};

std::size_t depth(const NamedPlace& place) {
  return static_cast<std::size_t>(std::count(place.path.begin(), place.path.end(), '.'));
}

}  // namespace

std::vector<NamedPlace> find_name(const KeyTable& root, std::string_view name) {
  std::vector<NamedPlace> places;
  const Visit visit = [&](const std::string& found, const NamedPlace& place) {
    if (found == name) places.push_back(place);
  };
  Walk(visit).in_table(root, {});
  std::size_t nearest = ~std::size_t{0};
  for (const NamedPlace& place : places) nearest = std::min(nearest, depth(place));
  std::set<std::string> seen;
  std::erase_if(places, [&](const NamedPlace& place) {
    return depth(place) > nearest || !seen.insert(place.path).second;
  });
  return places;
}

std::vector<std::string> all_names(const KeyTable& root) {
  std::set<std::string> names;
  const Visit visit = [&](const std::string& name, const NamedPlace&) { names.insert(name); };
  Walk(visit).in_table(root, {});
  return {names.begin(), names.end()};
}

std::string unknown_key_sentence(const KeyTable& root, const UnknownKeyError& error) {
  if (error.is_near()) return error.what();
  const std::vector<NamedPlace> places = find_name(root, error.name());
  if (places.empty() || places.size() > kMostPlaces) return error.what();
  std::vector<std::string> names;
  for (const NamedPlace& place : places) {
    if (place.path == error.path()) {
      const std::string section = place.path.substr(0, place.path.rfind('.'));
      return concat("unknown key ", error.path(), "; ", section, ".type \"", place.type, "\" has such a key");
    }
    names.push_back(concat("\"", place.path, "\""));
  }
  return concat("unknown key ", error.path(), " (did you mean ", join(names, " or "), "?)");
}

}  // namespace jigsaw::inline config
