#include <algorithm>

#include "autograd/operations.h"
#include "autograd/registry.h"
#include "base/error.h"
#include "base/text.h"
#include "kernels/backend.h"
#include "kernels/channel_statistics.h"
#include "kernels/field_extents.h"
#include "kernels/group_statistics.h"
#include "kernels/pointwise.h"
#include "kernels/row_statistics.h"

namespace jigsaw::inline autograd {

namespace {

/// Two numbers in f32 for each channel (and sample) forward; two in f64 for each group backward.
TransferCost channel_statistics_traffic(const OwnCall& call, std::span<const double> numbers) {
  const Shape piece = call.piece(0);
  const double groups = numbers[0], samples = numbers[1] > 0 ? static_cast<double>(piece[0]) : 1;
  const double ranks = call.ranks();
  TransferCost cost;
  cost.add(Collective::kAllGather, (ranks - 1) * 8 * samples * static_cast<double>(piece.back()), 1);
  cost.add(Collective::kAllReduce, 2 * (ranks - 1) / ranks * 16 * groups * samples, 1);
  return cost;
}

/// Whether this rank is the one of those with equal copies that contributes to a sum over ranks.
bool speaks(const Rank& rank, const Placements& placements) {
  for (int axis = 0; axis < rank.mesh.shape().axes; ++axis) {
    if (placements[axis].is_partial() && rank.mesh.coordinate(axis) != 0) return false;
  }
  return true;
}

/// Group norm of x, gamma and beta: the points of each sample and group of channels are normalised together;
/// batch norm, of running mean and variance too: those of each channel in all samples. Findings: the
/// statistics that a piece is normalised with.
class ChannelNorm : public Operation {
 public:
  /// @param groups  of channels; 0: batch norm.
  ChannelNorm(std::int64_t groups, double eps) : groups_(groups), eps_(eps) {}

  std::string_view name() const override { return per_sample() ? "group_norm" : "batch_norm"; }

  Signature signature(std::span<const Shape> inputs) const override {
    const Shape& x = inputs[0];
    if (x.rank() < 3 || x.rank() > 5) {
      throw ShapeError(concat(name(), ": the field ", x, " should be [B, space…, C]"));
    }
    if (per_sample() && x.back() % groups_ != 0) {
      throw ShapeError(
          concat(name(), ": ", groups_, " groups should divide the ", x.back(), " channels of ", x));
    }
    const Letters field =
        letters("b" + std::string("dhw").substr(static_cast<std::size_t>(5 - x.rank())) + "c");
    std::vector<Letters> all = {field};
    std::vector<bool> linear = {false};
    Signature signature;
    signature.name = name();
    signature.outputs = {x};
    signature.saved = {true};
    for (std::size_t i = 1; i < inputs.size(); ++i) {
      require_same_shape(name(), inputs[i], {x.back()});
      signature.saved.push_back(i != kBeta);
      all.push_back({field.back()});
      linear.push_back(i == kGamma || i == kBeta);
    }
    signature.keeps_findings = true;
    signature.rematerialised = true;
    signature.forward_flops = 8.0 * static_cast<double>(x.count());
    signature.rules = rules_of_letters(all, field);
    for (ShardingRule& rule : signature.rules) rule.communicates = rule.label != (per_sample() ? "b" : "c");
    const std::int64_t groups = x.back() / group_size(x);
    signature.own = {channel_statistics_traffic, {static_cast<double>(groups), per_sample() ? 1.0 : 0.0}};
    signature.rules.push_back(linear_rule(linear));
    return signature;
  }

  std::vector<Array> forward(Frame& frame, Operands& inputs) const override {
    const Array x = inputs.redistributed(0);
    const bool given = is_given(frame);
    const Box box = frame.input_box(0);
    const Array mean = given ? inputs.redistributed(kMean) : Array(),
                variance = given ? inputs.redistributed(kVariance) : Array();
    frame.keep_findings(
        Found{given ? given_statistics(frame.context(), mean, variance) : whole_statistics(frame, x),
              {given ? 0 : box.begin[box.begin.rank() - 1], x.shape().back()}});
    if (!frame.result_read()) return {Array()};
    return {normalise(frame, x, inputs)};
  }

