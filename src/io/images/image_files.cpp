#include "images/image_files.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "base/error.h"
#include "base/heartbeat.h"
#include "base/printable.h"
#include "base/text.h"
#include "fields/shared_files.h"
#include "fields/units.h"
#include "files/glob.h"
#include "files/nifti_file.h"
#include "images/augmentation.h"
#include "images/case_names.h"
#include "images/dim_positions.h"
#include "samples/strided_copy.h"

namespace jigsaw::inline images {

namespace {

std::vector<std::string> names(const std::vector<ImageDim>& dims) {
  std::vector<std::string> result;
  std::transform(dims.begin(), dims.end(), std::back_inserter(result),
                 [](ImageDim dim) { return name(dim); });
  return result;
}

/// Whether dims follow one another as NiftiFile turns them: channels, samples (the outermost of channels or
/// of depth), depth, height, width; all but channels have this order in ImageDim.
bool in_order_of_nifti(const std::vector<ImageDim>& dims) {
  const auto place = [](ImageDim dim) { return dim == ImageDim::kChannel ? -1 : static_cast<int>(dim); };
  return std::ranges::is_sorted(dims, {}, place);
}

/// What is right for NIfTI, which has three dims at least, where dims are those of a slice.
std::string slices_hint(bool is_nifti, const std::vector<ImageDim>& dims) {
  const bool of_slice = dims == std::vector{ImageDim::kHeight, ImageDim::kWidth};
  return is_nifti && of_slice
             ? "; slices of NIfTI, of one alone, too, are [\"sample\", \"height\", \"width\"]"
             : "";
}

}  // namespace

ImageFiles::ImageFiles(const std::vector<std::string>& paths, const std::vector<ImageDim>& dims,
                       FileOpener open_file, std::vector<double> spacing, std::vector<std::string> labels,
                       ImagePairing pairing)
    : dims_(dims),
      opener_(std::move(open_file)),
      spacing_(std::move(spacing)),
      labels_(std::move(labels)),
      pairing_(std::move(pairing)) {
  for (const std::string& path : paths) open(path);
  common_ = static_cast<int>(files_.size());
  turn_as_their_cases();
}

int ImageFiles::open(const std::string& path) {
  files_.push_back(opener_(path));
  const int number = static_cast<int>(files_.size()) - 1;
  use(number);
  return number;
}

void ImageFiles::end_selection() {
  opener_ = nullptr;
  for (const auto& file : files_) file->forget_described();
}

OwnFiles expand_own_files(const std::vector<VariableOptions>& variables, const std::filesystem::path& folder,
                          Communicator& communicator, std::vector<std::string>& all) {
  OwnFiles own;
  for (const VariableOptions& variable : variables) {
    if (variable.files.empty() || own.contains(variable.files)) continue;
    const std::vector<std::string>& its = own[variable.files] =
        expand_together(variable.files, folder, communicator);
    all.insert(all.end(), its.begin(), its.end());
  }
  return own;
}

std::vector<std::string> own_files(const VariableOptions& variable, const std::filesystem::path& folder) {
  return variable.files.empty() ? std::vector<std::string>{} : expand_patterns(variable.files, folder);
}

namespace {

const std::string& data_set_of(const VariableOptions& variable) {
  return variable.data_set.empty() ? variable.name : variable.data_set;
}

}  // namespace

/// Null where it was not selected.
const ImageFiles::Variable* ImageFiles::selected(const VariableOptions& variable,
                                                 const std::vector<std::string>& paths) const {
  const auto found = variables_.find(variable.name);
  if (found == variables_.end()) return nullptr;
  if (found->second.data_set == data_set_of(variable) && found->second.own == paths) return &found->second;
  throw DataError(concat("two variables are called ", variable.name,
                         "; give one of them a name of its own, and its name in the files as data_set"));
}

/// Without images.
ImageFiles::Variable ImageFiles::open_variable(const VariableOptions& variable,
                                               const std::vector<std::string>& paths) {
  Variable place{data_set_of(variable), 0, common_, paths, {}};
  if (!paths.empty()) {
    place.first = static_cast<int>(files_.size());
    for (const std::string& path : paths) open(path);
    place.last = static_cast<int>(files_.size());
  }
  return place;
}

/// Of each of its files.
std::vector<std::string> ImageFiles::cases_of(const VariableOptions& variable, const Variable& place) const {
  const std::vector<std::string> files = paths_of(place);
  std::vector<std::string> cases = case_names(files, place.own.empty() ? pairing_.patterns : variable.files);
  std::map<std::string, std::size_t> known;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const auto [before, is_new] = known.insert({cases[i], i});
    if (is_new || files[before->second] == files[i]) continue;
    throw DataError(concat(files[before->second], " and ", files[i], " are one case by their names, ",
                           cases[i], "; leave one of them out"));
  }
  return cases;
}

