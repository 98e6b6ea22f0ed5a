#include "kernels/cpu/convolution_primitive.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "array/parallel.h"
#include "array/raw_memory.h"
#include "kernels/cpu/onednn.h"

namespace jigsaw::inline kernels::cpu {

namespace {

using dnnl::memory;

/// [B, space…, C] as oneDNN names it: dims in the order B, C, space, channels innermost in memory.
memory::desc field(const Shape& shape, DType dtype) {
  memory::dims dims{shape[0], shape.back()};
  for (int dim = 1; dim < shape.rank() - 1; ++dim) dims.push_back(shape[dim]);
  constexpr memory::format_tag kTags[] = {memory::format_tag::nwc, memory::format_tag::nhwc,
                                          memory::format_tag::ndhwc};
  return {dims, onednn_type(dtype), kTags[shape.rank() - 3]};
}

/// [O, C/groups, kernel…] as it lies in memory, with the groups as a dim of their own where there are
/// several.
memory::desc plain_weight(const ConvolutionKey& key, DType dtype) {
  const std::int64_t groups = key.convolution.groups;
  const Shape& kernel = key.convolution.window.extent;
  memory::dims dims{key.y.back() / groups, key.x.back() / groups};
  for (const std::int64_t extent : kernel) dims.push_back(extent);
  if (groups > 1) dims.insert(dims.begin(), groups);
  memory::dims strides(dims.size(), 1);
  for (std::size_t i = dims.size() - 1; i > 0; --i) strides[i - 1] = strides[i] * dims[i];
  return {dims, onednn_type(dtype), strides};
}

memory::dims dims_of(const Shape& shape, std::int64_t less) {
  memory::dims dims;
  for (const std::int64_t each : shape) dims.push_back(each - less);
  return dims;
}

/// What a description of any of the three passes is made from.
struct Parts {
  explicit Parts(const ConvolutionKey& key)
      : x(field(key.x, type(key, ConvolutionPass::kBackwardData))),
        y(field(key.y, type(key, ConvolutionPass::kForward))),
        plain(plain_weight(key, type(key, ConvolutionPass::kBackwardWeight))),
        weight(any_layout(plain)),
        strides(dims_of(key.convolution.window.stride, 0)),
        dilations(dims_of(key.convolution.window.dilation, 1)),
        low(padding(key.convolution.low)),
        high(padding(key.convolution.high)) {
    if (key.bias) bias = {{key.y.back()}, memory::data_type::f32, memory::format_tag::a};
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  }

  /// The operand that `maker` makes has the key's out type in that pass, else the in type.
  static DType type(const ConvolutionKey& key, ConvolutionPass maker) {
    return key.pass == maker ? key.out : key.in;
  }

  memory::dims padding(const Shape& ends) const {
    return ends.rank() == 0 ? memory::dims(strides.size(), 0) : dims_of(ends, 0);
  }

