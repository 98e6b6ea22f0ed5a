// What fields of sequences are normalised by.
#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "config/config.h"
#include "images/sequence_data.h"
#include "samples/read_ahead.h"
#include "samples/shared_work.h"

namespace jigsaw::inline images {

namespace {

/// The part of a state that is read at a time: rows of its first axis.
std::vector<Box> slabs_of(const Shape& extents) {
  constexpr std::int64_t kMostPoints = std::int64_t{1} << 22;
  const std::int64_t rows = std::max<std::int64_t>(1, kMostPoints / extents.count(1, extents.rank()));
  std::vector<Box> slabs;
  for (std::int64_t row = 0; row < extents[0]; row += rows) {
    Box slab = Box::whole(extents);
    slab.begin[0] = row;
    slab.extent[0] = std::min(rows, extents[0] - row);
    slabs.push_back(slab);
  }
  return slabs;
}

}  // namespace

/// What statistics depend on beside the files.
Json SequenceData::decides_statistics() const {
  Json fields = Json::array(), parts = Json::array(), dims = Json::array(), own = Json::object();
  for (const ImageDim dim : options_.dims) dims.push_back(name(dim));
  for (const Channel& channel : normalised_channels()) fields.push_back(channel.name);
  for (const std::vector<VariableOptions>* variables : {&options_.variables, &options_.constants}) {
    for (const VariableOptions& variable : *variables) {
      if (!variable.data_set.empty()) fields.push_back({variable.name, variable.data_set});
      if (const auto found = own_paths_.find(variable.files); found != own_paths_.end())
        own[variable.name] = found->second;
    }
  }
  for (const Run& run : train_runs_) parts.push_back({run.first, run.last});
  Json decides = {{"constants", options_.constants.size()},
                  {"fields", fields},
                  {"parts", parts},
                  {"dims", dims},
                  {"own_files", own},
                  {"lead_steps", options_.lead_steps},
                  {"pairs", files_->unordered_pairs()}};
  if (!options_.transforms.empty())
    decides["transforms"] = form_of<decltype(options_.transforms)>()->write(options_.transforms);
  return decides;
}

/// Of all slabs of states, each read once as far as memory allows. Collective.
/// @param numbers         of the states, ascending.
/// @param with_increment  those of them that have one.
SequenceMoments SequenceData::moments_of(const Channel& channel, const std::set<std::int64_t>& states,
                                         const std::set<std::int64_t>& with_increment,
                                         Communicator& communicator,
                                         const std::function<void(double)>& did) const {
  const std::vector<std::int64_t> numbers(states.begin(), states.end());
  const std::vector<Box> slabs = slabs_of(grid_.shape());
  using Key = std::pair<std::int64_t, std::int64_t>;  // a slab, and a state
  const auto read = [&](const Key& key) {
    const Box& slab = slabs[static_cast<std::size_t>(key.first)];
    TransformedValues state;
    state.values.resize(static_cast<std::size_t>(slab.extent.count()));
    files_->read(channel.field, key.second, slab, state.values);
    state.below = transform_values(channel.transform, state.values);
    return state;
  };
  KeptAhead<Key, TransformedValues> reader(read, most_ahead(slabs.front().extent.count()));
  const auto of_part = [&](std::int64_t number) {
    const std::int64_t slab = number / std::ssize(numbers),
                       state = numbers[static_cast<std::size_t>(number % std::ssize(numbers))];
    const TransformedValues now = reader.take({slab, state});
    SequenceMoments moments{RunningMoments::of(now.values), {}, now.below};
    if (!with_increment.contains(state)) return moments;
    std::vector<double> later = reader.peek({slab, state + options_.lead_steps}).values;
    std::ranges::transform(later, now.values, later.begin(), std::minus<>());
    moments.increment = RunningMoments::of(later);
    return moments;
  };
  const auto merge = [](SequenceMoments& total, const SequenceMoments& each) {
    total.state.merge(each.state);
    total.increment.merge(each.increment);
    total.below.merge(each.below);
  };
  return share_work(std::ssize(numbers) * std::ssize(slabs), communicator, of_part, SequenceMoments{}, merge,
                    did);
}

/// Of a field that is constant in time an image of each of the training parts that it differs in.
std::set<std::int64_t> SequenceData::images_of_constant(const Field& field) const {
  std::set<std::tuple<int, std::string, std::int64_t>> seen;
  std::set<std::int64_t> images;
  for (const Run& run : train_runs_) {
    const ImageSource source = files_->source(field.variable, run.first);
    if (seen.emplace(source.file, source.data_set, source.sample).second) images.insert(run.first);
  }
  return images;
}

std::vector<Channel> SequenceData::normalised_channels() const {
  std::vector<Channel> channels = channels_.targets;
  std::ranges::copy_if(channels_.inputs, std::back_inserter(channels),
                       [](const Channel& channel) { return channel.role == Role::kStatic; });
  return channels;
}

Statistics SequenceData::compute_statistics(Communicator& communicator, const Statistics* known,
                                            const std::function<void(double)>& progress) const {
  std::set<std::int64_t> states, with_increment;
  for (const Run& run : train_runs_) {
    for (std::int64_t at = run.first; at <= run.last; ++at) {
      states.insert(at);
      if (at + options_.lead_steps <= run.last) with_increment.insert(at);
    }
  }
  const std::vector<Channel> channels = normalised_channels();
  Statistics statistics;
  statistics.lead_time = options_.lead_steps;
  statistics.in_steps = true;
  double before = 0;
  for (const Channel& channel : channels) {
    if (known != nullptr && known->fields.contains(channel.name)) {
      statistics.fields[channel.name] = known->fields.at(channel.name);
      continue;
    }
    if (const auto without_values = known_normalisation(files_->units(channel.field), channel)) {
      statistics.fields[channel.name] = *without_values;
      continue;
    }
    if (train_runs_.empty()) {
      throw DataError(concat("the statistics of the model lack ", channel.name, " over data.lead_steps ",
                             options_.lead_steps, "; use the configuration that it was trained with"));
    }
    const auto did = [&](double part) {
      if (progress) progress((before + part) / static_cast<double>(channels.size()));
    };
    const bool constant = channel.role == Role::kStatic;
    const std::set<std::int64_t> its = constant ? images_of_constant(channel.field) : states;
    const SequenceMoments total =
        moments_of(channel, its, constant ? std::set<std::int64_t>() : with_increment, communicator, did);
    FieldStatistics& field = statistics.fields[channel.name];
    field = normalisation_of(files_->units(channel.field), channel, total.state, total.increment.deviation());
    if (total.state.count > 0) {
      field.least = total.state.least;
      field.largest = total.state.largest;
    }
    statistics.seen[channel.name] =
        seen_values(total.state, static_cast<double>(its.size()) * static_cast<double>(grid_.shape().count()),
                    total.below, channel.transform);
    before += 1;
  }
  return statistics;
}

void SequenceData::check_statistics() const {
  if (options_.predict == Predict::kIncrement && statistics_.lead_time != options_.lead_steps)
    throw DataError(concat("statistics of increments over ", counted(statistics_.lead_time, "step"),
                           " are not those of data.lead_steps ", options_.lead_steps));
  for (const Channel& channel : normalised_channels()) {
    const FieldStatistics& field = statistics_.of(channel.field);
    check_transform(field, channel);
    if (std::isfinite(field.mean) && field.deviation >= 0 && field.increment_deviation >= 0) continue;
    if (!std::isnan(field.mean)) {
      throw DataError(concat("statistics of ", channel.name, " cannot be used: mean ", field.mean,
                             ", deviation ", field.deviation, ", deviation of increments ",
                             field.increment_deviation));
    }
    throw DataError(
        concat(channel.name, " in ", files_->path(0), " is missing everywhere in data.train; leave it out"));
  }
}

/// What does not vary, as a component of vectors along a symmetry, cannot be divided by its deviation, and
/// needs not: it is 0 about its mean. @return  a sentence that says so; "" where all vary.
std::string SequenceData::divide_constants_by_one() {
  constexpr double kRoundings = 1e-10;
  std::vector<std::string> even, steady;
  for (const Channel& channel : normalised_channels()) {
    FieldStatistics& field = statistics_.fields.at(channel.name);
    if (!(field.deviation > kRoundings * std::abs(field.mean))) {
      field.deviation = 1;
      field.increment_deviation = 1;
      even.push_back(channel.name);
    } else if (channel.role != Role::kStatic && options_.predict == Predict::kIncrement &&
               !(field.increment_deviation > kRoundings * field.deviation)) {
      field.increment_deviation = 1;
      steady.push_back(channel.name);
    }
  }
  const auto part = [](const std::vector<std::string>& names, const char* what) {
    if (names.empty()) return std::string();
    return concat(join(names, ", "), names.size() > 1 ? " do not " : " does not ", what);
  };
  if (even.empty() && steady.empty()) return "";
  const bool both = !even.empty() && !steady.empty();
  return concat(part(even, "vary in data.train"), both ? "; " : "",
                part(steady, "change in time in data.train"), "; normalised by 1");
}

}  // namespace jigsaw::inline images