  std::vector<Array> rematerialise(Frame& frame, Operands& inputs) const override {
    const Array x = inputs.redistributed(0);
    return {normalise(frame, x, inputs)};
  }

  void backward(const Frame& frame, Operands& saved, Gradients& gradients) const override {
    const Array dy = gradients.take();
    if (!per_sample() && !is_given(frame)) follow_statistics(frame, saved, gradients);
    const Array x = saved.redistributed(0), gamma = saved.redistributed(kGamma);
    const NormGradients found = gradients_of(frame, dy, x, gamma);
    gradients.give(kGamma, found.dgamma);
    gradients.give(kBeta, found.dbeta);
    gradients.give(0, found.dx);
  }

 private:
  static constexpr std::size_t kGamma = 1, kBeta = 2, kMean = 3, kVariance = 4;

  struct Found {
    GroupStatistics groups;
    ChannelRange channels;  ///< of the piece
  };

  bool per_sample() const { return groups_ > 0; }
  std::int64_t group_size(const Shape& x) const { return per_sample() ? x.back() / groups_ : 1; }
  /// Elements of a group of the whole field.
  double elements(const Frame& frame) const {
    const Shape& x = frame.signature().inputs[0];
    return static_cast<double>(per_sample() ? x.count(1, x.rank()) / groups_ : x.count(0, x.rank() - 1));
  }
  /// Whether the statistics are the running ones, not those of the field.
  bool is_given(const Frame& frame) const { return !per_sample() && !frame.training(); }

  /// A piece of the field as the kernels see it: [n, points, c].
  Shape view(const Shape& piece) const {
    const std::int64_t points = piece.count(1, piece.rank() - 1);
    return per_sample() ? Shape{piece[0], points, piece.back()} : Shape{1, piece[0] * points, piece.back()};
  }
  /// Axes that cut a group apart: they exchange its statistics.
  AxisSet cutting(const Frame& frame) const {
    const int last = frame.signature().inputs[0].rank() - 1;
    return per_sample() ? frame.cutting(0, 1, last) : frame.cutting(0, 0, last - 1);
  }

  /// Statistics of the whole groups, alike on all ranks that share one.
  GroupStatistics whole_statistics(const Frame& frame, const Array& x) const {
    const Shape piece = view(x.shape());
    Array packed = pack_moments(frame.context(), channel_moments(frame.context(), x.reshaped(piece)));
    const Layout layout = frame.input(0);
    const Mesh& mesh = frame.rank().mesh;
    const AxisSet axes = cutting(frame);
    std::vector<MomentsPart> parts;
    std::vector<std::int64_t> counts;
    for (int i = 0; i < mesh.size(axes); ++i) {
      const Box box = layout.box(mesh.shape(), mesh.member(axes, i));
      const Shape theirs = view(box.extent);
      parts.push_back({theirs[1], box.begin[box.begin.rank() - 1], theirs[2]});
      counts.push_back(2 * piece[0] * theirs[2]);
    }
    if (axes != 0) packed = frame.group(axes).all_gather(packed, counts);
    return combine_channel_moments(frame.context(), packed, parts, piece[0], layout.global.back(),
                                   group_size(layout.global));
  }

  Array normalise(const Frame& frame, const Array& x, Operands& inputs) const {
    const Array gamma = inputs.redistributed(kGamma), beta = inputs.redistributed(kBeta);
    const auto& [groups, channels] = frame.findings<Found>();
    const ChannelScales scales =
        channel_scales(frame.context(), groups, channels, eps_, gamma, accumulator_of(x.dtype()));
    return channel_apply(frame.context(), x.reshaped(view(x.shape())), scales.centre, scales.factor, beta)
        .reshaped(x.shape());
  }

