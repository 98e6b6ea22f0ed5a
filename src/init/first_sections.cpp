#include "init/first_sections.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "config/json.h"
#include "files/glob.h"
#include "layers/global_rows.h"

namespace jigsaw::inline init {

namespace {

namespace fs = std::filesystem;

/// The largest divisor of an extent that is at most `most`.
std::int64_t divisor(std::int64_t extent, std::int64_t most) {
  std::int64_t found = std::min(extent, most);
  while (extent % found != 0) --found;
  return found;
}

/// Points of a patch, and patches of a window, along one axis.
struct PatchExtent {
  std::int64_t patch = 1, window = 1;
};

/// Patches of at most so many points that need no padding, or else little. With `windows`, which divide the
/// patches and shift against each other, so that there are at least four patches in one, or it holds all.
PatchExtent patch_extent(std::int64_t extent, std::int64_t most, bool windows) {
  constexpr std::int64_t kMostWindow = 8, kLeastWindow = 4;
  constexpr double kLittle = 0.05;
  const std::int64_t largest = std::min(most, extent);
  PatchExtent least{divisor(extent, most), 0};
  std::int64_t least_padding = extent;
  least.window = divisor(extent / least.patch, kMostWindow);
  for (const bool exact : {true, false}) {
    for (std::int64_t patch = largest; patch > 1; --patch) {
      const std::int64_t patches = (extent + patch - 1) / patch, padding = patches * patch - extent;
      const std::int64_t window = divisor(patches, kMostWindow);
      if (windows && window < std::min(kLeastWindow, patches)) continue;
      if (exact ? padding == 0 : static_cast<double>(padding) <= kLittle * static_cast<double>(extent))
        return {patch, window};
      if (padding >= least_padding) continue;
      least_padding = padding;
      least = {patch, window};
    }
  }
  return least;
}

/// The keys of a model of spherical harmonics.
void add_sphere(Section& model, const Shape& space, const GlobeKeys& globe) {
  if (globe.latitudes.empty()) {
    throw ConfigError(
        "--from sfno is for grids around the globe, with rows from pole to pole; use unet, vit, swin or "
        "weathermixer");
  }
  model.add("latitudes", quoted(globe.latitudes), "how rows lie from pole to pole");
  model.add("embed_dim", "64");
  model.add("depth", "4");
  constexpr std::int64_t kFew = 16;
  const bool coarser = std::min(space[0], space[1]) >= kFew;
  model.add("scale", coarser ? "2" : "1", "blocks work on a grid of so many times fewer rows and columns");
  model.add("zero_decoder", "true", "the untrained model changes nothing");
}

std::string model_text(const FirstOptions& options, const Shape& space, const GlobeKeys& globe,
                       const FirstLevels& levels) {
  Section model;
  model.add("type", quoted(options.model));
  if (options.model == "unet") {
    model.add("base_width", "16", "channels of the finest level; each coarser one has twice as many");
    model.add("levels", concat(levels.count));
    if (!levels.strides.empty())
      model.add("strides", levels.strides_text(), "which points become one from the level above to each");
    model.add("norm_groups", "4");
    model.add("zero_head", "true", "the untrained model changes nothing");
    if (!globe.padding_mode.empty()) {
      model.add("padding_mode", quoted_list(globe.padding_mode),
                "what convolutions read beyond the rows and the columns");
    }
    return model.text(1);
  }
  if (options.model == "sfno") {
    add_sphere(model, space, globe);
    return model.text(1);
  }
  const std::int64_t most = space.count() > 100'000 ? 8 : 7;
  std::vector<std::int64_t> patch, window;
  for (const std::int64_t extent : space) {
    const PatchExtent along = patch_extent(extent, most, options.model == "swin");
    patch.push_back(along.patch);
    window.push_back(along.window);
  }
  model.add("patch", concat("[", join(patch, ", "), "]"), "points that make one token");
  model.add("embed_dim", "96");
  model.add("depth", options.model == "swin" ? "4" : "3");
  if (options.model != "weathermixer") model.add("heads", "4");
  if (options.model == "swin")
    model.add("window", concat("[", join(window, ", "), "]"), "tokens that attend to each other");
  return model.text(1);
}

/// "0.3 MB".
std::string megabytes(double bytes) {
  return concat(std::max(0.1, std::round(bytes * 1e-5) / 10), " MB");
}

}  // namespace

std::string quoted(const std::string& text) {
  return Json(text).dump();
}

std::string quoted_list(const std::vector<std::string>& texts) {
  std::vector<std::string> all;
  for (const std::string& text : texts) all.push_back(quoted(text));
  return concat("[", join(all, ", "), "]");
}

void Section::say(const std::string& comment) {
  lines_.push_back("// " + comment);
}

void Section::add(const std::string& key, const std::string& value, const std::string& comment) {
  if (!comment.empty()) say(comment);
  lines_.push_back(concat(quoted(key), ": ", value, ","));
}

std::string Section::text(int depth) const {
  const std::string margin(static_cast<std::size_t>(2 * depth), ' ');
  std::string all = "{\n";
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    std::string line = lines_[i];
    if (i + 1 == lines_.size()) line.pop_back();
    all += concat(margin, "  ", line, "\n");
  }
  return all + margin + "}";
}

