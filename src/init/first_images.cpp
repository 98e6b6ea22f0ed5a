#include "init/first_images.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <regex>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/lower_case.h"
#include "base/text.h"
#include "files/coordinate_units.h"
#include "files/glob.h"
#include "files/nifti_file.h"
#include "files/probe.h"
#include "files/variable_file.h"
#include "init/first_headers.h"
#include "init/first_sections.h"
#include "init/nnunet_plans.h"

namespace jigsaw::inline init {

namespace {

/// A data set that each of some files holds.
struct ImageSet {
  std::vector<std::string> paths;
  std::string name;
  Shape shape;                      ///< in the first file
  std::vector<std::string> others;  ///< of the first file, which would do as well
  bool is_largest = false;          ///< than each of those
};

bool is_image(const FileVariable& variable) {
  return variable.numeric() && variable.shape.rank() >= 2 && variable.shape.rank() <= 5 &&
         variable.shape.count() > 0;
}

bool is_named_like_a_target(const std::string& name) {
  return std::ranges::any_of(std::array{"label", "mask", "seg", "target", "truth"},
                             [&](const char* word) { return name.find(word) != std::string::npos; });
}

/// Whether a data set says of another one how good it is, or where it lies: by its attributes (CF, section
/// 3.5), or, of numbers of 8 bits, by its name.
bool is_beside_images(const FileVariable& variable) {
  if (variable.holds_flags()) return true;
  const std::string units = variable.text("units");
  if (counts_north(units) || counts_east(units)) return true;
  const std::string name = to_lower(variable.name);
  return variable.bytes == 1 && std::ranges::any_of(std::array{"dqf", "qual", "flag"}, [&](const char* word) {
           return name.find(word) != std::string::npos;
         });
}

bool has_channels_first(const VariableFile& file) {
  return file.format() == "NIfTI";
}

/// Where the dim of channels of an image stands of whose points a target has values.
enum class ChannelPlace : std::uint8_t { kNone, kLast, kFirst, kBehindSamples };

/// Nothing where the target lies on other points: their extents are the same but for that of channels.
std::optional<ChannelPlace> channels_beside(const Shape& target, const Shape& image, bool channels_first) {
  const auto points = [](const Shape& whole, int from, int to) {
    return std::vector<std::int64_t>(whole.begin() + from, whole.begin() + to);
  };
  const int rank = image.rank();
  const std::vector<std::int64_t> all = points(target, 0, target.rank());
  if (all == points(image, 0, rank)) return ChannelPlace::kNone;
  if (!channels_first && all == points(image, 0, rank - 1)) return ChannelPlace::kLast;
  if (all == points(image, 1, rank) && (channels_first || rank < 5)) return ChannelPlace::kFirst;
  std::vector<std::int64_t> behind = points(image, 0, rank);
  behind.erase(behind.begin() + 1);
  if (!channels_first && rank > 3 && all == behind) return ChannelPlace::kBehindSamples;
  return std::nullopt;
}

bool yields_to_none(const FileVariable& /*variable*/) {
  return false;
}

/// The first of the largest data sets of the first file that `suits`; nothing where none does.
/// @param yields  of a data set that is taken where no other suits.
template <typename Suits, typename Yields>
std::optional<ImageSet> largest(const VariableFile& file, const std::vector<std::string>& paths,
                                const Suits& suits, const Yields& yields) {
  const FileVariable* found = nullptr;
  std::vector<std::string> names;
  std::vector<std::int64_t> points;
  for (const FileVariable& variable : file.variables()) {
    if (!is_image(variable) || !suits(variable)) continue;
    names.push_back(variable.name);
    points.push_back(variable.shape.count());
    const auto rank = [&](const FileVariable& of) { return std::pair(!yields(of), of.shape.count()); };
    if (found == nullptr || rank(variable) > rank(*found)) found = &variable;
  }
  if (found == nullptr) return std::nullopt;
  std::erase(names, found->name);
  const std::int64_t own = found->shape.count();
  const bool is_largest = std::ranges::max(points) == own && std::ranges::count(points, own) == 1;
  return ImageSet{paths, found->name, found->shape, std::move(names), is_largest};
}

/// Of several data sets that one is taken.
/// @param key   of the configuration that names it.
/// @param what  all of them are.
void note_choice(const ImageSet& chosen, const std::string& key, const std::string& what,
                 std::vector<std::string>& notices) {
  constexpr std::size_t kMostNamed = 8;
  if (chosen.others.empty()) return;
  std::vector<std::string> named(
      chosen.others.begin(),
      chosen.others.begin() + static_cast<std::ptrdiff_t>(std::min(chosen.others.size(), kMostNamed)));
  if (chosen.others.size() > kMostNamed)
    named.push_back(concat("and ", chosen.others.size() - kMostNamed, " more"));
  const std::string own = without_groups(chosen.name);
  const bool in_groups = own != chosen.name && std::ranges::all_of(chosen.others, [&](const auto& other) {
                           return other.ends_with("/" + own);
                         });
  notices.push_back(concat(key, " takes ", chosen.name, chosen.is_largest ? ", the largest of " : ", one of ",
                           chosen.others.size() + 1, " ", what, " in ", chosen.paths.front(),
                           "; name another there (", join(named, ", "), ")",
                           in_groups ? concat(", or \"*/", own, "\" for that of each group") : ""));
}

std::unique_ptr<VariableFile> open_images(const std::string& path) {
  return open_variables(path, Dimensions::kByNumber);
}

ImageSet find_targets(const FirstOptions& options, const std::vector<std::string>& paths) {
  const bool own_files = !options.targets.empty();
  const std::vector<std::string> where = own_files ? expand_patterns(options.targets, ".") : paths;
  if (own_files) probe_files(where, Dimensions::kByNumber, External::kRefused);
  if (where.size() != paths.size()) {
    throw DataError(concat("--data names ", paths.size(), " files and --targets ", where.size(),
                           "; each image must have its target, in the order of names"));
  }
  const auto file = open_images(where.front());
  const auto suits = [&](const FileVariable& variable) {
    return own_files || is_named_like_a_target(variable.name);
  };
  std::optional<ImageSet> found = largest(*file, where, suits, yields_to_none);
  if (!found) {
    throw DataError(concat(where.front(),
                           own_files
                               ? " holds no targets: numbers of 2 to 5 dimensions"
                               : " holds no targets: no data set has label, mask, seg, target or truth in "
                                 "its name; name them in data.targets, or files of their own in --targets"));
  }
  return *std::move(found);
}

/// @param targets  null where the task has none.
ImageSet find_images(const std::vector<std::string>& paths, const ImageSet* targets) {
  const auto file = open_images(paths.front());
  const auto suits = [&](const FileVariable& variable) {
    if (targets == nullptr) return !is_named_like_a_target(variable.name);
    const bool itself = targets->paths == paths && variable.name == targets->name;
    return !itself && channels_beside(targets->shape, variable.shape, has_channels_first(*file));
  };
  std::optional<ImageSet> found = largest(*file, paths, suits, is_beside_images);
  if (found) return *std::move(found);
  if (targets != nullptr)
    throw DataError(concat(paths.front(), " holds no image with the extents ", targets->shape,
                           " of the targets ", targets->name, " in ", targets->paths.front()));
  const std::vector<std::string> refusals = refusals_in(*file);
  throw DataError(concat(paths.front(),
                         " holds no field on latitude and longitude with several times, and no image: ",
                         "numbers of 2 to 5 dimensions", refusals.empty() ? "" : "; ",
                         refusals.empty() ? "" : refusals.front()));
}

/// What the dims of a data set are by the names of its dimensions, as NetCDF, Zarr and OME-NGFF have them;
/// none where these do not say it of all.
std::vector<std::string> named_dims_of(const ImageSet& images) {
  static const std::map<std::string, std::string> kKnown = {
      {"z", "depth"},       {"depth", "depth"},   {"slice", "depth"},     {"plane", "depth"},
      {"y", "height"},      {"height", "height"}, {"row", "height"},      {"rows", "height"},
      {"x", "width"},       {"width", "width"},   {"col", "width"},       {"column", "width"},
      {"columns", "width"}, {"c", "channel"},     {"channel", "channel"}, {"channels", "channel"},
      {"band", "channel"},  {"bands", "channel"}, {"sample", "sample"},   {"samples", "sample"},
      {"image", "sample"},  {"images", "sample"}, {"case", "sample"},     {"batch", "sample"},
      {"frame", "sample"},  {"t", "sample"},      {"time", "sample"}};
  std::vector<std::string> dims;
  try {
    const auto file = open_variables(images.paths.front(), Dimensions::kByName);
    const FileVariable* const variable = file->find(images.name);
    if (variable == nullptr || variable->shape != images.shape) return {};
    for (const std::string& name : variable->dimensions) {
      const auto known = kKnown.find(to_lower(without_groups(name)));
      if (known == kKnown.end() || std::ranges::find(dims, known->second) != dims.end()) return {};
      dims.push_back(known->second);
    }
  } catch (const DataError&) {
    return {};
  }
  // Samples stand first, and channels before or behind all of space.
  const auto place_of = [&](const char* dim) { return std::ranges::find(dims, dim) - dims.begin(); };
  const auto all = std::ssize(dims), sample = place_of("sample"), channel = place_of("channel");
  const bool usual = (sample == 0 || sample == all) &&
                     (channel == (sample == 0 ? 1 : 0) || channel == all - 1 || channel == all);
  return usual && place_of("height") < all && place_of("width") < all ? dims : std::vector<std::string>();
}

/// What the dims of a data set of images most likely are by their number.
std::vector<std::string> assumed_dims_of(const ImageSet& images, const ImageSet* targets) {
  constexpr std::int64_t kMostColours = 4;
  const Shape& shape = images.shape;
  const int rank = shape.rank();
  const bool fewer = targets != nullptr && targets->shape.rank() < rank;
  std::vector<std::string> dims;
  if (rank == 2) {
    dims = {"height", "width"};
  } else if (has_channels_first(*open_images(images.paths.front()))) {
    dims = {"depth", "height", "width"};
    if (rank == 4) dims.insert(dims.begin(), "channel");
    if (rank > 4)
      throw DataError(concat(images.name, " in ", images.paths.front(), " is ", shape,
                             ": images of NIfTI have up to 4 dimensions here"));
  } else if (fewer && channels_beside(targets->shape, shape, false) == ChannelPlace::kBehindSamples) {
    dims = {"sample", "channel", "depth", "height", "width"};
    if (rank < 5) dims.erase(dims.begin() + 2);  // no depth
  } else if (fewer && channels_beside(targets->shape, shape, false) == ChannelPlace::kFirst) {
    dims = {"channel", "depth", "height", "width"};
    if (rank < 4) dims.erase(dims.begin() + 1);  // no depth
  } else if (fewer || rank == 5 || shape[rank - 1] <= kMostColours) {
    dims = {"sample", "depth", "height", "width", "channel"};
    if (rank < 5) dims.erase(dims.begin() + 1);  // no depth
    if (rank < 4) dims.erase(dims.begin());      // no samples
  } else {
    dims = {"sample", "depth", "height", "width"};
    if (rank < 4) dims.erase(dims.begin());
  }
  return dims;
}

/// Standard deviation of the middle of the first image, some thousands of points.
double deviation(const ImageSet& images) {
  Box box = Box::whole(images.shape);
  for (int dim = 0; dim < images.shape.rank(); ++dim) {
    const std::int64_t extent = std::min<std::int64_t>(images.shape[dim], 24);
    box.begin[dim] = (images.shape[dim] - extent) / 2;
    box.extent[dim] = extent;
  }
  std::vector<double> values(static_cast<std::size_t>(box.extent.count()));
  const auto file = open_images(images.paths.front());
  file->read<double>(*file->find(images.name), box, values);
  std::erase_if(values, [](double value) { return std::isnan(value); });
  if (values.empty()) return 0;
  const double count = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / count);
}

const FileVariable& variable_in(const VariableFile& file, const std::string& name) {
  const FileVariable* const found = file.find(name);
  if (found == nullptr)
    throw DataError(concat(file.path(), " has no data set ", name, ", which the first file has"));
  return *found;
}

/// What the labels of all files name.
struct Labels {
  std::vector<std::int64_t> numbers = {};  ///< 0 and those that points have; none when they are no labels
  bool unlabelled = false;  ///< 255 is among them, far above the others: points without a label
  bool background = true;   ///< whether a point is 0
  std::string other = "";   ///< a file that holds other numbers

