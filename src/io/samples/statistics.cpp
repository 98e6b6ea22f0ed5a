#include "samples/statistics.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <span>

#include "base/disk.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "config/json.h"
#include "fields/data_forms.h"
#include "fields/fill_values.h"
#include "fields/units.h"
#include "samples/read_ahead.h"
#include "samples/shared_work.h"

namespace jigsaw::inline samples {

namespace {

constexpr std::int64_t kMostTextBytes = 16 << 20;

struct StateMoments {
  RunningMoments state, increment;
  double points = 0;            ///< of the states, missing ones among them
  ValuesBelow below;            ///< of the states
  Time time = 0;                ///< of one state
  bool follows = false;         ///< of one state: another one is before it
  bool begins_file = false;     ///< of one state: that one is of another file
  double last_mean = 0;         ///< of the last state that had values
  double within = 0;            ///< squared deviations from the mean of their state
  double moves = 0, moved = 0;  ///< changes of that mean from state to state, and how many there are
  double jump = 0;              ///< the largest of them, or about that, from one file to another
  Time jumped = 0;
};

/// More than these make a change of the mean from file to file remarkable.
constexpr double kJumpDeviations = 6, kJumpMoves = 20;
/// Of two such changes the first is told, which begins what another ends, unless that is so much larger.
constexpr double kFarLarger = 1.25;

StateMoments moments_of(const TransformedValues& state) {
  StateMoments moments;
  moments.state = RunningMoments::of(state.values);
  moments.points = static_cast<double>(state.values.size());
  moments.below = state.below;
  return moments;
}

using StateReader = KeptAhead<Moment, TransformedValues>;

/// Of one field. @param readers  that there are beside each other, this one among them.
StateReader reader_of(FileSet& files, const Field& field, const Transform& transform,
                      std::size_t readers = 1) {
  const auto read = [&files, field, transform](const Moment& moment) {
    const Box box = Box::whole(files.grid().shape());
    TransformedValues state;
    state.values.resize(static_cast<std::size_t>(box.extent.count()));
    files.read(field, moment, box, state.values);
    state.below = transform_values(transform, state.values);
    return state;
  };
  return {read, most_ahead(files.grid().shape().count(), readers)};
}

bool in_one_period(const std::vector<Period>& periods, Time first, Time last) {
  return std::any_of(periods.begin(), periods.end(),
                     [&](const Period& period) { return period.contains(first) && period.contains(last); });
}

/// Takes in how the mean of one more state differs from that of the state before.
void follow(StateMoments& total, const StateMoments& each) {
  if (each.state.count == 0) return;
  total.within += each.state.squares;
  if (total.state.count > 0 && each.follows) {
    const double change = each.state.mean - total.last_mean;
    total.moves += std::abs(change);
    total.moved += 1;
    if (each.begins_file && std::abs(change) > kFarLarger * std::abs(total.jump)) {
      total.jump = change;
      total.jumped = each.time;
    }
  }
  total.last_mean = each.state.mean;
}

void merge(StateMoments& total, const StateMoments& each) {
  follow(total, each);
  total.state.merge(each.state);
  total.increment.merge(each.increment);
  total.points += each.points;
  total.below.merge(each.below);
}

FieldStatistics summarise(const std::string& units, const Channel& channel, const StateMoments& total) {
  FieldStatistics statistics = normalisation_of(units, channel, total.state, total.increment.deviation());
  if (total.state.count > 0) {
    statistics.least = total.state.least;
    statistics.largest = total.state.largest;
    if (!channel.fill) statistics.missing = seen_values(total.state, total.points).missing;
  }
  return statistics;
}

SeenValues seen_in(const StateMoments& total, const Transform& transform) {
  SeenValues seen = seen_values(total.state, total.points, total.below, transform);
  const double deviation = std::sqrt(total.within / total.state.count), jump = std::abs(total.jump);
  if (deviation > 0 && jump > kJumpDeviations * deviation && jump * total.moved > kJumpMoves * total.moves) {
    seen.jump = total.jump;
    seen.jump_deviations = jump / deviation;
    seen.jumped = total.jumped;
  }
  return seen;
}

/// The times of a field in the periods; of a year that is repeated all of them. Of one that holds between its
/// times, and has fewer than two of them there, also those around, which say what it is.
std::vector<Time> times_of(const FileSet& files, const Field& field, const std::vector<Period>& periods) {
  const std::vector<Time>& all = files.times(field);
  if (files.between(field) == Between::kCycle) return files.times_of_cycle(field);
  std::set<Time> times;
  std::copy_if(all.begin(), all.end(), std::inserter(times, times.end()),
               [&](Time time) { return in_one_period(periods, time, time); });
  if (files.between(field) != Between::kNothing && times.size() < 2) {
    for (const Period& period : periods) {
      if (const auto after = std::ranges::upper_bound(all, period.last); after != all.end())
        times.insert(*after);
      if (const auto begin = std::ranges::lower_bound(all, period.first); begin != all.begin())
        times.insert(*std::prev(begin));
    }
  }
  return {times.begin(), times.end()};
}

/// Of fields that stand together on disk, each at all times in the periods.
std::vector<StateMoments> state_moments(FileSet& files, const std::vector<Channel>& channels,
                                        const std::vector<Period>& periods, Time lead,
                                        Communicator& communicator, const std::function<void(double)>& did) {
  const Field& first = channels.front().field;
  const std::vector<Time> times = times_of(files, first, periods);
  std::vector<StateReader> readers;
  for (const Channel& channel : channels)
    readers.push_back(reader_of(files, channel.field, channel.transform, channels.size()));
  const auto moments_at = [&](std::int64_t i) {
    // Member after member, so that later states are those ahead.
    const Time time = times[static_cast<std::size_t>(i % std::ssize(times))];
    const Moment moment(time, static_cast<std::int32_t>(i / std::ssize(times)));
    const bool follows = i % std::ssize(times) > 0;
    const Time before = follows ? times[static_cast<std::size_t>(i % std::ssize(times)) - 1] : time;
    std::vector<StateMoments> all;
    std::vector<std::vector<double>> states;
    for (StateReader& reader : readers) {
      TransformedValues state = reader.take(moment);
      all.push_back(moments_of(state));
      states.push_back(std::move(state.values));
    }
    for (std::size_t c = 0; c < channels.size(); ++c) {
      all[c].time = time;
      all[c].follows = follows;
      all[c].begins_file = files.path_at(channels[c].field, moment) !=
                           files.path_at(channels[c].field, {before, moment.member});
    }
    for (std::size_t c = 0; c < channels.size(); ++c) {
      const bool increments = channels[c].role == Role::kPrognostic && lead > 0 &&
                              in_one_period(periods, time, time + lead) &&
                              files.has(channels[c].field, time + lead);
      if (!increments) continue;
      const std::vector<double> later = readers[c].peek(moment + lead).values;
      std::transform(later.begin(), later.end(), states[c].begin(), states[c].begin(), std::minus<>());
      all[c].increment = RunningMoments::of(states[c]);
    }
    return all;
  };
  return share_wide_work(std::ssize(times) * files.members_of(first), channels.size(), communicator,
                         moments_at, StateMoments{}, merge, did);
}

FieldStatistics static_statistics(FileSet& files, const Channel& channel, Communicator& communicator) {
  StateReader reader = reader_of(files, channel.field, channel.transform);
  const auto moments_at = [&](std::int64_t member) {
    return moments_of(reader.take({0, static_cast<std::int32_t>(member)}));
  };
  return summarise(
      files.units(channel.field), channel,
      share_work(files.members_of(channel.field), communicator, moments_at, StateMoments{}, merge));
}

/// Each field of the inputs that has the role, as one channel of it.
std::vector<Channel> channels_of(const Channels& channels, Role role) {
  std::vector<Channel> result;
  for (const Field& field : fields_of(channels.inputs, role)) {
    result.push_back(
        *std::find_if(channels.inputs.begin(), channels.inputs.end(), [&](const Channel& channel) {
          return channel.field == field && channel.role == role && !channel.mask;
        }));
  }
  return result;
}

double number_of(const Json& json, const char* key, const std::string& where) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_number() || !std::isfinite(found->get<double>())) {
    throw DataError(concat(where, " has no number \"", key, "\""));
  }
  return found->get<double>();
}

