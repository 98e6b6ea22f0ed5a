#include "predict/sequence_forecast.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <utility>

#include "array/host_view.h"
#include "array/transfer.h"
#include "base/disk.h"
#include "base/error.h"
#include "base/file.h"
#include "base/progress_bar.h"
#include "base/text.h"
#include "comm/agreement.h"
#include "comm/from_first.h"
#include "files/image_output.h"
#include "images/dim_positions.h"
#include "images/sequence_data.h"
#include "images/sequence_reader.h"
#include "kernels/forecast_scores.h"
#include "predict/forecast_choice.h"
#include "predict/forecast_stop.h"
#include "predict/model_source.h"
#include "predict/output_file.h"
#include "predict/outside_range.h"
#include "predict/packed_piece.h"
#include "predict/written_precision.h"
#include "task/physical_states.h"
#include "task/rollouts.h"

namespace jigsaw::inline predict {

namespace {

/// The sequences of one file of input.
struct SequencesOfFile {
  std::string path;
  std::vector<ImageFiles::Series> series;
};

std::vector<SequencesOfFile> sequences_by_file(const ImageFiles& files) {
  std::vector<SequencesOfFile> result;
  for (const ImageFiles::Series& series : files.series()) {
    if (result.empty() || result.back().path != files.path(series.first))
      result.push_back({files.path(series.first), {}});
    result.back().series.push_back(series);
  }
  return result;
}

/// Where a channel of the model stands in the file.
struct WrittenChannel {
  std::size_t data_set = 0;
  std::optional<std::int64_t> channel;  ///< of a data set with channels
};

class SequenceForecastRun {
 public:
  SequenceForecastRun(TrainedModel& model, const SequenceForecastOptions& options)
      : run_(model.run()),
        placed_(run_.placed()),
        rank_(placed_.rank()),
        data_(dynamic_cast<SequenceData&>(run_.data())),
        options_(options),
        reader_(data_),
        physical_(data_.channels(), data_.statistics(), data_.options().predict),
        outside_(state_limits(data_.channels(), data_.statistics())),
        inputs_(sequences_by_file(data_.files())),
        leads_{0, options.steps, options.every} {
    together(run_.world(), [&] {
      chosen_ = channels_of(data_.channels().targets, options.variables, options.levels);
      require_leads(leads_);
      check();
    });
    if (!options.skip_existing) return;
    const std::string there = from_first(run_.world(), [&] { return written_before(); });
    const std::vector<SequencesOfFile> all = std::exchange(inputs_, {});
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (there[i] != '1') inputs_.push_back(all[i]);
    }
    skipped_ = std::ssize(all) - std::ssize(inputs_);
  }

  /// @return  whether it was stopped.
  bool run(Log& log);

 private:
  void check() const;
  bool one_file() const { return image_format(options_.output).has_value(); }
  std::int64_t before() const { return -std::ranges::min(data_.options().input_steps); }
  std::int64_t start() const { return options_.start.value_or(before()); }
  std::string output_of(const std::string& input) const;
  std::string written_before() const;
  void create(const SequencesOfFile& input);
  bool run_file(const SequencesOfFile& input, const std::function<void(double)>& done);
  void finish(bool whole);
  std::vector<Time> starts_in(const SequencesOfFile& input, std::int64_t first, std::int64_t count) const;
  void put(std::int64_t first, int step, const ShardedTensor& prediction, const Batch& batch,
           std::span<const Time> starts);
  void write(const PackedPiece<double>& piece, std::int64_t first, int lead);

