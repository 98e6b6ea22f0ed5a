#include "layers/unet.h"

#include <algorithm>
#include <functional>

#include "base/error.h"
#include "base/text.h"
#include "config/config.h"
#include "layers/convolution.h"
#include "layers/group_norm.h"
#include "layers/limits.h"
#include "layers/pointwise_layers.h"
#include "layers/pooling.h"
#include "layers/resampling.h"
#include "layers/residual.h"
#include "layers/spatial_keys.h"

namespace jigsaw::inline layers {

namespace {

std::vector<std::int64_t> widths_of(const UNetOptions& options) {
  if (!options.widths.empty()) return options.widths;
  std::vector<std::int64_t> widths;
  for (std::int64_t level = 0; level < options.levels; ++level) {
    const std::int64_t width = options.base_width << level;
    widths.push_back(options.most_width > 0 ? std::min(width, options.most_width) : width);
  }
  return widths;
}

/// Of a list with an entry for each level, or one for all.
template <typename T>
const T& of_level(const std::vector<T>& entries, std::size_t level) {
  return entries[entries.size() > 1 ? level : 0];
}

std::int64_t groups_of(const UNetOptions& options, std::int64_t width) {
  return options.norm_groups.value_or(width);
}

void check_groups(const UNetOptions& options, const Place& at) {
  for (const std::int64_t width : widths_of(options)) {
    const std::int64_t groups = groups_of(options, width);
    if (groups == 0 || width % groups == 0) continue;
    std::int64_t fits = std::min(groups, width);
    while (width % fits != 0) --fits;
    at.error("norm_groups", concat("must divide the width of each level, ", width, " among them; use ", fits,
                                   ", or 0 for no norm"));
  }
}

void check_entries(const Place& at, const char* key, std::size_t entries, std::size_t levels,
                   const char* of_which) {
  if (entries == levels) return;
  at.error(key, concat("has ", entries, " entries for ", counted(static_cast<std::int64_t>(levels), "level"),
                       of_which, "; give it one for each, from the finest on"));
}

void check_level_lists(const UNetOptions& options, const Place& at) {
  const std::size_t levels = widths_of(options).size();
  if (!options.kernels.empty()) {
    check_entries(at, "kernels", options.kernels.size(), levels, "");
    if (options.kernel != UNetOptions().kernel)
      at.error("kernels", "stand in place of kernel; give one or the other");
  }
  if (!options.strides.empty()) {
    check_entries(at, "strides", options.strides.size(), levels, "");
    const Extents& first = options.strides.front();
    if (std::any_of(first.begin(), first.end(), [](auto points) { return points != 1; }))
      at.error("strides", "must begin with 1 along each axis: the finest level has all points of the data");
  }
  if (options.blocks.size() > 1) check_entries(at, "blocks", options.blocks.size(), levels, "");
  if (options.convolutions.size() != 1)
    check_entries(at, "convolutions", options.convolutions.size(), levels, "");
  if (options.decoder_convolutions.size() > 1)
    check_entries(at, "decoder_convolutions", options.decoder_convolutions.size(), levels - 1,
                  " (all but the coarsest)");
  if (options.deep_supervision && levels < kLeastSupervisedLevels) {
    at.error("deep_supervision",
             concat("needs a model of ", kLeastSupervisedLevels, " levels or more, not of ", levels,
                    ": it is of those between the finest and the two coarsest"));
  }
}

bool is_odd(const Extents& kernel) {
  return std::all_of(kernel.begin(), kernel.end(), [](auto points) { return points % 2 == 1; });
}

/// For each level one number, or one for each axis.
FormPtr<std::vector<Extents>> levels_form() {
  return std::make_unique<ListForm<Extents>>(one_or_list<std::int64_t>());
}

}  // namespace

void declare(Keys<UNetOptions>& keys) {
  using O = UNetOptions;
  keys.add("base_width", &O::base_width)
      .range(0, kMostChannels)
      .doc("Channels of the finest level; each level has twice as many as the one before.");
  keys.add("levels", &O::levels).range(0, 30).doc("Number of levels, the finest included.");
  keys.add("most_width", &O::most_width)
      .range(0, kMostChannels)
      .counts_where(here("base_width").above(0))
      .doc("No level has more channels than this; 0 for no end.");
  keys.add("widths", &O::widths)
      .range(1, kMostChannels)
      .doc("Channels of each level from the finest on, in place of base_width and levels.");
  keys.add("kernel", &O::kernel, one_or_list<std::int64_t>())
      .range(1, kMostPoints)
      .must("be odd", is_odd)
      .doc("Points of each kernel, for all spatial axes or for each.");
  keys.add("kernels", &O::kernels, levels_form())
      .range(1, kMostPoints)
      .must("be odd",
            [](const std::vector<Extents>& kernels) {
              return std::all_of(kernels.begin(), kernels.end(), is_odd);
            })
      .doc("The same of each level from the finest on, in place of kernel: [[1, 3, 3], 3, 3].");
  keys.add("strides", &O::strides, levels_form())
      .range(1, kMostPoints)
      .doc(
          "So many points along each axis become one from the level above to each, from the finest on, of "
          "which it is 1: [1, [1, 2, 2], 2]; []: 2 everywhere.");
  keys.add("blocks", &O::blocks, one_or_list<std::int64_t>())
      .range(1, kMostBlocks)
      .doc(
          "Residual blocks of each level of the encoder, in place of its convolutions, for all levels or for "
          "each from the finest on, behind a first convolution: "
          "activation(norm(conv(activation(norm(conv(x)))))"
          " + x), where x is averaged and mapped by a convolution of one point as strides and channels ask; "
          "[]: "
          "none.");
  keys.add("convolutions", &O::convolutions, one_or_list<std::int64_t>())
      .range(1, kMostBlocks)
      .not_empty()
      .counts_where(here("blocks").is(Json::array()) || here("decoder_convolutions").is(Json::array()))
      .doc("Convolutions of each level, for all levels or for each from the finest on.");
  keys.add("decoder_convolutions", &O::decoder_convolutions, one_or_list<std::int64_t>())
      .range(1, kMostBlocks)
      .doc(
          "Those on the way back, for all levels or for each but the coarsest, from the finest on; []: those "
          "of convolutions.");
  keys.add("norm_groups", &O::norm_groups, auto_or(form_of<std::int64_t>(), "channels"))
      .range(0, kMostChannels)
      .doc(
          "Groups of channels that are normalised together behind each convolution; \"channels\": "
          "each alone, an instance norm; 0 for none.");
  keys.choice("down", &O::down,
              {{"max_pool", "max_pool", "The largest of the points that become one."},
               {"avg_pool", "avg_pool", "The mean of the points that become one."},
               {"conv", "conv", "A convolution with the stride, before those of the level."},
               {"first_conv", "first_conv", "The first convolution of the level has the stride."}})
      .doc("How points become fewer.");
  keys.choice(
          "up", &O::up,
          {{"nearest", "nearest", "The nearest point."},
           {"linear", "linear", "Linear along each axis."},
           {"conv_transpose", "conv_transpose", "A transposed convolution of as many points as its stride."}})
      .doc("How points become as many again.");
  keys.add("padding_mode", &O::padding_mode, edges_form())
      .not_empty()
      .idle_unless(here("kernel").above(1) || here("up").is("linear"))
      .doc(
          "What convolutions read beyond the ends, for all spatial axes or for each: \"circular\" for "
          "longitude around the globe.");
  keys.add("zero_head", &O::zero_head)
      .doc("Whether the head starts at zero, so that the untrained model predicts no change.");
  keys.add("deep_supervision", &O::deep_supervision)
      .doc(
          "Whether in training the levels between the finest and the two coarsest have heads of their own, "
          "whose losses with the nearest labels count half as much from level to level; for targets that are "
          "labels (data.classes).");
  declare_activation(keys, &O::activation, "behind each convolution and its norm");
  keys.check([](const O& options, const Place& at) {
    if (!options.widths.empty() && (options.base_width > 0 || options.levels > 0))
      at.error("widths", "stand in place of base_width and levels; give one or the other");
    if (options.widths.empty() && options.base_width == 0)
      at.error("base_width", "or widths must be given, such as 32");
    if (options.widths.empty() && options.levels == 0)
      at.error("levels", "or widths must be given, such as 4");
    check_groups(options, at);
    check_level_lists(options, at);
  });
}

namespace {

/// What lies beyond the near and the far ends of a level's axes.
struct LevelEdges {
  Edges low, high;
};

/// Of the level below one of these edges and extents.
///
/// Pooled in twos from the first one on, a pole's row goes together with its neighbour, and the pole then
/// lies half a row beyond. At the far end it stays alone where the number of rows is odd, and remains a row.
/// A convolution with stride 2 keeps every other row, the first among them: the pole of the near end remains
/// a row; that of the far end does where the number of rows is odd, and lies half a row beyond where it is
/// even. With a stride of 1 nothing changes; with larger ones a pole that is no row counts as half a row
/// beyond.
LevelEdges edges_below(const UNetOptions& options, const LevelEdges& finer, const Shape& space,
                       const Shape& stride) {
  const bool pooled = options.down == "max_pool" || options.down == "avg_pool";
  LevelEdges edges;
  for (int dim = 0; dim < space.rank(); ++dim) {
    Edge low = edge_of(finer.low, dim), high = edge_of(finer.high, dim);
    if (low == Edge::kPolePoint && pooled && stride[dim] > 1) low = Edge::kPoleCell;
    if (high == Edge::kPolePoint && (space[dim] - 1) % stride[dim] != 0) high = Edge::kPoleCell;
    edges.low.push_back(low);
    edges.high.push_back(high);
  }
  return edges;
}

/// What differs between levels.
struct Level {
  std::int64_t width = 0;
  Shape kernel;
  Shape stride;  ///< from the finer level
  Shape space;
  LevelEdges edges;
  std::int64_t blocks = 0;  ///< residual ones of the encoder; 0: convolutions
  std::int64_t convolutions = 0, decoder_convolutions = 0;
};

Extents entries_of(const Shape& shape) {
  return {shape.begin(), shape.end()};
}

/// How the first convolution of a level reads the field before it.
struct FirstConvolution {
  Extents stride;
  const LevelEdges& edges;
};
FirstConvolution same_points(const Level& level) {
  return {{1}, level.edges};
}

/// Builds the layers of one block, one after the other.
class Stage {
 public:
  Stage(const LayerSite& site, const UNetOptions& options)
      : site_(site), options_(options), shape_(site.input) {}

