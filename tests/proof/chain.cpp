#include "proof/chain.h"

#include <algorithm>
#include <mutex>
#include <random>

#include "base/error.h"
#include "base/text.h"
#include "comm/record/record.h"
#include "parallel/redistribute.h"
#include "support/test_ranks.h"

namespace jigsaw::testing {

namespace {

constexpr RandomState kRandom{7, {3, 1, 2}};
using Generator = std::mt19937;

/// A number below `count`.
unsigned draw(Generator& generator, std::size_t count) {
  return static_cast<unsigned>(generator() % count);
}

const char* name(Link::Kind kind) {
  static constexpr const char* kNames[] = {
      "linear",      "pointwise",  "norm",    "tokens",     "patches",       "products", "attention",
      "convolution", "group norm", "pooling", "upsampling", "concatenation", "split"};
  return kNames[static_cast<int>(kind)];
}

/// Builds a chain on a tape; parameters are added to the block when they are first asked for.
class Builder {
 public:
  Builder(Tape& tape, ParameterBlock& block, const Variable& input)
      : tape_(tape), block_(block), values_{input} {}

  void apply(const Link& link) {
    Generator generator(link.seed);
    const Variable x = values_.back();
    values_.push_back(make(link.kind, x, generator));
  }
  const Variable& result() const { return values_.back(); }

 private:
  Variable parameter(const Shape& shape) {
    const std::string name = concat("parameter.", next_parameter_++);
    for (const auto& known : block_.parameters()) {
      if (known->name() == name) return Variable(*known);
    }
    return Variable(block_.add(name, shape, Initial::constant(0)));
  }
  /// Some value so far of this shape; there is one.
  Variable alike(const Shape& shape, Generator& generator) const {
    std::vector<Variable> found;
    for (const Variable& value : values_) {
      if (value.shape() == shape) found.push_back(value);
    }
    return found[draw(generator, found.size())];
  }

  Variable make(Link::Kind kind, const Variable& x, Generator& generator) {
    const Shape shape = x.shape();
    const std::int64_t width = 3 + draw(generator, 4);
    switch (kind) {
      case Link::Kind::kLinear:
        return contract(tape_, "bhwk,nk->bhwn", x, parameter({width, shape[3]}));
      case Link::Kind::kPointwise:
        return some_pointwise(x, generator);
      case Link::Kind::kNorm:
        return layer_norm(tape_, "bhwc", x, parameter({shape[3]}), parameter({shape[3]}), 0.1);
      case Link::Kind::kTokens: {
        Variable hidden = contract(tape_, "bhwc,thw->btc", x, parameter({width, shape[1], shape[2]}));
        hidden = pointwise(tape_, hidden, {"btc", parameter({width}), "t", {}, Activation::kGelu});
        return contract(tape_, "btc,hwt->bhwc", hidden, parameter({shape[1], shape[2], width}));
      }
      case Link::Kind::kPatches: {
        const Shape patch{1 + draw(generator, 3), 1 + draw(generator, 3)};
        const Variable patches = patchify(tape_, x, patch);
        return unpatchify(tape_, patches, patch, {shape[1], shape[2]});
      }
      case Link::Kind::kProducts: {
        const Variable keys = contract(tape_, "bhwk,bhwn->bkn", x, alike(shape, generator));
        return contract(tape_, "bhwk,bkn->bhwn", x, keys);
      }
      case Link::Kind::kAttention:
        return some_attention(x, generator);
      case Link::Kind::kConvolution:
        return some_convolution(x, generator);
      case Link::Kind::kGroupNorm:
        return group_norm(tape_, x, parameter({shape[3]}), parameter({shape[3]}),
                          draw(generator, 2) == 0 ? 1 : shape[3], 0.1,
                          draw(generator, 2) == 0 ? Activation::kGelu : Activation::kNone);
      case Link::Kind::kPooling: {
        const Window window{{2, 2}, {2, 2}, {1, 1}};
        const auto how = draw(generator, 2) == 0 ? PoolingKind::kMax : PoolingKind::kAverage;
        return pooling(tape_, x, how, window, padding(0, Edge::kZero),
                       {(shape[1] + 1) / 2, (shape[2] + 1) / 2}, false);
      }
      case Link::Kind::kUpsampling: {
        const auto interpolation = draw(generator, 2) == 0 ? Interpolation::kNearest : Interpolation::kLinear;
        constexpr std::int64_t kManyPoints = 200;
        const std::int64_t factor = shape[1] * shape[2] > kManyPoints ? 1 : 2;
        const Shape grid{factor * shape[1], factor * shape[2]};
        // One row less than the whole grid, as on the way up from an odd number of rows.
        const Shape space{std::max<std::int64_t>(grid[0] - 1, 1), grid[1]};
        return resample(tape_, x, interpolation, grid, space, padding(0, Edge::kReplicate));
      }
      case Link::Kind::kConcatenation:
        return concatenate(tape_, x, alike(shape, generator));
      case Link::Kind::kSplit: {
        const int dim = shape[1] > 1 && draw(generator, 2) == 0 ? 1 : 3;
        if (shape[dim] == 1) return some_pointwise(x, generator);
        const std::int64_t first = 1 + draw(generator, static_cast<std::size_t>(shape[dim] - 1));
        const std::vector<Variable> parts = split(tape_, x, dim, {first, shape[dim] - first});
        if (dim == 3) return concatenate(tape_, parts[1], parts[0]);
        // Only one of several results is used.
        return contract(tape_, "bhwk,nk->bhwn", parts[0], parameter({width, shape[3]}));
      }
    }
    fail("unknown link");
  }

