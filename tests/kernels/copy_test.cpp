#include "kernels/copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "kernels/pointwise.h"
#include "support/arrays.h"
#include "support/backends.h"
#include "support/tolerance.h"

namespace jigsaw {
namespace copy_test {

using testing::array_of;
using testing::expect_near;
using testing::random_array;
using testing::tolerance;
using testing::values_of;

constexpr DType kTypes[] = {DType::kFloat32, DType::kFloat64, DType::kBfloat16};

class Copy : public ::testing::TestWithParam<Backend> {
 protected:
  Context context_ = testing::kernel_context(GetParam(), 2);
};

TEST_P(Copy, MovesARegion) {
  for (const DType type : kTypes) {
    const Array source = random_array(context_, {4, 5, 6}, type, 1);
    Array target = random_array(context_, {7, 3, 9}, type, 2),
          sum = random_array(context_, {7, 3, 9}, type, 2);
    const std::vector<double> xs = values_of(source);
    std::vector<double> copied = values_of(target), added = copied;
    for (std::size_t i = 0; i < 3; ++i) {
      for (std::size_t j = 0; j < 2; ++j) {
        for (std::size_t k = 0; k < 4; ++k) {
          const double x = xs[((1 + i) * 5 + 3 + j) * 6 + 2 + k];
          const std::size_t at = ((4 + i) * 3 + j) * 9 + 5 + k;
          copied[at] = x;
          added[at] += x;
        }
      }
    }
    const Box from = {{1, 3, 2}, {3, 2, 4}}, to = {{4, 0, 5}, {3, 2, 4}};
    copy_box(context_, source, from, target, to);
    EXPECT_EQ(values_of(target), copied);
    add_box(context_, source, from, sum, to);
    expect_near(values_of(sum), added, tolerance(type, 1, 2));
  }
}

TEST_P(Copy, WholeRowsColumnsAndEmptyRegions) {
  const Array x = random_array(context_, {40, 7, 300}, DType::kFloat32, 1);
  EXPECT_EQ(values_of(extract_box(context_, x, Box::whole(x.shape()))), values_of(x));
  const Array rows = extract_box(context_, x, {{10, 0, 0}, {20, 7, 300}});
  EXPECT_EQ(values_of(rows), values_of(x.slice(10 * 2100, {20, 7, 300})));
  EXPECT_EQ(extract_box(context_, x, {{3, 2, 1}, {0, 2, 5}}).count(), 0);
  Array back = filled(context_, x.shape(), DType::kFloat32, 0.0);
  for (const Box& box : {Box{{0, 0, 0}, {40, 7, 113}}, Box{{0, 0, 113}, {40, 7, 187}}}) {
    copy_box(context_, extract_box(context_, x, box), Box::whole(box.extent), back, box);
  }
  EXPECT_EQ(values_of(back), values_of(x));
  const Array scalar = random_array(context_, {}, DType::kFloat32, 1);
  EXPECT_EQ(values_of(extract_box(context_, scalar, {{}, {}})), values_of(scalar));
}

// ---- tables of copies

/// Whole numbers from −9 to 9, whose sums are exact in every type.
Array small_numbers(Context& context, std::int64_t count, DType type, unsigned seed) {
  std::mt19937 generator(seed);
  std::vector<double> values(static_cast<std::size_t>(count));
  for (double& value : values) value = static_cast<double>(generator() % 19) - 9;
  return array_of(context, {count}, type, values);
}

/// A table made at random, and what it makes of numbers, element by element.
struct RandomTable {
  static constexpr int kSources = 3;
  static constexpr std::int64_t kChannels = 11;

  explicit RandomTable(unsigned seed) : generator(seed) {
    const int views = 1 + static_cast<int>(roll(3));
    for (int view = 0; view < views; ++view) {
      const Shape shape = random_shape();
      const std::int64_t first = count + roll(3);
      count = first + shape.count();
      add_copies(first, shape);
      if (roll(2) == 0) continue;
      table.clear(first, shape);
      cleared.push_back({first, first + shape.count()});
    }
    count += roll(4);
  }

