// Plots as SVG: where lines, marks and names stand, and what of lines lies beyond the axis.
#include "report/plot.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <set>

#include "base/terminal.h"
#include "base/text.h"
#include "report/axis.h"
#include "report/map_picture.h"
#include "report/svg.h"

namespace jigsaw {
namespace plot_test {

TEST(Svg, TicksAreRoundAndTextsEscaped) {
  EXPECT_EQ(ticks(0, 1, 5), (std::vector<double>{0, 0.2, 0.4, 0.6000000000000001, 0.8, 1}));
  EXPECT_EQ(ticks(-3, 7, 4), (std::vector<double>{0, 5}));
  EXPECT_EQ(ticks(0.9, 1.1, 6, true), (std::vector<double>{1}));
  EXPECT_EQ(ticks(1, 3, 6, true), (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(ticks(0, 2500, 6, true), (std::vector<double>{0, 500, 1000, 1500, 2000, 2500}));
  EXPECT_EQ(escaped("a<b>\"&'"), "a&lt;b&gt;&quot;&amp;&#39;");
  EXPECT_EQ(coordinate(3.10), "3.1");
  EXPECT_EQ(coordinate(-0.001), "0");
}

/// Two points of a line stand where the axes say, a twentieth of their range from the ends of that of values.
TEST(Svg, APlotsLineGoesWhereItsNumbersSay) {
  Plot plot{"Loss", "x", "y", {{"loss", {0, 10}, {1, 3}, 0, false}}};
  plot.width = 188;   // 76 on the left, 12 on the right
  plot.height = 168;  // 26 above, 42 below
  const std::string svg = svg_of(plot);
  EXPECT_NE(svg.find("data-label=\"loss\" data-points=\"2\" data-last=\"3\" points=\"76,121.45 176,30.55\""),
            std::string::npos)
      << svg;
}

/// Numbers behind an attribute, in order.
std::vector<double> numbers_at(const std::string& svg, const std::string& element, const std::string& key) {
  std::vector<double> numbers;
  for (std::size_t at = svg.find(element); at != std::string::npos; at = svg.find(element, at + 1)) {
    const std::size_t begin = svg.find(" " + key + "=\"", at) + key.size() + 3;
    numbers.push_back(std::strtod(svg.c_str() + begin, nullptr));
  }
  return numbers;
}

Plot plot_of(std::size_t lines) {
  Plot plot{"t", "x", "y", {}};
  for (std::size_t i = 0; i < lines; ++i)
    plot.series.push_back({"runs/rates/a_long_name_of_a_run_that_goes_on_and_on_to_" + std::to_string(i) +
                               "_and_even_further: training",
                           {0, 1},
                           {0, 1},
                           i,
                           false});
  return plot;
}

/// Names take no room from the plot, whose greater numbers stand above.
TEST(Svg, APlotOfManyLinesGrowsByTheirNames) {
  const auto height = [](const std::string& svg) { return numbers_at(svg, "<svg", "height").at(0); };
  const std::string one = svg_of(plot_of(1)), many = svg_of(plot_of(20));
  EXPECT_EQ(height(many), height(one) + 19 * 14);
  const std::size_t at = many.find(" points=\"76,");
  ASSERT_NE(at, std::string::npos);
  const char* text = many.c_str() + at + 12;
  const double first = std::strtod(text, nullptr),
               last = std::strtod(many.c_str() + many.find(',', many.find(' ', at + 12)) + 1, nullptr);
  EXPECT_NEAR(first - last, (300 - 26 - 42) / 1.1, 0.02) << "0 below 1";
}

/// In the middle, behind the folders that all have: what differs is there.
TEST(Svg, NamesOfLinesAreToldApart) {
  const std::string svg = svg_of(plot_of(20));
  std::set<std::string> names;
  for (std::size_t at = svg.find("font-size=\"10\">"); at != std::string::npos;
       at = svg.find("font-size=\"10\">", at + 1))
    names.insert(svg.substr(at, svg.find("</text>", at) - at));
  EXPECT_EQ(names.size(), 20U) << svg;
  std::set<std::string> strokes;
  for (std::size_t at = svg.find("<polyline"); at != std::string::npos; at = svg.find("<polyline", at + 1)) {
    const std::size_t begin = svg.find(" stroke=\"", at);
    strokes.insert(svg.substr(begin, svg.find("><title>", at) - begin));
  }
  EXPECT_EQ(strokes.size(), 20U) << "ten colours, whole and dashed";
  Plot plot = plot_of(2);
  plot.series[1].dashed = true;
  const std::string dashed = svg_of(plot), dashes = "stroke-dasharray=\"5 3\"";
  EXPECT_NE(dashed.find(dashes), dashed.rfind(dashes)) << "in the plot and beside the name";
}

TEST(Svg, TextsAreCutBetweenCodePoints) {
  EXPECT_EQ(shortened("abc", 3), "abc");
  EXPECT_EQ(shortened("Größe der Übertragung", 30), "Größe der Übertragung");
  EXPECT_EQ(shortened("ääääääää", 5), "ää…ää");
  EXPECT_EQ(shortened("0123456789", 4), "0…89");
  using Names = std::vector<std::string>;
  EXPECT_EQ(short_names({"runs/a/x", "runs/a/y", "runs/a"}, 9), (Names{"a/x", "a/y", "a"}));
  EXPECT_EQ(short_names({"x", "y"}, 9), (Names{"x", "y"}));
  EXPECT_EQ(short_names({"runs/x"}, 9), (Names{"runs/x"}));
  EXPECT_EQ(short_names({"s/rate=0.1,seed=1", "s/rate=0.2,seed=1"}, 15),
            (Names{"rate=0.1,seed=1", "rate=0.2,seed=1"}));
  EXPECT_EQ(short_names({"rate=0.1,seed=1", "rate=0.2,seed=1"}, 10), (Names{"0.1,seed=1", "0.2,seed=1"}));
  EXPECT_EQ(short_names({"rate=0.1,seed=1", "rate=0.2,seed=1"}, 5), (Names{"1 0…1", "2 0…1"}));
  EXPECT_EQ(short_names({"same", "same"}, 9), (Names{"same", "same"}));
  EXPECT_EQ(short_names({"≥ 280", "≥ 285"}, 9), (Names{"≥ 280", "≥ 285"})) << "≥ is none of a path";
  EXPECT_EQ(short_names({"a: training", "a: validation"}, 20), (Names{"training", "validation"}));
  const Bars bars{"b", "ms", {{"ein_sehr_länglicher_Name_eines_Laufs rank 7", {{"p", 1}}}}};
  EXPECT_NE(svg_of(bars).find(">ein_sehr_län…_Laufs rank 7<"), std::string::npos) << svg_of(bars);
}

/// Of a profile by levels greater ones stand below, without a sign.
TEST(Svg, AnAxisMayGrowDownwards) {
  Plot plot{"l", "level", "y", {{"l", {100, 1000}, {1, 2}, 0, false}}};
  plot.turned = plot.downwards = true;
  plot.width = 188;
  plot.height = 168;
  EXPECT_NE(svg_of(plot).find(" points=\"80.55,26 171.45,126\""), std::string::npos) << svg_of(plot);
  EXPECT_EQ(svg_of(plot).find(">-"), std::string::npos);
}

/// As many digits as tell marks apart.
TEST(Svg, MarksHaveTheDigitsOfTheirDistance) {
  using Texts = std::vector<std::string>;
  EXPECT_EQ(mark_labels({32.315, 32.32, 32.325}), (Texts{"32.315", "32.32", "32.325"}));
  EXPECT_EQ(mark_labels({1000.25, 1000.5, 1000.75}), (Texts{"1000.25", "1000.5", "1000.75"}));
  EXPECT_EQ(mark_labels({0, 0.2, 0.4, 0.6000000000000001}), (Texts{"0", "0.2", "0.4", "0.6"}));
  EXPECT_EQ(mark_labels({1e-5, 1e-4, 1000}), (Texts{"1e-05", "0.0001", "1000"}));
  EXPECT_EQ(mark_labels({12345000, 12350000}), (Texts{"1.2345e+07", "1.235e+07"}));
  // Neighbours in float64: no step is between them.
  Plot plot{"t", "x", "y", {{"l", {0, 1}, {1, std::nextafter(1.0, 2.0)}, 0, false}}};
  EXPECT_NE(svg_of(plot).find("<polyline"), std::string::npos);
}

/// Texts of an SVG with an anchor and, where it is not 0, a size.
std::vector<std::string> texts_of(const std::string& svg, const std::string& anchor, int size = 0) {
  std::vector<std::string> texts;
  for (std::size_t at = svg.find("<text"); at != std::string::npos; at = svg.find("<text", at + 1)) {
    const std::size_t begin = svg.find('>', at) + 1;
    const std::string tag = svg.substr(at, begin - at);
    if (tag.find("\"" + anchor + "\"") == std::string::npos) continue;
    if (size != 0 && tag.find("font-size=\"" + std::to_string(size) + "\"") == std::string::npos) continue;
    texts.push_back(svg.substr(begin, svg.find("</text>", begin) - begin));
  }
  return texts;
}

TEST(Svg, TheLastMarkHasRoomBesideThePlot) {
  for (const double last : {2500.0, 250000.0, 0.0025}) {
    const Plot plot{"t", "step", "y", {{"t", {0, last}, {1, 3}, 0, false}}};
    const std::string svg = svg_of(plot), label = ">" + short_number(last) + "<";
    const std::size_t text = svg.rfind("<text", svg.find(label));
    ASSERT_NE(text, std::string::npos) << label;
    const double x = std::strtod(svg.c_str() + svg.find("x=\"", text) + 3, nullptr);
    EXPECT_LE(x + 3.5 * static_cast<double>(label.size() - 2), 480) << label;
  }
}

/// Steps and numbers of images; other numbers have fractions where they need them.
TEST(Svg, WholeNumbersHaveWholeMarks) {
  const auto marks = [](const std::vector<double>& x) {
    const Plot plot{"t", "step", "y", {{"t", x, std::vector<double>(x.size(), 7), 0, false}}};
    std::vector<std::string> texts = texts_of(svg_of(plot), "middle");
    texts.resize(texts.size() - 2);  // names of the axes
    return texts;
  };
  using Texts = std::vector<std::string>;
  EXPECT_EQ(marks({1}), (Texts{"1"}));
  EXPECT_EQ(marks({1, 2}), (Texts{"1", "2"}));
  EXPECT_EQ(marks({1, 2, 3}), (Texts{"1", "2", "3"}));
  EXPECT_EQ(marks({1, 1.5, 2}), (Texts{"1", "1.2", "1.4", "1.6", "1.8", "2"}));
}

TEST(Svg, ALineAloneIsNamedUnlessTitleOrAxisSaysIt) {
  const auto names = [](const char* title, const char* axis, const char* label) {
    return texts_of(svg_of(Plot{title, "x", axis, {{label, {0, 1}, {0, 1}, 0, false}}}), "start", 10);
  };
  using Texts = std::vector<std::string>;
  EXPECT_EQ(names("tp (mm)", "CSI", "≥ 290"), (Texts{"≥ 290"}));
  EXPECT_EQ(names("mask: HD95", "HD95 (mm)", "label 2"), (Texts{"label 2"}));
  EXPECT_EQ(names("t2m: Skill at the first lead", "y", "first"), (Texts{"first"})) << "a run of that name";
  EXPECT_EQ(names("Learning rate", "y", "learning rate"), Texts());
  EXPECT_EQ(names("mask: Dice", "y", "Dice"), Texts());
  EXPECT_EQ(names("t2m, 6 h", "y", "6 h"), Texts());
  EXPECT_EQ(names("t2m", "RMSE (K)", "RMSE"), Texts());
}

TEST(Axis, ShowsTheBestOfRunsThatLearnedLittle) {
  Plot skill{"Skill", "step", "1 - RMSE / reference", {}};
  const std::vector<double> last = {2e-5, 3e-5, 0.9};
  for (std::size_t i = 0; i < last.size(); ++i)
    skill.series.push_back({concat("run ", i), {1, 2}, {1e-5, last[i]}, i, false});
  skill.far = 10;
  EXPECT_NE(beyond_axis(skill), "");
  skill.always = 1;
  EXPECT_EQ(beyond_axis(skill), "");
}

TEST(Axis, LimitsLeaveOutOnlyWhatLiesVeryFarFromMost) {
  using Lines = std::vector<std::vector<double>>;
  const double none = std::nan("");
  // Skills of runs that begin badly, and of two that diverge.
  const Limits skills = limits_of_most(
      Lines{{-2, 0.1, 0.5}, {-1, 0.3, 0.6}, {-3, 0, 0.2}, {0.1, -6e15}, {0, -50, -60}}, false, 10);
  for (const double kept : {-3.0, -2.0, 0.6}) EXPECT_TRUE(skills.hold(kept)) << kept;
  for (const double far : {-6e15, -60.0, -50.0}) EXPECT_FALSE(skills.hold(far)) << far;
  // Of two the one that does not grow, however alike the other's values are.
  const Limits two = limits_of_most(Lines{{-6e15, -6e15, -6e15}, {0.5, 0.001, 0.001}}, false, 10);
  EXPECT_TRUE(two.hold(0.5));
  EXPECT_TRUE(two.hold(0.001));
  EXPECT_FALSE(two.hold(-6e15));
  // Lines that are alike are all seen, and so is what all of them do.
  EXPECT_TRUE(limits_of_most(Lines{{0.5, 0.501}, {0.5, 0.501}, {0.5, 0.501}, {0.6}}, false, 10).hold(0.6));
  EXPECT_TRUE(
      limits_of_most(Lines{{0.01, 0.01, 0.5}, {0.01, 0.01, 0.4}, {0.01, 0.01, 0.6}}, false, 10).hold(0.6));
  EXPECT_FALSE(limits_of_most(Lines{{30, 31}, {29, 32}, {28, -200}}, false, 10).hold(-200)) << "dB";
  EXPECT_TRUE(limits_of_most(Lines{}, false, 10).hold(1e300));
  EXPECT_TRUE(limits_of_most(Lines{{0, 0, 0, 1}, {0, 0}}, false, 10).hold(1));
  // A line alone: five decades from the first step to the plateau, and a step that was skipped.
  std::vector<double> losses = {1e31, none};
  for (int step = 0; step < 1000; ++step) losses.push_back(step < 10 ? 100 : 1e-3 * (1 + 1e-4 * step));
  const Limits alone = limits_of_most(Lines{losses}, true, 1000);
  EXPECT_TRUE(alone.hold(100));
  EXPECT_FALSE(alone.hold(1e31));
  EXPECT_TRUE(limits_of_most(Lines{losses, losses, losses}, true, 10).hold(100));
  const Limits several = limits_of_most(Lines{{1, 0.5}, {2, 0.1}, {3, 1e-9}, {1, 1e31, 1e30}}, true, 10);
  for (const double kept : {3.0, 1e-9}) EXPECT_TRUE(several.hold(kept)) << kept;
  EXPECT_FALSE(several.hold(1e30));
}

/// Places of the points of all lines, x and y by turns.
std::vector<double> places_of(const std::string& svg) {
  std::vector<double> places;
  for (std::size_t at = svg.find(" points=\""); at != std::string::npos;
       at = svg.find(" points=\"", at + 1)) {
    const char* text = svg.c_str() + at + 9;
    for (char* end = nullptr; *text != '"'; text = *end == '"' ? end : end + 1)
      places.push_back(std::strtod(text, &end));
  }
  return places;
}

/// The others are seen, and the line is cut at the frame.
TEST(Svg, ALineThatDivergesLeavesTheFrame) {
  Plot plot{"t",
            "x",
            "y",
            {{"good", {0, 1, 2, 3}, {0.1, 0.3, 0.4, 0.5}, 0, false},
             {"better", {0, 1, 2, 3}, {0.2, 0.3, 0.5, 0.6}, 1, false},
             {"bad", {0, 1, 2, 3}, {0.15, -6e15, -6e14, 0.4}, 2, false}}};
  plot.width = 188;
  EXPECT_EQ(beyond_axis(plot), "");
  plot.far = 10;
  EXPECT_EQ(beyond_axis(plot), " Beyond the axis, cut at its end: bad.");
  const std::string svg = svg_of(plot);
  const std::vector<double> places = places_of(svg);
  const double bottom = numbers_at(svg, "<svg", "height").at(0) - 42;
  ASSERT_EQ(places.size(), 2U * (4 + 4 + 2 + 2)) << svg;
  double least = bottom, most = 0;
  for (std::size_t i = 1; i < places.size(); i += 2) {
    least = std::min(least, places[i]);
    most = std::max(most, places[i]);
  }
  EXPECT_NEAR(most, bottom, 0.01) << "where the line leaves the frame";
  EXPECT_NEAR(places[1] - places[7], 0.4 / 0.5 / 1.1 * 232, 0.05) << "the axis is that of the others";
  EXPECT_NEAR(places[1] - places[7], 0.8 * (places[1] - least), 0.05);
  plot.log_y = true;
  plot.series[2].y = {0.15, 0, -1, 0.4};
  EXPECT_EQ(beyond_axis(plot), "") << "what a logarithmic axis shows nowhere";
  plot.log_y = false;
  // From one side to the other.
  plot.series[2].y = {9e9, -9e9, 9e9, 9e9};
  EXPECT_EQ(places_of(svg_of(plot)).size(), 2U * (4 + 4 + 2 + 2));
  plot.series[2].y = {9e9, 8e9, 9e9, 9e9};
  EXPECT_EQ(places_of(svg_of(plot)).size(), 2U * (4 + 4)) << "none of it is in the frame";
}

/// From 0 where no line comes near it; one on 0 is not on the frame.
TEST(Svg, AnAxisFromZeroHasAMarginWhereALineIsOnIt) {
  Plot plot{"l", "x", "y", {{"l", {0, 1}, {1, 2}, 0, false}}};
  plot.from_zero = true;
  plot.height = 168;
  EXPECT_NEAR(places_of(svg_of(plot)).at(1), 126 - 100 / 2.1, 0.01);
  plot.series[0].y = {0, 2};
  EXPECT_NEAR(places_of(svg_of(plot)).at(1), 126 - 100 * 0.05 / 1.1, 0.01);
}

/// Dark modes of browsers leave pictures on white as they are.
TEST(Svg, PicturesAreOnWhite) {
  EXPECT_NE(Svg(10, 10, "t").finish().find("style=\"background:#fff\""), std::string::npos);
}

/// The name is shortened, and not what is said of it.
TEST(Svg, LongTitlesKeepWhatTheyShow) {
  const PlaneGrid grid{false, false, {0, 1}, {0, 1}};
  const std::string name = "surface_net_downward_shortwave_flux_of_the_whole_day";
  const std::vector<float> values = {1, 2, 3, 4};
  std::set<std::string> titles;
  for (const char* what : {", forecast", ", truth", ", difference"}) {
    const std::string svg = svg_of_map(grid, values, {ColourMap::kGrey, 0, 1}, name, what, "K", 300),
                      title = texts_of(svg, "start", 12).at(0);
    EXPECT_TRUE(title.ends_with(what)) << title;
    EXPECT_NE(title.find("…"), std::string::npos) << title;
    EXPECT_LE(columns_of(title) * 0.6 * 12, 300) << title;
    EXPECT_NE(svg.find("<title>" + name + what + "</title>"), std::string::npos);
    titles.insert(title);
  }
  EXPECT_EQ(titles.size(), 3U);
  Plot plot{"", "x", "y", {{name, {0, 1}, {0, 1}, 0, false}}};
  plot.width = 320;
  plot.title = title_of(name, ": Skill at the first lead", plot);
  const std::string title = texts_of(svg_of(plot), "start", 13).at(0);
  EXPECT_TRUE(title.ends_with(": Skill at the first lead")) << title;
  EXPECT_LE(columns_of(title) * 0.6 * 13, 320);
}

TEST(Svg, APointBetweenGapsIsADot) {
  const double none = std::nan("");
  const Plot plot{"t", "x", "y", {{"l", {0, 1, 2, 3, 4}, {1, 2, none, 3, none}, 0, false}}};
  const std::string svg = svg_of(plot);
  EXPECT_EQ(numbers_at(svg, "<circle", "cx").size(), 1U);
  // The same of a line of which means are drawn.
  Plot many{"t", "x", "y", {{"l", {}, {}, 0, false}}};
  for (int i = 0; i < 6000; ++i) {
    many.series[0].x.push_back(i);
    many.series[0].y.push_back(i / 100 == 30 || i >= 5000 ? 1 : none);
  }
  EXPECT_EQ(numbers_at(svg_of(many), "<polyline", "points").size(), 2U) << "a gap is no line";
}

}  // namespace plot_test
}  // namespace jigsaw
