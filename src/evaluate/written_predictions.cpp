#include "evaluate/written_predictions.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "comm/agreement.h"
#include "comm/from_first.h"
#include "fields/shared_files.h"
#include "files/image_output.h"
#include "files/nifti_file.h"
#include "images/case_names.h"
#include "predict/image_run.h"
#include "predict/output_images.h"

namespace jigsaw::inline evaluate {

namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

/// Patterns of the files of images in a folder, or what is given.
Names patterns_of(const Names& given) {
  Names patterns;
  for (const std::string& name : given) {
    const std::string absolute = fs::absolute(name).lexically_normal().string();
    std::error_code error;
    if (!fs::is_directory(absolute, error)) {
      patterns.push_back(absolute);
      continue;
    }
    std::set<std::string> endings;
    for (const auto& entry : fs::directory_iterator(absolute, error)) {
      const std::string file = entry.path().filename().string();
      if (image_format(file)) endings.insert(file.substr(name_of_file(file).size()));
    }
    if (endings.empty())
      throw DataError(concat("--predictions ", name, " holds no file .nii.gz, .nii, .h5, .hdf5 or .nc"));
    for (const std::string& ending : endings)
      patterns.push_back((fs::path(absolute) / ("*" + ending)).string());
  }
  return patterns;
}

/// Whether a file holds a data set of this name, in which * stands for any characters.
bool holds(const VariableFile& file, const std::string& name) {
  const std::size_t star = name.find('*');
  if (star == std::string::npos) return file.find(name) != nullptr;
  return std::ranges::any_of(file.variables(), [&](const FileVariable& variable) {
    return variable.name.size() >= name.size() && variable.name.starts_with(name.substr(0, star)) &&
           variable.name.ends_with(name.substr(star + 1));
  });
}

/// The data set of a file that holds a variable's predictions: as predict calls it, or as the targets' files
/// do, or the only one that has the dims of an image.
std::string data_set_of(const VariableFile& file, const std::string& variable, const std::string& of_target,
                        bool grouped, int space) {
  const std::string whole =
      grouped && variable.find('*') == std::string::npos ? concat("*/", variable) : variable;
  for (std::string name : {whole, variable, of_target}) {
    if (holds(file, name)) return name;
    std::ranges::replace(name, '/', '_');  // NetCDF
    if (holds(file, name)) return name;
  }
  Names images;
  for (const FileVariable& candidate : file.variables())
    if (candidate.numeric() && candidate.shape.rank() >= space) images.push_back(candidate.name);
  return images.size() == 1 ? images[0] : variable;
}

}  // namespace

WrittenPredictions::WrittenPredictions(const ImageData& data, const Names& given, const std::string& parts,
                                       Communicator& world)
    : data_(data) {
  const Names patterns = split(from_first(world, [&] { return join(patterns_of(given), "\n"); }), '\n');
  const Names found = expand_together(patterns, "", world);
  together(world, [&] { find(patterns, found, parts); });
  const FileOpener open_file =
      share_files(paths_, Dimensions::kByNumber, data.options().external(), {}, world);
  together(world, [&] {
    open(open_file);
    pair();
  });
}

