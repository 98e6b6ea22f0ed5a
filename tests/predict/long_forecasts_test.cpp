// What long forecasts are made of: which steps a file holds, means over them, states that are kept, and where
// the first value is that is not finite.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "predict/first_not_finite.h"
#include "predict/forecast.h"
#include "predict/restart_file.h"
#include "predict/step_means.h"
#include "predict/written_leads.h"
#include "support/netcdf_reader.h"
#include "support/temporary_folder.h"
#include "support/test_ranks.h"

namespace jigsaw {
namespace long_forecasts_test {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// Against a list of the steps that end a lead.
TEST(WrittenLeads, AreThoseOfAList) {
  for (const bool means : {false, true}) {
    for (int first = 0; first < 9; ++first) {
      for (int last = first + 1; last < 15; ++last) {
        for (int every = 1; every < 6; ++every) {
          SCOPED_TRACE(::testing::Message() << means << " " << first << " " << last << " " << every);
          std::vector<int> steps;
          for (int step = first + 1; step <= last; ++step)
            if ((means ? step - first : step) % every == 0) steps.push_back(step);
          const WrittenLeads leads{first, last, every, means};
          ASSERT_EQ(leads.count(), std::ssize(steps));
          for (int lead = 0; lead < leads.count(); ++lead)
            EXPECT_EQ(leads.step_of(lead), steps[static_cast<std::size_t>(lead)]);
          for (int step = first + 1; step <= last; ++step) {
            const auto found = std::ranges::find(steps, step);
            const std::optional<int> wanted =
                found == steps.end() ? std::nullopt : std::optional(static_cast<int>(found - steps.begin()));
            EXPECT_EQ(leads.lead_of(step), wanted) << step;
          }
        }
      }
    }
  }
}

TEST(StepMeans, LeaveOutWhatIsNotFinite) {
  StepMeans means;
  means.add(std::vector<double>{1, kNaN, kNaN, 1e8});
  means.add(std::vector<double>{2, 5, INFINITY, 1});
  means.add(std::vector<double>{6, 7, kNaN, 1});
  const std::vector<float> found = means.take();
  EXPECT_EQ(found[0], 3.0F);
  EXPECT_EQ(found[1], 6.0F);
  EXPECT_TRUE(std::isnan(found[2]));
  EXPECT_EQ(found[3], static_cast<float>((1e8 + 2) / 3)) << "in double precision";
  means.add(std::vector<double>{4, 4, 4, 4});
  EXPECT_EQ(means.take(), std::vector<float>(4, 4.0F)) << "what was taken is gone";
}

TEST(FirstNotFinite, IsThatOfTheEarliestStepOnAnyRank) {
  testing::run_test_ranks(3, [](Communicator& world) {
    FirstNotFinite none;
    EXPECT_FALSE(none.find(world).has_value());
    FirstNotFinite found;
    if (world.rank() == 0) {
      found.add(5, 0, 0, std::vector<double>{0, 3});
    } else if (world.rank() == 2) {
      found.add(4, 2, 6, std::vector<double>{0, 0});
      found.add(4, 2, 6, std::vector<double>{0, 1});
      found.add(4, 1, 8, std::vector<double>{2, 0});
      found.add(6, 0, 0, std::vector<double>{1, 1});
    }
    const std::optional<FirstNotFinite::Found> first = found.find(world);
    ASSERT_TRUE(first.has_value());
    EXPECT_EQ(first->count, 8);
    EXPECT_EQ(first->step, 4);
    EXPECT_EQ(first->start, 1);
    EXPECT_EQ(first->channel, 8);
  });
}

RestartModel some_model() {
  return {"0123456789abcdef", 7, Calendar::kStandard, false, 2, {3, 5}, {1, 4}, 3, true};
}

/// Of channel number `number` of those that are kept, of a forecast, at a point; no float32.
double kept(RestartPart part, std::int64_t start, std::int64_t member, int number, std::int64_t point) {
  return static_cast<int>(part) + 10 * static_cast<double>(start) + 0.1 * static_cast<double>(member) +
         0.01 * number + 1e-9 * static_cast<double>(point);
}

/// Three starts of two members, whole rows but the first of them in one piece and the first in another.
void write_states(const std::string& path, const std::vector<Time>& starts) {
  const RestartModel model = some_model();
  RestartWriter file(model, starts, path);
  for (const auto& [part, channels] : model.parts()) {
    for (const auto& [row, rows] : {std::pair<std::int64_t, std::int64_t>{0, 1}, {1, 2}}) {
      // All starts but the last in one batch.
      for (const auto& [first, count] : {std::pair<std::int64_t, std::int64_t>{0, 2}, {2, 1}}) {
        PackedPiece<double> piece{{{0, row, 0, 0}, {count * 2, rows, 5, 6}}, {}, {}};
        piece.numbers.resize(channels.size());
        std::iota(piece.numbers.begin(), piece.numbers.end(), 0);
        for (const int number : piece.numbers)
          for (std::int64_t b = 0; b < count * 2; ++b)
            for (std::int64_t i = 0; i < rows * 5; ++i)
              piece.values.push_back(kept(part, first + b / 2, b % 2, number, row * 5 + i));
        file.write(part, first, piece);
      }
    }
  }
  file.close({12, 12, 5});
}

TEST(RestartFile, GivesEveryPieceAsItWasKept) {
  const testing::TemporaryFolder folder;
  const std::vector<Time> starts = {3600, 86400, 1'000'000'000};
  write_states(folder.path() + "/forecast.nc.restart", starts);
  const RestartFile file(folder.path() + "/forecast.nc");
  EXPECT_EQ(file.starts(), starts);
  EXPECT_EQ(file.steps_of(86400), 12);
  EXPECT_EQ(file.steps_of(1'000'000'000), 5);
  EXPECT_EQ(file.most_steps(), 12);
  EXPECT_EQ(file.members(), 2);
  EXPECT_FALSE(file.position_of(7200).has_value());
  const RestartModel model = some_model();
  file.require(model);
  // Forecasts 1 to 3 of a batch of the last and the first start; columns 1 to 3, and channels from 1 on.
  const std::vector<Time> batch = {starts[2], starts[0]};
  const Box box{{1, 0, 1, 1}, {3, 3, 3, 4}};
  for (const auto& [part, channels] : model.parts()) {
    const std::vector<double> values = file.read(part, batch, channels, box);
    ASSERT_EQ(std::ssize(values), box.extent.count());
    std::size_t at = 0;
    for (std::int64_t b = 1; b < 4; ++b) {
      for (std::int64_t row = 0; row < 3; ++row) {
        for (std::int64_t column = 1; column < 4; ++column) {
          for (int channel = 1; channel < 5; ++channel) {
            const auto place = std::ranges::find(channels, channel);
            const double wanted = place == channels.end()
                                      ? 0
                                      : kept(part, b < 2 ? 2 : 0, b % 2,
                                             static_cast<int>(place - channels.begin()), row * 5 + column);
            ASSERT_EQ(values[at++], wanted) << static_cast<int>(part) << " " << b << " " << channel;
          }
        }
      }
    }
  }
}

TEST(RestartFile, IsOfOneModelAlone) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path() + "/forecast.nc.restart";
  write_states(path, {0, 3600, 7200});
  const RestartFile file(path);
  const auto expect = [&](const std::string& says, const auto& change) {
    RestartModel model = some_model();
    change(model);
    try {
      file.require(model);
      ADD_FAILURE() << "not refused: " << says;
    } catch (const CheckpointError& error) {
      EXPECT_NE(std::string(error.what()).find(says), std::string::npos) << error.what();
    }
  };
  expect("other weights", [](RestartModel& model) { model.digest = "0123456789abcdee"; });
  expect("another seed", [](RestartModel& model) { model.seed = 8; });
  expect("another calendar", [](RestartModel& model) { model.calendar = Calendar::kNoLeap; });
  expect("2 members, not 3", [](RestartModel& model) { model.members = 3; });
  expect("a grid of 3 x 5 points", [](RestartModel& model) { model.grid = {3, 6}; });
  expect("another model", [](RestartModel& model) { model.carried = {1, 3}; });
  expect("another model", [](RestartModel& model) { model.accumulates = false; });
  RestartModel without_digest = some_model();
  without_digest.digest = "";
  EXPECT_NO_THROW(file.require(without_digest)) << "rank 0 alone knows it";
}

TEST(RestartFile, WhatIsNoneIsOneSentence) {
  const testing::TemporaryFolder folder;
  EXPECT_THROW(RestartFile(folder.path() + "/none.nc"), ConfigError);
  testing::put_text(folder.path() + "/text.restart", "no states");
  EXPECT_THROW(RestartFile(folder.path() + "/text.restart"), DataError);
  {
    NetcdfOutput other(folder.path() + "/other.restart", NetcdfOutput::Format::kNetcdf4);
    const int time = other.add_dimension("time", 1);
    const int variable = other.add_variable("time", NetcdfOutput::Type::kDouble, {time});
    other.end_definitions();
    other.write(variable, std::vector<double>{0});
    other.close();
  }
  EXPECT_THROW(RestartFile(folder.path() + "/other.restart"), DataError);
}

TEST(ForecastName, PromisesNoOtherFormat) {
  for (const char* name : {"f.zarr", "f.grib", "f.grb2", "f.nii.gz"})
    EXPECT_THROW(require_netcdf_name(name), ConfigError) << name;
  for (const char* name : {"f.nc", "f.nc4", "f", "f.h5", "zarr/f.nc"})
    EXPECT_NO_THROW(require_netcdf_name(name)) << name;
}

}  // namespace long_forecasts_test
}  // namespace jigsaw