  memory::desc x, y, plain, weight, bias;
  memory::dims strides, dilations, low, high;
  dnnl::primitive_attr attributes;
};

/// Whether zeros lie beyond the ends of a dim in which fewer than two windows fit between these.
bool narrow(const Convolution& convolution, const Shape& x) {
  const Window& window = convolution.window;
  for (int dim = 0; dim < convolution.low.rank(); ++dim) {
    const bool padded = convolution.low[dim] + convolution.high[dim] > 0;
    if (padded && x[dim + 1] < window.reach(dim) + window.stride[dim]) return true;
  }
  return false;
}

/// Whether that code of oneDNN's may give wrong numbers, as scans of random convolutions with 2.6 found:
/// - codes for windows of one point write beyond a workspace where a stride is above 1 and channels are few:
///   wrong gradients of the weight, or none at all (also oneDNN issue 6035);
/// - that for bf16 leaves out parts of the gradient of the input where channels fill no vector (1100 of 56628
///   small shapes, 5 channels by 17 on [12, 15] among them);
/// - in narrow fields gradients of weights by AVX-512 are wrong, those of bf16 written beyond their end, too;
///   products of copied windows are right.
bool wrong(const ConvolutionKey& key, std::string_view code) {
  const auto called = [&](std::string_view part) { return code.find(part) != std::string_view::npos; };
  if (called("1x1")) {
    const Shape& stride = key.convolution.window.stride;
    if (std::any_of(stride.begin(), stride.end(), [](std::int64_t each) { return each > 1; })) return true;
    if (key.pass == ConvolutionPass::kBackwardData && key.in == DType::kBfloat16) return true;
  }
  return key.pass == ConvolutionPass::kBackwardWeight && !called("gemm") && narrow(key.convolution, key.x);
}

/// The quickest of oneDNN's codes that is right. What the description was made from, a hint too, must live.
/// @throws dnnl::error  as where oneDNN has no code, of status unimplemented: make() then gives none.
template <typename Description>
Description right(const ConvolutionKey& key, Description description) {
  while (wrong(key, description.impl_info_str())) {
    if (!description.next_impl()) throw dnnl::error(dnnl_unimplemented, "no other code");
  }
  return description;
}

constexpr auto kDirect = dnnl::algorithm::convolution_direct;

using Forward = dnnl::convolution_forward::primitive_desc;

Forward describe_forward(const dnnl::engine& engine, const ConvolutionKey& key, const Parts& p) {
  constexpr auto kTraining = dnnl::prop_kind::forward_training;
#if DNNL_VERSION_MAJOR >= 3
  return right(key, Forward(engine, kTraining, kDirect, p.x, p.weight, p.bias, p.y, p.strides, p.dilations,
                            p.low, p.high, p.attributes));
#else
  if (p.bias.data.ndims == 0) {
    return right(key, Forward({kTraining, kDirect, p.x, p.weight, p.y, p.strides, p.dilations, p.low, p.high},
                              p.attributes, engine));
  }
  return right(
      key, Forward({kTraining, kDirect, p.x, p.weight, p.bias, p.y, p.strides, p.dilations, p.low, p.high},
                   p.attributes, engine));
#endif
}

/// The forward pass that backward passes want to be shown, all of one type.
Forward hint(const dnnl::engine& engine, ConvolutionKey key) {
  key.pass = ConvolutionPass::kForward;
  key.out = key.in;
  return describe_forward(engine, key, Parts(key));
}

/// @tparam Pass  dnnl::convolution_backward_data or dnnl::convolution_backward_weights.
template <typename Pass>
typename Pass::primitive_desc describe_backward(const dnnl::engine& engine, const ConvolutionKey& key,
                                                const Parts& p) {
  using Backward = typename Pass::primitive_desc;
  const Forward forward = hint(engine, key);
#if DNNL_VERSION_MAJOR >= 3
  return right(key, Backward(engine, kDirect, p.x, p.weight, p.y, p.strides, p.dilations, p.low, p.high,
                             forward, p.attributes));
#else
  return right(key, Backward({kDirect, p.x, p.weight, p.y, p.strides, p.dilations, p.low, p.high},
                             p.attributes, engine, forward));
#endif
}

}  // namespace

std::vector<std::int64_t> ConvolutionKey::numbers() const {
  std::vector<std::int64_t> numbers = {
      static_cast<std::int64_t>(pass), convolution.groups, static_cast<std::int64_t>(in),
      static_cast<std::int64_t>(out),  bias ? 1 : 0,       threads};
  const Window& window = convolution.window;
  for (const Shape* each :
       {&x, &y, &window.extent, &window.stride, &window.dilation, &convolution.low, &convolution.high}) {
    numbers.push_back(each->rank());
    numbers.insert(numbers.end(), each->begin(), each->end());
  }
  return numbers;
}

struct ConvolutionPrimitive::State {
  explicit State(const ConvolutionKey& key)
      : threads(key.threads), engine(dnnl::engine::kind::cpu, 0), stream(engine) {
    const Parts parts(key);
    plain = parts.plain;
    x = memory(parts.x, engine, nullptr);
    y = memory(parts.y, engine, nullptr);
    if (key.bias) bias = memory(parts.bias, engine, nullptr);
    switch (key.pass) {
      case ConvolutionPass::kForward: {
        const auto description = describe_forward(engine, key, parts);
        adopt(description, dnnl::convolution_forward(description), description.weights_desc());
        arguments = {{DNNL_ARG_SRC, &x}, {DNNL_ARG_WEIGHTS, &weight}, {DNNL_ARG_DST, &y}};
        if (key.bias) arguments.emplace_back(DNNL_ARG_BIAS, &bias);
        break;
      }
      case ConvolutionPass::kBackwardData: {
        const auto description = describe_backward<dnnl::convolution_backward_data>(engine, key, parts);
        adopt(description, dnnl::convolution_backward_data(description), description.weights_desc());
        arguments = {{DNNL_ARG_DIFF_SRC, &x}, {DNNL_ARG_WEIGHTS, &weight}, {DNNL_ARG_DIFF_DST, &y}};
        break;
      }
      case ConvolutionPass::kBackwardWeight: {
        const auto description = describe_backward<dnnl::convolution_backward_weights>(engine, key, parts);
        adopt(description, dnnl::convolution_backward_weights(description), description.diff_weights_desc());
        arguments = {{DNNL_ARG_SRC, &x}, {DNNL_ARG_DIFF_WEIGHTS, &weight}, {DNNL_ARG_DIFF_DST, &y}};
        break;
      }
    }
    arguments.emplace_back(DNNL_ARG_SCRATCHPAD, &scratch);
  }

