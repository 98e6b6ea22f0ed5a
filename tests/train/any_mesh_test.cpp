// Any mesh loads what any other saved, bit for bit: parameters, optimizer and averages, each rank reading
// just what it holds.
#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <optional>

#include "checkpoint/writer.h"
#include "config/config.h"
#include "layers/model.h"
#include "layers/registry.h"
#include "optim/adamw.h"
#include "support/error_of.h"
#include "support/parameters.h"
#include "support/temporary_folder.h"
#include "support/test_ranks.h"
#include "train/training_state.h"

namespace jigsaw {
namespace {

using testing::TemporaryFolder;
using testing::Tensors;

struct MeshCase {
  int data;
  std::vector<int> domain;
  int tensor;
  Zero zero;
  int ranks() const { return data * domain[0] * domain[1] * tensor; }
};
const std::vector<MeshCase> kMeshes = {
    {1, {1, 1}, 1, Zero::kNone},       {1, {2, 1}, 1, Zero::kNone},       {1, {1, 1}, 2, Zero::kNone},
    {2, {1, 1}, 1, Zero::kNone},       {2, {1, 1}, 1, Zero::kOptimizer},  {2, {1, 1}, 1, Zero::kParameters},
    {1, {3, 1}, 1, Zero::kNone},       {3, {1, 1}, 1, Zero::kOptimizer},  {1, {2, 1}, 2, Zero::kNone},
    {2, {1, 1}, 2, Zero::kParameters}, {2, {1, 2}, 1, Zero::kOptimizer},  {1, {2, 2}, 2, Zero::kNone},
    {2, {2, 1}, 2, Zero::kNone},       {2, {2, 1}, 2, Zero::kParameters}, {2, {1, 2}, 2, Zero::kOptimizer}};

void PrintTo(const MeshCase& mesh, std::ostream* out) {
  *out << "data " << mesh.data << " domain " << mesh.domain[0] << "x" << mesh.domain[1] << " tensor "
       << mesh.tensor << " zero " << static_cast<int>(mesh.zero);
}

struct ModelSection {
  Tagged model;
};
void declare(Keys<ModelSection>& keys) {
  keys.tagged("model", &ModelSection::model, model_types).required().doc("The network.");
}
constexpr std::int64_t kData = 5;  // channels of the input
const Json kModel = {{"type", "weathermixer"}, {"patch", {3, 7}},    {"embed_dim", 10},   {"depth", 2},
                     {"positions", true},      {"final_norm", true}, {"output_map", true}};

/// One rank's model and optimizer.
struct Job {
  Job(Communicator& world, const MeshCase& mesh_case, std::uint64_t seed, const Json& description = kModel,
      std::int64_t noise = 0)
      : mesh(world, mesh_case.data, mesh_case.domain, mesh_case.tensor),
        rank{world.context(), mesh},
        model(build_model(parse<ModelSection>(Json{{"model", description}}).model,
                          {{13, 29}, kData + noise, 2, {}, {}, noise})) {
    plan_and_materialise(*model, rank, plans, 4, mesh_case.zero, DType::kFloat32, DType::kFloat32, seed);
    AdamWOptions options;
    options.ema_decay = 0.9;
    optimizer = std::make_unique<Optimizer>(rank, model->parameters(), options);
  }

  /// Sets what this rank holds to f(name of the tensor, global index).
  void fill(const std::function<double(const std::string&, std::int64_t)>& f) {
    for (const Optimizer::State& state : optimizer->state(Optimizer::Share::kHeld)) {
      const Segment& part = state.segment;
      const std::string tensor = concat(state.kind, "/", part.parameter->name());
      std::vector<double> values;
      for (std::int64_t i = 0; i < part.count; ++i)
        values.push_back(f(tensor, testing::global_index(part.parameter->shape(), part.box, part.first + i)));
      write_values(rank.context, state.array, values);
    }
  }
  /// Elements this rank holds that are not f's.
  std::int64_t count_wrong(const std::function<double(const std::string&, std::int64_t)>& f) const {
    std::int64_t wrong = 0;
    for (const Optimizer::State& state : optimizer->state(Optimizer::Share::kHeld)) {
      const Segment& part = state.segment;
      const std::string tensor = concat(state.kind, "/", part.parameter->name());
      const std::vector<double> values = testing::values_of(state.array);
      for (std::int64_t i = 0; i < part.count; ++i) {
        const std::int64_t index = testing::global_index(part.parameter->shape(), part.box, part.first + i);
        const double wanted = static_cast<float>(f(tensor, index));
        wrong += values[static_cast<std::size_t>(i)] != wanted ? 1 : 0;
      }
    }
    return wrong;
  }

