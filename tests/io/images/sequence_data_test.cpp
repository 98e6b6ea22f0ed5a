// Sequences of volumes: windows, statistics and batches on several ranks, against loops over what was
// written.
#include "images/sequence_data.h"

#include <array>
#include <cmath>
#include <filesystem>
#include <optional>

#include "array/host_view.h"
#include "base/error.h"
#include "comm/agreement.h"
#include "comm/thread/run_ranks.h"
#include "files/image_output.h"
#include "images/sequence_reader.h"
#include "io/fixtures.h"
#include "support/temporary_folder.h"

namespace jigsaw {
namespace sequence_data_test {

using testing::TemporaryFolder;

constexpr std::int64_t kSamples = 2, kSteps = 6, kDepth = 5, kHeight = 3, kWidth = 4;

/// Whole numbers, which float32 holds; one point of "p" is missing in one state.
double value(int file, std::int64_t sample, std::int64_t step, std::int64_t z, std::int64_t y, std::int64_t x,
             int field) {
  if (field == 0 && file == 1 && sample == 0 && step == 3 && z == 4 && y == 1 && x == 2) return std::nan("");
  return static_cast<double>(file * 31 + sample * 17 + step * step * (field + 1) + z * 5 +
                             (y * 7 + x * 3) % 4 + field * 100 + (step * z) % 3);
}

/// Two files of two samples: "p" [sample, time, z, y, x] and "g/v" [.., 2].
void write_files(const TemporaryFolder& folder) {
  const Shape p{kSamples, kSteps, kDepth, kHeight, kWidth}, v{kSamples, kSteps, kDepth, kHeight, kWidth, 2};
  for (int file = 0; file < 2; ++file) {
    const OutputImage one{"p", OutputImage::Type::kFloat, {"s", "t", "z", "y", "x"},
                          p,   {{"units", "Pa"}},         {}},
        two{"g/v", OutputImage::Type::kFloat, {"s", "t", "z", "y", "x", "c"}, v, {}, {}};
    const auto out =
        create_image_output(ImageFormat::kHdf5, concat(folder.path(), "/run_", file, ".h5"), {one, two}, {});
    std::vector<float> ps, vs;
    for (std::int64_t s = 0; s < kSamples; ++s)
      for (std::int64_t t = 0; t < kSteps; ++t)
        for (std::int64_t z = 0; z < kDepth; ++z)
          for (std::int64_t y = 0; y < kHeight; ++y)
            for (std::int64_t x = 0; x < kWidth; ++x) {
              ps.push_back(static_cast<float>(value(file, s, t, z, y, x, 0)));
              for (int c = 1; c < 3; ++c) vs.push_back(static_cast<float>(value(file, s, t, z, y, x, c)));
            }
    out->write(0, Box::whole(p), ps);
    out->write(1, Box::whole(v), vs);
    out->finish();
  }
}

DataOptions options_of(Predict predict = Predict::kIncrement) {
  DataOptions options;
  options.files = {"run_*.h5"};
  options.variables = {{"p", {}}, {"v", {}, "g/v", {}}};
  options.dims = {ImageDim::kSample, ImageDim::kTime,  ImageDim::kDepth,
                  ImageDim::kHeight, ImageDim::kWidth, ImageDim::kChannel};
  options.input_steps = {-1, 0};
  options.predict = predict;
  options.train = {SliceRanges{{{ImageDim::kSample, {0, 2}}}}};
  options.valid = {SliceRanges{{{ImageDim::kSample, {3, 3}}, {ImageDim::kTime, {2, 5}}}}};
  return options;
}

/// Of a state's number.
double value_at(std::int64_t state, std::int64_t z, std::int64_t y, std::int64_t x, int field) {
  const std::int64_t series = state / kSteps;
  return value(static_cast<int>(series / kSamples), series % kSamples, state % kSteps, z, y, x, field);
}

/// Variables in files of their own are of one case where what * stands for is alike, else by order.
TEST(SequenceData, VariablesInFilesOfTheirOwnArePairedByCase) {
  const TemporaryFolder folder;
  write_files(folder);
  const auto copy = [&](int from, const std::string& to) {
    std::filesystem::copy_file(concat(folder.path(), "/run_", from, ".h5"), folder.path() + "/" + to);
  };
  for (const auto& [from, to] : {std::pair{0, "p_1.h5"}, {1, "p_2.h5"}, {0, "v_2.h5"}, {1, "v_3.h5"}})
    copy(from, to);
  for (const auto& [from, to] : {std::pair{0, "w_1.h5"}, {1, "w_2.h5"}, {0, "u_3.h5"}, {1, "u_4.h5"}})
    copy(from, to);
  const auto opened = [&](const std::string& pattern) -> std::optional<bool> {
    DataOptions options = options_of();
    options.files = {"p_*.h5"};
    options.variables[1].files = {pattern};
    std::optional<bool> by_order;
    run_ranks(2, [&](Communicator& world) {
      try {
        const SequenceData data(options, folder.path(), 2, world);
        if (world.rank() == 0) by_order = data.files().paired_by_order("v");
      } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find("are not of the same cases"), std::string::npos)
            << error.what();
      }
    });
    return by_order;
  };
  EXPECT_EQ(opened("w_*.h5"), std::optional(false));
  EXPECT_EQ(opened("u_*.h5"), std::optional(true));
  EXPECT_EQ(opened("v_*.h5"), std::nullopt) << "of which one case is in both";
}