  void add(LayerPtr layer) {
    shape_ = layer->output();
    layers_.push_back(std::move(layer));
  }
  LayerSite inner(const std::string& name) const { return site_.inner(name, shape_); }

  /// To the points of the finer level.
  void up(const Level& coarser, const Level& level) {
    const Extents size = entries_of(level.space), stride = entries_of(coarser.stride);
    if (options_.up == "conv_transpose") {
      add(std::make_unique<TransposedConvolutionLayer>(
          inner("up"), TransposedConvolutionOptions{
                           .features = level.width, .kernel = stride, .stride = stride, .size = size}));
      return;
    }
    UpsampleOptions upsample{stride, size, Interpolation::kNearest, {Edge::kReplicate}};
    if (options_.up == "linear") {
      upsample.mode = Interpolation::kLinear;
      // Grids that go around the globe go on so; at other ends the last point stands.
      upsample.padding_mode.clear();
      for (int dim = 0; dim < level.space.rank(); ++dim) {
        const Edge edge = edge_of(coarser.edges.low, dim);
        const bool whole_cells = shape_.space[dim] * coarser.stride[dim] == level.space[dim];
        upsample.padding_mode.push_back(edge == Edge::kPeriodic && whole_cells ? edge : Edge::kReplicate);
      }
    }
    add(std::make_unique<Upsample>(inner("up"), upsample));
  }

