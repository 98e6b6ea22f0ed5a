#include "init/first_sequences.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <optional>
#include <set>
#include <string_view>

#include "base/error.h"
#include "base/lower_case.h"
#include "base/printable.h"
#include "base/text.h"
#include "files/coordinate_units.h"
#include "files/hdf5_text.h"
#include "files/variable_file.h"
#include "init/first_headers.h"
#include "init/first_sections.h"

namespace jigsaw::inline init {

namespace {

constexpr const char *kScalars = "t0_fields/", *kVectors = "t1_fields/", *kTensors = "t2_fields/";
constexpr int kMostSpace = 3;

std::unique_ptr<VariableFile> open_sequences(const std::string& path) {
  return open_variables(path, Dimensions::kByNumber, External::kRefused);
}

/// What the data sets of a file are.
struct SequenceFields {
  std::vector<std::string> dims;  ///< of those with channels, if there are any
  std::vector<std::string> names, constants;
  std::vector<std::string> numbers;  ///< of each sequence, or of all
  Shape shape;                       ///< of one without channels
  double channels = 0;               ///< of all fields in time
  bool vectors = false;
  bool assumed = false;            ///< dims follow from their number
  std::vector<std::string> edges;  ///< of each axis, where some go round: what lies beyond its ends
  std::vector<std::string> left_out;

