#include "images/image_reader.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "samples/piece.h"
#include "samples/strided_copy.h"

namespace jigsaw::inline images {

namespace {

/// The spatial part of a piece of [B, space…, C].
Box space_of(const Box& piece) {
  Box space;
  for (int d = 1; d + 1 < piece.begin.rank(); ++d) {
    space.begin.append(piece.begin[d]);
    space.extent.append(piece.extent[d]);
  }
  return space;
}

/// Calls f(index in the box, row-major index in the image) for every point of a box of an image.
template <typename F>
void for_each_point(const Shape& image, const Box& box, const F& f) {
  const Shape strides = image.strides();
  Shape at = box.begin;
  const std::int64_t count = box.extent.count();
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t index = 0;
    for (int d = 0; d < at.rank(); ++d) index += at[d] * strides[d];
    f(static_cast<std::size_t>(i), index);
    for (int d = at.rank() - 1; d >= 0; --d) {
      if (++at[d] < box.end(d)) break;
      at[d] = box.begin[d];
    }
  }
}

}  // namespace

/// What one sample needs of the files, each box of a field read once. Boxes are those of the sample, mirrored
/// if it is.
class ImageReader::Values {
 public:
  Values(const ImageData& data, Split split, const ImageSample& sample)
      : data_(data), split_(split), sample_(sample) {}

  const ImageSample& sample() const { return sample_; }

  std::span<const double> of(const Field& field, const Box& box, bool label = false) {
    if (sample_.warp) return warped(field, box, label);
    return find(clean_, field, box,
                [&](const Box& there, std::vector<double>& values) { read_part(field, there, values); });
  }
  /// Of a sample whose points lie between those of the image: which of them lie beyond a part that is smaller
  /// than the crop. Empty where it is not.
  std::vector<bool> beyond(const Box& box) const {
    const Box &part = sample_.part, &crop = sample_.box;
    if (!sample_.warp || intersect(part, crop) == crop) return {};
    std::vector<bool> result;
    for (const Warp::Point& point : sources(box)) {
      bool outside = false;
      for (int d = 0; d < box.begin.rank(); ++d) {
        const double x = point[static_cast<std::size_t>(d)] + 0.5;
        outside = outside || (crop.extent[d] > part.extent[d] && (x < static_cast<double>(part.begin[d]) ||
                                                                  x > static_cast<double>(part.end(d))));
      }
      result.push_back(outside);
    }
    return result;
  }
  /// The same, blurred where the sample is.
  std::vector<double> input(const Field& field, const Box& box) {
    Box wide = box;
    const std::int64_t reach = blur_reach(sample_.blur);
    for (int d = 0; d < box.begin.rank(); ++d) {
      wide.begin[d] -= reach;
      wide.extent[d] += 2 * reach;
    }
    const std::span<const double> values = of(field, wide);
    std::vector<double> result(values.begin(), values.end());
    return reach > 0 ? blurred(std::move(result), wide.extent, sample_.blur) : result;
  }
  /// Normal noise of deviation 1 that is added to inputs.
  std::vector<double> added_noise(int channel, const Box& box) const {
    std::vector<double> values(sample_.noise > 0 ? static_cast<std::size_t>(box.extent.count()) : 0);
    if (values.empty()) return values;
    const auto channels = std::ssize(data_.channels().inputs);
    for_each_point(sample_.box.extent, box, [&](std::size_t i, std::int64_t point) {
      values[i] = data_.added_noise().normal(sample_.noise_position,
                                             static_cast<std::uint64_t>(point * channels + channel));
    });
    return values;
  }
  /// Normal noise of deviation 1 of one of the fields.
  std::span<const double> noise(const Field& field, const Box& box) {
    return find(noise_, field, box, [&](const Box& there, std::vector<double>& values) {
      const std::vector<Channel>& fields = data_.channels().inputs;
      const auto number = std::find_if(fields.begin(), fields.end(),
                                       [&](const Channel& channel) { return channel.field == field; }) -
                          fields.begin();
      for_each_point(data_.files().extents(sample_.image), there, [&](std::size_t i, std::int64_t point) {
        const auto element = static_cast<std::uint64_t>(point * std::ssize(fields) + number);
        values[i] = data_.noise(split_).normal(sample_.noise_position, element);
      });
    });
  }
  /// 1 where a point is scored, else 0.
  std::span<const double> scored(const Box& box) {
    return find(scored_, {}, box, [&](const Box& there, std::vector<double>& values) {
      const Box inside = relative_to(intersect(sample_.scored, there), there);
      std::fill(values.begin(), values.end(), 0.0);
      if (inside.empty()) return;
      for_each_point(there.extent, inside,
                     [&](std::size_t, std::int64_t point) { values[static_cast<std::size_t>(point)] = 1.0; });
    });
  }

