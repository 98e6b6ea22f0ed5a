// What --init-from warns of: shapes say nothing of which channels a model was trained on.
#include "train/changed_channels.h"

#include <gtest/gtest.h>

#include "task/scores.h"

namespace jigsaw {
namespace {

DataOptions options_of(const std::vector<std::string>& variables) {
  DataOptions options;
  options.variables.clear();
  for (const std::string& name : variables) options.variables.push_back({name});
  options.input_times = {-6 * kHour, 0};
  options.forcings = {ForcingKind::kLatitude};
  return options;
}

/// As runs write it.
Json extra_of(const DataOptions& options) {
  const Channels channels = make_channels(options, false);
  std::vector<std::string> names = channel_names(channels.inputs);
  for (const std::string& name : channel_names(channels.targets)) names.push_back(name);
  return {{"data", {{"channels", names}, {"inputs", channels.inputs.size()}}},
          {"configuration", {{"data", {{"input_hours", {-6, 0}}, {"lead_hours", 6}}}}}};
}

std::string changed(const Json& extra, const DataOptions& now, std::int64_t noise = 0) {
  return changed_channels(extra, make_channels(now, false), now, {.local_noise = static_cast<int>(noise)});
}

TEST(ChangedChannels, AreNamedWhereOthersStandInTheirPlace) {
  const Json before = extra_of(options_of({"t", "z"}));
  EXPECT_EQ(changed(before, options_of({"t", "z"})), "");
  EXPECT_EQ(changed(before, options_of({"t", "q"})),
            "input channel 1 was \"z\" there and is \"q\" here, input channel 3 was \"z\" there and is \"q\" "
            "here; target channel 1 was \"z\" there and is \"q\" here");
  EXPECT_EQ(changed(before, options_of({"z", "t"})),
            "the input channels are the same in another order: input channel 0 was \"t\" there and is \"z\" "
            "here, input channel 1 was \"z\" there and is \"t\" here, input channel 2 was \"t\" there and is "
            "\"z\" here, and 1 more; the target channels are the same in another order: target channel 0 was "
            "\"t\" there and is \"z\" here, target channel 1 was \"z\" there and is \"t\" here");
  DataOptions forced = options_of({"t", "z"});
  forced.forcings = {ForcingKind::kLongitude};
  EXPECT_EQ(changed(before, forced), "input channel 4 was \"latitude\" there and is \"longitude\" here");
  DataOptions later = options_of({"t", "z"});
  later.input_times = {-12 * kHour, 0};
  later.lead_time = 12 * kHour;
  EXPECT_EQ(
      changed(before, later),
      "data.input_hours was [-6,0] there and is [-12,0] here; data.lead_hours was 6 there and is 12 here");
}

/// Inputs are compared though there are more targets now, for which init.skip leaves out the head.
TEST(ChangedChannels, AreThoseOfInputsWhateverTheTargetsAre) {
  DataOptions more = options_of({"t", "q"});
  more.diagnostic = {{"rain"}};
  Json before = extra_of(options_of({"t", "z"}));
  EXPECT_EQ(changed(before, more),
            "input channel 1 was \"z\" there and is \"q\" here, input channel 3 was \"z\" there and is \"q\" "
            "here");
  EXPECT_EQ(changed(before, options_of({"t", "z", "q"})), "") << "of other numbers shapes are others";
  // Versions before said how many there are in all.
  before["data"].erase("inputs");
  EXPECT_EQ(changed(before, more), "");
  EXPECT_NE(changed(before, options_of({"t", "q"})), "");
}

/// As that of an import, or of a file that somebody wrote.
TEST(ChangedChannels, AreNoneWhereTheCheckpointDoesNotSay) {
  for (const char* extra :
       {"null", "{}", "[]", "3", R"({"data":3})", R"({"data":{"channels":[1,2]},"configuration":[]})",
        R"({"data":{"channels":["a"],"inputs":7},"configuration":{"data":{"input_hours":null}}})"})
    EXPECT_EQ(changed(Json::parse(extra), options_of({"t", "z"})), "") << extra;
}

TEST(ChangedChannels, ThatAreNoiseAreChannelsWhereAllAreAsMany) {
  const DataOptions one = options_of({"t"}), two = options_of({"t", "u"});
  Json extra = extra_of(two);
  // Two inputs less, of two hours, and two channels of noise more.
  EXPECT_NE(changed(extra, one, 2).find("input channel 3 was \"u\" there and is \"local noise\" here"),
            std::string::npos)
      << changed(extra, one, 2);
  extra = extra_of(one);
  EXPECT_EQ(changed(extra, one, 3), "");
  extra["configuration"]["ensemble"] = {{"local_noise", 2}, {"global_noise", 0}};
  EXPECT_EQ(changed(extra, one, 2), "");
  extra["configuration"]["ensemble"]["global_noise"] = 2;
  extra["configuration"]["ensemble"]["local_noise"] = 0;
  EXPECT_EQ(
      changed(extra, one, 2).find("input channel 3 was \"global noise\" there and is \"local noise\" here"),
      0U)
      << changed(extra, one, 2);
  extra["configuration"]["ensemble"]["local_noise"] = 1;
  extra["configuration"]["ensemble"]["global_noise"] = 1;
  EXPECT_NE(changed(extra, two, 0).find("was \"local noise\" there"), std::string::npos)
      << changed(extra, two, 0);
}

}  // namespace
}  // namespace jigsaw
