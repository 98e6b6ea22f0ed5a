#include "predict/forecast.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <set>

#include "array/host_view.h"
#include "array/transfer.h"
#include "base/error.h"
#include "base/progress_bar.h"
#include "base/text.h"
#include "comm/agreement.h"
#include "comm/from_first.h"
#include "kernels/pointwise.h"
#include "predict/background_writer.h"
#include "predict/first_not_finite.h"
#include "predict/forecast_choice.h"
#include "predict/forecast_file.h"
#include "predict/forecast_stop.h"
#include "predict/grid_places.h"
#include "predict/kept_states.h"
#include "predict/missing_at_start.h"
#include "predict/model_source.h"
#include "predict/outside_range.h"
#include "predict/packed_piece.h"
#include "predict/physical.h"
#include "predict/place_table.h"
#include "predict/rate.h"
#include "predict/start_digest.h"
#include "predict/step_means.h"
#include "predict/written_precision.h"
#include "samples/prescribed_remarks.h"
#include "samples/state_limits.h"
#include "task/ensemble.h"
#include "task/rollouts.h"

namespace jigsaw::inline predict {

namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

class ForecastRun {
 public:
  ForecastRun(TrainedModel& model, const ForecastOptions& options)
      : run_(model.run()),
        placed_(run_.placed()),
        rank_(placed_.rank()),
        data_(dynamic_cast<Dataset&>(run_.data())),
        options_(options),
        overwrite_(options.overwrite),
        restart_model_(RestartModel::of(model)),
        physical_(data_.channels(), data_.statistics(), data_.options().predict),
        outside_(state_limits(data_.channels(), data_.statistics(), options.stop_outside)) {
    find_places();
    together(run_.world(), [&] { choose(); });
    look_for_output();
    if (!is_there()) together(run_.world(), [&] { create(model); });
  }

  std::int64_t starts() const { return std::ssize(starts_); }
  /// The name of the output.
  const std::string& path() const { return path_; }
  /// Whether there is nothing to do, for the output is to stay as it is.
  bool is_there() const { return is_there_; }
  std::int64_t members() const { return placed_.members(); }
  /// Collective.
  ForecastsMade run(Log& log);
  const WrittenLeads& leads() const { return leads_; }
  Dataset& data() { return data_; }
  std::vector<std::string> start_texts() const;
  /// A sentence of values that are not finite where the input is not missing, or "". Collective.
  std::string not_finite();
  /// A sentence of each variable whose states leave what the model was trained on. Collective.
  std::vector<std::string> outside() { return outside_.remarks(data_, run_.world()); }
  std::string of_latest() const { return latest_remark(data_, options_, starts_); }
  /// What is remarkable of prescribed fields, before anything is read, and after run(), which is collective.
  std::vector<std::string> gaps() const;
  std::vector<std::string> units();
  std::vector<std::string> blanks();
  /// What is to be said of the places that are wanted, on the rank that writes.
  const std::vector<std::string>& of_places() const { return of_places_; }

 private:
  void find_places();
  void choose();
  void look_for_output();
  void create(const TrainedModel& model);
  std::vector<std::string> inputs() const;
  std::vector<Field> fields() const;
  bool keeps_states() const;
  std::int64_t batches() const { return (starts() + placed_.samples() - 1) / placed_.samples(); }
  std::int64_t samples_of(std::int64_t batch) const {
    return std::min(placed_.samples(), starts() - batch * placed_.samples());
  }
  std::span<const Time> starts_in(std::int64_t batch) const {
    return std::span(starts_).subspan(static_cast<std::size_t>(batch * placed_.samples()),
                                      static_cast<std::size_t>(samples_of(batch)));
  }
  Batch read(std::int64_t batch, int lead);
  RolloutState state_before(std::int64_t batch);
  bool should_stop() { return stop_is_asked(options_.stop, run_.world()); }
  void know_start(std::int64_t number, const Batch& batch);
  int run_batch(Rollouts& rollouts, std::int64_t number, ProgressBar& bar);
  Array states_of(int step, std::int64_t first, const ShardedTensor& prediction, const Batch& batch,
                  bool counted);
  ShardedTensor of_member(const ShardedTensor& prediction, std::int64_t member) const;
  bool leaves(std::int64_t number, int step, const ShardedTensor& prediction, const Batch& batch);
  std::vector<float> values_of(const Array& states, const PackedPiece<float>& piece, std::int64_t member,
                               bool ends);
  void put(std::int64_t number, int step, const ShardedTensor& prediction, const Batch& batch);
  void put_member(std::int64_t number, int step, std::int64_t member, const Layout& layout,
                  const Array& states);
  void put_places(std::int64_t first, int step, std::int64_t member, const Layout& layout,
                  const Array& states);
  void write(PackedPiece<float>& piece, std::int64_t first, int lead, std::int64_t member);
  void close(ForecastsMade& made);

