// Bytes that a training step of a block sends, counted on every mesh, beside what known schemes send: the
// table of docs/traffic.md. JIGSAW_WRITE_DOCS=1 writes it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iomanip>
#include <sstream>

#include "base/text.h"
#include "comm/record/record.h"
#include "config/config.h"
#include "layers/registry.h"

namespace jigsaw {
namespace {

struct ModelSection {
  Tagged model;
};
void declare(Keys<ModelSection>& keys) {
  keys.tagged("model", &ModelSection::model, model_types).required().doc("The network.");
}

struct MeshSizes {
  std::vector<int> domain;
  int tensor;

  int q() const { return domain[0] * domain[1]; }
  int p() const { return tensor; }
  int ranks() const { return p() * q(); }
  std::string to_string() const { return concat("[", join(domain, ", "), "] × ", tensor); }
};

/// Tokens T (a square of them) and channels C of one sample.
struct Sizes {
  double side, channels;
  double tokens() const { return side * side; }
};

/// Elements that a rank sends in a step.
using ClosedForm = std::function<double(const Sizes&, const MeshSizes&)>;

struct Block {
  std::string name;
  std::function<Json(const Sizes&)> layers;
  ClosedForm parameters;
  ClosedForm best_known;
  ClosedForm original;  ///< Jigsaw's own exchange; none on other meshes than its own
};

constexpr double kNone = -1;

double part(int n) {
  return static_cast<double>(n - 1) / n;
}

/// Megatron with sequence parallelism over `tensor` (Korthikanti et al. 2022): the narrow side is gathered
/// and scattered, forward and backward, and the saved input is gathered again; weights are gathered over
/// `domain`, forward and backward, and their gradients scattered (Rajbhandari et al. 2020).
double megatron(double transfers, double activation, double parameters, int p, int q) {
  return transfers * part(p) * activation / q + 3 * part(q) * parameters / p;
}

/// Mean and squared deviations of each row gathered over the ranks that cut it, and two sums reduced
/// backward.
double statistics(double rows, int p) {
  return 2 * rows * (p - 1) + 2 * part(p) * 2 * rows;
}

// Products of the original Jigsaw on 2 × 2 ranks; elements that the busiest rank sends (docs/traffic.md).
double block_xw(double t, double k, double n) {
  return (t * k + k * n) / 4;
}
double block_xwt(double t, double k, double n) {
  return (std::max(t * n, t * k) + k * n) / 4;
}
double block_xtw(double t, double k, double n) {
  return (std::max(t * k, t * n) + k * n) / 4;
}

double original_linear(double t, double k, double n, const MeshSizes& mesh) {
  if (mesh.p() == 2 && mesh.q() == 1) return 3 * t * n / 2;
  if (mesh.p() == 2 && mesh.q() == 2) return block_xwt(t, k, n) + block_xw(t, n, k) + block_xtw(t, n, k);
  return kNone;
}

double original_tokens(double t, double c, double h, const MeshSizes& mesh) {
  if (mesh.p() == 2 && mesh.q() == 1) return 3 * t * c / 2 + 3 * c * h / 2 + t * c / 2;
  if (mesh.p() == 2 && mesh.q() == 2) {
    const double first = block_xtw(t, c, h) + block_xwt(t, h, c) + block_xw(t, c, h);
    const double second = block_xw(c, h, t) + block_xwt(c, t, h) + block_xtw(c, h, t);
    return first + second + 2 * c * t / 4;
  }
  return kNone;
}

double original_mlp(double t, double c, double h, const MeshSizes& mesh) {
  const double first = original_linear(t, c, h, mesh);
  return first == kNone ? kNone : first + original_linear(t, h, c, mesh);
}

constexpr double kChannelHidden = 4, kTokenHidden = 0.5;

double linear_parameters(const Sizes& s) {
  return s.channels * s.channels + s.channels;
}
double channel_parameters(const Sizes& s) {
  const double h = kChannelHidden * s.channels;
  return 2 * s.channels * h + h + s.channels;
}
double token_parameters(const Sizes& s) {
  const double t = s.tokens(), h = kTokenHidden * t;
  return 2 * t * h + h + t;
}

double best_channel(const Sizes& s, const MeshSizes& mesh) {
  return megatron(5, s.tokens() * s.channels, channel_parameters(s), mesh.p(), mesh.q());
}
double best_token(const Sizes& s, const MeshSizes& mesh) {
  return megatron(5, s.tokens() * s.channels, token_parameters(s), mesh.q(), mesh.p());
}

std::vector<Block> blocks() {
  const Json norm = {{"type", "layer_norm"}};
  const Json channel = {{"type", "channel_mixing"}, {"hidden_ratio", kChannelHidden}};
  const Json token = {{"type", "token_mixing"}, {"hidden_ratio", kTokenHidden}};
  const auto only = [](const Json& layer) { return [layer](const Sizes&) { return Json::array({layer}); }; };
  const auto half = [norm](const Json& layer) {
    return Json{{"type", "residual"}, {"layers", Json::array({norm, layer})}};
  };
  const auto linear = [](const Sizes& s) {
    return Json::array({{{"type", "linear"}, {"features", static_cast<std::int64_t>(s.channels)}}});
  };
  return {{"linear", linear, [](const Sizes& s, const MeshSizes&) { return linear_parameters(s); },
           [](const Sizes& s, const MeshSizes& m) {
             return megatron(2, s.tokens() * s.channels, linear_parameters(s), m.p(), m.q());
           },
           [](const Sizes& s, const MeshSizes& m) {
             return original_linear(s.tokens(), s.channels, s.channels, m);
           }},
          {"MLP over channels", only(channel),
           [](const Sizes& s, const MeshSizes&) { return channel_parameters(s); }, best_channel,
           [](const Sizes& s, const MeshSizes& m) {
             return original_mlp(s.tokens(), s.channels, kChannelHidden * s.channels, m);
           }},
          {"MLP over tokens", only(token),
           [](const Sizes& s, const MeshSizes&) { return token_parameters(s); }, best_token,
           [](const Sizes& s, const MeshSizes& m) {
             return original_tokens(s.tokens(), s.channels, kTokenHidden * s.tokens(), m);
           }},
          {"mixer block",
           [=](const Sizes&) {
             return Json::array({half(token), half(channel)});
           },
           [](const Sizes& s, const MeshSizes&) {
             return token_parameters(s) + channel_parameters(s) + 4 * s.channels;
           },
           [](const Sizes& s, const MeshSizes& m) {
             const double norms =
                 2 * statistics(s.tokens() / m.q(), m.p()) + 3 * part(m.q()) * 4 * s.channels / m.p();
             return best_token(s, m) + best_channel(s, m) + norms;
           },
           [](const Sizes&, const MeshSizes&) { return kNone; }}};
}

/// Every rank gathers the block's input and parameters, again for the backward, and the gradient of its
/// output; gradients of the parameters are scattered.
double gathered(const Block& block, const Sizes& s, const MeshSizes& mesh) {
  return part(mesh.ranks()) * (3 * s.tokens() * s.channels + 3 * block.parameters(s, mesh));
}

struct Counted {
  double forward = 0, backward = 0;  ///< bytes that the busiest rank sends
  double imbalance = 1;              ///< FLOPs, largest over mean

