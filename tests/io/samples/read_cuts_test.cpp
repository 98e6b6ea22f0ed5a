// What ranks request and what the system is asked for when a batch is cut.
#include <netcdf.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>

#include "array/host_view.h"
#include "base/text.h"
#include "files/chunk_cache.h"
#include "files/node_chunks.h"
#include "io/fixtures.h"
#include "io/netcdf_writer.h"
#include "samples/batch_reader.h"
#include "support/temporary_folder.h"

namespace jigsaw {
namespace read_cuts_test {

using testing::NetcdfWriter;
using testing::TemporaryFolder;

constexpr std::int64_t kTimes = 2, kRows = 96, kColumns = 192, kVariables = 16;

/// All over the place, so that every patch deflates alike.
double value(std::int64_t variable, std::int64_t time, std::int64_t row, std::int64_t column) {
  const std::int64_t point = ((variable * kTimes + time) * kRows + row) * kColumns + column;
  return static_cast<double>(static_cast<std::uint64_t>(point) * 0x9e3779b97f4a7c15ULL >> 44U);
}

/// Of planes, chunks hold all points of a time; of a series, of four times.
enum class Layout { kContiguous, kPatches, kPlanes, kSeries };

/// Times on the hours 0, 6, …; patches are of 12 x 24 points. Chunks are deflated.
/// @param kinds  of variables: one is packed in double, one lacks values.
void write(const std::string& path, Layout layout, std::int64_t count = kTimes, bool kinds = false) {
  const bool chunked = layout != Layout::kContiguous;
  NetcdfWriter file(path, chunked ? NC_NETCDF4 : NC_64BIT_OFFSET);
  const std::vector<int> dims = {file.dimension("time", static_cast<std::size_t>(count)),
                                 file.dimension("latitude", kRows), file.dimension("longitude", kColumns)};
  const int time = file.variable("time", NC_INT, {dims[0]});
  const int latitude = file.variable("latitude", NC_DOUBLE, {dims[1]});
  const int longitude = file.variable("longitude", NC_DOUBLE, {dims[2]});
  file.text(time, "units", "hours since 2020-01-01");
  file.text(latitude, "units", "degrees_north");
  file.text(longitude, "units", "degrees_east");
  std::vector<int> variables;
  for (std::int64_t v = 0; v < kVariables; ++v) {
    variables.push_back(file.variable("v" + std::to_string(v), NC_FLOAT, dims));
    if (kinds && v == 4) file.number(variables.back(), "scale_factor", NC_DOUBLE, 0.1);
    if (kinds && v == 6) file.number(variables.back(), "valid_max", NC_FLOAT, 1e6);
    if (!chunked) continue;
    std::array<std::size_t, 3> chunks = {1, kRows, kColumns};
    if (layout == Layout::kPatches) chunks = {1, 12, 24};
    if (layout == Layout::kSeries) chunks[0] = 4;
    NetcdfWriter::check(nc_def_var_chunking(file.root(), variables.back(), NC_CHUNKED, chunks.data()));
    NetcdfWriter::check(nc_def_var_deflate(file.root(), variables.back(), 1, 1, 1));
  }
  file.end();
  std::vector<double> hours, rows, columns;
  for (std::int64_t t = 0; t < count; ++t) hours.push_back(6 * static_cast<double>(t));
  file.put(time, hours);
  for (std::int64_t i = 0; i < kRows; ++i) rows.push_back(80 - 1.5 * static_cast<double>(i));
  for (std::int64_t j = 0; j < kColumns; ++j) columns.push_back(static_cast<double>(j));
  file.put(latitude, rows);
  file.put(longitude, columns);
  for (std::int64_t v = 0; v < kVariables; ++v) {
    std::vector<double> values;
    for (std::int64_t t = 0; t < count; ++t) {
      for (std::int64_t i = 0; i < kRows; ++i) {
        for (std::int64_t j = 0; j < kColumns; ++j) values.push_back(value(v, t, i, j));
      }
    }
    file.put(variables[static_cast<std::size_t>(v)], values);
  }
}

struct Bytes {
  std::int64_t requested = 0, fetched = 0;
};

/// A file with all its variables selected, as inputs and targets.
struct Opened {
  FileSet files;
  Channels channels;
  Statistics statistics;
  Bytes before;