/// What does not is of another format, and no mistake in JSON: comments and a mark of UTF-8 may be first.
bool begins_as_json(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string::npos &&
         std::string_view("{[/\xEF").find(text[first]) != std::string_view::npos;
}

}  // namespace

const FieldStatistics& Statistics::of(const Field& field) const {
  const auto found = fields.find(field.name());
  if (found != fields.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [name, statistics] : fields) names.push_back(name);
  throw DataError(concat("there are no statistics of ", field.name(), did_you_mean(field.name(), names),
                         names.empty() ? "" : concat("; there are those of ", join(names, ", ")),
                         "; jigsaw-train stats writes all that a configuration needs"));
}

std::string Statistics::to_text() const {
  Json json;
  if (in_steps) {
    json["lead_steps"] = lead_time;
  } else {
    json["lead_hours"] = hours_json(lead_time);
  }
  json["fields"] = Json::object();
  for (const auto& [name, field] : fields) {
    json["fields"][name] = {{"units", field.units},
                            {"mean", field.mean},
                            {"deviation", field.deviation},
                            {"increment_deviation", field.increment_deviation}};
    if (!field.transform.empty()) json["fields"][name]["transform"] = field.transform;
    if (field.fill) json["fields"][name]["fill"] = *field.fill;
    if (field.least) json["fields"][name]["least"] = *field.least;
    if (field.largest) json["fields"][name]["largest"] = *field.largest;
    if (field.missing) json["fields"][name]["missing"] = *field.missing;
  }
  // Units may be no UTF-8.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Statistics Statistics::from_text(const std::string& text, const std::string& source) {
  Json json;
  try {
    if (begins_as_json(text)) json = parse_json(text, source);
  } catch (const ConfigError& error) {
    throw DataError(error.what());
  }
  if (!json.is_object() || !json.contains("fields") || !json["fields"].is_object()) {
    throw DataError(concat(source, " holds no statistics: it must be an object with \"fields\""));
  }
  Statistics statistics;
  statistics.in_steps = json.contains("lead_steps");
  const double lead = number_of(json, statistics.in_steps ? "lead_steps" : "lead_hours", source);
  constexpr double kMostHours = 87600, kMostSteps = 1e6;
  if (lead >= 0 && lead <= (statistics.in_steps ? kMostSteps : kMostHours))
    statistics.lead_time = statistics.in_steps ? static_cast<Time>(lead) : from_hours(lead);
  for (const auto& [name, field] : json["fields"].items()) {
    const std::string where = concat("the field ", name, " of ", source);
    if (!field.is_object()) throw DataError(concat(where, " must be an object"));
    const auto text_of = [&field = field](const char* key) -> std::string {
      const auto found = field.find(key);
      return found != field.end() && found->is_string() ? found->get<std::string>() : "";
    };
    statistics.fields[name] = {text_of("units"), number_of(field, "mean", where),
                               number_of(field, "deviation", where),
                               number_of(field, "increment_deviation", where), text_of("transform")};
    if (field.contains("fill")) statistics.fields[name].fill = number_of(field, "fill", where);
    if (field.contains("least")) statistics.fields[name].least = number_of(field, "least", where);
    if (field.contains("largest")) statistics.fields[name].largest = number_of(field, "largest", where);
    if (field.contains("missing")) statistics.fields[name].missing = number_of(field, "missing", where);
  }
  return statistics;
}