std::vector<std::string> ImageFiles::paths_of(const Variable& place) const {
  std::vector<std::string> files;
  for (int f = place.first; f < place.last; ++f) files.push_back(files_[static_cast<std::size_t>(f)]->path());
  return files;
}

const ImageFiles::Variable& ImageFiles::place(const VariableOptions& variable,
                                              const std::vector<std::string>& paths) {
  if (const Variable* known = selected(variable, paths)) return *known;
  Variable place = open_variable(variable, paths);
  place.images = images_of(place);
  check_units(place);
  place.cases = cases_of(variable, place);
  pair_with_first(variable.name, place);
  return variables_[variable.name] = std::move(place);
}

const ImageFiles::Variable& ImageFiles::known(const std::string& variable) const {
  const auto found = variables_.find(variable);
  require(found != variables_.end(), "the variable was not selected");
  return found->second;
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
  return path_of(images_[static_cast<std::size_t>(image)]);
}

const FileVariable& ImageFiles::find(int file, const std::string& data_set, const std::string& group) const {
  std::string name = data_set;
  if (const std::size_t star = name.find('*'); star != std::string::npos) name.replace(star, 1, group);
  if (const FileVariable* found = files_[static_cast<std::size_t>(file)]->find(name)) return *found;
  refuse_unknown(file, name);
}

std::vector<std::string> ImageFiles::groups(int file, const std::string& data_set) const {
  const std::size_t star = data_set.find('*');
  if (star == std::string::npos) return {""};
  const std::string before = data_set.substr(0, star), after = data_set.substr(star + 1);
  if (after.find('*') != std::string::npos) {
    throw DataError(concat("the data set ", data_set, " has more than one *; one is understood"));
  }
  std::vector<std::string> result;
  for (const FileVariable& candidate : files_[static_cast<std::size_t>(file)]->variables()) {
    const std::string& name = candidate.name;
    const bool matches = candidate.numeric() && name.size() > before.size() + after.size() &&
                         name.starts_with(before) && name.ends_with(after);
    if (matches) result.push_back(name.substr(star, name.size() - before.size() - after.size()));
  }
  if (result.empty()) refuse_unknown(file, data_set);
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
                         "; data sets of numbers there: ", known.empty() ? "none" : join(known, ", ")));
}

std::vector<ImageDim> ImageFiles::dims_of(const Variable& place, int file,
                                          const FileVariable& variable) const {
  if (place.constant) return *place.constant;
  const std::string& path = files_[static_cast<std::size_t>(file)]->path();
  files_[static_cast<std::size_t>(file)]->require_numbers(variable);
  std::vector<ImageDim> dims = dims_;
  if (variable.shape.rank() + 1 == std::ssize(dims)) std::erase(dims, ImageDim::kChannel);
  if (variable.shape.rank() != std::ssize(dims)) {
    throw DataError(concat(variable.name, " in ", path, " has ", variable.shape.rank(), " dimensions, ",
                           variable.shape, ", but data.dims names ", dims_.size(), ": ",
                           join(names(dims_), ", "), slices_hint(nifti(file) != nullptr, dims_)));
  }
  if (variable.shape.count() == 0)
    throw DataError(concat(variable.name, " in ", path, " is empty: ", variable.shape));
  if (nifti(file) != nullptr && !in_order_of_nifti(dims)) {
    throw DataError(concat(path,
                           " is NIfTI, whose axes are brought to the order depth, height, width (z, y, x of "
                           "the world) behind any channels; data.dims has ",
                           join(names(dims_), ", ")));
  }
  return dims;
}

