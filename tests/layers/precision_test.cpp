// Training in fp32 and bf16 with the kernels for processors, against float64 with plain loops.
#include <gtest/gtest.h>

#include <cmath>

#include "layers/training_run.h"

namespace jigsaw {
namespace {

using Sizes = TrainingRun::MeshSizes;

const Json kMixer = {{"type", "weathermixer"},
                     {"patch", {3, 7}},
                     {"embed_dim", 24},
                     {"depth", 2},
                     {"dropout", 0.1},
                     {"positions", true},
                     {"final_norm", true},
                     {"output_map", true},
                     {"channel_hidden_ratio", 2.0}};

const Json kNorms = {
    {"type", "sequential"},
    {"layers",
     {{{"type", "linear"}, {"features", 24}},
      {{"type", "batch_norm"}},
      {{"type", "silu"}},
      {{"type", "residual"}, {"layers", {{{"type", "rms_norm"}}, {{"type", "linear"}, {"features", 24}}}}},
      {{"type", "group_norm"}, {"groups", 3}},
      {{"type", "tanh"}},
      {{"type", "linear"}, {"features", 2}}}}};

/// √(Σ difference² / Σ expected²) over all tensors.
double distance(const testing::Tensors& actual, const testing::Tensors& expected) {
  double squares = 0, whole = 0;
  for (const auto& [name, values] : expected) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double difference = actual.at(name).at(i) - values[i];
      squares += difference * difference;
      whole += values[i] * values[i];
    }
  }
  return std::sqrt(squares / whole);
}

/// Limits are about three times what rounding does here.
void compare(const Json& model, DType dtype, const Sizes& mesh, double output_limit, double gradient_limit) {
  SCOPED_TRACE(concat(name(dtype), " on ", mesh.ranks(), " ranks"));
  TrainingRun run{.model = model};
  const TrainingRun::Result exact = run.run({});
  run.dtype = dtype;
  const TrainingRun::Result rounded = run.run(mesh);
  EXPECT_LE(distance(rounded.outputs, exact.outputs), output_limit);
  EXPECT_GT(distance(rounded.outputs, exact.outputs), output_limit / 100) << "another type was used";
  EXPECT_LE(distance(rounded.gradients, exact.gradients), gradient_limit);
  EXPECT_LE(testing::relative_difference(rounded.losses, exact.losses), output_limit);
  EXPECT_LE(testing::relative_difference(rounded.norms, exact.norms), gradient_limit);
}

TEST(Precision, Float32) {
  compare(kMixer, DType::kFloat32, {}, 4e-7, 1.5e-6);
  compare(kMixer, DType::kFloat32, {1, {2, 1}, 2}, 4e-7, 1.5e-6);
}

TEST(Precision, NormsAndActivations) {
  for (const Sizes& mesh : {Sizes{}, {1, {2, 1}, 2}}) {
    compare(kNorms, DType::kFloat32, mesh, 4e-7, 1.5e-6);
    compare(kNorms, DType::kBfloat16, mesh, 1.2e-2, 8e-3);
  }
}

TEST(Precision, Bfloat16) {
  compare(kMixer, DType::kBfloat16, {}, 1.2e-2, 8e-3);
  compare(kMixer, DType::kBfloat16, {1, {2, 1}, 2}, 1.2e-2, 8e-3);
}

}  // namespace
}  // namespace jigsaw
