#include "kernels/cuda/column_sums.cuh"
#include "kernels/cuda/vector_product.h"

namespace jigsaw::inline kernels::cuda {

namespace {

/// C[outer, inner] of A and B, with element strides of both.
struct Places {
  struct Strides {
    std::int64_t outer = 0, inner = 0;
  };
  std::int64_t outer = 1, inner = 1;
  Strides a, b, c;
};

/// Vectors times their factors. Neighbouring elements of C are neighbours here, so that threads read and
/// write runs.
Places scaled_vectors(const MatrixProduct& p) {
  const bool column = p.n == 1;
  Places places{p.batch,
                column ? p.m : p.n,
                {p.a.batch, column ? p.a.row : 0},
                {p.b.batch, column ? 0 : p.b.column},
                {p.c.batch, column ? p.c.row : p.c.column}};
  if (places.c.inner <= places.c.outer || places.outer == 1) return places;
  std::swap(places.outer, places.inner);
  for (Places::Strides* strides : {&places.a, &places.b, &places.c})
    std::swap(strides->outer, strides->inner);
  return places;
}

template <typename T>
struct ScaledVectors {
  Places all;
  Divisor by_inner;
  const Element<T>*left, *right;
  AnyElements result;
  bool add;

  __device__ void operator()(std::int64_t i) const {
    using R = Accumulator<T>;
    const std::int64_t inner = take_digit(i, by_inner);
    const R product = load<R>(left[i * all.a.outer + inner * all.a.inner]) *
                      load<R>(right[i * all.b.outer + inner * all.b.inner]);
    const std::int64_t at = i * all.c.outer + inner * all.c.inner;
    result.put(at, add ? result.get<R>(at) + product : product);
  }
};

/// The terms of dot products, [samples, points, channels] for column_sums().
template <typename T>
struct DotTerms {
  struct Strides {
    std::int64_t sample = 0, point = 0, channel = 0;
    __device__ std::int64_t at(std::int64_t s, std::int64_t p, std::int64_t c) const {
      return s * sample + p * point + c * channel;
    }
  };
  Strides a, b;
  const Element<T>*left, *right;

  struct Part {
    Element<T> left, right;
  };
  __device__ Part read(std::int64_t sample, std::int64_t point, std::int64_t channel) const {
    return {left[a.at(sample, point, channel)], right[b.at(sample, point, channel)]};
  }
  __device__ void add(const Part& part, double (&sums)[1]) const {
    sums[0] += load<double>(part.left) * load<double>(part.right);
  }
};

struct StoredDots {
  AnyElements result;
  std::int64_t apart;
  bool add;

  __device__ void operator()(std::int64_t i, const double (&sums)[1]) const {
    const std::int64_t at = i * apart;
    result.put(at, add ? result.get<double>(at) + sums[0] : sums[0]);
  }
};

template <typename T>
void scale_vectors(Context& context, const MatrixProduct& product, const Element<T>* a, const Element<T>* b,
                   AnyElements c, bool add) {
  const Places places = scaled_vectors(product);
  for_elements(context, places.outer * places.inner,
               ScaledVectors<T>{places, divisor(places.inner), a, b, c, add});
}

/// Threads next to each other take terms, or else products, that are: whichever lie side by side.
template <typename T>
void dot_products(Context& context, const MatrixProduct& product, const Element<T>* a, const Element<T>* b,
                  AnyElements c, bool add) {
  const StoredDots store{c, product.c.batch, add};
  if (product.a.column == 1 && product.b.row == 1) {
    const DotTerms<T> terms{{product.a.batch, 1, 0}, {product.b.batch, 1, 0}, a, b};
    return column_sums<1>(context, product.batch, product.k, 1, terms, store);
  }
  const DotTerms<T> terms{{0, product.a.column, product.a.batch}, {0, product.b.row, product.b.batch}, a, b};
  column_sums<1>(context, 1, product.k, product.batch, terms, store);
}

}  // namespace

bool vector_product(Context& context, const MatrixProduct& product, DType in, DType out, const std::byte* a,
                    const std::byte* b, std::byte* c, bool add) {
  const bool one_column = product.n == 1, one_row = product.m == 1;
  const bool scales = product.k == 1 && (one_column || one_row), sums = one_column && one_row;
  if (!scales && !sums) return false;
  visit(in, [&](auto zero) {
    using T = decltype(zero);
    const auto* left = reinterpret_cast<const Element<T>*>(a);
    const auto* right = reinterpret_cast<const Element<T>*>(b);
    const AnyElements result{c, c, out};
    if (scales) return scale_vectors<T>(context, product, left, right, result, add);
    dot_products<T>(context, product, left, right, result, add);
  });
  return true;
}

}  // namespace jigsaw::inline kernels::cuda
