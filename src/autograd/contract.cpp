#include <array>
#include <map>
#include <utility>

#include "autograd/contract_streamed.h"
#include "autograd/operations.h"
#include "autograd/registry.h"
#include "base/error.h"
#include "base/text.h"
#include "parallel/redistribute.h"

namespace jigsaw::inline autograd {

namespace {

std::int64_t extent_of(char letter, const ContractionSpec& spec, const Shape& a, const Shape& b) {
  const std::size_t in_a = spec.a.find(letter);
  return in_a != std::string::npos ? a[static_cast<int>(in_a)] : b[static_cast<int>(spec.b.find(letter))];
}

/// One contraction in the forward or backward of a rule: operands where they are, and where the rule wants
/// them and the result. Transfers that are worth it are streamed.
class PlacedContraction {
 public:
  /// @param spec  of the operands in turn; forward's, or that of a gradient.
  PlacedContraction(const Frame& frame, const ContractionSpec& spec)
      : frame_(frame),
        spec_(spec),
        flops_(frame.signature().forward_flops / frame.rank().mesh.shape().ranks()) {}

  /// @param made_in  layout in which the products come, of type `out`.
  /// @param to   layout in which the result is wanted.
  /// @return     the result in `to` if its transfer was streamed, else in `made_in`.
  ShardedTensor run(const std::array<ShardedTensor, 2>& operands, const std::array<Placements, 2>& wanted,
                    const Layout& made_in, const Layout& to, DType out) const {
    for (std::size_t i = 0; i < 2; ++i) {
      const std::optional<StreamedStep> step = arrival(operands[i], wanted[i], 1);
      if (step) return {streamed(operands, wanted, i, *step, made_in), made_in};
    }
    const ShardedTensor a = redistributed(operands[0], wanted[0]), b = redistributed(operands[1], wanted[1]);
    frame_.long_work_follows();
    const std::optional<StreamedStep> step =
        streamed_step(frame_.rank(), made_in, to, flops_, frame_.cost_model());
    if (step && step->step.kind != Collective::kAllGather) {
      return {contract_sending(frame_.rank(), lettered(spec_.a, a), lettered(spec_.b, b), spec_.c, made_in,
                               *step, out),
              to};
    }
    return {contract(frame_.context(), spec_, a.piece, b.piece, out), made_in};
  }

  /// The transfer of an operand that `uses` contractions read, if it is worth streaming. Ranks that would
  /// hold copies of the result must add in the same order, so that none is streamed along an axis that the
  /// rule does not cut.
  std::optional<StreamedStep> arrival(const ShardedTensor& operand, const Placements& wanted,
                                      int uses) const {
    const std::optional<StreamedStep> step = streamed_step(
        frame_.rank(), operand.layout, {operand.layout.global, wanted}, uses * flops_, frame_.cost_model());
    const bool streams =
        step && step->step.kind != Collective::kReduceScatter && (step->step.axes & ~frame_.cut()) == 0;
    return streams ? step : std::nullopt;
  }

  /// The product that takes the parts of a streamed first operand.
  StreamedProduct product(const ShardedTensor& other, const Layout& made_in) const {
    return {frame_.context(), spec_.a, lettered(spec_.b, other), {spec_.c, {}, frame_.rank().box(made_in)}};
  }

 private:
  LetteredPiece lettered(const std::string& letters, const ShardedTensor& x) const {
    return {letters, x.piece, frame_.rank().box(x.layout)};
  }

  Array streamed(const std::array<ShardedTensor, 2>& operands, const std::array<Placements, 2>& wanted,
                 std::size_t i, const StreamedStep& step, const Layout& made_in) const {
    ReceiveStream stream(frame_.rank(), operands[i], step.step, step.cut);
    const ShardedTensor other = redistributed(operands[1 - i], wanted[1 - i]);
    frame_.long_work_follows();
    const ContractionSpec swapped{spec_.b, spec_.a, spec_.c};
    StreamedProduct product = PlacedContraction(frame_, i == 0 ? spec_ : swapped).product(other, made_in);
    while (!stream.done()) product.add(stream.next());
    return product.result();
  }