TEST(SequenceData, WindowsNeverCrossSequences) {
  const TemporaryFolder folder;
  write_files(folder);
  run_ranks(2, [&](Communicator& world) {
    const SequenceData data(options_of(), folder.path(), 2, world);
    EXPECT_EQ(world.size(), 2);
    // A step before time 0 and two leads behind it.
    EXPECT_EQ(data.windows(Split::kTrain), (std::vector<std::int64_t>{1, 2, 3, 7, 8, 9, 13, 14, 15}));
    EXPECT_EQ(data.windows(Split::kValid), (std::vector<std::int64_t>{20, 21}));
    EXPECT_EQ(data.text_of(20), concat("state 2 of sequence 3 (", folder.path(), "/run_1.h5)"));
    EXPECT_EQ(data.grid().shape(), (Shape{kDepth, kHeight, kWidth}));
    ASSERT_EQ(data.channels().inputs.size(), 6U);
    EXPECT_EQ(data.channels().inputs[1].name, "v_0");
    EXPECT_EQ(data.channels().inputs[0].offset, -1);
    EXPECT_EQ(data.channels().targets[2].offset, 1);
  });
}

TEST(SequenceData, StatisticsAreThoseOfTheTrainingPartsOnAnyNumberOfRanks) {
  const TemporaryFolder folder;
  write_files(folder);
  for (const int ranks : {1, 3}) {
    run_ranks(ranks, [&](Communicator& world) {
      const SequenceData data(options_of(), folder.path(), 1, world);
      for (int field = 0; field < 3; ++field) {
        std::vector<double> states, changes;
        for (std::int64_t state = 0; state < 3 * kSteps; ++state)
          for (std::int64_t z = 0; z < kDepth; ++z)
            for (std::int64_t y = 0; y < kHeight; ++y)
              for (std::int64_t x = 0; x < kWidth; ++x) {
                const double now = value_at(state, z, y, x, field);
                if (!std::isnan(now)) states.push_back(now);
                if (state % kSteps == kSteps - 1) continue;
                const double change = value_at(state + 1, z, y, x, field) - now;
                if (!std::isnan(change)) changes.push_back(change);
              }
        const auto deviation = [](const std::vector<double>& values, double& mean) {
          mean = 0;
          for (const double x : values) mean += x / static_cast<double>(values.size());
          double squares = 0;
          for (const double x : values)
            squares += (x - mean) * (x - mean) / static_cast<double>(values.size());
          return std::sqrt(squares);
        };
        double mean = 0, ignored = 0;
        const double of_states = deviation(states, mean), of_changes = deviation(changes, ignored);
        const FieldStatistics& found =
            data.statistics().of(data.channels().targets[static_cast<std::size_t>(field)].field);
        EXPECT_NEAR(found.mean, mean, 1e-10);
        EXPECT_NEAR(found.deviation, of_states, 1e-10);
        EXPECT_NEAR(found.increment_deviation, of_changes, 1e-10);
      }
      EXPECT_EQ(data.statistics().of(data.channels().targets[0].field).units, "Pa");
      // Each state once, but for one where the share of one rank ends: float32 of three fields.
      const std::int64_t state = kDepth * kHeight * kWidth * 4, states = 3 * kSteps;
      EXPECT_LE(data.bytes_read(), 3 * state * (states / ranks + (ranks > 1 ? 1 : 0)));
    });
  }
}

