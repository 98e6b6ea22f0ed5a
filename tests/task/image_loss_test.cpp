// Losses of volumes against PyTorch's numbers and against central differences, on one rank and on meshes.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <mutex>

#include "config/config.h"
#include "support/golden_file.h"
#include "support/parameters.h"
#include "support/test_ranks.h"
#include "task/loss_types.h"

namespace jigsaw {
namespace {

using testing::GoldenFile;
using testing::relative_difference;
using testing::Tensors;

struct Sizes {
  int data = 1;
  std::vector<int> domain = {1, 1, 1};
  int tensor = 1;
  std::int64_t unit = 1;  ///< of the first spatial dim
  int ranks() const { return data * domain[0] * domain[1] * domain[2] * tensor; }
};
const std::vector<Sizes> kMeshes = {{1, {1, 1, 1}, 1},    {1, {2, 1, 1}, 1}, {1, {2, 2, 1}, 1},
                                    {1, {1, 1, 1}, 2},    {2, {1, 1, 1}, 1}, {1, {2, 1, 1}, 2},
                                    {1, {3, 1, 1}, 2, 2}, {1, {1, 1, 2}, 3}};

struct Case {
  Shape shape;  ///< of predictions
  std::vector<double> prediction, target;
};

struct Answer {
  double loss = 0;
  Tensors gradient;
};

Answer on_mesh(const Loss& loss, const Case& test, double scale, const Sizes& sizes) {
  Answer answer;
  std::mutex mutex;
  int ranks = 0;
  testing::run_test_ranks(sizes.ranks(), [&](Communicator& world) {
    Mesh mesh(world, sizes.data, sizes.domain, sizes.tensor);
    const Rank rank{world.context(), mesh};
    const Layout layout = mesh.field_layout(test.shape, {sizes.unit, 1, 1});
    const Variable x({testing::cut_piece(rank, layout, DType::kFloat64, test.prediction), layout}, true);
    const Array y = testing::cut_piece(rank, loss.target_layout(mesh, layout), DType::kFloat64, test.target);
    // A probe for the weight: the loss is the mean, its backward that of the sum.
    const Variable probe({x.value().piece, layout}, true);
    const double weight = loss.backward(rank, probe, y, 0.0).read(rank.context).weight;
    const double value =
        loss.backward(rank, x, y, weight > 0 ? scale / weight : scale).read(rank.context).value();
    Tensors mine{{"prediction", std::vector<double>(test.prediction.size(), NAN)}};
    testing::paste_piece(rank, layout, x.slot()->take().piece, mine.at("prediction"));
    const std::lock_guard lock(mutex);
    answer.loss = value;
    testing::merge(answer.gradient, mine);
    ++ranks;
  });
  EXPECT_EQ(ranks, sizes.ranks());
  return answer;
}

const std::vector<std::string> kNumberLosses = {"mse", "l1", "huber", "log_cosh"};
const std::vector<std::string> kClassLosses = {"cross_entropy", "dice", "dice_cross_entropy"};

struct LossSection {
  Tagged loss;
};
void declare(Keys<LossSection>& keys) {
  keys.tagged("loss", &LossSection::loss, loss_types).doc("What is minimised.");
}
Tagged configured(const Json& loss) {
  return parse<LossSection>(Json{{"loss", loss}}).loss;
}

struct Golden {
  Json options;
  Case test;
  double loss;
  std::vector<double> gradient;
};

Golden read_golden(const std::string& name) {
  const GoldenFile file("losses.h5");
  const GoldenFile::Tensor prediction = file.read(name + "/prediction");
  Golden golden{{{"type", name}},
                {prediction.shape, prediction.values, file.values(name + "/target")},
                file.values(name + "/loss")[0],
                file.values(name + "/gradient")};
  if (name == "huber") golden.options["delta"] = file.number("huber", "delta");
  if (std::find(kClassLosses.begin(), kClassLosses.end(), name) == kClassLosses.end()) return golden;
  golden.options["class_weights"] = file.attribute(name, "class_weights");
  if (name != "cross_entropy") golden.options["smoothing"] = file.number(name, "smoothing");
  const double ignored = file.number(name, "ignore_index");
  for (double& label : golden.test.target) label = label == ignored ? NAN : label;
  return golden;
}

std::unique_ptr<Loss> make(const Json& options, bool of_classes, const Shape& shape) {
  const std::vector<double> rows(static_cast<std::size_t>(shape[1]), 1.0);
  const Tagged loss = configured(options);
  if (of_classes) return std::make_unique<ClassLoss>(class_loss_options(loss), shape.back(), rows);
  return std::make_unique<FieldLoss>(field_loss_options(loss), rows, std::vector<std::string>{"a", "b"});
}

TEST(GoldenLosses, OfVolumesOnEveryMesh) {
  std::vector<std::string> names;
  names.insert(names.end(), kNumberLosses.begin(), kNumberLosses.end());
  names.insert(names.end(), kClassLosses.begin(), kClassLosses.end());
  for (const std::string& name : names) {
    const Golden golden = read_golden(name);
    const bool of_classes = std::find(kClassLosses.begin(), kClassLosses.end(), name) != kClassLosses.end();
    const auto loss = make(golden.options, of_classes, golden.test.shape);
    for (const Sizes& sizes : kMeshes) {
      SCOPED_TRACE(concat(name, " on ", sizes.ranks(), " ranks"));
      const Answer answer = on_mesh(*loss, golden.test, 1.0, sizes);
      EXPECT_NEAR(answer.loss / golden.loss, 1, 1e-13);
      EXPECT_LE(relative_difference(answer.gradient.at("prediction"), golden.gradient), 1e-12);
    }
  }
}

/// A loss is that of the loops on every mesh, and its gradient is their central differences.
void expect_as_loops(const ClassLoss& loss, const Case& test,
                     const std::function<double(const std::vector<double>& logits)>& wanted) {
  constexpr double kScale = 2.5, kStep = 1e-5;
  std::vector<double> slopes, logits = test.prediction;
  for (double& logit : logits) {
    const double middle = logit;
    logit = middle + kStep;
    const double above = wanted(logits);
    logit = middle - kStep;
    slopes.push_back(kScale * (above - wanted(logits)) / (2 * kStep));
    logit = middle;
  }
  for (const Sizes& sizes : kMeshes) {
    SCOPED_TRACE(sizes.ranks());
    const Answer answer = on_mesh(loss, test, kScale, sizes);
    EXPECT_NEAR(answer.loss, wanted(test.prediction), 1e-13);
    EXPECT_LE(relative_difference(answer.gradient.at("prediction"), slopes), 1e-7);
  }
}

/// Rows of different weight, and a sample without any label.
TEST(ClassLosses, FollowCentralDifferences) {
  Case test{{3, 2, 3, 2, 3}, {}, {}};
  const RandomStream random(1, RandomPurpose::kNoise, "class loss");
  for (std::int64_t i = 0; i < test.shape.count(); ++i) {
    test.prediction.push_back(random.normal({0}, static_cast<std::uint64_t>(i)));
  }
  for (std::int64_t i = 0; i < test.shape.count(0, 4); ++i) {
    const bool ignored = i % 5 == 0 || i / 12 == 1;
    test.target.push_back(ignored ? NAN : std::floor(3 * random.uniform({1}, static_cast<std::uint64_t>(i))));
  }
  const double scale = 2.5, step = 1e-5;
  std::vector<Json> losses;
  for (const std::string& name : kClassLosses) losses.push_back({{"type", name}});
  for (const char* name : {"dice", "dice_cross_entropy"})
    losses.push_back({{"type", name}, {"include_background", false}});
  losses.push_back({{"type", "sum"},
                    {"terms",
                     {{{"type", "cross_entropy"}, {"weight", 0.3}},
                      {{"type", "dice"}, {"include_background", false}, {"weight", 1.7}},
                      {{"type", "dice"}, {"weight", 2.0}},
                      {{"type", "dice"}, {"smoothing", 0.1}}}}});
  for (Json& options : losses) {
    SCOPED_TRACE(options.dump());
    options["class_weights"] = {1, 0, 3};
    const ClassLoss loss(class_loss_options(configured(options)), 3, {0.7, 1.3});
    const Answer one = on_mesh(loss, test, scale, {});
    std::vector<double> slopes;
    for (std::size_t i = 0; i < test.prediction.size(); ++i) {
      Case near = test;
      near.prediction[i] += step;
      const double above = on_mesh(loss, near, scale, {}).loss;
      near.prediction[i] -= 2 * step;
      slopes.push_back(scale * (above - on_mesh(loss, near, scale, {}).loss) / (2 * step));
    }
    EXPECT_LE(relative_difference(one.gradient.at("prediction"), slopes), 1e-7);
    for (const Sizes& sizes : kMeshes) {
      const Answer many = on_mesh(loss, test, scale, sizes);
      EXPECT_NEAR(many.loss / one.loss, 1, 1e-13);
      EXPECT_LE(relative_difference(many.gradient.at("prediction"), one.gradient.at("prediction")), 1e-13);
    }
  }
}

/// MONAI's DiceLoss(softmax=True, include_background=False, smooth_nr=s, smooth_dr=s), by loops, and
/// torch.nn.functional.cross_entropy of all classes beside it.
TEST(ClassLosses, WithoutBackgroundDiceIsTheMeanOfTheOtherClasses) {
  const std::size_t samples = 2, points = 12, classes = 4;
  Case test{{2, 3, 2, 2, 4}, {}, {}};
  const RandomStream random(3, RandomPurpose::kNoise, "background");
  for (std::size_t i = 0; i < samples * points * classes; ++i)
    test.prediction.push_back(2 * random.normal({0}, i));
  for (std::size_t i = 0; i < samples * points; ++i)
    test.target.push_back(std::floor(4 * random.uniform({1}, i)));
  const double smoothing = 0.4;
  double dice = 0, entropy = 0;
  for (std::size_t b = 0; b < samples; ++b) {
    std::vector<double> predicted(classes, 0), labelled(classes, 0), both(classes, 0);
    double surprise = 0;
    for (std::size_t i = 0; i < points; ++i) {
      const double* const logits = test.prediction.data() + (b * points + i) * classes;
      const auto label = static_cast<std::size_t>(test.target[b * points + i]);
      double sum = 0;
      for (std::size_t k = 0; k < classes; ++k) sum += std::exp(logits[k]);
      for (std::size_t k = 0; k < classes; ++k) predicted[k] += std::exp(logits[k]) / sum;
      labelled[label] += 1;
      both[label] += std::exp(logits[label]) / sum;
      surprise -= std::log(std::exp(logits[label]) / sum);
    }
    entropy += surprise / static_cast<double>(points * samples);
    for (std::size_t k = 1; k < classes; ++k) {
      const double found = (2 * both[k] + smoothing) / (predicted[k] + labelled[k] + smoothing);
      dice += (1 - found) / static_cast<double>((classes - 1) * samples);
    }
  }
  const auto loss_of = [&](const Json& options) {
    return on_mesh(ClassLoss(class_loss_options(configured(options)), 4, {1, 1, 1}), test, 1.0, {}).loss;
  };
  Json options = {{"type", "dice"}, {"smoothing", smoothing}, {"include_background", false}};
  EXPECT_NEAR(loss_of(options), dice, 1e-13);
  const Json term = options;
  options["type"] = "dice_cross_entropy";
  EXPECT_NEAR(loss_of(options), dice + entropy, 1e-13);
  EXPECT_NEAR(loss_of({{"type", "sum"}, {"terms", {term, {{"type", "cross_entropy"}}}}}), dice + entropy,
              1e-13);
  options["include_background"] = true;
  EXPECT_GT(std::abs(loss_of(options) - dice - entropy), 1e-3);
}

/// MONAI's DiceLoss(softmax=True, batch=True, smooth_nr=s, smooth_dr=s) and torch.nn.functional.cross_entropy
/// of a batch by loops, also where points of a sample, or all of one, do not count; gradients by central
/// differences; on every mesh.
TEST(ClassLosses, OfABatchAreThoseOfAllItsSamplesTogether) {
  const std::size_t samples = 3, points = 12, classes = 3;
  Case test{{3, 2, 3, 2, 3}, {}, {}};
  const RandomStream random(7, RandomPurpose::kNoise, "batch");
  for (std::size_t i = 0; i < samples * points * classes; ++i)
    test.prediction.push_back(2 * random.normal({0}, i));
  for (std::size_t i = 0; i < samples * points; ++i) {
    const bool ignored = i % 5 == 0 || i / points == 1;
    test.target.push_back(ignored ? NAN : std::floor(3 * random.uniform({1}, i)));
  }
  const std::vector<double> rows = {0.7, 1.3}, weights = {1, 0.5, 2};
  const double smoothing = 0.4;
  const auto loops = [&](const std::vector<double>& logits) {
    std::vector<double> predicted(classes, 0), labelled(classes, 0), both(classes, 0);
    double surprise = 0, weight = 0;
    for (std::size_t i = 0; i < samples * points; ++i) {
      if (std::isnan(test.target[i])) continue;
      const auto label = static_cast<std::size_t>(test.target[i]);
      const double* const z = logits.data() + i * classes;
      const double sum = std::exp(z[0]) + std::exp(z[1]) + std::exp(z[2]), row = rows[i % points / 6];
      for (std::size_t k = 0; k < classes; ++k) predicted[k] += row * std::exp(z[k]) / sum;
      labelled[label] += row;
      both[label] += row * std::exp(z[label]) / sum;
      surprise -= row * weights[label] * std::log(std::exp(z[label]) / sum);
      weight += row * weights[label];
    }
    double dice = 0;
    for (std::size_t k = 0; k < classes; ++k)
      dice += weights[k] / 3.5 * (1 - (2 * both[k] + smoothing) / (predicted[k] + labelled[k] + smoothing));
    return std::pair(surprise / weight, dice);
  };
  for (const std::string& name : kClassLosses) {
    SCOPED_TRACE(name);
    const auto wanted = [&](const std::vector<double>& logits) {
      const auto [entropy, dice] = loops(logits);
      return name == "cross_entropy" ? entropy : name == "dice" ? dice : entropy + dice;
    };
    Json options = {{"type", name}, {"batch", true}, {"class_weights", weights}};
    if (name != "cross_entropy") options["smoothing"] = smoothing;
    const ClassLoss loss(class_loss_options(configured(options)), 3, rows);
    expect_as_loops(loss, test, wanted);
  }
}

/// torch.nn.functional.binary_cross_entropy_with_logits over the points that count, and Dice of sigmoids, by
/// loops; gradients by central differences; on every mesh.
TEST(ClassLosses, OfRegionsAreBinaryCrossEntropyAndDiceOfEach) {
  const std::size_t samples = 3, points = 12, regions = 3;
  Case test{{3, 2, 3, 2, 3}, {}, {}};
  const RandomStream random(5, RandomPurpose::kNoise, "regions");
  for (std::size_t i = 0; i < samples * points * regions; ++i) {
    const bool ignored = i / regions % 5 == 0 || i / (points * regions) == 1;
    test.prediction.push_back(2 * random.normal({0}, i));
    test.target.push_back(ignored ? NAN : std::floor(2 * random.uniform({1}, i)));
  }
  const std::vector<double> rows = {0.7, 1.3};
  const double smoothing = 0.4;
  const auto loops = [&](const std::vector<double>& logits) {
    double entropy = 0, dice = 0;
    for (const std::size_t b : {0U, 2U}) {  // nothing of the second one counts
      for (std::size_t r = 0; r < regions; ++r) {
        double surprise = 0, count = 0, both = 0, sum = 0;
        for (std::size_t i = 0; i < points; ++i) {
          const double z = logits[(b * points + i) * regions + r],
                       t = test.target[(b * points + i) * regions + r], weight = rows[i / 6];
          if (std::isnan(t)) continue;
          const double p = 1 / (1 + std::exp(-z));
          surprise -= weight * (t * std::log(p) + (1 - t) * std::log(1 - p));
          count += weight;
          both += weight * t * p;
          sum += weight * (t + p);
        }
        entropy += surprise / count / 6;
        dice += (1 - (2 * both + smoothing) / (sum + smoothing)) / 6;
      }
    }
    return std::pair(entropy, dice);
  };
  for (const std::string& name : kClassLosses) {
    SCOPED_TRACE(name);
    const auto wanted = [&](const std::vector<double>& logits) {
      const auto [entropy, dice] = loops(logits);
      return name == "cross_entropy" ? entropy : name == "dice" ? dice : entropy + dice;
    };
    Json options = {{"type", name}};
    if (name != "cross_entropy") options["smoothing"] = smoothing;
    const ClassLoss loss(class_loss_options(configured(options), true), 3, rows);
    expect_as_loops(loss, test, wanted);
  }
}

TEST(ClassLosses, ScoreWhatIsLikeliest) {
  // Two samples of three points, two classes: labels 0 0 1 and 1 1 none; chosen 0 1 1 and 1 0 0.
  const Case test{{2, 1, 1, 3, 2}, {5, 0, 0, 1, -3, -2, 0, 1, 2, 1, 4, 0}, {0, 0, 1, 1, 1, NAN}};
  const ClassLoss loss({{{ClassTerm::Kind::kDice}}}, 2, {1.0});
  testing::run_test_ranks(1, [&](Communicator& world) {
    Mesh mesh(world, 1, {1, 1, 1}, 1);
    const Rank rank{world.context(), mesh};
    const Layout layout = mesh.field_layout(test.shape);
    const SampleClassSums sums =
        loss.sums(rank, {testing::cut_piece(rank, layout, DType::kFloat64, test.prediction), layout},
                  testing::cut_piece(rank, loss.target_layout(mesh, layout), DType::kFloat64, test.target))
            .read(rank.context);
    EXPECT_DOUBLE_EQ(sums.accuracy(), 3.0 / 5);
    EXPECT_DOUBLE_EQ(sums.dice(0), 2.0 * 1 / (2 + 2));
    EXPECT_DOUBLE_EQ(sums.dice(1), 2.0 * 2 / (3 + 3));
    EXPECT_DOUBLE_EQ(sums.merged(rank).dice(1), sums.dice(1));
    EXPECT_DOUBLE_EQ(sums.merged(rank).accuracy(), sums.accuracy());
  });
  const SampleClassSums nobody{{}, 1, 2, std::vector<double>(std::size_t{2} * ClassSums::kKinds, 0.0)};
  EXPECT_TRUE(std::isnan(nobody.dice(0))) << "neither labelled nor chosen";
}

TEST(ClassLosses, AreNoNumberAndPushNothingWhereNothingIsLabelled) {
  const Case test{{1, 2, 1, 2, 2}, std::vector<double>(8, 0.5), std::vector<double>(4, NAN)};
  const ClassLossOptions options{{{ClassTerm::Kind::kDice}, {ClassTerm::Kind::kCrossEntropy}}};
  const Answer answer = on_mesh(ClassLoss(options, 2, {1, 1}), test, 1.0, {1, {2, 1, 1}, 1});
  EXPECT_TRUE(std::isnan(answer.loss));
  EXPECT_EQ(answer.gradient.at("prediction"), std::vector<double>(8, 0.0));
}

TEST(ClassLosses, OptionsThatDoNotFitAreErrors) {
  const auto message = [](const std::function<void()>& action) -> std::string {
    try {
      action();
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "no error";
  };
  const auto of_classes = [](const Json& loss) { return class_loss_options(configured(loss)); };
  EXPECT_NE(message([&] { of_classes({{"type", "mse"}}); }).find("loss.type"), std::string::npos);
  EXPECT_NE(message([&] {
              field_loss_options(configured({{"type", "cross_entropy"}}));
            }).find("data.classes"),
            std::string::npos);
  const auto weighted = [&](const Json& weights) {
    return message([&] { ClassLoss(of_classes({{"type", "dice"}, {"class_weights", weights}}), 2, {1}); });
  };
  EXPECT_NE(weighted({1, 2, 3}).find("loss.class_weights"), std::string::npos);
  EXPECT_NE(weighted({0, 0}).find("above 0"), std::string::npos);
  const Json background = {{"type", "dice"}, {"class_weights", {1, 0}}, {"include_background", false}};
  EXPECT_NE(message([&] { ClassLoss(of_classes(background), 2, {1}); }).find("classes 1 and up"),
            std::string::npos);

  const auto of_regions = [&](const Json& loss) {
    return message([&] { class_loss_options(configured(loss), true); });
  };
  EXPECT_EQ(of_regions({{"type", "dice"}}), "no error");
  EXPECT_EQ(of_regions({{"type", "dice"}, {"class_weights", {1, 2}}}).find("loss.class_weights must be []"),
            0U);
  EXPECT_EQ(of_regions({{"type", "dice"}, {"class_weights", "frequency"}}).find("loss.class_weights"), 0U);
  EXPECT_EQ(of_regions({{"type", "dice"}, {"include_background", false}}).find("loss.include_background"),
            0U);
  EXPECT_NE(of_regions({{"type", "mse"}}).find("loss.type"), std::string::npos);

  // Each type has keys of its own, and a sum terms of one kind.
  const auto refused = [&](const Json& loss) { return message([&] { configured(loss); }); };
  EXPECT_NE(refused({{"type", "mse"}, {"class_weights", {1, 2}}}).find("unknown key loss.class_weights"),
            std::string::npos);
  EXPECT_NE(refused({{"type", "dice"}, {"variable_weights", {{"a", 1}}}}).find("loss.variable_weights"),
            std::string::npos);
  const auto sum = [](const Json& terms) { return Json{{"type", "sum"}, {"terms", terms}}; };
  const Json mse = {{"type", "mse"}}, dice = {{"type", "dice"}};
  EXPECT_NE(refused(sum({mse, dice})).find("loss.terms must all"), std::string::npos);
  EXPECT_NE(refused(sum(Json::array())).find("loss.terms"), std::string::npos);
  EXPECT_NE(refused(sum({{{"type", "mse"}, {"weight", 0}}})).find("above 0"), std::string::npos);
  Json labelled = sum({mse, mse});
  labelled["class_weights"] = {1, 2};
  EXPECT_NE(refused(labelled).find("loss.class_weights"), std::string::npos);
  EXPECT_EQ(refused(sum({mse, {{"type", "l1"}, {"weight", 0.1}}})), "no error");
  EXPECT_EQ(refused(sum({dice, {{"type", "cross_entropy"}}})), "no error");
}

}  // namespace
}  // namespace jigsaw
