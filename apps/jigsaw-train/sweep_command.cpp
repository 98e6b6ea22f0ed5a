#include <sys/auxv.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <set>

#include "base/cores.h"
#include "base/disk.h"
#include "base/text.h"
#include "comm/agreement.h"
#include "commands.h"
#include "job.h"
#include "kernels/cuda_context.h"
#include "local_runs.h"
#include "printed.h"
#include "samples/channels.h"
#include "sweep/comparable.h"
#include "sweep/status_table.h"
#include "sweep/successive_halving.h"
#include "sweep/whole_ranges.h"
#include "task/configuration.h"
#include "task/metric.h"
#include "task/scores.h"

namespace jigsaw {
namespace {

/// A search over keys of a configuration; see sweep/search_space.h.
struct SweepArguments {
  std::string grid;
  std::optional<std::int64_t> index;  ///< of the run; else the array task's number that SLURM gives
  bool list = false;                  ///< print the runs
  bool size = false;                  ///< print how many tasks there are
  bool summary = false;               ///< print how the runs stand
  bool state = false;                 ///< print how the one run stands
  bool states = false;                ///< print how each task stands
  int gave_up = 0;                    ///< the run ended so, and is not to be waited for; 0: nothing is noted
  std::string format = "table";       ///< of the summary: table, json or csv
  int local = 0;                      ///< run all here, so many at a time
  int ranks = 1;                      ///< of each run under `local`

  /// Whether it trains in this process, on all ranks that were launched.
  bool trains() const {
    return !list && !size && !summary && !state && !states && gave_up == 0 && local == 0;
  }
};

/// A sweep as its files and the command line say it.
struct Sweep {
  SearchSpace space;
  Json json;  ///< of the configuration, as it was given
  Configuration base;
  std::vector<Assignment> wanted;
  std::filesystem::path folder;
  std::vector<HalvingRound> rounds;  ///< of successive halving; else empty
  Keys<Configuration> keys = keys_of<Configuration>();