/// Each rank reads some of the depth, unevenly; all of a rollout, or its leads one after the other.
TEST(SequenceData, BatchesAreThoseOfLoopsOnAnyNumberOfRanks) {
  const TemporaryFolder folder;
  write_files(folder);
  for (const int ranks : {1, 2, 4}) {
    for (const Predict predict : {Predict::kIncrement, Predict::kState}) {
      run_ranks(ranks, [&](Communicator& world) {
        SequenceData data(options_of(predict), folder.path(), 2, world);
        EXPECT_EQ(world.size(), ranks);
        const std::int64_t first = kDepth * world.rank() / ranks, last = kDepth * (world.rank() + 1) / ranks;
        SampleRequest request;
        request.samples = {6, 2};  // states 13 (and 15, where a point is missing: step 3 of sequence 2) and 3
        request.input = {{0, first, 0, 0, 0}, {2, last - first, kHeight, kWidth, 6}};
        request.target = {{0, first, 0, 0, 0}, {2, last - first, kHeight, kWidth, 3}};
        request.rollout = 2;
        request.baseline = request.origin = true;
        request.dtype = DType::kFloat64;
        const auto reader = data.open_reader();
        const Batch whole = reader->read(request, world.context());
        request.lead = 1;
        const Batch second = reader->read(request, world.context());
        ASSERT_EQ(whole.targets.size(), 2U);
        ASSERT_EQ(second.targets.size(), 1U);
        EXPECT_TRUE(whole.forcings.empty());
        const std::array<std::int64_t, 2> starts = {13, 3};
        const auto same = [](double found, double wanted) {
          EXPECT_EQ(std::isnan(found), std::isnan(wanted));
          if (!std::isnan(wanted)) {
            EXPECT_NEAR(found, wanted, 1e-12);
          }
        };
        std::size_t in = 0, out = 0;
        for (const std::int64_t start : starts)
          for (std::int64_t z = first; z < last; ++z)
            for (std::int64_t y = 0; y < kHeight; ++y)
              for (std::int64_t x = 0; x < kWidth; ++x) {
                for (int c = 0; c < 6; ++c, ++in) {
                  const FieldStatistics& s =
                      data.statistics().of(data.channels().inputs[static_cast<std::size_t>(c)].field);
                  const double v = value_at(start + (c < 3 ? -1 : 0), z, y, x, c % 3);
                  same(HostView<const double>(whole.input)[in],
                       std::isnan(v) ? 0 : (v - s.mean) / s.deviation);
                  EXPECT_EQ(HostView<const double>(whole.present)[in], 1.0);
                }
                for (int c = 0; c < 3; ++c, ++out) {
                  const FieldStatistics& s =
                      data.statistics().of(data.channels().targets[static_cast<std::size_t>(c)].field);
                  const double now = value_at(start, z, y, x, c);
                  for (int lead = 0; lead < 2; ++lead) {
                    const double then = value_at(start + lead + 1, z, y, x, c);
                    const double wanted = predict == Predict::kIncrement
                                              ? (then - now) / s.increment_deviation
                                              : (then - s.mean) / s.deviation;
                    same(HostView<const double>(whole.target(lead))[out], wanted);
                    same(HostView<const double>(whole.state(lead))[out], then);
                    if (lead == 1) same(HostView<const double>(second.target(1))[out], wanted);
                  }
                  same(HostView<const double>(whole.origin)[out], now);
                  same(HostView<const double>(whole.baseline)[out],
                       predict == Predict::kIncrement ? 0 : (now - s.mean) / s.deviation);
                }
              }
      });
    }
  }
}

/// Beside "p" of write_files(): "w", which never varies, "z", which varies in space alone, and constants of
/// sample and space, of space, and of samples.
double constant_value(int which, int file, std::int64_t sample, std::int64_t point) {
  const auto at = static_cast<double>(point);
  if (which == 0) return 10 * file + 3 * static_cast<double>(sample) + std::fmod(at, 7);
  return which == 1 ? at * at : 100 + file * 2 + static_cast<double>(sample);
}

