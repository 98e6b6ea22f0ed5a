
#include "autograd/operations.h"
#include "autograd/registry.h"
#include "base/text.h"
#include "kernels/normalization.h"
#include "kernels/row_statistics.h"

namespace jigsaw::inline autograd {

namespace {

/// Two numbers in f32 for each row, forward and backward.
TransferCost row_statistics_traffic(const OwnCall& call, std::span<const double>) {
  const Shape piece = call.piece(0);
  const double ranks = call.ranks(), bytes = 8 * static_cast<double>(piece.count(0, piece.rank() - 1));
  TransferCost cost;
  cost.add(Collective::kAllGather, (ranks - 1) * bytes, 1);
  cost.add(Collective::kAllReduce, 2 * (ranks - 1) / ranks * bytes, 1);
  return cost;
}

/// LayerNorm of x, gamma and beta; RMSNorm, around zero, of x and gamma. Findings: the rows' statistics.
class RowNorm : public Operation {
 public:
  RowNorm(std::string letters, Centre centre, double eps)
      : letters_(std::move(letters)), centre_(centre), eps_(eps) {}

  std::string_view name() const override { return centre_ == Centre::kMean ? "layer_norm" : "rms_norm"; }

  Signature signature(std::span<const Shape> inputs) const override {
    const Letters all = letters(letters_), last = {all.back()};
    const Shape& x = inputs[0];
    Signature signature;
    signature.name = concat(name(), " ", letters_);
    signature.outputs = {x};
    std::vector<Letters> operands(inputs.size(), last);
    operands[0] = all;
    std::vector<bool> linear(inputs.size(), true);
    linear[0] = false;
    signature.saved.assign(inputs.size(), true);
    if (centre_ == Centre::kMean) signature.saved[2] = false;
    signature.keeps_findings = true;
    signature.rematerialised = true;
    signature.forward_flops = 8.0 * static_cast<double>(x.count());
    signature.rules = rules_of_letters(operands, all);
    for (ShardingRule& rule : signature.rules) {
      // Cutting the rows themselves: their statistics are exchanged.
      rule.communicates = rule.outputs[0] == Placement::shard(x.rank() - 1);
    }
    signature.own = {row_statistics_traffic};
    signature.rules.push_back(linear_rule(linear));
    return signature;
  }

  std::vector<Array> forward(Frame& frame, Operands& inputs) const override {
    const Array x = inputs.redistributed(0), gamma = inputs.redistributed(1), beta = shift(inputs);
    NormStatistics statistics;
    Array y;
    if (const AxisSet axes = cutting(frame); axes != 0) {
      statistics = whole_row_statistics(frame, axes, x);
      y = layer_norm_apply(frame.context(), x, gamma, beta, statistics);
    } else if (centre_ == Centre::kMean) {
      y = layer_norm_forward(frame.context(), x, gamma, beta, eps_, statistics);
    } else {
      y = rms_norm_forward(frame.context(), x, gamma, eps_, statistics);
    }
    frame.keep_findings(statistics);
    return {y};
  }

  std::vector<Array> rematerialise(Frame& frame, Operands& inputs) const override {
    const Array x = inputs.redistributed(0), gamma = inputs.redistributed(1), beta = shift(inputs);
    return {layer_norm_apply(frame.context(), x, gamma, beta, frame.findings<NormStatistics>())};
  }

  void backward(const Frame& frame, Operands& saved, Gradients& gradients) const override {
    const Array dy = gradients.take(), x = saved.redistributed(0), gamma = saved.redistributed(1);
    const NormGradients found = gradients_of(frame, dy, x, gamma);
    if (centre_ == Centre::kMean) gradients.give(2, found.dbeta);
    gradients.give(1, found.dgamma);
    gradients.give(0, found.dx);
  }