  static Padding padding(std::int64_t points, Edge edge) {
    return {{{points, points, edge, edge}, {points, points, edge, edge}}, {}};
  }

  /// Of the normalised field: what products before it made large would leave one weight of nearly 1, and
  /// roundings would decide which.
  Variable some_attention(const Variable& x, Generator& generator) {
    const std::int64_t size = 1 + draw(generator, 2), heads = 1 + draw(generator, 3), width = x.shape()[3];
    const Variable field = layer_norm(tape_, "bhwk", x, parameter({width}), parameter({width}), 0.1);
    const Variable qkv =
        contract(tape_, "bhwk,gnk->bhwgn", field, parameter({3, heads * size, width}), {{'n', size}});
    return attention(tape_, qkv,
                     {size, draw(generator, 3) == 0 ? 0.3 : 0.0, concat("weights.", values_.size())});
  }

  Variable some_convolution(const Variable& x, Generator& generator) {
    static constexpr Edge kEdges[] = {Edge::kZero, Edge::kReplicate, Edge::kPeriodic};
    const std::int64_t reach = draw(generator, 3), stride = 1 + draw(generator, 2);
    const std::int64_t channels = x.shape()[3], groups = draw(generator, 3) == 0 ? channels : 1;
    const std::int64_t features = groups == 1 ? 3 + draw(generator, 3) : 2 * channels;
    const Window window{{2 * reach + 1, 2 * reach + 1}, {stride, stride}, {1, 1}};
    const Variable weight = parameter({features, channels / groups, window.extent[0], window.extent[1]});
    const Variable bias = draw(generator, 2) == 0 ? parameter({features}) : Variable();
    return convolution(tape_, x, weight, bias, window, groups, padding(reach, kEdges[draw(generator, 3)]));
  }

  Variable some_pointwise(const Variable& x, Generator& generator) {
    static constexpr const char* kBiases[] = {"", "c", "h", "hw", "hwc"};
    Pointwise options;
    options.letters = "bhwc";
    options.bias_letters = kBiases[draw(generator, 5)];
    if (!options.bias_letters.empty()) {
      Shape shape;
      for (const char letter : options.bias_letters) {
        shape.append(x.shape()[static_cast<int>(options.letters.find(letter))]);
      }
      options.bias = parameter(shape);
    }
    if (draw(generator, 2) == 0) options.residual = alike(x.shape(), generator);
    if (draw(generator, 2) == 0) options.activation = Activation::kGelu;
    if (draw(generator, 3) == 0) options.dropout = 0.3;
    options.path = concat("mask.", values_.size());
    return pointwise(tape_, x, options);
  }

