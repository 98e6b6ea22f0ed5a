#include "samples/batch_reader.h"

#include "array/host_view.h"
#include "base/error.h"
#include "comm/agreement.h"
#include "comm/thread/run_ranks.h"
#include "files/netcdf_output.h"
#include "io/fixtures.h"
#include "samples/dataset.h"
#include "support/temporary_folder.h"

namespace jigsaw {
namespace batch_reader_test {

constexpr std::int64_t kInputs = 15, kTargets = 4;

/// The data set of the fixtures, read by one rank.
class BatchReaderTest : public ::testing::Test {
 protected:
  static constexpr int kRollout = 2;

  void open(Predict predict) {
    DataOptions options = fixture_options();
    options.predict = predict;
    open(options);
  }
  void open(const DataOptions& options) {
    run_ranks(1, [&](Communicator& communicator) {
      data_ = std::make_unique<Dataset>(options, fixture(""), kRollout, communicator);
    });
  }

  BatchRequest whole() const {
    return {.times = {at("2020-02-27T12:00"), at("2020-02-28T06:00"), at("2020-02-27T18:00")},
            .input = Box::whole({3, 7, 8, kInputs}),
            .target = Box::whole({3, 7, 8, kTargets}),
            .rollout = kRollout,
            .baseline = true,
            .dtype = DType::kFloat64};
  }

  Batch read(const BatchRequest& request) { return data_->make_reader().read(request, context_); }

