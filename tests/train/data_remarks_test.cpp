#include "train/data_remarks.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "comm/thread/run_ranks.h"
#include "support/temporary_folder.h"

namespace jigsaw {
namespace data_remarks_test {

/// Has read what it is told.
class FakeSource : public SampleSource {
 public:
  const Grid& grid() const override { return grid_; }
  const Channels& channels() const override { return channels_; }
  const Statistics& statistics() const override { return statistics_; }
  std::int64_t count(Split) const override { return 0; }
  std::vector<std::int64_t> identity() const override { return {}; }
  std::unique_ptr<SampleReader> open_reader() override { return nullptr; }
  std::int64_t bytes_read() const override { return 0; }
  std::map<std::string, UndeclaredValues> undeclared() const override { return found; }

  std::map<std::string, UndeclaredValues> found;

 private:
  Grid grid_;
  Channels channels_;
  Statistics statistics_;
};

TEST(DataRemarks, WhatAnyRankFindsIsSaidOnceOfEachVariableInEachFile) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path() + "/log.txt";
  run_ranks(3, [&](Communicator& world) {
    Log log(world.rank() == 0);
    log.open(path);
    FakeSource source;
    DataRemarks remarks(source, world, log);
    remarks.tell();
    if (world.rank() > 0) source.found["t2m in a.nc"] = {world.rank(), 100};
    remarks.tell();
    source.found["t2m in a.nc"] = {50, 200};
    if (world.rank() == 2) source.found["sst in b\x1b.nc"] = {4, 9, 1};
    if (world.rank() > 0) source.found["u in c.h5"] = {2, 8, 2};
    remarks.tell();
    remarks.tell();
  });
  std::vector<std::string> lines;
  for (const std::string& line : split(testing::text_of(path), '\n')) {
    if (!line.empty()) lines.push_back(line.substr(line.find(' ') + 1));
  }
  EXPECT_EQ(
      lines,
      (std::vector<std::string>{
          "warning: of 200 values read of t2m in a.nc, 3 are NaN or infinite and not declared as "
          "missing; they count as missing",
          "warning: of 9 values read of sst in b\\x1b.nc, 4 are NaN or infinite (1 of them infinite) and "
          "not declared as missing; they count as missing",
          "warning: of 16 values read of u in c.h5, 4 are infinite and not declared as missing; they "
          "count as missing"}));
}

}  // namespace data_remarks_test
}  // namespace jigsaw