 private:
  Array shift(Operands& inputs) const { return centre_ == Centre::kMean ? inputs.redistributed(2) : Array(); }
  static AxisSet cutting(const Frame& frame) {
    const int last = frame.signature().inputs[0].rank() - 1;
    return frame.cutting(0, last, last);
  }

  /// Statistics of whole rows from those of their parts, in rank order; parts' lengths come from the layout.
  NormStatistics whole_row_statistics(const Frame& frame, AxisSet axes, const Array& x) const {
    Array packed = pack_moments(frame.context(), row_moments(frame.context(), x));
    const Layout layout = frame.input(0);
    const Mesh& mesh = frame.rank().mesh;
    std::vector<std::int64_t> lengths, counts;
    for (int i = 0; i < mesh.size(axes); ++i) {
      lengths.push_back(layout.box(mesh.shape(), mesh.member(axes, i)).extent.back());
      counts.push_back(packed.count());
    }
    packed = frame.group(axes).all_gather(packed, counts);
    return combine_moments(frame.context(), packed, lengths, eps_, centre_);
  }

  NormGradients gradients_of(const Frame& frame, const Array& dy, const Array& x, const Array& gamma) const {
    const auto& statistics = frame.findings<NormStatistics>();
    const AxisSet axes = cutting(frame);
    if (axes == 0) {
      return centre_ == Centre::kMean ? layer_norm_backward(frame.context(), dy, x, gamma, statistics)
                                      : rms_norm_backward(frame.context(), dy, x, gamma, statistics);
    }
    Array sums = layer_norm_row_sums(frame.context(), dy, x, gamma, statistics);
    sums = frame.group(axes).all_reduce(sums).reshaped(sums.shape());
    if (centre_ == Centre::kZero) drop_mean_part(frame.context(), sums);
    return layer_norm_backward_apply(frame.context(), dy, x, gamma, statistics, sums,
                                     frame.signature().inputs[0].back());
  }

  std::string letters_;
  Centre centre_;
  double eps_;
};

}  // namespace

Variable layer_norm(Tape& tape, std::string_view letters, const Variable& x, const Variable& gamma,
                    const Variable& beta, double eps) {
  return apply(tape, RowNorm(std::string(letters), Centre::kMean, eps), {x, gamma, beta});
}

Variable rms_norm(Tape& tape, std::string_view letters, const Variable& x, const Variable& gamma,
                  double eps) {
  return apply(tape, RowNorm(std::string(letters), Centre::kZero, eps), {x, gamma});
}

// ---- Proof

namespace {

// A large eps keeps rows of two from being signs.
constexpr double kRowNormEps = 0.1;

/// Rows with `vectors` operands over their last dim.
std::vector<std::vector<Shape>> with_vectors(const std::vector<Shape>& rows, std::size_t vectors) {
  std::vector<std::vector<Shape>> inputs;
  for (const Shape& x : rows) {
    inputs.emplace_back(1 + vectors, Shape{x.back()});
    inputs.back()[0] = x;
  }
  return inputs;
}

ProofCase norm_case(const std::string& letters, bool centred, const std::vector<Shape>& rows) {
  return make_case(letters, with_vectors(rows, centred ? 2 : 1),
                   [letters, centred](Tape& tape, const std::vector<Variable>& x) {
                     return centred ? layer_norm(tape, letters, x[0], x[1], x[2], kRowNormEps)
                                    : rms_norm(tape, letters, x[0], x[1], kRowNormEps);
                   });
}

std::vector<ProofCase> norm_cases(bool centred) {
  return {norm_case("bhwc", centred, {{3, 4, 2, 5}, {2, 5, 3, 4}, {4, 1, 5, 2}}),
          norm_case("bc", centred, {{5, 4}, {2, 7}, {3, 2}})};
}

}  // namespace

std::vector<ProofCase> layer_norm_cases() {
  return norm_cases(true);
}
std::vector<ProofCase> rms_norm_cases() {
  return norm_cases(false);
}

}  // namespace jigsaw::inline autograd
