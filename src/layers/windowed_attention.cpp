#include "layers/windowed_attention.h"

#include <algorithm>
#include <cstdlib>

#include "autograd/field_operations.h"
#include "base/text.h"
#include "config/config.h"
#include "layers/limits.h"

namespace jigsaw::inline layers {

void declare(Keys<WindowedAttentionOptions>& keys) {
  using O = WindowedAttentionOptions;
  keys.add("heads", &O::heads)
      .required()
      .range(1, kMostChannels)
      .doc("Number of heads; divides the width, into heads of at most 256 channels.");
  keys.add("window", &O::window)
      .required()
      .length(1, 3)
      .range(1, kMostPoints)
      .doc("Points of a window along each spatial axis; divides the layer's grid.");
  keys.add("shift", &O::shift)
      .length(0, 3)
      .range(0, kMostPoints)
      .doc("Points by which windows are shifted along each spatial axis, less than a window; [] for none.");
  keys.add("circular", &O::circular)
      .counts_where(here("shift").is_given())
      .doc(
          "Whether the last axis closes a circle, as longitudes of the whole globe do, so that shifted "
          "windows reach round its end.");
  keys.add("dropout", &O::dropout).at_least(0).below(1).doc("Dropout probability of attention weights.");
}

namespace {

/// The divisor of `extent` nearest to `window`.
std::int64_t nearest_divisor(std::int64_t extent, std::int64_t window) {
  std::int64_t best = 1;
  for (std::int64_t n = 1; n <= extent; ++n) {
    if (extent % n == 0 && std::abs(n - window) < std::abs(best - window)) best = n;
  }
  return best;
}

Shape checked_window(const LayerSite& site, const std::vector<std::int64_t>& window) {
  const Shape& space = site.input.space;
  if (static_cast<int>(window.size()) != space.rank()) {
    site.error("window",
               concat("must have one entry per spatial axis: ", space.rank(), ", not ", window.size()));
  }
  std::vector<std::int64_t> better;
  for (int dim = 0; dim < space.rank(); ++dim)
    better.push_back(nearest_divisor(space[dim], window[static_cast<std::size_t>(dim)]));
  if (better != window) {
    site.error("window", concat("[", join(window, ", "), "] does not tile the grid ", space, "; use [",
                                join(better, ", "), "]"));
  }
  return Shape(window);
}

std::vector<std::int64_t> checked_shift(const LayerSite& site, const WindowedAttentionOptions& options) {
  std::vector<std::int64_t> shift = options.shift;
  if (shift.empty()) shift.assign(options.window.size(), 0);
  bool fits = shift.size() == options.window.size();
  for (std::size_t i = 0; fits && i < shift.size(); ++i) fits = shift[i] < options.window[i];
  if (!fits) {
    std::vector<std::int64_t> half;
    for (const std::int64_t extent : options.window) half.push_back(extent / 2);
    site.error("shift",
               concat("[", join(shift, ", "), "] must be less than the window [", join(options.window, ", "),
                      "] along each axis; use [", join(half, ", "), "]"));
  }
  return shift;
}

WindowAttention attention_of(const LayerSite& site, const WindowedAttentionOptions& options,
                             const std::vector<std::int64_t>& shift) {
  WindowAttention attention{checked_head_size(site, options.heads), checked_window(site, options.window),
                            Shape(shift), options.dropout, site.path};
  if (options.circular) attention.wrapped[attention.wrapped.rank() - 1] = 0;
  return attention;
}

}  // namespace

WindowedAttention::WindowedAttention(const LayerSite& site, const WindowedAttentionOptions& options)
    : Layer(site.input),
      shift_(checked_shift(site, options)),
      attention_(attention_of(site, options, shift_)),
      projections_(site, attention_.head_size) {
  std::int64_t positions = 1;
  for (const std::int64_t extent : attention_.window) positions *= 2 * extent - 1;
  table_ = site.parameter("relative_position_bias_table", {positions, options.heads},
                          {Initial::Kind::kNormal, 0.02});
}

/// Each point takes the value `shift` points on, or back (torch.roll): a field cropped at one end and padded
/// with the same points at the other.
Variable WindowedAttention::shifted(Tape& tape, const Variable& x, int direction) const {
  Padding padding;
  for (const std::int64_t shift : shift_) {
    padding.dims.push_back({-direction * shift, direction * shift, Edge::kPeriodic, Edge::kPeriodic});
  }
  return pad(tape, x, padding);
}

Variable WindowedAttention::run(Tape& tape, const Variable& x, const Variable& residual) const {
  const bool shifts = std::any_of(shift_.begin(), shift_.end(), [](std::int64_t shift) { return shift > 0; });
  const Variable qkv = projections_.packed(tape, shifts ? shifted(tape, x, 1) : x);
  const Variable y = window_attention(tape, qkv, table_, attention_);
  if (!shifts) return projections_.output(tape, y, residual);
  return add_residual(tape, shifted(tape, projections_.output(tape, y, Variable()), -1), residual);
}

}  // namespace jigsaw::inline layers
