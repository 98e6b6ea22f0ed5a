#include "array/host_view.h"
#include "comm/thread/run_ranks.h"
#include "io/fixtures.h"
#include "samples/dataset.h"
#include "support/source_dir.h"

namespace jigsaw {
namespace era5_test {

constexpr const char* kFile = "era5_t2m_uk_2019-03.nc";

std::filesystem::path real_data() {
  return testing::real_data_dir();
}

class Era5 : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(real_data() / kFile))
      GTEST_SKIP() << "no " << kFile << " in " << real_data();
    options_.files = {kFile};
    options_.variables = {{"t2m", {}}};
    options_.train = {period("2019-03-01", "2019-03-24")};
    options_.valid = {period("2019-03-25", "2019-03-31")};
    options_.input_times = {-6 * kHour, 0};
  }

  DataOptions options_;
};

TEST_F(Era5, StatisticsAgreeWithNumpy) {
  run_ranks(3, [&](Communicator& communicator) {
    Dataset data(options_, real_data(), 1, communicator);
    const FieldStatistics& found = data.statistics().fields.at("t2m");
    const Json& wanted = expected()["era5_uk"];
    EXPECT_NEAR(found.mean, wanted["mean"].get<double>(), 1e-11 * found.mean);
    EXPECT_NEAR(found.deviation, wanted["deviation"].get<double>(), 1e-11 * found.deviation);
    EXPECT_NEAR(found.increment_deviation, wanted["increment_deviation"].get<double>(),
                1e-11 * found.deviation);
    EXPECT_EQ(found.units, "K");
    EXPECT_EQ(data.train_windows().size(), 24U * 24 - 12);
    EXPECT_EQ(data.valid_windows().size(), 7U * 24 - 6);
  });
}

TEST_F(Era5, ReadsTheLastRow) {
  FileSet files({(real_data() / kFile).string()});
  const Field t2m{"t2m", {}};
  files.select(t2m, true);
  EXPECT_EQ(files.grid().shape(), (Shape{33, 49}));
  EXPECT_GT(files.grid().axes[0].coordinates.front(), files.grid().axes[0].coordinates.back());
  std::vector<double> row(9);
  files.read(t2m, at("2019-03-31T23:00"), {{32, 40}, {1, 9}}, row);
  expect_close(row, expected_values("era5_uk_last"), 1e-15);
}

// The figure that the data's own description gives: 2.687 K over the windows of the last 7 days.
TEST_F(Era5, PersistenceHasItsKnownError) {
  run_ranks(1, [&](Communicator& communicator) {
    options_.predict = Predict::kState;
    Dataset data(options_, real_data(), 1, communicator);
    BatchReader reader = data.make_reader();
    const Context context = Context::make_host(Backend::kReference, 1);
    // The description's windows need no earlier input; those of a day within the period have one.
    const std::vector<Time>& times = data.valid_windows();
    const auto samples = static_cast<std::int64_t>(times.size());
    const auto channels = static_cast<std::int64_t>(data.channels().inputs.size());
    const Batch batch = reader.read({.times = times,
                                     .input = {{0, 0, 0, 0}, {0, 0, 0, channels}},
                                     .target = Box::whole({samples, 33, 49, 1}),
                                     .baseline = true,
                                     .dtype = DType::kFloat64},
                                    context);
    double squares = 0;
    for (std::int64_t i = 0; i < batch.baseline.count(); ++i) {
      squares += std::pow(HostView<double>(batch.baseline)[i] - HostView<double>(batch.targets[0])[i], 2);
    }
    const double deviation = data.statistics().fields.at("t2m").deviation;
    EXPECT_NEAR(deviation * std::sqrt(squares / static_cast<double>(batch.baseline.count())), 2.687, 5e-4);
  });
}

}  // namespace era5_test
}  // namespace jigsaw
