#include "kernels/contraction.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "kernels/front/contraction_kernels.h"

namespace jigsaw::inline kernels {

namespace {

bool has(const std::string& letters, char letter) {
  return letters.find(letter) != std::string::npos;
}

[[noreturn]] void bad_spec(std::string_view text, const std::string& why) {
  throw ShapeError(concat("contraction \"", text, "\": ", why));
}

void require_distinct_letters(std::string_view text, const std::string& letters) {
  for (std::size_t i = 0; i < letters.size(); ++i) {
    if (!std::isalpha(static_cast<unsigned char>(letters[i]))) {
      bad_spec(text, concat("'", letters[i], "' is not a letter"));
    }
    if (letters.find(letters[i], i + 1) != std::string::npos) {
      bad_spec(text, concat("the letter '", letters[i], "' stands twice in one operand"));
    }
  }
}

/// Extent of each dim of c, once every letter was seen to have one extent.
Shape result_shape(const ContractionSpec& spec, const Array& a, const Array& b) {
  const auto check_rank = [&](const std::string& letters, const Array& x) {
    if (x.rank() != static_cast<int>(letters.size())) {
      bad_spec(spec.to_string(), concat("\"", letters, "\" does not fit the shape ", x.shape()));
    }
  };
  check_rank(spec.a, a);
  check_rank(spec.b, b);
  for (std::size_t dim = 0; dim < spec.a.size(); ++dim) {
    const std::size_t other = spec.b.find(spec.a[dim]);
    if (other != std::string::npos &&
        a.shape()[static_cast<int>(dim)] != b.shape()[static_cast<int>(other)]) {
      bad_spec(spec.to_string(), concat("the letter '", spec.a[dim], "' has two extents in the shapes ",
                                        a.shape(), " and ", b.shape()));
    }
  }
  Shape shape;
  for (const char letter : spec.c) {
    const std::size_t in_a = spec.a.find(letter);
    shape.append(in_a != std::string::npos ? a.shape()[static_cast<int>(in_a)]
                                           : b.shape()[static_cast<int>(spec.b.find(letter))]);
  }
  return shape;
}

/// Two operations for each combination of indices.
double contraction_flops(const ContractionSpec& spec, const Array& a, const Array& b) {
  double flops = 2.0 * static_cast<double>(a.count());
  for (std::size_t dim = 0; dim < spec.b.size(); ++dim) {
    if (!has(spec.a, spec.b[dim])) flops *= static_cast<double>(b.shape()[static_cast<int>(dim)]);
  }
  return flops;
}

void run(Context& context, const ContractionSpec& spec, const Array& a, const Array& b, Array& c, bool add) {
  require_same_type(concat("contraction \"", spec.to_string(), "\""), a, b);
  count_work(context, contraction_flops(spec, a, b), {&a, &b, &c});
  if (add) count_work(context, 0, {&c});
  if (c.count() == 0) return;
  launch(context, a.dtype(), &ContractionKernels::contract, spec, a, b, c, add);
}

}  // namespace

ContractionSpec ContractionSpec::parse(std::string_view text) {
  const std::size_t comma = text.find(',');
  const std::size_t arrow = text.find("->");
  if (comma == std::string_view::npos || arrow == std::string_view::npos || comma > arrow) {
    bad_spec(text, "it should read like \"bhwk,nk->bhwn\"");
  }
  ContractionSpec spec{std::string(text.substr(0, comma)),
                       std::string(text.substr(comma + 1, arrow - comma - 1)),
                       std::string(text.substr(arrow + 2))};
  for (const std::string* letters : {&spec.a, &spec.b, &spec.c}) require_distinct_letters(text, *letters);
  for (const char letter : spec.c) {
    if (!has(spec.a, letter) && !has(spec.b, letter)) {
      bad_spec(text, concat("the result's letter '", letter, "' stands in no operand"));
    }
  }
  for (const char letter : spec.a + spec.b) {
    if (!has(spec.c, letter) && !(has(spec.a, letter) && has(spec.b, letter))) {
      bad_spec(text, concat("the letter '", letter, "' stands in one operand only and not in the result"));
    }
  }
  return spec;
}

Array contract(Context& context, const ContractionSpec& spec, const Array& a, const Array& b, DType out) {
  Array c(context, result_shape(spec, a, b), out);
  run(context, spec, a, b, c, false);
  return c;
}

void contract_add(Context& context, const ContractionSpec& spec, const Array& a, const Array& b,
                  Array& into) {
  require_same_shape(concat("contraction \"", spec.to_string(), "\" added"), result_shape(spec, a, b),
                     into.shape());
  require(into.dtype() != DType::kBfloat16, "contract_add: sums are kept in fp32 or fp64, not in bf16");
  run(context, spec, a, b, into, true);
}

void forget_packed_weights(Context& context) {
  launch(context, DType::kFloat32, &ContractionKernels::forget_packed_weights);
}

void keep_packed(Context& context, const Array& weight) {
  launch(context, weight.dtype(), &ContractionKernels::keep_packed, weight);
}

// What a backend lacks.
void ContractionKernels::contract(Context&, const ContractionSpec&, const Array&, const Array&, Array&,
                                  bool) const {
  missing_kernel("contract");
}

}  // namespace jigsaw::inline kernels
