#include "predict/image_prediction.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>
#include <optional>

#include "array/transfer.h"
#include "base/error.h"
#include "base/text.h"
#include "comm/agreement.h"
#include "files/image_output.h"
#include "images/image_axes.h"
#include "predict/background_writer.h"
#include "predict/image_run.h"
#include "predict/output_file.h"
#include "predict/own_points.h"
#include "predict/rate.h"
#include "predict/written_axes.h"
#include "samples/strided_copy.h"

namespace jigsaw::inline predict {

namespace {

namespace fs = std::filesystem;

/// What is written of a variable: the numbers first … first + count − 1 of each point.
struct Result {
  std::string variable;
  std::int64_t first = 0, count = 1;
  bool has_channels = false;
  std::string channel = "channel";  ///< the dim's name
  OutputImage::Type type = OutputImage::Type::kFloat;
  std::string units;
  bool of_input = false;                    ///< whether the variable is one of the inputs, too
  std::vector<std::int64_t> channels = {};  ///< which of its channels in the file, where it has any

  /// Whether the input's dim of channels is that of the result.
  bool keeps_channels() const { return of_input && has_channels; }
};

std::vector<Result> results_of(const ImageData& data, ClassOutput classes) {
  std::vector<Result> results;
  if (const std::int64_t count = data.options().classes; count > 0) {
    Result result{
        data.channels().targets[0].field.variable, 0, 1, false, "class", OutputImage::Type::kFloat, ""};
    if (classes == ClassOutput::kProbabilities) {
      result.count = count;
      result.has_channels = true;
    } else {
      result.type = count <= 256 ? OutputImage::Type::kByte : OutputImage::Type::kShort;
    }
    return {result};
  }
  const std::vector<Channel>& targets = data.channels().targets;
  for (std::size_t c = 0; c < targets.size(); ++c) {
    const Field& field = targets[c].field;
    if (results.empty() || results.back().variable != field.variable) {
      const bool of_input = std::ranges::any_of(data.channels().inputs, [&](const Channel& channel) {
        return channel.field.variable == field.variable;
      });
      results.push_back({field.variable, static_cast<std::int64_t>(c), 0, field.level.has_value(), "channel",
                         OutputImage::Type::kFloat, data.statistics().of(field).units, of_input});
    }
    ++results.back().count;
    if (field.level) results.back().channels.push_back(static_cast<std::int64_t>(*field.level));
  }
  return results;
}

/// The part of one rank, as it travels: [box, numbers].
struct Part {
  std::size_t region = 0;
  Box box;
  std::vector<float> values;
};

/// One file that is being written.
class OutputImages {
 public:
  OutputImages(const ImageData& data, const std::vector<Result>& results, int file, OutputFile& output,
               const std::map<std::string, std::string>& attributes);

  void write(std::int64_t image, const Part& part);
  void finish() {
    file_->finish();
    output_.commit();
  }

 private:
  /// The input variable whose dims a result has: its own, or the first one, beside whose samples all
  /// results stand.
  ImageSource source_of(std::int64_t image, const Result& result) const {
    return data_.files().source(result.of_input ? result.variable : input_, image);
  }
  /// The dims of what is written of an image, and the name of the data set.
  std::vector<ImageDim> dims_of(const ImageSource& source, const Result& result) const;
  std::string name_of(const ImageSource& source, const Result& result) const;
  /// @param first  of the first input. @param source  source_of() the result.
  OutputImage describe(const ImageSource& first, const ImageSource& source, const Result& result);
  ImageAxes axes_of(const ImageSource& source, const Result& result);