namespace {

/// The numbers of an attribute that go with `wanted` of the dims, in that order; none unless there is one,
/// above 0, for each spatial dim, or of slices of a volume, which are samples, for that of samples, too.
std::vector<double> along_dims(const FileVariable& variable, const char* attribute,
                               const std::vector<ImageDim>& dims, const std::vector<int>& wanted,
                               double factor) {
  const auto found = variable.numbers.find(attribute);
  if (found == variable.numbers.end()) return {};
  std::vector<int> stored = spatial_positions(dims);
  const int sample = dim_position(dims, ImageDim::kSample);
  if (sample >= 0 && found->second.size() == stored.size() + 1) stored.push_back(sample);
  if (found->second.size() != stored.size()) return {};
  std::sort(stored.begin(), stored.end());
  std::vector<double> result;
  for (const int at : wanted) {
    const auto place = std::find(stored.begin(), stored.end(), at);
    if (place == stored.end()) return {};
    result.push_back(found->second[static_cast<std::size_t>(place - stored.begin())] * factor);
    if (!(result.back() > 0) || !std::isfinite(result.back())) return {};
  }
  return result;
}

/// In mm along `wanted` of the dims; empty where the file does not say it.
std::vector<double> distances(const FileVariable& variable, const std::vector<ImageDim>& dims,
                              const std::vector<int>& wanted) {
  constexpr double kMillimetresPerMicrometre = 1e-3;
  const std::vector<double> spacing = along_dims(variable, "spacing", dims, wanted, 1);
  return spacing.empty() ? along_dims(variable, "element_size_um", dims, wanted, kMillimetresPerMicrometre)
                         : spacing;
}

/// Of points in mm along depth, height, width; empty where the file does not say it.
std::vector<double> spacing_of(const FileVariable& variable, const std::vector<ImageDim>& dims) {
  return distances(variable, dims, spatial_positions(dims));
}

}  // namespace

void ImageFiles::resample(const Variable& place, const FileVariable& variable, Image& image) const {
  constexpr double kMostPoints = 1e6;  // along an axis
  const std::vector<double> own = spacing_of(variable, dims_of(place, image.file, variable));
  if (own.empty()) {
    throw DataError(
        concat(variable.name, " in ", path_of(image),
               " has no attribute spacing, in mm along each spatial dim, from which it could be brought to "
               "that of data.spacing"));
  }
  for (int d = 0; d < image.extents.rank(); ++d) {
    const auto axis = static_cast<std::size_t>(d);
    image.step.push_back(spacing_[axis] / own[axis]);
    const double last = static_cast<double>(image.extents[d] - 1) / image.step.back();
    if (!(last < kMostPoints)) {
      throw DataError(concat(variable.name, " in ", path_of(image), " lies ", own[axis],
                             " mm apart, of which data.spacing ", spacing_[axis], " makes too many points"));
    }
    image.extents[d] = static_cast<std::int64_t>(std::floor(last + kBeyondLast)) + 1;
  }
}

std::vector<ImageFiles::Image> ImageFiles::images_of(const Variable& variable) const {
  std::vector<Image> images;
  for (int f = variable.first; f < variable.last; ++f) {
    for (const std::string& group : groups(f, variable.data_set)) {
      const FileVariable& found = find(f, variable.data_set, group);
      const std::vector<ImageDim> dims = dims_of(variable, f, found);
      Shape extents;
      for (const int at : spatial_positions(dims)) extents.append(found.shape[at]);
      const int sample = dim_position(dims, ImageDim::kSample);
      const std::int64_t samples = sample < 0 ? 1 : found.shape[sample];
      const int time = dim_position(dims, ImageDim::kTime);
      const std::int64_t times = time < 0 ? 1 : found.shape[time];
      Image image{f, group, 0, 0, extents, {}};
      if (!spacing_.empty()) resample(variable, found, image);
      for (; image.sample < samples; ++image.sample)
        for (image.time = 0; image.time < times; ++image.time) images.push_back(image);
    }
  }
  return images;
}

