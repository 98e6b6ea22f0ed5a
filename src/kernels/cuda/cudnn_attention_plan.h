#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "kernels/cuda/cudnn_attention.h"
#include "kernels/cuda/cudnn_handle.h"

namespace jigsaw::inline kernels::cuda {

/// How cuDNN solves attention: the graph that its frontend builds (scaled_dot_product_flash_attention.h
/// there), of an engine that repeats its sums bit for bit if the problem is to be deterministic. What it
/// takes backward is the caller's to bound: of cuDNN 9.19 queries × keys bf16 numbers for each head, on B200
/// next to nothing; in any order queries × head size f32 numbers, on A100 twice as many.
class CudnnAttentionPlan {
 public:
  /// Nothing where cuDNN has no such engine. @throws LibraryError  when cuDNN is not all there
  /// @param why  gets what cuDNN says then.
  static std::optional<CudnnAttentionPlan> make(const CudnnAttentionProblem& problem,
                                                const CudnnHandle& handle, std::string& why);
  /// The same for a GPU that is not there, whose properties are cuDNN's JSON
  /// (CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION).
  static std::optional<CudnnAttentionPlan> make(const CudnnAttentionProblem& problem,
                                                const std::string& device, std::string& why);

  /// Why cuDNN is not asked; "" where it is. Both reasons are of the backward pass: up to 9.30 its gradients
  /// are NaN where all scores of a query lie below −88.7, and 64 keys are left of tiles of 128 or there is
  /// one query (github.com/NVIDIA/cudnn-frontend, #628 and #1072); and its frontend lays the workspace behind
  /// four bytes for each query of each head, which together must be a multiple of 16.
  static std::string refusal(const CudnnAttentionProblem& problem);

  CudnnAttentionPlan(CudnnAttentionPlan&&) noexcept;
  ~CudnnAttentionPlan();

  const CudnnAttentionProblem& problem() const;
  std::int64_t workspace_bytes() const { return workspace_bytes_; }
  /// Puts the work into the stream of the handle that the plan was made with. @throws LibraryError
  void run(const CudnnHandle& handle, const CudnnAttentionOperands& operands, void* workspace) const;

 private:
  struct Graph;
  explicit CudnnAttentionPlan(std::unique_ptr<Graph> graph);
  static std::optional<CudnnAttentionPlan> make(std::unique_ptr<Graph> graph, std::string& why);

  std::unique_ptr<Graph> graph_;
  std::int64_t workspace_bytes_ = 0;
};

}  // namespace jigsaw::inline kernels::cuda
