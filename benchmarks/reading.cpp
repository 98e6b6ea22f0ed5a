// Reads samples of a global 0.25 degree data set as one of n ranks does: bytes that it requests, bytes that
// the system is asked for and fetches from disk, samples per second, memory. One process for each
// measurement; benchmarks/reading.sh runs them all. Prints one JSON line.
//
//   reading write FOLDER [--rows N] [--columns N] [--channels N] [--times N]
//   reading read FOLDER --layout LAYOUT --cut CUT --ranks N [--rank K] [--samples N] [--workers N] [--cold]
//   reading together FOLDER --layout LAYOUT --cut CUT --ranks N [--samples N] [--workers N] [--apart]
//   reading index FOLDER --files N
//
// LAYOUT: contiguous, patches or planes. CUT: latitude, longitude or channels. "together": all ranks at once,
// as processes that keep decompressed chunks together, or each its own (--apart).
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "array/host_view.h"
#include "base/text.h"
#include "comm/self/self.h"
#include "fields/shared_files.h"
#include "files/chunk_cache.h"
#include "files/netcdf_output.h"
#include "files/node_chunks.h"
#include "samples/batch_reader.h"
#include "samples/prefetch.h"
#include "samples/read_layout.h"

namespace {

using namespace jigsaw;
using Json = nlohmann::json;

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// A line "name: number" of a file of /proc; 0 where there is none.
std::int64_t proc_number(const char* file, const std::string& name) {
  std::ifstream text(file);
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with(name + ":")) return std::stoll(line.substr(name.size() + 1));
  }
  return 0;
}

class Arguments {
 public:
  Arguments(int argc, char** argv) {
    for (int i = 3; i < argc; ++i) {
      const std::string name = argv[i];
      values_[name] = name == "--cold" || name == "--apart" || i + 1 == argc ? "1" : argv[++i];
    }
  }
  std::int64_t number(const std::string& name, std::int64_t otherwise) const {
    const auto found = values_.find(name);
    return found == values_.end() ? otherwise : std::stoll(found->second);
  }
  void set(const std::string& name, const std::string& value) { values_[name] = value; }
  std::string text(const std::string& name, const std::string& otherwise) const {
    const auto found = values_.find(name);
    return found == values_.end() ? otherwise : found->second;
  }

 private:
  std::map<std::string, std::string> values_;
};

constexpr std::int64_t kStepHours = 6;
/// Batches that are read before the clock starts: their memory is fresh, which later ones take again, for as
/// many are held at once as in training. No two batches have a state in common, which some readers would
/// keep.
constexpr std::int64_t kFirst = 1 + Prefetch::kDepth;

struct Extents {
  std::int64_t rows = 721, columns = 1440, channels = 69, times = 14;
};

/// Smooth enough to be deflated as fields of an analysis are, by about a half.
float value(std::int64_t channel, std::int64_t time, std::int64_t row, std::int64_t column) {
  const auto x = static_cast<float>(column), y = static_cast<float>(row);
  const std::int64_t noise = (row * 7919 + column * 104729 + time * 1299709 + channel * 15485863) % 251;
  return static_cast<float>(280 + channel) +
         10 * std::sin(x / 90 + static_cast<float>(time)) * std::cos(y / 70) + static_cast<float>(noise) / 64;
}

/// How many chunks each dim of a plane has; 0: the file has none, and nothing is deflated.
constexpr std::pair<const char*, std::int64_t> kContiguous = {"contiguous", 0}, kPatches = {"patches", 8},
                                               kPlanes = {"planes", 1};

