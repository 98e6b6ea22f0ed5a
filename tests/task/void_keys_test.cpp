// Of every key of the configuration: where it has an effect. What has none is refused, or warned of where
// people leave it in while they switch something off.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "base/error.h"
#include "support/source_dir.h"
#include "task/configuration.h"

namespace jigsaw {
namespace void_keys_test {

Json forecast() {
  return {{"data",
           {{"files", Json::array({"a.nc"})},
            {"variables", Json::array({"t2m"})},
            {"train", {"2020-01-01", "2020-01-02"}}}},
          {"model", {{"type", "weathermixer"}, {"patch", {3, 7}}, {"embed_dim", 8}, {"depth", 1}}}};
}

Json images() {
  Json json = forecast();
  json["data"]["train"] = {{"height", {0, 9}}};
  json["data"]["dims"] = {"height", "width"};
  json["data"]["task"] = "map";
  json["data"]["targets"] = {"mask"};
  return json;
}

/// The keys below a table that declare where they count, or those that do not.
class Collector {
 public:
  explicit Collector(bool conditional) : conditional_(conditional) {}

  void in_table(const KeyTable& table, const std::string& path) {
    for (const KeyInfo* key : table.keys()) {
      if (key->uses.empty() != conditional_) found.insert(path + key->name);
      in_form(key->form(), path + key->name + ".");
    }
  }
  std::set<std::string> found;

 private:
  void in_form(const Form& form, const std::string& path) {
    if (form.table() != nullptr) in_table(*form.table(), path);
    if (form.tags() != nullptr && seen_.insert(form.tags()).second) {
      for (const auto& type : form.tags()->types())
        in_table(type->table(), form.tags()->kind() + " " + type->name() + ".");
    }
    for (const Form* part : form.parts()) in_form(*part, path);
  }