std::vector<ImageFiles::Series> ImageFiles::series_of(const std::vector<Image>& images) {
  std::vector<Series> series;
  for (std::size_t i = 0; i < images.size(); ++i) {
    if (images[i].time == 0) series.push_back({static_cast<std::int64_t>(i), 0});
    ++series.back().steps;
  }
  return series;
}

void ImageFiles::check_units(const Variable& variable) const {
  const Image* first = nullptr;  // that says its unit
  for (const Image& image : variable.images) {
    if (image.sample > 0 || image.time > 0) continue;
    const FileVariable& found = find(image.file, variable.data_set, image.group);
    const std::string other = found.text("units");
    if (other.empty()) continue;
    if (first == nullptr) first = &image;
    const FileVariable& one = find(first->file, variable.data_set, first->group);
    const std::string units = one.text("units");
    if (same_unit(other, units)) continue;
    const auto path = [&](const Image& of) { return files_[static_cast<std::size_t>(of.file)]->path(); };
    throw DataError(concat(one.name, " is in \"", printable(units.substr(0, 60)), "\" in ", path(*first),
                           " and ", found.name == one.name ? "" : concat(found.name, " "), "in \"",
                           printable(other.substr(0, 60)), "\" in ", path(image),
                           "; a variable must have one unit"));
  }
}