  const ImageData& data_;
  const std::vector<Result>& results_;
  OutputFile& output_;
  ImageFormat format_;
  std::string input_;                        ///< the variable that says where images lie
  std::map<std::string, std::size_t> sets_;  ///< numbers of the data sets by name
  /// Of data sets of the input, by file and name, for a format that has coordinates.
  std::map<std::pair<std::string, std::string>, ImageAxes> read_axes_;
  WrittenAxes axes_;
  std::unique_ptr<ImageOutput> file_;
};

OutputImages::OutputImages(const ImageData& data, const std::vector<Result>& results, int file,
                           OutputFile& output, const std::map<std::string, std::string>& attributes)
    : data_(data),
      results_(results),
      output_(output),
      format_(*image_format(output.path())),
      input_(data.channels().inputs[0].field.variable) {
  std::vector<OutputImage> images;
  const NiftiHeader* like = nullptr;
  std::int64_t count = 0;
  for (std::int64_t image = 0; image < data.files().count(); ++image) {
    const ImageSource source = data.files().source(input_, image);
    if (source.file != file) continue;
    like = source.nifti;
    if (++count > 1 && format_ != ImageFormat::kHdf5 && format_ != ImageFormat::kNetcdf) {
      throw DataError(concat(output.path(), " cannot be written: NIfTI holds one image, and ", source.path,
                             " holds more; name an output of .h5 or .nc"));
    }
    for (const Result& result : results) {
      const std::string name = name_of(source, result);
      if (!sets_.emplace(name, images.size()).second) continue;
      images.push_back(describe(source, source_of(image, result), result));
    }
  }
  file_ = create_image_output(format_, output.temporary(), images, attributes, like, axes_.all());
}

std::string OutputImages::name_of(const ImageSource& source, const Result& result) const {
  std::string name = result.variable;
  if (const std::size_t star = name.find('*'); star != std::string::npos) {
    name.replace(star, 1, source.group);
  } else if (!source.group.empty()) {
    name = concat(source.group, "/", name);
  }
  return name;
}

std::vector<ImageDim> OutputImages::dims_of(const ImageSource& source, const Result& result) const {
  std::vector<ImageDim> dims = source.dims;
  const auto channel = std::find(dims.begin(), dims.end(), ImageDim::kChannel);
  const bool has_place = channel != dims.end();
  if (format_ == ImageFormat::kNifti || format_ == ImageFormat::kNiftiGz) {
    dims = data_.options().space();
  } else if (has_place && !result.has_channels) {
    dims.erase(channel);
  }
  if (result.has_channels && std::find(dims.begin(), dims.end(), ImageDim::kChannel) == dims.end())
    dims.insert(std::find_if(dims.begin(), dims.end(), is_spatial), ImageDim::kChannel);
  return dims;
}

/// What stands along the dims that a result has of its input, as it is written; of a format without
/// coordinates their names alone, or nothing.
ImageAxes OutputImages::axes_of(const ImageSource& source, const Result& result) {
  ImageAxes axes;
  if (format_ == ImageFormat::kNetcdf) {
    const std::pair key{source.path, source.data_set};
    if (!read_axes_.contains(key)) read_axes_[key] = read_image_axes(source.path, source.data_set);
    axes = read_axes_.at(key);
  }
  if (axes.names.empty() && !source.names.empty()) {
    axes.names = source.names;
    axes.extents.assign(source.stored.begin(), source.stored.end());
  }
  if (axes.names.empty()) return axes;
  const auto channel = std::ranges::find(source.dims, ImageDim::kChannel);
  const auto at = static_cast<std::size_t>(channel - source.dims.begin());
  if (result.keeps_channels()) {
    axes = chosen_along(std::move(axes), at, result.channels);
  } else if (channel != source.dims.end()) {
    axes = without_dimension(std::move(axes), at);
  }
  return axes_.add(std::move(axes));
}

/// How many samples the data set of an image holds. @param otherwise  where it has no dim of samples.
std::int64_t samples_of(const ImageSource& source, std::int64_t otherwise) {
  const auto found = std::ranges::find(source.dims, ImageDim::kSample);
  return found == source.dims.end() ? otherwise
                                    : source.stored[static_cast<int>(found - source.dims.begin())];
}

OutputImage OutputImages::describe(const ImageSource& first, const ImageSource& source,
                                   const Result& result) {
  OutputImage image{name_of(first, result), result.type, {}, {}, {}, {}};
  std::vector<double> spacing;
  const std::vector<ImageDim> space = data_.options().space();
  const ImageAxes axes = axes_of(source, result);
  std::map<ImageDim, std::string> names;
  for (const ImageDim dim : source.dims) {
    if (names.size() == axes.names.size()) break;
    if (dim != ImageDim::kChannel || result.keeps_channels()) names.emplace(dim, axes.names[names.size()]);
  }
  for (const ImageDim dim : dims_of(source, result)) {
    const auto at = static_cast<std::size_t>(std::find(source.dims.begin(), source.dims.end(), dim) -
                                             source.dims.begin());
    image.dimensions.push_back(names.contains(dim)         ? names.at(dim)
                               : dim == ImageDim::kChannel ? result.channel
                                                           : name(dim));
    const auto axis = static_cast<std::size_t>(std::find(space.begin(), space.end(), dim) - space.begin());
    image.shape.append(dim == ImageDim::kChannel ? result.count
                       : is_spatial(dim)         ? source.extents[static_cast<int>(axis)]
                                                 : samples_of(first, source.stored[static_cast<int>(at)]));
    if (axis < source.spacing.size()) spacing.push_back(source.spacing[axis]);
  }
  if (data_.options().task == Task::kDenoise) {
    image.texts = axes.texts;
    image.numbers = axes.numbers;
  }
  for (const OutputCoordinate& coordinate : axes.coordinates) image.coordinates.push_back(coordinate.name);
  if (axes.mapping) image.texts["grid_mapping"] = axes.mapping->name;
  if (!result.units.empty()) image.texts["units"] = result.units;
  if (!spacing.empty()) image.numbers["spacing"] = spacing;
  if (!source.affine.empty()) image.numbers["affine"] = source.affine;
  return image;
}

void OutputImages::write(std::int64_t image, const Part& part) {
  const ImageSource first = data_.files().source(input_, image);
  const std::vector<ImageDim> space = data_.options().space();
  const std::int64_t points = part.box.extent.count(), numbers = std::ssize(part.values) / points;
  const Shape strides = part.box.extent.strides();
  const std::vector<double> values(part.values.begin(), part.values.end());
  for (const Result& result : results_) {
    const ImageSource source = source_of(image, result);
    Box box;
    std::vector<std::int64_t> steps;
    for (const ImageDim dim : dims_of(source, result)) {
      const auto axis = static_cast<int>(std::find(space.begin(), space.end(), dim) - space.begin());
      const bool spatial = is_spatial(dim), channel = dim == ImageDim::kChannel;
      box.begin.append(spatial ? part.box.begin[axis] : channel ? 0 : first.sample);
      box.extent.append(spatial ? part.box.extent[axis] : channel ? result.count : 1);
      steps.push_back(spatial ? strides[axis] * numbers : channel ? 1 : 0);
    }
    std::vector<double> ordered(static_cast<std::size_t>(box.extent.count()));
    copy_strided(values, result.first, steps, box.extent, ordered);
    const std::vector<float> stored(ordered.begin(), ordered.end());
    file_->write(sets_.at(name_of(first, result)), box, stored);
  }
}

/// Where the output of each input file goes.
std::vector<std::string> output_paths(const std::vector<std::string>& inputs, const std::string& output) {
  std::error_code error;
  const bool folder = fs::is_directory(output, error) || output.ends_with('/');
  if (inputs.size() == 1 && !folder) {
    if (image_format(output)) return {output};
    throw ConfigError(concat("command line: --output ", output,
                             " must end in .h5, .nc, .nii or .nii.gz, or name a folder that is there"));
  }
  if (!folder && image_format(output)) {
    throw ConfigError(concat("command line: --output ", output, " is one file, and there are ", inputs.size(),
                             " inputs; name a folder"));
  }
  std::vector<std::string> paths;
  for (const std::string& input : inputs) {
    const fs::path name = fs::path(input).filename();
    paths.push_back(
        (fs::path(output) / (image_format(input) ? name.string() : name.string() + ".h5")).string());
    if (std::count(paths.begin(), paths.end(), paths.back()) > 1)
      throw ConfigError(concat("command line: --output ", output, ": two inputs are called ", name.string()));
  }
  fs::create_directories(output, error);
  if (error) throw DataError(concat(output, " cannot be made: ", error.message()));
  return paths;
}

class ImageWriter {
 public:
  ImageWriter(TrainedModel& model, const ImageOptions& options)
      : world_(model.run().world()),
        rank_(model.run().placed().rank()),
        images_(model.run(), data_of(model).whole_images(), options.overlap, false,
                data_of(model).options().spacing.empty() ? 0 : OwnPoints::kHalo),
        options_(options),
        results_(results_of(images_.data(), options.classes)) {
    together(world_, [&] { open(model); });
  }