  Tape& tape_;
  ParameterBlock& block_;
  std::vector<Variable> values_;
  int next_parameter_ = 0;
};

/// A chain's operations, and which link each belongs to.
struct Recorded {
  Trace trace;
  std::vector<std::size_t> link;
};

Recorded record(const Chain& chain, const Rank& rank, ParameterBlock& block, const Layout& input,
                const EditRows& edit) {
  PlanBook none;
  Tape tape(rank, none, Tape::Mode::kTrace, DType::kFloat64);
  Recorded recorded;
  std::vector<int> last;  // value of each link
  recorded.trace =
      tape.trace_of({Variable::traced(input, -1)}, [&](Tape& on, const std::vector<Variable>& x) {
        Builder builder(on, block, x[0]);
        for (const Link& link : chain.links) {
          builder.apply(link);
          last.push_back(builder.result().trace_number());
        }
        return builder.result();
      });
  // Values are numbered as they are made.
  for (const Trace::Node& node : recorded.trace.nodes) {
    const auto link = std::lower_bound(last.begin(), last.end(), node.outputs.at(0));
    require(link != last.end(), "an operation after the last link's result");
    recorded.link.push_back(static_cast<std::size_t>(link - last.begin()));
  }
  if (edit) {
    for (Trace::Node& node : recorded.trace.nodes) edit(node.signature);
  }
  return recorded;
}

/// Any cut of any dim, or none.
Placement random_home(const Shape& shape, Generator& generator) {
  const unsigned dim = draw(generator, static_cast<std::size_t>(shape.rank()) + 1);
  const unsigned unit = draw(generator, 4) == 0 ? 2 + draw(generator, 2) : 1;
  if (static_cast<int>(dim) == shape.rank()) return Placement::replicate();
  return Placement::shard(static_cast<int>(dim), unit);
}

/// Draws rules and layouts. Along `data` no parameter is cut: its copies there are kept alike.
class RandomPlan {
 public:
  RandomPlan(const Chain& chain, const Recorded& recorded, const MeshShape& mesh)
      : chain_(chain), recorded_(recorded), mesh_(mesh), homes_(recorded.trace.values.size()) {
    for (std::size_t v = 0; v < homes_.size(); ++v) homes_[v] = recorded.trace.values[v].placements;
    plan_.parameters.resize(homes_.size());
  }

  Plan make() {
    std::size_t inside = 0;
    for (std::size_t n = 0; n < recorded_.trace.nodes.size(); ++n) {
      const std::size_t link = recorded_.link[n];
      inside = n > 0 && recorded_.link[n - 1] == link ? inside + 1 : 0;
      Generator generator(chain_.links[link].seed * 31 + static_cast<unsigned>(inside) + 1);
      decide(recorded_.trace.nodes[n], generator);
    }
    return plan_;
  }

 private:
  bool usable(const Trace::Node& node, const ShardingRule& rule, int axis) const {
    for (std::size_t i = 0; i < rule.inputs.size(); ++i) {
      const auto v = static_cast<std::size_t>(node.inputs[i]);
      const bool parameter = recorded_.trace.values[v].role == Trace::Role::kParameter;
      if (rule.inputs[i].is_partial() && !homes_[v][axis].is_partial()) return false;
      if (rule.inputs[i].is_shard() && parameter && axis == Mesh::kData) return false;
    }
    return true;
  }

  void decide(const Trace::Node& node, Generator& generator) {
    Decision decision;
    decision.rematerialised = node.signature.rematerialised;
    decision.inputs.resize(node.inputs.size());
    decision.rule_outputs.resize(node.outputs.size());
    decision.outputs.resize(node.outputs.size());
    std::vector<std::string> labels;
    for (int axis = 0; axis < mesh_.axes; ++axis) {
      std::vector<const ShardingRule*> rules;
      for (const ShardingRule& rule : node.signature.rules) {
        if (!usable(node, rule, axis)) continue;
        // A Partial input is rare: take what passes it.
        rules.insert(rules.end(), rule.label == "sum" ? 8 : 2, &rule);
      }
      rules.push_back(nullptr);
      const ShardingRule* chosen = rules[draw(generator, rules.size())];
      const unsigned k = 1 + draw(generator, 2);
      std::vector<Placement> homes;
      for (const Shape& output : node.signature.outputs) homes.push_back(random_home(output, generator));
      const bool stays_partial = draw(generator, 2) == 0;
      if (mesh_.size[static_cast<std::size_t>(axis)] == 1) continue;
      if (chosen != nullptr) {
        const ShardingRule rule = scaled(*chosen, k);
        for (std::size_t i = 0; i < node.inputs.size(); ++i) decision.inputs[i][axis] = rule.inputs[i];
        for (std::size_t o = 0; o < rule.outputs.size(); ++o)
          decision.rule_outputs[o][axis] = rule.outputs[o];
        decision.cut |= axis_bit(axis);
        decision.rematerialised = decision.rematerialised && !rule.moves_result;
      }
      for (std::size_t o = 0; o < homes.size(); ++o) {
        const bool partial = decision.rule_outputs[o][axis].is_partial() && stays_partial;
        decision.outputs[o][axis] = partial ? Placement::partial_sum() : homes[o];
      }
      labels.push_back(chosen == nullptr ? "-" : chosen->label);
    }
    decision.rules = join(labels, ",");
    for (std::size_t o = 0; o < node.outputs.size(); ++o)
      homes_[static_cast<std::size_t>(node.outputs[o])] = decision.outputs[o];
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      plan_.parameters[static_cast<std::size_t>(node.inputs[i])] = decision.inputs[i];
    }
    plan_.decisions.push_back(std::move(decision));
  }

