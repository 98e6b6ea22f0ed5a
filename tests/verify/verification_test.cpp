// The tool that compares meshes finds nothing where rules are right, and the operation where one is not.
#include "verify/verification.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <sstream>

#include "array/transfer.h"
#include "comm/thread/run_ranks.h"
#include "config/config.h"
#include "config/override.h"
#include "samples/sample_data.h"
#include "support/source_dir.h"
#include "support/temporary_folder.h"

namespace jigsaw {
namespace {

using testing::TemporaryFolder;

class VerificationTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TemporaryFolder>();
    write_sample_data({.months = 1}, folder_->path());
  }
  static void TearDownTestSuite() { folder_.reset(); }

  static Configuration configuration(const std::string& mesh, const std::string& more = "{}") {
    Json json = Json::parse(R"({
      "data": {"variables": ["t2m", "z"], "forcings": ["latitude", "time_of_day"], "input_hours": [-6, 0], "lead_hours": 6,
               "train": ["2021-01-02", "2021-01-20"]},
      "model": {"type": "weathermixer", "patch": [5, 7], "embed_dim": 12, "depth": 2, "dropout": 0.1},
      "optimizer": {"learning_rate": 1e-3}, "train": {"batch_size": 4, "steps": 100}})");
    json["data"]["files"] = {folder_->path() + "/*.nc"};
    json["mesh"] = Json::parse(mesh);
    json.merge_patch(Json::parse(more));
    return parse<Configuration>(json);
  }

  static Verification verified(int ranks, const Configuration& config, const VerifyOptions& options = {}) {
    Verification result;
    run_ranks(
        ranks, {.time_limit_seconds = 600},
        [&](int) { return make_context(DeviceChoice::kCpu, config.train, 1, 0); },
        [&](Communicator& world) {
          const Verification mine = verify_run(config, "", world, options);
          if (world.rank() == 0) result = mine;
        });
    return result;
  }

  static std::unique_ptr<TemporaryFolder> folder_;
};
std::unique_ptr<TemporaryFolder> VerificationTest::folder_;

struct MeshCase {
  int ranks;
  std::string mesh;
};
const std::vector<MeshCase> kMeshes = {{2, R"({"domain": [2, 1]})"},
                                       {2, R"({"tensor": 2})"},
                                       {3, R"({"domain": [1, 3]})"},
                                       {4, R"({"data": 2, "domain": [2, 1]})"},
                                       {4, R"({"domain": [2, 1], "tensor": 2})"}};

TEST_F(VerificationTest, RightRulesAreWithinTolerance) {
  for (const MeshCase& each : kMeshes) {
    for (const char* more :
         {R"({"train": {"precision": "fp32"}})", R"({"train": {"precision": "fp64"}})",
          R"({"zero": "parameters", "train": {"precision": "bf16", "recompute": "block"}})"}) {
      const Verification result = verified(each.ranks, configuration(each.mesh, more));
      EXPECT_TRUE(result.passed) << each.mesh << more << "\n" << result.report << result.first_different;
    }
  }
}

/// Of the first operation in a block whose results are summands along some axis, the sum is left out.
std::string leave_out_a_sum(OpenedRun& run, const std::string& path) {
  PlanBook& plans = run.placed().plans();
  PlanBook::Entry entry = plans.at(path);
  const MeshShape& mesh = run.placed().mesh().shape();
  for (std::size_t n = 0; n < entry.plan.decisions.size(); ++n) {
    for (Placements& placements : entry.plan.decisions[n].rule_outputs) {
      for (int axis = 0; axis < mesh.axes; ++axis) {
        if (mesh.size[static_cast<std::size_t>(axis)] == 1 || !placements[axis].is_partial()) continue;
        placements[axis] = Placement::replicate();
        const std::string name = entry.trace.nodes[n].signature.name;
        plans.add(path, std::move(entry));
        return name;
      }
    }
  }
  return "";
}

