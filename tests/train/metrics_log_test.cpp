#include "train/metrics_log.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>

#include "base/text.h"
#include "support/small_disk.h"
#include "support/temporary_folder.h"

namespace jigsaw {
namespace metrics_log_test {

using testing::put_text;
using testing::SmallDisk;
using testing::TemporaryFolder;
using testing::text_of;

class MetricsLogTest : public ::testing::Test {
 protected:
  std::string resumed(const std::string& text, std::int64_t step) {
    put_text(path_, text);
    MetricsLog metrics(path_, log_);
    metrics.resume_at(step);
    return text_of(path_);
  }

  TemporaryFolder folder_;
  std::string path_ = folder_.path() + "/metrics.jsonl";
  Log log_{true};
};

TEST_F(MetricsLogTest, LinesAreCompactWholeAndThereAtOnce) {
  MetricsLog metrics(path_, log_);
  metrics.write({{"kind", "train"}, {"step", 1}, {"loss", 0.1 + 0.2}, {"grad_norm", std::nan("")}});
  EXPECT_EQ(text_of(path_), R"({"kind":"train","step":1,"loss":0.30000000000000004,"grad_norm":null})"
                            "\n");
  metrics.write({{"kind", "train"}, {"step", 2}, {"loss", INFINITY}});
  EXPECT_TRUE(text_of(path_).ends_with("\n{\"kind\":\"train\",\"step\":2,\"loss\":null}\n"));
  const double loss = 1.0 / 3;
  EXPECT_EQ(Json::parse(Json(loss).dump()).get<double>(), loss);
}

TEST_F(MetricsLogTest, ResumingDropsWhatIsPastTheCheckpointAndWhatIsTorn) {
  const std::string one = "{\"kind\":\"train\",\"step\":1,\"loss\":0.5}\n", two = "{\"step\":2}\n",
                    valid = "{\"kind\":\"valid\",\"step\":2}\n", three = "{\"step\":3}\n";
  EXPECT_EQ(resumed(one + two + valid + three, 2), one + two + valid);
  EXPECT_EQ(resumed(one + two + "{\"step\":2,\"lo", 2), one + two);
  EXPECT_EQ(resumed(one + "{\"step\":2}", 2), one);  // whole, but its line break is lacking
  EXPECT_EQ(resumed(one + "{\"st\n\n[2]\n" + two, 2), one + two);
  EXPECT_EQ(resumed(one + two, 0), "");
  EXPECT_EQ(resumed("", 5), "");
  EXPECT_FALSE(std::filesystem::exists(private_name(path_)));
}

TEST_F(MetricsLogTest, LinesOfAnotherHistoryAreKeptInAFileOfTheirOwn) {
  const std::string lines = "{\"step\":9}\n{\"step\":10}\n";
  put_text(path_, lines + "{\"step\":50}");  // torn
  MetricsLog metrics(path_, log_);
  EXPECT_EQ(metrics.set_aside(11, false), "");
  const std::string first = folder_.path() + "/metrics.old-1.jsonl",
                    second = folder_.path() + "/metrics.old-2.jsonl";
  EXPECT_EQ(metrics.set_aside(10, false), first);
  EXPECT_EQ(metrics.set_aside(0, false), "") << "there is none";
  put_text(path_, lines);
  EXPECT_EQ(metrics.set_aside(1, true), second);
  EXPECT_EQ(text_of(first), lines + "{\"step\":50}");
  EXPECT_EQ(text_of(second), lines);
  EXPECT_EQ(text_of(path_), lines);
}

TEST_F(MetricsLogTest, TheLastLinesThatWereKeptAreKnown) {
  put_text(path_,
           "{\"kind\":\"train\",\"step\":1,\"loss\":0.5}\n{\"kind\":\"train\",\"step\":2,\"loss\":0.25}\n{"
           "\"step\":3}\n");
  MetricsLog metrics(path_, log_);
  metrics.resume_at(1);
  EXPECT_EQ(metrics.last("train").at("loss"), 0.5);
  EXPECT_TRUE(metrics.last("valid").is_null());
}

TEST_F(MetricsLogTest, AResumedLogGoesOnBehindWhatItKept) {
  put_text(path_, "{\"step\":1}\n{\"step\":2}\n{\"step\":3}\n{\"st");
  MetricsLog metrics(path_, log_);
  metrics.resume_at(2);
  metrics.write({{"step", 3}, {"again", true}});
  EXPECT_EQ(text_of(path_), "{\"step\":1}\n{\"step\":2}\n{\"step\":3,\"again\":true}\n");
}

TEST_F(MetricsLogTest, AFullDiskWarnsOnceAndLeavesNoTornLine) {
  MetricsLog metrics(path_, log_);
  metrics.write({{"step", 1}, {"long", std::string(4000, 'x')}});
  const std::string first = text_of(path_);
  ::testing::internal::CaptureStderr();  // into a file, on the same small disk
  {
    const SmallDisk disk(first.size() + 5);
    metrics.write({{"step", 2}, {"loss", 0.5}});
    EXPECT_EQ(text_of(path_), first);
    metrics.write({{"step", 3}});
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "jigsaw-train: warning: cannot write " + path_ +
                ": File too large; the run goes on, and lines are missing there\n");
  metrics.write({{"step", 4}});
  EXPECT_EQ(text_of(path_), first + "{\"step\":4}\n");
}

TEST_F(MetricsLogTest, AFileThatWasRemovedIsWrittenAnewWithAllItsLines) {
  double seconds = 0;
  std::optional<MetricsLog> metrics;
  metrics.emplace(path_, log_, [&] { return seconds; });
  metrics->write({{"step", 1}});
  std::filesystem::remove(path_);
  ::testing::internal::CaptureStderr();
  metrics->write({{"step", 2}});
  EXPECT_FALSE(std::filesystem::exists(path_)) << "all of the folder may be going";
  seconds += LineFile::kSecondsUntilAnew;
  metrics->write({{"step", 3}});
  EXPECT_EQ(text_of(path_), "{\"step\":1}\n{\"step\":2}\n{\"step\":3}\n");
  EXPECT_EQ(
      ::testing::internal::GetCapturedStderr(),
      "jigsaw-train: warning: " + path_ +
          " was removed or replaced during the run; it is written on, with the lines that were known\n");
  // One that stands in its place is gone on with.
  put_text(path_ + ".new", "{\"step\":7}\n");
  std::filesystem::rename(path_ + ".new", path_);
  metrics->write({{"step", 8}});
  EXPECT_EQ(text_of(path_), "{\"step\":7}\n{\"step\":8}\n");
  // What is missing in the end is there behind it.
  std::filesystem::remove(path_);
  metrics->write({{"step", 9}});
  metrics.reset();
  EXPECT_EQ(text_of(path_), "{\"step\":7}\n{\"step\":8}\n{\"step\":9}\n");
}

TEST_F(MetricsLogTest, ItIsWrittenOnInAFolderThatWasMoved) {
  const std::string run = folder_.path() + "/run", moved = folder_.path() + "/moved";
  std::filesystem::create_directory(run);
  MetricsLog metrics(run + "/metrics.jsonl", log_);
  metrics.write({{"step", 1}});
  std::filesystem::rename(run, moved);
  metrics.write({{"step", 2}});
  EXPECT_EQ(text_of(moved + "/metrics.jsonl"), "{\"step\":1}\n{\"step\":2}\n");
  EXPECT_FALSE(std::filesystem::exists(run));
}

TEST_F(MetricsLogTest, WhatCannotBeResumedSaysWhyAndStays) {
  put_text(path_, "{\"step\":1,\"long\":\"" + std::string(4000, 'x') + "\"}\n{\"step\":2}\n");
  const std::string before = text_of(path_);
  ::testing::internal::CaptureStderr();
  {
    const SmallDisk disk(2000);  // with room for what is captured
    MetricsLog(path_, log_).resume_at(1);
  }
  EXPECT_NE(::testing::internal::GetCapturedStderr().find(": File too large; the run goes on"),
            std::string::npos);
  EXPECT_EQ(text_of(path_), before);
}

/// Whose other end nobody opens: to open or to read it would wait for ever.
TEST_F(MetricsLogTest, APipeInItsPlaceIsSaidAndNotWaitedFor) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0666), 0);
  for (const bool resumes : {true, false}) {
    MetricsLog metrics(path_, log_);
    ::testing::internal::CaptureStderr();
    if (resumes) metrics.resume_at(3);
    metrics.write({{"step", 4}});
    metrics.write({{"step", 5}});
    EXPECT_EQ(::testing::internal::GetCapturedStderr(),
              concat("jigsaw-train: warning: cannot ", resumes ? "read " : "open ", path_) +
                  ": it is a pipe, not a regular file; the run goes on, and lines are missing there\n");
  }
  EXPECT_TRUE(std::filesystem::is_fifo(path_));
}

TEST_F(MetricsLogTest, OtherRanksWriteNothing) {
  Log silent(false);
  MetricsLog metrics(path_, silent);
  metrics.resume_at(0);
  metrics.write({{"step", 1}});
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(MetricsLogTest, KnowsTheLastValidationThatItKept) {
  const std::string lines =
      "{\"kind\":\"train\",\"step\":4}\n{\"kind\":\"valid\",\"step\":4}\n{\"kind\":\"train\",\"step\":8}\n"
      "{\"kind\":\"valid\",\"step\":8}\n";
  for (const auto& [step, validated] : {std::pair{8, 8}, {7, 4}, {4, 4}, {3, 0}}) {
    put_text(path_, lines);
    MetricsLog metrics(path_, log_);
    metrics.resume_at(step);
    EXPECT_EQ(metrics.validated(), validated) << step;
  }
}

}  // namespace metrics_log_test
}  // namespace jigsaw