  Mesh mesh;
  Rank rank;
  PlanBook plans;
  std::unique_ptr<Model> model;
  std::unique_ptr<Optimizer> optimizer;
};

/// A number for every element of every tensor.
double value_of(const std::string& tensor, std::int64_t index, std::size_t saved_on) {
  return static_cast<double>(stable_hash(tensor) % 1000) + 0.001 * static_cast<double>(index) +
         1000.0 * static_cast<double>(saved_on);
}

TEST(AnyMesh, LoadsWhatAnyOtherSavedAndReadsJustWhatItHolds) {
  const TemporaryFolder folder;
  std::int64_t held_by_one = 0;
  for (std::size_t from = 0; from < kMeshes.size(); ++from) {
    testing::run_test_ranks(kMeshes[from].ranks(), [&](Communicator& world) {
      Job run(world, kMeshes[from], 1);
      run.fill([&](const std::string& tensor, std::int64_t i) { return value_of(tensor, i, from); });
      const auto pieces = checkpoint_pieces(*run.optimizer, Optimizer::Share::kSaved);
      double bytes = 0;
      for (const CheckpointPiece& piece : pieces) bytes += static_cast<double>(piece.array.bytes());
      bytes = world.all_reduce(std::array{bytes}, ReduceOp::kSum)[0];
      if (from == 0) held_by_one = static_cast<std::int64_t>(bytes);
      EXPECT_EQ(static_cast<std::int64_t>(bytes), held_by_one) << "an element is saved twice, or not at all";
      save_checkpoint(concat(folder.path(), "/", from), {1, {}, {}, {}}, pieces, world, {});
    });
  }
  int pairs = 0;
  for (const MeshCase& to : kMeshes) {
    testing::run_test_ranks(to.ranks(), [&](Communicator& world) {
      Job run(world, to, 2);
      const auto expected =
          expected_tensors(run.model->parameters(), DType::kFloat32, run.optimizer->kinds());
      for (std::size_t from = 0; from < kMeshes.size(); ++from) {
        run.fill([](const std::string&, std::int64_t) { return -1; });
        const auto found = open_checkpoint(concat(folder.path(), "/", from, "/latest"), world);
        check_tensors(found, expected);
        const auto pieces = checkpoint_pieces(*run.optimizer, Optimizer::Share::kHeld);
        std::int64_t held = 0;
        for (const CheckpointPiece& piece : pieces) held += piece.array.bytes();
        EXPECT_EQ(read_pieces(found, pieces, world), held);
        run.optimizer->restore(1);
        const auto wrong = run.count_wrong(
            [&](const std::string& tensor, std::int64_t i) { return value_of(tensor, i, from); });
        EXPECT_EQ(wrong, 0) << ::testing::PrintToString(kMeshes[from]) << " to "
                            << ::testing::PrintToString(to);
        if (world.rank() == 0) ++pairs;
      }
    });
  }
  std::printf("%d pairs of meshes, each rank reads what it holds of %lld bytes\n", pairs,
              static_cast<long long>(held_by_one));
}

TEST(AnyMesh, ParametersAreTakenByNameAndReported) {
  const TemporaryFolder folder;
  testing::run_test_ranks(2, [&](Communicator& world) {
    Job run(world, kMeshes[1], 1);
    run.fill([&](const std::string& tensor, std::int64_t i) { return value_of(tensor, i, 0); });
    save_checkpoint(folder.path(), {1, {}, {}, {}},
                    checkpoint_pieces(*run.optimizer, Optimizer::Share::kSaved), world, {});
  });
  testing::run_test_ranks(3, [&](Communicator& world) {
    Job run(world, kMeshes[7], 2);
    const auto found = open_checkpoint(folder.path() + "/latest", world);
    const Job untouched(world, kMeshes[7], 2);
    const std::string report =
        initialise_from(found, run.model->parameters(), *run.optimizer, {"encoder.*"}, world);
    run.optimizer->restart();
    EXPECT_NE(report.find("; 2 skipped (encoder.weight, encoder.bias)"), std::string::npos) << report;
    const auto states = run.optimizer->state(Optimizer::Share::kHeld);
    const auto before = untouched.optimizer->state(Optimizer::Share::kHeld);
    for (std::size_t s = 0; s < states.size(); ++s) {
      const Segment& part = states[s].segment;
      const std::string& name = part.parameter->name();
      const std::string kind = states[s].kind;
      const std::vector<double> now = testing::values_of(states[s].array),
                                then = testing::values_of(before[s].array);
      for (std::int64_t i = 0; i < part.count; ++i) {
        const std::int64_t index = testing::global_index(part.parameter->shape(), part.box, part.first + i);
        const auto at = static_cast<std::size_t>(i);
        const bool taken = (kind == "parameters" || kind == "average") && !name.starts_with("encoder.");
        const double expected =
            taken ? static_cast<float>(value_of("parameters/" + name, index, 0)) : then[at];
        ASSERT_EQ(now[at], expected) << kind << " " << name;
      }
    }
    EXPECT_THROW(initialise_from(found, run.model->parameters(), *run.optimizer, {"encodr.*"}, world),
                 ConfigError);
  });
}

/// A model with the slices, along a dim of a parameter from one on, that its noise is multiplied by.
struct NoisyModel {
  Json model;
  std::map<std::string, std::pair<int, std::int64_t>> noise;
};

/// One for each kind of layer that may read the input.
std::vector<NoisyModel> noisy_models() {
  const auto chain = [](const Json& first) {
    return Json{{"type", "sequential"}, {"layers", {first, {{"type", "linear"}, {"features", 2}}}}};
  };
  const Json conv = {{"type", "conv"}, {"features", 3}, {"kernel", 3}, {"padding", 1}};
  Json overlapping = kModel;
  overlapping["patch_kernel"] = {5, 9};
  overlapping["output_map"] = false;
  return {
      {kModel, {{"encoder.weight", {1, kData}}, {"output_map.input.weight", {1, kData}}}},
      {overlapping, {{"encoder.weight", {1, kData}}}},
      {{{"type", "unet"}, {"widths", {4, 6}}, {"norm_groups", 2}}, {{"encoder.0.conv1.weight", {1, kData}}}},
      {chain({{"type", "conv_transpose"}, {"features", 4}, {"kernel", 1}}),
       {{"layers.0.weight", {0, kData}}}},
      // What comes behind the input, over channels, comes behind its noise.
      {chain({{"type", "concat_skip"}, {"layers", Json::array({conv})}}),
       {{"layers.0.0.weight", {1, kData}}, {"layers.1.weight", {1, kData}}}}};
}

/// Of an element of a parameter with noise: where it is in that without, or nothing in the slices of noise.
std::optional<std::int64_t> index_without_noise(const Shape& shape, std::int64_t index, int dim,
                                                std::int64_t first, std::int64_t noise) {
  const std::int64_t behind = shape.count(dim + 1, shape.rank());
  std::int64_t slice = index / behind % shape[dim];
  const std::int64_t outer = index / behind / shape[dim], inner = index % behind;
  if (slice >= first && slice < first + noise) return std::nullopt;
  if (slice >= first) slice -= noise;
  return (outer * (shape[dim] - noise) + slice) * behind + inner;
}

TEST(AnyMesh, TakesWhatWasTrainedWithoutNoise) {
  constexpr std::int64_t kNoise = 3;
  for (const NoisyModel& noisy : noisy_models()) {
    SCOPED_TRACE(noisy.model.dump());
    for (const std::size_t from : {0U, 8U}) {
      const TemporaryFolder folder;
      testing::run_test_ranks(kMeshes[from].ranks(), [&](Communicator& world) {
        Job run(world, kMeshes[from], 1, noisy.model);
        run.fill([&](const std::string& tensor, std::int64_t i) { return value_of(tensor, i, from); });
        save_checkpoint(folder.path(), {1, {}, {}, {}},
                        checkpoint_pieces(*run.optimizer, Optimizer::Share::kSaved), world, {});
      });
      for (const std::size_t to : {0U, 1U, 2U, 5U, 8U, 14U}) {
        testing::run_test_ranks(kMeshes[to].ranks(), [&](Communicator& world) {
          Job run(world, kMeshes[to], 2, noisy.model, kNoise);
          run.fill([](const std::string&, std::int64_t) { return -1; });
          const auto found = open_checkpoint(folder.path() + "/latest", world);
          const std::string report =
              initialise_from(found, run.model->parameters(), *run.optimizer, {}, world);
          run.optimizer->restart();
          EXPECT_NE(report.find(concat("; ", noisy.noise.size(),
                                       " extended by weights of noise, which begin at zero (",
                                       noisy.noise.begin()->first)),
                    std::string::npos)
              << report;
          std::map<std::string, Shape> shapes;
          for (ParameterBlock* block : run.model->parameters()) {
            for (const auto& parameter : block->parameters()) shapes[parameter->name()] = parameter->shape();
          }
          const auto wrong = run.count_wrong([&](const std::string& tensor, std::int64_t i) {
            const std::size_t slash = tensor.find('/');
            const std::string kind = tensor.substr(0, slash), name = tensor.substr(slash + 1);
            if (kind != "parameters" && kind != "average") return -1.0;
            const auto at = noisy.noise.find(name);
            if (at == noisy.noise.end()) return value_of("parameters/" + name, i, from);
            const auto index =
                index_without_noise(shapes.at(name), i, at->second.first, at->second.second, kNoise);
            return index ? value_of("parameters/" + name, *index, from) : 0.0;
          });
          EXPECT_EQ(wrong, 0) << ::testing::PrintToString(kMeshes[from]) << " to "
                              << ::testing::PrintToString(kMeshes[to]);
        });
      }
    }
  }
}

/// Other numbers of channels, and groups, which would hold others.
TEST(AnyMesh, TakesNoOtherShapeThanThatWithoutNoise) {
  const auto taken = [](const Json& model, std::int64_t before, std::int64_t noise) {
    const TemporaryFolder folder;
    std::string thrown;
    testing::run_test_ranks(1, [&](Communicator& world) {
      Job run(world, kMeshes[0], 1, model, before);
      save_checkpoint(folder.path(), {1, {}, {}, {}},
                      checkpoint_pieces(*run.optimizer, Optimizer::Share::kSaved), world, {});
      Job other(world, kMeshes[0], 2, model, noise);
      const auto found = open_checkpoint(folder.path() + "/latest", world);
      thrown = testing::error_of<CheckpointError>(
          [&] { initialise_from(found, other.model->parameters(), *other.optimizer, {}, world); });
    });
    return thrown;
  };
  EXPECT_NE(taken(kModel, 1, 3).find("\"encoder.weight\" has the shape "), std::string::npos);
  EXPECT_NE(taken(kModel, 3, 0).find("\"encoder.weight\" has the shape "), std::string::npos);
  const auto with_first = [](const Json& first) {
    return Json{{"type", "sequential"}, {"layers", {first, {{"type", "linear"}, {"features", 2}}}}};
  };
  EXPECT_NE(taken(with_first({{"type", "layer_norm"}}), 0, 3).find("\"layers.0.weight\" has the shape "),
            std::string::npos);
  EXPECT_NE(taken(with_first({{"type", "conv"}, {"features", 10}, {"kernel", 1}, {"groups", 5}}), 0, 5)
                .find("\"layers.0.weight\" has the shape "),
            std::string::npos);
}

}  // namespace
}  // namespace jigsaw
