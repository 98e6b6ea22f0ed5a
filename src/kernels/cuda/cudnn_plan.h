#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "kernels/cuda/cudnn_convolution.h"
#include "kernels/cuda/cudnn_handle.h"

namespace jigsaw::inline kernels::cuda {

/// How cuDNN solves a problem: its graph API (cudnn_graph.h) with one convolution, and the addition of the
/// bias. An engine is taken that forms its sums in full and, if the problem is to be deterministic, repeats
/// them bit for bit.
class CudnnPlan {
 public:
  /// Nothing where cuDNN has no such engine. @throws LibraryError  when cuDNN fails, or is not all there
  /// @param why  gets cuDNN's last words where there is none, if it has said any.
  static std::optional<CudnnPlan> make(const CudnnProblem& problem, const CudnnHandle& handle,
                                       std::string* why = nullptr);
  /// The same for a GPU that is not there, whose properties are cuDNN's JSON
  /// (CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION).
  static std::optional<CudnnPlan> make(const CudnnProblem& problem, const std::string& device,
                                       std::string* why = nullptr);

  CudnnPlan(CudnnPlan&&) noexcept;
  ~CudnnPlan();

  const CudnnProblem& problem() const;
  std::int64_t workspace_bytes() const { return workspace_bytes_; }
  /// cuDNN's name of the engine, for people.
  const std::string& engine() const { return engine_; }
  /// Puts the work into the stream of the handle that the plan was made with. @throws LibraryError
  void run(const CudnnHandle& handle, const CudnnOperands& operands, void* workspace) const;

 private:
  struct Graph;
  explicit CudnnPlan(std::unique_ptr<Graph> graph);
  static std::optional<CudnnPlan> make(std::unique_ptr<Graph> graph, std::string* why);

  std::unique_ptr<Graph> graph_;
  std::int64_t workspace_bytes_ = 0;
  std::string engine_;
};

}  // namespace jigsaw::inline kernels::cuda
