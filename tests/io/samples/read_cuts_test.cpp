// What ranks request and what the system is asked for when a batch is cut.
#include <netcdf.h>

#include "array/host_view.h"
#include "io/fixtures.h"
#include "io/netcdf_writer.h"
#include "samples/batch_reader.h"
#include "support/temporary_folder.h"

namespace jigsaw {
namespace {

using testing::NetcdfWriter;
using testing::TemporaryFolder;

constexpr std::int64_t kTimes = 2, kRows = 96, kColumns = 192, kVariables = 16;

/// All over the place, so that every patch deflates alike.
double value(std::int64_t variable, std::int64_t time, std::int64_t row, std::int64_t column) {
  const std::int64_t point = ((variable * kTimes + time) * kRows + row) * kColumns + column;
  return static_cast<double>(static_cast<std::uint64_t>(point) * 0x9e3779b97f4a7c15ULL >> 44U);
}

/// Of a series, chunks hold four times of all points.
enum class Layout { kContiguous, kPatches, kSeries };

/// Times on the hours 0, 6, …; patches are of 12 x 24 points. Chunks are deflated.
void write(const std::string& path, Layout layout, std::int64_t count = kTimes) {
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
    if (!chunked) continue;
    const auto chunks = layout == Layout::kPatches ? std::array<std::size_t, 3>{1, 12, 24}
                                                   : std::array<std::size_t, 3>{4, kRows, kColumns};
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
  BatchReader reader() { return {files, channels, statistics, Predict::kState, 6}; }
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

/// Of leads that are read one by one all fields come between two times of one chunk: more than the cache
/// keeps for a hyperslab.
TEST(ReadCuts, LeadsOneByOneFetchChunksOfSeveralTimesOnce) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/series.nc";
  write(path, Layout::kSeries, 8);
  const Box whole = Box::whole({1, kRows, kColumns, kVariables});
  const Context context = Context::make_host(Backend::kReference, 1);
  BatchRequest request{.times = {at("2020-01-01")}, .input = whole, .target = whole, .rollout = 6};
  Opened one_by_one(path), at_once(path);
  BatchReader reader = one_by_one.reader();
  for (int lead = 0; lead < request.rollout; ++lead) {
    request.lead = lead;
    const Batch batch = reader.read(request, context);
    const HostView<const float> target(batch.target(lead));
    for (std::int64_t v = 0; v < kVariables; ++v)
      ASSERT_EQ(target[static_cast<std::size_t>(v)], static_cast<float>(value(v, lead + 1, 0, 0)));
  }
  request.lead.reset();
  at_once.reader().read(request, context);
  EXPECT_EQ(one_by_one.bytes().requested, 7 * kRows * kColumns * kVariables * 4);
  EXPECT_EQ(one_by_one.bytes().requested, at_once.bytes().requested);
  EXPECT_EQ(one_by_one.bytes().fetched, at_once.bytes().fetched);
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

}  // namespace
}  // namespace jigsaw
