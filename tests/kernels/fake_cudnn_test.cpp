// Who does what where there is a cuDNN: a fake one of plain loops (support/fake_cuda/cudnn.cpp).
#include <functional>
#include <utility>

#include "array/raw_memory.h"
#include "base/text.h"
#include "kernels/attention.h"
#include "kernels/backend.h"
#include "kernels/contraction.h"
#include "kernels/convolution.h"
#include "kernels/copy.h"
#include "kernels/cuda/attention_by_cudnn.h"
#include "kernels/cuda/convolution_slabs.h"
#include "kernels/cuda/cudnn_handle.h"
#include "kernels/fake_cuda_finds.h"
#include "kernels/remarks.h"
#include "support/error_of.h"
#include "support/tolerance.h"

namespace jigsaw {
namespace {

namespace fake_cuda = testing::fake_cuda;
using testing::FakeCudaFinds;
using testing::values_of;

class FakeCudnn : public FakeCudaFinds {
 protected:
  FakeCudnn() { fake_cuda::machine().cudnn = 91900; }
  ~FakeCudnn() override {
    fake_cuda::machine().cudnn = before_;
    fake_cuda::machine().cudnn_refuses = 0;
    fake_cuda::machine().cudnn_pairs = fake_cuda::machine().cudnn_rows = 1;
    fake_cuda::machine().cudnn_most_queries = fake_cuda::Machine().cudnn_most_queries;
    fake_cuda::machine().cudnn_lacks = 0;
  }