  double total() const { return forward + backward; }
};

/// A step of the block on every rank of the mesh, on arrays without data, by these costs' plan.
Counted count(const Block& block, const Sizes& sizes, const MeshSizes& mesh_sizes, const CostModel& costs) {
  Counted counted;
  double flops = 0, largest = 0, most = -1;
  const auto side = static_cast<std::int64_t>(sizes.side),
             channels = static_cast<std::int64_t>(sizes.channels);
  const Json model = {{"type", "sequential"}, {"layers", block.layers(sizes)}};
  for (int number = 0; number < mesh_sizes.ranks(); ++number) {
    Context context = Context::make_meta();
    const auto world = make_record_communicator(context, number, mesh_sizes.ranks());
    Mesh mesh(*world, 1, mesh_sizes.domain, mesh_sizes.tensor);
    const Rank rank{context, mesh};
    const auto built =
        build_model(parse<ModelSection>(Json{{"model", model}}).model, {{side, side}, channels, channels});
    PlanBook plans(costs);
    plan_and_materialise(*built, rank, plans, 1, Zero::kNone, DType::kFloat32, DType::kFloat32, 1);
    const Layout in = built->input_layout(mesh, 1), out = built->output_layout(mesh, 1);
    Tape tape(rank, plans, Tape::Mode::kRecord);
    const Variable x({Array(context, rank.box(in).extent, DType::kFloat32), in}, true);
    const Variable y = built->forward(tape, x);
    const double forward = world->traffic().total_bytes();
    y.slot()->add(rank, {Array(context, rank.box(out).extent, DType::kFloat32), out});
    tape.backward();
    const double total = world->traffic().total_bytes();
    if (total > most) {
      most = total;
      counted.forward = forward;
      counted.backward = total - forward;
    }
    flops += context.tally().flops;
    largest = std::max(largest, context.tally().flops);
  }
  counted.imbalance = largest * mesh_sizes.ranks() / flops;
  return counted;
}

/// A node with an accelerator: memory is much faster than the network.
CostModel cluster() {
  CostModel costs;
  costs.flops_per_second = 1e14;
  costs.memory_bytes_per_second = 1.5e12;
  costs.network_bytes_per_second = 2.5e10;
  return costs;
}

std::string megabytes(double bytes) {
  if (bytes < 0) return "–";
  std::ostringstream text;
  text << std::fixed << std::setprecision(2) << bytes / 1e6;
  return text.str();
}

std::string repeated(const std::string& text, int times) {
  std::string result;
  for (int i = 0; i < times; ++i) result += text;
  return result;
}

constexpr const char* kBegin = "<!-- table -->\n";

/// docs/traffic.md up to the table.
std::filesystem::path document() {
  return std::filesystem::path(std::getenv("JIGSAW_SOURCE_DIR")) / "docs/traffic.md";
}

TEST(Traffic, NeverAboveKnownSchemes) {
  constexpr double kBytes = 4;
  std::string table =
      "| block | T × C | mesh | forward | backward | ours | slow memory | (a) best known | (b) "
      "original "
      "Jigsaw | (c) all gathered | FLOPs max/mean |\n|" +
      repeated(" --- |", 11) + "\n";
  const std::vector<MeshSizes> meshes = {{{2, 1}, 1}, {{1, 1}, 2}, {{2, 2}, 1}, {{2, 1}, 2},
                                         {{1, 1}, 4}, {{2, 2}, 2}, {{4, 1}, 2}, {{2, 1}, 4}};
  for (const Block& block : blocks()) {
    for (const Sizes& sizes : {Sizes{64, 256}, Sizes{32, 1024}, Sizes{16, 2048}}) {
      for (const MeshSizes& mesh : meshes) {
        const std::string what =
            concat(block.name, " ", sizes.tokens(), " × ", sizes.channels, " on ", mesh.to_string());
        const Counted ours = count(block, sizes, mesh, cluster());
        const double slow_memory = count(block, sizes, mesh, {}).total();
        const double best = kBytes * block.best_known(sizes, mesh);
        const double original = block.original(sizes, mesh), all = kBytes * gathered(block, sizes, mesh);
        EXPECT_GT(ours.total(), 0) << what;
        EXPECT_LE(ours.total(), best * (1 + 1e-9)) << what;
        EXPECT_LE(ours.total(), all) << what;
        if (original != kNone) {
          EXPECT_LE(ours.total(), kBytes * original * (1 + 1e-9)) << what;
        }
        EXPECT_LE(ours.imbalance, 1.02) << what;
        table +=
            concat("| ", block.name, " | ", sizes.tokens(), " × ", sizes.channels, " | ", mesh.to_string(),
                   " | ", megabytes(ours.forward), " | ", megabytes(ours.backward), " | ",
                   megabytes(ours.total()), " | ", megabytes(slow_memory), " | ", megabytes(best), " | ",
                   megabytes(original == kNone ? kNone : kBytes * original), " | ", megabytes(all), " | ");
        std::ostringstream imbalance;
        imbalance << std::fixed << std::setprecision(3) << ours.imbalance;
        table += imbalance.str() + " |\n";
      }
    }
  }
  std::ifstream file(document());
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  const std::size_t begin = text.find(kBegin);
  ASSERT_NE(begin, std::string::npos) << document() << " has no place for the table";
  const std::string wanted = text.substr(0, begin) + kBegin + "\n" + table;
  if (std::getenv("JIGSAW_WRITE_DOCS") != nullptr) std::ofstream(document()) << wanted;
  EXPECT_TRUE(text == wanted) << "docs/traffic.md is not what is counted; JIGSAW_WRITE_DOCS=1 writes it:\n"
                              << table;
}

}  // namespace
}  // namespace jigsaw