  bool conditional_;
  std::set<const TagRegistry*> seen_;
};

struct Void {
  const char* key;                   ///< as the collector names it
  const char* path;                  ///< as the sentence names it
  std::vector<std::string> changes;  ///< of the forecast, or of images
  bool refused = true;
  bool of_images = false;
};

const std::string kLayers = "model={\"type\":\"sequential\",\"layers\":[";

const std::vector<Void>& cases() {
  static const std::vector<Void> all = {
      {"zero", "zero", {"zero=parameters", "mesh={\"tensor\":2}"}, false},
      {"reduction", "reduction", {"reduction=fast", "device=cpu"}},
      {"data.diagnostic", "data.diagnostic", {"data.diagnostic=[\"tp\"]"}, true, true},
      {"data.static", "data.static", {"data.static=[\"lsm\"]"}, true, true},
      {"data.forcings", "data.forcings", {"data.forcings=[\"latitude\"]"}, true, true},
      {"data.vector_components", "data.vector_components", {"data.vector_components=[\"u\"]"}, true, true},
      {"data.input_hours", "data.input_hours", {"data.input_hours=[-6,0]"}, true, true},
      {"data.lead_hours", "data.lead_hours", {"data.lead_hours=12"}, true, true},
      {"data.predict", "data.predict", {"data.predict=state"}, true, true},
      {"data.input_steps", "data.input_steps", {"data.input_steps=[-1,0]"}},
      {"data.lead_steps", "data.lead_steps", {"data.lead_steps=2"}},
      {"data.targets", "data.targets", {"data.targets=[\"mask\"]"}},
      {"data.crop", "data.crop", {"data.crop=[4,4]"}},
      {"data.pad", "data.pad", {"data.pad=true"}},
      {"data.pad", "data.pad", {"data.pad=true"}, true, true},
      {"data.alignment", "data.alignment", {"data.alignment=1"}},
      {"data.intensity", "data.intensity", {"data.intensity=zscore"}},
      {"data.percentiles", "data.percentiles", {"data.percentiles=[1,99]"}, true, true},
      {"data.intensities", "data.intensities", {"data.intensities={\"t2m\":{\"clip\":[0,1]}}"}},
      {"data.spacing", "data.spacing", {"data.spacing=[1,1]"}},
      {"data.augment", "data.augment", {"data.augment={\"noise\":1}"}},
      {"data.flips", "data.flips", {"data.flips=[\"width\"]"}},
      {"data.noise_sigma", "data.noise_sigma", {"data.noise_sigma=1"}, true, true},
      {"data.classes", "data.classes", {"data.classes=3"}},
      {"data.labels", "data.labels", {"data.labels=[0,1]"}, true, true},
      {"data.regions", "data.regions", {"data.regions=[1]"}, true, true},
      {"data.ignore_index", "data.ignore_index", {"data.ignore_index=255"}, true, true},
      {"loss mse.area_weighted", "loss.area_weighted", {"loss.area_weighted=false"}, true, true},
      {"loss l1.area_weighted",
       "loss.area_weighted",
       {"loss={\"type\":\"l1\",\"area_weighted\":false}"},
       true,
       true},
      {"loss log_cosh.area_weighted",
       "loss.area_weighted",
       {"loss={\"type\":\"log_cosh\",\"area_weighted\":false}"},
       true,
       true},
      {"loss huber.area_weighted",
       "loss.area_weighted",
       {"loss={\"type\":\"huber\",\"area_weighted\":false}"},
       true,
       true},
      {"loss sum.area_weighted",
       "loss.area_weighted",
       {"loss={\"type\":\"sum\",\"terms\":[{\"type\":\"mse\"}],\"area_weighted\":false}"},
       true,
       true},
      {"loss cross_entropy.area_weighted",
       "loss.area_weighted",
       {"loss={\"type\":\"cross_entropy\",\"area_weighted\":false}"},
       true,
       true},
      {"loss dice.area_weighted",
       "loss.area_weighted",
       {"loss={\"type\":\"dice\",\"area_weighted\":false}"},
       true,
       true},
      {"loss dice_cross_entropy.area_weighted",
       "loss.area_weighted",
       {"loss={\"type\":\"dice_cross_entropy\",\"area_weighted\":false}"},
       true,
       true},
      {"loss mse.level_weights",
       "loss.level_weights",
       {"loss={\"type\":\"mse\",\"level_weights\":\"pressure\"}"},
       true,
       true},
      {"loss l1.level_weights",
       "loss.level_weights",
       {"loss={\"type\":\"l1\",\"level_weights\":\"pressure\"}"},
       true,
       true},
      {"loss log_cosh.level_weights",
       "loss.level_weights",
       {"loss={\"type\":\"log_cosh\",\"level_weights\":\"pressure\"}"},
       true,
       true},
      {"loss huber.level_weights",
       "loss.level_weights",
       {"loss={\"type\":\"huber\",\"level_weights\":\"pressure\"}"},
       true,
       true},
      {"loss sum.level_weights",
       "loss.level_weights",
       {"loss={\"type\":\"sum\",\"terms\":[{\"type\":\"mse\"}],\"level_weights\":\"pressure\"}"},
       true,
       true},
      {"loss crps.area_weighted",
       "loss.area_weighted",
       {"loss={\"type\":\"crps\",\"area_weighted\":false}"},
       true,
       true},
      {"loss crps.level_weights",
       "loss.level_weights",
       {"loss={\"type\":\"crps\",\"level_weights\":\"pressure\"}"},
       true,
       true},
      {"ensemble", "ensemble", {"ensemble.local_noise=1"}, true, true},
      {"data.region", "data.region", {"data.region={\"latitude\":[30,60]}"}, true, true},
      {"data.every", "data.every", {"data.every=2"}, true, true},
      {"data.regrid", "data.regrid", {"data.regrid={\"method\":\"linear\"}"}, true, true},
      {"data.cell_area", "data.cell_area", {"data.cell_area=auto"}, true, true},
      {"data.time_step", "data.time_step", {"data.time_step=6"}, true, true},
      {"data.time_tolerance", "data.time_tolerance", {"data.time_tolerance=1"}, true, true},
      {"data.overlap", "data.overlap", {"data.overlap=first"}, true, true},
      {"data.forcing_variables", "data.forcing_variables", {"data.forcing_variables=[\"sst\"]"}, true, true},
      {"data.boundary_width", "data.boundary_width", {"data.boundary_width=2"}, true, true},
      {"data.fill", "data.fill", {"data.fill={\"t2m\":0}"}, true, true},
      {"data.missing", "data.missing", {"data.missing={\"t2m\":0}"}, true, true},
      {"data.deaccumulate", "data.deaccumulate", {"data.deaccumulate={\"t2m\":\"day\"}"}, true, true},
      {"data.transforms",
       "data.transforms",
       {"data.task=denoise", "data.targets=[]", "data.noise_sigma=1", "data.transforms={\"t2m\":\"sqrt\"}"},
       true,
       true},
      {"data.clamp", "data.clamp", {"data.classes=3", "data.clamp={\"mask\":[0,1]}"}, true, true},
      {"data.member", "data.member", {"data.member=2"}, true, true},
      {"data.makani", "data.makani", {"data.makani={\"channels\":[\"t2m\"]}"}, true, true},
      {"data.makani.variable",
       "data.makani.variable",
       {"data.makani={\"metadata\":\"a\",\"variable\":\"x\"}"}},
      {"data.makani.channels",
       "data.makani.channels",
       {"data.makani={\"metadata\":\"a\",\"channels\":[\"x\"]}"}},
      {"data.makani.hours", "data.makani.hours", {"data.makani={\"metadata\":\"a\",\"hours\":1}"}},
      {"data.forcing_times", "data.forcing_times", {"data.forcing_times=linear"}},
      {"validation.thresholds",
       "validation.thresholds",
       {"validation.thresholds={\"t2m\":[273.15]}"},
       true,
       true},
      {"validation.fss_scales", "validation.fss_scales", {"validation.fss_scales=[1,5]"}, true, true},
      {"data.masks", "data.masks", {"data.masks=[\"t2m\"]"}, true, true},
      {"train.graphs", "train.graphs", {"train.graphs=false", "device=cpu"}},
      {"train.deterministic", "train.deterministic", {"train.deterministic=false", "device=cpu"}},
      {"train.tf32", "train.tf32", {"train.tf32=true", "device=cpu"}},
      {"train.tf32", "train.tf32", {"train.tf32=true", "train.precision=bf16"}},
      {"train.rollout_weights", "train.rollout_weights", {"train.rollout_weights=[2]"}},
      {"validation.climatology", "validation.climatology", {"validation.climatology=true"}, true, true},
      {"validation.climatology",
       "validation.climatology",
       {"validation.climatology=true", "validation.every=0"},
       false},
      {"train.rollout_gradient", "train.rollout_gradient", {"train.rollout_gradient=last"}},
      {"train.rollout.min",
       "train.rollout.min",
       {"train.rollout={\"leads\":[2],\"from\":[1],\"min\":2,\"max\":2}"}},
      {"train.rollout.max", "train.rollout.max", {"train.rollout={\"leads\":[2],\"from\":[1],\"max\":2}"}},
      {"train.rollout.from", "train.rollout.from", {"train.rollout={\"from\":[1]}"}},
      {"validation.overlap", "validation.overlap", {"validation.overlap=[1,1]"}},
      {"validation.overlap",
       "validation.overlap",
       {"validation.overlap=[1,1]", "validation.every=0"},
       false,
       true},
      {"validation.peak", "validation.peak", {"validation.peak=3"}},
      {"validation.peak",
       "validation.peak",
       {"validation.peak=3", "data.classes=2", "loss.type=dice"},
       true,
       true},
      {"model vit.drop_path",
       "model.drop_path",
       {"model={\"type\":\"vit\",\"patch\":[3,7],\"embed_dim\":8,\"heads\":2,\"depth\":1,\"drop_path\":0.1}"},
       false},
      {"model swin.drop_path",
       "model.drop_path",
       {"model={\"type\":\"swin\",\"patch\":[3,7],\"embed_dim\":8,\"heads\":2,\"window\":[2,2],\"depth\":1,"
        "\"drop_path\":0.1}"},
       false},
      {"model sfno.drop_path",
       "model.drop_path",
       {"model={\"type\":\"sfno\",\"embed_dim\":8,\"depth\":1,\"drop_path\":0.1}"},
       false},
      {"checkpoint.keep", "checkpoint.keep", {"checkpoint.every=0", "checkpoint.keep=5"}, false},
      {"checkpoint.minutes", "checkpoint.minutes", {"checkpoint.every=0", "checkpoint.minutes=5"}, false},
      {"validation.patience", "validation.patience", {"validation.patience=2"}},
      {"checkpoint.keep_every",
       "checkpoint.keep_every",
       {"checkpoint.every=0", "checkpoint.keep_every=5"},
       false},
      {"checkpoint.best", "checkpoint.best", {"checkpoint.every=0", "checkpoint.best=loss"}},
      {"checkpoint.best_is", "checkpoint.best_is", {"checkpoint.best_is=highest"}, false},
      {"optimizer adamw.groups.learning_rate",
       "optimizer.groups[0].learning_rate",
       {"optimizer.groups=[{\"match\":\"*\",\"frozen\":true,\"learning_rate\":0.1}]"}},
      {"optimizer adamw.groups.weight_decay",
       "optimizer.groups[0].weight_decay",
       {"optimizer.groups=[{\"match\":\"*\",\"frozen\":true,\"weight_decay\":0.1}]"}},
      {"optimizer sgd.groups.learning_rate",
       "optimizer.groups[0].learning_rate",
       {"optimizer.type=sgd", "optimizer.groups=[{\"match\":\"*\",\"frozen\":true,\"learning_rate\":0.1}]"}},
      {"optimizer sgd.groups.weight_decay",
       "optimizer.groups[0].weight_decay",
       {"optimizer.type=sgd", "optimizer.groups=[{\"match\":\"*\",\"frozen\":true,\"weight_decay\":0.1}]"}},
      {"optimizer sgd.nesterov",
       "optimizer.nesterov",
       {"optimizer={\"type\":\"sgd\",\"momentum\":0,\"nesterov\":true}"}},
      {"model weathermixer.circular", "model.circular", {"model.circular=true"}},
      {"model vit.circular",
       "model.circular",
       {"model={\"type\":\"vit\",\"patch\":[3,7],\"embed_dim\":8,\"depth\":1,\"heads\":2,\"circular\":"
        "true}"}},
      {"layer patch_embed.circular",
       "model.layers[0].circular",
       {kLayers + "{\"type\":\"patch_embed\",\"patch\":[3,7],\"embed_dim\":8,\"circular\":true}]}"}},
      {"layer multi_head_attention.rotary_base",
       "model.layers[0].rotary_base",
       {kLayers + "{\"type\":\"multi_head_attention\",\"heads\":1,\"rotary_base\":100}]}"}},
      {"layer transformer_block.rotary_base",
       "model.layers[0].rotary_base",
       {kLayers + "{\"type\":\"transformer_block\",\"heads\":1,\"rotary_base\":100}]}"}},
      {"layer windowed_attention.circular",
       "model.layers[0].circular",
       {kLayers + "{\"type\":\"windowed_attention\",\"heads\":1,\"window\":[3,7],\"circular\":true}]}"}},
      {"model unet.padding_mode",
       "model.padding_mode",
       {"model={\"type\":\"unet\",\"base_width\":4,\"levels\":2,\"kernel\":1,\"norm_groups\":0,"
        "\"padding_mode\":\"circular\"}"},
       false},
      {"model unet.most_width",
       "model.most_width",
       {"model={\"type\":\"unet\",\"widths\":[4],\"norm_groups\":0,\"most_width\":8}"}},
      {"model unet.convolutions",
       "model.convolutions",
       {"model={\"type\":\"unet\",\"widths\":[4],\"norm_groups\":0,\"convolutions\":3,\"blocks\":[1],"
        "\"decoder_convolutions\":[1]}"}},
      {"data.augment.probability",
       "data.augment.probability",
       {"data.augment={\"probability\":0.5,\"foreground\":0.5}", "data.crop=[8,8]", "data.classes=2",
        "loss.type=dice"},
       false,
       true},
      {"data.augment.elastic_spacing",
       "data.augment.elastic_spacing",
       {"data.augment={\"noise\":1,\"elastic_spacing\":4}"},
       false,
       true},
      {"data.normalization",
       "data.normalization",
       {"data.normalization=statistics.json", "data.intensity=zscore", "data.classes=2", "loss.type=dice"},
       false,
       true},
      {"layer conv.padding_mode",
       "model.layers[0].padding_mode",
       {kLayers + "{\"type\":\"conv\",\"features\":1,\"kernel\":3,\"padding_mode\":\"reflect\"}]}"},
       false},
      {"layer max_pool.padding_mode",
       "model.layers[0].padding_mode",
       {kLayers + "{\"type\":\"max_pool\",\"kernel\":2,\"padding_mode\":\"reflect\"}]}"},
       false},
      {"layer avg_pool.padding_mode",
       "model.layers[0].layers[0].padding_mode",
       {kLayers + "{\"type\":\"repeat\",\"times\":1,\"layers\":[{\"type\":\"avg_pool\",\"kernel\":2,"
                  "\"padding_mode\":\"reflect\"}]}]}"},
       false},
      {"layer avg_pool.count_include_pad",
       "model.layers[0].count_include_pad",
       {kLayers + "{\"type\":\"avg_pool\",\"kernel\":2,\"count_include_pad\":false}]}"},
       false},
      {"layer upsample.padding_mode",
       "model.layers[0].padding_mode",
       {kLayers + "{\"type\":\"upsample\",\"scale\":2,\"padding_mode\":\"reflect\"}]}"},
       false},
      {"layer pad.padding_mode",
       "model.layers[0].padding_mode",
       {kLayers + "{\"type\":\"pad\",\"padding_mode\":\"reflect\"}]}"},
       false},
  };
  return all;
}

void expect_same(const std::set<std::string>& found, const std::set<std::string>& listed) {
  for (const std::string& key : found)
    EXPECT_TRUE(listed.contains(key)) << key << " is declared, and not listed";
  for (const std::string& key : listed)
    EXPECT_TRUE(found.contains(key)) << key << " is listed, and not declared";
}

TEST(VoidKeys, AreRefusedOrWarnedOf) {
  const Keys<Configuration> keys = keys_of<Configuration>();
  for (const Void& one : cases()) {
    Json json = one.of_images ? images() : forecast();
    for (const std::string& change : one.changes) apply_override(json, change);
    const std::string says = std::string(one.path) + " has no effect: it counts only where ";
    SCOPED_TRACE(says);
    if (one.refused) {
      try {
        parse<Configuration>(json);
        ADD_FAILURE() << "nothing was thrown";
      } catch (const ConfigError& error) {
        EXPECT_EQ(std::string(error.what()).find(says), 0U) << error.what();
      }
    } else {
      const std::vector<std::string> idle = idle_keys(json, parse<Configuration>(json));
      ASSERT_EQ(idle.size(), 1U);
      EXPECT_EQ(idle[0].find(says), 0U) << idle[0];
    }
  }
}

TEST(VoidKeys, EveryKeyWithAConditionIsAmongTheCases) {
  Collector collector(true);
  collector.in_table(keys_of<Configuration>(), "");
  std::set<std::string> tested;
  for (const Void& one : cases()) tested.insert(one.key);
  expect_same(collector.found, tested);
}

/// The keys of models and layers that always count: they shape the model.
std::set<std::string> keys_of_layers() {
  static const std::map<std::string, std::string> all = {
      {"model weathermixer",
       "patch embed_dim depth token_hidden_ratio channel_hidden_ratio dropout activation patch_kernel "
       "positions time_embedding final_norm zero_decoder output_map"},
      {"model vit",
       "patch embed_dim depth heads mlp_ratio dropout attention_dropout layer_scale activation "
       "patch_kernel time_embedding final_norm zero_decoder positions"},
      {"model swin",
       "patch embed_dim depth heads mlp_ratio dropout attention_dropout layer_scale activation "
       "patch_kernel time_embedding final_norm zero_decoder window circular"},
      {"model sfno",
       "embed_dim depth latitudes scale degrees mlp_ratio dropout layer_scale activation positions "
       "time_embedding final_norm input_skip zero_decoder"},
      {"model unet",
       "base_width levels widths kernel kernels strides blocks decoder_convolutions norm_groups down "
       "up zero_head deep_supervision activation"},
      {"model sequential", "layers"},
      {"layer layer_norm", "eps activation"},
      {"layer rms_norm", "eps activation"},
      {"layer group_norm", "groups eps activation"},
      {"layer instance_norm", "eps activation"},
      {"layer batch_norm", "eps momentum activation"},
      {"layer layer_scale", "initial"},
      {"layer linear", "features bias zero_start"},
      {"layer dropout", "probability"},
      {"layer drop_path", "probability"},
      {"layer channel_mixing", "hidden_ratio dropout activation"},
      {"layer squeeze_excitation", "hidden_ratio activation"},
      {"layer token_mixing", "hidden_ratio dropout activation"},
      {"layer patch_embed", "patch embed_dim patch_kernel"},
      {"layer time_embedding", "layers"},
      {"layer sincos_positions", "base"},
      {"layer multi_head_attention", "heads dropout rotary"},
      {"layer windowed_attention", "heads window shift dropout"},
      {"layer mlp", "hidden_ratio dropout activation"},
      {"layer transformer_block",
       "heads mlp_ratio dropout attention_dropout rotary layer_scale drop_path activation"},
      {"layer patch_recover", "patch channels grid zero_start"},
      {"layer conv", "features kernel stride dilation groups bias activation padding zero_start"},
      {"layer conv_transpose",
       "features kernel stride dilation groups bias activation padding output_padding size"},
      {"layer max_pool", "kernel stride padding ceil_mode dilation"},
      {"layer avg_pool", "kernel stride padding ceil_mode"},
      {"layer upsample", "scale size mode"},
      {"layer spherical_conv", "latitudes degrees features bias"},
      {"layer spherical_resample", "size latitudes to_latitudes degrees"},
      {"layer pad", "low high"},
      {"layer concat_skip", "layers"},
      {"layer residual", "layers"},
      {"layer repeat", "times layers"},
  };
  std::set<std::string> keys;
  for (const auto& [type, names] : all) {
    std::istringstream words(names);
    for (std::string name; words >> name;) keys.insert(type + "." + name);
  }
  return keys;
}

/// A new key is either one of those that always count, or declares where it does and has a case above.
TEST(VoidKeys, AllOthersAlwaysCount) {
  Collector collector(false);
  collector.in_table(keys_of<Configuration>(), "");
  std::set<std::string> always = {"checkpoint",
                                  "checkpoint.every",
                                  "data",
                                  "data.diagnostic.data_set",
                                  "data.diagnostic.files",
                                  "data.diagnostic.lead",
                                  "data.diagnostic.levels",
                                  "data.diagnostic.name",
                                  "data.diagnostic.times",
                                  "data.files",
                                  "data.forcing_variables.data_set",
                                  "data.forcing_variables.files",
                                  "data.forcing_variables.lead",
                                  "data.forcing_variables.levels",
                                  "data.forcing_variables.name",
                                  "data.forcing_variables.times",
                                  "data.makani.metadata",
                                  "data.shape",
                                  "data.static.data_set",
                                  "data.static.files",
                                  "data.static.lead",
                                  "data.static.levels",
                                  "data.static.name",
                                  "data.static.times",
                                  "data.targets.data_set",
                                  "data.targets.files",
                                  "data.targets.lead",
                                  "data.targets.levels",
                                  "data.targets.name",
                                  "data.targets.times",
                                  "data.task",
                                  "data.train",
                                  "data.transforms.epsilon",
                                  "data.transforms.lambda",
                                  "data.transforms.type",
                                  "data.valid",
                                  "data.variables",
                                  "data.variables.data_set",
                                  "data.variables.files",
                                  "data.variables.lead",
                                  "data.variables.levels",
                                  "data.variables.name",
                                  "data.variables.times",
                                  "device",
                                  "init",
                                  "init.skip",
                                  "log_every",
                                  "loss",
                                  "data.allow_external",
                                  "data.dims",
                                  "data.workers",
                                  "data.intensities.clip",
                                  "data.intensities.deviation",
                                  "data.intensities.mean",
                                  "data.augment.blur",
                                  "data.augment.brightness",
                                  "data.augment.probabilities",
                                  "data.augment.shift",
                                  "data.augment.elastic",
                                  "data.augment.foreground",
                                  "data.augment.gamma",
                                  "data.augment.noise",
                                  "data.augment.rotation",
                                  "data.augment.scale",
                                  "data.region.latitude",
                                  "data.region.longitude",
                                  "data.regrid.latitude",
                                  "data.regrid.longitude",
                                  "data.regrid.method",
                                  "data.regrid.variables",
                                  "ensemble.global_noise",
                                  "ensemble.local_noise",
                                  "ensemble.members",
                                  "loss cross_entropy.batch",
                                  "loss cross_entropy.class_weights",
                                  "loss crps.alpha",
                                  "loss crps.variable_weights",
                                  "loss term crps.alpha",
                                  "loss term crps.weight",
                                  "loss dice.batch",
                                  "loss dice.class_weights",
                                  "loss dice.include_background",
                                  "loss dice.smoothing",
                                  "loss dice_cross_entropy.batch",
                                  "loss dice_cross_entropy.class_weights",
                                  "loss dice_cross_entropy.include_background",
                                  "loss dice_cross_entropy.smoothing",
                                  "loss huber.delta",
                                  "loss huber.variable_weights",
                                  "loss l1.variable_weights",
                                  "loss log_cosh.variable_weights",
                                  "loss mse.variable_weights",
                                  "loss sum.batch",
                                  "loss sum.class_weights",
                                  "loss sum.terms",
                                  "loss sum.variable_weights",
                                  "loss term cross_entropy.weight",
                                  "loss term dice.include_background",
                                  "loss term dice.smoothing",
                                  "loss term dice.weight",
                                  "loss term dice_cross_entropy.include_background",
                                  "loss term dice_cross_entropy.smoothing",
                                  "loss term dice_cross_entropy.weight",
                                  "loss term huber.delta",
                                  "loss term huber.weight",
                                  "loss term l1.weight",
                                  "loss term log_cosh.weight",
                                  "loss term mse.weight",
                                  "validation.rollout",
                                  "machine",
                                  "machine.flops_per_second",
                                  "machine.links",
                                  "machine.links.bytes_per_second",
                                  "machine.links.latency_seconds",
                                  "machine.memory_bytes_per_second",
                                  "mesh",
                                  "mesh.data",
                                  "mesh.domain",
                                  "mesh.tensor",
                                  "model",
                                  "name",
                                  "optimizer",
                                  "optimizer adamw.betas",
                                  "optimizer adamw.clip_norm",
                                  "optimizer adamw.decoupled_weight_decay",
                                  "optimizer adamw.ema_decay",
                                  "optimizer adamw.eps",
                                  "optimizer adamw.groups",
                                  "optimizer adamw.groups.frozen",
                                  "optimizer adamw.groups.match",
                                  "optimizer adamw.learning_rate",
                                  "optimizer adamw.weight_decay",
                                  "optimizer sgd.clip_norm",
                                  "optimizer sgd.decoupled_weight_decay",
                                  "optimizer sgd.ema_decay",
                                  "optimizer sgd.groups",
                                  "optimizer sgd.groups.frozen",
                                  "optimizer sgd.groups.match",
                                  "optimizer sgd.learning_rate",
                                  "optimizer sgd.momentum",
                                  "optimizer sgd.weight_decay",
                                  "output",
                                  "report",
                                  "schedule",
                                  "schedule constant.cooldown_steps",
                                  "schedule constant.warmup_steps",
                                  "schedule cosine.final_learning_rate",
                                  "schedule cosine.warmup_steps",
                                  "schedule poly.power",
                                  "schedule poly.warmup_steps",
                                  "schedule steps.at",
                                  "schedule steps.factor",
                                  "schedule steps.warmup_steps",
                                  "seed",
                                  "tensorboard",
                                  "train",
                                  "train.accumulate",
                                  "train.batch_size",
                                  "train.epochs",
                                  "train.max_skipped",
                                  "train.precision",
                                  "train.recompute",
                                  "train.rollout",
                                  "train.rollout.leads",
                                  "train.steps",
                                  "validation",
                                  "validation.every",
                                  "watchdog_seconds"};
  always.merge(keys_of_layers());
  expect_same(collector.found, always);
}

TEST(VoidKeys, DefaultsAndShippedConfigurationsHaveNone) {
  const auto resolved = to_json(parse<Configuration>(forecast()));
  EXPECT_TRUE(idle_keys(resolved, parse<Configuration>(resolved)).empty());
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(testing::source_dir() + "/configs")) {
    if (entry.path().extension() != ".json") continue;
    const Json json = load_config(entry.path().string());
    EXPECT_EQ(idle_keys(json, parse<Configuration>(json)), std::vector<std::string>()) << entry.path();
    ++files;
  }
  EXPECT_GT(files, 5);
}

}  // namespace void_keys_test
}  // namespace jigsaw
