#include "kernels/contraction.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <random>

#include "base/error.h"
#include "support/arrays.h"
#include "support/backends.h"
#include "support/tolerance.h"

namespace jigsaw {
namespace contraction_test {

using testing::array_of;
using testing::expect_near;
using testing::random_array;
using testing::tolerance;
using testing::values_of;

using Extents = std::map<char, std::int64_t>;

Shape shape_of(const std::string& letters, const Extents& extents) {
  Shape shape;
  for (const char letter : letters) shape.append(extents.at(letter));
  return shape;
}

/// Σ over all indices of all letters, one nested loop a letter, in float64.
std::vector<double> expected(const ContractionSpec& spec, const Extents& extents, const Array& a,
                             const Array& b) {
  const std::vector<double> x = values_of(a), y = values_of(b);
  std::vector<double> c(static_cast<std::size_t>(shape_of(spec.c, extents).count()), 0.0);
  std::map<char, std::int64_t> index;
  const auto offset = [&](const std::string& letters) {
    std::int64_t position = 0;
    for (const char letter : letters) position = position * extents.at(letter) + index[letter];
    return static_cast<std::size_t>(position);
  };
  std::function<void(Extents::const_iterator)> loop = [&](Extents::const_iterator letter) {
    if (letter == extents.end()) {
      c[offset(spec.c)] += x[offset(spec.a)] * y[offset(spec.b)];
      return;
    }
    for (index[letter->first] = 0; index[letter->first] < letter->second; ++index[letter->first]) {
      loop(std::next(letter));
    }
  };
  loop(extents.begin());
  return c;
}

std::int64_t reduction_length(const ContractionSpec& spec, const Extents& extents) {
  std::int64_t length = 1;
  for (const auto& [letter, extent] : extents) {
    if (spec.c.find(letter) == std::string::npos) length *= extent;
  }
  return length;
}

struct Types {
  DType in, out;
};
constexpr Types kTypes[] = {{DType::kFloat32, DType::kFloat32},
                            {DType::kFloat64, DType::kFloat64},
                            {DType::kBfloat16, DType::kBfloat16},
                            {DType::kBfloat16, DType::kFloat32}};

class Contraction : public ::testing::TestWithParam<Backend> {
 protected:
  void check(const std::string& text, const Extents& extents, Types types) {
    SCOPED_TRACE(text + " in " + std::string(name(types.in)));
    const auto spec = ContractionSpec::parse(text);
    Array a = random_array(context_, shape_of(spec.a, extents), types.in, 1);
    Array b = random_array(context_, shape_of(spec.b, extents), types.in, 2);
    const std::vector<double> wanted = expected(spec, extents, a, b);
    const double limit = tolerance(types.out, reduction_length(spec, extents),
                                   4 + std::sqrt(static_cast<double>(reduction_length(spec, extents))));
    const Array c = contract(context_, spec, a, b, types.out);
    EXPECT_EQ(c.shape(), shape_of(spec.c, extents));
    expect_near(values_of(c), wanted, limit);
    if (types.out == DType::kBfloat16) return;

    Array into = random_array(context_, c.shape(), types.out, 3);
    std::vector<double> sum = values_of(into);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += wanted[i];
    contract_add(context_, spec, a, b, into);
    expect_near(values_of(into), sum, limit);
  }

