#include "images/image_data.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <tuple>

#include "base/error.h"
#include "base/text.h"
#include "comm/agreement.h"
#include "config/config.h"
#include "fields/shared_files.h"
#include "fields/units.h"
#include "images/case_choice.h"
#include "images/image_reader.h"
#include "samples/moments.h"
#include "samples/shared_work.h"

namespace jigsaw::inline images {

ImageData::ImageData(const DataOptions& options, const std::filesystem::path& folder, std::uint64_t seed,
                     const std::vector<std::int64_t>& overlap, Communicator& communicator, const DataUse& use)
    : options_(options),
      labels_(options),
      places_(seed, RandomPurpose::kCrop, "place"),
      mirrors_(seed, RandomPurpose::kCrop, "mirror"),
      train_noise_(seed, RandomPurpose::kNoise, "train"),
      valid_noise_(seed, RandomPurpose::kNoise, "valid"),
      draws_(seed, RandomPurpose::kCrop, "augment"),
      displacements_(seed, RandomPurpose::kCrop, "elastic"),
      added_noise_(seed, RandomPurpose::kNoise, "augment") {
  paths_ = expand_together(options.files, folder, communicator);
  std::vector<std::string> all = paths_;
  std::vector<VariableOptions> opened = options.variables;
  if (use.train || use.valid) opened.insert(opened.end(), options.targets.begin(), options.targets.end());
  own_paths_ = expand_own_files(opened, folder, communicator, all);
  if (use.train)
    options_.train = with_cases_of_folds(options_.train, "train", "data.train", folder, communicator);
  if (use.valid)
    options_.valid = with_cases_of_folds(options_.valid, "val", use.valid_name, folder, communicator);
  const FileOpener open_file =
      share_files(all, Dimensions::kByNumber, options.external(), use.pass.cache, communicator);
  together(communicator, [&] {
    open(open_file, use);
    check_shape();
    if (use.train) train_ = regions(options_.train, "data.train");
    if (use.valid) valid_ = regions(options_.valid, use.valid_name);
    choose_crop(use.train);
    if (use.train) make_tiles(overlap);
    slices_of_all_ = slices_of(train_);
    training_slices_ = std::ssize(slices_of_all_);
    for (const Slice& slice : slices_of(valid_)) slices_of_all_.push_back(slice);
  });
  const StatisticsPass& pass = use.pass;
  if (pass.before) pass.before(*this);
  if (use.train && options_.augment.foreground > 0) find_foreground(communicator);
  const std::string* file = options_.statistics_file();
  const auto compute = [&](const Statistics* known) {
    if (!pass.spared) return compute_statistics(communicator, known, pass.progress);
    Statistics stand_ins = known == nullptr ? Statistics() : *known;
    take_given(stand_ins);
    return spared_statistics(pass, normalised(), 0, &stand_ins);
  };
  if (use.statistics) {
    statistics_ = compute(&*use.statistics);
  } else if (file == nullptr) {
    statistics_ =
        cached_statistics(pass, paths_, decides_statistics(), communicator, [&] { return compute(nullptr); });
  }
  if (!use.statistics && file != nullptr) statistics_ = shared_statistics(*file, folder, communicator);
  together(communicator, [&] {
    naming_statistics(use.statistics ? nullptr : file,
                      [&] { check_statistics(use.train || use.valid, pass.spared); });
    take_given(statistics_);
    for (const Channel& channel : channels_.targets) {
      if (options_.task == Task::kDenoise) {
        statistics_.fields[channel.name].increment_deviation = *options_.noise_sigma;
      }
    }
  });
  if (!pass.spared) find_scales(communicator);
}

void ImageData::open(const FileOpener& open_file, const DataUse& use) {
  std::vector<std::string> labels;
  if (options_.classes > 0) labels.push_back(options_.targets.front().name);
  files_ = std::make_unique<ImageFiles>(paths_, options_.dims, open_file, options_.spacing, labels,
                                        pairing_of(options_));
  make_channels(use);
  files_->end_selection();
}

namespace {

/// The fields of a variable that the files need not hold, by the names that the statistics know.
std::vector<Field> known_fields(const VariableOptions& variable, const Statistics* known) {
  std::vector<Field> fields;
  for (const double level : variable.levels) fields.push_back({variable.name, level});
  const auto has = [&](const Field& field) {
    return known != nullptr && known->fields.contains(field.name());
  };
  if (fields.empty() && !has({variable.name, {}})) {
    for (Field field{variable.name, 0.0}; has(field); *field.level += 1) fields.push_back(field);
  }
  if (fields.empty()) fields.push_back({variable.name, {}});
  return fields;
}

}  // namespace

void ImageData::make_channels(const DataUse& use) {
  const Statistics* known = use.statistics ? &*use.statistics : nullptr;
  const auto append = [&](std::vector<Channel>& channels, const std::vector<VariableOptions>& variables,
                          Role role, const char* key) {
    const bool in_files = role == Role::kPrognostic || use.train || use.valid;
    for (const VariableOptions& variable : variables) {
      const std::vector<std::string> own = in_files ? own_paths_[variable.files] : std::vector<std::string>{};
      paths_.insert(paths_.end(), own.begin(), own.end());
      for (const Field& field : in_files ? files_->select(variable, own) : known_fields(variable, known)) {
        const Channel channel{field.name(), role, field, {}, 0};
        if (std::find(channels.begin(), channels.end(), channel) != channels.end()) {
          throw ConfigError(concat(key, " names ", field.name(), " twice"));
        }
        channels.push_back(channel);
      }
    }
  };
  const bool map = options_.task == Task::kMap;
  append(channels_.inputs, options_.variables, Role::kPrognostic, "data.variables");
  append(channels_.targets, map ? options_.targets : options_.variables,
         map ? Role::kDiagnostic : Role::kPrognostic, map ? "data.targets" : "data.variables");
  set_known_values(channels_, options_);
  check_intensities();
  check_normalised_once();
  if (options_.classes > 0 && channels_.targets.size() != 1) {
    throw ConfigError(concat("data.targets must be one channel of labels with data.classes, and has ",
                             channels_.targets.size()));
  }
}

void ImageData::check_intensities() const {
  for (const Channel& target : channels_.targets) {
    if (options_.intensity_of(target.field) == IntensityOptions()) continue;
    throw ConfigError(concat("data.intensities is for ", target.name,
                             ", which is a target, too; give the input another name, with data_set"));
  }
  for (const auto& entry : options_.intensities) {
    const std::string& name = entry.first;
    const bool known = std::ranges::any_of(channels_.inputs, [&](const Channel& channel) {
      return channel.name == name || channel.field.variable == name;
    });
    if (known) continue;
    std::vector<std::string> inputs;
    for (const Channel& channel : channels_.inputs)
      for (const std::string& input : {channel.field.variable, channel.name})
        if (std::ranges::find(inputs, input) == inputs.end()) inputs.push_back(input);
    throw ConfigError(
        concat("data.intensities names ", name, ", which is no input; known: ", join(inputs, ", ")));
  }
}

/// Transforms that are normalisations, too, leave nothing to others.
void ImageData::check_normalised_once() const {
  for (const Channel& input : channels_.inputs) {
    const TransformKind kind = input.transform.kind;
    const bool given = options_.intensity_of(input.field).mean.has_value();
    if (kind != TransformKind::kMinMax && kind != TransformKind::kNone) continue;
    if (!given && options_.intensity == ImageIntensity::kDataSet) continue;
    throw ConfigError(concat("data.transforms says \"", input.transform.name(), "\" of ", input.name,
                             ", which is how it is normalised, and so does data.",
                             given ? "intensities" : "intensity", "; leave one of them out"));
  }
}

void ImageData::check_shape() const {
  if (options_.shape.empty()) return;
  const Shape wanted{std::span<const std::int64_t>(options_.shape)};
  for (std::int64_t image = 0; image < files_->count(); ++image) {
    if (wanted == files_->extents(image)) continue;
    throw ConfigError(
        concat("data.shape is ", wanted, ", but ", files_->path(image), " holds ", files_->extents(image)));
  }
}

std::int64_t ImageData::count(Split split) const {
  if (split == Split::kValid) return std::ssize(tiles_);
  return train_.empty() ? 0 : train_.back().crops_until;
}

std::vector<std::int64_t> ImageData::identity() const {
  std::vector<std::int64_t> numbers;
  for (const Region& region : train_) {
    numbers.push_back(region.image);
    for (const Shape& shape : {files_->extents(region.image), region.box.begin, region.box.extent}) {
      numbers.insert(numbers.end(), shape.begin(), shape.end());
    }
  }
  for (const std::vector<std::int64_t>& more : {files_->unordered_pairs(), files_->turned_files()})
    numbers.insert(numbers.end(), more.begin(), more.end());
  return numbers;
}

ImageSample ImageData::sample(Split split, std::int64_t number, const RandomPosition& position) const {
  const int space = crop_.rank();
  std::vector<bool> mirrored(static_cast<std::size_t>(space), false);
  if (split == Split::kValid) {
    const ImageTile& tile = tiles_.at(static_cast<std::size_t>(number));
    ImageSample sample{
        tile.image, tile.box, tile.scored, mirrored, {0, static_cast<std::uint64_t>(tile.image), 0}};
    sample.part = Box::whole(files_->extents(tile.image));
    return sample;
  }
  const auto region = std::find_if(train_.begin(), train_.end(),
                                   [&](const Region& candidate) { return number < candidate.crops_until; });
  require(region != train_.end(), "no such training sample");
  Box box{region->box.begin, crop_};
  const std::vector<ImageDim> dims = options_.space();
  for (int d = 0; d < space; ++d) {
    const auto axis = static_cast<std::uint64_t>(d);
    const std::int64_t more = region->box.extent[d] - crop_[d];
    const auto places = static_cast<std::uint64_t>(std::max<std::int64_t>(more, 0) + 1);
    box.begin[d] += static_cast<std::int64_t>(std::uint64_t{places_.bits(position, axis)} * places >> 32);
    if (more < 0) box.begin[d] -= -more / 2;  // with data.pad, in the middle, as window_begins() has it
    const bool may = std::find(options_.flips.begin(), options_.flips.end(),
                               dims[static_cast<std::size_t>(d)]) != options_.flips.end();
    mirrored[static_cast<std::size_t>(d)] = may && mirrors_.uniform(position, axis) < 0.5;
  }
  move_to_foreground(*region, position, box);
  ImageSample sample{region->image, box, box, mirrored, position};
  sample.part = region->box;
  augment(position, sample);
  return sample;
}

std::unique_ptr<SampleReader> ImageData::open_reader() {
  return std::make_unique<ImageReader>(*this);
}

template <typename Result, typename F, typename M>
Result ImageData::over_slices(const Field& field, const std::vector<Region>& regions,
                              Communicator& communicator, const F& of, Result nothing, const M& merge,
                              const std::function<void(double)>& did) const {
  const std::vector<Slice> slices = slices_of(regions);
  const ValueRange clip = options_.intensity_of(field).clip;
  std::vector<double> values;
  const auto of_slice = [&](std::int64_t i) {
    const Slice& slice = slices[static_cast<std::size_t>(i)];
    values.resize(static_cast<std::size_t>(slice.box.extent.count()));
    files_->read(field, slice.image, slice.box, values);
    if (clip.bounded())
      for (double& value : values) value = std::clamp(value, clip.low, clip.high);
    return of(std::span<double>(values));
  };
  return share_work(std::ssize(slices), communicator, of_slice, nothing, merge, did);
}

std::vector<Channel> ImageData::normalised() const {
  std::vector<Channel> channels = channels_.inputs;
  if (options_.classes > 0) return channels;
  for (const Channel& target : channels_.targets) {
    const bool known = std::any_of(channels.begin(), channels.end(),
                                   [&](const Channel& channel) { return channel.name == target.name; });
    if (!known) channels.push_back(target);
  }
  return channels;
}

/// What statistics depend on beside the files.
Json ImageData::decides_statistics() const {
  Json fields = Json::array(), parts = Json::array(), dims = Json::array();
  for (const ImageDim dim : options_.dims) dims.push_back(name(dim));
  for (const Channel& channel : normalised()) fields.push_back(channel.name);
  for (const std::vector<VariableOptions>* variables : {&options_.variables, &options_.targets}) {
    for (const VariableOptions& variable : *variables)
      if (!variable.data_set.empty()) fields.push_back({variable.name, variable.data_set});
  }
  Json own = Json::object();  // the list of all files does not say whose each is
  for (const std::vector<VariableOptions>* variables : {&options_.variables, &options_.targets}) {
    for (const VariableOptions& variable : *variables)
      if (const auto found = own_paths_.find(variable.files);
          found != own_paths_.end() && !found->second.empty())
        own[variable.name] = found->second;
  }
  for (const Region& region : train_) {
    Json part = {region.image};
    for (const Shape& shape : {region.box.begin, region.box.extent})
      for (const std::int64_t extent : shape) part.push_back(extent);
    parts.push_back(part);
  }
  Json decides = {{"fields", fields}, {"parts", parts}, {"dims", dims}};
  if (!own.empty()) decides["own_files"] = own;
  if (!options_.intensities.empty())
    decides["intensities"] = form_of<decltype(options_.intensities)>()->write(options_.intensities);
  if (!options_.transforms.empty())
    decides["transforms"] = form_of<decltype(options_.transforms)>()->write(options_.transforms);
  if (!options_.spacing.empty()) decides["spacing"] = options_.spacing;
  if (const std::vector<std::int64_t> pairs = files_->unordered_pairs(); !pairs.empty())
    decides["pairs"] = pairs;
  if (const std::vector<std::int64_t> turned = files_->turned_files(); !turned.empty())
    decides["turned"] = turned;
  return decides;
}

void ImageData::take_given(Statistics& statistics) const {
  for (const Channel& input : channels_.inputs) {
    const IntensityOptions of = options_.intensity_of(input.field);
    if (of.mean)
      statistics.fields[input.name] = {files_->units(input.field), *of.mean, *of.deviation, 0,
                                       values_of(input.field)};
  }
}

std::string ImageData::values_of(const Field& field) const {
  const std::string clip = options_.intensity_of(field).clip_text(),
                    transform = options_.transform_of(field).name();
  return concat(clip, clip.empty() || transform.empty() ? "" : ", ", transform);
}

Statistics ImageData::compute_statistics(Communicator& communicator, const Statistics* known,
                                         const std::function<void(double)>& progress) const {
  Statistics statistics;
  const std::vector<Channel> channels = normalised();
  double before = 0;
  const auto did = [&](double part) {
    if (progress) progress((before + part) / static_cast<double>(channels.size()));
  };
  for (const Channel& channel : channels) {
    if (known != nullptr && known->fields.contains(channel.name)) {
      statistics.fields[channel.name] = known->fields.at(channel.name);
      continue;
    }
    if (const auto without_values = known_normalisation(files_->units(channel.field), channel)) {
      statistics.fields[channel.name] = *without_values;
      statistics.fields[channel.name].transform = values_of(channel.field);
      continue;
    }
    if (train_.empty()) {
      std::vector<std::string> names;
      for (const auto& [name, of] : known == nullptr ? Statistics().fields : known->fields)
        names.push_back(name);
      throw DataError(concat("the files hold ", channel.name,
                             ", which the model was not trained with; it has statistics of ",
                             names.empty() ? "nothing" : join(names, ", ")));
    }
    const auto moments_of = [&](std::span<double> values) {
      const ValuesBelow below = transform_values(channel.transform, values);
      return ImageMoments{RunningMoments::of(values), below};
    };
    const auto merge = [](ImageMoments& total, const ImageMoments& slice) {
      total.values.merge(slice.values);
      total.below.merge(slice.below);
    };
    const ImageMoments total =
        over_slices(channel.field, train_, communicator, moments_of, ImageMoments{}, merge, did);
    FieldStatistics& field = statistics.fields[channel.name];
    field = normalisation_of(files_->units(channel.field), channel, total.values, 0);
    field.transform = values_of(channel.field);
    double points = 0;
    for (const Region& region : train_) points += static_cast<double>(region.box.extent.count());
    statistics.seen[channel.name] = seen_values(total.values, points, total.below, channel.transform);
    before += 1;
  }
  return statistics;
}

double ImageData::checked_label(double value, const Channel& channel, std::int64_t image) const {
  if (options_.ignore_index && value == static_cast<double>(*options_.ignore_index))
    return std::numeric_limits<double>::quiet_NaN();
  if (const std::optional<double> known = labels_.class_of(value)) return *known;
  // As it is, for 1.0000001 is no label.
  const std::string text = value == std::floor(value) ? concat(value) : Json(value).dump();
  throw DataError(concat(channel.name, " in ", files_->source(channel.field.variable, image).path,
                         " holds the label ", text, known_labels(),
                         options_.ignore_index ? "" : "; others only as data.ignore_index"));
}

std::string ImageData::known_labels() const {
  if (!options_.labels.empty()) return ", which data.labels does not name";
  return concat("; labels are 0 to ", options_.classes - 1, " with data.classes ", options_.classes);
}

void ImageData::check_labels(std::int64_t slice, std::vector<double>& seen) const {
  const auto& [image, box] = slices_of_all_.at(static_cast<std::size_t>(slice));
  const Channel& channel = channels_.targets.front();
  std::vector<double> labels(static_cast<std::size_t>(box.extent.count()));
  files_->read(channel.field, image, box, labels);
  for (const double label : labels) {
    if (std::isnan(label)) continue;
    const double known = checked_label(label, channel, image);
    if (slice < training_slices_ && !std::isnan(known)) seen.at(static_cast<std::size_t>(known)) = 1;
  }
}

void ImageData::check_statistics(bool of_targets, bool spared) const {
  const auto check = [&](const Channel& channel, bool in_files) {
    const IntensityOptions intensity = options_.intensity_of(channel.field);
    if (intensity.mean && !statistics_.fields.contains(channel.name)) return;
    const FieldStatistics& found = statistics_.of(channel.field);
    const std::string units = in_files ? files_->units(channel.field) : "";
    if (!found.units.empty() && !units.empty() && !same_unit(found.units, units)) {
      throw DataError(concat("the statistics of ", channel.name, " are in \"", found.units,
                             "\", the files in \"", units, "\""));
    }
    if (!std::isfinite(found.mean)) {
      throw DataError(concat(channel.name, " is missing everywhere in data.train; leave it out"));
    }
    if (intensity.mean) return;
    const std::string clip = intensity.clip_text(), wanted = values_of(channel.field);
    if (found.transform != wanted && !spared) {
      const auto text = [](const std::string& of) { return of.empty() ? "values as they are" : of; };
      const bool clips = !clip.empty() || found.transform.starts_with("clip(");
      throw DataError(concat("the statistics of ", channel.name, " are of ", text(found.transform),
                             ", and with data.", clips ? "intensities" : "transforms", " they are of ",
                             text(wanted), "; data.normalization \"auto\" computes them anew"));
    }
    if (!(found.deviation > 1e-10 * std::abs(found.mean))) {
      throw DataError(concat(channel.name, " does not vary in data.train",
                             clip.empty() ? ", so it cannot be normalised; leave it out"
                                          : concat(" with data.intensities, ", clip,
                                                   ", so it cannot be normalised; clip it elsewhere")));
    }
  };
  for (const Channel& channel : channels_.inputs) check(channel, true);
  if (options_.classes > 0) return;
  for (const Channel& channel : channels_.targets) check(channel, of_targets);
}

namespace {

/// So finely percentiles are found: to this part of an image's range.
constexpr std::size_t kBins = 4096;

struct Ends {
  double least = std::numeric_limits<double>::infinity(), most = -std::numeric_limits<double>::infinity();
};
Ends ends_of(std::span<const double> values) {
  Ends ends;
  for (const double value : values) {
    ends.least = value < ends.least ? value : ends.least;
    ends.most = value > ends.most ? value : ends.most;
  }
  return ends;
}
void widen(Ends& ends, const Ends& other) {
  ends = {std::min(ends.least, other.least), std::max(ends.most, other.most)};
}

struct Histogram {
  std::array<double, kBins> counts{};