void write_with_constants(const TemporaryFolder& folder) {
  const Shape in_time{kSamples, kSteps, kDepth, kHeight, kWidth},
      of_samples{kSamples, kDepth, kHeight, kWidth}, space{kDepth, kHeight, kWidth}, numbers{kSamples};
  const std::int64_t points = space.count();
  for (int file = 0; file < 2; ++file) {
    const auto image = [](const char* name, std::vector<std::string> dims, const Shape& shape) {
      return OutputImage{name, OutputImage::Type::kFloat, std::move(dims), shape, {}, {}};
    };
    const auto out = create_image_output(
        ImageFormat::kHdf5, concat(folder.path(), "/run_", file, ".h5"),
        {image("p", {"s", "t", "z", "y", "x"}, in_time), image("w", {"s", "t", "z", "y", "x"}, in_time),
         image("z", {"s", "t", "z", "y", "x"}, in_time), image("mask", {"s", "z", "y", "x"}, of_samples),
         image("g/depth", {"z", "y", "x"}, space), image("kappa", {"s"}, numbers)},
        {});
    std::vector<float> p, w, z, mask, depth, kappa;
    for (std::int64_t s = 0; s < kSamples; ++s) {
      for (std::int64_t t = 0; t < kSteps; ++t)
        for (std::int64_t i = 0; i < points; ++i) {
          p.push_back(static_cast<float>(value(file, s, t, i / 12, i / 4 % 3, i % 4, 1)));
          w.push_back(2.5F);
          z.push_back(static_cast<float>(i % 5));
        }
      for (std::int64_t i = 0; i < points; ++i)
        mask.push_back(static_cast<float>(constant_value(0, file, s, i)));
      kappa.push_back(static_cast<float>(constant_value(2, file, s, 0)));
    }
    for (std::int64_t i = 0; i < points; ++i)
      depth.push_back(static_cast<float>(constant_value(1, file, 0, i)));
    const std::vector<std::pair<Shape, std::vector<float>>> all = {
        {in_time, p}, {in_time, w}, {in_time, z}, {of_samples, mask}, {space, depth}, {numbers, kappa}};
    for (std::size_t i = 0; i < all.size(); ++i) out->write(i, Box::whole(all[i].first), all[i].second);
    out->finish();
  }
}

DataOptions with_constants() {
  DataOptions options = options_of();
  options.variables = {{"p", {}}, {"w", {}}, {"z", {}}};
  options.constants = {{"mask", {}}, {"depth", {}, "g/depth", {}}, {"kappa", {}}};
  return options;
}

TEST(SequenceData, ConstantFieldsAreInputsOnAnyNumberOfRanks) {
  const TemporaryFolder folder;
  write_with_constants(folder);
  for (const int ranks : {1, 2, 4}) {
    run_ranks(ranks, [&](Communicator& world) {
      EXPECT_EQ(world.size(), ranks);
      SequenceData data(with_constants(), folder.path(), 2, world);
      ASSERT_EQ(data.channels().inputs.size(), 9U);
      ASSERT_EQ(data.channels().targets.size(), 3U);
      // Over the sequences of data.train, each that differs once.
      const std::int64_t points = kDepth * kHeight * kWidth;
      for (int which = 0; which < 3; ++which) {
        const Channel& channel = data.channels().inputs[static_cast<std::size_t>(6 + which)];
        EXPECT_EQ(channel.role, Role::kStatic);
        EXPECT_EQ(channel.offset, 0);
        double sum = 0, squares = 0, count = 0;
        for (std::int64_t sequence = 0; sequence < 3; ++sequence) {
          if (which == 1 && sequence == 1) continue;
          for (std::int64_t i = 0; i < points; ++i) {
            const double x = constant_value(which, static_cast<int>(sequence / 2), sequence % 2, i);
            sum += x;
            squares += x * x;
            count += 1;
          }
        }
        const FieldStatistics& found = data.statistics().of(channel.field);
        EXPECT_NEAR(found.mean, sum / count, 1e-9) << channel.name;
        EXPECT_NEAR(found.deviation, std::sqrt(squares / count - sum * sum / count / count), 1e-7)
            << channel.name;
      }
      const std::int64_t first = kDepth * world.rank() / ranks, last = kDepth * (world.rank() + 1) / ranks;
      SampleRequest request;
      request.samples = {6, 2};  // of sequences 2 and 0
      request.input = {{0, first, 0, 0, 0}, {2, last - first, kHeight, kWidth, 9}};
      request.target = {{0, first, 0, 0, 0}, {2, last - first, kHeight, kWidth, 3}};
      request.rollout = 2;
      request.dtype = DType::kFloat64;
      const Batch batch = data.open_reader()->read(request, world.context());
      std::size_t at = 0;
      for (const std::int64_t sequence : {2, 0}) {
        for (std::int64_t i = first * kHeight * kWidth; i < last * kHeight * kWidth; ++i, at += 9) {
          for (int which = 0; which < 3; ++which) {
            const std::size_t channel = at + 6 + static_cast<std::size_t>(which);
            const FieldStatistics& s =
                data.statistics().of(data.channels().inputs[static_cast<std::size_t>(6 + which)].field);
            const double x = constant_value(which, static_cast<int>(sequence / 2), sequence % 2, i);
            EXPECT_NEAR(HostView<const double>(batch.input)[channel], (x - s.mean) / s.deviation, 1e-12);
            EXPECT_EQ(HostView<const double>(batch.present)[channel], 1.0);
          }
        }
      }
    });
  }
}

