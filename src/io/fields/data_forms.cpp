#include "fields/data_forms.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>

#include "base/text.h"
#include "config/config.h"
#include "fields/units.h"

namespace jigsaw::inline fields {

namespace {

constexpr std::array kImageDims = {ImageDim::kSample, ImageDim::kTime,  ImageDim::kDepth,
                                   ImageDim::kHeight, ImageDim::kWidth, ImageDim::kChannel};

FormPtr<VariableOptions> variable_form() {
  return shorthand<VariableOptions, std::string>(
      section<VariableOptions>(), form_of<std::string>(),
      [](const std::string& name) {
        return VariableOptions{name, {}};
      },
      [](const VariableOptions& variable) {
        return variable == VariableOptions{variable.name, {}} ? std::optional(variable.name) : std::nullopt;
      });
}

constexpr const char* kDuration =
    "a number of hours, or a text such as \"5 min\" (s, min, h or d), in whole seconds";

Json duration_schema(Time least, Time most) {
  return {{"anyOf",
           {{{"type", "number"}, {"minimum", in_hours(least)}, {"maximum", in_hours(most)}},
            {{"type", "string"}, {"pattern", R"(^-?[0-9.]+ *(s|sec|min|h|d)$)"}, {"examples", {"5 min"}}}}}};
}

FormPtr<DatePeriod> period_form() {
  const auto read = [](const Json& json, const Place& at) -> std::optional<DatePeriod> {
    const bool pair = json.is_array() && json.size() == 2 && json[0].is_string() && json[1].is_string();
    if (!pair) return std::nullopt;
    const auto first = json[0].get<std::string>(), last = json[1].get<std::string>();
    const std::optional<DatePeriod> period = parse_dates(first, last);
    if (!period) {
      const std::string& wrong = parse_dates(first, first) ? last : first;
      at.error(concat("has ", quote(wrong),
                      " for a date; write dates like \"2019-03-01\" or \"2019-03-01T06:00\""));
    }
    if (period->last < period->first) at.error("must not end before it begins");
    return period;
  };
  const auto write = [](const DatePeriod& period) {
    const auto [first, last] = format_ends(period);
    return Json::array({first, last});
  };
  const Json date = {{"type", "string"},
                     {"pattern", R"(^\d{1,4}-\d{1,2}-\d{1,2}([T ]\d{1,2}:\d{1,2}(:\d{1,2}(\.\d*)?)?Z?)?$)"},
                     {"examples", Json::array({"2019-03-01", "2019-03-01T06:00"})}};
  const Json schema = {{"type", "array"}, {"items", date}, {"minItems", 2}, {"maxItems", 2}};
  return custom<DatePeriod>(
      {"a pair of dates such as [\"2019-03-01\", \"2019-03-24\"]", schema, read, write});
}

constexpr const char *kCase = "case", *kFolds = "file", *kFold = "fold";

std::vector<std::string> read_cases(const Json& json, const Place& at) {
  const auto is_name = [](const Json& name) {
    return name.is_string() && !name.get_ref<const std::string&>().empty();
  };
  if (is_name(json)) return {json.get<std::string>()};
  if (!json.is_array() || json.empty() || !std::all_of(json.begin(), json.end(), is_name))
    at.wrong("a list of names of cases, or of patterns with *, such as [\"case_000\"]", json);
  return json.get<std::vector<std::string>>();
}

/// What says which cases; whether the key is one of these.
bool read_choice(const std::string& key, const Json& value, const Place& at, SliceRanges& ranges) {
  if (key == kCase) {
    ranges.cases = read_cases(value, at);
  } else if (key == kFolds) {
    if (!value.is_string() || value.get_ref<const std::string&>().empty())
      at.wrong("the name of a file with folds of cases, such as \"splits_final.json\"", value);
    ranges.folds = value.get<std::string>();
  } else if (key == kFold) {
    if (!value.is_number_integer() || value.get<std::int64_t>() < 0)
      at.wrong("the number of a fold, from 0 on", value);
    ranges.fold = value.get<std::int64_t>();
  } else {
    return false;
  }
  return true;
}

void check_choice(const Json& json, const SliceRanges& ranges, const Place& at) {
  if (json.contains(kCase) && json.contains(kFolds))
    at.error("has case and file; each of them says which images are taken");
  if (json.contains(kFold) && !json.contains(kFolds))
    at.error("has fold and no file of folds, such as {\"file\": \"splits_final.json\", \"fold\": 0}");
  if (ranges.of.contains(ImageDim::kSample) && (json.contains(kCase) || json.contains(kFolds)))
    at.error("chooses images by sample and by case; leave one of them out");
}

SliceRanges read_slices(const Json& json, const Place& at) {
  SliceRanges ranges;
  for (const auto& [key, range] : json.items()) {
    const Place here = at.key(key);
    if (read_choice(key, range, here, ranges)) continue;
    const auto* const known = std::find_if(kImageDims.begin(), kImageDims.end(),
                                           [&text = key](ImageDim dim) { return text == name(dim); });
    if (known == kImageDims.end() || *known == ImageDim::kChannel) {
      here.error(
          "names no dimension; slices are taken of \"sample\", \"time\", \"depth\", \"height\" or \"width\", "
          "and "
          "images by \"case\", or \"file\" and \"fold\"");
    }
    const bool pair = range.is_array() && range.size() == 2 && range[0].is_number_integer() &&
                      range[1].is_number_integer() && range[0].get<std::int64_t>() >= 0;
    if (!pair) here.wrong("a pair of indices from 0 on, such as [0, 74], both included", range);
    if (range[1] < range[0]) here.error("must not end before it begins");
    ranges.of[*known] = {range[0].get<std::int64_t>(), range[1].get<std::int64_t>()};
  }
  check_choice(json, ranges, at);
  return ranges;
}

Json write_slices(const SliceRanges& ranges) {
  Json json = Json::object();
  for (const auto& [dim, range] : ranges.of) json[name(dim)] = {range.first, range.second};
  if (!ranges.cases.empty()) json[kCase] = ranges.cases;
  if (!ranges.folds.empty()) {
    json[kFolds] = ranges.folds;
    json[kFold] = ranges.fold;
  }
  return json;
}

}  // namespace

FormPtr<double> level_form() {
  const auto read = [](const Json& json, const Place& at) -> std::optional<double> {
    if (json.is_number()) return json.get<double>();
    if (!json.is_string()) return std::nullopt;
    const auto text = json.get<std::string>();
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const std::size_t unit = text.find_first_not_of(' ', static_cast<std::size_t>(end - text.data()));
    if (error != std::errc() || unit == std::string::npos) return std::nullopt;
    const std::optional<double> per_hpa = units_per_hectopascal(text.substr(unit));
    if (!per_hpa)
      at.error(concat(
          "has the unit \"", text.substr(unit),
          "\"; of pressures Pa, hPa, mbar and kPa are known, "
          "levels of other kinds are numbers, in m of heights and depths, else in the unit of the files"));
    return value / *per_hpa;
  };
  const Json schema = {{"anyOf", {{{"type", "number"}}, {{"type", "string"}}}}};
  return custom<double>(
      {"a number or a pressure such as \"500 hPa\"", schema, read, [](double level) { return Json(level); }});
}

FormPtr<MemberChoice> form_for(TypeTag<MemberChoice>) {
  const auto read = [](const Json& json, const Place&) -> std::optional<MemberChoice> {
    if (json.is_null()) return MemberChoice{};
    if (json.is_number()) return MemberChoice{.number = json.get<double>()};
    if (json.is_string() && json.get_ref<const std::string&>() == "all") return MemberChoice{.all = true};
    return std::nullopt;
  };
  const auto write = [](const MemberChoice& choice) {
    return choice.all ? Json("all") : choice.number ? Json(*choice.number) : Json(nullptr);
  };
  const Json schema = {{"anyOf", {{{"type", {"number", "null"}}}, {{"const", "all"}}}}};
  return custom<MemberChoice>({"a number, \"all\" or null", schema, read, write});
}

Json duration_json(Time time) {
  return time % kHour == 0 ? Json(time / kHour) : Json(duration_text(time));
}

Json hours_json(Time time) {
  return time % kHour == 0 ? Json(time / kHour) : Json(in_hours(time));
}

std::optional<Time> duration_of(const Json& json) {
  double value = 0;
  Time unit = kHour;
  if (json.is_number()) {
    value = json.get<double>();
  } else if (json.is_string()) {
    const auto& text = json.get_ref<const std::string&>();
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc()) return std::nullopt;
    std::string name(static_cast<const char*>(end), text.data() + text.size());
    std::erase(name, ' ');
    static const std::map<std::string, Time> kUnits = {
        {"s", 1}, {"sec", 1}, {"min", kMinute}, {"h", kHour}, {"d", kDay}};
    const auto known = kUnits.find(name);
    if (known == kUnits.end()) return std::nullopt;
    unit = known->second;
  } else {
    return std::nullopt;
  }
  const double seconds = value * static_cast<double>(unit);
  // 0.0833 hours are 5 minutes, to the digits that are given.
  constexpr double kMost = 1e12, kRounded = 0.2;
  if (std::isnan(seconds)) return std::nullopt;
  if (std::abs(seconds) >= kMost)
    return static_cast<Time>(std::copysign(kMost, seconds));  // out of all ranges
  if (std::abs(seconds - std::round(seconds)) <= 1e-3) return std::llround(seconds);
  const double minutes = std::round(seconds / static_cast<double>(kMinute));
  if (minutes == 0 || std::abs(seconds - minutes * static_cast<double>(kMinute)) > kRounded)
    return std::nullopt;
  return std::llround(minutes) * kMinute;
}