  OpenedRun& run_;
  PlacedModel& placed_;
  const Rank& rank_;
  Dataset& data_;
  const ForecastOptions& options_;
  bool overwrite_, is_there_ = false;
  RestartModel restart_model_;
  PhysicalStates physical_;
  WrittenLeads leads_;
  std::vector<Time> starts_;
  std::string path_;  // of the output
  std::vector<int> channels_;
  std::optional<GridPlaces> places_;
  std::vector<std::string> of_places_;
  std::optional<BatchReader> reader_;
  std::vector<StepMeans> means_;  // of each member
  FirstNotFinite not_finite_;
  OutsideRange outside_;
  bool ended_outside_ = false;
  std::optional<KeptStates> states_;  // where they are kept
  std::vector<double> digests_;       // start_digests() of the batch in work
  std::vector<int> ran_;              // of each batch, the last step that the model made
  MissingAtStart missing_;
  // On the rank that writes.
  std::unique_ptr<OutputFile> output_, restart_output_;
  std::unique_ptr<ForecastFile> file_;
  std::unique_ptr<PlaceTable> table_;  // in place of that
  std::unique_ptr<BackgroundWriter> writer_;
};

std::vector<Field> ForecastRun::fields() const {
  std::vector<Field> fields;
  for (const int channel : channels_)
    fields.push_back(data_.channels().targets[static_cast<std::size_t>(channel)].field);
  return fields;
}

bool ForecastRun::keeps_states() const {
  if (options_.keep_state != KeepState::kAuto) return options_.keep_state == KeepState::kAlways;
  return (!options_.starts.empty() || options_.restart_from != nullptr) && leads_.last > 1;
}

/// Collective.
void ForecastRun::find_places() {
  if (options_.points.empty()) return;
  NamedPlaces listed;
  together(run_.world(), [&] {
    if (run_.world().rank() == 0) listed = read_places(options_.points);
  });
  const std::string source = "--points " + options_.points;
  places_.emplace(data_.files(), listed, options_.place_value, source, run_.world());
  of_places_ = {remark_on_names(listed, source), places_->remark()};
  std::erase(of_places_, "");
}

/// Which forecasts are made, and what their file is called.
void ForecastRun::choose() {
  if (data_.files().members() > 1)
    throw ConfigError(concat(
        "command line: forecasts are of one member of the ensemble, and data.member is \"all\"; say which by "
        "--set data.member=",
        data_.files().member_numbers().front(), " (the files have ",
        join(data_.files().member_numbers(), ", "), ")"));
  if (options_.restart_from != nullptr) options_.restart_from->require(restart_model_);
  int first = 0;
  starts_ = starts_of(data_, options_, first);
  path_ = named_by_start(options_.output, starts_, data_.files());
  missing_ = MissingAtStart(data_, starts_.size());
  if (options_.time_series && starts() > 1) {
    throw ConfigError(concat("command line: --time-series is of one forecast, and there are ", starts(),
                             " starts; name one by --start"));
  }
  channels_ = channels_of(data_.channels().targets, options_.variables, options_.levels);
  require_single_range(data_.channels().targets, channels_, data_.statistics());
  leads_ = leads_of(data_, options_, starts_, fields(), first);
  means_.resize(options_.means ? static_cast<std::size_t>(members()) : 0);
  data_.files().watch(fields_of(data_.channels().inputs, Role::kPrescribed));
  reader_.emplace(data_.make_reader());
  if (keeps_states()) states_.emplace(placed_, run_.world(), restart_model_);
}

/// The files that are read, and never replaced.
std::vector<std::string> ForecastRun::inputs() const {
  std::vector<std::string> inputs = data_.paths();
  if (options_.restart_from != nullptr) inputs.push_back(options_.restart_from->path());
  if (places_) inputs.push_back(options_.points);
  return inputs;
}

/// Of forecasts that a signal ended the place is taken. Collective.
void ForecastRun::look_for_output() {
  if (!options_.skip_existing) return;
  const std::string found = from_first(run_.world(), [&] {
    if (!is_written(path_, inputs())) return "nothing";
    return is_cut_short(path_) ? "cut short" : "whole";
  });
  is_there_ = found == "whole";
  overwrite_ = overwrite_ || found == "cut short";
}

/// The files that are written, on the rank that writes.
void ForecastRun::create(const TrainedModel& model) {
  if (run_.world().rank() != 0) return;
  output_ = std::make_unique<OutputFile>(path_, overwrite_, "--output", inputs());
  restart_output_ = std::make_unique<OutputFile>(restart_path(path_), overwrite_, "--output", inputs());
  ForecastContents contents{starts_,   data_.options().lead_time, leads_,
                            fields(),  options_.split_levels,     options_.attributes,
                            members(), options_.time_series};
  contents.begun = data_.options().lead_of_inputs();
  if (places_) contents.places = &places_->places();
  contents.attributes["source"] = source_of(std::span(&model, 1));
  if (places_ && is_table_name(path_)) {
    table_ = std::make_unique<PlaceTable>(data_.files(), contents, output_->temporary(),
                                          std::min(placed_.samples(), starts()));
  } else {
    file_ = std::make_unique<ForecastFile>(data_.files(), contents, *output_,
                                           std::min(placed_.samples(), starts()));
  }
  if (states_) states_->open(starts_, restart_output_->temporary());
  if (options_.keep_state == KeepState::kAlways && states_->failure()) throw Error(*states_->failure());
  writer_ = std::make_unique<BackgroundWriter>();
}

Batch ForecastRun::read(std::int64_t batch, int lead) {
  const std::int64_t samples = samples_of(batch);
  const std::span<const Time> times = starts_in(batch);
  BatchRequest request;
  request.times.assign(times.begin(), times.end());
  request.input = placed_.input_box(samples);
  request.target = rank_.box(placed_.sample_layout(samples));
  request.rollout = leads_.last;
  request.lead = lead;
  request.dtype = placed_.types().master;
  request.targets = false;
  request.origin = true;
  request.rims = !data_.rim().empty();
  Batch read = reader_->read(request, rank_.context.host());
  if (request.starts())
    missing_.note(static_cast<std::size_t>(batch * placed_.samples()), request.target, read.origin);
  return read;
}

/// What the file holds of a step, f64; undefined on a rank without a piece.
/// @param first  the number of the first start. @param counted  whether what is not finite counts
Array ForecastRun::states_of(int step, std::int64_t first, const ShardedTensor& prediction,
                             const Batch& batch, bool counted) {
  const Layout& layout = prediction.layout;
  const Box box = rank_.box(layout);
  if (box.empty()) return {};
  Array states = physical_.predicted(rank_, layout, prediction.piece, batch.origin);
  Shape one = box.extent;
  one[0] = 1;
  for (std::int64_t b = 0; b < box.extent[0]; ++b) {
    Array of_start = states.slice(b * one.count(), one);
    const Array counts = hide_missing(rank_.context, batch.origin.slice(b * one.count(), one), of_start);
    if (counted)
      not_finite_.add(step, first + box.begin[0] + b, box.begin[3], download_values(rank_.context, counts));
  }
  if (!data_.rim().empty()) write_rim(rank_, layout, data_.rim(), batch.rim(step - 1), states);
  return states;
}

/// Of this rank's piece: of the step, or of a mean that ends with it; of a step within one nothing.
std::vector<float> ForecastRun::values_of(const Array& states, const PackedPiece<float>& piece,
                                          std::int64_t member, bool ends) {
  Context& context = rank_.context;
  if (!leads_.means) {
    PackedPiece<float> packed{piece.box, piece.numbers, {}};
    const Array single = cast(context, states, DType::kFloat32, Purpose::kWorkspace);
    pack<float>(HostView<const float>(download(context, single)), channels_, packed);
    return std::move(packed.values);
  }
  PackedPiece<double> packed{piece.box, piece.numbers, {}};
  pack<double>(HostView<const double>(download(context, states)), channels_, packed);
  StepMeans& means = means_[static_cast<std::size_t>(member)];
  means.add(packed.values);
  return ends ? means.take() : std::vector<float>();
}

ShardedTensor ForecastRun::of_member(const ShardedTensor& prediction, std::int64_t member) const {
  return {member_of(rank_.context, prediction.piece, members(), member),
          of_samples(prediction.layout, members())};
}

/// Whether the states of any member at a step lie where --stop-outside ends forecasts. Collective.
bool ForecastRun::leaves(std::int64_t number, int step, const ShardedTensor& prediction, const Batch& batch) {
  bool here = false;
  for (std::int64_t j = 0; j < members(); ++j) {
    const ShardedTensor own = of_member(prediction, j);
    const Array states = states_of(step, number * placed_.samples(), own, batch, false);
    here = outside_.add(rank_, own.layout, states, step, starts_in(number)) || here;
  }
  return run_.world().all_reduce(std::array{here ? 1.0 : 0.0}, ReduceOp::kMax)[0] > 0;
}

/// Looks at the states of a step, and gives those that are written away.
void ForecastRun::put(std::int64_t number, int step, const ShardedTensor& prediction, const Batch& batch) {
  const bool written = leads_.has(step);
  for (std::int64_t j = 0; j < members(); ++j) {
    const ShardedTensor own = of_member(prediction, j);
    const Array states = states_of(step, number * placed_.samples(), own, batch, written);
    outside_.add(rank_, own.layout, states, step, starts_in(number));
    if (written) put_member(number, step, j, own.layout, states);
  }
  if (!written) return;
  together(run_.world(), [&] {
    if (writer_) writer_->check();
  });
}

void ForecastRun::put_member(std::int64_t number, int step, std::int64_t member, const Layout& layout,
                             const Array& states) {
  const std::int64_t first = number * placed_.samples();
  if (places_) return put_places(first, step, member, layout, states);
  const std::optional<int> lead = leads_.lead_of(step);
  const int rank = run_.world().rank();
  const auto own = std::make_shared<PackedPiece<float>>(piece_of<float>(rank_, layout, channels_, rank));
  if (own->count() > 0) own->values = values_of(states, *own, member, lead.has_value());
  if (!lead) return;
  for (int from = 0; from < run_.world().size(); ++from) {
    const auto piece =
        from > 0
            ? std::make_shared<PackedPiece<float>>(bring(rank_, run_.world(), layout, channels_, *own, from))
            : own;
    if (!writer_ || piece->count() == 0) continue;
    writer_->push([this, piece, first, lead = *lead, member] { write(*piece, first, lead, member); });
  }
}

/// The values at places, which are few: rank 0 has them of all ranks.
void ForecastRun::put_places(std::int64_t first, int step, std::int64_t member, const Layout& layout,
                             const Array& states) {
  const std::vector<double> values = places_->values(rank_, layout, states, channels_);
  if (!writer_) return;
  const std::optional<int> lead = leads_.lead_of(step);
  std::vector<float> written;
  if (leads_.means) {
    StepMeans& means = means_[static_cast<std::size_t>(member)];
    means.add(values);
    if (lead) written = means.take();
  } else {
    written.assign(values.begin(), values.end());
  }
  if (!lead) return;
  writer_->push([this, written = std::move(written), first, lead = *lead, member]() mutable {
    std::span<float> rest = written;
    const Box all{{0}, {places_->size()}};
    const auto size = static_cast<std::size_t>(places_->size());
    for (std::int64_t start = first; !rest.empty(); ++start) {
      if (table_) {
        table_->write(start, lead, member, rest.first(size * channels_.size()));
        rest = rest.subspan(size * channels_.size());
        continue;
      }
      for (std::size_t field = 0; field < channels_.size(); ++field) {
        file_->write(field, start, lead, all, rest.first(size), member);
        rest = rest.subspan(size);
      }
    }
  });
}

void ForecastRun::write(PackedPiece<float>& piece, std::int64_t first, int lead, std::int64_t member) {
  const Box plane{{piece.box.begin[1], piece.box.begin[2]}, {piece.box.extent[1], piece.box.extent[2]}};
  std::span<float> rest = piece.values;
  for (const int number : piece.numbers) {
    for (std::int64_t b = piece.box.begin[0]; b < piece.box.end(0); ++b) {
      const auto size = static_cast<std::size_t>(piece.plane());
      file_->write(static_cast<std::size_t>(number), first + b, lead, plane, rest.first(size), member);
      rest = rest.subspan(size);
    }
  }
}

RolloutState ForecastRun::state_before(std::int64_t batch) {
  RolloutState state;
  if (options_.restart_from == nullptr) return state;
  together(run_.world(),
           [&] { state = read_state(placed_, restart_model_, *options_.restart_from, starts_in(batch)); });
  return state;
}

/// Keeps by what the states at the start are known again; forecasts that go on must have begun with these.
void ForecastRun::know_start(std::int64_t number, const Batch& batch) {
  if (!states_ && options_.restart_from == nullptr) return;
  std::vector<bool> prognostic;
  for (const Channel& target : data_.channels().targets)
    prognostic.push_back(target.role == Role::kPrognostic);
  const Box box = rank_.box(placed_.sample_layout(samples_of(number)));
  std::vector<double> values;
  if (!box.empty()) values = download_values(rank_.context, batch.origin);
  digests_ = start_digests(run_.world(), samples_of(number), box, values, prognostic);
  if (options_.restart_from == nullptr) return;
  together(run_.world(), [&] {
    const std::span<const Time> starts = starts_in(number);
    for (std::size_t i = 0; i < starts.size(); ++i) {
      if (options_.restart_from->digest_of(starts[i]) == digests_[i]) continue;
      throw CheckpointError(
          concat("the forecasts of ", options_.restart_from->path(), " cannot go on: that from ",
                 data_.files().text_of(starts[i]),
                 " began with another state than the data hold; give the data that it began "
                 "with"));
    }
  });
}

/// @return  the last step that was made; of means that of the last whole one
int ForecastRun::run_batch(Rollouts& rollouts, std::int64_t number, ProgressBar& bar) {
  const int steps = leads_.last - leads_.first;
  std::optional<RolloutState> kept;
  int made = leads_.first, ran = leads_.first;
  const auto use = [&](int lead, const ShardedTensor& prediction, const Batch& batch,
                       const RolloutState& state) {
    const int step = lead + 1;
    if (ran == leads_.first) know_start(number, batch);
    ended_outside_ = options_.stop_outside && leaves(number, step, prediction, batch);
    if (ended_outside_) {
      if (!leads_.means) made = ran;
      ran = step;
      return false;
    }
    put(number, step, prediction, batch);
    bar.update(number * steps + step - leads_.first, batches() * steps);
    ran = step;
    const bool last = step == leads_.last, stops = !last && should_stop();
    if (leads_.means ? leads_.lead_of(step).has_value() : last || stops) {
      made = step;
      if (states_ && (last || options_.stop != nullptr)) kept = state;
    }
    return !stops;
  };
  rollouts.run_next(samples_of(number), state_before(number), use);
  ran_.push_back(ran);
  if (kept && !ended_outside_) {
    states_->keep(*kept, number * placed_.samples(), samples_of(number), made, digests_, writer_.get());
  }
  return made;
}

ForecastsMade ForecastRun::run(Log& log) {
  Rollouts rollouts(
      run_, [this](std::int64_t batch, int lead) { return read(batch, lead); }, batches(), leads_.last,
      Clamped::kFarBeyond, leads_.first);
  ForecastsMade made;
  {
    ProgressBar bar(log, "predict");
    for (std::int64_t i = 0; i < batches() && !made.stopped; ++i) {
      made.step = run_batch(rollouts, i, bar);
      // Of a batch that was stopped before anything was written of it nothing is there.
      const std::int64_t leads = leads_.count_until(made.step);
      made.outside = ended_outside_;
      made.stopped = made.outside || made.step < leads_.last;
      made.steps += samples_of(i) * (made.step - leads_.first);
      if (!made.stopped) made.whole += samples_of(i);
      if (leads > 0) made.starts += samples_of(i);
      made.leads = std::max(made.leads, leads);
      if (!made.stopped && i + 1 < batches()) made.stopped = should_stop();
    }
  }
  if (states_) made.states = states_->count();
  together(run_.world(), [&] { close(made); });
  return made;
}

/// The forecasts get their name first: what befalls their state is no loss of theirs. A state that is beside
/// them at any time is their own.
void ForecastRun::close(ForecastsMade& made) {
  if (!writer_) return;
  writer_->finish();
  if (made.starts == 0) return;
  const std::string comment = made.stopped ? stop_comment(made, leads_, start_texts()) : "";
  if (table_) {
    table_->close(comment);
  } else {
    if (!comment.empty()) file_->add_comment(comment);
    file_->close(made.starts, made.leads);
  }
  made.bytes = output_->commit([&] {
    std::error_code ignored;
    if (overwrite_) std::filesystem::remove(restart_output_->path(), ignored);
  });
  if (states_ && made.outside)
    made.state_failure = DataError("--stop-outside ended forecasts before their last step");
  if (!states_ || made.states < made.starts) return;
  states_->close();
  made.state_failure = states_->failure();
  if (made.state_failure) return;
  try {
    restart_output_->commit();
    made.kept = true;
  } catch (const Error& error) {
    made.state_failure = error;
  }
}

/// As --start takes them.
std::vector<std::string> ForecastRun::start_texts() const {
  std::vector<std::string> texts;
  const FileSet& files = data_.files();
  for (const Time start : starts_) texts.push_back(files.text_of(start) + (files.of_months() ? "-01" : ""));
  return texts;
}

/// Of the states that forecasts start from.
std::vector<std::string> ForecastRun::units() {
  const auto [first, last] = std::ranges::minmax(data_.options().input_times);
  std::vector<Period> used;
  for (const Time start : starts_) used.push_back({start + first, start + last});
  return unit_warnings(data_, used, run_.world());
}

std::vector<std::string> ForecastRun::gaps() const {
  const Time step = data_.options().lead_time;
  std::vector<Period> used;
  for (const Time start : starts_) used.push_back({start + leads_.first * step, start + leads_.last * step});
  std::vector<std::string> remarks = gap_remarks(data_, used);
  std::ranges::copy(later_start_remarks(data_, leads_.last), std::back_inserter(remarks));
  return remarks;
}

/// Of those that go on without what was given in the steps before. Where they were stopped, ranks have read
/// ahead as far as each came, and the last step's time was given to none.
std::vector<std::string> ForecastRun::blanks() {
  std::vector<Time> given;
  for (std::size_t batch = 0; batch < ran_.size(); ++batch) {
    const std::span<const Time> starts = starts_in(static_cast<std::int64_t>(batch));
    const int last = ran_[batch] < leads_.last ? ran_[batch] - 1 : leads_.last;
    const std::vector<Time> times =
        times_of_forecasts(data_, {starts.begin(), starts.end()}, last, leads_.first);
    given.insert(given.end(), times.begin(), times.end());
  }
  std::vector<std::string> remarks = blank_remarks(data_, std::move(given), run_.world());
  const std::size_t ran = std::min(starts_.size(), ran_.size() * static_cast<std::size_t>(placed_.samples()));
  const std::vector<std::string> of_starts = missing_.remarks(std::span(starts_).first(ran), run_.world());
  remarks.insert(remarks.end(), of_starts.begin(), of_starts.end());
  return remarks;
}

std::string ForecastRun::not_finite() {
  const std::optional<FirstNotFinite::Found> found = not_finite_.find(run_.world());
  if (!found) return "";
  const FileSet& files = data_.files();
  const Time start = starts_[static_cast<std::size_t>(found->start)];
  return concat(found->count, " values of the forecasts are not finite, the first of them of ",
                data_.channels().targets[static_cast<std::size_t>(found->channel)].name, " ",
                lead_text(found->step * data_.options().lead_time, files.of_months()), " (step ", found->step,
                ") from the start ", files.text_of(start), ", and ",
                leads_.means ? "do not count in the means in " : "stand as missing in ", path_);
}

}  // namespace

