#include "train/changed_channels.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <vector>

#include "base/text.h"
#include "fields/data_forms.h"
#include "task/scores.h"

namespace jigsaw::inline train {

namespace {

constexpr std::size_t kMostChanges = 3;
/// More than any configuration takes.
constexpr std::int64_t kMostNoiseChannels = 1 << 20;

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

/// Names of the channels of noise, in their order.
std::vector<std::string> noise_names(std::int64_t local, std::int64_t global) {
  std::vector<std::string> names(static_cast<std::size_t>(local), "local noise");
  names.insert(names.end(), static_cast<std::size_t>(global), "global noise");
  return names;
}

/// Those that a manifest's configuration has.
std::vector<std::string> noise_in(const Json& extra) {
  const Json ensemble = value_at(value_at(extra, "configuration"), "ensemble");
  const auto count = [&](const char* key) {
    const Json channels = value_at(ensemble, key);
    return channels.is_number_integer()
               ? std::clamp<std::int64_t>(channels.get<std::int64_t>(), 0, kMostNoiseChannels)
               : 0;
  };
  return noise_names(count("local_noise"), count("global_noise"));
}

/// With the noise behind them where all are as many, else without.
std::string changes_of_inputs(std::vector<std::string> before, const std::vector<std::string>& noise_before,
                              std::vector<std::string> now, const std::vector<std::string>& noise_now) {
  if (before.size() + noise_before.size() == now.size() + noise_now.size()) {
    before.insert(before.end(), noise_before.begin(), noise_before.end());
    now.insert(now.end(), noise_now.begin(), noise_now.end());
  }
  return changes_of("input channel", before, now);
}

std::string change_of_key(const Json& before, const char* key, const Json& is) {
  const Json was = value_at(before, key);
  if (was.is_null() || was == is) return "";
  return concat("data.", key, " was ", was.dump(-1, ' ', false, Json::error_handler_t::replace),
                " there and is ", is.dump(), " here");
}

Json durations_json(const std::vector<Time>& times) {
  Json json = Json::array();
  for (const Time time : times) json.push_back(duration_json(time));
  return json;
}

}  // namespace

std::string changed_channels(const Json& extra, const Channels& now, const DataOptions& options,
                             const EnsembleOptions& ensemble) {
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
    parts = {changes_of_inputs({before.begin(), split}, noise_in(extra), input_names,
                               noise_names(ensemble.local_noise, ensemble.global_noise)),
             changes_of("target channel", {split, before.end()}, target_names)};
  }
  const Json keys = value_at(value_at(extra, "configuration"), "data");
  if (options.of_sequences()) {
    parts.push_back(change_of_key(keys, "input_steps", options.input_steps));
    parts.push_back(change_of_key(keys, "lead_steps", options.lead_steps));
  } else if (!options.of_images()) {
    parts.push_back(change_of_key(keys, "input_hours", durations_json(options.input_times)));
    parts.push_back(change_of_key(keys, "lead_hours", duration_json(options.lead_time)));
  }
  std::erase(parts, "");
  return join(parts, "; ");
}

}  // namespace jigsaw::inline train
