#include "parallel/index_map.h"

#include <algorithm>

namespace jigsaw::inline parallel {

namespace {

std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  return a >= 0 ? a / b : -((-a + b - 1) / b);
}

struct Source {
  std::int64_t at = 0;
  bool crossed = false, zero = false;
};

/// One step from beyond an end towards the inside; `over` counts from 1 at the first coordinate beyond, and
/// the result counts from the end inwards.
Source step_in(Edge edge, std::int64_t over, std::int64_t extent) {
  switch (edge) {
    case Edge::kReflect:
      return {extent == 1 ? 0 : over};
    case Edge::kReplicate:
      return {0};
    case Edge::kPeriodic:
      return {extent - over};
    case Edge::kPolePoint:
      return {extent == 1 ? 0 : over, true};
    case Edge::kPoleCell:
      return {over - 1, true};
    default:
      return {0, false, true};
  }
}

Source resolve(const DimMap& map, std::int64_t at, std::int64_t extent) {
  Source source{at};
  while (!source.zero && (source.at < 0 || source.at >= extent)) {
    const bool low = source.at < 0;
    const std::int64_t over = low ? -source.at : source.at - extent + 1;
    const Source in = step_in(low ? map.low : map.high, over, extent);
    source = {low ? in.at : extent - 1 - in.at, source.crossed != in.crossed, in.zero};
  }
  return source;
}

}  // namespace

Range Reads::of(Range outputs) const {
  if (outputs.size() <= 0) return {};
  const std::int64_t begin = floor_div(outputs.begin * numerator + first, denominator);
  const std::int64_t end = floor_div((outputs.end - 1) * numerator + last, denominator) + 1;
  return {begin, std::max(begin, end)};
}

Reads Reads::window(std::int64_t kernel, std::int64_t stride, std::int64_t dilation, std::int64_t padding) {
  return {stride, 1, -padding, (kernel - 1) * dilation - padding};
}

Reads Reads::transposed(std::int64_t kernel, std::int64_t stride, std::int64_t dilation,
                        std::int64_t padding) {
  // Input i reaches outputs i · stride − padding + k · dilation.
  return {1, stride, padding - (kernel - 1) * dilation + stride - 1, padding};
}

Range DimMap::region(Range outputs, std::int64_t extent) const {
  Range range = reads.of(outputs);
  if (low == Edge::kNone) range.begin = std::max<std::int64_t>(range.begin, 0);
  if (high == Edge::kNone) range.end = std::min(range.end, extent);
  return range.size() > 0 ? range : Range{};
}

std::vector<Run> DimMap::runs(Range padded, std::int64_t extent, bool half_turn) const {
  std::vector<Run> runs;
  if (extent == 0) return runs;
  for (std::int64_t at = padded.begin; at < padded.end; ++at) {
    const Source source = resolve(*this, at, extent);
    if (source.zero) continue;
    const std::int64_t from = half_turn ? (source.at + extent / 2) % extent : source.at;
    if (!runs.empty()) {
      Run& last = runs.back();
      if (last.to + last.count == at && last.from + last.count == from && last.crossed == source.crossed) {
        ++last.count;
        continue;
      }
    }
    runs.push_back({at, from, 1, source.crossed});
  }
  return runs;
}

}  // namespace jigsaw::inline parallel