  /// The configuration with what a run sets.
  Json changed(const Assignment& run) const {
    Json changed = json;
    for (const auto& [key, value] : run) apply_override(changed, concat(key, "=", value.dump()));
    return changed;
  }
  bool accepts(const Assignment& run) const {
    try {
      parse(keys, changed(run));
      return true;
    } catch (const ConfigError&) {
      return false;
    }
  }
  bool halving() const { return space.method == SearchMethod::kHalving; }
  std::size_t tasks(const RunList& list) const {
    if (!halving()) return list.runs().size();
    std::int64_t sum = 0;
    for (const HalvingRound& round : rounds) sum += round.runs;
    return static_cast<std::size_t>(sum);
  }
};

/// The target in the name of a metric: what stands before a measure of the task, or else before its first
/// dot.
std::string target_of(std::string metric, const std::vector<std::string>& measures) {
  const std::string leads = "leads.";
  if (metric.starts_with(leads)) metric.erase(0, std::min(metric.size(), metric.find('.', leads.size())) + 1);
  for (const std::string& measure : measures) {
    if (metric.size() > measure.size() + 1 && metric.ends_with("." + measure))
      return metric.substr(0, metric.size() - measure.size() - 1);
  }
  const std::size_t dot = metric.find('.');
  return dot == std::string::npos ? "" : metric.substr(0, dot);
}

/// Whether validations can give what runs are judged by, as far as the configuration says it. Channels of
/// images show in their files alone: there any target is taken for one.
/// @throws ConfigError
void check_metric(const SearchSpace& space, const Configuration& run) {
  if (space.method == SearchMethod::kHalving && run.validation.every == 0)
    throw ConfigError("a sweep by successive halving needs validations: set validation.every and data.valid");
  std::vector<std::string> targets;
  if (run.data.dims.empty()) {
    targets = channel_names(make_channels(run.data, false).targets);
  } else if (std::string target = target_of(space.metric, score_measures(run.data, run.ensemble.members));
             !target.empty()) {
    targets.push_back(std::move(target));
  }
  require_number("metric", space.metric, run, targets);
}

/// What the command line sets of keys that all runs set in whole would say nothing.
/// @throws ConfigError
void refuse_replaced(const std::vector<Assignment>& runs, const std::vector<std::string>& overrides) {
  for (const std::string& text : overrides) {
    const std::string given = text.substr(0, text.find('='));
    for (const auto& [key, value] : runs.front()) {
      const bool within = given.starts_with(key) && given.size() > key.size() &&
                          (given[key.size()] == '.' || given[key.size()] == '[');
      const auto sets_it = [&key = key](const Assignment& run) { return run.contains(key); };
      if ((given != key && !within) || !std::ranges::all_of(runs, sets_it)) continue;
      throw ConfigError(concat("command line: --set ", given,
                               " has no effect, for all runs of the sweep set ", key,
                               "; leave it out, or write it into the sweep's values"));
    }
  }
}

Sweep open_sweep(const SweepArguments& options, const ConfigArguments& arguments) {
  if (arguments.config.empty()) throw ConfigError("command line: sweep needs --config FILE beside --grid");
  Sweep sweep;
  sweep.json = configuration_json(arguments);
  sweep.base = parse(sweep.keys, sweep.json);
  sweep.space = parse<SearchSpace>(load_config(options.grid, "sweep"));
  draw_whole_numbers(sweep.space, [&](const Assignment& run) { return sweep.accepts(run); });
  sweep.wanted = candidates(sweep.space, to_json(sweep.base));
  if (sweep.wanted.empty()) throw ConfigError("the sweep has no run: one of its keys has no values");
  refuse_replaced(sweep.wanted, arguments.overrides);
  if (const auto different = std::ssize(sweep.wanted); different < sweep.space.count) {
    print_warning(concat("of ", sweep.space.count, " runs that were asked for draws found ", different,
                         " different ones: the sweep has ", counted(different, "run")),
                  0, 1);
  }
  sweep.folder = sweep.space.output.value_or(sweep.base.output + "_sweep");
  if (sweep.halving()) {
    if (!sweep.base.train.steps)
      throw ConfigError(
          "train.steps must be given for a sweep by successive halving: its last round trains so long");
    sweep.rounds = halving_rounds(sweep.space.halving, static_cast<std::int64_t>(sweep.wanted.size()),
                                  *sweep.base.train.steps);
  }
  return sweep;
}

/// The configuration of every run that is new is read before the list has it: a wrong key or value shows
/// before the first run, not in the last; what the list has was read when it came there.
RunList::Check check_of(const Sweep& sweep) {
  return [&sweep](const Assignment& run) {
    try {
      check_metric(sweep.space, parse(sweep.keys, sweep.changed(run)));
    } catch (const ConfigError& error) {
      throw ConfigError(concat("the sweep's run ", Json(run).dump(), ": ", error.what(),
                               wants_whole_numbers(sweep.space, run, [&](const Assignment& other) {
                                 return sweep.accepts(other);
                               })));
    }
  };
}

/// Says by what runs are compared that does not compare.
void warn_of_comparison(const Sweep& sweep, const RunList& list) {
  std::vector<Assignment> runs;
  for (const SweepRun& run : list.runs()) runs.push_back(run.set);
  for (const std::string& remark : {choice_remark("best_is", sweep.space.metric, sweep.space.best_is),
                                    comparison_remark(sweep.space, runs, sweep.base)})
    if (!remark.empty()) print_warning(remark, 0, 1);
}

/// How the runs stand, of which what cannot be compared is said.
std::vector<SweepRow> rows_of(const Sweep& sweep, const RunList& list) {
  std::vector<SweepRow> rows = sweep_rows(sweep.space, list, sweep.rounds);
  for (const std::string& remark : row_remarks(sweep.space, rows)) print_warning(remark, 0, 1);
  return rows;
}

/// A task of the sweep: which run, and what it sets.
struct Task {
  SweepRun run;
  std::filesystem::path folder;
  std::vector<std::string> overrides;
  RunStatus before;  ///< how the run stood when this start of it began
};

Task task_at(const Sweep& sweep, const RunList& list, std::int64_t index) {
  Task task;
  if (sweep.halving()) {
    const std::optional<HalvingTask> place = halving_task(sweep.rounds, index);
    if (!place)
      throw ConfigError(concat("the sweep has no task ", index, ": the last one is ", sweep.tasks(list) - 1));
    task.run = halving_participants(sweep.space, list, sweep.rounds, place->round)[place->place];
    task.overrides.push_back(concat("train.steps=", sweep.rounds[place->round].steps));
  } else {
    if (index >= static_cast<std::int64_t>(list.runs().size()))
      throw ConfigError(concat("the sweep has no run ", index, ": the last one is ", list.runs().size() - 1));
    task.run = list.runs()[static_cast<std::size_t>(index)];
  }
  for (const auto& [key, value] : task.run.set) task.overrides.push_back(concat(key, "=", value.dump()));
  task.folder = list.folder_of(task.run);
  task.overrides.push_back(concat("output=", Json(task.folder.string()).dump()));
  return task;
}

std::int64_t index_of(const SweepArguments& options) {
  if (options.index) return *options.index;
  const char* text = std::getenv("SLURM_ARRAY_TASK_ID");
  if (text == nullptr)
    throw ConfigError(
        "command line: sweep needs --index K where no SLURM_ARRAY_TASK_ID is set (or --list, --summary, "
        "--local)");
  std::int64_t index = -1;
  const std::string_view digits = text;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  if (error != std::errc() || end != digits.data() + digits.size() || index < 0)
    throw ConfigError(concat("SLURM_ARRAY_TASK_ID is ", quote(text), ", not the number of a run"));
  return index;
}

/// @throws ConfigError
void make_folder(const std::filesystem::path& folder) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (!failed && std::filesystem::is_directory(folder, failed)) return;
  refuse_output<ConfigError>(failed,
                             concat("output: cannot create the run's folder ", quote(folder.string()), ": ",
                                    failed ? failed.message() : "there is a file of this name"));
}

/// Rank 0 looks the task up and begins it; all ranks hear what it sets.
Task begin_task(const SweepArguments& options, const ConfigArguments& arguments, Communicator& world) {
  Task task;
  together(world, [&] {
    if (world.rank() != 0) return;
    const Sweep sweep = open_sweep(options, arguments);
    const RunList list = RunList::update(sweep.folder, sweep.wanted, check_of(sweep));
    task = task_at(sweep, list, index_of(options));
    warn_of_comparison(sweep, list);
    make_folder(task.folder);
    task.before = run_status(task.folder, sweep.space.metric);
    // While another start trains it this one will be refused.
    if (task.before.state != RunState::kRunning) write_exit_code(task.folder, std::nullopt);
    std::cout << "run " << task.run.name << " of the sweep" << std::endl;
  });
  task.overrides =
      Json::parse(world.broadcast_text(Json(task.overrides).dump())).get<std::vector<std::string>>();
  return task;
}

/// Notes how a start ended. One that was refused, for another one trains the run, or before the first step of
/// a run that had finished, says nothing of the run, which stands as it did.
void note_end(const Task& task, ExitCode code) {
  const RunStatus now = run_status(task.folder, "loss");
  const bool refused = (code == ExitCode::kConfig || code == ExitCode::kData) && now.step == task.before.step;
  if (now.state == RunState::kRunning || (refused && task.before.state == RunState::kRunning)) return;
  const bool stands = refused && task.before.state == RunState::kFinished;
  write_exit_code(task.folder, stands ? task.before.exit_code : static_cast<int>(code));
}

ExitCode train_task(const SweepArguments& options, const Invocation& invocation) {
  const TrainArguments& train = invocation.train;
  Task begun;  // on rank 0
  const ExitCode code = run_training(train, invocation.command_line, [&](Communicator& world) {
    const Task task = begin_task(options, train.configuration, world);
    begun = task;
    ConfigArguments arguments = train.configuration;
    arguments.overrides.insert(arguments.overrides.end(), task.overrides.begin(), task.overrides.end());
    return arguments;
  });
  if (!begun.folder.empty()) note_end(begun, code);
  return code;
}

/// The file of this program; in containers without /proc by what it was started as.
std::string this_executable() {
  std::error_code error;
  const auto named = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) return named.string();
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the auxiliary vector holds pointers as numbers
  return std::filesystem::absolute(reinterpret_cast<const char*>(::getauxval(AT_EXECFN))).string();
}