/// Files of their own: one for all, or one for each, which cases tell apart.
TEST(SequenceData, ConstantFieldsMayStandInOtherFiles) {
  const TemporaryFolder folder;
  write_files(folder);
  const auto write = [&](const std::string& name, const Shape& shape, float first) {
    const std::vector<std::string> dims(static_cast<std::size_t>(shape.rank()), "");
    const OutputImage mask{"m", OutputImage::Type::kFloat, dims, shape, {}, {}};
    const auto out = create_image_output(ImageFormat::kHdf5, folder.path() + "/" + name, {mask}, {});
    std::vector<float> values;
    for (std::int64_t i = 0; i < shape.count(); ++i) values.push_back(first + static_cast<float>(i));
    out->write(0, Box::whole(shape), values);
    out->finish();
  };
  const Shape space{kDepth, kHeight, kWidth}, of_samples{kSamples, kDepth, kHeight, kWidth};
  write("all.h5", space, 1);
  write("samples.h5", of_samples, 1);
  for (const auto& [name, first] : {std::pair{"m_1.h5", 500.0F}, {"m_0.h5", 100.0F}})
    write(name, of_samples, first);
  const auto first_values = [&](const std::vector<std::string>& files,
                                const std::vector<std::string>& states) {
    ImageFiles images(states, options_of().dims, opener(Dimensions::kByNumber), {}, {},
                      ImagePairing{{folder.path() + "/run_*.h5"}});
    images.select({"p", {}});
    const Field mask = images.select_constant({"m", {}, "", {folder.path() + "/m_*.h5"}}, files).front();
    std::vector<double> found;
    for (std::int64_t sequence = 0; sequence < 4; ++sequence) {
      std::vector<double> value(1);
      images.read(mask, sequence * kSteps, {{0, 0, 0}, {1, 1, 1}}, value);
      found.push_back(value[0]);
    }
    return found;
  };
  const auto path = [&](const char* name) { return folder.path() + "/" + name; };
  const std::vector<std::string> states = {path("run_0.h5"), path("run_1.h5")};
  const auto points = static_cast<double>(space.count());
  EXPECT_EQ(first_values({path("all.h5")}, states), std::vector<double>(4, 1));
  for (const bool turned : {false, true}) {
    std::vector<std::string> files = {path("m_0.h5"), path("m_1.h5")};
    if (turned) std::swap(files[0], files[1]);
    EXPECT_EQ(first_values(files, states), (std::vector<double>{100, 100 + points, 500, 500 + points}))
        << turned;
  }
  EXPECT_EQ(message_of<DataError>([&] { first_values({path("samples.h5")}, states); }),
            concat("m has samples in one file, ", path("samples.h5"),
                   ", and p has 2 files; name a file for each of these, or one without samples for all"));
}

