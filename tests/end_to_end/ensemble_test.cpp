// Ensembles that a model makes: one function on every mesh in training, validation, forecasts and scores, and
// scores that loops over the forecasts find.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "end_to_end/trained_forecasts.h"

namespace jigsaw::e2e {
namespace ensemble_test {

constexpr std::size_t kRows = 37, kColumns = 72, kPoints = kRows * kColumns;
constexpr std::size_t kMembers = 3, kLeads = 2, kWindows = 10;

class Ensemble : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    shared_ = std::make_unique<TemporaryFolder>();
    ASSERT_EQ(run(1, "sample-data --output " + data()).exit_code, 0);
    folder().write("config.json", config().dump());
    const Outcome outcome = run(1, with_config() + "--set output=" + (folder() / "run"));
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  }
  static void TearDownTestSuite() { shared_.reset(); }

  static const TemporaryFolder& folder() { return *shared_; }
  static std::string data() { return folder() / "data"; }
  static std::string with_config() { return "--config " + (folder() / "config.json") + " "; }
  static std::string of_run() { return with_config() + "--checkpoint " + (folder() / "run") + " "; }

  /// Of three samples of three members at a time, over two leads, of one variable with a transform and one
  /// that changes its sign over the poles.
  static Json config() {
    return {{"data",
             {{"files", {data() + "/*.nc"}},
              {"variables", {"t2m", "u10"}},
              {"transforms", {{"t2m", "sqrt"}}},
              {"forcings", {"latitude", "time_of_day"}},
              {"lead_hours", 6},
              {"train", {"2021-01-02", "2021-01-12"}},
              {"valid", {"2021-02-01", "2021-02-03"}}}},
            {"model", mixer_with_dropout(12)},
            {"ensemble", {{"members", kMembers}, {"local_noise", 2}, {"global_noise", 3}}},
            {"loss", {{"type", "sum"}, {"terms", {{{"type", "crps"}}, {{"type", "mse"}, {"weight", 0.1}}}}}},
            {"optimizer", {{"learning_rate", 5e-3}}},
            {"train",
             {{"steps", 6}, {"batch_size", 6}, {"accumulate", 2}, {"precision", "fp64"}, {"rollout", 2}}},
            {"validation", {{"every", 3}}},
            {"checkpoint", {{"every", 6}, {"best", "t2m.crps"}}}};
  }

  static NetcdfReader predict(int ranks, const std::string& output, const std::string& more) {
    const Outcome outcome =
        run(ranks, "predict " + of_run() + "--overwrite --output " + (folder() / output) + " " + more);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return NetcdfReader(folder() / output);
  }

 private:
  inline static std::unique_ptr<TemporaryFolder> shared_;
};

/// Groups that hold whole samples, and groups that part a sample's members; cut rows, columns and channels,
/// where some rank holds nothing but noise.
const std::vector<MeshCase> kMeshes = {{"{\"data\":3}", 3},   {"{\"data\":2}", 2},
                                       {"{\"data\":4}", 4},   {"{\"domain\":[2,1]}", 2},
                                       {"{\"tensor\":2}", 2}, {"{\"data\":2,\"domain\":[1,2]}", 4}};

/// Of training and validation.
std::vector<double> numbers_of(const std::string& run) {
  std::vector<double> all;
  for (const char* kind : {"train", "valid"}) {
    for (const Json& line : metrics(run, kind)) {
      all.push_back(line.at("loss").get<double>());
      if (!line.contains("metrics")) continue;
      for (const auto& [variable, scores] : line.at("metrics").items()) {
        for (const char* measure : {"rmse", "bias", "crps", "spread", "spread_skill"})
          all.push_back(scores.at(measure).get<double>());
      }
    }
  }
  return all;
}

/// Those of them on which forecasts and scores are tried.
const std::vector<MeshCase> kSomeMeshes = {kMeshes[1], kMeshes[4], kMeshes[5]};