  Context context_ = Context::make_host(Backend::kReference, 1);
  std::unique_ptr<Dataset> data_;
};

double element(const Array& array, const Shape& at) {
  const Shape strides = array.shape().strides();
  std::int64_t index = 0;
  for (int d = 0; d < 4; ++d) index += at[d] * strides[d];
  return array.dtype() == DType::kFloat64 ? HostView<double>(array)[index] : HostView<float>(array)[index];
}

/// The fixture's value of a field at a step of 6 hours from 2020-02-27.
double state(const std::string& name, std::int64_t step, std::int64_t row, std::int64_t column) {
  static std::map<std::string, std::vector<double>> fields;
  if (!fields.contains(name)) fields[name] = expected_values(name);
  const std::int64_t first = name == "tp" ? 1 : 0;
  return fields[name][static_cast<std::size_t>(((step - first) * 7 + row) * 8 + column)];
}

void expect_same(double found, double wanted) {
  if (std::isnan(wanted)) {
    EXPECT_TRUE(std::isnan(found));
  } else {
    EXPECT_NEAR(found, wanted, 1e-12 * (1 + std::abs(wanted)));
  }
}

// packed.nc lacks t2m at step 3, row 2, column 5, and at step 4, row 0, column 0.
TEST_F(BatchReaderTest, MasksSayWhereFieldsAreMissingAtTime0) {
  DataOptions options = fixture_options();
  options.masks = {"t2m"};
  open(options);
  BatchRequest request = whole();
  request.input = Box::whole({3, 7, 8, kInputs + 1});
  const Batch batch = read(request);
  for (std::int64_t b = 0; b < 3; ++b) {
    for (std::int64_t row = 0; row < 7; ++row) {
      for (std::int64_t column = 0; column < 8; ++column) {
        const bool missing = b == 2 && row == 2 && column == 5;  // the sample of step 3
        EXPECT_EQ(element(batch.input, {b, row, column, kInputs}), missing ? 0 : 1);
        if (missing) {
          EXPECT_EQ(element(batch.input, {b, row, column, 3}), 0);
        }
      }
    }
  }
}

/// Of the mean and the deviation of numbers, one after the other.
std::pair<double, double> mean_and_deviation(const std::vector<double>& values) {
  double sum = 0, squares = 0;
  for (const double value : values) sum += value;
  const double mean = sum / static_cast<double>(values.size());
  for (const double value : values) squares += (value - mean) * (value - mean);
  return {mean, std::sqrt(squares / static_cast<double>(values.size()))};
}

// The same values, which a number stands for: masks alone still say that they are missing.
TEST_F(BatchReaderTest, MissingValuesBecomeTheNumberThatFillsThem) {
  constexpr double kFill = 250;
  DataOptions options = fixture_options();
  options.masks = {"t2m"};
  options.fill = {{"t2m", kFill}};
  open(options);
  const auto filled = [&](std::int64_t step, std::int64_t row, std::int64_t column) {
    const double value = state("t2m", step, row, column);
    return std::isnan(value) ? kFill : value;
  };
  std::vector<double> all, changes;
  for (std::int64_t step = 0; step < 8; ++step) {  // those of data.train
    for (std::int64_t point = 0; point < 56; ++point) {
      all.push_back(filled(step, point / 8, point % 8));
      if (step > 0) changes.push_back(all.back() - filled(step - 1, point / 8, point % 8));
    }
  }
  const auto [mean, deviation] = mean_and_deviation(all);
  const double of_changes = mean_and_deviation(changes).second;
  const FieldStatistics& found = data_->statistics().fields.at("t2m");
  EXPECT_NEAR(found.mean, mean, 1e-9);
  EXPECT_NEAR(found.deviation, deviation, 1e-9);
  EXPECT_NEAR(found.increment_deviation, of_changes, 1e-9);
  EXPECT_EQ(found.fill, std::optional(kFill));
  EXPECT_EQ(data_->statistics().seen.at("t2m").missing, 0);
  BatchRequest request = whole();
  request.input = Box::whole({3, 7, 8, kInputs + 1});
  request.origin = true;
  const Batch batch = read(request);
  const std::vector<std::int64_t> steps = {2, 5, 3};
  for (std::int64_t b = 0; b < 3; ++b) {
    const std::int64_t step = steps[static_cast<std::size_t>(b)];
    for (std::int64_t row = 0; row < 7; ++row) {
      for (std::int64_t column = 0; column < 8; ++column) {
        const double now = filled(step, row, column);
        expect_same(element(batch.input, {b, row, column, 0}),
                    (filled(step - 1, row, column) - found.mean) / found.deviation);
        expect_same(element(batch.input, {b, row, column, 3}), (now - found.mean) / found.deviation);
        EXPECT_EQ(element(batch.input, {b, row, column, kInputs}),
                  std::isnan(state("t2m", step, row, column)) ? 0 : 1);
        EXPECT_EQ(element(batch.present, {b, row, column, 3}), 1) << "it goes on from a number";
        expect_same(element(batch.origin, {b, row, column, 0}), now);
        for (std::int64_t r = 1; r <= kRollout; ++r)
          expect_same(element(batch.targets[static_cast<std::size_t>(r - 1)], {b, row, column, 0}),
                      (filled(step + r, row, column) - now) / found.increment_deviation);
      }
    }
  }
}

TEST_F(BatchReaderTest, NormalisesInputsAndIncrements) {
  open(Predict::kIncrement);
  const Batch batch = read(whole());
  const auto& fields = data_->statistics().fields;
  const std::vector<std::int64_t> steps = {2, 5, 3};
  for (std::int64_t b = 0; b < 3; ++b) {
    const std::int64_t step = steps[static_cast<std::size_t>(b)];
    for (std::int64_t row = 0; row < 7; ++row) {
      for (std::int64_t column = 0; column < 8; ++column) {
        const auto normalised = [&](const char* name, std::int64_t s) {
          return (state(name, s, row, column) - fields.at(name).mean) / fields.at(name).deviation;
        };
        const double earlier = normalised("t2m", step - 1);
        expect_same(element(batch.input, {b, row, column, 0}), std::isnan(earlier) ? 0 : earlier);
        expect_same(element(batch.input, {b, row, column, 5}), normalised("t_500", step));
        expect_same(element(batch.input, {b, row, column, 6}), normalised("lsm", 0));
        for (std::int64_t r = 1; r <= kRollout; ++r) {
          const Array& target = batch.targets[static_cast<std::size_t>(r - 1)];
          const double change = state("t2m", step + r, row, column) - state("t2m", step, row, column);
          expect_same(element(target, {b, row, column, 0}), change / fields.at("t2m").increment_deviation);
          expect_same(element(target, {b, row, column, 3}), normalised("tp", step + r));
        }
        EXPECT_EQ(element(batch.baseline, {b, row, column, 1}), 0);
        expect_same(element(batch.baseline, {b, row, column, 3}), normalised("tp", step));
      }
    }
  }
  // The value missing at 2020-02-27T18:00 is the first target of sample 0 and an input of sample 2.
  EXPECT_TRUE(std::isnan(element(batch.targets[0], {0, 2, 5, 0})));
  EXPECT_EQ(element(batch.input, {2, 2, 5, 3}), 0);
}

// Beside the targets of transformed values, which say nothing of what is below 0.
TEST_F(BatchReaderTest, StatesAreWhatTheFilesHoldWhereTargetsAre) {
  for (const Predict predict : {Predict::kIncrement, Predict::kState}) {
    DataOptions options = fixture_options();
    options.predict = predict;
    options.transforms = {{"t2m", {TransformKind::kLog}}, {"tp", {TransformKind::kSqrt}}};
    open(options);
    BatchRequest request = whole();
    EXPECT_TRUE(read(request).states.empty()) << "nobody asked";
    request.origin = true;
    const Batch batch = read(request);
    ASSERT_EQ(batch.states.size(), static_cast<std::size_t>(kRollout));
    const std::vector<std::int64_t> steps = {2, 5, 3};
    for (std::int64_t b = 0; b < 3; ++b) {
      const std::int64_t step = steps[static_cast<std::size_t>(b)];
      for (std::int64_t row = 0; row < 7; ++row) {
        for (std::int64_t column = 0; column < 8; ++column) {
          for (int r = 1; r <= kRollout; ++r) {
            const double change = state("t2m", step + r, row, column) - state("t2m", step, row, column);
            const bool hidden = predict == Predict::kIncrement && std::isnan(change);
            expect_same(element(batch.state(r - 1), {b, row, column, 0}),
                        hidden ? std::nan("") : state("t2m", step + r, row, column));
            expect_same(element(batch.state(r - 1), {b, row, column, 3}), state("tp", step + r, row, column));
          }
        }
      }
    }
    request.targets = request.baseline = false;
    EXPECT_TRUE(read(request).states.empty()) << "forecasts have no truth";
  }
}

TEST_F(BatchReaderTest, WhatIsMissingAtTimeZeroIsNotPresentInRollouts) {
  for (const Predict predict : {Predict::kIncrement, Predict::kState}) {
    open(predict);
    const Batch batch = read(whole());
    for (std::int64_t b = 0; b < 3; ++b) {
      for (std::int64_t c = 0; c < kInputs; ++c) {
        // t2m at time 0 is channel 3; its value is missing at 2020-02-27T18:00, which sample 2 starts from.
        EXPECT_EQ(element(batch.present, {b, 2, 5, c}), b == 2 && c == 3 ? 0 : 1) << b << " " << c;
        EXPECT_EQ(element(batch.present, {b, 2, 4, c}), 1);
      }
    }
  }
  BatchRequest request = whole();
  request.rollout = 1;
  EXPECT_FALSE(read(request).present.defined());
}

TEST_F(BatchReaderTest, PredictsStates) {
  open(Predict::kState);
  BatchRequest request = whole();
  request.times[1] = at("2020-02-27T00:00");  // no precipitation in the files, no earlier state
  request.input = {{0, 0, 0, 0}, {0, 7, 8, kInputs}};
  const Batch batch = read(request);
  const FieldStatistics& t2m = data_->statistics().fields.at("t2m");
  expect_same(element(batch.targets[1], {0, 4, 4, 0}), (state("t2m", 4, 4, 4) - t2m.mean) / t2m.deviation);
  expect_same(element(batch.baseline, {0, 4, 4, 0}), (state("t2m", 2, 4, 4) - t2m.mean) / t2m.deviation);
  EXPECT_TRUE(std::isnan(element(batch.baseline, {1, 4, 4, 3})));
  EXPECT_EQ(batch.input.count(), 0);
}

// Of lead 0: diagnostic fields of the time of the inputs, of which nothing persists.
TEST_F(BatchReaderTest, TargetsOfTheSameTime) {
  DataOptions options = fixture_options();
  options.lead_time = 0;
  open(options);
  const Channels& channels = data_->channels();
  ASSERT_EQ(channels.targets.size(), 1U);
  EXPECT_EQ(channels.targets[0].name, "tp");
  EXPECT_EQ(channels.inputs[0].name, "t2m");
  const auto of_day = std::ranges::count_if(
      channels.inputs, [](const Channel& channel) { return channel.forcing == Forcing::kSinTimeOfDay; });
  EXPECT_EQ(of_day, 1) << "what is known ahead is given once";
  const std::int64_t inputs = std::ssize(channels.inputs);
  const Batch batch = read({.times = {at("2020-02-27T12:00")},
                            .input = Box::whole({1, 7, 8, inputs}),
                            .target = Box::whole({1, 7, 8, 1}),
                            .baseline = true,
                            .dtype = DType::kFloat64,
                            .origin = true});
  const FieldStatistics &t2m = data_->statistics().fields.at("t2m"),
                        &tp = data_->statistics().fields.at("tp");
  for (std::int64_t column = 0; column < 8; ++column) {
    expect_same(element(batch.targets[0], {0, 4, column, 0}),
                (state("tp", 2, 4, column) - tp.mean) / tp.deviation);
    EXPECT_TRUE(std::isnan(element(batch.baseline, {0, 4, column, 0})));
    EXPECT_EQ(element(batch.origin, {0, 4, column, 0}), 0);
  }
  const auto now = std::ranges::find_if(
      channels.inputs, [](const Channel& channel) { return channel.name == "t2m" && channel.offset == 0; });
  expect_same(element(batch.input, {0, 4, 4, now - channels.inputs.begin()}),
              (state("t2m", 2, 4, 4) - t2m.mean) / t2m.deviation);
}

TEST_F(BatchReaderTest, ForcingsAreThoseOfTheirValidTime) {
  open(Predict::kIncrement);
  const Batch batch = read(whole());
  ASSERT_EQ(batch.forcings.size(), 1U);
  const Array& next = batch.forcings[0];
  for (std::int64_t c = 0; c < 7; ++c) EXPECT_EQ(element(next, {0, 3, 3, c}), 0);
  // Sample 0 starts at 12:00: sine 0, cosine −1; its target is at 18:00: −1, 0.
  EXPECT_NEAR(element(batch.input, {0, 3, 3, 10}), -1, 1e-12);
  EXPECT_NEAR(element(batch.input, {0, 3, 3, 11}), -1, 1e-12);
  EXPECT_NEAR(element(next, {0, 3, 3, 9}), -1, 1e-12);
  EXPECT_NEAR(element(next, {0, 3, 3, 12}), 1, 1e-12);
  EXPECT_NEAR(element(next, {0, 0, 3, 7}), -1.5, 1e-12);  // latitudes −3 … 3 steps, deviation 2
}

void expect_piece(const Array& piece, const Box& box, const Array& all) {
  ASSERT_EQ(piece.shape(), box.extent);
  for (std::int64_t b = 0; b < box.extent[0]; ++b) {
    for (std::int64_t row = 0; row < box.extent[1]; ++row) {
      for (std::int64_t column = 0; column < box.extent[2]; ++column) {
        for (std::int64_t c = 0; c < box.extent[3]; ++c) {
          const double wanted =
              element(all, {box.begin[0] + b, box.begin[1] + row, box.begin[2] + column, box.begin[3] + c});
          const double found = element(piece, {b, row, column, c});
          EXPECT_TRUE(found == wanted || (std::isnan(found) && std::isnan(wanted)));
        }
      }
    }
  }
}

TEST_F(BatchReaderTest, PiecesAreCutsOfTheWhole) {
  open(Predict::kIncrement);
  const Batch all = read(whole());
  const std::vector<std::pair<Box, Box>> layouts = {
      {{{0, 0, 0, 0}, {2, 7, 8, kInputs}}, {{0, 0, 0, 0}, {2, 7, 8, kTargets}}},
      {{{0, 4, 0, 0}, {3, 3, 4, kInputs}}, {{0, 4, 0, 0}, {3, 3, 4, kTargets}}},
      {{{2, 2, 3, 4}, {1, 5, 5, 4}}, {{2, 2, 3, 2}, {1, 5, 5, 2}}},
      {{{0, 0, 0, 8}, {3, 7, 8, 7}}, {{0, 7, 0, 0}, {3, 0, 8, kTargets}}},
      {{{1, 6, 7, 14}, {1, 1, 1, 1}}, {{0, 0, 0, 0}, {3, 2, 8, 1}}},
  };
  for (const auto& [input, target] : layouts) {
    BatchRequest request = whole();
    request.input = input;
    request.target = target;
    const Batch piece = read(request);
    expect_piece(piece.input, input, all.input);
    expect_piece(piece.forcings[0], input, all.forcings[0]);
    expect_piece(piece.present, input, all.present);
    for (std::size_t r = 0; r < kRollout; ++r) expect_piece(piece.targets[r], target, all.targets[r]);
    expect_piece(piece.baseline, target, all.baseline);
  }
}

/// All that rollouts are given at their leads: forcings, a prescribed field, a rim.
DataOptions given_options(Predict predict) {
  DataOptions options = fixture_options();
  options.diagnostic = {};
  options.forcing_variables = {{"tp", {}}};
  options.boundary_width = 1;
  options.predict = predict;
  return options;
}
constexpr std::int64_t kGivenInputs = kInputs + 2, kGivenTargets = kTargets - 1;

void expect_same_arrays(const Array& found, const Array& wanted) {
  ASSERT_EQ(found.defined(), wanted.defined());
  if (wanted.defined()) expect_piece(found, Box::whole(wanted.shape()), wanted);
}

TEST_F(BatchReaderTest, LeadsOneByOneAreThoseOfTheWholeRolloutAndReadAsMuch) {
  constexpr int kLeads = 3;
  for (const Predict predict : {Predict::kIncrement, Predict::kState}) {
    open(given_options(predict));
    BatchRequest request = whole();
    // Samples of the same states at other leads.
    request.times = {at("2020-02-27T12:00"), at("2020-02-27T18:00"), at("2020-02-28T00:00")};
    request.input = Box::whole({3, 7, 8, kGivenInputs});
    request.target = Box::whole({3, 7, 8, kGivenTargets});
    request.rollout = kLeads;
    request.origin = request.rims = true;
    const std::int64_t before = data_->bytes_read();
    const Batch all = read(request);
    const std::int64_t at_once = data_->bytes_read();
    ASSERT_EQ(all.forcings.size(), std::size_t{kLeads - 1});
    BatchReader reader = data_->make_reader();
    Batch batch;
    for (int lead = 0; lead < kLeads; ++lead) {
      SCOPED_TRACE(lead);
      request.lead = lead;
      batch.go_on(reader.read(request, context_));
      EXPECT_EQ(batch.times, all.times);
      for (const auto of : {&Batch::input, &Batch::present, &Batch::baseline, &Batch::origin})
        expect_same_arrays(batch.*of, all.*of);
      ASSERT_EQ(batch.targets.size(), 1U);
      ASSERT_EQ(batch.rims.size(), 1U);
      expect_same_arrays(batch.target(lead), all.target(lead));
      expect_same_arrays(batch.rim(lead), all.rim(lead));
      ASSERT_EQ(batch.forcings.size(), lead + 1 < kLeads ? 1U : 0U);
      if (!batch.forcings.empty()) expect_same_arrays(batch.forcing(lead), all.forcing(lead));
    }
    EXPECT_EQ(data_->bytes_read() - at_once, at_once - before);
  }
}

TEST_F(BatchReaderTest, OnlyWhatTheNextLeadTakesIsKept) {
  open(Predict::kIncrement);
  const std::vector<Field> prognostic = {{"t2m", {}}, {"t", 850}, {"t", 500}};
  const Field diagnostic{"tp", {}};
  const auto bytes_of_states = [&](std::int64_t of_prognostic, std::int64_t of_diagnostic) {
    const auto plane = [&](const Field& field) {
      return 56 * (data_->files().exact_in_float(field) ? 4 : 8);
    };
    std::int64_t bytes = of_diagnostic * plane(diagnostic);
    for (const Field& field : prognostic) bytes += of_prognostic * plane(field);
    return bytes;
  };
  BatchReader reader = data_->make_reader();
  const auto kept = [&](BatchRequest request, int lead) {
    request.lead = lead;
    reader.read(request, context_);
    return reader.kept_bytes();
  };
  BatchRequest request = whole();
  request.times = {at("2020-02-27T12:00"), at("2020-02-27T18:00"), at("2020-02-28T00:00")};
  request.rollout = 3;
  // Samples start from steps 2, 3 and 4. Of the prognostic fields lead 1 takes these and steps 4, 5 and 6,
  // lead 2 these and steps 5, 6 and 7; of the diagnostic one no state at the start. Step 1 is an input only.
  EXPECT_EQ(kept(request, 0), bytes_of_states(4, 2));
  EXPECT_EQ(kept(request, 1), bytes_of_states(5, 2));
  EXPECT_EQ(kept(request, 2), 0);
  // What predict asks for has no states of the files behind time 0.
  BatchRequest forecast = request;
  forecast.targets = forecast.baseline = false;
  forecast.origin = true;
  EXPECT_EQ(kept(forecast, 0), 0);
  // A rollout that is left, and one that fails, leave nothing to the next.
  EXPECT_EQ(kept(request, 0), bytes_of_states(4, 2));
  EXPECT_EQ(kept(forecast, 0), 0);
  Time last = data_->files().times(diagnostic).back();
  for (const Field& field : prognostic) last = std::min(last, data_->files().times(field).back());
  BatchRequest too_long = request;
  too_long.times.assign(3, last - 6 * kHour);
  kept(too_long, 0);
  EXPECT_THROW(kept(too_long, 1), DataError);
  EXPECT_EQ(kept(forecast, 0), 0);
}

TEST_F(BatchReaderTest, ALeadTakesTheSameMemoryHoweverManyThereAre) {
  open(given_options(Predict::kIncrement));
  const auto bytes = [&](int rollout, int lead, std::int64_t first_row, std::int64_t rows) {
    BatchRequest request = whole();
    request.input = {{0, first_row, 0, 0}, {3, rows, 8, kGivenInputs}};
    request.target = {{0, first_row, 0, 0}, {3, rows, 8, kGivenTargets}};
    request.origin = request.rims = true;
    request.rollout = rollout;
    request.lead = lead;
    const Batch batch = read(request);
    EXPECT_EQ(bytes_of(batch), context_.arena().current_bytes(Purpose::kInput));
    return bytes_of(batch);
  };
  // At lead 0 input, present and forcing, target and baseline, state, origin and rim; then forcing, target,
  // state and rim.
  constexpr std::int64_t kPoints = 3 * 56, kSize = 8;
  EXPECT_EQ(bytes(2, 0, 0, 7), kPoints * kSize * (3 * kGivenInputs + 5 * kGivenTargets));
  EXPECT_EQ(bytes(40, 0, 0, 7), bytes(2, 0, 0, 7));
  EXPECT_EQ(bytes(40, 1, 0, 7), kPoints * kSize * (kGivenInputs + 3 * kGivenTargets));
  EXPECT_EQ(bytes(40, 1, 0, 4) + bytes(40, 1, 4, 3), bytes(40, 1, 0, 7)) << "each of two ranks has its rows";
}

TEST_F(BatchReaderTest, WhereNothingIsGivenAtLeadsNothingIsAllocatedForIt) {
  DataOptions options = fixture_options();
  options.forcings = {};
  open(options);
  constexpr std::int64_t kFewer = kInputs - 8;
  BatchRequest request = whole();
  request.input = Box::whole({3, 7, 8, kFewer});
  const Batch batch = read(request);
  EXPECT_TRUE(batch.forcings.empty());
  EXPECT_EQ(context_.arena().current_bytes(Purpose::kInput),
            3 * 56 * (2 * kFewer + 3 * kTargets) * std::int64_t{8});
}

TEST_F(BatchReaderTest, ReadsEachStateOfThePieceOnce) {
  open(Predict::kIncrement);
  BatchReader reader = data_->make_reader();
  BatchRequest request = whole();
  // Rows 2 to 4 of t2m and t_850 and lsm.
  request.input = {{0, 2, 0, 0}, {3, 3, 8, kInputs}};
  request.target = {{0, 2, 0, 0}, {3, 3, 8, kTargets}};
  request.baseline = false;
  const std::int64_t before = data_->bytes_read();
  reader.read(request, context_);
  // Samples at steps 2, 5, 3 need 1 … 4, 4 … 7, 2 … 5: 7 states of t2m (2 bytes), t_850 and t_500 (4 bytes);
  // of tp (2 bytes) 3, 4, 5, 6, 7; lsm (4 bytes) once.
  const std::int64_t points = 3 * 8;
  EXPECT_EQ(data_->bytes_read() - before, points * (7 * (2 + 4 + 4) + 5 * 2 + 4));
  const std::int64_t again = data_->bytes_read();
  reader.read(request, context_);
  EXPECT_EQ(data_->bytes_read() - again, points * (7 * (2 + 4 + 4) + 5 * 2));
}

TEST_F(BatchReaderTest, WritesFloatsAndCountsThemAsInput) {
  open(Predict::kIncrement);
  BatchRequest request = whole();
  const Batch wide = read(request);
  request.dtype = DType::kFloat32;
  const Batch narrow = read(request);
  for (std::int64_t i = 0; i < wide.input.count(); ++i) {
    EXPECT_EQ(HostView<float>(narrow.input)[i], static_cast<float>(HostView<double>(wide.input)[i]));
  }
  EXPECT_EQ(context_.arena().current_bytes(Purpose::kInput),
            3 * 56 * (3 * kInputs + 3 * kTargets) * std::int64_t{8 + 4});
  request.input = Box::whole({3, 8, 8, kInputs});
  EXPECT_THROW(read(request), ShapeError);
}

TEST_F(BatchReaderTest, TheDataSetChecksItsShape) {
  DataOptions options = fixture_options();
  options.shape = {7, 9};
  run_ranks(1, [&](Communicator& communicator) {
    EXPECT_THROW(Dataset(options, fixture(""), 1, communicator), AgreedError);
  });
  open(Predict::kIncrement);
  EXPECT_EQ(data_->train_windows(),
            (std::vector{at("2020-02-27T06:00"), at("2020-02-27T12:00"), at("2020-02-27T18:00"),
                         at("2020-02-28"), at("2020-02-28T06:00")}));
  EXPECT_EQ(data_->valid_windows().size(), 2U);
}

/// A field that does not change in time but is each member's own: members 0 to 2 have 1 + number in it.
TEST(StaticFieldsOfAnEnsemble, AreThoseOfTheMember) {
  constexpr int kMembers = 3, kTimes = 4;
  const testing::TemporaryFolder folder;
  {
    NetcdfOutput file(folder.path() + "/ensemble.nc");
    using Type = NetcdfOutput::Type;
    const int time = file.add_dimension("time", kTimes), member = file.add_dimension("number", kMembers),
              lat = file.add_dimension("lat", 2), lon = file.add_dimension("lon", 2);
    const int times = file.add_variable("time", Type::kDouble, {time}),
              lats = file.add_variable("lat", Type::kDouble, {lat}),
              lons = file.add_variable("lon", Type::kDouble, {lon}),
              t = file.add_variable("t2m", Type::kFloat, {time, member, lat, lon}),
              z = file.add_variable("z", Type::kFloat, {member, lat, lon});
    file.add_text(times, "units", "hours since 2020-01-01");
    file.add_text(lats, "units", "degrees_north");
    file.add_text(lons, "units", "degrees_east");
    file.end_definitions();
    std::vector<float> states, heights;
    for (int i = 0; i < kTimes * kMembers * 4; ++i) states.push_back(static_cast<float>(i % 7 + i));
    for (int i = 0; i < kMembers * 4; ++i) heights.push_back(static_cast<float>(1 + i / 4));
    file.write(times, std::vector<double>{0, 6, 12, 18});
    file.write(lats, std::vector<double>{10, 20});
    file.write(lons, std::vector<double>{0, 5});
    file.write(t, states);
    file.write(z, heights);
    file.close();
  }
  DataOptions options;
  options.files = {"*.nc"};
  options.variables = {{"t2m", {}}};
  options.constants = {{"z", {}}};
  options.member.all = true;
  options.train = {period("2020-01-01", "2020-01-01")};
  run_ranks(2, [&](Communicator& communicator) {
    ASSERT_EQ(communicator.size(), 2);
    Dataset data(options, folder.path(), 1, communicator);
    const FieldStatistics& found = data.statistics().fields.at("z");
    EXPECT_NEAR(found.mean, 2, 1e-12);
    EXPECT_NEAR(found.deviation, std::sqrt(2.0 / 3), 1e-12);
    const Context context = Context::make_host(Backend::kReference, 1);
    const auto reader = data.open_reader();
    const Batch batch = reader->read({.split = Split::kTrain,
                                      .samples = {2, 3, 1, 8},
                                      .input = Box::whole({4, 2, 2, 2}),
                                      .target = Box::whole({4, 2, 2, 1}),
                                      .dtype = DType::kFloat64},
                                     context);
    const std::vector<double> wanted = {3, 1, 2, 3};
    for (std::int64_t b = 0; b < 4; ++b) {
      for (std::int64_t i = 0; i < 4; ++i) {
        EXPECT_NEAR(element(batch.input, {b, i / 2, i % 2, 1}),
                    (wanted[static_cast<std::size_t>(b)] - found.mean) / found.deviation, 1e-12);
      }
    }
  });
}

}  // namespace batch_reader_test
}  // namespace jigsaw