/// @param at_once  how many runs share this machine
LocalRun local_run(const Sweep& sweep, const RunList& list, const SweepArguments& options,
                   const TrainArguments& train, std::int64_t index, std::int64_t at_once) {
  const SweepRun run = task_at(sweep, list, index).run;
  make_folder(list.folder_of(run));
  LocalRun local{run.name, {}, (list.folder_of(run) / "output.txt").string()};
  // Runs that go at once share the cores.
  if (at_once > 1 && std::getenv("OMP_NUM_THREADS") == nullptr) {
    const std::int64_t threads = usable_cores() / (at_once * options.ranks);
    local.variables = {concat("OMP_NUM_THREADS=", std::max<std::int64_t>(threads, 1))};
  }
  if (options.ranks > 1) local.command = {"mpirun", "-n", concat(options.ranks), "--bind-to", "none"};
  for (const std::string& word :
       {this_executable(), std::string("sweep"), std::string("--config"), train.configuration.config,
        std::string("--grid"), options.grid, std::string("--index"), concat(index)}) {
    local.command.push_back(word);
  }
  for (const std::string& text : train.configuration.overrides)
    local.command.insert(local.command.end(), {"--set", text});
  if (train.max_minutes > 0)
    local.command.insert(local.command.end(), {"--max-minutes", concat(train.max_minutes)});
  for (const auto& [option, value] :
       {std::pair{"--resume", train.resume}, std::pair{"--init-from", train.init_from},
        std::pair{"--trace-steps", train.trace_steps}}) {
    if (!value.empty()) local.command.insert(local.command.end(), {option, value});
  }
  for (const auto& [flag, given] :
       {std::pair{"--allow-change", train.allow_change}, std::pair{"--no-verify", train.no_verify},
        std::pair{"--profile", train.profile}, std::pair{"--find-nan", train.find_nan}}) {
    if (given) local.command.emplace_back(flag);
  }
  return local;
}

