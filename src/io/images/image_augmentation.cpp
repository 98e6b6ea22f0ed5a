// What data.augment does to training samples.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

#include "comm/agreement.h"
#include "images/image_data.h"
#include "samples/shared_work.h"

namespace jigsaw::inline images {

namespace {

/// Numbers of the draws of a sample.
enum Draw : std::uint64_t {
  kForeground,
  kClass,
  kPoint,
  kPlace,  ///< and the next two: along each dim
  kRotates = 8,
  kScales,
  kDeforms,
  kGamma,
  kNoise,
  kBlur,
  kBrightness,
  kShift,
  kAngle = 16,  ///< and the next two: about each axis
  kScale = 20,
  kGammaSize,
  kNoiseSize,
  kBlurSize,
  kBrightnessSize,
  kShiftSize
};

/// So many points of a class are kept of what is read at a time.
constexpr std::size_t kPointsOfAClass = 32;

/// A number of [0, count) of 32 random bits.
std::int64_t below(std::uint32_t bits, std::int64_t count) {
  return static_cast<std::int64_t>(std::uint64_t{bits} * static_cast<std::uint64_t>(count) >> 32);
}

}  // namespace

/// Of each class points that lie evenly among all of it in the order of the image.
void ImageData::find_foreground(Communicator& communicator) {
  const std::vector<Slice> slices = slices_of(train_);
  const auto count = std::ssize(slices);
  const std::int64_t ranks = communicator.size(), rank = communicator.rank();
  const std::int64_t first = count * rank / ranks, last = count * (rank + 1) / ranks;
  const Field& field = channels_.targets.front().field;
  std::vector<std::int64_t> found;  // image, class, point
  together(communicator, [&] {
    for (std::int64_t number = first; number < last; ++number) {
      const auto& [image, box] = slices[static_cast<std::size_t>(number)];
      std::vector<double> labels(static_cast<std::size_t>(box.extent.count()));
      files_->read(field, image, box, labels);
      std::map<std::int64_t, std::vector<std::int64_t>> points;
      const Shape strides = files_->extents(image).strides(), inside = box.extent.strides();
      for (std::size_t i = 0; i < labels.size(); ++i) {
        const double label =
            std::isnan(labels[i]) ? 0 : checked_label(labels[i], channels_.targets[0], image);
        if (!(label > 0)) continue;
        std::int64_t rest = static_cast<std::int64_t>(i), point = 0;
        for (int d = 0; d < strides.rank(); ++d) {
          point += (box.begin[d] + rest / inside[d]) * strides[d];
          rest %= inside[d];
        }
        points[static_cast<std::int64_t>(label)].push_back(point);
      }
      for (const auto& [label, all] : points) {
        const std::size_t kept = std::min(all.size(), kPointsOfAClass);
        for (std::size_t i = 0; i < kept; ++i)
          found.insert(found.end(), {image, label, all[i * all.size() / kept]});
      }
    }
  });
  const std::string own(reinterpret_cast<const char*>(found.data()), found.size() * sizeof(std::int64_t));
  std::string all;
  for (const std::string& part : communicator.gather_text(own)) all += part;
  all = communicator.broadcast_text(all);
  std::vector<std::int64_t> numbers(all.size() / sizeof(std::int64_t));
  if (!all.empty()) std::memcpy(numbers.data(), all.data(), all.size());
  for (Region& region : train_) keep_foreground(numbers, region);
}

/// Takes over what lies in a region. @param found  image, class, point; and so on.
void ImageData::keep_foreground(const std::vector<std::int64_t>& found, Region& region) const {
  const Shape strides = files_->extents(region.image).strides();
  for (std::size_t i = 0; i < found.size(); i += 3) {
    if (found[i] != region.image) continue;
    std::int64_t rest = found[i + 2];
    bool inside = true;
    for (int d = 0; d < strides.rank(); ++d) {
      const std::int64_t at = rest / strides[d];
      rest %= strides[d];
      inside = inside && at >= region.box.begin[d] && at < region.box.end(d);
    }
    if (inside) region.foreground[found[i + 1]].push_back(found[i + 2]);
  }
}

/// Lets the box of a crop hold a point of a class, where that is drawn.
void ImageData::move_to_foreground(const Region& region, const RandomPosition& position, Box& box) const {
  if (region.foreground.empty() || draws_.uniform(position, kForeground) >= options_.augment.foreground)
    return;
  auto chosen = region.foreground.begin();
  std::advance(chosen, below(draws_.bits(position, kClass), std::ssize(region.foreground)));
  const std::vector<std::int64_t>& points = chosen->second;
  std::int64_t rest =
      points[static_cast<std::size_t>(below(draws_.bits(position, kPoint), std::ssize(points)))];
  const Shape strides = files_->extents(region.image).strides();
  for (int d = 0; d < box.begin.rank(); ++d) {
    const std::int64_t at = rest / strides[d];
    rest %= strides[d];
    if (box.extent[d] >= region.box.extent[d]) continue;
    const std::int64_t least = std::max(region.box.begin[d], at + 1 - box.extent[d]),
                       most = std::min(region.box.end(d) - box.extent[d], at);
    box.begin[d] =
        least + below(draws_.bits(position, kPlace + static_cast<std::uint64_t>(d)), most + 1 - least);
  }
}

void ImageData::augment(const RandomPosition& position, ImageSample& sample) const {
  const AugmentOptions& options = options_.augment;
  const auto is_drawn = [&](Draw kind, const char* name) {
    return draws_.uniform(position, kind) < options.probability_of(name);
  };
  const auto between = [&](std::uint64_t number, double least, double most) {
    return least + (most - least) * draws_.uniform(position, number);
  };
  const int dims = sample.box.begin.rank();
  Warp::Drawn drawn;
  drawn.mirrored = sample.mirrored;
  drawn.position = position;
  bool warps = false;
  if (!options.rotation.empty() && is_drawn(kRotates, "rotation")) {
    for (std::size_t a = 0; a < (dims == 3 ? 3U : 1U); ++a) {
      const double most = options.rotation[options.rotation.size() == 1 ? 0 : a] * std::numbers::pi / 180;
      drawn.angles[a] = between(kAngle + a, -most, most);
    }
    warps = true;
  }
  if (!options.scale.empty() && is_drawn(kScales, "scale")) {
    drawn.scale = between(kScale, options.scale[0], options.scale[1]);
    warps = true;
  }
  if (options.elastic > 0 && is_drawn(kDeforms, "elastic")) {
    drawn.elastic = options.elastic;
    drawn.elastic_spacing = options.elastic_spacing;
    warps = true;
  }
  if (!options.brightness.empty() && is_drawn(kBrightness, "brightness"))
    sample.brightness = between(kBrightnessSize, options.brightness[0], options.brightness[1]);
  if (options.shift > 0 && is_drawn(kShift, "shift"))
    sample.shift = between(kShiftSize, -options.shift, options.shift);
  if (!options.gamma.empty() && is_drawn(kGamma, "gamma"))
    sample.gamma = std::exp(between(kGammaSize, std::log(options.gamma[0]), std::log(options.gamma[1])));
  if (options.noise > 0 && is_drawn(kNoise, "noise")) sample.noise = between(kNoiseSize, 0, options.noise);
  if (options.blur > 0 && is_drawn(kBlur, "blur")) sample.blur = between(kBlurSize, 0, options.blur);
  if (!warps && sample.blur == 0) return;
  // Of the points of the crop: those of the file, where all are not brought to one spacing.
  std::vector<double> spacing = options_.spacing;
  if (spacing.empty()) spacing = files_->source(channels_.inputs[0].field.variable, sample.image).spacing;
  if (spacing.empty()) spacing.assign(static_cast<std::size_t>(dims), 1.0);
  sample.warp = std::make_shared<Warp>(sample.box, drawn, spacing, displacements_);
}

std::vector<double> ImageData::label_counts(Communicator& communicator) const {
  const std::vector<Slice> slices = slices_of(train_);
  const Channel& channel = channels_.targets.front();
  const auto classes = static_cast<std::size_t>(options_.classes);
  const auto of_slice = [&](std::int64_t number) {
    const auto& [image, box] = slices[static_cast<std::size_t>(number)];
    std::vector<double> labels(static_cast<std::size_t>(box.extent.count()));
    files_->read(channel.field, image, box, labels);
    std::vector<double> counts(classes);
    for (const double label : labels) {
      const double checked = std::isnan(label) ? label : checked_label(label, channel, image);
      if (!std::isnan(checked)) counts[static_cast<std::size_t>(checked)] += 1;
    }
    return counts;
  };
  const auto merge = [](double& total, double slice) { total += slice; };
  return share_wide_work(std::ssize(slices), classes, communicator, of_slice, 0.0, merge);
}

}  // namespace jigsaw::inline images