  const Chain& chain_;
  const Recorded& recorded_;
  const MeshShape mesh_;
  std::vector<Placements> homes_;
  Plan plan_;
};

std::vector<double> made_up(std::int64_t count, unsigned seed) {
  Generator generator(seed);
  std::normal_distribution<double> normal;
  std::vector<double> values(static_cast<std::size_t>(count));
  for (double& value : values) value = normal(generator);
  return values;
}

/// One rank's copy of a chain.
class ChainRun {
 public:
  ChainRun(const Chain& chain, const Rank& rank, const EditRows& edit)
      : chain_(chain), rank_(rank), input_{chain.input, {}} {
    Generator generator(chain.seed + 1);
    for (int axis = 0; axis < rank.mesh.shape().axes; ++axis) {
      const Placement home = random_home(chain.input, generator);
      if (rank.mesh.size(axis) > 1) input_.placements[axis] = home;
    }
    const Recorded recorded = record(chain, rank, block_, input_, edit);
    PlanBook::Entry entry{recorded.trace, RandomPlan(chain, recorded, rank.mesh.shape()).make()};
    for (std::size_t v = 0; v < entry.trace.values.size(); ++v) {
      for (const auto& parameter : block_.parameters()) {
        if (entry.trace.values[v].name == parameter->name()) {
          ParameterBlock::set_compute(*parameter, entry.plan.parameters[v]);
        }
      }
    }
    plans_.add("chain", std::move(entry));
    block_.materialise(rank, Zero::kNone, DType::kFloat64, DType::kFloat64, 1);
  }

  std::string plan() const {
    const PlanBook::Entry& entry = plans_.at("chain");
    return entry.plan.to_string(entry.trace, rank_.mesh.shape());
  }

  Tensors run() {
    Tensors values;
    unsigned seed = chain_.seed + 100;
    for (const auto& parameter : block_.parameters()) {
      values[parameter->name()] = made_up(parameter->shape().count(), ++seed);
    }
    load(rank_.context, block_, values);
    for (auto& group : block_.groups()) group->zero_gradients();
    Tape tape(rank_, plans_, Tape::Mode::kRecord, DType::kFloat64, kRandom);
    tape.set_training(true);
    const Array piece = cut_piece(rank_, input_, DType::kFloat64, made_up(chain_.input.count(), chain_.seed));
    const Variable input({piece, input_}, true);
    const Variable y = tape.block({"chain", &block_, chain_.recompute}, {input},
                                  [this](Tape& on, const std::vector<Variable>& x) {
                                    Builder builder(on, block_, x[0]);
                                    for (const Link& link : chain_.links) builder.apply(link);
                                    return builder.result();
                                  });
    const Layout whole{y.shape(), {}};
    const std::vector<double> weight = made_up(y.shape().count(), chain_.seed + 2);
    const Layout home = y.slot()->layout;
    y.slot()->add(rank_, {cut_piece(rank_, home, DType::kFloat64, weight), home});
    tape.backward();
    Tensors result;
    paste_piece(rank_, whole, redistribute(rank_, y.value(), whole).piece, result["output"]);
    const Layout input_whole{chain_.input, {}};
    paste_piece(rank_, input_whole, redistribute(rank_, input.slot()->take(), input_whole).piece,
                result["input"]);
    for (auto& group : block_.groups()) {
      group->synchronise_gradients();
      collect(group->owned_segments(), group->owned_gradient(), result);
    }
    return result;
  }

 private:
  const Chain& chain_;
  Rank rank_;
  Layout input_;
  ParameterBlock block_{"chain"};
  PlanBook plans_;
};

}  // namespace

std::string Chain::to_string() const {
  std::vector<std::string> names;
  for (const Link& link : links) names.push_back(concat(name(link.kind), " (seed ", link.seed, ")"));
  return concat(input, ", data ", data, " × domain [", join(domain, ", "), "] × tensor ", tensor,
                recompute ? ", recomputed" : "", ", seed ", seed, ": ", join(names, ", "));
}

