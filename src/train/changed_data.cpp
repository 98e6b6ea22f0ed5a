#include "train/changed_data.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <span>
#include <vector>

#include "base/text.h"
#include "files/digest.h"
#include "task/given_statistics.h"

namespace jigsaw::inline train {
namespace {

/// What statistics decide of a run: not the ends of values and how many are missing, which checkpoints of
/// before do not know.
std::string decisive_text(Statistics statistics) {
  for (auto& [name, field] : statistics.fields) field.least = field.largest = field.missing = {};
  return statistics.to_text();
}

/// The numbers of two lists in so few digits that pairs which differ are not written alike.
std::vector<std::string> texts_of(const std::vector<std::array<double, 2>>& pairs, std::size_t which) {
  std::vector<std::string> texts;
  for (const std::array<double, 2>& pair : pairs) {
    std::array<std::string, 2> both;
    for (int digits = 6; digits <= 17; ++digits) {
      for (std::size_t i = 0; i < both.size(); ++i) {
        std::array<char, 40> text{};
        std::snprintf(text.data(), text.size(), "%.*g", digits, pair[i]);
        both[i] = text.data();
      }
      if (both[0] != both[1] || pair[0] == pair[1]) break;
    }
    texts.push_back(both[which]);
  }
  return texts;
}

/// By how much values are normalised otherwise; 0: not at all.
double distance(const FieldStatistics& a, const FieldStatistics& b) {
  const auto ratio = [](double was, double is) {
    if (was == is) return 0.0;
    return was > 0 && is > 0 ? std::abs(std::log(is / was)) : std::abs(is - was);
  };
  const double shift = std::abs(b.mean - a.mean) / (a.deviation > 0 ? a.deviation : 1.0);
  return std::max(
      {shift, ratio(a.deviation, b.deviation), ratio(a.increment_deviation, b.increment_deviation)});
}

std::string text_of_change(const std::string& name, const FieldStatistics& a, const FieldStatistics& b) {
  std::vector<std::array<double, 2>> pairs = {{a.mean, b.mean}, {a.deviation, b.deviation}};
  const bool increments = a.increment_deviation != b.increment_deviation;
  if (increments) pairs.push_back({a.increment_deviation, b.increment_deviation});
  const std::vector<std::string> was = texts_of(pairs, 0), is = texts_of(pairs, 1);
  return concat(name, ": mean ", was[0], increments ? ", deviation " : " and deviation ", was[1],
                increments ? concat(" and that of increments ", was[2]) : "", " before, ", is[0],
                increments ? ", " : " and ", is[1], increments ? concat(" and ", is[2]) : "", " now");
}

/// @throws DataError
std::string change_of_statistics(const Json& extra, const SampleSource& data) {
  const auto found = extra.find("statistics");
  if (found == extra.end()) return "";
  return largest_change(Statistics::from_text(found->dump(), "the checkpoint"), data.statistics());
}

}  // namespace

Json data_fingerprint(const SampleSource& data) {
  Json channels = Json::array();
  for (const auto& channel : data.channels().inputs) channels.push_back(channel.name);
  for (const auto& channel : data.channels().targets) channels.push_back(channel.name);
  const Shape grid = data.grid().shape();
  const std::vector<std::int64_t> identity = data.identity();
  Json fingerprint = {{"grid", std::vector<std::int64_t>(grid.begin(), grid.end())},
                      {"channels", channels},
                      {"inputs", data.channels().inputs.size()},
                      {"samples", data.count(Split::kTrain)},
                      {"times or places", digest_of(std::as_bytes(std::span(identity)))},
                      {"statistics", digest_of_text(decisive_text(data.statistics()))}};
  fingerprint.update(order_json(data.grid()));
  return fingerprint;
}

std::string first_difference(const Json& before, const Json& now) {
  for (const auto& [key, value] : now.items()) {
    if (!before.contains(key) || before.at(key) != value) return key;
  }
  return "";
}

std::string largest_change(const Statistics& before, const Statistics& now) {
  double most = 0;
  std::string text;
  for (const auto& [name, field] : now.fields) {
    const auto found = before.fields.find(name);
    if (found == before.fields.end()) continue;
    const FieldStatistics& was = found->second;
    if (was.transform != field.transform || was.fill != field.fill) continue;
    const double change = distance(was, field);
    if (change <= most) continue;
    most = change;
    text = text_of_change(name, was, field);
  }
  return text;
}

std::optional<DataChange> changed_data(const Json& extra, const SampleSource& data) {
  const Json before = extra.value("data", Json());
  Json now = data_fingerprint(data);
  const std::optional<GridOrder> was = order_of(before), is = order_of(now);
  for (const char* compared_apart : {"rows", "columns", "corners"}) now.erase(compared_apart);
  now.erase("inputs");  // which keys decide that are compared; earlier versions did not write it
  std::string key = first_difference(before, now);
  // Statistics of the same points in another order are others in their last digits.
  if ((key.empty() || key == "statistics") && was && is && !alike(*was, *is))
    return DataChange{"rows and columns", ""};
  if (key.empty()) return std::nullopt;
  std::string detail;
  if (key == "statistics") detail = change_of_statistics(extra, data);
  const bool short_ones = key == "samples" || key == "grid";
  if (short_ones && before.is_object() && before.contains(key))
    detail = concat(before.at(key).dump(), " before, ", now.at(key).dump(), " now");
  return DataChange{std::move(key), std::move(detail)};
}

}  // namespace jigsaw::inline train
