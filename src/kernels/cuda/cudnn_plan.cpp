#include "kernels/cuda/cudnn_plan.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "kernels/cuda_workspace.h"

namespace jigsaw::inline kernels::cuda {

namespace {

using Pass = CudnnProblem::Pass;

/// Operands of a run.
enum Id : std::int64_t { kX = 1, kWeight, kBias, kY, kSums };

/// Whether a status says that cuDNN, or one engine of it, cannot do something, and not that it has failed.
/// @param of_engine  the status of one engine's plan.
bool is_refusal(cudnnStatus_t status, bool of_engine) {
  switch (status) {
    // The engine does not compile. (A lack of memory would have another status, and pass.)
    case CUDNN_STATUS_INTERNAL_ERROR:
    case CUDNN_STATUS_INTERNAL_ERROR_COMPILATION_FAILED:
    case CUDNN_STATUS_INTERNAL_ERROR_UNEXPECTED_VALUE:
      return true;
    default:
      break;
  }
  const int category = CUDNN_STATUS_CATEGORY(status);
  // What was compiled is not loaded, as by a driver that is older than the compiler. (Whether the device has
  // failed is asked where no engine is left.)
  if (category == CUDNN_STATUS_EXECUTION_FAILED) return of_engine;
  return category == CUDNN_STATUS_NOT_SUPPORTED || category == CUDNN_STATUS_BAD_PARAM;
}

/// A descriptor of the backend, destroyed with its owner.
class Descriptor {
 public:
  explicit Descriptor(cudnnBackendDescriptorType_t type) {
    check(cudnnBackendCreateDescriptor(type, &descriptor_), "make a descriptor");
  }
  ~Descriptor() {
    if (descriptor_ != nullptr) cudnnBackendDestroyDescriptor(descriptor_);
  }
  Descriptor(Descriptor&& other) noexcept : descriptor_(std::exchange(other.descriptor_, nullptr)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }

  cudnnBackendDescriptor_t get() const { return descriptor_; }

  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count,
           const void* values) {
    check(cudnnBackendSetAttribute(descriptor_, name, type, count, values), "describe a convolution");
  }
  void set(cudnnBackendAttributeName_t name, std::int64_t value) { set(name, CUDNN_TYPE_INT64, 1, &value); }
  void set(cudnnBackendAttributeName_t name, std::span<const std::int64_t> values) {
    set(name, CUDNN_TYPE_INT64, std::ssize(values), values.data());
  }
  void set(cudnnBackendAttributeName_t name, cudnnDataType_t value) {
    set(name, CUDNN_TYPE_DATA_TYPE, 1, &value);
  }
  void set(cudnnBackendAttributeName_t name, float value) { set(name, CUDNN_TYPE_FLOAT, 1, &value); }
  void set(cudnnBackendAttributeName_t name, const Descriptor& value) {
    set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value.descriptor_);
  }
  /// @param said  gets cuDNN's words for why it refuses, unless it has some that are of_installation().
  /// @param of_engine  it is one engine's plan.
  /// @return  false where cuDNN, or one engine of it, cannot do what is described
  bool finalize(std::string& said, bool of_engine = false) {
    const cudnnStatus_t status = cudnnBackendFinalize(descriptor_);
    if (status == CUDNN_STATUS_SUCCESS) return true;
    const std::string words = words_of(status);
    if (!is_refusal(status, of_engine)) throw failure("plan a convolution", words);
    if (!of_installation(said)) said = words;
    return false;
  }

 private:
  cudnnBackendDescriptor_t descriptor_ = nullptr;
};

cudnnDataType_t type_of(DType dtype) {
  return dtype == DType::kBfloat16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
}

/// Extents of a dense field with channels last as cuDNN lists them: samples, channels, space. cuDNN knows two
/// and three dims; a line is a plane of one row.
struct Extents {
  /// @param field  [B, space…, C], or a weight [O, kernel…, C/groups]
  explicit Extents(const Shape& field) {
    const int space = field.rank() - 2;
    dims = {field[0], field.back()};
    if (space == 1) dims.push_back(1);
    for (int dim = 0; dim < space; ++dim) dims.push_back(field[dim + 1]);
    strides.assign(dims.size(), 1);
    std::int64_t step = dims[1];
    for (std::size_t dim = dims.size(); dim-- > 2;) {
      strides[dim] = step;
      step *= dims[dim];
    }
    strides[0] = step;
  }
  std::vector<std::int64_t> dims, strides;
};

Descriptor tensor(Id id, DType dtype, const Shape& field, bool is_virtual = false) {
  Descriptor tensor(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  const Extents extents(field);
  tensor.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, std::int64_t{id});
  tensor.set(CUDNN_ATTR_TENSOR_DATA_TYPE, type_of(dtype));
  tensor.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, std::int64_t{16});
  tensor.set(CUDNN_ATTR_TENSOR_DIMENSIONS, extents.dims);
  tensor.set(CUDNN_ATTR_TENSOR_STRIDES, extents.strides);
  if (is_virtual) tensor.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual);
  check(cudnnBackendFinalize(tensor.get()), "describe an operand");
  return tensor;
}