void Statistics::save(const std::string& path) const {
  try {
    write_text_atomically(path, to_text());
  } catch (const FileError& error) {
    refuse_output<DataError>(error, concat("the statistics: ", error.what()));
  }
}

Statistics Statistics::load(const std::string& path) {
  std::string text;
  try {
    text = read_text(path, kMostTextBytes);
  } catch (const FileError& error) {
    throw DataError(concat("the statistics: ", error.what()));
  }
  return from_text(text, path);
}

SeenValues seen_values(const RunningMoments& values, double points, const ValuesBelow& below,
                       const Transform& transform) {
  constexpr double kRoundings = 0.01;
  SeenValues seen;
  if (points > 0) seen.missing = (points - values.count) / points;
  if (values.count > 0) {
    seen.least = values.least;
    seen.largest = values.largest;
  }
  if (below.count > 0 && -below.lowest > kRoundings * transform.inverse(seen.largest)) {
    seen.below = below.count / values.count;
    seen.lowest = below.lowest;
  }
  return seen;
}

FieldStatistics normalisation_of(const std::string& units, const Channel& channel,
                                 const RunningMoments& values, double increment_deviation) {
  FieldStatistics statistics{
      units,       values.mean_of_any(), values.deviation(), increment_deviation, channel.transform.name(),
      channel.fill};
  if (channel.transform.kind == TransformKind::kMinMax && values.count > 0) {
    statistics.mean = values.least;
    statistics.deviation = values.largest - values.least;
  }
  return statistics;
}