  explicit Opened(const std::string& path) : files({path}) {
    for (std::int64_t v = 0; v < kVariables; ++v) {
      const Field field{"v" + std::to_string(v), {}};
      files.select(field, true);
      Channel channel;
      channel.name = field.name();
      channel.field = field;
      channels.inputs.push_back(channel);
      channels.targets.push_back(channel);
      statistics.fields[field.name()] = {"", 0, 1, 1};
    }
    before = {files.bytes_read(), files.bytes_fetched()};
  }
  BatchReader reader() { return {files, channels, statistics, Predict::kState, 6 * kHour}; }
  /// Since it was opened.
  Bytes bytes() const {
    return {files.bytes_read() - before.requested, files.bytes_fetched() - before.fetched};
  }
};

/// One rank reads its piece of a sample; every value is checked.
Bytes read_piece(const std::string& path, const Box& piece) {
  Opened opened(path);
  BatchReader reader = opened.reader();
  const Context context = Context::make_host(Backend::kReference, 1);
  BatchRequest request{.times = {at("2020-01-01")}, .input = piece, .target = piece};
  const Batch batch = reader.read(request, context);
  const HostView<const float> input(batch.input), target(batch.targets[0]);
  std::size_t n = 0;
  for (std::int64_t i = piece.begin[1]; i < piece.end(1); ++i) {
    for (std::int64_t j = piece.begin[2]; j < piece.end(2); ++j) {
      for (std::int64_t v = piece.begin[3]; v < piece.end(3); ++v, ++n) {
        EXPECT_EQ(input[n], static_cast<float>(value(v, 0, i, j)));
        EXPECT_EQ(target[n], static_cast<float>(value(v, 1, i, j)));
      }
    }
  }
  return opened.bytes();
}

/// The most that one of n ranks needs of what one alone does, when a dim of the batch is cut.
void expect_shares(Layout layout, int dim, double fetched_limit) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/data.nc";
  write(path, layout);
  const Box whole = Box::whole({1, kRows, kColumns, kVariables});
  const Bytes all = read_piece(path, whole);
  EXPECT_EQ(all.requested, 2 * kRows * kColumns * kVariables * 4);
  for (const std::int64_t ranks : {2, 4, 8}) {
    for (const std::int64_t rank : {std::int64_t{0}, ranks - 1}) {
      Box piece = whole;
      piece.extent[dim] /= ranks;
      piece.begin[dim] = rank * piece.extent[dim];
      const Bytes own = read_piece(path, piece);
      const double n = static_cast<double>(ranks);
      EXPECT_LE(static_cast<double>(own.requested), 1.1 / n * static_cast<double>(all.requested)) << ranks;
      EXPECT_LE(static_cast<double>(own.fetched), fetched_limit / n * static_cast<double>(all.fetched))
          << ranks;
    }
  }
}

/// Fields of all kinds, in parts of a file's planes, of samples that share states.
BatchRequest request_of_samples(DType dtype) {
  const std::vector<Time> times = {at("2020-01-01"), at("2020-01-01T06:00"), at("2020-01-01")};
  return {.times = times,
          .input = {{0, 0, 0, 0}, {3, kRows, kColumns, kVariables}},
          .target = {{1, 5, 20, 3}, {2, 90, 150, 9}},
          .rollout = 2,
          .baseline = true,
          .dtype = dtype,
          .origin = true};
}

void expect_same(const Array& a, const Array& b) {
  ASSERT_EQ(a.shape(), b.shape());
  const auto same = [](const auto& one, const auto& other) {
    for (std::size_t i = 0; i < one.size(); ++i)
      ASSERT_TRUE(one[i] == other[i] || (std::isnan(one[i]) && std::isnan(other[i]))) << i;
  };
  if (a.dtype() == DType::kFloat64) {
    same(HostView<const double>(a), HostView<const double>(b));
  } else {
    same(HostView<const float>(a), HostView<const float>(b));
  }
}

TEST(ReadCuts, StreamedBatchesAreThoseOfDecodedChunks) {
  const TemporaryFolder folder;
  const std::string plain = folder.path() + "/plain.nc", packed = folder.path() + "/packed.nc";
  write(plain, Layout::kContiguous, 4, true);
  write(packed, Layout::kPatches, 4, true);
  const Context context = Context::make_host(Backend::kReference, 1);
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    Opened streamed(plain), decoded(packed);
    const BatchRequest request = request_of_samples(dtype);
    const Batch a = streamed.reader().read(request, context), b = decoded.reader().read(request, context);
    expect_same(a.input, b.input);
    expect_same(a.present, b.present);
    expect_same(a.baseline, b.baseline);
    expect_same(a.origin, b.origin);
    ASSERT_EQ(a.targets.size(), 2U);
    for (std::size_t lead = 0; lead < 2; ++lead) expect_same(a.targets[lead], b.targets[lead]);
    EXPECT_EQ(streamed.bytes().requested, decoded.bytes().requested);
    // Lead by lead, of which the second takes states that the first has read.
    BatchReader reader = streamed.reader();
    for (int lead = 0; lead < 2; ++lead) {
      BatchRequest one = request;
      one.lead = lead;
      const Batch part = reader.read(one, context);
      expect_same(part.target(lead), b.target(lead));
    }
  }
}