std::vector<std::string> names_of(const FirstOptions& options, const std::vector<std::string>& patterns,
                                  const std::vector<std::string>& files) {
  const fs::path from = fs::absolute(options.folder).lexically_normal();
  const auto relative = [&](const std::string& path) {
    return fs::absolute(path).lexically_normal().lexically_relative(from).string();
  };
  if (patterns.size() < 4) {
    std::vector<std::string> names;
    std::transform(patterns.begin(), patterns.end(), std::back_inserter(names), relative);
    return names;
  }
  std::size_t same = 0, same_behind = 0;
  const auto shared = [&](auto at) {
    return std::all_of(files.begin(), files.end(),
                       [&](const std::string& file) { return at(file) == at(files[0]); });
  };
  std::size_t shortest = files[0].size();
  for (const std::string& file : files) shortest = std::min(shortest, file.size());
  while (same < shortest && shared([&](const std::string& file) { return file[same]; })) ++same;
  while (same_behind < shortest - same &&
         shared([&](const std::string& file) { return file[file.size() - 1 - same_behind]; }))
    ++same_behind;
  const std::string pattern = files[0].substr(0, same) + "*" + files[0].substr(files[0].size() - same_behind);
  // "./" may stand before those of one side.
  if (std::ranges::equal(expand_patterns({pattern}, "."), files, {}, relative, relative))
    return {relative(pattern)};
  std::vector<std::string> names;
  std::transform(files.begin(), files.end(), std::back_inserter(names), relative);
  return names;
}

GlobeKeys globe_keys(const Grid& grid) {
  if (!grid.periodic) return {};
  const bool halves = grid.shape()[1] % (std::int64_t{1} << even_levels(grid.shape()).count) == 0;
  const bool crosses = grid.north == grid.south && halves;
  const char* rows = crosses && grid.north == PoleKind::kPoint         ? "pole_point"
                     : crosses && grid.north == PoleKind::kCellCentred ? "pole_cell"
                                                                       : "replicate";
  const std::optional<GlobalRows> sphere = global_rows_of(grid.axes[0].coordinates);
  return {{rows, "circular"}, sphere ? name(*sphere) : ""};
}

std::string whole_text(const FirstOptions& options, const std::string& title, const Section& data,
                       const Shape& space, const GlobeKeys& globe, const FirstLevels& levels, double channels,
                       const std::string& loss) {
  const double bytes = static_cast<double>(space.count()) * channels * 4;
  const int batch = bytes > 5e7 ? 1 : bytes > 5e6 ? 2 : 8;
  return whole_text(
      options, title, data,
      {model_text(options, space, globe, levels), loss,
       R"({"learning_rate": 1e-3, "weight_decay": 0.01, "clip_norm": 1.0})",
       R"({"type": "cosine", "warmup_steps": 50})", concat("{\"epochs\": 10, \"batch_size\": ", batch, "}")},
      concat(
          "epochs: passes over the training data; batch_size: samples of a step on all ranks together, of ",
          megabytes(bytes), " each"));
}

std::string whole_text(const FirstOptions& options, const std::string& title, const Section& data,
                       const TrainingText& training, const std::string& remark) {
  std::string text =
      concat("// ", title, "\n// Explained key by key: jigsaw-train config --explain KEY\n{\n  \"name\": ",
             quoted(options.name), ",\n");
  text +=
      "  // how ranks cut model and samples: auto is the fastest way that fits, on as many as are started\n";
  text += "  \"mesh\": \"auto\",\n";
  text += concat("  \"data\": ", data.text(1), ",\n");
  text += concat("  \"model\": ", training.model, ",\n");
  text += concat("  \"loss\": ", training.loss, ",\n");
  text += concat("  \"optimizer\": ", training.optimizer, ",\n");
  text += concat("  \"schedule\": ", training.schedule, ",\n");
  text += concat("  // ", remark, "\n");
  text += concat("  \"train\": ", training.train, ",\n");
  text += concat("  \"validation\": {\"every\": ", training.validate_every, "},  // steps\n");
  text += concat("  \"checkpoint\": {\"every\": ", training.save_every, ", \"keep\": 2},\n");
  text += concat("  \"output\": ", quoted("runs/" + options.name), "\n}\n");
  return text;
}

}  // namespace jigsaw::inline init
