#include "predict/forecast.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>

#include "array/host_view.h"
#include "array/transfer.h"
#include "base/error.h"
#include "base/progress_bar.h"
#include "base/text.h"
#include "comm/agreement.h"
#include "kernels/pointwise.h"
#include "predict/background_writer.h"
#include "predict/forecast_file.h"
#include "predict/physical.h"
#include "predict/rate.h"
#include "samples/prescribed_remarks.h"
#include "train/ensemble.h"
#include "train/rollouts.h"

namespace jigsaw::inline predict {

namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::vector<Time> starts_of(const Dataset& data, const ForecastOptions& options) {
  std::vector<Time> starts;
  for (const std::string& text : options.starts) {
    const std::optional<DatePeriod> date = parse_dates(text, text);
    if (!date) {
      throw ConfigError(concat("command line: --start ", text,
                               " is no date; dates are like 2019-03-01 or 2019-03-01T06:00"));
    }
    const Calendar calendar = data.files().calendar();
    const Calendar of_files = data.files().file_calendar();
    if (!exists(date->first.date, of_files)) {
      throw ConfigError(concat("command line: --start ", text, " is no day of the calendar of the files (",
                               data.files().calendar_name(), ")"));
    }
    const std::string key = concat("command line: --start ", text);
    const Time start = data.files().of_months() ? month_of(date->in(of_files, key).first, of_files)
                                                : date->in(calendar, key).first;
    data.require_inputs(start, options.steps);
    starts.push_back(start);
  }
  if (starts.empty()) {
    const std::vector<DataPart>& parts =
        options.period == "train" ? data.options().train : data.options().valid;
    if (parts.empty())
      throw ConfigError("command line: --start is needed, for the configuration has no data.valid");
    const std::string key = options.period == "train" ? "data.train" : "data.valid";
    return data.starts(data.files().periods(parts, key), key, options.steps);
  }
  std::sort(starts.begin(), starts.end());
  starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
  return starts;
}

/// Numbers of the target channels that are asked for.
std::vector<int> channels_of(const std::vector<Channel>& targets, const ForecastOptions& options) {
  const auto asked = [](const auto& list, const auto& item) {
    return list.empty() || std::find(list.begin(), list.end(), item) != list.end();
  };
  std::vector<std::string> variables;
  std::vector<double> levels;
  std::vector<int> numbers;
  for (std::size_t c = 0; c < targets.size(); ++c) {
    const Field& field = targets[c].field;
    variables.push_back(field.variable);
    if (field.level) levels.push_back(*field.level);
    if (!asked(options.variables, field.variable)) continue;
    if (field.level && !asked(options.levels, *field.level)) continue;
    numbers.push_back(static_cast<int>(c));
  }
  for (const std::string& name : options.variables) {
    if (asked(variables, name)) continue;
    for (const Channel& target : targets) {
      const Field& field = target.field;
      if (!field.level || field.name() != name) continue;
      throw ConfigError(concat("command line: --variables names ", name, ", one level of ", field.variable,
                               "; write --variables ", field.variable, " --levels ",
                               format_level(*field.level)));
    }
    throw ConfigError(concat("command line: --variables names ", name, ", which the model does not predict",
                             did_you_mean(name, variables)));
  }
  for (const double level : options.levels) {
    if (!levels.empty() && asked(levels, level)) continue;
    throw ConfigError(concat("command line: --levels names ", level, ", which the model does not predict"));
  }
  if (numbers.empty())
    throw ConfigError("command line: --variables and --levels leave nothing that could be written");
  return numbers;
}

/// The piece of one rank, packed: [channels that are written, samples, rows, columns].
struct PackedPiece {
  Box box;                    ///< of [B, H, W, C]
  std::vector<int> written;   ///< numbers among the channels that are written
  std::vector<float> values;  ///< in this order

  std::int64_t plane() const { return box.extent[1] * box.extent[2]; }
  std::int64_t count() const { return std::ssize(written) * box.extent[0] * plane(); }
};

class ForecastRun {
 public:
  ForecastRun(TrainedModel& model, const ForecastOptions& options)
      : run_(model.run()),
        placed_(run_.placed()),
        rank_(placed_.rank()),
        data_(dynamic_cast<Dataset&>(run_.data())),
        steps_(options.steps),
        physical_(data_.channels(), data_.statistics(), data_.options().predict) {
    together(run_.world(), [&] { open(model, options); });
  }

  std::int64_t starts() const { return std::ssize(starts_); }
  std::int64_t members() const { return placed_.members(); }
  /// Collective. @return  bytes of the file.
  std::int64_t run(Log& log);
  /// Values that are not finite where the input is not missing. Collective.
  double not_finite();
  /// What is remarkable of prescribed fields, before anything is read, and after run(), which is collective.
  std::vector<std::string> gaps() const;
  std::vector<std::string> blanks();

