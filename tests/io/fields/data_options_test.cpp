#include "fields/data_options.h"

#include <regex>

#include "config/config.h"
#include "fields/variable_names.h"
#include "io/fixtures.h"
#include "samples/channels.h"

namespace jigsaw {
namespace data_options_test {

const char* const kSection = R"({
  "files": ["data/era5_*.nc"], "shape": [721, 1440],
  "variables": ["t2m", {"name": "t", "levels": [850, 500]}],
  "static": ["lsm"], "forcings": ["latitude", "longitude", "time_of_day", "day_of_year"],
  "input_hours": [-6, 0], "predict": "state",
  "train": [["2019-03-01", "2019-03-10"], ["2019-03-15T06:00", "2019-03-24"]], "valid": ["2019-03-25", "2019-03-31"]
})";

Json section_with(const std::string& key, const Json& value) {
  Json json = Json::parse(kSection);
  json[key] = value;
  return json;
}

TEST(DataOptions, ReadsTheSectionAndWritesItBack) {
  const auto options = parse<DataOptions>(Json::parse(kSection));
  EXPECT_EQ(options.variables[1], (VariableOptions{"t", {850, 500}}));
  ASSERT_EQ(options.train.size(), 2U);
  EXPECT_EQ(periods_of(options.train)[1].first, at("2019-03-15T06:00"));
  ASSERT_EQ(options.valid.size(), 1U);
  EXPECT_EQ(periods_of(options.valid)[0].last, at("2019-03-31T23:59:59"));
  EXPECT_EQ(options.predict, Predict::kState);
  EXPECT_EQ(options.lead_time, 6 * kHour);
  EXPECT_FALSE(options.normalization);
  EXPECT_EQ(options.statistics_file(), nullptr);
  const Json written = to_json(options);
  EXPECT_EQ(written["train"], Json::parse(kSection)["train"]);
  EXPECT_EQ(written["valid"], Json::parse(kSection)["valid"]);
  EXPECT_EQ(to_json(parse<DataOptions>(written)), written);
}

TEST(DataOptions, TheSchemaKnowsDates) {
  const Json dates = schema<DataOptions>()["properties"]["train"]["anyOf"][0]["anyOf"][0]["items"];
  const std::regex pattern(dates.at("pattern").get<std::string>());
  for (const char* date : {"2019-03-01", "2019-03-01T06:00", "2019-03-01 06:00:30Z"}) {
    EXPECT_TRUE(std::regex_match(date, pattern)) << date;
    EXPECT_TRUE(parse_dates(date, date)) << date;
  }
  for (const char* other : {"March 1", "2019-03", "20190301", "2019-03-01T", "2019-03-01T6h"}) {
    EXPECT_FALSE(std::regex_match(other, pattern)) << other;
    EXPECT_FALSE(parse_dates(other, other)) << other;
  }
}

