#include "layers/traffic_blocks.h"

#include <algorithm>

#include "base/text.h"

namespace jigsaw::testing {

std::string MeshSizes::to_string() const {
  return concat("[", join(domain, ", "), "] × ", tensor);
}

namespace {

double part(int n) {
  return static_cast<double>(n - 1) / n;
}

/// Weights gathered over `domain`, forward and backward, and their gradients scattered (Rajbhandari et al.
/// 2020).
Elements weights(double parameters, int p, int q) {
  const double sent = 3 * part(q) * parameters / p;
  return {0, sent, sent};
}

/// Megatron with sequence parallelism over `tensor` (Korthikanti et al. 2022): the narrow side is gathered
/// and scattered, forward and backward, and the saved input is gathered again.
Elements megatron(double transfers, double activation, double parameters, int p, int q) {
  return Elements{transfers * part(p) * activation / q} + weights(parameters, p, q);
}

/// Mean and squared deviations of each row gathered over the ranks that cut it, and two sums reduced
/// backward.
double statistics(double rows, int p) {
  return 2 * rows * (p - 1) + 2 * part(p) * 2 * rows;
}

/// A LayerNorm, its channels cut over `tensor`.
Elements layer_norm(const Sizes& s, const MeshSizes& m) {
  return Elements{statistics(s.tokens() / m.q(), m.p())} + weights(2 * s.channels, m.p(), m.q());
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

double no_original(const Sizes&, const MeshSizes&) {
  return kNone;
}

constexpr double kChannelHidden = 4, kTokenHidden = 0.5, kHeadSize = 32;

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
double attention_parameters(const Sizes& s) {
  return 4 * s.channels * s.channels + 4 * s.channels;
}

Elements best_channel(const Sizes& s, const MeshSizes& m) {
  return megatron(5, s.tokens() * s.channels, channel_parameters(s), m.p(), m.q());
}
/// The same with the axes exchanged.
Elements best_token(const Sizes& s, const MeshSizes& m) {
  const Elements sent = megatron(5, s.tokens() * s.channels, token_parameters(s), m.q(), m.p());
  return {sent.domain, sent.tensor, sent.tensor};
}
/// The heads of a rank's channels, its tokens' keys and values going round over `domain` (ring attention, Liu
/// et al. 2023): both of them forward, both again backward, and both gradients on their way home.
Elements best_attention(const Sizes& s, const MeshSizes& m) {
  return megatron(5, s.tokens() * s.channels, attention_parameters(s), m.p(), m.q()) +
         Elements{0, 6 * part(m.q()) * s.tokens() * s.channels / m.p()};
}

/// A convolution cut along its input's channels: halos and weights over `domain`, and over `tensor` the
/// result is scattered and its gradient gathered. All ranks take the bias, which the convolution adds.
Elements best_convolution(const Sizes& s, double kernel, double features, const MeshSizes& m) {
  const double parameters = kernel * kernel * s.channels * features;
  return megatron(2, s.tokens() * features, parameters, m.p(), m.q()) + weights(features, 1, m.ranks()) +
         Elements{0, 2 * halo(s, (kernel - 1) / 2, m) / m.p()};
}

Json sequential(const Json& layers) {
  return {{"type", "sequential"}, {"layers", layers}};
}
Json residual(const Json& layers) {
  return {{"type", "residual"}, {"layers", layers}};
}
std::int64_t whole(double number) {
  return static_cast<std::int64_t>(number);
}

std::vector<TrafficBlock> products() {
  const std::vector<Sizes> sizes = {{64, 256}, {32, 1024}, {16, 2048}};
  const Json norm = {{"type", "layer_norm"}};
  const Json channel = {{"type", "channel_mixing"}, {"hidden_ratio", kChannelHidden}};
  const Json token = {{"type", "token_mixing"}, {"hidden_ratio", kTokenHidden}};
  const auto only = [](const Json& layers) { return [layers](const Sizes&) { return sequential(layers); }; };
  const auto attend = [norm](const Sizes& s) {
    return residual({norm, {{"type", "multi_head_attention"}, {"heads", whole(s.channels / kHeadSize)}}});
  };
  return {{"linear", sizes,
           [](const Sizes& s) {
             return sequential(Json::array({{{"type", "linear"}, {"features", whole(s.channels)}}}));
           },
           linear_parameters,
           [](const Sizes& s, const MeshSizes& m) {
             return megatron(2, s.tokens() * s.channels, linear_parameters(s), m.p(), m.q());
           },
           [](const Sizes& s, const MeshSizes& m) {
             return original_linear(s.tokens(), s.channels, s.channels, m);
           }},
          {"MLP over channels", sizes, only(Json::array({channel})), channel_parameters, best_channel,
           [](const Sizes& s, const MeshSizes& m) {
             return original_mlp(s.tokens(), s.channels, kChannelHidden * s.channels, m);
           }},
          {"MLP over tokens", sizes, only(Json::array({token})), token_parameters, best_token,
           [](const Sizes& s, const MeshSizes& m) {
             return original_tokens(s.tokens(), s.channels, kTokenHidden * s.tokens(), m);
           }},
          {"mixer block", sizes, only({residual({norm, token}), residual({norm, channel})}),
           [](const Sizes& s) { return token_parameters(s) + channel_parameters(s) + 4 * s.channels; },
           [](const Sizes& s, const MeshSizes& m) {
             return best_token(s, m) + best_channel(s, m) + layer_norm(s, m) + layer_norm(s, m);
           },
           no_original},
          {"attention", sizes, [attend](const Sizes& s) { return sequential(Json::array({attend(s)})); },
           [](const Sizes& s) { return attention_parameters(s) + 2 * s.channels; },
           [](const Sizes& s, const MeshSizes& m) { return best_attention(s, m) + layer_norm(s, m); },
           no_original, false},
          {"ViT block", sizes,
           [=](const Sizes& s) {
             return sequential({attend(s), residual({norm, channel})});
           },
           [](const Sizes& s) { return attention_parameters(s) + channel_parameters(s) + 4 * s.channels; },
           [](const Sizes& s, const MeshSizes& m) {
             return best_attention(s, m) + best_channel(s, m) + layer_norm(s, m) + layer_norm(s, m);
           },
           no_original, false}};
}

}  // namespace

double gathered(const TrafficBlock& block, const Sizes& s, const MeshSizes& mesh) {
  return part(mesh.ranks()) * (3 * s.tokens() * s.channels + 3 * block.parameters(s));
}

double halo(const Sizes& field, double reach, const MeshSizes& mesh) {
  double region = field.channels, own = field.channels;
  for (const int ranks : mesh.domain) {
    own *= field.side / ranks;
    region *= field.side / ranks + reach * std::min(2, ranks - 1);
  }
  return region - own;
}

namespace {

constexpr double kKernel = 3, kGroups = 8;

/// Convolution and group norm: what they hold, and what they send. Statistics are two numbers of each of a
/// rank's channels gathered, and two in float64 of each group summed.
double stage_parameters(double channels, double features) {
  return kKernel * kKernel * channels * features + 3 * features;
}
Elements best_stage(const Sizes& s, double features, const MeshSizes& m) {
  const int n = m.ranks();
  return best_convolution(s, kKernel, features, m) + weights(2 * features, m.p(), m.q()) +
         Elements{0, (n - 1) * 2 * features / m.p() + 2 * part(n) * 4 * kGroups};
}

/// U-Net of three levels on a field of C channels, with C, 2 C and 4 C channels of its own.
struct UNetPart {
  double side, channels, features;
};
std::vector<UNetPart> unet_stages(const Sizes& s) {
  const double c = s.channels, side = s.side;
  return {{side, c, c},
          {side, c, c},
          {side / 2, c, 2 * c},
          {side / 2, 2 * c, 2 * c},
          {side / 4, 2 * c, 4 * c},
          {side / 4, 4 * c, 4 * c},
          {side / 2, 6 * c, 2 * c},
          {side / 2, 2 * c, 2 * c},
          {side, 3 * c, c},
          {side, c, c}};
}
double unet_parameters(const Sizes& s) {
  double total = linear_parameters(s);
  for (const UNetPart& stage : unet_stages(s)) total += stage_parameters(stage.channels, stage.features);
  return total;
}
/// Stages, the head, and what joins on the way up: over `tensor` both operands' channels change ranks.
Elements best_unet(const Sizes& s, const MeshSizes& m) {
  Elements total = megatron(2, s.tokens() * s.channels, linear_parameters(s), m.p(), m.q());
  for (const UNetPart& stage : unet_stages(s)) {
    total = total + best_stage({stage.side, stage.channels}, stage.features, m);
    const bool joined = stage.channels > 2 * stage.features;
    if (joined && m.p() > 1)
      total = total + Elements{2 * stage.side * stage.side * stage.channels / m.ranks()};
  }
  return total;
}

std::vector<TrafficBlock> convolutions() {
  const std::vector<Sizes> sizes = {{128, 32}, {64, 128}, {32, 512}};
  const auto convolution = [](const Sizes& s) {
    return Json{{"type", "conv"}, {"features", whole(s.channels)}, {"kernel", 3}, {"padding", 1}};
  };
  const Json norm = {{"type", "group_norm"}, {"groups", whole(kGroups)}}, gelu = {{"type", "gelu"}};
  return {{"convolution", sizes, [=](const Sizes& s) { return sequential(Json::array({convolution(s)})); },
           [](const Sizes& s) { return kKernel * kKernel * s.channels * s.channels + s.channels; },
           [](const Sizes& s, const MeshSizes& m) { return best_convolution(s, kKernel, s.channels, m); },
           no_original, false},
          {"U-Net level", sizes,
           [=](const Sizes& s) {
             const Json one = convolution(s);
             return sequential(Json::array({residual({one, norm, gelu, one, norm, gelu})}));
           },
           [](const Sizes& s) { return 2 * stage_parameters(s.channels, s.channels); },
           [](const Sizes& s, const MeshSizes& m) {
             const Elements stage = best_stage(s, s.channels, m);
             return stage + stage;
           },
           no_original, false},
          {"U-Net", sizes,
           [](const Sizes& s) {
             return Json{{"type", "unet"}, {"base_width", whole(s.channels)}, {"levels", 3}};
           },
           unet_parameters, best_unet, no_original, false}};
}

double spherical_parameters(const Sizes& s) {
  return s.side * s.channels * s.channels + s.channels;
}

/// As Makani's distributed transforms go (torch-harmonics' DistributedRealSHT, Bonev et al. 2023): channels
/// are exchanged for longitudes, back for orders, for latitudes and back for degrees, in both transforms,
/// forward and backward. With half as many degrees and orders as rows, and two numbers for each, there are as
/// many numbers behind the first as points, and half as many behind the second. Degrees cut weights; over
/// `tensor` the filter's result is scattered and its gradient gathered.
Elements best_spherical(const Sizes& s, const MeshSizes& m) {
  const int rows = m.domain[0], columns = m.domain[1];
  const double piece = s.tokens() * s.channels / m.ranks();
  const double exchanged = 4 * (2 * part(columns) + 1.5 * part(rows)) * piece;
  return Elements{part(m.p()) * s.tokens() * s.channels / m.q(), exchanged} +
         weights(spherical_parameters(s) / rows, m.p(), columns);
}

TrafficBlock spherical() {
  return {"spherical convolution",
          {{128, 64}, {128, 128}, {64, 256}},
          [](const Sizes&) {
            return sequential(Json::array({{{"type", "spherical_conv"}, {"latitudes", "gauss"}}}));
          },
          spherical_parameters,
          best_spherical,
          no_original,
          false};
}

}  // namespace

std::vector<TrafficBlock> traffic_blocks() {
  std::vector<TrafficBlock> all = products();
  all.push_back(spherical());
  for (TrafficBlock& block : convolutions()) all.push_back(std::move(block));
  return all;
}

}  // namespace jigsaw::testing
