#include "init/first_sequences.h"

#include <algorithm>
#include <memory>

#include "base/error.h"
#include "base/text.h"
#include "files/variable_file.h"
#include "init/first_sections.h"

namespace jigsaw::inline init {

namespace {

constexpr const char *kScalars = "t0_fields/", *kVectors = "t1_fields/", *kTensors = "t2_fields/";

std::unique_ptr<VariableFile> open_trajectories(const std::string& path) {
  return open_variables(path, Dimensions::kByNumber, External::kRefused);
}

/// What the fields of a file are, [trajectories, steps, space…].
struct WellFields {
  std::vector<std::string> names;  ///< scalars, then vectors
  Shape shape;                     ///< of a scalar
  double channels = 0;
  bool vectors = false;
};

WellFields fields_of_the_well(const VariableFile& file, std::vector<std::string>& notices) {
  WellFields fields;
  // Those that change in time and from trajectory to trajectory have most dims of their group.
  int rank = 0;
  for (const FileVariable& variable : file.variables()) {
    if (variable.name.starts_with(kScalars)) rank = std::max(rank, variable.shape.rank());
    if (variable.name.starts_with(kVectors)) rank = std::max(rank, variable.shape.rank() - 1);
  }
  for (const char* group : {kScalars, kVectors, kTensors}) {
    for (const FileVariable& variable : file.variables()) {
      if (!variable.numeric() || !variable.name.starts_with(group)) continue;
      const bool vector = group == kVectors;
      if (group == kTensors || variable.shape.rank() != rank + (vector ? 1 : 0)) {
        notices.push_back(concat("left out: ", variable.name,
                                 group == kTensors ? ", a tensor" : ", which does not change in time"));
        continue;
      }
      fields.names.push_back(variable.name);
      fields.vectors = fields.vectors || vector;
      fields.channels += vector ? static_cast<double>(variable.shape[rank]) : 1;
      if (fields.shape.rank() == 0)
        for (int d = 0; d < rank; ++d) fields.shape.append(variable.shape[d]);
    }
  }
  if (rank < 4 || rank > 5 || fields.names.empty())
    throw DataError(concat(file.path(),
                           " holds no fields of trajectories in time with two or three "
                           "dimensions in space"));
  return fields;
}

}  // namespace

bool is_of_the_well(const std::string& path) {
  try {
    const auto file = open_trajectories(path);
    return std::ranges::any_of(file->variables(), [](const FileVariable& variable) {
      return variable.name.starts_with(kScalars) || variable.name.starts_with(kVectors);
    });
  } catch (const DataError&) {  // whoever reads it says so
    return false;
  }
}

FirstConfiguration first_sequences(const FirstOptions& options, const std::vector<std::string>& paths) {
  std::vector<std::string> notices;
  const WellFields fields = fields_of_the_well(*open_trajectories(paths.front()), notices);
  std::vector<std::int64_t> until;  // trajectories of each file and those before
  for (const std::string& path : paths) {
    const auto file = open_trajectories(path);
    const FileVariable* const first = file->find(fields.names.front());
    if (first == nullptr || first->shape.rank() == 0)
      throw DataError(concat(path, " holds no ", fields.names.front(), ", which ", paths.front(), " has"));
    until.push_back((until.empty() ? 0 : until.back()) + first->shape[0]);
  }
  const std::int64_t all = until.back();
  if (all < 2)
    throw DataError(concat(paths.front(), " holds one trajectory only: nothing is left to validate on"));
  const std::size_t files = std::max<std::size_t>(1, paths.size() * 4 / 5);
  const std::int64_t train = paths.size() > 1 ? until[files - 1] : std::max<std::int64_t>(1, all * 4 / 5);

  const bool volumes = fields.shape.rank() == 5;
  std::vector<std::string> dims = {"sample", "time", "height", "width"}, variables;
  if (volumes) dims.insert(dims.begin() + 2, "depth");
  if (fields.vectors) dims.emplace_back("channel");
  Shape space;
  for (int d = 2; d < fields.shape.rank(); ++d) space.append(fields.shape[d]);
  for (const std::string& name : fields.names)
    variables.push_back(concat("{\"name\": ", quoted(name.substr(name.find('/') + 1)),
                               ", \"data_set\": ", quoted(name), "}"));
  Section data;
  data.add("task", quoted("forecast"));
  data.add("files", quoted_list(names_of(options, options.files, paths)));
  data.add("dims", quoted_list(dims), concat(fields.names.front(), " is ", fields.shape));
  data.add("variables", concat("[", join(variables, ", "), "]"),
           "components of vectors that do not vary are refused: name the others as levels");
  data.add("input_steps", "[-1, 0]", "the states that a forecast begins with, in steps");
  data.add("lead_steps", "1", "from a state to the next that is predicted");
  data.add("predict", quoted("increment"));
  const auto range = [](std::int64_t from, std::int64_t to) {
    return concat("{\"sample\": [", from, ", ", to, "]}");
  };
  data.add("train", range(0, train - 1),
           concat("trajectories by number through all files", paths.size() > 1 ? "; whole files" : ""));
  data.add("valid", range(train, all - 1));
  const std::string title =
      concat("Forecasts of ", all, " trajectories of ", counted(std::ssize(paths), "file"), ".");
  return {whole_text(options, title, data, space, {}, 2 * fields.channels, R"({"type": "mse"})"),
          std::move(notices)};
}

}  // namespace jigsaw::inline init
