#include "train/run_trace.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <regex>

#include "array/device_times.h"
#include "base/disk.h"
#include "base/error.h"
#include "base/file.h"
#include "base/output_place.h"
#include "base/text.h"
#include "comm/agreement.h"
#include "config/json.h"
#include "train/profile.h"

namespace jigsaw::inline train {

namespace {

/// Not of the first, which pays for what happens once.
constexpr std::int64_t kSkipped = 1, kTraced = 3;

constexpr const char* kBegin = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";

/// Whether a run writes a file of this name itself, perhaps later.
bool is_of_run(const std::filesystem::path& file, const std::string& folder) {
  static constexpr const char* kOwn[] = {"config.json",   "metrics.jsonl", "summary.json", "machine.json",
                                         "log.txt",       "lock",          "report.html",  "examples.nc",
                                         "examples.json", "checkpoints",   "tensorboard"};
  std::error_code unreadable;
  const auto place = [&](const std::filesystem::path& path) {
    return std::filesystem::weakly_canonical(std::filesystem::absolute(path, unreadable), unreadable);
  };
  return !folder.empty() && place(file).parent_path() == place(folder) &&
         std::ranges::find(kOwn, file.filename().string()) != std::end(kOwn);
}

std::string microseconds(std::int64_t nanoseconds) {
  char text[40];
  std::snprintf(text, sizeof text, "%.3f", 1e-3 * static_cast<double>(nanoseconds));
  return text;
}

std::string args_of(const TraceEvent& event) {
  Json args = Json::object();
  const bool of_call = event.number >= 0;
  if (!event.layer.empty()) args[of_call ? "group" : "layer"] = event.layer;
  if (event.flops > 0) args["flops"] = event.flops;
  if (event.moved > 0) args["moved_bytes"] = event.moved;
  if (event.bytes > 0 || event.kind == TraceKind::kStart) args["bytes"] = event.bytes;
  if (of_call) args["call"] = event.number;
  return args.empty() ? "" : concat(R"(,"args":)", args.dump(-1, ' ', false, Json::error_handler_t::replace));
}

void remove_file(const std::string& path) {
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
}

/// @throws ConfigError  where `work` fails to write what --trace names.
template <typename Work>
void write_trace(const std::string& file, Work&& work) {
  try {
    work();
  } catch (const FileError& error) {
    refuse_output<ConfigError>(error, concat("--trace ", file, " cannot be written: ", error.what()));
  }
}

std::string name_of(const std::string& name) {
  return Json(name).dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

TracedSteps traced_steps(const std::string& text, std::int64_t first_step) {
  if (text.empty()) return {first_step + kSkipped, first_step + kSkipped + kTraced - 1};
  if (text == "all") return {.everything = true};
  static const std::regex kForm("([0-9]{1,18})(-([0-9]{1,18})(:([0-9]{1,18}))?)?");
  std::smatch parts;
  TracedSteps steps;
  if (std::regex_match(text, parts, kForm)) {
    const auto number = [&](std::size_t part, std::int64_t otherwise) {
      return parts[part].matched ? std::stoll(parts[part].str()) : otherwise;
    };
    steps.first = number(1, 0);
    steps.last = number(3, steps.first);
    steps.stride = number(5, 1);
    if (steps.first >= 1 && steps.last >= steps.first && steps.stride >= 1) return steps;
  }
  throw ConfigError(
      concat("--trace-steps must be \"all\", a step such as 7, steps such as 7-9, or every tenth "
             "of them, 7-900:10, not ",
             quote(text)));
}

RunTrace::RunTrace(const TraceOptions& options, Communicator& world) : options_(options), world_(world) {
  if (!options_.wanted() && options_.steps.empty()) return;
  together(world_, [&] {
    if (!options_.wanted())
      throw ConfigError("command line: --trace-steps is for --trace or --profile, and neither is there");
    steps_ = traced_steps(options_.steps, 1);
    check_place();
  });
  trace_ = std::make_shared<EventTrace>();
  lane_.emplace(trace_, "training");
  trace_->record(steps_.everything);
  zero_ = trace_now();
}

void RunTrace::check_place() const {
  if (world_.rank() != 0 || options_.file.empty()) return;
  if (is_of_run(options_.file, options_.folder))
    throw ConfigError(
        concat("command line: --trace ", options_.file, " is a file that the run writes itself"));
  check_output_place("--trace", options_.file, "is no trace",
                     [](const std::string& path) { return begins_with(path, kBegin); });
  write_trace(options_.file, [&] { const Replacement attempt(options_.file); });
}

void RunTrace::begin(std::int64_t first_step) {
  if (!trace_) return;
  steps_ = traced_steps(options_.steps, first_step);
  together(world_, [&] { check_place(); });
}

void RunTrace::at_step(std::int64_t step) {
  if (!trace_) return;
  if (first_made_ == 0) first_made_ = step;
  last_made_ = step;
  const bool on = steps_.everything || steps_.contain(step);
  traced_ = traced_ || on;
  if (on == trace_->recording()) return;
  trace_->record(on);
}

std::string RunTrace::part(int rank) const {
  return concat(options_.file, ".rank_", rank, ".part");
}

/// Each rank beside the file, for what all hold together need not fit into one; then rank 0 joins the parts.
void RunTrace::write(const Rank& rank) const try {
  together(world_, [&] {
    std::vector<std::string> place;
    for (int axis = 0; axis < rank.mesh.shape().axes; ++axis)
      place.push_back(concat(rank.mesh.axis_name(axis), " ", rank.mesh.coordinate(axis)));
    const std::string events =
        chrome_events(*trace_, world_.rank(), concat("rank ", world_.rank(), ": ", join(place, ", ")), zero_);
    write_trace(options_.file,
                [&] { fresh_file(part(world_.rank())).write(std::as_bytes(std::span(events)), 0); });
  });
  together(world_, [&] {
    if (world_.rank() == 0) write_trace(options_.file, [&] { join_parts(); });
  });
} catch (...) {
  remove_file(part(world_.rank()));
  throw;
}

void RunTrace::join_parts() const {
  check_place();  // what the run itself wrote since it began is no trace either
  Replacement trace(options_.file);
  std::int64_t end = 0;
  const auto add = [&](std::string_view text) {
    trace.file().write(std::as_bytes(std::span(text)), end);
    end += std::ssize(text);
  };
  add(kBegin);
  for (int each = 0; each < world_.size(); ++each) {
    add(read_text(part(each), std::numeric_limits<std::int64_t>::max()));
    remove_file(part(each));
  }
  add(R"({"ph":"M","pid":0,"name":"process_sort_index","args":{"sort_index":0}}]})");
  add("\n");
  trace.commit();
}

void RunTrace::finish(const Rank& rank, const std::optional<Machine>& machine, Log& log) {
  if (!trace_) return;
  trace_->record(false);
  if (rank.context.runtime() != nullptr) rank.context.state<DeviceTimes>().hand_over(rank.context, *trace_);
  if (!traced_) {
    const std::string made = first_made_ == last_made_ ? concat("step ", first_made_)
                                                       : concat("steps ", first_made_, " to ", last_made_),
                      asked = options_.steps.empty() ? concat("by default steps ", steps_.first, " to ",
                                                              steps_.last, " of it are traced")
                                                     : concat("--trace-steps asks for ", options_.steps);
    log.warn(concat("nothing was traced: this start made ", made, ", and ", asked));
    return;
  }
  if (options_.profile) {
    const Profile profile = profile_of(trace_->events());
    const std::string text = to_text(profile, over_ranks(profile, world_), machine);
    for (const std::string& line : split(text, '\n')) {
      if (!line.empty()) log.info(line);
    }
  }
  if (options_.file.empty()) return;
  try {
    write(rank);
    log.info(concat("trace: ", options_.file, ", to be opened at https://ui.perfetto.dev",
                    trace_->dropped() > 0 ? concat("; ", trace_->dropped(), " events did not fit") : ""));
  } catch (const AgreedError& error) {
    // The training has ended as it should, and its results stand.
    log.warn(concat(error.what(), "; there is no trace"));
  }
}

void RunTrace::tell_no_steps(Log& log) const {
  if (trace_) log.warn("nothing was traced, for no step was left to make");
}

std::string chrome_events(const EventTrace& trace, int rank, const std::string& process_name,
                          std::int64_t zero) {
  std::string text = concat(R"({"ph":"M","pid":)", rank, R"(,"name":"process_name","args":{"name":)",
                            name_of(process_name), "}},\n");
  int thread = 0;
  for (const auto& [lane, events] : trace.events()) {
    const std::string place = concat(R"("pid":)", rank, R"(,"tid":)", thread++);
    text +=
        concat(R"({"ph":"M",)", place, R"(,"name":"thread_name","args":{"name":)", name_of(lane), "}},\n");
    for (const TraceEvent& event : events) {
      const std::string what =
          concat(place, R"(,"cat":")", name(event.kind), R"(","name":)", name_of(event.name));
      if (event.kind == TraceKind::kTransfer) {
        const std::string id = concat(R"(,"id":)", event.number);
        text += concat(R"({"ph":"b",)", what, id, R"(,"ts":)", microseconds(event.begin - zero),
                       args_of(event), "},\n");
        text += concat(R"({"ph":"e",)", what, id, R"(,"ts":)", microseconds(event.end - zero), "},\n");
        continue;
      }
      text += concat(R"({"ph":"X",)", what, R"(,"ts":)", microseconds(event.begin - zero), R"(,"dur":)",
                     microseconds(event.end - event.begin), args_of(event), "},\n");
    }
  }
  for (const TraceSample& sample : trace.samples()) {
    Json values = Json::object();
    for (int purpose = 0; purpose < kPurposes; ++purpose)
      values[name(static_cast<Purpose>(purpose))] = sample.values[purpose];
    text += concat(R"({"ph":"C","pid":)", rank, R"(,"name":"memory","ts":)", microseconds(sample.time - zero),
                   R"(,"args":)", values.dump(), "},\n");
  }
  return text;
}

}  // namespace jigsaw::inline train
