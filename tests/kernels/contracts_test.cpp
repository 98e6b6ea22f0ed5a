// Every function of every kernel family on every device: it runs, or throws its name; none runs elsewhere.
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <functional>
#include <regex>
#include <set>

#include "array/transfer.h"
#include "base/error.h"
#include "base/text.h"
#include "kernels/attention.h"
#include "kernels/blending.h"
#include "kernels/channel_statistics.h"
#include "kernels/contraction.h"
#include "kernels/convolution.h"
#include "kernels/copy.h"
#include "kernels/ensemble.h"
#include "kernels/forecast_scores.h"
#include "kernels/group_statistics.h"
#include "kernels/loss.h"
#include "kernels/optimizer.h"
#include "kernels/pointwise.h"
#include "kernels/pooling.h"
#include "kernels/relative_bias.h"
#include "kernels/resampling.h"
#include "kernels/row_statistics.h"
#include "support/arrays.h"
#include "support/backends.h"
#include "support/source_dir.h"

namespace jigsaw {
namespace contracts_test {

constexpr DType kNarrow = DType::kFloat32, kWide = DType::kFloat64;

/// A function of front/<family>_kernels.h, what it calls itself when it is missing, and a call of it alone.
struct Contract {
  std::string family, function, name;
  std::function<void(Context&)> call;
};

Array numbers(Context& context, const Shape& shape, DType type = kNarrow) {
  return testing::random_array(context, shape, type, 1, 0.5, 1.0);
}
NormStatistics row_statistics(Context& context) {
  return {numbers(context, {2}), numbers(context, {2})};
}
GroupStatistics group_statistics(Context& context) {
  return {numbers(context, {1, 1}, kWide), numbers(context, {1, 1}, kWide), 2};
}
const Window kTwoByTwo = {{2, 2}, {1, 1}, {1, 1}};
const Pooling kPooling = {kTwoByTwo, {{0, 0}, {3, 3}}, false};
const Convolution kConvolution = {kTwoByTwo};
const Resampling kResampling = {Interpolation::kLinear, {3}, {6}, {true, true, true}, {}, {3}, {{0}, {6}}};
const ChannelRange kChannels = {0, 2};

std::vector<Contract> attention_contracts() {
  const auto rows = [](Context& c) { return HeadRows{numbers(c, {1, 3, 1, 1, 2}), 0}; };
  const auto result = [](Context& c) {
    return AttentionResult{numbers(c, {1, 3, 1, 2}), numbers(c, {1, 1, 3})};
  };
  return {{"attention", "forward", "attention_forward",
           [=](Context& c) { attention_forward(c, rows(c), rows(c), rows(c), {}, kNarrow); }},
          {"attention", "combine", "attention_combine",
           [=](Context& c) {
             AttentionResult into = result(c);
             attention_combine(c, into, result(c));
           }},
          {"attention", "row_sums", "attention_row_sums",
           [](Context& c) {
             attention_row_sums(c, numbers(c, {1, 3, 1, 2}), numbers(c, {1, 3, 1, 2}));
           }},
          {"attention", "backward", "attention_backward",
           [=](Context& c) {
             attention_backward(c, rows(c), rows(c), rows(c), numbers(c, {1, 3, 1, 2}),
                                numbers(c, {1, 3, 1, 2}), numbers(c, {1, 1, 3}), numbers(c, {1, 1, 3}), {},
                                rows(c), rows(c), rows(c), {});
           }},
          {"attention", "rotate", "attention_rotate", [](Context& c) {
             attention_rotate(c, numbers(c, {1, 3, 2, 1, 2}), {{3}, {0}});
           }}};
}

std::vector<Contract> statistics_contracts() {
  const auto field = [](Context& c) { return numbers(c, {1, 3, 2}); };
  const auto pair = [](Context& c) { return numbers(c, {1, 2}); };
  return {
      {"channel_statistics", "moments", "channel_moments", [=](Context& c) { channel_moments(c, field(c)); }},
      {"channel_statistics", "apply", "channel_apply",
       [=](Context& c) {
         channel_apply(c, field(c), {pair(c), pair(c), {}});
       }},
      {"channel_statistics", "gradient_sums", "channel_gradient_sums",
       [=](Context& c) {
         channel_gradient_sums(c, field(c), field(c), {pair(c), pair(c), {}});
       }},
      {"channel_statistics", "gradient", "channel_gradient",
       [=](Context& c) {
         channel_gradient(c, field(c), field(c), {pair(c), pair(c), {}}, pair(c), pair(c));
       }},
      {"group_statistics", "combine", "combine_channel_moments",
       [](Context& c) {
         const MomentsPart part{3, 0, 2};
         combine_channel_moments(c, numbers(c, {2, 1, 2}), std::span(&part, 1), 1, 2, 2);
       }},
      {"group_statistics", "scales", "channel_scales",
       [](Context& c) {
         channel_scales(c, group_statistics(c), kChannels, 1e-5, numbers(c, {2}, kWide), kNarrow);
       }},
      {"group_statistics", "gradient_sums", "group_gradient_sums",
       [](Context& c) {
         group_gradient_sums(c, group_statistics(c), kChannels, 1e-5, numbers(c, {2}, kWide),
                             numbers(c, {2, 1, 2}));
       }},
      {"group_statistics", "shifts", "gradient_shifts",
       [](Context& c) {
         gradient_shifts(c, group_statistics(c), kChannels, 1e-5, numbers(c, {2, 1, 1}, kWide), 6, kNarrow);
       }},
      {"group_statistics", "way_to_batch", "way_to_batch",
       [](Context& c) { way_to_batch(c, numbers(c, {2}, kWide), numbers(c, {2}, kWide), kChannels, 0.5); }},
      {"normalization", "row_moments", "row_moments", [=](Context& c) { row_moments(c, pair(c)); }},
      {"normalization", "forward", "layer_norm_forward",
       [=](Context& c) {
         NormStatistics statistics;
         layer_norm_forward(c, pair(c), {}, {}, 1e-5, statistics);
       }},
      {"normalization", "apply", "layer_norm_apply",
       [](Context& c) {
         layer_norm_apply(c, numbers(c, {2, 3}), {}, {}, row_statistics(c));
       }},
      {"normalization", "backward", "layer_norm_backward",
       [](Context& c) {
         layer_norm_backward(c, numbers(c, {2, 3}), numbers(c, {2, 3}), {}, row_statistics(c));
       }},
      {"normalization", "row_sums", "layer_norm_row_sums",
       [](Context& c) {
         layer_norm_row_sums(c, numbers(c, {2, 3}), numbers(c, {2, 3}), {}, row_statistics(c));
       }},
      {"row_statistics", "combine", "combine_moments",
       [](Context& c) {
         const std::int64_t length = 3;
         combine_moments(c, numbers(c, {1, 2, 2}), std::span(&length, 1), 1e-5);
       }},
      {"row_statistics", "drop_mean_part", "drop_mean_part", [](Context& c) {
         Array sums = numbers(c, {2, 2});
         drop_mean_part(c, sums);
       }}};
}

std::vector<Contract> field_contracts() {
  const auto x = [](Context& c) { return numbers(c, {1, 3, 3, 2}); };
  const auto y = [](Context& c) { return numbers(c, {1, 2, 2, 2}); };
  const auto weight = [](Context& c) { return numbers(c, {2, 2, 2, 2}); };
  return {{"convolution", "forward", "convolution_forward",
           [=](Context& c) { convolution_forward(c, kConvolution, x(c), weight(c), {}, kNarrow); }},
          {"convolution", "backward_data", "convolution_backward_data",
           [=](Context& c) {
             convolution_backward_data(c, kConvolution, y(c), weight(c), {3, 3}, kNarrow);
           }},
          {"convolution", "backward_weight", "convolution_backward_weight",
           [=](Context& c) { convolution_backward_weight(c, kConvolution, y(c), x(c), kNarrow); }},
          {"pooling", "max_forward", "max_pool_forward",
           [=](Context& c) {
             Array winners;
             max_pool_forward(c, kPooling, x(c), winners);
           }},
          {"pooling", "max_backward", "max_pool_backward",
           [=](Context& c) {
             max_pool_backward(c, kPooling, y(c), numbers(c, {1, 2, 2, 2}, DType::kBfloat16), {3, 3});
           }},
          {"pooling", "average_forward", "average_pool_forward",
           [=](Context& c) { average_pool_forward(c, kPooling, x(c)); }},
          {"pooling", "average_backward", "average_pool_backward",
           [=](Context& c) {
             average_pool_backward(c, kPooling, y(c), {3, 3});
           }},
          {"resampling", "forward", "resample_forward",
           [](Context& c) {
             resample_forward(c, kResampling, numbers(c, {1, 3, 2}));
           }},
          {"resampling", "backward", "resample_backward",
           [](Context& c) {
             resample_backward(c, kResampling, numbers(c, {1, 6, 2}));
           }},
          {"relative_bias", "forward", "relative_bias",
           [](Context& c) {
             relative_bias(c, numbers(c, {3, 1}), {2});
           }},
          {"relative_bias", "backward", "relative_bias_backward",
           [](Context& c) {
             relative_bias_backward(c, numbers(c, {1, 2, 2}), {2});
           }},
          {"relative_bias", "wrap_mask", "wrap_mask", [](Context& c) {
             wrap_mask(c, {{2}, {1}, {4}, {{0}, {4}}}, kNarrow);
           }}};
}

std::vector<Contract> elementwise_contracts() {
  const auto x = [](Context& c) { return numbers(c, {2, 3}); };
  const auto small = [](Context& c) { return numbers(c, {3}); };
  const Spread spread{2, 3, 1};
  const PointwiseChain chain{.activation = Activation::kGelu, .dropout = {}, .spread = spread};
  return {
      {"pointwise", "forward", "pointwise_forward",
       [=](Context& c) { pointwise_forward(c, chain, x(c), {}, {}); }},
      {"pointwise", "backward", "pointwise_backward",
       [=](Context& c) { pointwise_backward(c, chain, x(c), {}, x(c)); }},
      {"pointwise", "sum_spread", "sum_spread", [=](Context& c) { sum_spread(c, spread, x(c)); }},
      {"pointwise", "scale_spread", "scale_spread",
       [=](Context& c) { scale_spread(c, spread, x(c), small(c)); }},
      {"pointwise", "prelu", "prelu_forward", [=](Context& c) { prelu_forward(c, spread, x(c), small(c)); }},
      {"pointwise", "prelu_backward", "prelu_backward",
       [=](Context& c) { prelu_backward(c, spread, x(c), x(c), small(c)); }},
      {"pointwise", "add", "add", [=](Context& c) { add(c, x(c), x(c)); }},
      {"pointwise", "accumulate", "accumulate",
       [=](Context& c) {
         Array into = x(c);
         accumulate(c, into, x(c));
       }},
      {"pointwise", "scale", "scale",
       [=](Context& c) {
         Array a = x(c);
         scale(c, a, 2.0);
       }},
      {"pointwise", "fill", "filled", [](Context& c) { filled(c, {3}, kNarrow, 1.0); }},
      {"pointwise", "cast", "cast", [=](Context& c) { cast(c, x(c), kWide); }}};
}

std::vector<Contract> other_contracts() {
  const auto x = [](Context& c) { return numbers(c, {2, 3}); };
  const auto points = [](Context& c) { return numbers(c, {3}, kWide); };
  const auto field = [](Context& c) { return numbers(c, {1, 3, 2}); };
  const auto labels = [](Context& c) { return testing::array_of(c, {1, 3, 1}, kNarrow, {0, 1, 1}); };
  const Box corner{{0, 0}, {1, 2}};
  const ClassTerm term;
  const TrainedRun run{0, 6, 0.1, 0.1};
  const auto update = [](Context& c) { return numbers(c, {UpdateNumbers::kKinds}, kWide); };
  return {
      {"contraction", "contract", "contract",
       [=](Context& c) { contract(c, ContractionSpec::parse("ik,jk->ij"), x(c), x(c), kNarrow); }},
      {"copy", "copy_box", "copy_box", [=](Context& c) { extract_box(c, x(c), corner); }},
      {"copy", "add_box", "add_box",
       [=](Context& c) {
         Array target = x(c);
         add_box(c, x(c), corner, target, corner);
       }},
      {"copy", "copy_boxes", "copy_boxes",
       [=](Context& c) {
         BoxTable table;
         table.copy(0, {0, {2, 3}, corner}, {0, {2, 3}, corner});
         Array target = x(c);
         copy_boxes(c, table, std::array{x(c)}, target);
       }},
      {"copy", "permute", "permute",
       [=](Context& c) {
         permute(c, x(c), std::array{1, 0});
       }},
      {"ensemble", "member_inputs", "member_inputs",
       [=](Context& c) {
         const MemberNoise noise{{1, RandomPurpose::kNoise, ""}, 1, 1, {{}}};
         member_inputs(c, x(c).reshaped({1, 3, 2}), kNarrow, {{2, 3, 4}, {{0, 0, 0}, {2, 3, 4}}, 2}, noise);
       }},
      {"blending", "add_weighted", "add_weighted",
       [=](Context& c) {
         Array sums = numbers(c, {3, 2}, kWide);
         add_weighted(c, x(c).reshaped({3, 2}), points(c), {{0}, {3}}, sums, {{0, 0}, {3, 2}});
       }},
      {"forecast_scores", "states", "physical_states",
       [=](Context& c) {
         const StateChannel channels[2] = {};
         physical_states(c, field(c), numbers(c, {1, 3, 2}, kWide), channels);
       }},
      {"forecast_scores", "hide_missing", "hide_missing",
       [=](Context& c) {
         Array states = numbers(c, {1, 3, 2}, kWide);
         hide_missing(c, numbers(c, {1, 3, 2}, kWide), states);
       }},
      {"forecast_scores", "sums", "score_sums",
       [=](Context& c) {
         const Array states = numbers(c, {1, 3, 2}, kWide);
         score_sums(c, {states, states, {}, {}}, numbers(c, {2, 3}, kWide));
       }},
      {"forecast_scores", "truth_ranks", "truth_ranks",
       [=](Context& c) {
         truth_ranks(c, numbers(c, {2, 3, 2}, kWide), numbers(c, {1, 3, 2}, kWide), 2,
                     numbers(c, {2, 3}, kWide));
       }},
      {"forecast_scores", "exceedances", "exceedance_sums",
       [=](Context& c) {
         exceedance_sums(c, numbers(c, {2, 3, 2}, kWide), numbers(c, {1, 3, 2}, kWide), 2,
                         std::array{0.0, 0.5}, numbers(c, {2, 3}, kWide));
       }},
      {"forecast_scores", "moments", "add_moments",
       [=](Context& c) {
         const auto one = [&c] { return numbers(c, {1, 3, 2}, kWide); };
         TimeMoments moments{one(), one(), one(), one(), one()};
         add_moments(c, numbers(c, {2, 3, 2}, kWide), one(), moments);
       }},
      {"loss", "sums", "loss_sums", [=](Context& c) { loss_sums(c, {}, field(c), field(c), points(c)); }},
      {"loss", "gradient", "loss_gradient",
       [=](Context& c) {
         loss_gradient(c, {}, field(c), field(c), points(c), numbers(c, {1, 2}, kWide));
       }},
      {"loss", "mean", "loss_mean",
       [=](Context& c) {
         loss_mean(c, {numbers(c, {2, 3}, kWide), numbers(c, {2, 3}, kWide)}, points(c));
       }},
      {"loss", "factors", "loss_factors",
       [=](Context& c) {
         loss_factors(c, numbers(c, {2, 3}, kWide), points(c), 1.0);
       }},
      {"loss", "class_mean", "class_mean",
       [=](Context& c) {
         class_mean(c, {numbers(c, {6, 2, 3}, kWide)}, std::span(&term, 1), points(c));
       }},
      {"loss", "class_factors", "class_factors",
       [=](Context& c) {
         class_factors(c, {numbers(c, {6, 2, 3}, kWide)}, std::span(&term, 1), points(c), 1.0);
       }},
      {"loss", "class_sums", "class_sums",
       [=](Context& c) { class_sums(c, field(c), labels(c), points(c)); }},
      {"loss", "class_gradient", "class_gradient",
       [=](Context& c) {
         class_gradient(c, field(c), labels(c), points(c), numbers(c, {3, 1, 2}, kWide));
       }},
      {"optimizer", "adamw", "adamw",
       [=](Context& c) {
         Array p = x(c), m = x(c), v = x(c);
         adamw(c, {}, std::span(&run, 1), update(c), p, x(c), m, v);
       }},
      {"optimizer", "sgd", "sgd",
       [=](Context& c) {
         Array p = x(c), v = x(c);
         sgd(c, {}, std::span(&run, 1), update(c), p, x(c), v);
       }},
      {"optimizer", "follow", "follow",
       [=](Context& c) {
         Array p = x(c);
         follow(c, std::span(&run, 1), update(c), p, x(c));
       }},
      {"optimizer", "decide", "decide",
       [=](Context& c) {
         Array all = update(c);
         decide_update(c, {}, numbers(c, {3}, kWide), numbers(c, {1}, kWide), all);
       }},
      {"optimizer", "exponential_average", "exponential_average",
       [=](Context& c) {
         Array average = x(c);
         exponential_average(c, 0.9, update(c), average, x(c));
       }},
      {"optimizer", "squares_of_runs", "squares_of_runs", [=](Context& c) {
         Array sum = numbers(c, {1}, kWide);
         add_squares_of_runs(c, std::span(&run, 1), x(c), sum);
       }}};
}

std::vector<Contract> all_contracts() {
  std::vector<Contract> all;
  for (auto& some : {attention_contracts(), statistics_contracts(), field_contracts(),
                     elementwise_contracts(), other_contracts()})
    all.insert(all.end(), some.begin(), some.end());
  return all;
}

/// What a call threw; "" when it ran.
std::string thrown_by(const Contract& contract, Context& context) {
  try {
    contract.call(context);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kConfig) << error.what();
    return error.what();
  }
  return "";
}

/// Reads the sources; the others run on a GPU elsewhere, too, where these are not.
TEST(ContractSources, EveryFunctionOfEveryFamilyIsListed) {
  std::set<std::string> declared, listed;
  const std::string folder = testing::source_dir() + "/src/kernels/front";
  const std::regex function(R"(virtual void (\w+)\(Context&[^;{]*;)");
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    const std::string name = file.path().filename().string();
    const std::size_t end = name.find("_kernels.h");
    if (end == std::string::npos) continue;
    std::ifstream stream(file.path());
    const std::string text(std::istreambuf_iterator<char>(stream), {});
    for (std::sregex_iterator at(text.begin(), text.end(), function); at != std::sregex_iterator(); ++at)
      declared.insert(name.substr(0, end) + "." + (*at)[1].str());
  }
  for (const Contract& contract : all_contracts()) listed.insert(contract.family + "." + contract.function);
  EXPECT_EQ(listed, declared);
  EXPECT_GT(listed.size(), 50U);
}