 private:
  void open(const TrainedModel& model, const ForecastOptions& options);
  std::int64_t samples_of(std::int64_t batch) const {
    return std::min(placed_.samples(), starts() - batch * placed_.samples());
  }
  Batch read(std::int64_t batch, int lead);
  PackedPiece piece_of(int rank, const Layout& layout) const;
  void pack(std::span<const float> states, PackedPiece& piece);
  PackedPiece bring(int rank, const PackedPiece& own, const Layout& layout);
  Array states_of(int lead, const ShardedTensor& prediction, const Batch& batch);
  void put(std::int64_t number, int lead, const ShardedTensor& prediction, const Batch& batch);
  void put_member(std::int64_t number, int lead, std::int64_t member, const ShardedTensor& prediction,
                  const Batch& batch);
  void write(PackedPiece& piece, std::int64_t first, int lead, std::int64_t member);

  OpenedRun& run_;
  PlacedModel& placed_;
  const Rank& rank_;
  Dataset& data_;
  int steps_;
  PhysicalStates physical_;
  std::vector<Time> starts_;
  std::vector<int> channels_;
  std::optional<BatchReader> reader_;
  Array not_finite_;  // of each own channel, f64
  // On the rank that writes.
  std::unique_ptr<OutputFile> output_;
  std::unique_ptr<ForecastFile> file_;
  std::unique_ptr<BackgroundWriter> writer_;
};

void ForecastRun::open(const TrainedModel& model, const ForecastOptions& options) {
  if (data_.files().members() > 1)
    throw ConfigError(concat(
        "command line: forecasts are of one member of the ensemble, and data.member is \"all\"; say which by "
        "--set data.member=",
        data_.files().member_numbers().front(), " (the files have ",
        join(data_.files().member_numbers(), ", "), ")"));
  starts_ = starts_of(data_, options);
  channels_ = channels_of(data_.channels().targets, options);
  data_.files().watch_prescribed();
  reader_.emplace(data_.make_reader());
  if (run_.world().rank() != 0) return;
  output_ = std::make_unique<OutputFile>(options.output, options.overwrite, "--output", data_.paths());
  ForecastContents contents{
      starts_,          data_.options().lead_time, steps_, {}, options.split_levels, options.attributes,
      placed_.members()};
  contents.attributes["source"] = concat("jigsaw-train, ", model.description());
  for (const int channel : channels_)
    contents.fields.push_back(data_.channels().targets[static_cast<std::size_t>(channel)].field);
  file_ = std::make_unique<ForecastFile>(data_.files(), contents, *output_,
                                         std::min(placed_.samples(), starts()));
  writer_ = std::make_unique<BackgroundWriter>();
}

Batch ForecastRun::read(std::int64_t batch, int lead) {
  const std::int64_t samples = samples_of(batch);
  BatchRequest request;
  const auto first = starts_.begin() + batch * placed_.samples();
  request.times.assign(first, first + samples);
  request.input = placed_.input_box(samples);
  request.target = rank_.box(placed_.sample_layout(samples));
  request.rollout = steps_;
  request.lead = lead;
  request.dtype = placed_.types().master;
  request.targets = false;
  request.origin = true;
  request.rims = !data_.rim().empty();
  return reader_->read(request, rank_.context.host());
}

PackedPiece ForecastRun::piece_of(int rank, const Layout& layout) const {
  const MeshShape& mesh = rank_.mesh.shape();
  PackedPiece piece{layout.box(mesh, mesh.coordinates(rank)), {}, {}};
  if (piece.box.empty()) return piece;
  for (std::size_t i = 0; i < channels_.size(); ++i) {
    if (channels_[i] >= piece.box.begin[3] && channels_[i] < piece.box.end(3))
      piece.written.push_back(static_cast<int>(i));
  }
  return piece;
}

void ForecastRun::pack(std::span<const float> states, PackedPiece& piece) {
  const std::int64_t channels = piece.box.extent[3], points = piece.box.extent[0] * piece.plane();
  piece.values.reserve(static_cast<std::size_t>(piece.count()));
  for (const int number : piece.written) {
    const std::int64_t channel = channels_[static_cast<std::size_t>(number)] - piece.box.begin[3];
    for (std::int64_t i = 0; i < points; ++i)
      piece.values.push_back(states[static_cast<std::size_t>(i * channels + channel)]);
  }
}

/// The piece of another rank at rank 0. Collective over the job.
PackedPiece ForecastRun::bring(int rank, const PackedPiece& own, const Layout& layout) {
  Communicator& world = run_.world();
  PackedPiece piece = piece_of(rank, layout);
  const std::int64_t count = piece.count();
  if (count == 0) return piece;
  std::vector<Message> sends, receives;
  std::vector<double> sent;
  if (world.rank() == rank) {
    sends = {{0, 0, count}};
    sent.assign(own.values.begin(), own.values.end());
  } else if (world.rank() == 0) {
    receives = {{rank, 0, count}};
  }
  const std::int64_t received = receives.empty() ? 0 : count;
  const Array array = world.exchange(constant(rank_.context, {std::ssize(sent)}, DType::kFloat32, sent),
                                     sends, receives, received);
  if (received == 0) return piece;
  const std::vector<double> values = download_values(rank_.context, array);
  piece.values.assign(values.begin(), values.end());
  return piece;
}

/// What of the prediction the file is to hold, f32; counts what is not finite.
Array ForecastRun::states_of(int lead, const ShardedTensor& prediction, const Batch& batch) {
  const Layout& layout = prediction.layout;
  Array states = physical_.predicted(rank_, layout, prediction.piece, batch.origin);
  const Array not_finite = hide_missing(rank_.context, batch.origin, states);
  if (!not_finite_.defined()) {
    not_finite_ = not_finite;
  } else {
    accumulate(rank_.context, not_finite_, not_finite);
  }
  if (!data_.rim().empty()) write_rim(rank_, layout, data_.rim(), batch.rim(lead), states);
  return cast(rank_.context, states, DType::kFloat32, Purpose::kWorkspace);
}

void ForecastRun::put(std::int64_t number, int lead, const ShardedTensor& prediction, const Batch& batch) {
  const std::int64_t members = placed_.members();
  for (std::int64_t j = 0; j < members; ++j) {
    put_member(
        number, lead, j,
        {member_of(rank_.context, prediction.piece, members, j), of_samples(prediction.layout, members)},
        batch);
  }
  together(run_.world(), [&] {
    if (writer_) writer_->check();
  });
}

void ForecastRun::put_member(std::int64_t number, int lead, std::int64_t member,
                             const ShardedTensor& prediction, const Batch& batch) {
  const auto own = std::make_shared<PackedPiece>(piece_of(run_.world().rank(), prediction.layout));
  if (!own->box.empty()) {
    const Array states = states_of(lead, prediction, batch);
    if (own->count() > 0) pack(HostView<const float>(download(rank_.context, states)), *own);
  }
  for (int rank = 0; rank < run_.world().size(); ++rank) {
    const auto piece = rank > 0 ? std::make_shared<PackedPiece>(bring(rank, *own, prediction.layout)) : own;
    if (!writer_ || piece->count() == 0) continue;
    writer_->push([this, piece, first = number * placed_.samples(), lead, member] {
      write(*piece, first, lead, member);
    });
  }
}

void ForecastRun::write(PackedPiece& piece, std::int64_t first, int lead, std::int64_t member) {
  const Box plane{{piece.box.begin[1], piece.box.begin[2]}, {piece.box.extent[1], piece.box.extent[2]}};
  std::span<float> rest = piece.values;
  for (const int number : piece.written) {
    for (std::int64_t b = piece.box.begin[0]; b < piece.box.end(0); ++b) {
      const auto size = static_cast<std::size_t>(piece.plane());
      file_->write(static_cast<std::size_t>(number), first + b, lead, plane, rest.first(size), member);
      rest = rest.subspan(size);
    }
  }
}

std::int64_t ForecastRun::run(Log& log) {
  const std::int64_t batches = (starts() + placed_.samples() - 1) / placed_.samples();
  Rollouts rollouts(
      run_, [this](std::int64_t batch, int lead) { return read(batch, lead); }, batches, steps_,
      Clamped::kFarBeyond);
  ProgressBar bar(log, "predict");
  for (std::int64_t i = 0; i < batches; ++i) {
    rollouts.run_next(samples_of(i), [&](int lead, const ShardedTensor& prediction, const Batch& batch) {
      put(i, lead, prediction, batch);
      bar.update(i * steps_ + lead + 1, batches * steps_);
    });
  }
  std::int64_t bytes = 0;
  together(run_.world(), [&] {
    if (!writer_) return;
    writer_->finish();
    bytes = file_->finish();
  });
  return bytes;
}

std::vector<std::string> ForecastRun::gaps() const {
  std::vector<Period> used;
  for (const Time start : starts_) used.push_back({start, start + steps_ * data_.options().lead_time});
  return gap_remarks(data_, used);
}

std::vector<std::string> ForecastRun::blanks() {
  return blank_remarks(data_, times_of_forecasts(data_, starts_, steps_), run_.world());
}

double ForecastRun::not_finite() {
  double own = 0;
  if (not_finite_.defined()) {
    for (const double count : download_values(rank_.context, not_finite_)) own += count;
  }
  return run_.world().all_reduce(std::array{own}, ReduceOp::kSum)[0];
}

}  // namespace

void write_forecasts(TrainedModel& model, const ForecastOptions& options, Log& log) {
  ForecastRun run(model, options);
  for (const std::string& remark : run.gaps()) log.warn(remark);
  const double before = now();
  const std::int64_t bytes = run.run(log);
  const double seconds = now() - before, not_finite = run.not_finite();
  for (const std::string& remark : run.blanks()) log.warn(remark);
  if (not_finite > 0) {
    log.warn(concat(not_finite, " values of the forecasts are not finite, and stand as missing in ",
                    options.output));
  }
  const std::int64_t steps = run.starts() * options.steps;
  log.info(concat("wrote ", counted(run.starts(), "forecast"), " of ", counted(options.steps, "step"),
                  run.members() > 1 ? concat(" and ", run.members(), " members") : "", " to ", options.output,
                  " (", human_bytes(bytes), ") in ", human_seconds(seconds), ": ",
                  per_second(steps, "steps", seconds)));
}

}  // namespace jigsaw::inline predict