  /// No gradients, but what the optimizer follows, see Parameter::momentum().
  void follow_statistics(const Frame& frame, Operands& saved, Gradients& gradients) const {
    const auto& [groups, channels] = frame.findings<Found>();
    const double count = elements(frame), unbiased = count / std::max(count - 1, 1.0);
    for (const std::size_t i : {kMean, kVariance}) {
      const Array running = saved.redistributed(i);
      const bool mine = speaks(frame.rank(), frame.gradient(i).placements);
      gradients.give(i, [&, &groups = groups, &channels = channels] {
        if (!mine) return filled(frame.context(), running.shape(), accumulator_of(running.dtype()), 0.0);
        return way_to_batch(frame.context(), running, i == kMean ? groups.mean : groups.variance, channels,
                            i == kMean ? 1.0 : unbiased);
      });
    }
  }

  /// Gradients of a piece; those of gamma and beta are its part of the sums.
  NormGradients gradients_of(const Frame& frame, const Array& dy, const Array& x, const Array& gamma) const {
    Context& context = frame.context();
    const auto& [groups, channels] = frame.findings<Found>();
    const DType type = accumulator_of(x.dtype());
    const ChannelScales scales = channel_scales(context, groups, channels, eps_, gamma, type);
    const Array slopes = dy.reshaped(view(x.shape())), values = x.reshaped(view(x.shape()));
    const GroupSums sums = group_gradient_sums(context, groups, channels, eps_, gamma,
                                               channel_gradient_sums(context, slopes, values, scales.centre));
    Array whole = sums.groups;
    if (is_given(frame)) {
      // Statistics that were given have no gradient.
      whole = filled(context, whole.shape(), whole.dtype(), 0.0, Purpose::kWorkspace);
    } else if (const AxisSet axes = cutting(frame); axes != 0) {
      whole = frame.group(axes).all_reduce(whole).reshaped(whole.shape());
    }
    const auto [slope, shift] =
        gradient_shifts(context, groups, channels, eps_, whole, elements(frame), type);
    const Array dx = channel_gradient(context, slopes, values, scales.centre, scales.factor, slope, shift);
    return {dx.reshaped(dy.shape()), sums.dgamma, sums.dbeta};
  }

  std::int64_t groups_;
  double eps_;
};

}  // namespace

Variable group_norm(Tape& tape, const Variable& x, const Variable& gamma, const Variable& beta,
                    std::int64_t groups, double eps) {
  require(groups >= 1, "group_norm normalises at least one group");
  return apply(tape, ChannelNorm(groups, eps), {x, gamma, beta});
}

Variable batch_norm(Tape& tape, const Variable& x, const Variable& gamma, const Variable& beta,
                    const Variable& running_mean, const Variable& running_variance, double eps) {
  return apply(tape, ChannelNorm(0, eps), {x, gamma, beta, running_mean, running_variance});
}

// ---- Proof

namespace {

// A large eps keeps groups of two from being signs.
constexpr double kChannelNormEps = 0.1;

/// Fields whose dims are cut evenly, unevenly and with pieces left empty, with operands over their channels.
std::vector<std::vector<Shape>> with_vectors(std::size_t vectors) {
  std::vector<std::vector<Shape>> inputs;
  for (const Shape& field : {Shape{3, 4, 2, 6}, Shape{2, 5, 3, 4}, Shape{4, 1, 5, 2}}) {
    inputs.emplace_back(1 + vectors, Shape{field.back()});
    inputs.back()[0] = field;
  }
  return inputs;
}

}  // namespace

std::vector<ProofCase> group_norm_cases() {
  std::vector<ProofCase> cases;
  for (const bool instance : {false, true}) {
    cases.push_back(make_case(instance ? "a group for each channel" : "two groups", with_vectors(2),
                              [instance](Tape& tape, const std::vector<Variable>& x) {
                                const std::int64_t groups = instance ? x[0].shape().back() : 2;
                                return group_norm(tape, x[0], x[1], x[2], groups, kChannelNormEps);
                              }));
  }
  return cases;
}

std::vector<ProofCase> batch_norm_cases() {
  return {make_case("batch statistics", with_vectors(4), [](Tape& tape, const std::vector<Variable>& x) {
    return batch_norm(tape, x[0], x[1], x[2], x[3], x[4], kChannelNormEps);
  })};
}

}  // namespace jigsaw::inline autograd