KeepState parse_keep_state(const std::string& text) {
  if (text == "auto") return KeepState::kAuto;
  if (text == "always") return KeepState::kAlways;
  if (text == "never") return KeepState::kNever;
  throw ConfigError(concat("command line: --restart must be auto, always or never, not ", text));
}

bool write_forecasts(TrainedModel& model, const ForecastOptions& options, Log& log) {
  ForecastRun run(model, options);
  if (const std::string remark = run.of_latest(); !remark.empty()) log.warn(remark);
  if (run.is_there()) {
    log.info(concat(run.path(), " is there and is left alone"));
    return false;
  }
  const WrittenLeads& leads = run.leads();
  for (const std::string& remark : left_out_remarks(leads, options.steps)) log.warn(remark);
  for (const std::string& remark : run.of_places()) log.warn(remark);
  for (const std::string& remark : run.gaps()) log.warn(remark);
  for (const std::string& warning : run.units()) log.warn(warning);
  const double before = now();
  const ForecastsMade made = run.run(log);
  const double seconds = now() - before;
  for (const std::string& remark : run.blanks()) log.warn(remark);
  for (const std::string& remark : run.outside()) log.warn(remark);
  if (const std::string sentence = run.not_finite(); !sentence.empty()) log.warn(sentence);
  if (made.stopped) {
    std::error_code ignored;
    log.warn(stop_sentence(made, leads, run.start_texts(), run.path(),
                           std::filesystem::exists(run.path(), ignored)));
  }
  const bool asked_to_stop = made.stopped && !made.outside;
  if (made.starts == 0) return asked_to_stop;
  const std::string each =
      concat(" of ", counted(leads.last - leads.first, "step"), leads.first > 0 ? " more" : "");
  log.info(concat("wrote ", counted(made.starts, "forecast"), made.stopped ? "" : each,
                  run.members() > 1 ? concat(" and ", run.members(), " members") : "", " to ", run.path(),
                  " (", human_bytes(made.bytes), ") in ", human_seconds(seconds), ": ",
                  per_second(made.steps, "steps", seconds)));
  std::optional<Error> lost = made.state_failure;
  if (lost)
    lost = lost->saying(concat(run.path(), " is written, but not the state to go on from: ", lost->what()));
  if (options.keep_state == KeepState::kAlways) {
    together(model.run().world(), [&] {
      if (lost) throw Error(*lost);
    });
  } else if (lost) {
    log.warn(lost->what());
  }
  return asked_to_stop;
}

}  // namespace jigsaw::inline predict