TEST_F(VerificationTest, ABrokenRuleIsFoundWhereItIs) {
  for (const char* precision : {"fp32", "fp64"}) {
    const Json more = {{"train", {{"precision", precision}}}};
    const Configuration config = configuration(R"({"domain": [2, 1], "tensor": 2})", more.dump());
    std::string path, name;
    VerifyOptions options;
    std::mutex mutex;
    options.prepare = [&](OpenedRun& run) {
      for (const BlockPlan& block : run.placed().block_plans()) {
        if (block.path == "encoder") continue;
        const std::string broken = leave_out_a_sum(run, block.path);
        if (broken.empty()) continue;
        const std::lock_guard lock(mutex);
        path = block.path;
        name = broken;
        return;
      }
    };
    const Verification result = verified(4, config, options);
    ASSERT_FALSE(name.empty()) << "no operation of the model sums over ranks";
    EXPECT_FALSE(result.passed) << result.report;
    EXPECT_NE(result.first_different.find("the result of operation"), std::string::npos) << result.report;
    EXPECT_NE(result.first_different.find(path), std::string::npos) << result.first_different;
    EXPECT_NE(result.first_different.find(name), std::string::npos) << result.first_different;
    EXPECT_NE(result.report.find("step 1"), std::string::npos) << result.report;
    EXPECT_NE(result.report.find("and beyond what 8 show"), std::string::npos) << result.report;
  }
}

/// A value whose gradient is no longer what it should be.
struct Broken {
  std::string path, value;  ///< a block, and the operation in it that gives the value
};
/// Of the first operation that takes a value of its block whole and gives parts of its result, the sum of
/// that value's gradient over the ranks is left out. Forward stays as it was.
std::optional<Broken> leave_out_a_sum_of_gradients(OpenedRun& run) {
  PlanBook& plans = run.placed().plans();
  const MeshShape& mesh = run.placed().mesh().shape();
  for (const BlockPlan& block : run.placed().block_plans()) {
    PlanBook::Entry entry = block.entry;
    for (std::size_t n = 0; n < entry.trace.nodes.size(); ++n) {
      const Trace::Node& node = entry.trace.nodes[n];
      Decision& decision = entry.plan.decisions[n];
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        const auto given = std::find_if(
            entry.trace.nodes.begin(), entry.trace.nodes.end(), [&](const Trace::Node& candidate) {
              const std::vector<int>& outputs = candidate.outputs;
              return std::find(outputs.begin(), outputs.end(), node.inputs[i]) != outputs.end();
            });
        for (int axis = 0; axis < mesh.axes && given != entry.trace.nodes.end(); ++axis) {
          const bool summed = mesh.size[static_cast<std::size_t>(axis)] > 1 && contains(decision.cut, axis) &&
                              decision.inputs[i][axis].is_replicate();
          if (!summed) continue;
          decision.cut &= ~axis_bit(axis);
          Broken broken{block.path, given->signature.name};
          plans.add(block.path, std::move(entry));
          return broken;
        }
      }
    }
  }
  return std::nullopt;
}

/// Values are small and parameters large, so that values travel: channels are cut, and a product takes all.
TEST_F(VerificationTest, ABrokenRuleOfBackwardIsFoundWhereItIs) {
  for (const char* precision : {"fp32", "fp64"}) {
    Json more = {
        {"model", {{"patch", {19, 12}}, {"embed_dim", 256}, {"channel_hidden_ratio", 8}, {"dropout", 0}}},
        {"train", {{"precision", precision}, {"batch_size", 2}}}};
    std::optional<Broken> broken;
    VerifyOptions options;
    options.steps = 1;
    std::mutex mutex;
    options.prepare = [&](OpenedRun& run) {
      const std::optional<Broken> here = leave_out_a_sum_of_gradients(run);
      const std::lock_guard lock(mutex);
      broken = here;
    };
    const Verification result = verified(2, configuration(R"({"tensor": 2})", more.dump()), options);
    ASSERT_TRUE(broken) << "no operation of the model takes all channels of a value";
    EXPECT_FALSE(result.passed) << result.report;
    EXPECT_NE(result.report.find("differs first in step 1: the gradient of "), std::string::npos)
        << result.report;
    const std::string& named = result.first_different;
    EXPECT_NE(named.find("the gradient of the result of operation"), std::string::npos) << result.report;
    EXPECT_NE(named.find("(" + broken->value + ") of the block " + broken->path), std::string::npos) << named;
    EXPECT_NE(named.find("the backward of an operation that uses it is wrong"), std::string::npos) << named;
  }
}