  OpenedRun& run_;
  PlacedModel& placed_;
  const Rank& rank_;
  SequenceData& data_;
  const SequenceForecastOptions& options_;
  SequenceReader reader_;
  PhysicalStates physical_;
  OutsideRange outside_;
  std::vector<SequencesOfFile> inputs_;
  WrittenLeads leads_;
  std::vector<int> chosen_;  // channels
  std::int64_t skipped_ = 0;
  double not_finite_ = 0;
  // On the rank that writes.
  std::vector<WrittenChannel> channels_;  // of those that are chosen
  std::unique_ptr<OutputFile> output_;
  std::unique_ptr<ImageOutput> file_;
};

void SequenceForecastRun::check() const {
  if (one_file()) {
    const auto format = image_format(options_.output);
    if (format == ImageFormat::kNifti || format == ImageFormat::kNiftiGz)
      throw ConfigError(
          concat("command line: --output ", options_.output,
                 " is named like a NIfTI file, and forecasts of sequences are written as NetCDF "
                 "or HDF5; end the name in .nc or .h5"));
    if (inputs_.size() > 1)
      throw ConfigError(concat("command line: --output ", options_.output, " is one file, and the input are ",
                               inputs_.size(), "; name a folder, or give one file by --input"));
  }
  std::set<std::string> names;
  for (const SequencesOfFile& input : inputs_) {
    if (!names.insert(output_of(input.path)).second)
      throw ConfigError(concat("command line: two files of the input would be written as ",
                               output_of(input.path), "; give them one after the other by --input"));
    for (const ImageFiles::Series& series : input.series) {
      if (start() >= before() && start() < series.steps) continue;
      throw ConfigError(concat("command line: --start-step ", start(), " is no state to start from in ",
                               input.path, ": its sequences have ", counted(series.steps, "state"),
                               ", and data.input_steps reach ", before(), " steps back; it can be ", before(),
                               " to ", series.steps - 1));
    }
  }
}

std::string SequenceForecastRun::output_of(const std::string& input) const {
  if (one_file()) return options_.output;
  return (std::filesystem::path(options_.output) /
          std::filesystem::path(input).filename().replace_extension(".nc"))
      .string();
}

/// On the rank that writes. @return  '1' for each input whose output is there, else '0'.
std::string SequenceForecastRun::written_before() const {
  std::string there;
  for (const SequencesOfFile& input : inputs_)
    there += is_written(output_of(input.path), data_.paths()) ? '1' : '0';
  return there;
}

void SequenceForecastRun::create(const SequencesOfFile& input) {
  const std::string path = output_of(input.path);
  std::error_code error;
  if (!one_file()) std::filesystem::create_directories(options_.output, error);
  if (error)
    refuse_output<ConfigError>(
        error, concat("command line: --output ", options_.output, " cannot be made: ", error.message()));
  output_ = std::make_unique<OutputFile>(path, options_.overwrite, "--output", data_.paths());
  const std::vector<ImageDim> space = data_.options().space();
  std::vector<OutputImage> images;
  channels_.clear();
  for (const int number : chosen_) {
    const Channel& target = data_.channels().targets[static_cast<std::size_t>(number)];
    const Field& field = target.field;
    std::string variable = field.variable;
    std::replace(variable.begin(), variable.end(), '*', '_');
    if (images.empty() || images.back().name != variable) {
      OutputImage image{variable, OutputImage::Type::kFloat, {"sample", "time"}, {}, {}, {}};
      image.shape = {std::ssize(input.series), std::int64_t{leads_.count()}};
      for (std::size_t d = 0; d < space.size(); ++d) {
        image.dimensions.emplace_back(name(space[d]));
        image.shape.append(data_.grid().shape()[static_cast<int>(d)]);
      }
      if (field.level) {
        image.dimensions.emplace_back("channel");
        image.shape.append(0);
      }
      if (const std::string& units = data_.files().units(field); !units.empty()) image.texts["units"] = units;
      images.push_back(image);
    }
    OutputImage& image = images.back();
    if (needs_double_precision(target, data_.statistics().of(field))) image.type = OutputImage::Type::kDouble;
    std::optional<std::int64_t> channel;
    if (field.level) {
      channel = image.shape[image.shape.rank() - 1]++;
      image.numbers["channels"].push_back(*field.level);
    }
    channels_.push_back({images.size() - 1, channel});
  }
  OutputCoordinate time{"time", {"time"}, {std::int64_t{leads_.count()}}, {}, {}};
  for (int lead = 0; lead < leads_.count(); ++lead)
    time.values.push_back(static_cast<double>(leads_.step_of(lead) * data_.options().lead_steps));
  time.texts["long_name"] =
      concat("steps from state ", start(), " of each sequence, which the forecasts start from");
  std::map<std::string, std::string> attributes = options_.attributes;
  attributes["input"] = input.path;
  attributes["start_step"] = concat(start());
  attributes["lead_steps"] = concat(data_.options().lead_steps);
  const ImageFormat format = image_format(path).value_or(ImageFormat::kNetcdf);
  file_ = create_image_output(format, output_->temporary(), images, attributes, nullptr, {time});
}

/// @return  whether it is whole, and was not stopped.
bool SequenceForecastRun::run_file(const SequencesOfFile& input, const std::function<void(double)>& done) {
  const std::int64_t each = placed_.samples(), count = std::ssize(input.series);
  const std::int64_t batches = (count + each - 1) / each;
  const auto samples_of = [&](std::int64_t batch) { return std::min(each, count - batch * each); };
  const auto load = [&](std::int64_t batch, int lead) {
    BatchRequest request;
    request.times = starts_in(input, batch * each, samples_of(batch));
    request.input = placed_.input_box(samples_of(batch));
    request.target = rank_.box(placed_.sample_layout(samples_of(batch)));
    request.rollout = options_.steps;
    request.lead = lead;
    request.dtype = placed_.types().master;
    request.targets = false;
    request.origin = true;
    return reader_.read(request, rank_.context.host());
  };
  Rollouts rollouts(run_, load, batches, options_.steps, Clamped::kFarBeyond);
  const std::int64_t all = batches * options_.steps;
  bool stopped = false;
  for (std::int64_t batch = 0; batch < batches && !stopped; ++batch) {
    const std::vector<Time> starts = starts_in(input, batch * each, samples_of(batch));
    const auto use = [&](int lead, const ShardedTensor& prediction, const Batch& read, const RolloutState&) {
      put(batch * each, lead + 1, prediction, read, starts);
      const std::int64_t made = batch * options_.steps + lead + 1;
      done(static_cast<double>(made) / static_cast<double>(all));
      stopped = made < all && stop_is_asked(options_.stop, run_.world());
      return !stopped;
    };
    rollouts.run_next(samples_of(batch), {}, use);
  }
  return !stopped;
}

/// Gives the file its name, or takes it away. Collective.
void SequenceForecastRun::finish(bool whole) {
  together(run_.world(), [&] {
    if (!file_) return;
    if (whole) file_->finish();
    file_.reset();
    if (whole) output_->commit();
    output_.reset();
  });
}

/// The states that these sequences of a file start from.
std::vector<Time> SequenceForecastRun::starts_in(const SequencesOfFile& input, std::int64_t first,
                                                 std::int64_t count) const {
  std::vector<Time> starts;
  for (std::int64_t number = first; number < first + count; ++number)
    starts.push_back(input.series[static_cast<std::size_t>(number)].first + start());
  return starts;
}

/// Looks at the states of a step, and gives those that are written away.
/// @param first  number of the first sequence in its file. @param starts  of all that the batch holds.
void SequenceForecastRun::put(std::int64_t first, int step, const ShardedTensor& prediction,
                              const Batch& batch, std::span<const Time> starts) {
  Context& context = rank_.context;
  Array states;
  std::vector<double> not_finite;
  if (!rank_.box(prediction.layout).empty()) {
    states = physical_.predicted(rank_, prediction.layout, prediction.piece, batch.origin);
    not_finite = download_values(context, hide_missing(context, batch.origin, states));
    outside_.add(rank_, prediction.layout, states, step, starts);
  }
  if (!leads_.has(step)) return;
  const int lead = *leads_.lead_of(step);
  auto own = piece_of<double>(rank_, prediction.layout, chosen_, run_.world().rank());
  if (own.count() > 0) {
    for (const double count : not_finite) not_finite_ += count;
    pack<double>(HostView<const double>(download(context, states)), chosen_, own);
  }
  for (int from = 0; from < run_.world().size(); ++from) {
    const auto piece = from > 0 ? bring(rank_, run_.world(), prediction.layout, chosen_, own, from) : own;
    together(run_.world(), [&] {
      if (file_ && piece.count() > 0) write(piece, first, lead);
    });
  }
}

void SequenceForecastRun::write(const PackedPiece<double>& piece, std::int64_t first, int lead) {
  std::span<const double> rest = piece.values;
  const auto plane = static_cast<std::size_t>(piece.plane());
  for (const int number : piece.numbers) {
    const WrittenChannel& to = channels_[static_cast<std::size_t>(number)];
    for (std::int64_t b = piece.box.begin[0]; b < piece.box.end(0); ++b) {
      Box box{{first + b, std::int64_t{lead}}, {std::int64_t{1}, std::int64_t{1}}};
      for (int d = 1; d + 1 < piece.box.begin.rank(); ++d) {
        box.begin.append(piece.box.begin[d]);
        box.extent.append(piece.box.extent[d]);
      }
      if (to.channel) {
        box.begin.append(*to.channel);
        box.extent.append(1);
      }
      file_->write(to.data_set, box, rest.first(plane));
      rest = rest.subspan(plane);
    }
  }
}

bool SequenceForecastRun::run(Log& log) {
  const std::int64_t files = std::ssize(inputs_);
  std::int64_t forecasts = 0, whole = 0;
  bool stopped = false;
  {
    ProgressBar bar(log, "predict");
    while (whole < files && !stopped) {
      const SequencesOfFile& input = inputs_[static_cast<std::size_t>(whole)];
      together(run_.world(), [&] {
        if (run_.world().rank() == 0) create(input);
      });
      stopped = !run_file(input, [&](double part) {
        bar.update((static_cast<double>(whole) + part) / static_cast<double>(files));
      });
      finish(!stopped);
      if (stopped) break;
      forecasts += std::ssize(input.series);
      ++whole;
      stopped = whole < files && stop_is_asked(options_.stop, run_.world());
    }
  }
  const double not_finite = run_.world().all_reduce(std::array{not_finite_}, ReduceOp::kSum)[0];
  if (not_finite > 0)
    log.warn(concat("forecasts hold ", not_finite, " values that are not finite, in ", options_.output));
  for (const std::string& remark : outside_.remarks(data_, run_.world())) log.warn(remark);
  if (skipped_ > 0) log.info(concat("left alone ", counted(skipped_, "input"), " whose outputs are there"));
  if (forecasts > 0)
    log.info(concat("wrote ", counted(forecasts, "forecast"), " of ", counted(options_.steps, "step"), " to ",
                    options_.output));
  if (stopped) {
    const std::int64_t there = whole + skipped_;
    log.warn(there == 0 ? std::string("stopped early: no file was whole by then, and none was written")
                        : concat("stopped early: ", there, " of ", files + skipped_,
                                 " files are there and whole; --skip-existing makes the others"));
  }
  return stopped;
}

}  // namespace

bool write_sequence_forecasts(TrainedModel& model, const SequenceForecastOptions& options, Log& log) {
  SequenceForecastOptions with_source = options;
  with_source.attributes["source"] = source_of(std::span(&model, 1));
  return SequenceForecastRun(model, with_source).run(log);
}

}  // namespace jigsaw::inline predict
