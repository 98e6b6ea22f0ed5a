// What the page says of how runs began and ended, and of several runs.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/text.h"
#include "checkpoint/writer.h"
#include "comm/self/self.h"
#include "report/page.h"
#include "report/run_table.h"
#include "report/written_run.h"
#include "support/error_of.h"
#include "support/temporary_folder.h"

namespace jigsaw {
namespace {

using testing::count_of;
using testing::faults_of;
using testing::put_text;
using testing::text_of;
using testing::WrittenRun;

/// It says so, and of one that has gone on since no more.
TEST(ReportPage, OfARunThatEndedWithAnError) {
  const WrittenRun run(false);
  std::ofstream log(run.path + "/log.txt");
  log << "2026-01-01T00:00:00Z step 1\n2026-01-01T00:00:01Z error: [rank 1] a loss <that> is not finite\n"
      << std::flush;
  const std::string page = report_page({{run.path}, "", "", ""});
  EXPECT_NE(page.find("first ended with an error: [rank 1] a loss &lt;that&gt; is not finite<"),
            std::string::npos);
  EXPECT_NE(page.find(">failed<"), std::string::npos);
  EXPECT_EQ(page.find("has not ended"), std::string::npos);
  log << "2026-01-01T00:01:00Z resumed from step 1 of an error: none\n" << std::flush;
  const std::string after = report_page({{run.path}, "", "", ""});
  EXPECT_EQ(after.find("with an error"), std::string::npos);
  EXPECT_NE(after.find("first has not ended"), std::string::npos);
  const WrittenRun ended;
  std::ofstream(ended.path + "/log.txt") << "2026-01-01T00:00:01Z error: data.variables differs\n";
  EXPECT_EQ(report_page({{ended.path}, "", "", ""}).find("with an error"), std::string::npos)
      << "a later start was refused";
}

/// As the log says in its end, or before the lines of the report that such a run writes.
TEST(ReportPage, OfARunThatWasStopped) {
  const WrittenRun run(false);
  std::ofstream log(run.path + "/log.txt");
  log << "2026-01-01T00:00:01Z stopped early at step 3 with a checkpoint; start again\n" << std::flush;
  for (const char* behind :
       {"", "2026-01-01T00:00:02Z report: first/report.html\n",
        "2026-01-01T00:00:02Z warning: report.html cannot be written: so; the run goes on\n",
        "2026-01-01T00:00:03Z data: 4 samples\n2026-01-01T00:00:03Z error: a start that is refused\n"}) {
    log << behind << std::flush;
    const std::string page = report_page({{run.path}, "", "", ""});
    EXPECT_NE(page.find("first was stopped early at step 3 with a checkpoint; start again.<"),
              std::string::npos);
    EXPECT_NE(page.find("<td>stopped</td>"), std::string::npos);
    EXPECT_EQ(page.find("has not ended"), std::string::npos);
  }
  log << "2026-01-01T00:01:00Z resumed from step 3\n" << std::flush;
  const std::string after = report_page({{run.path}, "", "", ""});
  EXPECT_EQ(after.find("was stopped"), std::string::npos);
  EXPECT_NE(after.find("first has not ended"), std::string::npos);
  log << "2026-01-01T00:02:00Z error: a loss is not finite\n" << std::flush;
  EXPECT_NE(report_page({{run.path}, "", "", ""}).find("ended with an error: a loss"), std::string::npos);
}

TEST(ReportPage, OfARunThatEndedItself) {
  const WrittenRun run;
  put_text(run.path + "/summary.json", R"({"steps": 3, "ended_by": "validation.patience"})");
  Json config = Json::parse(std::ifstream(run.path + "/config.json"));
  config["checkpoint"]["best"] = "t2m.rmse";
  put_text(run.path + "/config.json", config.dump());
  EXPECT_NE(
      report_page({{run.path}, "", "", ""})
          .find("first ended at step 3 by validation.patience: its validations no longer improved t2m.rmse."),
      std::string::npos);
}

/// With log_every 3 each line stands for three steps.
TEST(ReportPage, StepsThatAreNotLoggedTakeTimeToo) {
  const WrittenRun run;
  std::string lines;
  for (const int step : {3, 6, 7})
    lines += Json{{"kind", "train"}, {"step", step}, {"loss", 1}, {"step_seconds", 0.25}}.dump() + "\n";
  put_text(run.path + "/metrics.jsonl", lines);
  Json summary = WrittenRun::summary();
  summary["steps"] = 7;
  put_text(run.path + "/summary.json", summary.dump());
  const std::string page = report_page({{run.path}, "", "", ""});
  EXPECT_NE(page.find("first: steps 1.75 s"), std::string::npos);
  EXPECT_NE(page.find("first: opening, saves, rest 2.25 s"), std::string::npos);
  EXPECT_NE(page.find("(log_every) count as those that it holds behind them."), std::string::npos);
}

TEST(ReportPage, OfARunThatGoesOnShowsWhatIsThere) {
  const WrittenRun run(false);
  const std::string page = report_page({{run.path}, "", "", ""});
  EXPECT_NE(page.find("first has not ended"), std::string::npos);
  EXPECT_NE(page.find("fig-loss"), std::string::npos);
  EXPECT_EQ(page.find("fig-memory"), std::string::npos);
  EXPECT_EQ(page.find("no JSON"), std::string::npos);
  std::ofstream(run.path + "/metrics.jsonl", std::ios::app)
      << "{\"step\": 3, \n17\n{\"a line that is being wri";
  EXPECT_NE(report_page({{run.path}, "", "", ""}).find("no JSON and are left out: 2."), std::string::npos);
  for (const char* file : {"/metrics.jsonl", "/examples.json", "/placement.json"}) {
    std::filesystem::remove(run.path + file);
    EXPECT_EQ(faults_of(report_page({{run.path}, "", "", ""})), std::vector<std::string>()) << file;
  }
}

/// Of three steps the last start made one: its seconds and bytes are not those of the whole run.
TEST(ReportPage, TotalsOfALastStartAreNotThoseOfTheRun) {
  const WrittenRun run, whole;
  const std::string undisturbed = report_page({{run.path}, "", "", ""});
  EXPECT_NE(undisturbed.find("<td>0:04</td>"), std::string::npos);
  EXPECT_NE(undisturbed.find("sent in the whole run, by collective."), std::string::npos);
  EXPECT_EQ(undisturbed.find("ince step"), std::string::npos);
  EXPECT_NE(undisturbed.find("first: steps 1.5 s"), std::string::npos);
  EXPECT_NE(undisturbed.find("first: validations 0.6 s"), std::string::npos);
  Json summary = WrittenRun::summary();
  summary["first_step"] = 3;
  put_text(run.path + "/summary.json", summary.dump());
  const std::string page = report_page({{run.path}, "", "", ""});
  EXPECT_NE(page.find("<td>0:04 since step 3</td>"), std::string::npos);
  EXPECT_NE(page.find("What each rank sent, by collective. Since step 3, where its last start began."),
            std::string::npos);
  for (const char* part : {"steps 0.5 s", "validations 0.3 s", "opening, saves, rest 3.2 s"})
    EXPECT_NE(page.find(concat("first: ", part)), std::string::npos) << part;
  // Both have one name, and go by their paths.
  const std::string both = report_page({{whole.path, run.path}, "", "", ""});
  EXPECT_NE(both.find(concat(" ", run.path, ": since step 3, where its last start began.")),
            std::string::npos);
}

/// Whatever file says it: a run without "report": true has no placement.json, one that goes on no
/// summary.json.
TEST(ReportPage, TheOverviewKnowsRanksAndStepsOfEveryRun) {
  const WrittenRun run;
  const auto overview = [&] {
    const std::string page = report_page({{run.path}, "", "", ""});
    return page.substr(0, page.find("</table>"));
  };
  const auto has_ranks = [&](const std::string& ranks) {
    const std::string row = "<td>weathermixer</td><td>" + ranks + "</td><td>3</td>";
    EXPECT_NE(overview().find(row), std::string::npos) << overview();
  };
  has_ranks("2");
  std::filesystem::remove(run.path + "/placement.json");
  has_ranks("2");
  std::filesystem::remove(run.path + "/summary.json");
  has_ranks("-");
  Json config = Json::parse(text_of(run.path + "/config.json"));
  config["mesh"] = {{"data", 2}, {"domain", {3, 1}}, {"tensor", 2}};
  put_text(run.path + "/config.json", config.dump());
  has_ranks("12");
  std::string lines = text_of(run.path + "/metrics.jsonl");
  lines.resize(lines.rfind('\n') + 1);
  Json line = Json::parse(lines.substr(0, lines.find('\n')));
  line["step"] = 1234567;
  line["loss"] = 0.5;
  put_text(run.path + "/metrics.jsonl", lines + line.dump() + "\n");
  EXPECT_NE(overview().find("<td>12</td><td>1234567</td><td>0.5</td>"), std::string::npos) << overview();
  put_text(run.path + "/metrics.jsonl",
           lines + R"({"kind":"valid","step":1234567,"loss":1.5126394733751335e-05,"metrics":{}})" + "\n");
  EXPECT_NE(overview().find("<td>1.513e-05</td>"), std::string::npos) << overview();
}

TEST(ReportPage, PutsRunsOverEachOther) {
  const WrittenRun first, second;
  const std::string page = report_page({{first.path, second.path}, "", "", ""});
  EXPECT_EQ(faults_of(page), std::vector<std::string>());
  EXPECT_EQ(page.find("data-label=\"first: training\""), std::string::npos);
  for (const std::string& path : {first.path, second.path}) {  // of one name
    EXPECT_NE(page.find(concat("data-label=\"", path, ": training\"")), std::string::npos);
    EXPECT_NE(page.find(concat("<summary>Numbers of ", path, "</summary>")), std::string::npos);
  }
  EXPECT_NE(report_page({{first.path + "/", second.path + "//"}, "", "", ""})
                .find(concat("<h1>Runs ", first.path, ", ", second.path, "</h1>")),
            std::string::npos);
  EXPECT_EQ(count_of(page, "<figure id=\"fig-mesh-field-"), 2);
  EXPECT_NE(page.find("<figure id=\"fig-skill-t2m\">"), std::string::npos) << "a plot for each variable";
}

/// As an operator reads them: one that runs, one that ended well, one that failed, one that was stopped, one
/// that was killed, and a folder that is no run's.
TEST(RunTable, SaysHowEachRunStands) {
  const WrittenRun over, running(false), failed(false), stopped(false), killed(false);
  const auto log = [](const WrittenRun& run, const std::string& end) {
    put_text(run.path + "/log.txt", "2026-01-01T00:00:00Z step  2/600  loss 0.5 (mse)  1:02:03 left\n" +
                                        (end.empty() ? "" : "2026-01-01T00:00:01Z " + end + "\n"));
  };
  for (const WrittenRun* run : {&running, &killed}) {
    log(*run, "");
    put_text(run->path + "/lock", "process 4711 on node12, job 815\n");
  }
  log(failed, "error: the disk is full");
  log(stopped, "stopped early at step 3 (SIGUSR1)");
  const int lock = ::open((running.path + "/lock").c_str(), O_RDONLY);
  ASSERT_EQ(::flock(lock, LOCK_EX), 0);
  std::vector<RunStanding> rows;
  for (const WrittenRun* run : {&over, &running, &failed, &stopped, &killed})
    rows.push_back(standing_of(run->path));
  ::close(lock);
  rows.push_back(standing_of(over.folder.path()));
  const std::vector<std::string> states = {"finished", "running",     "failed",
                                           "stopped",  "interrupted", "unreadable"},
                                 about = {"", "process 4711 on node12, job 815", "the disk is full",
                                          "stopped early at step 3 (SIGUSR1)",
                                          "was process 4711 on node12, job 815"};
  for (std::size_t i = 0; i < states.size(); ++i) {
    EXPECT_EQ(rows[i].state, states[i]);
    EXPECT_EQ(rows[i].left, states[i] == "running" ? "1:02:03" : "");
    if (i >= about.size()) continue;
    EXPECT_EQ(rows[i].about, about[i]);
    EXPECT_EQ(rows[i].step, 3);
    EXPECT_EQ(rows[i].steps, i == 0 ? 0 : 600);
    EXPECT_EQ(rows[i].loss, 1.0 / 3);
    ASSERT_TRUE(rows[i].age);
    EXPECT_GE(*rows[i].age, 0);
  }
  EXPECT_NE(rows.back().about.find("is no run directory"), std::string::npos);
  const std::string text = standings_text(rows);
  EXPECT_NE(text.find(failed.path + "  failed       3/600"), std::string::npos) << text;
  EXPECT_TRUE(
      text.ends_with("6 runs: 1 failed, 1 finished, 1 interrupted, 1 running, 1 stopped, 1 unreadable\n"))
      << text;
  const Json json = standings_json(rows);
  EXPECT_EQ(json[1].at("steps"), 600);
  EXPECT_EQ(json[0].at("steps"), nullptr);
}

/// What is handed on of a run: configuration and checkpoints, and nothing that was written in steps.
TEST(RunTable, KnowsTheStepOfAModelByItsCheckpoints) {
  const testing::TemporaryFolder folder;
  std::filesystem::create_directories(folder.path() + "/checkpoints");
  put_text(folder.path() + "/config.json", "{}");
  EXPECT_EQ(standing_of(folder.path()).state, "interrupted") << "there is no checkpoint";
  Context context = Context::make_host(Backend::kReference, 1);
  const auto self = make_self_communicator(context);
  const Array weights = Array::zeros(context, {3}, DType::kFloat32);
  save_checkpoint(folder.path() + "/checkpoints", {300, {}, {}, {}},
                  {{"parameters/w", {3}, Box::whole({3}), weights}}, *self, {});
  const RunStanding model = standing_of(folder.path());
  EXPECT_EQ(model.state, "model");
  EXPECT_EQ(model.step, 300);
  EXPECT_FALSE(model.loss);
  EXPECT_TRUE(model.age);
  put_text(folder.path() + "/log.txt", "2026-01-01T00:00:00Z error: the disk is full\n");
  EXPECT_EQ(standing_of(folder.path()).state, "failed");
  EXPECT_EQ(standing_of(folder.path()).step, 300);
}

}  // namespace
}  // namespace jigsaw
