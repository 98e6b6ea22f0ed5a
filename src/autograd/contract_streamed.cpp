#include "autograd/contract_streamed.h"

#include <algorithm>
#include <limits>

#include "kernels/copy.h"
#include "kernels/pointwise.h"
#include "parallel/machine.h"

namespace jigsaw::inline autograd {

namespace {

constexpr std::int64_t kMostRuns = 8;

/// The extent along which ReceiveStream and SendStream cut what both pieces share.
std::int64_t extent_of_runs(const Shape& from, const Shape& to) {
  for (int dim = 0; dim < from.rank(); ++dim) {
    const std::int64_t extent = std::min(from[dim], to[dim]);
    if (extent > 1) return extent;
  }
  return 1;
}

/// `box` cut down to the ranges that its letters have in another box.
Box restricted(const std::string& letters, const Box& box, const std::string& other, const Box& to) {
  Box result = box;
  for (std::size_t dim = 0; dim < letters.size(); ++dim) {
    const std::size_t there = other.find(letters[dim]);
    if (there == std::string::npos) continue;
    const auto d = static_cast<int>(dim), t = static_cast<int>(there);
    const std::int64_t begin = std::max(box.begin[d], to.begin[t]), end = std::min(box.end(d), to.end(t));
    result.begin[d] = begin;
    result.extent[d] = std::max<std::int64_t>(0, end - begin);
  }
  return result;
}

Array part_of(Context& context, const LetteredPiece& whole, const Box& part) {
  if (part == whole.box) return whole.piece;
  return extract_box(context, whole.piece, relative_to(part, whole.box), Purpose::kWorkspace);
}

DType sum_type(const Array& a) {
  return a.dtype() == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
}

/// The number of messages in which the runs of each other rank travel fastest.
int messages_of(int runs, double others, double work, double transfer, const CostModel& seen) {
  const double of_others = work * others / (others + 1);
  int best = 1;
  double least = std::numeric_limits<double>::infinity();
  for (int messages = 1; messages <= runs; messages *= 2) {
    const double parts = others * messages;
    const double seconds = std::max({work, transfer + of_others / parts, transfer / parts + of_others}) +
                           parts * seen.network.latency_seconds;
    if (seconds >= least) continue;
    least = seconds;
    best = messages;
  }
  return best;
}

}  // namespace

std::optional<StreamedStep> streamed_step(const Rank& rank, const Layout& from, const Layout& to,
                                          double flops, const CostModel& model) {
  const MeshShape& mesh = rank.mesh.shape();
  const Steps steps = redistribution_steps(mesh, from, to);
  if (steps.size() != 1) return std::nullopt;
  const Step& step = steps[0];
  if (step.kind == Collective::kAllReduce || step.kind == Collective::kBroadcast) return std::nullopt;
  const double others = rank.mesh.size(step.axes) - 1;
  const Link& link = model.link(mesh, step.axes);
  const TransferCost sent = transfer_cost(mesh, from, to, model.element_bytes);
  const double whole_work = flops / model.flops_per_second, transfer = sent.seconds(link);
  double least = std::max(whole_work, model.product_seconds) + model.seconds(mesh, step.axes, sent);
  std::optional<StreamedStep> best;
  const std::int64_t most =
      std::min(kMostRuns, extent_of_runs(from.largest_piece(mesh), to.largest_piece(mesh)));
  for (int runs = 1; runs <= most; runs *= 2) {
    const double parts = others * runs;
    // Of the others' parts, and with this rank's own.
    const double of_others = std::max(whole_work * others / (others + 1), parts * model.product_seconds);
    const double work = std::max(whole_work, of_others + model.product_seconds);
    // Whichever takes longer is never idle, but for the other's first part, or its last.
    const double seconds = std::max({work, transfer + of_others / parts, transfer / parts + of_others}) +
                           link.latency_seconds + parts * model.part_seconds;
    if (seconds >= least) continue;
    least = seconds;
    best = {step, {runs, runs}};
  }
  if (best && model.measured) {
    const CostModel seen = model.measured->along(mesh, step.axes, model);
    best->cut.messages =
        messages_of(best->cut.runs, others, flops / seen.flops_per_second, sent.seconds(seen.network), seen);
  }
  return best;
}

void StreamedProduct::add(const ReceiveStream::Part& part) {
  const Box region = restricted(y_.letters, y_.box, streamed_, part.box);
  const ContractionSpec spec{streamed_, other_.letters, y_.letters};
  const bool whole = region == y_.box;
  if (!y_.piece.defined() && !whole)
    y_.piece = filled(context_, y_.box.extent, sum_type(part.piece), 0.0, Purpose::kActivations);
  if (part.box.empty() && y_.piece.defined()) return;
  const Array other = part_of(context_, other_, restricted(other_.letters, other_.box, streamed_, part.box));
  if (y_.piece.defined()) {
    if (std::optional<Array> rows = consecutive(y_.piece, y_.box, region))
      return contract_add(context_, spec, part.piece, other, *rows);
  }
  const Array product = contract(context_, spec, part.piece, other, sum_type(part.piece));
  if (whole) {
    y_.piece = product;
  } else {
    add_box(context_, product, Box::whole(region.extent), y_.piece, relative_to(region, y_.box));
  }
}

Array StreamedProduct::result() {
  return std::move(y_.piece);
}

Array contract_sending(const Rank& rank, const LetteredPiece& a, const LetteredPiece& b,
                       const std::string& result, const Layout& made_in, const StreamedStep& step,
                       DType out) {
  const ContractionSpec spec{a.letters, b.letters, result};
  SendStream stream(rank, made_in, step.step, step.cut);
  while (!stream.done()) {
    const Box box = stream.box();
    const Array part_a = part_of(rank.context, a, restricted(a.letters, a.box, result, box));
    const Array part_b = part_of(rank.context, b, restricted(b.letters, b.box, result, box));
    stream.put(contract(rank.context, spec, part_a, part_b, out));
  }
  return stream.finish();
}

}  // namespace jigsaw::inline autograd