  template <typename Description>
  void adopt(const Description& description, const dnnl::primitive& made, const memory::desc& packed) {
    primitive = made;
    weight = memory(packed, engine, nullptr);
    scratch = memory(description.scratchpad_desc(), engine, nullptr);
    slow = std::string_view(description.impl_info_str()).find("ref") != std::string_view::npos;
  }

  int threads;
  bool slow = false;
  dnnl::engine engine;
  dnnl::stream stream;
  dnnl::primitive primitive;
  memory::desc plain;
  memory x, weight, bias, y, scratch;
  std::vector<std::pair<int, memory*>> arguments;
};

ConvolutionPrimitive::ConvolutionPrimitive(std::unique_ptr<State> state) : state_(std::move(state)) {}
ConvolutionPrimitive::~ConvolutionPrimitive() = default;

std::unique_ptr<ConvolutionPrimitive> ConvolutionPrimitive::make(const ConvolutionKey& key) {
  const LibraryThreads threads(key.threads);
  try {
    auto state = std::make_unique<State>(key);
    if (state->slow) return nullptr;
    return std::unique_ptr<ConvolutionPrimitive>(new ConvolutionPrimitive(std::move(state)));
  } catch (const dnnl::error& error) {
    if (error.status == dnnl_unimplemented) return nullptr;
    rethrow(error, "a convolution");
  }
}

void ConvolutionPrimitive::run(Context& context, const std::byte* x, const std::byte* packed_weight,
                               const std::byte* bias, const std::byte* y) {
  State& s = *state_;
  const LibraryThreads threads(s.threads);
  Array scratch = workspace_of(context, s.scratch.get_desc());
  try {
    s.x.set_data_handle(address(x));
    s.weight.set_data_handle(address(packed_weight));
    if (bias != nullptr) s.bias.set_data_handle(address(bias));
    s.y.set_data_handle(address(y));
    s.scratch.set_data_handle(scratch.raw());
    std::unordered_map<int, memory> arguments;
    for (const auto& [name, operand] : s.arguments) arguments.emplace(name, *operand);
    s.primitive.execute(s.stream, arguments);
    s.stream.wait();
  } catch (const dnnl::error& error) {
    rethrow(error, "a convolution");
  }
}

Array ConvolutionPrimitive::packed_workspace(Context& context) const {
  return workspace_of(context, state_->weight.get_desc());
}

Array ConvolutionPrimitive::pack(Context& context, const Array& weight) {
  const LibraryThreads threads(state_->threads);
  Array packed = packed_workspace(context);
  try {
    reorder(state_->engine, state_->stream, state_->plain, weight.raw(), state_->weight.get_desc(),
            packed.raw());
  } catch (const dnnl::error& error) {
    rethrow(error, "the packing of a convolution's weight");
  }
  return packed;
}

void ConvolutionPrimitive::unpack(const Array& packed, Array& weight) {
  const LibraryThreads threads(state_->threads);
  try {
    reorder(state_->engine, state_->stream, state_->weight.get_desc(), packed.raw(), state_->plain,
            weight.raw());
  } catch (const dnnl::error& error) {
    rethrow(error, "the unpacking of a convolution's weight");
  }
}

}  // namespace jigsaw::inline kernels::cpu