TEST(DataOptions, RefusesWhatIsImpossible) {
  const auto message = [](const std::string& key, const Json& value) {
    return message_of<ConfigError>([&] { parse<DataOptions>(section_with(key, value)); });
  };
  EXPECT_EQ(message("variables", Json::array()).find("variables"), 0U);
  EXPECT_EQ(message("files", ""), "files must hold names or patterns of files, and one of them is \"\"");
  EXPECT_EQ(message("variables", Json::parse(R"([{"name": "t", "files": ["a.nc", ""]}])"))
                .find("variables[0].files must"),
            0U);
  EXPECT_EQ(message("normalization", ""),
            "normalization must be null, \"auto\" or the name of a file or a checkpoint, not \"\"");
  EXPECT_EQ(message("train", {"2019-03-01", "March 1"}),
            "train has \"March 1\" for a date; write dates like \"2019-03-01\" or \"2019-03-01T06:00\"");
  EXPECT_NE(message("forcings", {"lattitude"}).find("latitude"), std::string::npos);
  EXPECT_NE(message("input_hours", {-6}).find("hold 0"), std::string::npos);
  EXPECT_EQ(message("input_hours", {0, 0}).find("input_hours"), 0U);
  EXPECT_EQ(message("train", {"2019-03-24", "2019-03-01"}).find("train"), 0U);
  EXPECT_EQ(message("train", {"2019-03-24", "2019-02-30"}).find("train"), 0U);
  EXPECT_EQ(message("shape", {3}).find("shape"), 0U);
  EXPECT_EQ(message("task", "denoised").find("task"), 0U);
  EXPECT_EQ(message("task", "denoise").find("train"), 0U);
  EXPECT_EQ(message("train", {{"depth", {0, 9}}}).find("train must hold pairs of dates"), 0U);
  EXPECT_EQ(message("dims", {"height", "width"}), "dims must name \"time\" where data.task is \"forecast\"");
  for (const Json& dims : {Json{"time", "height", "width"}, Json{"sample", "time", "width"}})
    EXPECT_EQ(message("dims", dims).find("train must hold parts of sequences"), 0U);
  EXPECT_EQ(message("crop", {4, 4}).find("crop"), 0U);
  EXPECT_EQ(message("lead_hours", -1).find("lead_hours"), 0U);
  EXPECT_EQ(message("lead_hours", 0), "diagnostic must name the targets where data.lead_hours is 0");
  EXPECT_EQ(message("vector_components", {"wind"}).find("vector_components names wind"), 0U);
  EXPECT_EQ(message("region", {{"latitude", {50, 40}}}),
            "region.latitude must be [] or [south, north], and 50 is north of 40; write [40, 50]");
  EXPECT_EQ(message("region", {{"longitude", {5, 5}}}),
            "region.longitude must be [] or two ends that differ, and both are 5");
  EXPECT_EQ(message("every", {1, 2, 3}).find("every"), 0U);
  EXPECT_EQ(message("time_step", 12).find("lead_hours must be a multiple of data.time_step"), 0U);
  EXPECT_EQ(message("masks", {"sst"}).find("masks names sst"), 0U);
  EXPECT_EQ(message("regrid", {{"method", "none"}, {"variables", {{"t2m", "linear"}}}}),
            "regrid.method must be another than \"none\" where data.regrid.variables has methods");
  EXPECT_EQ(message("fill", {{"sst", 0}}).find("fill names sst, which is no variable or field"), 0U);
  EXPECT_EQ(message("missing", {{"sst", 0}}).find("missing names sst, which is no variable or field"), 0U);
  EXPECT_EQ(message("static", {{{"name", "lsm"}, {"times", "cycle"}}}),
            "static[0].times is for data.forcing_variables alone; leave it out here");
  EXPECT_EQ(message("variables", {{{"name", "t"}, {"levels", {"0.5 km"}}}}).find("variables[0].levels[0]"),
            0U);
}

TEST(DataOptions, LevelsMayHaveAUnit) {
  const auto options = parse<DataOptions>(
      section_with("variables", {{{"name", "t"}, {"levels", {850, "500 hPa", "20000 Pa", "5kPa"}}}}));
  EXPECT_EQ(options.variables[0].levels, (std::vector<double>{850, 500, 200, 50}));
}

TEST(DataOptions, ATextAloneIsAListOfOne) {
  Json json = section_with("files", "a.nc");
  json["variables"] = "t2m";
  const auto options = parse<DataOptions>(json);
  EXPECT_EQ(options.files, std::vector<std::string>{"a.nc"});
  EXPECT_EQ(options.variables, (std::vector<VariableOptions>{{"t2m", {}}}));
}

const char* const kImages = R"({
  "files": ["ct.h5"], "task": "map", "variables": ["scan/density"], "targets": ["labels"], "classes": 4, "ignore_index": 255,
  "dims": ["width", "sample", "height", "depth"], "crop": [16, 32, 32], "flips": ["width"],
  "train": [{"sample": [0, 7]}, {"sample": [8, 8], "depth": [0, 74]}], "valid": {"sample": [9, 9]}
})";

TEST(DataOptions, ReadsImagesAndWritesThemBack) {
  const auto options = parse<DataOptions>(Json::parse(kImages));
  EXPECT_EQ(options.space(), (std::vector{ImageDim::kDepth, ImageDim::kHeight, ImageDim::kWidth}));
  ASSERT_EQ(options.train.size(), 2U);
  const auto& ranges = std::get<SliceRanges>(options.train[1]);
  EXPECT_EQ(ranges.of.at(ImageDim::kDepth), std::pair(std::int64_t{0}, std::int64_t{74}));
  EXPECT_EQ(to_text(ranges), R"({"sample":[8,8],"depth":[0,74]})");
  const Json written = to_json(options);
  EXPECT_EQ(written["train"], Json::parse(kImages)["train"]);
  EXPECT_EQ(written["valid"], Json::parse(kImages)["valid"]);
  EXPECT_EQ(to_json(parse<DataOptions>(written)), written);
}