 private:
  struct Known {
    Field field;
    Box box;
    std::vector<double> values;
  };

  /// Where the sample's points lie between those of the image.
  std::vector<Warp::Point> sources(const Box& box) const {
    std::vector<Warp::Point> points;
    points.reserve(static_cast<std::size_t>(box.extent.count()));
    Shape at = box.begin;
    for (std::int64_t i = 0, count = box.extent.count(); i < count; ++i) {
      points.push_back(sample_.warp->source(at));
      for (int d = at.rank() - 1; d >= 0; --d) {
        if (++at[d] < box.end(d)) break;
        at[d] = box.begin[d];
      }
    }
    return points;
  }
  /// NaN beyond the part that is seen.
  void read_part(const Field& field, const Box& box, std::vector<double>& values) {
    const Box inside = intersect(box, sample_.part);
    if (inside == box) return data_.files().read(field, sample_.image, box, values);
    std::fill(values.begin(), values.end(), std::nan(""));
    if (inside.empty()) return;
    std::vector<double> there(static_cast<std::size_t>(inside.extent.count()));
    data_.files().read(field, sample_.image, inside, there);
    for_each_point(box.extent, relative_to(inside, box), [&](std::size_t i, std::int64_t point) {
      values[static_cast<std::size_t>(point)] = there[i];
    });
  }
  /// Values at these places.
  std::span<const double> warped(const Field& field, const Box& box, bool nearest) {
    const auto known = std::find_if(clean_.begin(), clean_.end(), [&](const Known& candidate) {
      return candidate.field == field && candidate.box == box;
    });
    if (known != clean_.end()) return known->values;
    const std::vector<Warp::Point> points = sources(box);
    const Interpolation between(sample_.part, nearest);
    const Box needed = between.needed(points);
    std::vector<double> source(static_cast<std::size_t>(needed.extent.count()));
    data_.files().read(field, sample_.image, needed, source);
    std::vector<double> values;
    values.reserve(points.size());
    for (const Warp::Point& point : points) values.push_back(between.at(point, needed, source));
    return clean_.emplace_back(Known{field, box, std::move(values)}).values;
  }

  template <typename Fill>
  std::span<const double> find(std::vector<Known>& known, const Field& field, const Box& box,
                               const Fill& fill) {
    const auto found = std::find_if(known.begin(), known.end(), [&](const Known& candidate) {
      return candidate.field == field && candidate.box == box;
    });
    if (found != known.end()) return found->values;
    Box there = box;
    for (int d = 0; d < box.begin.rank(); ++d) {
      const bool mirrored = sample_.mirrored[static_cast<std::size_t>(d)];
      there.begin[d] = sample_.box.begin[d] + (mirrored ? sample_.box.extent[d] - box.end(d) : box.begin[d]);
    }
    std::vector<double> values(static_cast<std::size_t>(box.extent.count()));
    fill(there, values);
    // Moving an entry when the list grows leaves its values where they are.
    return known.emplace_back(Known{field, box, mirror(std::move(values), box.extent)}).values;
  }

  std::vector<double> mirror(std::vector<double> values, const Shape& extents) const {
    if (std::none_of(sample_.mirrored.begin(), sample_.mirrored.end(), [](bool m) { return m; }))
      return values;
    std::int64_t first = 0;
    std::vector<std::int64_t> strides;
    for (int d = 0; d < extents.rank(); ++d) {
      const std::int64_t stride = extents.strides()[d];
      const bool mirrored = sample_.mirrored[static_cast<std::size_t>(d)];
      strides.push_back(mirrored ? -stride : stride);
      if (mirrored) first += (extents[d] - 1) * stride;
    }
    std::vector<double> result(values.size());
    copy_strided(values, first, strides, extents, result);
    return result;
  }

  const ImageData& data_;
  Split split_;
  ImageSample sample_;
  std::vector<Known> clean_, noise_, scored_;
};

