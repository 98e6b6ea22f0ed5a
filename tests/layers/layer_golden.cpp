#include "layers/layer_golden.h"

#include <gtest/gtest.h>

#include <mutex>
#include <numeric>

#include "base/text.h"
#include "support/golden_file.h"
#include "support/test_ranks.h"

namespace jigsaw::testing {

LayerGolden read_layer(const std::string& file_name, const std::string& name, const Shape& field,
                       std::function<LayerPtr(const LayerSite&)> build) {
  const GoldenFile file(file_name);
  LayerGolden golden;
  golden.name = name;
  golden.field = field;
  golden.build = std::move(build);
  golden.input = file.values(name + "/input");
  golden.output_gradient = file.values(name + "/output_gradient");
  for (const std::string& parameter : file.names(name + "/parameters")) {
    golden.parameters[parameter] = file.values(name + "/parameters/" + parameter);
    golden.expected[parameter] = file.values(name + "/parameter_gradients/" + parameter);
  }
  golden.expected["output"] = file.values(name + "/output");
  golden.expected["input"] = file.values(name + "/input_gradient");
  return golden;
}

namespace {

/// This rank's part of what is expected.
Tensors run_layer(const Rank& rank, const LayerGolden& golden) {
  ParameterBlock block("layer");
  Shape space;
  for (int dim = 1; dim + 1 < golden.field.rank(); ++dim) space.append(golden.field[dim]);
  const LayerPtr layer =
      golden.build({block, "", {space, golden.field.back()}, "layer", golden.time_channels});
  const BlockSpec spec{"layer", &block, false, layer->output_units()};
  const Layout layout = rank.mesh.field_layout(golden.field, layer->input_units());
  const auto run = [&](Tape& tape, const std::vector<Variable>& x) { return layer->run(tape, x[0]); };

  PlanBook plans;
  Tape trace(rank, plans, Tape::Mode::kTrace, DType::kFloat64);
  trace.block(spec, {Variable::traced(layout, -1)}, run);
  block.materialise(rank, Zero::kNone, DType::kFloat64, DType::kFloat64, 1);
  load(rank.context, block, golden.parameters);

  Tape tape(rank, plans, Tape::Mode::kRecord, DType::kFloat64);
  tape.set_training(golden.training);
  const Variable x({cut_piece(rank, layout, DType::kFloat64, golden.input), layout}, true);
  const Variable y = tape.block(spec, {x}, run);
  const Array dy = cut_piece(rank, y.layout(), DType::kFloat64, golden.output_gradient);
  y.slot()->add(rank, {dy, y.layout()});
  tape.backward();

  Tensors result;
  const auto paste = [&](const std::string& name, const ShardedTensor& value) {
    result[name].assign(static_cast<std::size_t>(value.layout.global.count()), NAN);
    paste_piece(rank, value.layout, value.piece, result[name]);
  };
  paste("output", y.value());
  paste("input", x.slot()->take());
  for (auto& group : block.groups()) {
    group->synchronise_gradients();
    collect(group->owned_segments(), group->owned_gradient(), result);
  }
  return result;
}

}  // namespace

Tensors run_layer_on(const LayerGolden& golden, const std::vector<int>& domain, int tensor) {
  int ranks = tensor;
  for (const int size : domain) ranks *= size;
  Tensors all;
  std::mutex mutex;
  testing::run_test_ranks(ranks, [&](Communicator& world) {
    Mesh mesh(world, 1, domain, tensor);
    const Tensors mine = run_layer(Rank{world.context(), mesh}, golden);
    const std::lock_guard lock(mutex);
    merge(all, mine);
  });
  return all;
}

void check_layer_on(const LayerGolden& golden, const std::vector<int>& domain, int tensor) {
  SCOPED_TRACE(concat(golden.name, " on domain [", join(domain, ", "), "] × tensor ", tensor));
  const Tensors all = run_layer_on(golden, domain, tensor);
  ASSERT_EQ(all.size(), golden.expected.size());
  for (const auto& [name, values] : golden.expected) {
    EXPECT_LE(relative_difference(all.at(name), values), 1e-10) << name;
  }
}

void check_layer(const LayerGolden& golden) {
  const int space = golden.field.rank() - 2;
  const auto check = [&](std::vector<int> domain, int tensor) {
    domain.resize(static_cast<std::size_t>(space), 1);
    check_layer_on(golden, domain, tensor);
  };
  for (const int tensor : {1, 2}) {
    for (const int rows : {1, 2, 3}) check({rows}, tensor);
    if (space > 1) check({2, 2}, tensor);
  }
}

void check_differences(const LayerGolden& golden) {
  testing::run_test_ranks(1, [&](Communicator& world) {
    SCOPED_TRACE(golden.name);
    Mesh mesh(world, 1, std::vector<int>(static_cast<std::size_t>(golden.field.rank() - 2), 1), 1);
    LayerGolden moved = golden;
    const auto objective = [&] {
      const std::vector<double> y = run_layer(Rank{world.context(), mesh}, moved).at("output");
      return std::inner_product(y.begin(), y.end(), golden.output_gradient.begin(), 0.0);
    };
    const auto check = [&](const std::string& name, std::vector<double>& elements) {
      std::vector<double> slopes;
      for (double& element : elements) {
        const double middle = element, step = 1e-5 * std::max(1.0, std::abs(element));
        element = middle + step;
        const double above = objective();
        element = middle - step;
        slopes.push_back((above - objective()) / (2 * step));
        element = middle;
      }
      EXPECT_LE(relative_difference(golden.expected.at(name), slopes), 1e-7) << "gradient by " << name;
    };
    check("input", moved.input);
    for (auto& [name, elements] : moved.parameters) check(name, elements);
  });
}

}  // namespace jigsaw::testing
