// U-Nets on a globe, whose rows go on beyond the poles: against loops, differences and chains of layers.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <numeric>

#include "base/text.h"
#include "layers/unet_runs.h"

namespace jigsaw {
namespace unet_globe_test {

using namespace testing::unet_runs;
using testing::relative_difference;
using testing::Tensors;

/// A U-Net of one level on a globe, one number at a time: winds turn round beyond a pole, in their own units.
class GlobeLoops {
 public:
  GlobeLoops(const ModelRun& run, bool pole_is_a_row, const std::vector<double>& mean,
             const std::vector<double>& deviation)
      : run_(run), pole_is_a_row_(pole_is_a_row), mean_(mean), deviation_(deviation) {}

  /// The input's channels, with number 1 and 2 the components of a wind.
  static PoleCrossing crossing(const std::vector<double>& mean, const std::vector<double>& deviation) {
    return {{1, -1, -1}, {0, -2 * mean[1] / deviation[1], -2 * mean[2] / deviation[2]}};
  }

  std::vector<double> output(const std::vector<double>& input, const Tensors& parameters) const {
    std::vector<double> result;
    const std::size_t sample = input.size() / static_cast<std::size_t>(run_.field[0]);
    for (std::size_t first = 0; first < input.size(); first += sample) {
      const auto begin = input.begin() + static_cast<std::ptrdiff_t>(first);
      const auto of = [&](const std::string& name) { return parameters.at(name); };
      std::vector<double> x(begin, begin + static_cast<std::ptrdiff_t>(sample));
      x = gelu(convolve(x, 3, of("encoder.0.conv1.weight"), of("encoder.0.conv1.bias"), true));
      x = gelu(convolve(x, 3, of("encoder.0.conv2.weight"), of("encoder.0.conv2.bias"), false));
      x = convolve(x, 1, of("head.weight"), of("head.bias"), false);
      result.insert(result.end(), x.begin(), x.end());
    }
    return result;
  }

 private:
  std::vector<double> convolve(const std::vector<double>& x, std::int64_t kernel,
                               const std::vector<double>& weight, const std::vector<double>& bias,
                               bool winds) const {
    const std::int64_t in = std::ssize(x) / (rows() * columns()), out = std::ssize(bias);
    std::vector<double> y;
    for (std::int64_t point = 0; point < rows() * columns(); ++point) {
      for (std::int64_t o = 0; o < out; ++o) {
        y.push_back(bias[static_cast<std::size_t>(o)]);
        for (std::int64_t tap = 0; tap < in * kernel * kernel; ++tap) {
          const std::int64_t c = tap / (kernel * kernel), i = tap / kernel % kernel, j = tap % kernel;
          y.back() +=
              weight[static_cast<std::size_t>(o * in * kernel * kernel + tap)] *
              read(x, in, point / columns() + i - kernel / 2, point % columns() + j - kernel / 2, c, winds);
        }
      }
    }
    return y;
  }

  double read(const std::vector<double>& x, std::int64_t channels, std::int64_t row, std::int64_t column,
              std::int64_t channel, bool winds) const {
    const bool beyond = row < 0 || row >= rows();
    if (row < 0) row = pole_is_a_row_ ? -row : -1 - row;
    if (row >= rows()) row = (pole_is_a_row_ ? 2 * rows() - 2 : 2 * rows() - 1) - row;
    column = (column + columns() + (beyond ? columns() / 2 : 0)) % columns();
    const double value = x[static_cast<std::size_t>((row * columns() + column) * channels + channel)];
    if (!beyond || !winds || channel == 0) return value;
    const auto c = static_cast<std::size_t>(channel);
    const double wind = value * deviation_[c] + mean_[c];
    return (-wind - mean_[c]) / deviation_[c];
  }

  static std::vector<double> gelu(std::vector<double> x) {
    for (double& value : x) value *= 0.5 * (1 + std::erf(value / std::sqrt(2.0)));
    return x;
  }
  std::int64_t rows() const { return run_.field[1]; }
  std::int64_t columns() const { return run_.field[2]; }