FormPtr<Time> duration_form(Time least, Time most) {
  const auto read = [least, most](const Json& json, const Place& at) -> std::optional<Time> {
    const std::optional<Time> time = duration_of(json);
    if (time && (*time < least || *time > most))
      at.error(concat("must be between ", duration_text(least), " and ", duration_text(most)));
    return time;
  };
  return custom<Time>({kDuration, duration_schema(least, most), read, duration_json});
}

FormPtr<TimeStep> form_for(TypeTag<TimeStep>) {
  const auto read = [](const Json& json, const Place& at) -> std::optional<TimeStep> {
    if (json.is_string() && json.get_ref<const std::string&>() == "month") return TimeStep{.month = true};
    const std::optional<Time> time = duration_of(json);
    if (!time) return std::nullopt;
    if (*time < 0 || *time > kMostDuration)
      at.error(concat("must be between 0 and ", duration_text(kMostDuration), ", or \"month\""));
    return TimeStep{.every = *time};
  };
  const auto write = [](const TimeStep& step) {
    return step.month ? Json("month") : duration_json(step.every);
  };
  Json schema = duration_schema(0, kMostDuration);
  schema["anyOf"].push_back({{"const", "month"}});
  return custom<TimeStep>({concat(kDuration, ", or \"month\""), schema, read, write});
}

