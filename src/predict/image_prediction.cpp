#include "predict/image_prediction.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>
#include <optional>
#include <set>

#include "array/transfer.h"
#include "base/disk.h"
#include "base/error.h"
#include "base/text.h"
#include "comm/agreement.h"
#include "comm/from_first.h"
#include "files/image_output.h"
#include "images/case_names.h"
#include "predict/background_writer.h"
#include "predict/model_source.h"
#include "predict/output_file.h"
#include "predict/output_images.h"
#include "predict/output_names.h"
#include "predict/own_points.h"
#include "predict/rate.h"

namespace jigsaw::inline predict {

namespace {

namespace fs = std::filesystem;

/// Where the output of each input file goes.
std::vector<std::string> output_paths(const std::vector<InputFile>& inputs, const std::string& output) {
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
  for (const InputFile& input : inputs) {
    const std::string name = fs::path(input.path).filename().string();
    const std::string ending =
        concat(name.substr(name_of_file(name).size()), image_format(name) ? "" : ".h5");
    paths.push_back((fs::path(output) / (input.output + ending)).string());
    if (std::count(paths.begin(), paths.end(), paths.back()) > 1)
      throw ConfigError(
          concat("command line: --output ", output, ": two outputs would be called ", input.output + ending));
  }
  fs::create_directories(output, error);
  if (error)
    refuse_output<ConfigError>(
        error, concat("command line: --output ", output, " cannot be made: ", error.message()));
  return paths;
}

class ImageWriter {
 public:
  ImageWriter(TrainedModels& models, const ImageOptions& options)
      : models_(models),
        run_(models.front().run()),
        world_(run_.world()),
        rank_(run_.placed().rank()),
        data_(dynamic_cast<const ImageData&>(run_.data())),
        options_(options),
        results_(image_results(data_, options.classes)) {
    open();
  }

  std::int64_t images() const { return images_written_; }
  std::int64_t windows() const { return windows_; }
  /// Inputs whose outputs were there.
  std::int64_t skipped() const { return skipped_; }
  /// @return  a sentence for each input that could not be read, while others could.
  std::vector<std::string> run();

 private:
  void open();
  std::string create_outputs(const std::vector<InputFile>& inputs);
  std::vector<double> numbers_of(const ImageRun::Rows& rows);
  std::vector<double> own_numbers_of(const ImageRun::Rows& rows);
  std::vector<double> written(std::vector<double> labels) const;
  void keep_missing(std::int64_t image, const Box& box, std::vector<double>& numbers) const;
  Box box_of(const ImageRun::Rows& rows, int rank) const;
  std::shared_ptr<ImagePart> bring(int rank, const ImageRun::Rows& rows, const ImagePart& own);
  void put(const ImageRun::Rows& rows);
  void begin_file(int file);
  void finish_file();
  std::optional<int> unread_file(const Error& error) const;
  void leave_out(int unread);
  int file_of(std::int64_t image) const { return file_of_.at(static_cast<std::size_t>(image)); }
  const std::string& input() const { return data_.channels().inputs[0].field.variable; }

