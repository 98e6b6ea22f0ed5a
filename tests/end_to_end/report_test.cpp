// What a run leaves for eyes, on two ranks: maps that are those of the files and of predict, errors by row
// that add up to validation's, a page that a browser lays out, and events that TensorBoard reads.
#include <gtest/gtest.h>

#include <cstdlib>

#include "end_to_end/trained_forecasts.h"

namespace jigsaw::e2e {
namespace {

/// Whether a command ends well.
bool works(const std::string& command) {
  return std::system((command + " >/dev/null 2>&1").c_str()) == 0;
}

/// What a command writes on stdout.
std::string said_by(const std::string& command) {
  std::string text;
  FILE* pipe = ::popen((command + " 2>/dev/null").c_str(), "r");
  if (pipe == nullptr) return text;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) text += static_cast<char>(c);
  ::pclose(pipe);
  return text;
}

class Report : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    shared_ = std::make_unique<TemporaryFolder>();
    ASSERT_EQ(run(1, "sample-data --output " + folder() / "data").exit_code, 0);
    const Json config = {
        {"data",
         {{"files", {(folder() / "data") + "/*.nc"}},
          {"variables", {"t2m", "u10"}},
          {"lead_hours", 6},
          {"train", {"2021-01-02", "2021-01-12"}},
          {"valid", {"2021-02-01", "2021-02-03"}}}},
        {"model", {{"type", "weathermixer"}, {"patch", {5, 9}}, {"embed_dim", 8}, {"depth", 1}}},
        {"mesh", {{"domain", {2, 1}}}},
        {"train", {{"steps", 12}, {"batch_size", 4}}},
        {"validation", {{"every", 6}, {"rollout", 2}}},
        {"report", true},
        {"tensorboard", true}};
    folder().write("config.json", config.dump());
    outcome_ = run(2, "--config " + (folder() / "config.json") + " --set output=" + trained());
    ASSERT_EQ(outcome_.exit_code, 0) << outcome_.err;
    ASSERT_EQ(outcome_.said().size(), 0U) << outcome_.err;
  }
  static void TearDownTestSuite() { shared_.reset(); }

  static const TemporaryFolder& folder() { return *shared_; }
  static std::string trained() { return folder() / "first"; }

  inline static Outcome outcome_;

 private:
  inline static std::unique_ptr<TemporaryFolder> shared_;
};

TEST_F(Report, MapsAreThoseOfTheFilesAndOfPredict) {
  const NetcdfReader maps(trained() + "/examples.nc");
  const Json about = Json::parse(read(trained() + "/examples.json"));
  ASSERT_EQ(about.at("step"), 12);
  const std::int64_t hour = about.at("start").get<std::int64_t>() / 3600;
  ASSERT_EQ(run(1, "predict --config " + (folder() / "config.json") + " --set 'mesh={}' --checkpoint " +
                       trained() + " --output " + (folder() / "forecast.nc") + " --start 2021-02-01T00:00")
                .exit_code,
            0);
  const NetcdfReader forecast(folder() / "forecast.nc");
  EXPECT_EQ(static_cast<std::int64_t>(forecast.values("time").at(0)), hour);
  for (const char* variable : {"t2m", "u10"}) {
    const std::vector<double> truth = Truth(folder() / "data", variable).at.at(hour + 6),
                              shown = maps.values(std::string(variable) + "_truth"),
                              said = maps.values(variable), predicted = forecast.values(variable);
    ASSERT_EQ(shown.size(), truth.size());
    ASSERT_EQ(said.size(), predicted.size());
    for (std::size_t i = 0; i < truth.size(); ++i) {
      ASSERT_NEAR(shown[i], truth[i], 1e-4 * std::abs(truth[i]) + 1e-3) << variable << i;
      ASSERT_NEAR(said[i], predicted[i], 1e-4 * std::abs(predicted[i]) + 1e-3) << variable << i;
    }
  }
}

TEST_F(Report, ErrorsByLatitudeAddUpToThatOfTheValidation) {
  const Json about = Json::parse(read(trained() + "/examples.json")),
             valid = metrics(trained(), "valid").back();
  const auto latitudes = about.at("rows").get<std::vector<double>>();
  const std::vector<double> weights = row_weights(latitudes);
  for (std::size_t c = 0; c < 2; ++c) {
    double sum = 0;
    for (std::size_t row = 0; row < latitudes.size(); ++row)
      sum += weights[row] * std::pow(about.at("rmse_by_row")[c][row].get<double>(), 2) /
             static_cast<double>(latitudes.size());
    const double rmse =
        valid.at("metrics").at(about.at("targets")[c].get<std::string>()).at("rmse").get<double>();
    EXPECT_NEAR(std::sqrt(sum), rmse, 1e-5 * rmse);
  }
}

TEST_F(Report, LinesHaveTimesAndTheTerminalTables) {
  for (const char* kind : {"train", "valid"}) {
    for (const Json& line : metrics(trained(), kind)) {
      const std::string time = line.at("time").get<std::string>();
      EXPECT_TRUE(time.size() == 24 && time[10] == 'T' && time.back() == 'Z') << time;
    }
  }
  for (const char* said : {"learning rate ", "persistence", "t2m [K]", "12 h", "↓", "left"})
    EXPECT_NE(outcome_.out.find(said), std::string::npos) << said << "\n" << outcome_.out;
  EXPECT_EQ(outcome_.out.find('\033'), std::string::npos) << "colours in a file";
  const Outcome quiet = run(1, "check --quiet --config " + (folder() / "config.json") + " --set 'mesh={}'");
  EXPECT_EQ(quiet.exit_code, 0);
  EXPECT_EQ(quiet.out, "");
}

