#include "predict/restart_file.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace jigsaw::inline predict {

namespace {

constexpr const char* kRestartSuffix = ".restart";
/// Of what the file holds: one that is read differently has another one.
constexpr double kRestartVersion = 2;
constexpr std::int64_t kRestartChunk = 256;
/// Numbers of `model` before those of the channels that are carried over.
constexpr std::size_t kRestartNumbers = 22;
/// Where the place of the grid and the member of the data stand among them.
constexpr std::size_t kPlace = 11, kPlaceNumbers = 9, kMember = 20;

const char* name_of(RestartPart part) {
  switch (part) {
    case RestartPart::kInput:
      return "input";
    case RestartPart::kPrediction:
      return "prediction";
    case RestartPart::kSum:
      return "sum";
  }
  fail("unknown part of a rollout");
}

/// 64 bits as two numbers, which float64 holds exactly.
void add_halves(std::vector<double>& numbers, std::uint64_t bits) {
  numbers.push_back(static_cast<double>(bits >> 32U));
  numbers.push_back(static_cast<double>(bits & 0xffffffffU));
}

/// What `model` holds: version, digest, seed, calendar, whether times are months, members, rows, columns,
/// targets and whether there is a sum (as the sign of the targets); the place of the grid (1 and its corners,
/// or 0, the ends of rows and columns, and zeros); 1 and the member of the data, or two zeros; then the
/// channels.
std::vector<double> numbers_of(const RestartModel& model) {
  std::vector<double> numbers = {kRestartVersion};
  add_halves(numbers, model.digest.empty() ? 0 : std::stoull(model.digest, nullptr, 16));
  add_halves(numbers, static_cast<std::uint64_t>(model.seed));
  numbers.push_back(static_cast<double>(static_cast<int>(model.calendar)));
  numbers.push_back(model.months ? 1 : 0);
  numbers.push_back(static_cast<double>(model.members));
  numbers.push_back(static_cast<double>(model.grid[0]));
  numbers.push_back(static_cast<double>(model.grid[1]));
  numbers.push_back(static_cast<double>(model.accumulates ? -model.targets : model.targets));
  const GridOrder& place = model.place;
  numbers.push_back(place.corners.empty() ? 0 : 1);
  numbers.insert(numbers.end(), place.corners.begin(), place.corners.end());
  if (place.corners.empty())
    for (const auto& ends : {place.rows, place.columns})
      numbers.insert(numbers.end(), ends.begin(), ends.end());
  numbers.resize(kPlace + kPlaceNumbers);
  numbers.push_back(model.member ? 1 : 0);
  numbers.push_back(model.member.value_or(0));
  require(numbers.size() == kRestartNumbers, "the numbers of a model are not as many as they should be");
  numbers.insert(numbers.end(), model.carried.begin(), model.carried.end());
  return numbers;
}

/// What numbers_of() made of it.
GridOrder place_in(const std::vector<double>& numbers) {
  const auto first = numbers.begin() + static_cast<std::ptrdiff_t>(kPlace);
  if (*first != 0) return {{}, {}, {first + 1, first + static_cast<std::ptrdiff_t>(kPlaceNumbers)}};
  return {{first[1], first[2]}, {first[3], first[4]}};
}

/// "rows from 90 to 0 and columns from 0 to 355".
std::string text_of(const GridOrder& place) {
  if (!place.corners.empty())
    return concat("corners from ", place.corners[0], ", ", place.corners[1], " to ", place.corners[6], ", ",
                  place.corners[7]);
  return concat("rows from ", place.rows[0], " to ", place.rows[1], " and columns from ", place.columns[0],
                " to ", place.columns[1]);
}

GridOrder place_of(const Grid& grid) {
  if (!grid.corners.empty()) return {{}, {}, grid.corners};
  const auto ends = [&](std::size_t axis) -> std::array<double, 2> {
    const std::vector<double>& all = grid.axes.at(axis).coordinates;
    return {all.front(), all.back()};
  };
  return {ends(0), ends(1)};
}

std::size_t extent_of_chunk(std::int64_t extent) {
  return static_cast<std::size_t>(std::clamp<std::int64_t>(extent, 1, kRestartChunk));
}

}  // namespace

std::string restart_path(const std::string& forecast) {
  return forecast.ends_with(kRestartSuffix) ? forecast : forecast + kRestartSuffix;
}

RestartModel RestartModel::of(TrainedModel& model) {
  OpenedRun& run = model.run();
  auto& data = dynamic_cast<Dataset&>(run.data());
  const Forecaster& forecaster = run.placed().forecaster();
  const Configuration& configuration = run.configuration();
  const std::optional<CoordinateDescription>& member = data.files().member();
  const bool noisy = configuration.ensemble.noise_channels() > 0;
  return {model.digest(),
          noisy ? configuration.seed : 0,
          data.files().calendar(),
          data.files().of_months(),
          forecaster.members(),
          data.grid().shape(),
          forecaster.carried_inputs(),
          std::ssize(data.channels().targets),
          forecaster.accumulates(),
          place_of(data.grid()),
          member ? std::optional(member->values.at(0)) : std::nullopt};
}