void write_file(const std::string& path, const Extents& e, std::int64_t chunks, bool first_year = true,
                std::int64_t year = 0) {
  NetcdfOutput file(path, NetcdfOutput::Format::kNetcdf4);
  const int time_dim = file.add_dimension("time", static_cast<std::size_t>(e.times));
  const int row_dim = file.add_dimension("latitude", static_cast<std::size_t>(e.rows));
  const int column_dim = file.add_dimension("longitude", static_cast<std::size_t>(e.columns));
  const int time = file.add_variable("time", NetcdfOutput::Type::kInt, {time_dim});
  const int latitude = file.add_variable("latitude", NetcdfOutput::Type::kDouble, {row_dim});
  const int longitude = file.add_variable("longitude", NetcdfOutput::Type::kDouble, {column_dim});
  file.add_text(time, "units", "hours since 1980-01-01");
  file.add_text(latitude, "units", "degrees_north");
  file.add_text(longitude, "units", "degrees_east");
  std::vector<int> variables;
  for (std::int64_t c = 0; c < e.channels; ++c) {
    variables.push_back(file.add_variable(concat("v", c).c_str(), NetcdfOutput::Type::kFloat,
                                          {time_dim, row_dim, column_dim}));
    if (chunks > 0) {
      const auto part = [&](std::int64_t extent) {
        return static_cast<std::size_t>(chunk_extent(extent, chunks, 1.3));
      };
      file.add_chunks(variables.back(), {1, part(e.rows), part(e.columns)}, std::size_t{1} << 24);
    }
  }
  file.end_definitions();
  std::vector<int> times;
  for (std::int64_t t = 0; t < e.times; ++t)
    times.push_back(static_cast<int>((year * e.times + t) * kStepHours));
  std::vector<double> rows, columns;
  const double step = 360.0 / static_cast<double>(e.columns);
  for (std::int64_t i = 0; i < e.rows; ++i)
    rows.push_back(90 - 180.0 * static_cast<double>(i) / static_cast<double>(e.rows - 1));
  for (std::int64_t j = 0; j < e.columns; ++j) columns.push_back(step * static_cast<double>(j));
  file.write(time, times);
  file.write(latitude, rows);
  file.write(longitude, columns);
  std::vector<float> plane(static_cast<std::size_t>(e.rows * e.columns));
  for (std::int64_t c = 0; c < e.channels && first_year; ++c) {
    for (std::int64_t t = 0; t < e.times; ++t) {
      for (std::int64_t p = 0; p < std::ssize(plane); ++p)
        plane[static_cast<std::size_t>(p)] = value(c, t, p / e.columns, p % e.columns);
      file.write(variables[static_cast<std::size_t>(c)], {{t, 0, 0}, {1, e.rows, e.columns}}, plane);
    }
  }
  file.close();
}

struct OpenedSet {
  std::unique_ptr<FileSet> files;
  Channels channels;
  Statistics statistics;
};

OpenedSet open_set(const std::string& path) {
  OpenedSet set;
  set.files = std::make_unique<FileSet>(std::vector{path});
  for (const VariableSummary& summary : set.files->catalogue()) {
    Channel channel;
    channel.name = summary.name;
    channel.field = {summary.name, {}};
    set.files->select(channel.field, true);
    set.channels.inputs.push_back(channel);
    set.channels.targets.push_back(channel);
    set.statistics.fields[summary.name] = {"", 280, 10, 1};
  }
  return set;
}