  std::int64_t classes() const { return std::ssize(numbers); }
  /// Between 0 and the last of them.
  std::int64_t absent() const { return numbers.empty() ? 0 : numbers.back() + 1 - classes(); }
};

constexpr std::size_t kMostClasses = 256, kUnlabelled = 255;

Labels labels_of(const ImageSet& labels) {
  std::array<bool, kMostClasses> seen{};
  for (const std::string& path : labels.paths) {
    const auto file = open_images(path);
    const FileVariable& label = variable_in(*file, labels.name);
    require_memory(label.shape, label.name, path);
    std::vector<double> values(static_cast<std::size_t>(label.shape.count()));
    file->read<double>(label, Box::whole(label.shape), values);
    for (const double value : values) {
      if (std::isnan(value)) continue;
      if (value != std::floor(value) || value < 0 || value >= static_cast<double>(kMostClasses))
        return {.other = path};
      seen[static_cast<std::size_t>(value)] = true;
    }
  }
  Labels found;
  const bool more =
      std::find(seen.begin() + 1, seen.begin() + kUnlabelled, true) != seen.begin() + kUnlabelled;
  found.unlabelled = seen[kUnlabelled] && !seen[kUnlabelled - 1] && more;
  if (found.unlabelled) seen[kUnlabelled] = false;
  found.background = seen[0];
  found.numbers = {0};
  for (std::size_t label = 1; label < seen.size(); ++label)
    if (seen[label]) found.numbers.push_back(static_cast<std::int64_t>(label));
  return found;
}

/// How many images all files hold, and the least of their extents.
struct Extents {
  std::int64_t images = 0;
  Shape least;
};

Extents extents_of(const ImageSet& images, const std::vector<std::string>& dims) {
  Extents all{0, images.shape};
  for (const std::string& path : images.paths) {
    const auto file = open_images(path);
    const Shape& shape = variable_in(*file, images.name).shape;
    if (shape.rank() != images.shape.rank())
      throw DataError(concat(images.name, " in ", path, " is ", shape, ", and in ", images.paths.front(), " ",
                             images.shape));
    all.images += dims[0] == "sample" ? shape[0] : 1;
    for (int dim = 0; dim < shape.rank(); ++dim) all.least[dim] = std::min(all.least[dim], shape[dim]);
  }
  return all;
}

/// Files of images, or of each channel of them, in the order of the images.
struct ChannelFiles {
  std::vector<std::string> numbers;             ///< of the channels, as names have them: "0000", "0001"
  std::vector<std::vector<std::string>> paths;  ///< of each