/// CUDA_VISIBLE_DEVICES for each of so many runs at a time: its share of the GPUs that this process sees, one
/// for each of its ranks at least, which it shares with others where they are fewer; none where there are
/// none.
std::vector<std::string> gpu_shares(std::size_t runs, std::size_t ranks) {
  std::vector<std::string> gpus;
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (visible != nullptr) gpus = split(visible, ',');
  const auto count = static_cast<std::size_t>(cuda_device_count());
  if (count == 0) return {};
  for (std::size_t i = gpus.size(); i < count && visible == nullptr; ++i) gpus.push_back(concat(i));
  // CUDA sees none behind one that is not there; of slices of GPUs it shows a process one.
  const bool slices = visible != nullptr && std::string_view(visible).starts_with("MIG-");
  if (!slices) gpus.resize(std::min(gpus.size(), count));
  std::vector<std::string> shares(runs);
  for (std::size_t i = 0; i < runs; ++i) {
    const std::size_t first = i * gpus.size() / runs, end = (i + 1) * gpus.size() / runs;
    std::vector<std::string> own;
    for (std::size_t n = 0; n < std::min(gpus.size(), std::max(ranks, end - first)); ++n)
      own.push_back(gpus[(first + n) % gpus.size()]);
    shares[i] = join(own, ",");
  }
  return shares;
}

/// What a sweep ends with whose runs failed with these: with the code of all of them, where they share one of
/// ours.
ExitCode code_of_failures(const std::set<int>& codes) {
  const bool ours = codes.size() == 1 && *codes.begin() <= static_cast<int>(ExitCode::kNonFinite);
  return ours ? static_cast<ExitCode>(*codes.begin()) : ExitCode::kInternal;
}

