// Transforms of values, ranges and the rim of a grid; what is done to prescribed fields where files lack
// them.
#include "fields/transform.h"

#include <cmath>

#include "base/error.h"
#include "config/config.h"
#include "grids/rim.h"
#include "io/fixtures.h"
#include "samples/channels.h"
#include "times/windows.h"

namespace jigsaw {
namespace transform_test {

Json forecast() {
  return {{"files", {"a.nc"}},
          {"variables", {"t2m", {{"name", "q"}, {"levels", {500, 850}}}, "u10"}},
          {"diagnostic", {"tp"}},
          {"train", {"2020-01-01", "2020-01-02"}}};
}

TEST(Transform, IsWhatItsFormulaSays) {
  const Transform log{TransformKind::kLog, 1e-3}, root{TransformKind::kSqrt},
      power{TransformKind::kBoxCox, 1e-2, 0.5};
  EXPECT_DOUBLE_EQ(log.forward(0.024), std::log(0.025));
  EXPECT_DOUBLE_EQ(log.forward(-1), std::log(0.001));
  EXPECT_DOUBLE_EQ(root.forward(6.25), 2.5);
  EXPECT_DOUBLE_EQ(root.forward(-1e-9), 0);
  EXPECT_DOUBLE_EQ(power.forward(0.24), (0.5 - 1) / 0.5);  // √0.25 = 0.5
  EXPECT_DOUBLE_EQ(Transform{}.forward(-3), -3);
  for (const Transform& transform : {log, root, power, Transform{}, Transform{TransformKind::kMinMax}}) {
    EXPECT_TRUE(std::isnan(transform.forward(NAN))) << transform.name();
    EXPECT_TRUE(std::isnan(transform.inverse(NAN))) << transform.name();
    for (const double x : {0.0, 1e-6, 0.3, 4.0, 250.0})
      EXPECT_NEAR(transform.inverse(transform.forward(x)), x, 1e-13 * (1 + x)) << transform.name();
    if (!transform.linear()) {
      EXPECT_EQ(transform.inverse(-1e3), 0) << transform.name();
    }
  }
}

TEST(Transform, IsConfiguredByVariableOrField) {
  Json json = forecast();
  json["transforms"] = {{"q", {{"type", "log"}, {"epsilon", 1e-6}}}, {"q_500", "sqrt"}, {"t2m", "min_max"}};
  json["clamp"] = {{"tp", {0, nullptr}}, {"q", {nullptr, 1}}};
  const DataOptions options = parse<DataOptions>(json);
  const Channels channels = make_channels(options, false);
  EXPECT_EQ(channels.targets[0].transform.name(), "min_max");
  EXPECT_EQ(channels.targets[1].transform.name(), "sqrt(x)");
  EXPECT_EQ(channels.targets[2].transform.name(), "log(x + 1e-06)");
  EXPECT_EQ(channels.targets[3].transform.name(), "");
  EXPECT_EQ(channels.targets[4].range.low, 0);
  EXPECT_EQ(channels.targets[2].range.high, 1);
  EXPECT_FALSE(std::isfinite(channels.targets[2].range.low));
  // As it was written, it is read again.
  EXPECT_EQ(to_json(parse<DataOptions>(to_json(options))), to_json(options));
}

TEST(Transform, RefusesWhatCannotBe) {
  const std::vector<std::pair<Json, std::string>> wrong = {
      {{{"transforms", {{"q_700", "log"}}}}, "data.transforms names q_700"},
      {{{"transforms", {{"u10", "log"}}}}, "component of a vector"},
      {{{"transforms", {{"tp", {{"type", "sqrt"}, {"epsilon", 2}}}}}}, "has no effect but for the types"},
      {{{"transforms", {{"tp", "cube"}}}}, "\"box_cox\""},
      {{{"clamp", {{"tp", {1, 0}}}}}, "lower end below its upper one"},
      {{{"clamp", {{"lsm", {0, 1}}}}, {"static", {"lsm"}}}, "names lsm, which is no target"},
      {{{"forcing_variables", {"t2m"}}}, ""}};
  for (const auto& [changes, sentence] : wrong) {
    Json json{{"data", forecast()}};
    json["data"].update(changes);
    const std::string said = message_of<ConfigError>([&] {
      const DataOptions options = parse<DataOptions>(json["data"]);
      make_channels(options, false);
    });
    const std::string without_section = sentence.starts_with("data.") ? sentence.substr(5) : sentence;
    EXPECT_NE(said.find(without_section), std::string::npos) << said;
  }
}

TEST(Transform, IsNotOfLabels) {
  Json json{{"files", {"a.h5"}},      {"task", "map"},       {"dims", {"height", "width"}},
            {"variables", {"image"}}, {"targets", {"mask"}}, {"train", {{"height", {0, 3}}}}};
  json["transforms"] = {{"image", "log"}, {"mask", "sqrt"}};
  EXPECT_EQ(parse<DataOptions>(json).transform_of({"mask", {}}).name(), "sqrt(x)");
  json["classes"] = 3;
  const std::string said = message_of<ConfigError>([&] { parse<DataOptions>(json); });
  EXPECT_EQ(said.find("transforms names mask, which are labels of data.classes"), 0U) << said;
  json["transforms"].erase("mask");
  EXPECT_EQ(parse<DataOptions>(json).transforms.size(), 1U);
}

TEST(Rim, IsTheEdgeOfALimitedAreaAndRowsOfAGlobe) {
  const Grid area = make_geographic_grid({50, 49, 48, 47, 46}, {0, 1, 2, 3, 4, 5, 6});
  const Rim rim(area, 2);
  std::vector<double> longitudes;
  for (int i = 0; i < 12; ++i) longitudes.push_back(30.0 * i);
  const Grid globe = make_geographic_grid({75, 45, 15, -15, -45, -75}, longitudes);
  const Rim rows(globe, 1);
  for (const auto& [grid, one] : {std::pair{&area, &rim}, std::pair{&globe, &rows}}) {
    const std::int64_t h = grid->shape()[0], w = grid->shape()[1];
    for (const Box& plane : {Box{{0, 0}, {h, w}}, Box{{1, 2}, {h - 1, 3}}, Box{{2, 0}, {1, w}}}) {
      std::vector<int> times(static_cast<std::size_t>(h * w), 0);
      for (const Box& part : one->parts_of(plane)) {
        for (std::int64_t row = part.begin[0]; row < part.end(0); ++row) {
          for (std::int64_t column = part.begin[1]; column < part.end(1); ++column)
            ++times[static_cast<std::size_t>(row * w + column)];
        }
      }
      for (std::int64_t row = 0; row < h; ++row) {
        for (std::int64_t column = 0; column < w; ++column) {
          const std::int64_t width = grid == &area ? 2 : 1;
          const bool edge =
              row < width || row >= h - width || (grid == &area && (column < width || column >= w - width));
          const bool inside = row >= plane.begin[0] && row < plane.end(0) && column >= plane.begin[1] &&
                              column < plane.end(1);
          EXPECT_EQ(one->holds(row, column), edge);
          EXPECT_EQ(times[static_cast<std::size_t>(row * w + column)], edge && inside ? 1 : 0);
        }
      }
    }
  }
  EXPECT_FALSE(Rim().holds(0, 0));
  EXPECT_THROW(Rim(area, 3), ConfigError);
}

TEST(Prescribed, WindowsNeedItAtTime0AndAtTheirLeads) {
  std::vector<Time> times, given;
  for (int i = 0; i < 12; ++i) {
    times.push_back(at("2020-01-01") + i * 6 * kHour);
    if (i != 6) given.push_back(times.back());
  }
  const std::vector<Period> all = {period("2020-01-01", "2020-01-03")};
  const auto known = [&](Time time) { return std::binary_search(given.begin(), given.end(), time); };
  WindowRule rule{{-6 * kHour, 0}, 6 * kHour, 2, known, 2};
  // Without the time 6: those that start there, or have it as their first or second lead; an earlier input
  // may be.
  EXPECT_EQ(find_windows(times, times, rule, all, "data.train"),
            (std::vector{times[1], times[2], times[3], times[7], times[8], times[9]}));
  rule = {{0}, 6 * kHour, 0, known, 1};
  EXPECT_EQ(find_windows(times, times, rule, all, "data.valid").size(), 9U);  // not 5, 6 and the last
}

}  // namespace transform_test
}  // namespace jigsaw