  /// By a pattern whose * stands for the name of the case, where it names just the files of a channel; else
  /// these.
  std::vector<std::string> named(std::size_t channel) const {
    const std::vector<std::string>& files = paths[channel];
    const std::string ending = concat("_", numbers[channel], ".");
    const std::size_t at = files.front().rfind(ending);
    if (numbers[channel].empty() || at == std::string::npos) return files;
    const std::size_t folder = files.front().rfind('/', at);
    const std::string pattern = concat(files.front().substr(0, folder == std::string::npos ? 0 : folder + 1),
                                       "*", files.front().substr(at));
    // Whatever their order: images are paired by the names of their cases.
    const auto plain = [](const std::vector<std::string>& paths_of) {
      std::set<std::filesystem::path> names;
      for (const std::string& path : paths_of)
        names.insert(std::filesystem::absolute(path).lexically_normal());
      return names;
    };
    return plain(expand_patterns({pattern}, ".")) == plain(files) ? std::vector{pattern} : files;
  }
};

/// Those that are called as nnU-Net has it, "CASE_0000.nii.gz", "CASE_0001.nii.gz", by channels; others, or
/// those of one channel, all together.
/// @throws DataError  for an image without one of the channels
ChannelFiles channel_files_of(const std::vector<std::string>& paths) {
  static const std::regex named("(.*)_([0-9]{4})(\\.[^/]*)");
  ChannelFiles together{{""}, {paths}};
  std::map<std::string, std::map<std::string, std::string>> files;  // by channel and image
  std::set<std::string> images;
  for (const std::string& path : paths) {
    std::smatch match;
    if (!std::regex_match(path, match, named)) return together;
    files[match[2]][*images.insert(concat(match[1].str(), "*", match[3].str())).first] = path;
  }
  // Numbers of images, such as those of slices, are no channels: most images then have one of them.
  const bool complete = 2 * paths.size() > images.size() * files.size();
  if (files.size() < 2 || images.size() < 2 || files.begin()->first != "0000" || !complete) return together;
  ChannelFiles all;
  for (const auto& [number, paths_of] : files) {
    all.numbers.push_back(number);
    all.paths.emplace_back();
    for (const std::string& image : images) {
      const auto found = paths_of.find(image);
      if (found == paths_of.end())
        throw DataError(concat("the image ", image, " has no file of the channel ", number));
      all.paths.back().push_back(found->second);
    }
  }
  return all;
}

/// As data.variables takes channels in files of their own.
std::string variables_text(const FirstOptions& options, const ChannelFiles& files,
                           const std::string& data_set) {
  std::vector<std::string> variables;
  for (std::size_t c = 0; c < files.numbers.size(); ++c) {
    std::string variable =
        concat("{\"name\": ", quoted(concat("channel_", c)), ", \"data_set\": ", quoted(data_set));
    if (c > 0)
      variable += concat(", \"files\": ", quoted_list(names_of(options, files.named(c), files.paths[c])));
    variables.push_back(variable + "}");
  }
  return concat("[", join(variables, ", "), "]");
}

/// Which of the file's axes depth, height and width are; nothing of other formats.
std::optional<std::vector<std::size_t>> nifti_axes(const std::string& path) {
  const auto file = open_images(path);
  const auto* const nifti = dynamic_cast<const NiftiFile*>(file.get());
  if (nifti == nullptr) return std::nullopt;
  std::vector<std::size_t> axes;
  for (const NiftiAxis& world : nifti->header().world)
    axes.insert(axes.begin(), static_cast<std::size_t>(world.axis));
  return axes;
}

/// How the plan normalises the channels.
/// @param name  of the data set that holds them; "" where each has files of its own.
void add_intensities(const NnunetPlan& plan, const std::string& name, bool has_channels, Section& data) {
  if (plan.intensity == "zscore")
    data.add("intensity", quoted(plan.intensity), "each volume by its own mean and deviation");
  if (plan.intensity == "zscore_nonzero")
    data.add("intensity", quoted(plan.intensity), "each volume by those of its points that are not 0");
  if (plan.intensity == "percentiles") {
    data.add("intensity", quoted(plan.intensity), "each volume from its least to its largest value");
    data.add("percentiles", "[0, 100]");
  }
  std::vector<std::string> entries;
  for (const auto& [channel, entry] : plan.intensities) {
    const std::string input = name.empty()   ? concat("channel_", channel)
                              : has_channels ? concat(name, "_", channel)
                                             : name;
    entries.push_back(concat(quoted(input), ": ", entry));
  }
  if (!entries.empty())
    data.add("intensities", concat("{", join(entries, ", "), "}"), "as nnU-Net normalises these channels");
}

/// Of points along the spatial dims in mm; none where the first file does not say it.
std::vector<double> spacing_of(const ImageSet& images, int space) {
  const auto file = open_images(images.paths.front());
  const auto& numbers = variable_in(*file, images.name).numbers;
  const auto found = numbers.find("spacing");
  const auto is_distance = [](double value) { return value > 0 && std::isfinite(value); };
  if (found == numbers.end() || std::ssize(found->second) != space) return {};
  return std::ranges::all_of(found->second, is_distance) ? found->second : std::vector<double>();
}

/// What is to be said of points that are much farther apart along one dim than along another; "" where they
/// are not, or the file does not say it.
std::string spacing_notice(const ImageSet& images, const std::vector<double>& spacing) {
  constexpr double kMuch = 3;  // as nnU-Net's
  if (spacing.size() != 3) return "";
  const auto [least, most] = std::ranges::minmax(spacing);
  if (most < kMuch * least) return "";
  return concat("points of ", images.name, " in ", images.paths.front(), " are ", join(spacing, ", "),
                " mm apart; data.spacing brings all images to points of common distances");
}

/// As data.targets takes it.
std::string target_text(const FirstOptions& options, const ImageSet& targets, const std::string& image,
                        bool labels) {
  if (options.targets.empty()) return quoted_list({targets.name});
  const std::string name = targets.name != image ? targets.name : labels ? "label" : "target";
  return concat("[{\"name\": ", quoted(name), ", \"data_set\": ", quoted(targets.name),
                ", \"files\": ", quoted_list(names_of(options, options.targets, targets.paths)), "}]");
}

}  // namespace