/// The file of each input that is scored.
void WrittenPredictions::find(const Names& patterns, const Names& found, const std::string& parts) {
  std::set<int> scored;
  const std::string& input = data_.channels().inputs[0].field.variable;
  for (const ImageRegion& part : data_.validation_parts())
    scored.insert(data_.files().source(input, part.image).file);
  inputs_ = input_files(data_);
  std::erase_if(inputs_, [&](const InputFile& file) { return !scored.contains(file.number); });
  std::map<std::string, Names> by_name, by_case;
  const Names cases = case_names(found, patterns);
  Names names, lacking;
  for (std::size_t i = 0; i < found.size(); ++i) {
    by_name[names.emplace_back(name_of_file(found[i]))].push_back(found[i]);
    by_case[cases[i]].push_back(found[i]);
  }
  const bool alone = inputs_.size() == 1 && patterns == found && found.size() == 1;  // a file by its own name
  for (const InputFile& file : inputs_) {
    const auto named = by_name.find(file.output), called = by_case.find(file.name);
    if (named == by_name.end() && called == by_case.end() && !alone) {
      lacking.push_back(file.output);
      continue;
    }
    const Names& files = named != by_name.end()    ? named->second
                         : called != by_case.end() ? called->second
                                                   : found;
    if (files.size() > 1)
      throw DataError(
          concat("two files of --predictions are of ", file.output, ": ", files[0], " and ", files[1]));
    paths_.push_back(files[0]);
  }
  if (lacking.empty()) return;
  throw DataError(concat("--predictions lack ", first_of(lacking), " of ", parts, ", and hold ",
                         first_of(names),
                         "; a file of predictions is called as predict calls it, or as its case"));
}

/// Of a file of predictions, as OutputImages writes them.
std::vector<ImageDim> WrittenPredictions::dims(const VariableFile& file) const {
  std::vector<ImageDim> dims = data_.files().source(data_.channels().inputs[0].field.variable, 0).dims;
  const bool samples = std::ranges::find(dims, ImageDim::kSample) != dims.end();
  if (dynamic_cast<const NiftiFile*>(&file) != nullptr) {
    dims = data_.options().space();
    std::ranges::sort(dims);
    if (samples) dims.insert(dims.begin(), ImageDim::kSample);
    dims.insert(dims.begin(), ImageDim::kChannel);
  } else if (std::ranges::find(dims, ImageDim::kChannel) == dims.end()) {
    dims.insert(std::ranges::find_if(dims, is_spatial), ImageDim::kChannel);
  }
  return dims;
}

/// Of each input.
std::vector<ImageOrientation> WrittenPredictions::orientations() const {
  const std::string& input = data_.channels().inputs[0].field.variable;
  std::map<int, ImageOrientation> of_file;
  for (std::int64_t image = 0; image < data_.files().count(); ++image) {
    const int file = data_.files().source(input, image).file;
    if (!of_file.contains(file)) of_file[file] = data_.files().orientation_of_case(image);
  }
  std::vector<ImageOrientation> result;
  for (const InputFile& file : inputs_) result.push_back(of_file.at(file.number));
  return result;
}

void WrittenPredictions::open(const FileOpener& open_file) {
  const auto first = open_file(paths_[0]);
  ImagePairing pairing;
  pairing.alignment = data_.options().alignment;
  pairing.beside = orientations();
  files_ = std::make_unique<ImageFiles>(paths_, dims(*first), open_file, std::vector<double>{},
                                        std::vector<std::string>{}, std::move(pairing));
  const DataOptions& options = data_.options();
  const bool grouped = !data_.files().source(data_.channels().inputs[0].field.variable, 0).group.empty();
  for (const ImageResult& result : image_results(data_, ClassOutput::kLabels)) {
    const auto& targets = options.task == Task::kMap ? options.targets : options.variables;
    const auto target = std::ranges::find(targets, result.variable, &VariableOptions::name);
    VariableOptions variable;
    variable.name = result.variable;
    variable.data_set = data_set_of(*first, result.variable, target == targets.end() ? "" : target->data_set,
                                    grouped, static_cast<int>(options.space().size()));
    const std::vector<Field> fields = files_->select(variable);
    const std::int64_t count = std::ssize(fields);
    if (count != result.count && (options.classes == 0 || count != options.label_outputs())) {
      throw DataError(concat(variable.data_set, " in ", paths_[0], " has ", counted(count, "channel"),
                             ", and the targets ", result.count,
                             options.classes > 0
                                 ? concat(", or one for each of the ", options.label_outputs(),
                                          options.regions.empty() ? " classes" : " regions")
                                 : ""));
    }
    fields_.insert(fields_.end(), fields.begin(), fields.end());
    const FileVariable* const stored = first->find(variable.data_set);
    const bool floating =
        stored != nullptr && (stored->type == StoredType::kF32 || stored->type == StoredType::kF64);
    probabilities_ = options.classes > 0 && (count > 1 || (options.regions.size() == 1 && floating));
  }
  files_->end_selection();
}

