#include "samples/read_layout.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/text.h"

namespace jigsaw::inline samples {

namespace {

constexpr std::int64_t kPage = 4096, kLeastChunkBytes = 16 << 10;
/// What ranks may fetch of what they need.
constexpr double kLimit = 1.3;

/// First and last point of a file's axis that points [begin, begin + count) of the grid stand between, for
/// each run of them.
struct FileRange {
  std::int64_t begin, end;
};
std::vector<FileRange> ranges_of(const AxisMap& map, std::int64_t begin, std::int64_t count) {
  std::vector<FileRange> ranges;
  for (const AxisRun& run : map.runs(map.needed(begin, count))) {
    const std::int64_t last = run.first + (run.count - 1) * run.step;
    ranges.push_back({std::min(run.first, last), std::max(run.first, last) + 1});
  }
  return ranges;
}

std::int64_t length(const std::vector<FileRange>& ranges) {
  std::int64_t sum = 0;
  for (const FileRange& range : ranges) sum += range.end - range.begin;
  return sum;
}

/// Numbers of the chunks along an axis that hold some of the ranges.
std::set<std::int64_t> chunk_numbers(const std::vector<FileRange>& ranges, std::int64_t chunk) {
  std::set<std::int64_t> chunks;
  for (const FileRange& range : ranges) {
    for (std::int64_t c = range.begin / chunk; c <= (range.end - 1) / chunk; ++c) chunks.insert(c);
  }
  return chunks;
}

/// Points of an axis in these chunks.
std::int64_t length_in_chunks(const std::vector<FileRange>& ranges, std::int64_t chunk, std::int64_t extent) {
  std::int64_t sum = 0;
  for (const std::int64_t c : chunk_numbers(ranges, chunk)) sum += std::min(chunk, extent - c * chunk);
  return sum;
}

/// Fields that are levels or channels of one variable.
struct Group {
  const FieldStorage* first = nullptr;
  std::vector<FileRange> entries;  ///< along its levels or channels
};

std::map<const FileVariable*, Group> groups_of(const std::vector<FieldStorage>& fields) {
  std::map<const FileVariable*, Group> groups;
  for (const FieldStorage& field : fields) {
    Group& group = groups[field.variable];
    if (group.first == nullptr) group.first = &field;
    group.entries.push_back({field.entry, field.entry + 1});
  }
  return groups;
}

/// The dimension along which the fields of a variable stand; -1 where it is one field.
int entry_axis(const FieldStorage& field) {
  return field.axes.channel >= 0 ? field.axes.channel : field.axes.level;
}

std::int64_t fetched_of(const Group& group, const std::vector<FileRange>& rows,
                        const std::vector<FileRange>& columns) {
  const FieldStorage& field = *group.first;
  const Shape& shape = field.variable->shape;
  const Shape& chunks = field.variable->chunks;
  const int row = field.axes.latitude, column = field.axes.longitude;
  if (chunks.rank() == 0) {
    // Pages come whole: of a row that is cut, what stands beside the piece in them.
    const std::int64_t points = shape[column] * field.variable->bytes;
    const std::int64_t run = length(columns) * field.variable->bytes;
    const bool whole_rows = length(columns) == shape[column];
    const std::int64_t read = whole_rows ? run : std::min(points, run + kPage);
    return read * length(rows) * std::ssize(group.entries);
  }
  const int entry = entry_axis(field);
  std::int64_t points = 1;
  for (int d = 0; d < shape.rank(); ++d) {
    if (d == row || d == column) {
      points *= length_in_chunks(d == row ? rows : columns, chunks[d], shape[d]);
    } else if (d == entry) {
      points *= length_in_chunks(group.entries, chunks[d], shape[d]);
    } else {
      points *= std::min(chunks[d], shape[d]);
    }
  }
  return points * field.variable->bytes;
}

}  // namespace

ReadCost cost_of_reading(const std::vector<FieldStorage>& fields, const Box& piece) {
  ReadCost cost;
  double worst = 0;
  if (piece.empty()) return cost;
  for (const auto& [variable, group] : groups_of(fields)) {
    const FieldStorage& field = *group.first;
    if (field.point_by_point) continue;
    const auto rows = ranges_of(*field.rows, piece.begin[0], piece.extent[0]);
    const auto columns = ranges_of(*field.columns, piece.begin[1], piece.extent[1]);
    const std::int64_t points = field.rows->needed(piece.begin[0], piece.extent[0]).count *
                                field.columns->needed(piece.begin[1], piece.extent[1]).count;
    const std::int64_t wanted = field.states * points * std::ssize(group.entries) * variable->bytes;
    const std::int64_t fetched = field.states * fetched_of(group, rows, columns);
    cost.wanted += wanted;
    cost.fetched += fetched;
    const double ratio = static_cast<double>(fetched) / static_cast<double>(wanted);
    if (ratio <= worst) continue;
    worst = ratio;
    cost.worst = variable->name;
    cost.path = field.path;
    cost.format = field.format;
    cost.chunks = variable->chunks;
  }
  return cost;
}

PieceChunks chunks_of_piece(const std::vector<FieldStorage>& fields, const Box& piece) {
  PieceChunks all;
  if (piece.empty()) return all;
  for (const auto& [variable, group] : groups_of(fields)) {
    const FieldStorage& field = *group.first;
    const Shape& chunks = variable->chunks;
    if (chunks.rank() == 0) continue;
    const int entry = entry_axis(field);
    if ((field.axes.time >= 0 && chunks[field.axes.time] > 1) || (entry >= 0 && chunks[entry] > 1))
      all.later = true;
    const Shape plane = field.axes.plane_of(variable->shape), in_chunk = field.axes.plane_of(chunks);
    std::int64_t down = (plane[0] + in_chunk[0] - 1) / in_chunk[0],
                 along = (plane[1] + in_chunk[1] - 1) / in_chunk[1];
    // Whose points are read one by one, as many of them as there are.
    if (!field.point_by_point) {
      down = std::ssize(chunk_numbers(ranges_of(*field.rows, piece.begin[0], piece.extent[0]), in_chunk[0]));
      along =
          std::ssize(chunk_numbers(ranges_of(*field.columns, piece.begin[1], piece.extent[1]), in_chunk[1]));
    }
    const std::int64_t points =
        std::min(down * in_chunk[0], plane[0]) * std::min(along * in_chunk[1], plane[1]);
    if (points > piece.extent.count()) all.elsewhere = true;
    const std::int64_t deep = entry < 0 ? 1 : std::ssize(chunk_numbers(group.entries, chunks[entry]));
    all.bytes += field.states * down * along * deep * chunks.count() * variable->bytes;
  }
  return all;
}

std::int64_t chunk_extent(std::int64_t extent, std::int64_t pieces, double limit, std::int64_t least) {
  const std::int64_t largest = (extent + pieces - 1) / pieces;
  std::int64_t best = largest;
  double best_ratio = 1e300;
  for (std::int64_t chunk = largest; chunk >= std::min(least, largest); --chunk) {
    double ratio = 1;
    std::int64_t begin = 0;
    for (std::int64_t p = 0; p < pieces; ++p) {
      const std::int64_t count = extent / pieces + (p < extent % pieces ? 1 : 0);
      if (count == 0) continue;
      const std::int64_t first = begin / chunk * chunk;
      const std::int64_t last = std::min((begin + count + chunk - 1) / chunk * chunk, extent);
      ratio = std::max(ratio, static_cast<double>(last - first) / static_cast<double>(count));
      begin += count;
    }
    if (ratio <= limit) return chunk;
    if (ratio < best_ratio) {
      best_ratio = ratio;
      best = chunk;
    }
  }
  return best;
}

Shape chunks_for(const Shape& grid, const Shape& pieces, std::int64_t element) {
  const bool both = pieces[0] > 1 && pieces[1] > 1;
  const double limit = both ? std::sqrt(kLimit) : kLimit;
  const std::int64_t points = kLeastChunkBytes / element;
  const std::int64_t columns =
      chunk_extent(grid[1], pieces[1], limit, both ? static_cast<std::int64_t>(std::sqrt(points)) : 1);
  const std::int64_t rows = chunk_extent(grid[0], pieces[0], limit, (points + columns - 1) / columns);
  return {rows, columns};
}

}  // namespace jigsaw::inline samples