FirstConfiguration first_images(const FirstOptions& options, const std::vector<std::string>& all, Task task) {
  const ChannelFiles channel_files = channel_files_of(all);
  const std::vector<std::string>& paths = channel_files.paths.front();
  std::optional<ImageSet> targets;
  if (task == Task::kMap) targets = find_targets(options, paths);
  const ImageSet* const pointed = targets ? &*targets : nullptr;
  const ImageSet images = find_images(paths, pointed);
  std::vector<std::string> notices;
  note_choice(images, "data.variables", "images", notices);
  if (targets) note_choice(*targets, "data.targets", "targets", notices);
  for (const std::string& why : refusals_in(*open_images(paths.front())))
    notices.push_back(concat("left out: ", why));
  std::vector<std::string> dims = named_dims_of(images);
  const bool are_named = !dims.empty();
  if (!are_named) dims = assumed_dims_of(images, pointed);
  const auto [count, least] = extents_of(images, dims);
  const Labels labels = options.segment ? labels_of(*targets) : Labels();
  const std::int64_t classes = labels.classes();
  if (options.segment && classes < 2) {
    throw DataError(concat(targets->name, " in ", classes == 1 ? targets->paths.front() : labels.other,
                           classes == 1 ? " is 0 everywhere, so that there is nothing to learn"
                                        : " holds other numbers than labels 0, 1, 2, …, 255; --task map "
                                          "is for such targets"));
  }

  const auto is_of_space = [](const std::string& dim) { return dim != "sample" && dim != "channel"; };
  const std::vector<double> spacing =
      spacing_of(images, static_cast<int>(std::ranges::count_if(dims, is_of_space)));
  if (const std::string notice = spacing_notice(images, spacing); !notice.empty() && options.plans.empty())
    notices.push_back(notice);
  if (labels.absent() > 0)
    notices.push_back(
        concat(labels.absent(), " of the labels 0 to ", labels.numbers.back(),
               " occur nowhere, and data.labels names the others; add what further files hold"));
  if (classes > 0 && !labels.background)
    notices.push_back("no point has the label 0, which counts as class 0, the background");

  // Parted by images, one image along its first spatial dim.
  const bool whole = count > 1 || dims[0] == "sample";
  const std::size_t first = dims[0] == "channel" || dims[0] == "sample" ? 1 : 0;
  const std::string cut = whole ? "sample" : dims[first];
  const std::int64_t along = whole ? count : least[static_cast<int>(first)];
  const std::int64_t train = std::max<std::int64_t>(1, along * 4 / 5);
  if (train == along)
    throw DataError(concat(images.name, " in ", paths.front(), " has one ", cut,
                           " only: nothing is left to validate on"));
  Shape crop;
  double channels = 1;
  const bool flat = std::ranges::find(dims, "depth") == dims.end();
  for (std::size_t d = 0; d < dims.size(); ++d) {
    const std::int64_t extent = least[static_cast<int>(d)];
    if (dims[d] == "channel") channels = static_cast<double>(extent);
    if (dims[d] == "sample" || dims[d] == "channel") continue;
    crop.append(std::min<std::int64_t>(dims[d] == cut ? train : extent, flat ? 128 : 32));
  }

  std::optional<NnunetPlan> plan;
  if (!options.plans.empty()) {
    PlannedImages planned;
    planned.dims = static_cast<std::size_t>(crop.rank());
    planned.channels =
        channel_files.numbers.size() > 1 ? channel_files.numbers.size() : static_cast<std::size_t>(channels);
    if (const auto axes = nifti_axes(paths.front())) planned.file_axes = *axes;
    const auto other = std::ranges::find_if(paths, [&](const std::string& path) {
      return nifti_axes(path).value_or(planned.file_axes) != planned.file_axes;
    });
    if (other != paths.end())
      notices.push_back(
          concat("the axes of ", *other, " lie otherwise than those of ", paths.front(),
                 ", by which patch, spacing, strides and kernels of the plans are turned here"));
    plan = read_nnunet_plan(options.plans, options.plans_configuration, planned);
    notices.insert(notices.end(), plan->notices.begin(), plan->notices.end());
    crop = Shape(plan->patch);
  }

  Section data;
  data.add("task", quoted(task == Task::kDenoise ? "denoise" : "map"));
  const bool one_file_each = channel_files.numbers.size() < 2;
  data.add("files",
           quoted_list(names_of(options, one_file_each ? options.files : channel_files.named(0), paths)));
  data.add("dims", quoted_list(dims),
           concat(images.name, " is ", images.shape, "; which dim is what ",
                  are_named ? "its dimensions' names say" : "is assumed from their number"));
  if (one_file_each) {
    data.add("variables", quoted_list({images.name}));
  } else {
    data.add("variables", variables_text(options, channel_files, images.name),
             "files of channels, as nnU-Net calls them: CASE_0000, CASE_0001, …");
    channels = static_cast<double>(channel_files.numbers.size());
  }
  if (targets)
    data.add("targets", target_text(options, *targets, images.name, classes > 0), "what is to come out");
  if (classes > 0)
    data.add("classes", concat(classes), labels.absent() > 0 ? "" : "labels are 0 to one less");
  if (labels.absent() > 0)
    data.add("labels", concat("[", join(labels.numbers, ", "), "]"), "what files have for each class");
  if (labels.unlabelled) data.add("ignore_index", concat(kUnlabelled), "points that have no label");
  if (plan) {
    data.add("augment", plan->augment, "as nnU-Net's trainer, but for what docs/images.md says");
  } else if (classes > 1) {
    data.add("augment", R"({"foreground": 0.33})", "a third of the samples hold a class above 0");
  }
  data.add("crop", concat("[", join(crop, ", "), "]"), "points of a training sample, cut out at random");
  if (plan) {
    data.add("pad", "true", "smaller volumes lie in its middle");
    data.add("spacing", concat("[", join(plan->spacing, ", "), "]"),
             "mm: all volumes are brought to such points");
    add_intensities(*plan, one_file_each ? images.name : "", dims[0] == "channel", data);
  }
  std::vector<std::string> mirrored = {"width"};
  if (plan) {
    mirrored = dims;
    std::erase_if(mirrored, [](const std::string& dim) { return dim == "sample" || dim == "channel"; });
  }
  data.add("flips", quoted_list(mirrored));
  if (task == Task::kDenoise) {
    const double sigma = deviation(images) / 5;
    data.add("noise_sigma", concat(sigma > 0 ? sigma : 1.0),
             "noise that is added and to be removed: a fifth of the deviation");
    data.add("predict", quoted("increment"));
  }
  const auto range = [&](std::int64_t from, std::int64_t to) {
    return concat("{", quoted(cut), ": [", from, ", ", to, "]}");
  };
  data.add("train", range(0, train - 1),
           whole ? "images, by number" : concat("parts of the one image, along its ", cut));
  data.add("valid", range(train, along - 1));
  const char* const what = task == Task::kDenoise ? "Denoising " : classes > 0 ? "Segmenting " : "Mapping ";
  const std::string title = concat(what, images.name, " of ", counted(std::ssize(paths), "file"), ".");
  if (plan) {
    return {whole_text(options, title, data, plan->training,
                       "nnU-Net trains 1000 epochs of 250 steps; batch_size counts all ranks together"),
            std::move(notices)};
  }
  return {whole_text(options, title, data, crop, {}, levels_by_axis(crop, spacing), channels,
                     classes > 0 ? R"({"type": "dice_cross_entropy"})" : R"({"type": "mse"})"),
          std::move(notices)};
}

}  // namespace jigsaw::inline init