  std::int64_t roll(std::int64_t below) {
    return static_cast<std::int64_t>(generator() % static_cast<std::uint64_t>(below));
  }
  Shape random_shape() {
    Shape shape;
    for (int dim = 0; dim < 3; ++dim) shape.append(roll(6) == 0 ? 8 : 1 + roll(7));
    return shape;
  }
  void add_copies(std::int64_t first, const Shape& shape) {
    for (std::int64_t copies = roll(7); copies > 0; --copies) {
      const Shape from_shape = random_shape();
      Box from{{0, 0, 0}, {0, 0, 0}}, to = from;
      for (int dim = 0; dim < 3; ++dim) {
        const std::int64_t most = std::min(shape[dim], from_shape[dim]);
        from.extent[dim] = to.extent[dim] = roll(9) == 0 ? 0 : roll(3) == 0 ? most : 1 + roll(most);
        from.begin[dim] = roll(from_shape[dim] - from.extent[dim] + 1);
        to.begin[dim] = roll(shape[dim] - to.extent[dim] + 1);
      }
      const auto source = static_cast<int>(roll(kSources));
      const std::int64_t from_first = roll(2) * roll(6), channel = roll(4) == 0 ? roll(3) : BoxTable::kAsItIs;
      table.copy(source, {from_first, from_shape, from}, {first, shape, to}, channel);
      for (std::int64_t i = 0; i < from.extent.count(); ++i) {
        std::int64_t rest = i, read = 0, write = 0, read_stride = 1, write_stride = 1, last = 0;
        for (int dim = 2; dim >= 0; --dim) {
          const std::int64_t at = rest % from.extent[dim];
          rest /= from.extent[dim];
          read += (from.begin[dim] + at) * read_stride;
          write += (to.begin[dim] + at) * write_stride;
          read_stride *= from_shape[dim];
          write_stride *= shape[dim];
          if (dim == 2) last = at;
        }
        terms.push_back({source, from_first + read, first + write, channel < 0 ? -1 : channel + last});
      }
    }
  }

