#include "kernels/lowering.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "base/text.h"

namespace jigsaw::inline kernels {

namespace {

using Axis = Lowering::Loop;

/// The part an axis plays in a matrix product.
enum class Role : std::uint8_t { kBatch, kRow, kColumn, kContracted };

Role role_of(const Axis& axis) {
  if (axis.c == 0) return Role::kContracted;
  if (axis.a == 0) return Role::kColumn;
  return axis.b == 0 ? Role::kRow : Role::kBatch;
}

std::int64_t stride_of(const std::string& letters, const Shape& shape, char letter) {
  const std::size_t dim = letters.find(letter);
  return dim == std::string::npos ? 0 : shape.strides()[static_cast<int>(dim)];
}

Shape shape_of_c(const ContractionSpec& spec, const Shape& a, const Shape& b) {
  Shape shape;
  for (const char letter : spec.c) {
    const std::size_t in_a = spec.a.find(letter);
    shape.append(in_a != std::string::npos ? a[static_cast<int>(in_a)]
                                           : b[static_cast<int>(spec.b.find(letter))]);
  }
  return shape;
}

/// One axis a letter of more than one element.
std::vector<Axis> letter_axes(const ContractionSpec& spec, const Shape& a, const Shape& b) {
  const Shape c = shape_of_c(spec, a, b);
  std::vector<Axis> axes;
  const auto add = [&](char letter, std::int64_t extent) {
    if (extent == 1) return;
    axes.push_back(
        {extent, stride_of(spec.a, a, letter), stride_of(spec.b, b, letter), stride_of(spec.c, c, letter)});
  };
  for (int dim = 0; dim < c.rank(); ++dim) add(spec.c[static_cast<std::size_t>(dim)], c[dim]);
  for (int dim = 0; dim < a.rank(); ++dim) {
    const char letter = spec.a[static_cast<std::size_t>(dim)];
    if (spec.c.find(letter) == std::string::npos) add(letter, a[dim]);
  }
  return axes;
}

/// Whether a step of `outer` is a whole run of `inner` in every array.
bool contiguous(const Axis& outer, const Axis& inner) {
  return outer.a == inner.a * inner.extent && outer.b == inner.b * inner.extent &&
         outer.c == inner.c * inner.extent;
}

std::vector<Axis> merged(std::vector<Axis> axes) {
  for (bool again = true; again;) {
    again = false;
    for (std::size_t i = 0; i < axes.size() && !again; ++i) {
      for (std::size_t j = 0; j < axes.size() && !again; ++j) {
        if (i == j || !contiguous(axes[i], axes[j])) continue;
        axes[j].extent *= axes[i].extent;
        axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(i));
        again = true;
      }
    }
  }
  return axes;
}

/// Row and column strides of a matrix, one of which must be one; the stride of a single row or column is
/// free.
std::optional<MatrixProduct::Strides> matrix(std::int64_t rows, std::int64_t row, std::int64_t columns,
                                             std::int64_t column) {
  if (columns == 1) return MatrixProduct::Strides{0, rows == 1 ? 1 : row, 1};
  if (rows == 1)
    return column == 1 ? MatrixProduct::Strides{0, columns, 1} : MatrixProduct::Strides{0, 1, column};
  if (column == 1 || row == 1) return MatrixProduct::Strides{0, row, column};
  return std::nullopt;
}

/// The products over the chosen axes; none where a matrix would have no contiguous direction.
std::optional<MatrixProduct> product_of(const Axis& m, const Axis& n, const Axis& k, const Axis& batch) {
  const auto a = matrix(m.extent, m.a, k.extent, k.a);
  const auto b = matrix(k.extent, k.b, n.extent, n.b);
  const auto c = matrix(m.extent, m.c, n.extent, n.c);
  if (!a || !b || !c || c->column != 1) return std::nullopt;
  MatrixProduct product{batch.extent, m.extent, n.extent, k.extent, *a, *b, *c};
  product.a.batch = batch.a;
  product.b.batch = batch.b;
  product.c.batch = batch.c;
  return product;
}

Axis swapped(const Axis& axis) {
  return {axis.extent, axis.b, axis.a, axis.c};
}

double seconds(const Lowering& lowering, const ContractionRates& rates) {
  const MatrixProduct& p = lowering.product;
  const auto at_least = [](std::int64_t extent, std::int64_t least) {
    return static_cast<double>(std::max(extent, least));
  };
  const double flops =
      2.0 * static_cast<double>(p.batch) * at_least(p.m, 6) * at_least(p.n, 16) * at_least(p.k, 16);
  double calls = 1;
  for (const Axis& loop : lowering.loops) calls *= static_cast<double>(loop.extent);
  return calls * (flops / rates.flops_per_second + rates.seconds_per_call);
}

/// The products when these axes make rows, columns and the contracted index.
std::optional<Lowering> lower(const std::vector<Axis>& axes, const Axis* m, const Axis* n, const Axis* k) {
  const Axis none;
  Lowering lowering;
  const Axis* batch = nullptr;
  for (const Axis& axis : axes) {
    if (&axis == m || &axis == n || &axis == k || axis.c == 0) continue;
    if (batch == nullptr || axis.extent > batch->extent) batch = &axis;
  }
  for (const Axis& axis : axes) {
    if (&axis != m && &axis != n && &axis != k && &axis != batch) lowering.loops.push_back(axis);
  }
  const auto or_none = [&](const Axis* axis) { return axis != nullptr ? *axis : none; };
  const Axis row = or_none(m), column = or_none(n), contracted = or_none(k), repeat = or_none(batch);
  if (const auto product = product_of(row, column, contracted, repeat)) {
    lowering.product = *product;
    return lowering;
  }
  const auto product = product_of(swapped(column), swapped(row), swapped(contracted), swapped(repeat));
  if (!product) return std::nullopt;
  lowering.product = *product;
  lowering.swapped = true;
  std::ranges::transform(lowering.loops, lowering.loops.begin(), swapped);
  return lowering;
}

struct Timed {
  double seconds = std::numeric_limits<double>::infinity();
  Lowering lowering;
};

/// The best choice of axes for the arrays as they are.
Timed best_lowering(const std::vector<Axis>& axes, const ContractionRates& rates) {
  std::vector<const Axis*> rows = {nullptr}, columns = {nullptr}, contracted = {nullptr};
  for (const Axis& axis : axes) {
    if (role_of(axis) == Role::kRow) rows.push_back(&axis);
    if (role_of(axis) == Role::kColumn) columns.push_back(&axis);
    if (role_of(axis) == Role::kContracted) contracted.push_back(&axis);
  }
  Timed best;
  for (const Axis* m : rows) {
    for (const Axis* n : columns) {
      for (const Axis* k : contracted) {
        const auto lowering = lower(axes, m, n, k);
        if (lowering && seconds(*lowering, rates) < best.seconds)
          best = {seconds(*lowering, rates), *lowering};
      }
    }
  }
  return best;
}

/// Letters in the order batch, rows or columns, contracted (or for c: batch, rows, columns), each in c's
/// order or a's.
std::string canonical(const ContractionSpec& spec, const std::string& letters) {
  const auto in = [](const std::string& where, char letter) {
    return where.find(letter) != std::string::npos;
  };
  const std::string order = spec.c + spec.a;
  const auto rank = [&](char letter) {
    const int role = !in(spec.c, letter)                        ? 3
                     : in(spec.a, letter) && in(spec.b, letter) ? 0
                     : in(spec.a, letter)                       ? 1
                                                                : 2;
    return role * 1000 + static_cast<int>(order.find(letter));
  };
  std::string sorted = letters;
  std::ranges::sort(sorted, {}, rank);
  return sorted;
}

std::vector<int> order_of(const std::string& from, const std::string& to) {
  std::vector<int> order;
  for (const char letter : to) order.push_back(static_cast<int>(from.find(letter)));
  return order;
}

Shape permuted(const Shape& shape, const std::vector<int>& order) {
  Shape result;
  for (const int dim : order) result.append(shape[dim]);
  return result;
}

/// Seconds to permute an array once.
double permutation_seconds(const Shape& shape, const ContractionRates& rates) {
  return static_cast<double>(shape.count()) / rates.elements_moved_per_second + rates.seconds_per_call;
}

}  // namespace