  TrainedModels& models_;
  OpenedRun& run_;  ///< of the first model
  Communicator& world_;
  const Rank& rank_;
  const ImageData& data_;
  const ImageOptions& options_;
  std::vector<ImageResult> results_;
  std::vector<ImageRegion> regions_;  ///< that are not written yet
  std::optional<ImageRun> images_;
  std::optional<OwnPoints> own_;  ///< of the image that rows come of, where images have a common spacing
  std::vector<int> files_;        ///< numbers of the inputs, in order
  std::vector<int> file_of_;      ///< of each image
  int file_number_ = -1;          ///< which of them is being written
  std::optional<std::int64_t> reading_;  ///< the image that is read for its output, while that is
  std::int64_t windows_ = 0, images_written_ = 0, skipped_ = 0;
  // On the rank that writes.
  std::vector<std::unique_ptr<OutputFile>> outputs_;  ///< of each input; null where it is skipped
  std::shared_ptr<OutputImages> file_;
  std::map<std::string, std::string> attributes_;
  std::unique_ptr<BackgroundWriter> writer_;
};

/// Collective.
void ImageWriter::open() {
  regions_ = data_.whole_images();
  const std::vector<InputFile> inputs = input_files(data_);
  for (const InputFile& input : inputs) {
    files_.push_back(input.number);
    file_of_.insert(file_of_.end(), static_cast<std::size_t>(input.images), input.number);
  }
  const std::string skipped = from_first(world_, [&] { return create_outputs(inputs); });
  skipped_ = std::ranges::count(skipped, '1');
  std::erase_if(regions_, [&](const ImageRegion& region) {
    return skipped[static_cast<std::size_t>(std::ranges::find(files_, file_of(region.image)) -
                                            files_.begin())] == '1';
  });
}

/// On the rank that writes. @return  '1' for each input whose output is there and stays, else '0'.
std::string ImageWriter::create_outputs(const std::vector<InputFile>& inputs) {
  std::string skipped;
  // Of many the folder is looked through once.
  const std::vector<std::string> paths = output_paths(inputs, options_.output);
  if (paths.size() > 1) remove_left(fs::path(paths.front()).parent_path().string());
  for (const std::string& path : paths) {
    // What is an input itself is refused below.
    const bool skip = options_.skip_existing && is_written(path, data_.paths());
    skipped += skip ? '1' : '0';
    outputs_.push_back(skip ? nullptr
                            : std::make_unique<OutputFile>(path, options_.overwrite, "--output",
                                                           data_.paths(), paths.size() == 1));
  }
  attributes_ = options_.attributes;
  attributes_["source"] = source_of(models_);
  writer_ = std::make_unique<BackgroundWriter>();
  return skipped;
}

/// What is written of this rank's points of these rows, [box_of(rows), numbers].
std::vector<double> ImageWriter::numbers_of(const ImageRun::Rows& rows) {
  const std::int64_t classes = data_.options().classes;
  if (own_) return own_numbers_of(rows);
  if (classes == 0) return images_->numbers(rows);
  return options_.classes == ClassOutput::kLabels ? written(images_->labels(rows))
                                                  : images_->probabilities(rows);
}

/// Classes as the numbers that label files have for them.
std::vector<double> ImageWriter::written(std::vector<double> labels) const {
  for (double& label : labels)
    label = static_cast<double>(data_.labels().value_of(static_cast<std::int64_t>(label)));
  return labels;
}

/// The same at the points of the file: of classes probabilities are brought there, and the likeliest is found
/// there.
std::vector<double> ImageWriter::own_numbers_of(const ImageRun::Rows& rows) {
  const std::int64_t classes = data_.options().label_outputs(),
                     numbers = classes > 0 ? classes : std::ssize(data_.channels().targets);
  const std::vector<double> common = classes > 0 ? images_->probabilities(rows) : images_->numbers(rows);
  std::vector<double> own = own_->take(rows.box, common, numbers, world_.size(), world_.rank());
  if (classes > 0)
    return options_.classes == ClassOutput::kLabels
               ? written(chosen_labels(data_, own, LabelNumbers::kProbabilities))
               : own;
  if (data_.options().task == Task::kDenoise)
    keep_missing(images_->regions()[rows.region].image, box_of(rows, world_.rank()), own);
  return own;
}

/// What is missing in the file is missing in what is denoised.
void ImageWriter::keep_missing(std::int64_t image, const Box& box, std::vector<double>& numbers) const {
  if (box.empty()) return;
  const std::vector<Channel>& targets = data_.channels().targets;
  std::vector<double> input(static_cast<std::size_t>(box.extent.count()));
  for (std::size_t c = 0; c < targets.size(); ++c) {
    data_.files().read_own(targets[c].field, image, box, input);
    for (std::size_t i = 0; i < input.size(); ++i)
      if (std::isnan(input[i])) numbers[i * targets.size() + c] = std::numeric_limits<double>::quiet_NaN();
  }
}

/// Which points of what is written a rank has of these rows.
Box ImageWriter::box_of(const ImageRun::Rows& rows, int rank) const {
  return own_ ? own_->box(rows.box, world_.size(), rank) : images_->box_of(rows, rank);
}

/// The part of another rank at rank 0. Collective over the job.
std::shared_ptr<ImagePart> ImageWriter::bring(int rank, const ImageRun::Rows& rows, const ImagePart& own) {
  std::int64_t numbers = 0;
  for (const ImageResult& result : results_) numbers += result.count;
  auto part = std::make_shared<ImagePart>(ImagePart{rows.region, box_of(rows, rank), {}});
  const std::int64_t count = part->box.extent.count() * numbers;
  if (count == 0) return part;
  std::vector<Message> sends, receives;
  std::span<const double> sent;
  if (world_.rank() == rank) {
    sends = {{0, 0, count}};
    sent = own.values;
  } else if (world_.rank() == 0) {
    receives = {{rank, 0, count}};
  }
  const std::int64_t received = receives.empty() ? 0 : count;
  const bool wide = std::ranges::any_of(
      results_, [](const ImageResult& result) { return result.type == OutputImage::Type::kDouble; });
  const DType type = wide ? DType::kFloat64 : DType::kFloat32;
  const Array array =
      world_.exchange(constant(rank_.context, {std::ssize(sent)}, type, sent), sends, receives, received);
  if (received == 0) return part;
  part->values = download_values(rank_.context, array);
  return part;
}

void ImageWriter::begin_file(int file) {
  file_number_ = file;
  if (!writer_) return;
  const auto number = static_cast<std::size_t>(std::ranges::find(files_, file) - files_.begin());
  file_ = std::make_shared<OutputImages>(data_, results_, file, *outputs_[number], attributes_);
}

/// All rows of the file were given away.
void ImageWriter::finish_file() {
  const auto done = [&](const ImageRegion& region) { return file_of(region.image) == file_number_; };
  images_written_ += static_cast<std::int64_t>(std::erase_if(regions_, done));
  file_number_ = -1;
  if (writer_) writer_->push([output = std::move(file_)] { output->finish(); });
  file_.reset();
}

void ImageWriter::put(const ImageRun::Rows& rows) {
  const std::vector<ImageRegion>& regions = images_->regions();
  const std::int64_t image = regions[rows.region].image;
  const int file = file_of(image);
  if (file != file_number_) together(world_, [&] { begin_file(file); });
  auto own = std::make_shared<ImagePart>(ImagePart{rows.region, {}, {}});
  reading_ = image;
  together(world_, [&] {
    const ImageSource source = data_.files().source(input(), image);
    if (rows.box.begin[0] == 0 && !source.step.empty())
      own_.emplace(data_.files().extents(image), source.extents, source.step);
    own->box = box_of(rows, world_.rank());
    own->values = numbers_of(rows);
  });
  reading_.reset();
  for (int rank = 0; rank < world_.size(); ++rank) {
    const auto part = rank > 0 ? bring(rank, rows, *own) : own;
    if (!writer_ || part->box.empty()) continue;
    writer_->push([output = file_, image, part] { output->write(image, *part); });
  }
  together(world_, [&] {
    if (writer_) writer_->check();
  });
  if (!rows.last) return;
  if (rows.region + 1 == regions.size() || file_of(regions[rows.region + 1].image) != file) finish_file();
}

/// The file that could not be read, as all ranks agree; nothing where something else failed.
std::optional<int> ImageWriter::unread_file(const Error& error) const {
  if (error.code() != ExitCode::kData) return std::nullopt;
  std::vector<std::int64_t> images = images_->unread();
  if (reading_) images.push_back(*reading_);
  std::set<int> files, named;
  for (const std::int64_t image : images) {
    files.insert(file_of(image));
    for (const Channel& channel : data_.channels().inputs) {
      const std::string path = data_.files().source(channel.field.variable, image).path;
      if (std::string(error.what()).find(path) != std::string::npos) named.insert(file_of(image));
    }
  }
  if (files.size() == 1) return *files.begin();
  return named.size() == 1 ? std::optional(*named.begin()) : std::nullopt;
}

/// What is begun of other files begins anew.
void ImageWriter::leave_out(int unread) {
  together(world_, [&] {
    if (writer_) writer_->finish();
  });
  file_.reset();
  file_number_ = -1;
  own_.reset();
  reading_.reset();
  std::erase_if(regions_, [&](const ImageRegion& region) { return file_of(region.image) == unread; });
}

std::vector<std::string> ImageWriter::run() {
  std::vector<std::string> unread;
  while (!regions_.empty()) {
    images_.emplace(models_, regions_, options_.windows, false,
                    data_.options().spacing.empty() ? 0 : OwnPoints::kHalo);
    try {
      images_->run([this](ImageRun::Rows& rows) { put(rows); });
      windows_ += images_->windows();
    } catch (const AgreedError& error) {
      const std::optional<int> file = unread_file(error);
      if (!file || files_.size() == 1) throw;
      unread.push_back(error.what());
      leave_out(*file);
    }
  }
  together(world_, [&] {
    if (writer_) writer_->finish();
  });
  return unread;
}

}  // namespace

void write_image_predictions(TrainedModels& models, const ImageOptions& options, Log& log) {
  ImageWriter writer(models, options);
  const auto before = std::chrono::steady_clock::now();
  std::vector<std::string> unread = options.unread;
  for (const std::string& why : writer.run()) unread.push_back(why);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - before;
  log.info(concat("wrote ", counted(writer.images(), "image"), " to ", options.output, " in ",
                  human_seconds(seconds.count()), ": ",
                  per_second(writer.windows(), "windows", seconds.count())));
  if (writer.skipped() > 0)
    log.info(concat("left alone ", counted(writer.skipped(), "input"), " whose outputs are there"));
  const bool others = writer.images() > 0 || writer.skipped() > 0;
  together(models.front().run().world(), [&] {
    if (unread.empty()) return;
    throw DataError(
        concat(join(unread, "; "),
               others ? "; the other inputs were predicted, and stand in " + options.output : ""));
  });
}

}  // namespace jigsaw::inline predict
