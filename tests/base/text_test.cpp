#include "base/text.h"

#include <gtest/gtest.h>

#include "base/printable.h"

namespace jigsaw {
namespace {

TEST(Text, ClosestSuggestsOnlyLikelyTypingErrors) {
  const std::vector<std::string> keys = {"learning_rate", "weight_decay", "betas"};
  EXPECT_EQ(closest("learning_rte", keys), "learning_rate");
  EXPECT_EQ(closest("leraning_rate", keys), "learning_rate");
  EXPECT_EQ(closest("learning", keys), "learning_rate");
  // Two letters exchanged are one error, two other letters are two.
  EXPECT_EQ(closest("abdcef", std::vector<std::string>{"abdcxy", "abcdef"}), "abcdef");
  EXPECT_EQ(closest("zzz", keys), "");
  EXPECT_EQ(closest("lr", keys), "learning_rate");
  EXPECT_EQ(closest("l", keys), "");
  EXPECT_EQ(did_you_mean("beta", keys), " (did you mean \"betas\"?)");
  // What differs in capitals alone is nearest.
  const std::vector<std::string> fields = {"tas", "T", "ta"};
  EXPECT_EQ(closest("t", fields), "T");
  EXPECT_EQ(closest("TAS", fields), "tas");
  EXPECT_EQ(closest("x", fields), "");
}

TEST(Text, OneSlipIsLessThanTwo) {
  for (const char* word : {"epsilon", "epsilom", "eps", "espilon", "Epsilon", "epsilons"})
    EXPECT_TRUE(differs_by_a_slip(word, "epsilon")) << word;
  for (const char* word : {"ep", "epsilomm", "betas", ""}) EXPECT_FALSE(differs_by_a_slip(word, "epsilon"));
  EXPECT_TRUE(differs_by_a_slip("wd", "weight_decay"));
  EXPECT_FALSE(differs_by_a_slip("x", "y"));
  EXPECT_FALSE(differs_by_a_slip("x", ""));
}

TEST(Text, PatternsMatchWholeNames) {
  EXPECT_TRUE(matches_pattern("encoder.weight", "encoder.*"));
  EXPECT_TRUE(matches_pattern("blocks.3.norm.weight", "*norm*"));
  EXPECT_TRUE(matches_pattern("a", "a"));
  EXPECT_FALSE(matches_pattern("my.encoder.weight", "encoder.*"));
  EXPECT_FALSE(matches_pattern("a", "ab"));
}

TEST(Text, HumanUnits) {
  EXPECT_EQ(counted(0, "step"), "0 steps");
  EXPECT_EQ(counted(1, "step"), "1 step");
  EXPECT_EQ(counted(2, "step"), "2 steps");
  EXPECT_EQ(human_bytes(12), "12 B");
  EXPECT_EQ(human_bytes(1536), "1.5 KiB");
  EXPECT_EQ(human_seconds(3723), "1:02:03");
  EXPECT_EQ(human_seconds(63), "1:03");
  EXPECT_EQ(join(split("a,b,,c", ','), "|"), "a|b||c");
}

TEST(Text, PrintableIsOneLineWithoutControlCharacters) {
  EXPECT_EQ(printable("t2m [K], \u00b0C \u20ac \U0001f30d"), "t2m [K], \u00b0C \u20ac \U0001f30d");
  EXPECT_EQ(printable("a\x1b[31mred\n\t\x7f"), "a\\x1b[31mred\\x0a\\x09\\x7f");
  EXPECT_EQ(printable("\xc2\x9b"
                      "1m"),
            "\\xc2\\x9b"
            "1m")
      << "the control characters of the second set";
  EXPECT_EQ(printable("\xff\xc3(\xe2\x82"), "\\xff\\xc3(\\xe2\\x82");
  EXPECT_EQ(printable(std::string_view("\0", 1)), "\\x00");
}

}  // namespace
}  // namespace jigsaw
