#pragma once
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "autograd/registry.h"

namespace jigsaw::inline proof {

/// Makes the context of a rank.
using MakeContext = std::function<Context()>;
/// One on the host with reference kernels.
Context reference_context();

/// An operation on random whole float64 tensors: its results and gradients on one rank by the reference
/// kernels, and whether runs on pieces give the same.
class PlacedRun {
 public:
  /// @param make_context  of the ranks that run on pieces; with kernels that are as exact in float64.
  explicit PlacedRun(const ProofCase::Instance& instance,
                     const MakeContext& make_context = reference_context);

  const Signature& signature() const { return trace_.nodes[0].signature; }

  /// Whether the operation, run on pieces of its inputs cut along each axis as that axis's rule says, gives
  /// pieces of the right results and, placed as gradient_placement() says, of the right gradients.
  /// @param sizes  ranks along each mesh axis.
  /// @param rules   one per axis; null for all-Replicate. They need not be rules of the operation.
  ///
  /// Pieces run one after the other; a run that communicates runs again on ranks that are threads. Summands
  /// of a Partial input differ from rank to rank.
  bool right(const std::vector<int>& sizes, const std::vector<const ShardingRule*>& rules);

 private:
  struct Stage;
  struct Pieces {
    std::vector<Array> outputs, gradients;
  };

  Stage& stage(const std::vector<int>& sizes);
  Array random_array(const Shape& shape);
  const std::vector<Array>& summands(std::size_t input, int count);
  Array input_piece(const MeshShape& mesh, const Layout& layout, const Coordinates& at, std::size_t input);
  Pieces run(
      const Rank& rank, const Decision& decision, const std::vector<Array>& inputs,
      const std::vector<Array>& output_gradients) const;  // no gradients where an output's shape is wrong
  bool assembles(const MeshShape& mesh, const Layout& layout, const std::vector<Array>& pieces,
                 const Array& whole);

  const ProofCase::Instance& instance_;
  std::mt19937_64 generator_{11};
  MakeContext make_context_;
  Context context_ = reference_context();  // where whole tensors and pieces stand between runs
  Context rank_context_;                   // of ranks that run one after the other
  Trace trace_;                            // of the operation
  std::vector<Array> inputs_;
  std::vector<Array> output_gradients_;
  Pieces expected_;
  std::map<std::pair<std::size_t, int>, std::vector<Array>> summands_;
  std::map<std::vector<int>, std::shared_ptr<Stage>> stages_;
};

}  // namespace jigsaw::inline proof