/// A file of its own for each state: more than a process may have open.
TEST(ReadCuts, ManyFilesAreNotHeldOpenTogether) {
  const TemporaryFolder folder;
  constexpr std::int64_t kFiles = 120;
  std::vector<std::string> paths;
  BatchRequest request{.input = {{0, 0, 0, 0}, {kFiles - 1, 2, 3, 1}},
                       .target = {{0, 0, 0, 0}, {kFiles - 1, 2, 3, 1}}};
  for (std::int64_t n = 0; n < kFiles; ++n) {
    paths.push_back(concat(folder.path(), "/", n, ".nc"));
    NetcdfWriter file(paths.back(), NC_64BIT_OFFSET);
    const std::vector<int> dims = {file.dimension("time", 1), file.dimension("latitude", 2),
                                   file.dimension("longitude", 3)};
    const int time = file.variable("time", NC_INT, {dims[0]});
    const int latitude = file.variable("latitude", NC_DOUBLE, {dims[1]});
    const int longitude = file.variable("longitude", NC_DOUBLE, {dims[2]});
    file.text(time, "units", "hours since 2020-01-01");
    file.text(latitude, "units", "degrees_north");
    file.text(longitude, "units", "degrees_east");
    const int values = file.variable("v0", NC_FLOAT, dims);
    file.end();
    const auto number = static_cast<double>(n);
    file.put(time, std::vector{6 * number});
    file.put(latitude, std::vector{1.0, 0.0});
    file.put(longitude, std::vector{0.0, 1.0, 2.0});
    file.put(values, std::vector<double>(6, number));
    if (n + 1 < kFiles) request.times.push_back(at("2020-01-01") + 6 * n * kHour);
  }
  FileSet files(paths);
  files.select({"v0", {}}, true);
  Channel channel;
  channel.name = "v0";
  channel.field = {"v0", {}};
  const Channels channels{.inputs = {channel}, .targets = {channel}};
  Statistics statistics;
  statistics.fields["v0"] = {"", 0, 1, 1};
  BatchReader reader(files, channels, statistics, Predict::kState, 6 * kHour);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit few = before;
  few.rlim_cur = 100;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  const Context context = Context::make_host(Backend::kReference, 1);
  std::string failure;
  Batch batch;
  try {
    batch = reader.read(request, context);
  } catch (const std::exception& error) {
    failure = error.what();
  }
  ::setrlimit(RLIMIT_NOFILE, &before);
  ASSERT_EQ(failure, "");
  const HostView<const float> input(batch.input), target(batch.targets[0]);
  for (std::size_t i = 0; i < input.size(); ++i) {
    ASSERT_EQ(input[i], static_cast<float>(i / 6));
    ASSERT_EQ(target[i], static_cast<float>(i / 6 + 1));
  }
}

