#include "samples/statistics.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "config/json.h"
#include "samples/moments.h"
#include "samples/shared_work.h"

namespace jigsaw::inline samples {

namespace {

/// States kept to form increments without reading them twice.
constexpr std::int64_t kMostCachedBytes = std::int64_t{256} << 20;

constexpr std::int64_t kMostTextBytes = 16 << 20;

struct StateMoments {
  RunningMoments state, increment;
  double points = 0;  ///< of the states, missing ones among them
};

/// Reads one field's states, holding on to those ahead.
class StateReader {
 public:
  StateReader(FileSet& files, const Field& field)
      : files_(files), field_(field), box_(Box::whole(files.grid().shape())) {}

  std::vector<double> take(Time time) {
    const auto known = ahead_.find(time);
    if (known == ahead_.end()) return read(time);
    std::vector<double> state = std::move(known->second);
    ahead_.erase(known);
    return state;
  }
  std::vector<double> peek(Time time) {
    const auto known = ahead_.find(time);
    if (known != ahead_.end()) return known->second;
    std::vector<double> state = read(time);
    const std::int64_t bytes = std::ssize(state) * 8;
    if (std::ssize(ahead_) * bytes < kMostCachedBytes) ahead_[time] = state;
    return state;
  }

 private:
  std::vector<double> read(Time time) {
    std::vector<double> state(static_cast<std::size_t>(box_.extent.count()));
    files_.read(field_, time, box_, state);
    return state;
  }

  FileSet& files_;
  Field field_;
  Box box_;
  std::map<Time, std::vector<double>> ahead_;
};

bool in_one_period(const std::vector<Period>& periods, Time first, Time last) {
  return std::any_of(periods.begin(), periods.end(),
                     [&](const Period& period) { return period.contains(first) && period.contains(last); });
}

void merge(StateMoments& total, const StateMoments& each) {
  total.state.merge(each.state);
  total.increment.merge(each.increment);
  total.points += each.points;
}

FieldStatistics summarise(const std::string& units, const StateMoments& total) {
  return {units, total.state.mean_of_any(), total.state.deviation(), total.increment.deviation()};
}

StateMoments state_moments(FileSet& files, const Field& field, bool increments,
                           const std::vector<Period>& periods, Time lead, Communicator& communicator,
                           const std::function<void(double)>& did) {
  std::vector<Time> times;
  std::copy_if(files.times(field).begin(), files.times(field).end(), std::back_inserter(times),
               [&](Time time) { return in_one_period(periods, time, time); });
  StateReader reader(files, field);
  const auto moments_at = [&](std::int64_t i) {
    const Time time = times[static_cast<std::size_t>(i)];
    std::vector<double> state = reader.take(time);
    StateMoments moments{RunningMoments::of(state), {}, static_cast<double>(state.size())};
    if (increments && in_one_period(periods, time, time + lead) && files.has(field, time + lead)) {
      const std::vector<double> later = reader.peek(time + lead);
      std::transform(later.begin(), later.end(), state.begin(), state.begin(), std::minus<>());
      moments.increment = RunningMoments::of(state);
    }
    return moments;
  };
  return share_work(std::ssize(times), communicator, moments_at, StateMoments{}, merge, did);
}

FieldStatistics static_statistics(FileSet& files, const Field& field, Communicator& communicator) {
  StateReader reader(files, field);
  const auto moments_at = [&](std::int64_t) {
    return StateMoments{RunningMoments::of(reader.take(0)), {}, 0};
  };
  return summarise(files.units(field), share_work(1, communicator, moments_at, StateMoments{}, merge));
}

double number_of(const Json& json, const char* key, const std::string& where) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_number() || !std::isfinite(found->get<double>())) {
    throw DataError(concat(where, " has no number \"", key, "\""));
  }
  return found->get<double>();
}

}  // namespace

const FieldStatistics& Statistics::of(const Field& field) const {
  const auto found = fields.find(field.name());
  if (found == fields.end()) throw DataError(concat("there are no statistics of ", field.name()));
  return found->second;
}

std::string Statistics::to_text() const {
  Json json = {{"lead_hours", lead_hours}, {"fields", Json::object()}};
  for (const auto& [name, field] : fields) {
    json["fields"][name] = {{"units", field.units},
                            {"mean", field.mean},
                            {"deviation", field.deviation},
                            {"increment_deviation", field.increment_deviation}};
  }
  return json.dump(2) + "\n";
}