  ShardedTensor redistributed(const ShardedTensor& x, const Placements& wanted) const {
    return redistribute(frame_.rank(), x, {x.layout.global, wanted});
  }

  const Frame& frame_;
  ContractionSpec spec_;
  double flops_;
};

/// The gradients of both operands.
class ContractionBackward {
 public:
  ContractionBackward(const Frame& frame, const ContractionSpec& spec, Operands& saved, Gradients& gradients)
      : frame_(frame),
        // dy · b and dy · a
        specs_{ContractionSpec{spec.c, spec.b, spec.a}, ContractionSpec{spec.c, spec.a, spec.b}},
        saved_(saved),
        gradients_(gradients) {}

  void run() {
    const ShardedTensor dy = gradients_.take_where_kept();
    const Placements wanted = dual(frame_.output().placements);
    const int uses = static_cast<int>(gradients_.wanted(0)) + static_cast<int>(gradients_.wanted(1));
    if (const std::optional<StreamedStep> step = of(0).arrival(dy, wanted, uses))
      return run_streamed(dy, *step);
    const ShardedTensor here = redistribute(frame_.rank(), dy, {dy.layout.global, wanted});
    // The weight's gradient first: what it alone reads, a as saved or computed again, goes before da comes.
    for (const std::size_t i : {1, 0}) {
      if (!gradients_.wanted(i)) continue;
      const ShardedTensor other = saved_.where_kept(1 - i);
      gradients_.target(i).is_parameter() ? add(i, here, other) : give(i, here, other);
    }
  }

 private:
  PlacedContraction of(std::size_t i) const { return {frame_, specs_[i]}; }
  Placements other_input(std::size_t i) const { return frame_.input(1 - i).placements; }

  void give(std::size_t i, const ShardedTensor& dy, const ShardedTensor& other) const {
    gradients_.give(i, of(i).run({dy, other}, {dy.layout.placements, other_input(i)}, frame_.gradient(i),
                                 gradients_.target(i).layout(), frame_.gradient_type(i)));
  }

  /// To a parameter's gradient in place.
  void add(std::size_t i, const ShardedTensor& dy, const ShardedTensor& other) const {
    const Layout made_in = frame_.gradient(i);
    const DType type = frame_.gradient_type(i);
    if (of(i).arrival(other, other_input(i), 1)) {
      return gradients_.give(
          i, of(i).run({dy, other}, {dy.layout.placements, other_input(i)}, made_in, made_in, type).piece);
    }
    const Array here = redistribute(frame_.rank(), other, frame_.input(1 - i)).piece;
    frame_.long_work_follows();
    Context& context = frame_.context();
    gradients_.give(
        i, [&] { return contract(context, specs_[i], dy.piece, here, type); },
        [&](Array& into) { contract_add(context, specs_[i], dy.piece, here, into); });
  }

  /// Both from the parts of dy as they arrive.
  void run_streamed(const ShardedTensor& dy, const StreamedStep& step) {
    ReceiveStream stream(frame_.rank(), dy, step.step, step.cut);
    std::array<std::optional<StreamedProduct>, 2> products;
    for (std::size_t i = 0; i < 2; ++i) {
      if (!gradients_.wanted(i)) continue;
      const ShardedTensor other = redistribute(frame_.rank(), saved_.where_kept(1 - i), frame_.input(1 - i));
      products[i].emplace(of(i).product(other, frame_.gradient(i)));
    }
    frame_.long_work_follows();
    while (!stream.done()) {
      const ReceiveStream::Part part = stream.next();
      for (auto& product : products) {
        if (product) product->add(part);
      }
    }
    for (std::size_t i = 0; i < 2; ++i) {
      if (products[i]) gradients_.give(i, [&] { return products[i]->result(); });
    }
  }

  const Frame& frame_;
  std::array<ContractionSpec, 2> specs_;
  Operands& saved_;
  Gradients& gradients_;
};

class Contraction : public Operation {
 public:
  Contraction(ContractionSpec spec, Letters units) : spec_(std::move(spec)), units_(std::move(units)) {}

