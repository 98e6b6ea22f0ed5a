// How images of several variables are found to belong together.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <tuple>

#include "base/error.h"
#include "base/text.h"
#include "files/nifti_file.h"
#include "images/case_names.h"
#include "images/dim_positions.h"
#include "images/image_files.h"

namespace jigsaw::inline images {

namespace {

/// Those that others lack.
std::vector<std::string> lacking(const std::vector<std::string>& names,
                                 const std::vector<std::string>& others) {
  std::vector<std::string> sorted = others, result;
  std::ranges::sort(sorted);
  for (const std::string& name : names)
    if (!std::ranges::binary_search(sorted, name)) result.push_back(name);
  return result;
}

std::string short_number(double value) {
  char words[32];
  std::snprintf(words, sizeof words, "%.3g", value);
  return words;
}

using Vector3 = std::array<double, 3>;

double distance(const Vector3& a, const Vector3& b) {
  return std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
}

}  // namespace

std::string fault_of_places(const ImagePlace& here, const ImagePlace& there, double alignment) {
  constexpr double kRounding = 1e-6;
  double apart = 0;
  for (std::size_t corner = 0; corner < 8; ++corner)
    apart = std::max(apart, distance(here.corners[corner], there.corners[corner]));
  if (apart <= alignment * here.edge + kRounding * here.edge) return "";
  return concat("in the world their corners are up to ", short_number(apart), " mm apart, ",
                short_number(apart / here.edge), " voxels; data.alignment allows ", alignment,
                ", and null pairs points by their indices in the files, whatever places these say");
}

std::optional<ImagePlace> ImageFiles::place_of(const std::string& variable, std::int64_t image) const {
  const Variable& place = known(variable);
  return placement(place, place.images[static_cast<std::size_t>(image)]);
}

/// Of the variable that is selected first.
void ImageFiles::begin_images(const std::string& name, const Variable& place) {
  images_ = place.images;
  series_ = series_of(images_);
  first_variable_ = name;
  cases_.clear();
  for (const Image& image : images_) {
    const std::string& file = place.cases[static_cast<std::size_t>(image.file - place.first)];
    const bool alone = place.files() == 1 && !image.group.empty();
    cases_.push_back(alone ? image.group : image.group.empty() ? file : concat(file, "/", image.group));
    if (orientation(place, image).in_world) in_world_.insert(image.file);
  }
}

const std::string& ImageFiles::file_case(std::int64_t image) const {
  const Variable& first = known(first_variable_);
  return first.cases[static_cast<std::size_t>(images_[static_cast<std::size_t>(image)].file - first.first)];
}

std::vector<std::int64_t> ImageFiles::unordered_pairs() const {
  std::vector<std::int64_t> result;
  for (const auto& [name, variable] : variables_) {
    std::vector<std::int64_t> numbers(variable.images.size());
    const std::vector<Image>& images = variable.images;
    const auto before = [&images](std::int64_t a, std::int64_t b) {
      return images[static_cast<std::size_t>(a)].file < images[static_cast<std::size_t>(b)].file;
    };
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<std::int64_t>(i);
    if (std::ranges::is_sorted(numbers, before)) continue;
    std::stable_sort(numbers.begin(), numbers.end(), before);
    result.push_back(static_cast<std::int64_t>(stable_hash(name)));
    result.insert(result.end(), numbers.begin(), numbers.end());
  }
  return result;
}

std::string ImageFiles::where(const std::string& name, const Variable& variable, const Image& image) const {
  const bool in_group = !image.group.empty();
  return concat(in_group ? find(image.file, variable.data_set, image.group).name : name, " in ",
                path_of(image));
}

void ImageFiles::pair_with_first(const std::string& name, Variable& place) {
  if (images_.empty()) return;
  const Variable& first = known(first_variable_);
  const bool other_files = place.images[0].file != images_[0].file;
  const bool several = first.files() > 1 || place.files() > 1;
  if (other_files && several && has_cases(first) && has_cases(place)) order_by_case(name, place);
  if (other_files) orient(name, place);
  take_grids_of_cases(place);
  check_images(name, place);
  if (pairing_.alignment && other_files) check_places(name, place);
}

/// Whether files stand for cases: of one image each, or several that are each a volume, perhaps of slices, or
/// of sequences.
bool ImageFiles::has_cases(const Variable& variable) const {
  if (std::ssize(variable.images) == variable.files()) return true;
  if (variable.files() < 2) return false;
  if (dim_position(dims_, ImageDim::kTime) >= 0) return true;
  return std::all_of(files_.begin() + variable.first, files_.begin() + variable.last,
                     [](const auto& file) { return dynamic_cast<const NiftiFile*>(file.get()) != nullptr; });
}

/// Whether its files are of the cases of the first variable's: not where no case is in both, whose order
/// stays.
bool ImageFiles::are_of_cases(const std::string& name, const Variable& place,
                              const std::vector<std::string>& firsts,
                              const std::vector<std::string>& own) const {
  const Variable& first = known(first_variable_);
  const std::vector<std::string> here = lacking(firsts, own), there = lacking(own, firsts);
  if (here.size() == firsts.size()) return false;
  if (!here.empty() || !there.empty()) {
    const auto lacks = [&](const std::string& variable, const Variable& of,
                           const std::vector<std::string>& cases) {
      const std::string path = files_[static_cast<std::size_t>(of.first)]->path();
      return cases.empty() ? ""
                           : concat(variable, " in ", std::filesystem::path(path).parent_path().string(),
                                    " lacks ", first_of(cases));
    };
    throw DataError(concat("the files of ", first_variable_, " and ", name, " are not of the same cases: ",
                           lacks(name, place, here), here.empty() || there.empty() ? "" : ", and ",
                           lacks(first_variable_, first, there),
                           "; leave out the files without a partner, or name them so that what * stands for "
                           "is alike"));
  }
  return true;
}

/// Where one variable is a pattern and the other a list, whose names are cut otherwise, the names of the
/// files may still be alike.
void ImageFiles::order_by_case(const std::string& name, Variable& place) const {
  const Variable& first = known(first_variable_);
  std::vector<std::string> firsts = first.cases, own = place.cases;
  if (lacking(firsts, own).size() == firsts.size()) {
    firsts = file_stems(paths_of(first));
    own = file_stems(paths_of(place));
  }
  place.by_order = !are_of_cases(name, place, firsts, own);
  if (place.by_order) return;
  std::map<std::string, std::vector<Image>> of_case;
  for (const Image& image : place.images)
    of_case[own[static_cast<std::size_t>(image.file - place.first)]].push_back(image);
  place.images.clear();
  for (const std::string& each : firsts)
    place.images.insert(place.images.end(), of_case[each].begin(), of_case[each].end());
}

/// Data sets of groups, or samples, that stand in the files of the first variable.
void ImageFiles::check_same_files(const Variable& place) const {
  const Variable& first = known(first_variable_);
  const std::vector<Image>&a = images_, &b = place.images;
  const auto key = [](const Image& image) { return std::tie(image.file, image.group, image.sample); };
  const auto [one, other] = std::mismatch(a.begin(), a.end(), b.begin(), b.end(),
                                          [&](const Image& x, const Image& y) { return key(x) == key(y); });
  if (one == a.end() && other == b.end()) return;
  const bool lacks = other == b.end() || (one != a.end() && key(*one) < key(*other));
  const Image& without = lacks ? *one : *other;
  const auto text = [&](const std::string& data_set) {
    std::string result = data_set;
    if (const std::size_t star = result.find('*'); star != std::string::npos)
      result.replace(star, 1, without.group);
    return without.sample > 0 ? concat("sample ", without.sample, " of ", result) : result;
  };
  throw DataError(concat(path_of(without), " holds no ", text(lacks ? place.data_set : first.data_set),
                         " beside ", text(lacks ? first.data_set : place.data_set)));
}

/// Images of a case have the points of the common spacing that the first variable's has: of another spacing
/// by rounding alone, or of none that counts where points are paired by their indices, the same; of other
/// extents in the file as many, if they reach as far.
void ImageFiles::take_grid_of_case(const Image& first, const Variable& place, Image& own) const {
  if (own.step == first.step && own.extents == first.extents) return;
  const Variable& of_first = known(first_variable_);
  const Shape points = stored_extents(place, own), others = stored_extents(of_first, first);
  if (points.rank() != others.rank()) return;
  ImageOrientation of_case = orientation(of_first, first);
  of_case.in_world = in_world_.contains(first.file);
  const bool by_index = nifti(own.file) != nullptr && are_paired_by_index(of_case, orientation(place, own));
  bool is_same = points == others;
  for (int d = 0; d < points.rank(); ++d) {
    const auto axis = static_cast<std::size_t>(d);
    const double last = static_cast<double>(points[d] - 1) / own.step[axis],
                 wanted = static_cast<double>(first.extents[d] - 1),
                 apart = last - static_cast<double>(others[d] - 1) / first.step[axis];
    is_same = is_same && (by_index || std::abs(apart) <= kBeyondLast);
    if (last + 2 * kBeyondLast >= wanted && last < wanted + 1) own.extents[d] = first.extents[d];
  }
  if (!is_same) return;
  own.step = first.step;
  own.extents = first.extents;
}

void ImageFiles::take_grids_of_cases(Variable& place) const {
  for (std::size_t i = 0; !spacing_.empty() && i < std::min(images_.size(), place.images.size()); ++i)
    take_grid_of_case(images_[i], place, place.images[i]);
}

void ImageFiles::check_images(const std::string& name, const Variable& place) const {
  const Variable& first = known(first_variable_);
  if (place.images[0].file == images_[0].file) check_same_files(place);
  const std::size_t count = std::min(images_.size(), place.images.size());
  // Of as many files the first that holds more or fewer images.
  if (first.files() == place.files()) {
    std::size_t here = 0, there = 0;
    while (here < images_.size() && there < place.images.size()) {
      const auto next = [](const std::vector<Image>& images, std::size_t& from) {
        const std::size_t begin = from;
        while (from < images.size() && images[from].file == images[begin].file) ++from;
        return from - begin;
      };
      const Image &one = images_[here], &other = place.images[there];
      const std::size_t ones = next(images_, here), others = next(place.images, there);
      if (ones == others || images_.size() == place.images.size()) continue;
      throw DataError(concat(where(name, place, other), " holds ",
                             counted(static_cast<std::int64_t>(others), "image"), ", and ",
                             where(first_variable_, first, one), " ", ones));
    }
  }
  if (images_.size() != place.images.size() && place.by_order) {
    throw DataError(concat(name, " has ", counted(std::ssize(place.images), "image"), " and ",
                           first_variable_, " ", images_.size(),
                           ", and their files have no case in common: ", first_of(place.cases), " there and ",
                           first_of(first.cases), " here; name them so that what * stands for is alike"));
  }
  if (images_.size() != place.images.size()) {
    const bool more = images_.size() > count;
    throw DataError(concat(
        name, " has ", counted(std::ssize(place.images), "image"), " and ", first_variable_, " ",
        images_.size(), ", which are paired by number: the first without a partner is ",
        more ? where(first_variable_, first, images_[count]) : where(name, place, place.images[count])));
  }
  for (std::size_t i = 0; i < count; ++i) {
    const Image &one = images_[i], &other = place.images[i];
    if (one.time != other.time) {
      throw DataError(
          concat(where(name, place, other), " and ", where(first_variable_, first, one),
                 " have sequences of different lengths; all variables must have the same states"));
    }
    if (one.extents == other.extents) continue;
    throw DataError(concat(where(name, place, other), " is ", other.extents, ", and ",
                           where(first_variable_, first, one), " ", one.extents,
                           spacing_.empty() ? "" : " at data.spacing",
                           "; images of one case must have the same extents"));
  }
}

/// Nothing where its file does not say it.
std::optional<ImagePlace> ImageFiles::placement(const Variable& variable, const Image& image) const {
  const VariableFile& file = *files_[static_cast<std::size_t>(image.file)];
  const FileVariable& stored = find(image.file, variable.data_set, image.group);
  const auto affine = stored.numbers.find("affine");
  const auto* nifti = dynamic_cast<const NiftiFile*>(&file);
  if (affine == stored.numbers.end() || affine->second.size() != 12) return std::nullopt;
  if (nifti != nullptr && nifti->header().place_code == 0) return std::nullopt;
  const std::vector<ImageDim> dims = dims_of(variable, image.file, stored);
  const std::vector<int> space = spatial_positions(dims);
  const int rank = stored.shape.rank();
  ImagePlace result{{}, 0};
  Vector3 last{};  // along width, height and depth, in points of the file
  std::array<Vector3, 3> steps{};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    static constexpr std::array kAxes = {ImageDim::kWidth, ImageDim::kHeight, ImageDim::kDepth};
    const int at = nifti != nullptr ? rank - 1 - static_cast<int>(axis) : dim_position(dims, kAxes[axis]);
    if (at < 0) return std::nullopt;
    const auto d = static_cast<std::size_t>(std::ranges::find(space, at) - space.begin());
    const double step = d < image.step.size() ? image.step[d] : 1;
    const std::int64_t points = d < space.size() ? image.extents[static_cast<int>(d)] : stored.shape[at];
    last[axis] = step * static_cast<double>(points - 1);
    for (std::size_t row = 0; row < 3; ++row) steps[axis][row] = affine->second[4 * row + axis];
    const double edge = step * distance(steps[axis], {});
    if (points > 1 && edge > 0 && (result.edge == 0 || edge < result.edge)) result.edge = edge;
  }
  for (std::size_t corner = 0; corner < 8; ++corner) {
    for (std::size_t row = 0; row < 3; ++row) {
      double& place = result.corners[corner][row] = affine->second[4 * row + 3];
      for (std::size_t axis = 0; axis < 3; ++axis)
        if ((corner >> axis & 1) != 0) place += last[axis] * steps[axis][row];
      if (!std::isfinite(place)) return std::nullopt;
    }
  }
  return result.edge > 0 ? std::optional(result) : std::nullopt;
}

void ImageFiles::check_places(const std::string& name, const Variable& place) const {
  const Variable& first = known(first_variable_);
  for (std::size_t i = 0; i < images_.size(); ++i) {
    const Image &one = images_[i], &other = place.images[i];
    if (i > 0 && images_[i - 1].file == one.file && place.images[i - 1].file == other.file &&
        one.group.empty() && other.group.empty())
      continue;  // samples of one volume
    const std::optional<ImagePlace> here = placement(first, one), there = placement(place, other);
    if (!here || !there) continue;
    const std::string fault = fault_of_places(*here, *there, *pairing_.alignment);
    if (fault.empty()) continue;
    throw DataError(concat(where(name, place, other), " and ", where(first_variable_, first, one),
                           " do not lie over each other: ", fault));
  }
}

}  // namespace jigsaw::inline images