  const ModelRun& run_;
  bool pole_is_a_row_;
  std::vector<double> mean_, deviation_;
};

std::vector<double> made_up_values(std::int64_t count, double phase) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(made_up(i, phase));
  return values;
}

/// The slope of Σ output · gradient along each number of `values`, by central differences of `output`.
std::vector<double> slopes(std::vector<double>& values, const std::vector<double>& gradient,
                           const std::function<std::vector<double>()>& output) {
  constexpr double kStep = 1e-4;
  std::vector<double> result;
  for (double& value : values) {
    const double middle = value;
    const auto at = [&](double moved) {
      value = moved;
      const std::vector<double> y = output();
      return std::inner_product(y.begin(), y.end(), gradient.begin(), 0.0);
    };
    result.push_back((at(middle + kStep) - at(middle - kStep)) / (2 * kStep));
    value = middle;
  }
  return result;
}

TEST(UNet, WindsTurnRoundBeyondThePoles) {
  const std::vector<double> mean = {280, 3, -0.5}, deviation = {20, 8, 6};
  for (const bool pole_is_a_row : {false, true}) {
    for (const std::int64_t batch : {1, 3}) {
      ModelRun run{{{"type", "unet"},
                    {"widths", {2}},
                    {"norm_groups", 0},
                    {"padding_mode", {pole_is_a_row ? "pole_point" : "pole_cell", "circular"}}},
                   {batch, 5, 6, 3},
                   2,
                   {},
                   {}};
      run.crossing = GlobeLoops::crossing(mean, deviation);
      run.input = made_up_values(batch * 5 * 6 * 3, 0.1);
      run.output_gradient = made_up_values(batch * 5 * 6 * 2, 2.0);
      for (const auto& [name, count] : std::map<std::string, std::int64_t>{{"encoder.0.conv1.weight", 54},
                                                                           {"encoder.0.conv1.bias", 2},
                                                                           {"encoder.0.conv2.weight", 36},
                                                                           {"encoder.0.conv2.bias", 2},
                                                                           {"head.weight", 4},
                                                                           {"head.bias", 2}}) {
        run.parameters[name] = made_up_values(count, static_cast<double>(name.size()));
      }
      const GlobeLoops loops(run, pole_is_a_row, mean, deviation);
      Tensors parameters = run.parameters, expected;
      std::vector<double> input = run.input;
      const auto output = [&] { return loops.output(input, parameters); };
      expected["output"] = output();
      for (auto& [name, values] : parameters) expected[name] = slopes(values, run.output_gradient, output);
      expected["input"] = slopes(input, run.output_gradient, output);
      for (const auto& [domain, tensor] : std::vector<std::pair<std::vector<int>, int>>{
               {{1, 1}, 1}, {{2, 1}, 1}, {{1, 3}, 1}, {{4, 1}, 1}, {{3, 2}, 1}, {{2, 2}, 2}}) {
        SCOPED_TRACE(concat(pole_is_a_row ? "pole_point" : "pole_cell", ", batch ", batch, ", domain [",
                            join(domain, ", "), "] tensor ", tensor));
        const Tensors made = run_on(run, domain, tensor).tensors;
        EXPECT_LE(relative_difference(made.at("output"), expected.at("output")), 1e-12);
        expect_equal(made, expected, 1e-6);
      }
    }
  }
}

TEST(UNet, WithWindsIsOneFunctionOnEveryMesh) {
  ModelRun run{{{"type", "unet"},
                {"base_width", 4},
                {"levels", 3},
                {"norm_groups", 2},
                {"padding_mode", {"pole_cell", "circular"}}},
               {1, 17, 24, 3},
               2,
               {},
               {}};
  const Tensors scalars = run_on(run, {1, 1}, 1).tensors;
  run.crossing = GlobeLoops::crossing({280, 3, -0.5}, {20, 8, 6});
  for (const std::int64_t batch : {1, 3}) {
    run.field[0] = batch;
    const Tensors one = run_on(run, {1, 1}, 1).tensors;
    if (batch == 1) {
      EXPECT_GT(relative_difference(one.at("output"), scalars.at("output")), 1e-3);
    }
    for (const auto& [domain, tensor] : std::vector<std::pair<std::vector<int>, int>>{
             {{2, 1}, 1}, {{1, 3}, 1}, {{4, 1}, 1}, {{2, 3}, 1}, {{1, 8}, 1}, {{2, 2}, 2}}) {
      SCOPED_TRACE(concat("batch ", batch, ", domain [", join(domain, ", "), "] tensor ", tensor));
      expect_equal(run_on(run, domain, tensor).tensors, one, 1e-10);
    }
  }
}

/// The levels of a U-Net on a globe whose poles are rows, from the finest, as a chain in which each
/// convolution reads a field padded by one row at either end as `low` and `high` say of its level.
Json levels_between_poles(const std::string& down, const std::vector<std::string>& low,
                          const std::vector<std::string>& high, std::size_t level = 0) {
  const auto pad = [](const Json& before, const Json& behind, const std::string& mode) {
    return Json{{"type", "pad"}, {"low", before}, {"high", behind}, {"padding_mode", {mode, "circular"}}};
  };
  const auto convolve = [&](Json& layers, std::size_t at, std::int64_t stride, std::int64_t width) {
    layers.push_back(pad({1, 0}, {0, 0}, low[at]));
    layers.push_back(pad({0, 0}, {1, 0}, high[at]));
    layers.push_back(pad({0, 1}, {0, 1}, "zeros"));
    layers.push_back({{"type", "conv"}, {"features", width}, {"kernel", 3}, {"stride", stride}});
  };
  Json layers = Json::array();
  const auto width = static_cast<std::int64_t>(3 + level);
  const auto convolutions = [&] {
    for (int i = 0; i < 2; ++i) {
      convolve(layers, level, 1, width);
      layers.push_back({{"type", "gelu"}});
    }
  };
  if (level > 0 && down == "conv") convolve(layers, level - 1, 2, width);
  if (level > 0 && down != "conv") layers.push_back({{"type", down}, {"kernel", 2}, {"ceil_mode", true}});
  convolutions();
  if (level + 1 < low.size()) {
    Json inner = levels_between_poles(down, low, high, level + 1);
    inner.push_back({{"type", "upsample"}, {"scale", 2}});
    layers.push_back({{"type", "concat_skip"}, {"layers", inner}});
    convolutions();
  }
  return layers;
}

TEST(UNet, KnowsWhereThePolesOfCoarserLevelsLie) {
  struct Case {
    std::int64_t rows;
    std::string down;
    std::vector<std::string> low, high;
  };
  const std::string point = "pole_point", cell = "pole_cell";
  // 7 rows are halved to 4 and 2; 10 to 5 and 3.
  for (const Case& globe : {Case{7, "conv", {point, point, point}, {point, point, cell}},
                            Case{7, "max_pool", {point, cell, cell}, {point, point, cell}},
                            Case{10, "conv", {point, point, point}, {point, cell, cell}},
                            Case{10, "avg_pool", {point, cell, cell}, {point, cell, cell}}}) {
    SCOPED_TRACE(concat(globe.rows, " rows, ", globe.down));
    const ModelRun named{{{"type", "unet"},
                          {"widths", {3, 4, 5}},
                          {"norm_groups", 0},
                          {"down", globe.down},
                          {"padding_mode", {point, "circular"}}},
                         {1, globe.rows, 8, 2},
                         2,
                         {},
                         {}};
    Json layers = levels_between_poles(globe.down, globe.low, globe.high);
    layers.push_back({{"type", "conv"}, {"features", 2}, {"kernel", 1}});
    ModelRun said = named;
    said.model = {{"type", "sequential"}, {"layers", layers}};
    const auto names_of = [&](const Json& model) {
      const auto built =
          build_model(parse<ModelSection>(Json{{"model", model}}).model, {{globe.rows, 8}, 2, 2});
      std::vector<std::pair<std::string, std::int64_t>> names;
      for (const ParameterBlock* block : built->parameters()) {
        for (const auto& parameter : block->parameters())
          names.emplace_back(parameter->name(), parameter->shape().count());
      }
      return names;
    };
    const auto names = names_of(named.model), others = names_of(said.model);
    ASSERT_EQ(names.size(), others.size());
    ModelRun run = named;
    for (std::size_t i = 0; i < names.size(); ++i) {
      std::vector<double> values = made_up_values(names[i].second, static_cast<double>(i));
      for (double& value : values) value *= 0.3;
      run.parameters[names[i].first] = said.parameters[others[i].first] = values;
    }
    const Tensors expected = run_on(said, {1, 1}, 1).tensors;
    for (const int domain : {1, 2}) {
      const Tensors found = run_on(run, {domain, 1}, domain).tensors;
      EXPECT_LE(relative_difference(found.at("output"), expected.at("output")), 1e-12);
      EXPECT_LE(relative_difference(found.at("input"), expected.at("input")), 1e-12);
    }
  }
}

}  // namespace unet_globe_test
}  // namespace jigsaw
