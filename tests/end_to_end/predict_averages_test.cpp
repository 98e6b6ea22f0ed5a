// Predictions of images averaged over mirrored windows and over several checkpoints.
#include <algorithm>

#include "end_to_end/image_predictions.h"

namespace jigsaw::e2e {
namespace predict_averages_test {

using namespace image_predictions;

using AveragesOfImages = ImagePredictions;

constexpr std::int64_t kSamples = 5, kRows = 9, kColumns = 10;

/// [samples, rows, columns, channels], mirrored along the dims whose bits are set: rows, columns.
std::vector<double> mirrored(const std::vector<double>& values, unsigned dims) {
  const std::int64_t channels = std::ssize(values) / (kSamples * kRows * kColumns);
  std::vector<double> result(values.size());
  std::size_t at = 0;
  for (std::int64_t s = 0; s < kSamples; ++s)
    for (std::int64_t row = 0; row < kRows; ++row)
      for (std::int64_t column = 0; column < kColumns; ++column)
        for (std::int64_t c = 0; c < channels; ++c, ++at) {
          const std::int64_t y = (dims & 1) != 0 ? kRows - 1 - row : row,
                             x = (dims & 2) != 0 ? kColumns - 1 - column : column;
          result[at] = values[static_cast<std::size_t>(((s * kRows + y) * kColumns + x) * channels + c)];
        }
  return result;
}

/// What the mean of the logits is in probabilities, which say the logits but for a number of each point.
std::vector<double> mean_of_logits(const std::vector<std::vector<double>>& shares) {
  std::vector<double> result(shares[0].size());
  for (std::size_t i = 0; i < result.size(); i += 2) {
    double difference = 0;
    for (const std::vector<double>& of : shares)
      difference += std::log(of[i + 1] / of[i]) / static_cast<double>(shares.size());
    result[i + 1] = 1 / (1 + std::exp(-difference));
    result[i] = 1 - result[i + 1];
  }
  return result;
}

Json segmenting_in_windows() {
  Json data = segmenting();
  data["crop"] = {5, 6};  // with an overlap of 0.2 from 0 and 4 on, along both dims
  return data;
}

/// Against the same pictures mirrored in their files.
TEST_F(AveragesOfImages, MirroredWindowsAreMirroredPictures) {
  Json json = config(segmenting_in_windows(), {3, 2});
  json["loss"] = {{"type", "cross_entropy"}};
  train("segment", json);
  const std::vector<double> pictures = values(fixture("pictures.h5"), "images");
  const OutputImage image{"images",
                          OutputImage::Type::kFloat,
                          {"sample", "height", "width", "channel"},
                          {kSamples, kRows, kColumns, 3},
                          {},
                          {}};
  const std::string probabilities = "--classes probabilities --overlap 0.2 --input ";
  std::vector<std::vector<double>> shares;
  for (unsigned dims = 0; dims < 4; ++dims) {
    const std::string file = folder_ / ("mirrored_" + std::to_string(dims) + ".h5");
    write_image(file, ImageFormat::kHdf5, {image}, {mirrored(pictures, dims)});
    predict(1, "segment", "one.h5", probabilities + file);
    shares.push_back(mirrored(values(folder_ / "one.h5", "masks"), dims));
  }
  EXPECT_GT(largest_difference(shares[0], shares[3]), 1e-3) << "mirrored pictures are others to the model";
  const std::string all = probabilities + (folder_ / "mirrored_0.h5") + " --mirror height width";
  const std::vector<double> wanted = mean_of_logits(shares);
  for (const MeshCase& mesh :
       std::vector<MeshCase>{{"{}", 1}, {R"({"domain":[3,1]})", 3}, {R"({"domain":[1,2],"data":2})", 4}}) {
    predict(mesh.ranks, "segment", "all.h5", all + " --set 'mesh=" + mesh.json + "'");
    const double worst = largest_difference(values(folder_ / "all.h5", "masks"), wanted);
    std::printf("%-25s %d ranks: mirrored windows and pictures differ by %.1e\n", mesh.json, mesh.ranks,
                worst);
    EXPECT_LE(worst, 2e-6) << mesh.json;
  }
  predict(2, "segment", "all.h5",
          probabilities + (folder_ / "mirrored_0.h5") + " --mirror width --set 'mesh={\"domain\":[1,2]}'");
  EXPECT_LE(largest_difference(values(folder_ / "all.h5", "masks"), mean_of_logits({shares[0], shares[2]})),
            2e-6);
  const Outcome refused = command(1, "predict", "segment", "--output x.h5 --mirror depth");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("--mirror depth: images have height and width"), std::string::npos)
      << refused.err;
}

/// Of models whose fields are normalised by statistics of their own.
TEST_F(AveragesOfImages, OfSeveralCheckpointsAreMeansOfNumbers) {
  Json data = segmenting();
  data["variables"] = {{{"name", "images"}, {"levels", {0, 1}}}};
  data["targets"] = {{{"name", "images"}, {"levels", {2}}}};
  data.erase("classes");
  std::vector<double> mean(kSamples * kRows * kColumns);
  for (const int fold : {0, 1, 2}) {
    data["train"] = {{"sample", {fold, fold + 1}}};
    train("fold" + std::to_string(fold), config(data, {3, 2}));
    predict(1, "fold" + std::to_string(fold), "one.h5");
    const std::vector<double> one = values(folder_ / "one.h5", "images");
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += one[i] / 3;
  }
  EXPECT_GT(largest_difference(mean, values(folder_ / "one.h5", "images")), 1e-3);
  const std::string others = "--checkpoint " + (folder_ / "fold1") + " " + (folder_ / "fold2");
  for (const MeshCase& mesh :
       std::vector<MeshCase>{{"{}", 1}, {R"({"domain":[2,1]})", 2}, {R"({"tensor":3})", 3}}) {
    predict(mesh.ranks, "fold0", "mean.h5", others + " --set 'mesh=" + mesh.json + "'");
    const double worst = largest_difference(values(folder_ / "mean.h5", "images"), mean);
    std::printf("%-20s %d ranks: the mean of three models differs by %.1e\n", mesh.json, mesh.ranks, worst);
    EXPECT_LE(worst, 1e-6) << mesh.json;
  }
  // evaluate scores the mean.
  const std::vector<double> truth = values(fixture("pictures.h5"), "images");
  double squares = 0;
  for (std::size_t i = 4 * 90; i < 5 * 90; ++i) squares += std::pow(mean[i] - truth[3 * i + 2], 2) / 90;
  const Json found = scores(2, "fold0", others + " --set 'mesh={\"domain\":[1,2]}'");
  EXPECT_NEAR(found["scores"]["images_2"]["rmse"]["mean"].get<double>() / std::sqrt(squares), 1, 1e-6);
  EXPECT_NE(found["source"].get<std::string>().find("fold2"), std::string::npos) << found["source"];
}

TEST_F(AveragesOfImages, OfSeveralCheckpointsAreMeansOfLogits) {
  std::vector<std::vector<double>> shares;
  Json json = config(segmenting_in_windows(), {3, 2});
  json["loss"] = {{"type", "cross_entropy"}};
  for (const int seed : {1, 2}) {
    json["seed"] = seed;
    train("seed" + std::to_string(seed), json);
    predict(1, "seed" + std::to_string(seed), "one.h5", "--classes probabilities");
    shares.push_back(values(folder_ / "one.h5", "masks"));
  }
  EXPECT_GT(largest_difference(shares[0], shares[1]), 1e-3);
  const std::string both = "--checkpoint " + (folder_ / "seed2");
  predict(2, "seed1", "both.h5", both + " --classes probabilities --set 'mesh={\"domain\":[2,1]}'");
  EXPECT_LE(largest_difference(values(folder_ / "both.h5", "masks"), mean_of_logits(shares)), 2e-6);
  // evaluate's labels are those of predict, mirrored windows, too.
  predict(1, "seed1", "labels.h5", both + " --mirror height width");
  const std::vector<double> labels = values(folder_ / "labels.h5", "masks"),
                            truth = values(fixture("pictures.h5"), "masks");
  double right = 0;
  for (std::size_t i = 4 * 90; i < 5 * 90; ++i) right += labels[i] == truth[i] ? 1 : 0;
  const Json found = scores(2, "seed1", both + " --mirror height width --set 'mesh={\"data\":2}'");
  EXPECT_NEAR(found["scores"]["masks"]["accuracy"]["mean"].get<double>(), right / 90, 1e-12);

  json["model"]["depth"] = 2;
  train("other", json);
  struct Refused {
    std::string arguments;
    int exit_code;
    const char* says;
  };
  for (const Refused& refused : std::vector<Refused>{
           {"--checkpoint " + (folder_ / "./seed1"), 2, "twice"},
           {"--set 'data.regions=[1]'", 4, "is of another model than the configuration: data.regions"},
           {"--checkpoint " + (folder_ / "other"), 4,
            "is of another model than the configuration: model.depth"}}) {
    const Outcome outcome =
        command(2, "predict", "seed1", "--output " + (folder_ / "no.h5") + " " + refused.arguments);
    EXPECT_EQ(outcome.exit_code, refused.exit_code) << outcome.err;
    ASSERT_EQ(outcome.errors().size(), 1U) << outcome.err;
    EXPECT_NE(outcome.errors()[0].find(refused.says), std::string::npos) << outcome.err;
  }
  const Outcome forecast =
      run(1, "predict --config " + source_dir() + "/configs/era5_uk_mixer.json --checkpoint a b --output " +
                 (folder_ / "no.nc"));
  EXPECT_EQ(forecast.exit_code, 2);
  EXPECT_NE(forecast.err.find("forecasts are of one"), std::string::npos) << forecast.err;
}

}  // namespace predict_averages_test
}  // namespace jigsaw::e2e