TEST_F(Ensemble, LearnsTheSameOnEveryMesh) {
  const std::vector<double> one = numbers_of(folder() / "run");
  ASSERT_GT(one.size(), 12U);
  for (std::size_t number = 0; number < kMeshes.size(); ++number) {
    const MeshCase& mesh = kMeshes[number];
    const std::string output = folder() / ("run_" + std::to_string(number));
    const Outcome outcome =
        run(mesh.ranks, with_config() + "--set output=" + output + " --set 'mesh=" + mesh.json + "'");
    ASSERT_EQ(outcome.exit_code, 0) << mesh.json << outcome.err;
    const std::vector<double> other = numbers_of(output);
    ASSERT_EQ(other.size(), one.size());
    for (std::size_t i = 0; i < one.size(); ++i)
      EXPECT_NEAR(other[i], one[i], 1e-9 * std::abs(one[i]) + 1e-10) << mesh.json << i;
  }
}

/// A U-Net, which reads noise beyond the poles, with gradients through the last lead alone, ranges, and one
/// sample whose members are parted.
TEST_F(Ensemble, LearnsTheSameAcrossPoles) {
  const std::string arguments =
      with_config() +
      "--set 'model={\"type\":\"unet\",\"widths\":[4,6],\"norm_groups\":2}' --set "
      "train.rollout_gradient=last "
      "--set 'data.clamp={\"t2m\":[200,330]}' --set train.batch_size=1 --set train.accumulate=1 ";
  Outcome outcome = run(1, arguments + "--set output=" + (folder() / "unet"));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  outcome = run(4, arguments + "--set output=" + (folder() / "unet_cut") +
                       " --set 'mesh={\"data\":2,\"domain\":[2,1]}'");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::vector<double> one = numbers_of(folder() / "unet"), cut = numbers_of(folder() / "unet_cut");
  ASSERT_EQ(cut.size(), one.size());
  for (std::size_t i = 0; i < one.size(); ++i)
    EXPECT_NEAR(cut[i], one[i], 1e-8 * std::abs(one[i]) + 1e-9) << i;
}

/// Where neither the sample nor the model changes, losses do by the noise alone.
TEST_F(Ensemble, EachStepDrawsNoiseOfItsOwn) {
  const Outcome outcome =
      run(1, with_config() + "--set output=" + (folder() / "still") +
                 " --set optimizer.learning_rate=1e-30 --set model.dropout=0 --set 'train={\"steps\":6,"
                 "\"batch_size\":1,\"precision\":\"fp64\"}' --set validation.every=0 --set "
                 "'checkpoint={\"every\":0}' "
                 "--set 'data.train=[\"2021-01-02T00:00\",\"2021-01-02T06:00\"]'");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::vector<double> losses = numbers_of(folder() / "still");
  ASSERT_EQ(losses.size(), 6U);
  for (std::size_t i = 0; i < losses.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) EXPECT_GT(std::abs(losses[i] / losses[j] - 1), 1e-6) << i << j;
  }
}

