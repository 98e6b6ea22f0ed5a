#include "kernels/cpu/matmul.h"

#include <string_view>

#include "array/parallel.h"
#include "array/raw_memory.h"
#include "kernels/cpu/onednn.h"

namespace jigsaw::inline kernels::cpu {

namespace {

using dnnl::memory;

/// A matrix, or a batch of them; a batch stride of zero is a batch of one, which oneDNN repeats.
memory::desc matrix(const MatrixProduct& product, const MatrixProduct::Strides& strides, std::int64_t rows,
                    std::int64_t columns, DType dtype) {
  if (product.batch == 1)
    return {{rows, columns}, onednn_type(dtype), memory::dims{strides.row, strides.column}};
  const bool repeated = strides.batch == 0;
  return {{repeated ? 1 : product.batch, rows, columns},
          onednn_type(dtype),
          memory::dims{repeated ? rows * columns : strides.batch, strides.row, strides.column}};
}

dnnl::matmul::primitive_desc describe(const dnnl::engine& engine, const memory::desc& a,
                                      const memory::desc& b, const memory::desc& c, bool add) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (add) {
    dnnl::post_ops sum;
    sum.append_sum(1.0F);
    attributes.set_post_ops(sum);
  }
#if DNNL_VERSION_MAJOR >= 3
  dnnl::matmul::primitive_desc description(engine, a, b, c, attributes);
#else
  dnnl::matmul::primitive_desc description(dnnl::matmul::desc(a, b, c), attributes, engine);
#endif
  // oneDNN 2.6 ends the program (SIGILL) where AMX contracts 63 numbers for some numbers of rows.
  constexpr memory::dim kEndsTheProgram = 63;
  const auto uses_amx = [&] {
    return std::string_view(description.impl_info_str()).find("amx") != std::string_view::npos;
  };
  while (extents_of(a).back() == kEndsTheProgram && uses_amx()) {
    if (!description.next_impl()) throw dnnl::error(dnnl_unimplemented, "a product of 63 numbers");
  }
  return description;
}

}  // namespace

struct Matmul::Primitives {
  explicit Primitives(const MatmulKey& key)
      : threads(key.threads),
        engine(dnnl::engine::kind::cpu, 0),
        stream(engine),
        plain_b(matrix(key.product, key.product.b, key.product.k, key.product.n, key.in)),
        description(describe(engine, matrix(key.product, key.product.a, key.product.m, key.product.k, key.in),
                             key.packed ? any_layout(plain_b) : plain_b,
                             matrix(key.product, key.product.c, key.product.m, key.product.n, key.out),
                             key.add)),
        matmul(description),
        a(description.src_desc(), engine, nullptr),
        b(description.weights_desc(), engine, nullptr),
        c(description.dst_desc(), engine, nullptr),
        scratch(description.scratchpad_desc(), engine, nullptr) {}

  bool slow() const {
    return std::string_view(description.impl_info_str()).find("ref") != std::string_view::npos;
  }

  int threads;
  dnnl::engine engine;
  dnnl::stream stream;
  memory::desc plain_b;
  dnnl::matmul::primitive_desc description;
  dnnl::matmul matmul;
  memory a, b, c, scratch;
};

Matmul::Matmul(std::unique_ptr<Primitives> primitives) : primitives_(std::move(primitives)) {}
Matmul::~Matmul() = default;

std::unique_ptr<Matmul> Matmul::make(const MatmulKey& key) {
  const LibraryThreads threads(key.threads);
  try {
    auto primitives = std::make_unique<Primitives>(key);
    if (primitives->slow()) return nullptr;
    return std::unique_ptr<Matmul>(new Matmul(std::move(primitives)));
  } catch (const dnnl::error& error) {
    if (error.status == dnnl_unimplemented) return nullptr;
    rethrow(error, "a matrix product");
  }
}

void Matmul::run(Context& context, const std::byte* a, const std::byte* b, std::byte* c) {
  Primitives& p = *primitives_;
  const LibraryThreads threads(p.threads);
  Array scratch = workspace_of(context, p.scratch.get_desc());
  try {
    p.a.set_data_handle(address(a));
    p.b.set_data_handle(address(b));
    p.c.set_data_handle(c);
    p.scratch.set_data_handle(scratch.raw());
    p.matmul.execute(p.stream, {{DNNL_ARG_SRC, p.a},
                                {DNNL_ARG_WEIGHTS, p.b},
                                {DNNL_ARG_DST, p.c},
                                {DNNL_ARG_SCRATCHPAD, p.scratch}});
    p.stream.wait();
  } catch (const dnnl::error& error) {
    rethrow(error, "a matrix product");
  }
}

Array Matmul::pack(Context& context, const std::byte* b) {
  Primitives& p = *primitives_;
  const LibraryThreads threads(p.threads);
  const memory::desc wanted = p.description.weights_desc();
  Array packed = workspace_of(context, wanted);
  try {
    reorder(p.engine, p.stream, p.plain_b, b, wanted, packed.raw());
  } catch (const dnnl::error& error) {
    rethrow(error, "the packing of a matrix");
  }
  return packed;
}

}  // namespace jigsaw::inline kernels::cpu