/// Of leads that are read one by one all fields come between two times of one chunk: more than the cache
/// keeps for a hyperslab.
TEST(ReadCuts, LeadsOneByOneFetchChunksOfSeveralTimesOnce) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/series.nc";
  write(path, Layout::kSeries, 8);
  const Box whole = Box::whole({1, kRows, kColumns, kVariables});
  const Context context = Context::make_host(Backend::kReference, 1);
  BatchRequest request{.times = {at("2020-01-01")}, .input = whole, .target = whole, .rollout = 6};
  const Bytes all = [&] {
    Opened at_once(path);
    at_once.reader().read(request, context);
    return at_once.bytes();
  }();
  Opened one_by_one(path);
  BatchReader reader = one_by_one.reader();
  for (int lead = 0; lead < request.rollout; ++lead) {
    request.lead = lead;
    const Batch batch = reader.read(request, context);
    const HostView<const float> target(batch.target(lead));
    for (std::int64_t v = 0; v < kVariables; ++v)
      ASSERT_EQ(target[static_cast<std::size_t>(v)], static_cast<float>(value(v, lead + 1, 0, 0)));
  }
  EXPECT_EQ(one_by_one.bytes().requested, 7 * kRows * kColumns * kVariables * 4);
  EXPECT_EQ(one_by_one.bytes().requested, all.requested);
  EXPECT_EQ(one_by_one.bytes().fetched, all.fetched);
}

/// Processes that keep chunks together read all pieces of a sample, in which each chunk has a part.
TEST(ReadCuts, ProcessesOfAMachineDecodeEachChunkOnce) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/planes.nc";
  write(path, Layout::kPlanes);
  Box piece = Box::whole({1, kRows, kColumns, kVariables});
  const Bytes all = read_piece(path, piece);
  void* memory = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  std::atomic<std::int64_t>& fetched = *new (memory) std::atomic<std::int64_t>(0);
  const auto node = NodeChunks::make(ChunkCache::most_bytes());
  if (!node || !NodeChunks::open(node->address())) GTEST_SKIP() << "no memory in common here";
  constexpr int kRanks = 4;
  for (const int dim : {1, 2}) {
    fetched = 0;
    std::vector<pid_t> children;
    for (int rank = 0; rank < kRanks; ++rank) {
      children.push_back(::fork());
      if (children.back() != 0) continue;
      ::alarm(240);
      ChunkCache::shared().share(rank, kRanks, NodeChunks::open(node->address(), std::chrono::minutes(2)));
      piece.extent[dim] /= kRanks;
      piece.begin[dim] = rank * piece.extent[dim];
      fetched += read_piece(path, piece).fetched;
      ::_exit(::testing::Test::HasFailure() ? 1 : 0);
    }
    for (const pid_t child : children) {
      int status = -1;
      ::waitpid(child, &status, 0);
      EXPECT_EQ(status, 0);
    }
    // Of the second cut nothing at all, for the chunks are still there.
    EXPECT_EQ(fetched, dim == 1 ? all.fetched : 0);
  }
  ::munmap(memory, 4096);
}

TEST(ReadCuts, OfLatitudeLongitudeAndChannelsFetchTheirShareOfAContiguousFile) {
  expect_shares(Layout::kContiguous, 1, 1.3);
  expect_shares(Layout::kContiguous, 2, 1.3);
  expect_shares(Layout::kContiguous, 3, 1.3);
}

TEST(ReadCuts, OfAnyKindFetchTheirShareOfPatches) {
  expect_shares(Layout::kPatches, 1, 1.3);
  expect_shares(Layout::kPatches, 2, 1.3);
  expect_shares(Layout::kPatches, 3, 1.3);
}

}  // namespace read_cuts_test
}  // namespace jigsaw