  /// The value below which this part of all lies; linear within a bin.
  double quantile(const Ends& ends, double part) const {
    const double width = (ends.most - ends.least) / static_cast<double>(kBins);
    double wanted = part * std::accumulate(counts.begin(), counts.end(), 0.0);
    for (std::size_t bin = 0; bin < kBins; ++bin) {
      if (wanted <= counts[bin] && counts[bin] > 0)
        return ends.least + width * (static_cast<double>(bin) + wanted / counts[bin]);
      wanted -= counts[bin];
    }
    return ends.most;
  }
};

}  // namespace

std::vector<std::pair<double, double>> ImageData::target_ranges(Communicator& communicator) const {
  std::vector<std::pair<double, double>> result;
  for (const Channel& channel : channels_.targets) {
    const Ends ends = over_slices(channel.field, valid_, communicator, ends_of, Ends{}, widen);
    result.emplace_back(ends.least, ends.most);
  }
  return result;
}

/// With the ends of data.intensities, which are in the unit of the files.
InputScale ImageData::clipping(const Field& input) const {
  const ValueRange clip = options_.intensity_of(input).clip;
  InputScale scale;
  scale.transform = options_.transform_of(input);
  if (std::isfinite(clip.low)) scale.least = scale.transform.forward(clip.low);
  if (std::isfinite(clip.high)) scale.most = scale.transform.forward(clip.high);
  return scale;
}

InputScale ImageData::scale_of_statistics(const Field& input) const {
  const FieldStatistics& statistics = statistics_.of(input);
  InputScale scale = clipping(input);
  scale.shift = statistics.mean;
  scale.scale = 1 / statistics.deviation;
  return scale;
}

InputScale ImageData::own_scale(const Field& field, const Region& image, Communicator& communicator) const {
  InputScale scale = clipping(field);
  scale.zero_stays = options_.intensity == ImageIntensity::kZScoreNonzero;
  if (scale.zero_stays || options_.intensity == ImageIntensity::kZScore) {
    const auto moments_of = [&](std::span<double> values) {
      transform_values(scale.transform, values);
      if (!scale.zero_stays) return RunningMoments::of(values);
      std::vector<double> others(values.begin(), values.end());
      std::erase(others, scale.transform.forward(0));
      return RunningMoments::of(others);
    };
    const auto merge = [](RunningMoments& total, const RunningMoments& slice) { total.merge(slice); };
    const RunningMoments moments =
        over_slices(field, {image}, communicator, moments_of, RunningMoments{}, merge);
    scale.shift = moments.mean;
    scale.scale = moments.deviation() > 0 ? 1 / moments.deviation() : 0;
    return scale;
  }
  const auto transformed_ends = [&](std::span<double> values) {
    transform_values(scale.transform, values);
    return ends_of(values);
  };
  const Ends ends = over_slices(field, {image}, communicator, transformed_ends, Ends{}, widen);
  if (!(ends.most > ends.least)) return {ends.least, ends.least, ends.least, 0, false, scale.transform};
  const auto histogram_of = [&](std::span<double> values) {
    transform_values(scale.transform, values);
    Histogram histogram;
    for (const double value : values) {
      if (std::isnan(value)) continue;
      const double place = (value - ends.least) / (ends.most - ends.least) * static_cast<double>(kBins);
      histogram.counts[std::min(static_cast<std::size_t>(place), kBins - 1)] += 1;
    }
    return histogram;
  };
  const auto add = [](Histogram& total, const Histogram& slice) {
    for (std::size_t bin = 0; bin < kBins; ++bin) total.counts[bin] += slice.counts[bin];
  };
  const Histogram all = over_slices(field, {image}, communicator, histogram_of, Histogram{}, add);
  scale.least = all.quantile(ends, options_.percentiles[0] / 100);
  scale.most = all.quantile(ends, options_.percentiles[1] / 100);
  scale.shift = (scale.least + scale.most) / 2;
  scale.scale = scale.most > scale.least ? 2 / (scale.most - scale.least) : 0;
  return scale;
}

void ImageData::find_scales(Communicator& communicator) {
  if (options_.intensity == ImageIntensity::kDataSet) return;
  for (std::int64_t image = 0; image < files_->count(); ++image) {
    const Region whole{image, Box::whole(files_->extents(image))};
    for (const Channel& channel : channels_.inputs) {
      scales_.push_back(options_.intensity_of(channel.field).mean
                            ? scale_of_statistics(channel.field)
                            : own_scale(channel.field, whole, communicator));
    }
  }
}

InputScale ImageData::scale_of(std::int64_t image, std::size_t input) const {
  if (!scales_.empty()) return scales_[static_cast<std::size_t>(image) * channels_.inputs.size() + input];
  return scale_of_statistics(channels_.inputs[input].field);
}

}  // namespace jigsaw::inline images
