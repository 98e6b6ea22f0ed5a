#include "samples/image_files.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "base/error.h"
#include "base/heartbeat.h"
#include "base/text.h"
#include "samples/strided_copy.h"

namespace jigsaw::inline samples {

namespace {

/// Position of a dim, or -1.
int position(const std::vector<ImageDim>& dims, ImageDim dim) {
  const auto found = std::find(dims.begin(), dims.end(), dim);
  return found == dims.end() ? -1 : static_cast<int>(found - dims.begin());
}

std::vector<std::string> names(const std::vector<ImageDim>& dims) {
  std::vector<std::string> result;
  std::transform(dims.begin(), dims.end(), std::back_inserter(result),
                 [](ImageDim dim) { return name(dim); });
  return result;
}

/// Positions of the spatial dims in the order of fields.
std::vector<int> spatial_positions(const std::vector<ImageDim>& dims) {
  std::vector<int> result;
  for (const ImageDim dim : {ImageDim::kDepth, ImageDim::kHeight, ImageDim::kWidth}) {
    if (const int at = position(dims, dim); at >= 0) result.push_back(at);
  }
  return result;
}

}  // namespace

ImageFiles::ImageFiles(const std::vector<std::string>& paths, const std::vector<ImageDim>& dims,
                       External external)
    : dims_(dims) {
  for (const std::string& path : paths) {
    files_.push_back(open_variables(path, Dimensions::kByNumber, external));
    use(static_cast<int>(files_.size()) - 1);
  }
}

VariableFile& ImageFiles::use(int file) {
  std::erase(open_, file);
  open_.push_back(file);
  if (open_.size() > kMostOpenFiles) {
    files_[static_cast<std::size_t>(open_.front())]->close();
    open_.pop_front();
  }
  return *files_[static_cast<std::size_t>(file)];
}

const std::string& ImageFiles::path(std::int64_t image) const {
  return files_[static_cast<std::size_t>(images_[static_cast<std::size_t>(image)].file)]->path();
}

const FileVariable& ImageFiles::find(int file, const std::string& variable, const std::string& group) const {
  std::string name = variable;
  if (const std::size_t star = name.find('*'); star != std::string::npos) name.replace(star, 1, group);
  if (const FileVariable* found = files_[static_cast<std::size_t>(file)]->find(name)) return *found;
  refuse_unknown(file, name);
}

std::vector<std::string> ImageFiles::groups(int file, const std::string& variable) const {
  const std::size_t star = variable.find('*');
  if (star == std::string::npos) return {""};
  const std::string before = variable.substr(0, star), after = variable.substr(star + 1);
  if (after.find('*') != std::string::npos) {
    throw DataError(concat("the data set ", variable, " has more than one *; one is understood"));
  }
  std::vector<std::string> result;
  for (const FileVariable& candidate : files_[static_cast<std::size_t>(file)]->variables()) {
    const std::string& name = candidate.name;
    const bool matches = candidate.numeric() && name.size() > before.size() + after.size() &&
                         name.starts_with(before) && name.ends_with(after);
    if (matches) result.push_back(name.substr(star, name.size() - before.size() - after.size()));
  }
  if (result.empty()) refuse_unknown(file, variable);
  std::sort(result.begin(), result.end());
  return result;
}

void ImageFiles::refuse_unknown(int file, const std::string& variable) const {
  const VariableFile& source = *files_[static_cast<std::size_t>(file)];
  std::vector<std::string> known;
  for (const FileVariable& candidate : source.variables()) {
    if (candidate.numeric()) known.push_back(candidate.name);
  }
  throw DataError(concat("no data set ", variable, " in ", source.path(), did_you_mean(variable, known),
                         "; there is ", known.empty() ? "none of numbers" : join(known, ", ")));
}

std::vector<ImageDim> ImageFiles::dims_of(int file, const FileVariable& variable) const {
  const std::string& path = files_[static_cast<std::size_t>(file)]->path();
  files_[static_cast<std::size_t>(file)]->require_numbers(variable);
  std::vector<ImageDim> dims = dims_;
  if (variable.shape.rank() + 1 == std::ssize(dims)) std::erase(dims, ImageDim::kChannel);
  if (variable.shape.rank() != std::ssize(dims)) {
    throw DataError(concat(variable.name, " in ", path, " has ", variable.shape.rank(), " dimensions, ",
                           variable.shape, ", but data.dims names ", dims_.size(), ": ",
                           join(names(dims_), ", ")));
  }
  if (variable.shape.count() == 0)
    throw DataError(concat(variable.name, " in ", path, " is empty: ", variable.shape));
  return dims;
}

std::vector<ImageFiles::Image> ImageFiles::images_of(const std::string& variable) const {
  std::vector<Image> images;
  for (int f = 0; f < static_cast<int>(files_.size()); ++f) {
    for (const std::string& group : groups(f, variable)) {
      const FileVariable& found = find(f, variable, group);
      const std::vector<ImageDim> dims = dims_of(f, found);
      Shape extents;
      for (const int at : spatial_positions(dims)) extents.append(found.shape[at]);
      const int sample = position(dims, ImageDim::kSample);
      const std::int64_t samples = sample < 0 ? 1 : found.shape[sample];
      for (std::int64_t i = 0; i < samples; ++i) images.push_back({f, group, i, extents});
    }
  }
  return images;
}

/// 0 for data sets without the dim.
std::int64_t ImageFiles::channels_of(const std::string& variable) const {
  std::optional<std::int64_t> channels;
  for (int f = 0; f < static_cast<int>(files_.size()); ++f) {
    for (const std::string& group : groups(f, variable)) {
      const FileVariable& found = find(f, variable, group);
      const int at = position(dims_of(f, found), ImageDim::kChannel);
      const std::int64_t here = at < 0 ? 0 : found.shape[at];
      if (here != channels.value_or(here)) {
        throw DataError(concat(found.name, " has ", here, " channels in ",
                               files_[static_cast<std::size_t>(f)]->path(), ", and ", *channels,
                               " in the data sets before"));
      }
      channels = here;
    }
  }
  return channels.value_or(0);
}

std::vector<Field> ImageFiles::select(const VariableOptions& variable) {
  const std::vector<Image> images = images_of(variable.name);
  if (images_.empty()) {
    images_ = images;
    first_variable_ = variable.name;
  }
  const auto same = [](const Image& a, const Image& b) {
    return a.file == b.file && a.group == b.group && a.extents == b.extents;
  };
  if (!std::equal(images.begin(), images.end(), images_.begin(), images_.end(), same)) {
    throw DataError(concat("the images of ", variable.name, " in ", files_[0]->path(),
                           files_.size() > 1 ? " and the other files" : "",
                           " differ in number, groups or extents (", images[0].extents, ") from those of ",
                           first_variable_, " (", images_[0].extents, ")"));
  }
  const std::int64_t channels = channels_of(variable.name);
  std::vector<Field> fields;
  for (const double level : variable.levels) {
    if (level < 0 || level >= static_cast<double>(channels) ||
        level != static_cast<double>(static_cast<std::int64_t>(level))) {
      throw DataError(concat(variable.name, " in ", files_[0]->path(), " has no channel ", level,
                             "; there are ", channels));
    }
    fields.push_back({variable.name, level});
  }
  if (!fields.empty()) return fields;
  if (channels == 0) return {{variable.name, std::nullopt}};
  for (std::int64_t c = 0; c < channels; ++c) fields.push_back({variable.name, static_cast<double>(c)});
  return fields;
}

const std::string& ImageFiles::units(const Field& field) const {
  static const std::string none;
  const auto& texts = find(0, field.variable, groups(0, field.variable)[0]).texts;
  const auto found = texts.find("units");
  return found == texts.end() ? none : found->second;
}

void ImageFiles::read(const Field& field, std::int64_t image, const Box& box, std::span<double> out) {
  const Image& source = images_[static_cast<std::size_t>(image)];
  const FileVariable& variable = find(source.file, field.variable, source.group);
  const std::vector<ImageDim> dims = dims_of(source.file, variable);
  const std::vector<int> space = spatial_positions(dims);
  Box slab{Shape::filled(variable.shape.rank(), 0), Shape::filled(variable.shape.rank(), 1)};
  if (const int at = position(dims, ImageDim::kSample); at >= 0) slab.begin[at] = source.sample;
  if (const int at = position(dims, ImageDim::kChannel); at >= 0) {
    slab.begin[at] = static_cast<std::int64_t>(field.level.value_or(0));
  }
  for (int d = 0; d < box.extent.rank(); ++d) {
    const int at = space[static_cast<std::size_t>(d)];
    slab.begin[at] = box.begin[d];
    slab.extent[at] = box.extent[d];
  }
  const bool in_order = std::is_sorted(space.begin(), space.end());
  std::vector<double> as_stored(in_order ? 0 : out.size());
  {
    const std::lock_guard lock(mutex_);
    use(source.file).read<double>(variable, slab, in_order ? out : std::span<double>(as_stored));
    beat();
  }
  if (in_order) return;
  const Shape strides = slab.extent.strides();
  std::vector<std::int64_t> of_space;
  std::transform(space.begin(), space.end(), std::back_inserter(of_space),
                 [&](int at) { return strides[at]; });
  copy_strided(as_stored, 0, of_space, box.extent, out);
}

std::map<std::string, UndeclaredValues> ImageFiles::undeclared() const {
  std::map<std::string, UndeclaredValues> found;
  for (const auto& file : files_) {
    for (const auto& [name, values] : file->undeclared()) found[concat(name, " in ", file->path())] = values;
  }
  return found;
}

std::int64_t ImageFiles::bytes_read() const {
  return std::accumulate(files_.begin(), files_.end(), std::int64_t{0},
                         [](std::int64_t sum, const auto& file) { return sum + file->bytes_read(); });
}

std::int64_t ImageFiles::bytes_fetched() const {
  return std::accumulate(files_.begin(), files_.end(), std::int64_t{0},
                         [](std::int64_t sum, const auto& file) { return sum + file->bytes_fetched(); });
}

}  // namespace jigsaw::inline samples