Statistics Statistics::from_text(const std::string& text, const std::string& source) {
  Json json;
  try {
    json = parse_json(text, source);
  } catch (const ConfigError& error) {
    throw DataError(error.what());
  }
  if (!json.is_object() || !json.contains("fields") || !json["fields"].is_object()) {
    throw DataError(concat(source, " holds no statistics: it must be an object with \"fields\""));
  }
  Statistics statistics;
  const double lead = number_of(json, "lead_hours", source);
  statistics.lead_hours = lead >= 0 && lead <= 87600 ? static_cast<int>(lead) : 0;
  for (const auto& [name, field] : json["fields"].items()) {
    const std::string where = concat("the field ", name, " of ", source);
    if (!field.is_object()) throw DataError(concat(where, " must be an object"));
    const auto units = field.find("units");
    statistics.fields[name] = {units != field.end() && units->is_string() ? units->get<std::string>() : "",
                               number_of(field, "mean", where), number_of(field, "deviation", where),
                               number_of(field, "increment_deviation", where)};
  }
  return statistics;
}

void Statistics::save(const std::string& path) const {
  try {
    write_text_atomically(path, to_text());
  } catch (const FileError& error) {
    throw DataError(concat("the statistics: ", error.what()));
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

Statistics compute_statistics(FileSet& files, const Channels& channels, const std::vector<Period>& periods,
                              int lead_hours, Communicator& communicator, const Statistics* known,
                              const std::function<void(double)>& progress) {
  Statistics statistics;
  statistics.lead_hours = lead_hours;
  const auto take_known = [&](const std::string& name) {
    if (known == nullptr || !known->fields.contains(name)) return false;
    statistics.fields[name] = known->fields.at(name);
    return true;
  };
  const auto fields = static_cast<double>(channels.targets.size());
  double before = -1;
  const auto did = [&](double part) {
    if (progress) progress((before + part) / fields);
  };
  for (const Channel& channel : channels.targets) {
    before += 1;
    if (take_known(channel.name)) continue;
    const StateMoments moments = state_moments(files, channel.field, channel.role == Role::kPrognostic,
                                               periods, lead_hours * kHour, communicator, did);
    statistics.fields[channel.name] = summarise(files.units(channel.field), moments);
    statistics.missing[channel.name] = missing_part(moments.state, moments.points);
  }
  for (const Field& field : fields_of(channels.inputs, Role::kStatic)) {
    if (take_known(field.name())) continue;
    statistics.fields[field.name()] = static_statistics(files, field, communicator);
  }
  return statistics;
}

void check_statistics(const Statistics& statistics, const Channels& channels, const FileSet& files,
                      Predict predict, int lead_hours) {
  const auto check = [&](const Channel& channel) {
    const FieldStatistics& found = statistics.of(channel.field);
    const std::string& units = files.units(channel.field);
    if (!found.units.empty() && !units.empty() && found.units != units) {
      throw DataError(concat("the statistics of ", channel.name, " are in \"", found.units,
                             "\", the files in \"", units, "\""));
    }
    if (!std::isfinite(found.mean) || !std::isfinite(found.deviation)) {
      throw DataError(concat(channel.name, " is missing everywhere in data.train; leave it out"));
    }
    // Rounding gives a constant field a deviation, too.
    if (!(found.deviation > 1e-10 * std::abs(found.mean))) {
      throw DataError(concat(channel.name, " does not vary, so it cannot be normalised; leave it out"));
    }
    if (predict != Predict::kIncrement || channel.role != Role::kPrognostic) return;
    if (statistics.lead_hours != lead_hours) {
      throw DataError(concat("the statistics are of increments over ", statistics.lead_hours,
                             " h, and data.lead_hours is ", lead_hours));
    }
    if (!(found.increment_deviation > 1e-10 * found.deviation)) {
      throw DataError(concat(channel.name, " does not change within ", lead_hours,
                             " h, so its increment cannot be normalised; leave it out or predict the state"));
    }
  };
  for (const Channel& channel : channels.targets) check(channel);
  for (const Channel& channel : channels.inputs) {
    if (channel.role == Role::kStatic && !channel.mask) check(channel);
  }
}

}  // namespace jigsaw::inline samples
