#include "train/first_configuration.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "base/error.h"
#include "base/text.h"
#include "config/json.h"
#include "files/glob.h"
#include "files/probe.h"
#include "files/variable_file.h"
#include "samples/file_set.h"

namespace jigsaw::inline train {

namespace {

namespace fs = std::filesystem;

std::string quoted(const std::string& text) {
  return Json(text).dump();
}

std::string quoted_list(const std::vector<std::string>& texts) {
  std::vector<std::string> all;
  for (const std::string& text : texts) all.push_back(quoted(text));
  return concat("[", join(all, ", "), "]");
}

/// The lines of a section, each with what is said of it above.
class Section {
 public:
  void say(const std::string& comment) { lines_.push_back("// " + comment); }
  void add(const std::string& key, const std::string& value, const std::string& comment = "") {
    if (!comment.empty()) say(comment);
    lines_.push_back(concat(quoted(key), ": ", value, ","));
  }
  /// As an object, its closing brace `depth` steps from the margin.
  std::string text(int depth) const {
    const std::string margin(static_cast<std::size_t>(2 * depth), ' ');
    std::string all = "{\n";
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      std::string line = lines_[i];
      if (i + 1 == lines_.size()) line.pop_back();
      all += concat(margin, "  ", line, "\n");
    }
    return all + margin + "}";
  }

 private:
  std::vector<std::string> lines_;
};

/// The files as the configuration names them: from its folder, and by a pattern where one names just these.
std::vector<std::string> names_of(const FirstOptions& options, const std::vector<std::string>& files) {
  const fs::path from = fs::absolute(options.folder).lexically_normal();
  const auto relative = [&](const std::string& path) {
    return fs::absolute(path).lexically_normal().lexically_relative(from).string();
  };
  if (options.files.size() < 4) {
    std::vector<std::string> names;
    std::transform(options.files.begin(), options.files.end(), std::back_inserter(names), relative);
    return names;
  }
  std::size_t same = 0, same_behind = 0;
  const auto shared = [&](auto at) {
    return std::all_of(files.begin(), files.end(),
                       [&](const std::string& file) { return at(file) == at(files[0]); });
  };
  std::size_t shortest = files[0].size();
  for (const std::string& file : files) shortest = std::min(shortest, file.size());
  while (same < shortest && shared([&](const std::string& file) { return file[same]; })) ++same;
  while (same_behind < shortest - same &&
         shared([&](const std::string& file) { return file[file.size() - 1 - same_behind]; }))
    ++same_behind;
  const std::string pattern = files[0].substr(0, same) + "*" + files[0].substr(files[0].size() - same_behind);
  if (expand_patterns({pattern}, ".") == files) return {relative(pattern)};
  std::vector<std::string> names;
  std::transform(files.begin(), files.end(), std::back_inserter(names), relative);
  return names;
}

/// The largest divisor of an extent that is at most `most`.
std::int64_t divisor(std::int64_t extent, std::int64_t most) {
  std::int64_t found = std::min(extent, most);
  while (extent % found != 0) --found;
  return found;
}

/// Levels of a U-Net: its coarsest has at least four points along each dim.
int levels_of(const Shape& space) {
  std::int64_t least = space[0];
  for (const std::int64_t extent : space) least = std::min(least, extent);
  int levels = 1;
  while (levels < 4 && least >> levels >= 4) ++levels;
  return levels;
}

/// What a convolution reads beyond the ends of a global grid; nothing for others. Poles are crossed to the
/// other half of the circle, which every level must have.
std::vector<std::string> edges_of(const Grid& grid) {
  if (!grid.periodic) return {};
  const bool halves = grid.shape()[1] % (std::int64_t{1} << levels_of(grid.shape())) == 0;
  const bool crosses = grid.north == grid.south && halves;
  const char* rows = crosses && grid.north == PoleKind::kPoint         ? "pole_point"
                     : crosses && grid.north == PoleKind::kCellCentred ? "pole_cell"
                                                                       : "replicate";
  return {rows, "circular"};
}

/// @param edges  of a global grid, by dim; empty for others
std::string model_text(const FirstOptions& options, const Shape& space,
                       const std::vector<std::string>& edges) {
  Section model;
  model.add("type", quoted(options.model));
  if (options.model == "unet") {
    model.add("base_width", "16", "channels of the finest level; each coarser one has twice as many");
    model.add("levels", concat(levels_of(space)));
    model.add("norm_groups", "4");
    model.add("zero_head", "true", "the untrained model changes nothing");
    if (!edges.empty())
      model.add("padding_mode", quoted_list(edges), "what convolutions read beyond the rows and the columns");
    return model.text(1);
  }
  const std::int64_t most = space.count() > 100'000 ? 8 : 7;
  std::vector<std::int64_t> patch;
  for (const std::int64_t extent : space) patch.push_back(divisor(extent, most));
  if (*std::min_element(patch.begin(), patch.end()) == 1 && space.count() > 4096) {
    throw ConfigError(concat("--from ", options.model, ": no patch divides the grid ", space,
                             " (an extent is prime); --from unet takes any grid"));
  }
  model.add("patch", concat("[", join(patch, ", "), "]"), "points that make one token; must divide the grid");
  model.add("embed_dim", "96");
  model.add("depth", options.model == "swin" ? "4" : "3");
  if (options.model != "weathermixer") model.add("heads", "4");
  if (options.model == "swin") {
    std::vector<std::int64_t> window;
    for (int dim = 0; dim < space.rank(); ++dim)
      window.push_back(divisor(space[dim] / patch[static_cast<std::size_t>(dim)], 8));
    model.add("window", concat("[", join(window, ", "), "]"), "tokens that attend to each other");
  }
  return model.text(1);
}

/// "0.3 MB".
std::string megabytes(double bytes) {
  return concat(std::max(0.1, std::round(bytes * 1e-5) / 10), " MB");
}

/// The sections that every task has.
void add_rest(const FirstOptions& options, const Shape& space, const std::vector<std::string>& edges,
              double channels, const std::string& loss, std::string& text) {
  const double bytes = static_cast<double>(space.count()) * channels * 4;
  const int batch = bytes > 5e7 ? 1 : bytes > 5e6 ? 2 : 8;
  text += concat("  \"model\": ", model_text(options, space, edges), ",\n");
  text += concat("  \"loss\": ", loss, ",\n");
  text += R"(  "optimizer": {"learning_rate": 1e-3, "weight_decay": 0.01, "clip_norm": 1.0},
  "schedule": {"type": "cosine", "warmup_steps": 50},
)";
  text += concat(
      "  // epochs: passes over the training data; batch_size: samples of a step on all ranks together, of ",
      megabytes(bytes), " each\n");
  text += concat("  \"train\": {\"epochs\": 10, \"batch_size\": ", batch, "},\n");
  text += R"(  "validation": {"every": 100},  // steps
  "checkpoint": {"every": 200, "keep": 2},
)";
  text += concat("  \"output\": ", quoted("runs/" + options.name), "\n}\n");
}