std::vector<std::pair<RestartPart, std::vector<int>>> RestartModel::parts() const {
  std::vector<int> all(static_cast<std::size_t>(targets));
  std::iota(all.begin(), all.end(), 0);
  std::vector<std::pair<RestartPart, std::vector<int>>> result;
  if (!carried.empty()) result.emplace_back(RestartPart::kInput, carried);
  result.emplace_back(RestartPart::kPrediction, all);
  if (accumulates) result.emplace_back(RestartPart::kSum, all);
  return result;
}

RestartWriter::RestartWriter(const RestartModel& model, std::vector<Time> starts, const std::string& path)
    : file_(path, NetcdfOutput::Format::kNetcdf4),
      members_(model.members),
      starts_(starts.begin(), starts.end()) {
  using Type = NetcdfOutput::Type;
  const std::vector<double> numbers = numbers_of(model);
  const int time = file_.add_growing_dimension("time"),
            number = file_.add_dimension("number", static_cast<std::size_t>(model.members)),
            row = file_.add_dimension("row", static_cast<std::size_t>(model.grid[0])),
            column = file_.add_dimension("column", static_cast<std::size_t>(model.grid[1])),
            known_by = file_.add_dimension("known_by", numbers.size());
  time_variable_ = file_.add_variable("time", Type::kDouble, {time});
  steps_variable_ = file_.add_variable("steps", Type::kInt, {time});
  digest_variable_ = file_.add_variable("start_digest", Type::kDouble, {time});
  for (const int variable : {time_variable_, steps_variable_, digest_variable_})
    file_.add_chunks(variable, {extent_of_chunk(std::ssize(starts))}, 0);
  file_.add_text(time_variable_, "long_name", "start of the forecast, seconds since 1970-01-01");
  file_.add_text(steps_variable_, "long_name", "steps that were made");
  file_.add_text(digest_variable_, "long_name", "number by which the state at the start is known again");
  const int model_variable = file_.add_variable("model", Type::kDouble, {known_by});
  file_.add_text(model_variable, "long_name", "numbers by which the model is known again");
  for (const auto& [part, channels] : model.parts()) {
    const std::string name = name_of(part);
    const int channel = file_.add_dimension((name + "_channel").c_str(), channels.size());
    const int variable =
        file_.add_variable(name.c_str(), Type::kDouble, {time, number, channel, row, column});
    file_.add_chunks(variable, {1, 1, 1, extent_of_chunk(model.grid[0]), extent_of_chunk(model.grid[1])},
                     std::size_t{1} << 22U);
    variables_.emplace_back(part, variable);
  }
  file_.add_text(NetcdfOutput::kFile, "title",
                 "States that forecasts ended in, in the numbers of the model, for predict --continue");
  file_.end_definitions();
  file_.write(model_variable, numbers);
}

void RestartWriter::write(RestartPart part, std::int64_t first, const PackedPiece<double>& piece) {
  const auto found = std::ranges::find(variables_, part, &std::pair<RestartPart, int>::first);
  require(found != variables_.end(), "no such part of a rollout is kept");
  std::span<const double> rest = piece.values;
  const auto size = static_cast<std::size_t>(piece.plane());
  for (const int number : piece.numbers) {
    for (std::int64_t b = piece.box.begin[0]; b < piece.box.end(0); ++b) {
      const Box slab{{first + b / members_, b % members_, number, piece.box.begin[1], piece.box.begin[2]},
                     {1, 1, 1, piece.box.extent[1], piece.box.extent[2]}};
      file_.write(found->second, slab, rest.first(size));
      rest = rest.subspan(size);
    }
  }
}

void RestartWriter::close(const std::vector<int>& steps, const std::vector<double>& digests) {
  const Box all{{0}, {std::ssize(steps)}};
  file_.write(time_variable_, all, std::span<const double>(starts_).first(steps.size()));
  file_.write(steps_variable_, all, std::span<const int>(steps));
  file_.write(digest_variable_, all, std::span<const double>(digests));
  file_.close();
}

RestartFile::RestartFile(const std::string& forecast) : path_(restart_path(forecast)) {
  std::error_code ignored;
  if (!std::filesystem::exists(path_, ignored)) {
    throw ConfigError(concat(
        "command line: --continue ", forecast, ": there is no ", path_,
        ", in which predict keeps the state that forecasts of several steps ended in; those of --period have "
        "one with --restart always"));
  }
  file_ = open_variables(path_, Dimensions::kByName);
  const std::vector<double> times = file_->read_all(variable("time", 1)),
                            steps = file_->read_all(variable("steps", 1));
  model_ = file_->read_all(variable("model", 1));
  if (model_.empty() || model_[0] != kRestartVersion)
    throw DataError(
        concat(path_, " does not hold states of forecasts as this version of predict keeps them"));
  digests_ = file_->read_all(variable("start_digest", 1));
  members_ = variable("prediction", 5).shape[1];
  const auto counts = [](double value) { return value >= 1 && value <= 1e9 && value == std::trunc(value); };
  const bool sound = !times.empty() && times.size() == steps.size() && times.size() == digests_.size() &&
                     model_.size() >= kRestartNumbers && std::ranges::all_of(steps, counts) &&
                     std::ranges::is_sorted(times) &&
                     std::ranges::all_of(times, [](double time) { return std::abs(time) < 0x1p53; });
  if (!sound) throw DataError(concat(path_, " does not hold states of forecasts as predict keeps them"));
  for (const double time : times) starts_.push_back(static_cast<Time>(time));
  for (const double count : steps) steps_.push_back(static_cast<int>(count));
}