TEST_F(Ensemble, ForecastsAreTheSameOnEveryMeshAndInAnyCompany) {
  const NetcdfReader one = predict(1, "one.nc", "--steps 2 --period valid");
  const std::vector<double> all = one.values("t2m");
  ASSERT_EQ(all.size() % (kLeads * kMembers * kPoints), 0U);
  EXPECT_EQ(one.values("number"), (std::vector<double>{0, 1, 2}));
  EXPECT_EQ(one.text("number", "standard_name"), "realization");
  double apart = 0;
  for (std::size_t i = 0; i < kPoints; ++i) apart += std::abs(all[i] - all[kPoints + i]) / kPoints;
  EXPECT_GT(apart, 0.01) << "members do not differ";
  for (const MeshCase& mesh : kSomeMeshes) {
    const std::vector<double> other =
        predict(mesh.ranks, "other.nc",
                std::string("--steps 2 --period valid --set 'mesh=") + mesh.json + "'")
            .values("t2m");
    ASSERT_EQ(other.size(), all.size());
    double most = 0;
    for (std::size_t i = 0; i < all.size(); ++i) most = std::max(most, std::abs(all[i] - other[i]));
    EXPECT_LT(most, 1e-4) << mesh.json;
  }
  // The third start alone, of five members: its first three are those that ran beside other starts.
  const std::vector<double> alone =
      predict(2, "alone.nc", "--steps 2 --start 2021-02-01T12:00 --members 5 --set train.batch_size=4")
          .values("t2m");
  ASSERT_EQ(alone.size(), kLeads * 5 * kPoints);
  for (std::size_t lead = 0; lead < kLeads; ++lead) {
    for (std::size_t i = 0; i < kMembers * kPoints; ++i)
      ASSERT_NEAR(alone[lead * 5 * kPoints + i], all[(2 * kLeads + lead) * kMembers * kPoints + i], 1e-4);
  }
  EXPECT_EQ(predict(1, "single.nc", "--start 2021-02-01T12:00 --members 1").values("t2m").size(), kPoints);
}

/// The noise of a lead is that of its number, whoever made the leads before it.
TEST_F(Ensemble, ForecastsGoOnWithTheirOwnNoise) {
  for (const MeshCase& mesh :
       {MeshCase{"{}", 1}, MeshCase{"{\"data\":2}", 2}, MeshCase{"{\"tensor\":2}", 2}}) {
    SCOPED_TRACE(mesh.json);
    const std::string here = std::string(" --set 'mesh=") + mesh.json + "' ",
                      from = "--start 2021-02-01 2021-02-02 ";
    const std::vector<double> whole =
        predict(mesh.ranks, "whole.nc", from + "--members 2 --steps 4" + here).values("t2m");
    predict(mesh.ranks, "part.nc", from + "--members 2 --steps 3" + here);
    const std::vector<double> rest =
        predict(mesh.ranks, "rest.nc", "--continue " + (folder() / "part.nc") + here).values("t2m");
    ASSERT_EQ(whole.size(), 2 * 4 * 2 * kPoints);
    ASSERT_EQ(rest.size(), 2 * 2 * kPoints);
    for (std::size_t i = 0; i < rest.size(); ++i) {
      const std::size_t start = i / (2 * kPoints);
      ASSERT_EQ(rest[i], whole[(start * 4 + 3) * 2 * kPoints + i % (2 * kPoints)]) << i;
    }
  }
  const Outcome other = run(1, "predict " + of_run() + "--set seed=5 --overwrite --output " +
                                   (folder() / "rest.nc") + " --continue " + (folder() / "part.nc"));
  EXPECT_EQ(other.exit_code, 4);
  EXPECT_NE(other.err.find("another seed"), std::string::npos) << other.err;
}

