#pragma once
#include <vector>

#include "config/config.h"
#include "layers/model.h"
#include "support/parameters.h"
#include "support/test_ranks.h"

namespace jigsaw::testing::unet_runs {

struct ModelSection {
  Tagged model;
};
void declare(Keys<ModelSection>& keys);

/// One forward and backward pass of a model, given its upstream gradient.
struct ModelRun {
  Json model;
  Shape field;  ///< the input
  std::int64_t outputs = 1;
  std::vector<double> input, output_gradient;  ///< empty: made up
  Tensors parameters;                          ///< empty: as the model starts
  bool recompute = false;
  DType dtype = DType::kFloat64;  ///< fp32 runs on the fast kernels
  PoleCrossing crossing = {};     ///< of the input's channels

  struct Result {
    Tensors tensors;  ///< "output", "input" and the gradients of parameters
    std::vector<std::int64_t> peak_activation_bytes;
  };
};

/// A number for an element, from −1 to 1.
double made_up(std::int64_t index, double phase);

/// On a mesh of so many ranks, which are threads.
ModelRun::Result run_on(const ModelRun& run, const std::vector<int>& domain, int tensor, int data = 1);

void expect_equal(const Tensors& actual, const Tensors& expected, double tolerance);

}  // namespace jigsaw::testing::unet_runs