TEST(Contracts, HostsHaveThemAll) {
  for (const Backend backend : {Backend::kReference, Backend::kCpu}) {
    Context context = Context::make_host(backend, 1);
    for (const Contract& contract : all_contracts())
      EXPECT_EQ(thrown_by(contract, context), "") << contract.name;
  }
}

/// Where the program has CUDA's kernels every function runs there; where it has none each throws its name.
TEST(Contracts, CudaHasThemAllOrThrowsTheirNames) {
  const CudaMachine machine = cuda_machine();
  if (machine.built && machine.devices == 0) GTEST_SKIP() << "CUDA's kernels need a device";
  Context context = machine.built ? testing::kernel_context(Backend::kCuda, 1)
                                  : Context(Backend::kCuda, Arena::make_host(), 1);
  for (const Contract& contract : all_contracts()) {
    const std::string missing = concat("no CUDA kernel for ", contract.name, ":");
    const std::string thrown = thrown_by(contract, context);
    if (machine.built) {
      EXPECT_EQ(thrown, "") << contract.name;
    } else {
      EXPECT_NE(thrown.find(missing), std::string::npos) << contract.name << " said: " << thrown;
    }
  }
  if (machine.built) context.runtime()->synchronise(Stream::kCompute);
}

TEST(Contracts, ACudaDeviceThatIsNotThereIsSaidSo) {
  EXPECT_THROW(make_cuda_context(cuda_device_count()), ConfigError);
  EXPECT_THROW(make_cuda_context(-1), ConfigError);
}

/// Regions that other processes can open stay apart; those of the one range are used as one.
TEST(Contracts, ACudaDeviceHasMemoryThatOtherProcessesCanOpen) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "needs a device";
  constexpr std::int64_t kCount = std::int64_t{3} << 20;
  for (const bool others : {false, true}) {
    Context context = make_cuda_context(0, others);
    std::int64_t held = 0;
    {
      const Array first(context, {kCount}, DType::kFloat32, Purpose::kActivations),
          second(context, {kCount}, DType::kFloat32, Purpose::kActivations);
      held = context.arena().held_bytes();
      EXPECT_GE(held, first.bytes() + second.bytes());
    }
    std::vector<double> values(2 * kCount, 3.0);
    values.back() = 7.0;
    const Array both = constant(context, {2 * kCount}, DType::kFloat32, values, Purpose::kActivations);
    EXPECT_EQ(context.arena().held_bytes() > held, others);
    EXPECT_EQ(download_values(context, both), values);
  }
}

}  // namespace contracts_test
}  // namespace jigsaw