std::optional<FieldStatistics> known_normalisation(const std::string& units, const Channel& channel) {
  if (channel.transform.kind != TransformKind::kNone) return std::nullopt;
  return FieldStatistics{units, 0, 1, 1, channel.transform.name(), channel.fill};
}

Statistics neutral_statistics(const std::vector<Channel>& channels, Time lead_time) {
  Statistics statistics;
  statistics.lead_time = lead_time;
  for (const Channel& channel : channels) {
    if (channel.role == Role::kForcing || channel.mask) continue;  // these are not normalised
    statistics.fields[channel.field.name()] = {"", 0, 1, 1, channel.transform.name(), channel.fill};
  }
  return statistics;
}

Statistics compute_statistics(FileSet& files, const Channels& channels, const std::vector<Period>& periods,
                              Time lead_time, Communicator& communicator, const Statistics* known,
                              const std::function<void(double)>& progress) {
  Statistics statistics;
  statistics.lead_time = lead_time;
  const auto take_known = [&](const Channel& channel) {
    const std::string name = channel.field.name();
    if (known != nullptr && known->fields.contains(name)) {
      statistics.fields[name] = known->fields.at(name);
      return true;
    }
    const auto without_values = known_normalisation(files.units(channel.field), channel);
    if (without_values) statistics.fields[name] = *without_values;
    return without_values.has_value();
  };
  std::vector<Channel> states = channels.targets;
  for (const Role role : {Role::kPrognostic, Role::kPrescribed}) {
    const std::vector<Channel> given = channels_of(channels, role);
    std::ranges::copy_if(given, std::back_inserter(states), [&](const Channel& channel) {
      return std::ranges::find(channels.targets, channel.field, &Channel::field) == channels.targets.end();
    });
  }
  std::erase_if(states, take_known);
  const auto fields = static_cast<double>(states.size());
  double before = 0;
  for (auto begin = states.begin(); begin != states.end();) {
    const Field first = begin->field;
    const auto end = std::stable_partition(begin, states.end(), [&](const Channel& channel) {
      return channel.field == first || files.share_chunks(first, channel.field);
    });
    const std::vector<Channel> together(begin, end);
    const auto size = static_cast<double>(together.size());
    const auto did = [&](double part) {
      if (progress) progress((before + part * size) / fields);
    };
    const std::vector<StateMoments> moments =
        state_moments(files, together, periods, lead_time, communicator, did);
    for (std::size_t c = 0; c < together.size(); ++c) {
      const Channel& channel = together[c];
      statistics.fields[channel.name] = summarise(files.units(channel.field), channel, moments[c]);
      statistics.seen[channel.name] = seen_in(moments[c], channel.transform);
    }
    before += size;
    begin = end;
  }
  for (const Channel& channel : channels_of(channels, Role::kStatic)) {
    if (take_known(channel)) continue;
    statistics.fields[channel.name] = static_statistics(files, channel, communicator);
  }
  return statistics;
}

void check_transform(const FieldStatistics& statistics, const Channel& channel) {
  if (statistics.transform == channel.transform.name()) return;
  const auto text = [](const std::string& transform) { return transform.empty() ? "standard" : transform; };
  throw DataError(concat("the statistics of ", channel.name, " are of the transform ",
                         text(statistics.transform), ", and data.transforms says ",
                         text(channel.transform.name())));
}