  std::string_view name() const override { return "contract"; }

  Signature signature(std::span<const Shape> inputs) const override {
    const Shape &a = inputs[0], &b = inputs[1];
    if (static_cast<int>(spec_.a.size()) != a.rank() || static_cast<int>(spec_.b.size()) != b.rank()) {
      throw ShapeError(concat("contraction ", spec_.to_string(), " of ", a, " and ", b));
    }
    Signature signature;
    signature.name = "contract " + spec_.to_string();
    Shape output;
    for (const char letter : spec_.c) output.append(extent_of(letter, spec_, a, b));
    signature.outputs = {output};
    std::string all = spec_.a;
    for (const char letter : spec_.b)
      all += spec_.a.find(letter) == std::string::npos ? std::string(1, letter) : "";
    signature.forward_flops = 2.0;
    for (const char letter : all)
      signature.forward_flops *= static_cast<double>(extent_of(letter, spec_, a, b));
    signature.rules =
        rules_of_letters({letters(spec_.a, units_), letters(spec_.b, units_)}, letters(spec_.c, units_));
    signature.rules.push_back(linear_rule({true, false}));
    signature.rules.push_back(linear_rule({false, true}));
    signature.saved = {true, true};
    signature.bilinear = true;
    return signature;
  }

  std::vector<Array> forward(Frame& frame, Operands& inputs) const override {
    const ShardedTensor a = inputs.where_kept(0), b = inputs.where_kept(1);
    const ShardedTensor product = PlacedContraction(frame, spec_)
                                      .run({a, b}, {frame.input(0).placements, frame.input(1).placements},
                                           frame.output(), frame.home(), frame.output_type());
    if (product.layout == frame.home()) frame.redistributed_home(0);
    return {product.piece};
  }

  void backward(const Frame& frame, Operands& saved, Gradients& gradients) const override {
    ContractionBackward(frame, spec_, saved, gradients).run();
  }

 private:
  ContractionSpec spec_;
  Letters units_;
};

}  // namespace

Variable contract(Tape& tape, std::string_view text, const Variable& a, const Variable& b,
                  const Letters& units) {
  return apply(tape, Contraction(ContractionSpec::parse(text), units), {a, b});
}

// ---- Proof

namespace {

Shape shape_of(const std::string& letters, const std::map<char, std::int64_t>& extents) {
  Shape shape;
  for (const char letter : letters) shape.append(extents.at(letter));
  return shape;
}

ProofCase contraction(const std::string& text) {
  const ContractionSpec spec = ContractionSpec::parse(text);
  std::vector<std::vector<Shape>> inputs;
  // Extents of the letters in turn.
  for (const std::vector<std::int64_t>& cycle : {std::vector<std::int64_t>{3, 5, 4}, {4, 2, 5}, {5, 3, 1}}) {
    std::map<char, std::int64_t> extents;
    for (const char letter : spec.a + spec.b)
      extents.try_emplace(letter, cycle[extents.size() % cycle.size()]);
    inputs.push_back({shape_of(spec.a, extents), shape_of(spec.b, extents)});
  }
  return make_case(text, inputs, [text](Tape& tape, const std::vector<Variable>& x) {
    return contract(tape, text, x[0], x[1]);
  });
}

}  // namespace

std::vector<ProofCase> contract_cases() {
  std::vector<ProofCase> cases;
  for (const char* text : {"bk,nk->bn", "bhwk,nk->bhwn", "bdhwk,nk->bdhwn",          // linear
                           "bhwcp,ncp->bhwn", "bhwn,cpn->bhwcp",                     // patches in and out
                           "bhwc,thw->btc", "btc,hwt->bhwc",                         // token mixing
                           "bdhwc,tdhw->btc",                                        // of volumes
                           "bqhd,bkhd->bhqk", "bhqk,bkhd->bqhd", "bhwk,bkn->bhwn"})  // two fields
    cases.push_back(contraction(text));
  return cases;
}

}  // namespace jigsaw::inline autograd
