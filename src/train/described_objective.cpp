#include "train/described_objective.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "base/text.h"
#include "files/glob.h"
#include "files/probe.h"
#include "images/case_choice.h"
#include "images/image_files.h"
#include "images/sequence_data.h"
#include "samples/dataset.h"
#include "task/class_loss.h"
#include "task/loss_types.h"

namespace jigsaw::inline train {

namespace {

/// Files that hold what a configuration does not say.
std::vector<std::string> files_of(
    const std::vector<std::string>& patterns, const std::filesystem::path& folder,
    std::string_view missing = "data.shape: give the extents of space, or the files that hold them: ") {
  try {
    return expand_patterns(patterns, folder);
  } catch (const DataError& error) {
    throw ConfigError(concat(missing, error.what()));
  }
}

DataDescription describe_forecasts(const DataOptions& options, const std::filesystem::path& folder) {
  if (!options.shape.empty())
    return {Shape(options.shape), make_channels(options, looks_global(options.shape))};
  if (const RegridOptions& regrid = options.regrid;
      !regrid.latitude.empty() && options.region == RegionOptions{}) {
    const auto taken = [&](const std::vector<double>& axis, std::size_t number) {
      return every_of(equal_steps(axis), options.every[std::min(number, options.every.size() - 1)]);
    };
    const Grid grid = make_geographic_grid(taken(regrid.latitude, 0), taken(regrid.longitude, 1));
    return {grid.shape(), make_channels(options, grid.periodic)};
  }
  std::vector<std::string> paths;
  const auto expand = [&](const std::vector<std::string>& patterns) { return files_of(patterns, folder); };
  FileSelection selection = file_selection(options, makani_metadata(options.makani, folder));
  selection.sources = sources_of(options, expand, paths);
  probe_files(paths, Dimensions::kByName, options.external());
  FileSet files(paths, selection, opener(Dimensions::kByName, options.external()));
  const Channels fields = make_channels(options, false);
  for (const Channel& channel : fields.targets) files.select(channel.field, true);
  for (const Field& field : fields_of(fields.inputs, Role::kPrognostic)) files.select(field, true);
  for (const Field& field : fields_of(fields.inputs, Role::kPrescribed))
    files.select_prescribed(field, options.between_of(field));
  for (const Field& field : fields_of(fields.inputs, Role::kStatic)) files.select(field, false);
  return {files.grid().shape(), make_channels(options, files.grid().periodic)};
}

/// The fields of a variable: one for each of the levels (or channels) that are named, else itself.
std::vector<Field> fields_named(const VariableOptions& variable) {
  if (variable.levels.empty()) return {{variable.name, {}}};
  std::vector<Field> fields;
  for (const double level : variable.levels) fields.push_back({variable.name, level});
  return fields;
}

/// Whether a configuration says how many channels each variable has; those of labels are not asked for.
bool names_channels(const DataOptions& options) {
  const auto named = [](const VariableOptions& variable) { return !variable.levels.empty(); };
  return std::ranges::find(options.dims, ImageDim::kChannel) == options.dims.end() ||
         (std::ranges::all_of(options.variables, named) && std::ranges::all_of(options.constants, named) &&
          (options.classes > 0 || std::ranges::all_of(options.targets, named)));
}

constexpr std::string_view kChannelsMissing =
    "data.dims: how many channels a variable has stands in its levels, or in the files, but ";

Channels image_channels(const DataOptions& options,
                        const std::function<std::vector<Field>(const VariableOptions&)>& fields_of_variable) {
  const bool map = options.task == Task::kMap;
  Channels channels;
  const auto append = [&](std::vector<Channel>& to, const std::vector<VariableOptions>& variables,
                          Role role) {
    for (const VariableOptions& variable : variables) {
      for (const Field& field : fields_of_variable(variable))
        to.push_back({field.name(), role, field, {}, 0});
    }
  };
  append(channels.inputs, options.variables, Role::kPrognostic);
  append(channels.targets, map ? options.targets : options.variables,
         map ? Role::kDiagnostic : Role::kPrognostic);
  set_known_values(channels, options);
  return channels;
}

/// Extents of the first training part of the first image.
Shape part_extents(const DataOptions& options, Shape whole) {
  const auto& ranges = std::get<SliceRanges>(options.train.front());
  const std::vector<ImageDim> space = options.space();
  for (std::size_t d = 0; d < space.size(); ++d) {
    if (const auto range = ranges.of.find(space[d]); range != ranges.of.end())
      whole[static_cast<int>(d)] = range->second.second - range->second.first + 1;
  }
  return whole;
}

DataDescription describe_images(const DataOptions& options, const std::filesystem::path& folder) {
  const bool extents = !options.crop.empty() || !options.shape.empty();
  const auto described = [&](Channels channels) -> DataDescription {
    return {options.crop.empty() ? part_extents(options, Shape(options.shape)) : Shape(options.crop),
            std::move(channels)};
  };
  if (extents && names_channels(options)) return described(image_channels(options, fields_named));
  std::vector<std::string> labels;
  if (options.classes > 0) labels.push_back(options.targets.front().name);
  const std::vector<std::string> paths =
      extents ? files_of(options.files, folder, kChannelsMissing) : files_of(options.files, folder);
  probe_files(paths, Dimensions::kByNumber, options.external());
  ImageFiles files(paths, options.dims, opener(Dimensions::kByNumber, options.external()), options.spacing,
                   labels, pairing_of(options));
  Channels channels = image_channels(options, [&](const VariableOptions& variable) {
    return files.select(variable, own_files(variable, folder));
  });
  if (extents) return described(std::move(channels));
  SliceRanges first =
      with_cases_of_fold(std::get<SliceRanges>(options.train.front()), "train", "data.train", folder);
  first.of.erase(ImageDim::kSample);  // their number says nothing of extents
  return {part_extents(options, files.extents(images_of(first, files, "data.train").front())),
          std::move(channels)};
}

DataDescription describe_sequences(const DataOptions& options, const std::filesystem::path& folder) {
  const auto fields_of_all = [](const std::vector<VariableOptions>& variables, const auto& fields_of_one) {
    std::vector<Field> fields;
    for (const VariableOptions& variable : variables)
      std::ranges::copy(fields_of_one(variable), std::back_inserter(fields));
    return fields;
  };
  const bool shaped = !options.shape.empty();
  if (shaped && names_channels(options)) {
    return {Shape(options.shape), sequence_channels(options, fields_of_all(options.variables, fields_named),
                                                    fields_of_all(options.constants, fields_named))};
  }
  const std::vector<std::string> paths =
      shaped ? files_of(options.files, folder, kChannelsMissing) : files_of(options.files, folder);
  probe_files(paths, Dimensions::kByNumber, options.external());
  ImageFiles files(paths, options.dims, opener(Dimensions::kByNumber, options.external()));
  const std::vector<Field> fields = fields_of_all(options.variables, [&](const VariableOptions& variable) {
    return files.select(variable, own_files(variable, folder));
  });
  const std::vector<Field> constants = fields_of_all(options.constants, [&](const VariableOptions& variable) {
    return files.select_constant(variable, own_files(variable, folder));
  });
  return {shaped ? Shape(options.shape) : files.extents(0), sequence_channels(options, fields, constants)};
}

/// One sample that nobody can read.
class DescribedData : public SampleSource {
 public:
  explicit DescribedData(const DataDescription& description)
      : grid_(make_plain_grid(description.space)), channels_(description.channels) {
    std::vector<Channel> all = channels_.inputs;
    all.insert(all.end(), channels_.targets.begin(), channels_.targets.end());
    statistics_ = neutral_statistics(all);
  }

