// What is constant in time beside images that are states: which data set of which file belongs to each.
#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "images/dim_positions.h"
#include "images/image_files.h"

namespace jigsaw::inline images {

bool ImageFiles::fits_constant(const Image& like, const FileVariable& variable,
                               const std::vector<ImageDim>& dims) {
  if (variable.shape.rank() != std::ssize(dims)) return false;
  const std::vector<int> space = spatial_positions(dims);
  for (int d = 0; d < static_cast<int>(space.size()); ++d)
    if (variable.shape[space[static_cast<std::size_t>(d)]] != like.extents[d]) return false;
  return true;
}

/// How many samples the data set of an image of the first variable has; 0 without that dim.
std::int64_t ImageFiles::samples_beside(const Image& like) const {
  const Variable& first = known(first_variable_);
  const FileVariable& beside = find(like.file, first.data_set, like.group);
  const int sample = dim_position(dims_of(first, like.file, beside), ImageDim::kSample);
  return sample < 0 ? 0 : beside.shape[sample];
}

/// What may be constant beside images of these dims, that of most dims first, and of as many first those with
/// samples. Channels go with space, else any row of numbers would be of channels, or with samples, in a table
/// of one row for each.
std::vector<std::vector<ImageDim>> ImageFiles::dims_of_constants() const {
  std::vector<std::vector<ImageDim>> all;
  for (const bool space : {true, false}) {
    for (const bool sample : {true, false}) {
      for (const bool channel : {true, false}) {
        std::vector<ImageDim> dims = dims_;
        std::erase_if(dims, [&](ImageDim dim) {
          return dim == ImageDim::kTime || (is_spatial(dim) && !space) ||
                 (dim == ImageDim::kSample && !sample) ||
                 (dim == ImageDim::kChannel && !(channel && (space || sample)));
        });
        all.push_back(dims);
        // Fields without channels may have a table beside them.
        if (!space && channel && dims == std::vector{ImageDim::kSample})
          all.insert(all.end() - 1, std::vector{ImageDim::kSample, ImageDim::kChannel});
      }
    }
  }
  return all;
}

/// @param like  an image of the first variable.
std::vector<ImageDim> ImageFiles::dims_of_constant(const Image& like, const FileVariable& variable) const {
  const std::int64_t samples = samples_beside(like);
  std::optional<std::int64_t> others;
  for (const std::vector<ImageDim>& dims : dims_of_constants()) {
    if (!fits_constant(like, variable, dims)) continue;
    const int sample = dim_position(dims, ImageDim::kSample);
    if (sample < 0 || variable.shape[sample] == samples) return dims;
    if (!others) others = variable.shape[sample];
  }
  throw DataError(concat(variable.name, " is ", variable.shape, ", and the images of ", first_variable_,
                         " in ", path_of(like), " are ", like.extents,
                         "; what is constant in time has the dimensions of data.dims without \"time\", or "
                         "without \"sample\", too, or without those of space",
                         others ? concat("; it has ", *others, *others == 1 ? " entry" : " entries", " for ",
                                         counted(samples, "sequence"))
                                : ""));
}

/// Turns the file of what is constant beside an image of the first variable as that.
void ImageFiles::orient_constant(const Variable& place, const Image& own, const Image& beside,
                                 std::map<int, int>& turned) {
  ImageOrientation of_case = orientation(known(first_variable_), beside);
  of_case.in_world = in_world_.contains(beside.file);
  if (are_paired_by_index(of_case, orientation(place, own))) turn(own.file, of_case, beside, turned);
}

const ImageFiles::Variable& ImageFiles::place_constant(const VariableOptions& variable,
                                                       const std::vector<std::string>& paths) {
  if (const Variable* known = selected(variable, paths)) {
    if (known->constant) return *known;
    throw ConfigError(
        concat("data.static names ", variable.name, ", which is named before; each field has one role"));
  }
  Variable place = open_variable(variable, paths);
  place.cases = cases_of(variable, place);
  const Variable& first = known(first_variable_);
  const bool one = place.files() == 1;
  if (!one && place.files() != first.files()) {
    throw DataError(concat(variable.name, " has ", place.files(), " files and ", first_variable_, " ",
                           first.files(), "; name one, or one for each of these"));
  }
  const bool by_case =
      !one && !place.own.empty() && are_of_cases(variable.name, place, first.cases, place.cases);
  const auto file_of = [&](const Image& image) {
    const int beside = image.file - first.first;
    if (!by_case) return place.first + (one ? 0 : beside);
    const auto own = std::ranges::find(place.cases, first.cases[static_cast<std::size_t>(beside)]);
    return place.first + static_cast<int>(own - place.cases.begin());
  };
  std::map<int, int> turned;
  for (const Image& image : images_) {
    Image own = image;
    own.file = file_of(image);
    own.time = 0;
    if (image.time == 0) {
      if (!place.own.empty()) orient_constant(place, own, image, turned);
      const FileVariable& stored = find(own.file, place.data_set, own.group);
      files_[static_cast<std::size_t>(own.file)]->require_numbers(stored);
      const std::vector<ImageDim> dims = dims_of_constant(image, stored);
      if (place.constant && dims != *place.constant) {
        throw DataError(concat(stored.name, " in ", path_of(own), " is ", stored.shape,
                               ", of other dimensions than in ", path_of(place.images[0])));
      }
      place.constant = dims;
      if (one && first.files() > 1 && dim_position(dims, ImageDim::kSample) >= 0) {
        throw DataError(concat(variable.name, " has samples in one file, ", path_of(own), ", and ",
                               first_variable_, " has ", first.files(),
                               " files; name a file for each of these, or one without samples for all"));
      }
    }
    if (dim_position(*place.constant, ImageDim::kSample) < 0) own.sample = 0;
    place.images.push_back(own);
  }
  check_units(place);
  return variables_[variable.name] = std::move(place);
}

std::vector<Field> ImageFiles::select_constant(const VariableOptions& variable,
                                               const std::vector<std::string>& paths) {
  return fields_of(variable, place_constant(variable, paths));
}

}  // namespace jigsaw::inline images