/// Adds to a parameter of the run that is tested behind each step, when its gradients are known and its
/// update is about to be compared.
VerifyOptions with_parameter_changed(const std::vector<double>& by) {
  static thread_local OpenedRun* tested = nullptr;
  static thread_local std::size_t step = 0;
  VerifyOptions options;
  options.steps = static_cast<int>(by.size());
  options.prepare = [](OpenedRun& run) {
    tested = &run;
    step = 0;
  };
  options.progress = [by](double) {
    if (tested == nullptr) return;  // not in the run that is right
    const auto& group = tested->placed().model().parameters().front()->groups().front();
    const Context& context = tested->placed().rank().context;
    std::vector<double> values = download_values(context, group->owned());
    for (double& value : values) value += by[step];
    write_values(context, group->owned(), values);
    if (++step == by.size()) tested = nullptr;
  };
  return options;
}

TEST_F(VerificationTest, AWrongUpdateIsFound) {
  for (const char* precision : {"fp32", "fp64"}) {
    const Json more = {{"train", {{"precision", precision}}}};
    const Verification result =
        verified(2, configuration(R"({"domain": [2, 1]})", more.dump()), with_parameter_changed({1e-4}));
    EXPECT_FALSE(result.passed) << result.report;
    EXPECT_NE(result.report.find("differs first in step 1: the update of "), std::string::npos)
        << result.report;
    EXPECT_EQ(result.first_different, "");
    EXPECT_NE(result.report.find("no operation's result differs"), std::string::npos) << result.report;
  }
}

/// The largest of the parameters' differences of gradients.
double largest_gradient_difference(const std::string& report) {
  double largest = 0;
  std::istringstream lines(report);
  for (std::string line; std::getline(lines, line);) {
    if (line.find('%') == std::string::npos) continue;
    std::istringstream words(line);
    std::string name;
    double difference = 0;
    if (words >> name >> difference) largest = std::max(largest, difference);
  }
  return largest;
}

/// A parameter that is put right again: the gradients of the second step are the worst, those of the third
/// nearly right.
TEST_F(VerificationTest, TheWorstOfAllStepsIsTold) {
  const Configuration config = configuration(R"({"domain": [2, 1]})", R"({"train": {"precision": "fp64"}})");
  const double two =
      largest_gradient_difference(verified(2, config, with_parameter_changed({1e-1, 0})).report);
  EXPECT_GT(two, 1e-6);
  const double three =
      largest_gradient_difference(verified(2, config, with_parameter_changed({1e-1, -1e-1, 0})).report);
  EXPECT_GE(three, two);
}

/// Behind a decoder of zeros nothing has a gradient in the first step: no difference is a part of that.
TEST_F(VerificationTest, GradientsOfZeroAreSaidToBeEqual) {
  const Configuration config = configuration(R"({"domain": [2, 1]})", R"({"model": {"zero_decoder": true}})");
  VerifyOptions options;
  options.steps = 1;
  const Verification first = verified(2, config, options);
  EXPECT_TRUE(first.passed) << first.report;
  std::istringstream lines(first.report);
  int zeros = 0;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name, rest;
    words >> name;
    std::getline(words >> std::ws, rest);
    if (!name.starts_with("encoder.")) continue;
    // Updates, which decay of weights makes, are compared.
    EXPECT_TRUE(rest.starts_with("all zero         -  ") && rest.ends_with("100.0%")) << line;
    zeros += 1;
  }
  EXPECT_GT(zeros, 0) << first.report;
  EXPECT_NE(first.report.find(" gradients are zero everywhere on both meshes"), std::string::npos)
      << first.report;
  EXPECT_EQ(first.report.find("e+"), first.report.find("e+00")) << "a tolerance of nothing\n" << first.report;
  options.steps = 3;
  const Verification later = verified(2, config, options);
  EXPECT_TRUE(later.passed) << later.report;
  EXPECT_EQ(later.report.find("all zero"), std::string::npos)
      << "the decoder has values from the second step on\n"
      << later.report;
}