/// A row of numbers for each sequence, whether other fields have channels or not.
TEST(SequenceData, ConstantFieldsMayBeATable) {
  const TemporaryFolder folder;
  const Shape p{3, kSteps, kHeight, kWidth};
  std::vector<OutputImage> images = {{"p", OutputImage::Type::kFloat, {"s", "t", "y", "x"}, p, {}, {}}};
  for (const auto& [name, shape] : {std::pair{"table", Shape{3, 2}},
                                    {"column", {3, 1}},
                                    {"five", {5, 2}},
                                    {"four", {4}},
                                    {"map", {5, kHeight, kWidth}}}) {
    const std::vector<std::string> dims(static_cast<std::size_t>(shape.rank()), "");
    images.push_back({name, OutputImage::Type::kFloat, dims, shape, {}, {}});
  }
  const std::string path = folder.path() + "/table.h5";
  const auto out = create_image_output(ImageFormat::kHdf5, path, images, {});
  for (std::size_t i = 0; i < images.size(); ++i) {
    std::vector<float> values;
    for (std::int64_t j = 0; j < images[i].shape.count(); ++j) values.push_back(static_cast<float>(10 + j));
    out->write(i, Box::whole(images[i].shape), values);
  }
  out->finish();
  for (const bool channels : {true, false}) {
    std::vector<ImageDim> dims = {ImageDim::kSample, ImageDim::kTime, ImageDim::kHeight, ImageDim::kWidth};
    if (channels) dims.push_back(ImageDim::kChannel);
    ImageFiles files({path}, dims);
    files.select({"p", {}});
    const std::vector<Field> table = files.select_constant({"table", {}}),
                             column = files.select_constant({"column", {}});
    ASSERT_EQ(table.size(), 2U);
    ASSERT_EQ(column.size(), 1U);
    EXPECT_EQ(table[1].name(), "table_1");
    for (std::int64_t sequence = 0; sequence < 3; ++sequence) {
      // At any state and points.
      const std::int64_t state = sequence * kSteps + 4;
      std::vector<double> value(2);
      for (int c = 0; c < 2; ++c) {
        files.read(table[static_cast<std::size_t>(c)], state, {{1, 2}, {1, 2}}, value);
        EXPECT_EQ(value, std::vector<double>(2, 10.0 + static_cast<double>(2 * sequence + c)));
      }
      files.read(column[0], state, {{1, 2}, {1, 2}}, value);
      EXPECT_EQ(value, std::vector<double>(2, 10.0 + static_cast<double>(sequence)));
    }
    for (const auto& [name, why] : {std::pair{"five", "; it has 5 entries for 3 sequences"},
                                    {"four", "; it has 4 entries for 3 sequences"},
                                    {"map", "; it has 5 entries for 3 sequences"}}) {
      const VariableOptions wrong{name, {}};
      const std::string message = message_of<DataError>([&] { files.select_constant(wrong); });
      EXPECT_TRUE(message.ends_with(why)) << message;
    }
  }
}

TEST(SequenceData, WhatDoesNotVaryIsNormalisedByOneWhichIsTold) {
  const TemporaryFolder folder;
  write_with_constants(folder);
  for (const Predict predict : {Predict::kIncrement, Predict::kState}) {
    run_ranks(2, [&](Communicator& world) {
      EXPECT_EQ(world.size(), 2);
      std::vector<std::string> told;
      StatisticsPass pass;
      pass.tell = [&](const std::string& line) { told.push_back(line); };
      DataOptions options = with_constants();
      options.predict = predict;
      const SequenceData data(options, folder.path(), 1, world, pass);
      const auto& fields = data.statistics().fields;
      EXPECT_EQ(fields.at("w").mean, 2.5);
      EXPECT_EQ(fields.at("w").deviation, 1);
      EXPECT_EQ(fields.at("w").increment_deviation, 1);
      EXPECT_NEAR(fields.at("z").deviation, std::sqrt(2.0), 1e-12);
      EXPECT_EQ(fields.at("z").increment_deviation, predict == Predict::kIncrement ? 1 : 0);
      EXPECT_EQ(told,
                std::vector<std::string>{predict == Predict::kIncrement
                                             ? "w does not vary in data.train; z does not change in time "
                                               "in data.train; normalised by 1"
                                             : "w does not vary in data.train; normalised by 1"});
    });
  }
}