const FileVariable& RestartFile::variable(const std::string& name, int rank) const {
  const FileVariable* found = file_->find(name);
  if (found == nullptr || !found->numeric() || found->shape.rank() != rank)
    throw DataError(concat(path_, " holds no states of forecasts as predict keeps them: it has no ", name,
                           " of ", rank, " dimensions"));
  return *found;
}

std::optional<std::size_t> RestartFile::position_of(Time start) const {
  const auto found = std::ranges::find(starts_, start);
  return found == starts_.end() ? std::nullopt
                                : std::optional(static_cast<std::size_t>(found - starts_.begin()));
}

int RestartFile::most_steps() const {
  return *std::ranges::max_element(steps_);
}

void RestartFile::require(const RestartModel& model) const {
  const auto refuse = [&](const std::string& why) {
    throw CheckpointError(concat("the forecasts of ", path_, " cannot go on: ", why));
  };
  const std::vector<double> here = numbers_of(model);
  const auto differs = [&](std::size_t first, std::size_t last) {
    return !std::equal(here.begin() + static_cast<std::ptrdiff_t>(first),
                       here.begin() + static_cast<std::ptrdiff_t>(last),
                       model_.begin() + static_cast<std::ptrdiff_t>(first));
  };
  if (!model.digest.empty() && differs(1, 3))
    refuse("they were made with other weights; name the checkpoint, and --average, that made them");
  if (differs(7, 8)) {
    refuse(
        concat("they have ", counted(members_, "member"), ", not ", model.members, "; leave --members out"));
  }
  if (differs(3, 5)) refuse("their noise was drawn with another seed; set `seed` to that of their run");
  if (differs(5, 7)) refuse("their times are of another calendar than those of the data");
  if (differs(8, 10)) {
    refuse(concat("they are on a grid of ", model_[8], " x ", model_[9], " points, and the data on one of ",
                  model.grid[0], " x ", model.grid[1]));
  }
  if (const GridOrder there = place_in(model_); !alike(there, model.place)) {
    refuse(concat("they are on a grid with ", text_of(there), ", and the data on one with ",
                  text_of(model.place), "; give the same data.region and data.regrid as theirs"));
  }
  if (model_[kMember] != 0 && here[kMember] != 0 && differs(kMember + 1, kMember + 2)) {
    refuse(concat("they are of member ", model_[kMember + 1], " of the data's ensemble, not ",
                  here[kMember + 1], "; give theirs by --set data.member=", model_[kMember + 1]));
  }
  if (differs(10, 11) || here.size() != model_.size() || differs(kRestartNumbers, here.size()))
    refuse("they are of another model than the configuration; use the configuration that made them");
  for (const auto& [part, channels] : model.parts()) {
    const Shape wanted{std::ssize(starts_), model.members, std::ssize(channels), model.grid[0],
                       model.grid[1]};
    if (const Shape found = variable(name_of(part), 5).shape; !(found == wanted))
      throw DataError(concat(path_, " is not whole: ", name_of(part), " is ", found, ", not ", wanted));
  }
}

std::vector<double> RestartFile::read(RestartPart part, std::span<const Time> starts,
                                      const std::vector<int>& channels, const Box& box) const {
  const FileVariable& from = variable(name_of(part), 5);
  const std::int64_t all = box.extent[3], points = box.extent[1] * box.extent[2];
  std::vector<double> values(static_cast<std::size_t>(box.extent.count())),
      plane(static_cast<std::size_t>(points));
  if (values.empty()) return values;
  for (std::int64_t b = 0; b < box.extent[0]; ++b) {
    const std::int64_t forecast = box.begin[0] + b;
    const auto start =
        static_cast<std::int64_t>(position_of(starts[static_cast<std::size_t>(forecast / members_)]).value());
    for (std::size_t i = 0; i < channels.size(); ++i) {
      const std::int64_t channel = channels[i] - box.begin[3];
      if (channel < 0 || channel >= all) continue;
      const Box slab{{start, forecast % members_, static_cast<std::int64_t>(i), box.begin[1], box.begin[2]},
                     {1, 1, 1, box.extent[1], box.extent[2]}};
      file_->read(from, slab, std::span<double>(plane));
      for (std::int64_t p = 0; p < points; ++p)
        values[static_cast<std::size_t>((b * points + p) * all + channel)] =
            plane[static_cast<std::size_t>(p)];
    }
  }
  return values;
}

}  // namespace jigsaw::inline predict