/// By the order of images in each file.
void WrittenPredictions::pair() {
  std::map<int, std::vector<std::int64_t>> there;  // by number of the file
  for (std::int64_t image = 0; image < files_->count(); ++image)
    there[files_->source(fields_[0].variable, image).file].push_back(image);
  partners_.assign(static_cast<std::size_t>(data_.files().count()), -1);
  const std::string& input = data_.channels().inputs[0].field.variable;
  std::map<int, std::size_t> taken;
  for (std::int64_t image = 0; image < data_.files().count(); ++image) {
    const int number = data_.files().source(input, image).file;
    const auto file = std::ranges::find(inputs_, number, &InputFile::number);
    if (file == inputs_.end()) continue;
    const std::vector<std::int64_t>& images = there[static_cast<int>(file - inputs_.begin())];
    if (std::ssize(images) != file->images) {
      throw DataError(concat(paths_[static_cast<std::size_t>(file - inputs_.begin())], " holds ",
                             counted(std::ssize(images), "image"), ", and ", file->path, " ", file->images));
    }
    partners_[static_cast<std::size_t>(image)] = images[taken[number]++];
    check(image);
  }
}

void WrittenPredictions::check(std::int64_t image) const {
  const std::string& target = data_.channels().targets[0].field.variable;
  const std::int64_t partner = partners_[static_cast<std::size_t>(image)];
  const std::string truth = data_.files().source(target, image).path, &path = files_->path(partner);
  if (files_->extents(partner) != data_.files().extents(image)) {
    throw DataError(concat("the prediction ", path, " is ", files_->extents(partner), ", and ", truth, " ",
                           data_.files().extents(image),
                           "; predictions are scored at the points of the files"));
  }
  const auto here = data_.files().place_of(target, image),
             there = files_->place_of(fields_[0].variable, partner);
  const auto& allowed = data_.options().alignment;
  if (!here || !there || !allowed) return;
  if (const std::string fault = fault_of_places(*here, *there, *allowed); !fault.empty())
    throw DataError(concat("the prediction ", path, " and ", truth, " do not lie over each other: ", fault));
}

std::vector<double> WrittenPredictions::read(std::int64_t image, const Box& box) {
  if (box.empty()) return {};
  const std::int64_t partner = partners_.at(static_cast<std::size_t>(image));
  const std::int64_t classes = data_.options().classes;
  const auto points = static_cast<std::size_t>(box.extent.count());
  std::vector<double> all(points * fields_.size()), values(points);
  for (std::size_t f = 0; f < fields_.size(); ++f) {
    files_->read(fields_[f], partner, box, values);
    for (std::size_t i = 0; i < points; ++i) all[i * fields_.size() + f] = values[i];
  }
  if (classes == 0) return all;
  if (probabilities_) {
    if (!std::ranges::all_of(all, [](double value) { return std::isfinite(value); }))
      throw DataError(
          concat("the prediction ", files_->path(partner), " holds a probability that is no number"));
    return chosen_labels(data_, all, LabelNumbers::kProbabilities);
  }
  for (double& label : all) {
    if (std::isnan(label) || (data_.options().ignore_index && label == *data_.options().ignore_index)) {
      label = std::nan("");
      continue;
    }
    const std::optional<double> known = data_.labels().class_of(label);
    if (!known)
      throw DataError(
          concat("the prediction ", files_->path(partner), " holds the label ", label, data_.known_labels()));
    label = *known;
  }
  return all;
}

}  // namespace jigsaw::inline evaluate