/// One entry per spatial dim; `one` in front of a single one.
std::vector<std::int64_t> entries(const Shape& shape, int space, std::int64_t one) {
  std::vector<std::int64_t> result(static_cast<std::size_t>(std::max(space, 2)), one);
  for (int dim = 0; dim < shape.rank(); ++dim)
    result[result.size() - static_cast<std::size_t>(space - dim)] = shape[dim];
  return result;
}

Descriptor window_of(const Convolution& convolution) {
  Descriptor window(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  const int space = convolution.window.extent.rank();
  const auto set = [&](cudnnBackendAttributeName_t name, const Shape& shape, std::int64_t one) {
    window.set(name, entries(shape, space, one));
  };
  const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  window.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, std::int64_t{std::max(space, 2)});
  window.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT);
  window.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
  set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, convolution.low, 0);
  set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, convolution.high, 0);
  set(CUDNN_ATTR_CONVOLUTION_DILATIONS, convolution.window.dilation, 1);
  set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, convolution.window.stride, 1);
  check(cudnnBackendFinalize(window.get()), "describe a window");
  return window;
}

/// Properties of an engine for which this program does not take it.
bool unwanted(cudnnBackendNumericalNote_t note, const CudnnProblem& problem) {
  switch (note) {
    case CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP:
      return false;
    case CUDNN_NUMERICAL_NOTE_TENSOR_CORE:  // of f32 factors it takes 11 bits
      return problem.type == DType::kFloat32 && !problem.rounded;
    case CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC:
      return problem.deterministic;
    default:
      return true;
  }
}

/// Descriptors that an attribute holds, each of the given type.
std::vector<Descriptor> descriptors_of(const Descriptor& owner, cudnnBackendAttributeName_t name,
                                       cudnnBackendDescriptorType_t type) {
  std::int64_t count = 0;
  check(cudnnBackendGetAttribute(owner.get(), name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, nullptr),
        "list engines");
  std::vector<Descriptor> descriptors;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (std::int64_t i = 0; i < count; ++i) raw.push_back(descriptors.emplace_back(type).get());
  check(cudnnBackendGetAttribute(owner.get(), name, CUDNN_TYPE_BACKEND_DESCRIPTOR, count, &count, raw.data()),
        "list engines");
  descriptors.erase(descriptors.begin() + count, descriptors.end());
  return descriptors;
}

Shape weight_shape(const CudnnProblem& problem) {
  Shape shape{problem.y.back()};
  for (const std::int64_t extent : problem.convolution.window.extent) shape.append(extent);
  shape.append(problem.x.back() / problem.convolution.groups);
  return shape;
}

}  // namespace

/// The convolution and what it is added to, and on which device.
struct CudnnPlan::Graph {
  Graph(const CudnnProblem& problem_, cudnnHandle_t handle_) : problem(problem_), handle(handle_) {
    const DType type = problem.type;
    x.emplace(tensor(kX, type, problem.x));
    weight.emplace(tensor(kWeight, type, weight_shape(problem)));
    y.emplace(tensor(kY, type, problem.y));
    window.emplace(window_of(problem.convolution));
    switch (problem.pass) {
      case Pass::kForward:
        if (problem.bias) sums.emplace(tensor(kSums, DType::kFloat32, problem.y, true));
        convolve(
            CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
            {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
             CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
             CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA});
        if (problem.bias) add_bias();
        break;
      case Pass::kData:
        convolve(
            CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
            {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA});
        break;
      case Pass::kWeight:
        convolve(
            CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
            {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA});
        break;
    }
    if (!supported) return;
    std::vector<cudnnBackendDescriptor_t> raw;
    for (const Descriptor& operation : operations) raw.push_back(operation.get());
    if (handle != nullptr) graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
    graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, std::ssize(raw), raw.data());
  }

  struct Names {
    cudnnBackendAttributeName_t window, x, weight, y, alpha, beta;
  };
  void convolve(cudnnBackendDescriptorType_t type, const Names& names) {
    Descriptor& operation = operations.emplace_back(type);
    operation.set(names.window, *window);
    operation.set(names.x, *x);
    operation.set(names.weight, *weight);
    operation.set(names.y, sums ? *sums : *y);
    operation.set(names.alpha, 1.0F);
    operation.set(names.beta, 0.0F);
    supported = supported && operation.finalize(said);
  }
  void add_bias() {
    Shape shape = Shape::filled(problem.y.rank(), 1);
    shape[shape.rank() - 1] = problem.y.back();
    bias.emplace(tensor(kBias, problem.type, shape));
    addition.emplace(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    const cudnnPointwiseMode_t mode = CUDNN_POINTWISE_ADD;
    addition->set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
    addition->set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT);
    check(cudnnBackendFinalize(addition->get()), "describe an addition");
    Descriptor& operation = operations.emplace_back(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, *addition);
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, *sums);
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *bias);
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, *y);
    supported = supported && operation.finalize(said);
  }

  CudnnProblem problem;
  cudnnHandle_t handle;  ///< none where the device is only described
  bool supported = true;
  std::string said;  ///< as cuDNN refused something last, or by words of_installation(); "" for nothing
  std::optional<Descriptor> x, weight, bias, y, sums, window, addition, device;
  std::vector<Descriptor> operations;
  Descriptor graph{CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR};
  std::optional<Descriptor> plan;
};

