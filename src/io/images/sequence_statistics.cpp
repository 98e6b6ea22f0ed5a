// What fields of sequences are normalised by.
#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "images/sequence_data.h"
#include "samples/moments.h"
#include "samples/shared_work.h"

namespace jigsaw::inline images {

namespace {

/// Of a state and, where its part goes on so far, of the increment from it.
struct SequenceMoments {
  RunningMoments state, increment;
};

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
  for (const Channel& channel : channels_.targets) fields.push_back(channel.name);
  for (const VariableOptions& variable : options_.variables) {
    if (!variable.data_set.empty()) fields.push_back({variable.name, variable.data_set});
    if (const auto found = own_paths_.find(variable.files); found != own_paths_.end())
      own[variable.name] = found->second;
  }
  for (const Run& run : train_runs_) parts.push_back({run.first, run.last});
  return {{"fields", fields},
          {"parts", parts},
          {"dims", dims},
          {"own_files", own},
          {"lead_steps", options_.lead_steps},
          {"pairs", files_->unordered_pairs()}};
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
  const std::vector<std::int64_t> numbers(states.begin(), states.end());
  const std::vector<Box> slabs = slabs_of(grid_.shape());
  Statistics statistics;
  statistics.lead_time = options_.lead_steps;
  double before = 0;
  for (const Channel& channel : channels_.targets) {
    if (known != nullptr && known->fields.contains(channel.name)) {
      statistics.fields[channel.name] = known->fields.at(channel.name);
      continue;
    }
    if (train_runs_.empty()) {
      throw DataError(concat("the statistics of the model lack ", channel.name, " over data.lead_steps ",
                             options_.lead_steps, "; use the configuration that it was trained with"));
    }
    std::vector<double> values, later;
    const auto of_state = [&](std::int64_t number) {
      const std::int64_t at = numbers[static_cast<std::size_t>(number)];
      SequenceMoments moments;
      for (const Box& slab : slabs) {
        values.resize(static_cast<std::size_t>(slab.extent.count()));
        files_->read(channel.field, at, slab, values);
        moments.state.merge(RunningMoments::of(values));
        if (!with_increment.contains(at)) continue;
        later.resize(values.size());
        files_->read(channel.field, at + options_.lead_steps, slab, later);
        for (std::size_t i = 0; i < values.size(); ++i) later[i] -= values[i];
        moments.increment.merge(RunningMoments::of(later));
      }
      return moments;
    };
    const auto merge = [](SequenceMoments& total, const SequenceMoments& each) {
      total.state.merge(each.state);
      total.increment.merge(each.increment);
    };
    const auto did = [&](double part) {
      if (progress) progress((before + part) / static_cast<double>(channels_.targets.size()));
    };
    const SequenceMoments total =
        share_work(std::ssize(numbers), communicator, of_state, SequenceMoments{}, merge, did);
    FieldStatistics& field = statistics.fields[channel.name];
    field = {files_->units(channel.field), total.state.mean_of_any(), total.state.deviation(),
             total.increment.deviation()};
    if (total.state.count > 0) {
      field.least = total.state.least;
      field.largest = total.state.largest;
    }
    statistics.seen[channel.name] = seen_values(
        total.state, static_cast<double>(numbers.size()) * static_cast<double>(grid_.shape().count()));
    before += 1;
  }
  return statistics;
}

void SequenceData::check_statistics() const {
  if (options_.predict == Predict::kIncrement && statistics_.lead_time != options_.lead_steps)
    throw DataError(concat("statistics of increments over ", counted(statistics_.lead_time, "step"),
                           " are not those of data.lead_steps ", options_.lead_steps));
  for (const Channel& channel : channels_.targets) {
    const FieldStatistics& field = statistics_.of(channel.field);
    const bool increments = options_.predict == Predict::kIncrement;
    if (field.deviation > 0 && (!increments || field.increment_deviation > 0)) continue;
    throw DataError(concat(channel.name, " in ", files_->path(0),
                           field.deviation > 0 ? " does not change in time" : " does not vary",
                           " in data.train, so that it cannot be normalised; leave it out of data.variables",
                           channel.field.level ? ", or name the channels that vary as levels" : ""));
  }
}

}  // namespace jigsaw::inline images
