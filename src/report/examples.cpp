#include "report/examples.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "array/host_view.h"
#include "array/transfer.h"
#include "base/file.h"
#include "comm/agreement.h"
#include "images/image_data.h"
#include "images/label_values.h"
#include "images/sequence_data.h"
#include "images/window_reader.h"
#include "samples/dataset.h"
#include "task/physical_states.h"
#include "task/scores.h"
#include "train/validation_table.h"

namespace jigsaw::inline report {

namespace {

constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

/// The part of [B, space…, C] that is shown of a channel: sample 0, of a volume one slice of it.
Box wanted_box(const Shape& space, std::int64_t slice, std::int64_t channel) {
  Box box{{0}, {1}};
  for (int d = 0; d < space.rank(); ++d) {
    const bool sliced = space.rank() == 3 && d == 0;
    box.begin.append(sliced ? slice : 0);
    box.extent.append(sliced ? 1 : space[d]);
  }
  box.begin.append(channel);
  box.extent.append(1);
  return box;
}

/// Calls f(index in `outer`, index in `inner`), both row-major, for each point of `part`, which lies in both.
template <typename F>
void for_each_point(const Box& part, const Box& outer, const Box& inner, F&& f) {
  const Shape of_outer = outer.extent.strides(), of_inner = inner.extent.strides();
  for (std::int64_t i = 0; i < part.extent.count(); ++i) {
    std::int64_t rest = i, a = 0, b = 0;
    for (int d = part.extent.rank() - 1; d >= 0; --d) {
      const std::int64_t at = part.begin[d] + rest % part.extent[d];
      rest /= part.extent[d];
      a += (at - outer.begin[d]) * of_outer[d];
      b += (at - inner.begin[d]) * of_inner[d];
    }
    f(static_cast<std::size_t>(a), static_cast<std::size_t>(b));
  }
}

Json json_of(const Box& box) {
  return {std::vector<std::int64_t>(box.begin.begin(), box.begin.end()),
          std::vector<std::int64_t>(box.extent.begin(), box.extent.end())};
}

Box box_of(const Json& json) {
  return {Shape(json[0].get<std::vector<std::int64_t>>()), Shape(json[1].get<std::vector<std::int64_t>>())};
}

PlaneGrid plane_of(const Grid& grid) {
  PlaneGrid plane{grid.geographic, grid.periodic, {}, {}};
  // Latitudes of the first and of the last row; a comparison with NaN does not hold.
  if (grid.corners.size() == 8) plane.upwards = grid.corners[4] > grid.corners[0];
  const std::size_t axes = grid.axes.size();
  plane.columns = grid.axes[axes - 1].coordinates;
  plane.rows = axes > 1 ? grid.axes[axes - 2].coordinates : std::vector<double>{0};
  return plane;
}

}  // namespace

ExampleCollector::ExampleCollector(OpenedRun& run) : run_(run) {
  const DataOptions& data = run.configuration().data;
  of_images_ = data.of_images();
  classes_ = data.classes;
  examples_.grid = plane_of(run.data().grid());
  examples_.classes = classes_;
  examples_.lead_time = of_images_ ? 0 : data.lead();
  examples_.in_steps = data.of_sequences();
  const std::size_t axes = run.data().grid().axes.size();
  const bool volumes = axes == 3;
  if (volumes && !of_images_) examples_.slice = slice_in_tile_ = run.data().grid().shape()[0] / 2;
  if (volumes && of_images_) {
    // The middle of what is scored: a crop that is larger than the validation part reaches beyond it.
    const ImageTile& tile = dynamic_cast<const ImageData&>(run.data()).tiles().at(0);
    examples_.slice = tile.scored.begin[0] + tile.scored.extent[0] / 2;
    slice_in_tile_ = examples_.slice - tile.box.begin[0];
  }
  choose_channels();
  if (of_images_ || axes != 2) return;
  examples_.targets = channel_names(run.data().channels().targets);
  squares_.assign(examples_.targets.size() * examples_.grid.rows.size(), 0.0);
  counts_ = squares_;
}

/// The first variables, each on its level that is nearest to 500.
void ExampleCollector::choose_channels() {
  const std::vector<Channel>& targets = run_.data().channels().targets;
  const std::int64_t bytes = 3 * 4 * std::ssize(examples_.grid.rows) * std::ssize(examples_.grid.columns);
  const auto most = static_cast<std::size_t>(std::clamp<std::int64_t>(kMostBytes / bytes, 1, kMostPlanes));
  std::vector<std::string> variables;
  for (std::size_t c = 0; c < targets.size(); ++c) {
    const std::string variable = without_level(targets[c].name);
    const auto known = std::ranges::find(variables, variable);
    const auto distance = [&](std::size_t channel) {
      return std::abs(targets[channel].field.level.value_or(500) - 500);
    };
    if (known != variables.end()) {
      std::size_t& chosen = channels_[static_cast<std::size_t>(known - variables.begin())];
      if (distance(c) < distance(chosen)) chosen = c;
    } else if (variables.size() < most) {
      variables.push_back(variable);
      channels_.push_back(c);
    }
  }
  const auto& fields = run_.data().statistics().fields;
  for (const std::size_t c : channels_) {
    const auto field = fields.find(targets[c].name);
    examples_.planes.push_back(
        {targets[c].name, field == fields.end() || classes_ > 0 ? "" : field->second.units, {}, {}, {}});
  }
}

std::vector<float> ExampleCollector::gathered(const Box& own, const std::vector<double>& values,
                                              std::int64_t channel) {
  Communicator& world = run_.world();
  Context& context = world.context();
  const Box wanted = wanted_box(run_.data().grid().shape(), slice_in_tile_, channel);
  Box part;
  std::vector<double> sent;
  if (!values.empty()) {  // else the rank holds no piece
    part = intersect(own, wanted);
    if (!part.empty())
      for_each_point(part, own, wanted, [&](std::size_t from, std::size_t) { sent.push_back(values[from]); });
  }
  const std::vector<std::string> boxes = world.gather_text(sent.empty() ? "" : json_of(part).dump());
  std::vector<Message> sends, receives;
  if (!sent.empty()) sends.push_back({0, 0, std::ssize(sent)});
  std::int64_t count = 0;
  for (std::size_t rank = 0; rank < boxes.size(); ++rank) {
    if (boxes[rank].empty()) continue;
    const std::int64_t points = box_of(Json::parse(boxes[rank])).extent.count();
    receives.push_back({static_cast<int>(rank), count, points});
    count += points;
  }
  const Array received =
      world.exchange(constant(context, {std::ssize(sent)}, DType::kFloat32, sent), sends, receives, count);
  if (world.rank() != 0) return {};
  const std::vector<double> all = download_values(context, received);
  std::vector<float> plane(static_cast<std::size_t>(wanted.extent.count()), static_cast<float>(kMissing));
  std::size_t next = 0;
  for (const std::string& text : boxes) {
    if (text.empty()) continue;
    for_each_point(box_of(Json::parse(text)), wanted, wanted,
                   [&](std::size_t at, std::size_t) { plane[at] = static_cast<float>(all[next++]); });
  }
  return plane;
}

void ExampleCollector::add_planes(const ShardedTensor& prediction, const Batch& truth) {
  const Rank& rank = run_.placed().rank();
  const Box own = rank.box(prediction.layout);
  std::vector<double> predicted, wanted;
  const Array& target = truth.targets[0];
  if (of_images_) {
    predicted = download_values(rank.context, prediction.piece);
    wanted = download_values(rank.context, target);
  } else {
    const PhysicalStates physical(run_.data().channels(), run_.data().statistics(),
                                  run_.configuration().data.predict);
    Array states = physical.of(rank, prediction.layout, prediction.piece, truth.origin);
    if (!own.empty()) hide_missing(rank.context, truth.origin, states);
    predicted = download_values(rank.context, states);
    wanted = download_values(rank.context, truth.states[0]);
  }
  for (std::size_t i = 0; i < channels_.size(); ++i) {
    const auto channel = static_cast<std::int64_t>(channels_[i]);
    examples_.planes[i].predicted = gathered(own, predicted, channel);
    examples_.planes[i].truth = gathered(own, wanted, channel);
  }
  if (of_images_)
    together(run_.world(), [&] {
      for (std::size_t i = 0; i < channels_.size(); ++i) bring_to_units(channels_[i], examples_.planes[i]);
    });
}

/// As predict forms images. Batches hold the noise that is to be taken away and not what it lies on, so that
/// the input is read once more.
void ExampleCollector::bring_to_units(std::size_t channel, ExamplePlane& plane) {
  if (run_.world().rank() != 0) return;
  const auto& data = dynamic_cast<const ImageData&>(run_.data());
  const Field& field = data.channels().targets[channel].field;
  const PhysicalStates physical(data.channels(), data.statistics(), data.options().predict);
  const bool denoises = data.options().task == Task::kDenoise,
             increment = denoises && data.options().predict == Predict::kIncrement;
  std::vector<double> input;
  if (denoises) {
    const ImageTile& tile = data.tiles().at(0);
    Box box = tile.box;
    if (box.begin.rank() == 3) {
      box.begin[0] += slice_in_tile_;
      box.extent[0] = 1;
    }
    try {
      input = WindowReader(data, true).field(field, tile.image, box);
    } catch (const DataError&) {  // whoever trains on it says so; a picture ends no run
      input.assign(plane.truth.size(), std::nan(""));
      plane.truth.assign(plane.truth.size(), static_cast<float>(kMissing));
    }
    plane.input.assign(input.begin(), input.end());
  }
  for (std::size_t i = 0; i < plane.truth.size(); ++i) {
    for (std::vector<float>* values : {&plane.predicted, &plane.truth})
      (*values)[i] = static_cast<float>(physical.of(channel, (*values)[i], increment ? input[i] : 0.0));
    if (denoises && std::isnan(plane.truth[i])) plane.input[i] = static_cast<float>(kMissing);
    if (denoises && std::isnan(input[i])) plane.predicted[i] = static_cast<float>(kMissing);
  }
}

/// The class of the greatest logit beside the label; of regions the class in those whose logit is above 0.
void ExampleCollector::add_classes(const ShardedTensor& prediction, const Batch& truth) {
  const Rank& rank = run_.placed().rank();
  const DataOptions& options = run_.configuration().data;
  const std::vector<double> logits = download_values(rank.context, prediction.piece);
  const std::int64_t samples = std::min(run_.placed().samples(), run_.data().count(Split::kValid));
  const Box labels = run_.placed().target_box(run_.loss(), samples);
  const Array& target = truth.targets[0];
  const bool fits = !labels.empty() && target.count() == labels.extent.count();
  const std::vector<double> targets = fits ? download_values(rank.context, target) : std::vector<double>();
  const auto channels_of = [&](const Box& box, const std::vector<double>& values, std::int64_t count) {
    std::vector<std::vector<float>> channels;
    for (int k = 0; k < count; ++k) channels.push_back(gathered(box, values, k));
    return channels;
  };
  const auto predicted = channels_of(rank.box(prediction.layout), logits, options.label_outputs()),
             wanted = channels_of(fits ? labels : Box{}, targets, options.label_targets());
  ExamplePlane& plane = examples_.planes[0];
  plane.predicted.clear();
  plane.truth = wanted[0];
  const LabelValues labels_of_data(options);
  const auto class_at = [&](const std::vector<std::vector<float>>& numbers, std::size_t i) {
    const auto number = [&](std::int64_t k) { return numbers[static_cast<std::size_t>(k)][i]; };
    return static_cast<float>(labels_of_data.chosen(number, 0));
  };
  for (std::size_t i = 0; i < predicted[0].size(); ++i) plane.predicted.push_back(class_at(predicted, i));
  for (std::size_t i = 0; !options.regions.empty() && i < plane.truth.size(); ++i) {
    if (!std::isnan(plane.truth[i])) plane.truth[i] = class_at(wanted, i);
  }
}

namespace {

/// Calls f with the values of an array, which are copied only where the host cannot read them.
template <typename F>
void with_values(const Context& context, const Array& array, F&& f) {
  if (context.device() != Device::kCpu) return f(download_values(context, array));
  visit(array.dtype(), [&](auto zero) { f(HostView<const decltype(zero)>(array)); });
}

}  // namespace

void ExampleCollector::add_rows(const ShardedTensor& prediction, const Batch& truth) {
  const Rank& rank = run_.placed().rank();
  const Box own = rank.box(prediction.layout);
  if (own.empty() || own.extent.rank() != 4) return;
  const auto rows = examples_.grid.rows.size();
  const auto add = [&](const auto& predicted, const auto& wanted) {
    auto value = predicted.begin();
    auto target = wanted.begin();
    for (std::int64_t b = 0; b < own.extent[0]; ++b) {
      for (std::int64_t row = own.begin[1]; row < own.end(1); ++row) {
        for (std::int64_t column = 0; column < own.extent[2]; ++column) {
          for (std::int64_t c = own.begin[3]; c < own.end(3); ++c, ++value, ++target) {
            const double error = static_cast<double>(*value) - static_cast<double>(*target);
            if (std::isnan(error)) continue;
            const std::size_t at = static_cast<std::size_t>(c) * rows + static_cast<std::size_t>(row);
            squares_[at] += error * error;
            counts_[at] += 1;
          }
        }
      }
    }
  };
  with_values(rank.context, prediction.piece, [&](const auto& predicted) {
    with_values(rank.context, truth.targets[0], [&](const auto& wanted) { add(predicted, wanted); });
  });
}

void ExampleCollector::add(std::int64_t batch, int lead, const ShardedTensor& predictions,
                           const Batch& truth) {
  if (lead > 0) return;
  Context& context = run_.placed().rank().context;
  const std::int64_t members = run_.placed().members();
  const Layout layout = of_samples(predictions.layout, members);
  if (!squares_.empty()) add_rows({member_mean(context, predictions.piece, members), layout}, truth);
  if (batch > 0) return;
  const ShardedTensor prediction{member_of(context, predictions.piece, members, 0), layout};
  const Traffic traffic = run_.world().traffic();
  if (const auto* sequences = dynamic_cast<const SequenceData*>(&run_.data())) {
    examples_.of = concat("the forecast of ", counted(examples_.lead_time, "step"), " from ",
                          sequences->text_of(truth.times.front()));
  } else if (!truth.times.empty() && !of_images_) {
    const FileSet& files = dynamic_cast<const Dataset&>(run_.data()).files();
    examples_.start = truth.times.front();
    const std::string start = files.text_of(examples_.start);
    examples_.of =
        examples_.lead_time > 0
            ? concat("the forecast of ", lead_text(examples_.lead_time, files.of_months()), " from ", start)
            : start;
  }
  if (classes_ > 0) {
    add_classes(prediction, truth);
  } else {
    add_planes(prediction, truth);
  }
  run_.world().traffic() = traffic;
}

Examples ExampleCollector::finish(std::int64_t step) {
  Examples result = examples_;
  result.step = step;
  if (squares_.empty()) return result;
  const std::vector<double> squares = run_.world().all_reduce(squares_, ReduceOp::kSum),
                            counts = run_.world().all_reduce(counts_, ReduceOp::kSum);
  const std::vector<Channel>& targets = run_.data().channels().targets;
  const std::size_t rows = result.grid.rows.size();
  for (std::size_t c = 0; c < targets.size(); ++c) {
    const double scale =
        target_scale(targets[c], run_.data().statistics(), run_.configuration().data.predict);
    std::vector<double>& rmse = result.rmse_by_row.emplace_back();
    for (std::size_t row = 0; row < rows; ++row)
      rmse.push_back(scale * std::sqrt(squares[c * rows + row] / counts[c * rows + row]));
  }
  std::ranges::fill(squares_, 0.0);
  std::ranges::fill(counts_, 0.0);
  return result;
}

}  // namespace jigsaw::inline report