TEST(DataOptions, TakesImagesByCase) {
  Json json = Json::parse(kImages);
  json["train"] = Json::parse(R"([{"case": "a", "depth": [0, 3]}, {"case": ["b", "c*"]}])");
  json["valid"] = Json::parse(R"({"file": "splits_final.json", "fold": 2})");
  const auto options = parse<DataOptions>(json);
  EXPECT_EQ(std::get<SliceRanges>(options.train[0]).cases, std::vector<std::string>{"a"});
  EXPECT_EQ(to_text(std::get<SliceRanges>(options.train[1])), R"({"case":["b","c*"]})");
  const auto& fold = std::get<SliceRanges>(options.valid[0]);
  EXPECT_EQ(fold.folds, "splits_final.json");
  EXPECT_EQ(fold.fold, 2);
  const Json written = to_json(options);
  EXPECT_EQ(written["valid"], json["valid"]);
  EXPECT_EQ(to_json(parse<DataOptions>(written)), written);
  const auto message = [&](const char* part) {
    json["train"] = Json::parse(part);
    return message_of<ConfigError>([&] { parse<DataOptions>(json); });
  };
  EXPECT_EQ(message(R"({"case": []})").find("train.case must be a list of names"), 0U);
  EXPECT_EQ(message(R"({"case": [1]})").find("train.case"), 0U);
  EXPECT_EQ(message(R"({"file": ""})").find("train.file"), 0U);
  EXPECT_EQ(message(R"({"file": "a", "fold": -1})").find("train.fold"), 0U);
  EXPECT_EQ(message(R"({"fold": 1})").find("train has fold and no file"), 0U);
  EXPECT_EQ(message(R"({"case": "a", "file": "b"})").find("train has case and file"), 0U);
  EXPECT_EQ(message(R"({"case": "a", "sample": [0, 1]})").find("train chooses images by sample and by case"),
            0U);
}

TEST(DataOptions, TakesLabelsAndRegions) {
  Json json = Json::parse(kImages);
  json["labels"] = Json::parse("[0, 1, [2, 4], 3]");
  json["regions"] = Json::parse("[[1, 2, 3], [2, 3], 3]");
  const auto options = parse<DataOptions>(json);
  EXPECT_EQ(options.labels, (std::vector<std::vector<std::int64_t>>{{0}, {1}, {2, 4}, {3}}));
  EXPECT_EQ(options.regions, (std::vector<std::vector<std::int64_t>>{{1, 2, 3}, {2, 3}, {3}}));
  EXPECT_EQ(options.label_outputs(), 3);
  EXPECT_EQ(options.label_targets(), 3);
  EXPECT_EQ(to_json(options)["labels"], json["labels"]);
  EXPECT_EQ(to_json(options)["regions"], json["regions"]);
}

