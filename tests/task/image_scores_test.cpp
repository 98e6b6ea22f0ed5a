// Scores of images over tiles and meshes against plain loops over the whole validation part.
#include <gtest/gtest.h>

#include <cmath>
#include <mutex>

#include "images/image_data.h"
#include "support/pieces.h"
#include "support/source_dir.h"
#include "support/test_ranks.h"
#include "task/metric.h"
#include "task/scores.h"

namespace jigsaw {
namespace {

std::string fixtures() {
  return testing::source_dir() + "/tests/io/fixtures/images";
}

const Shape kVolume{11, 9, 10};
constexpr double kSigma = 0.25, kPeak = 5;

DataOptions volume_options(Task task) {
  DataOptions options;
  options.task = task;
  options.files = {"volume.h5"};
  options.variables = {{"scan/density", {}}};
  options.dims = {ImageDim::kDepth, ImageDim::kHeight, ImageDim::kWidth};
  options.train = {SliceRanges{{{ImageDim::kDepth, {0, 6}}}}};
  options.valid = {SliceRanges{{{ImageDim::kDepth, {5, 10}}}}};
  options.crop = {5, 4, 6};
  if (task == Task::kDenoise) {
    options.noise_sigma = kSigma;
  } else {
    options.targets = {{"labels", {}}};
    options.classes = 3;
    options.ignore_index = 255;
  }
  return options;
}

/// A made-up prediction for a point of the volume, whatever tile it is seen in.
double predicted(std::int64_t point, std::int64_t channel) {
  return std::sin(0.7 * static_cast<double>(point) + 2.0 * static_cast<double>(channel));
}

/// The rank's part of such predictions for a batch of tiles, [B, D, H, W, channels].
Array predictions(const Rank& rank, const ImageData& data, const SampleRequest& request,
                  const Layout& layout) {
  return testing::make_piece(rank, layout, DType::kFloat64, [&](std::int64_t index) {
    const std::int64_t channels = layout.global.back(), voxel = index / channels;
    const auto sample = static_cast<std::size_t>(voxel / 120);
    const Box& box = data.tiles()[static_cast<std::size_t>(request.samples[sample])].box;
    const std::int64_t i = voxel % 120;
    const std::int64_t z = box.begin[0] + i / 24, y = box.begin[1] + i / 6 % 4, x = box.begin[2] + i % 6;
    return predicted((z * 9 + y) * 10 + x, index % channels);
  });
}

struct Sizes {
  int data = 1;
  std::vector<int> domain = {1, 1, 1};
  int tensor = 1;
  int ranks() const { return data * domain[0] * domain[1] * domain[2] * tensor; }
};
const std::vector<Sizes> kMeshes = {
    {}, {1, {2, 1, 1}, 1}, {1, {2, 2, 1}, 1}, {1, {1, 1, 1}, 2}, {2, {1, 1, 1}, 1}, {1, {1, 1, 2}, 2}};

/// Validates with batches of three tiles.
ValidationResult validate(const DataOptions& options, std::int64_t outputs, const Sizes& sizes) {
  ValidationResult result;
  std::mutex mutex;
  testing::run_test_ranks(sizes.ranks(), [&](Communicator& world) {
    ImageData data(options, fixtures(), 1, {2, 1, 3}, world);
    Mesh mesh(world, sizes.data, sizes.domain, sizes.tensor);
    const Rank rank{world.context(), mesh};
    const std::vector<double> rows(5, 1.0);
    const FieldLoss numbers({}, rows, {"density"});
    const ClassLoss classes({{{ClassTerm::Kind::kDice}}}, 3, rows);
    const bool of_numbers = options.classes == 0;
    const Loss& loss = of_numbers ? static_cast<const Loss&>(numbers) : classes;
    const auto scores =
        of_numbers ? make_image_scores(data, numbers, {kPeak}) : make_class_scores(data, classes);
    const auto reader = data.open_reader();
    for (std::int64_t first = 0; first < data.count(Split::kValid); first += 3) {
      SampleRequest request;
      request.split = Split::kValid;
      for (std::int64_t i = first; i < std::min(first + 3, data.count(Split::kValid)); ++i)
        request.samples.push_back(i);
      const Layout layout = mesh.field_layout({std::ssize(request.samples), 5, 4, 6, outputs});
      Layout input = mesh.field_layout({std::ssize(request.samples), 5, 4, 6, 1});
      request.input = rank.box(input);
      request.target = rank.box(loss.target_layout(mesh, layout));
      request.baseline = true;
      request.origin = !options.transforms.empty();
      request.dtype = DType::kFloat64;
      const Batch batch = upload(rank.context, reader->read(request, rank.context.host()));
      scores->add(rank, 0, {predictions(rank, data, request, layout), layout}, batch);
    }
    const std::lock_guard lock(mutex);
    result = scores->result();
  });
  return result;
}

TEST(ImageScores, AreThoseOfTheWholePartOnEveryMesh) {
  double squares = 0, sum = 0, input = 0, count = 0;
  ImageFiles files({fixtures() + "/volume.h5"}, {ImageDim::kDepth, ImageDim::kHeight, ImageDim::kWidth});
  const Field density = files.select({"scan/density", {}}).at(0);
  std::vector<double> clean(990);
  files.read(density, 0, Box::whole(kVolume), clean);
  const RandomStream random(1, RandomPurpose::kNoise, "valid");
  for (std::int64_t point = 5 * 90; point < 990; ++point) {
    if (std::isnan(clean[static_cast<std::size_t>(point)])) continue;
    const double noise = kSigma * random.normal({0, 0, 0}, static_cast<std::uint64_t>(point));
    const double denoised = clean[static_cast<std::size_t>(point)] + noise + kSigma * predicted(point, 0);
    const double error = denoised - clean[static_cast<std::size_t>(point)];
    squares += error * error;
    sum += error;
    input += noise * noise;
    count += 1;
  }
  const double rmse = std::sqrt(squares / count), input_rmse = std::sqrt(input / count);
  for (const Sizes& sizes : kMeshes) {
    SCOPED_TRACE(sizes.ranks());
    const ValidationResult result = validate(volume_options(Task::kDenoise), 1, sizes);
    const Json& scores = result.metrics(0).at("scan/density");
    EXPECT_NEAR(scores.at("rmse").get<double>(), rmse, 1e-12);
    EXPECT_NEAR(scores.at("bias").get<double>(), sum / count, 1e-12);
    EXPECT_NEAR(scores.at("psnr").get<double>(), 10 * std::log10(kPeak * kPeak / (squares / count)), 1e-10);
    EXPECT_NEAR(scores.at("input_rmse").get<double>(), input_rmse, 1e-12);
    EXPECT_NEAR(result.loss, squares / count / kSigma / kSigma, 1e-11);
  }
}

/// Labels as if they were numbers, which are transformed and predicted within a range; the loss is of
/// transformed ones.
TEST(ImageScores, OfTransformedTargetsAreInTheUnitOfTheFilesOnEveryMesh) {
  constexpr double kEpsilon = 0.5, kLow = 0.5, kHigh = 2;
  DataOptions options = volume_options(Task::kMap);
  options.classes = 0;
  options.ignore_index.reset();
  options.transforms = {{"labels", {TransformKind::kLog, kEpsilon}}};
  options.clamp = {{"labels", {kLow, kHigh}}};
  ImageFiles files({fixtures() + "/volume.h5"}, {ImageDim::kDepth, ImageDim::kHeight, ImageDim::kWidth});
  std::vector<double> truth(990);
  files.read(files.select({"labels", {}}).at(0), 0, Box::whole(kVolume), truth);
  double mean = 0, variance = 0;
  for (std::size_t i = 0; i < 7 * 90; ++i) mean += std::log(truth[i] + kEpsilon) / (7 * 90);
  for (std::size_t i = 0; i < 7 * 90; ++i)
    variance += std::pow(std::log(truth[i] + kEpsilon) - mean, 2) / (7 * 90);
  double squares = 0, errors = 0, losses = 0, at_low = 0;
  constexpr double kCount = 6 * 90;
  for (std::int64_t point = 5 * 90; point < 990; ++point) {
    const double y = predicted(point, 0), label = truth[static_cast<std::size_t>(point)];
    const double state = std::clamp(std::exp(mean + std::sqrt(variance) * y) - kEpsilon, kLow, kHigh);
    squares += (state - label) * (state - label) / kCount;
    errors += (state - label) / kCount;
    losses += std::pow(y - (std::log(label + kEpsilon) - mean) / std::sqrt(variance), 2) / kCount;
    at_low += state == kLow ? 1 : 0;
  }
  EXPECT_GT(at_low, 0);
  for (const Sizes& sizes : kMeshes) {
    SCOPED_TRACE(sizes.ranks());
    const ValidationResult result = validate(options, 1, sizes);
    const Json& scores = result.metrics(0).at("labels");
    EXPECT_NEAR(scores.at("rmse").get<double>() / std::sqrt(squares), 1, 1e-12);
    EXPECT_NEAR(scores.at("bias").get<double>() / errors, 1, 1e-11);
    EXPECT_NEAR(scores.at("psnr").get<double>(), 10 * std::log10(kPeak * kPeak / squares), 1e-10);
    EXPECT_NEAR(result.loss / losses, 1, 1e-12);
  }
}

TEST(ClassScores, AreThoseOfTheWholePartOnEveryMesh) {
  ImageFiles files({fixtures() + "/volume.h5"}, {ImageDim::kDepth, ImageDim::kHeight, ImageDim::kWidth});
  const Field field = files.select({"labels", {}}).at(0);
  std::vector<double> labels(990);
  files.read(field, 0, Box::whole(kVolume), labels);
  double right = 0, count = 0, overlap = 0;
  std::vector<double> hits(3), both(3), shared(3), probable(3), labelled(3);
  for (std::int64_t point = 5 * 90; point < 990; ++point) {
    const double label = labels[static_cast<std::size_t>(point)];
    if (label == 255) continue;
    double total = 0;
    std::size_t best = 0;
    for (std::int64_t k = 0; k < 3; ++k) {
      total += std::exp(predicted(point, k));
      if (predicted(point, k) > predicted(point, static_cast<std::int64_t>(best)))
        best = static_cast<std::size_t>(k);
    }
    for (std::int64_t k = 0; k < 3; ++k) {
      const double p = std::exp(predicted(point, k)) / total;
      const auto at = static_cast<std::size_t>(k);
      probable[at] += p;
      if (label == static_cast<double>(k)) shared[at] += p;
    }
    const auto q = static_cast<std::size_t>(label);
    labelled[q] += 1;
    both[q] += 1;
    both[best] += 1;
    if (best == q) hits[q] += 1;
    right += best == q ? 1 : 0;
    count += 1;
  }
  for (std::size_t k = 0; k < 3; ++k) overlap += (2 * shared[k] + 1) / (probable[k] + labelled[k] + 1) / 3;
  for (const Sizes& sizes : kMeshes) {
    SCOPED_TRACE(sizes.ranks());
    const ValidationResult result = validate(volume_options(Task::kMap), 3, sizes);
    const Json& scores = result.metrics(0).at("labels");
    EXPECT_NEAR(scores.at("accuracy").get<double>(), right / count, 1e-14);
    for (std::size_t k = 0; k < 3; ++k) {
      EXPECT_NEAR(scores.at("dice")[k].get<double>(), 2 * hits[k] / both[k], 1e-14);
    }
    EXPECT_NEAR(scores.at("mean_dice").get<double>(),
                2.0 / 3 * (hits[0] / both[0] + hits[1] / both[1] + hits[2] / both[2]), 1e-14);
    const double foreground = hits[1] / both[1] + hits[2] / both[2];  // 2·hits/both of each, halved
    const Json numbers = result.numbers(DataOptions());
    EXPECT_NEAR(number_in(numbers, "labels.foreground_dice").value(), foreground, 1e-14);
    EXPECT_NEAR(number_in(numbers, "labels.dice.1").value(), 2 * hits[1] / both[1], 1e-14);
    EXPECT_NE(number_in(numbers, "labels.dice.1"), number_in(numbers, "labels.dice.2"));
    EXPECT_EQ(number_in(numbers, "labels.accuracy"), scores.at("accuracy").get<double>());
    EXPECT_EQ(number_in(numbers, "loss"), result.loss);
    EXPECT_EQ(number_in(numbers, "labels.dice_1"), std::nullopt);
    EXPECT_NEAR(result.loss, 1 - overlap, 1e-12);
  }
}

}  // namespace
}  // namespace jigsaw
