// --trace and --profile: what Perfetto opens says what summary.json says.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "end_to_end/command.h"

namespace jigsaw::e2e {
namespace {

namespace fs = std::filesystem;

class TraceTest : public ::testing::Test {
 protected:
  TraceTest() {
    Json config = small_config(folder_);
    config["train"]["steps"] = 6;
    config["validation"]["every"] = 6;
    config["checkpoint"]["every"] = 6;
    config["output"] = folder_ / "run";
    config["mesh"] = {{"domain", {2, 1}}, {"tensor", 2}};
    folder_.write("config.json", config.dump());
  }
  std::string arguments() const { return "--config " + (folder_ / "config.json") + " "; }

  TemporaryFolder folder_;
};

struct Span {
  double begin, end;
  std::string category, name;
};

/// The spans of each thread in the order in which they begin, an outer one before an inner one.
std::map<std::pair<int, int>, std::vector<Span>> spans_of(const Json& trace) {
  std::map<std::pair<int, int>, std::vector<Span>> spans;
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    const double begin = event.at("ts");
    spans[{event.at("pid"), event.at("tid")}].push_back(
        {begin, begin + event.at("dur").get<double>(), event.at("cat"), event.at("name")});
  }
  for (auto& [thread, each] : spans) {
    std::stable_sort(each.begin(), each.end(), [](const Span& a, const Span& b) {
      return std::pair(a.begin, -a.end) < std::pair(b.begin, -b.end);
    });
  }
  return spans;
}

TEST_F(TraceTest, SpansNestAndBytesAreThoseOfTheSummary) {
  const std::string file = folder_ / "trace.json";
  const Outcome outcome = run(4, arguments() + "--trace-steps all --trace " + file);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json trace = Json::parse(read(file)), summary = Json::parse(read(folder_ / "run/summary.json"));
  EXPECT_FALSE(fs::exists(file + ".rank_0.part"));
  std::size_t nested = 0;
  for (const auto& [thread, spans] : spans_of(trace)) {
    std::vector<Span> open;
    for (const Span& span : spans) {
      constexpr double kRounding = 1e-3 + 1e-6;  // microseconds
      while (!open.empty() && open.back().end <= span.begin + kRounding) open.pop_back();
      if (!open.empty()) {
        ++nested;
        EXPECT_LE(span.end, open.back().end + kRounding) << span.name << " in " << open.back().name;
      }
      open.push_back(span);
    }
  }
  EXPECT_GT(nested, 1000U);
  std::map<int, std::map<std::string, double>> bytes;
  std::map<int, double> read_bytes;
  std::map<std::string, int> seen;
  for (const Json& event : trace.at("traceEvents")) {
    ++seen[event.value("cat", event.at("ph").get<std::string>())];
    if (event.at("ph") != "X") continue;
    if (event.at("cat") == "start")
      bytes[event.at("pid")][event.at("name")] += event.at("args").at("bytes").get<double>();
    if (event.at("cat") == "read") read_bytes[event.at("pid")] += event.at("args").at("bytes").get<double>();
  }
  for (const char* kind : {"step", "phase", "operation", "start", "wait", "control", "data wait", "read",
                           "transfer", "C", "M"}) {
    EXPECT_GT(seen[kind], 0) << kind;
  }
  for (const Json& rank : summary.at("ranks")) {
    const int number = rank.at("rank");
    double total = 0;
    for (const auto& [kind, sent] : rank.at("sent_bytes").items()) {
      EXPECT_EQ(std::llround(bytes[number][kind]), sent.get<long long>()) << "rank " << number << " " << kind;
      total += sent.get<double>();
    }
    EXPECT_GT(total, 0);
    EXPECT_GT(read_bytes[number], 0);
    EXPECT_LE(read_bytes[number], rank.at("file_bytes_read").get<double>());
  }
}

TEST_F(TraceTest, ChosenStepsOnlyAndAProfileThatAddsUp) {
  const std::string file = folder_ / "trace.json";
  const Outcome outcome =
      run(2, arguments() + "--set 'mesh={\"domain\":[2,1]}' --profile --trace-steps 2-5:2 --trace " + file);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  std::map<std::string, int> steps;
  const Json trace = Json::parse(read(file));
  for (const Json& event : trace.at("traceEvents")) {
    if (event.value("cat", "") == "step") ++steps[event.at("name")];
  }
  EXPECT_EQ(steps, (std::map<std::string, int>{{"step 2", 2}, {"step 4", 2}}));
  for (const char* words : {"profile of 2 steps on rank 0 of 2", "operations of a step", "contract ",
                            "layers", "encoder", "communication", "peaks, as measured"}) {
    EXPECT_NE(outcome.out.find(words), std::string::npos) << words << "\n" << outcome.out;
  }
}

TEST_F(TraceTest, WhatCannotBeTracedIsRefusedAtOnce) {
  const auto refused = [&](const std::string& more, const std::string& says) {
    const Outcome outcome = run(2, arguments() + "--set 'mesh={\"domain\":[2,1]}' " + more);
    EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
    ASSERT_EQ(outcome.errors().size(), 1U) << outcome.err;
    EXPECT_NE(outcome.errors()[0].find(says), std::string::npos) << outcome.err;
    EXPECT_FALSE(fs::exists(folder_ / "run"));
  };
  refused("--profile --trace-steps 5-2", "--trace-steps must be");
  refused("--trace-steps 5", "--trace-steps is for --trace or --profile");
  refused("--profile --trace-steps x", "--trace-steps must be");
  refused("--profile --trace-steps 2-5:0", "--trace-steps must be");
  refused("--trace /nowhere/trace.json", "--trace /nowhere/trace.json cannot be written");
  refused("--trace /dev/full", "it is a device, not a regular file");
  refused("--trace " + folder_.path().string(), "it is a folder, not a regular file");
  const std::string config = read(folder_ / "config.json");
  refused("--trace " + (folder_ / "config.json"), "is there already and is no trace; name another file");
  EXPECT_EQ(read(folder_ / "config.json"), config);
  const std::string pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  refused("--trace " + pipe, "it is a pipe, not a regular file");
}

/// What a run itself writes is no place for its trace, before it is there no more than afterwards.
TEST_F(TraceTest, FilesOfTheRunStayAndSoDoTraces) {
  const std::string one = arguments() + "--set 'mesh={}' --set output=" + (folder_ / "one") + " ",
                    file = folder_ / "trace.json";
  const Outcome into_folder = run(1, one + "--trace " + (folder_ / "one"));
  EXPECT_EQ(into_folder.exit_code, 2);
  ASSERT_EQ(into_folder.errors().size(), 1U) << into_folder.err;
  EXPECT_NE(into_folder.errors()[0].find("it is a folder"), std::string::npos) << into_folder.err;
  EXPECT_TRUE(metrics(folder_ / "one", "train").empty()) << "found before the first step";
  ASSERT_EQ(run(1, one + "--trace " + file).exit_code, 0);
  for (const char* name : {"metrics.jsonl", "summary.json", "checkpoints/latest"}) {
    const std::string before = read(folder_ / "one/" + name);
    const Outcome outcome = run(1, one + "--set train.steps=8 --trace " + (folder_ / "one/" + name));
    EXPECT_EQ(outcome.exit_code, 2) << name;
    EXPECT_EQ(read(folder_ / "one/" + name), before) << name;
  }
  // An earlier trace is replaced, unless there is none to take its place.
  const std::string trace = read(file);
  const Outcome none = run(1, one + "--trace " + file);
  EXPECT_EQ(none.exit_code, 0) << none.err;
  EXPECT_NE(none.err.find("nothing was traced, for no step was left to make"), std::string::npos) << none.err;
  const Outcome beyond = run(1, one + "--set train.steps=8 --trace-steps 900 --trace " + file);
  EXPECT_EQ(beyond.exit_code, 0) << beyond.err;
  EXPECT_NE(beyond.err.find("this start made steps 7 to 8, and --trace-steps asks for 900"),
            std::string::npos)
      << beyond.err;
  EXPECT_EQ(read(file), trace);
  ASSERT_EQ(run(1, one + "--set train.steps=10 --trace " + file).exit_code, 0);
  EXPECT_NE(read(file), trace);
}

/// A file of that name keeps what it has until the trace is whole, and what a link leads to for good.
TEST_F(TraceTest, OnlyTheFileOfItsNameIsReplacedAndNotBeforeTheEnd) {
  const std::string file = folder_ / "trace.json", two = arguments() + "--set 'mesh={\"domain\":[2,1]}' ";
  folder_.write("precious", "kept");
  for (const char* name : {"trace.json", "trace.json.rank_1.part"})
    fs::create_symlink("precious", folder_ / name);
  EXPECT_EQ(run(2, two + "--set model.embed_dim=0 --trace " + file).exit_code, 2);
  EXPECT_EQ(read(file), "kept");
  const Outcome outcome = run(2, two + "--trace " + file);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(Json::parse(read(file)).contains("traceEvents"));
  EXPECT_FALSE(fs::is_symlink(file));
  EXPECT_EQ(read(folder_ / "precious"), "kept");
}

}  // namespace
}  // namespace jigsaw::e2e
