// Conditions between keys, and what may change when a run goes on.
#include "train/configuration.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "kernels/cuda_context.h"
#include "train/device.h"

namespace jigsaw {
namespace {

Json smallest() {
  return {{"data",
           {{"files", Json::array({"a.nc"})},
            {"variables", Json::array({"t2m"})},
            {"train", {"2020-01-01", "2020-01-02"}}}},
          {"model", {{"type", "weathermixer"}, {"patch", {3, 7}}, {"embed_dim", 8}, {"depth", 1}}}};
}

/// The message of the ConfigError, or "".
std::string error_with(const std::vector<std::string>& changes) {
  Json json = smallest();
  for (const std::string& change : changes) apply_override(json, change);
  try {
    parse<Configuration>(json);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(Configuration, LeadsThatMayRunAloneNeedAWeight) {
  EXPECT_EQ(
      error_with({"train.rollout={\"min\": 1, \"max\": 2}", "train.rollout_weights=[0, 1]"}),
      "train.rollout_weights must hold a number above 0 among the first 1, for a step may run no more leads");
  EXPECT_EQ(error_with({"train.rollout={\"min\": 1, \"max\": 2}", "train.rollout_weights=[0.5, 0]"}), "");
  EXPECT_EQ(error_with({"train.rollout=2", "train.rollout_weights=[0, 1]"}), "");
  EXPECT_NE(error_with({"train.rollout=2", "train.rollout_weights=[0, 0]"}), "");
}

TEST(Configuration, TheBestCheckpointNeedsCheckpoints) {
  EXPECT_EQ(error_with({"checkpoint.best=loss"}), "");
  EXPECT_NE(error_with({"checkpoint.best=loss", "checkpoint.every=0"}).find("checkpoint.best"),
            std::string::npos);
}

TEST(Configuration, TypesOfOptimizerAndScheduleHaveKeysOfTheirOwn) {
  EXPECT_EQ(error_with({"optimizer.type=sgd", "optimizer.momentum=0.5"}), "");
  EXPECT_NE(error_with({"optimizer.momentum=0.5"}).find("unknown key optimizer.momentum"), std::string::npos);
  EXPECT_NE(error_with({"optimizer.type=sgd", "optimizer.eps=1e-8"}), "");
  EXPECT_NE(error_with({"schedule.type=constant", "schedule.final_learning_rate=1e-5"}), "");
  EXPECT_NE(error_with({"optimizer.learning_rate=0", "schedule.final_learning_rate=1e-5"}), "");
}

TEST(Configuration, WhatMayChangeIsDeclared) {
  const Keys<Configuration> keys = keys_of<Configuration>();
  for (const char* path : {"name",
                           "mesh",
                           "mesh.data",
                           "zero",
                           "device",
                           "watchdog_seconds",
                           "data.files",
                           "data.valid",
                           "train.steps",
                           "train.epochs",
                           "train.recompute",
                           "optimizer.learning_rate",
                           "optimizer.clip_norm",
                           "schedule.type",
                           "schedule.warmup_steps",
                           "schedule.final_learning_rate",
                           "validation.every",
                           "checkpoint.best",
                           "log_every",
                           "output"}) {
    EXPECT_TRUE(may_change(keys, path)) << path;
  }
  for (const char* path :
       {"seed", "data", "data.train", "data.variables", "model.depth", "loss.type", "optimizer",
        "optimizer.type", "optimizer.weight_decay", "optimizer.groups[0].learning_rate", "train.batch_size",
        "train.precision", "train.rollout", "init.skip"}) {
    EXPECT_FALSE(may_change(keys, path)) << path;
  }
}

TEST(Device, IsChosenApartFromPrecision) {
  EXPECT_EQ(make_context(DeviceChoice::kAuto, Precision::kFloat32, 2, 0).backend(), Backend::kCpu);
  EXPECT_EQ(make_context(DeviceChoice::kCpu, Precision::kFloat64, 2, 0).backend(), Backend::kReference);
  EXPECT_NE(error_with({"device=cuda", "train.precision=fp64"}).find("device must be"), std::string::npos);
  if (cuda_device_count() > 0) {
    EXPECT_EQ(make_context(DeviceChoice::kCuda, Precision::kFloat32, 2, 1).backend(), Backend::kCuda);
  } else {
    EXPECT_THROW(make_context(DeviceChoice::kCuda, Precision::kFloat32, 2, 0), ConfigError);
  }
}

TEST(Configuration, SectionsInAMapAreDocumented) {
  const std::string all = reference<Configuration>();
  EXPECT_NE(all.find("## `data.transforms`\n"), std::string::npos);
  EXPECT_NE(explain<Configuration>("data.transforms").find("epsilon"), std::string::npos);
}

}  // namespace
}  // namespace jigsaw