TEST_F(Ensemble, ScoresAreWhatLoopsOverTheForecastsFind) {
  const Outcome outcome =
      run(2, "evaluate " + of_run() + "--overwrite --json " + (folder() / "scores.json") + " --netcdf " +
                 (folder() / "scores.nc") + " --error-maps " + (folder() / "errors.nc") +
                 " --map-leads 2 1 --threshold t2m=285 u10=0 --set 'mesh={\"data\":2}'");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const char* word : {" CRPS ", "spread", "ratio", " CRPSS\n", "and 3 members"})
    EXPECT_NE(outcome.out.find(word), std::string::npos) << word << " is not in\n" << outcome.out;
  const Json found = Json::parse(read(folder() / "scores.json"));
  EXPECT_EQ(found.at("members"), kMembers);
  EXPECT_EQ(found.at("forecasts"), kWindows);
  const NetcdfReader file = predict(1, "scored.nc", "--steps 2 --period valid"),
                     table(folder() / "scores.nc"), maps(folder() / "errors.nc");
  EXPECT_EQ(maps.values("lead_time"), (std::vector<double>{6, 12}));
  EXPECT_EQ(maps.text("lead_time", "units"), "hours");
  const Json valid = metrics(folder() / "run", "valid").back();
  EXPECT_EQ(table.values("rank"), (std::vector<double>{0, 1, 2, 3}));
  const std::vector<double> weights = row_weights(file.values("latitude")), starts = file.values("time");
  for (const char* variable : {"t2m", "u10"}) {
    const Truth truth(data(), variable);
    const std::vector<double> forecast = file.values(variable);
    const bool warm = variable == std::string("t2m");
    const double threshold = warm ? 285 : 0;
    for (std::size_t lead = 0; lead < kLeads; ++lead) {
      double brier = 0;
      std::vector<double> reached(kMembers + 1);
      double crps = 0, variance = 0, squares = 0, persistence = 0;
      std::vector<double> shares(kMembers + 1);
      for (std::size_t window = 0; window < kWindows; ++window) {
        const std::vector<double>& wanted =
            truth.at.at(std::llround(starts[window]) + 6 * (static_cast<std::int64_t>(lead) + 1));
        const std::vector<double>& start = truth.at.at(std::llround(starts[window]));
        for (std::size_t i = 0; i < kPoints; ++i) {
          const double w = weights[i / kColumns] / static_cast<double>(kPoints * kWindows);
          std::vector<double> x;
          double mean = 0;
          for (std::size_t j = 0; j < kMembers; ++j) {
            x.push_back(forecast[((window * kLeads + lead) * kMembers + j) * kPoints + i]);
            mean += x.back() / kMembers;
          }
          for (const double a : x) {
            crps += w * std::abs(a - wanted[i]) / kMembers;
            variance += w * (a - mean) * (a - mean) / (kMembers - 1);
            for (const double b : x) crps -= w * std::abs(a - b) / (2.0 * kMembers * (kMembers - 1));
          }
          squares += w * (mean - wanted[i]) * (mean - wanted[i]);
          const auto reach = static_cast<std::size_t>(
              std::ranges::count_if(x, [&](double member) { return member >= threshold; }));
          reached[reach] += w;
          brier += w * std::pow(static_cast<double>(reach) / kMembers - (wanted[i] >= threshold ? 1 : 0), 2);
          persistence += w * std::abs(start[i] - wanted[i]);
          shares[static_cast<std::size_t>(
              std::ranges::count_if(x, [&](double member) { return member < wanted[i]; }))] += w;
        }
      }
      const Json& said = found.at("scores").at(variable).at("all");
      EXPECT_NEAR(said.at("crps_skill").at(lead).get<double>(), 1 - crps / persistence, 1e-3) << variable;
      const Json& validated = lead == 0 ? valid.at("metrics") : valid.at("leads").at("12");
      for (std::size_t rank = 0; rank <= kMembers; ++rank) {
        const double share =
            found.at("rank_histograms").at(variable).at("all").at(lead).at(rank).get<double>();
        // Files are of float32, in which a few members come to lie on the other side.
        EXPECT_NEAR(share, shares[rank], 2e-3) << variable << lead << rank;
        EXPECT_DOUBLE_EQ(
            table.values(std::string(variable) + "_rank_histogram")[lead * (kMembers + 1) + rank], share);
      }
      const Json& of_threshold = found.at("thresholds").at(variable).at(warm ? "285" : "0").at("all");
      EXPECT_NEAR(of_threshold.at("brier").at(lead).get<double>(), brier, 2e-3) << variable << lead;
      for (std::size_t k = 0; k <= kMembers; ++k) {
        const double share = of_threshold.at("forecast_share").at(lead).at(k).get<double>();
        EXPECT_NEAR(share, reached[k], 2e-3) << variable << lead << k;
        EXPECT_DOUBLE_EQ(table.values(std::string(variable) + "_forecast_share")[lead * (kMembers + 1) + k],
                         share);
      }
      const double rmse = std::sqrt(squares), spread = std::sqrt(variance);
      // Squares of maps have the mean of squares.
      for (const auto& [measure, value] : {std::pair{"_rmse", rmse}, std::pair{"_spread", spread}}) {
        const std::vector<double> map = maps.values(variable + std::string(measure));
        ASSERT_EQ(map.size(), kLeads * kPoints);
        double mean = 0;
        for (std::size_t i = 0; i < kPoints; ++i)
          mean += weights[i / kColumns] / static_cast<double>(kPoints) * std::pow(map[lead * kPoints + i], 2);
        EXPECT_NEAR(std::sqrt(mean) / value, 1, 1e-4) << variable << measure << lead;
      }
      EXPECT_EQ(maps.values(std::string(variable) + "_count")[lead * kPoints], static_cast<double>(kWindows));
      for (const auto& [measure, value] : std::vector<std::pair<std::string, double>>{
               {"crps", crps},
               {"spread", spread},
               {"rmse", rmse},
               {"spread_skill", std::sqrt((kMembers + 1.0) / kMembers) * spread / rmse}}) {
        SCOPED_TRACE(std::string(variable) + " " + measure);
        EXPECT_NEAR(said.at(measure).at(lead).get<double>() / value, 1, 1e-4);
        EXPECT_DOUBLE_EQ(table.values(std::string(variable) + "_" + measure)[lead],
                         said.at(measure).at(lead).get<double>());
        EXPECT_NEAR(validated.at(variable).at(measure).get<double>(), said.at(measure).at(lead).get<double>(),
                    1e-9 * value);
      }
    }
  }
}