CudnnPlan::CudnnPlan(std::unique_ptr<Graph> graph) : graph_(std::move(graph)) {}
CudnnPlan::CudnnPlan(CudnnPlan&&) noexcept = default;
CudnnPlan::~CudnnPlan() = default;

const CudnnProblem& CudnnPlan::problem() const {
  return graph_->problem;
}

std::optional<CudnnPlan> CudnnPlan::make(const CudnnProblem& problem, const CudnnHandle& handle,
                                         std::string* why) {
  return make(std::make_unique<Graph>(problem, handle.get()), why);
}

std::optional<CudnnPlan> CudnnPlan::make(const CudnnProblem& problem, const std::string& device,
                                         std::string* why) {
  auto graph = std::make_unique<Graph>(problem, nullptr);
  graph->device.emplace(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  graph->device->set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, std::ssize(device),
                     device.data());
  check(cudnnBackendFinalize(graph->device->get()), "read a device's properties");
  return make(std::move(graph), why);
}

std::optional<CudnnPlan> CudnnPlan::make(std::unique_ptr<Graph> made, std::string* why) {
  Graph& graph = *made;
  const auto none = [&]() -> std::optional<CudnnPlan> {
    require_whole_installation("plan " + graph.problem.text(), of_installation(graph.said) ? graph.said : "");
    if (why != nullptr) *why = graph.said;
    return std::nullopt;
  };
  if (!graph.supported || !graph.graph.finalize(graph.said)) return none();
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    Descriptor heuristic(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    heuristic.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph.graph);
    heuristic.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    if (graph.device) heuristic.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *graph.device);
    if (!heuristic.finalize(graph.said)) continue;
    for (const Descriptor& engine :
         descriptors_of(heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR)) {
      const std::vector<Descriptor> of =
          descriptors_of(engine, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
      std::array<cudnnBackendNumericalNote_t, CUDNN_NUMERICAL_NOTE_TYPE_COUNT> notes{};
      std::int64_t count = 0, index = 0, one = 0;
      check(cudnnBackendGetAttribute(of.at(0).get(), CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                     CUDNN_TYPE_NUMERICAL_NOTE, std::ssize(notes), &count, notes.data()),
            "ask an engine for its numerics");
      check(cudnnBackendGetAttribute(of.at(0).get(), CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1,
                                     &one, &index),
            "ask an engine for its number");
      if (std::any_of(notes.begin(), notes.begin() + std::min(count, std::ssize(notes)),
                      [&](auto note) { return unwanted(note, graph.problem); }))
        continue;
      Descriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
      if (graph.handle != nullptr)
        plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &graph.handle);
      if (graph.device) plan.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, *graph.device);
      plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, engine);
      if (!plan.finalize(graph.said, true)) continue;
      std::int64_t bytes = 0;
      check(cudnnBackendGetAttribute(plan.get(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64,
                                     1, &one, &bytes),
            "ask a plan for its workspace");
      // There may be as much of copies, which are read by `rounded` ones alone.
      if (bytes > kMostCudaWorkspaceBytes / (graph.problem.rounded ? 2 : 1)) continue;
      graph.plan.emplace(std::move(plan));
      CudnnPlan result(std::move(made));
      result.workspace_bytes_ = bytes;
      result.engine_ = concat("engine ", index);
      return result;
    }
  }
  return none();
}

void CudnnPlan::run(const CudnnHandle& handle, const CudnnOperands& operands, void* workspace) const {
  std::vector<std::int64_t> ids = {kX, kWeight, kY};
  std::vector<const void*> addresses = {operands.x, operands.weight, operands.y};
  if (graph_->problem.bias) {
    ids.push_back(kBias);
    addresses.push_back(operands.bias);
  }
  Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, ids);
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, std::ssize(addresses),
           addresses.data());
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
  check(cudnnBackendFinalize(pack.get()), "bind operands");
  const cudnnStatus_t status = cudnnBackendExecute(handle.get(), graph_->plan->get(), pack.get());
  if (status != CUDNN_STATUS_SUCCESS) throw failure("run " + graph_->problem.text(), words_of(status));
}

}  // namespace jigsaw::inline kernels::cuda
