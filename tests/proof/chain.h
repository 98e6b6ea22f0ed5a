#pragma once
#include <functional>
#include <string>
#include <vector>

#include "autograd/field_operations.h"
#include "autograd/operations.h"
#include "support/parameters.h"

namespace jigsaw::testing {

/// One to three operations from a field [B, H, W, C] to a field. The seed chooses operands, options, and how
/// the operations run and where their results are kept.
struct Link {
  enum class Kind : std::uint8_t {
    kLinear,
    kPointwise,
    kNorm,
    kTokens,
    kPatches,
    kProducts,  ///< of a field with another of its shape, and with what they make
    kAttention,
    kConvolution,
    kGroupNorm,
    kPooling,
    kUpsampling,
    kConcatenation,
    kSplit  ///< and the parts joined again
  };
  static constexpr int kKinds = 13;
  Kind kind;
  unsigned seed;
};

/// A chain of operations in float64 on a mesh, every operation in rules drawn at random along every axis,
/// every value kept in a layout drawn at random, Partial ones too.
struct Chain {
  Shape input;
  std::vector<Link> links;
  int data = 1;
  std::vector<int> domain = {1, 1};
  int tensor = 1;
  bool recompute = false;
  unsigned seed = 0;  ///< of the numbers, and of the input's layout

  int ranks() const { return data * domain[0] * domain[1] * tensor; }
  std::string to_string() const;
};

Chain random_chain(unsigned seed);

/// Changes what an operation lists, to see a wrong rule caught.
using EditRows = std::function<void(Signature&)>;

/// Output and all gradients of Σ weight · output: on the chain's mesh, or on one rank.
Tensors run_chain(const Chain& chain, const EditRows& edit = {});
Tensors run_dense(Chain chain);
/// The plan that a chain's seed draws, for people.
std::string plan_of(const Chain& chain, const EditRows& edit = {});

/// The largest difference between the two relative to the tensor's largest element; infinite when the run
/// throws.
double chain_error(const Chain& chain, const EditRows& edit = {});

/// The smallest chain that still fails: links and mesh axes are left out as long as it does.
Chain shrink(Chain chain, const std::function<bool(const Chain&)>& fails);

}  // namespace jigsaw::testing