void check_statistics(const Statistics& statistics, const Channels& channels, const FileSet& files,
                      Predict predict, Time lead_time, const Statistics* given) {
  const auto check = [&](const Channel& channel) {
    const FieldStatistics& found = statistics.of(channel.field);
    const std::string& units = files.units(channel.field);
    if (!found.units.empty() && !units.empty() && !same_unit(found.units, units)) {
      throw DataError(concat("the statistics of ", channel.name, " are in \"", found.units,
                             "\", the files in \"", units, "\""));
    }
    check_transform(found, channel);
    if (found.fill != channel.fill) {
      const auto text = [](const std::optional<double>& fill) {
        return fill ? concat("as ", *fill) : std::string("not at all");
      };
      throw DataError(concat("in the statistics of ", channel.name, " missing values count ",
                             text(found.fill), ", and by data.fill ", text(channel.fill)));
    }
    if (!std::isfinite(found.mean) || !std::isfinite(found.deviation)) {
      throw DataError(concat(channel.name, " is missing everywhere in data.train; leave it out"));
    }
    if (found.deviation < 0) {
      throw DataError(concat("the statistics of ", channel.name, " give the deviation ", found.deviation,
                             "; it must be above 0"));
    }
    // Rounding gives a constant field a deviation, too.
    if (!(found.deviation > 1e-10 * std::abs(found.mean))) {
      throw DataError(concat(channel.name, " does not vary, so it cannot be normalised (mean ", found.mean,
                             ", deviation ", found.deviation, "); leave it out"));
    }
    if (predict != Predict::kIncrement || channel.role != Role::kPrognostic || lead_time == 0) return;
    if (statistics.lead_time != lead_time) {
      throw DataError(concat("the statistics are of increments over ", duration_text(statistics.lead_time),
                             ", and data.lead_hours is ", duration_text(lead_time)));
    }
    if (found.increment_deviation == 0 && given != nullptr && given->fields.contains(channel.name)) {
      throw DataError(concat("the statistics of ", channel.name, " have no deviation of its change within ",
                             duration_text(lead_time),
                             ", as those of a variable that was not predicted where they were computed; "
                             "data.normalization \"auto\" computes it, data.predict \"state\" needs none"));
    }
    if (!(found.increment_deviation > 1e-10 * found.deviation)) {
      const auto seen = statistics.seen.find(channel.name);
      const bool known = seen != statistics.seen.end();
      const double most = !known                                ? 0
                          : is_usual_fill(seen->second.largest) ? seen->second.largest
                                                                : seen->second.least;
      throw DataError(concat(
          channel.name, " does not change within ", duration_text(lead_time),
          known && is_usual_fill(most)
              ? concat(
                    " beside values of ", most,
                    ", which seem to stand for missing ones: files "
                    "declare them by the attribute _FillValue or missing_value, or data.missing names them")
              : ", so its increment cannot be normalised; leave it out or predict the state"));
    }
  };
  for (const Channel& channel : channels.targets) check(channel);
  for (const Channel& channel : channels.inputs) {
    if (channel.role != Role::kForcing && !channel.mask) check(channel);
  }
}

std::vector<std::string> unit_remarks(const Statistics& statistics, const Channels& channels,
                                      const FileSet& files) {
  std::vector<std::string> remarks;
  std::set<std::string> told;
  for (const auto* of : {&channels.inputs, &channels.targets}) {
    for (const Channel& channel : *of) {
      if (channel.role == Role::kForcing || channel.mask) continue;
      const auto known = statistics.fields.find(channel.name);
      if (known == statistics.fields.end() || known->second.units.empty()) continue;
      if (!files.units(channel.field).empty() || !told.insert(channel.field.variable).second) continue;
      remarks.push_back(concat(channel.field.variable, " in ", files.where(channel.field),
                               " has no attribute units, and is taken to be in \"", known->second.units,
                               "\", as its statistics are"));
    }
  }
  return remarks;
}

}  // namespace jigsaw::inline samples
