#include "predict/output_images.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "predict/written_precision.h"
#include "samples/strided_copy.h"

namespace jigsaw::inline predict {

namespace {

/// How many samples the data set of an image holds. @param otherwise  where it has no dim of samples.
std::int64_t samples_of(const ImageSource& source, std::int64_t otherwise) {
  const auto found = std::ranges::find(source.dims, ImageDim::kSample);
  return found == source.dims.end() ? otherwise
                                    : source.stored[static_cast<int>(found - source.dims.begin())];
}

}  // namespace

std::vector<ImageResult> image_results(const ImageData& data, ClassOutput classes) {
  std::vector<ImageResult> results;
  if (const std::int64_t count = data.options().label_outputs(); count > 0) {
    ImageResult result{
        data.channels().targets[0].field.variable, 0, 1, false, "class", OutputImage::Type::kFloat, ""};
    if (classes == ClassOutput::kProbabilities) {
      result.count = count;
      result.has_channels = true;
    } else {
      result.type = data.labels().largest() < 256 ? OutputImage::Type::kByte : OutputImage::Type::kShort;
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
    if (needs_double_precision(targets[c], data.statistics().of(field)))
      results.back().type = OutputImage::Type::kDouble;
    if (field.level) results.back().channels.push_back(static_cast<std::int64_t>(*field.level));
  }
  return results;
}

OutputImages::OutputImages(const ImageData& data, const std::vector<ImageResult>& results, int file,
                           OutputFile& output, const std::map<std::string, std::string>& attributes)
    : data_(data),
      results_(results),
      output_(output),
      format_(*image_format(output.path())),
      input_(data.channels().inputs[0].field.variable) {
  std::vector<OutputImage> images;
  const NiftiHeader* like = nullptr;
  for (std::int64_t image = 0; image < data.files().count(); ++image) {
    const ImageSource source = data.files().source(input_, image);
    if (source.file != file) continue;
    like = source.nifti;
    if (of_nifti() && !sets_.empty() && !sets_.contains(name_of(source, results[0]))) {
      throw DataError(concat(output.path(), " cannot be written: NIfTI holds one image, and ", source.path,
                             " holds more; name an output of .h5 or .nc"));
    }
    for (const ImageResult& result : results) {
      const std::string name = name_of(source, result);
      if (!sets_.emplace(name, images.size()).second) continue;
      images.push_back(describe(source, source_of(image, result), result));
    }
  }
  file_ = create_image_output(format_, output.temporary(), images, attributes, like, axes_.all());
}

std::string OutputImages::name_of(const ImageSource& source, const ImageResult& result) const {
  std::string name = result.variable;
  if (const std::size_t star = name.find('*'); star != std::string::npos) {
    name.replace(star, 1, source.group);
  } else if (!source.group.empty()) {
    name = concat(source.group, "/", name);
  }
  return name;
}

std::vector<ImageDim> OutputImages::dims_of(const ImageSource& source, const ImageResult& result) const {
  std::vector<ImageDim> dims = source.dims;
  const auto channel = std::find(dims.begin(), dims.end(), ImageDim::kChannel);
  const bool has_place = channel != dims.end();
  if (of_nifti()) {
    const bool samples = std::ranges::find(dims, ImageDim::kSample) != dims.end();
    dims = data_.options().space();
    if (samples) dims.insert(dims.begin(), ImageDim::kSample);
  } else if (has_place && !result.has_channels) {
    dims.erase(channel);
  }
  if (result.has_channels && std::find(dims.begin(), dims.end(), ImageDim::kChannel) == dims.end())
    dims.insert(of_nifti() ? dims.begin() : std::find_if(dims.begin(), dims.end(), is_spatial),
                ImageDim::kChannel);
  return dims;
}

/// What stands along the dims that a result has of its input, as it is written; of a format without
/// coordinates their names alone, or nothing.
ImageAxes OutputImages::axes_of(const ImageSource& source, const ImageResult& result) {
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

OutputImage OutputImages::describe(const ImageSource& first, const ImageSource& source,
                                   const ImageResult& result) {
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
    const bool slices = of_nifti() && dim == ImageDim::kSample && space.size() == 2;
    image.dimensions.push_back(slices                      ? name(ImageDim::kDepth)
                               : names.contains(dim)       ? names.at(dim)
                               : dim == ImageDim::kChannel ? result.channel
                                                           : name(dim));
    const auto axis = static_cast<std::size_t>(std::find(space.begin(), space.end(), dim) - space.begin());
    image.shape.append(dim == ImageDim::kChannel ? result.count
                       : is_spatial(dim)         ? source.extents[static_cast<int>(axis)]
                                                 : samples_of(first, source.stored[static_cast<int>(at)]));
    if (axis < source.spacing.size()) spacing.push_back(source.spacing[axis]);
    if (dim == ImageDim::kSample && source.apart > 0 && !source.spacing.empty())
      spacing.push_back(source.apart);
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

void OutputImages::write(std::int64_t image, const ImagePart& part) {
  const ImageSource first = data_.files().source(input_, image);
  const std::vector<ImageDim> space = data_.options().space();
  const std::int64_t points = part.box.extent.count(), numbers = std::ssize(part.values) / points;
  const Shape strides = part.box.extent.strides();
  for (const ImageResult& result : results_) {
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
    copy_strided(part.values, result.first, steps, box.extent, ordered);
    file_->write(sets_.at(name_of(first, result)), box, ordered);
  }
}

}  // namespace jigsaw::inline predict
