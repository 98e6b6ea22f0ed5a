#include "train/data_remarks.h"

#include <map>

#include "base/printable.h"
#include "base/text.h"
#include "config/json.h"

namespace jigsaw::inline train {

void DataRemarks::tell() {
  Json mine = Json::object();
  for (const auto& [name, values] : data_.undeclared()) {
    if (sent_.insert(name).second) mine[name] = {values.count, values.of, values.infinite};
  }
  const std::vector<std::string> texts =
      world_.gather_text(mine.dump(-1, ' ', false, Json::error_handler_t::replace));
  std::map<std::string, UndeclaredValues> all;
  for (const std::string& text : texts) {
    const Json found = Json::parse(text);
    for (const auto& [name, values] : found.items()) {
      all[name].count += values.at(0).get<std::int64_t>();
      all[name].of += values.at(1).get<std::int64_t>();
      all[name].infinite += values.at(2).get<std::int64_t>();
    }
  }
  std::erase_if(all, [&](const auto& one) { return !said_.insert(one.first).second; });
  constexpr std::size_t kMost = 5;
  const auto warn = [&](const UndeclaredValues& values, const std::string& of) {
    const bool all_infinite = values.infinite == values.count;
    log_.warn(concat(
        "of ", values.of, " values read of ", of, ", ", values.count, " are ",
        all_infinite ? "infinite" : "NaN or infinite",
        !all_infinite && values.infinite > 0 ? concat(" (", values.infinite, " of them infinite)") : "",
        " and not declared as missing; they count as missing"));
  };
  UndeclaredValues rest;
  std::size_t said = 0;
  for (const auto& [name, values] : all) {
    if (all.size() <= kMost || ++said < kMost) {
      warn(values, printable(name));
    } else {
      rest.count += values.count;
      rest.of += values.of;
      rest.infinite += values.infinite;
    }
  }
  if (all.size() > kMost) warn(rest, concat(all.size() + 1 - kMost, " more variables in files"));
}

}  // namespace jigsaw::inline train