  struct Term {
    int source;
    std::int64_t read, write, channel;
  };
  std::mt19937_64 generator;
  BoxTable table;
  std::int64_t count = 0;  ///< of the target
  std::vector<Term> terms;
  std::vector<std::pair<std::int64_t, std::int64_t>> cleared;
};

/// All shapes that regions, and pieces of memory, can have to each other; arrays begin anywhere.
TEST_P(Copy, BoxesAsTheTableSays) {
  const bool fake = GetParam() == Backend::kCuda;
  for (unsigned seed = 0; seed < (fake ? 150U : 600U); ++seed) {
    SCOPED_TRACE(seed);
    RandomTable made(seed);
    const DType type = kTypes[seed % 3];
    const bool offsets = seed % 2 == 0;
    const std::int64_t begin = seed / 3 % 3;  // of all arrays, so that words are of any size
    std::vector<Array> sources;
    std::vector<std::vector<double>> values;
    for (unsigned i = 0; i < RandomTable::kSources; ++i) {
      sources.push_back(small_numbers(context_, 800, type, seed + i).slice(begin, {700}));
      values.push_back(values_of(sources.back()));
    }
    Array target = small_numbers(context_, made.count + 2, type, seed + 9).slice(begin, {made.count});
    ChannelChange change{small_numbers(context_, RandomTable::kChannels, DType::kFloat64, seed + 5), {}};
    if (offsets) change.offset = small_numbers(context_, RandomTable::kChannels, DType::kFloat64, seed + 6);
    const std::vector<double> factor = values_of(change.factor), offset = values_of(change.offset);
    std::vector<double> wanted = values_of(target);
    for (const auto& [first, end] : made.cleared)
      std::fill(wanted.begin() + first, wanted.begin() + end, 0.0);
    std::vector<bool> begun(wanted.size());
    for (const RandomTable::Term& term : made.terms) {
      const auto at = static_cast<std::size_t>(term.write), c = static_cast<std::size_t>(term.channel);
      double value = values[static_cast<std::size_t>(term.source)][static_cast<std::size_t>(term.read)];
      if (term.channel >= 0) value = value * factor[c] + (offsets ? offset[c] : 0.0);
      wanted[at] = begun[at] ? wanted[at] + value : value;
      begun[at] = true;
    }
    copy_boxes(context_, made.table, sources, target, change);
    ASSERT_EQ(values_of(target), wanted);
  }
}

TEST_P(Copy, BoxesAreAddedInTheOrderOfTheTable) {
  const std::vector<double> numbers = {1e8, 1, -1e8, 1};
  std::vector<int> order = {0, 1, 2, 3};
  std::vector<Array> sources;
  for (const double number : numbers) sources.push_back(filled(context_, {3, 700}, DType::kFloat32, number));
  do {
    BoxTable table;
    const Box left{{0, 0}, {3, 699}}, right{{0, 1}, {3, 699}};
    for (const int i : order) table.copy(i, {0, {3, 700}, left}, {0, {3, 700}, i % 2 == 0 ? left : right});
    Array target = filled(context_, {3, 700}, DType::kFloat32, 5.0);
    copy_boxes(context_, table, sources, target);
    float sum = 0;
    bool first = true;
    for (const int i : order) {
      const auto number = static_cast<float>(numbers[static_cast<std::size_t>(i)]);
      sum = first ? number : sum + number;
      first = false;
    }
    const std::vector<double> values = values_of(target);
    EXPECT_EQ(values[0], 0.0);    // 1e8 − 1e8
    EXPECT_EQ(values[699], 2.0);  // 1 + 1
    EXPECT_EQ(values[1], sum);
    EXPECT_EQ(values[2 * 700 + 650], sum);
  } while (std::next_permutation(order.begin(), order.end()));
}

/// Sums of bf16 are rounded once, and a source may be the target.
TEST_P(Copy, BoxesAreSummedWhereOneOfThemStands) {
  for (const DType type : kTypes) {
    Array target = filled(context_, {1000}, type, 1.0);
    const Array more = filled(context_, {1000}, type, 1.0 / 256);
    const BoxTable::Place all = {0, {1000}, {{0}, {1000}}};
    BoxTable table;
    table.copy(0, all, all);
    for (int i = 0; i < 4; ++i) table.copy(1, all, all);
    copy_boxes(context_, table, std::array{target, more}, target);
    EXPECT_EQ(values_of(target), std::vector<double>(1000, 1.015625)) << name(type);
  }
}

/// What pieces of fields come to: long rows that threads share, beside short ones.
TEST_P(Copy, BoxesOfALargeField) {
  const Shape shape = {2, 60, 40, 16};
  const Array x = random_array(context_, shape, DType::kFloat32, 1),
              y = random_array(context_, {2, 60, 2, 16}, DType::kFloat32, 2);
  BoxTable table;
  table.copy(0, {0, shape, Box::whole(shape)}, {0, {2, 64, 44, 16}, {{0, 2, 2, 0}, shape}});
  table.copy(1, {0, y.shape(), Box::whole(y.shape())}, {0, {2, 64, 44, 16}, {{0, 2, 0, 0}, y.shape()}});
  table.clear(0, {2, 64, 44, 16});
  Array padded(context_, {2, 64, 44, 16}, DType::kFloat32);
  copy_boxes(context_, table, std::array{x, y}, padded);
  EXPECT_EQ(values_of(extract_box(context_, padded, {{0, 2, 2, 0}, shape})), values_of(x));
  EXPECT_EQ(values_of(extract_box(context_, padded, {{0, 2, 0, 0}, y.shape()})), values_of(y));
  for (const Box& beside : {Box{{0, 0, 0, 0}, {2, 2, 44, 16}}, Box{{0, 62, 0, 0}, {2, 2, 44, 16}},
                            Box{{0, 2, 42, 0}, {2, 60, 2, 16}}}) {
    const std::vector<double> zeros = values_of(extract_box(context_, padded, beside));
    EXPECT_EQ(zeros, std::vector<double>(zeros.size(), 0.0));
  }
}

TEST_P(Copy, TablesThatDoNotFitAreRefused) {
  const Array x = random_array(context_, {4, 5}, DType::kFloat32, 1);
  Array y = random_array(context_, {4, 5}, DType::kFloat32, 2);
  const Box box{{0, 0}, {2, 2}};
  BoxTable table;
  EXPECT_THROW(table.copy(0, {0, {4, 5}, {{3, 0}, {2, 2}}}, {0, {4, 5}, box}), ShapeError);
  EXPECT_THROW(table.copy(0, {0, {4, 5}, {{0, 0}, {2, 3}}}, {0, {4, 5}, box}), ShapeError);
  table.copy(1, {1, {4, 5}, box}, {0, {4, 5}, box}, 0);
  const ChannelChange change{random_array(context_, {2}, DType::kFloat64, 1), {}};
  EXPECT_THROW(copy_boxes(context_, table, std::array{x}, y, change), ShapeError);
  EXPECT_THROW(copy_boxes(context_, table, std::array{x, x}, y, change), ShapeError);
  const Array longer = random_array(context_, {21}, DType::kFloat32, 1);
  EXPECT_THROW(copy_boxes(context_, table, std::array{x, longer}, y), ShapeError);
  EXPECT_THROW(
      copy_boxes(context_, table, std::array{x, cast(context_, longer, DType::kBfloat16)}, y, change),
      ShapeError);
  EXPECT_NO_THROW(copy_boxes(context_, table, std::array{x, longer}, y, change));
}

TEST_P(Copy, PermutesAnyOrder) {
  for (const DType type : kTypes) {
    const Array x = random_array(context_, {3, 4, 5, 6}, type, 1);
    const std::vector<double> xs = values_of(x);
    std::array<int, 4> order = {0, 1, 2, 3};
    do {
      const Array y = permute(context_, x, order);
      const std::vector<double> ys = values_of(y);
      const Shape strides = x.shape().strides();
      std::size_t at = 0;
      for (std::int64_t i = 0; i < y.shape()[0]; ++i) {
        for (std::int64_t j = 0; j < y.shape()[1]; ++j) {
          for (std::int64_t k = 0; k < y.shape()[2]; ++k) {
            for (std::int64_t l = 0; l < y.shape()[3]; ++l, ++at) {
              const std::int64_t read = i * strides[order[0]] + j * strides[order[1]] +
                                        k * strides[order[2]] + l * strides[order[3]];
              ASSERT_EQ(ys[at], xs[static_cast<std::size_t>(read)]);
            }
          }
        }
      }
    } while (std::next_permutation(order.begin(), order.end()));
  }
}

/// Windows of rows: what is consecutive in both arrays is of any length and begins anywhere, and so are the
/// words in which it can be moved.
TEST_P(Copy, RunsOfAnyLengthAndBegin) {
  for (const DType type : kTypes) {
    for (const std::int64_t run : {1, 2, 3, 4, 6, 8, 12, 16, 40}) {
      for (const std::int64_t begin : {0, 1, 2, 4}) {
        SCOPED_TRACE(concat(name(type), " ", run, " from ", begin));
        const Shape shape{2, 4, 6, run};
        const Array x = random_array(context_, {shape.count() + 8}, type, 1).slice(begin, shape);
        const std::vector<double> xs = values_of(x),
                                  ys = values_of(permute(context_, x, std::array{0, 2, 1, 3}));
        const Box from{{1, 0, 1, run / 2}, {1, 4, 4, run - run / 2}}, to{{0, 0, 0, begin}, from.extent};
        Array part = filled(context_, {1, 4, 5, run + 5}, type, 0.0);
        std::vector<double> wanted = values_of(part);
        copy_box(context_, x, from, part, to);
        for (std::int64_t i = 0; i < shape.count(); ++i) {
          const std::int64_t at = i % run, column = i / run % 6, row = i / run / 6 % 4, sample = i / run / 24;
          const double value = xs[static_cast<std::size_t>(i)];
          ASSERT_EQ(ys[static_cast<std::size_t>(((sample * 6 + column) * 4 + row) * run + at)], value);
          if (sample != 1 || column < 1 || column > 4 || at < run / 2) continue;
          wanted[static_cast<std::size_t>((row * 5 + column - 1) * (run + 5) + begin + at - run / 2)] = value;
        }
        ASSERT_EQ(values_of(part), wanted);
      }
    }
  }
}

/// All dims are one, or none is longer than one element.
TEST_P(Copy, PermutesWithoutDims) {
  const Array one = random_array(context_, {1, 1, 1}, DType::kBfloat16, 1),
              scalar = random_array(context_, {}, DType::kFloat32, 1),
              row = random_array(context_, {3000}, DType::kBfloat16, 1);
  EXPECT_EQ(values_of(permute(context_, one, std::array{2, 0, 1})), values_of(one));
  EXPECT_EQ(values_of(permute(context_, scalar, {})), values_of(scalar));
  EXPECT_EQ(values_of(permute(context_, row.reshaped({1, 3000, 1}), std::array{2, 1, 0})), values_of(row));
}

TEST_P(Copy, LargeTransposesGoBack) {
  for (const DType type : kTypes) {
    const Array x = random_array(context_, {2, 131, 77, 3}, type, 1);
    const Array y = permute(context_, x, std::array{2, 0, 3, 1});
    EXPECT_EQ(y.shape(), (Shape{77, 2, 3, 131}));
    EXPECT_EQ(values_of(y)[static_cast<std::size_t>(((5 * 2 + 1) * 3 + 2) * 131 + 100)],
              values_of(x)[static_cast<std::size_t>(((1 * 131 + 100) * 77 + 5) * 3 + 2)]);
    EXPECT_EQ(values_of(permute(context_, y, std::array{1, 3, 0, 2})), values_of(x));
  }
  EXPECT_EQ(permute(context_, random_array(context_, {0, 4}, DType::kFloat32, 1), std::array{1, 0}).shape(),
            (Shape{4, 0}));
}

TEST_P(Copy, ErrorsSayWhatIsWrong) {
  const Array x = random_array(context_, {4, 5}, DType::kFloat32, 1);
  Array y = random_array(context_, {4, 5}, DType::kFloat32, 2);
  EXPECT_THROW(copy_box(context_, x, {{0, 0}, {4, 4}}, y, {{0, 2}, {4, 4}}), ShapeError);
  EXPECT_THROW(copy_box(context_, x, {{0, 0}, {4, 4}}, y, {{0, 0}, {4, 3}}), ShapeError);
  EXPECT_THROW(copy_box(context_, x, {{-1, 0}, {2, 2}}, y, {{0, 0}, {2, 2}}), ShapeError);
  EXPECT_THROW(extract_box(context_, x, {{0}, {4}}), ShapeError);
  Array wide = cast(context_, y, DType::kFloat64);
  EXPECT_THROW(add_box(context_, x, {{0, 0}, {2, 2}}, wide, {{0, 0}, {2, 2}}), ShapeError);
  EXPECT_THROW(permute(context_, x, std::array{0, 0}), ShapeError);
  EXPECT_THROW(permute(context_, x, std::array{0}), ShapeError);
  EXPECT_THROW(permute(context_, x, std::array{0, 2}), ShapeError);
}

INSTANTIATE_TEST_SUITE_P(Backends, Copy, testing::kernel_backends(), testing::backend_name);

}  // namespace copy_test
}  // namespace jigsaw