  /// From the points of the finer level to those of this one, but for strides of its first convolution.
  void down(const Level& finer, const Level& level) {
    const Extents stride = entries_of(level.stride);
    if (options_.down == "conv") {
      add(std::make_unique<ConvolutionLayer>(inner("down"), convolution(level, {stride, finer.edges})));
    } else if (options_.down == "avg_pool") {
      average(stride);
    } else {
      add(std::make_unique<PoolingLayer>(inner("down"), MaxPoolOptions{.kernel = stride, .ceil_mode = true}));
    }
  }

  /// So many times convolution, norm, activation.
  void convolutions(const Level& level, std::int64_t count, const FirstConvolution& first) {
    for (std::int64_t number = 1; number <= count; ++number) {
      convolve(std::to_string(number), convolution(level, number == 1 ? first : same_points(level)),
               options_.activation);
    }
  }
  void convolutions(const Level& level, std::int64_t count) {
    convolutions(level, count, same_points(level));
  }

  /// The convolution in front of the residual blocks.
  void stem(const Level& level) { convolve("", convolution(level, same_points(level)), options_.activation); }

  /// A residual block.
  void block(const Level& level, const FirstConvolution& first) {
    Stage main(site_, options_), skip(site_.inner("skip", shape_), options_);
    main.convolve("1", convolution(level, first), options_.activation);
    main.convolve("2", convolution(level, same_points(level)), ActivationKind::kNone);
    if (std::ranges::any_of(first.stride, [](auto points) { return points > 1; })) skip.average(first.stride);
    if (shape_.channels != level.width)
      skip.convolve("", {.features = level.width, .kernel = {1}, .bias = false}, ActivationKind::kNone);
    add(std::make_unique<Residual>(main.chain(), skip.layers_.empty() ? nullptr : skip.chain()));
    activate("activation2", options_.activation);
  }