TEST(DataOptions, RefusesImagesThatAreImpossible) {
  const auto message = [](const std::string& key, const Json& value) {
    Json json = Json::parse(kImages);
    json[key] = value;
    return message_of<ConfigError>([&] { parse<DataOptions>(json); });
  };
  EXPECT_EQ(message("dims", {"z", "height", "width"}).find("dims[0]"), 0U);
  EXPECT_EQ(message("dims", {"height", "height"}).find("dims"), 0U);
  EXPECT_EQ(message("dims", {"height"}).find("dims"), 0U);
  EXPECT_EQ(message("dims", {"depth", "width"}).find("dims must hold"), 0U);
  EXPECT_EQ(message("dims", {"width"}).find("dims must hold \"height\" and \"width\""), 0U);
  EXPECT_EQ(message("dims", Json::array()).find("dims"), 0U);
  EXPECT_EQ(message("crop", {32, 32}).find("crop"), 0U);
  EXPECT_EQ(message("flips", {"sample"}).find("flips"), 0U);
  EXPECT_EQ(message("train", {{"dept", {0, 7}}}).find("train.dept"), 0U);
  EXPECT_EQ(message("train", {{"depth", {7, 0}}}).find("train.depth"), 0U);
  EXPECT_EQ(message("train", {{"depth", {0, 1, 2}}}).find("train.depth"), 0U);
  EXPECT_EQ(message("train", Json::object()).find("train"), 0U);
  EXPECT_EQ(message("valid", {"2019-03-01", "2019-03-02"}).find("valid"), 0U);
  EXPECT_EQ(message("targets", Json::array()).find("targets"), 0U);
  EXPECT_EQ(message("targets", {"a", "b"}).find("targets"), 0U);
  EXPECT_EQ(message("classes", 1).find("classes"), 0U);
  EXPECT_EQ(message("classes", 0).find("ignore_index"), 0U);
  EXPECT_EQ(message("labels", {0, 1, {2, 4}}).find("labels must have an entry for each class, 4 by"), 0U);
  EXPECT_EQ(message("labels", {0, 1, {2, 4}, 1}).find("labels names the number 1 twice"), 0U);
  EXPECT_EQ(message("labels", {0, 1, {2, 255}, 3}).find("labels names the number 255, which is"), 0U);
  EXPECT_EQ(message("labels", {0, 1, Json::array(), 3}).find("labels must name a number for each"), 0U);
  EXPECT_EQ(message("labels", {0, 1, -1, 3}).find("labels[2] must be"), 0U);
  EXPECT_EQ(message("labels", {{"0", 1}}).find("labels must be"), 0U);
  EXPECT_EQ(message("regions", {{1, 2, 3}, {2, 4}}).find("regions names the class 4"), 0U);
  EXPECT_EQ(message("regions", {{1, 2, 1}}).find("regions names a class twice"), 0U);
  EXPECT_EQ(message("regions", {1, Json::array()}).find("regions must name a class"), 0U);
  EXPECT_EQ(message("regions", {0, 1}).find("regions[0] must be"), 0U);
  const std::string hidden = message("regions", {{1, 2, 3}, {1, 3}, 3});
  EXPECT_NE(hidden.find("region 0 begins with 1, which region 1 has, too"), std::string::npos) << hidden;
  EXPECT_EQ(message("noise_sigma", 3).find("noise_sigma"), 0U);
  EXPECT_EQ(message("forcings", {"latitude"}).find("forcings"), 0U);
  EXPECT_EQ(message("task", "denoise").find("noise_sigma"), 0U);
  EXPECT_EQ(message("vector_components", {"u10"}).find("vector_components"), 0U);
}

std::vector<std::string> names(const std::vector<Channel>& channels) {
  std::vector<std::string> result;
  for (const Channel& channel : channels) result.push_back(concat(channel.name, "@", channel.offset / kHour));
  return result;
}

TEST(Channels, StandInTheDocumentedOrder) {
  const DataOptions options = fixture_options();
  const Channels channels = make_channels(options, false);
  EXPECT_EQ(names(channels.inputs),
            (std::vector<std::string>{"t2m@-6", "t_850@-6", "t_500@-6", "t2m@0", "t_850@0", "t_500@0",
                                      "lsm@0", "latitude@0", "longitude@0", "sin_time_of_day@0",
                                      "cos_time_of_day@0", "sin_time_of_day@6", "cos_time_of_day@6",
                                      "sin_day_of_year@0", "cos_day_of_year@0"}));
  EXPECT_EQ(names(channels.targets), (std::vector<std::string>{"t2m@6", "t_850@6", "t_500@6", "tp@6"}));
  EXPECT_EQ(make_channels(options, true).inputs.size(), channels.inputs.size() + 1);
  EXPECT_TRUE(looks_global({721, 1440}));
  EXPECT_TRUE(looks_global({180, 360}));
  EXPECT_FALSE(looks_global({33, 49}));
}

TEST(Channels, MasksFollowTheForcings) {
  DataOptions options = fixture_options();
  options.masks = {"t", "lsm"};
  const Channels channels = make_channels(options, false);
  const std::vector<std::string> all = names(channels.inputs);
  EXPECT_EQ(std::vector(all.end() - 3, all.end()),
            (std::vector<std::string>{"t_850_mask@0", "t_500_mask@0", "lsm_mask@0"}));
  EXPECT_EQ(channels.targets.size(), make_channels(fixture_options(), false).targets.size());
  EXPECT_EQ(fields_of(channels.inputs, Role::kStatic), (std::vector<Field>{{"lsm", {}}}));
}

TEST(Channels, WindsAreComponentsOfVectors) {
  DataOptions options = fixture_options();
  options.variables = {{"t2m", {}}, {"v10", {}}, {"u", {850, 500}}};
  options.constants = {};
  options.forcings = {ForcingKind::kLatitude};
  options.input_times = {-6 * kHour, 0};
  const auto components = [&] {
    std::vector<bool> result;
    for (const Channel& channel : make_channels(options, true).inputs)
      result.push_back(channel.vector_component);
    return result;
  };
  EXPECT_EQ(components(), (std::vector<bool>{false, true, true, true, false, true, true, true, false}));
  options.vector_components = std::vector<std::string>{"t2m"};
  EXPECT_EQ(components(), (std::vector<bool>{true, false, false, false, true, false, false, false, false}));
  EXPECT_TRUE(is_vector_component("10m_v_component_of_wind"));
  EXPECT_FALSE(is_vector_component("t"));
}