/// Rounds one after the other, the runs of a round so many at a time.
ExitCode train_all(const SweepArguments& options, const TrainArguments& train) {
  const Sweep sweep = open_sweep(options, train.configuration);
  const RunList list = RunList::update(sweep.folder, sweep.wanted, check_of(sweep));
  warn_of_comparison(sweep, list);
  std::vector<std::int64_t> sizes;
  for (const HalvingRound& round : sweep.rounds) sizes.push_back(round.runs);
  if (sizes.empty()) sizes.push_back(static_cast<std::int64_t>(list.runs().size()));
  const std::vector<std::string> shares =
      gpu_shares(static_cast<std::size_t>(options.local), static_cast<std::size_t>(options.ranks));
  std::set<int> failures;  // exit codes
  bool goes_on = false;    // a run, or a round, when the sweep is started again
  std::int64_t first = 0;
  for (const std::int64_t size : sizes) {
    std::vector<LocalRun> runs;
    std::vector<RunState> before;
    for (std::int64_t i = 0; i < size; ++i) {
      runs.push_back(
          local_run(sweep, list, options, train, first + i, std::min<std::int64_t>(options.local, size)));
      before.push_back(how_it_ended(sweep.folder / runs.back().name).state);
    }
    const bool stopped = run_locally(runs, options.local, shares, [&](std::size_t i, int exit_code) {
      const std::string& run = runs[i].name;
      const RunStatus status = run_status(sweep.folder / run, sweep.space.metric);
      // Refused, for another start of the sweep trains it, or has just ended it: note_end() says nothing of
      // that.
      const bool others = exit_code == static_cast<int>(ExitCode::kConfig) &&
                          status.state != RunState::kFailed &&
                          (status.state == RunState::kRunning || status.state != before[i]);
      std::cout << run << ": "
                << (others            ? "trained by another process, now"
                    : exit_code == 0  ? "finished"
                    : exit_code == 75 ? "stopped"
                                      : concat("failed with exit code ", exit_code))
                << " at step " << status.step
                << (status.metric ? concat(", ", sweep.space.metric, " ", *status.metric) : std::string())
                << std::endl;
      if (exit_code == static_cast<int>(ExitCode::kStopped)) {
        goes_on = true;
      } else if (exit_code != 0 && !others) {
        failures.insert(exit_code);
      }
    });
    if (stopped) return ExitCode::kStopped;
    first += size;
  }
  const std::vector<SweepRow> rows = rows_of(sweep, list);
  std::cout << summary_text(sweep.space, rows) << std::flush;
  if (failures.empty()) return goes_on ? ExitCode::kStopped : ExitCode::kDone;
  throw Error(code_of_failures(failures),
              concat("runs of the sweep failed; their output is in output.txt of their folders in ",
                     sweep.folder.string()));
}

/// A line each, "7 failed 137". Who takes part in a later round of successive halving may not be known yet.
void print_states(const Sweep& sweep, const RunList& list) {
  std::int64_t number = 0;
  const auto print = [&](const RunStatus& status) {
    std::cout << number++ << " " << name(status.state);
    if (status.exit_code) std::cout << " " << *status.exit_code;
    std::cout << '\n';
  };
  const auto print_all = [&](const std::vector<SweepRun>& runs) {
    for (const SweepRun& run : runs) print(how_it_ended(list.folder_of(run)));
  };
  if (!sweep.halving()) return print_all(list.runs());
  for (std::size_t round = 0; round < sweep.rounds.size(); ++round) {
    try {
      print_all(halving_participants(sweep.space, list, sweep.rounds, round));
    } catch (const NotYet&) {
      for (std::int64_t i = 0; i < sweep.rounds[round].runs; ++i) print({});
    }
  }
}

