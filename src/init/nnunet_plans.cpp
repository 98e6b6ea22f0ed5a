#include "init/nnunet_plans.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "base/text.h"
#include "config/json.h"
#include "layers/unet.h"

namespace jigsaw::inline init {

namespace {

template <typename T>
std::string list_text(const std::vector<T>& values) {
  std::vector<std::string> texts;
  for (const T& value : values) texts.push_back(Json(value).dump());
  return concat("[", join(texts, ", "), "]");
}

/// One of the plans' configurations, with what it takes over from others, and where it stands.
class Planned {
 public:
  Planned(const std::string& path, const std::string& name, const PlannedImages& images)
      : plans_(load_config(path, "--plans")), where_(concat("--plans ", path)) {
    const Json& all = at(plans_, "configurations");
    constexpr int kMostParents = 8;
    std::string next = name;
    for (int parents = 0; !next.empty() && parents < kMostParents; ++parents) {
      if (!all.is_object() || !all.contains(next)) refuse_name(all, next);
      Json one = all.at(next);
      if (!one.is_object()) error(concat("has ", describe(one), " as its configuration ", next));
      next = one.contains("inherits_from") ? as<std::string>(one.at("inherits_from"), "inherits_from") : "";
      one.update(own_);
      own_ = std::move(one);
    }
    if (!given("previous_stage").is_null())
      error(concat(
          "plans ", name,
          " as the second stage of a cascade, whose input is a segmentation of the first; choose another "
          "with --plans-configuration"));
    find_axes(images);
  }

  /// Of each axis as nnU-Net turns it the dim of the images.
  const std::vector<std::size_t>& dims() const { return dims_; }

  const Json& operator[](const char* key) const { return at(own_, key); }
  /// Null where there is no such key.
  Json given_of_plans(const char* key) const { return plans_.value(key, Json()); }
  Json given(const char* key) const { return own_.value(key, Json()); }
  /// Whether it has the key, and that is true.
  bool says(const char* key) const { return own_.contains(key) && own_.at(key) == Json(true); }
  const Json& plans(const char* key) const { return at(plans_, key); }
  const Json& architecture(const char* key) const { return at((*this)["architecture"], key); }
  /// An argument of the network.
  const Json& argument(const char* key) const { return at(architecture("arch_kwargs"), key); }

  template <typename T>
  T as(const Json& value, const char* key) const {
    try {
      return value.get<T>();
    } catch (const Json::exception&) {
      error(concat("has ", describe(value), " as ", key));
    }
  }
  /// A list for each level, or one number for all.
  template <typename T>
  std::vector<T> of_levels(const char* key, std::size_t levels) const {
    const Json& value = argument(key);
    if (!value.is_array()) return std::vector<T>(levels, as<T>(value, key));
    auto list = as<std::vector<T>>(value, key);
    if (list.size() != levels)
      error(concat("has ", list.size(), " entries of ", key, " for ", levels, " levels"));
    return list;
  }
  [[noreturn]] void error(const std::string& sentence) const {
    throw ConfigError(concat(where_, " ", sentence));
  }

 private:
  const Json& at(const Json& object, const char* key) const {
    if (!object.is_object() || !object.contains(key))
      error(concat("has no ", key, "; it must be nnUNetPlans.json of nnU-Net 2.3 or later"));
    return object.at(key);
  }
  [[noreturn]] void refuse_name(const Json& all, const std::string& name) const {
    std::vector<std::string> names;
    for (const auto& [key, value] : all.items()) names.push_back(key);
    error(concat("has no configuration ", name, "; --plans-configuration may be ", join(names, ", ")));
  }

  void find_axes(const PlannedImages& images) {
    const auto axes = as<std::vector<std::size_t>>(plans("transpose_forward"), "transpose_forward");
    std::vector<std::size_t> sorted = axes;
    std::ranges::sort(sorted);
    for (std::size_t i = 0; i < sorted.size() || i < images.file_axes.size(); ++i)
      if (sorted.size() != images.file_axes.size() || sorted[i] != i)
        error(concat("has ", list_text(axes), " as transpose_forward, which is no order of axes"));
    // This reader of nnU-Net's turns images as they are turned here, others take them as they lie.
    const bool turned = given_of_plans("image_reader_writer") == Json("NibabelIOWithReorient");
    for (const std::size_t axis : axes) {
      const std::size_t in_file = axes.size() - 1 - axis;
      const auto dim = std::ranges::find(images.file_axes, in_file) - images.file_axes.begin();
      dims_.push_back(turned ? axis : static_cast<std::size_t>(dim));
    }
  }