Batch ImageReader::read(const SampleRequest& request, const Context& context) {
  const auto samples = std::ssize(request.samples);
  const Shape space = data_.grid().shape();
  require_piece(request.input, samples, space, data_.channels().inputs.size());
  const DataOptions& options = data_.options();
  require_piece(request.target, samples, space,
                options.regions.empty() ? data_.channels().targets.size() : options.regions.size());
  require(request.rollout == 1, "images have no rollout");
  require(request.dtype != DType::kBfloat16, "batches are float32 or float64");
  Batch batch;
  batch.input = Array(context, request.input.extent, request.dtype, Purpose::kInput);
  batch.targets.emplace_back(context, request.target.extent, request.dtype, Purpose::kInput);
  if (request.baseline && data_.options().task == Task::kDenoise) {
    batch.baseline = Array(context, request.target.extent, request.dtype, Purpose::kInput);
  }
  if (request.origin && options.classes == 0)
    batch.states.emplace_back(context, request.target.extent, DType::kFloat64, Purpose::kInput);
  for (std::int64_t number = 0; number < samples; ++number) {
    RandomPosition position = request.position;
    position.sample += static_cast<std::uint64_t>(number);
    Values values(data_, request.split,
                  data_.sample(request.split, request.samples[static_cast<std::size_t>(number)], position));
    const auto holds = [&](const Box& piece) {
      return !piece.empty() && number >= piece.begin[0] && number < piece.end(0);
    };
    if (holds(request.input)) fill_inputs(request, number, values, batch);
    if (holds(request.target)) fill_targets(request, number, values, batch);
  }
  return batch;
}

void ImageReader::fill_inputs(const SampleRequest& request, std::int64_t number, Values& values,
                              Batch& batch) const {
  const Box space = space_of(request.input);
  const bool noisy = data_.options().task == Task::kDenoise;
  const std::vector<bool> beyond = values.beyond(space);
  for (int c = 0; c < static_cast<int>(data_.channels().inputs.size()); ++c) {
    if (!covers(request.input, c)) continue;
    const Field& field = data_.channels().inputs[static_cast<std::size_t>(c)].field;
    const InputScale scale = data_.scale_of(values.sample().image, static_cast<std::size_t>(c));
    const std::vector<double> x = values.input(field, space), added = values.added_noise(c, space);
    const double brightness = values.sample().brightness, shift = values.sample().shift,
                 gamma = values.sample().gamma, grain = values.sample().noise;
    const std::span<const double> noise = noisy ? values.noise(field, space) : std::span<const double>();
    const double sigma = data_.options().noise_sigma.value_or(0.0);
    write_channel(batch.input, request.input, number, c, [&](std::size_t i) {
      if (std::isnan(x[i]) || scale.stays_zero(x[i]) || (!beyond.empty() && beyond[i])) return 0.0;
      const double normalised = brightness * scale.of(x[i] + (noisy ? sigma * noise[i] : 0.0)) + shift;
      return (gamma == 1 ? normalised : gamma_of(normalised, gamma)) + (grain > 0 ? grain * added[i] : 0.0);
    });
  }
}

void ImageReader::fill_targets(const SampleRequest& request, std::int64_t number, Values& values,
                               Batch& batch) const {
  const Box space = space_of(request.target);
  const DataOptions& options = data_.options();
  const bool denoise = options.task == Task::kDenoise;
  const bool increment = denoise && options.predict == Predict::kIncrement;
  const std::span<const double> scored = values.scored(space);
  const std::vector<bool> beyond = values.beyond(space);
  for (int c = 0; c < static_cast<int>(options.classes > 0 ? options.label_targets()
                                                           : std::ssize(data_.channels().targets));
       ++c) {
    if (!covers(request.target, c)) continue;
    const Channel& channel = data_.channels().targets[options.classes > 0 ? 0 : static_cast<std::size_t>(c)];
    const std::span<const double> y = values.of(channel.field, space, options.classes > 0);
    const auto write = [&](Array& array, const auto& value) {
      write_channel(array, request.target, number, c, [&](std::size_t i) {
        const bool counts = scored[i] != 0.0 && !std::isnan(y[i]) && (beyond.empty() || !beyond[i]);
        return counts ? value(i) : std::nan("");
      });
    };
    if (options.classes > 0) {
      write(batch.targets[0], [&](std::size_t i) {
        const double label = data_.checked_label(y[i], channel, values.sample().image);
        if (options.regions.empty() || std::isnan(label)) return label;
        return data_.labels().in_region(static_cast<std::int64_t>(label), c) ? 1.0 : 0.0;
      });
      continue;
    }
    const std::span<const double> noise =
        denoise ? values.noise(channel.field, space) : std::span<const double>();
    const FieldStatistics& statistics = data_.statistics().of(channel.field);
    const double mean = statistics.mean, scale = 1 / statistics.deviation;
    write(batch.targets[0], [&](std::size_t i) {
      return increment ? -noise[i] : (channel.transform.forward(y[i]) - mean) * scale;
    });
    if (!batch.states.empty()) write(batch.states[0], [&](std::size_t i) { return y[i]; });
    if (!batch.baseline.defined()) continue;
    const double sigma = options.noise_sigma.value_or(0.0);
    write(batch.baseline,
          [&](std::size_t i) { return increment ? 0.0 : (y[i] + sigma * noise[i] - mean) * scale; });
  }
}

}  // namespace jigsaw::inline images
