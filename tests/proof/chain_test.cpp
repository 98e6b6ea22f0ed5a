// Random chains of operations, every value in a random layout and every operation in random rules: values and
// all gradients against one rank. A failure is shrunk to the smallest chain.
#include "proof/chain.h"

#include <gtest/gtest.h>

#include <set>

#include "support/given_seeds.h"

namespace jigsaw {
namespace {

using testing::Chain;
using testing::chain_error;
using testing::Link;
using testing::random_chain;

constexpr double kTolerance = 1e-9;

void expect_dense(unsigned seed) {
  const Chain chain = random_chain(seed);
  const double error = chain_error(chain);
  if (error <= kTolerance) return;
  const Chain smallest =
      testing::shrink(chain, [](const Chain& one) { return !(chain_error(one) <= kTolerance); });
  ADD_FAILURE() << "seed " << seed << " differs by " << error << ": " << chain.to_string()
                << "\nsmallest chain: " << smallest.to_string() << ", by " << chain_error(smallest) << "\n"
                << testing::plan_of(smallest);
}

TEST(Chain, FixedSeedsAreDense) {
  std::set<int> ranks;
  for (unsigned seed = 1; seed <= 160; ++seed) {
    ranks.insert(random_chain(seed).ranks());
    expect_dense(seed);
  }
  EXPECT_EQ(ranks, (std::set<int>{2, 3, 4, 6, 8}));
}

TEST(Chain, GivenSeedsAreDense) {
  const auto seeds = testing::given_seeds();
  if (!seeds) GTEST_SKIP() << "JIGSAW_TEST_SEED names none";
  for (unsigned i = 0; i < seeds->count; ++i) expect_dense(seeds->first + i);
}

/// As if GELU were linear in x: the rule is wrong.
void pass_partial_through_gelu(Signature& signature) {
  if (signature.operation != "pointwise" || !signature.saved[0]) return;
  std::vector<bool> inputs(signature.inputs.size(), false);
  inputs[0] = true;
  signature.rules.push_back(linear_rule(inputs));
}

TEST(Chain, AWrongRowIsFoundAndShrunk) {
  const auto fails = [](const Chain& chain) {
    return !(chain_error(chain, pass_partial_through_gelu) <= kTolerance);
  };
  int found = 0;
  for (unsigned seed = 1; seed <= 400 && found < 3; ++seed) {
    if (!fails(random_chain(seed))) continue;
    ++found;
    const Chain smallest = testing::shrink(random_chain(seed), fails);
    EXPECT_TRUE(fails(smallest));
    // What gives the sum, and GELU (token mixing is both).
    EXPECT_LE(smallest.links.size(), 2U) << smallest.to_string();
    EXPECT_LE(smallest.ranks(), 3) << smallest.to_string();
    const std::string plan = testing::plan_of(smallest, pass_partial_through_gelu);
    EXPECT_NE(plan.find("pointwise"), std::string::npos) << plan;
  }
  EXPECT_EQ(found, 3);
}

TEST(Chain, ShrinkingKeepsOnlyWhatFails) {
  Chain chain = random_chain(1);
  chain.links.clear();
  for (unsigned i = 0; i < 2 * Link::kKinds; ++i)
    chain.links.push_back({static_cast<Link::Kind>(i % Link::kKinds), i});
  chain.domain = {2, 2};
  chain.tensor = 2;
  const Chain smallest = testing::shrink(chain, [](const Chain& one) {
    std::size_t norm = 0;
    while (norm < one.links.size() && one.links[norm].kind != Link::Kind::kNorm) ++norm;
    for (std::size_t i = norm; i < one.links.size(); ++i) {
      if (one.links[i].kind == Link::Kind::kLinear && one.tensor == 2) return true;
    }
    return false;
  });
  ASSERT_EQ(smallest.links.size(), 2U);
  EXPECT_EQ(smallest.links[0].kind, Link::Kind::kNorm);
  EXPECT_EQ(smallest.links[1].kind, Link::Kind::kLinear);
  EXPECT_EQ(smallest.ranks(), 2);
}

}  // namespace
}  // namespace jigsaw