/// A first line for people, and the name.
std::string head(const FirstOptions& options, const std::string& what) {
  return concat("// ", what, "\n// Explained key by key: jigsaw-train config --explain KEY\n{\n  \"name\": ",
                quoted(options.name), ",\n");
}

// ---- forecasts

std::string variable_text(const VariableSummary& variable) {
  if (variable.levels.empty()) return quoted(variable.name);
  std::vector<std::string> levels;
  for (const double level : variable.levels) levels.push_back(format_level(level));
  return concat("{\"name\": ", quoted(variable.name), ", \"levels\": [", join(levels, ", "), "]}");
}

/// "t2m (2 metre temperature, K)".
std::string meaning(const VariableSummary& variable) {
  std::vector<std::string> what;
  if (!variable.long_name.empty()) what.push_back(variable.long_name);
  if (!variable.units.empty()) what.push_back(variable.units);
  return what.empty() ? variable.name : concat(variable.name, " (", join(what, ", "), ")");
}

/// The step between times that is there most often, in seconds.
Time usual_step(const std::vector<Time>& times) {
  std::map<Time, int> steps;
  for (std::size_t i = 1; i < times.size(); ++i) ++steps[times[i] - times[i - 1]];
  return std::max_element(steps.begin(), steps.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

/// Which variables are predicted, which are known and constant, and which have other times than the most.
struct Chosen {
  std::vector<VariableSummary> predicted, constant, left_out;
};

/// Whether a variable has one state at the first, the middle and the last of its times, on a part of the
/// grid. Data sets repeat what is constant (orography, land) with a time.
bool never_changes(FileSet& files, const VariableSummary& variable) {
  if (!variable.levels.empty()) return false;
  const Field field{variable.name, {}};
  files.select(field, true);
  Box box = Box::whole(files.grid().shape());
  for (int dim = 0; dim < 2; ++dim) box.extent[dim] = std::min<std::int64_t>(box.extent[dim], 64);
  std::vector<double> first(static_cast<std::size_t>(box.extent.count())), other(first.size());
  files.read(field, variable.times.front(), box, first);
  double least = INFINITY, most = -INFINITY;
  for (const double value : first) {
    if (value < least) least = value;
    if (value > most) most = value;
  }
  // Files may pack it by different scales, into some ten thousands of steps.
  const double packing = 1e-4 * (most - least);
  for (const Time time : {variable.times[variable.times.size() / 2], variable.times.back()}) {
    files.read(field, time, box, other);
    const auto same = [packing](double a, double b) {
      return std::abs(a - b) <= packing || (std::isnan(a) && std::isnan(b));
    };
    if (!std::equal(first.begin(), first.end(), other.begin(), same)) return false;
  }
  return true;
}

Chosen choose(FileSet& files, const std::vector<VariableSummary>& catalogue) {
  std::map<std::vector<Time>, int> fields;
  for (const VariableSummary& variable : catalogue)
    if (variable.times.size() > 1)
      fields[variable.times] += static_cast<int>(std::max<std::size_t>(1, variable.levels.size()));
  Chosen chosen;
  const auto most = std::max_element(fields.begin(), fields.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  for (const VariableSummary& variable : catalogue) {
    if (variable.times.size() <= 1) {
      if (variable.levels.empty()) chosen.constant.push_back(variable);
    } else if (never_changes(files, variable)) {
      chosen.constant.push_back(variable);
    } else if (variable.times == most->first) {
      chosen.predicted.push_back(variable);
    } else {
      chosen.left_out.push_back(variable);
    }
  }
  return chosen;
}

/// Training and validation: four fifths of the times and the rest, further apart than a window reaches.
std::pair<Period, Period> split(const std::vector<Time>& times, Time reach, Calendar calendar) {
  const std::size_t cut = times.size() * 4 / 5;
  const auto next = std::upper_bound(times.begin(), times.end(), times[cut - 1] + reach);
  if (next == times.end()) {
    throw DataError(concat("the files hold ", times.size(), " times, from ",
                           format_time(times.front(), calendar), " to ", format_time(times.back(), calendar),
                           ": too few to train and to validate on"));
  }
  return {{times.front(), times[cut - 1]}, {*next, times.back()}};
}

std::string period_text(const Period& period, Calendar calendar) {
  return concat("[", quoted(format_time(period.first, calendar)), ", ",
                quoted(format_time(period.last, calendar)), "]");
}

std::string forecast(const FirstOptions& options, const std::vector<std::string>& paths, FileSet& files) {
  const Chosen chosen = choose(files, files.catalogue());
  if (chosen.predicted.empty()) throw DataError(concat(paths.front(), ": no variable changes in time"));
  const VariableSummary& first = chosen.predicted.front();
  for (const VariableSummary& variable : chosen.predicted)
    files.select({variable.name, variable.levels.empty() ? std::nullopt : std::optional(variable.levels[0])},
                 true);
  const Shape space = files.grid().shape();
  const std::vector<Time>& times = first.times;
  const Calendar calendar = files.calendar();
  const Time step = usual_step(times);
  if (step % kHour != 0) {
    throw DataError(concat(first.name, " has a value every ", step,
                           " seconds; a configuration counts leads in whole hours"));
  }
  const Time hours = step / kHour, lead = 6 % hours == 0 ? 6 : hours;
  const auto [train, valid] = split(times, 2 * lead * kHour, calendar);

  std::vector<std::string> predicted, meanings, constant, left_out, forcings;
  double channels = 0;
  for (const VariableSummary& variable : chosen.predicted) {
    predicted.push_back(variable_text(variable));
    meanings.push_back(meaning(variable));
    channels += static_cast<double>(std::max<std::size_t>(1, variable.levels.size()));
  }
  for (const VariableSummary& variable : chosen.constant) constant.push_back(variable.name);
  for (const VariableSummary& variable : chosen.left_out) left_out.push_back(variable.name);
  forcings = {"latitude", "longitude"};
  if (hours < 24) forcings.emplace_back("time_of_day");
  if (times.back() - times.front() > 60 * kDay) forcings.emplace_back("day_of_year");

  Section data;
  data.add("files", quoted_list(names_of(options, paths)));
  data.add("variables", concat("[", join(predicted, ", "), "]"), "predicted: " + join(meanings, "; "));
  if (!left_out.empty()) data.say(concat("left out, for they have other times: ", join(left_out, ", ")));
  if (!constant.empty()) data.add("static", quoted_list(constant), "known and constant in time");
  data.add("forcings", quoted_list(forcings), "known of every place and time");
  data.add("input_hours", concat("[", -lead, ", 0]"),
           concat("hours that the model sees; the files have a field every ", hours, " h"));
  data.add("lead_hours", concat(lead), "hours ahead that it predicts");
  data.add("predict", quoted("increment"), "the change since hour 0; or \"state\"");
  data.add("train", period_text(train, calendar),
           concat("the files hold ", format_time(times.front(), calendar), " to ",
                  format_time(times.back(), calendar)));
  data.add("valid", period_text(valid, calendar), "begins where no window of training reaches");
  std::string text = head(options, concat(lead, "-hour forecasts on a grid of ", space, " points from ",
                                          paths.size(), paths.size() == 1 ? " file." : " files.")) +
                     concat("  \"data\": ", data.text(1), ",\n");
  add_rest(options, space, edges_of(files.grid()), channels, R"({"type": "mse", "area_weighted": true})",
           text);
  return text;
}

// ---- images and volumes

bool is_label(const std::string& name) {
  for (const char* word : {"label", "mask", "seg", "target", "truth"})
    if (name.find(word) != std::string::npos) return true;
  return false;
}

/// What the dims of a data set of images most likely are.
std::vector<std::string> dims_of(const Shape& shape) {
  switch (shape.rank()) {
    case 2:
      return {"height", "width"};
    case 3:
      return {"depth", "height", "width"};
    case 4:
      return {"sample", "depth", "height", "width"};
    default:
      return {"sample", "depth", "height", "width", "channel"};
  }
}

/// Standard deviation of the middle of the first image, some thousands of points.
double deviation(VariableFile& file, const FileVariable& variable) {
  Box box = Box::whole(variable.shape);
  for (int dim = 0; dim < variable.shape.rank(); ++dim) {
    const std::int64_t extent = std::min<std::int64_t>(variable.shape[dim], 24);
    box.begin[dim] = (variable.shape[dim] - extent) / 2;
    box.extent[dim] = extent;
  }
  std::vector<double> values(static_cast<std::size_t>(box.extent.count()));
  file.read<double>(variable, box, values);
  std::erase_if(values, [](double value) { return std::isnan(value); });
  double mean = 0, squares = 0;
  for (const double value : values) mean += value / static_cast<double>(values.size());
  for (const double value : values) squares += (value - mean) * (value - mean);
  return values.empty() ? 0 : std::sqrt(squares / static_cast<double>(values.size()));
}

/// How many classes the labels of a file name, 0 to so many less 1; 0 when they are other numbers.
std::int64_t classes_of(VariableFile& file, const FileVariable& label) {
  constexpr double kMostClasses = 255;
  Box box = Box::whole(label.shape);
  box.extent[0] = 1;
  std::vector<double> values(static_cast<std::size_t>(box.extent.count()));
  double most = 0;
  for (; box.begin[0] < label.shape[0]; ++box.begin[0]) {
    file.read<double>(label, box, values);
    for (const double value : values) {
      if (std::isnan(value)) continue;
      if (value != std::floor(value) || value < 0 || value > kMostClasses) return 0;
      most = std::max(most, value);
    }
  }
  return static_cast<std::int64_t>(most) + 1;
}

struct DataSets {
  const FileVariable* picture = nullptr;
  const FileVariable* label = nullptr;  ///< may be null
};

/// The largest data set of numbers that is an image, and the largest of those that are named like targets.
DataSets find_images(const VariableFile& file, Task task) {
  DataSets found;
  for (const FileVariable& variable : file.variables()) {
    if (!variable.numeric() || variable.shape.rank() < 2 || variable.shape.rank() > 5) continue;
    const FileVariable*& place = is_label(variable.name) ? found.label : found.picture;
    if (place == nullptr || variable.shape.count() > place->shape.count()) place = &variable;
  }
  if (found.picture == nullptr) {
    throw DataError(concat(file.path(),
                           " holds no field on latitude and longitude with several times, and no image: ",
                           "numbers of 2 to 5 dimensions"));
  }
  if (task == Task::kMap && found.label == nullptr) {
    throw DataError(concat(file.path(),
                           " holds no targets: no data set has label, mask, seg, target or truth in its ",
                           "name; name them in data.targets"));
  }
  return found;
}

std::string images(const FirstOptions& options, const std::vector<std::string>& paths, Task task) {
  const auto file = open_variables(paths.front(), Dimensions::kByNumber);
  const auto [picture, label] = find_images(*file, task);
  const std::vector<std::string> dims = dims_of(picture->shape);
  std::vector<std::int64_t> crop;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] == "sample" || dims[d] == "channel") continue;
    crop.push_back(std::min<std::int64_t>(picture->shape[static_cast<int>(d)], dims.size() == 2 ? 128 : 32));
  }
  // Samples are parted by number, one image along its first dim.
  const std::string& cut = dims[0];
  const std::int64_t along = picture->shape[0];
  const std::int64_t train = std::max<std::int64_t>(1, along * 4 / 5);
  if (train == along)
    throw DataError(concat(picture->name, " in ", paths.front(), " has one ", cut,
                           " only: nothing is left to validate on"));
  Section data;
  data.add("task", quoted(task == Task::kDenoise ? "denoise" : "map"));
  data.add("files", quoted_list(names_of(options, paths)));
  data.add("dims", quoted_list(dims),
           concat(picture->name, " is ", picture->shape, "; which dim is what is assumed from their number"));
  data.add("variables", quoted_list({picture->name}));
  const std::int64_t classes = task == Task::kMap ? classes_of(*file, *label) : 0;
  if (task == Task::kMap) data.add("targets", quoted_list({label->name}), "what is to come out");
  if (classes > 0) data.add("classes", concat(classes), "labels are 0 to one less");
  if (classes > 1)
    data.add("augment", R"({"foreground": 0.33})", "a third of the samples hold a class above 0");
  if (dims[0] != "sample") crop[0] = std::min(crop[0], train);
  data.add("crop", concat("[", join(crop, ", "), "]"), "points of a training sample, cut out at random");
  data.add("flips", quoted_list({"width"}));
  if (task == Task::kDenoise) {
    const double sigma = deviation(*file, *picture) / 5;
    data.add("noise_sigma", concat(sigma > 0 ? sigma : 1.0),
             "noise that is added and to be removed: a fifth of the deviation");
    data.add("predict", quoted("increment"));
  }
  const auto range = [&](std::int64_t from, std::int64_t to) {
    return concat("{", quoted(cut), ": [", from, ", ", to, "]}");
  };
  data.add("train", range(0, train - 1));
  data.add("valid", range(train, along - 1));
  std::string text =
      head(options, concat(task == Task::kDenoise ? "Denoising" : "Mapping", " ", picture->name, " of ",
                           paths.size(), paths.size() == 1 ? " file." : " files.")) +
      concat("  \"data\": ", data.text(1), ",\n");
  Shape cropped;
  for (const std::int64_t extent : crop) cropped.append(extent);
  add_rest(options, cropped, {}, 1, classes > 0 ? R"({"type": "dice_cross_entropy"})" : R"({"type": "mse"})",
           text);
  return text;
}

}  // namespace

std::string first_configuration(const FirstOptions& options) {
  const std::vector<std::string> paths = expand_patterns(options.files, ".");
  for (const Dimensions dimensions : {Dimensions::kByName, Dimensions::kByNumber})
    probe_files(paths, dimensions, External::kRefused);
  if (options.task && *options.task != Task::kForecast) return images(options, paths, *options.task);
  bool fields = false;
  std::string why;
  try {
    FileSet files(paths);
    const std::vector<VariableSummary> catalogue = files.catalogue();
    fields = std::any_of(catalogue.begin(), catalogue.end(),
                         [](const VariableSummary& variable) { return variable.times.size() > 1; });
    if (fields) return forecast(options, paths, files);
    why = "no variable on latitude and longitude has more than one time";
  } catch (const DataError& error) {
    if (fields || options.task) throw;
  }
  if (options.task) throw DataError(concat(paths.front(), ": ", why));
  return images(options, paths, Task::kDenoise);
}

}  // namespace jigsaw::inline train
