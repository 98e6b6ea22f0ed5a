#include "init/field_samples.h"

#include <algorithm>
#include <span>

#include "base/text.h"

namespace jigsaw::inline init {

namespace {

/// The whole of a plane of at most so many points, else rows spread over it.
std::vector<Box> sampled_boxes(const Shape& plane, std::int64_t most) {
  constexpr std::int64_t kMostRows = 64;
  if (plane.count() <= most) return {Box::whole(plane)};
  const std::int64_t rows = std::clamp<std::int64_t>(most / plane[1], 1, std::min(kMostRows, plane[0]));
  std::vector<Box> boxes(static_cast<std::size_t>(rows), Box::whole(plane));
  for (std::int64_t i = 0; i < rows; ++i) {
    Box& box = boxes[static_cast<std::size_t>(i)];
    box.begin[0] = (2 * i + 1) * plane[0] / (2 * rows);
    box.extent[0] = 1;
  }
  return boxes;
}

}  // namespace

std::vector<double> sampled_values(FileSet& files, const Field& field, Time time, std::int64_t most) {
  std::vector<double> values;
  for (const Box& box : sampled_boxes(files.grid().shape(), most)) {
    const std::size_t begin = values.size();
    values.resize(begin + static_cast<std::size_t>(box.extent.count()));
    files.read(field, time, box, std::span(values).subspan(begin));
  }
  return values;
}

std::vector<Time> sampled_times(const std::vector<Time>& times) {
  // The seventh, fourteenth, … of 24 steps: of 2, 4 or 8 that make a day each is among them.
  constexpr std::size_t kTimes = 12, kBlock = 24, kOffset = 7;
  if (times.empty()) return {};
  const std::size_t last = times.size() - 1;
  std::vector<Time> sampled = {times[last]};
  for (std::size_t k = 0; k < kTimes; ++k) {
    const std::size_t block = k * times.size() / kTimes / kBlock;
    sampled.push_back(times[std::min(block * kBlock + k * kOffset % kBlock, last)]);
  }
  std::ranges::sort(sampled);
  sampled.erase(std::unique(sampled.begin(), sampled.end()), sampled.end());
  return sampled;
}

std::string looked_at(const FileSet& files, const Field& field) {
  return concat("at the ", sampled_times(files.times(field)).size(), " times that were looked at");
}

}  // namespace jigsaw::inline init
