#include "train/changed_channels.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <vector>

#include "base/text.h"
#include "train/scores.h"

namespace jigsaw::inline train {

namespace {

constexpr std::size_t kMostChanges = 3;

/// null where there is none.
Json value_at(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found == json.end() ? Json() : *found;
}

/// All names of channels that a manifest holds; none where it is not as runs write it.
std::vector<std::string> names_in(const Json& list) {
  std::vector<std::string> names;
  if (!list.is_array()) return names;
  for (const Json& name : list) {
    if (!name.is_string()) return {};
    names.push_back(name.get<std::string>());
  }
  return names;
}

/// @param kind  "input channel".
std::string changes_of(const std::string& kind, const std::vector<std::string>& before,
                       const std::vector<std::string>& now) {
  if (before.size() != now.size() || before == now) return "";
  std::vector<std::string> first;
  std::int64_t more = 0;
  for (std::size_t i = 0; i < now.size(); ++i) {
    if (before[i] == now[i]) continue;
    if (first.size() == kMostChanges) {
      ++more;
    } else {
      first.push_back(concat(kind, " ", i, " was \"", before[i], "\" there and is \"", now[i], "\" here"));
    }
  }
  return concat(std::ranges::is_permutation(before, now)
                    ? concat("the ", kind, "s are the same in another order: ")
                    : "",
                join(first, ", "), more == 0 ? "" : concat(", and ", more, " more"));
}

template <typename Value>
std::string change_of_key(const Json& before, const char* key, const Value& now) {
  const Json was = value_at(before, key), is = now;
  if (was.is_null() || was == is) return "";
  return concat("data.", key, " was ", was.dump(-1, ' ', false, Json::error_handler_t::replace),
                " there and is ", is.dump(), " here");
}

}  // namespace

std::string changed_channels(const Json& extra, const Channels& now, const DataOptions& options) {
  const Json data = value_at(extra, "data"), inputs = value_at(data, "inputs");
  const std::vector<std::string> before = names_in(value_at(data, "channels"));
  const std::vector<std::string> input_names = channel_names(now.inputs),
                                 target_names = channel_names(now.targets);
  std::vector<std::string> parts;
  // Older checkpoints do not say which channels are inputs: where all are as many, these are.
  const std::size_t all = now.inputs.size() + now.targets.size();
  if (inputs.is_number_unsigned() || before.size() == all) {
    const std::size_t count =
        inputs.is_number_unsigned() ? std::min(inputs.get<std::size_t>(), before.size()) : now.inputs.size();
    const auto split = before.begin() + static_cast<std::ptrdiff_t>(count);
    parts = {changes_of("input channel", {before.begin(), split}, input_names),
             changes_of("target channel", {split, before.end()}, target_names)};
  }
  if (!options.of_images()) {
    const Json keys = value_at(value_at(extra, "configuration"), "data");
    parts.push_back(change_of_key(keys, "input_hours", options.input_hours));
    parts.push_back(change_of_key(keys, "lead_hours", options.lead_hours));
  }
  std::erase(parts, "");
  return join(parts, "; ");
}

}  // namespace jigsaw::inline train