/// Winds from the east are below the domain of the transform, and weak ones below the range: members and
/// truth there are equal, and part ranks evenly, on every mesh.
TEST_F(Ensemble, RanksArePartedEvenlyAtTheEndOfARange) {
  const std::string arguments = with_config() +
                                "--set 'data.transforms={\"u10\":{\"type\":\"log\",\"epsilon\":0.5}}' --set "
                                "'data.vector_components=[]' --set 'data.clamp={\"u10\":[20,null]}' --set "
                                "train.precision=fp32 --set validation.every=0 --set "
                                "'checkpoint={\"every\":6}' ";
  const std::string clamped = folder() / "clamped", of_clamped = arguments + "--checkpoint " + clamped + " ";
  Outcome outcome = run(1, arguments + "--set output=" + clamped);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("% of the values of u10 in data.train are below 0, down to -"),
            std::string::npos)
      << outcome.err;
  outcome =
      run(1, "predict " + of_clamped + "--steps 2 --period valid --output " + (folder() / "clamped.nc"));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const NetcdfReader file(folder() / "clamped.nc");
  const std::vector<double> forecast = file.values("u10"), starts = file.values("time"),
                            weights = row_weights(file.values("latitude"));
  const Truth truth(data(), "u10");
  constexpr double kEnd = 20;
  for (const char* mesh : {"{}", "{\"domain\":[2,1]}"}) {
    const int ranks = mesh == std::string("{}") ? 1 : 2;
    outcome = run(ranks, "evaluate " + of_clamped + "--overwrite --json " + (folder() / "clamped.json") +
                             " --set 'mesh=" + mesh + "'");
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    const Json found = Json::parse(read(folder() / "clamped.json"));
    for (std::size_t lead = 0; lead < kLeads; ++lead) {
      std::vector<double> shares(kMembers + 1);
      double all_at_the_end = 0, persistence = 0;
      for (std::size_t window = 0; window < kWindows; ++window) {
        const std::vector<double>&wanted =
                  truth.at.at(std::llround(starts[window]) + 6 * (static_cast<std::int64_t>(lead) + 1)),
              &start = truth.at.at(std::llround(starts[window]));
        for (std::size_t i = 0; i < kPoints; ++i) {
          const double w = weights[i / kColumns] / static_cast<double>(kPoints * kWindows);
          std::size_t below = 0, equal = 0;
          for (std::size_t j = 0; j < kMembers; ++j) {
            const double member = forecast[((window * kLeads + lead) * kMembers + j) * kPoints + i];
            below += member < std::fmax(wanted[i], kEnd) ? 1 : 0;
            equal += member == std::fmax(wanted[i], kEnd) ? 1 : 0;
          }
          for (std::size_t rank = below; rank <= below + equal; ++rank)
            shares[rank] += w / static_cast<double>(equal + 1);
          if (equal == kMembers) all_at_the_end += w;
          persistence += w * (start[i] - wanted[i]) * (start[i] - wanted[i]);
        }
      }
      EXPECT_GT(all_at_the_end, 0.01) << "hardly a forecast lies at the end of the range";
      const Json& scores = found.at("scores").at("u10").at("all");
      EXPECT_NEAR(scores.at("persistence_rmse").at(lead).get<double>(), std::sqrt(persistence),
                  1e-4 * std::sqrt(persistence))
          << "of what the files hold, below 0, too";
      for (std::size_t rank = 0; rank <= kMembers; ++rank) {
        EXPECT_NEAR(found.at("rank_histograms").at("u10").at("all").at(lead).at(rank).get<double>(),
                    shares[rank], 2e-3)
            << mesh << lead << rank;
      }
    }
  }
}