/// 0 for data sets without the dim.
std::int64_t ImageFiles::channels_of(const Variable& variable) const {
  std::optional<std::int64_t> channels;
  for (int f = variable.first; f < variable.last; ++f) {
    for (const std::string& group : groups(f, variable.data_set)) {
      const FileVariable& found = find(f, variable.data_set, group);
      const int at = dim_position(dims_of(variable, f, found), ImageDim::kChannel);
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

std::vector<Field> ImageFiles::select(const VariableOptions& variable,
                                      const std::vector<std::string>& paths) {
  const Variable& place = this->place(variable, paths);
  if (images_.empty()) begin_images(variable.name, place);
  return fields_of(variable, place);
}

std::vector<Field> ImageFiles::fields_of(const VariableOptions& variable, const Variable& place) const {
  const std::int64_t channels = channels_of(place);
  std::vector<Field> fields;
  for (const double level : variable.levels) {
    if (level < 0 || level >= static_cast<double>(channels) ||
        level != static_cast<double>(static_cast<std::int64_t>(level))) {
      throw DataError(concat(variable.name, " in ", files_[static_cast<std::size_t>(place.first)]->path(),
                             " has no channel ", level, "; there are ", channels));
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
  const Variable& variable = known(field.variable);
  const Image& first = variable.images[0];
  const auto& texts = find(first.file, variable.data_set, first.group).texts;
  const auto found = texts.find("units");
  return found == texts.end() ? none : found->second;
}

ImageSource ImageFiles::source(const std::string& variable, std::int64_t image) const {
  const Variable& place = known(variable);
  const Image& at = place.images[static_cast<std::size_t>(image)];
  const VariableFile& file = *files_[static_cast<std::size_t>(at.file)];
  const FileVariable& stored = find(at.file, place.data_set, at.group);
  ImageSource source{at.file, file.path(), stored.name, at.group, at.sample, stored.shape, {},
                     {},      {},          {},          {},       nullptr,   at.step};
  source.dims = dims_of(place, at.file, stored);
  for (const int d : spatial_positions(source.dims)) source.extents.append(stored.shape[d]);
  if (std::ssize(stored.dimensions) == stored.shape.rank()) source.names = stored.dimensions;
  source.spacing = spacing_of(stored, source.dims);
  const std::vector<double> apart =
      distances(stored, source.dims, {dim_position(source.dims, ImageDim::kSample)});
  if (!apart.empty()) source.apart = apart[0];
  if (const auto affine = stored.numbers.find("affine");
      affine != stored.numbers.end() && affine->second.size() == 12)
    source.affine = affine->second;
  if (const auto* nifti = dynamic_cast<const NiftiFile*>(&file)) source.nifti = &nifti->header();
  return source;
}

/// Along depth, height and width.
Shape ImageFiles::stored_extents(const Variable& variable, const Image& image) const {
  const FileVariable& stored = find(image.file, variable.data_set, image.group);
  Shape extents;
  for (const int at : spatial_positions(dims_of(variable, image.file, stored)))
    extents.append(stored.shape[at]);
  return extents;
}

void ImageFiles::read(const Field& field, std::int64_t image, const Box& box, std::span<double> out) {
  const Variable& place = known(field.variable);
  const Image& source = place.images[static_cast<std::size_t>(image)];
  if (source.step.empty()) return read_stored(place, field, source, box, out);
  const Shape stored = stored_extents(place, source);
  const bool label = std::find(labels_.begin(), labels_.end(), field.variable) != labels_.end();
  const Interpolation between(Box::whole(stored), label);
  std::vector<Warp::Point> points(out.size(), Warp::Point{});
  const Shape strides = box.extent.strides();
  for (std::size_t i = 0; i < points.size(); ++i) {
    std::int64_t rest = static_cast<std::int64_t>(i);
    for (int d = 0; d < strides.rank(); ++d) {
      const auto axis = static_cast<std::size_t>(d);
      const std::int64_t point = box.begin[d] + rest / strides[d];
      points[i][axis] = source.step[axis] * static_cast<double>(point);
      rest %= strides[d];
    }
  }
  const Box needed = between.needed(points);
  std::vector<double> values(static_cast<std::size_t>(needed.extent.count()));
  read_stored(place, field, source, needed, values);
  for (std::size_t i = 0; i < points.size(); ++i) out[i] = between.at(points[i], needed, values);
}

void ImageFiles::read_own(const Field& field, std::int64_t image, const Box& box, std::span<double> out) {
  const Variable& place = known(field.variable);
  read_stored(place, field, place.images[static_cast<std::size_t>(image)], box, out);
}

void ImageFiles::read_stored(const Variable& place, const Field& field, const Image& source, const Box& box,
                             std::span<double> out) {
  const FileVariable& variable = find(source.file, place.data_set, source.group);
  const std::vector<ImageDim> dims = dims_of(place, source.file, variable);
  std::vector<int> space;  // of each axis; -1 where it is the same along it
  for (const int axis : spatial_positions(dims_))
    space.push_back(dim_position(dims, dims_[static_cast<std::size_t>(axis)]));
  Box slab{Shape::filled(variable.shape.rank(), 0), Shape::filled(variable.shape.rank(), 1)};
  if (const int at = dim_position(dims, ImageDim::kSample); at >= 0) slab.begin[at] = source.sample;
  if (const int at = dim_position(dims, ImageDim::kTime); at >= 0) slab.begin[at] = source.time;
  if (const int at = dim_position(dims, ImageDim::kChannel); at >= 0) {
    slab.begin[at] = static_cast<std::int64_t>(field.level.value_or(0));
  }
  for (int d = 0; d < box.extent.rank(); ++d) {
    const int at = space[static_cast<std::size_t>(d)];
    if (at < 0) continue;
    slab.begin[at] = box.begin[d];
    slab.extent[at] = box.extent[d];
  }
  const bool in_order = slab.extent.count() == std::ssize(out) && std::ranges::is_sorted(space);
  std::vector<double> as_stored(in_order ? 0 : static_cast<std::size_t>(slab.extent.count()));
  {
    const std::lock_guard lock(mutex_);
    use(source.file).read<double>(variable, slab, in_order ? out : std::span<double>(as_stored));
    beat();
  }
  if (in_order) return;
  const Shape strides = slab.extent.strides();
  std::vector<std::int64_t> of_space;
  std::transform(space.begin(), space.end(), std::back_inserter(of_space),
                 [&](int at) { return at < 0 ? 0 : strides[at]; });
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

}  // namespace jigsaw::inline images
