#include "evaluate/image_scorer.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/text.h"
#include "comm/agreement.h"
#include "evaluate/image_measures.h"
#include "evaluate/surface_distance.h"

namespace jigsaw::inline evaluate {

void ImageScorer::score(const ImageRegion& part, HeldPart held) {
  held_ = std::move(held);
  if (data_.options().classes > 0) {
    score_labels(part);
  } else {
    score_numbers(part);
  }
  held_ = {};
}

/// Those of training, or where none are known those of the files.
std::string ImageScorer::units_of(const Field& field) const {
  const std::string& units = data_.statistics().of(field).units;
  return units.empty() ? data_.files().units(field) : units;
}

void ImageScorer::add(const std::string& target, const std::string& name, std::optional<std::int64_t> label,
                      const std::string& units, double value) {
  const auto known = std::find_if(measures_.begin(), measures_.end(), [&](const ImageMeasure& measure) {
    return measure.target == target && measure.name == name && measure.label == label;
  });
  ImageMeasure& measure = known == measures_.end()
                              ? measures_.emplace_back(ImageMeasure{target, name, label, units, {}})
                              : *known;
  measure.values.push_back(value);
}

std::vector<double> ImageScorer::truth_of(const Field& field, std::int64_t image) const {
  std::vector<double> truth(static_cast<std::size_t>(held_.box.extent.count()));
  if (!truth.empty()) data_.files().read(field, image, held_.box, truth);
  return truth;
}

std::vector<double> ImageScorer::channel(std::size_t number, std::size_t of) const {
  std::vector<double> values;
  for (std::size_t i = number; i < held_.values.size(); i += of) values.push_back(held_.values[i]);
  return values;
}

namespace {

/// Calls f(index in `held`) for the points of a box.
template <typename F>
void for_each_index(const Box& held, const Box& box, const F& f) {
  const Shape strides = held.extent.strides();
  Shape at = box.begin;
  for (std::int64_t i = 0, count = box.extent.count(); i < count; ++i) {
    std::int64_t index = 0;
    for (int d = 0; d < at.rank(); ++d) index += (at[d] - held.begin[d]) * strides[d];
    f(static_cast<std::size_t>(index));
    for (int d = at.rank() - 1; d >= 0; --d) {
      if (++at[d] < box.end(d)) break;
      at[d] = box.begin[d];
    }
  }
}

/// Sums of errors over points where both numbers are there.
struct ErrorSums {
  double count = 0, squares = 0, sizes = 0, errors = 0;
  double not_finite = 0;  ///< predictions where there is a truth
};

ErrorSums errors_of(const HeldPart& held, const std::vector<double>& values,
                    const std::vector<double>& truth) {
  ErrorSums sums;
  for_each_index(held.box, held.own, [&](std::size_t i) {
    const double error = values[i] - truth[i];
    if (!std::isnan(truth[i]) && !std::isfinite(values[i])) sums.not_finite += 1;
    if (std::isnan(error)) return;
    sums.count += 1;
    sums.squares += error * error;
    sums.sizes += std::abs(error);
    sums.errors += error;
  });
  return sums;
}

}  // namespace

void ImageScorer::score_numbers(const ImageRegion& region) {
  const std::vector<Channel>& targets = data_.channels().targets;
  for (std::size_t c = 0; c < targets.size(); ++c) {
    ErrorSums errors, input_errors;
    PointSum similarity, input_similarity;
    together(world_, [&] {
      const std::vector<double> truth = truth_of(targets[c].field, region.image),
                                values = channel(c, targets.size());
      if (truth.empty()) return;
      errors = errors_of(held_, values, truth);
      similarity = structural_similarity(region.box, held_.box, values, truth, held_.own, ranges_[c]);
      if (noisy_ == nullptr) return;
      const std::vector<double> input = noisy_->field(targets[c].field, region.image, held_.box);
      input_errors = errors_of(held_, input, truth);
      input_similarity = structural_similarity(region.box, held_.box, input, truth, held_.own, ranges_[c]);
    });
    const std::vector<double> sums = world_.all_reduce(
        std::vector<double>{errors.count, errors.squares, errors.sizes, errors.errors, similarity.sum,
                            similarity.count, input_errors.squares, input_similarity.sum, errors.not_finite},
        ReduceOp::kSum);
    not_finite_ += sums[8];
    const std::string& name = targets[c].name;
    const std::string units = units_of(targets[c].field);
    const auto psnr = [&](double squares) {
      return 20 * std::log10(ranges_[c] / std::sqrt(squares / sums[0]));
    };
    add(name, "rmse", {}, units, std::sqrt(sums[1] / sums[0]));
    add(name, "mae", {}, units, sums[2] / sums[0]);
    add(name, "bias", {}, units, sums[3] / sums[0]);
    add(name, "psnr", {}, "dB", psnr(sums[1]));
    add(name, "ssim", {}, "", sums[4] / sums[5]);
    if (noisy_ == nullptr) continue;
    add(name, "input_psnr", {}, "dB", psnr(sums[6]));
    add(name, "input_ssim", {}, "", sums[7] / sums[5]);
  }
}

void ImageScorer::score_labels(const ImageRegion& region) {
  const Channel& target = data_.channels().targets[0];
  const bool regions = !data_.options().regions.empty();
  const std::int64_t classes = data_.options().label_outputs();
  // Of each class or region; then the points that are right, and all.
  std::vector<double> truth, counts(static_cast<std::size_t>(3 * classes + 2), 0.0);
  together(world_, [&] {
    truth = truth_of(target.field, region.image);
    for (double& label : truth)
      if (!std::isnan(label)) label = data_.checked_label(label, target, region.image);
    for (std::size_t i = 0; i < truth.size(); ++i) {
      if (std::isnan(truth[i]))
        held_.values[i] = std::nan("");
      else if (std::isnan(held_.values[i]))
        throw DataError(concat("the prediction of ", data_.files().path(region.image),
                               " holds no label at a point whose label counts"));
    }
    for_each_index(held_.box, held_.own, [&](std::size_t i) {
      if (std::isnan(truth[i])) return;
      const auto labelled = static_cast<std::int64_t>(truth[i]),
                 chosen = static_cast<std::int64_t>(held_.values[i]);
      const auto count = [&](std::int64_t k, bool is, bool said) {
        counts[static_cast<std::size_t>(k)] += is;
        counts[static_cast<std::size_t>(classes + k)] += said;
        counts[static_cast<std::size_t>(2 * classes + k)] += is && said;
      };
      for (std::int64_t k = 0; regions && k < classes; ++k)
        count(k, data_.labels().in_region(labelled, k), data_.labels().in_region(chosen, k));
      if (!regions) {
        count(labelled, true, labelled == chosen);
        if (labelled != chosen) count(chosen, false, true);
      }
      counts[static_cast<std::size_t>(3 * classes)] += labelled == chosen;
      counts[static_cast<std::size_t>(3 * classes + 1)] += 1;
    });
  });
  counts = world_.all_reduce(counts, ReduceOp::kSum);
  ImageSource source = data_.files().source(data_.channels().inputs[0].field.variable, region.image);
  if (source.spacing.empty()) source = data_.files().source(target.field.variable, region.image);
  const std::vector<double>& common = data_.options().spacing;
  const bool known = !common.empty() || !source.spacing.empty();
  const std::vector<double> spacing =
      !common.empty() ? common
      : known         ? source.spacing
                      : std::vector<double>(static_cast<std::size_t>(region.box.begin.rank()), 1.0);
  PointSum all, foreground;
  for (std::int64_t k = 0; k < classes; ++k) {
    const auto at = [&](std::int64_t kind) { return counts[static_cast<std::size_t>(kind * classes + k)]; };
    const double both = at(0) + at(1), dice = both > 0 ? 2 * at(2) / both : std::nan("");
    add(target.name, "dice", k, "", dice);
    for (PointSum* sum : {&all, &foreground}) {
      if (std::isnan(dice) || (sum == &foreground && k == 0)) continue;
      sum->sum += dice;
      sum->count += 1;
    }
  }
  add(target.name, "mean_dice", {}, "", all.sum / all.count);
  if (!regions) add(target.name, "foreground_dice", {}, "", foreground.sum / foreground.count);
  add(target.name, "accuracy", {}, "", counts[counts.size() - 2] / counts.back());
  for (std::int64_t k = regions ? 0 : 1; k < classes; ++k)
    add(target.name, "hd95", k, known ? "mm" : "points", surface_distance(region, truth, k, spacing));
}

/// 1 where a point's class belongs to a region, else 0; NaN stays.
std::vector<double> ImageScorer::inside(const std::vector<double>& labels, std::int64_t region) const {
  std::vector<double> result = labels;
  for (double& label : result) {
    if (!std::isnan(label))
      label = data_.labels().in_region(static_cast<std::int64_t>(label), region) ? 1.0 : 0.0;
  }
  return result;
}

/// The points of all ranks at one; elsewhere none.
std::vector<std::int32_t> ImageScorer::gathered(const std::vector<std::int32_t>& points, int root) {
  const std::string bytes(reinterpret_cast<const char*>(points.data()), points.size() * sizeof(std::int32_t));
  std::vector<std::int32_t> all;
  for (const std::string& part : world_.gather_text(bytes, root)) {
    const std::size_t before = all.size();
    all.resize(before + part.size() / sizeof(std::int32_t));
    if (!part.empty()) std::memcpy(all.data() + before, part.data(), part.size());
  }
  return all;
}

double ImageScorer::surface_distance(const ImageRegion& region, const std::vector<double>& truth,
                                     std::int64_t label, const std::vector<double>& spacing) {
  std::vector<std::int32_t> chosen, labelled;
  if (!held_.own.empty()) {
    const auto surface_of = [&](const std::vector<double>& labels) {
      return data_.options().regions.empty()
                 ? surface_points(region.box, held_.box, labels, held_.own, static_cast<double>(label))
                 : surface_points(region.box, held_.box, inside(labels, label), held_.own, 1.0);
    };
    chosen = surface_of(held_.values);
    labelled = surface_of(truth);
  }
  const int root = static_cast<int>(label % world_.size());
  chosen = gathered(chosen, root);
  labelled = gathered(labelled, root);
  const double distance = world_.rank() == root ? hausdorff95(chosen, labelled, spacing) : 0.0;
  return world_.all_reduce(std::vector<double>{distance}, ReduceOp::kSum)[0];
}

std::vector<std::string> names_of_parts(const ImageData& data, const std::vector<ImageRegion>& parts) {
  std::vector<std::string> names;
  for (const ImageRegion& region : parts) {
    const ImageSource source = data.files().source(data.channels().inputs[0].field.variable, region.image);
    std::string name = source.path;
    if (!source.group.empty()) name += concat(" ", source.group);
    if (std::find(source.dims.begin(), source.dims.end(), ImageDim::kSample) != source.dims.end())
      name += concat(" sample ", source.sample);
    if (!(region.box == Box::whole(data.files().extents(region.image)))) name += concat(" ", region.box);
    names.push_back(name);
  }
  return names;
}

}  // namespace jigsaw::inline evaluate