TEST(DataOptions, DurationsAreHoursOrHaveAUnit) {
  const auto parse_durations = [](const Json& lead, const Json& inputs) {
    Json json = section_with("lead_hours", lead);
    json["input_hours"] = inputs;
    return parse<DataOptions>(json);
  };
  struct {
    Json written;
    Time seconds;
    Json normal;
  } const cases[] = {{6, 6 * kHour, 6},         {0.25, 900, "15 min"},  {0.083333, 300, "5 min"},
                     {"5 min", 300, "5 min"},   {"5min", 300, "5 min"}, {"90 s", 90, "90 s"},
                     {"1.5 h", 5400, "90 min"}, {"1 d", kDay, 24},      {1.0, kHour, 1}};
  for (const auto& [written, seconds, normal] : cases) {
    const DataOptions options = parse_durations(written, Json::array({0}));
    EXPECT_EQ(options.lead_time, seconds) << written;
    EXPECT_EQ(to_json(options)["lead_hours"], normal) << written;
  }
  const DataOptions options = parse_durations("5 min", {"-10 min", -0.083333, 0});
  EXPECT_EQ(options.input_times, (std::vector<Time>{-600, -300, 0}));
  EXPECT_EQ(duration_text(300), "5 min");
  for (const Json& wrong :
       {Json("5"), Json("min"), Json("5 minutes ago"), Json(0.0001), Json(true), Json("")}) {
    const std::string message = message_of<ConfigError>([&] { parse_durations(wrong, Json::array({0})); });
    EXPECT_NE(message.find("must be a number of hours, or a text such as \"5 min\""), std::string::npos)
        << wrong << ": " << message;
  }
  for (const double hours : {100000.0, 1e9, 1e300}) {
    const std::string message = message_of<ConfigError>([&] { parse_durations(hours, Json::array({0})); });
    EXPECT_NE(message.find("between 0 h and 87600 h"), std::string::npos) << message;
  }
}

TEST(Channels, TimeOfDayIsAlsoThatOfTheFirstTarget) {
  DataOptions options = fixture_options();
  options.forcings = {ForcingKind::kTimeOfDay};
  options.lead_time = 18 * kHour;
  const Channels channels = make_channels(options, false);
  std::vector<Time> offsets;
  for (const Channel& channel : channels.inputs) {
    if (channel.role == Role::kForcing) offsets.push_back(channel.offset);
  }
  EXPECT_EQ(offsets, (std::vector<Time>{0, 0, 18 * kHour, 18 * kHour}));
}

TEST(Channels, AFieldHasOneRole) {
  DataOptions options = fixture_options();
  options.diagnostic = {{"t", {500}}};
  EXPECT_NE(
      message_of<ConfigError>([&] { make_channels(options, false); }).find("data.diagnostic names t_500"),
      std::string::npos);
}

TEST(Forcings, HaveTheirValues) {
  const ForcingFields forcings(make_geographic_grid({60, 50, 40}, {0, 90, 180, 270}));
  std::vector<double> values(4);
  const Box box{{1, 1}, {2, 2}};
  forcings.fill(Forcing::kLatitude, 0, box, values);
  EXPECT_NEAR(values[0], 0, 1e-12);
  EXPECT_NEAR(values[2], -std::sqrt(1.5), 1e-12);
  forcings.fill(Forcing::kLongitude, 0, box, values);
  EXPECT_NEAR(values[0], -45 / std::sqrt((135 * 135 + 45 * 45) / 2.0), 1e-12);
  forcings.fill(Forcing::kCosLongitude, 0, box, values);
  EXPECT_NEAR(values[1], -1, 1e-12);
  forcings.fill(Forcing::kSinLongitude, 0, box, values);
  EXPECT_NEAR(values[0], 1, 1e-12);
  forcings.fill(Forcing::kSinTimeOfDay, at("2020-02-29T06:00"), box, values);
  EXPECT_NEAR(values[3], 1, 1e-12);
  forcings.fill(Forcing::kCosDayOfYear, at("2020-07-02"), box, values);
  EXPECT_NEAR(values[0], -1, 1e-12);
}

}  // namespace data_options_test
}  // namespace jigsaw