void print_list(const Sweep& sweep, const RunList& list) {
  for (std::size_t i = 0; i < list.runs().size(); ++i)
    std::cout << i << "  " << list.runs()[i].name << "  " << Json(list.runs()[i].set).dump() << '\n';
  std::size_t first = 0;
  for (std::size_t round = 0; round < sweep.rounds.size(); ++round) {
    const auto size = static_cast<std::size_t>(sweep.rounds[round].runs);
    std::cout << "tasks " << first << " to " << first + size - 1 << ": round " << round + 1 << ", up to step "
              << sweep.rounds[round].steps << '\n';
    first += size;
  }
}

ExitCode run_sweep(const SweepArguments& options, const Invocation& invocation) {
  const TrainArguments& train = invocation.train;
  if (options.trains()) return train_task(options, invocation);
  if (launched_rank() != 0) return ExitCode::kDone;
  if (options.local > 0 && !train.trace.empty()) {
    throw ConfigError(
        "command line: --trace is one file, and --local trains several runs; trace one of them with --index");
  }
  if (options.local > 0 && std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr) {
    throw ConfigError(
        "command line: --local starts the ranks of each run itself, as many as --ranks says; start it "
        "without mpirun");
  }
  if (options.local > 0) return train_all(options, train);
  const Sweep sweep = open_sweep(options, train.configuration);
  // What only asks how runs stand reads no configurations.
  const bool checks = options.list || options.size;
  const RunList list =
      RunList::preview(sweep.folder, sweep.wanted, checks ? check_of(sweep) : RunList::Check());
  if (options.states) {
    print_states(sweep, list);
  } else if (options.state || options.gave_up > 0) {
    const Task task = task_at(sweep, list, index_of(options));
    const RunStatus status = how_it_ended(task.folder);
    if (options.state) {
      std::cout << name(status.state);
      if (status.exit_code) std::cout << " " << *status.exit_code;
      std::cout << '\n';
    } else if (status.state == RunState::kInterrupted || status.state == RunState::kWaiting) {
      write_exit_code(task.folder, options.gave_up);
    }
  } else if (options.size) {
    std::cout << sweep.tasks(list) << '\n';
  } else if (options.list) {
    warn_of_comparison(sweep, list);
    print_list(sweep, list);
  } else {
    warn_of_comparison(sweep, list);
    const std::vector<SweepRow> rows = rows_of(sweep, list);
    if (options.format == "json") {
      std::cout << summary_json(sweep.space, rows).dump(2) << '\n';
    } else {
      std::cout << (options.format == "csv" ? summary_csv(sweep.space, rows)
                                            : summary_text(sweep.space, rows));
    }
  }
  require_printed();
  return ExitCode::kDone;
}

}  // namespace

std::function<ExitCode()> declare_sweep(const CommandOptions& command, const Invocation& invocation) {
  auto options = std::make_shared<SweepArguments>();
  command.fallthrough();
  command.add_option("--grid", options->grid, "The search (JSON; docs/cluster.md)").required().not_empty();
  command.add_option("--index", options->index, "Number of the run; default SLURM_ARRAY_TASK_ID")
      .not_negative();
  const CommandOptions what = command.add_choice("instead of training");
  what.add_flag("--list", options->list, "Print the runs and what each sets");
  what.add_flag("--size", options->size, "Print how many tasks there are");
  what.add_flag("--summary", options->summary, "Print how the runs stand, and the best");
  what.add_flag("--state", options->state, "Print how the run of --index stands, and its last exit code");
  what.add_flag("--states", options->states,
                "Print how each task stands: its number, state and last exit code");
  what.add_option("--gave-up", options->gave_up,
                  "Note that the run of --index was killed, with this exit code, and is not started again")
      .within(1, 255);
  what.add_option("--local", options->local, "Train all runs on this machine, so many at a time").positive();
  command.add_option("--format", options->format, "Of the summary: table, json or csv")
      .one_of({"table", "json", "csv"});
  command.add_option("--ranks", options->ranks, "With --local: ranks of each run (mpirun)").positive();
  return [options, &invocation] { return run_sweep(*options, invocation); };
}

}  // namespace jigsaw