  LayerPtr chain() { return std::make_unique<Chain>(std::move(layers_)); }

 private:
  void average(const Extents& stride) {
    add(std::make_unique<PoolingLayer>(inner("pool"),
                                       AveragePoolOptions{.kernel = stride, .ceil_mode = true}));
  }

  /// Convolution, norm, activation, whose names end with `number`.
  void convolve(const std::string& number, const ConvolutionOptions& convolution, ActivationKind activation) {
    // A norm applies what has no parameters in its own pass; a slope is named as the activation's.
    const std::int64_t norm_groups = groups_of(options_, convolution.features);
    const bool norm = norm_groups > 0, apart = !norm || activation == ActivationKind::kPrelu;
    add(std::make_unique<ConvolutionLayer>(inner("conv" + number), convolution));
    if (norm) {
      GroupNormOptions groups{.groups = norm_groups};
      if (!apart) groups.activation = activation;
      add(std::make_unique<GroupNorm>(inner("norm" + number), groups));
    }
    if (apart) activate("activation" + number, activation);
  }
  void activate(const std::string& name, ActivationKind activation) {
    if (activation != ActivationKind::kNone) add(std::make_unique<ActivationLayer>(inner(name), activation));
  }

  /// Padded so that a stride of 1 keeps the extents, and others leave the extent over it, rounded up.
  static ConvolutionOptions convolution(const Level& level, const FirstConvolution& read) {
    ConvolutionOptions result{
        .features = level.width, .kernel = entries_of(level.kernel), .stride = read.stride};
    result.padding.clear();
    for (const std::int64_t points : result.kernel) result.padding.push_back(points / 2);
    result.padding_mode = read.edges.low;
    result.far_padding_mode = read.edges.high;
    return result;
  }

