#include "images/sequence_data.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "comm/agreement.h"
#include "fields/shared_files.h"
#include "images/case_choice.h"
#include "images/sequence_reader.h"
#include "times/windows.h"

namespace jigsaw::inline images {

SequenceData::SequenceData(const DataOptions& options, const std::filesystem::path& folder, int rollout,
                           Communicator& communicator, const DataUse& use)
    : options_(options) {
  paths_ = expand_together(options.files, folder, communicator);
  std::vector<std::string> all = paths_;
  std::vector<VariableOptions> variables = options.variables;
  variables.insert(variables.end(), options.constants.begin(), options.constants.end());
  own_paths_ = expand_own_files(variables, folder, communicator, all);
  if (use.train)
    options_.train = with_cases_of_folds(options_.train, "train", "data.train", folder, communicator);
  if (use.valid)
    options_.valid = with_cases_of_folds(options_.valid, "val", use.valid_name, folder, communicator);
  const FileOpener open_file =
      share_files(all, Dimensions::kByNumber, options.external(), use.pass.cache, communicator);
  together(communicator, [&] {
    open(open_file);
    if (use.train) {
      train_runs_ = runs(options_.train, "data.train");
      train_ = windows_in(train_runs_, rollout, "data.train");
    }
    if (!use.valid || options_.valid.empty()) return;
    valid_ =
        windows_in(runs(options_.valid, use.valid_name), use.valid_rollout.value_or(rollout), use.valid_name);
    if (use.most_valid) valid_ = evenly_spread(valid_, *use.most_valid);
  });
  paths_ = all;
  const StatisticsPass& pass = use.pass;
  if (pass.before) pass.before(*this);
  const std::string* file = options_.statistics_file();
  const auto compute = [&](const Statistics* known) {
    return pass.spared ? spared_statistics(pass, normalised_channels(), options_.lead_steps, known)
                       : compute_statistics(communicator, known, pass.progress);
  };
  if (use.statistics) {
    const bool other_lead =
        options_.predict == Predict::kIncrement && use.statistics->lead_time != options_.lead_steps;
    statistics_ = compute(other_lead ? nullptr : &*use.statistics);
  } else if (file == nullptr) {
    statistics_ =
        cached_statistics(pass, paths_, decides_statistics(), communicator, [&] { return compute(nullptr); });
  } else {
    statistics_ = shared_statistics(*file, folder, communicator);
  }
  together(communicator,
           [&] { naming_statistics(use.statistics ? nullptr : file, [&] { check_statistics(); }); });
  statistics_.in_steps = true;  // those of earlier versions count a step as a second
  if (const std::string line = divide_constants_by_one(); !line.empty() && pass.tell) pass.tell(line);
}

Channels sequence_channels(const DataOptions& options, const std::vector<Field>& fields,
                           const std::vector<Field>& constants) {
  Channels channels;
  std::set<Field> seen;
  for (const auto& [key, its] : {std::pair{"data.variables", &fields}, {"data.static", &constants}}) {
    for (const Field& field : *its) {
      if (!seen.insert(field).second)
        throw ConfigError(
            concat(key, " names ", field.name(), ", which is named before; each field has one role"));
    }
  }
  for (const Field& field : fields)
    channels.targets.push_back({field.name(), Role::kPrognostic, field, {}, options.lead_steps});
  for (const std::int64_t step : options.input_steps)
    for (const Field& field : fields)
      channels.inputs.push_back({field.name(), Role::kPrognostic, field, {}, step});
  for (const Field& field : constants) channels.inputs.push_back({field.name(), Role::kStatic, field, {}, 0});
  set_known_values(channels, options);
  return channels;
}

void SequenceData::open(const FileOpener& open_file) {
  const ImagePairing wherever{options_.files, std::numeric_limits<double>::infinity()};
  files_ = std::make_unique<ImageFiles>(paths_, options_.dims, open_file, std::vector<double>{},
                                        std::vector<std::string>{}, wherever);
  std::vector<Field> fields, constants;
  const auto own = [&](const VariableOptions& variable) {
    const auto found = own_paths_.find(variable.files);
    return found == own_paths_.end() ? std::vector<std::string>{} : found->second;
  };
  for (const VariableOptions& variable : options_.variables)
    std::ranges::copy(files_->select(variable, own(variable)), std::back_inserter(fields));
  for (const VariableOptions& variable : options_.constants)
    std::ranges::copy(files_->select_constant(variable, own(variable)), std::back_inserter(constants));
  channels_ = sequence_channels(options_, fields, constants);
  files_->end_selection();
  check_extents();
  grid_ = make_plain_grid(files_->extents(0));
  const std::vector<ImageDim> space = options_.space();
  for (std::size_t d = 0; d < space.size(); ++d) grid_.axes[d].name = name(space[d]);
}

void SequenceData::check_extents() const {
  const Shape first = files_->extents(0);
  for (const ImageFiles::Series& series : files_->series()) {
    if (files_->extents(series.first) == first) continue;
    throw DataError(concat("states of sequences must have the same extents, and ", files_->path(series.first),
                           " holds ", files_->extents(series.first), " and ", files_->path(0), " ", first));
  }
  require_memory(first, "a state", files_->path(0));
  if (options_.shape.empty() || Shape(options_.shape) == first) return;
  throw ConfigError(concat("data.shape is ", Shape(options_.shape), ", but the files hold ", first));
}

std::vector<SequenceData::Run> SequenceData::runs(const std::vector<DataPart>& parts,
                                                  const std::string& key) const {
  const std::vector<ImageFiles::Series>& all = files_->series();
  std::vector<Run> result;
  for (const DataPart& part : parts) {
    const auto& ranges = std::get<SliceRanges>(part);
    std::int64_t begin = 0, end = std::ssize(all);
    if (const auto samples = ranges.of.find(ImageDim::kSample); samples != ranges.of.end()) {
      begin = samples->second.first;
      if (samples->second.second >= end) {
        throw ConfigError(concat(key, " takes sample ", begin, " to ", samples->second.second,
                                 ", but the sequences of all files are ", end, "; the last can be at most ",
                                 end - 1));
      }
      end = samples->second.second + 1;
    }
    SliceRanges of_cases = ranges;
    of_cases.of.clear();
    const std::vector<std::int64_t> chosen = images_of(of_cases, *files_, key);
    for (std::int64_t number = begin; number < end; ++number) {
      const ImageFiles::Series& series = all[static_cast<std::size_t>(number)];
      if (!std::ranges::binary_search(chosen, series.first)) continue;
      Run run{series.first, series.first + series.steps - 1};
      if (const auto time = ranges.of.find(ImageDim::kTime); time != ranges.of.end()) {
        if (time->second.second >= series.steps) {
          throw ConfigError(concat(key, " takes time ", time->second.first, " to ", time->second.second,
                                   ", but a sequence in ", files_->path(series.first), " has ",
                                   counted(series.steps, "state"), "; the last can be at most ",
                                   series.steps - 1));
        }
        run = {series.first + time->second.first, series.first + time->second.second};
      }
      result.push_back(run);
    }
  }
  return result;
}

/// The windows whose time 0 and targets lie in a run; what comes before time 0 lies in its sequence.
std::vector<std::int64_t> SequenceData::windows_in(const std::vector<Run>& runs, int rollout,
                                                   const std::string& key) const {
  const std::int64_t before = -std::ranges::min(options_.input_steps), after = rollout * options_.lead_steps;
  std::set<std::int64_t> result;
  for (const Run& run : runs) {
    const std::int64_t earliest = files_->series()[series_of(run.first)].first + before;
    for (std::int64_t at = std::max(run.first, earliest); at + after <= run.last; ++at) result.insert(at);
  }
  std::int64_t longest = 0;
  for (const Run& run : runs) longest = std::max(longest, run.last - run.first + 1);
  if (result.empty()) {
    throw DataError(concat(key, " holds no window: from ", before,
                           " steps before time 0 (data.input_steps) to ", after,
                           " after it (data.lead_steps ", options_.lead_steps, ", ", counted(rollout, "lead"),
                           "), and its longest part has ", counted(longest, "state")));
  }
  return {result.begin(), result.end()};
}

std::size_t SequenceData::series_of(std::int64_t state) const {
  const auto& all = files_->series();
  const auto next = std::ranges::upper_bound(all, state, {}, &ImageFiles::Series::first);
  return static_cast<std::size_t>(next - all.begin()) - 1;
}

std::string SequenceData::text_of(std::int64_t state) const {
  const std::size_t number = series_of(state);
  return concat("state ", state - files_->series()[number].first, " of sequence ", number, " (",
                files_->path(state), ")");
}

std::unique_ptr<SampleReader> SequenceData::open_reader() {
  return std::make_unique<SequenceReader>(*this);
}

}  // namespace jigsaw::inline images
