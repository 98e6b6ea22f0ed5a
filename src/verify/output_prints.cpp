#include "verify/output_prints.h"

#include <cmath>

#include "array/transfer.h"
#include "autograd/parameter.h"
#include "base/text.h"
#include "verify/random_bits.h"

namespace jigsaw::inline verify {

double OutputPrint::difference(const OutputPrint& a, const OutputPrint& b) {
  double squares = 0;
  for (std::size_t i = 0; i < kSums; ++i) {
    const double one = a.sums[i] - b.sums[i];
    squares += one * one / kSums;
  }
  if (squares == 0) return 0;
  return b.squares > 0 ? std::sqrt(squares / b.squares) : std::sqrt(squares);
}

std::string OutputPrint::to_string() const {
  const char* const what =
      source.phase == OutputWatch::Phase::kForward ? "the result" : "the gradient of the result";
  return concat(what, " of operation ", source.operation, " (", source.name, ") of the block ", source.block);
}

OutputPrints::OutputPrints(const Rank& rank) : rank_(rank) {
  rank_.context.state<OutputWatch>().saw = [this](const OutputWatch::Source& source,
                                                  const ShardedTensor& value) { add(source, value); };
}

OutputPrints::~OutputPrints() {
  rank_.context.state<OutputWatch>().saw = nullptr;
}

void OutputPrints::add(const OutputWatch::Source& source, const ShardedTensor& value) {
  OutputPrint& print = prints_.emplace_back(OutputPrint{source});
  // Of ranks that hold the same piece one counts.
  if (!Parameter::contributes(rank_, value.layout.placements)) return;
  const Box box = rank_.box(value.layout);
  const std::vector<double> values = download_values(rank_.context, value.piece);
  for_each_global_index(value.layout.global, box, 0, std::ssize(values), [&](std::int64_t i, std::int64_t n) {
    const double x = values[static_cast<std::size_t>(i)];
    const std::uint64_t signs = random_bits(static_cast<std::uint64_t>(n));
    for (std::size_t s = 0; s < OutputPrint::kSums; ++s) print.sums[s] += (signs >> s & 1U) != 0 ? x : -x;
    print.squares += x * x;
  });
}

std::vector<OutputPrint> OutputPrints::collect() {
  constexpr std::size_t kEach = OutputPrint::kSums + 1;
  std::vector<double> all;
  for (const OutputPrint& print : prints_) {
    all.insert(all.end(), print.sums.begin(), print.sums.end());
    all.push_back(print.squares);
  }
  if (!all.empty()) all = rank_.mesh.world().all_reduce(all, ReduceOp::kSum);
  std::vector<OutputPrint> whole = std::move(prints_);
  prints_.clear();
  for (std::size_t p = 0; p < whole.size(); ++p) {
    std::copy_n(all.begin() + static_cast<std::ptrdiff_t>(p * kEach), OutputPrint::kSums,
                whole[p].sums.begin());
    whole[p].squares = all[p * kEach + OutputPrint::kSums];
  }
  return whole;
}

}  // namespace jigsaw::inline verify
