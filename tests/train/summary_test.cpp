#include "train/summary.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "comm/self/self.h"
#include "comm/thread/run_ranks.h"
#include "support/temporary_folder.h"

namespace jigsaw {
namespace summary_test {

using testing::TemporaryFolder;

TEST(Summary, HoldsResultsAndEveryRankInOrder) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/summary.json";
  run_ranks(3, [&](Communicator& communicator) {
    const int rank = communicator.rank();
    RankTotals own{
        {{"data", 0}, {"domain", {rank, 0}}, {"tensor", 0}}, 10 + rank, 20, 30, 40, 50 + rank, 60 + rank, {}};
    own.traffic.sent_bytes[static_cast<std::size_t>(Collective::kAllReduce)] = 4.0 / 3 * 100;
    own.traffic.sent[static_cast<std::size_t>(Collective::kAllReduce)] = {2, 200};
    own.traffic.sent[static_cast<std::size_t>(Collective::kControl)] = {5, 40};
    own.traffic.seconds = 0.5;
    own.traffic.wait_seconds = 0.25;
    own.traffic.control_seconds = 0.125;
    Log log(rank == 0);
    write_summary(path, {{"final", {{"loss", 0.25}}}, {"steps", 600}}, own, communicator, log);
  });
  const Json summary = load_config(path);
  EXPECT_EQ(summary["final"]["loss"], 0.25);
  ASSERT_EQ(summary["ranks"].size(), 3u);
  EXPECT_EQ(
      summary["ranks"][2].dump(),
      R"({"rank":2,"coordinates":{"data":0,"domain":[2,0],"tensor":0},"parameter_bytes":12,)"
      R"("optimizer_bytes":20,"peak_memory_bytes":30,"peak_activation_bytes":40,"file_bytes_read":52,"file_bytes_fetched":62,)"
      R"("sent_bytes":{"all_gather":0,"reduce_scatter":0,"all_reduce":133,"all_to_all":0,"broadcast":0,)"
      R"("exchange":0},)"
      R"("transport_bytes":{"all_gather":0,"reduce_scatter":0,"all_reduce":200,"all_to_all":0,"broadcast":0,)"
      R"("exchange":0,"control":40},)"
      R"("transport_messages":{"all_gather":0,"reduce_scatter":0,"all_reduce":2,"all_to_all":0,"broadcast":0,)"
      R"("exchange":0,"control":5},)"
      R"("communication_seconds":0.5,"wait_seconds":0.25,"control_seconds":0.125})");
}

TEST(Summary, WhatCannotBeWrittenIsAWarning) {
  Context context = Context::make_host(Backend::kReference, 1);
  const auto self = make_self_communicator(context);
  Log log(true);
  ::testing::internal::CaptureStderr();
  write_summary("/nowhere/summary.json", Json::object(), {}, *self, log);
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("warning: cannot open /nowhere/summary.json"),
            std::string::npos);
}

TEST(Summary, PeakMemoryIsThatOfTheProcess) {
  const std::int64_t before = peak_resident_bytes();
  EXPECT_GT(before, 1 << 20);
  std::vector<char> large(64 << 20);
  std::ranges::fill(large, 'x');
  EXPECT_GE(peak_resident_bytes(), std::int64_t{64 << 20});
  EXPECT_EQ(large[large.size() / 2], 'x');
}

}  // namespace summary_test
}  // namespace jigsaw