  std::int64_t images() const { return std::ssize(images_.regions()); }
  std::int64_t windows() const { return images_.windows(); }
  std::size_t files() const { return outputs_.size(); }
  void run();

 private:
  static const ImageData& data_of(TrainedModel& model) {
    return dynamic_cast<const ImageData&>(model.run().data());
  }
  void open(const TrainedModel& model);
  std::vector<double> numbers_of(const ImageRun::Rows& rows);
  std::vector<double> own_numbers_of(const ImageRun::Rows& rows);
  void keep_missing(std::int64_t image, const Box& box, std::vector<double>& numbers) const;
  Box box_of(const ImageRun::Rows& rows, int rank) const;
  std::shared_ptr<Part> bring(int rank, const ImageRun::Rows& rows, const Part& own);
  void put(const ImageRun::Rows& rows);
  void next_file(int file);

  Communicator& world_;
  const Rank& rank_;
  ImageRun images_;
  const ImageOptions& options_;
  std::vector<Result> results_;
  std::optional<OwnPoints> own_;  ///< of the image that rows come of, where images have a common spacing
  // On the rank that writes.
  std::vector<int> files_;  ///< numbers of the inputs, in order
  std::vector<std::unique_ptr<OutputFile>> outputs_;
  std::shared_ptr<OutputImages> file_;
  int file_number_ = -1;
  std::map<std::string, std::string> attributes_;
  std::unique_ptr<BackgroundWriter> writer_;
};

void ImageWriter::open(const TrainedModel& model) {
  std::vector<std::string> inputs;
  for (std::int64_t image = 0; image < images(); ++image) {
    const ImageSource source =
        images_.data().files().source(images_.data().channels().inputs[0].field.variable, image);
    if (!files_.empty() && files_.back() == source.file) continue;
    files_.push_back(source.file);
    inputs.push_back(source.path);
  }
  if (world_.rank() != 0) return;
  for (const std::string& path : output_paths(inputs, options_.output))
    outputs_.push_back(
        std::make_unique<OutputFile>(path, options_.overwrite, "--output", images_.data().paths()));
  attributes_ = options_.attributes;
  attributes_["source"] = concat("jigsaw-train, ", model.description());
  writer_ = std::make_unique<BackgroundWriter>();
}

/// What is written of this rank's points of these rows, [box_of(rows), numbers].
std::vector<double> ImageWriter::numbers_of(const ImageRun::Rows& rows) {
  const std::int64_t classes = images_.data().options().classes;
  if (own_) return own_numbers_of(rows);
  if (classes == 0) return images_.numbers(rows);
  return options_.classes == ClassOutput::kLabels ? ImageRun::labels(rows.values, classes)
                                                  : ImageRun::probabilities(rows, classes);
}

/// The same at the points of the file: of classes probabilities are brought there, and the likeliest is found
/// there.
std::vector<double> ImageWriter::own_numbers_of(const ImageRun::Rows& rows) {
  const std::int64_t classes = images_.data().options().classes,
                     numbers = classes > 0 ? classes : std::ssize(images_.data().channels().targets);
  const std::vector<double> common =
      classes > 0 ? ImageRun::probabilities(rows, classes) : images_.numbers(rows);
  std::vector<double> own = own_->take(rows.box, common, numbers, world_.size(), world_.rank());
  if (classes > 0) return options_.classes == ClassOutput::kLabels ? ImageRun::labels(own, classes) : own;
  if (images_.data().options().task == Task::kDenoise)
    keep_missing(images_.regions()[rows.region].image, box_of(rows, world_.rank()), own);
  return own;
}

/// What is missing in the file is missing in what is denoised.
void ImageWriter::keep_missing(std::int64_t image, const Box& box, std::vector<double>& numbers) const {
  if (box.empty()) return;
  const std::vector<Channel>& targets = images_.data().channels().targets;
  std::vector<double> input(static_cast<std::size_t>(box.extent.count()));
  for (std::size_t c = 0; c < targets.size(); ++c) {
    images_.data().files().read_own(targets[c].field, image, box, input);
    for (std::size_t i = 0; i < input.size(); ++i)
      if (std::isnan(input[i])) numbers[i * targets.size() + c] = std::numeric_limits<double>::quiet_NaN();
  }
}

/// Which points of what is written a rank has of these rows.
Box ImageWriter::box_of(const ImageRun::Rows& rows, int rank) const {
  return own_ ? own_->box(rows.box, world_.size(), rank) : images_.box_of(rows, rank);
}

/// The part of another rank at rank 0. Collective over the job.
std::shared_ptr<Part> ImageWriter::bring(int rank, const ImageRun::Rows& rows, const Part& own) {
  std::int64_t numbers = 0;
  for (const Result& result : results_) numbers += result.count;
  auto part = std::make_shared<Part>(Part{rows.region, box_of(rows, rank), {}});
  const std::int64_t count = part->box.extent.count() * numbers;
  if (count == 0) return part;
  std::vector<Message> sends, receives;
  std::vector<double> sent;
  if (world_.rank() == rank) {
    sends = {{0, 0, count}};
    sent.assign(own.values.begin(), own.values.end());
  } else if (world_.rank() == 0) {
    receives = {{rank, 0, count}};
  }
  const std::int64_t received = receives.empty() ? 0 : count;
  const Array array = world_.exchange(constant(rank_.context, {std::ssize(sent)}, DType::kFloat32, sent),
                                      sends, receives, received);
  if (received == 0) return part;
  const std::vector<double> values = download_values(rank_.context, array);
  part->values.assign(values.begin(), values.end());
  return part;
}

void ImageWriter::next_file(int file) {
  if (file_) writer_->push([done = file_] { done->finish(); });
  file_.reset();
  file_number_ = file;
  if (file < 0) return;
  const auto number =
      static_cast<std::size_t>(std::find(files_.begin(), files_.end(), file) - files_.begin());
  file_ = std::make_shared<OutputImages>(images_.data(), results_, file, *outputs_[number], attributes_);
}

void ImageWriter::put(const ImageRun::Rows& rows) {
  const ImageData& data = images_.data();
  const std::int64_t image = images_.regions()[rows.region].image;
  auto own = std::make_shared<Part>(Part{rows.region, {}, {}});
  together(world_, [&] {
    const ImageSource source = data.files().source(data.channels().inputs[0].field.variable, image);
    if (rows.box.begin[0] == 0 && !source.step.empty())
      own_.emplace(data.files().extents(image), source.extents, source.step);
    own->box = box_of(rows, world_.rank());
    const std::vector<double> numbers = numbers_of(rows);
    own->values.assign(numbers.begin(), numbers.end());
    if (writer_ && source.file != file_number_) next_file(source.file);
  });
  for (int rank = 0; rank < world_.size(); ++rank) {
    const auto part = rank > 0 ? bring(rank, rows, *own) : own;
    if (!writer_ || part->box.empty()) continue;
    writer_->push([file = file_, image, part] { file->write(image, *part); });
  }
  together(world_, [&] {
    if (writer_) writer_->check();
  });
}

void ImageWriter::run() {
  images_.run([this](ImageRun::Rows& rows) { put(rows); });
  together(world_, [&] {
    if (!writer_) return;
    next_file(-1);
    writer_->finish();
  });
}

}  // namespace

void write_image_predictions(TrainedModel& model, const ImageOptions& options, Log& log) {
  ImageWriter writer(model, options);
  const auto before = std::chrono::steady_clock::now();
  writer.run();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - before;
  log.info(concat("wrote ", counted(writer.images(), "image"), " to ", options.output, " in ",
                  human_seconds(seconds.count()), ": ",
                  per_second(writer.windows(), "windows", seconds.count())));
}

}  // namespace jigsaw::inline predict