Json read(const std::string& folder, const Arguments& arguments) {
  const std::string path = concat(folder, "/", arguments.text("--layout", "contiguous"), ".nc");
  const std::string cut = arguments.text("--cut", "latitude");
  const std::int64_t ranks = arguments.number("--ranks", 1), rank = arguments.number("--rank", 0);
  OpenedSet set = open_set(path);
  const Field& field = set.channels.inputs[0].field;
  const std::vector<Time> times = set.files->times(field);
  const Shape grid = set.files->grid().shape();
  const auto channels = std::ssize(set.channels.inputs);
  Box piece = Box::whole({1, grid[0], grid[1], channels});
  const int dim = cut == "latitude" ? 1 : cut == "longitude" ? 2 : 3;
  const std::int64_t whole = piece.extent[dim];
  piece.extent[dim] = whole / ranks + (rank < whole % ranks ? 1 : 0);
  piece.begin[dim] = rank * (whole / ranks) + std::min(rank, whole % ranks);
  if (arguments.number("--cold", 0) != 0) {
    const File file(path, O_RDONLY);
    ::fdatasync(file.descriptor());
    ::posix_fadvise(file.descriptor(), 0, 0, POSIX_FADV_DONTNEED);
  }
  const std::int64_t samples = arguments.number("--samples", 4);
  const std::int64_t sample_bytes = 2 * grid.count() * channels * std::int64_t{sizeof(float)};
  const ReadAhead ahead{Prefetch::kDepth, static_cast<std::size_t>(arguments.number("--workers", 1))};
  const std::int64_t memory_before = proc_number("/proc/self/status", "VmRSS") * 1024;
  const std::int64_t requested = set.files->bytes_read(), fetched = set.files->bytes_fetched();
  const std::int64_t asked = proc_number("/proc/self/io", "rchar"),
                     disk = proc_number("/proc/self/io", "read_bytes");
  double begin = seconds_now();
  {
    const Context context = Context::make_host(Backend::kCpu, 1);
    std::mutex mutex;
    std::atomic<std::int64_t> loaded = 0;
    std::vector<std::unique_ptr<BatchReader>> readers;
    struct Counted {
      std::atomic<std::int64_t>& ended;
      ~Counted() { ++ended; }
    };
    const auto load = [&](std::int64_t step) {
      const Counted counted(loaded);
      std::unique_ptr<BatchReader> reader;
      {
        const std::lock_guard lock(mutex);
        if (!readers.empty()) {
          reader = std::move(readers.back());
          readers.pop_back();
        }
      }
      if (!reader) {
        reader = std::make_unique<BatchReader>(*set.files, set.channels, set.statistics, Predict::kState,
                                               static_cast<int>(kStepHours));
      }
      BatchRequest request{
          .times = {times.at(static_cast<std::size_t>(2 * step))}, .input = piece, .target = piece};
      Batch batch = reader->read(request, context);
      const std::lock_guard lock(mutex);
      readers.push_back(std::move(reader));
      return batch;
    };
    Prefetch prefetch(load, 0, kFirst + samples, ahead);
    Batch in_use;
    for (std::int64_t i = 0; i < kFirst + samples; ++i) {
      if (i == kFirst) begin = seconds_now();
      in_use = {};
      in_use = prefetch.next();
      while (i == 0 && loaded < kFirst) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  const double seconds = seconds_now() - begin;
  const auto per_sample = [&](std::int64_t now, std::int64_t before) {
    return static_cast<double>(now - before) / static_cast<double>((kFirst + samples) * sample_bytes);
  };
  const double share = 1.0 / static_cast<double>(ranks);
  const double counted = static_cast<double>(samples) / static_cast<double>(kFirst + samples);
  const auto alive = static_cast<double>(ahead.depth + 1);  // read ahead, and in use
  const std::int64_t memory = proc_number("/proc/self/status", "VmHWM") * 1024 - memory_before;
  const std::int64_t wanted = set.files->bytes_read() - requested;
  return {{"layout", arguments.text("--layout", "contiguous")},
          {"cut", cut},
          {"ranks", ranks},
          {"rank", rank},
          {"requested_over_share", per_sample(set.files->bytes_read(), requested) / share},
          {"fetched", set.files->bytes_fetched() - fetched},
          {"rchar", proc_number("/proc/self/io", "rchar") - asked},
          {"disk_bytes", proc_number("/proc/self/io", "read_bytes") - disk},
          {"requested", wanted},
          {"gigabytes_per_second", static_cast<double>(wanted) * counted / seconds * 1e-9},
          {"samples_per_second", static_cast<double>(samples) / seconds},
          {"memory_over_share",
           static_cast<double>(memory) / (share * static_cast<double>(sample_bytes) * alive)}};
}

/// All ranks at once, as processes of one machine.
Json together(const std::string& folder, Arguments arguments) {
  const auto ranks = static_cast<int>(arguments.number("--ranks", 4));
  std::shared_ptr<NodeChunks> node;
  if (arguments.number("--apart", 0) == 0) node = NodeChunks::make(ChunkCache::most_bytes());
  const double begin = seconds_now();
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t child = ::fork();
    if (child < 0) throw Error(ExitCode::kInternal, "no more processes");
    if (child > 0) continue;
    ChunkCache::shared().share(rank, ranks, node ? NodeChunks::open(node->address()) : nullptr);
    arguments.set("--rank", std::to_string(rank));
    const Json line = read(folder, arguments);
    std::cerr << line.dump() + "\n";
    ::_exit(0);
  }
  bool good = true;
  for (int status = 0; ::wait(&status) > 0;) good = good && status == 0;
  const double seconds = seconds_now() - begin;
  if (!good) throw Error(ExitCode::kInternal, "a rank failed");
  return {{"ranks", ranks}, {"together", node != nullptr}, {"seconds", seconds}};
}

/// Opens files as a run does, and all their channels; seconds.
double open_all(const std::vector<std::string>& paths, std::int64_t channels,
                const std::filesystem::path& cache) {
  Context context = Context::make_host(Backend::kCpu, 1);
  const auto world = make_self_communicator(context);
  const double begin = seconds_now();
  FileSet files(paths, {}, share_files(paths, Dimensions::kByName, External::kRefused, cache, *world));
  for (std::int64_t c = 0; c < channels; ++c) files.select({concat("v", c), {}}, true);
  return seconds_now() - begin;
}

/// The headers and times of so many yearly files, hourly, with all channels: by a first run, and by one that
/// finds what that kept.
Json index(const std::string& folder, const Arguments& arguments) {
  Extents extents{721, 1440, arguments.number("--channels", 69), 8760};
  const std::int64_t count = arguments.number("--files", 40);
  std::vector<std::string> paths;
  for (std::int64_t year = 0; year < count; ++year) {
    paths.push_back(concat(folder, "/year_", year, ".nc"));
    if (!std::filesystem::exists(paths.back()))
      write_file(paths.back(), extents, kPatches.second, false, year);
  }
  std::this_thread::sleep_for(std::chrono::seconds(3));  // of what was written just now nothing is kept
  const std::filesystem::path cache = folder + "/cache";
  std::filesystem::remove_all(cache);
  const double first = open_all(paths, extents.channels, cache);
  return {{"files", count},
          {"seconds", first},
          {"seconds_of_the_next_run", open_all(paths, extents.channels, cache)}};
}

Json write(const std::string& folder, const Arguments& arguments) {
  const Extents extents{arguments.number("--rows", 721), arguments.number("--columns", 1440),
                        arguments.number("--channels", 69), arguments.number("--times", 14)};
  std::filesystem::create_directories(folder);
  Json sizes = Json::object();
  for (const auto& [layout, chunks] : {kContiguous, kPatches, kPlanes}) {
    const std::string path = concat(folder, "/", layout, ".nc");
    if (std::filesystem::exists(path)) continue;
    write_file(path + ".part", extents, chunks);
    std::filesystem::rename(path + ".part", path);
    sizes[path] = std::filesystem::file_size(path);
  }
  return sizes;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::string what = argc > 2 ? argv[1] : "";
    const Arguments arguments(argc, argv);
    if (what == "write") {
      std::cout << write(argv[2], arguments).dump() << "\n";
    } else if (what == "read") {
      std::cout << read(argv[2], arguments).dump() << "\n";
    } else if (what == "together") {
      std::cout << together(argv[2], arguments).dump() << "\n";
    } else if (what == "index") {
      std::filesystem::create_directories(argv[2]);
      std::cout << index(argv[2], arguments).dump() << "\n";
    } else {
      std::cerr << "usage: reading write|read|together|index FOLDER [options]\n";
      return 2;
    }
  } catch (const std::exception& error) {
    std::cerr << "reading: " << error.what() << "\n";
    return 1;
  }
}
