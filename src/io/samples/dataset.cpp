#include "samples/dataset.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "base/text.h"
#include "comm/agreement.h"
#include "comm/from_first.h"
#include "config/config.h"
#include "fields/data_forms.h"
#include "fields/shared_files.h"
#include "samples/lone_members.h"
#include "times/windows.h"

namespace jigsaw::inline samples {

Dataset::Dataset(const DataOptions& options, const std::filesystem::path& folder, int rollout,
                 Communicator& communicator, const DataUse& use)
    : options_(options) {
  const auto expand = [&](const std::vector<std::string>& patterns) {
    return expand_together(patterns, folder, communicator);
  };
  // Where nothing is read but what forecasts start from.
  const bool inputs_only = use.statistics && !use.train && !use.valid;
  const VariableSources sources = sources_of(options, expand, paths_, !inputs_only);
  const std::string metadata =
      from_first(communicator, [&] { return makani_metadata(options.makani, folder); });
  const FileOpener open_file =
      share_files(paths_, Dimensions::kByName, options.external(), use.pass.cache, communicator);
  together(communicator, [&] {
    FileSelection selection = file_selection(options, metadata);
    selection.sources = sources;
    selection.like = use.like;
    open(selection, open_file, inputs_only ? &*use.statistics : nullptr);
    find_all_windows(rollout, use);
  });
  const StatisticsPass& pass = use.pass;
  if (pass.before) pass.before(*this);
  cell_weights_ = jigsaw::cell_weights(*files_, inputs_only ? "" : options.cell_area, communicator);
  const std::string* file = options_.statistics_file();
  const auto compute = [&](const Statistics* known) {
    Statistics spared;
    if (pass.spared) {
      std::vector<Channel> changing = channels_.targets;
      std::ranges::copy_if(channels_.inputs, std::back_inserter(changing),
                           [](const Channel& channel) { return channel.role != Role::kStatic; });
      spared = spared_statistics(pass, changing, options.lead_time, known);
      if (known != nullptr) spared.fields.insert(known->fields.begin(), known->fields.end());
      known = &spared;  // what does not change is one state of each field
    }
    return compute_statistics(*files_, channels_, files_->periods(options.train, "data.train"),
                              options.lead_time, communicator, known, pass.progress);
  };
  if (use.statistics) {
    const bool other_lead =
        options.predict == Predict::kIncrement && use.statistics->lead_time != options.lead_time;
    statistics_ = compute(other_lead ? nullptr : &*use.statistics);
  } else if (file == nullptr) {
    statistics_ =
        cached_statistics(pass, paths_, decides_statistics(), communicator, [&] { return compute(nullptr); });
  }
  if (!use.statistics && file != nullptr) statistics_ = shared_statistics(*file, folder, communicator);
  const Statistics* const given = use.statistics    ? &*use.statistics
                                  : file != nullptr ? &statistics_
                                                    : nullptr;
  together(communicator, [&] {
    naming_statistics(use.statistics ? nullptr : file, [&] {
      check_statistics(statistics_, channels_, *files_, options.predict, options.lead_time,
                       given != nullptr && given->lead_time == options.lead_time ? given : nullptr);
    });
  });
}

FileSelection file_selection(const DataOptions& options, const std::string& metadata) {
  FileSelection selection{options.region,    options.every,          options.regrid,
                          options.time_step, options.time_tolerance, options.overlap};
  selection.member = options.member;
  selection.fill = options.fill;
  selection.missing = options.missing;
  selection.deaccumulate = options.deaccumulate;
  if (options.makani.given()) selection.channels = ChannelLayout(options.makani, metadata);
  return selection;
}

/// @param trained_with  statistics with the units of diagnostic variables, which the files then may lack;
///                      or null.
void Dataset::open(const FileSelection& selection, const FileOpener& open_file,
                   const Statistics* trained_with) {
  sources_ = selection.sources.to_json();
  if (selection.channels)
    layout_ = {selection.channels->variable, selection.channels->channels, selection.channels->hours};
  files_ = std::make_unique<FileSet>(paths_, selection, open_file);
  // Whether the grid is periodic, which the channels depend on, shows when the fields are selected.
  const Channels fields = make_channels(options_, false);
  std::vector<Field> selected, absent;
  for (const Channel& channel : fields.targets) {
    const bool needed = trained_with == nullptr || channel.role == Role::kPrognostic;
    (needed || files_->holds(channel.field) ? selected : absent).push_back(channel.field);
  }
  const std::vector<Field> given = fields_of(fields.inputs, Role::kPrognostic),
                           constants = fields_of(fields.inputs, Role::kStatic);
  // The grid is that of the first field. Constant ones lie on that of the targets sooner than what is brought
  // to it.
  grid_of_targets_ = !selected.empty();
  const bool like_constants =
      selected.empty() && options_.regrid.method != Regrid::kNone && !constants.empty();
  if (like_constants) files_->select(constants.front(), false);
  selected.insert(selected.end(), given.begin(), given.end());
  for (const Field& field : selected) files_->select(field, true);
  for (const Field& field : absent) {
    const auto known = trained_with->fields.find(field.name());
    const std::string units = known == trained_with->fields.end() ? "" : known->second.units;
    files_->select_absent(field, units, like_constants ? constants.front() : selected.front());
  }
  for (const Field& field : fields_of(fields.inputs, Role::kPrescribed))
    files_->select_prescribed(field, options_.between_of(field));
  for (const Field& field : constants) files_->select(field, false);
  for (const Channel& channel : fields.inputs) {
    if (channel.role == Role::kForcing && needs_dates(channel.forcing)) files_->require_dates(channel.name);
    if (channel.role == Role::kPrescribed && options_.between_of(channel.field) == Between::kCycle)
      files_->require_dates(concat(channel.name, ", which is repeated every year,"));
  }
  if (trained_with == nullptr) select_cell_area(*files_, options_.cell_area);
  const bool of_one = require_one_member(*files_, selected, options_.member);
  if ((options_.member.all || options_.member.number) && !files_->has_members() && !of_one) {
    const std::string member = options_.member.all ? std::string("\"all\"") : concat(*options_.member.number);
    throw ConfigError(
        concat("data.member is ", member, ", and none of the variables has a dimension of members in ",
               paths_.front(), paths_.size() > 1 ? " and the other files" : "",
               " (number, realization, member, member_id or ensemble); leave data.member out, or "
               "set it to null"));
  }
  check_shape();
  channels_ = make_channels(options_, grid().periodic);
  rim_ = Rim(grid(), options_.boundary_width);
  files_->end_selection();
}

/// What statistics depend on beside the files.
Json Dataset::decides_statistics() const {
  Json fields = Json::array();
  const auto add = [&](const Field& field, const char* role) {
    const std::string transform = options_.transform_of(field).name();
    const std::optional<double> fill = options_.fill_of(field), missing = options_.missing_of(field);
    const std::optional<SummedSince> summed = options_.summed_since(field);
    const std::string since = summed ? form_of<SummedSince>()->write(*summed).get<std::string>() : "";
    fields.push_back(concat(field.name(), role, transform.empty() ? "" : " as ", transform,
                            fill ? concat(" filled with ", Json(*fill).dump()) : std::string(),
                            missing ? concat(" without ", Json(*missing).dump()) : std::string(),
                            summed ? concat(" from sums since ", since) : std::string()));
  };
  for (const Channel& channel : channels_.targets)
    add(channel.field, channel.role == Role::kPrognostic ? "" : " diagnostic");
  for (const Field& field : fields_of(channels_.inputs, Role::kPrognostic))
    if (options_.of_same_time()) add(field, " given");
  for (const Field& field : fields_of(channels_.inputs, Role::kPrescribed)) add(field, " prescribed");
  for (const Field& field : fields_of(channels_.inputs, Role::kStatic))
    add(field, files_->members_of(field) > 1 ? " static in each member" : " static");
  Json periods = Json::array();
  std::vector<int> between;
  for (const Field& field : fields_of(channels_.inputs, Role::kPrescribed))
    between.push_back(static_cast<int>(options_.between_of(field)));
  for (const Period& period : files_->periods(options_.train, "data.train"))
    periods.push_back({period.first, period.last});
  Json decides = {{"fields", fields},
                  {"layout", layout_},
                  {"periods", periods},
                  {"lead_hours", hours_json(options_.lead_time)},
                  {"rows", grid().axes[0].coordinates},
                  {"columns", grid().axes[1].coordinates},
                  {"time_step", form_of<TimeStep>()->write(options_.time_step)},
                  {"member", form_of<MemberChoice>()->write(options_.member)},
                  {"overlap", static_cast<int>(options_.overlap)}};
  if (options_.time_tolerance != 0) decides["time_tolerance"] = options_.time_tolerance;
  if (!sources_.is_null()) decides["sources"] = sources_;
  if (options_.regrid.method != Regrid::kNone) decides["regrid"] = to_json(options_.regrid);
  const auto other = [&](int one) { return one != between.front(); };
  if (std::ranges::any_of(between, other)) {
    decides["forcing_times"] = between;
  } else if (!between.empty() && between.front() != static_cast<int>(Between::kNothing)) {
    decides["forcing_times"] = between.front();
  }
  return decides;
}

void Dataset::check_shape() const {
  if (options_.shape.empty()) return;
  const Shape wanted{std::span<const std::int64_t>(options_.shape)}, found = grid().shape();
  if (!(wanted == found)) throw ConfigError(concat("data.shape is ", wanted, ", but the files hold ", found));
}

std::vector<Time> Dataset::input_times() const {
  const std::vector<Field> given = fields_of(channels_.inputs, Role::kPrognostic);
  std::vector<Time> times = files_->times(given.front());
  for (const Field& field : given) times = common_times(times, files_->times(field));
  return times;
}

std::vector<Field> Dataset::prescribed() const {
  std::vector<Field> fields = fields_of(channels_.inputs, Role::kPrescribed);
  if (!rim_.empty()) {
    const std::vector<Field> given = fields_of(channels_.inputs, Role::kPrognostic);
    fields.insert(fields.end(), given.begin(), given.end());
  }
  return fields;
}

std::function<bool(Time)> Dataset::has_prescribed() const {
  const std::vector<Field> fields = prescribed();
  if (fields.empty()) return {};
  return [this, fields](Time time) {
    return std::all_of(fields.begin(), fields.end(),
                       [&](const Field& field) { return files_->has(field, time); });
  };
}

std::function<std::string(Time)> Dataset::why_not_prescribed() const {
  return [this, fields = prescribed()](Time time) {
    const auto lacking = std::ranges::find_if(fields, [&](const Field& f) { return !files_->has(f, time); });
    return lacking == fields.end() ? std::string() : why_not(*lacking, time);
  };
}

/// Why a field is not there at a time, where it is, and which key would change that.
std::string Dataset::why_not(const Field& field, Time time) const {
  const Calendar calendar = files_->calendar();
  const std::vector<Time>& times = files_->times(field);
  std::string what = concat(field.name(), " is in ", files_->where(field), " at ",
                            times_text(times, calendar), ", not at ", format_time(time, calendar));
  if (const std::optional<Time> nearest = nearest_time(times, time))
    what += concat(" (the nearest time is ", format_time(*nearest, calendar), ")");
  if (files_->is_deaccumulated(field)) what += ", with what data.deaccumulate needs a step before";
  const std::vector<Field> given = fields_of(channels_.inputs, Role::kPrescribed);
  if (std::ranges::find(given, field) == given.end()) return what;
  const bool between = !times.empty() && times.front() < time && time < times.back();
  const auto own = std::ranges::find(options_.forcing_variables, field.variable, &VariableOptions::name);
  const bool of_its_own = own != options_.forcing_variables.end() && own->times.has_value();
  if (options_.between_of(field) == Between::kNothing && between) {
    return concat(what, ", and ", of_its_own ? "its times are" : "data.forcing_times is",
                  " \"exact\"; \"latest\" or \"linear\" gives it between its times");
  }
  what += "; data.forcing_variables must be there at time 0 and at all leads";
  if (times.empty() || time < times.back()) return what;
  return what + ", and \"hold\" lets its last state go on";
}

/// "u has 80 times from … to …, and t2m 160 times from … to …", of the field that has fewest and of another;
/// "" where all have the same.
std::string Dataset::fewest_times(const std::vector<Field>& fields) const {
  const auto times = [&](const Field& field) -> const std::vector<Time>& { return files_->times(field); };
  const auto fewer = [&](const Field& a, const Field& b) { return times(a).size() < times(b).size(); };
  const auto fewest = std::ranges::min_element(fields, fewer);
  std::vector<Field> others = fields;
  std::erase_if(others, [&](const Field& field) { return times(field) == times(*fewest); });
  if (others.empty()) return "";
  const auto other = std::ranges::max_element(others, fewer);
  const Calendar calendar = files_->calendar();
  return concat(fewest->name(), " has ", times_text(times(*fewest), calendar), ", and ", other->name(), " ",
                times_text(times(*other), calendar));
}

void Dataset::find_all_windows(int rollout, const DataUse& use) {
  const std::vector<Time> inputs = input_times();
  std::vector<Time> targets = inputs;
  std::vector<Field> fields = fields_of(channels_.inputs, Role::kPrognostic);
  for (const Channel& channel : channels_.targets) {
    targets = common_times(targets, files_->times(channel.field));
    fields.push_back(channel.field);
  }
  const Calendar calendar = files_->calendar();
  WindowRule rule{options_.input_times, options_.lead_time,  rollout, has_prescribed(), rollout,
                  why_not_prescribed(), fewest_times(fields)};
  if (use.train) {
    train_windows_ = of_each_member(find_windows(
        inputs, targets, rule, files_->periods(options_.train, "data.train"), "data.train", calendar));
  }
  if (!use.valid || options_.valid.empty()) return;
  rule.rollout = rule.prescribed_leads = use.valid_rollout.value_or(rollout);
  std::vector<Time> windows = find_windows(
      inputs, targets, rule, files_->periods(options_.valid, use.valid_name), use.valid_name, calendar);
  if (use.most_valid) windows = evenly_spread(windows, *use.most_valid);
  valid_windows_ = of_each_member(windows);
}

std::vector<Time> Dataset::of_each_member(const std::vector<Time>& windows) const {
  std::vector<Time> all;
  for (const Time time : windows) all.insert(all.end(), static_cast<std::size_t>(files_->members()), time);
  return all;
}

std::vector<Time> Dataset::starts(const std::vector<Period>& periods, const std::string& key,
                                  int leads) const {
  const std::vector<Time> inputs = input_times();
  return find_windows(inputs, inputs,
                      {options_.input_times, options_.lead_time, 0, has_prescribed(), leads,
                       why_not_prescribed(), fewest_times(fields_of(channels_.inputs, Role::kPrognostic))},
                      periods, key, files_->calendar());
}

void Dataset::require_inputs(Time start, int leads, int first) const {
  const auto text = [&](Time time) { return format_time(time, files_->calendar()); };
  const auto check = [&](const Field& field, Time time) {
    if (files_->has(field, time)) return;
    throw DataError(concat("a forecast from ", text(start), " needs ", field.name(), " at ", text(time), ": ",
                           why_not(field, time)));
  };
  const Time lead = options_.lead_time;
  for (const Channel& channel : channels_.inputs) {
    if (channel.role == Role::kPrognostic) check(channel.field, start + channel.offset);
    const bool at_leads =
        channel.role == Role::kPrescribed || (channel.role == Role::kPrognostic && !rim_.empty());
    for (int k = 0; at_leads && k <= leads; ++k)
      if (k <= 1 || k >= first) check(channel.field, start + k * lead);
  }
}

namespace {

/// Windows by their numbers.
class DatasetReader : public SampleReader {
 public:
  DatasetReader(Dataset& data) : data_(data), reader_(data.make_reader()) {}

  Batch read(const SampleRequest& request, const Context& context) override {
    BatchRequest windows = batch_request(request);
    for (const std::int64_t sample : request.samples) {
      windows.times.push_back(data_.windows(request.split).at(static_cast<std::size_t>(sample)));
      windows.members.push_back(data_.member_of(sample));
    }
    return reader_.read(windows, context);
  }

 private:
  Dataset& data_;
  BatchReader reader_;
};

}  // namespace

std::unique_ptr<SampleReader> Dataset::open_reader() {
  return std::make_unique<DatasetReader>(*this);
}

}  // namespace jigsaw::inline samples