/// Floating-point numbers that attributes of HDF5 files unpack, as a cosmological scale factor would.
TEST(SequenceData, TellsHowFloatingPointNumbersAreUnpacked) {
  const TemporaryFolder folder;
  const Shape shape{kSteps, kWidth};
  const auto remarks = [&](const std::vector<std::map<std::string, std::vector<double>>>& attributes,
                           OutputImage::Type type = OutputImage::Type::kFloat) {
    std::vector<std::string> paths;
    for (std::size_t file = 0; file < attributes.size(); ++file) {
      paths.push_back(concat(folder.path(), "/x_", file, ".h5"));
      const OutputImage x{"x", type, {"t", "x"}, shape, {}, attributes[file]};
      const auto out = create_image_output(ImageFormat::kHdf5, paths.back(), {x}, {});
      out->write(0, Box::whole(shape), std::vector<float>(static_cast<std::size_t>(shape.count()), 8));
      out->finish();
    }
    ImageFiles files(paths, {ImageDim::kTime, ImageDim::kWidth});
    const Field field = files.select({"x", {}}).front();
    std::vector<double> value(1);
    files.read(field, 0, {{0}, {1}}, value);
    const auto scale = attributes[0].find("scale_factor");
    EXPECT_EQ(value[0], scale == attributes[0].end() ? 8 : 8 * scale->second[0]);
    return files.packing_remarks();
  };
  const std::string first = concat("x in ", folder.path(),
                                   "/x_0.h5 holds floating-point numbers and is unpacked by its attributes "
                                   "scale_factor 0.25, add_offset 0"),
                    remedy =
                        "; if they say something else, as a cosmological scale factor, rename them in the "
                        "files";
  const std::map<std::string, std::vector<double>> none,
      quarter = {{"scale_factor", {0.25}}}, half = {{"scale_factor", {0.5}}}, one = {{"scale_factor", {1}}};
  EXPECT_EQ(remarks({quarter, quarter}), std::vector{first + remedy});
  EXPECT_EQ(remarks({quarter, half, none}),
            std::vector{concat(first, ", and in ", folder.path(), "/x_1.h5 by scale_factor 0.5, add_offset 0",
                               remedy)});
  EXPECT_EQ(remarks({quarter, none}),
            std::vector{concat(first, ", and in ", folder.path(), "/x_1.h5 not at all", remedy)});
  EXPECT_EQ(remarks({one, none}), std::vector<std::string>());
  EXPECT_EQ(remarks({quarter}, OutputImage::Type::kShort), std::vector<std::string>())
      << "whole numbers are packed ones";
}

TEST(SequenceData, RefusesWhatIsNotThere) {
  const TemporaryFolder folder;
  write_files(folder);
  const auto refusal = [&](const DataOptions& options, ExitCode code, int rollout = 1) {
    std::string message;
    run_ranks(2, [&](Communicator& world) {
      try {
        SequenceData(options, folder.path(), rollout, world);
        ADD_FAILURE() << "nothing was thrown";
      } catch (const AgreedError& error) {
        EXPECT_EQ(error.code(), code);
        if (world.rank() == 0) message = error.what();
      }
    });
    return message;
  };
  DataOptions options = options_of();
  options.train = {SliceRanges{{{ImageDim::kSample, {0, 4}}}}};
  EXPECT_NE(refusal(options, ExitCode::kConfig).find("the sequences of all files are 4"), std::string::npos);
  options.train = {SliceRanges{{{ImageDim::kTime, {0, 6}}}}};
  EXPECT_NE(refusal(options, ExitCode::kConfig).find("has 6 states; the last can be at most 5"),
            std::string::npos);
  EXPECT_NE(refusal(options_of(), ExitCode::kData, 5).find("data.train holds no window"), std::string::npos);
  options = options_of();
  options.constants = {{"p", {}}};
  EXPECT_NE(refusal(options, ExitCode::kConfig).find("data.static names p, which is named before"),
            std::string::npos);
  const OutputImage row{"row", OutputImage::Type::kFloat, {"x"}, {kWidth}, {}, {}};
  create_image_output(ImageFormat::kHdf5, concat(folder.path(), "/row.h5"), {row}, {})->finish();
  options.constants = {{"row", {}, "", {"row.h5"}}};
  EXPECT_NE(refusal(options, ExitCode::kData).find("row is [4], and the images of p in "), std::string::npos);
  options.constants = {{"q", {}, "p", {}}};
  EXPECT_NE(refusal(options, ExitCode::kData).find("p is [2, 6, 5, 3, 4], and the images of p in "),
            std::string::npos);
}

}  // namespace sequence_data_test
}  // namespace jigsaw