/// Where batches are not whole, too: ten windows, three at a time.
TEST_F(Ensemble, ScoresAreTheSameOnEveryMesh) {
  const auto scores = [&](int ranks, const std::string& more) {
    const Outcome outcome =
        run(ranks,
            "evaluate " + of_run() +
                "--overwrite --region box=20,60,-30,40 --threshold t2m=280,290 u10=0 --fss-scales 3 --json " +
                (folder() / "any.json") + more);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return Json::parse(read(folder() / "any.json"));
  };
  const Json one = scores(1, "");
  for (const MeshCase& mesh : kSomeMeshes) {
    const Json other = scores(mesh.ranks, std::string(" --set 'mesh=") + mesh.json + "'");
    const Json wanted_thresholds = one.at("thresholds").flatten(),
               thresholds = other.at("thresholds").flatten();
    ASSERT_EQ(thresholds.size(), wanted_thresholds.size());
    for (const auto& [place, value] : wanted_thresholds.items()) {
      if (value.is_number()) {
        EXPECT_NEAR(thresholds.at(place).get<double>(), value.get<double>(), 1e-9) << mesh.json << place;
      } else {
        EXPECT_EQ(thresholds.at(place), value) << mesh.json << place;
      }
    }
    for (const char* variable : {"t2m", "u10"}) {
      for (const char* region : {"all", "tropics", "box"}) {
        for (const auto& [measure, values] : one.at("scores").at(variable).at(region).items()) {
          for (std::size_t lead = 0; lead < kLeads; ++lead) {
            const double wanted = values.at(lead).get<double>();
            EXPECT_NEAR(other.at("scores").at(variable).at(region).at(measure).at(lead).get<double>(), wanted,
                        1e-9 * std::abs(wanted) + 1e-10)
                << mesh.json << variable << region << measure;
          }
        }
        for (std::size_t lead = 0; lead < kLeads; ++lead) {
          const auto shares = [&](const Json& of) {
            return of.at("rank_histograms").at(variable).at(region).at(lead).get<std::vector<double>>();
          };
          ASSERT_EQ(shares(one).size(), kMembers + 1);
          double sum = 0;
          for (std::size_t rank = 0; rank <= kMembers; ++rank) {
            EXPECT_NEAR(shares(other)[rank], shares(one)[rank], 1e-9) << mesh.json << variable << region;
            sum += shares(one)[rank];
          }
          EXPECT_NEAR(sum, 1, 1e-12);
        }
      }
      for (const char* of : {"forecast", "truth"}) {
        const Json& wanted = one.at("spectra").at(variable).at(of).at(1);
        for (const std::size_t wave : {0U, 1U, 7U, 30U}) {
          EXPECT_NEAR(other.at("spectra").at(variable).at(of).at(1).at(wave).get<double>(),
                      wanted.at(wave).get<double>(), 1e-8 * wanted.at(wave).get<double>())
              << mesh.json << of << wave;
        }
      }
    }
  }
}

