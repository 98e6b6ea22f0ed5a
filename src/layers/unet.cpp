#include "layers/unet.h"

#include <algorithm>

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

namespace jigsaw::inline layers {

namespace {

std::vector<std::int64_t> widths_of(const UNetOptions& options) {
  if (!options.widths.empty()) return options.widths;
  std::vector<std::int64_t> widths;
  for (std::int64_t level = 0; level < options.levels; ++level) {
    widths.push_back(options.base_width << level);
  }
  return widths;
}

void check_groups(const UNetOptions& options, const Place& at) {
  for (const std::int64_t width : widths_of(options)) {
    if (options.norm_groups == 0 || width % options.norm_groups == 0) continue;
    std::int64_t fits = std::min(options.norm_groups, width);
    while (width % fits != 0) --fits;
    at.error("norm_groups", concat("must divide the width of each level, ", width, " among them; use ", fits,
                                   ", or 0 for no norm"));
  }
}

}  // namespace

void declare(Keys<UNetOptions>& keys) {
  using O = UNetOptions;
  keys.add("base_width", &O::base_width)
      .range(0, kMostChannels)
      .doc("Channels of the finest level; each level has twice as many as the one before.");
  keys.add("levels", &O::levels).range(0, 30).doc("Number of levels, the finest included.");
  keys.add("widths", &O::widths)
      .range(1, kMostChannels)
      .doc("Channels of each level from the finest on, in place of base_width and levels.");
  keys.add("kernel", &O::kernel, one_or_list<std::int64_t>())
      .range(1, kMostPoints)
      .must("be odd",
            [](const Extents& kernel) {
              return std::all_of(kernel.begin(), kernel.end(), [](auto points) { return points % 2 == 1; });
            })
      .doc("Points of each kernel, for all spatial axes or for each.");
  keys.add("norm_groups", &O::norm_groups)
      .range(0, kMostChannels)
      .doc("Groups of channels that are normalised together behind each convolution; 0 for none.");
  keys.choice("down", &O::down,
              {{"max_pool", "max_pool", "The largest of two points along each axis."},
               {"avg_pool", "avg_pool", "The mean of two points along each axis."},
               {"conv", "conv", "A convolution with stride 2."}})
      .doc("How points are halved.");
  keys.choice("up", &O::up,
              {{"nearest", "nearest", "The nearest point."},
               {"linear", "linear", "Linear along each axis."},
               {"conv_transpose", "conv_transpose", "A transposed convolution of 2 points with stride 2."}})
      .doc("How points are doubled.");
  keys.add("padding_mode", &O::padding_mode, edges_form())
      .idle_unless(here("kernel").above(1) || here("up").is("linear"))
      .doc(
          "What convolutions read beyond the ends, for all spatial axes or for each: \"circular\" for "
          "longitude around the globe.");
  keys.add("zero_head", &O::zero_head)
      .doc("Whether the head starts at zero, so that the untrained model predicts no change.");
  declare_activation(keys, &O::activation, "behind each convolution and its norm");
  keys.check([](const O& options, const Place& at) {
    if (!options.widths.empty() && (options.base_width > 0 || options.levels > 0))
      at.error("widths", "stand in place of base_width and levels; give one or the other");
    if (options.widths.empty() && options.base_width == 0)
      at.error("base_width", "or widths must be given, such as 32");
    if (options.widths.empty() && options.levels == 0)
      at.error("levels", "or widths must be given, such as 4");
    check_groups(options, at);
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
/// even.
LevelEdges edges_below(const UNetOptions& options, const LevelEdges& finer, const Shape& space) {
  LevelEdges edges;
  for (int dim = 0; dim < space.rank(); ++dim) {
    Edge low = edge_of(finer.low, dim), high = edge_of(finer.high, dim);
    if (low == Edge::kPolePoint && options.down != "conv") low = Edge::kPoleCell;
    if (high == Edge::kPolePoint && space[dim] % 2 == 0) high = Edge::kPoleCell;
    edges.low.push_back(low);
    edges.high.push_back(high);
  }
  return edges;
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

  /// @param edges  of the finer level.
  void down(std::int64_t width, const LevelEdges& edges) {
    const Extents two = {2};
    if (options_.down == "conv") {
      add(std::make_unique<ConvolutionLayer>(inner("down"), convolution(width, two, edges)));
    } else if (options_.down == "avg_pool") {
      add(std::make_unique<PoolingLayer>(inner("down"),
                                         AveragePoolOptions{.kernel = two, .ceil_mode = true}));
    } else {
      add(std::make_unique<PoolingLayer>(inner("down"), MaxPoolOptions{.kernel = two, .ceil_mode = true}));
    }
  }

  /// To the points of the finer level.
  /// @param edges  of the coarser one.
  void up(std::int64_t width, const Shape& space, const LevelEdges& edges) {
    const Extents size(space.begin(), space.end());
    if (options_.up == "conv_transpose") {
      add(std::make_unique<TransposedConvolutionLayer>(
          inner("up"),
          TransposedConvolutionOptions{.features = width, .kernel = {2}, .stride = {2}, .size = size}));
      return;
    }
    UpsampleOptions upsample{{2}, size, Interpolation::kNearest, {Edge::kReplicate}};
    if (options_.up == "linear") {
      upsample.mode = Interpolation::kLinear;
      // Grids that go around the globe go on so; at other ends the last point stands.
      upsample.padding_mode.clear();
      for (int dim = 0; dim < space.rank(); ++dim) {
        const Edge edge = edge_of(edges.low, dim);
        const bool whole_cells = shape_.space[dim] * 2 == space[dim];
        upsample.padding_mode.push_back(edge == Edge::kPeriodic && whole_cells ? edge : Edge::kReplicate);
      }
    }
    add(std::make_unique<Upsample>(inner("up"), upsample));
  }

  /// Twice convolution, norm, activation.
  void convolutions(std::int64_t width, const LevelEdges& edges) {
    // A norm applies what has no parameters in its own pass; a slope is named as the activation's.
    const bool norm = options_.norm_groups > 0,
               apart = !norm || options_.activation == ActivationKind::kPrelu;
    for (const char* number : {"1", "2"}) {
      add(std::make_unique<ConvolutionLayer>(inner(concat("conv", number)), convolution(width, {1}, edges)));
      if (norm) {
        GroupNormOptions groups{.groups = options_.norm_groups};
        if (!apart) groups.activation = options_.activation;
        add(std::make_unique<GroupNorm>(inner(concat("norm", number)), groups));
      }
      if (apart && options_.activation != ActivationKind::kNone)
        add(std::make_unique<ActivationLayer>(inner(concat("activation", number)), options_.activation));
    }
  }

  LayerPtr chain() { return std::make_unique<Chain>(std::move(layers_)); }

 private:
  /// Padded so that a stride of 1 keeps the extents.
  ConvolutionOptions convolution(std::int64_t width, const Extents& stride, const LevelEdges& edges) const {
    ConvolutionOptions result{.features = width, .kernel = options_.kernel, .stride = stride};
    result.padding.clear();
    for (const std::int64_t points : options_.kernel) result.padding.push_back(points / 2);
    result.padding_mode = edges.low;
    result.far_padding_mode = edges.high;
    return result;
  }

  LayerSite site_;
  const UNetOptions& options_;
  FieldShape shape_;
  std::vector<LayerPtr> layers_;
};

/// Levels below a single point would not be smaller than it.
void check_levels(const Model& model, const UNetOptions& options, std::size_t levels) {
  std::int64_t points = 1;
  for (const std::int64_t extent : model.description().space) points = std::max(points, extent);
  std::size_t most = 1;
  for (; points > 1; points = (points + 1) / 2) ++most;
  if (levels <= most) return;
  throw ConfigError(concat("model.", options.widths.empty() ? "levels" : "widths", " has ", levels,
                           " levels, but a grid of ", model.description().space,
                           " points is a single one after it was halved ",
                           counted(static_cast<std::int64_t>(most - 1), "time"), "; use at most ", most));
}

}  // namespace

void append_unet(Model& model, const UNetOptions& options) {
  const std::vector<std::int64_t> widths = widths_of(options);
  check_levels(model, options, widths.size());
  std::vector<LevelEdges> edges;
  std::vector<std::size_t> skips;
  std::vector<Shape> spaces;
  for (std::size_t level = 0; level < widths.size(); ++level) {
    edges.push_back(level == 0 ? LevelEdges{options.padding_mode, options.padding_mode}
                               : edges_below(options, edges.back(), spaces.back()));
    model.append(concat("encoder.", level), "model", [&](const LayerSite& site) {
      Stage stage(site, options);
      if (level > 0) stage.down(widths[level], edges[level - 1]);
      stage.convolutions(widths[level], edges[level]);
      return stage.chain();
    });
    skips.push_back(model.value());
    spaces.push_back(model.output().space);
  }
  for (std::size_t level = widths.size() - 1; level-- > 0;) {
    const std::string path = concat("decoder.", level);
    model.append(path, "model", [&](const LayerSite& site) {
      Stage stage(site, options);
      stage.up(widths[level], spaces[level], edges[level + 1]);
      return stage.chain();
    });
    model.join(skips[level], "model");
    model.append(path, "model", [&](const LayerSite& site) {
      Stage stage(site, options);
      stage.convolutions(widths[level], edges[level]);
      return stage.chain();
    });
  }
  model.append("head", "model", [&](const LayerSite& site) -> LayerPtr {
    ConvolutionOptions head{.features = model.description().output_channels, .kernel = {1}};
    head.zero_start = options.zero_head;
    return std::make_unique<ConvolutionLayer>(site, head);
  });
}

}  // namespace jigsaw::inline layers