  bool has_samples() const { return dims.front() == "sample"; }
  int time() const { return has_samples() ? 1 : 0; }
  Shape space() const {
    Shape space;
    for (int d = time() + 1; d < shape.rank(); ++d) space.append(shape[d]);
    return space;
  }
  /// With the first data set's extents.
  void set_dims(bool samples, int space) {
    dims = {"time"};
    if (samples) dims.insert(dims.begin(), "sample");
    for (const char* axis : {"depth", "height", "width"})
      if (space >= (axis[0] == 'd' ? 3 : axis[0] == 'h' ? 2 : 1)) dims.emplace_back(axis);
  }
};

/// The extents of one without its last dimension.
Shape without_last(const Shape& shape) {
  Shape result;
  for (int d = 0; d + 1 < shape.rank(); ++d) result.append(shape[d]);
  return result;
}

/// Whether data sets of these extents are constant in time beside others, as data.static takes them.
bool is_constant(const Shape& shape, const SequenceFields& beside) {
  if (shape.rank() == 0 || beside.shape.rank() == 0) return false;
  const Shape space = beside.space();
  if (shape == space) return true;
  if (!beside.has_samples()) return false;
  Shape of_samples{beside.shape[0]};
  for (const std::int64_t extent : space) of_samples.append(extent);
  return shape == of_samples;
}

/// Whether they are numbers of each sequence, or one of all, as data.static takes them, too.
bool is_of_sequences(const Shape& shape, const SequenceFields& beside) {
  if (shape.rank() == 0) return true;
  return beside.has_samples() && shape.rank() <= 2 && shape[0] == beside.shape[0];
}

/// Adds one of the data sets in time, whose last dimension may be that of channels.
void add_field(SequenceFields& fields, const FileVariable& variable, bool vector) {
  fields.names.push_back(variable.name);
  fields.vectors = fields.vectors || vector;
  fields.channels += vector ? static_cast<double>(variable.shape.back()) : 1;
  if (fields.shape.rank() == 0) fields.shape = vector ? without_last(variable.shape) : variable.shape;
}

void add_constant_or_leave_out(SequenceFields& fields, const FileVariable& variable, bool vector) {
  const Shape shape = vector && variable.shape.rank() > 0 ? without_last(variable.shape) : variable.shape;
  if (is_constant(shape, fields)) {
    fields.constants.push_back(variable.name);
  } else if (is_of_sequences(variable.shape, fields)) {
    fields.numbers.push_back(variable.name);
  } else {
    fields.left_out.push_back(concat(variable.name, ", which is ", variable.shape));
  }
}

/// Of x, y and z: those for which files have a mask of periodic ends, or a group that says so by its
/// attribute; none where no axis goes round.
std::vector<std::string> edges_of_the_well(const VariableFile& file, const Shape& space) {
  std::vector<std::string> edges;
  for (int d = 0; d < space.rank(); ++d) {
    const std::string group = concat("boundary_conditions/", std::string(1, "xyz"[d]), "_periodic");
    const FileVariable* const mask = file.find(group + "/mask");
    const bool round = mask != nullptr
                           ? mask->shape == Shape{space[d]}
                           : to_lower(hdf5_group_text(file.path(), group, "bc_type")) == "periodic";
    edges.emplace_back(round ? "circular" : "zeros");
  }
  if (std::ranges::find(edges, "circular") == edges.end()) edges.clear();
  return edges;
}

SequenceFields fields_of_the_well(const VariableFile& file) {
  SequenceFields fields;
  // Those that change in time and from trajectory to trajectory have most dims of their group.
  int rank = 0;
  for (const FileVariable& variable : file.variables()) {
    if (variable.name.starts_with(kScalars)) rank = std::max(rank, variable.shape.rank());
    if (variable.name.starts_with(kVectors)) rank = std::max(rank, variable.shape.rank() - 1);
  }
  fields.set_dims(true, rank - 2);
  for (const bool in_time : {true, false}) {
    for (const char* group : {kScalars, kVectors}) {
      const bool vector = group == kVectors;
      for (const FileVariable& variable : file.variables()) {
        if (!variable.numeric() || !variable.name.starts_with(group)) continue;
        if ((variable.shape.rank() == rank + (vector ? 1 : 0)) != in_time) continue;
        if (in_time) {
          add_field(fields, variable, vector);
        } else {
          add_constant_or_leave_out(fields, variable, vector);
        }
      }
    }
  }
  for (const FileVariable& variable : file.variables())
    if (variable.numeric() && variable.name.starts_with(kTensors))
      fields.left_out.push_back(variable.name + ", a tensor");
  if (rank < 3 || rank > 2 + kMostSpace || fields.names.empty())
    throw DataError(concat(file.path(),
                           " holds no fields of trajectories in time with one to three dimensions in space"));
  fields.edges = edges_of_the_well(file, fields.space());
  for (const FileVariable& variable : file.variables()) {
    const bool of_grid = variable.name.starts_with("dimensions/") ||
                         variable.name.starts_with("boundary_conditions/") ||
                         variable.name.starts_with("t0_") || variable.name.starts_with("t1_") ||
                         variable.name.starts_with("t2_");
    if (variable.numeric() && !of_grid && is_of_sequences(variable.shape, fields))
      fields.numbers.push_back(variable.name);
  }
  return fields;
}

/// What the name of a dimension says that it is.
enum class NamedDim : std::uint8_t { kTime, kSample, kChannel, kPlace, kSpace };

NamedDim named_dim(const std::string& dimension) {
  static constexpr std::array<std::string_view, 6> kTimes = {"time", "t", "step", "steps", "frame", "frames"},
                                                   kChannels = {"channel",    "channels", "component",
                                                                "components", "c",        "comp"};
  static constexpr std::array<std::string_view, 10> kSamples = {
      "sample", "samples",     "trajectory", "trajectories", "traj",
      "run",    "realization", "ensemble",   "batch",        "n"};
  // Of the earth, or the limits of cells.
  static constexpr std::array<std::string_view, 21> kPlaces = {
      "lat",        "lon",  "latitude", "longitude", "rlat",           "rlon",        "nlat",
      "nlon",       "lev",  "level",    "plev",      "pressure_level", "south_north", "west_east",
      "bottom_top", "bnds", "nbnd",     "nbnds",     "axis_nbounds",   "tbnd",        "vertices"};
  const std::string name = to_lower(without_groups(dimension));
  const auto is_one_of = [&](const auto& names) { return std::ranges::find(names, name) != names.end(); };
  return is_one_of(kTimes)      ? NamedDim::kTime
         : is_one_of(kSamples)  ? NamedDim::kSample
         : is_one_of(kChannels) ? NamedDim::kChannel
         : is_one_of(kPlaces)   ? NamedDim::kPlace
                                : NamedDim::kSpace;
}

/// What the names of a data set's dimensions say: whether it is of time, or time and samples, then space,
/// and then channels.
struct NamedLayout {
  bool samples = false, vector = false;
  int space = 0;
};
std::optional<NamedLayout> named_layout(const FileVariable& variable) {
  NamedLayout layout;
  const std::vector<std::string>& names = variable.dimensions;
  if (!variable.numeric() || names.empty() || std::ssize(names) != variable.shape.rank()) return std::nullopt;
  std::size_t at = 0;
  const auto takes = [&](NamedDim dim) {
    const bool is_it = at < names.size() && named_dim(names[at]) == dim;
    at += is_it ? 1 : 0;
    return is_it;
  };
  layout.samples = takes(NamedDim::kSample);
  if (!takes(NamedDim::kTime)) return std::nullopt;
  while (takes(NamedDim::kSpace)) ++layout.space;
  layout.vector = takes(NamedDim::kChannel);
  if (at < names.size() || layout.space < 1 || layout.space > kMostSpace) return std::nullopt;
  return layout;
}

/// The file whose dimensions have names; null where they have none.
std::unique_ptr<VariableFile> open_named(const std::string& path) {
  try {
    return open_variables(path, Dimensions::kByName, External::kRefused);
  } catch (const DataError&) {  // such as HDF5 that is no NetCDF
    return nullptr;
  }
}

/// By the names of dimensions; of the layout that the largest data set in time has.
std::optional<SequenceFields> named_fields(const std::string& path) {
  const std::unique_ptr<VariableFile> opened = open_named(path);
  if (!opened) return std::nullopt;
  const VariableFile& file = *opened;
  const std::set<std::string> bounds = bounds_in(file);  // of cells, which are no fields
  const FileVariable* first = nullptr;
  for (const FileVariable& variable : file.variables())
    if (named_layout(variable) && !variable.holds_flags() && !bounds.contains(variable.name) &&
        (first == nullptr || variable.shape.count() > first->shape.count()))
      first = &variable;
  if (first == nullptr) return std::nullopt;
  const NamedLayout layout = *named_layout(*first);
  const Shape shape = layout.vector ? without_last(first->shape) : first->shape;
  SequenceFields fields;
  fields.set_dims(layout.samples, layout.space);
  const auto in_time = [&](const FileVariable& variable) {
    const std::optional<NamedLayout> its = named_layout(variable);
    return its && its->samples == layout.samples &&
           (its->vector ? without_last(variable.shape) : variable.shape) == shape;
  };
  for (const FileVariable& variable : file.variables()) {
    if (!in_time(variable) || bounds.contains(variable.name)) continue;
    if (variable.holds_flags()) {
      fields.left_out.push_back(concat(variable.name, " holds flags, which are no quantity"));
    } else {
      add_field(fields, variable, named_layout(variable)->vector);
    }
  }
  for (const FileVariable& variable : file.variables()) {
    // Coordinates are of one dimension, but for fields along a line.
    const bool is_coordinate =
        variable.shape.rank() < 2 &&
        std::ranges::find(variable.dimensions, variable.name) != variable.dimensions.end();
    const bool is_quantity = is_floating(variable.type) && !counts_since(variable.text("units"));
    if (!variable.numeric() || in_time(variable) || is_coordinate) continue;
    if (variable.shape.rank() == 0 && !is_quantity) continue;
    if (bounds.contains(variable.name)) continue;
    add_constant_or_leave_out(fields, variable, false);
  }
  return fields;
}

/// By the number of dimensions of the largest data set, or of another one that lacks its last dimension,
/// which is that of channels then.
/// @param alone  the file is the only one, whose first dimension is more likely that of samples.
std::optional<SequenceFields> numbered_fields(const std::string& path, bool alone) {
  constexpr int kMost = 2 + kMostSpace;  // samples, time and space
  const auto file = open_sequences(path);
  const FileVariable* first = nullptr;
  for (const FileVariable& variable : file->variables())
    if (variable.numeric() && variable.shape.rank() >= 2 &&
        (first == nullptr || variable.shape.count() > first->shape.count()))
      first = &variable;
  if (first == nullptr || !first->dimensions.empty() || first->shape.rank() > kMost + 1) return std::nullopt;
  const Shape fewer = without_last(first->shape);
  const bool has_vectors =
      fewer.rank() >= 2 &&
      (fewer.rank() == kMost || std::ranges::any_of(file->variables(), [&](const auto& other) {
         return other.numeric() && other.shape == fewer;
       }));
  const Shape shape = has_vectors ? fewer : first->shape;
  const bool samples = shape.rank() == kMost || (shape.rank() == kMost - 1 && alone);
  SequenceFields fields;
  fields.assumed = true;
  fields.set_dims(samples, shape.rank() - (samples ? 2 : 1));
  const auto is_vector = [&](const FileVariable& variable) {
    return variable.shape.rank() == shape.rank() + 1 && without_last(variable.shape) == shape;
  };
  const auto in_time = [&](const FileVariable& variable) {
    return variable.numeric() && (variable.shape == shape || is_vector(variable));
  };
  for (const FileVariable& variable : file->variables())
    if (in_time(variable)) add_field(fields, variable, is_vector(variable));
  for (const FileVariable& variable : file->variables())
    if (variable.numeric() && !in_time(variable)) add_constant_or_leave_out(fields, variable, false);
  return fields;
}

SequenceFields fields_of(const std::string& path, bool alone) {
  if (is_of_the_well(path)) return fields_of_the_well(*open_sequences(path));
  if (std::optional<SequenceFields> named = named_fields(path)) return *std::move(named);
  if (std::optional<SequenceFields> numbered = numbered_fields(path, alone)) return *std::move(numbered);
  throw DataError(concat(path, " holds no states in time with one to three dimensions in space"));
}

/// What is trained on, and what is validated on.
struct SequenceParts {
  std::string train, valid, comment;
};

SequenceParts parts_of(const SequenceFields& fields, const std::vector<std::string>& paths) {
  std::vector<std::int64_t> until;  // sequences of each file and those before
  std::int64_t steps = 0;           // of the shortest
  for (const std::string& path : paths) {
    const auto file = open_sequences(path);
    const FileVariable* const first = file->find(fields.names.front());
    if (first == nullptr || first->shape.rank() <= fields.time())
      throw DataError(concat(path, " holds no ", fields.names.front(), " as ", paths.front(), " has it"));
    until.push_back((until.empty() ? 0 : until.back()) + (fields.has_samples() ? first->shape[0] : 1));
    const std::int64_t its = first->shape[fields.time()];
    steps = steps == 0 ? its : std::min(steps, its);
  }
  const auto range = [](const char* dim, std::int64_t from, std::int64_t to) {
    return concat("{\"", dim, "\": [", from, ", ", to, "]}");
  };
  constexpr std::int64_t kLeastStates = 5;  // two windows of three, of which one is validated on
  constexpr std::int64_t kWindow = 3;       // two states before a step, and one behind it
  const std::int64_t all = until.back();
  if (steps < kWindow)
    throw DataError(concat("the shortest sequence in ", paths.front(), " and the others has ",
                           counted(steps, "state"), " only: too few for a window of ", kWindow));
  if (all > 1) {
    const std::size_t files = std::max<std::size_t>(1, paths.size() * 4 / 5);
    const std::int64_t train = paths.size() > 1 ? until[files - 1] : std::max<std::int64_t>(1, all * 4 / 5);
    return {range("sample", 0, train - 1), range("sample", train, all - 1),
            concat("sequences by number through all files", paths.size() > 1 ? "; whole files" : "")};
  }
  if (steps < kLeastStates)
    throw DataError(concat(paths.front(), " holds one sequence of ", counted(steps, "state"),
                           " only: too few to train and to validate on"));
  const std::int64_t train = std::min(steps * 4 / 5, steps - 2);
  return {range("time", 0, train - 1), range("time", train, steps - 1),
          "states of the one sequence, by number"};
}

/// What is to be said of states that do not follow one another evenly, by the coordinate of their times; ""
/// where they do, or no file has one.
std::string uneven_times(const SequenceFields& fields, const std::vector<std::string>& paths) {
  constexpr double kEven = 0.01;
  for (const std::string& path : paths) {
    const std::unique_ptr<VariableFile> file = open_named(path);
    const FileVariable* const field = file ? file->find(fields.names.front()) : nullptr;
    if (field == nullptr || field->shape.rank() <= fields.time()) continue;
    const std::string& name = field->dimensions[static_cast<std::size_t>(fields.time())];
    const FileVariable* const times = file->find(name);
    if (times == nullptr || !times->numeric() || times->shape.rank() != 1 || times->dimensions[0] != name)
      continue;
    std::vector<double> values;
    try {
      values = file->read_all(*times);
    } catch (const DataError&) {  // nothing else reads them
      continue;
    }
    double least = INFINITY, largest = -INFINITY;
    for (std::size_t i = 1; i < values.size(); ++i) {
      least = std::min(least, values[i] - values[i - 1]);
      largest = std::max(largest, values[i] - values[i - 1]);
    }
    if (!(largest - least > kEven * std::abs(least))) continue;
    const std::string units = times->text("units");
    return concat("the states in ", path, " are ", least, " to ", largest, " apart by ", name,
                  units.empty() ? "" : concat(" (", printable(units), ")"),
                  ", and count as one step each: sequences have no gaps; write what lies on each side of a "
                  "gap into a file of its own");
  }
  return "";
}

}  // namespace

bool is_of_the_well(const std::string& path) {
  try {
    const auto file = open_sequences(path);
    return std::ranges::any_of(file->variables(), [](const FileVariable& variable) {
      return variable.name.starts_with(kScalars) || variable.name.starts_with(kVectors);
    });
  } catch (const DataError&) {  // whoever reads it says so
    return false;
  }
}

bool holds_sequences(const std::string& path, bool by_number) {
  try {
    return named_fields(path) || (by_number && image_format(path) == "HDF5" && numbered_fields(path, true));
  } catch (const DataError&) {  // whoever reads it says so
    return false;
  }
}

FirstConfiguration first_sequences(const FirstOptions& options, const std::vector<std::string>& paths) {
  SequenceFields fields = fields_of(paths.front(), paths.size() == 1);
  const SequenceParts parts = parts_of(fields, paths);
  if (fields.vectors) fields.dims.emplace_back("channel");
  std::vector<std::string> notices;
  for (const std::string& name : fields.left_out) notices.push_back("left out: " + name);
  if (std::string uneven = uneven_times(fields, paths); !uneven.empty()) notices.push_back(std::move(uneven));
  const auto list = [&](const std::vector<std::string>& names) {
    std::vector<std::string> variables;
    for (const std::string& name : names) {
      const std::string own = without_groups(name);
      const auto is_called = [&](const std::string& other) { return without_groups(other) == own; };
      const bool alone = std::ranges::count_if(fields.names, is_called) +
                             std::ranges::count_if(fields.constants, is_called) +
                             std::ranges::count_if(fields.numbers, is_called) ==
                         1;
      variables.push_back(own == name || !alone
                              ? quoted(name)
                              : concat("{\"name\": ", quoted(own), ", \"data_set\": ", quoted(name), "}"));
    }
    return concat("[", join(variables, ", "), "]");
  };
  Section data;
  data.add("task", quoted("forecast"));
  data.add("files", quoted_list(names_of(options, options.files, paths)));
  data.add("dims", quoted_list(fields.dims),
           concat(fields.names.front(), " is ", fields.shape,
                  fields.assumed ? "; which dim is what is assumed from their number" : ""));
  data.add("variables", list(fields.names));
  constexpr std::size_t kMostNumbers = 8;
  if (fields.numbers.size() > kMostNumbers) fields.numbers.resize(kMostNumbers);
  if (!fields.numbers.empty()) {
    data.say(
        concat("numbers of each sequence that may be inputs, too, in \"static\": ", list(fields.numbers)));
  }
  if (!fields.constants.empty())
    data.add("static", list(fields.constants), "inputs that are alike at all states of a sequence");
  data.add("input_steps", "[-1, 0]", "the states that a forecast begins with, in steps");
  data.add("lead_steps", "1", "from a state to the next that is predicted");
  data.add("predict", quoted("increment"));
  data.add("train", parts.train, parts.comment);
  data.add("valid", parts.valid);
  const std::string title = concat("Forecasts of the states in ", counted(std::ssize(paths), "file"), ".");
  const double channels = 2 * fields.channels + static_cast<double>(fields.constants.size());
  return {whole_text(options, title, data, fields.space(), {fields.edges, ""}, even_levels(fields.space()),
                     channels, R"({"type": "mse"})"),
          std::move(notices)};
}

}  // namespace jigsaw::inline init
