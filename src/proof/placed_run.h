#pragma once
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "proof/operation_cases.h"

namespace jigsaw {

/// An operation on random whole float64 tensors: its result and gradients on one rank by the reference
/// kernels, and whether runs on pieces give the same.
class PlacedRun {
 public:
  explicit PlacedRun(const OperationCase::Instance& instance);

  const Signature& signature() const { return signature_; }

  /// Whether the operation, run on pieces of its inputs cut along each axis as that axis's row says, gives
  /// pieces of the right result and, placed as gradient_placement() says, of the right gradients.
  /// @param sizes  ranks along each mesh axis.
  /// @param rows   one per axis; null for all-Replicate. They need not be rows of the operation.
  ///
  /// Pieces run one after the other; a run that communicates runs again on ranks that are threads. Summands
  /// of a Partial input differ from rank to rank.
  bool right(const std::vector<int>& sizes, const std::vector<const Row*>& rows);

 private:
  struct Stage;
  struct Pieces {
    Array output;
    std::vector<Array> gradients;
  };

  Stage& stage(const std::vector<int>& sizes);
  Array random_array(const Shape& shape);
  const std::vector<Array>& summands(std::size_t input, int count);
  Array input_piece(const MeshShape& mesh, const Layout& layout, const Coordinates& at, std::size_t input);
  Pieces run(const Rank& rank, const Decision& decision, const std::vector<Array>& inputs,
             const Array& output_gradient) const;  // no gradients where the output's shape is wrong
  bool assembles(const MeshShape& mesh, const Layout& layout, const std::vector<Array>& pieces,
                 const Array& whole);

  const OperationCase::Instance& instance_;
  std::mt19937_64 generator_{11};
  Context context_ = Context::make_host(Backend::kReference, 1);
  Signature signature_;
  std::vector<Array> inputs_;
  Array output_gradient_;
  Pieces expected_;
  std::map<std::pair<std::size_t, int>, std::vector<Array>> summands_;
  std::map<std::vector<int>, std::shared_ptr<Stage>> stages_;
};

}  // namespace jigsaw