 private:
  int before_ = fake_cuda::machine().cudnn;
};

/// It does what it can, and kernels of ours the rest: float64.
TEST_F(FakeCudnn, DoesWhatItCan) {
  const Convolution convolution{{{3, 3}, {1, 1}, {1, 1}}, 1, {1, 1}, {1, 1}};
  const auto runs = [&](DType type, DType out, std::int64_t offset) {
    const std::int64_t before = fake_cuda::cudnn_runs();
    const Shape field{1, 5, 6, 4};
    const Array x = testing::random_array(context_, {field.count() + offset}, type, 1).slice(offset, field),
                weight = testing::random_array(context_, {4, 4, 3, 3}, type, 2),
                bias = testing::random_array(context_, {4}, DType::kFloat32, 3);
    const Array y = convolution_forward(context_, convolution, x, weight, bias, out);
    const std::int64_t forward = fake_cuda::cudnn_runs();
    values_of(y);
    const std::int64_t run = fake_cuda::cudnn_runs();
    EXPECT_EQ(forward, before) << "the work waits for its stream";
    values_of(convolution_backward_data(context_, convolution, x, weight, {5, 6}, out));
    values_of(convolution_backward_weight(context_, convolution, x, x, accumulator_of(type)));
    return std::vector<std::int64_t>{run - before, fake_cuda::cudnn_runs() - run};
  };
  using Runs = std::vector<std::int64_t>;
  EXPECT_EQ(runs(DType::kFloat32, DType::kFloat32, 0), (Runs{1, 2}));
  EXPECT_EQ(runs(DType::kBfloat16, DType::kBfloat16, 0), (Runs{1, 2}));
  EXPECT_EQ(runs(DType::kBfloat16, DType::kFloat32, 0), (Runs{1, 2})) << "of f32 copies";
  EXPECT_EQ(runs(DType::kFloat64, DType::kFloat64, 0), (Runs{0, 0}));
  EXPECT_EQ(runs(DType::kFloat32, DType::kFloat64, 0), (Runs{0, 1}));
  EXPECT_EQ(runs(DType::kFloat32, DType::kFloat32, 1), (Runs{1, 2})) << "of aligned copies";
}

/// The copies of each slab, of f32, take no more than is allowed, or make one row.
void expect_bounded(const Convolution& convolution, const Array& x, const Array& y, std::int64_t most) {
  using Pass = cuda::CudnnProblem::Pass;
  constexpr std::int64_t kBytes = 4;
  for (const Pass pass : {Pass::kForward, Pass::kData, Pass::kWeight}) {
    const auto copied = [&](const Array& of_x, const Array& of_y) {
      return cuda::CopiedBytes{pass == Pass::kData ? 0 : kBytes * of_x.count(),
                               pass == Pass::kForward ? 0 : kBytes * of_y.count()};
    };
    const auto slabs = cuda::convolution_slabs(pass, convolution, x, y, copied(x, y), {.most_bytes = most});
    for (const cuda::ConvolutionSlab& slab : slabs) {
      const cuda::CopiedBytes bytes = copied(slab.x, slab.y);
      if (slabs.size() > 1 && (pass == Pass::kData ? slab.x : slab.y).shape()[1] > 1) {
        EXPECT_LE(bytes.of_x + bytes.of_y, most);
      }
    }
  }
}

/// What is formed in f32 of bf16 reads f32 copies, rows by rows, that take no more than is allowed.
TEST_F(FakeCudnn, ConvolutionsInSlabs) {
  struct Case {
    std::string name;
    Convolution convolution;
    Shape x, weight;
    std::int64_t most;                     ///< bytes of copies
    std::int64_t forward, data, gradient;  ///< runs
  };
  const std::vector<Case> cases = {
      {"all at once",
       {{{3, 3}, {1, 1}, {1, 1}}, 1, {1, 1}, {1, 1}},
       {2, 9, 6, 4},
       {4, 4, 3, 3},
       3456,
       1,
       1,
       1},
      {"whole samples",
       {{{3, 3}, {1, 1}, {1, 1}}, 1, {1, 1}, {1, 1}},
       {5, 3, 2, 4},
       {4, 4, 3, 3},
       300,
       2,
       2,
       5},
      {"3 rows", {{{3, 3}, {1, 1}, {1, 1}}, 1, {1, 1}, {1, 1}}, {2, 9, 6, 4}, {4, 4, 3, 3}, 500, 6, 6, 18},
      {"stride 2",
       {{{3, 3}, {2, 2}, {1, 1}}, 1, {1, 1}, {1, 1}},
       {2, 9, 6, 4},
       {4, 4, 3, 3},
       100,
       10,
       10,
       10},
      {"a row left over", {{{3, 3}, {2, 2}, {1, 1}}, 1, {}, {}}, {1, 10, 6, 4}, {4, 4, 3, 3}, 500, 2, 1, 4},
      {"gaps",
       {{{3, 1, 1}, {1, 1, 1}, {2, 1, 1}}, 1, {2, 0, 0}, {2, 0, 0}},
       {1, 7, 4, 3, 2},
       {2, 2, 3, 1, 1},
       600,
       4,
       4,
       7},
      {"depthwise", {{{3, 3}, {1, 1}, {1, 1}}, 4, {1, 1}, {1, 1}}, {1, 8, 5, 4}, {4, 1, 3, 3}, 320, 4, 4, 8},
      {"zeros alone", {{{1, 1}, {1, 1}, {1, 1}}, 1, {3, 0}, {3, 0}}, {1, 4, 4, 4}, {4, 4, 1, 1}, 64, 1, 4, 1},
      {"rows of 12 bytes", {{{1, 1}, {1, 1}, {1, 1}}, 1, {}, {}}, {1, 4, 1, 3}, {3, 3, 1, 1}, 16, 1, 1, 4}};
  Context host = Context::make_host(Backend::kReference, 1);
  constexpr DType kType = DType::kBfloat16, kSums = DType::kFloat32;
  for (const Case& each : cases) {
    SCOPED_TRACE(each.name);
    using Results = std::vector<std::vector<double>>;
    const auto results = [&](Context& context, const std::function<void()>& done) {
      const Array x = testing::random_array(context, each.x, kType, 1),
                  weight = testing::random_array(context, each.weight, kType, 2),
                  bias = testing::random_array(context, {each.weight[0]}, DType::kFloat32, 3);
      Results all = {values_of(convolution_forward(context, each.convolution, x, weight, bias, kSums))};
      done();
      Shape places = each.x, space;
      for (int dim = 1; dim + 1 < each.x.rank(); ++dim) space.append(each.x[dim]);
      const Shape out = each.convolution.places(space);
      for (int dim = 0; dim < out.rank(); ++dim) places[dim + 1] = out[dim];
      places[places.rank() - 1] = each.weight[0];
      const Array dy = testing::random_array(context, places, kType, 4);
      expect_bounded(each.convolution, x, dy, each.most);
      all.push_back(
          values_of(convolution_backward_data(context, each.convolution, dy, weight, space, kSums)));
      done();
      all.push_back(values_of(convolution_backward_weight(context, each.convolution, dy, x, kSums)));
      done();
      return all;
    };
    context_.state<cuda::ConvolutionSlabs>().most_bytes = each.most;
    std::vector<std::int64_t> runs = {fake_cuda::cudnn_runs()};
    const Results found = results(context_, [&] { runs.push_back(fake_cuda::cudnn_runs()); }),
                  wanted = results(host, [] {});
    for (std::size_t i = 0; i < found.size(); ++i)
      testing::expect_near(found[i], wanted[i], testing::tolerance(kSums, 64, 8));
    EXPECT_EQ((std::vector{runs[1] - runs[0], runs[2] - runs[1], runs[3] - runs[2]}),
              (std::vector{each.forward, each.data, each.gradient}));
  }
}

/// Fields of more elements than 32 bits number are solved in slabs of fewer, where nothing is copied, too.
TEST_F(FakeCudnn, ConvolutionsOfManyElementsInSlabs) {
  const Convolution convolution{{{3, 3}, {1, 1}, {1, 1}}, 1, {1, 1}, {1, 1}};
  const Shape field{5, 8, 6, 4};
  constexpr DType kType = DType::kFloat32;
  const auto results = [&](Context& context) {
    const Array x = testing::random_array(context, field, kType, 1),
                weight = testing::random_array(context, {4, 4, 3, 3}, kType, 2),
                dy = testing::random_array(context, field, kType, 3);
    std::vector<double> all = values_of(convolution_forward(context, convolution, x, weight, {}, kType));
    for (const Array& each : {convolution_backward_data(context, convolution, dy, weight, {8, 6}, kType),
                              convolution_backward_weight(context, convolution, dy, x, kType)}) {
      const std::vector<double> more = values_of(each);
      all.insert(all.end(), more.begin(), more.end());
    }
    return all;
  };
  Context host = Context::make_host(Backend::kReference, 1);
  const std::vector<double> wanted = results(host);
  constexpr std::int64_t kSample = 8 * 6 * 4, kRow = 6 * 4;
  // Of each pass; a slab of 3 rows reads 5.
  for (const auto& [most, runs] : {std::pair{5 * kSample, 1},
                                   {5 * kSample - 1, 2},
                                   {2 * kSample, 3},
                                   {kSample, 5},
                                   {kSample - 1, 10},
                                   {5 * kRow, 15}}) {
    SCOPED_TRACE(most);
    context_.state<cuda::ConvolutionSlabs>().most_elements = most;
    const std::int64_t before = fake_cuda::cudnn_runs();
    testing::expect_near(results(context_), wanted, testing::tolerance(kType, 64, 8));
    EXPECT_EQ(fake_cuda::cudnn_runs() - before, 3 * runs);
  }
  EXPECT_EQ(cuda::ConvolutionSlabs().most_elements, (std::int64_t{1} << 31) - 1);
}

/// A kernel of ours does what it refuses, and each such convolution is said once.
TEST_F(FakeCudnn, WhatItRefusesIsSaidOnce) {
  const Convolution convolution{{{3, 3}, {1, 1}, {1, 1}}, 1, {1, 1}, {1, 1}};
  const auto convolved = [&](DType type) {
    const Array x = testing::random_array(context_, {1, 5, 6, 4}, type, 1),
                weight = testing::random_array(context_, {2, 4, 3, 3}, type, 2);
    return values_of(convolution_forward(context_, convolution, x, weight, {}, type));
  };
  const std::vector<double> wanted = convolved(DType::kFloat32);
  const std::int64_t before = fake_cuda::cudnn_runs();
  fake_cuda::machine().cudnn_refuses = 2;
  Context fresh = testing::kernel_context(Backend::kCuda, 1);  // which has no plans yet
  std::swap(fresh, context_);
  for (int i = 0; i < 2; ++i) testing::expect_near(convolved(DType::kFloat32), wanted, 1e-5);
  convolved(DType::kFloat64);
  EXPECT_EQ(fake_cuda::cudnn_runs(), before);
  const std::vector<std::string> said = take_remarks(context_);
  ASSERT_EQ(said.size(), 1U);
  EXPECT_EQ(
      said[0].rfind("cuDNN has no plan for the convolution of fp32 [1, 5, 6, 4] to [1, 5, 6, 2] by ", 0), 0U)
      << said[0];
  EXPECT_NE(said[0].find(" (it is told to refuse): a far slower kernel"), std::string::npos) << said[0];
  convolved(DType::kFloat32);
  EXPECT_TRUE(take_remarks(context_).empty());
}

/// An installation that is not whole is an error of whoever installed it, and not a problem that cuDNN does
/// not solve, whose slow kernel would run for days.
TEST_F(FakeCudnn, PartsThatAreMissingAreAnError) {
  const Convolution convolution{{{3, 3}, {1, 1}, {1, 1}}, 1, {1, 1}, {1, 1}};
  const auto convolved = [&](Context& context) {
    const Array x = testing::random_array(context, {1, 5, 6, 4}, DType::kFloat32, 1),
                weight = testing::random_array(context, {2, 4, 3, 3}, DType::kFloat32, 2);
    convolution_forward(context, convolution, x, weight, {}, DType::kFloat32);
  };
  const auto attended = [&](Context& context) {
    const Array qkv = testing::random_array(context, {1, 9, 3, 2, 8}, DType::kBfloat16, 1);
    attention_forward(context, {qkv, 0}, {qkv, 1}, {qkv, 2}, {.scale = 0.3}, DType::kBfloat16);
  };
  for (const auto& [status, says] :
       {std::pair(CUDNN_STATUS_NOT_INITIALIZED, "cuDNN could not start: CUDNN_STATUS_NOT_INITIALIZED; "),
        {CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED, ": CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED; "},
        {CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH, ": CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH; "}}) {
    fake_cuda::machine().cudnn_lacks = status;
    for (const bool attention : {false, true}) {
      Context fresh = testing::kernel_context(Backend::kCuda, 1);
      const std::string said =
          testing::error_of<ConfigError>([&] { attention ? attended(fresh) : convolved(fresh); });
      EXPECT_NE(said.find(says), std::string::npos) << said;
      EXPECT_NE(said.find("parts of cuDNN, or libraries that it needs, are missing"), std::string::npos)
          << said;
      EXPECT_NE(said.find("install all of cuDNN 9"), std::string::npos) << said;
      EXPECT_TRUE(take_remarks(fresh).empty());
    }
  }
  fake_cuda::machine().cudnn_lacks = 0;
  Context fresh = testing::kernel_context(Backend::kCuda, 1);
  convolved(fresh);
  attended(fresh);
}

/// Where arrays fill the device the same words are of the memory that it had not.
TEST_F(FakeCudnn, AFullDeviceIsNoInstallation) {
  const std::size_t before = fake_cuda::machine().memory;
  fake_cuda::machine().memory = std::size_t{16} << 20;
  Context context = testing::kernel_context(Backend::kCuda, 1);
  std::vector<Array> arrays;
  EXPECT_THROW(for (;;) arrays.emplace_back(context, Shape{1 << 19}, DType::kFloat32, Purpose::kActivations),
               OutOfMemoryError);
  const std::string said = testing::error_of([&] {
    cuda::library_failed(context, "a plan", cuda::LibraryError("CUDNN_STATUS_NOT_INITIALIZED", "install it"));
  });
  EXPECT_EQ(said.rfind("CUDNN_STATUS_NOT_INITIALIZED; 0 B of ", 0), 0U) << said;
  fake_cuda::machine().memory = before;
}

/// Attention of bf16 heads of 8 to 128 numbers, without anything besides, also backward in parts: of
/// batches, of heads whose sums begin at no multiple of 16 bytes, of queries, whose dk and dv are added up.
TEST_F(FakeCudnn, AttentionInParts) {
  struct Call {
    DType type = DType::kBfloat16, dq = type, dkv = type;
    std::int64_t size = 8, bytes = std::int64_t{1} << 29, runs = 1;
    bool masked = false;
  };
  constexpr std::int64_t kTile = 128 * 128 * 2;  // bytes
  constexpr DType kF32 = DType::kFloat32;
  Context host = Context::make_host(Backend::kReference, 1);
  const auto gradients = [&](Context& context, const Call& call) {
    // In parts there are three tiles of queries and of keys.
    const std::int64_t tokens = call.runs > 1 ? 301 : 21, heads = 3;
    const Shape shape{2, tokens, 3, heads, call.size}, rows{2, tokens, heads, call.size};
    const auto array = [&](const Shape& of, unsigned seed) {
      return testing::random_array(context, of, call.type, seed);
    };
    const Array qkv = array(shape, 1), dy = array(rows, 2);
    AttentionOptions options{.scale = 0.3};
    if (call.masked) options.mask = testing::random_array(context, {1, tokens, tokens}, kF32, 3);
    const AttentionResult result =
        attention_forward(context, {qkv, 0}, {qkv, 1}, {qkv, 2}, options, call.type);
    const Array dq(context, shape, call.dq), dkv(context, shape, call.dkv);
    attention_backward(context, {qkv, 0}, {qkv, 1}, {qkv, 2}, result.output, dy, result.log_sum_exp, {},
                       options, {dq, 0}, {dkv, 1}, {dkv, 2}, {});
    std::vector<double> all = values_of(result.output), found = values_of(result.log_sum_exp);
    all.insert(all.end(), found.begin(), found.end());
    for (int slot = 0; slot < 3; ++slot) {
      Box box = Box::whole(shape);
      box.begin[2] = slot, box.extent[2] = 1;
      found = values_of(extract_box(context, slot == 0 ? dq : dkv, box));
      all.insert(all.end(), found.begin(), found.end());
    }
    return all;
  };
  for (const Call& call :
       {Call{}, Call{.size = 128}, Call{.dq = kF32, .dkv = kF32}, Call{.dkv = kF32, .size = 24},
        Call{.bytes = kTile * 9 * 3, .runs = 2}, Call{.bytes = kTile * 9 * 2, .runs = 4},
        Call{.dq = kF32, .bytes = kTile * 9, .runs = 6}, Call{.bytes = kTile * 3, .runs = 18},
        Call{.dq = kF32, .dkv = kF32, .bytes = kTile * 8, .runs = 12}, Call{.type = kF32, .runs = 0},
        Call{.size = 12, .runs = 0}, Call{.size = 136, .runs = 0}, Call{.runs = 0, .masked = true}}) {
    SCOPED_TRACE(concat(name(call.type), ", heads of ", call.size, ", ", call.bytes, " bytes at once"));
    context_.state<cuda::AttentionParts>().most_bytes = call.bytes;
    const std::int64_t before = fake_cuda::cudnn_runs();
    testing::expect_near(gradients(context_, call), gradients(host, call),
                         testing::tolerance(call.type, 64, 8));
    EXPECT_EQ(fake_cuda::cudnn_runs() - before, call.runs == 0 ? 0 : 1 + call.runs) << "forward and backward";
  }
}

/// cuDNN makes bf16 alone: results in f32, as those of parts of a ring, come by way of it.
TEST_F(FakeCudnn, AttentionInF32ComesByWayOfBf16) {
  const Shape shape{2, 21, 3, 3, 16};
  const auto attended = [&](Context& context) {
    const Array qkv = testing::random_array(context, shape, DType::kBfloat16, 1);
    const AttentionResult result =
        attention_forward(context, {qkv, 0}, {qkv, 1}, {qkv, 2}, {.scale = 0.3}, DType::kFloat32);
    EXPECT_EQ(result.output.dtype(), DType::kFloat32);
    return values_of(result.output);
  };
  Context host = Context::make_host(Backend::kReference, 1);
  const std::int64_t before = fake_cuda::cudnn_runs();
  const std::vector<double> found = attended(context_);
  EXPECT_EQ(fake_cuda::cudnn_runs() - before, 1);
  testing::expect_near(found, attended(host), testing::tolerance(DType::kBfloat16, 64, 8));
}

/// What counts is what the plan takes: gradients that take little are formed at once however many pairs there
/// are; those that take twice as much are cut in twice as many parts; and what there is no plan for as a
/// whole may have one in parts.
TEST_F(FakeCudnn, GradientsAreCutByWhatTheirPlansTake) {
  struct Case {
    bool deterministic = true;
    int pairs = 1, rows = 1;  ///< the machine's
    std::int64_t most_queries = 1 << 20, runs = 1;
  };
  // Two heads of 3 tiles of queries and of keys, of 32 KiB for each pair of them; rows of dq take 4 KiB a
  // tile.
  const Shape shape{1, 257, 3, 2, 8};
  constexpr std::int64_t kPairs = std::int64_t{128} * 128 * 2, kRows = std::int64_t{128} * 8 * 4;
  const auto gradients = [&](Context& context, const std::function<void()>& backward_begins) {
    const Array qkv = testing::random_array(context, shape, DType::kBfloat16, 1);
    const AttentionResult result =
        attention_forward(context, {qkv, 0}, {qkv, 1}, {qkv, 2}, {.scale = 0.3}, DType::kBfloat16);
    backward_begins();
    const Array dqkv(context, shape, DType::kFloat32);
    attention_backward(context, {qkv, 0}, {qkv, 1}, {qkv, 2}, result.output, result.output,
                       result.log_sum_exp, {}, {.scale = 0.3}, {dqkv, 0}, {dqkv, 1}, {dqkv, 2}, {});
    return values_of(dqkv);
  };
  Context host = Context::make_host(Backend::kReference, 1);
  const std::vector<double> wanted = gradients(host, [] {});
  fake_cuda::Machine& machine = fake_cuda::machine();
  for (const Case& each :
       {Case{.runs = 2 * 3}, Case{.pairs = 0}, Case{.deterministic = false},
        Case{.deterministic = false, .rows = 2, .runs = 2}, Case{.most_queries = 256, .runs = 2 * 3},
        Case{.pairs = 0, .most_queries = 256, .runs = 2 * 3}}) {
    SCOPED_TRACE(concat(each.deterministic ? "in order, " : "in any order, ", each.pairs, " for a pair, ",
                        each.rows, " for a row, at most ", each.most_queries, " queries"));
    machine.cudnn_pairs = each.pairs;
    machine.cudnn_rows = each.rows;
    machine.cudnn_most_queries = fake_cuda::Machine().cudnn_most_queries;
    Context fresh = testing::kernel_context(Backend::kCuda, 1);  // which has no plans yet
    std::swap(fresh, context_);
    context_.set_deterministic(each.deterministic);
    context_.state<cuda::AttentionParts>().most_bytes = each.deterministic ? 5 * kPairs : 6 * kRows;
    const std::int64_t before = fake_cuda::cudnn_runs();
    testing::expect_near(gradients(context_, [&] { machine.cudnn_most_queries = each.most_queries; }), wanted,
                         testing::tolerance(DType::kBfloat16, 64, 8));
    EXPECT_EQ(fake_cuda::cudnn_runs() - before, 1 + each.runs) << "forward and backward";
    EXPECT_TRUE(take_remarks(context_).empty());
  }
}

/// TensorFloat-32 is taken where the context allows it, for float32 alone.
TEST_F(FakeCudnn, Tf32IsTakenWhereItIsAllowed) {
  fake_cuda::machine().cudnn_refuses = 2;  // whose problem is said
  const Convolution convolution{{{3, 3}, {1, 1}, {1, 1}}, 1, {1, 1}, {1, 1}};
  for (const bool allowed : {false, true}) {
    context_.set_tf32(allowed);
    for (const DType type : {DType::kFloat32, DType::kBfloat16, DType::kFloat64}) {
      SCOPED_TRACE(concat(name(type), allowed ? ", allowed" : ""));
      const bool taken = allowed && type == DType::kFloat32;
      const std::int64_t before = fake_cuda::rounded_products();
      const Array x = testing::random_array(context_, {3, 4}, type, 1);
      values_of(contract(context_, ContractionSpec::parse("mk,nk->mn"), x, x, type));
      EXPECT_EQ(fake_cuda::rounded_products() - before, taken ? 1 : 0);
      values_of(convolution_forward(context_, convolution,
                                    testing::random_array(context_, {1, 5, 6, 4}, type, 2),
                                    testing::random_array(context_, {2, 4, 3, 3}, type, 3), {}, type));
      const std::vector<std::string> said = take_remarks(context_);
      ASSERT_EQ(said.size(), type == DType::kFloat64 || (allowed && !taken) ? 0U : 1U);
      if (!said.empty()) {
        EXPECT_EQ(said[0].find(", factors rounded") != std::string::npos, taken) << said[0];
      }
    }
  }
}

/// Sums in any order are taken where the context allows them, by convolutions and attention's gradients;
/// these are then solved at once where pairs of queries and keys would be too many.
TEST_F(FakeCudnn, AnyOrderIsTakenWhereItIsAllowed) {
  const Convolution convolution{{{3, 3}, {1, 1}, {1, 1}}, 1, {1, 1}, {1, 1}};
  const std::int64_t tokens = 301;
  const Shape shape{1, tokens, 3, 2, 8};
  const auto attend = [&] {
    const Array qkv = testing::random_array(context_, shape, DType::kBfloat16, 1);
    const AttentionResult result =
        attention_forward(context_, {qkv, 0}, {qkv, 1}, {qkv, 2}, {.scale = 0.3}, DType::kBfloat16);
    const Array gradients(context_, shape, DType::kBfloat16);
    attention_backward(context_, {qkv, 0}, {qkv, 1}, {qkv, 2}, result.output, result.output,
                       result.log_sum_exp, {}, {.scale = 0.3}, {gradients, 0}, {gradients, 1}, {gradients, 2},
                       {});
    return values_of(gradients);
  };
  context_.state<cuda::AttentionParts>().most_bytes = std::int64_t{128} * 128 * 6 * 2;
  std::vector<double> wanted;
  for (const bool deterministic : {true, false}) {
    context_.set_deterministic(deterministic);
    const std::int64_t before = fake_cuda::cudnn_runs();
    const std::vector<double> gradients = attend();
    EXPECT_EQ(fake_cuda::cudnn_runs() - before, 1 + (deterministic ? 4 : 1)) << "forward and backward";
    if (deterministic) wanted = gradients;
    testing::expect_near(gradients, wanted, testing::tolerance(DType::kBfloat16, 64, 8));
  }
  fake_cuda::machine().cudnn_refuses = 2;  // whose problem is said
  for (const bool deterministic : {true, false}) {
    Context fresh = testing::kernel_context(Backend::kCuda, 1);  // which has no plans yet
    std::swap(fresh, context_);
    context_.set_deterministic(deterministic);
    const Array x = testing::random_array(context_, {1, 5, 6, 4}, DType::kFloat32, 2),
                dy = testing::random_array(context_, {1, 5, 6, 2}, DType::kFloat32, 3),
                weight = testing::random_array(context_, {2, 4, 3, 3}, DType::kFloat32, 4);
    values_of(convolution_forward(context_, convolution, x, weight, {}, DType::kFloat32));
    values_of(convolution_backward_data(context_, convolution, dy, weight, {5, 6}, DType::kFloat32));
    const std::vector<std::string> said = take_remarks(context_);
    ASSERT_EQ(said.size(), 2U);
    for (const std::string& each : said) {
      const bool gradient = each.find("the data gradient") != std::string::npos;
      EXPECT_EQ(each.find(", in any order") != std::string::npos, gradient && !deterministic) << each;
    }
  }
}

}  // namespace
}  // namespace jigsaw
