// The loss's gradient against central differences, with points that do not count, on one rank and on meshes.
#include <gtest/gtest.h>

#include <cmath>
#include <mutex>

#include "layers/training_run.h"
#include "support/test_ranks.h"

namespace jigsaw {
namespace {

using testing::Tensors;
using Sizes = TrainingRun::MeshSizes;

const Shape kShape{3, 5, 4, 3};

FieldLoss make_loss(const std::vector<ErrorTerm>& terms) {
  return FieldLoss({terms, true, {{"b", 2.5}}}, {1.5, 1.2, 1.0, 0.8, 0.5}, {"a", "b", "c"});
}

struct Fields {
  std::vector<double> prediction, target;
};

/// Every seventh target is missing, and one variable of one sample altogether.
Fields made_up() {
  Fields fields;
  const RandomStream random(1, RandomPurpose::kNoise, "loss");
  for (std::int64_t i = 0; i < kShape.count(); ++i) {
    const auto element = static_cast<std::uint64_t>(i);
    fields.prediction.push_back(random.normal({0}, element));
    const bool missing = i % 7 == 0 || (i / 60 == 1 && i % 3 == 2);
    fields.target.push_back(missing ? NAN : random.normal({1}, element));
  }
  return fields;
}

struct Answer {
  double loss = 0;
  Tensors gradient;
};

Answer on_mesh(const FieldLoss& loss, const Fields& fields, double scale, const Sizes& sizes) {
  Answer answer;
  std::mutex mutex;
  testing::run_test_ranks(sizes.ranks(), [&](Communicator& world) {
    Mesh mesh(world, sizes.data, sizes.domain, sizes.tensor);
    const Rank rank{world.context(), mesh};
    const Layout layout = mesh.field_layout(kShape);
    const Array x = testing::cut_piece(rank, layout, DType::kFloat64, fields.prediction);
    const Array y = testing::cut_piece(rank, layout, DType::kFloat64, fields.target);
    const FieldSums sums = loss.sums(rank, x, y, layout);
    const WeightedMean global = loss.global_mean(rank, sums).read(rank.context);
    Tensors mine{{"prediction", std::vector<double>(fields.target.size(), NAN)}};
    testing::paste_piece(rank, layout, loss.gradient(rank, sums, scale / global.weight, x, y, layout),
                         mine.at("prediction"));
    const std::lock_guard lock(mutex);
    answer.loss = global.value();
    testing::merge(answer.gradient, mine);
  });
  return answer;
}

void check(const FieldLoss& loss) {
  const Fields fields = made_up();
  const double scale = 2.5;
  const Answer one = on_mesh(loss, fields, scale, {});
  std::vector<double> slopes;
  for (std::size_t i = 0; i < fields.prediction.size(); ++i) {
    const double step = 1e-5;
    Fields near = fields;
    near.prediction[i] += step;
    const double above = on_mesh(loss, near, scale, {}).loss;
    near.prediction[i] -= 2 * step;
    slopes.push_back(scale * (above - on_mesh(loss, near, scale, {}).loss) / (2 * step));
  }
  EXPECT_LE(testing::relative_difference(one.gradient.at("prediction"), slopes), 1e-7);
  EXPECT_EQ(one.gradient.at("prediction")[7], 0);
  for (const Sizes& sizes :
       {Sizes{1, {2, 1}, 1}, {1, {1, 3}, 1}, {1, {1, 1}, 2}, {3, {1, 1}, 1}, {1, {1, 2}, 3}}) {
    const Answer many = on_mesh(loss, fields, scale, sizes);
    EXPECT_NEAR(many.loss / one.loss, 1, 1e-13);
    EXPECT_LE(testing::relative_difference(many.gradient.at("prediction"), one.gradient.at("prediction")),
              1e-13);
  }
}

void check(const std::vector<ErrorTerm>& terms) {
  check(make_loss(terms));
}

/// Of points with an area of their own, one of them without any, over 3.
double own_area(std::int64_t row, std::int64_t column) {
  return row == 2 && column == 1 ? 0 : 1 + 0.2 * static_cast<double>(row * 4 + column);
}
CellWeights own_areas() {
  return CellWeights(5, 3, [](const Box& plane, std::span<double> out) {
    std::size_t i = 0;
    for (std::int64_t row = plane.begin[0]; row < plane.end(0); ++row)
      for (std::int64_t column = plane.begin[1]; column < plane.end(1); ++column)
        out[i++] = own_area(row, column);
  });
}

TEST(LossGradient, CellsOfTheirOwnArea) {
  check(FieldLoss({{{}}, true, {{"b", 2.5}}}, own_areas(), {"a", "b", "c"}));
  const Fields fields = made_up();
  const auto loss_of = [&](bool area_weighted) {
    double sum = 0, weights = 0;
    for (std::int64_t b = 0; b < kShape[0]; ++b) {
      for (std::int64_t c = 0; c < kShape[3]; ++c) {
        double numerator = 0, denominator = 0;
        for (std::int64_t point = 0; point < 20; ++point) {
          const auto i = static_cast<std::size_t>((b * 20 + point) * kShape[3] + c);
          if (std::isnan(fields.target[i])) continue;
          const double weight = area_weighted ? own_area(point / 4, point % 4) / 3 : 1;
          const double error = fields.prediction[i] - fields.target[i];
          numerator += weight * error * error;
          denominator += weight;
        }
        if (denominator == 0) continue;
        sum += (c == 1 ? 2.5 : 1) * numerator / denominator;
        weights += c == 1 ? 2.5 : 1;
      }
    }
    return sum / weights;
  };
  for (const bool area_weighted : {true, false}) {
    const FieldLoss loss({{{}}, area_weighted, {{"b", 2.5}}}, own_areas(), {"a", "b", "c"});
    EXPECT_NEAR(on_mesh(loss, fields, 1, {}).loss / loss_of(area_weighted), 1, 1e-13);
    EXPECT_NEAR(on_mesh(loss, fields, 1, {1, {2, 2}, 1}).loss / loss_of(area_weighted), 1, 1e-13);
  }
}

TEST(LossGradient, MeanSquaredError) {
  check({{ErrorNorm::kSquared}});
}

TEST(LossGradient, MeanAbsoluteError) {
  check({{ErrorNorm::kAbsolute}});
}

TEST(LossGradient, Huber) {
  check({{ErrorNorm::kHuber}});
}

TEST(LossGradient, LogCosh) {
  check({{ErrorNorm::kLogCosh}});
}

TEST(LossGradient, SumOfTerms) {
  const std::vector<ErrorTerm> terms = {
      {ErrorNorm::kSquared, 0.75}, {{ErrorNorm::kHuber, 0.5}, 2.0}, {ErrorNorm::kAbsolute, 0.25}};
  check(terms);
  double sum = 0;
  for (const ErrorTerm& term : terms)
    sum += term.weight * on_mesh(make_loss({{term.measure}}), made_up(), 1.0, {}).loss;
  EXPECT_NEAR(on_mesh(make_loss(terms), made_up(), 1.0, {}).loss / sum, 1, 1e-14);
}

// ---- Members of an ensemble

constexpr std::int64_t kMembers = 4;

FieldLoss crps_loss() {
  FieldLossOptions options{{{ErrorMeasure::crps(0.95)}, {{ErrorNorm::kSquared}, 0.25}}, true, {{"b", 2.5}}};
  options.members = {kMembers, kShape[0]};
  return FieldLoss(options, {1.5, 1.2, 1.0, 0.8, 0.5}, {"a", "b", "c"});
}

/// Forecasts of every member, and the targets of made_up().
Fields members_made_up() {
  Fields fields = made_up();
  fields.prediction.clear();
  const RandomStream random(2, RandomPurpose::kNoise, "loss");
  for (std::int64_t i = 0; i < kMembers * kShape.count(); ++i)
    fields.prediction.push_back(random.normal({0}, static_cast<std::uint64_t>(i)));
  return fields;
}

/// As a training step has it: the loss takes the prediction where the model leaves it.
Answer backward_on_mesh(const Fields& fields, double scale, const Sizes& sizes) {
  const FieldLoss loss = crps_loss();
  Answer answer;
  std::mutex mutex;
  Shape forecasts = kShape;
  forecasts[0] *= kMembers;
  testing::run_test_ranks(sizes.ranks(), [&](Communicator& world) {
    Mesh mesh(world, sizes.data, sizes.domain, sizes.tensor);
    const Rank rank{world.context(), mesh};
    const Layout layout = mesh.field_layout(forecasts);
    const Variable x({testing::cut_piece(rank, layout, DType::kFloat64, fields.prediction), layout}, true);
    const Array y =
        testing::cut_piece(rank, loss.target_layout(mesh, layout), DType::kFloat64, fields.target);
    const WeightedMean mean = loss.backward(rank, x, y, scale).read(rank.context);
    Tensors mine{{"prediction", std::vector<double>(fields.prediction.size(), NAN)}};
    testing::paste_piece(rank, layout, x.slot()->take().piece, mine.at("prediction"));
    const std::lock_guard lock(mutex);
    answer.loss = mean.value();
    testing::merge(answer.gradient, mine);
  });
  return answer;
}

/// Three samples of four members on two, three, four and twelve groups: those that hold whole samples, and
/// those that part members.
TEST(LossGradient, OfMembersOnAnyMesh) {
  const Fields fields = members_made_up();
  const double weight = crps_loss().full_weight(kShape[0]) - 1.0;
  const Answer one = backward_on_mesh(fields, 1.0, {});
  std::vector<double> slopes;
  // The loss is the sum over the weight of what has a valid point: that of one sample's last variable has
  // none.
  for (std::size_t i = 0; i < fields.prediction.size(); ++i) {
    const double step = 1e-6;
    Fields near = fields;
    near.prediction[i] += step;
    const double above = backward_on_mesh(near, 1.0, {}).loss;
    near.prediction[i] -= 2 * step;
    slopes.push_back(weight * (above - backward_on_mesh(near, 1.0, {}).loss) / (2 * step));
  }
  EXPECT_LE(testing::relative_difference(one.gradient.at("prediction"), slopes), 1e-7);
  for (const Sizes& sizes : {Sizes{1, {2, 1}, 1},
                             {1, {1, 3}, 2},
                             {3, {1, 1}, 1},
                             {2, {1, 1}, 1},
                             {4, {1, 1}, 1},
                             {2, {2, 1}, 1},
                             {4, {1, 2}, 1},
                             {12, {1, 1}, 1}}) {
    SCOPED_TRACE(sizes.ranks());
    const Answer many = backward_on_mesh(fields, 1.0, sizes);
    EXPECT_NEAR(many.loss / one.loss, 1, 1e-13);
    EXPECT_LE(testing::relative_difference(many.gradient.at("prediction"), one.gradient.at("prediction")),
              1e-13);
  }
}

TEST(LossGradient, VanishesWhereNothingCountsAndTheLossIsNoNumber) {
  const FieldLoss loss = make_loss({{}});
  Fields fields = made_up();
  fields.target.assign(fields.target.size(), NAN);
  const Answer answer = on_mesh(loss, fields, 1.0, {1, {2, 1}, 1});
  EXPECT_TRUE(std::isnan(answer.loss));
  EXPECT_EQ(answer.gradient.at("prediction"), std::vector<double>(fields.target.size(), 0.0));
}

TEST(Loss, WeightsThatAreAll0AreAnError) {
  EXPECT_THROW(FieldLoss({{{}}, false, {{"a", 0.0}, {"b", 0.0}}}, {1.0}, {"a", "b"}), ConfigError);
  EXPECT_EQ(FieldLoss({{{}}, false, {{"a", 0.0}}}, {1.0}, {"a", "b"}).full_weight(3), 3);
}

TEST(Loss, AWeightThatNamesNoVariableIsAnError) {
  try {
    FieldLoss({{{}}, true, {{"tm2", 1.0}}}, {1.0}, {"t2m", "u10"});
    ADD_FAILURE() << "no error";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean \"t2m\""), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace jigsaw