TEST_F(VerificationTest, AnotherMeshCanBeTheOneToEqual) {
  VerifyOptions options;
  options.against = MeshOptions{2, {1, 2}, 1};
  options.steps = 2;
  const Verification result = verified(4, configuration(R"({"domain": [2, 2]})"), options);
  EXPECT_TRUE(result.passed) << result.report;
  options.against = MeshOptions{8, {}, 1};
  EXPECT_THROW(verified(4, configuration(R"({"domain": [2, 2]})"), options), Error);
}

TEST_F(VerificationTest, InFloat64EveryUpdateIsCompared) {
  const Verification result =
      verified(2, configuration(R"({"domain": [2, 1]})", R"({"train": {"precision": "fp64"}})"));
  EXPECT_TRUE(result.passed) << result.report;
  EXPECT_NE(result.report.find("100.0%"), std::string::npos) << result.report;
}

/// Each shipped configuration, with a smaller model and grid, on one mesh; benchmarks/verify_shipped.sh has
/// the whole: all of them on 2, 3, 4 and 8 ranks.
TEST_F(VerificationTest, ShippedConfigurationsAreRightOnSomeMesh) {
  struct Shipped {
    std::string name;
    int ranks;
    std::string mesh;
    std::vector<std::string> smaller;
  };
  const std::string fields = R"(data.variables=["t2m","z"])";
  const std::vector<Shipped> all = {
      {"demo", 8, R"({"domain": [2, 2], "tensor": 2})", {"model.embed_dim=16", "model.depth=1"}},
      {"era5_uk_mixer", 3, R"({"domain": [3, 1]})", {"model.embed_dim=16", "model.depth=1"}},
      {"era5_uk_unet", 4, R"({"domain": [2, 1], "tensor": 2})", {"model.base_width=8", "model.levels=2"}},
      {"era5_uk_ensemble",
       4,
       R"({"data": 2, "domain": [2, 1]})",
       {"model.base_width=8", "model.levels=2", "train.batch_size=1"}},
      {"era5_uk_vit", 2, R"({"tensor": 2})", {"model.embed_dim=16", "model.depth=1", "model.heads=4"}},
      {"era5_vit",
       3,
       R"({"domain": [1, 3]})",
       {fields, "data.static=[]", "model.embed_dim=16", "model.depth=1", "model.heads=4",
        "model.patch=[4, 6]"}},
      {"era5_swin",
       8,
       R"({"data": 2, "domain": [2, 2]})",
       {fields, "data.static=[]", "model.embed_dim=16", "model.depth=2", "model.heads=4",
        "model.patch=[4, 3]", "model.window=[5, 4]"}},
      {"era5_sfno",
       4,
       R"({"domain": [2, 2]})",
       {fields, "data.static=[]", "model.embed_dim=12", "model.depth=2"}},
      {"era5_weathermixer_1b",
       4,
       R"({"domain": [2, 1], "tensor": 2})",
       {fields, "data.static=[]", "model.embed_dim=24", "model.depth=1", "model.patch=[1, 12]"}},
      {"ct_denoise_unet3d",
       4,
       R"({"domain": [2, 1, 2]})",
       {"data.shape=[124, 37, 72]", R"(data.variables=["t2m"])", R"(data.train={"depth": [0, 99]})",
        "data.crop=[8, 8, 8]", "validation.overlap=[0, 0, 0]", "data.noise_sigma=5", "model.widths=[4, 8]"}}};
  for (const Shipped& each : all) {
    SCOPED_TRACE(each.name);
    Json json = load_config(testing::source_dir() + "/configs/" + each.name + ".json");
    if (each.name != "ct_denoise_unet3d") {
      json["data"]["shape"] = {37, 72};
      json["data"]["train"] = {"2021-01-02", "2021-01-08"};
    }
    json["data"]["files"] = {folder_->path() + "/*.nc"};
    json["data"].erase("valid");
    json["mesh"] = Json::parse(each.mesh);
    json["train"]["batch_size"] = 2;
    for (const std::string& change : each.smaller) apply_override(json, change);
    VerifyOptions options;
    options.steps = 2;
    const Verification result = verified(each.ranks, parse<Configuration>(json), options);
    EXPECT_TRUE(result.passed) << result.report << result.first_different;
  }
}

}  // namespace
}  // namespace jigsaw
