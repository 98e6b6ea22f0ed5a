// What cuDNN plans of attention for the properties of an H100 (tests/kernels/h100.json), without a GPU: its
// driver and runtime are in tests/support/described_gpu/.
#include "kernels/cuda/cudnn_attention_plan.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <optional>
#include <sstream>
#include <vector>

#include "kernels/cuda/attention_by_cudnn.h"
#include "kernels/cuda/cudnn_plan.h"
#include "support/cudnn_without.h"
#include "support/source_dir.h"

namespace jigsaw {
namespace {

using cuda::AttentionParts;
using cuda::CudnnAttentionPlan;
using cuda::CudnnAttentionProblem;

std::string h100() {
  std::ifstream file(testing::source_dir() + "/tests/kernels/h100.json");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

struct Sizes {
  std::int64_t batches, heads, queries, keys, head_size;
};

/// Of a packed projection [B, tokens, 3, heads, d], or of queries alone and keys with values.
CudnnAttentionProblem problem_of(const Sizes& s, bool backward) {
  const bool packed = s.queries == s.keys;
  const std::int64_t width = s.heads * s.head_size;
  const auto places = [](std::int64_t tokens, std::int64_t stride) {
    return CudnnAttentionProblem::Places{tokens * stride, stride};
  };
  CudnnAttentionProblem problem;
  problem.backward = backward;
  problem.batches = s.batches;
  problem.heads = s.heads;
  problem.queries = s.queries;
  problem.keys = s.keys;
  problem.head_size = s.head_size;
  problem.scale = 1 / std::sqrt(static_cast<double>(s.head_size));
  problem.y = problem.dy = places(s.queries, width);
  problem.q = problem.dq = places(s.queries, packed ? 3 * width : width);
  problem.k = problem.v = problem.dk = problem.dv = places(s.keys, packed ? 3 * width : 2 * width);
  problem.lse_batch = s.heads * s.queries;
  problem.lse_head = s.queries;
  return problem;
}

CudnnAttentionProblem part_of(CudnnAttentionProblem problem, const AttentionParts::Part& part) {
  problem.batches = part.batches;
  problem.heads = part.heads;
  problem.queries = part.queries;
  return problem;
}
/// What is solved at once, and what its plan takes, or why there is none.
struct LargestPart {
  explicit LargestPart(const CudnnAttentionProblem& backward) {
    const auto bytes_of = [&](const AttentionParts::Part& part) -> std::optional<std::int64_t> {
      const auto plan = CudnnAttentionPlan::make(part_of(backward, part), h100(), why);
      return bytes = plan ? std::optional(plan->workspace_bytes()) : std::nullopt;
    };
    problem = part_of(backward, AttentionParts().largest(backward, bytes_of));
  }
  CudnnAttentionProblem problem;
  std::optional<std::int64_t> bytes;
  std::string why;
};

/// Attention of the shipped models at its full size and small, tokens that are no multiples of 128 or 8, head
/// sizes from 8 to 128, one query, windows, parts of a ring, queries of other fields than keys.
TEST(CudnnAttentionPlans, AllOfTheModels) {
  std::vector<Sizes> all = {{1, 12, 4050, 4050, 64}, {1, 16, 16380, 16380, 64}, {2, 4, 150, 150, 32},
                            {1, 1, 1, 2, 8},         {3, 2, 7, 5, 16},          {1, 8, 1013, 1012, 96},
                            {200, 3, 49, 49, 32},    {1, 16, 64800, 64800, 64}, {2, 6, 128, 333, 128},
                            {1, 16, 8190, 8190, 64}, {8, 4, 77, 77, 24},        {4, 4, 39, 38, 24}};
  for (const std::int64_t size : {24, 40, 72, 80, 104, 120, 128}) all.push_back({1, 2, 300, 300, size});
  for (const Sizes& s : all) {
    std::string why;
    const CudnnAttentionProblem forward = problem_of(s, false);
    const auto plan = CudnnAttentionPlan::make(forward, h100(), why);
    ASSERT_TRUE(plan.has_value()) << forward.text() << ": " << why;
    EXPECT_LE(plan->workspace_bytes(), std::int64_t{1} << 29) << forward.text();
    const LargestPart part(problem_of(s, true));
    const CudnnAttentionProblem& backward = part.problem;
    why = part.why;
    if (const std::string refusal = CudnnAttentionPlan::refusal(backward); !refusal.empty()) {
      EXPECT_EQ(
          refusal.rfind(backward.queries == 1 ? "its gradients may not be numbers" : "4 does not divide", 0),
          0U)
          << refusal;
      EXPECT_FALSE(part.bytes.has_value());
      EXPECT_EQ(why, refusal);
      continue;
    }
    ASSERT_TRUE(part.bytes.has_value()) << backward.text() << ": " << why;
    const double pairs = static_cast<double>(backward.batches * backward.heads * backward.queries * s.keys);
    EXPECT_LE(static_cast<double>(*part.bytes), 1.1 * (1 << 29)) << backward.text();
    EXPECT_GE(static_cast<double>(*part.bytes), 2 * pairs)
        << backward.text() << ": without room for the pairs it adds up dq in any order";
  }
}

/// Gradients that may be added up in any order want no number for each pair: those of 16,380 tokens are
/// formed at once.
TEST(CudnnAttentionPlans, InAnyOrderTakesLittle) {
  for (const Sizes& s : {Sizes{1, 16, 16380, 16380, 64}, {4, 8, 16384, 16384, 128}, {2, 6, 128, 333, 128}}) {
    CudnnAttentionProblem backward = problem_of(s, true);
    backward.deterministic = false;
    const LargestPart part(backward);
    EXPECT_EQ(part.problem.text(), backward.text());
    ASSERT_TRUE(part.bytes.has_value()) << backward.text() << ": " << part.why;
    const double dq = 4.0 * static_cast<double>(s.batches * s.heads * s.queries * s.head_size);
    EXPECT_LE(static_cast<double>(*part.bytes), 1.2 * dq + (1 << 20)) << backward.text();
  }
}

/// What is said of a small problem; run by the next test, in a process that finds another cuDNN.
TEST(CudnnAttentionPlans, DISABLED_AreMade) {
  std::string why;
  const CudnnAttentionProblem problem = problem_of({2, 4, 150, 150, 32}, false);
  try {
    std::cout << (CudnnAttentionPlan::make(problem, h100(), why) ? "planned" : "not planned: " + why) << "\n";
  } catch (const cuda::LibraryError& error) {
    std::cout << error.what() << "; " << error.remedy() << "\n";
  }
}

TEST(CudnnAttentionPlans, APartThatIsMissingIsAnError) {
  const auto said_without = [](const std::string& part) {
    return testing::said_with_cudnn_without(part, "CudnnAttentionPlans.DISABLED_AreMade",
                                            static_cast<int>(cudnnGetVersion()));
  };
  EXPECT_NE(said_without("").find("\nplanned\n"), std::string::npos) << said_without("");
  const std::string said = said_without("engines_runtime_compiled");
  EXPECT_NE(said.find("parts of cuDNN, or libraries that it needs, are missing"), std::string::npos) << said;
}

/// A driver that is older than cuDNN's compiler does not load what that makes. There are other engines, or
/// none, and then words for why.
TEST(CudnnAttentionPlans, EnginesThatTheDriverDoesNotLoadArePassedOver) {
  ::setenv("JIGSAW_DESCRIBED_GPU_LOADS", "222", 1);
  std::string why;
  const CudnnAttentionProblem attention = problem_of({3, 5, 210, 210, 48}, false);
  EXPECT_TRUE(CudnnAttentionPlan::make(attention, h100(), why) || !why.empty());
  const auto square = [](std::int64_t each) { return Shape::filled(2, each); };
  for (const std::int64_t channels : {3, 12, 64}) {
    for (const DType type : {DType::kFloat32, DType::kBfloat16}) {
      const cuda::CudnnProblem problem{cuda::CudnnProblem::Pass::kForward,
                                       type,
                                       false,
                                       true,
                                       {{square(3), square(1), square(1)}, 1, square(1), square(1)},
                                       {1, 33, 49, channels},
                                       {1, 33, 49, 32}};
      why.clear();
      EXPECT_TRUE(cuda::CudnnPlan::make(problem, h100(), &why) || !why.empty()) << problem.text();
    }
  }
  ::unsetenv("JIGSAW_DESCRIBED_GPU_LOADS");
}

TEST(CudnnAttentionPlans, WhatItCannotDoItSays) {
  std::string why;
  EXPECT_FALSE(CudnnAttentionPlan::make(problem_of({1, 2, 9, 9, 12}, false), h100(), why));
  EXPECT_NE(why.find("multiple of 8"), std::string::npos) << why;
  EXPECT_FALSE(CudnnAttentionPlan::make(problem_of({1, 2, 9, 9, 8}, false), "{}", why));
  EXPECT_FALSE(why.empty());
  const auto refused = [](const Sizes& sizes, bool backward) {
    return CudnnAttentionPlan::refusal(problem_of(sizes, backward));
  };
  for (const Sizes& sizes : {Sizes{1, 16, 64, 64, 64}, {1, 16, 200, 1088, 64}, {4, 16, 1, 128, 64}}) {
    EXPECT_NE(refused(sizes, true), "");
    EXPECT_EQ(refused(sizes, false), "");
  }
  for (const Sizes& sizes : {Sizes{1, 16, 16380, 16380, 64}, {1, 16, 16384, 16384, 64}, {1, 16, 64, 128, 64}})
    EXPECT_EQ(refused(sizes, true), "");
}

}  // namespace
}  // namespace jigsaw