  Json plans_, own_ = Json::object();
  std::string where_;
  std::vector<std::size_t> dims_;
};

/// Entries of the axes as nnU-Net turns them, along the dims of the images. Of slices, which nnU-Net cuts
/// across the first axis, there are entries of the others.
template <typename T>
std::vector<T> along_images(const Planned& plan, const std::vector<T>& turned) {
  const std::vector<std::size_t>& dims = plan.dims();
  if (turned.size() + 1 != dims.size() && turned.size() != dims.size())
    plan.error(
        concat("has a list of ", turned.size(), " numbers for images of 2 or 3 axes: ", list_text(turned)));
  const std::size_t left = dims.size() - turned.size();
  std::vector<T> result = turned;
  for (std::size_t i = 0; i < turned.size(); ++i) {
    const std::size_t dim = dims[left + i];
    if (dim < left || dim - left >= turned.size())
      plan.error("plans slices across another axis of the files than depth, as images here are not cut");
    result[dim - left] = turned[i];
  }
  return result;
}

/// For each level a number for all axes, or a list.
std::string levels_text(const Planned& plan, const char* key, std::size_t levels) {
  std::vector<std::string> texts;
  for (const Json& level : plan.of_levels<Json>(key, levels)) {
    const std::vector<std::int64_t> axes =
        level.is_array() ? along_images(plan, plan.as<std::vector<std::int64_t>>(level, key))
                         : std::vector<std::int64_t>{plan.as<std::int64_t>(level, key)};
    const bool alike = std::ranges::count(axes, axes.front()) == std::ssize(axes);
    texts.push_back(alike ? std::to_string(axes.front()) : list_text(axes));
  }
  return concat("[", join(texts, ", "), "]");
}

/// The last part of the dotted path of a class of PyTorch, which may be null.
std::string class_of(const Planned& plan, const char* key) {
  const Json& value = plan.argument(key);
  if (value.is_null()) return "";
  const auto path = plan.as<std::string>(value, key);
  return path.substr(path.rfind('.') + 1);
}

/// The name here of one of PyTorch's classes.
std::string name_here(const Planned& plan, const char* key, const std::map<std::string, std::string>& names) {
  const std::string given = class_of(plan, key);
  const auto found = names.find(given);
  if (found != names.end()) return found->second;
  std::vector<std::string> known;
  for (const auto& [torch, here] : names)
    if (!torch.empty()) known.push_back(torch);
  plan.error(
      concat("has ", given, " as ", key, ", which a \"unet\" does not have; it has ", join(known, ", ")));
}

std::string model_of(const Planned& plan) {
  const auto network = plan.as<std::string>(plan.architecture("network_class_name"), "network_class_name");
  const bool residual = network.ends_with(".ResidualEncoderUNet");
  if (!residual && !network.ends_with(".PlainConvUNet")) {
    plan.error(concat("has the network ", quote(network),
                      "; PlainConvUNet and ResidualEncoderUNet are those that can be made here"));
  }
  constexpr std::int64_t kMostLevels = 30;  // of model.levels
  const auto stages = plan.as<std::int64_t>(plan.argument("n_stages"), "n_stages");
  if (stages < 1 || stages > kMostLevels)
    plan.error(concat("has a network of ", stages, " levels (n_stages); it must have 1 to ", kMostLevels));
  const auto levels = static_cast<std::size_t>(stages);
  auto back = plan.of_levels<std::int64_t>("n_conv_per_stage_decoder", levels - 1);
  std::ranges::reverse(back);  // which begins with the coarsest there
  Section model;
  model.add("type", quoted("unet"), network.substr(network.rfind('.') + 1) + ", as nnU-Net planned it");
  model.add("widths", list_text(plan.of_levels<std::int64_t>("features_per_stage", levels)));
  model.add("strides", levels_text(plan, "strides", levels));
  model.add("kernels", levels_text(plan, "kernel_sizes", levels));
  model.add(
      residual ? "blocks" : "convolutions",
      list_text(plan.of_levels<std::int64_t>(residual ? "n_blocks_per_stage" : "n_conv_per_stage", levels)));
  if (levels > 1) model.add("decoder_convolutions", list_text(back), "from the finest level on");
  model.add("down", quoted("first_conv"));
  model.add("up", quoted("conv_transpose"));
  model.add(
      "norm_groups",
      name_here(plan, "norm_op",
                {{"", "0"}, {"InstanceNorm2d", quoted("channels")}, {"InstanceNorm3d", quoted("channels")}}));
  model.add("activation", quoted(name_here(plan, "nonlin",
                                           {{"", "none"},
                                            {"LeakyReLU", "leaky_relu"},
                                            {"ReLU", "relu"},
                                            {"GELU", "gelu"},
                                            {"SiLU", "silu"},
                                            {"Mish", "mish"}})));
  if (levels >= kLeastSupervisedLevels)
    model.add("deep_supervision", "true", "coarser levels are compared with the labels, too, in training");
  return model.text(1);
}

/// What nnU-Net's CTNormalization does to a channel: its properties are of the foreground of all images.
std::string ct_normalization(const Planned& plan, std::size_t channel) {
  constexpr const char* kKey = "foreground_intensity_properties_per_channel";
  const Json& channels = plan.plans(kKey);
  const std::string number = std::to_string(channel);
  if (!channels.is_object() || !channels.contains(number))
    plan.error(concat("has no channel ", number, " in ", kKey));
  const Json& properties = channels.at(number);
  const auto of = [&](const char* key) {
    if (!properties.is_object() || !properties.contains(key))
      plan.error(concat("has no ", key, " of channel ", number, " in ", kKey));
    return plan.as<double>(properties.at(key), key);
  };
  constexpr double kLeast = 1e-8;  // as nnU-Net's
  const double low = of("percentile_00_5"), high = of("percentile_99_5");
  if (!(low < high))
    plan.error(concat("has a percentile_00_5 of channel ", number, ", ", low,
                      ", that is not below percentile_99_5, ", high));
  const auto text = [](double value) { return Json(value).dump(); };
  return concat(R"({"clip": [)", text(low), ", ", text(high), R"(], "mean": )", text(of("mean")),
                R"(, "deviation": )", text(std::max(of("std"), kLeast)), "}");
}

/// How the channels are normalised: as most of them in data.intensity, the others by data.intensities.
void add_normalization(const Planned& plan, std::size_t channels, NnunetPlan& result) {
  const auto schemes =
      plan.as<std::vector<std::string>>(plan["normalization_schemes"], "normalization_schemes");
  if (schemes.size() != channels)
    plan.error(
        concat("is for images of ", counted(std::ssize(schemes), "channel"), ", and these have ", channels));
  const Json masks = plan.given("use_mask_for_norm");
  const auto is_masked = [&](std::size_t channel) {
    return masks.is_array() && channel < masks.size() && masks[channel] == Json(true);
  };
  std::vector<std::string> others;
  bool rescaled = false, masked = false, whole = false;
  for (std::size_t channel = 0; channel < schemes.size(); ++channel) {
    const std::string& scheme = schemes[channel];
    if (scheme == "CTNormalization") {
      result.intensities[channel] = ct_normalization(plan, channel);
    } else if (scheme == "NoNormalization") {
      result.intensities[channel] = R"({"mean": 0, "deviation": 1})";
    } else if (scheme == "RGBTo01Normalization") {
      result.intensities[channel] = R"({"mean": 0, "deviation": 255})";
    } else if (scheme == "ZScoreNormalization") {
      result.intensity = "zscore";
      (is_masked(channel) ? masked : whole) = true;
    } else if (scheme == "RescaleTo01Normalization") {
      rescaled = true;
    } else {
      others.push_back(scheme);
    }
  }
  if (masked) result.intensity = "zscore_nonzero";
  if (masked && whole)
    result.notices.push_back(
        "nnU-Net normalises some channels by their points that are not 0, and others by all of them "
        "(use_mask_for_norm); here all are by the former (data.intensity)");
  if (rescaled && result.intensity.empty() && others.empty()) {
    result.intensity = "percentiles";
  } else if (rescaled) {
    others.emplace_back("RescaleTo01Normalization");
  }
  if (others.empty()) return;
  result.notices.push_back(
      concat("nnU-Net normalises by ", join(others, ", "), "; here such a channel is normalised ",
             result.intensity.empty() ? "by the mean and deviation of all training points"
                                      : "by the mean and deviation of each image",
             " (data.intensity)"));
}

/// As nnUNetTrainer's get_training_transforms and configure_rotation_dummyDA_mirroring_and_inital_patch_size
/// have it (nnU-Net 2.5), as far as it is in data.augment.
std::string augment_of(const Planned& plan, const std::vector<std::int64_t>& patch, std::int64_t batch) {
  // The longest edge of a patch over its first one, and in the plane over its shorter one.
  constexpr double kFlat = 3, kFlatPlane = 1.5;
  const std::int64_t longest = std::ranges::max(patch);
  const auto many = [&](std::int64_t edge, double times) {
    return static_cast<double>(longest) > times * static_cast<double>(edge);
  };
  const bool flat = patch.size() == 3 && many(patch.front(), kFlat);
  std::vector<std::int64_t> angles = {many(std::ranges::min(patch), kFlatPlane) ? 15 : 180};
  if (patch.size() == 3) {
    angles = along_images(
        plan, flat ? std::vector<std::int64_t>{180, 0, 0} : std::vector<std::int64_t>{30, 30, 30});
  }
  // So many samples of a batch, the last ones, hold foreground.
  constexpr double kOthers = 0.67, kDigits = 1000;
  const auto samples = static_cast<double>(batch);
  const double others = std::nearbyint(samples * kOthers),
               foreground = std::round(kDigits * (samples - others) / samples) / kDigits;
  // Of thick slices nnU-Net scales the plane alone, and here scale is along all axes.
  return concat(R"({"foreground": )", Json(foreground).dump(), R"(, "rotation": )", list_text(angles),
                flat ? "" : R"(, "scale": [0.7, 1.4])",
                R"(, "brightness": [0.75, 1.25], "gamma": [0.7, 1.5], "noise": 0.1, "blur": 1, )",
                R"("probabilities": {"rotation": 0.2, )", flat ? "" : R"("scale": 0.2, )",
                R"("brightness": 0.15, "gamma": 0.3, "noise": 0.1, "blur": 0.2}})");
}

}  // namespace

NnunetPlan read_nnunet_plan(const std::string& path, const std::string& name, const PlannedImages& images) {
  const Planned plan(path, name, images);
  NnunetPlan result;
  result.name = name;
  const auto patch = plan.as<std::vector<std::int64_t>>(plan["patch_size"], "patch_size");
  const auto spacing = plan.as<std::vector<double>>(plan["spacing"], "spacing");
  if (patch.size() != images.dims || spacing.size() != images.dims) {
    plan.error(concat("plans ", name, " for ", patch.size(), " dims, and the images have ", images.dims,
                      "; choose another with --plans-configuration"));
  }
  if (!std::ranges::all_of(patch, [](std::int64_t edge) { return edge > 0; }))
    plan.error(concat("has the patch_size ", list_text(patch)));
  result.patch = along_images(plan, patch);
  result.spacing = along_images(plan, spacing);
  const auto batch = plan.as<std::int64_t>(plan["batch_size"], "batch_size");
  if (batch < 1) plan.error(concat("has the batch_size ", batch));
  result.augment = augment_of(plan, patch, batch);
  result.training.model = model_of(plan);
  result.training.loss =
      concat(R"({"type": "dice_cross_entropy", "include_background": false, "smoothing": 1e-5)",
             plan.says("batch_dice") ? R"(, "batch": true})" : "}");
  result.training.optimizer =
      R"({"type": "sgd", "momentum": 0.99, "nesterov": true, "learning_rate": 0.01, "weight_decay": 3e-5, )"
      R"("decoupled_weight_decay": false, "clip_norm": 12})";
  result.training.schedule = R"({"type": "poly"})";
  result.training.validate_every = result.training.save_every = 2500;
  result.training.train = concat(R"({"steps": 250000, "batch_size": )", batch, "}");
  add_normalization(plan, images.channels, result);
  return result;
}

}  // namespace jigsaw::inline init