  const Grid& grid() const override { return grid_; }
  const Channels& channels() const override { return channels_; }
  const Statistics& statistics() const override { return statistics_; }
  std::int64_t count(Split split) const override { return split == Split::kTrain ? 1 : 0; }
  std::vector<std::int64_t> identity() const override { return {}; }
  std::unique_ptr<SampleReader> open_reader() override { fail("data that are only described are not read"); }
  std::int64_t bytes_read() const override { return 0; }

 private:
  Grid grid_;
  Channels channels_;
  Statistics statistics_;
};

class DescribedObjective : public Objective {
 public:
  DescribedObjective(const DataDescription& description, std::int64_t output_channels,
                     std::unique_ptr<Loss> loss)
      : data_(description), output_channels_(output_channels), loss_(std::move(loss)) {}

  SampleSource& data() override { return data_; }
  const Loss& loss() const override { return *loss_; }
  std::int64_t output_channels() const override { return output_channels_; }
  std::unique_ptr<Scores> make_scores() const override {
    fail("data that are only described have no scores");
  }

 private:
  DescribedData data_;
  std::int64_t output_channels_;
  std::unique_ptr<Loss> loss_;
};

}  // namespace

DataDescription describe_data(const DataOptions& options, const std::filesystem::path& folder) {
  if (options.of_sequences()) return describe_sequences(options, folder);
  return options.of_images() ? describe_images(options, folder) : describe_forecasts(options, folder);
}

std::unique_ptr<Objective> described_objective(const Configuration& configuration,
                                               const DataDescription& description) {
  const std::vector<double> rows = make_plain_grid(description.space).row_weights();
  if (configuration.data.classes > 0) {
    const std::int64_t outputs = configuration.data.label_outputs();
    const ClassLossOptions options =
        class_loss_options(configuration.loss, !configuration.data.regions.empty());
    return std::make_unique<DescribedObjective>(description, outputs,
                                                std::make_unique<ClassLoss>(options, outputs, rows));
  }
  const std::vector<Channel>& targets = description.channels.targets;
  FieldLossOptions options = configuration.data.of_images() ? image_loss_options(configuration.loss, targets)
                                                            : field_loss_options(configuration.loss, targets);
  options.members = members_of(configuration);
  return std::make_unique<DescribedObjective>(
      description, std::ssize(targets), std::make_unique<FieldLoss>(options, rows, channel_names(targets)));
}

}  // namespace jigsaw::inline train