TEST_F(Report, ThePageIsWrittenAtTheEndAndByTheCommand) {
  const std::string at_the_end = read(trained() + "/report.html");
  ASSERT_EQ(
      run(1, "report " + trained() + " " + trained() + " --output " + (folder() / "both.html")).exit_code, 0);
  const std::string both = read(folder() / "both.html");
  for (const char* figure : {"fig-loss", "fig-skill", "fig-map-t2m", "fig-latitude", "fig-spectra",
                             "fig-step", "fig-memory", "fig-mesh-field", "fig-mesh-weights"}) {
    EXPECT_NE(at_the_end.find(figure), std::string::npos) << figure;
    EXPECT_NE(both.find(figure), std::string::npos) << figure;
  }
  EXPECT_EQ(at_the_end.find("has not ended"), std::string::npos);
  const std::string config = read(folder() / "config.json");
  const Outcome onto = run(1, "report " + trained() + " --output " + (folder() / "config.json"));
  EXPECT_EQ(onto.exit_code, 2);
  ASSERT_EQ(onto.errors().size(), 1U) << onto.err;
  EXPECT_NE(onto.errors()[0].find("is there already and is no page of report"), std::string::npos)
      << onto.err;
  EXPECT_EQ(read(folder() / "config.json"), config);
  EXPECT_EQ(run(1, "report " + trained() + " --output " + (folder() / "both.html")).exit_code, 0);
  const Outcome none = run(1, "report " + (folder() / "data"));
  EXPECT_EQ(none.exit_code, 2);
  ASSERT_EQ(none.errors().size(), 1U) << none.err;
}

/// A browser lays out each figure, with pictures in it that have a size.
TEST_F(Report, ABrowserShowsEachFigure) {
  if (!works("chromium --version")) GTEST_SKIP() << "chromium is not installed";
  std::string page = read(trained() + "/report.html");
  const std::size_t end = page.rfind("</body>");
  ASSERT_NE(end, std::string::npos);
  page.insert(
      end,
      "<pre id='seen'></pre><script>for (const f of document.querySelectorAll('figure')) {const b = "
      "f.getBoundingClientRect(), s = [...f.querySelectorAll('svg')];const drawn = f.id === 'fig-table' || "
      "s.every(v => v.getBoundingClientRect().width > 50 && [...v.querySelectorAll('image')].every(i => "
      "i.getBoundingClientRect().width > 0));document.getElementById('seen').textContent += f.id + ':' + "
      "(b.width > 50 && b.height > 10 && drawn) + ' ';}</script>");
  folder().write("seen.html", page);
  const std::string shown = said_by(
      "timeout 120 chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage "
      "--user-data-dir=" +
      (folder() / "profile") + " --dump-dom file://" + (folder() / "seen.html"));
  ASSERT_NE(shown.find("id=\"seen\""), std::string::npos) << "chromium showed nothing";
  const std::string seen = shown.substr(shown.find("id=\"seen\""));
  int figures = 0;
  for (std::size_t at = page.find("<figure id=\""); at < end;
       at = page.find("<figure id=\"", at + 1), ++figures) {
    const std::string id = page.substr(at + 12, page.find('"', at + 12) - at - 12);
    EXPECT_NE(seen.find(id + ":true"), std::string::npos) << id;
  }
  EXPECT_GT(figures, 12);
}

TEST_F(Report, TensorBoardReadsItsEvents) {
  if (!works("python3 -c 'import tensorboard.backend.event_processing.event_accumulator'"))
    GTEST_SKIP() << "python3 has no tensorboard";
  folder().write(
      "read.py",
      "import sys, json\n"
      "from tensorboard.backend.event_processing.event_accumulator import EventAccumulator\n"
      "events = EventAccumulator(sys.argv[1], {'images': 0, 'scalars': 0, 'tensors': 0})\n"
      "events.Reload()\n"
      "tags = events.Tags()\n"
      "print(json.dumps({'loss': [[e.step, e.value] for e in events.Scalars('train/loss')],\n"
      "  'rmse': [[e.step, e.value] for e in events.Scalars('valid/t2m/rmse_12h')],\n"
      "  'images': {t: [[e.step, e.width, e.encoded_image_string[:4].hex()] for e in events.Images(t)]\n"
      "             for t in tags['images']},\n"
      "  'text': events.Tensors('configuration')[0].tensor_proto.string_val[0].decode()}))\n");
  const std::string text = said_by("python3 " + (folder() / "read.py") + " " + trained() + "/tensorboard");
  const Json found = Json::parse(text.empty() ? "null" : text);
  ASSERT_TRUE(found.is_object());
  const std::vector<Json> steps = metrics(trained(), "train"), valid = metrics(trained(), "valid");
  ASSERT_EQ(found.at("loss").size(), steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    EXPECT_EQ(found.at("loss")[i][0], steps[i].at("step"));
    EXPECT_EQ(found.at("loss")[i][1].get<float>(), steps[i].at("loss").get<float>());
  }
  ASSERT_EQ(found.at("rmse").size(), 2U);
  EXPECT_EQ(found.at("rmse")[1][1].get<float>(),
            valid[1].at("leads").at("12").at("t2m").at("rmse").get<float>());
  ASSERT_TRUE(found.at("images").contains("maps/t2m"));
  EXPECT_EQ(found.at("images").at("maps/t2m")[1][0], 12);
  EXPECT_EQ(found.at("images").at("maps/t2m")[1][2], "89504e47");
  EXPECT_NE(found.at("text").get<std::string>().find("\"weathermixer\""), std::string::npos);
}

}  // namespace
}  // namespace jigsaw::e2e