FormPtr<std::vector<VariableOptions>> variables_form() {
  return std::make_unique<ListForm<VariableOptions>>(variable_form());
}

FormPtr<Between> form_for(TypeTag<Between>) {
  return choice<Between>(
      {{"exact", Between::kNothing, "Nothing: they are needed at all times of the forecasts."},
       {"latest", Between::kLatest, "What they were last, up to their last time."},
       {"linear", Between::kLinear, "Linear between the times around, up to their last one."},
       {"hold", Between::kHold, "What they were last, also after their last time."},
       {"cycle", Between::kCycle,
        "Their times are of one year, which stands for every year: linear between them and across the turn "
        "of the year."}});
}

FormPtr<SummedSince> form_for(TypeTag<SummedSince>) {
  return choice<SummedSince>(
      {{"day", SummedSince::kDay,
        "Sums begin anew at 00:00 of each day; at 00:00 stands that of the whole day before."},
       {"start", SummedSince::kStart, "Sums run on from the start of the simulation, from file to file."}});
}

std::string to_text(const SliceRanges& ranges) {
  return write_slices(ranges).dump();
}

FormPtr<DataPart> part_form() {
  const auto read = [](const Json& json, const Place& at) -> std::optional<DataPart> {
    if (!json.is_object()) return std::nullopt;
    if (json.empty())
      at.error(
          "is empty; give it two dates as [\"2019-03-01\", \"2019-03-24\"], or of images slices as "
          "{\"depth\": [0, 74]} or cases as {\"case\": [\"case_000\"]}");
    return read_slices(json, at);
  };
  const auto write = [](const DataPart& part) { return write_slices(std::get<SliceRanges>(part)); };
  const Json names = {{"type", "array"}, {"items", {{"type", "string"}}}, {"minItems", 1}};
  const Json schema = {
      {"type", "object"},
      {"properties",
       {{kCase, {{"anyOf", {{{"type", "string"}}, names}}}},
        {kFolds, {{"type", "string"}}},
        {kFold, {{"type", "integer"}, {"minimum", 0}}}}},
      {"additionalProperties",
       {{"type", "array"}, {"items", {{"type", "integer"}}}, {"minItems", 2}, {"maxItems", 2}}}};
  return shorthand<DataPart, DatePeriod>(
      custom<DataPart>({"slices of images such as {\"depth\": [0, 74]}", schema, read, write}), period_form(),
      [](const DatePeriod& period) { return DataPart(period); },
      [](const DataPart& part) {
        const DatePeriod* period = std::get_if<DatePeriod>(&part);
        return period == nullptr ? std::nullopt : std::optional(*period);
      });
}

FormPtr<ImageDim> dim_form(const std::string& why_sample) {
  return choice<ImageDim>({{"sample", ImageDim::kSample, why_sample},
                           {"time", ImageDim::kTime, "The states of a sequence, with the task forecast."},
                           {"depth", ImageDim::kDepth, "The first axis of a volume."},
                           {"height", ImageDim::kHeight, "Rows."},
                           {"width", ImageDim::kWidth, "Columns."},
                           {"channel", ImageDim::kChannel, "Each index is a field of its own, as image_0."}});
}

}  // namespace jigsaw::inline fields