  Context context_ = testing::kernel_context(GetParam(), 2);
};

TEST_P(Contraction, LinearAndItsBackward) {
  const Extents extents = {{'b', 2}, {'h', 3}, {'w', 5}, {'k', 37}, {'n', 19}};
  for (const Types types : kTypes) {
    for (const char* text : {"bhwk,nk->bhwn", "bhwn,nk->bhwk", "bhwn,bhwk->nk", "bhwk,kn->bhwn",
                             "bhwn,kn->bhwk", "bhwk,bhwn->kn"}) {
      check(text, extents, types);
    }
  }
}

TEST_P(Contraction, TokenMixingAndItsBackward) {
  const Extents extents = {{'b', 2}, {'h', 5}, {'w', 7}, {'c', 24}, {'t', 11}};
  for (const Types types : kTypes) {
    for (const char* text : {"bhwc,thw->btc", "btc,thw->bhwc", "btc,bhwc->thw", "btc,hwt->bhwc",
                             "bhwc,btc->hwt", "thw,bhwc->btc"}) {
      check(text, extents, types);
    }
  }
}

TEST_P(Contraction, Attention) {
  const Extents extents = {{'b', 2}, {'t', 9}, {'s', 13}, {'h', 3}, {'d', 16}};
  for (const Types types : kTypes) {
    for (const char* text : {"bthd,bshd->bhts", "bhts,bshd->bthd", "bthd,bshd->bths", "bhts,bthd->bshd"}) {
      check(text, extents, types);
    }
  }
}

TEST_P(Contraction, SpecialForms) {
  const Extents one = {{'i', 6}};
  const Extents two = {{'i', 6}, {'j', 4}};
  const Extents three = {{'i', 6}, {'j', 4}, {'k', 3}};
  for (const Types types : kTypes) {
    check("i,i->i", one, types);
    check("i,i->", one, types);
    check("i,->i", one, types);
    check(",->", {}, types);
    check("i,j->ij", two, types);
    check("i,j->ji", two, types);
    check("ij,ij->ij", two, types);
    check("ij,ji->", two, types);
    check("ij,j->i", two, types);
    check("ij,i->j", two, types);
    check("ijk,jk->kji", three, types);
    check("kij,ik->j", three, types);
  }
}

TEST_P(Contraction, ScaleOfChannelsAndItsGradient) {
  for (const auto& [height, channels] : {std::pair<std::int64_t, std::int64_t>{9, 37}, {90, 24}, {7, 1}}) {
    const Extents extents = {{'b', 2}, {'h', height}, {'w', 11}, {'c', channels}};
    for (const Types types : kTypes) {
      for (const char* text :
           {"bhwc,c->bhwc", "bhwc,bhwc->c", "bhwc,bhwc->bhwc", "bhwc,bhwc->bhw", "bhw,bhwc->bhwc"})
        check(text, extents, types);
    }
  }
}

TEST_P(Contraction, ManySmallMatrices) {
  check("bmk,bnk->bmn", {{'b', 65600}, {'m', 2}, {'n', 2}, {'k', 3}}, {DType::kFloat32, DType::kFloat32});
}

TEST_P(Contraction, EmptyExtents) {
  for (const Types types : kTypes) {
    for (const char empty : {'b', 'k', 'n'}) {
      Extents extents = {{'b', 3}, {'k', 4}, {'n', 5}};
      extents[empty] = 0;
      check("bk,nk->bn", extents, types);
      check("bn,bk->nk", extents, types);
    }
  }
}

TEST_P(Contraction, RandomLetters) {
  std::mt19937 generator(7);
  const auto draw = [&](int count) { return static_cast<int>(generator() % static_cast<unsigned>(count)); };
  for (int round = 0; round < 300; ++round) {
    std::string a, b, c;
    Extents extents;
    for (const char letter : {'p', 'q', 'r', 's', 't', 'u'}) {
      const int role = draw(5);
      if (role == 4) continue;
      if (role != 1) a.insert(a.begin() + draw(static_cast<int>(a.size()) + 1), letter);
      if (role != 0) b.insert(b.begin() + draw(static_cast<int>(b.size()) + 1), letter);
      if (role != 3) c.insert(c.begin() + draw(static_cast<int>(c.size()) + 1), letter);
      extents[letter] = draw(12) == 0 ? 0 : 1 + draw(7);
    }
    check(a + "," + b + "->" + c, extents, kTypes[round % 4]);
  }
}

TEST_P(Contraction, RandomLettersOfLargerExtents) {
  std::mt19937 generator(8);
  const auto draw = [&](int count) { return static_cast<int>(generator() % static_cast<unsigned>(count)); };
  for (int round = 0; round < 60; ++round) {
    std::string a, b, c;
    Extents extents;
    int role = draw(4);
    for (const char letter : {'p', 'q', 'r', 's'}) {
      role = (role + 1 + draw(2)) % 4;
      if (role != 1) a.insert(a.begin() + draw(static_cast<int>(a.size()) + 1), letter);
      if (role != 0) b.insert(b.begin() + draw(static_cast<int>(b.size()) + 1), letter);
      if (role != 3) c.insert(c.begin() + draw(static_cast<int>(c.size()) + 1), letter);
      extents[letter] = 5 + draw(13);
    }
    check(a + "," + b + "->" + c, extents, kTypes[round % 4]);
  }
}

/// For which oneDNN 2.6 has code that ends the program on processors with AMX.
TEST_P(Contraction, ProductsOverSixtyThreeNumbers) {
  for (const std::int64_t rows : {70, 140}) {
    for (const DType out : {DType::kBfloat16, DType::kFloat32})
      check("mk,nk->mn", {{'m', rows}, {'k', 63}, {'n', 24}}, {DType::kBfloat16, out});
  }
}

TEST_P(Contraction, LargeProductsMatchTheReference) {
  Context reference = Context::make_host(Backend::kReference, 1);
  const Extents extents = {{'b', 3}, {'h', 9}, {'w', 20}, {'c', 96}, {'t', 130}, {'n', 200}};
  for (const char* text : {"bhwc,nc->bhwn", "bhwn,nc->bhwc", "bhwn,bhwc->nc", "bhwc,thw->btc",
                           "btc,thw->bhwc", "btc,bhwc->thw"}) {
    SCOPED_TRACE(text);
    const auto spec = ContractionSpec::parse(text);
    const Array a = random_array(reference, shape_of(spec.a, extents), DType::kFloat64, 1);
    const Array b = random_array(reference, shape_of(spec.b, extents), DType::kFloat64, 2);
    const std::vector<double> wanted = values_of(contract(reference, spec, a, b, DType::kFloat64));
    const Array a32 = random_array(context_, a.shape(), DType::kFloat32, 1);
    const Array b32 = random_array(context_, b.shape(), DType::kFloat32, 2);
    keep_packed(context_, b32);
    for (int repetition = 0; repetition < 3; ++repetition) {
      const Array c = contract(context_, spec, a32, b32, DType::kFloat32);
      expect_near(values_of(c), wanted, tolerance(DType::kFloat32, reduction_length(spec, extents)));
    }
    forget_packed_weights(context_);
  }
}

/// The gradient of a weight contracts all points of a grid and all samples. Of equal terms, whose sum in
/// float32 one by one is off by up to a percent, libraries that add in blocks make at most 6e-5; of terms
/// that differ the errors cancel.
TEST_P(Contraction, SumsOverAMillionTerms) {
  const std::int64_t terms = (1 << 20) + 37;
  struct Sum {
    const char* text;
    std::int64_t m, n;
  };
  for (const Sum& sum : {Sum{"km,kn->mn", 3, 4}, Sum{"km,kn->mn", 1, 8}, Sum{"km,kn->mn", 3, 1},
                         Sum{"mk,nk->mn", 1, 2}, Sum{"mk,nk->mn", 1, 1}}) {
    const auto spec = ContractionSpec::parse(sum.text);
    const Extents extents = {{'k', terms}, {'m', sum.m}, {'n', sum.n}};
    const auto measured = [&](double low, double high) {
      const Array a = random_array(context_, shape_of(spec.a, extents), DType::kFloat32, 1, low, high),
                  b = random_array(context_, shape_of(spec.b, extents), DType::kFloat32, 2, low, high);
      const std::vector<double> x = values_of(a), y = values_of(b),
                                found = values_of(contract(context_, spec, a, b, DType::kFloat32));
      const bool points_first = spec.a[0] == 'k';
      double worst = 0;
      for (std::int64_t m = 0; m < sum.m; ++m) {
        for (std::int64_t n = 0; n < sum.n; ++n) {
          double wanted = 0;
          for (std::int64_t k = 0; k < terms; ++k) {
            wanted += x[static_cast<std::size_t>(points_first ? k * sum.m + m : m * terms + k)] *
                      y[static_cast<std::size_t>(points_first ? k * sum.n + n : n * terms + k)];
          }
          worst = std::max(worst, std::abs(found[static_cast<std::size_t>(m * sum.n + n)] / wanted - 1));
        }
      }
      return worst;
    };
    const double equal = measured(0.3, 0.3), different = measured(0.5, 1.5);
    std::printf("%s of %lld and %lld: relative errors %.1e of equal terms, %.1e of others\n", sum.text,
                static_cast<long long>(sum.m), static_cast<long long>(sum.n), equal, different);
    // A library may add all terms one after the other: 1.2e-2 and 1.9e-5 from what they are then.
    const bool by_library = GetParam() == Backend::kCuda && std::getenv("JIGSAW_FAKE_CUDA") == nullptr;
    EXPECT_LE(equal, by_library ? 2e-2 : 2e-4) << sum.text << sum.m << sum.n;
    EXPECT_LE(different, by_library ? 1e-4 : 1e-5) << sum.text << sum.m << sum.n;
  }
}

/// Where factors may be rounded to TensorFloat-32, to ten bits behind the point; whether they are is the
/// library's choice.
TEST_P(Contraction, OfTensorFloat32IsNear) {
  const auto spec = ContractionSpec::parse("mk,nk->mn");
  const Array a = random_array(context_, {96, 64}, DType::kFloat32, 1),
              b = random_array(context_, {80, 64}, DType::kFloat32, 2);
  const std::vector<double> wanted = values_of(contract(context_, spec, a, b, DType::kFloat32));
  context_.set_tf32(true);
  expect_near(values_of(contract(context_, spec, a, b, DType::kFloat32)), wanted, 64 * 0x1p-11);
}

TEST_P(Contraction, PackedWeightsAreForgottenWhenTheyChange) {
  const auto spec = ContractionSpec::parse("bk,nk->bn");
  const Array x = random_array(context_, {512, 64}, DType::kFloat32, 1);
  Array w = random_array(context_, {96, 64}, DType::kFloat32, 2);
  keep_packed(context_, w);
  const std::vector<double> before = values_of(contract(context_, spec, x, w, DType::kFloat32));
  std::vector<double> changed = values_of(w);
  for (double& element : changed) element *= -2.0;
  write_values(context_, w, changed);
  forget_packed_weights(context_);
  keep_packed(context_, w);
  std::vector<double> wanted = before;
  for (double& value : wanted) value *= -2.0;
  expect_near(values_of(contract(context_, spec, x, w, DType::kFloat32)), wanted,
              tolerance(DType::kFloat32, 64, 8));
}

TEST_P(Contraction, RepeatsBitForBit) {
  const auto spec = ContractionSpec::parse("btc,bhwc->thw");
  const Array a = random_array(context_, {2, 70, 96}, DType::kFloat32, 1);
  const Array b = random_array(context_, {2, 9, 20, 96}, DType::kFloat32, 2);
  const std::vector<double> first = values_of(contract(context_, spec, a, b, DType::kFloat32));
  for (int repetition = 0; repetition < 3; ++repetition) {
    EXPECT_EQ(values_of(contract(context_, spec, a, b, DType::kFloat32)), first);
  }
}

TEST_P(Contraction, CountsWorkAlike) {
  Context meta = Context::make_meta();
  const auto spec = ContractionSpec::parse("bk,nk->bn");
  const Shape x = {3, 5}, w = {7, 5};
  const Array c =
      contract(meta, spec, Array(meta, x, DType::kFloat32), Array(meta, w, DType::kFloat32), DType::kFloat32);
  EXPECT_EQ(c.shape(), (Shape{3, 7}));
  EXPECT_EQ(meta.tally().flops, 2.0 * 3 * 5 * 7);
  EXPECT_EQ(meta.tally().bytes, 4.0 * (15 + 35 + 21));
  contract(context_, spec, random_array(context_, x, DType::kFloat32, 1),
           random_array(context_, w, DType::kFloat32, 2), DType::kFloat32);
  EXPECT_EQ(context_.tally().flops, meta.tally().flops);
  EXPECT_EQ(context_.tally().bytes, meta.tally().bytes);
}

TEST_P(Contraction, ErrorsSayWhatIsWrong) {
  for (const char* text :
       {"", "ab", "ab,bc", "ab->c", "aa,ab->b", "ab,bc->acd", "ab,cd->bcd", "a1,ab->b", "ab,bc->aa"}) {
    EXPECT_THROW(ContractionSpec::parse(text), ShapeError) << text;
  }
  const auto spec = ContractionSpec::parse("ab,bc->ac");
  const Array a = random_array(context_, {2, 3}, DType::kFloat32, 1);
  const Array b = random_array(context_, {4, 5}, DType::kFloat32, 1);
  try {
    contract(context_, spec, a, b, DType::kFloat32);
    FAIL() << "two extents of a letter were accepted";
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(),
                 "contraction \"ab,bc->ac\": the letter 'b' has two extents in the shapes [2, 3] and [4, 5]");
  }
  EXPECT_THROW(
      contract(context_, spec, random_array(context_, {2, 3, 4}, DType::kFloat32, 1), b, DType::kFloat32),
      ShapeError);
  EXPECT_THROW(
      contract(context_, spec, random_array(context_, {2, 4}, DType::kBfloat16, 1), b, DType::kFloat32),
      ShapeError);
}

INSTANTIATE_TEST_SUITE_P(Backends, Contraction, testing::kernel_backends(), testing::backend_name);

}  // namespace contraction_test
}  // namespace jigsaw