/// Its first forecasts are those of that run, all members alike; then they learn to differ.
TEST_F(Ensemble, BeginsWithARunThatWasTrainedWithoutNoise) {
  Json plain = config();
  plain.erase("ensemble");
  plain.erase("loss");
  plain["checkpoint"].erase("best");
  folder().write("plain.json", plain.dump());
  const std::string plain_run = folder() / "plain", of_plain = "--config " + (folder() / "plain.json") + " ";
  Outcome outcome = run(1, of_plain + "--set output=" + plain_run);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  outcome = run(1, "predict " + of_plain + "--checkpoint " + plain_run +
                       " --steps 2 --period valid --output " + (folder() / "plain.nc"));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::vector<double> wanted = NetcdfReader(folder() / "plain.nc").values("t2m");
  const auto begin = [&](const MeshCase& mesh, const std::string& name, const std::string& more) {
    const Outcome begun =
        run(mesh.ranks, with_config() + "--init-from " + plain_run + " --set output=" + (folder() / name) +
                            " --set 'mesh=" + mesh.json + "' " + more);
    EXPECT_EQ(begun.exit_code, 0) << begun.err;
    EXPECT_NE(begun.out.find("; 1 extended by weights of noise, which begin at zero (encoder.weight)"),
              std::string::npos)
        << begun.out;
    EXPECT_EQ(begun.err.find("other channels"), std::string::npos) << begun.err;
  };
  begin(kMeshes[4], "begun", "--set optimizer.learning_rate=1e-30");
  outcome = run(1, "predict " + with_config() + "--checkpoint " + (folder() / "begun") +
                       " --steps 2 --period valid --output " + (folder() / "begun.nc"));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::vector<double> begun = NetcdfReader(folder() / "begun.nc").values("t2m");
  ASSERT_EQ(begun.size(), kMembers * wanted.size());
  for (std::size_t i = 0; i < begun.size(); ++i) {
    const std::size_t start_and_lead = i / kPoints / kMembers;
    ASSERT_NEAR(begun[i], wanted[start_and_lead * kPoints + i % kPoints], 1e-4) << i;
  }
  begin(kMeshes[0], "tuned", "");
  EXPECT_GT(metrics(folder() / "tuned", "valid").back().at("metrics").at("t2m").at("spread").get<double>(),
            1e-3);
}

TEST_F(Ensemble, WhatMakesNoEnsembleIsRefused) {
  const auto said = [&](const std::string& arguments) {
    const Outcome outcome = run(1, arguments);
    EXPECT_EQ(outcome.exit_code, 2) << arguments;
    return outcome.errors().size() == 1 ? outcome.errors()[0] : "no single error: " + outcome.err;
  };
  const auto expect = [&](const std::string& arguments, const std::string& sentence) {
    const std::string error = said(arguments);
    EXPECT_NE(error.find(sentence), std::string::npos) << error;
  };
  expect("check " + with_config() + "--set ensemble.members=1", "set ensemble.members to 2 or more");
  expect("check " + with_config() + "--set 'loss={\"type\":\"mse\"}'",
         "ensemble.members is 3, and the loss has no term \"crps\"");
  expect("check " + with_config() + "--set ensemble.local_noise=0 --set ensemble.global_noise=0",
         "its members would all be equal");
  expect("predict " + of_run() + "--members 0 --start 2021-02-01 --output x.nc", "--members");
  // A checkpoint of another model.
  const Outcome other =
      run(1, "predict " + of_run() + "--set ensemble.local_noise=4 --start 2021-02-01 --output " +
                 (folder() / "none.nc"));
  EXPECT_EQ(other.exit_code, 4);
  EXPECT_NE(other.err.find("ensemble.local_noise differs"), std::string::npos) << other.err;
}

}  // namespace ensemble_test
}  // namespace jigsaw::e2e