Chain random_chain(unsigned seed) {
  Generator generator(seed);
  Chain chain;
  chain.seed = seed;
  chain.input = {1 + draw(generator, 3), 2 + draw(generator, 4), 1 + draw(generator, 6),
                 3 + draw(generator, 3)};
  static constexpr int kMeshes[][4] = {{1, 2, 1, 1}, {1, 1, 1, 2}, {1, 2, 1, 2}, {1, 2, 2, 1}, {2, 1, 1, 2},
                                       {1, 3, 1, 2}, {1, 2, 2, 2}, {2, 2, 1, 2}, {1, 1, 1, 3}, {2, 2, 2, 1}};
  const auto& mesh = kMeshes[draw(generator, std::size(kMeshes))];
  chain.data = mesh[0];
  chain.domain = {mesh[1], mesh[2]};
  chain.tensor = mesh[3];
  chain.recompute = draw(generator, 3) == 0;
  const unsigned length = 2 + draw(generator, 6);
  for (unsigned i = 0; i < length; ++i) {
    chain.links.push_back(
        {static_cast<Link::Kind>(draw(generator, Link::kKinds)), draw(generator, 1U << 20)});
  }
  return chain;
}

Tensors run_chain(const Chain& chain, const EditRows& edit) {
  Tensors all;
  std::mutex mutex;
  testing::run_test_ranks(chain.ranks(), [&](Communicator& world) {
    Mesh mesh(world, chain.data, chain.domain, chain.tensor);
    require(world.size() == chain.ranks(), "a chain runs on fewer ranks than it should");
    const Tensors mine = ChainRun(chain, {world.context(), mesh}, edit).run();
    const std::lock_guard lock(mutex);
    merge(all, mine);
  });
  return all;
}

Tensors run_dense(Chain chain) {
  chain.data = chain.tensor = 1;
  chain.domain = {1, 1};
  chain.recompute = false;
  return run_chain(chain);
}

std::string plan_of(const Chain& chain, const EditRows& edit) {
  Context context = Context::make_host(Backend::kReference, 1);
  const auto world = make_record_communicator(context, 0, chain.ranks());
  Mesh mesh(*world, chain.data, chain.domain, chain.tensor);
  return ChainRun(chain, {context, mesh}, edit).plan();
}

double chain_error(const Chain& chain, const EditRows& edit) {
  const Tensors dense = run_dense(chain);
  // Gradients that cancel to nothing (of a shift before a normalisation) are measured by the others; where a
  // normalisation of one channel leaves nothing at all, by what is tiny.
  double largest = 1e-290, worst = 0;
  for (const auto& [name, values] : dense) {
    for (const double value : values) largest = std::max(largest, std::abs(value));
  }
  try {
    const Tensors sharded = run_chain(chain, edit);
    if (sharded.size() != dense.size()) return INFINITY;
    for (const auto& [name, values] : dense) {
      const double error = relative_difference(sharded.at(name), values, 1e-3 * largest);
      if (!(error <= worst)) worst = std::isnan(error) ? INFINITY : error;
    }
  } catch (const Error&) {
    return INFINITY;
  }
  return worst;
}

Chain shrink(Chain chain, const std::function<bool(const Chain&)>& fails) {
  for (bool smaller = true; smaller;) {
    smaller = false;
    std::vector<Chain> candidates;
    for (std::size_t i = 0; i < chain.links.size() && chain.links.size() > 1; ++i) {
      candidates.push_back(chain);
      candidates.back().links.erase(candidates.back().links.begin() + static_cast<std::ptrdiff_t>(i));
    }
    for (const auto& reduce : {std::function<void(Chain&)>([](Chain& c) { c.data = 1; }),
                               {[](Chain& c) { c.domain[0] = 1; }},
                               {[](Chain& c) { c.domain[1] = 1; }},
                               {[](Chain& c) { c.tensor = 1; }},
                               {[](Chain& c) { c.recompute = false; }}}) {
      Chain candidate = chain;
      reduce(candidate);
      if (candidate.ranks() > 1 &&
          (candidate.ranks() < chain.ranks() || candidate.recompute != chain.recompute)) {
        candidates.push_back(candidate);
      }
    }
    for (const Chain& candidate : candidates) {
      if (!fails(candidate)) continue;
      chain = candidate;
      smaller = true;
      break;
    }
  }
  return chain;
}

}  // namespace jigsaw::testing