bool Lowering::sums() const {
  return std::ranges::any_of(loops, [](const Loop& loop) { return loop.c == 0; });
}

ContractionPlan plan_contraction(const ContractionSpec& spec, const Shape& a, const Shape& b,
                                 const ContractionRates& rates) {
  const ContractionSpec sorted = {canonical(spec, spec.a), canonical(spec, spec.b), canonical(spec, spec.c)};
  const Shape c = shape_of_c(spec, a, b);
  ContractionPlan best;
  double least = std::numeric_limits<double>::infinity();
  for (unsigned choice = 0; choice < 8; ++choice) {
    const bool move_a = (choice & 1U) != 0, move_b = (choice & 2U) != 0, move_c = (choice & 4U) != 0;
    const ContractionSpec tried = {move_a ? sorted.a : spec.a, move_b ? sorted.b : spec.b,
                                   move_c ? sorted.c : spec.c};
    ContractionPlan plan;
    if (move_a) plan.order_a = order_of(spec.a, sorted.a);
    if (move_b) plan.order_b = order_of(spec.b, sorted.b);
    if (move_c) plan.order_c = order_of(sorted.c, spec.c);
    const Shape shape_a = move_a ? permuted(a, plan.order_a) : a,
                shape_b = move_b ? permuted(b, plan.order_b) : b;
    const Timed timed = best_lowering(merged(letter_axes(tried, shape_a, shape_b)), rates);
    const double total = timed.seconds + (move_a ? permutation_seconds(a, rates) : 0) +
                         (move_b ? permutation_seconds(b, rates) : 0) +
                         (move_c ? permutation_seconds(c, rates) : 0);
    if (total >= least) continue;
    least = total;
    plan.permuted_c = shape_of_c(tried, shape_a, shape_b);
    plan.lowering = timed.lowering;
    best = plan;
  }
  return best;
}

const ContractionPlan& ContractionPlans::of(const ContractionSpec& spec, const Shape& a, const Shape& b) {
  std::string key = concat(spec.to_string(), a, b);
  auto found = plans_.find(key);
  if (found == plans_.end())
    found = plans_.emplace(std::move(key), plan_contraction(spec, a, b, rates_)).first;
  return found->second;
}

}  // namespace jigsaw::inline kernels