  LayerSite site_;
  const UNetOptions& options_;
  FieldShape shape_;
  std::vector<LayerPtr> layers_;
};

/// That there is one entry for all axes, or one for each. @param key  for errors.
void check_entries(const std::string& key, std::size_t entries, int dims) {
  if (const std::string fault = fault_of_count(entries, dims); !fault.empty())
    throw ConfigError(concat("model.", key, " ", fault));
}

/// Of one number for all axes or one for each. @param key  for errors.
Shape along_axes(const std::string& key, const Extents& entries, int dims) {
  check_entries(key, entries.size(), dims);
  Shape shape = Shape::filled(dims, entries.front());
  for (std::size_t i = 0; i < entries.size() && entries.size() > 1; ++i)
    shape[static_cast<int>(i)] = entries[i];
  return shape;
}

/// Levels below a single point would not be smaller than it.
[[noreturn]] void refuse_levels(const UNetOptions& options, const Shape& space, std::size_t fits,
                                std::size_t levels) {
  if (!options.strides.empty()) {
    throw ConfigError(concat("model.strides[", fits, "] leaves a grid of ", space,
                             " points as it is after the strides above it; use at most ",
                             counted(static_cast<std::int64_t>(fits), "level")));
  }
  throw ConfigError(concat("model.", options.widths.empty() ? "levels" : "widths", " has ", levels,
                           " levels, but a grid of ", space, " points is a single one after it was halved ",
                           counted(static_cast<std::int64_t>(fits - 1), "time"), "; use at most ", fits));
}

std::vector<Level> levels_of(const UNetOptions& options, const Shape& data_space) {
  const std::vector<std::int64_t> widths = widths_of(options);
  const int dims = data_space.rank();
  check_entries("padding_mode", options.padding_mode.size(), dims);
  const std::vector<std::int64_t>& back =
      options.decoder_convolutions.empty() ? options.convolutions : options.decoder_convolutions;
  std::vector<Level> levels;
  for (std::size_t i = 0; i < widths.size(); ++i) {
    Level level{.width = widths[i], .kernel = {}, .stride = {}, .space = data_space, .edges = {}};
    if (!options.blocks.empty()) level.blocks = of_level(options.blocks, i);
    level.convolutions = of_level(options.convolutions, i);
    if (i + 1 < widths.size()) level.decoder_convolutions = of_level(back, i);
    level.kernel = options.kernels.empty() ? along_axes("kernel", options.kernel, dims)
                                           : along_axes(concat("kernels[", i, "]"), options.kernels[i], dims);
    level.stride = options.strides.empty() ? Shape::filled(dims, i == 0 ? 1 : 2)
                                           : along_axes(concat("strides[", i, "]"), options.strides[i], dims);
    if (i == 0) {
      level.edges = {options.padding_mode, options.padding_mode};
    } else {
      const Level& finer = levels.back();
      level.edges = edges_below(options, finer.edges, finer.space, level.stride);
      for (int dim = 0; dim < dims; ++dim)
        level.space[dim] = (finer.space[dim] + level.stride[dim] - 1) / level.stride[dim];
      const bool coarser =
          std::any_of(level.stride.begin(), level.stride.end(), [](auto points) { return points > 1; });
      if (coarser && level.space == finer.space) refuse_levels(options, data_space, i, widths.size());
    }
    levels.push_back(level);
  }
  return levels;
}

using BuildStage = std::function<void(Stage&)>;

void append_stage(Model& model, const UNetOptions& options, const std::string& path,
                  const BuildStage& build) {
  model.append(path, "model", [&](const LayerSite& site) {
    Stage stage(site, options);
    build(stage);
    return stage.chain();
  });
}

/// A level of the encoder. Each residual block is planned and recomputed by itself.
/// @param finer  the level above it; null: it is the finest.
void append_encoder(Model& model, const UNetOptions& options, const std::string& path, const Level* finer,
                    const Level& level) {
  const bool strides = finer != nullptr && options.down == "first_conv",
             goes_down = finer != nullptr && !strides;
  const FirstConvolution first =
      strides ? FirstConvolution{entries_of(level.stride), finer->edges} : same_points(level);
  const auto down = [&](Stage& stage) { stage.down(*finer, level); };
  if (level.blocks == 0) {
    return append_stage(model, options, path, [&](Stage& stage) {
      if (goes_down) down(stage);
      stage.convolutions(level, level.convolutions, first);
    });
  }
  if (finer == nullptr)
    append_stage(model, options, path + ".stem", [&](Stage& stage) { stage.stem(level); });
  if (goes_down) append_stage(model, options, path, down);
  for (std::int64_t number = 1; number <= level.blocks; ++number) {
    append_stage(model, options, concat(path, ".block", number),
                 [&](Stage& stage) { stage.block(level, number == 1 ? first : same_points(level)); });
  }
}

}  // namespace

void append_unet(Model& model, const UNetOptions& options) {
  const std::vector<Level> levels = levels_of(options, model.description().space);
  std::vector<std::size_t> skips;
  for (std::size_t i = 0; i < levels.size(); ++i) {
    append_encoder(model, options, concat("encoder.", i), i > 0 ? &levels[i - 1] : nullptr, levels[i]);
    skips.push_back(model.value());
  }
  const auto head = [&](const LayerSite& site) -> LayerPtr {
    return std::make_unique<ConvolutionLayer>(
        site,
        ConvolutionOptions{
            .features = model.description().output_channels, .kernel = {1}, .zero_start = options.zero_head});
  };
  for (std::size_t i = levels.size() - 1; i-- > 0;) {
    const std::string path = concat("decoder.", i);
    const Level& level = levels[i];
    append_stage(model, options, path, [&](Stage& stage) { stage.up(levels[i + 1], level); });
    model.join(skips[i], "model");
    append_stage(model, options, path,
                 [&](Stage& stage) { stage.convolutions(level, level.decoder_convolutions); });
    if (options.deep_supervision && i > 0 && i + 2 < levels.size())
      model.append_side(path + ".head", "model", head);
  }
  model.append("head", "model", head);
}

}  // namespace jigsaw::inline layers
